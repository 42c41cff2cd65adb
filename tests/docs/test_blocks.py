#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Every command and every piece of code in README.md and docs/ does what it says, on the look-alike GPU.
usage: test_blocks.py [PAGE...]    with pages: those alone, and nothing about the runner"""
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import types
import unittest

import blocks
import languages
import scratch
from scratch import harness

sys.path.insert(0, str(harness.SOURCE / "tools"))
import build_book  # noqa: E402

PAGES_AT_ONCE = 4
PAGE_DEADLINE_S = 500
HERE = pathlib.Path(__file__).resolve().parent


def pages_all():
    """The pages of the book; that none is missing there is for test_book.py to see."""
    lines = (harness.SOURCE / build_book.SUMMARY).read_text().splitlines()
    return [harness.SOURCE / name for line in lines for _, name in build_book.entries_of(harness.SOURCE, line)]


def namespaces():
    return [*scratch.NAMESPACES, *([] if os.geteuid() == 0 else ["--map-root-user"])]


def page_run(page):
    """What became of each block, and how long all took."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="gpufl-docs-") as directory:
        done = subprocess.run([*namespaces(), sys.executable, "-B", str(HERE / "page_run.py"), str(page), directory],
                              text=True, capture_output=True, timeout=PAGE_DEADLINE_S, check=False)
    outcomes = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode != 0:
        outcomes.append({"line": 1, "language": "page", "outcome": "failed", "output": done.stderr[-3000:]})
    return outcomes, time.monotonic() - began


def pages_run(pages):
    with concurrent.futures.ThreadPoolExecutor(PAGES_AT_ONCE) as pool:
        return dict(zip(pages, pool.map(page_run, pages)))


def name_of(page):
    return str(page.relative_to(harness.SOURCE)) if page.is_relative_to(harness.SOURCE) else page.name


def failures(page, outcomes):
    return [f"{name_of(page)}:{one['line']}: {one['language']}: {one['output']}" for one in outcomes
            if one["outcome"] == "failed"]


def table_print(results):
    """Counts by page, then each block that could not be executed, with its reason."""
    kinds = ("executed", "checked", "shown", "failed")
    total = dict.fromkeys(kinds, 0)
    print(f"{'page':34}" + "".join(f"{kind:>10}" for kind in kinds) + f"{'seconds':>10}")
    for page, (outcomes, seconds) in results.items():
        counts = {kind: sum(one["outcome"] == kind for one in outcomes) for kind in kinds}
        if any(counts.values()):
            print(f"{name_of(page):34}" + "".join(f"{counts[kind]:>10}" for kind in kinds) + f"{seconds:>10.1f}")
        for kind in kinds:
            total[kind] += counts[kind]
    print(f"{'all':34}" + "".join(f"{total[kind]:>10}" for kind in kinds))
    for page, (outcomes, _) in results.items():
        for one in outcomes:
            if one["outcome"] == "checked":
                print(f"not executed: {name_of(page)}:{one['line']}: {one['reason']}")


def namespaces_are_there():
    """Whether this machine lets a test have mounts and a network of its own."""
    script = ("mount -t tmpfs own /mnt && mkdir /mnt/upper /mnt/work && "
              "mount -t overlay -o lowerdir=/etc,upperdir=/mnt/upper,workdir=/mnt/work own /etc && touch /etc/hosts")
    return subprocess.run([*namespaces(), "sh", "-c", script], capture_output=True, check=False).returncode == 0


needs_namespaces = harness.needs(namespaces_are_there(), "mount and network namespaces (root, or user namespaces)")


class Pages(unittest.TestCase):
    @needs_namespaces
    def test_every_block_does_what_it_says(self):
        results = pages_run(pages_all())
        table_print(results)
        found = [text for page, (outcomes, _) in results.items() for text in failures(page, outcomes)]
        self.assertFalse(found, "\n\n".join(found))


    def test_commands_inside_of_sentences_have_the_options_that_they_name(self):
        machine = types.SimpleNamespace(run=lambda command: (harness.run(*command).stdout, 0))
        problems, count = [], 0
        for page in pages_all():
            text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.S | re.M)
            for span in re.findall(r"`(gpufl(?:-agent|-monitor)? [^`]+)`", text):
                count += 1
                try:
                    languages.check_options(machine, span.replace("'", "").replace("[", " ").replace("]", " ").split())
                except ValueError as problem:
                    problems.append(f"{page.name}: {span}: {problem}")
        self.assertGreater(count, 100)
        self.assertEqual(problems, [])


class Runner(unittest.TestCase):
    """The runner finds what it is there to find."""

    def outcomes(self, text):
        with tempfile.NamedTemporaryFile("w", suffix=".md") as page:
            page.write(text)
            page.flush()
            return [(one["outcome"], one["output"]) for one in page_run(pathlib.Path(page.name))[0]]

    @needs_namespaces
    def test_faults_of_every_kind_are_found_and_what_is_right_passes(self):
        faults = (
            ("```sh\nfalse\n```\n", "ended with 1"),
            ("```sh\ngpufl report --no-such-option x\n```\n", "no-such-option"),
            ("```console\n$ echo one two\none three\n```\n", "should print"),
            ("```python\nimport gpufl\ngpufl.no_such_thing()\n```\n", "no_such_thing"),
            ("```c\ngpufl_no_such_thing();\n```\n", "gpufl_no_such_thing"),
            ("```cpp\ngpufl::noSuchThing();\n```\n", "noSuchThing"),
            ("```cuda\n__global__ void f() { no_such_thing(); }\n```\n", "no_such_thing"),
            ('```json\n{"a": }\n```\n', "JSONDecodeError"),
            ("```yaml\na: [\n```\n", "Error"),
            ("```\nls\n```\n", "no rule"),
            ("<!-- skip: it needs a cluster -->\n```sh\nkubectl exec x -- gpufl serve --no-such\n```\n", "no-such"),
            ("<!-- skip: it takes long -->\n```sh\nmake no_such_target\n```\n", "no_such_target"),
        )
        good = ("```sh\nexport WORD=two\ngpufl trace -q -- python train.py\n```\n"
                "```console\n$ echo one $WORD three\none ... three\n$ gpufl verify train\ncomplete: ...\n...\n```\n"
                "```sh\ngpufl serve --data ./data\ngpufl upload ./train --url http://127.0.0.1:8080\n```\n"
                "```cuda\n__global__ void f(float *x) { x[threadIdx.x] = 1; }\n"
                "void g(float *x) { f<<<1, 32>>>(x); }\n```\n"
                "<!-- status: 3 -->\n```sh\ngpufl report ./nowhere\n```\n")
        outcomes = self.outcomes("".join(text for text, _ in faults) + good)
        self.assertEqual([kind for kind, _ in outcomes], ["failed"] * len(faults) + ["executed"] * 5, outcomes)
        for (_, word), (_, output) in zip(faults, outcomes):
            self.assertIn(word, output)

    @needs_namespaces
    def test_a_service_that_cannot_start_is_a_failure(self):
        kind, output = self.outcomes("```sh\ngpufl serve --data /proc/nowhere\n```\n")[0]
        self.assertEqual(kind, "failed")
        self.assertIn("/proc/nowhere", output)

    def test_instructions_that_lead_nowhere_are_refused(self):
        for text, word in (("<!-- skip: x -->\n\nWords.\n", "none"), ("<!-- skipp: x -->\n", "skipp"),
                           ("```sh\nls\n", "does not end"), ("<!-- skip: x -->\n", "does not follow")):
            with self.assertRaises(blocks.PageError) as caught:
                blocks.steps_of(text)
            self.assertIn(word, str(caught.exception))

    def test_dots_stand_for_lines_and_for_text(self):
        for wanted, got, is_same in (("a\n...\nd", "a\nb\nc\nd", True), ("a ... c", "a b c", True),
                                     ("a [1]", "a [1]", True), ("a [1]", "a 1", False), ("a\n...", "a", True),
                                     ("a", "a\nb", False)):
            self.assertEqual(languages.lines_match(wanted.split("\n"), got.split("\n")), is_same, wanted)


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1].endswith(".md"):
        chosen = pages_run([pathlib.Path(name).resolve() for name in sys.argv[1:]])
        table_print(chosen)
        found = [text for page, (outcomes, _) in chosen.items() for text in failures(page, outcomes)]
        sys.exit("\n\n".join(found) if found else 0)
    harness.main()
