# SPDX-License-Identifier: Apache-2.0
"""Runs the scripts for GPU machines on the fake GPU: they write the GEMM page and record the demo's sessions. The
compiler is a fake too, so the figures are meaningless; the test checks that each figure is in its place."""
import json
import os
import re
import stat
import subprocess
import sys
import tarfile
import unittest

from harness import BUILD, FAKES, GPUFL, SANITIZERS, SOURCE, TestCase, environment, gpufl, main, run

DEVICE = SOURCE / "tests/device"
TIMEOUT_S = 300
STEPS = ("naive", "coalesced", "shared_tile", "register_tile", "conflict_free", "double_buffer", "tensor_core")


@unittest.skipIf(any(SANITIZERS), "a stand-in compiler makes programs without sanitizers")
class Scripts(TestCase):
    def setUp(self):
        super().setUp()
        program, tools = self.directory / "program", self.directory / "tools"
        built = run("cc", "-std=c17", "-D_GNU_SOURCE", f"-I{SOURCE / 'tests/fakes'}",
                    SOURCE / "tests/e2e/story_program.c", "-o", program, f"-L{FAKES}", "-l:libcudart.so.13",
                    "-l:libcuda.so.1", "-ldl", f"-Wl,-rpath,{FAKES}")
        self.assertEqual(built.returncode, 0, built.stderr)
        tools.mkdir()
        compiler = tools / "nvcc"
        compiler.write_text(f'#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\nexec cp {program} "$2"\n')
        compiler.chmod(compiler.stat().st_mode | stat.S_IXUSR)
        for name in ("work", "out"):
            (self.directory / name).mkdir()
        self.env = environment(PATH=f"{tools}:{os.environ['PATH']}", TMPDIR=self.directory, GPUFL_DEEP_COUNTING_MS=60,
                               GPUFL_DEEP_SAMPLING_MS=120)

    def script(self, name, **variables):
        """Its table: {what: (value, whether it holds)}."""
        command = [sys.executable, "-B", DEVICE / name, BUILD, self.directory / "work", self.directory / "out"]
        result = subprocess.run(command, env={**self.env, **variables}, cwd=self.directory, text=True,
                                capture_output=True, timeout=TIMEOUT_S, check=False)
        self.assertIn(result.returncode, (0, 1), result.stdout + result.stderr)
        rows = re.findall(r"^\| (.*?) \| (.*) \| .*? \| (holds|DOES NOT HOLD|) \|$", result.stdout, re.M)
        self.assertTrue(rows, result.stdout + result.stderr)
        return {what.strip(): (value, mark) for what, value, mark in rows}, result.stdout + result.stderr

    def test_the_gemm_page_has_every_figure(self):
        rows, text = self.script("gemm_story.py", SIZE="1024", DEEP_SIZE="1024", DEEP_S="0.4")
        self.assertEqual(rows["the page gemm.md"][1], "holds", text)
        page = (self.directory / "out/gemm.md").read_text()
        self.assertNotIn("@@", page)
        self.assertNotIn("not measured", page)
        figures = json.loads((self.directory / "out/gemm_figures.json").read_text())
        # The properties of the fake's kernels, as the reports show them.
        self.assertEqual([figures[f"{step}.registers"] for step in STEPS], ["32", "32", "32", "94", "90", "127", "96"])
        self.assertEqual(figures["tensor_core.shared"], "37.0 KiB")
        self.assertEqual(figures["coalesced.speedup"], "2.00")
        self.assertIn("| [naive](#1-naive) | 0.80 | 1.25 | | 100 % | warps | ", page)
        self.assertNotIn(str(self.directory), page)

    def all_steps(self, *steps, **variables):
        result = subprocess.run([DEVICE / "all.sh", BUILD, self.directory / "work", self.directory / "out", *steps],
                                env={**self.env, "CUDA_HOME": str(self.directory), **variables}, cwd=self.directory,
                                text=True, capture_output=True, timeout=TIMEOUT_S, check=False)
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)  # nothing holds everything on a fake GPU
        return result.stdout

    def test_all_steps_go_on_after_a_failure_and_say_what_remains(self):
        listed = subprocess.run([DEVICE / "all.sh", "list"], text=True, capture_output=True, check=True).stdout
        names = [line.split()[0] for line in listed.splitlines()]
        self.assertIn(f"-- {len(names)} steps remain: {' '.join(names)};", self.all_steps(LIMIT_S="12"))
        output = self.all_steps("deep-records", "gemm-story", SIZE="1024", DEEP_SIZE="1024", DEEP_S="0.2")
        self.assertRegex(output,
                         r"(?s)-- deep-records: exit 1 .*-- gemm-story: exit 1 .*-- 0 steps remain: none; 2 did")
        table = (self.directory / "out/table.txt").read_text()
        self.assertRegex(table, r"(?s)## deep-records: exit 1 .*\n\| .*## gemm-story: exit 1 .*\n\| the page gemm")
        self.assertTrue((self.directory / "out/gemm.md").is_file())
        with tarfile.open(self.directory / "out/files.tar.gz") as archive:
            self.assertLessEqual({"log-deep-records", "log-gemm-story", "out-gemm-story/gemm_figures.json"},
                                 set(archive.getnames()))
        # Finished steps are not repeated.
        left = [name for name in names if name not in ("deep-records", "gemm-story")]
        self.assertIn(f"-- {len(left)} steps remain: {' '.join(left)};", self.all_steps(LIMIT_S="12"))

    def test_the_demo_shows_what_was_recorded_for_it_after_unpacking(self):
        rows, text = self.script("record_demo.py", STEPS="gemm,counts,pipeline,kernels,scopes,pack", DEEP_ROUNDS="300",
                                 SCOPE_ROUNDS="60", GPU="fake")
        names = {"fake-gemm-deep": "Deep", "fake-sass-kernels": "SassMetrics", "fake-pipeline": "Trace",
                 "fake-gemm-kernels": "RangeProfiler", "fake-gemm-scopes": "RangeProfiler"}
        for name, engine in names.items():
            self.assertEqual(rows[f"{name}: {engine}"][1], "holds", text)
        for what in ("steps sampled and counted", "kernels with metrics", "scopes with metrics"):
            self.assertEqual(rows[what][1], "holds", text)
        self.assertEqual(rows["the demo's sessions together"][1], "holds", text)

        installed = self.directory / "installed"
        recorded = installed / "share/gpufl/examples/recorded"
        recorded.mkdir(parents=True)
        (installed / "bin").mkdir()
        (installed / "lib").symlink_to(BUILD / "lib")
        with tarfile.open(self.directory / "out/recorded.tar.gz") as archive:
            archive.extractall(recorded)
        page = (recorded / "README.md").read_text()
        for name in names:
            self.assertEqual(gpufl("verify", recorded / name).returncode, 0)
            self.assertIn(f"`{name}`: `gpufl trace --engine ", page)
        self.assertIn("`h200-training`", page)
        (installed / "bin/gpufl").write_bytes(GPUFL.read_bytes())
        (installed / "bin/gpufl").chmod(0o755)
        result = run(installed / "bin/gpufl", "demo", "--once", "--port", 0,
                     env=environment(library_path=self.directory, TMPDIR=self.directory))
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertEqual(len(re.findall(r"^  session  ", result.stdout, re.M)), len(names), result.stdout)


if __name__ == "__main__":
    main()
