# SPDX-License-Identifier: Apache-2.0
"""Measures examples/gemm on a real GPU and writes the page that explains it: gemm_story.py BUILD_DIR WORK_DIR OUT_DIR

OUT_DIR/gemm.md, which belongs to docs/, is gemm_story.md.in with its @@markers@@ replaced by what this run measured.
SIZE (4096): of the matrices that are timed; DEEP_SIZE (2048): of those whose instructions are counted, which takes many
times as long; DEEP_S (2.5): GPU time of each such run. STEPS: build,speed,deep,counters,page. Exit 1 when a line of the
table does not hold."""
import datetime
import json
import os
import pathlib
import re
import sys

from bench_table import BenchTable
from example_build import build_gemm
from gemm_story_figures import counters_figures, deep_figures, number_text, report_section, trace_figures

HERE = pathlib.Path(__file__).resolve().parent
SIZE, DEEP_SIZE = (int(os.environ.get(name, default)) for name, default in (("SIZE", "4096"), ("DEEP_SIZE", "2048")))
KERNELS = ("naive", "coalesced", "shared_tile", "register_tile", "conflict_free", "double_buffer", "tensor_core")
YARDSTICKS = ("cublas_single", "cublas_half")
DEEP_S = float(os.environ.get("DEEP_S", "2.5"))  # of GPU time: a window that counts and one that samples
LAUNCHES_MAX = 10000
NOT_MEASURED = "not measured"
SPEED_LINE = re.compile(r"(\w+) +([\d.]+) ms +([\d.]+) TFLOP/s(?: +largest difference (\S+) (ok|WRONG))?")

table = BenchTable(*sys.argv[1:4])
WORK, OUT, GPUFL = table.work, table.out, table.gpufl
say = table.say
story = {"program": None, "has_cublas": False}
figures = {}  # marker: text


def build():
    story["program"], story["has_cublas"] = build_gemm(table)
    say("examples/gemm", "built with cuBLAS" if story["has_cublas"] else "built without cuBLAS")


def traced(name, engine, arguments, options=(), timeout=60):
    """The session of one run under the engine, which must have been granted."""
    command = [story["program"], "--no-check", *map(str, arguments)]
    result, sessions = table.trace(command, WORK / f"g-{name}", None, timeout,
                                   ("--engine", engine, "--name", "gemm", *options))
    if result.returncode or len(sessions) != 1:
        raise RuntimeError(f"{name}: exit {result.returncode}, {len(sessions)} sessions: {result.stderr[-300:]}")
    report = table.report(sessions[0])
    if report["session"]["engine"] != engine:
        raise RuntimeError(f"{name}: {report['session']['engine']} instead of {engine}: {result.stderr[-300:]}")
    if not report["completeness"]["is_complete"]:
        print(f"     {name}: not complete: {report['completeness']['losses']}", flush=True)
    return sessions[0], report


def text_report(session, top=5):
    return table.run([GPUFL, "report", "--color", "never", "--top", str(top), session]).stdout


def speed():
    steps = KERNELS + (YARDSTICKS if story["has_cublas"] else ())
    bare = table.run([story["program"], "--size", str(SIZE), *steps], {"GPUFL_DISABLED": "1"}, timeout=90)
    print(bare.stdout + bare.stderr, flush=True)
    times = {match[1]: (float(match[2]), float(match[3])) for match in SPEED_LINE.finditer(bare.stdout)}
    wrong = [match[1] for match in SPEED_LINE.finditer(bare.stdout) if match[5] != "ok"]
    say(f"gemm {SIZE}: results against {'cuBLAS' if story['has_cublas'] else 'the naive step'}",
        f"{len(times)} steps, wrong: {', '.join(wrong) or 'none'}", "all right",
        bare.returncode == 0 and not wrong and set(times) == set(steps))
    story["ms"] = {name: ms for name, (ms, _) in times.items()}
    before = None
    for name in steps:
        ms, tflops = times[name]
        figures[f"{name}.ms"], figures[f"{name}.tflops"] = number_text(ms), number_text(tflops)
        figures[f"{name}.speedup"] = number_text(before / ms) if before else "1"
        before = ms if name in KERNELS else None
    figures["gain"] = number_text(times["naive"][0] / times["tensor_core"][0])
    figures["yardstick"] = "cuBLAS was not there to compare with."
    if story["has_cublas"]:
        figures["yardstick"] = (f"cuBLAS on the same matrices: {figures['cublas_single.tflops']} TFLOP/s in single and "
                                f"{figures['cublas_half.tflops']} in half precision.")

    session, report = traced("trace", "Trace", ["--size", SIZE, *KERNELS])
    found = trace_figures(report, KERNELS)
    figures.update(found)
    figures["kernels_report"] = report_section(text_report(session, 8), "KERNELS", 24)
    say("  Trace", f"occupancy of {sum(name.endswith('.occupancy') for name in found)} kernels", "all",
        all(f"{name}.occupancy" in found for name in KERNELS))
    gpu, driver = report["gpus"][0]["name"], report["session"]["driver_version"]
    figures["machine"] = f"{gpu}, driver {driver}, CUDA {report['session']['cuda_version']}"


def deep():
    counted = 0
    for name in KERNELS:
        ms = story["ms"][name] * (DEEP_SIZE / SIZE) ** 3
        launches = max(3, min(LAUNCHES_MAX, int(DEEP_S * 1e3 / ms)))
        try:
            session, report = traced(f"deep-{name}", "Deep",
                                     ["--size", DEEP_SIZE, "--warmup", 0, "--repeat", launches, name])
        except (RuntimeError, OSError) as problem:
            say(f"  Deep, {name}", str(problem)[:200], "", False)
            continue
        found = deep_figures(report, name)
        figures.update(found)
        text = text_report(session, 4)
        figures[f"{name}.stalls_report"] = report_section(text, "STALLS", 12)
        figures[f"{name}.code_report"] = report_section(text, "HOT CODE", 14)
        figures[f"{name}.instructions_report"] = report_section(text, "INSTRUCTIONS", 8)
        is_whole = f"{name}.stall" in found and f"{name}.executed" in found
        counted += is_whole
        words = ", ".join(f"{key.split('.')[1]} {value}" for key, value in found.items())
        say(f"  Deep, {name}, {launches} launches", words[:180], "samples and counts", is_whole)
    say(f"gemm {DEEP_SIZE}: Deep", f"{counted} of {len(KERNELS)} kernels", "all", counted == len(KERNELS))
    compared = (("naive", "coalesced", "useful", "coalesced accesses use more of what they move"),
                ("conflict_free", "register_tile", "passes", "the new layout needs fewer passes through shared memory"))
    for low, high, what, words in compared:
        values = [deep_value(f"{name}.{what}") for name in (low, high)]
        say(f"  {words}", f"{low} {values[0]}, {high} {values[1]}", f"{low} < {high}",
            None not in values and values[0] < values[1])


def deep_value(marker):
    """The number at the start of a figure."""
    found = re.match(r"[\d.]+", figures.get(marker, ""))
    return float(found[0]) if found else None


def counters():
    for metric_set in ("overview", "roofline"):
        _, report = traced(f"range-{metric_set}", "RangeProfiler",
                           ["--size", SIZE, "--warmup", 0, "--repeat", 1, *KERNELS],
                           ("--range-mode", "kernel", "--range-metrics", metric_set), 90)
        found = counters_figures(report, KERNELS)
        figures.update(found)
        measured = {key.split(".")[0] for key in found}
        say(f"gemm {SIZE}: RangeProfiler, {metric_set}", f"{len(found)} figures of {len(measured)} kernels",
            "all kernels", measured == set(KERNELS))
    tensor = {name: deep_value(f"{name}.tensor") for name in KERNELS}
    say("  tensor cores work in the last step only", json.dumps(tensor), "> 0, else 0",
        bool(tensor["tensor_core"]) and not any(value for name, value in tensor.items() if name != "tensor_core"))


def page():
    figures.update({"date": datetime.date.today().isoformat(), "size": str(SIZE), "deep_size": str(DEEP_SIZE)})
    template = (HERE / "gemm_story.md.in").read_text()
    markers = set(re.findall(r"@@([\w.]+)@@", template))
    missing = sorted(marker for marker in markers if marker not in figures)
    text = re.sub(r"@@([\w.]+)@@", lambda found: figures.get(found[1], NOT_MEASURED), template)
    (OUT / "gemm.md").write_text(text)
    (OUT / "gemm_figures.json").write_text(json.dumps(figures, indent=1, sort_keys=True))
    say("the page gemm.md", f"{len(text.splitlines())} lines, {len(markers) - len(missing)} of {len(markers)} figures, "
        f"missing: {', '.join(missing) or 'none'}"[:200], "all figures", not missing)


STEPS = {"build": build, "speed": speed, "deep": deep, "counters": counters, "page": page}
LIMITS_S = {"build": 60, "speed": 60, "deep": 150, "counters": 80, "page": 10}
if __name__ == "__main__":
    table.run_steps(STEPS, os.environ.get("STEPS", ",".join(STEPS)).split(","), LIMITS_S)
