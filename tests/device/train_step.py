# SPDX-License-Identifier: Apache-2.0
"""Added time of a profiler on a launch-bound PyTorch training step, measured in one process by
alternating blocks of steps without and with it: train_step.py gpufl|torch|none LIBGPUFL LOGDIR"""
import ctypes
import json
import statistics
import sys
import time

import torch

mode, library, log_dir = sys.argv[1:4]
BLOCKS, STEPS = 7, 12

torch.manual_seed(0)
layer = torch.nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True)
model = torch.nn.TransformerEncoder(layer, 6).cuda()
optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
batch = torch.randn(16, 128, 512, device="cuda")


def step():
    optimizer.zero_grad()
    loss = (model(batch) ** 2).mean()
    loss.backward()
    optimizer.step()
    torch.cuda.synchronize()


def timed_block():
    times = []
    for _ in range(STEPS):
        start = time.perf_counter()
        step()
        times.append((time.perf_counter() - start) * 1e3)
    return times


class Gpufl:
    def __init__(self):
        import os
        os.environ.update(GPUFL_PROFILING_ENGINE="Trace", GPUFL_LOG_DIR=log_dir, GPUFL_APP_NAME="train_step")
        self.c = ctypes.CDLL(library)

    def __enter__(self):
        if self.c.gpufl_init(None) != 0:
            self.c.gpufl_last_error.restype = ctypes.c_char_p
            raise SystemExit(self.c.gpufl_last_error().decode())

    def __exit__(self, *_):
        self.c.gpufl_shutdown()


def profiler():
    if mode == "gpufl":
        return Gpufl()
    from torch.profiler import ProfilerActivity, profile
    return profile(activities=[ProfilerActivity.CUDA])


for _ in range(10):
    step()
bare, profiled = [], []
for _ in range(BLOCKS):
    bare += timed_block()
    if mode != "none":
        with profiler():
            step()
            profiled += timed_block()
result = {"mode": mode, "bare_ms": statistics.median(bare)}
if profiled:
    result["profiled_ms"] = statistics.median(profiled)
    result["added_ms"] = result["profiled_ms"] - result["bare_ms"]
print(json.dumps(result))
