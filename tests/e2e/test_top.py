# SPDX-License-Identifier: Apache-2.0
"""gpufl top on the look-alike NVML: one page, and a terminal that is restored."""
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

from harness import FAKE_APP, GPUFL, TestCase, environment, gpufl, main

DEADLINE_S = 600


class Screen:
    """gpufl top in a terminal of the given size; `lines` is the visible text."""

    def __init__(self, *arguments, rows=24, columns=100, env=None):
        self.primary, secondary = pty.openpty()
        self.resize(rows, columns)
        self.before = termios.tcgetattr(secondary)
        self.secondary = secondary
        self.process = subprocess.Popen([GPUFL, "top", *map(str, arguments)], stdin=secondary, stdout=secondary,
                                        stderr=subprocess.PIPE, env=env or environment(), start_new_session=True)
        self.written = b""
        self.lines = {}

    def resize(self, rows, columns):
        fcntl.ioctl(self.primary, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(DEADLINE_S)
        self.process.stderr.close()
        os.close(self.primary)
        os.close(self.secondary)

    def _read(self, timeout):
        ready, _, _ = select.select([self.primary], [], [], timeout)
        if not ready:
            return
        self.written += os.read(self.primary, 65536)
        whole = self.written.rsplit(b"\033[K", 1)[0].decode(errors="replace")
        screen = whole.rsplit("\033[2J", 1)[-1]
        self.lines = {}
        for row, text in re.findall(r"\033\[(\d+);1H(.*?)(?=\033\[K|\033\[\d+;1H|$)", screen, re.S):
            self.lines[int(row)] = re.sub(r"\033\[[0-9;?]*[a-zA-Z]", "", text)

    def wait_for(self, condition):
        deadline = time.monotonic() + DEADLINE_S
        while not condition(self):
            if time.monotonic() > deadline:
                raise AssertionError(f"the screen stayed\n{self.text()}\n{self.written[-2000:]!r}")
            self._read(0.2)

    def text(self):
        return "\n".join(self.lines.get(row, "") for row in range(1, max(self.lines, default=0) + 1))

    def press(self, keys):
        os.write(self.primary, keys.encode())

    def ended(self):
        deadline = time.monotonic() + DEADLINE_S
        while self.process.poll() is None and time.monotonic() < deadline:
            self._read(0.1)
        while select.select([self.primary], [], [], 0)[0]:
            self._read(0)
        return self.process.wait(1)


class Once(TestCase):
    def test_a_page_shows_gpus_and_processes(self):
        result = gpufl("top", "--once", env=environment(FAKE_GPU_COUNT=2))
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        lines = result.stdout.splitlines()
        self.assertRegex(lines[0], r"^gpufl top · \S+ · .*NVIDIA driver 580")
        self.assertRegex(result.stdout, r"(?m)^  0  NVIDIA H200 +\d+ % +.* of 140\.4 GiB .* of 700 W +\d+ °C +\d+$")
        self.assertRegex(result.stdout, r"(?m)^  1  NVIDIA H200 ")
        self.assertRegex(result.stdout, r"(?m)^ +\d+  0 +1\.00 GiB +gpufl$")
        self.assertRegex(result.stdout, r"(?m)^ +1  0 +– ")  # the driver does not report the memory
        self.assertLessEqual(max(map(len, lines)), 100)
        self.assertNotIn("\033", result.stdout)
        self.assertEqual(gpufl("top").stdout.splitlines()[2], lines[2])  # no terminal: the same page

    def test_sorting_is_as_asked(self):
        def pids(order):
            text = gpufl("top", "--once", "--sort", order).stdout
            return [int(pid) for pid in re.findall(r"(?m)^ +(\d+)  0 ", text)]
        self.assertEqual(pids("pid")[0], 1)
        self.assertEqual(pids("memory")[-1], 1)

    def test_json_has_the_same_values_and_no_zero_for_unknown_ones(self):
        answer = json.loads(gpufl("top", "--json").stdout)
        gpu = answer["gpus"][0]
        self.assertEqual(gpu["name"], "NVIDIA H200")
        self.assertIsNone(gpu["voltage_mv"])
        self.assertEqual(answer["traced"], [])
        self.assertIn(1, [process["pid"] for process in gpu["processes"]])

    def test_without_a_gpu_it_says_why(self):
        result = gpufl("top", "--once", env=environment(library_path=self.directory))
        self.assertEqual(result.returncode, 0)
        text = " ".join(result.stdout.split())
        self.assertIn("no GPUs: ", text)
        self.assertIn("correct or unset the variable", text)

    def test_a_traced_program_shows_its_kernels(self):
        app = subprocess.Popen([GPUFL, "trace", "-o", self.directory / "log", "--", FAKE_APP, "--run-ms", "600000",
                                "--pause-us", "500"], env=environment(), stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
        try:
            deadline = time.monotonic() + DEADLINE_S
            text = ""
            while "\n" not in text:
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.05)
                text = "".join(path.read_text() for path in self.directory.glob("log/*/device.log"))
            start = json.loads(text.splitlines()[0])
            while True:
                answer = json.loads(gpufl("top", "--json", env=environment(FAKE_NVML_PID=start["pid"])).stdout)
                traced = answer["traced"]
                if traced and traced[0]["kernels_per_s"]:
                    break
                self.assertLess(time.monotonic(), deadline, answer)
            self.assertEqual((traced[0]["pid"], traced[0]["session_id"]), (start["pid"], start["session_id"]))
            self.assertTrue(traced[0]["top_kernel"])
            page = gpufl("top", "--once", env=environment(FAKE_NVML_PID=start["pid"])).stdout
            self.assertIn(" fake_app ", page)
        finally:
            app.terminate()
            app.wait(DEADLINE_S)


class Live(TestCase):
    def screen(self, *arguments, **options):
        screen = Screen("--interval", 100, *arguments, **options)
        self.addCleanup(screen.close)
        screen.wait_for(lambda one: "NVIDIA H200" in one.text() and "q quits" in one.text())
        return screen

    def assert_restored(self, screen):
        self.assertTrue(screen.written.endswith(b"\033[?25h\033[?1049l"), screen.written[-100:])
        self.assertEqual(termios.tcgetattr(screen.secondary), screen.before)

    def test_it_draws_only_what_changed_and_q_restores_the_terminal(self):
        screen = self.screen()
        self.assertTrue(screen.written.startswith(b"\033[?1049h\033[?25l"))
        screen.wait_for(lambda one: one.written.count(b"\033[1;1H") >= 4)  # the clock advanced
        self.assertEqual(screen.written.count(b"q quits"), 1)
        self.assertEqual(screen.written.count(b"GPU  name"), 1)
        screen.press("q")
        self.assertEqual(screen.ended(), 0)
        self.assert_restored(screen)

    def test_keys_sort(self):
        screen = self.screen()
        screen.press("p")
        screen.wait_for(lambda one: "by pid" in one.text())
        rows = re.findall(r"(?m)^ +(\d+)  0 ", screen.text())
        self.assertEqual(rows, sorted(rows, key=int))
        screen.press("q")
        self.assertEqual(screen.ended(), 0)

    def test_a_resized_terminal_is_redrawn(self):
        screen = self.screen()
        screen.resize(12, 60)
        os.kill(screen.process.pid, signal.SIGWINCH)
        screen.wait_for(lambda one: "q quits" in one.lines.get(12, ""))
        self.assertLessEqual(max(map(len, screen.lines.values())), 60)
        self.assertLessEqual(max(screen.lines), 12)
        screen.press("q")
        self.assertEqual(screen.ended(), 0)

    def test_signals_restore_the_terminal(self):
        for number, code in ((signal.SIGTERM, 128 + signal.SIGTERM), (signal.SIGINT, 0), (signal.SIGHUP, 128 + signal.SIGHUP)):
            screen = self.screen()
            os.kill(screen.process.pid, number)
            self.assertEqual(screen.ended(), code)
            self.assert_restored(screen)

    def test_no_color_has_no_colour(self):
        self.assertIn(b"\033[1m", self.screen().written)
        plain = self.screen(env=environment(NO_COLOR="1")).written
        self.assertNotIn(b"\033[1m", plain)
        self.assertNotIn(b"\033[2m", plain)


if __name__ == "__main__":
    main()
