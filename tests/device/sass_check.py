# SPDX-License-Identifier: Apache-2.0
"""Compares gpufl's instruction counts with Nsight Compute's and with what sass_kernels.cu is built to give.

  sass_check.py run GPUFL PROGRAM WORK_DIR [-- PROGRAM_ARGS]   traces, profiles with ncu, compares
  sass_check.py compare SESSION EXPECTED.json [NCU]            NCU: a .ncu-rep or the CSV of its source page

EXPECTED.json is what the program printed. Prints what it saw; exit 1 when a count differs or a figure is wrong,
2 when there is nothing to compare."""
import csv
import glob
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys

from session_log import batch_rows, session_lines

PREFIX = "smsp__sass_"
# gpufl's metric -> names in an ncu report, titles on ncu's source page
METRICS = {
    "inst_executed": (["inst_executed"], ["# Instructions Executed", "Instructions Executed"]),
    "thread_inst_executed": (["thread_inst_executed"],
                             ["# Thread Instructions Executed", "Thread Instructions Executed"]),
    "thread_inst_executed_pred_on": (["thread_inst_executed_true"],
                                     ["# Predicated-On Thread Instructions Executed",
                                      "Predicated-On Thread Instructions Executed"]),
    "sectors_mem_global": (["memory_l2_theoretical_sectors_global"], ["L2 Theoretical Sectors Global"]),
    "sectors_mem_global_ideal": (["memory_l2_theoretical_sectors_global_ideal"],
                                 ["L2 Theoretical Sectors Global Ideal"]),
    "l1tex_pipe_lsu_wavefronts_mem_shared": (["memory_l1_wavefronts_shared"], ["L1 Wavefronts Shared"]),
    "l1tex_pipe_lsu_wavefronts_mem_shared_ideal": (["memory_l1_wavefronts_shared_ideal"],
                                                   ["L1 Wavefronts Shared Ideal"]),
    "sectors_mem_local": (["memory_l2_theoretical_sectors_local"], ["L2 Theoretical Sectors Local"]),
    "branch_targets_threads_divergent": (["smsp__branch_targets_threads_divergent"], ["# Divergent Branches"]),
}


def gpufl_counts(session):
    """{function: {pc: {metric: value}}} of all windows, and the records that tell about them."""
    functions, metrics, rows, described = {}, {}, [], []
    for record in session_lines(session):
        if record["type"] == "dictionary_update":
            for name, target in (("function_dict", functions), ("metric_dict", metrics)):
                target.update({int(key): text for key, text in record.get(name, {}).items()})
        elif record["type"] == "profile_sample_batch":
            rows += [row for row in batch_rows(record) if row.get("sample_kind") == 1]
        elif record["type"] in ("sass_config", "deep_window_event", "loss"):
            described.append(record)
    counts = {}
    for row in rows:
        name = functions.get(row["function_id"], f"function {row['function_id']}").split("@")[0].split("(")[0]
        metric = metrics.get(row["metric_id"], f"metric {row['metric_id']}").removeprefix(PREFIX)
        here = counts.setdefault(name, {}).setdefault(row["pc_offset"], {})
        here[metric] = here.get(metric, 0) + row["metric_value"]
    return counts, described


def ncu_module():
    tool = shutil.which("ncu")
    places = [str(pathlib.Path(tool).resolve().parent)] if tool else []
    for pattern in ("/opt/nvidia/nsight-compute/*", "/usr/local/cuda*/nsight-compute*"):
        places += sorted(glob.glob(pattern), reverse=True)
    for place in places:
        for up in ("", "..", "../..", "../../.."):
            folder = pathlib.Path(place, up, "extras/python").resolve()
            if (folder / "ncu_report.py").exists():
                sys.path.insert(0, str(folder))
                import ncu_report
                return ncu_report
    return None


def counts_by_offset(addresses):
    """{kernel: {address: {...}}} with addresses made relative to the kernel's first instruction."""
    return {kernel: {address - min(table): values for address, values in table.items()}
            for kernel, table in addresses.items() if table}


def ncu_counts_of_report(path, ncu_report):
    addresses, launches = {}, {}
    context = ncu_report.load_report(str(path))
    for r in range(context.num_ranges()):
        for a in range(context.range_by_idx(r).num_actions()):
            action = context.range_by_idx(r).action_by_idx(a)
            kernel = action.name().split("(")[0]
            launches[kernel] = launches.get(kernel, 0) + 1
            table = addresses.setdefault(kernel, {})
            for metric, (names, _) in METRICS.items():
                found = next((m for m in map(action.metric_by_name, names) if m is not None), None)
                if found is None or not found.has_correlation_ids():
                    continue
                places = found.correlation_ids()
                for i in range(found.num_instances()):
                    here = table.setdefault(places.as_uint64(i), {})
                    here[metric] = here.get(metric, 0) + found.as_uint64(i)
    return counts_by_offset(addresses), launches


def ncu_counts_of_page(text):
    addresses, launches, kernel, header = {}, {}, None, None
    for row in csv.reader(io.StringIO(text)):
        cells = [cell.strip() for cell in row]
        if len(cells) >= 2 and cells[0] in ("Kernel Name", "Function Name"):
            kernel, header = cells[1].split("(")[0].split(",")[0].strip(), None
            launches[kernel] = launches.get(kernel, 0) + 1
        elif "Source" in cells and any("Instructions Executed" in cell for cell in cells):
            header = cells
        elif kernel and header and len(cells) == len(header):
            named = dict(zip(header, cells))
            place = named.get("Address") or named.get("#") or ""
            try:
                address = int(place, 16 if place.lower().startswith("0x") else 10)
            except ValueError:
                continue
            if "Address" not in named:
                address *= 16  # a line's number: instructions are 16 bytes
            here = addresses.setdefault(kernel, {}).setdefault(address, {})
            for metric, (_, titles) in METRICS.items():
                title = next((t for t in titles if t in named), None)
                value = named.get(title, "").replace(",", "")
                if value.isdigit():
                    here[metric] = here.get(metric, 0) + int(value)
    return counts_by_offset(addresses), launches


def ncu_counts(path):
    if str(path).endswith(".ncu-rep"):
        module = ncu_module()
        if module:
            print(f"ncu report read with {module.__file__}")
            return ncu_counts_of_report(path, module)
        page = subprocess.run(["ncu", "--import", str(path), "--page", "source", "--csv", "--print-source", "sass"],
                              capture_output=True, text=True)
        if page.returncode:
            page = subprocess.run(["ncu", "--import", str(path), "--page", "source", "--csv"], capture_output=True,
                                  text=True)
        print(f"ncu's source page: exit {page.returncode}, {len(page.stdout)} characters; begins:\n{page.stdout[:600]}")
        return ncu_counts_of_page(page.stdout)
    return ncu_counts_of_page(pathlib.Path(path).read_text())


def total(table, metric):
    values = [values[metric] for values in table.values() if metric in values]
    return sum(values) if values else None


def compare_kernel(kernel, ours, theirs, metric):
    """Prints one line; the number of instructions whose counts differ."""
    pcs = sorted({pc for pc, v in theirs.items() if metric in v} | {pc for pc, v in ours.items() if metric in v})
    if total(theirs, metric) is None or total(ours, metric) is None:
        return 0, 0  # one of the two did not measure it
    # An instruction that was not executed has no row; ncu lists it with zero.
    wrong = [pc for pc in pcs if ours.get(pc, {}).get(metric, 0) != theirs.get(pc, {}).get(metric, 0)]
    print(f"  {kernel:14} {metric:44} {len(pcs):4} instructions, {len(wrong):4} differ"
          f"   sum {total(ours, metric)} / {total(theirs, metric)}")
    for pc in wrong[:5]:
        print(f"      pc {pc:#06x}: gpufl {ours.get(pc, {}).get(metric)}, ncu {theirs.get(pc, {}).get(metric)}")
    return len(pcs), len(wrong)


def figures(table, launches):
    """What the program promises, from gpufl's counts alone."""
    actual, ideal = total(table, "sectors_mem_global"), total(table, "sectors_mem_global_ideal")
    conflicts = [v["l1tex_pipe_lsu_wavefronts_mem_shared"] / v["l1tex_pipe_lsu_wavefronts_mem_shared_ideal"]
                 for v in table.values() if v.get("l1tex_pipe_lsu_wavefronts_mem_shared_ideal")]
    divergent = total(table, "branch_targets_threads_divergent")
    return {"coalescing": ideal / actual if actual and ideal is not None else None,
            "worst_conflict": max(conflicts) if conflicts else None,
            "divergent_branches": divergent / launches if divergent is not None else None}


def compare(session, expected, ncu=None):
    counts, described = gpufl_counts(session)
    for record in described:
        print("  ", json.dumps(record)[:400])
    print("gpufl counted:", {name: f"{len(table)} instructions" for name, table in counts.items()})
    if not counts:
        print("NOTHING TO COMPARE: the session holds no instruction counts")
        return 2
    failures = 0
    for kernel, promises in expected["kernels"].items():
        if kernel not in counts:
            print(f"  {kernel}: MISSING from gpufl's counts")
            failures += 1
            continue
        found = figures(counts[kernel], expected["launches"])
        for name, value in promises.items():
            holds = found[name] is not None and abs(found[name] - value) < 1e-9
            failures += not holds
            mark = "holds" if holds else "DOES NOT HOLD"
            print(f"  {kernel:14} {name:20} {found[name]} (built to be {value}) {mark}")
    if ncu:
        theirs, launches = ncu_counts(ncu)
        print("ncu profiled:", launches)
        compared = 0
        for kernel in expected["kernels"]:
            if kernel not in theirs or kernel not in counts:
                print(f"  {kernel}: not in both; ncu has {sorted(theirs)}")
                failures += 1
                continue
            if launches[kernel] != expected["launches"]:
                print(f"  {kernel}: ncu saw {launches[kernel]} launches, not {expected['launches']}")
            for metric in METRICS:
                pcs, wrong = compare_kernel(kernel, counts[kernel], theirs[kernel], metric)
                compared += pcs
                failures += wrong if metric == "inst_executed" else 0
        if not compared:
            print("NOTHING TO COMPARE: ncu's output holds no counts by instruction")
            return 2
    print("executed counts equal and all figures right" if not failures else f"{failures} FAILURES")
    return 1 if failures else 0


def run(gpufl, program, work, arguments):
    work = pathlib.Path(work)
    work.mkdir(parents=True, exist_ok=True)
    log = work / "sass-log"
    shutil.rmtree(log, ignore_errors=True)
    traced = subprocess.run([gpufl, "trace", "--engine", "SassMetrics", "-o", str(log), "--", program, *arguments],
                            capture_output=True, text=True, timeout=300, env={**os.environ})
    print(f"gpufl trace: exit {traced.returncode}\n{traced.stderr[-3000:]}")
    try:
        expected = json.loads(traced.stdout[traced.stdout.index('{"blocks"'):].splitlines()[0])
    except ValueError:
        print("the program printed no JSON:", traced.stdout[-1000:])
        return 2
    report = work / "sass.ncu-rep"
    ncu = None
    if shutil.which("ncu"):
        done = subprocess.run(["ncu", "-f", "-o", str(report), "--section", "SourceCounters", program, *arguments],
                              capture_output=True, text=True, timeout=300)
        print(f"ncu: exit {done.returncode}\n{(done.stdout + done.stderr)[-1500:]}")
        ncu = report if report.exists() else None
    else:
        print("no ncu here: only the promised figures are checked")
    sessions = [path for path in log.glob("*") if path.is_dir()] if log.exists() else []
    if len(sessions) != 1:
        print(f"{len(sessions)} sessions instead of one")
        return 2
    return compare(sessions[0], expected, ncu)


def main():
    arguments = sys.argv[1:]
    if len(arguments) >= 4 and arguments[0] == "run":
        rest = arguments[4:]
        return run(arguments[1], arguments[2], arguments[3], rest[1:] if rest[:1] == ["--"] else rest)
    if len(arguments) in (3, 4) and arguments[0] == "compare":
        return compare(arguments[1], json.loads(pathlib.Path(arguments[2]).read_text()), *arguments[3:])
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
