#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The Python package: a scope, the stack of a launch, and ten million kernels of a sealed session as a DataFrame, beside pandas.read_json.

usage: bench_python.py [BUILD_DIRECTORY] [KERNELS]

CPU time of one thread, so that a busy machine counts little; the best of several rounds. Exit status 1: over budget.
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import timeit
import time

SOURCE = pathlib.Path(__file__).resolve().parent.parent
ROUNDS = 5
SCOPE_BUDGET_NS, DISABLED_BUDGET_NS, STACK_BUDGET_NS = 400, 100, 3_000
ROWS_BUDGET, BYTES_BUDGET = 5e6, 120
JSON_ROWS = 200_000

failures = []


def line(what, value, budget, is_met, beside=""):
    print(f"{what:<52} {value:<22} (budget {budget}){'; ' + beside if beside else ''}", flush=True)
    if not is_met:
        failures.append(what)


def statement_ns(statement, count=50_000, **names):
    rounds = timeit.repeat(statement, timer=time.thread_time, number=count, repeat=40, globals=names)
    return min(rounds) / count * 1e9


def bench_scopes(gpufl, directory):
    empty = statement_ns("pass")

    def measure(state, budget):
        fresh = statement_ns('with gpufl.Scope("forward"): pass', gpufl=gpufl) - empty
        kept = statement_ns("with scope: pass", scope=gpufl.Scope("forward")) - empty
        line(f"with gpufl.Scope(...): pass, {state}", f"{fresh:.0f} ns", f"{budget} ns", fresh <= budget,
             f"entering one object again: {kept:.0f} ns")

    measure("disabled", DISABLED_BUDGET_NS)
    if not gpufl.init(app_name="bench", log_path=directory / "scopes", backend=gpufl.BackendKind.None_):
        raise SystemExit("bench_python: the session did not start")
    measure("recorded", SCOPE_BUDGET_NS)
    gpufl.shutdown()


def fake_gpu(build):
    """The environment of a machine whose GPU libraries are the look-alikes."""
    fakes = build / "fakes"
    environment = dict(os.environ, LD_LIBRARY_PATH=str(fakes))
    environment.update({f"GPUFL_{name}_PATH": str(fakes) for name in ("CUDA", "CUPTI", "NVML")})
    return environment


def launch(build, directory, with_stacks):
    """In a separate process: nanoseconds of a launch from 20 Python functions deep, on the look-alike GPU."""
    sys.path[:0] = [str(build / "python"), str(SOURCE / "tests" / "python")]
    import gpufl
    from fake_cuda import Gpu
    gpu = Gpu("k")
    gpu.wait()
    if not gpufl.init(app_name="bench", log_path=directory, profiling_engine=gpufl.ProfilingEngine.Trace,
                      enable_stack_trace=with_stacks):
        raise SystemExit("bench_python: the session did not start")

    def deep(depth):
        if depth:
            return deep(depth - 1)
        return statement_ns("launch('k')", 50, launch=gpu.launch)

    print(deep(20))
    gpufl.shutdown()


def bench_stacks(build, directory):
    def measure(kind):
        answer = subprocess.run([sys.executable, "-B", __file__, f"--{kind}", build, directory / kind], check=True,
                                text=True, capture_output=True, env=fake_gpu(build))
        return float(answer.stdout)

    without, with_stacks = measure("plain"), measure("stacks")
    cost = with_stacks - without
    line("stack of a launch, C and 20 Python functions", f"{cost / 1000:.2f} us", f"{STACK_BUDGET_NS // 1000} us",
         cost <= STACK_BUDGET_NS, f"the launch on the look-alike GPU: {without / 1000:.2f} us")


def record(build, directory, kernels):
    """Traces the scripted program on the fake GPU; its session, sealed. A tenth more launches, because a program that
    does nothing but launch outruns the collector on a busy machine."""
    gpufl = build / "bin" / "gpufl"
    subprocess.run([gpufl, "trace", "-o", directory, "--", build / "fakes" / "fake_app", "--threads", "2", "--launches",
                    str(kernels * 11 // 20), "--scopes", "--scopes-per-thread", "20", "--kernel-us", "1"],
                   env=fake_gpu(build), check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    session = next(directory.iterdir())
    subprocess.run([gpufl, "seal", session], check=True, stdout=subprocess.DEVNULL)
    return session


def resident_bytes(kind="VmRSS"):
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(row.split()[1]) * 1024 for row in status if row.startswith(kind + ":"))


def load(session):
    """In a separate process: rows, CPU seconds, bytes held and at the peak, and the same rows by read_json."""
    import pandas  # not part of what is measured
    from gpufl.analyzer import GpuFlightSession
    before, start = resident_bytes(), time.process_time()
    kernels = GpuFlightSession(session).kernels
    seconds, rows = time.process_time() - start, len(kernels)
    held, peak = resident_bytes() - before, resident_bytes("VmHWM") - before
    part = pathlib.Path(session).parent / "part.json"
    kernels.head(JSON_ROWS).to_json(part, orient="records", lines=True)
    start = time.process_time()
    json_rows = len(pandas.read_json(part, lines=True))
    print(rows, seconds, held, peak, json_rows / (time.process_time() - start))


def bench_analyzer(build, directory, kernels):
    session = record(build, directory / "kernels", kernels)
    rounds = []
    for _ in range(ROUNDS):
        answer = subprocess.run([sys.executable, "-B", __file__, "--load", build, session], check=True, text=True,
                                capture_output=True)
        rounds.append([float(word) for word in answer.stdout.split()])
    rows, seconds, held, peak, json_rate = min(rounds, key=lambda one: one[1])
    rate = rows / seconds
    line(f"{rows / 1e6:.1f} M kernels, sealed session to DataFrame", f"{rate / 1e6:.2f} M rows/s/core", "5 M",
         rate >= ROWS_BUDGET,
         f"pandas.read_json: {json_rate / 1e6:.3f} M rows/s, {rate / json_rate:.0f} times slower")
    line("... memory of the process, held (peak)", f"{held / rows:.0f} ({peak / rows:.0f}) bytes/row", "120",
         peak / rows <= BYTES_BUDGET)


def main():
    arguments = [word for word in sys.argv[1:] if not word.startswith("--")]
    build = pathlib.Path(arguments[0] if arguments else SOURCE / "build").resolve()
    sys.path.insert(0, str(build / "python"))
    if "--load" in sys.argv:
        load(arguments[1])
        return 0
    if "--plain" in sys.argv or "--stacks" in sys.argv:
        launch(build, arguments[1], "--stacks" in sys.argv)
        return 0
    import gpufl
    with tempfile.TemporaryDirectory(prefix="gpufl-bench-") as directory:
        bench_scopes(gpufl, pathlib.Path(directory))
        bench_stacks(build, pathlib.Path(directory))
        bench_analyzer(build, pathlib.Path(directory), int(arguments[1]) if len(arguments) > 1 else 10_000_000)
    for failure in failures:
        print(f"over budget: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
