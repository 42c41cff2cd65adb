# SPDX-License-Identifier: Apache-2.0
"""Tests of what the device checks read, without a GPU: python3 -m unittest discover -s tests/device"""
import json
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from bench_table import BenchTable
from line_check import differences, gpufl_lines, nvdisasm_lines
from session_log import busy_s, cosine, distribution, losses, pc_samples, rows_of, selected_engine
from slowdown_check import BELOW_NOISE, DOES_NOT_HOLD, HOLDS, difference, judge

NVDISASM = """
//--------------------- .text.one          --------------------------
\t.section\t.text.one,"ax",@progbits
\t.align\t128
one:
.text.one:
        /*0000*/                   MOV R1, c[0x0][0x28] ;
\t//## File "/src/a.cu", line 3
\t//## File ".nv_debug_ptx_txt", line 19
        /*0010*/                   S2R R0, SR_TID.X ;
\t//## File ".nv_debug_ptx_txt", line 20
        /*0020*/              @!P0 EXIT ;
\t//## File "/src/b.cuh", line 7 inlined at "/src/c.cuh", line 9
\t//## File "/src/c.cuh", line 9 inlined at "/src/a.cu", line 5
\t//## File "/src/a.cu", line 5
.L_x_1:
        /*0030*/                   BRA `(.L_x_1);
\t//## File "/src/a.cu", line 6
\t//## File "/src/x/../a.cu", line 8
        /*0040*/                   NOP;
\t.section\t.text.two,"ax",@progbits
        /*0000*/                   EXIT ;
"""
DUMPED = """.text.one\t0
.text.one\t16\t/src/a.cu:3
.text.one\t32\t/src/a.cu:3
.text.one\t48\t/src/b.cuh:7\t/src/c.cuh:9\t/src/a.cu:5
.text.one\t64\t/src/a.cu:8
.text.two\t0
"""


class Lines(unittest.TestCase):
    def test_every_place_is_read_from_nvdisasm(self):
        found = nvdisasm_lines(NVDISASM)
        self.assertEqual(found[".text.one", 0x00], [])
        self.assertEqual(found[".text.one", 0x20], [("/src/a.cu", 3)])
        self.assertEqual(found[".text.one", 0x30], [("/src/b.cuh", 7), ("/src/c.cuh", 9), ("/src/a.cu", 5)])
        self.assertEqual(found[".text.one", 0x40], [("/src/a.cu", 8)])
        self.assertEqual(found[".text.two", 0x00], [])

    def test_equal_places_do_not_differ(self):
        self.assertEqual(differences(gpufl_lines(DUMPED), nvdisasm_lines(NVDISASM), True), [])

    def test_a_wrong_line_and_a_missing_instruction_differ(self):
        ours = gpufl_lines(DUMPED.replace("a.cu:8", "a.cu:6").replace("c.cuh:9", "c.cuh:8"))
        del ours[".text.one", 16]
        theirs = nvdisasm_lines(NVDISASM)
        self.assertEqual([where[1] for where, _, _ in differences(ours, theirs, False)], [16, 64])
        self.assertEqual([where[1] for where, _, _ in differences(ours, theirs, True)], [16, 48, 64])


class Sessions(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.session = pathlib.Path(self.folder.name)
        columns = ["dt_ns", "function_id", "pc_offset", "stall_reason", "metric_value", "sample_kind"]
        lines = {"scope": [
            {"type": "dictionary_update", "function_dict": {"4": "chase(unsigned*)"}},
            {"type": "profile_sample_batch", "base_time_ns": 1000, "columns": columns,
             "rows": [[1, 4, 16, 2, 30, 0], [2, 4, 16, 3, 5, 0], [3, 4, 32, 2, 7, 1]]},
            {"type": "profile_sample_batch", "base_time_ns": 2000, "columns": columns, "delta": ["dt_ns"],
             "cols": [[1, 1], [4, 9], [48, 0], [2, 2], [1, 2], [0, 0]]},
            {"type": "capture_capabilities", "selected_engine": "Trace", "capabilities": [
                {"feature": "kernel_events", "requested": True, "status": "collected"},
                {"feature": "pc_sampling", "requested": True, "status": "skipped", "message": "no"}]}],
                 "system": [{"type": "loss", "reason": "a", "count": 2}, {"type": "loss", "reason": "a", "count": 3},
                            {"type": "loss", "reason": "b", "count": None}]}
        for channel, records in lines.items():
            text = "".join(json.dumps(record) + "\n" for record in records)
            (self.session / f"{channel}.log").write_text(text + "torn")

    def tearDown(self):
        self.folder.cleanup()

    def test_samples_of_live_and_sealed_batches_are_read(self):
        samples = pc_samples(self.session)
        self.assertEqual(distribution(samples, "stall_reason"), {"chase": {2: 31, 3: 5}, "function 9": {2: 2}})
        self.assertEqual([row["start_ns"] for row in samples], [1001, 1002, 2001, 2002])
        self.assertEqual(len(rows_of(self.session, "scope", "profile_sample_batch")[0]), 5)

    def test_a_refused_part_and_losses_are_reported(self):
        self.assertEqual(selected_engine(self.session), ("Trace", "pc_sampling skipped: no"))
        self.assertEqual(losses(self.session), {"a": 5, "b": None})


class Figures(unittest.TestCase):
    def test_cosine_of_distributions(self):
        self.assertAlmostEqual(cosine({1: 3, 2: 4}, {1: 30, 2: 40}), 1.0)
        self.assertEqual(cosine({1: 3}, {2: 4}), 0.0)
        self.assertEqual(cosine({}, {2: 4}), 0.0)

    def test_busy_time_counts_overlaps_once(self):
        self.assertEqual(busy_s([(5, 10), (0, 6), (20, 30), (22, 24)]), 20e-9)


class Slowdown(unittest.TestCase):
    def test_a_report_within_a_third_of_what_is_measured_holds(self):
        longer_s, error_s = difference([1.0, 1.1, 0.9, 1.0], [1.2, 1.3, 1.1, 1.2])
        self.assertAlmostEqual(longer_s, 0.8)
        self.assertLess(error_s, 1e-9)
        self.assertEqual(judge(4, longer_s, error_s, 0.26)[0], HOLDS)
        self.assertEqual(judge(4, longer_s, error_s, 0.14)[0], HOLDS)
        self.assertEqual(judge(4, longer_s, error_s, 0.27)[0], DOES_NOT_HOLD)
        self.assertEqual(judge(4, longer_s, error_s, 0.13)[0], DOES_NOT_HOLD)

    def test_what_is_below_noise_is_not_judged_but_bounded(self):
        longer_s, error_s = difference([1.0, 1.0, 1.0, 1.0], [1.1, 0.9, 1.05, 0.95])
        self.assertAlmostEqual(error_s, 2 * 0.0912870929)
        self.assertEqual(judge(4, longer_s, error_s, 0.002)[0], BELOW_NOISE)
        self.assertEqual(judge(4, longer_s, error_s, 0.1)[0], DOES_NOT_HOLD)
        self.assertEqual(judge(4, -0.01, 0.004, 0.01)[0], DOES_NOT_HOLD)
        self.assertEqual(judge(4, *difference([1.0], [1.5]), 0.5)[0], BELOW_NOISE)


class Programs(unittest.TestCase):
    def setUp(self):
        self.table = BenchTable("/", "/", "/")

    def test_a_program_that_hangs_is_ended_with_its_children(self):
        with self.assertRaises(subprocess.TimeoutExpired):
            self.table.run(["sh", "-c", "sleep 600 & echo started; wait"], timeout=1)
        code, lines = self.table.stream(["sh", "-c", "echo started; sleep 600 | cat"], timeout=1, is_echoed=False)
        self.assertNotEqual(code, 0)
        self.assertEqual([line for _, line in lines], ["started"])

    def test_a_step_that_is_late_leaves_its_programs_no_time(self):
        self.table.deadline = time.monotonic() - 5
        with self.assertRaises(subprocess.TimeoutExpired):
            self.table.run(["sleep", "600"], timeout=500)


if __name__ == "__main__":
    unittest.main()
