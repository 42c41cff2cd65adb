# SPDX-License-Identifier: Apache-2.0
"""Added time of a profiler on a launch-bound PyTorch training step: train_step.py MODE LIBRARY LOGDIR

MODE gpufl, floor (CUPTI alone, records thrown away) or torch (torch.profiler, CUDA activities). One process alternates
short blocks of steps without and with it; neighbours are compared, so that drift of the machine cancels out. gpufl and
the floor attach once before CUDA starts, as `gpufl trace` does. Prints one line of JSON: the step's median without,
the median of the differences (added_ms: inside the steps alone; whole_added_ms: with starting and stopping)."""
import ctypes
import json
import os
import statistics
import sys
import time

import torch

mode, library, log_dir = sys.argv[1:4]
PAIRS, STEPS = int(os.environ.get("PAIRS", "24")), int(os.environ.get("STEPS_EACH", "6"))


class Gpufl:
    def __init__(self):
        os.environ.update(GPUFL_PROFILING_ENGINE="Trace", GPUFL_LOG_DIR=log_dir, GPUFL_APP_NAME="train_step")
        self.c = ctypes.CDLL(library)
        self.c.gpufl_last_error.restype = ctypes.c_char_p

    def __enter__(self):
        if self.c.gpufl_init(None) != 0 or self.c.gpufl_active_engine() != 2:
            raise SystemExit(self.c.gpufl_last_error().decode())

    def __exit__(self, *_):
        self.c.gpufl_shutdown()


class Floor:
    def __init__(self):
        self.c = ctypes.CDLL(library)
        self.is_first = 1

    def __enter__(self):
        if self.c.floor_start(self.is_first):
            raise SystemExit(1)
        self.is_first = 0

    def __exit__(self, *_):
        self.c.floor_stop()


def torch_profiler():
    from torch.profiler import ProfilerActivity, profile
    return profile(activities=[ProfilerActivity.CUDA])


if mode == "torch":
    profiler = torch_profiler
else:
    attached = Gpufl() if mode == "gpufl" else Floor()
    profiler = lambda: attached
    with attached:
        torch.zeros(1, device="cuda")

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


def timed_steps():
    times = []
    for _ in range(STEPS):
        start = time.perf_counter()
        step()
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def whole(run):
    start = time.perf_counter()
    result = run()
    return result, (time.perf_counter() - start) * 1e3


def with_profiler():
    with profiler():
        return timed_steps()


for _ in range(10):
    step()
with profiler():
    step()
bare, added, whole_added = [], [], []
for pair in range(PAIRS):
    order = (timed_steps, with_profiler) if pair % 2 else (with_profiler, timed_steps)
    measured = {run: whole(run) for run in order}
    bare.append(measured[timed_steps][0])
    added.append(measured[with_profiler][0] - measured[timed_steps][0])
    whole_added.append((measured[with_profiler][1] - measured[timed_steps][1]) / STEPS)
print(json.dumps({"mode": mode, "bare_ms": statistics.median(bare), "added_ms": statistics.median(added),
                  "whole_added_ms": statistics.median(whole_added),
                  "quartiles_ms": statistics.quantiles(added, n=4)}))
