# SPDX-License-Identifier: Apache-2.0
"""What a profiler adds to a launch-bound PyTorch training step (6 layers of width 512, an optimizer of many small
kernels, about 965 a step): step_cost.py BUILD_DIR WORK_DIR OUT_DIR

The speed of a shared machine changes from second to second by more than what is measured. So each mode has a process of
its own that lives through the whole measurement, and they take turns: one runs a step to warm up and BLOCK measured ones
while the others sleep, TURNS times, each time in another order. What is compared are blocks of the same turn. In every
process the two threads that launch are pinned to the same two cores, and all others, the profilers' among them, to the
rest. gpufl is attached from the start as by `gpufl trace`, torch.profiler (CUDA activities) around the measured steps.
ROUNDS (3) sets of processes. STEPS=added,sampling,breaks: beside torch.profiler; PcSampling beside Trace; and PcSampling
with breaks, of which a turn is three whole cycles with all that happens in them. BREAKS=SHARE/CYCLE_MS,...: which ones.
PLAIN=torch: only that training under torch.profiler, for a program that somebody else traces."""
import contextlib
import json
import os
import pathlib
import random
import statistics
import sys
import time

import torch

TURNS, BLOCK, WARM_UP = int(os.environ.get("TURNS", "40")), 5, 20
ROUNDS = int(os.environ.get("ROUNDS", "3"))


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
            while (command := commands.readline().split())[:1] == ["run"]:
                if len(command) == 1:
                    step_ms()
                steps, until = [], time.monotonic() + float(command[1] if len(command) > 1 else 0)
                while len(steps) < BLOCK or time.monotonic() < until:
                    steps.append(step_ms())
                print(json.dumps(steps), file=answers, flush=True)

    def is_ready(self):
        return self.answers.readline() == "ready\n"

    def turn_ms(self, least_s=None):
        """Of a block of steps after one to warm up; or of all steps in so many seconds."""
        os.write(self.commands, b"run\n" if least_s is None else f"run {least_s}\n".encode())
        return statistics.mean(json.loads(self.answers.readline()))

    def end(self):
        os.write(self.commands, b"end\n")
        os.waitpid(self.process, 0)


def take_turns(makers, turns=TURNS, least_s=None):
    """Milliseconds of a step by mode, one number for each turn. makers: by mode, what makes its Runner."""
    runners = {mode: make() for mode, make in makers.items()}
    for mode, runner in runners.items():
        if not runner.is_ready():
            raise RuntimeError(f"{mode}: its process ended")
    found = {mode: [] for mode in runners}
    for _ in range(turns):
        for mode in random.sample(list(runners), len(runners)):
            found[mode].append(runners[mode].turn_ms(least_s))
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


def sampling(table):
    """What PcSampling takes longer than Trace, and what CUPTI's samples, thrown away, take longer than its other records."""
    floor = lambda **variables: lambda: Runner({"CUDA_INJECTION64_PATH": f"{table.work}/libfloor.so", **variables})
    pairs = {"PcSampling / Trace": {engine: traced(table.build, table.work, engine) for engine in ("Trace", "PcSampling")},
             "CUPTI floor with samples / without": {"without": floor(), "with": floor(FLOOR_PC_MS="100")}}
    ratios = {name: [] for name in pairs}
    for index in range(ROUNDS):
        for name, modes in pairs.items():  # one after the other: a GPU's samples are for one process
            found = take_turns(modes)
            base, other = modes
            ratios[name].append(statistics.mean(found[other]) / statistics.mean(found[base]))
            table.say(f"PyTorch step, launch-bound, set {index + 1}, {name}", f"{statistics.mean(found[base]):.2f} ms, "
                      f"{mean_difference(found, other, base):+.2f}: {ratios[name][-1]:.3f}")
    ratio, floor_ratio = (statistics.median(values) for values in ratios.values())
    table.say("CUPTI floor with samples / without, median", f"{floor_ratio:.3f}")
    table.say("PcSampling / Trace, median", f"{ratio:.3f}", "<= 1.03", ratio <= 1.03)


def breaks(table):
    """What PcSampling that is switched off for a part of the time takes longer than Trace."""
    for spec in os.environ.get("BREAKS", "25/8000,50/8000").split(","):
        share, cycle_ms = spec.split("/")
        modes = {"Trace": traced(table.build, table.work, "Trace"),
                 "PcSampling": traced(table.build, table.work, "PcSampling", GPUFL_PC_SAMPLING_SHARE=share,
                                      GPUFL_PC_SAMPLING_CYCLE_MS=cycle_ms)}
        found = take_turns(modes, turns=ROUNDS, least_s=3 * int(cycle_ms) / 1000)
        ratio = statistics.mean(found["PcSampling"]) / statistics.mean(found["Trace"])
        table.say(f"PyTorch step, launch-bound, samples in {share} % of {cycle_ms} ms", f"{statistics.mean(found['Trace']):.2f}"
                  f" ms, {mean_difference(found, 'PcSampling', 'Trace'):+.2f}: {ratio:.3f}", "<= 1.03", ratio <= 1.03)
        session = max(table.sessions(f"{table.work}/c-PcSampling"), key=lambda path: path.stat().st_mtime)
        lines = table.run([table.gpufl, "report", session]).stdout.splitlines()
        for line in lines:  # samples a second and SM, and the windows
            if "a second and SM" in line or line.endswith("  pc_sampling"):
                table.say(" ", line.strip())


def main():
    from bench_table import BenchTable
    table = BenchTable(*sys.argv[1:4])
    steps = {"added": lambda: added(table), "sampling": lambda: sampling(table), "breaks": lambda: breaks(table)}
    table.run_steps(steps, os.environ.get("STEPS", "added,sampling").split(","))


if __name__ == "__main__":
    if os.environ.get("PLAIN"):
        step = make_step()
        with torch_profiler():
            print(statistics.mean([step() for _ in range(60)]))
    else:
        main()
