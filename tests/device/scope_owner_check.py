#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks on a real GPU that the time of kernels is in the scope whose work they are, also where PyTorch launches them on
other threads: eager training, activation checkpointing, double backward, DDP (one process, gloo), torch.compile, compiled
autograd, AMP, two threads in backward() at once; and an NVTX program under `gpufl trace` that does not import gpufl.

usage: PYTHONPATH=build/python scope_owner_check.py [--only NAME,NAME] [DIRECTORY]
The truth is the order of the stream: each phase begins with a marker kernel (torch.cuda._sleep), and backward() returns
when everything is launched, so a kernel between two markers of its stream belongs to the phase of the first one. Prints
per program and phase: kernels, GPU time, share of that time in the right scope, in no scope and in a wrong one, and the
share that was inferred. Exit status 1: less than 99 % is right, or a program failed.
"""
import argparse
import bisect
import collections
import os
import pathlib
import subprocess
import sys
import textwrap

from gpufl.__main__ import find_command
from gpufl.analyzer import GpuFlightSession

RIGHT_MIN = 0.99
TIMEOUT_S = 170
PHASES = ("forward", "backward", "optimizer", "end")

START = """
import contextlib, threading, torch
from torch import nn
from torch.utils.checkpoint import checkpoint

class Block(nn.Module):
    def __init__(self, checkpoints=None):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(256), nn.Linear(256, 1024), nn.Linear(1024, 256)
        self.checkpoints = checkpoints

    def work(self, x):
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))

    def forward(self, x):
        if self.checkpoints is None:
            return self.work(x)
        return checkpoint(self.work, x, use_reentrant=self.checkpoints)

def make(checkpoints=None):
    torch.manual_seed(0)
    model = nn.Sequential(*[Block(checkpoints) for _ in range(4)], nn.Linear(256, 16)).cuda()
    x = torch.randn(512, 256, device="cuda", requires_grad=True)
    y = torch.randint(16, (512,), device="cuda")
    return model, x, y, torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=False)

@contextlib.contextmanager
def phase(name):
    torch.cuda._sleep(10000)
    with scope(name):
        yield

def train(model, x, y, optimizer, steps=8, cast=contextlib.nullcontext, scaler=None, penalty=False):
    for _ in range(steps):
        with phase("forward"):
            with cast():
                loss = nn.functional.cross_entropy(model(x).float(), y)
        with phase("backward"):
            if penalty:
                (gradient,) = torch.autograd.grad(loss, x, create_graph=True)
                loss = loss + gradient.pow(2).sum()
            (scaler.scale(loss) if scaler else loss).backward()
        with phase("optimizer"):
            scaler.step(optimizer) if scaler else optimizer.step()
            if scaler:
                scaler.update()
            optimizer.zero_grad()
    torch.cuda._sleep(10000)
"""
INIT = """
import gpufl
scope = gpufl.Scope
assert gpufl.init(app_name="owner", log_path="log", profiling_engine=gpufl.ProfilingEngine.Trace)
"""
NVTX = """
@contextlib.contextmanager
def scope(name):
    torch.cuda.nvtx.range_push(name)
    try:
        yield
    finally:
        torch.cuda.nvtx.range_pop()
"""
PLAIN = "train(*make())\n"
PROGRAMS = {
    "eager": PLAIN,
    "checkpoint": "train(*make(checkpoints=False))\n",
    "reentrant": "train(*make(checkpoints=True))\n",
    "double": "train(*make(), penalty=True)\n",
    "amp": "train(*make(), cast=lambda: torch.autocast('cuda', torch.float16), scaler=torch.amp.GradScaler('cuda'))\n",
    "ddp": """
import os, torch.distributed
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29511")
torch.distributed.init_process_group("gloo", rank=0, world_size=1)
model, x, y, optimizer = make()
train(torch.nn.parallel.DistributedDataParallel(model, device_ids=[0]), x, y, optimizer)
torch.distributed.destroy_process_group()
""",
    "compile": """
model, x, y, optimizer = make()
train(torch.compile(model), x, y, optimizer)
""",
    "compiled-autograd": """
import torch._dynamo
torch._dynamo.config.compiled_autograd = True
model, x, y, optimizer = make()
compiled = torch.compile(model)
@torch.compile
def backward(loss):
    loss.backward()
for _ in range(6):
    with phase("forward"):
        loss = nn.functional.cross_entropy(compiled(x), y)
    with phase("backward"):
        backward(loss)
    with phase("optimizer"):
        optimizer.step()
        optimizer.zero_grad()
torch.cuda._sleep(10000)
""",
    # Both backward passes use the one thread of autograd for the GPU.
    "two-threads": """
def work():
    with torch.cuda.stream(torch.cuda.Stream()):
        train(*make(), steps=30)
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
""",
}
TRACED = {"traced-nvtx": NVTX + PLAIN}  # under gpufl trace, without import gpufl


def column(session, table, name):
    """The values of a column without pandas; words for text."""
    rows = session.table(table)
    if not len(rows):
        return []
    kind, values, _, words = rows.column(name)
    letter = {"int8": "b", "int16": "h", "int32": "i", "int64": "q", "uint32": "I", "uint64": "Q", "bool": "?"}[kind]
    cells = memoryview(values).cast("B").cast(letter)
    return [words[cell] if cell >= 0 else None for cell in cells] if words else list(cells)


def phase_in(path):
    return next((part for part in (path or "").split("|") if part in PHASES), None)


def measure(folder):
    """Per phase by stream order: kernels, time, time that is right, in no scope, in a wrong one, inferred."""
    session = GpuFlightSession(folder)
    names, paths = column(session, "kernels", "name"), column(session, "kernels", "scope")
    starts, times = column(session, "kernels", "start_ns"), column(session, "kernels", "duration_ns")
    streams = column(session, "kernels", "stream_id")
    try:
        inferred = column(session, "kernels", "scope_inferred")
    except (KeyError, ValueError):
        inferred = []
    inferred = inferred or [False] * len(names)
    markers = collections.defaultdict(list)
    for name, start, stream in zip(names, starts, streams):
        if "spin_kernel" in (name or ""):
            markers[stream].append(start)
    rows = collections.defaultdict(lambda: [0] * 6)
    for name, path, start, time, stream, guess in zip(names, paths, starts, times, streams, inferred):
        at = bisect.bisect_right(markers[stream], start) - 1
        is_marker = "spin_kernel" in (name or "")
        if at < 0 or is_marker or at == len(markers[stream]) - 1:
            continue
        row, found = rows[PHASES[at % 3]], phase_in(path)
        row[0] += 1
        row[1] += time
        row[2 if found == PHASES[at % 3] else 3 if found is None else 4] += time
        row[5] += time if guess else 0
    return rows


def run(name, folder):
    """What the program left on standard error if it failed, else None."""
    place = (folder / name).resolve()
    place.mkdir(parents=True, exist_ok=True)
    program, is_traced = place / f"owner_{name.replace('-', '_')}.py", name in TRACED
    program.write_text(textwrap.dedent(START + TRACED[name] if is_traced else
                                       INIT + START + PROGRAMS[name] + "\ntorch.cuda.synchronize()\ngpufl.shutdown()\n"))
    command = [sys.executable, str(program)]
    if is_traced:
        command = [find_command() or "gpufl", "trace", "-q", "-o", "log", "--", *command]
    try:
        result = subprocess.run(command, cwd=place, env={**os.environ, "TORCHINDUCTOR_COMPILE_THREADS": "4"},
                                capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return f"it took more than {TIMEOUT_S} s"
    return (result.stdout + result.stderr)[-1500:] if result.returncode else None


def report(name, rows):
    """Prints a program's rows; returns whether enough is right."""
    total = sum(row[1] for row in rows.values())
    right = sum(row[2] for row in rows.values()) / total if total else 0
    for phase in PHASES:
        if phase in rows:
            kernels, time, *parts = rows[phase]
            shares = " ".join(f"{part / time if time else 0:9.2%}" for part in parts)
            print(f"{name:<18} {phase:<10} {kernels:>8} {time / 1e6:>9.3f} ms {shares}")
    print(f"{name:<18} {'all':<10} {sum(row[0] for row in rows.values()):>8} {total / 1e6:>9.3f} ms {right:9.2%}  "
          f"{'holds' if right >= RIGHT_MIN else 'DOES NOT HOLD'}")
    return right >= RIGHT_MIN


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="names of programs, with commas")
    parser.add_argument("directory", nargs="?", default="scope_owner_check", type=pathlib.Path)
    arguments = parser.parse_args()
    print(f"{'program':<18} {'phase':<10} {'kernels':>8} {'GPU time':>12} {'right':>9} {'no scope':>9} {'wrong':>9} "
          f"{'inferred':>9}")
    failures = []
    for name in arguments.only.split(",") if arguments.only else [*PROGRAMS, *TRACED]:
        wrong = run(name, arguments.directory)
        if wrong is not None:
            print(f"{name:<18} FAILED: {wrong}")
        if wrong is not None or not report(name, measure(arguments.directory / name / "log")):
            failures.append(name)
        sys.stdout.flush()
    print("scope_owner_check: " + (f"{', '.join(failures)} failed" if failures else "good"))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
