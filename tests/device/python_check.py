#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the Python package on a real GPU: PyTorch's operators on kernels, torch.compile, CUDA graphs, Triton, JAX.

usage: PYTHONPATH=build/python python_check.py [DIRECTORY]    sessions and pictures go there; default: python_check
What the machine lacks (torch, triton, jax, matplotlib) is said and skipped; a check that fails ends with exit 1.
"""
import importlib.util
import pathlib
import subprocess
import sys
import textwrap

from gpufl.analyzer import GpuFlightSession

NAMED_MIN = 0.99
HEAD = """
import sys
import gpufl, gpufl.frameworks
assert gpufl.init(app_name="check", log_path=sys.argv[1], profiling_engine=gpufl.ProfilingEngine.Trace)
"""
TORCH = """
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(256), nn.Linear(256, 1024), nn.Linear(1024, 256)

    def forward(self, x):
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))

model = nn.Sequential(*[Block() for _ in range(3)], nn.Linear(256, 16)).cuda()
x, y = torch.randn(64, 256, device="cuda"), torch.randint(16, (64,), device="cuda")
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

def step(run):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(run(x), y)
    loss.backward()
    optimizer.step()
"""
PROGRAMS = {
    "train": ("torch", TORCH + """
with gpufl.frameworks.attach(model):
    for _ in range(20):
        step(model)
    torch.cuda.synchronize()
"""),
    "compiled": ("torch triton", TORCH + """
compiled = torch.compile(model)
for _ in range(3):
    step(compiled)
with gpufl.frameworks.attach(model):
    for _ in range(10):
        step(compiled)
    torch.cuda.synchronize()
"""),
    "graph": ("torch", TORCH + """
stream = torch.cuda.Stream()
with torch.cuda.stream(stream), torch.no_grad():
    for _ in range(3):
        model(x)
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.no_grad(), torch.cuda.graph(graph):
    model(x)
with gpufl.frameworks.attach(model):
    for _ in range(10):
        with gpufl.Scope("replay"):
            graph.replay()
    torch.cuda.synchronize()
"""),
    "triton": ("torch triton", """
import torch, triton, triton.language as tl

@triton.jit
def add_vectors(a, b, out, n, SIZE: tl.constexpr):
    offsets = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    mask = offsets < n
    tl.store(out + offsets, tl.load(a + offsets, mask) + tl.load(b + offsets, mask), mask)

a = torch.randn(1 << 20, device="cuda")
out = torch.empty_like(a)
with gpufl.Scope("triton"):
    for _ in range(10):
        add_vectors[(1024,)](a, a, out, a.numel(), SIZE=1024)
torch.cuda.synchronize()
"""),
    "jax": ("jax", """
import jax, jax.numpy as jnp

gpufl.frameworks.attach()
x = jnp.ones((1024, 1024))
with gpufl.Scope("jax"):
    for _ in range(5):
        x = jax.jit(lambda v: jnp.tanh(v @ v))(x)
    x.block_until_ready()
"""),
}


def texts(session, table, column):
    """A text column of a table without pandas; None where it is not known."""
    rows = session.table(table)
    if not len(rows):
        return []
    kind, values, _, words = rows.column(column)
    letter = {"int8": "b", "int16": "h", "int32": "i", "int64": "q"}[kind]
    return [words[code] if code >= 0 else None for code in memoryview(values).cast("B").cast(letter)]


def check(name, session):
    """What is wrong with the session of that program; prints what is in it."""
    paths, kernels = texts(session, "kernels", "scope"), texts(session, "kernels", "name")
    named = sum(path is not None and "::" in path for path in paths)
    print(f"{name}: {len(kernels)} kernels, {named} with an operator, {len(session.table('graphs'))} graph launches")
    for path in sorted({path for path in paths if path}, key=len)[-3:]:
        print(f"    {path}")
    wrong = []
    if not kernels and not len(session.table("graphs")):
        wrong.append("no kernels were recorded")
    if name == "train":
        # In front of the first scope lies what attach() did not see: the model's way to the GPU.
        first = next((row for row, path in enumerate(paths) if path is not None), len(paths))
        inside = [path or "" for path in paths[first:]]
        share = sum("::" in path for path in inside) / max(1, len(inside))
        print(f"    with an operator, from the first scope on: {share:.2%}; of all: {named / max(1, len(paths)):.2%}")
        wrong += [f"only {share:.2%} of kernels have an operator"] if share < NAMED_MIN else []
        wrong += ["no kernel lies in a module of the model"] if not any("0.up" in path for path in inside) else []
        wrong += ["operators carry numbers"] if any("op_id" in path for path in inside) else []
    if name == "compiled" and not any(kernel and kernel.startswith("triton_") for kernel in kernels):
        wrong.append("no kernel of the compiler was recorded")
    if name == "graph" and not len(session.table("graphs")) and "replay" not in " ".join(filter(None, paths)):
        wrong.append("nothing of the graph was recorded")
    if name == "triton" and kernels.count("add_vectors") != 10:
        wrong.append(f"add_vectors was recorded {kernels.count('add_vectors')} times, not 10")
    if name == "jax" and not any(path and "jax" in path for path in paths):
        wrong.append("no kernel lies in the scope")
    return wrong


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "python_check")
    failures = 0
    for name, (needs, text) in PROGRAMS.items():
        missing = [module for module in needs.split() if importlib.util.find_spec(module) is None]
        if missing:
            print(f"{name}: skipped, there is no {', '.join(missing)}")
            continue
        (folder / name).mkdir(parents=True, exist_ok=True)
        program = folder / f"{name}.py"
        program.write_text(HEAD + textwrap.dedent(text) + "\ngpufl.shutdown()\n")
        result = subprocess.run([sys.executable, str(program), str(folder / name)], check=False, timeout=400)
        if result.returncode:
            print(f"{name}: FAILED, exit {result.returncode}")
            failures += 1
            continue
        session = GpuFlightSession(folder / name)
        for wrong in check(name, session):
            print(f"{name}: FAILED, {wrong}")
            failures += 1
        if importlib.util.find_spec("matplotlib") and importlib.util.find_spec("pandas"):
            import gpufl.viz
            gpufl.viz.timeline(session).savefig(folder / f"{name}.png")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
