# SPDX-License-Identifier: Apache-2.0
"""Only one process at a time can take PC samples on a GPU: a second process does not interfere, and if other software
is sampling, or CUPTI fails for another reason, the program ends as it does without gpufl."""
import os
import subprocess
import time

from harness import FAKE_APP, GPUFL, TIMEOUT_S, Session, TestCase, environment, gpufl, main, printed_counts, sessions

PC = ["--engine", "PcSampling", "--pc-period", 13]
LONG = ("--launches", 400, "--kernel-us", 20, "--pause-us", 1000)
# Memory that CUPTI still uses cannot be freed.
WITHOUT_LEAKS = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"


def last_capabilities(session):
    return max(session.records("capture_capabilities"), key=lambda record: record["ts_ns"])


def pc_sampling_of(session):
    return next(entry for entry in last_capabilities(session)["capabilities"] if entry["feature"] == "pc_sampling")


def has_samples(directory):
    return any(Session(path).rows("profile_sample_batch") for path in sessions(directory))


class Neighbours(TestCase):
    def setUp(self):
        super().setUp()
        self.first = subprocess.Popen(
            [str(word) for word in (GPUFL, "trace", "--quiet", "-o", self.directory / "first", *PC, "--", FAKE_APP,
                                    "--until-input-ends", "--pause-us", 200)],
            env=environment(), cwd=self.directory, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.first.stdout.close)
        self.addCleanup(self.first.kill)
        until = time.monotonic() + TIMEOUT_S
        while not has_samples(self.directory / "first"):
            self.assertLess(time.monotonic(), until, "the first program has no samples")
            time.sleep(0.02)

    def test_a_second_process_goes_on_without_samples_and_names_the_first(self):
        second = self.trace("--launches", 200, options=PC)
        self.assertEqual(second.returncode, 0, second.stderr)
        session = second.session
        self.assertEqual(len(session.rows("kernel_event_batch")), second.counts["kernels"])
        self.assertEqual(session.rows("profile_sample_batch"), [])
        self.assertEqual(last_capabilities(session)["selected_engine"], "Trace")
        message = pc_sampling_of(session)["message"]
        self.assertRegex(message, r"process \d+ \(fake_app\) already samples GPU 0; only one process per GPU can take PC samples")
        self.assertIn(message, second.stderr)

        self.first.stdin.close()
        launched = printed_counts(self.first.stdout.read())["kernels"]
        self.assertEqual(self.first.wait(TIMEOUT_S), 0)
        path = sessions(self.directory / "first")[0]
        self.assertTrue(gpufl("verify", path).stdout.startswith("complete: "))
        self.assertEqual(len(Session(path).rows("kernel_event_batch")), launched)

        third = self.trace(*LONG, options=PC, directory=self.directory / "third")
        self.assert_whole(third)
        self.assertEqual(pc_sampling_of(third.session)["status"], "collected")

    def test_another_gpu_is_not_concerned(self):
        other = self.trace(*LONG, options=PC, env=environment(FAKE_MACHINE=1))
        self.assert_whole(other)
        self.assertEqual(pc_sampling_of(other.session)["status"], "collected")
        self.first.stdin.close()
        self.assertEqual(self.first.wait(TIMEOUT_S), 0)


class Trouble(TestCase):
    def session_of(self, fault, **variables):
        traced = self.trace(*LONG, options=PC, directory=self.directory / fault,
                            env=environment(FAKE_FAULTS=fault, ASAN_OPTIONS=WITHOUT_LEAKS, **variables))
        self.assertEqual(traced.returncode, 0, traced.stderr)
        self.assertEqual(traced.counts["kernels"], 400)
        return traced.session

    def losses(self, session):
        return [loss for loss in session.records("loss") if loss["reason"] == "pc_sampling_failed"]

    def test_after_a_failed_read_cupti_is_not_asked_to_disable_anything_and_no_kernel_is_missing(self):
        for call in ("2", "*"):
            with self.subTest(call):
                session = self.session_of(f"fail=cuptiPCSamplingGetData@{call}:999")
                self.assertEqual(len(session.rows("kernel_event_batch")), 400)
                self.assertEqual([loss.get("cause") for loss in self.losses(session)],
                                 ["cuptiPCSamplingGetData failed: CUPTI_ERROR_UNKNOWN (999)"])

    def test_a_read_that_never_returns_does_not_keep_the_program(self):
        session = self.session_of("fail=cuptiPCSamplingGetData@2:-1", GPUFL_EXIT_TIMEOUT_MS=None)
        self.assertIn("CUPTI did not return from reading samples", self.losses(session)[-1]["cause"])
        self.assertFalse(self.verify(session.path)["is_complete"])


if __name__ == "__main__":
    main()
