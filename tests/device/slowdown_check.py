#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether the slowdown that a session reports is the one that is measured: slowdown_check.py BUILD WORK OUT

First this host is calibrated (gpufl doctor --calibrate). Then each case has a process that is recorded and one that is not;
both live through the whole measurement and take turns, since the speed of a machine changes within seconds by more than what
is compared. Measured: the difference of their turns, relative to those of the bare process. Engines beyond Trace cost most
when they start, so that there the time from the first CUDA call to the end of the warm-up counts as a turn. Reported: the
parts of the session's estimate, relative to the recorded turns without them.

A case takes turns until the difference is known to a tenth (ten standard errors), at least TURNS (6) and for at most CASE_S
(45) seconds. The standard error is that of the turns; a start happens once, and has none. A case "holds" when the reported
slowdown is within a third of the measured one. A difference of less than two standard errors cannot be judged: the case is
"below noise", with the largest slowdown that the turns leave possible (two standard errors more); a report above that does
not hold. Raise CASE_S to judge it.

CASES: only these, separated by semicolons. OUT/slowdown.json has everything that the sessions recorded about their cost.
Exit status: 1 when a case does not hold, 2 when one is below noise and all others hold.
"""
import json
import math
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

from session_log import records_of

CASES = {  # name: (engine, options, work of a turn, whether the start counts)
    "tiny launches": ("Trace", [], "tiny", False),
    "tiny launches, stacks": ("Trace", ["--stacks"], "tiny-few", False),
    "launch-bound step": ("Trace", [], "launch-bound", False),
    "GPU-bound step": ("Trace", [], "gpu-bound", False),
    "launch-bound step, PcSampling": ("PcSampling", [], "launch-bound", True),
    "launch-bound step, Deep": ("Deep", [], "launch-bound", True),
    "few kernels, RangeProfiler": ("RangeProfiler", [], "few", True),
}
WITHIN = 1 / 3
HOLDS, BELOW_NOISE, DOES_NOT_HOLD = "holds", "below noise", "DOES NOT HOLD"


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
    """Prints how long its start took, then runs a turn for each line that it reads, and prints how long that took."""
    import torch

    steps, step = {
        "launch-bound": (25, lambda: training(512, 8, 6, (16, 128), torch.float32, False)),
        "gpu-bound": (4, lambda: training(2048, 16, 8, (16, 1024), torch.bfloat16, True)),
        "few": (1, few_kernels),
    }[name]
    start = time.perf_counter()
    step = step()
    for _ in range(3):
        step()
    print("ready", time.perf_counter() - start, flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        for _ in range(steps):
            step()
        print(time.perf_counter() - start, flush=True)


class Turns:
    """A process that works on request."""

    def __init__(self, command, folder, launches=None, env=None):
        self.launches = launches
        self.turns = []
        with open(folder / "errors.txt", "a", encoding="utf-8") as errors:
            self.process = subprocess.Popen([str(word) for word in command], stdin=subprocess.PIPE, text=True, cwd=folder,
                                            stdout=subprocess.PIPE, stderr=errors, env=env)
        words = self.process.stdout.readline().split()
        if not words or words[0] != "ready":
            raise RuntimeError(f"{command}: {words} {(folder / 'errors.txt').read_text()[-600:]}")
        self.start_s = float(words[1]) if len(words) > 1 else 0

    def take(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        value = float(self.process.stdout.readline())
        # launch_rate tells nanoseconds per launch, of all but a first tenth.
        self.turns.append(value * self.launches * 1.1 / 1e9 if self.launches else value)

    def end(self):
        self.process.stdin.close()
        return self.process.wait(timeout=120)


def difference(bare, recorded):
    """By how many seconds the recorded turns were longer in all, and the standard error of that."""
    differences = [b - a for a, b in zip(bare, recorded)]
    error = statistics.stdev(differences) * math.sqrt(len(differences)) if len(differences) > 1 else math.inf
    return sum(differences), error


def judge(bare_s, difference_s, error_s, reported):
    """The verdict on a reported slowdown, and words for it. bare_s, difference_s, error_s: of all turns."""
    measured, error = difference_s / bare_s, error_s / bare_s
    if measured >= 2 * error:
        verdict = HOLDS if abs(reported - measured) <= WITHIN * measured else DOES_NOT_HOLD
        return verdict, verdict
    most = max(measured, 0) + 2 * error
    if reported > most:
        return DOES_NOT_HOLD, f"{DOES_NOT_HOLD}: at most {most * 100:.2f} % were measured"
    return BELOW_NOISE, f"{BELOW_NOISE}: at most {most * 100:.2f} %; raise CASE_S"


def session_of(build, folder):
    """The parts of the reported slowdown in seconds, and what the session recorded about its cost."""
    session = next(folder.glob("log/*-*-*-*-*"))
    report = subprocess.run([build / "bin/gpufl", "report", session, "--json"], capture_output=True, text=True, check=True)
    overhead = json.loads(report.stdout)["overhead"]
    slowdown = overhead["slowdown"] or {}
    parts = {name: value / 1e9 for name, value in slowdown.items() if name.endswith("_ns") and value}
    records = list(records_of(session, "system", "overhead"))
    return parts, {"report": overhead, "record": max(records, key=lambda record: record["wall_ns"], default=None)}


def take_turns(alone, recorded, turns, seconds):
    until = time.monotonic() + seconds
    while len(alone.turns) < turns or time.monotonic() < until:
        order = (alone, recorded) if len(alone.turns) % 2 else (recorded, alone)
        for one in order:
            one.take()
        if len(alone.turns) >= turns:
            longer_s, error_s = difference(alone.turns, recorded.turns)
            if abs(longer_s) > 10 * error_s:
                return


def measure(build, work, name, turns, seconds):
    engine, options, kind, has_start = CASES[name]
    folder = work / "slowdown" / name.replace(" ", "-").replace(",", "")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    launches = {"tiny": 200000, "tiny-few": 20000}.get(kind)
    command = [work / "launch_rate", "--turns", launches] if launches else [sys.executable, __file__, "--worker", kind]
    alone = Turns(command, folder, launches)
    recorded = Turns([build / "bin/gpufl", "trace", "-q", "--no-disassemble", "--engine", engine, *options, "-o",
                      folder / "log", "--", *command], folder, launches)
    take_turns(alone, recorded, turns, seconds)
    codes = alone.end(), recorded.end()
    longer_s, error_s = difference(alone.turns, recorded.turns)
    bare_s = sum(alone.turns)
    if has_start:
        bare_s += alone.start_s
        longer_s += recorded.start_s - alone.start_s
    parts, record = session_of(build, folder)
    cost_s = sum(parts.values())
    result = {"turns": len(alone.turns), "bare_s": bare_s, "recorded_s": bare_s + longer_s, "longer_s": longer_s,
              "error_s": error_s, "reported": cost_s / max(bare_s + longer_s - cost_s, 1e-9), "parts_s": parts,
              "start_s": [alone.start_s, recorded.start_s], "turns_s": [alone.turns, recorded.turns], **record}
    if codes != (0, 0):
        raise RuntimeError(f"exit status {codes}")
    return result


def calibrate(build, work):
    os.environ["GPUFL_CALIBRATION_FILE"] = str(work / "calibration.json")
    done = subprocess.run([build / "bin/gpufl", "doctor", "--calibrate"], capture_output=True, text=True, check=False)
    print((done.stdout + done.stderr).strip(), flush=True)
    return done.returncode == 0


def main():
    build, work, out = (pathlib.Path(path).resolve() for path in sys.argv[1:4])
    turns, seconds = int(os.environ.get("TURNS", "6")), float(os.environ.get("CASE_S", "45"))
    subprocess.run(["nvcc", "-O2", "-o", work / "launch_rate", pathlib.Path(__file__).parent / "launch_rate.cu"], check=True)
    verdicts = [] if calibrate(build, work) else [DOES_NOT_HOLD]
    results = {}
    print("| program | turns | alone | recorded | measured (± standard error) | reported | of it | |\n"
          "| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name in os.environ.get("CASES", ";".join(CASES)).split(";"):
        try:
            result = results[name] = measure(build, work, name, turns, seconds)
        except (RuntimeError, StopIteration, ValueError, subprocess.SubprocessError) as error:
            print(f"| {name} | FAILED: {error} |", flush=True)
            verdicts.append(DOES_NOT_HOLD)
            continue
        verdict, words = judge(result["bare_s"], result["longer_s"], result["error_s"], result["reported"])
        verdicts.append(verdict)
        parts = sorted(result["parts_s"].items(), key=lambda item: -item[1])[:4]
        print(f"| {name} | {result['turns']} | {result['bare_s']:.2f} s | {result['recorded_s']:.2f} s | "
              f"{result['longer_s'] / result['bare_s'] * 100:.2f} ± {result['error_s'] / result['bare_s'] * 100:.2f} % | "
              f"{result['reported'] * 100:.2f} % | {', '.join(f'{part[:-3]} {value:.3f} s' for part, value in parts)} | "
              f"{words} |", flush=True)
    (out / "slowdown.json").write_text(json.dumps(results, indent=1))
    return 1 if DOES_NOT_HOLD in verdicts else 2 if BELOW_NOISE in verdicts else 0


if __name__ == "__main__":
    sys.exit(worker(sys.argv[2]) if sys.argv[1:2] == ["--worker"] else main())
