# SPDX-License-Identifier: Apache-2.0
"""gpufl view: serves a session with the dashboard on the loopback until Ctrl-C, and changes and leaves no files."""
import hashlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request

from harness import FAKE_APP, GPUFL, SOURCE, TestCase, environment, gpufl, main

DEADLINE_S = 600
GOLDEN = SOURCE / "tests/golden"
RECORDED = SOURCE / "examples/recorded"


def contents(directory):
    """Every file of a directory with its size, times and hash."""
    found = {}
    for path in sorted(directory.rglob("*")):
        if path.is_file():
            status = path.stat()
            found[str(path)] = (status.st_size, status.st_mtime_ns, hashlib.sha256(path.read_bytes()).hexdigest())
    return found


class View(TestCase):
    def setUp(self):
        super().setUp()
        self.temporary = self.directory / "tmp"
        self.temporary.mkdir()
        self.env = environment(TMPDIR=self.temporary, BROWSER=None, DISPLAY=None, WAYLAND_DISPLAY=None,
                               SSH_CONNECTION=None)

    def wait_for(self, what, is_true):
        end = time.monotonic() + DEADLINE_S
        while not is_true():
            self.assertLess(time.monotonic(), end, f"{what}: not within {DEADLINE_S} s")
            time.sleep(0.02)

    def start(self, *arguments, command="view", env=None):
        """The process and the URL that it prints."""
        process = subprocess.Popen([str(word) for word in (GPUFL, command, *arguments)], env=env or self.env, text=True,
                                   cwd=self.directory, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(lambda: process.poll() is None and process.kill())
        url = ""
        for line in process.stdout:
            if line.startswith("http://"):
                url = line.strip()
                break
        self.assertRegex(url, r"^http://127\.0\.0\.1:\d+/sessions/[\w.:-]+$",
                         "" if url else process.stderr.read())
        return process, url

    def end(self, process, number=signal.SIGINT):
        process.send_signal(number)
        _, errors = process.communicate(timeout=DEADLINE_S)
        self.assertEqual(list(self.temporary.iterdir()), [])
        return process.returncode, errors

    def ask(self, url, path, method="GET", **headers):
        host = re.match(r"http://([^/]+)", url)[1]
        request = urllib.request.Request(f"http://{host}{path}", method=method, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=DEADLINE_S) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()

    def session_of(self, url):
        return url.rsplit("/", 1)[1]

    def test_the_url_is_the_sessions_page_and_its_answers_are_the_reports(self):
        process, url = self.start("--no-browser", RECORDED / "h200-pipeline")
        status, page = self.ask(url, "/sessions/" + self.session_of(url))
        self.assertEqual(status, 200)
        self.assertIn(b"<script", page)
        status, body = self.ask(url, "/api/v1/sessions/" + self.session_of(url))
        self.assertEqual(status, 200)
        report = json.loads(gpufl("report", "--json", RECORDED / "h200-pipeline").stdout)
        answer = json.loads(body)
        self.assertEqual(answer["time"], report["time"])
        self.assertEqual(answer["catalog"]["state"], "complete")
        self.assertEqual(answer["catalog"]["kernels"], report["completeness"]["kernels"])
        code, errors = self.end(process)
        self.assertEqual(code, 0, errors)
        self.assertIn("press Ctrl-C to stop", errors)

    def test_sigterm_and_a_closed_terminal_end_it_like_ctrl_c(self):
        for number in (signal.SIGTERM, signal.SIGHUP):
            process, _ = self.start("--no-browser", GOLDEN / "trace")
            self.assertEqual(self.end(process, number)[0], 0)

    def test_an_open_live_connection_does_not_delay_the_end(self):
        process, url = self.start("--no-browser", GOLDEN / "trace")
        host = re.match(r"http://([^/]+)", url)[1]
        connection = http.client.HTTPConnection(host, timeout=DEADLINE_S)
        self.addCleanup(connection.close)
        connection.request("GET", "/api/v1/live")
        self.assertEqual(connection.getresponse().status, 200)
        self.assertEqual(self.end(process)[0], 0)

    def test_the_session_is_only_read(self):
        session = self.directory / "session"
        shutil.copytree(GOLDEN / "deep", session)
        before = contents(session)
        session.chmod(0o500)
        self.addCleanup(session.chmod, 0o700)
        process, url = self.start("--no-browser", session)
        path = "/api/v1/sessions/" + self.session_of(url)
        self.assertEqual(self.ask(url, path, "DELETE")[0], 405)
        self.assertEqual(self.ask(url, "/api/v1/events/stream", "POST")[0], 404)
        self.assertEqual(self.ask(url, path)[0], 200)
        self.assertEqual(self.end(process)[0], 0)
        self.assertEqual(contents(session), before)

    def test_other_names_for_this_machine_are_refused(self):
        process, url = self.start("--no-browser", GOLDEN / "trace")
        self.assertEqual(self.ask(url, "/api/v1/sessions", Host="evil.example")[0], 421)
        self.assertEqual(self.end(process)[0], 0)

    def test_a_key_in_the_environment_is_not_asked_for(self):
        process, url = self.start("--no-browser", GOLDEN / "trace",
                                  env={**self.env, "GPUFL_SERVE_ADMIN_KEY": "gpfl_" + 32 * "x"})
        self.assertEqual(self.ask(url, "/api/v1/sessions")[0], 200)
        self.assertEqual(self.end(process)[0], 0)

    def test_every_golden_session_is_shown_or_refused_with_a_reason(self):
        for session in sorted(path for path in GOLDEN.iterdir() if (path / "device.log").exists() or path.name == "v1"):
            with self.subTest(session=session.name):
                process, url = self.start("--no-browser", session)
                status, body = self.ask(url, "/api/v1/sessions/" + self.session_of(url))
                self.assertEqual(status, 200, body)
                self.assertEqual(self.end(process)[0], 0)

    def test_a_damaged_session_is_shown_and_reported_as_damaged(self):
        session = self.directory / "session"
        shutil.copytree(GOLDEN / "trace", session)
        with open(session / "device.log", "a", encoding="utf-8") as log:
            log.write("this is not JSON\n")
        process, _ = self.start("--no-browser", session)
        code, errors = self.end(process)
        self.assertEqual(code, 0)
        self.assertIn("the session is damaged: 1 line cannot be read; for what is missing, run 'gpufl verify ", errors)
        self.assertNotIn("file", errors)

    def test_a_path_without_a_session_is_refused(self):
        for operand in (self.directory / "missing", self.temporary):
            result = gpufl("view", "--no-browser", operand, env=self.env)
            self.assertEqual(result.returncode, 3)
            self.assertRegex(result.stderr, "^gpufl view: ")
            self.assertEqual(result.stdout, "")
            self.assertEqual(list(self.temporary.iterdir()), [])

    def test_a_port_that_is_taken_is_an_error(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            result = gpufl("view", "--no-browser", "--port", taken.getsockname()[1], GOLDEN / "trace", env=self.env)
        self.assertEqual(result.returncode, 3)
        self.assertIn("gpufl view: ", result.stderr)
        self.assertEqual(list(self.temporary.iterdir()), [])

    def browser(self):
        """A program that records its arguments."""
        program = self.directory / "browser"
        program.write_text('#!/bin/sh\nprintf "%s\\n" "$@" >"$(dirname "$0")/called.tmp"\n'
                           'mv "$(dirname "$0")/called.tmp" "$(dirname "$0")/called"\n', encoding="utf-8")
        program.chmod(0o700)
        return program

    def test_the_browser_of_the_user_gets_the_url(self):
        env = {**self.env, "BROWSER": f"/nonexistent/browser:{self.browser()} --new-tab %s"}
        process, url = self.start(GOLDEN / "trace", env=env)
        called = self.directory / "called"
        self.wait_for("the browser", called.exists)
        self.assertEqual(called.read_text(encoding="utf-8"), f"--new-tab\n{url}\n")
        code, errors = self.end(process)
        self.assertEqual(code, 0)
        self.assertIn("opened in your browser", errors)

    def test_a_desktop_opens_it_with_xdg_open_and_no_browser_is_obeyed(self):
        self.browser().rename(self.directory / "xdg-open")
        env = {**self.env, "DISPLAY": ":0", "PATH": f"{self.directory}:{os.environ['PATH']}"}
        called = self.directory / "called"
        process, _ = self.start("--no-browser", GOLDEN / "trace", env=env)
        self.assertNotIn("opened", self.end(process)[1])
        self.assertFalse(called.exists())
        process, url = self.start(GOLDEN / "trace", env=env)
        self.wait_for("the browser", called.exists)
        self.assertEqual(called.read_text(encoding="utf-8"), f"{url}\n")
        self.assertEqual(self.end(process)[0], 0)

    def test_without_a_browser_the_url_is_all_there_is(self):
        for browser in ("", "/nonexistent/browser", ":"):
            process, url = self.start(GOLDEN / "trace", env={**self.env, "BROWSER": browser})
            code, errors = self.end(process)
            self.assertEqual((code, errors), (0, "  open this URL in a browser; press Ctrl-C to stop\n"))

    def test_over_ssh_the_tunnel_is_printed(self):
        process, url = self.start(GOLDEN / "trace", env={**self.env, "SSH_CONNECTION": "10.0.0.1 1 10.0.0.2 22"})
        port = re.search(r":(\d+)/", url)[1]
        self.assertIn(f"ssh -L {port}:127.0.0.1:{port} HOST", self.end(process)[1])

    def test_trace_with_view_records_prints_its_line_and_shows_the_session(self):
        process, url = self.start("--view", "-o", self.directory / "log", "--", FAKE_APP, command="trace")
        status, body = self.ask(url, "/api/v1/sessions/" + self.session_of(url))
        self.assertEqual(status, 200, body)
        self.assertGreater(json.loads(body)["catalog"]["kernels"], 0)
        code, errors = self.end(process)
        self.assertEqual(code, 0, errors)
        self.assertIn("kernels", errors.splitlines()[0])


if __name__ == "__main__":
    main()
