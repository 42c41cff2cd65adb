#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the Python package on a real GPU: PyTorch operators on kernels by gpufl.init() alone, modules, torch.compile,
CUDA graphs, Python stacks, PyTorch's own profiler beside it, Triton, JAX, and the programs of the documentation.

usage: PYTHONPATH=build/python python_check.py [--only NAME,NAME] [DIRECTORY]
Sessions go to DIRECTORY; default: python_check. What the machine lacks (torch, triton, jax) is said and skipped; exit 1
when a check failed. Prints a table: per program and phase, kernels with an operator of all kernels.
"""
import argparse
import collections
import concurrent.futures
import importlib.util
import os
import pathlib
import subprocess
import sys
import time

from gpufl.__main__ import find_command
from gpufl.analyzer import GpuFlightSession
from gpufl.frameworks import op_of

from python_programs import PROGRAMS

NAMED_MIN = 0.99
AT_ONCE, TIMEOUT_S = 4, 130
# Programs share the GPU.
ENVIRONMENT = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "TORCHINDUCTOR_COMPILE_THREADS": "4", "MPLBACKEND": "Agg"}


def texts(session, table, column):
    """A text column of a table without pandas; None where it is not known."""
    rows = session.table(table)
    if not len(rows):
        return []
    kind, values, _, words = rows.column(column)
    letter = {"int8": "b", "int16": "h", "int32": "i", "int64": "q"}[kind]
    return [words[code] if code >= 0 else None for code in memoryview(values).cast("B").cast(letter)]


def phase_of(path):
    """The program's own scope, or whose thread it was."""
    first = (path or "").split("|")[0]
    if first.startswith("autograd::"):
        return "autograd thread"
    return first if first and "::" not in first else "outside of scopes"


class Recorded:
    """What a program left: kernels, their scopes and stacks."""

    def __init__(self, folder):
        session = GpuFlightSession(folder)
        self.kernels = texts(session, "kernels", "name")
        self.paths = ["|".join(part for part in parts if part) or None for parts in zip(
            texts(session, "kernels", "scope"), texts(session, "kernels", "operator_path"))]
        self.stacks = texts(session, "kernels", "call_stack")
        self.graphs = len(session.table("graphs"))
        self.phases = collections.defaultdict(lambda: [0, 0])
        for path in self.paths:
            counts = self.phases[phase_of(path)]
            counts[0] += op_of(path) is not None
            counts[1] += 1

    def named(self):
        return sum(counts[0] for counts in self.phases.values()) / max(1, len(self.paths))

    def has(self, part):
        return any(path and part in path.split("|") for path in self.paths)


def check_named(recorded):
    if recorded.named() < NAMED_MIN:
        yield f"only {recorded.named():.2%} of kernels have an operator"
    if any(path and "op_id" in path for path in recorded.paths):
        yield "operators carry numbers"
    if not recorded.phases["autograd thread"][1] and not recorded.phases["backward"][1]:
        yield "there is no kernel of the backward pass"


def check_modules(recorded):
    yield from check_named(recorded)
    if not recorded.has("0.up"):
        yield "no kernel lies in a module of the model"


def check_compiled(recorded):
    if not any(kernel and kernel.startswith("triton_") for kernel in recorded.kernels):
        yield "no kernel of the compiler was recorded"


def check_graph(recorded):
    if not recorded.graphs and not recorded.has("replay"):
        yield "nothing of the graph was recorded"


def check_stacks(recorded):
    yield from check_named(recorded)  # stacks cost no scope
    of_forward = [stack or "" for stack, path in zip(recorded.stacks, recorded.paths) if phase_of(path) == "forward"]
    found = sum("step@" in stack and "stacks.py:" in stack for stack in of_forward)
    print(f"    stacks: {found} of {len(of_forward)} kernels of the forward pass have their Python functions; e.g.\n"
          f"    {(of_forward or ['-'])[-1][-400:]}")
    if found < NAMED_MIN * max(1, len(of_forward)):
        yield "kernels lack their Python functions"


def check_turns(recorded):
    if recorded.phases["after"][0] < NAMED_MIN * max(1, recorded.phases["after"][1]) or not recorded.phases["after"][1]:
        yield "operators are not observed again after PyTorch's profiler"


def check_triton(recorded):
    if recorded.kernels.count("add_vectors") != 10:
        yield f"add_vectors was recorded {recorded.kernels.count('add_vectors')} times, not 10"


def check_jax(recorded):
    if not recorded.has("jax"):
        yield "no kernel lies in the scope"


CHECKS = {"train": check_named, "train_late": check_named, "traced": check_named, "modules": check_modules,
          "compiled": check_compiled, "graph": check_graph, "stacks": check_stacks, "turns": check_turns,
          "triton": check_triton, "jax": check_jax}


def run(name, folder):
    """Runs a program in a separate directory. Returns its output if it failed, else None, and its duration in seconds."""
    place = (folder / name).resolve()
    place.mkdir(parents=True, exist_ok=True)
    program = place / f"program_{name}.py"  # not the name of a module that it imports
    program.write_text(PROGRAMS[name][1])
    command = [sys.executable, str(program)]
    if name == "traced":
        command = [find_command() or "gpufl", "trace", "-q", "-o", "log", "--", *command]
    start = time.monotonic()
    try:
        result = subprocess.run(command, cwd=place, env={**os.environ, **ENVIRONMENT},
                                capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
        wrong = f"exit {result.returncode}: {(result.stdout + result.stderr)[-1500:]}" if result.returncode else None
    except subprocess.TimeoutExpired:
        wrong = f"it took more than {TIMEOUT_S} s"
    return wrong, time.monotonic() - start


def report(name, place, wrong, seconds):
    """Prints the program's rows; how many checks failed."""
    if wrong is None and name in CHECKS:
        recorded = Recorded(place / "log")
        for phase, (named, total) in sorted(recorded.phases.items()):
            print(f"{name:<12} {phase:<20} {named:>7} of {total:<7} {named / total:8.2%}")
        print(f"{name:<12} {'all':<20} {'':>7}    {len(recorded.kernels):<7} {recorded.named():8.2%}  {seconds:5.1f} s")
        failures = list(CHECKS[name](recorded)) if recorded.kernels or recorded.graphs else ["nothing was recorded"]
    else:
        print(f"{name:<12} {'ran' if wrong is None else '':<20} {seconds:36.1f} s")
        failures = [] if wrong is None else [wrong]
    for failure in failures:
        print(f"{name:<12} FAILED: {failure}")
    sys.stdout.flush()
    return len(failures)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="names of programs, with commas")
    parser.add_argument("directory", nargs="?", default="python_check", type=pathlib.Path)
    arguments = parser.parse_args()
    chosen = arguments.only.split(",") if arguments.only else list(PROGRAMS)
    runnable = []
    for name in chosen:
        missing = [module for module in PROGRAMS[name][0].split() if importlib.util.find_spec(module) is None]
        if missing:
            print(f"{name:<12} skipped, there is no {', '.join(missing)}")
        else:
            runnable.append(name)
    failures = 0
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        running = {name: pool.submit(run, name, arguments.directory) for name in runnable}
        for name, future in running.items():
            failures += report(name, arguments.directory / name, *future.result())
    print("python_check: " + ("good" if not failures else f"{failures} checks failed"))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
