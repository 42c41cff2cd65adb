# SPDX-License-Identifier: Apache-2.0
"""Recordings with a size limit, and on a disk that is almost full."""
import re

from harness import TestCase, environment, gpufl, main

REJECTED = re.compile(rb'"reason":"(log_limit|write_queue_full)","record_type":"kernel_event_batch"')


class DiskSpace(TestCase):
    def size_of(self, session):
        return sum(file.stat().st_size for file in session.path.iterdir())

    def kernels_lost(self, session, *reasons):
        losses = self.report(session.path)["completeness"]["losses"]
        return sum(loss["count"] for loss in losses
                   if loss["reason"] in reasons and loss["record_type"] == "kernel_event_batch")

    @staticmethod
    def has_lost_rows(found):
        """Whether the oldest segments lost their rows, and one of them is gone, or a loss record counts rejected rows."""
        segments = [file.name for path in found for file in path.glob("device.*.log*")]
        is_trimmed = any(name.endswith(".zst") for name in segments) and not any("000001" in name for name in segments)
        return is_trimmed or any(REJECTED.search(file.read_bytes()) for path in found for file in path.glob("system.log"))

    def test_a_session_stays_below_its_size_and_counts_what_it_dropped(self):
        traced = self.trace_until(self.has_lost_rows, "--scopes", options=("--max-size", "4M"))
        self.assertEqual(traced.returncode, 0, traced.stderr)
        session = traced.session
        self.assertLess(self.size_of(session), 4 << 20)
        verdict = self.verify(session.path)
        # Where the disk lags behind at the end, lines are missing that the shutdown record already counts. Exact numbers
        # are in test_disk_budget.c, whose disk is never late.
        self.assertLessEqual({issue["kind"] for issue in verdict["issues"]}, {"loss", "missing lines", "count mismatch"})
        kept = verdict["rows"]["kernel_event_batch"]
        # Rows are dropped, or rejected if segments are not compressed in time or the queue is full.
        lost = self.kernels_lost(session, "max_log_bytes", "log_limit", "write_queue_full")
        self.assertGreater(kept, 0)
        self.assertGreater(lost, 0)
        self.assertLessEqual(kept + lost, traced.counts["kernels"])
        text = gpufl("report", session.path).stdout
        self.assertRegex(text, "max_log_bytes|log_limit|write_queue_full")
        self.assertNotIn("(name not recorded)", text)

    def test_an_invalid_size_is_rejected_before_the_program_starts(self):
        for size in ("", "0", "4", "4X", "-5M", "1e99T"):
            with self.subTest(size):
                refused = gpufl("trace", "--max-size", size, "--", "true", cwd=self.directory)
                self.assertEqual(refused.returncode, 2)
                self.assertIn("--max-size", refused.stderr)

    def test_on_an_almost_full_disk_recording_is_paused_and_the_program_runs(self):
        traced = self.trace("--launches", 5000, env=environment(GPUFL_MIN_FREE_BYTES=1 << 62))
        self.assertEqual(traced.returncode, 0, traced.stderr)
        self.assertIn("kernels=5000", traced.stdout)
        self.assertEqual(traced.stderr.count("recording is paused"), 1)
        session = traced.session
        self.assertEqual(session.rows("kernel_event_batch"), [])
        self.assertEqual(self.kernels_lost(session, "disk_floor"), 5000)
        for loss in session.records("loss"):
            self.assertLessEqual(loss["start_ns"], loss["end_ns"])
        self.assertIsNotNone(session.first("shutdown"))
        self.assertEqual({issue["kind"] for issue in self.verify(session.path)["issues"]}, {"loss"})


if __name__ == "__main__":
    main()
