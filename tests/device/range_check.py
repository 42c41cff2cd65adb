# SPDX-License-Identifier: Apache-2.0
"""Compares the RangeProfiler engine with Nsight Compute on a GEMM, a copy and a reduction, per kernel and per scope.
usage: range_check.py BUILD_DIR WORK_DIR. Needs a GPU, nvcc and ncu. Prints every value it saw; exit 1 when one of the
named metrics is not within 2 % of ncu's, or was not measured."""
import csv
import io
import json
import math
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
KERNELS = ("gemm", "copy", "reduce")
# Name, how far two values may lie apart though more than 2 % (noise of a value near zero), and whether a scope, which
# is longer than its kernel, must have the same value.
METRICS = {
    "smsp__inst_executed.sum": (0, True),
    "lts__t_sectors.sum": (20000, True),
    "dram__bytes_read.sum": (4 << 20, True),
    "l1tex__t_sector_hit_rate.pct": (0.2, True),
    "lts__t_sector_hit_rate.pct": (0.5, True),
    "sm__warps_active.avg.pct_of_peak_sustained_active": (0.5, True),
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": (0.5, False),
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": (0.5, False),
}
TOLERANCE = 0.02
failures = 0


def claim(text, holds):
    global failures
    failures += not holds
    print(f"  {'holds' if holds else 'DOES NOT HOLD':14} {text}", flush=True)


def run(command, env=None, timeout=500):
    command = [str(part) for part in command]
    print("$", " ".join(f"{k}={v}" for k, v in (env or {}).items()), " ".join(command), flush=True)
    try:
        result = subprocess.run(command, env={**os.environ, **(env or {})}, capture_output=True, text=True,
                                timeout=timeout)
    except (OSError, subprocess.TimeoutExpired) as trouble:
        print(f"  did not run: {trouble}")
        return None
    if result.returncode:
        print(f"  exit {result.returncode}\n{result.stdout[-1500:]}\n{result.stderr[-1500:]}")
    return result


def number(text):
    try:
        return float(text.replace(",", ""))
    except (ValueError, AttributeError):
        return math.nan


def kernel_of(name):
    for kernel in KERNELS:
        if kernel in (name or ""):
            return kernel
    return None


def ncu_values(program):
    """{kernel: {metric: [values]}} from either of the two shapes of table that ncu prints."""
    result = run(["ncu", "--clock-control", "none", "--cache-control", "none", "--metrics", ",".join(METRICS), "--csv",
                  "--page", "raw", "--print-units", "base", program, "--rounds", "5"])
    values = {kernel: {} for kernel in KERNELS}
    lines = [line for line in (result.stdout if result else "").splitlines() if line.startswith('"')]
    for row in csv.DictReader(io.StringIO("\n".join(lines))):
        kernel = kernel_of(row.get("Kernel Name"))
        if not kernel:
            continue  # the row of units
        if "Metric Name" in row:
            values[kernel].setdefault(row["Metric Name"], []).append(number(row.get("Metric Value")))
        for metric in METRICS:
            if metric in row:
                values[kernel].setdefault(metric, []).append(number(row[metric]))
    if not any(values.values()):
        print("  ncu printed no table:", lines[:3])
    return values


def gpufl_events(build, program, out, mode, arguments):
    shutil.rmtree(out, ignore_errors=True)
    run([build / "bin/gpufl", "trace", "--engine", "RangeProfiler", "-o", out, "--", program, *arguments],
        {"GPUFL_RANGE_MODE": mode, "GPUFL_RANGE_METRICS": ",".join(METRICS)})
    events = []
    for path in sorted(out.rglob("*.log")):
        for line in path.open(errors="replace"):
            try:
                record = json.loads(line)
            except ValueError:
                print("  not JSON:", path.name, line[:80])
                continue
            kind = record.get("type")
            if kind in ("perf_metric_event", "kernel_perf_metric_event"):
                events.append(record)
            elif kind == "loss" or (kind == "capture_capabilities" and path.name.startswith("device")):
                print("  ", json.dumps(record)[:400])
    print(f"  {len(events)} events")
    return events


def gpufl_values(events, mode):
    values = {kernel: {} for kernel in KERNELS}
    for event in events:
        kernel = kernel_of(event.get("name" if mode == "scope" else "kernel_name"))
        if mode == "scope":
            print(f"   scope {event.get('name')}: passes {event.get('passes_collected')}/{event.get('passes_needed')}, "
                  f"instances {event.get('instances')} {event.get('reason', '')}")
        if not kernel:
            print("   unexpected:", json.dumps(event)[:200])
            continue
        for metric, value in event.get("metrics", {}).items():
            if value is not None:
                values[kernel].setdefault(metric, []).append(float(value))
    return values


def compare(what, ours, theirs, only_scopes):
    print(f"{what}: median of gpufl's and of ncu's values")
    for kernel in KERNELS:
        for metric, (noise, is_for_scopes) in METRICS.items():
            mine, other = (side[kernel].get(metric, []) for side in (ours, theirs))
            if not mine or not other:
                claim(f"{kernel:7} {metric:55} measured by both (gpufl {len(mine)}, ncu {len(other)} times)", False)
                continue
            a, b = statistics.median(mine), statistics.median(other)
            apart = abs(a - b) / max(abs(a), abs(b)) if a or b else 0.0
            is_near = apart <= TOLERANCE or abs(a - b) <= noise
            text = f"{kernel:7} {metric:55} {a:16.6g} {b:16.6g} {100 * apart:7.2f} %"
            if only_scopes and not is_for_scopes:
                print(f"  {'':14} {text} (a scope is longer than its kernel)")
            else:
                claim(text, is_near)


def main():
    build, work = (pathlib.Path(path).resolve() for path in sys.argv[1:3])
    work.mkdir(parents=True, exist_ok=True)
    program = work / "range_kernels"
    built = run(["nvcc", "-O2", "-std=c++17", "-arch=native", f"-I{ROOT / 'include'}", HERE / "range_kernels.cu", "-o",
                 program, f"-L{build / 'lib'}", "-lgpufl", "-Xlinker", f"-rpath,{build / 'lib'}"])
    if not built or built.returncode:
        return 1
    theirs = ncu_values(program)
    for mode, arguments in (("kernel", ["--rounds", "5"]), ("scope", ["--rounds", "60"]),
                            ("scope", ["--rounds", "60", "--interleave"])):
        events = gpufl_events(build, program, work / f"range-{mode}{len(arguments)}", mode, arguments)
        compare(f"{mode} {' '.join(arguments)}", gpufl_values(events, mode), theirs, mode == "scope")
    print("range_check:", f"{failures} claims do not hold" if failures else "all claims hold")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
