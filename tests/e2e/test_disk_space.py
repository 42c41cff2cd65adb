# SPDX-License-Identifier: Apache-2.0
"""Recordings with a size limit, and on a disk that is almost full."""
import subprocess
import time

from harness import FAKE_APP, GPUFL, TIMEOUT_S, Session, TestCase, environment, gpufl, main, printed_counts, sessions


class DiskSpace(TestCase):
    def size_of(self, session):
        return sum(file.stat().st_size for file in session.path.iterdir())

    def kernels_lost(self, session, *reasons):
        losses = self.report(session.path)["completeness"]["losses"]
        return sum(loss["count"] for loss in losses
                   if loss["reason"] in reasons and loss["record_type"] == "kernel_event_batch")

    def is_trimmed(self, path):
        """Whether the oldest segment of kernels was merged into the next: both have lost their rows."""
        segments = [file.name for file in path.glob("device.*.log*")]
        return any(name.endswith(".zst") for name in segments) and not any("000001" in name for name in segments)

    def record_until_rows_are_dropped(self):
        """A session with a size limit, and its number of kernels."""
        command = [GPUFL, "trace", "-o", self.directory / "log", "--max-size", "4M", "--", FAKE_APP, "--scopes",
                   "--until-input-ends"]
        with subprocess.Popen([str(word) for word in command], cwd=self.directory, text=True, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env=environment(GPUFL_EXIT_TIMEOUT_MS=60000)) as program:
            # How soon depends on the machine.
            deadline = time.monotonic() + TIMEOUT_S
            while not any(self.is_trimmed(path) for path in sessions(self.directory / "log")):
                self.assertIsNone(program.poll())
                self.assertLess(time.monotonic(), deadline, "no row was dropped")
                time.sleep(0.02)
            stdout, stderr = program.communicate(timeout=TIMEOUT_S)
        self.assertEqual(program.returncode, 0, stderr)
        return Session(sessions(self.directory / "log")[0]), printed_counts(stdout)["kernels"]

    def test_a_session_stays_below_its_size_and_counts_what_it_dropped(self):
        session, launched = self.record_until_rows_are_dropped()
        self.assertLess(self.size_of(session), 4 << 20)
        verdict = self.verify(session.path)
        # Where the disk lags behind at the end, lines are missing that the shutdown record already counts. Exact numbers
        # are in test_disk_budget.c, whose disk is never late.
        self.assertLessEqual({issue["kind"] for issue in verdict["issues"]}, {"loss", "missing lines", "count mismatch"})
        kept = verdict["rows"]["kernel_event_batch"]
        dropped = self.kernels_lost(session, "max_log_bytes")
        # Rows are also rejected if segments are not compressed in time or the queue is full.
        rejected = self.kernels_lost(session, "log_limit", "write_queue_full")
        self.assertGreater(kept, 0)
        self.assertGreater(dropped, 0)
        self.assertLessEqual(kept + dropped + rejected, launched)
        text = gpufl("report", session.path).stdout
        self.assertIn("max_log_bytes", text)
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
