#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that nobody wrote the engines for, under every engine, on a real GPU: nothing hangs, exit status and output
are those of the bare run, and `gpufl verify` is right about each session.

usage: matrix.py BUILD WORK OUT    PROGRAMS, ENGINES: only these, by comma; SIZE (200), RANGE_SIZE (40): kernels;
LIMIT_S (90): a run that takes longer hangs. Prints programs by engines; OUT/matrix.txt has every run. Exit 1: a cell fails.
"""
import concurrent.futures
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

BUILD, WORK, OUT = (pathlib.Path(path).resolve() for path in sys.argv[1:4])
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from matrix_programs import PROGRAMS  # noqa: E402

ALL_ENGINES = ("Monitor", "Trace", "PcSampling", "SassMetrics", "RangeProfiler", "Deep")
NAMES = os.environ.get("PROGRAMS", ",".join(PROGRAMS)).split(",")
ENGINES = os.environ.get("ENGINES", ",".join(ALL_ENGINES)).split(",")
SIZE, RANGE_SIZE = int(os.environ.get("SIZE", "200")), int(os.environ.get("RANGE_SIZE", "40"))
LIMIT_S = int(os.environ.get("LIMIT_S", "90"))
# Engines that need the GPU's counters exclude each other between processes; the others may run beside them.
LANES = (("Monitor", "Trace"), ("PcSampling", "SassMetrics", "RangeProfiler", "Deep"))
KERNEL_ROWS = ("kernel_event_batch", "launch_event_batch")  # of launches in counting windows the time is not known


def run(command, folder):
    """(status, sorted lines of output, errors, seconds); status None: it had to be killed."""
    environment = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false", "TORCHINDUCTOR_CACHE_DIR": str(WORK / "inductor"),
                   "TRITON_CACHE_DIR": str(WORK / "triton"), "TORCHINDUCTOR_COMPILE_THREADS": "4"}
    began = time.monotonic()
    with open(folder / "errors.txt", "w", encoding="utf-8") as errors:
        process = subprocess.Popen(command, cwd=folder, env=environment, text=True, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=errors, start_new_session=True)
        try:
            output, _ = process.communicate(timeout=LIMIT_S)
            status = process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, status = process.communicate()[0], None
    # Ranks print in any order.
    return status, sorted(output.splitlines()), (folder / "errors.txt").read_text(errors="replace"), time.monotonic() - began


def program(name, engine):
    size = RANGE_SIZE if engine == "RangeProfiler" else SIZE
    return [sys.executable, str(HERE / "matrix_programs.py"), name, str(size)]


def sessions_of(folder):
    """What verify says about each session."""
    found = []
    for path in sorted((folder / "log").glob("*-*-*-*-*")):
        answer = subprocess.run([BUILD / "bin/gpufl", "verify", path, "--json"], capture_output=True, text=True, check=False)
        try:
            found.append(json.loads(answer.stdout))
        except ValueError:
            found.append({"is_complete": None, "error": answer.stdout + answer.stderr})
    return found


def kernels_of(found):
    return sum(session.get("rows", {}).get(kind, 0) for session in found for kind in KERNEL_ROWS)


def judge(name, engine, bare):
    folder = WORK / "matrix" / f"{name}-{engine}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    command = [str(BUILD / "bin/gpufl"), "trace", "-q", "--engine", engine, "-o", str(folder / "log"), "--", *program(name, engine)]
    status, output, errors, seconds = run(command, folder)
    faults = []
    if status is None:
        faults.append("hangs")
    elif status != bare[0]:
        faults.append(f"exit {status}")
    if status is not None and output != bare[1]:
        faults.append("output differs")
    found = sessions_of(folder)
    if engine != "Monitor" and not found:
        faults.append("no session")
    if any(session["is_complete"] is None for session in found):
        faults.append("unreadable")
    return {"name": name, "engine": engine, "faults": faults, "seconds": seconds, "bare_seconds": bare[3], "output": output,
            "bare_output": bare[1], "errors": errors[-3000:], "sessions": found, "kernels": kernels_of(found),
            "is_complete": bool(found) and all(session["is_complete"] for session in found)}


def check_counts(cells):
    """A session that verify calls complete has every kernel that the same program has under Trace."""
    for cell in cells:
        whole = next((one for one in cells if (one["name"], one["engine"]) == (cell["name"], "Trace") and
                      one["is_complete"]), None)
        if whole and cell["is_complete"] and cell["engine"] not in ("Monitor", "RangeProfiler") and \
                cell["kernels"] != whole["kernels"]:
            cell["faults"].append(f"complete with {cell['kernels']} of {whole['kernels']} kernels")


def lane(engines, bares):
    return [judge(name, engine, bares[name, engine == "RangeProfiler"])
            for engine in engines if engine in ENGINES for name in NAMES]


def bare(key):
    name, is_range = key
    folder = WORK / "matrix" / f"{name}-bare-{is_range}"
    folder.mkdir(parents=True, exist_ok=True)
    outcome = run(program(name, "RangeProfiler" if is_range else "Trace"), folder)
    if outcome[0] != 0:
        print(f"{name} fails by itself: {outcome[2][-600:]}")
    return outcome


def main():
    keys = [(name, is_range) for name in NAMES for is_range in {engine == "RangeProfiler" for engine in ENGINES}]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        bares = dict(zip(keys, pool.map(bare, keys)))
    with concurrent.futures.ThreadPoolExecutor(len(LANES)) as pool:
        cells = [cell for cells in pool.map(lambda engines: lane(engines, bares), LANES) for cell in cells]
    check_counts(cells)
    with open(OUT / "matrix.txt", "w", encoding="utf-8") as file:
        for cell in cells:
            file.write(json.dumps(cell, indent=1) + "\n")
    print("| program | " + " | ".join(ENGINES) + " |\n| --- |" + " --- |" * len(ENGINES))
    for name in NAMES:
        row = []
        for engine in ENGINES:
            cell = next(one for one in cells if (one["name"], one["engine"]) == (name, engine))
            state = "no session" if not cell["sessions"] else "complete" if cell["is_complete"] else "incomplete"
            verdict = f"{state}, {cell['kernels']} kernels, {cell['seconds']:.0f} s"
            row.append(", ".join(cell["faults"]).upper() + f" ({verdict})" if cell["faults"] else verdict)
        print(f"| {name} | " + " | ".join(row) + " |")
    return 1 if any(cell["faults"] for cell in cells) else 0


if __name__ == "__main__":
    sys.exit(main())
