# SPDX-License-Identifier: Apache-2.0
"""Proves the Trace engine on a real GPU and prints one table. Run by tests/device/run.sh, which builds
what is needed: check.py BUILD_DIR WORK_DIR OUT_DIR. Exit 1 when a line of the table does not hold."""
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from bench_table import BenchTable
from launch_turns import TURN_LAUNCHES, Launcher, take_turns, turn_program
from session_log import rows_of

HERE = pathlib.Path(__file__).resolve().parent
ROUNDS = int(os.environ.get("ROUNDS", "5"))
table = BenchTable(*sys.argv[1:4])
BUILD, WORK, OUT, GPUFL = table.build, table.work, table.out, table.gpufl
say, run, trace, floor, report = table.say, table.run, table.trace, table.floor, table.report


def launch_cost():
    program = turn_program(WORK)
    turns, counts, directory = 1_000_000 // TURN_LAUNCHES, WORK / "floor-turns.json", WORK / "t-launch"
    cost = {"bare": [], "floor": [], "gpufl": []}
    lost = 0
    for _ in range(ROUNDS):
        counts.unlink(missing_ok=True)
        launchers = {"bare": Launcher(program)} if not cost["bare"] else {}
        launchers |= {
            "floor": Launcher(program, {"CUDA_INJECTION64_PATH": str(WORK / "libfloor.so"), "FLOOR_OUT": str(counts)}),
            "gpufl": Launcher(table.trace_command(program, directory, ("--quiet",)))}
        take_turns(list(launchers.values()), turns)
        for kind, launcher in launchers.items():
            cost[kind].append(launcher.mean_ns())
        launches = launchers["gpufl"].launches()
        assert json.loads(counts.read_text())["kernels"] == launches, counts.read_text()
        summary = run([GPUFL, "verify", table.sessions(directory)[0]])
        lost += summary.returncode != 0 or f"{launches:,} kernels" not in summary.stdout
        print("    ", {kind: round(cost[kind][-1]) for kind in launchers}, summary.stdout.strip()[:60], flush=True)
    median = {kind: statistics.median(values) for kind, values in cost.items()}
    extra = median["gpufl"] - median["floor"]
    say("1,000,000 tiny launches, bare", f"{median['bare']:.0f} ns each")
    say("  raw CUPTI floor (same records, thrown away)", f"{median['floor']:.0f} ns each")
    say("  gpufl trace", f"{median['gpufl']:.0f} ns each")
    say("  gpufl over the floor", f"{extra:+.0f} ns", "<= 150 ns", extra <= 150)
    say("  gpufl / floor", f"{median['gpufl'] / median['floor']:.3f}", "<= 1.10", median["gpufl"] <= 1.10 * median["floor"])
    say("  every session complete", f"{ROUNDS - lost} of {ROUNDS}", "all", lost == 0)


def four_threads():
    result, sessions = trace([WORK / "launch_rate", "300000", "4"], WORK / "t-four", extra=("--quiet",))
    figures = json.loads(result.stdout)
    verify = run([GPUFL, "verify", sessions[0]])
    say("4 threads launching as fast as they can", f"{figures['launches_per_s'] / 1e3:.0f} k launches/s")
    say("  verify", verify.stdout.strip()[:70], "complete, 0 lost", verify.returncode == 0)
    overhead = [json.loads(line) for line in (sessions[0] / "system.log").open() if '"type":"overhead"' in line]
    print("     buffers lent at the end", [o.get("buffers_lent") for o in overhead])


def exact_scopes():
    directory = WORK / "t-scopes"
    shutil.rmtree(directory, ignore_errors=True)
    result = run([WORK / "scope_threads", directory],
                 {"LD_LIBRARY_PATH": f"{BUILD}/lib:" + os.environ.get("LD_LIBRARY_PATH", ""), "GPUFL_LOG_ROTATE_BYTES": "1000000000"})
    figures = json.loads(result.stdout)
    session = pathlib.Path(figures["session"])
    kernels, names = rows_of(session, "device", "kernel_event_batch")
    events, paths = rows_of(session, "scope", "scope_event_batch")
    path_of = {e["scope_instance_id"]: paths["scope_name_dict"][e["name_id"]] for e in events}
    wrong = 0
    for kernel in kernels:
        name = names["kernel_dict"][kernel["kernel_id"]]
        numbers = name[name.index("<") + 1:name.index(">")].replace("(int)", "").split(",")
        expected = f"thread_{numbers[0].strip()}" + (f"|scope_{numbers[1].strip()}" if name.startswith("void work") else "")
        wrong += path_of.get(kernel["scope_id"]) != expected
    say("scopes, 8 threads x 8 streams", f"{len(kernels)} kernels, {wrong} in a wrong scope", f"{figures['kernels']}, 0",
        len(kernels) == figures["kernels"] and wrong == 0)


def exact_durations(cupti):
    tap = WORK / "tap.txt"
    result, sessions = trace([WORK / "launch_rate", "50000", "2"], WORK / "t-tap", extra=("--quiet",), env={
        "GPUFL_CUPTI_PATH": str(WORK / "libcupti_tap.so"), "TAP_CUPTI": cupti, "TAP_OUT": str(tap),
        "GPUFL_LOG_ROTATE_BYTES": "1000000000"})
    raw = sorted(tuple(map(int, line.split())) for line in tap.read_text().splitlines())
    kernels, _ = rows_of(sessions[0], "device", "kernel_event_batch")
    ours = sorted((k["corr_id"], k["start_ns"], k["start_ns"] + k["duration_ns"]) for k in kernels)
    say("start and end against CUPTI's raw records", f"{len(ours)} kernels, {len(set(ours) ^ set(raw))} differ", "all equal",
        ours == raw and len(ours) == 101000)


def same_count(name, command, env=None, timeout=120, cwd=None, uses_cupti=False):
    """One program three times: alone, with the raw counter, traced. Returns a row for say()."""
    slug = "".join(c if c.isalnum() else "-" for c in name)
    try:
        bare = run(command, env, timeout, cwd)
        raw, counts = floor(command, env, timeout, cwd, slug)
        ours, sessions = trace(command, WORK / f"t-{slug}", env, timeout, cwd=cwd)
    except subprocess.TimeoutExpired:
        return f"  {name}", "took too long here"
    mine = sum(report(s)["completeness"]["kernels"] for s in sessions) if sessions else None
    theirs = counts["kernels"] if counts else None
    value = f"{mine} kernels, raw counter {theirs}; exit {ours.returncode}, alone {bare.returncode}"
    if uses_cupti:
        # It profiles itself and meets a second profiler in its process, whichever of ours that is.
        return f"  {name}", value + f", with the counter {raw.returncode}", "profiles itself"
    return f"  {name}", value, "equal", mine == theirs and ours.returncode == bare.returncode


def say_all(jobs):
    with ThreadPoolExecutor(6) as pool:
        for row in pool.map(lambda job: same_count(*job[0], **job[1]), jobs):
            say(*row)


def cupti_samples(samples):
    say("NVIDIA's CUPTI samples", "kernel count against a raw CUPTI counter")
    jobs = []
    for program in sorted(pathlib.Path(samples).glob("*/*")):
        if program.is_file() and os.access(program, os.X_OK) and program.suffix == "":
            uses_cupti = "libcupti" in run(["ldd", program]).stdout
            jobs.append(((f"{program.parent.name}/{program.name}", [program]),
                         {"timeout": 25, "cwd": program.parent, "uses_cupti": uses_cupti}))
    say_all(jobs)


def torch_programs():
    import importlib.util
    packages = pathlib.Path(importlib.util.find_spec("torch").origin).parent.parent
    scripts = ["accelerate/test_utils/scripts/test_ops.py", "accelerate/test_utils/scripts/test_script.py",
               "accelerate/test_utils/scripts/test_sync.py"]
    say("PyTorch programs", "kernel count against a raw CUPTI counter")
    jobs = [((f"python {script}", [sys.executable, packages / script]),
             {"timeout": 100, "env": {"CUBLAS_WORKSPACE_CONFIG": ":4096:8", "HF_HUB_OFFLINE": "1"}})
            for script in scripts if (packages / script).exists()]
    jobs.append((("python examples/pytorch_training.py", [sys.executable, HERE.parent.parent / "examples/pytorch_training.py", "20"]), {}))
    say_all(jobs)


GRAPHS = """
import torch
x = torch.randn(256, 256, device="cuda"); y = x @ x
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    for _ in range(20): y = torch.relu(x @ y)
torch.cuda.nvtx.range_push("replay")
for _ in range(50): graph.replay()
torch.cuda.nvtx.range_pop()
torch.cuda.synchronize()
"""


def features():
    result, sessions = trace([sys.executable, "-c", GRAPHS], WORK / "t-graphs", extra=("--graphs", "--memory", "--quiet"))
    graphs, _ = rows_of(sessions[0], "device", "graph_launch_batch")
    allocations, _ = rows_of(sessions[0], "scope", "memory_alloc_event_batch")
    kernels, _ = rows_of(sessions[0], "device", "kernel_event_batch")
    inside = [k for k in kernels if k.get("graph_id")]
    scoped = sum(1 for k in inside if k["scope_id"])
    say("CUDA graph replayed 50 times", f"{len(graphs)} graph launches, {len(inside)} kernels inside, {scoped} of them in scope replay",
        "50 launches, all in scope", len(graphs) == 50 and scoped == len(inside) == sum(g["node_count"] for g in graphs))
    say("  allocations recorded", len(allocations), "> 0", len(allocations) > 0)
    result, sessions = trace([WORK / "launch_rate", "200"], WORK / "t-stacks", extra=("--stacks", "--quiet"))
    kernels, names = rows_of(sessions[0], "device", "kernel_event_batch")
    stacks = names.get("function_dict", {})
    with_stack = sum(1 for k in kernels if k.get("stack_id"))
    say("CPU stacks at launch", f"{with_stack} of {len(kernels)} kernels, {len(stacks)} different", "all", with_stack == len(kernels))
    print("    ", max(stacks.values(), key=len, default="")[-300:])


def other_profiler():
    result, sessions = trace([sys.executable, HERE / "step_cost.py"], WORK / "t-kineto", {"PLAIN": "torch"}, timeout=150)
    print(result.stderr[-1500:])
    for session in sessions:
        overhead = [json.loads(line) for line in (session / "system.log").open() if '"type":"overhead"' in line]
        print("    ", run([GPUFL, "verify", session]).stdout[:600], [o.get("buffers_lent") for o in overhead[-3:]])
    say("a program that uses torch.profiler, traced", f"exit {result.returncode}", "0", result.returncode == 0)


def live_demo():
    result = run([GPUFL, "demo"], cwd=WORK)
    print(result.stdout[:6000], result.stderr[-500:])
    say("gpufl demo traces its example live", f"exit {result.returncode}", "0", result.returncode == 0 and "recording" not in result.stdout[:20])


def torch_session():
    result, sessions = trace([sys.executable, HERE.parent.parent / "examples/pytorch_training.py", "150"], WORK / "t-bytes")
    print(result.stderr[-400:])
    session = sessions[0]
    summary = report(session)
    kernels = summary["completeness"]["kernels"]
    size = lambda: sum(f.stat().st_size for f in session.iterdir())
    # Segments sealed on the way are counted by what they held.
    plain = size()
    sealed_any = list(session.glob("*.zst"))
    run([GPUFL, "seal", session])
    sealed = size()
    verify = run([GPUFL, "verify", session])
    say("PyTorch session, everything counted", f"{kernels} kernels")
    say("  plain", f"{plain / kernels:.1f} bytes a kernel" + (" (partly sealed)" if sealed_any else ""), "<= 80", plain <= 80 * kernels)
    say("  sealed", f"{sealed / kernels:.1f} bytes a kernel", "<= 12", sealed <= 12 * kernels)
    peak = summary["overhead"].get("memory_peak_bytes")
    say("  SDK memory, peak", f"{peak / 2**20:.1f} MiB", "<= 64", peak <= 64 * 2**20)
    say("  verify after sealing", verify.stdout.strip()[:70], "complete", verify.returncode == 0)
    shutil.make_archive(str(OUT / "h200-training"), "tar", session.parent, session.name)


STEPS = {"scopes": exact_scopes, "durations": lambda: exact_durations(os.environ["REAL_CUPTI"]), "threads": four_threads,
         "session": torch_session, "launch": launch_cost, "programs": torch_programs,
         "features": features, "kineto": other_profiler, "demo": live_demo,
         "samples": lambda: cupti_samples(os.environ.get("CUPTI_SAMPLES", ""))}
table.run_steps(STEPS, os.environ.get("STEPS", ",".join(STEPS)).split(","))
