# SPDX-License-Identifier: Apache-2.0
"""Times two PyTorch training steps in one process, with whatever profiler runs around it: one that keeps the GPU busy
(8 layers of width 2048, bf16) and one that waits for launches (6 layers of width 512, an optimizer of many small
kernels). Prints a line of JSON for each: the median and the span of time (ns) of the steps."""
import json
import os
import statistics
import time

import torch

GPU_BATCH, GPU_STEPS = int(os.environ.get("GPU_BATCH", "16")), int(os.environ.get("GPU_STEPS", "20"))
LAUNCH_STEPS = int(os.environ.get("LAUNCH_STEPS", "60"))


def encoder(width, heads, layers):
    layer = torch.nn.TransformerEncoderLayer(width, heads, 4 * width, batch_first=True)
    return torch.nn.TransformerEncoder(layer, layers).cuda()


def timed(name, model, optimizer, batch, steps, warm_up):
    times = []
    for index in range(-warm_up, steps):
        if index == 0:
            begin_ns = time.time_ns()
        start = time.perf_counter()
        optimizer.zero_grad()
        (model(batch).float() ** 2).mean().backward()
        optimizer.step()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - start) * 1e3)
    times = times[warm_up:]
    print(json.dumps({"name": name, "ms": statistics.median(times), "quartiles_ms": statistics.quantiles(times, n=4),
                      "begin_ns": begin_ns, "end_ns": time.time_ns()}), flush=True)


def gpu_bound():
    model = encoder(2048, 16, 8).bfloat16()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    batch = torch.randn(GPU_BATCH, 1024, 2048, device="cuda", dtype=torch.bfloat16)
    timed("gpu", model, optimizer, batch, GPU_STEPS, 4)


def launch_bound():
    model = encoder(512, 8, 6)
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    timed("launch", model, optimizer, torch.randn(16, 128, 512, device="cuda"), LAUNCH_STEPS, 10)


torch.manual_seed(0)
launch_bound()
gpu_bound()
