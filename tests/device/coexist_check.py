# SPDX-License-Identifier: Apache-2.0
"""Other profilers beside gpufl on a real GPU: coexist_check.py BUILD WORK

Each program profiles itself with torch.profiler or jax.profiler, twice: alone, under `gpufl trace`, and with `import gpufl`. It
must see as many GPU events each time, and gpufl's session must have a gap for each profile that names the profiler, and no other
loss. Prints a table; exit status 1: something differs. PROGRAMS=torch,jax chooses."""
import json
import os
import pathlib
import subprocess
import sys

BUILD, WORK = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
GPUFL, PACKAGE = BUILD / "bin" / "gpufl", BUILD / "python"
PROFILES = 2

RECORDED = """
import os
if os.environ.get("COEXIST_LOG"):
    import gpufl
    gpufl.init(log_path=os.environ["COEXIST_LOG"], profiling_engine=gpufl.ProfilingEngine.Trace)
"""
TORCH = RECORDED + """
import torch
from torch.profiler import ProfilerActivity, profile
a = torch.ones(256, 256, device="cuda")
def work():
    for _ in range(20):
        (a @ a).relu_()
    torch.cuda.synchronize()
work()
for _ in range(2):
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiled:
        work()
    kind = torch.autograd.DeviceType.CUDA
    print("events", sum(1 for event in profiled.events() if event.device_type == kind), flush=True)
    work()
"""
JAX = RECORDED + """
import glob, gzip, json, os, tempfile
import jax, jax.numpy as jnp
a = jnp.ones((256, 256))
step = jax.jit(lambda x: jnp.maximum(x @ x, 0))
def work():
    for _ in range(20):
        step(a).block_until_ready()
work()
for _ in range(2):
    with tempfile.TemporaryDirectory() as directory:
        with jax.profiler.trace(directory):
            work()
        file = glob.glob(os.path.join(directory, "**", "*.trace.json.gz"), recursive=True)[0]
        events = json.load(gzip.open(file))["traceEvents"]
        gpus = {event["pid"] for event in events if event.get("name") == "process_name" and
                "GPU" in event["args"].get("name", "")}
        print("events", sum(1 for event in events if event.get("ph") == "X" and event["pid"] in gpus), flush=True)
    work()
"""
PROGRAMS = {"torch": (TORCH, "torch.profiler"), "jax": (JAX, "JAX's profiler")}


def run(command, **variables):
    """The numbers of events that the program printed; None: it failed."""
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE), **variables}
    result = subprocess.run([str(word) for word in command], env=environment, text=True, capture_output=True, timeout=300,
                            check=False)
    if result.returncode:
        print(result.stdout + result.stderr, file=sys.stderr)
        return None
    return [int(line.split()[1]) for line in result.stdout.splitlines() if line.startswith("events ")]


def losses_of(directory):
    """Losses of the sessions in the directory, by gpufl's report."""
    losses = []
    for path in sorted(path for path in directory.iterdir() if path.is_dir()):
        report = subprocess.run([str(GPUFL), "report", "--json", str(path)], text=True, capture_output=True, check=True)
        losses += json.loads(report.stdout)["completeness"]["losses"]
    return losses


def check(name):
    text, profiler = PROGRAMS[name]
    program = WORK / f"coexist_{name}.py"
    program.write_text(text)
    traced, imported = WORK / f"coexist_{name}_trace", WORK / f"coexist_{name}_import"
    counts = {"alone": run([sys.executable, program]),
              "gpufl trace": run([GPUFL, "trace", "-q", "-o", traced, "--", sys.executable, program]),
              "import gpufl": run([sys.executable, program], COEXIST_LOG=str(imported))}
    is_good = True
    for way, directory in (("alone", None), ("gpufl trace", traced), ("import gpufl", imported)):
        losses = losses_of(directory) if directory and counts[way] else []
        gaps = [loss for loss in losses if loss["reason"] == "other_profiler"]
        says_who = all(profiler in loss["message"] for loss in gaps)
        is_same = counts[way] is not None and counts[way] == counts["alone"] and len(counts[way]) == PROFILES and \
            min(counts[way]) > 0
        is_honest = directory is None or (len(gaps) == PROFILES and says_who and len(losses) == len(gaps))
        is_good &= is_same and is_honest
        print(f"{name:6} {way:13} events {counts[way]}  gaps {len(gaps)}  other losses {len(losses) - len(gaps)}  "
              f"{'ok' if is_same and is_honest else 'WRONG'}")
        for loss in losses:
            if not (is_same and is_honest):
                print("         ", loss["reason"], loss["count"], loss["message"])
    return is_good


def main():
    WORK.mkdir(parents=True, exist_ok=True)
    chosen = os.environ.get("PROGRAMS", ",".join(PROGRAMS)).split(",")
    return 0 if all([check(name) for name in chosen]) else 1


if __name__ == "__main__":
    sys.exit(main())
