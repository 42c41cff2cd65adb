# SPDX-License-Identifier: Apache-2.0
"""Proves the engines above Trace on a real GPU and prints one table. Run by tests/device/run.sh, which builds what is
needed: deep_check.py BUILD_DIR WORK_DIR OUT_DIR. Exit 1 when a line of the table does not hold.

STEPS: which steps, by name. TRAIN_STEPS: length of the PyTorch runs. MEMORY_S: length of the step `memory`, which
runs only when it is named; MEMORY_ENGINE: other than PcSampling. NEIGHBOURS: which engines the step `neighbours` tries,
one after the other."""
import concurrent.futures
import functools
import gzip
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys

from bench_table import BenchTable
from launch_turns import Launcher, mean_and_error, take_turns, turn_program
from session_log import busy_s, cosine, distribution, losses, pc_samples, records_of, rows_of, selected_engine

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SMS = int(os.environ.get("SMS", "132"))
TRAIN_STEPS = int(os.environ.get("TRAIN_STEPS", "150"))
MEMORY_S, MEMORY_ENGINE = int(os.environ.get("MEMORY_S", "600")), os.environ.get("MEMORY_ENGINE", "PcSampling")
RECORDING_BYTES_MAX = 300_000
# One file for each channel: nothing is compressed while a run is timed.
PLAIN = {"GPUFL_LOG_ROTATE_BYTES": "4000000000"}
TRAINING = [sys.executable, "-u", ROOT / "examples/pytorch_training.py", str(TRAIN_STEPS)]
table = BenchTable(*sys.argv[1:4])
WORK, OUT, GPUFL = table.work, table.out, table.gpufl
say, run = table.say, table.run


def engine_trace(engine, command, name, env=None, timeout=40):
    """Traces with the engine; the session only when the engine was granted."""
    result, sessions = table.trace(command, WORK / f"d-{name}", {**PLAIN, **(env or {})}, timeout,
                                   ("--engine", engine, "--quiet"))
    if result.returncode or len(sessions) != 1:
        raise RuntimeError(f"{name}: exit {result.returncode}, {len(sessions)} sessions: {result.stderr[-300:]}")
    granted, why = selected_engine(sessions[0])
    if granted != engine:
        raise RuntimeError(f"{name}: {granted} instead of {engine}: {why}")
    if lost := losses(sessions[0]):
        print(f"     {name}: losses {lost}", flush=True)
    return result, sessions[0]


def last_json(result):
    return json.loads(result.stdout.strip().splitlines()[-1])


def keep_recording(path, what):
    """Copies a recording to OUT_DIR, compressed where its name says so."""
    if not path.exists() or not path.stat().st_size:
        say(f"  {what}", "was not written", f"<= {RECORDING_BYTES_MAX} bytes", False)
        return
    kept = OUT / path.name
    if path.suffix == ".rangerec" and shutil.which("zstd"):
        kept = OUT / (path.name + ".zst")
        run(["zstd", "-19", "--ultra", "-q", "-f", path, "-o", kept])
    elif path.suffix == ".rangerec":
        kept = OUT / (path.name + ".gz")
        kept.write_bytes(gzip.compress(path.read_bytes()))
    else:
        shutil.copyfile(path, kept)
    say(f"  {what}", f"{kept.name}, {kept.stat().st_size} bytes", f"<= {RECORDING_BYTES_MAX} bytes",
        kept.stat().st_size <= RECORDING_BYTES_MAX)


def records():
    say("recordings for the tests without a GPU", OUT)
    jobs = (
        ("PC samples", "h200_two_kernels.pcrec", [WORK / "two_kernels", "--rounds", "40"],
         lambda path: {"CUDA_INJECTION64_PATH": WORK / "record_pc_sampling.so", "RECORD_OUT": path}),
        ("SASS counts", "h200_sass.sassrec", [WORK / "sass_kernels"],
         lambda path: {"LD_PRELOAD": WORK / "record_sass_metrics.so", "RECORD_OUT": path}),
        ("ranges", "h200_range.rangerec", [WORK / "record_range", WORK / "h200_range.rangerec"], lambda path: {}),
        ("PM samples", "h200_pm.pmrec", [WORK / "record_pm_sampling", WORK / "h200_pm.pmrec"], lambda path: {}),
    )
    for what, name, command, variables in jobs:
        path = WORK / name
        path.unlink(missing_ok=True)
        try:
            result = run(command, {key: str(value) for key, value in variables(path).items()}, timeout=15)
            if result.returncode or result.stderr:
                print(f"     {what}: exit {result.returncode} {result.stderr[-600:]}", flush=True)
        except Exception as problem:  # the other recordings do not need this one
            print(f"     {what}: {problem}", flush=True)
        keep_recording(path, what)


def streams():
    took = {"bare": [], "Trace": [], "PcSampling": []}
    samples = 0
    for _ in range(3):
        for mode, values in took.items():
            command = [WORK / "stream_overlap"]
            if mode == "bare":
                result = run(command, timeout=15)
            else:
                result, session = engine_trace(mode, command, f"streams-{mode}", timeout=15)
            if mode == "PcSampling":
                samples += sum(row["metric_value"] for row in pc_samples(session))
            values += last_json(result)["ms"]
        print("    ", {mode: round(statistics.median(values), 2) for mode, values in took.items()}, flush=True)
    median = {mode: statistics.median(values) for mode, values in took.items()}
    say("8 streams of one-block kernels, 10 rounds, bare", f"{median['bare']:.2f} ms")
    say("  Trace", f"{median['Trace']:.2f} ms")
    ratio = median["PcSampling"] / median["bare"]
    say("  PcSampling", f"{median['PcSampling']:.2f} ms, {samples} samples")
    say("  PcSampling / bare", f"{ratio:.4f}", "<= 1.03, sampled", ratio <= 1.03 and samples > 0)


def same_distributions():
    """Deep takes its samples beside others that are of patched code, and must be left out."""
    modes = {"continuous": ("PcSampling", {}, "40"), "Deep": ("Deep", {}, "600"),
             "serialized": ("PcSampling", {"GPUFL_PC_SAMPLING_MODE": "serialized"}, "40")}
    found = {}
    for mode, (engine, env, rounds) in modes.items():
        result, session = engine_trace(engine, [WORK / "two_kernels", "--rounds", rounds], f"cosine-{mode}", env, 40)
        config = records_of(session, "scope", "pc_sampling_config")
        settings = [(one.get("mode"), one.get("period_cycles")) for one in config]
        print(f"     {mode}: {last_json(result)}, {settings}", flush=True)
        samples = pc_samples(session)
        found[mode] = distribution(samples, "stall_reason"), distribution(samples, "pc_offset")
        print(f"     functions: {sorted(found[mode][0])}", flush=True)
    for mode in ("continuous", "Deep"):
        for function in ("chase", "multiply"):
            for index, what in enumerate(("stall reasons", "PCs")):
                ours, exact = (found[one][index].get(function, {}) for one in (mode, "serialized"))
                value, counts = cosine(ours, exact), (sum(ours.values()), sum(exact.values()))
                say(f"  {function}: {what}, {mode} against serialized",
                    f"cosine {value:.4f}; {counts[0]} and {counts[1]} samples, {len(ours)} and {len(exact)} kinds",
                    ">= 0.95, 1000 samples", value >= 0.95 and min(counts) >= 1000)


def numbers_in(lines, pattern):
    found = (re.search(pattern, line) for _, line in lines)
    return [tuple(map(int, match.groups())) for match in found if match]


def sass():
    code, lines = table.stream([sys.executable, "-u", HERE / "sass_check.py", "run", GPUFL, WORK / "sass_kernels",
                                WORK / "sass"], timeout=60)
    compared = numbers_in(lines, r" inst_executed +(\d+) instructions, +(\d+) differ")
    promised = [line for _, line in lines if "built to be" in line]
    wrong = sum("DOES NOT HOLD" in line for line in promised)
    say("SassMetrics: executed instructions against ncu's source counters",
        f"{len(compared)} kernels, {sum(c for c, _ in compared)} instructions, {sum(w for _, w in compared)} differ",
        "8 kernels, 0 differ", len(compared) == 8 and not any(w for _, w in compared))
    say("  coalescing, divergence and bank conflicts as the kernels are built to have",
        f"{len(promised)} figures, {wrong} wrong", "0 wrong", len(promised) == 10 and wrong == 0)
    say("  sass_check.py", f"exit {code}", "0", code == 0)


def ranges():
    code, lines = table.stream([sys.executable, "-u", HERE / "range_check.py", table.build, WORK / "range"],
                               timeout=110)
    held = [line for _, line in lines if line.startswith("  holds")]
    failed = [line for _, line in lines if line.startswith("  DOES NOT HOLD")]
    say("RangeProfiler: metrics of GEMM, copy and reduction against ncu", f"{len(held)} within 2 %, {len(failed)} not",
        "all, by kernel and by scope", code == 0 and bool(held) and not failed)
    for line in failed[:8]:
        say("  not within 2 %", " ".join(line.split()[3:])[:110])


def lines():
    examples = [WORK / f"{name}.cubin" for name in ("sass_kernels", "range_kernels", "demo_app")]
    recorded = sorted((ROOT / "tests/recordings/cubins").glob("[!n]*.cubin"))  # all but no_lines
    for what, cubins in (("examples", examples), ("recorded cubins", recorded)):
        code, output = table.stream([sys.executable, "-u", HERE / "line_check.py", WORK / "dump_lines", *cubins],
                                    timeout=30)
        say(f"lines of every instruction against nvdisasm, {what}", output[-1][1] if output else "nothing printed",
            "0 differ", code == 0)


def step_times(output):
    """{step: when it was printed}"""
    return {int(found[1]): at for at, line in output if (found := re.search(r"step (\d+): loss", line))}


def training(name, env=None, extra=None, timeout=60):
    """Exit status, seconds a step after the first ten, and the sessions; traced when `extra` has gpufl's options."""
    directory = WORK / f"d-{name}"
    command = TRAINING if extra is None else table.trace_command(TRAINING, directory, ("--quiet", *extra))
    code, output = table.stream(command, {**PLAIN, **(env or {})}, timeout, is_echoed=False)
    times = step_times(output)
    others = [line for _, line in output if not line.startswith("step ")]
    if others:
        print("     " + "\n     ".join(others[-6:]), flush=True)
    step_s = (times[max(times)] - times[10]) / (max(times) - 10) if len(times) > 1 else None
    sessions = table.sessions(directory) if extra is not None else []
    print(f"     {name}: exit {code}, {f'{step_s * 1e3:.2f} ms a step' if step_s else 'no steps'}", flush=True)
    return code, step_s, sessions


@functools.cache
def training_alone():
    code, step_s, _ = training("bare", timeout=40)
    if code or not step_s:
        raise RuntimeError(f"the training program fails on its own: exit {code}")
    return step_s


@functools.cache
def training_kernels():
    _, counts = table.floor(TRAINING, timeout=40, name="d-training-floor")
    return counts["kernels"]


def ncu_kernel_s(step_s, kernels_per_step):
    """What ncu's source counters add to one kernel: 40 kernels of the training step, all between steps 10 and 20."""
    count = 40
    command = ["ncu", "--section", "SourceCounters", "--clock-control", "none", "--launch-skip",
               str(int(12 * kernels_per_step)), "--launch-count", str(count), *TRAINING[:-1], "30"]
    code, output = table.stream(command, timeout=75, is_echoed=False)
    times = step_times(output)
    profiled = sum("==PROF== Profiling" in line for _, line in output)
    print(f"     ncu: exit {code}, {profiled} kernels profiled, steps at {times}", flush=True)
    if not profiled or 20 not in times or 10 not in times:
        return None
    return (times[20] - times[10] - 10 * step_s) / profiled


def deep():
    step_s, expected = training_alone(), training_kernels()
    code, deep_s, sessions = training("deep", extra=("--engine", "Deep"))
    say("Deep on examples/pytorch_training.py", f"exit {code}, {len(sessions)} session", "0, 1",
        code == 0 and len(sessions) == 1)
    session = sessions[0]
    granted, why = selected_engine(session)
    say("  engine", f"{granted} {why}"[:120], "Deep", granted == "Deep")
    timed, _ = rows_of(session, "device", "kernel_event_batch")
    untimed, _ = rows_of(session, "device", "launch_event_batch")
    kernels = len(timed) + len(untimed)
    say("  kernels", f"{len(timed)} timed + {len(untimed)} counted = {kernels}, losses {losses(session)}",
        f"{expected} by a raw counter", kernels == expected)
    windows = sorted(records_of(session, "scope", "deep_window_event"), key=lambda window: window["start_ns"])
    rates = {}
    for window in windows:
        seconds = window["duration_ns"] / 1e9
        total = rates.setdefault(window["source"], [0, 0.0, 0])
        rates[window["source"]] = [total[0] + 1, total[1] + seconds, total[2] + (window["launches_covered"] or 0)]
        print(f"     window {window['window_id']}: {window['source']}, {seconds:.3f} s, "
              f"{window['launches_covered']} launches, {window['close_reason']}", flush=True)
    counts, _ = rows_of(session, "scope", "profile_sample_batch")
    kinds = {kind: sum(row["sample_kind"] == kind for row in counts) for kind in (0, 1)}
    say("  windows", "; ".join(f"{name} {n} x, {seconds:.2f} s, {launches} launches"
                              for name, (n, seconds, launches) in rates.items()), "both sources",
        set(rates) == {"pc_sampling", "sass_metrics"})
    say("  rows", f"{kinds[0]} of samples, {kinds[1]} of counts", "> 0 each", min(kinds.values()) > 0)
    per_step = expected / TRAIN_STEPS
    say("  training step", f"{step_s * 1e3:.2f} ms alone, {deep_s * 1e3:.2f} ms in Deep: {deep_s / step_s:.2f} x"
        if deep_s else "no steps were printed")
    _, counting_s, launches = rates.get("sass_metrics", (0, 0.0, 0))
    if launches:
        slower = counting_s / launches * per_step / step_s
        say("  while instructions are counted", f"{slower:.1f} x (with the start of the program)")
    added_s = ncu_kernel_s(step_s, per_step)
    say("  ncu, source counters, the same kernels", f"{added_s * 1e3:.0f} ms added to a kernel: "
        f"{1 + added_s * per_step / step_s:.0f} x" if added_s else "ncu profiled nothing in time")


def pm():
    expected = training_kernels()
    _, trace_s, _ = training("pm-without", extra=("--engine", "Trace"), timeout=40)
    code, pm_s, sessions = training("pm", {"GPUFL_PM_METRICS": "overview"}, ("--engine", "Trace"), 40)
    session = sessions[0]
    kernels, _ = rows_of(session, "device", "kernel_event_batch")
    samples, names = rows_of(session, "scope", "pm_sample_batch")
    config = records_of(session, "scope", "pm_sampling_config")
    moments = len({(row["device_id"], row["sample_index"]) for row in samples})
    busy = sum(1 for row in samples if row["value"])
    say("PM sampling beside Trace, PyTorch", f"exit {code}, {selected_engine(session)}"[:150], "0", code == 0)
    say("  kernels", len(kernels), f"{expected} by a raw counter", len(kernels) == expected)
    say("  samples", f"{moments} of {len(names.get('metric_dict', {}))} metrics, {busy} values not zero, "
        f"every {config[0].get('interval_us') if config else '?'} us, losses {losses(session)}", "> 0",
        moments > 0 and busy > 0)
    if trace_s and pm_s:
        say("  training step",
            f"{trace_s * 1e3:.2f} ms with Trace, {pm_s * 1e3:.2f} ms with both: {pm_s / trace_s:.3f} x")


def launches():
    """By default; as in its windows all of the time, which is what a program of a few seconds has; and without breaks."""
    program = turn_program(WORK)
    options = {"PcSampling": (), "as in its windows": ("--pc-share", "100", "--pc-period", "17"),
               "without breaks": ("--pc-share", "100")}
    for name, more in options.items():
        directories = {engine: WORK / f"d-launches-{engine}" for engine in ("Trace", "PcSampling")}
        trace, ours = (Launcher(table.trace_command(program, directory, (
            "--quiet", "--engine", engine, *(more if engine == "PcSampling" else ()))),
            {**PLAIN, **({"GPUFL_PC_SAMPLING_DRAIN_MS": "500"} if "17" in more else {})})
            for engine, directory in directories.items())
        take_turns([trace, ours], until_s=25 if not more else 12)
        more_ns, error = mean_and_error([one - other for one, other in zip(ours.turns_ns, trace.turns_ns)])
        ratio = 1 + more_ns / trace.mean_ns()
        say(f"{len(ours.turns_ns)} turns of 5,000 tiny launches, {name}", f"Trace {trace.mean_ns():.0f} ns a launch, {more_ns:+.0f} "
            f"(standard error {error:.0f}): {ratio:.3f} x", "<= 1.05 x" if not more else None, ratio <= 1.05 if not more else None)
        session = table.sessions(directories["PcSampling"])[0]
        verify = run([GPUFL, "verify", session])
        say("  verify", verify.stdout.strip()[:90], f"{selected_engine(session)[0]}, {ours.launches():,} kernels",
            verify.returncode == 0 and selected_engine(session)[0] == "PcSampling" and
            f"complete: {ours.launches():,} kernels" in verify.stdout)


def samples_per_sm_s(session):
    """Samples (a second count of some, as not_issued, is not one), seconds in which kernels ran, samples a second and SM."""
    kernels, _ = rows_of(session, "device", "kernel_event_batch")
    samples = table.report(session)["deep"]["stalls"]["samples"]
    busy = busy_s((row["start_ns"], row["start_ns"] + row["duration_ns"]) for row in kernels)
    return samples, busy, samples / (busy * SMS) if busy else 0


def torch_steps():
    times = {"Trace": [], "PcSampling": []}
    for index in range(int(os.environ.get("ROUNDS", "1"))):
        for mode in (times if index % 2 else reversed(times)):
            result, session = engine_trace(mode, [sys.executable, HERE / "torch_step.py"], f"step-{mode}", timeout=80)
            part = last_json(result)
            times[mode].append(part["ms"])
            if mode == "PcSampling":
                samples, busy, rate = samples_per_sm_s(session)
            print(f"     {mode} {part['ms']:.2f} {part['quartiles_ms']}", flush=True)
    ours, trace = (statistics.mean(times[mode]) for mode in ("PcSampling", "Trace"))
    say("PyTorch step, GPU-bound, Trace", f"{trace:.2f} ms, mean")
    say("  PcSampling / Trace", f"{ours / trace:.4f} ({ours:.2f} ms)", "<= 1.015", ours / trace <= 1.015)
    say("  samples/s per SM of busy time", f"{rate:.0f} ({samples} in {busy:.2f} s)", ">= 1000", rate >= 1000)


def memory():
    directory = WORK / "d-memory"
    command = table.trace_command([WORK / "two_kernels", "--seconds", str(MEMORY_S)], directory,
                                  ("--engine", MEMORY_ENGINE, "--quiet"))
    code, output = table.stream(command, timeout=MEMORY_S + 60, is_echoed=False)
    kib = [json.loads(line)["rss_kib"] for _, line in output if line.startswith('{"s"')]
    for place in range(0, len(kib), max(1, len(kib) // 12)):
        print(f"     after {place + 1} s: {kib[place]} KiB", flush=True)
    session = table.sessions(directory)[0]
    rows = records_of(session, "system", "shutdown")[-1]["rows"].get("profile_sample_batch", 0)
    # A window has CUPTI's buffers, 32 MiB, and is shorter than a minute in such a run.
    fifth = len(kib) // 5
    early, late = min(kib[fifth:fifth + 60]), min(kib[-60:])
    say(f"resident memory in {len(kib)} s of {MEMORY_ENGINE}", f"{early} KiB after a fifth, {late} in the last minute, "
        f"most {max(kib)}; exit {code}, {rows} rows of samples, losses {losses(session)}", "grows <= 1 MiB",
        code == 0 and late - early <= 1024 and rows > 0)


def beside_others(options, number):
    """Exit status, or that it hung, with what was granted and lost."""
    program, directory = [WORK / "two_kernels", "--rounds", "20"], WORK / f"d-beside-{number}"
    try:
        result, sessions = table.trace(program, directory, {"LD_PRELOAD": WORK / "libcrash_stack.so"}, 25,
                                       (*options, "--quiet"))
    except subprocess.TimeoutExpired:
        return "hung", None, {}
    if result.returncode:
        print(f"     {directory.name}: exit {result.returncode}\n{result.stderr[-3000:]}", flush=True)
    ended = last_json(result)["error"] if result.stdout.strip() else "no last line"
    is_there = len(sessions) == 1
    return (result.returncode or ended, selected_engine(sessions[0])[0] if is_there else None,
            losses(sessions[0]) if is_there else {})


def neighbours():
    """Three programs on one GPU at once, by engine: each ends as it does alone."""
    engines = {"PcSampling": ("--engine", "PcSampling"), "SassMetrics": ("--engine", "SassMetrics"),
               "RangeProfiler": ("--engine", "RangeProfiler", "--range-mode", "kernel"), "PM": ("--pm", "overview")}
    for name in os.environ.get("NEIGHBOURS", ",".join(engines)).split(","):
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            outcomes = list(pool.map(functools.partial(beside_others, engines[name]), range(3)))
        say(f"three programs on one GPU at once, {name}",
            "; ".join(f"exit {code}, {engine}, lost {lost}" for code, engine, lost in outcomes), "exit 0 each",
            all(code == 0 for code, _, _ in outcomes))


# From the most telling to the longest. Seconds that each may take are in LIMITS_S.
STEPS = {"records": records, "streams": streams, "cosine": same_distributions, "sass": sass, "range": ranges,
         "lines": lines, "deep": deep, "launches": launches, "neighbours": neighbours,
         "step": torch_steps, "pm": pm, "memory": memory}
LIMITS_S = {"records": 60, "streams": 60, "cosine": 60, "sass": 70, "range": 120, "lines": 60, "deep": 180,
            "launches": 100, "neighbours": 110, "step": 150, "pm": 100}
USUAL = [name for name in STEPS if name != "memory"]
if __name__ == "__main__":
    table.run_steps(STEPS, os.environ.get("STEPS", ",".join(USUAL)).split(","), LIMITS_S)
