# SPDX-License-Identifier: Apache-2.0
"""What a profiler adds to a launch-bound PyTorch training step (6 layers of width 512, an optimizer of many small
kernels, about 965 a step): step_cost.py BUILD_DIR WORK_DIR OUT_DIR

A process for each run, forked after PyTorch was imported and before CUDA starts, so that neither shares anything with
another: alone, with gpufl attached from the start as by `gpufl trace` (Trace, PcSampling), and with torch.profiler (CUDA
activities) around the measured steps. ROUNDS (5) interleaved rounds; 20 steps to warm up, then the mean of STEPS (60).
PLAIN=torch: only that training under torch.profiler, for a program that somebody else traces."""
import json
import os
import statistics
import sys
import time

import torch

STEPS, WARM_UP = int(os.environ.get("STEPS", "60")), 20


def train(with_torch_profiler):
    """Mean milliseconds of a measured step."""
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 6).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    batch = torch.randn(16, 128, 512, device="cuda")

    def step_ms():
        start = time.perf_counter()
        optimizer.zero_grad()
        (model(batch) ** 2).mean().backward()
        optimizer.step()
        torch.cuda.synchronize()
        return (time.perf_counter() - start) * 1e3

    for _ in range(WARM_UP):
        step_ms()
    if not with_torch_profiler:
        return statistics.mean(step_ms() for _ in range(STEPS))
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]):
        return statistics.mean([step_ms() for _ in range(STEPS)])


def measured(mode, build, work):
    """The same in a process of its own; None when it failed."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        if mode not in ("alone", "torch.profiler"):
            os.environ.update(CUDA_INJECTION64_PATH=f"{build}/lib/libgpufl_inject.so", GPUFL_INJECT="1",
                              GPUFL_LOG_DIR=f"{work}/c-{mode}", GPUFL_APP_NAME="step", GPUFL_PROFILING_ENGINE=mode)
        os.write(writer, json.dumps(train(mode == "torch.profiler")).encode())
        sys.exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    return json.loads(answer) if answer else None


def main():
    from bench_table import BenchTable
    table = BenchTable(*sys.argv[1:4])
    found = {mode: [] for mode in ("alone", "Trace", "PcSampling", "torch.profiler")}
    for index in range(int(os.environ.get("ROUNDS", "5"))):
        for mode in (found if index % 2 else reversed(found)):
            if (value := measured(mode, table.build, table.work)) is not None:
                found[mode].append(value)
        print("    ", {mode: [round(value, 1) for value in values] for mode, values in found.items()}, flush=True)
    median = {mode: statistics.median(values) for mode, values in found.items()}
    added = {mode: value - median["alone"] for mode, value in median.items()}
    table.say("PyTorch step, launch-bound, alone", f"{median['alone']:.2f} ms")
    for mode in ("Trace", "PcSampling", "torch.profiler"):
        table.say(f"  {mode}", f"{median[mode]:.2f} ms, {added[mode]:+.2f}")
    ratio = added["Trace"] / added["torch.profiler"]
    table.say("  Trace / torch.profiler, added", f"{ratio:.2f}", "<= 0.25", ratio <= 0.25)
    ratio = median["PcSampling"] / median["Trace"]
    table.say("  PcSampling / Trace", f"{ratio:.3f}", "<= 1.03", ratio <= 1.03)
    table.run_steps({}, [])


if __name__ == "__main__":
    if os.environ.get("PLAIN"):
        print(train(os.environ["PLAIN"] == "torch"))
    else:
        main()
