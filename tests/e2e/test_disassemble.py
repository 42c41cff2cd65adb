# SPDX-License-Identifier: Apache-2.0
"""`gpufl disassemble`, and `gpufl trace` doing it: text of instructions is added to ended sessions, once, and everything
that reads them goes on working."""
import fcntl
import os
import pathlib
import pty
import select
import struct
import subprocess
import sys
import time

from code_fixture import CUBIN, ENGINE, TEXTS, CodeTest
from harness import FAKE_APP, GPUFL, TIMEOUT_S, Session, gpufl, main, sessions


def listings(session):
    return Session(session).records("cubin_disassembly")


class Trace(CodeTest):
    def test_a_traced_run_has_the_text_of_what_was_counted(self):
        traced = self.record(tool=self.good_tool())
        self.assert_whole(traced)
        self.assertEqual(len(traced.stderr.splitlines()), 1, traced.stderr)
        (listing,) = listings(traced.sessions[0])
        self.assertEqual((listing["cubin_crc"], listing["function_name"]), (self.crc, "vector_add"))
        self.assertEqual({entry["pc"]: entry["sass"] for entry in listing["entries"]}, TEXTS)
        report = gpufl("report", "--code", "vector_add", traced.sessions[0], env=self.environment())
        self.assertIn(TEXTS[0xE0], report.stdout)

    def test_no_disassemble_starts_no_tool(self):
        traced = self.record("--no-disassemble", tool=self.good_tool())
        self.assert_whole(traced)
        self.assertEqual(self.tool_runs, 0)
        self.assertEqual(listings(traced.sessions[0]), [])

    def test_without_the_tool_there_is_nothing_to_say(self):
        if pathlib.Path("/usr/local/cuda/bin/nvdisasm").exists():
            self.skipTest("this machine has one in a place that cannot be hidden")
        traced = self.trace("--launches", 20, options=ENGINE, env=self.environment(FAKE_CUBIN=CUBIN))
        self.assert_whole(traced)
        self.assertEqual(len(traced.stderr.splitlines()), 1, traced.stderr)

    def test_a_tool_that_fails_costs_one_line_and_not_the_exit_status(self):
        traced = self.record(tool=self.tool("echo broken >&2; exit 3"))
        self.assert_whole(traced)
        self.assertIn("broken", traced.stderr.splitlines()[1])
        self.assertEqual(len(traced.stderr.splitlines()), 2, traced.stderr)

    def test_a_session_without_counted_code_starts_no_tool(self):
        traced = self.trace("--launches", 20, env=self.environment(self.good_tool()))
        self.assert_whole(traced)
        self.assertEqual(self.tool_runs, 0)


class Command(CodeTest):
    def setUp(self):
        super().setUp()
        traced = self.record()
        self.assert_whole(traced)
        self.session = traced.sessions[0]

    def disassemble(self, *arguments, tool=True, code=0):
        tool = self.good_tool() if tool is True else tool
        result = gpufl("disassemble", *arguments, self.session, env=self.environment(tool))
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result

    def assert_complete(self):
        self.assertTrue(self.verify(self.session)["is_complete"])

    def test_the_second_time_adds_nothing(self):
        self.assertIn("1 function,", self.disassemble().stdout)
        before = {path.name: path.read_bytes() for path in self.session.iterdir()}
        self.assertRegex(self.disassemble().stdout, "^nothing to disassemble: .*, 1 already disassembled\n$")
        self.assertEqual({path.name: path.read_bytes() for path in self.session.iterdir()}, before)
        self.assertEqual(len(listings(self.session)), 1)
        self.assertEqual(self.tool_runs, 1)
        self.assert_complete()

    def test_a_sealed_session_gets_one_more_sealed_file(self):
        self.assertEqual(gpufl("seal", self.session).returncode, 0)
        before = {path.name: path.read_bytes() for path in self.session.glob("*.zst")}
        self.disassemble()
        after = {path.name: path.read_bytes() for path in self.session.glob("*.zst")}
        self.assertEqual(set(after) - set(before), {"sass.000002.log.zst"})
        self.assertEqual({name: after[name] for name in before}, before)
        self.assertEqual(list(self.session.glob("*.log")), [])
        self.assert_complete()
        self.assertIn("nothing to disassemble", self.disassemble().stdout)

    def test_it_can_be_sealed_afterwards(self):
        self.disassemble()
        self.assertEqual(gpufl("seal", self.session).returncode, 0)
        self.assert_complete()

    def test_a_session_that_is_being_written_is_refused(self):
        before = {path.name: path.read_bytes() for path in self.session.iterdir()}
        with open(self.session / ".gpufl-session.lock", "r+b") as lock:
            fcntl.fcntl(lock, fcntl.F_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))
            self.assertIn("still being written", self.disassemble(code=3).stderr)
        self.assertEqual({path.name: path.read_bytes() for path in self.session.iterdir()}, before)

    def test_every_function_on_request(self):
        self.disassemble("--all")
        self.assertEqual([listing["function_name"] for listing in listings(self.session)], ["vector_add"])

    def test_a_tool_that_is_not_there_is_named(self):
        self.assertIn("GPUFL_NVDISASM", self.disassemble(tool="/nowhere/nvdisasm", code=3).stderr)
        self.assert_complete()

    def test_a_tool_that_hangs_is_ended(self):
        result = self.disassemble("--timeout-ms", 200, tool=self.tool("sleep 600"), code=1)
        self.assertIn("1 function without text", result.stderr)
        self.assertEqual(listings(self.session), [])
        self.assert_complete()

    def test_a_directory_of_sessions_is_done_as_a_whole(self):
        result = gpufl("disassemble", self.session.parent, env=self.environment(self.good_tool()))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(len(listings(self.session)), 1)

    def test_what_was_killed_stays_as_it_was(self):
        """A torn last line is missing data before and after."""
        sass = self.session / "sass.log"
        sass.write_bytes(sass.read_bytes()[:-20])
        self.assertFalse(self.verify(self.session)["is_complete"])
        self.disassemble()
        self.assertEqual(len(listings(self.session)), 1)
        self.assertFalse(self.verify(self.session)["is_complete"])
        self.assertIn("nothing to disassemble", self.disassemble().stdout)


class Terminal(CodeTest):
    """Runs in a separate terminal, whose Ctrl-C reaches all foreground processes."""
    LINE = "gpufl: disassembling · 0 of 1 function · Ctrl-C skips it"
    TAKE_TERMINAL = ("import os, sys, fcntl, termios; os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
                     "os.execv(sys.argv[1], sys.argv[1:])")

    def start(self, *arguments, env):
        self.primary, secondary = pty.openpty()
        self.addCleanup(os.close, self.primary)
        self.process = subprocess.Popen([sys.executable, "-c", self.TAKE_TERMINAL, GPUFL, *map(str, arguments)],
                                        stdin=secondary, stdout=secondary, stderr=secondary, env=env, cwd=self.directory)
        os.close(secondary)
        self.addCleanup(self.process.wait)
        self.addCleanup(self.process.kill)
        self.shown = ""

    def read_until(self, text):
        """text None: until all processes have closed the terminal."""
        deadline, written = time.monotonic() + TIMEOUT_S, self.shown.encode()
        while text is None or text not in self.shown:
            ready, _, _ = select.select([self.primary], [], [], deadline - time.monotonic())
            self.assertTrue(ready, f"not shown: {text}\n{self.shown}")
            try:
                chunk = os.read(self.primary, 4096)
            except OSError:  # the end of a terminal
                chunk = b""
            if not chunk:
                self.assertIsNone(text, self.shown)
                return
            written += chunk
            self.shown = written.decode(errors="replace")

    def press_interrupt(self):
        os.write(self.primary, b"\x03")
        self.read_until(None)
        return self.process.wait(TIMEOUT_S)

    def test_it_is_seen_and_can_be_skipped_and_the_status_stays_the_programs(self):
        log = self.directory / "log"
        self.start("trace", "-o", log, *ENGINE, "--", FAKE_APP, "--launches", 20, "--exit", 7,
                   env=self.counting(self.tool("sleep 600")))
        self.read_until(self.LINE)
        self.assertEqual(self.press_interrupt(), 7, self.shown)
        (session,) = sessions(log)
        self.assertIn(f"1 function not disassembled: interrupted; to try again: gpufl disassemble {session}", self.shown)
        self.assertTrue(self.verify(session)["is_complete"])
        result = gpufl("disassemble", session, env=self.environment(self.good_tool()))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(len(listings(session)), 1)

    def test_quiet_shows_nothing(self):
        self.start("trace", "-q", "-o", self.directory / "log", *ENGINE, "--", FAKE_APP, "--launches", 20,
                   env=self.counting(self.tool("sleep 600")))
        deadline = time.monotonic() + TIMEOUT_S
        while not self.tool_runs and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertEqual(self.press_interrupt(), 0, self.shown)
        self.assertNotIn("gpufl", self.shown)

    def test_the_command_is_ended_by_it(self):
        session = self.record().sessions[0]
        self.start("disassemble", session, env=self.environment(self.tool("sleep 600")))
        self.read_until(self.LINE)
        self.assertEqual(self.press_interrupt(), 130, self.shown)
        self.assertIn("interrupted; the session is intact; run the command again to continue", self.shown)
        self.assertTrue(self.verify(session)["is_complete"])


if __name__ == "__main__":
    main()
