# SPDX-License-Identifier: Apache-2.0
"""Times a PyTorch training step that keeps the GPU busy (8 layers of width 2048, bf16), with whatever profiler runs around
it, GPU_STEPS (300) times, so that breaks and windows of PC sampling are both among them. Prints a line of JSON: the mean,
the quartiles and the span of time (ns) of the steps. step_cost.py has the step that waits for launches."""
import json
import os
import statistics
import time

import torch

BATCH, STEPS, WARM_UP = int(os.environ.get("GPU_BATCH", "16")), int(os.environ.get("GPU_STEPS", "300")), 4

torch.manual_seed(0)
layer = torch.nn.TransformerEncoderLayer(2048, 16, 4 * 2048, batch_first=True)
model = torch.nn.TransformerEncoder(layer, 8).cuda().bfloat16()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
batch = torch.randn(BATCH, 1024, 2048, device="cuda", dtype=torch.bfloat16)
times = []
for index in range(-WARM_UP, STEPS):
    if index == 0:
        begin_ns = time.time_ns()
    start = time.perf_counter()
    optimizer.zero_grad()
    (model(batch).float() ** 2).mean().backward()
    optimizer.step()
    torch.cuda.synchronize()
    times.append((time.perf_counter() - start) * 1e3)
times = times[WARM_UP:]
print(json.dumps({"ms": statistics.mean(times), "quartiles_ms": statistics.quantiles(times, n=4), "begin_ns": begin_ns,
                  "end_ns": time.time_ns()}), flush=True)
