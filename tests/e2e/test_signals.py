# SPDX-License-Identifier: Apache-2.0
"""Signals that end a traced program: `gpufl trace` receives them first and has the session closed."""
import signal
import subprocess
import sys

from harness import GPUFL, SOURCE, Session, TestCase, environment, main, sessions

# Prints when it is working; the test ends it.
PYTHON_WORK = f"""
import sys, time
sys.path.insert(0, {str(SOURCE / "tests" / "python")!r})
from fake_cuda import Gpu
gpu = Gpu("k")
gpu.launch("k", 50)
gpu.wait()
print("at work", flush=True)
while True:
    time.sleep(0.01)
"""


class Ended(TestCase):
    def end(self, number, program, *options):
        """Sends the signal to `gpufl trace` when the program has printed its first line; the launcher's output."""
        command = [GPUFL, "trace", "-o", self.directory / "log", *options, "--", sys.executable, "-B", "-c", program]
        process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, env=environment(), cwd=self.directory)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "at work\n")
        process.send_signal(number)
        output, errors = process.communicate(timeout=600)
        return process.returncode, output, errors

    def assert_complete(self, kernels):
        found = sessions(self.directory / "log")
        self.assertEqual(len(found), 1)
        answer = self.verify(found[0])
        self.assertTrue(answer["is_complete"], answer)
        self.assertFalse(answer["is_synthetic_shutdown"], answer)
        self.assertEqual(len(Session(found[0]).rows("kernel_event_batch")), kernels)

    def test_a_program_that_a_signal_kills_leaves_a_complete_session(self):
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
            with self.subTest(signal=number.name):
                self.setUp()
                code, _, errors = self.end(number, PYTHON_WORK)
                self.assertEqual(code, 128 + number, errors)
                self.assert_complete(50)

    def test_a_program_that_handles_the_signal_is_recorded_to_its_end(self):
        program = PYTHON_WORK.replace("while True:", """
import signal
def go_on(number, frame):
    gpu.launch("k", 7)
    gpu.wait()
    print("went on", flush=True)
    sys.exit(3)
signal.signal(signal.SIGTERM, go_on)
print("at work", flush=True)
while True:""").replace('print("at work", flush=True)\n\n', "", 1)
        code, output, errors = self.end(signal.SIGTERM, program)
        self.assertEqual((code, output), (3, "went on\n"), errors)
        self.assert_complete(57)

    def test_a_program_without_a_session_gets_its_signal_at_once(self):
        code, _, errors = self.end(signal.SIGTERM, "print('at work', flush=True)\nimport time\ntime.sleep(60)")
        self.assertEqual(code, 128 + signal.SIGTERM, errors)
        self.assertEqual(sessions(self.directory / "log"), [])

    def test_a_session_that_cannot_be_closed_does_not_keep_the_signal(self):
        program = PYTHON_WORK.replace("import sys, time", "import os, sys, time")
        variables = environment(FAKE_FAULTS="fail=cuptiActivityFlushAll@*:-1", GPUFL_EXIT_TIMEOUT_MS="300")
        process = subprocess.Popen([str(GPUFL), "trace", "-o", str(self.directory / "log"), "--", sys.executable, "-B", "-c",
                                    program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=variables,
                                   cwd=self.directory)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "at work\n")
        process.terminate()
        _, errors = process.communicate(timeout=600)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM, errors)


if __name__ == "__main__":
    main()
