# SPDX-License-Identifier: Apache-2.0
"""gpufl demo: a report, then a server with the recorded session and this host's metrics, and no files left behind."""
import json
import os
import pathlib
import pty
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
import unittest
import urllib.request

from harness import BUILD, FAKE_APP, GPUFL, SANITIZERS, SOURCE, TestCase, environment, gpufl, main, run

DEADLINE_S = 600
KERNELS = 146100
RECORDED = sorted(path.name for path in (SOURCE / "examples/recorded").iterdir() if path.is_dir())


def children(pid):
    """Command names of the processes that a process has started, by pid."""
    try:
        pids = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return {}
    names = {}
    for child in pids:
        try:
            words = pathlib.Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        names[int(child)] = words[1].decode() if len(words) > 1 else ""
    return names


def is_alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


class Demo(TestCase):
    def setUp(self):
        super().setUp()
        self.temporary = self.directory / "tmp"
        self.temporary.mkdir()
        # No GPU library: the demo shows its recording.
        self.env = environment(library_path=self.directory, TMPDIR=self.temporary, CI=None)

    def wait_for(self, what, is_true):
        end = time.monotonic() + DEADLINE_S
        while not is_true():
            self.assertLess(time.monotonic(), end, f"{what}: not within {DEADLINE_S} s")
            time.sleep(0.05)

    def installation(self):
        """The root of an installation with recordings and an example program chosen by the test."""
        root = self.directory / "installed"
        (root / "bin").mkdir(parents=True)
        (root / "share/gpufl").mkdir(parents=True)
        shutil.copy(GPUFL, root / "bin/gpufl")
        (root / "lib").symlink_to(BUILD / "lib")
        return root

    def start(self, *options):
        """Starts a demo and waits until it serves; `printed` is its output so far."""
        process = subprocess.Popen([GPUFL, "demo", "--stay", "--port", "0", *options], env=self.env, text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        printed = []

        def read():
            for line in process.stdout:
                printed.append(line)

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        self.addCleanup(process.stdout.close)
        self.addCleanup(reader.join)
        self.addCleanup(lambda: process.poll() is None and (process.kill(), process.wait()))
        self.wait_for("Ctrl-C ends it", lambda: "Ctrl-C ends it.\n" in printed or process.poll() is not None)
        self.assertIsNone(process.poll(), "".join(printed))
        return process, printed, reader

    def ask(self, printed, path):
        url = re.search(r"http://127\.0\.0\.1:\d+", "".join(printed))[0]
        with urllib.request.urlopen(url + path, timeout=600) as answer:
            return json.load(answer)

    def newest_sample(self, printed):
        """The time of this host's newest metrics; those of the recorded session are old."""
        return max(host["metrics"]["sample_ns"] for host in self.ask(printed, "/api/v1/hosts")["hosts"] if host["metrics"])

    def assert_nothing_left(self):
        self.assertEqual(list(self.temporary.iterdir()), [])

    def test_without_a_terminal_it_ends_by_itself_when_everything_was_seen(self):
        result = gpufl("demo", "--port", 0, env=self.env)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertTrue(result.stdout.startswith("A recording, not this machine"))
        self.assertRegex(result.stdout, r"Dashboard: http://127\.0\.0\.1:\d+ ")
        self.assertRegex(result.stdout, rf"session  \S+ on NVIDIA H200: {KERNELS} kernels")
        self.assertRegex(result.stdout, r"live     \S+: CPU, memory and 0 GPUs, sampled every second")
        self.assertIn("--stay", result.stdout)
        self.assert_nothing_left()

    def test_with_a_gpu_the_live_trace_is_in_the_server_too(self):
        # An installation with an example program, which normally needs a CUDA compiler.
        root = self.installation()
        (root / "share/gpufl/examples").symlink_to(SOURCE / "examples")
        (root / "bin/gpufl-demo-app").symlink_to(FAKE_APP)
        result = run(root / "bin/gpufl", "demo", "--port", 0, env=environment(TMPDIR=self.temporary))
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertTrue(result.stdout.startswith("tracing "))
        self.assertIn("session  gpufl-demo on NVIDIA H200: 100 kernels\n", result.stdout)
        self.assertIn(f"on NVIDIA H200: {KERNELS} kernels\n", result.stdout)
        self.assertRegex(result.stdout, r"live     \S+: CPU, memory and 1 GPU, sampled every second")
        self.assert_nothing_left()

    def test_a_live_trace_that_fails_or_has_no_kernels_gives_way_to_the_recorded_session(self):
        root = self.installation()
        (root / "share/gpufl/examples").symlink_to(SOURCE / "examples")
        program = root / "bin/gpufl-demo-app"
        for text, status in ((f"'{FAKE_APP}' --launches 5; exit 7", 7), ("exit 0", 3)):
            program.write_text(f"#!/bin/sh\n{text}\n")
            program.chmod(0o755)
            result = run(root / "bin/gpufl", "demo", "--no-server", env=environment(TMPDIR=self.temporary))
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            lines = [line for line in result.stdout.splitlines() if line and not line.startswith("kernels=")]
            self.assertEqual(lines[1], f"The live trace failed with status {status} (see `gpufl doctor`); here is a "
                                       "recorded session instead.")
            self.assertTrue(lines[2].startswith("A recording, not this machine (the live trace failed): "), lines[2])
            self.assertIn("146,100 kernels", result.stdout)
        self.assert_nothing_left()

    def test_every_recorded_session_is_in_the_server(self):
        recorded = self.installation() / "share/gpufl/examples/recorded"
        recorded.mkdir(parents=True)
        (recorded / "README.md").write_text("no session\n")
        (recorded / "empty").mkdir()
        for name, kernels in (("h200-training", 40), ("another", 30)):
            traced = self.trace("--launches", kernels, options=("--name", f"app-{name}"), directory=self.directory / name)
            self.assert_whole(traced)
            shutil.copytree(traced.sessions[0], recorded / name, ignore=shutil.ignore_patterns(".gpufl-*"))
            sealed = gpufl("seal", recorded / name)
            self.assertEqual(sealed.returncode, 0, sealed.stderr)
        result = run(recorded.parents[3] / "bin/gpufl", "demo", "--port", 0, env=self.env)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        # The report is of the training, though it is not the first by name.
        self.assertRegex(result.stdout.splitlines()[0], "^A recording, not this machine .* app-h200-training on NVIDIA H200")
        self.assertEqual(sorted(re.findall(r"session  (\S+) on NVIDIA H200: (\d+) kernels", result.stdout)),
                         [("app-another", "30"), ("app-h200-training", "40")])
        self.assert_nothing_left()

    def test_an_installation_without_recordings_says_so(self):
        result = run(self.installation() / "bin/gpufl", "demo", env=self.env)
        self.assertEqual(result.returncode, 3, result.stdout)
        self.assertIn("the recorded sessions are not installed", result.stderr)
        self.assert_nothing_left()

    def test_it_answers_until_it_is_interrupted_and_leaves_nothing(self):
        process, printed, reader = self.start()
        started = children(process.pid)
        self.assertEqual(sorted(started.values()), ["agent", "monitor", "serve"])
        self.assertEqual(self.ask(printed, "/healthz")["status"], "ok")
        recorded = [session for session in self.ask(printed, "/api/v1/sessions")["sessions"] if session["kind"] != "monitor"]
        self.assertEqual([session["state"] for session in recorded], ["complete"] * len(RECORDED))
        self.assertIn(KERNELS, [session["kernels"] for session in recorded])
        first = self.newest_sample(printed)
        self.wait_for("a later sample of this host", lambda: self.newest_sample(printed) > first)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(DEADLINE_S), 0, "".join(printed))
        reader.join()
        self.assertEqual(printed[-1], "Everything was stopped.\n")
        self.assertEqual([pid for pid in started if is_alive(pid)], [])
        self.assert_nothing_left()

    @unittest.skipIf(any(SANITIZERS), "a forked Python beside a sanitizer's runtime")
    def test_on_a_terminal_it_stays_until_ctrl_c(self):
        pid, master = pty.fork()
        if pid == 0:
            os.execve(GPUFL, ["gpufl", "demo", "--port", "0"], {**self.env, "TERM": "dumb"})
        text = bytearray()

        def read():
            while True:
                try:
                    data = os.read(master, 4096)
                except OSError:
                    return
                if not data:
                    return
                text.extend(data)

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        try:
            self.wait_for("Ctrl-C ends it", lambda: b"Ctrl-C ends it." in text)
            os.write(master, b"\x03")
            self.wait_for("the end", lambda: b"Everything was stopped." in text)
            _, status = os.waitpid(pid, 0)
            self.assertEqual(os.waitstatus_to_exitcode(status), 0)
        finally:
            if is_alive(pid):
                os.kill(pid, signal.SIGKILL)
            reader.join(DEADLINE_S)
            os.close(master)
        self.assert_nothing_left()

    def test_killed_it_takes_its_commands_with_it(self):
        process, _, _ = self.start()
        started = children(process.pid)
        process.kill()
        process.wait()
        self.wait_for("the end of " + ", ".join(started.values()), lambda: not any(map(is_alive, started)))

    def test_a_server_that_ends_is_reported(self):
        process, printed, reader = self.start()
        server = next(pid for pid, name in children(process.pid).items() if name == "serve")
        os.kill(server, signal.SIGKILL)
        self.assertEqual(process.wait(DEADLINE_S), 3)
        reader.join()
        self.assertIn("gpufl serve ended with status 137", printed[-1])
        self.assert_nothing_left()

    def test_a_port_in_use_is_reported(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            result = gpufl("demo", "--port", taken.getsockname()[1], env=self.env)
        self.assertEqual(result.returncode, 3, result.stdout)
        self.assertIn("gpufl serve ended with status 3", result.stderr)
        self.assert_nothing_left()

    def test_the_users_own_server_and_key_are_left_alone(self):
        env = {**self.env, "GPUFL_BACKEND_URL": "http://192.0.2.1:1", "GPUFL_API_KEY": "gpfl_of_another_server_altogether",
               "GPUFL_SERVE_ADMIN_KEY": "gpfl_of_another_server_altogether"}
        result = gpufl("demo", "--once", "--port", 0, env=env)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_wrong_options_are_refused_and_the_report_alone_is_available(self):
        self.assertEqual(gpufl("demo", "--once", "--stay", env=self.env).returncode, 2)
        result = gpufl("demo", "--no-server", env=self.env)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertNotIn("The server", result.stdout)
        self.assert_nothing_left()


if __name__ == "__main__":
    main()
