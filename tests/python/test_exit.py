#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How Python programs end: interrupted, with a lower engine than they asked for, with a warning for each difference."""
import signal
import sys

import fixture
import harness

TRACE = "profiling_engine=gpufl.ProfilingEngine.Trace"
WORK = "from fake_cuda import Gpu\ngpu = Gpu('k')\ngpu.launch('k', 50)\n"
# Raised as the terminal's Ctrl-C is, at a known place of the program.
INTERRUPT = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nwhile True: pass\n"


class Ended(fixture.TestCase):
    def check(self, session):
        answer = self.verify(session)
        self.assertTrue(answer["is_complete"], answer)
        self.assertEqual(len(harness.Session(session).rows("kernel_event_batch")), 50)

    def test_ctrl_c_in_a_program_that_imports_gpufl_leaves_a_complete_session(self):
        result = self.program(f"import gpufl\ngpufl.init('a', 'log', {TRACE})\n" + WORK + INTERRUPT)
        self.assertEqual(result.returncode, -signal.SIGINT, result.stderr)
        self.assertIn("KeyboardInterrupt", result.stderr)
        self.check(harness.sessions(self.directory / "log")[0])

    def test_ctrl_c_after_two_inits_leaves_a_complete_session(self):
        result = self.program(f"import gpufl\ngpufl.init('a', 'log', {TRACE})\ngpufl.init('a', 'log', {TRACE})\n" + WORK +
                              INTERRUPT)
        self.assertEqual(result.returncode, -signal.SIGINT, result.stderr)
        self.check(harness.sessions(self.directory / "log")[0])

    def test_ctrl_c_under_gpufl_trace_leaves_a_complete_session(self):
        program = self.directory / "program.py"
        program.write_text(fixture.PROGRAM_HEAD + WORK + INTERRUPT)
        traced = self.trace("-B", program, app=sys.executable)
        self.assertEqual(traced.returncode, 128 + signal.SIGINT, traced.stderr)
        self.assertIn("KeyboardInterrupt", traced.stderr)
        self.check(traced.sessions[0])

    def test_a_program_that_ends_by_quick_exit_leaves_a_complete_session(self):
        result = self.program(f"import ctypes, gpufl\ngpufl.init('a', 'log', {TRACE})\n" + WORK +
                              "gpu.wait()\nctypes.CDLL(None).quick_exit(7)")
        self.assertEqual(result.returncode, 7, result.stderr)
        self.check(harness.sessions(self.directory / "log")[0])


class Differences(fixture.TestCase):
    LATE = ("import gpufl\ngpufl.init('a', 'log', profiling_engine=gpufl.ProfilingEngine.PcSampling)\n" + WORK +
            "gpu.wait()\nprint(gpufl.active_engine().name)\n")
    FAULT = "fail=cuptiPCSamplingEnable@*:35"

    def test_an_engine_that_is_refused_later_is_known_at_once_and_warned_of_at_the_end(self):
        for end in ("gpufl.shutdown()", ""):
            with self.subTest(end=end):
                result = self.program(self.LATE + end, FAKE_FAULTS=self.FAULT)
                self.assertEqual((result.returncode, result.stdout), (0, "Trace\n"), result.stderr)
                self.assertIn("RuntimeWarning: gpufl: asked for PcSampling, running Trace", result.stderr)

    def test_GPUFL_QUIET_silences_the_warnings(self):
        result = self.program(self.LATE, FAKE_FAULTS=self.FAULT, GPUFL_QUIET="1")
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "Trace\n", ""))


if __name__ == "__main__":
    fixture.main()
