#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Every command and every piece of code in README.md and docs/ does what it says, on the look-alike GPU. Pages about
packages, systemd and containers are run by test_packaged_blocks.py.
usage: test_blocks.py [PAGE...]    with pages: those alone, and nothing about the runner"""
import os
import pathlib
import re
import sys
import tempfile
import types
import unittest

import blocks
import languages
import pages
from scratch import harness


class Pages(unittest.TestCase):
    @pages.needs_machines
    def test_every_block_does_what_it_says(self):
        found = pages.problems(pages.run_all([page for page in pages.runnable() if not pages.needs_packages(page)]))
        self.assertFalse(found, "\n\n".join(found))

    def test_the_other_pages_run_with_the_packages(self):
        self.assertTrue(any(pages.needs_packages(page) for page in pages.every()))
        sections = (harness.SOURCE / "tools/run_tests.sh").read_text()
        self.assertRegex(sections, r"(?s)\nsection_packages\(\) \{[^}]*tests/docs/test_packaged_blocks\.py")

    def test_commands_inside_of_sentences_have_the_options_that_they_name(self):
        machine = types.SimpleNamespace(run=lambda command: (harness.run(*command).stdout, 0))
        problems, count = [], 0
        for page in pages.every():
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

    @pages.needs_machines
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
        )
        good = ("```sh\nexport WORD=two\ngpufl trace -q -- python train.py\n```\n"
                "```console\n$ echo one $WORD three\none ... three\n$ gpufl verify train\ncomplete: ...\n...\n```\n"
                "```sh\ngpufl serve --data ./data\ngpufl upload ./train --server http://127.0.0.1:8080\n```\n"
                "```cuda\n__global__ void f(float *x) { x[threadIdx.x] = 1; }\n"
                "void g(float *x) { f<<<1, 32>>>(x); }\n```\n"
                "<!-- status: 3 -->\n```sh\ngpufl report ./nowhere\n```\n")
        outcomes = pages.outcomes_of("".join(text for text, _ in faults) + good)
        self.assertEqual([kind for kind, _ in outcomes], ["failed"] * len(faults) + ["executed"] * 5, outcomes)
        for (_, word), (_, output) in zip(faults, outcomes):
            self.assertIn(word, output)

    @pages.needs_machines
    def test_a_service_that_cannot_start_is_a_failure(self):
        kind, output = pages.outcomes_of("```sh\ngpufl serve --data /proc/nowhere\n```\n")[0]
        self.assertEqual(kind, "failed")
        self.assertIn("/proc/nowhere", output)

    @pages.needs_machines
    def test_nothing_that_a_page_does_as_root_reaches_the_machine_beneath(self):
        with tempfile.NamedTemporaryFile(prefix="gpufl-outside-") as outside:
            name, host = pathlib.Path(outside.name).name, f"gpufl-docs-{os.getpid()}"
            places = ["/etc", "/usr/bin", "/var/lib", "/opt", "/tmp", "/root", "/dev", "/run", harness.SOURCE,
                      harness.BUILD]
            commands = "".join(f"echo x >{place}/{name}-written\n" for place in places)
            text = (f"```sh\ntest ! -e {outside.name}\n{commands}hostname {host}\n```\n"
                    "<!-- status: 1 -->\n```sh\necho 0 >/proc/sys/kernel/panic\n```\n"
                    "<!-- status: 1 -->\n```sh\ntouch /.untouched/etc/hosts\n```\n")
            outcomes = pages.outcomes_of(text)
            self.assertEqual([kind for kind, _ in outcomes], ["executed"] * 3, outcomes)
            self.assertEqual([place for place in places if pathlib.Path(place, f"{name}-written").exists()], [])
            self.assertNotIn(host, pathlib.Path("/proc/sys/kernel/hostname").read_text())
            self.assertTrue(pathlib.Path(outside.name).exists())

    def test_a_block_that_did_not_run_is_a_problem(self):
        page = harness.SOURCE / "README.md"
        lines = [step.line for step in blocks.steps_of(page.read_text()) if step.kind == "block"]
        ran = [{"line": line, "language": "sh", "outcome": "executed", "output": ""} for line in lines]
        self.assertEqual(pages.problems({page: (ran, 0)}), [])
        self.assertEqual(pages.problems({page: (ran[1:], 0)}), [f"README.md:{lines[0]}: sh: did not run"])

    def test_instructions_that_lead_nowhere_are_refused(self):
        for text, word in (("<!-- status: 1 -->\n\nWords.\n", "expected a block"), ("<!-- skip: x -->\n", "skip"),
                           ("```sh\nls\n", "does not end"), ("<!-- file: x -->\n", "after the last comment"),
                           ("<!-- run: ls; rm -r train -->\n", "'rm'"),
                           ("<!-- run: ls\nexport A=b -->\n", "'export'")):
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
        failed = pages.problems(pages.run_all([pathlib.Path(name).resolve() for name in sys.argv[1:]]))
        sys.exit("\n\n".join(failed) if failed else 0)
    harness.main()
