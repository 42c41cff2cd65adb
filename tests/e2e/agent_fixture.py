# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of the agent: starting and stopping it, and checking what arrived."""
import collections
import json
import os
import signal
import subprocess
import time

from harness import FAKE_APP, FAKES, GPUFL, TIMEOUT_S, Session, environment, sessions
from test_upload import KEY, UploadTest, canonical

# For a program on a faulty file system (tests/fault/files_preload.c).
ON_BAD_FILES = {"LD_PRELOAD": FAKES / "libfiles.so",
                "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"}


def wait_for(condition, what):
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {TIMEOUT_S} s for {what}")
        time.sleep(0.02)


class AgentTest(UploadTest):
    def setUp(self):
        super().setUp()
        self.log = self.directory / "log"
        self.state = self.directory / "state"

    def record(self, *arguments, **more):
        super().record(*arguments, **more)
        return sessions(self.log)[-1]

    def command(self, server, *options, roots=None):
        words = [GPUFL, "agent", "--server", server.url, "--state", self.state, "--interval", 20]
        for root in roots or [self.log]:
            words += ["--root", root]
        return [str(word) for word in (*words, *options)]

    def once(self, server, *options, roots=None, key=KEY, **variables):
        result = subprocess.run(self.command(server, "--once", "--json", *options, roots=roots), text=True,
                                capture_output=True, timeout=TIMEOUT_S, check=False, stdin=subprocess.DEVNULL,
                                env=environment(GPUFL_API_KEY=key, **variables))
        return result, json.loads(result.stdout) if result.stdout else None

    def start(self, server, *options, roots=None, key=KEY, preexec_fn=None, **variables):
        agent = subprocess.Popen(self.command(server, *options, roots=roots), stdin=subprocess.DEVNULL, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                 env=environment(GPUFL_API_KEY=key, **variables), preexec_fn=preexec_fn)
        self.addCleanup(self.end, agent)
        return agent

    @staticmethod
    def end(agent):
        if agent.poll() is None:
            agent.kill()
        agent.wait()
        agent.stdout.close()

    def stop(self, agent):
        """Returns what the agent printed; its exit status must be 0."""
        agent.send_signal(signal.SIGTERM)
        text, _ = agent.communicate(timeout=TIMEOUT_S)
        self.assertEqual(agent.returncode, 0, text)
        return text

    def program(self, *arguments, rotate_bytes=None, stdin=subprocess.DEVNULL, **variables):
        """A traced program that runs in the background."""
        program = subprocess.Popen([str(word) for word in (GPUFL, "trace", "-q", "-o", self.log, "--", FAKE_APP,
                                                           *arguments)],
                                   env=environment(GPUFL_LOG_ROTATE_BYTES=rotate_bytes, **variables),
                                   cwd=self.directory,
                                   stdin=stdin, stdout=subprocess.PIPE, text=True)
        self.addCleanup(program.stdout.close)
        return program

    def assert_arrived(self, server, *directories):
        """Exactly the lines of the sessions' plain files, counting each window id once."""
        lines = server.counted_lines()
        self.assertEqual(server.breaches, [])
        written = collections.Counter()
        for directory in directories:
            written += canonical(line for lines in Session(directory).lines.values() for line in lines)
        self.assertEqual(canonical(lines), written)

    def assert_whole(self, server, session_id):
        """No line number is missing or duplicated, and there are as many rows as the program counted."""
        lines = [line for line in server.counted_lines() if line.get("session_id") == session_id]
        self.assertEqual(server.breaches, [])
        numbers = collections.defaultdict(list)
        for headers, window in server.windows:
            if headers["X-GpuFlight-Session-Id"] == session_id:
                numbers[headers["X-GpuFlight-Window-Channel"]] += [line["seq"] for line in window]
        for channel, seen in numbers.items():
            self.assertEqual(sorted(set(seen)), list(range(1, max(seen) + 1)), channel)
        ends = [line for line in lines if line["type"] == "shutdown"]
        self.assertTrue(ends)
        rows = collections.Counter()
        for line in lines:
            if line["type"].endswith("_batch"):
                rows[line["type"]] += len(line["rows"])
        self.assertEqual({kind: rows[kind] for kind in ends[0]["rows"] if kind.endswith("_batch")},
                         {kind: count for kind, count in ends[0]["rows"].items() if kind.endswith("_batch")})
