#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ordinary programs that know nothing of gpufl, for matrix.py.

usage: matrix_programs.py NAME [SIZE]    prints lines that are the same in every run; SIZE: about how many kernels (100)
"""
import os
import sys


def torch_model():
    import torch

    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = False
    model = torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(4)]).cuda()
    return torch, model, torch.ones(64, 256, device="cuda")


def graph(size):
    """Captures a graph, replays it, and goes on without it."""
    torch, model, x = torch_model()
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream), torch.no_grad():
        for _ in range(3):
            model(x)
    torch.cuda.current_stream().wait_stream(stream)
    captured = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(captured):
        y = model(x)
    for _ in range(max(size // 4, 1)):
        captured.replay()
    torch.cuda.synchronize()
    print(f"replayed {y.double().sum().item():.6f}")
    print(f"eager {(x * 2).sum().item():.1f}")


def compiled(size):
    """torch.compile with CUDA graphs inside."""
    torch, model, x = torch_model()
    run = torch.compile(model, mode="reduce-overhead")
    with torch.no_grad():
        for _ in range(max(size // 8, 4)):
            y = run(x)
    torch.cuda.synchronize()
    print(f"compiled {y.double().sum().item():.3f}")


def jax(size):
    import jax as framework
    import jax.numpy as jnp

    @framework.jit
    def step(x):
        return jnp.tanh(x @ x) * 0.5 + x * 0.5

    x = jnp.ones((128, 128)) * 0.01
    for _ in range(max(size // 3, 1)):
        x = step(x)
    print(f"jax {float(x.sum()):.4f}")


def cupy(size):
    import cupy as framework

    x = framework.ones((256, 256), dtype=framework.float32)
    for _ in range(max(size // 2, 1)):
        x = framework.sin(x) + 0.5
    print(f"cupy {float(x.sum()):.3f}")


def triton(size):
    import torch
    import triton as compiler
    import triton.language as tl

    @compiler.jit
    def add(x, y, out, n, block: tl.constexpr):
        at = tl.program_id(0) * block + tl.arange(0, block)
        tl.store(out + at, tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n), mask=at < n)

    globals()["tl"] = tl
    x = torch.ones(65536, device="cuda")
    out = torch.zeros_like(x)
    for _ in range(size):
        add[(64,)](x, out, out, 65536, block=1024)
    torch.cuda.synchronize()
    print(f"triton {out.sum().item():.1f}")


def loader(size):
    """Workers that the loader forks, and spawns, beside training."""
    torch, model, _ = torch_model()
    data = torch.utils.data.TensorDataset(torch.ones(256, 256))
    for method in ("fork", "spawn"):
        batches = torch.utils.data.DataLoader(data, batch_size=64, num_workers=2, multiprocessing_context=method)
        total = 0.0
        for _ in range(max(size // 64, 1)):
            for (batch,) in batches:
                total += model(batch.cuda()).sum().item()
        print(f"{method} {total:.4f}")


def child(rank, size):
    import torch

    x = torch.ones(256, 256, device="cuda")
    for _ in range(max(size // 6, 1)):
        x = x * 0.5 + 1
    torch.cuda.synchronize()
    print(f"rank {rank} {x.sum().item():.1f}\n", end="", flush=True)


def processes(size, method):
    import multiprocessing

    context = multiprocessing.get_context(method)
    children = [context.Process(target=child, args=(rank, size)) for rank in range(3)]
    for one in children:
        one.start()
    for one in children:
        one.join()
    print(f"exit {[one.exitcode for one in children]}", flush=True)


def spawned(size):
    processes(size, "spawn")


def forked(size):
    """Children of a process that has imported torch, but not used the GPU."""
    import torch  # noqa: F401

    processes(size, "fork")


PROGRAMS = {one.__name__: one for one in (graph, compiled, jax, cupy, triton, loader, spawned, forked)}

if __name__ == "__main__":
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    PROGRAMS[sys.argv[1]](int(sys.argv[2]) if len(sys.argv) > 2 else 100)
