# SPDX-License-Identifier: Apache-2.0
"""Programs for python_check.py, by name: modules that each needs, and its text. They record to ./log."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
import documented_programs as documented  # noqa: E402

START = """
import gpufl
assert gpufl.init(app_name="check", log_path="log", profiling_engine=gpufl.ProfilingEngine.Trace)
"""
END = "\ngpufl.shutdown()\n"
MODEL = """
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(256), nn.Linear(256, 1024), nn.Linear(1024, 256)

    def forward(self, x):
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))
"""
SETUP = """
with gpufl.Scope("setup"):
    model = nn.Sequential(*[Block() for _ in range(3)], nn.Linear(256, 16)).cuda()
    x, y = torch.randn(64, 256, device="cuda"), torch.randint(16, (64,), device="cuda")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

def step(run):
    with gpufl.Scope("forward"):
        loss = nn.functional.cross_entropy(run(x), y)
    with gpufl.Scope("backward"):
        loss.backward()
    with gpufl.Scope("optimizer"):
        optimizer.step()
        optimizer.zero_grad()
"""
TRAIN = """
for _ in range(20):
    step(model)
torch.cuda.synchronize()
"""
COMPILED = """
compiled = torch.compile(model)
for _ in range(8):
    step(compiled)
torch.cuda.synchronize()
"""
GRAPH = """
stream = torch.cuda.Stream()
with torch.cuda.stream(stream), torch.no_grad():
    for _ in range(3):
        model(x)
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.no_grad(), torch.cuda.graph(graph):
    model(x)
for _ in range(10):
    with gpufl.Scope("replay"):
        graph.replay()
torch.cuda.synchronize()
"""
# From CPython 3.12 on, gpufl gives way to a profiler of PyTorch; before, the program has to say that it uses one.
TURNS = """
import sys
if sys.version_info >= (3, 12):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        with gpufl.Scope("during"):
            model(x)
    assert any(event.key == "aten::addmm" for event in profile.key_averages())
with gpufl.Scope("after"):
    model(x)
torch.cuda.synchronize()
"""
TRITON = """
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
"""
JAX = """
import jax, jax.numpy as jnp

x = jnp.ones((1024, 1024))
with gpufl.Scope("jax"):
    for _ in range(5):
        x = jax.jit(lambda v: jnp.tanh(v @ v))(x)
    x.block_until_ready()
"""
# What the documented programs take for granted.
REAL_FRAMEWORK = """
import torch
model = torch.nn.Linear(64, 64).cuda()
input = torch.randn(8, 64, device="cuda")
loss = model(input).sum()
A = B = torch.ones(64, 64, device="cuda")
C = torch.empty(64, 64, device="cuda")
bpg = tpb = 1
class matmul_kernel:
    def __class_getitem__(cls, launch):
        return lambda a, b, out: torch.matmul(a, b, out=out)
log_dir = "."
"""
DOCUMENTED = (REAL_FRAMEWORK + documented.CORE + documented.SCOPES + documented.SWITCHED_OFF + """
gpufl.init(app_name="bench", log_path="bench", profiling_engine=gpufl.ProfilingEngine.Trace)
""" + documented.LOOP + END + documented.NO_BACKEND + END)
READING = documented.ANALYZER + f"""
for name in {documented.DATA_FRAMES!r}:
    print(name, len(getattr(session, name)))
""" + documented.REPORT
IF_THERE = """
import importlib.util
if importlib.util.find_spec("{}"):
{}
"""


def indented(text):
    return "".join(f"    {line}\n" for line in text.splitlines())


PROGRAMS = {
    "compiled": ("torch triton", START + MODEL + SETUP + COMPILED + END),
    "train": ("torch", START + MODEL + SETUP + TRAIN + END),
    "train_late": ("torch", MODEL + START + SETUP + TRAIN + END),
    "traced": ("torch", "import gpufl\n" + MODEL + SETUP + TRAIN),  # under gpufl trace
    "modules": ("torch", START + MODEL + SETUP + "import gpufl.frameworks\nwith gpufl.frameworks.attach(model):\n" +
                indented(TRAIN) + END),
    "graph": ("torch", START + MODEL + SETUP + GRAPH + END),
    "stacks": ("torch", START.replace("Trace)", "Trace, enable_stack_trace=True)") + MODEL + SETUP + TRAIN + END),
    "turns": ("torch", START + MODEL + SETUP + TURNS + END),
    "triton": ("torch triton", START + TRITON + END),
    "jax": ("jax", START + JAX + END),
    "documented": ("torch", DOCUMENTED + IF_THERE.format("pandas", indented(READING)) +
                   IF_THERE.format("matplotlib", indented(documented.VISUALIZATION))),
}
