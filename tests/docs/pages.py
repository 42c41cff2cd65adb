# SPDX-License-Identifier: Apache-2.0
"""Runs each page in a separate machine and reports the outcome of its blocks."""
import concurrent.futures
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import blocks
import scratch
from scratch import harness

sys.path.insert(0, str(harness.SOURCE / "tools"))
import build_book  # noqa: E402

AT_ONCE = 4
DEADLINE_S = 500
HERE = pathlib.Path(__file__).resolve().parent
# What only section `packages` of tools/run_tests.sh has: packages that are built, or tools that look at images.
OF_PACKAGES = {"packages", "docker", "kubernetes", "systemd"}


def every():
    """The pages of the book; that none is missing there is for test_book.py to see."""
    lines = (harness.SOURCE / build_book.SUMMARY).read_text().splitlines()
    return [harness.SOURCE / name for line in lines for _, name in build_book.entries_of(harness.SOURCE, line)]


def given(page):
    """What a page takes for granted."""
    return {step.text.strip() for step in blocks.steps_of(page.read_text()) if step.kind == "given"}


def needs_packages(page):
    return bool(given(page) & OF_PACKAGES)


def runnable():
    """Without pages that build, where the build beneath lies elsewhere than theirs; in CI that is an error."""
    is_elsewhere = harness.BUILD != harness.SOURCE / "build" and "CI" not in os.environ
    left_out = [page for page in every() if is_elsewhere and given(page) & {"source", "packages"}]
    for page in left_out:
        print(f"left out: {name_of(page)} builds in build/, and this build is in {harness.BUILD}")
    return [page for page in every() if page not in left_out]


def run(page, variables=None):
    """Runs a page with these variables in the runner's environment; returns its outcomes and the seconds that it took."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="gpufl-docs-") as directory:
        command = [*scratch.NAMESPACES, sys.executable, "-B", HERE / "page_run.py", page, directory]
        done = subprocess.run(command, text=True, capture_output=True, timeout=DEADLINE_S, check=False,
                              env={**os.environ, **(variables or {})})
    outcomes = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode != 0:
        outcomes.append({"line": 1, "language": "page", "outcome": "failed", "output": done.stderr[-3000:]})
    return outcomes, time.monotonic() - began


def run_all(pages, variables=None):
    """Outcomes and seconds of each; the counts are printed."""
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        results = dict(zip(pages, pool.map(run, pages, itertools.repeat(variables))))
    table_print(results)
    return results


def name_of(page):
    return str(page.relative_to(harness.SOURCE)) if page.is_relative_to(harness.SOURCE) else page.name


def problems(results):
    """Every block that failed, and every block that did not run."""
    found = []
    for page, (outcomes, _) in results.items():
        found += [f"{name_of(page)}:{one['line']}: {one['language']}: {one['output']}" for one in outcomes
                  if one["outcome"] == "failed"]
        seen = {one["line"] for one in outcomes}
        found += [f"{name_of(page)}:{step.line}: {step.language}: did not run"
                  for step in blocks.steps_of(page.read_text()) if step.kind == "block" and step.line not in seen]
    return found


def table_print(results):
    """Counts by page. `shown` are blocks of text: pictures, and what files look like."""
    kinds = ("executed", "shown", "failed")
    total = dict.fromkeys(kinds, 0)
    print(f"{'page':34}" + "".join(f"{kind:>10}" for kind in kinds) + f"{'seconds':>10}")
    for page, (outcomes, seconds) in results.items():
        counts = {kind: sum(one["outcome"] == kind for one in outcomes) for kind in kinds}
        if any(counts.values()):
            print(f"{name_of(page):34}" + "".join(f"{counts[kind]:>10}" for kind in kinds) + f"{seconds:>10.1f}")
        for kind in kinds:
            total[kind] += counts[kind]
    print(f"{'all':34}" + "".join(f"{total[kind]:>10}" for kind in kinds), flush=True)


def outcomes_of(text, variables=None):
    """(outcome, output) of each block of a page with this text."""
    with tempfile.NamedTemporaryFile("w", suffix=".md") as page:
        page.write(text)
        page.flush()
        return [(one["outcome"], one["output"]) for one in run(pathlib.Path(page.name), variables)[0]]


def machines_are_there():
    """Whether tests may create mount, PID and network namespaces."""
    script = ("mount --make-rprivate / && mount -t tmpfs own /mnt && mkdir /mnt/upper /mnt/work && "
              "mount -t overlay -o lowerdir=/etc,upperdir=/mnt/upper,workdir=/mnt/work own /etc && touch /etc/hosts")
    return os.geteuid() == 0 and subprocess.run([*scratch.NAMESPACES, "sh", "-c", script], capture_output=True,
                                                check=False).returncode == 0


needs_machines = harness.needs(machines_are_there(), "root with the right to mount")
