# SPDX-License-Identifier: Apache-2.0
"""What a profiler adds to a launch-bound PyTorch training step (6 layers of width 512, an optimizer of many small
kernels, about 965 a step): step_cost.py BUILD_DIR WORK_DIR OUT_DIR

The speed of a shared machine changes from second to second by more than what is measured. So each mode runs in a
separate process for the whole measurement, and the processes alternate: one runs a step to warm up and BLOCK measured ones
while the others sleep, TURNS times, each time in another order. Blocks of the same turn are compared. In every
process the two threads that launch are pinned to the same two cores, and all others, the profilers' among them, to the
rest. gpufl is attached from the start as by `gpufl trace`, torch.profiler (CUDA activities) around the measured steps.
ROUNDS (3) sets of processes. STEPS=added,sampling,windows,floor: beside torch.profiler; PcSampling beside Trace, for SET_S
(90) seconds a set; PcSampling in its windows beside its breaks, in one process; CUPTI's samples alone.
BREAKS=SHARE/CYCLE_MS: other ones than by default. PLAIN=torch: only that training under torch.profiler, for a program that
somebody else traces; PLAIN=FILE: alone, its steps into the file."""
import contextlib
import json
import os
import pathlib
import random
import statistics
import sys
import time

import torch

from session_log import records_of

TURNS, BLOCK, WARM_UP = int(os.environ.get("TURNS", "40")), 5, 20
ROUNDS = int(os.environ.get("ROUNDS", "3"))
SET_S = float(os.environ.get("SET_S", "90"))
ONE_FILE = {"GPUFL_LOG_ROTATE_BYTES": "4000000000"}  # nothing is compressed while it is timed


def make_step():
    """A function that runs one step and returns its milliseconds."""
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 6).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    batch = torch.randn(16, 128, 512, device="cuda")

    def step_ms():
        start = time.perf_counter()
        optimizer.zero_grad()
        (model(batch) ** 2).mean().backward()
        optimizer.step()
        torch.cuda.synchronize()
        return (time.perf_counter() - start) * 1e3

    return step_ms


def torch_profiler():
    return torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA])


def pin_threads():
    """The threads that launch (the main one and PyTorch's backward one) to two cores, the others to the rest."""
    main_core, backward_core, *others = sorted(os.sched_getaffinity(0))
    for thread in os.listdir("/proc/self/task"):
        name = pathlib.Path(f"/proc/self/task/{thread}/comm").read_text()
        is_main = int(thread) == os.getpid()
        cores = {main_core} if is_main else {backward_core} if name.startswith("pt_autograd") else set(others)
        with contextlib.suppress(ProcessLookupError):
            os.sched_setaffinity(int(thread), cores)


class Runner:
    """A process of one mode: environment for what is attached to it, and what is around its measured steps."""

    def __init__(self, environment, profiler=contextlib.nullcontext):
        commands, self.commands = os.pipe()
        self.answers, answers = os.pipe()
        self.process = os.fork()
        if self.process == 0:
            os.environ.update(environment)
            self._train(os.fdopen(commands), os.fdopen(answers, "w"), profiler)
            sys.exit(0)
        os.close(commands)
        os.close(answers)
        self.answers = os.fdopen(self.answers)

    @staticmethod
    def _train(commands, answers, profiler):
        step_ms = make_step()
        for _ in range(WARM_UP):
            step_ms()
        with profiler():
            pin_threads()
            print("ready", file=answers, flush=True)
            while commands.readline() == "run\n":
                step_ms()
                print(json.dumps([step_ms() for _ in range(BLOCK)]), file=answers, flush=True)

    def is_ready(self):
        return self.answers.readline() == "ready\n"

    def turn_ms(self):
        """Of a block of steps after one to warm up."""
        os.write(self.commands, b"run\n")
        return statistics.mean(json.loads(self.answers.readline()))

    def end(self):
        os.write(self.commands, b"end\n")
        os.waitpid(self.process, 0)


def take_turns(makers, until_s=None):
    """Milliseconds of a step by mode, one number for each turn. makers: by mode, what makes its Runner. until_s: turns
    for so long, else TURNS."""
    runners = {mode: make() for mode, make in makers.items()}
    for mode, runner in runners.items():
        if not runner.is_ready():
            raise RuntimeError(f"{mode}: its process ended")
    found = {mode: [] for mode in runners}
    start, turns = time.monotonic(), 0
    while turns < TURNS if until_s is None else time.monotonic() - start < until_s:
        for mode in random.sample(list(runners), len(runners)):
            found[mode].append(runners[mode].turn_ms())
        turns += 1
    for runner in runners.values():
        runner.end()
    return found


def traced(build, work, engine, **variables):
    return lambda: Runner({"CUDA_INJECTION64_PATH": f"{build}/lib/libgpufl_inject.so", "GPUFL_INJECT": "1",
                           "GPUFL_LOG_DIR": f"{work}/c-{engine}", "GPUFL_APP_NAME": "step",
                           "GPUFL_PROFILING_ENGINE": engine, **variables})


def mean_difference(found, mode, base):
    return statistics.mean(one - other for one, other in zip(found[mode], found[base]))


def added(table):
    """What Trace adds, beside torch.profiler and beside CUPTI's records alone."""
    modes = {"alone": lambda: Runner({}), "CUPTI floor": lambda: Runner({"CUDA_INJECTION64_PATH": f"{table.work}/libfloor.so"}),
             "Trace": traced(table.build, table.work, "Trace"), "torch.profiler": lambda: Runner({}, torch_profiler)}
    shares = {"CUPTI floor": [], "Trace": []}
    for index in range(ROUNDS):
        found = take_turns(modes)
        more = {mode: mean_difference(found, mode, "alone") for mode in modes}
        for mode, values in shares.items():
            values.append(more[mode] / more["torch.profiler"])
        table.say(f"PyTorch step, launch-bound, set {index + 1}", f"alone {statistics.mean(found['alone']):.2f} ms; added by "
                  + ", ".join(f"{mode} {more[mode]:+.2f}" for mode in list(modes)[1:]))
    floor, share = (statistics.median(values) for values in shares.values())
    table.say("added by the CUPTI floor / by torch.profiler, median", f"{floor:.2f}")
    table.say("added by Trace / by torch.profiler, median", f"{share:.2f}", "<= 0.25", share <= 0.25)


def windows_of(session):
    """Seconds of the clock in which samples were taken."""
    return [(window["start_ns"] / 1e9, window["end_ns"] / 1e9) for window in records_of(session, "scope", "deep_window_event")]


def newest_session(table, directory):
    return max(table.sessions(directory), key=lambda path: path.stat().st_mtime)


def say_samples(table, session):
    """How many samples a second and SM, and in which windows."""
    for line in table.run([table.gpufl, "report", session]).stdout.splitlines():
        if "a second and SM" in line or "of the run" in line or line.endswith("  pc_sampling"):
            table.say(" ", line.strip())


def sampling_variables():
    """What BREAKS asks for instead of the defaults."""
    spec = os.environ.get("BREAKS")
    return dict(zip(("GPUFL_PC_SAMPLING_SHARE", "GPUFL_PC_SAMPLING_CYCLE_MS"), spec.split("/"))) if spec else {}


def sampling(table):
    """What PcSampling takes longer than Trace. Its breaks are long, so each set is; of what CUPTI does for the samples, a
    part happens in the other process's turns: see `windows`."""
    modes = {"Trace": traced(table.build, table.work, "Trace", **ONE_FILE),
             "PcSampling": traced(table.build, table.work, "PcSampling", **ONE_FILE, **sampling_variables())}
    ratios = []
    for index in range(ROUNDS):
        found = take_turns(modes, until_s=SET_S)
        base = statistics.mean(found["Trace"])
        differences = [one - other for one, other in zip(found["PcSampling"], found["Trace"])]
        error = statistics.stdev(differences) / len(differences) ** 0.5
        ratios.append(1 + statistics.mean(differences) / base)
        table.say(f"PyTorch step, launch-bound, set {index + 1}, PcSampling / Trace", f"{base:.2f} ms, "
                  f"{statistics.mean(differences):+.2f} (standard error {error:.2f}, {len(differences)} turns): {ratios[-1]:.3f}")
        say_samples(table, newest_session(table, f"{table.work}/c-PcSampling"))
    ratio = statistics.median(ratios)
    table.say("PcSampling / Trace, median", f"{ratio:.3f}", "<= 1.03", ratio <= 1.03)


def windows(table):
    """One process that never waits for another: its steps in breaks, in windows, and all of them, those that a switch
    held up included. A short loop of Python beside each step tells how fast the machine was then."""
    result = f"{table.work}/steps.json"
    table.run([sys.executable, __file__], timeout=SET_S + 60, env={
        "PLAIN": result, "CUDA_INJECTION64_PATH": f"{table.build}/lib/libgpufl_inject.so", "GPUFL_INJECT": "1",
        "GPUFL_LOG_DIR": f"{table.work}/c-windows", "GPUFL_APP_NAME": "step", "GPUFL_PROFILING_ENGINE": "PcSampling",
        **ONE_FILE, **sampling_variables()})
    session = newest_session(table, f"{table.work}/c-windows")
    spans = windows_of(session)
    steps = json.loads(pathlib.Path(result).read_text())
    loop_ms = statistics.median(loop for *_, loop in steps)
    kinds = {"in breaks": [], "in windows": [], "at switches": []}
    for start_s, ms, loop in steps:
        end_s = start_s + ms / 1e3
        is_in = any(start <= start_s and end_s <= end for start, end in spans)
        is_out = all(end_s < start or end < start_s for start, end in spans)
        kinds["in windows" if is_in else "in breaks" if is_out else "at switches"].append(ms * loop_ms / loop)
    for kind, values in kinds.items():
        error = statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else float("nan")
        table.say(f"PyTorch step, launch-bound, {kind}",
                  f"{statistics.mean(values):.2f} ms (standard error {error:.2f}), {len(values)} steps")
    everything = statistics.mean(sum(kinds.values(), []))
    table.say("all steps / those in breaks", f"{everything / statistics.mean(kinds['in breaks']):.3f}")
    say_samples(table, session)


def floor(table):
    """What CUPTI's samples, always on and thrown away, take longer than its other records."""
    one = lambda **variables: lambda: Runner({"CUDA_INJECTION64_PATH": f"{table.work}/libfloor.so", **variables})
    found = take_turns({"without": one(), "with": one(FLOOR_PC_MS="100")})
    table.say("CUPTI floor with samples / without", f"{statistics.mean(found['with']) / statistics.mean(found['without']):.3f}")


def run_alone(path):
    """Trains for SET_S and writes when each step began, its milliseconds, and those of the loop beside it."""
    step = make_step()
    for _ in range(WARM_UP):
        step()
    pin_threads()
    steps, until = [], time.time() + SET_S
    while time.time() < until:
        start_s = time.time()
        ms = step()
        begin = time.perf_counter()
        for _ in range(12000):
            pass
        steps.append((start_s, ms, (time.perf_counter() - begin) * 1e3))
    pathlib.Path(path).write_text(json.dumps(steps))


def main():
    from bench_table import BenchTable
    table = BenchTable(*sys.argv[1:4])
    steps = {"added": lambda: added(table), "sampling": lambda: sampling(table), "windows": lambda: windows(table),
             "floor": lambda: floor(table)}
    table.run_steps(steps, os.environ.get("STEPS", "added,sampling,windows,floor").split(","))


if __name__ == "__main__":
    plain = os.environ.get("PLAIN")
    if plain == "torch":
        step = make_step()
        with torch_profiler():
            print(statistics.mean([step() for _ in range(60)]))
    elif plain:
        run_alone(plain)
    else:
        main()
