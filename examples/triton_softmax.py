# SPDX-License-Identifier: Apache-2.0
"""A fused softmax in Triton beside PyTorch's, and beside one that is written step by step.

    PYTHONPATH=build/python gpufl trace --engine PcSampling -- python3 examples/triton_softmax.py
    gpufl report triton_softmax

Each way has a scope; the report shows five kernels where one is enough, and with PcSampling the lines of this file that
the Triton kernel waits in. Needs torch and triton.
"""
import sys

import torch
import triton
import triton.language as tl

import gpufl


@triton.jit
def softmax_rows(out, rows, row_stride, columns, BLOCK: tl.constexpr):
    """One program for each row, which fits into registers: read once, written once."""
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    values = tl.load(rows + row * row_stride + offsets, mask=mask, other=-float("inf"))
    values = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * row_stride + offsets, values / tl.sum(values, axis=0), mask=mask)


def fused(rows):
    out = torch.empty_like(rows)
    block = triton.next_power_of_2(rows.shape[1])
    softmax_rows[(rows.shape[0],)](out, rows, rows.stride(0), rows.shape[1], BLOCK=block, num_warps=8)
    return out


def step_by_step(rows):
    """Each line is at least one kernel that reads and writes everything."""
    values = rows - rows.max(dim=1, keepdim=True).values
    values = torch.exp(values)
    return values / values.sum(dim=1, keepdim=True)


def main():
    repeat = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    gpufl.init(app_name="triton_softmax", profiling_engine=gpufl.ProfilingEngine.Trace)
    torch.manual_seed(0)
    rows = torch.randn(8192, 4000, device="cuda")
    expected = torch.softmax(rows, dim=1)
    ways = {"step_by_step": step_by_step, "torch": lambda values: torch.softmax(values, dim=1), "triton": fused}
    for name, way in ways.items():
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        for index in gpufl.Scope(name, repeat=repeat, warmup=5):
            if index == 0:
                torch.cuda.synchronize()
                begin.record()
            result = way(rows)
        end.record()
        torch.cuda.synchronize()
        ms = begin.elapsed_time(end) / repeat
        moved = 2 * rows.numel() * rows.element_size()
        print(f"{name:14} {ms * 1e3:9.1f} us {moved / ms / 1e6:8.0f} GB/s of what must move", flush=True)
        torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-6)
    gpufl.shutdown()


if __name__ == "__main__":
    main()
