#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether the slowdown that a session reports is the one that is measured: slowdown_check.py BUILD WORK OUT

Each case has a process that is recorded and one that is not; both live through the whole measurement and take turns, since
the speed of a machine changes within seconds by more than what is compared. Measured: the ratio of the sums of their turns.
Reported: the parts of the session's estimate, relative to the recorded turns without them. A case holds when the reported
slowdown is within a third of the measured one, or within 1.5 % of the run. CASES: only these, by comma. TURNS (12).
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

CASES = {  # name: (engine, options, work of a turn)
    "tiny launches": ("Trace", [], "tiny"),
    "tiny launches, stacks": ("Trace", ["--stacks"], "tiny-few"),
    "launch-bound step": ("Trace", [], "launch-bound"),
    "GPU-bound step": ("Trace", [], "gpu-bound"),
    "launch-bound step, PcSampling": ("PcSampling", [], "launch-bound"),
    "launch-bound step, Deep": ("Deep", [], "launch-bound"),
    "few kernels, RangeProfiler": ("RangeProfiler", [], "few"),
}
WITHIN, WITHIN_LEAST = 1 / 3, 0.015


def training(width, heads, layers, batch, precision, is_fused):
    import torch

    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(width, heads, 4 * width, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, layers).cuda().to(precision)
    options = {"fused": True} if is_fused else {"foreach": False}
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, **options)
    data = torch.randn(*batch, width, device="cuda", dtype=precision)

    def step():
        optimizer.zero_grad()
        (model(data).float() ** 2).mean().backward()
        optimizer.step()
        torch.cuda.synchronize()

    return step


def few_kernels():
    import torch

    x = torch.ones(1 << 20, device="cuda")

    def step():
        for _ in range(3):
            x.mul_(1.0001)
        torch.cuda.synchronize()
        time.sleep(0.005)

    return step


def worker(name):
    """Runs a turn for each line that it reads, and prints how long it took in seconds."""
    import torch

    steps, step = {
        "launch-bound": (25, lambda: training(512, 8, 6, (16, 128), torch.float32, False)),
        "gpu-bound": (4, lambda: training(2048, 16, 8, (16, 1024), torch.bfloat16, True)),
        "few": (1, few_kernels),
    }[name]
    step = step()
    for _ in range(0 if name == "few" else 3):  # replays of a warm-up would count as the turns'
        step()
    print("ready", flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        for _ in range(steps):
            step()
        print(time.perf_counter() - start, flush=True)


class Turns:
    """A process that works when it is told to."""

    def __init__(self, command, folder, launches=None):
        self.launches = launches
        self.process = subprocess.Popen([str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, cwd=folder, stderr=open(folder / "errors.txt", "a", encoding="utf-8"))
        line = self.process.stdout.readline()
        if line != "ready\n":
            raise RuntimeError(f"{command}: {line} {(folder / 'errors.txt').read_text()[-600:]}")

    def take(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        value = float(self.process.stdout.readline())
        # launch_rate tells nanoseconds per launch, of all but a first tenth.
        return value * self.launches * 1.1 / 1e9 if self.launches else value

    def end(self):
        self.process.stdin.close()
        return self.process.wait(timeout=120)


def parts_of(build, folder):
    session = next(folder.glob("log/*-*-*-*-*"))
    report = subprocess.run([build / "bin/gpufl", "report", session, "--json"], capture_output=True, text=True, check=True)
    slowdown = json.loads(report.stdout)["overhead"]["slowdown"] or {}
    return {name: value / 1e9 for name, value in slowdown.items() if name.endswith("_ns") and value}


def measure(build, work, name, turns):
    engine, options, kind = CASES[name]
    folder = work / "slowdown" / name.replace(" ", "-").replace(",", "")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    launches = {"tiny": 200000, "tiny-few": 20000}.get(kind)
    command = [work / "launch_rate", "--turns", launches] if launches else [sys.executable, __file__, "--worker", kind]
    alone = Turns(command, folder, launches)
    recorded = Turns([build / "bin/gpufl", "trace", "-q", "--no-disassemble", "--engine", engine, *options, "-o",
                      folder / "log", "--", *command], folder, launches)
    bare_s = recorded_s = 0
    for turn in range(turns):
        for one in (alone, recorded) if turn % 2 else (recorded, alone):
            if one is alone:
                bare_s += one.take()
            else:
                recorded_s += one.take()
    codes = alone.end(), recorded.end()
    parts = parts_of(build, folder)
    cost_s = sum(parts.values())
    return bare_s, recorded_s, cost_s / max(recorded_s - cost_s, 1e-9), parts, codes


def main():
    build, work, out = (pathlib.Path(path).resolve() for path in sys.argv[1:4])
    subprocess.run(["nvcc", "-O2", "-o", work / "launch_rate", pathlib.Path(__file__).parent / "launch_rate.cu"], check=True)
    print("| program | alone | recorded | slowdown measured | reported | of it | |\n| --- | --- | --- | --- | --- | --- | --- |")
    failures = 0
    for name in os.environ.get("CASES", ",".join(CASES).replace(", ", ";")).split(","):
        name = name.replace(";", ", ")
        try:
            turns = int(os.environ.get("TURNS", "12"))
            bare_s, recorded_s, reported, parts, codes = measure(build, work, name, turns)
        except (RuntimeError, StopIteration, ValueError, subprocess.SubprocessError) as error:
            print(f"| {name} | FAILED: {error} |")
            failures += 1
            continue
        measured = recorded_s / bare_s - 1
        holds = codes == (0, 0) and (abs(reported - measured) <= WITHIN * abs(measured) or
                                     abs(reported - measured) <= WITHIN_LEAST)
        failures += not holds
        of = ", ".join(f"{part[:-3]} {value:.3f} s" for part, value in sorted(parts.items(), key=lambda item: -item[1])[:3])
        print(f"| {name} | {bare_s:.2f} s | {recorded_s:.2f} s | {measured * 100:.1f} % | {reported * 100:.1f} % | {of} | "
              f"{'holds' if holds else 'DOES NOT HOLD'} |", flush=True)
    (out / "slowdown.txt").write_text("done\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(worker(sys.argv[2]) if sys.argv[1:2] == ["--worker"] else main())
