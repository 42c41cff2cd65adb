# SPDX-License-Identifier: Apache-2.0
"""Records, on a real GPU, the sessions that `gpufl demo` shows: record_demo.py BUILD_DIR WORK_DIR OUT_DIR

OUT_DIR/recorded.tar.gz holds a folder for each session, sealed and verified, and README.md, which says how each was
made: unpacked over examples/recorded it is all that the demo needs. STEPS: gemm,counts,pipeline,kernels,scopes,
training,pack. GPU (h200): how the folders' names begin. Exit 1 when a line of the table does not hold."""
import datetime
import os
import pathlib
import shutil
import sys
import tarfile

from bench_table import BenchTable
from example_build import SOURCES, build_gemm, build_pipeline, build_sass_kernels, copy_source

ROOT = pathlib.Path(__file__).resolve().parents[2]
RECORDED = ROOT / "examples/recorded"
GPU = os.environ.get("GPU", "h200")
TOGETHER_BYTES_MAX = 10_000_000
TRAIN_STEPS = os.environ.get("TRAIN_STEPS", "60")
GEMM_STEPS = ("naive", "coalesced", "shared_tile", "register_tile", "conflict_free", "double_buffer", "tensor_core")
# Often enough for every window and pass to see every step.
DEEP_ROUNDS, SCOPE_ROUNDS = os.environ.get("DEEP_ROUNDS", "300"), os.environ.get("SCOPE_ROUNDS", "120")
table = BenchTable(*sys.argv[1:4])
WORK, OUT, GPUFL = table.work, table.out, table.gpufl
say = table.say
KEPT = WORK / "recorded"


def record(name, engine, command, shown, options=(), env=None, timeout=60):
    """Traces, seals and verifies; the report of what lies in the demo's folder then."""
    result, sessions = table.trace(command, SOURCES / f"r-{name}", env, timeout, ("--engine", engine, *options))
    if result.returncode or len(sessions) != 1:
        raise RuntimeError(f"{name}: exit {result.returncode}, {len(sessions)} sessions: {result.stderr[-400:]}")
    print("     " + "\n     ".join(result.stderr.strip().splitlines()[-4:]), flush=True)
    kept = KEPT / f"{GPU}-{name}"
    shutil.rmtree(kept, ignore_errors=True)
    shutil.copytree(sessions[0], kept, ignore=shutil.ignore_patterns(".*"))
    sealed = table.run([GPUFL, "seal", kept])
    verified = table.run([GPUFL, "verify", kept])
    report = table.report(kept)
    granted = report["session"]["engine"]
    verdict = f"{verified.stdout}{verified.stderr}\n".lstrip().split("\n")[0]
    say(f"{kept.name}: {engine}", f"{granted}, {folder_bytes(kept) / 1e3:.0f} kB, {verdict}"[:150],
        "granted, sealed, complete", granted == engine and sealed.returncode == 0 and verified.returncode == 0)
    facts = report["session"]
    (KEPT / f"{kept.name}.txt").write_text(
        f"`{kept.name}`: `gpufl trace --engine {engine} {' '.join(options)} -- {shown}`\n"
        f"on one {report['gpus'][0]['name']} (driver {facts['driver_version']}, CUDA {facts['cuda_version']}), "
        f"{datetime.date.today().isoformat()}, sealed with `gpufl seal`.\n".replace("  ", " "))
    archive_write()  # each time: whoever is ended early leaves what it has
    return report


def kept_folders():
    return sorted(path for path in KEPT.iterdir() if path.is_dir() and (KEPT / f"{path.name}.txt").exists())


def archive_write():
    """OUT_DIR/recorded.tar.gz, with the page that is there already and a paragraph for each new session."""
    known = {path.name: (KEPT / f"{path.name}.txt").read_text() for path in kept_folders()}
    paragraphs = [text for text in (RECORDED / "README.md").read_text().rstrip("\n").split("\n\n")
                  if not any(text.startswith(f"`{name}`") for name in known)]
    (KEPT / "README.md").write_text("\n\n".join([*paragraphs, *(text.rstrip("\n") for text in known.values())]) + "\n")
    archive = OUT / "recorded.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        for path in [KEPT / "README.md", *kept_folders()]:
            tar.add(path, arcname=path.name)
    return archive


def folder_bytes(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def gemm_arguments(rounds, repeat="1", size="1024"):
    return ["--size", size, "--warmup", "0", "--repeat", repeat, "--rounds", rounds, "--no-check", *GEMM_STEPS]


def gemm():
    program, _ = build_gemm(table)
    arguments = gemm_arguments(DEEP_ROUNDS)
    report = record("gemm-deep", "Deep", [program, *arguments], f"gemm {' '.join(arguments)}", ("--name", "gemm"),
                    {"GPUFL_DEEP_SAMPLING_MS": os.environ.get("GPUFL_DEEP_SAMPLING_MS", "1000")}, 100)
    deep = report.get("deep") or {}
    is_step = lambda name: "gemm_" in (name or "")
    sampled = {one["name"] for one in (deep.get("stalls") or {}).get("functions", []) if is_step(one["name"])}
    counted = {line["function"] for line in deep.get("lines", []) if line["counters"] and is_step(line["function"])}
    instructions = [one for line in deep.get("lines", []) for one in line["instructions"]]
    texts = sum(not one["is_raw"] and bool(one["sass"]) for one in instructions)
    sources = sum(line["source"] is not None for line in deep.get("lines", []))
    modules = sum(one["is_stored"] for one in deep.get("code_objects", []))
    say("  steps sampled and counted", f"{len(sampled)} and {len(counted)} of {len(GEMM_STEPS)}", "all",
        len(sampled) == len(counted) == len(GEMM_STEPS))
    say("  code", f"{modules} modules stored, {texts} instructions as text, {sources} lines with their source",
        "some of each", bool(modules and texts and sources))


def counts():
    program = build_sass_kernels(table)
    report = record("sass-kernels", "SassMetrics", [program, "--launches", "20"], "sass_kernels --launches 20",
                    ("--name", "sass_kernels"))
    lines = [line for line in (report.get("deep") or {}).get("lines", []) if line["counters"]]
    say("  lines with counts", len(lines), "> 0", bool(lines))


def pipeline():
    program = build_pipeline(table)
    report = record("pipeline", "Trace", [program, "40"], "pipeline 40", ("--name", "pipeline", "--memory"))
    launched, copied = report["completeness"]["kernels"], sum(one["calls"] for one in report["copies"])
    say("  work", f"{launched} kernels, {copied} copies, {len(report['scopes'])} scopes", "some of each",
        bool(launched and copied and report["scopes"]))


def ranges(name, mode, program, arguments, wanted):
    report = record(name, "RangeProfiler", [program, *arguments], f"gemm {' '.join(arguments)}",
                    ("--name", "gemm", "--range-mode", mode, "--range-metrics", "overview,roofline"), None, 120)
    entries = (report.get("deep") or {}).get("metrics", [])
    whole = {entry.get(wanted) for entry in entries if entry["metrics"] and not entry["incomplete"]}
    steps = [step for step in GEMM_STEPS if any(step in (one or "") for one in whole)]
    reasons = [entry["reason"] for entry in entries if entry["reason"]]
    say(f"  {wanted}s with metrics", f"{len(steps)} of {len(GEMM_STEPS)} steps {reasons[:1] or ''}"[:150], "all",
        len(steps) == len(GEMM_STEPS))


def kernels():
    ranges("gemm-kernels", "kernel", build_gemm(table)[0], gemm_arguments("1", "2", "2048"), "kernel")


def scopes():
    ranges("gemm-scopes", "scope", build_gemm(table)[0], gemm_arguments(SCOPE_ROUNDS), "scope")


def training():
    script = copy_source(ROOT / "examples/pytorch_training.py")
    report = record("training-pm", "Trace", ["python3", script, TRAIN_STEPS],
                    f"python3 examples/pytorch_training.py {TRAIN_STEPS}",
                    ("--name", "pytorch_training", "--pm", "overview", "--memory"), None, 90)
    sampled = (report.get("deep") or {}).get("counters_over_time", [])
    counts_found = {"kernels": report["completeness"]["kernels"], "scopes": len(report["scopes"]),
                    "metrics over time": len(sampled), "kinds of waits": len(report["syncs"]),
                    "kinds of memory": len(report["memory"])}
    say("  work", ", ".join(f"{count} {what}" for what, count in counts_found.items()), "some of each",
        all(counts_found.values()))


def pack():
    folders = kept_folders()
    there = [path for path in RECORDED.iterdir() if path.is_dir() and path.name not in {one.name for one in folders}]
    together = sum(folder_bytes(path) for path in [*folders, *there])
    archive = archive_write()
    names = ", ".join(path.name for path in folders)
    say("the demo's sessions together", f"{together / 1e6:.2f} MB in {len(folders) + len(there)} sessions; "
        f"{archive.name} {archive.stat().st_size / 1e6:.2f} MB: {names}", "< 10 MB",
        together < TOGETHER_BYTES_MAX and bool(folders))


STEPS = {"gemm": gemm, "counts": counts, "pipeline": pipeline, "kernels": kernels, "scopes": scopes,
         "training": training, "pack": pack}
LIMITS_S = {"gemm": 110, "counts": 60, "pipeline": 60, "kernels": 120, "scopes": 120, "training": 100, "pack": 30}
if __name__ == "__main__":
    KEPT.mkdir(parents=True, exist_ok=True)
    table.run_steps(STEPS, os.environ.get("STEPS", ",".join(STEPS)).split(","), LIMITS_S)
