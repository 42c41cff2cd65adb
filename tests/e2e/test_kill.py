# SPDX-License-Identifier: Apache-2.0
"""SIGKILL at 200 random times: each time the session is readable and `verify` reports its state correctly."""
import concurrent.futures
import json
import os
import pathlib
import random
import signal
import subprocess
import time
import unittest

from harness import FAKE_APP, GPUFL, RECORDER, TIMEOUT_S, Session, TestCase, environment, gpufl, main, sessions

KILLS = int(os.environ.get("GPUFL_TEST_KILLS", "200"))
SEED = int(os.environ.get("GPUFL_TEST_SEED", "20260807"))
WORKLOADS = [["--threads", "2", "--streams", "4", "--scopes", "--sync-every", "50"], ["--copies", "--sync-every", "20"]]


def child_of(pid):
    """Waits for the program that `gpufl trace` starts; other children only probe libraries."""
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for child in children:
            try:
                if pathlib.Path(f"/proc/{child}/comm").read_text() == "fake_app\n":
                    return int(child)
            except (FileNotFoundError, ProcessLookupError):
                pass  # it has ended
        time.sleep(0.001)
    raise AssertionError("gpufl started no program")


def has_lines(directory):
    return any(file.stat().st_size for file in pathlib.Path(directory).glob("*/*.log"))


def run_and_kill(directory, delay_s, is_launched, workload):
    """Kills the program delay_s after its log was created (negative: -delay_s after its start)."""
    env = environment(GPUFL_LOG_ROTATE_BYTES=random.Random(delay_s).choice([65536, 200000, None]))
    program = [FAKE_APP, "--run-ms", "600000", *workload]
    if is_launched:
        program = [GPUFL, "trace", "--sample-ms", "5", "-o", directory, "--", *program]
    else:
        env.update(CUDA_INJECTION64_PATH=str(RECORDER), NVTX_INJECTION64_PATH=str(RECORDER), GPUFL_INJECT="1",
                   GPUFL_PROFILING_ENGINE="Trace", GPUFL_LOG_DIR=str(directory), GPUFL_SYSTEM_SAMPLE_RATE_MS="5",
                   GPUFL_CONTINUOUS_SYSTEM_SAMPLING="1")
    process = subprocess.Popen(program, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    target = child_of(process.pid) if is_launched else process.pid
    while delay_s >= 0 and not has_lines(directory) and process.poll() is None:
        time.sleep(0.001)
    time.sleep(abs(delay_s))
    os.kill(target, signal.SIGKILL)
    stderr = process.communicate(timeout=TIMEOUT_S)[1]
    return process.returncode, stderr, time.time_ns()


class Kill(TestCase):
    def check(self, number):
        """One kill; returns whether there was a session to look at."""
        chance = random.Random(SEED + number)
        is_launched = number % 2 == 0
        delay_s = -chance.uniform(0, 0.03) if number % 10 == 9 else chance.uniform(0, 0.2)
        directory = self.directory / str(number)
        code, stderr, killed_ns = run_and_kill(directory, delay_s, is_launched, WORKLOADS[number // 2 % 2])
        what = f"kill {number} after {delay_s:.4f} s, {'launched' if is_launched else 'injected'}"
        self.assertEqual(code, 128 + signal.SIGKILL if is_launched else -signal.SIGKILL, what)
        found = sessions(directory)
        if not found or not has_lines(directory):
            self.assertLess(delay_s, 0, what + stderr)
            return False
        self.assertEqual(len(found), 1, what)
        report = gpufl("report", found[0], "--json")
        self.assertEqual(report.returncode, 0, what + report.stderr)
        json.loads(report.stdout)
        self.check_verdict(found[0], self.verify(found[0]), is_launched, what)
        self.check_rows(Session(found[0]), killed_ns, what)
        return True

    def check_verdict(self, path, verdict, is_launched, what):
        session = Session(path)
        kinds = [issue["kind"] for issue in verdict["issues"]]
        self.assertFalse(verdict["is_complete"], what)
        self.assertIn("unfinished", kinds, what)
        self.assertFalse(verdict["is_live"], what)
        damaged = sum(max(1, issue["count"]) for issue in verdict["issues"]
                      if issue["kind"] in ("damaged line", "torn tail"))
        self.assertLessEqual(damaged, session.torn, f"{what}: intact lines called damaged: {verdict['issues']}")
        wrong = {"duplicate line", "bad segment", "bad reference", "unreadable", "count mismatch"} & set(kinds)
        self.assertFalse(wrong, f"{what}: {verdict['issues']}")
        if session.torn == 0:
            self.assertNotIn("missing lines", kinds, what)
        sealed = list(path.glob("*.zst"))
        if not sealed:
            self.assertEqual(verdict["rows"].get("kernel_event_batch", 0), len(session.rows("kernel_event_batch")),
                             what)
        if is_launched and session.lines["system"]:
            end = session.lines["system"][-1]
            self.assertEqual((end["type"], end.get("synthetic"), end.get("signal")), ("shutdown", True, signal.SIGKILL),
                             what)

    def check_rows(self, session, killed_ns, what):
        """Each kernel is there once, and had ended before the program was killed."""
        kernels = session.rows("kernel_event_batch")
        self.assertEqual(len({(row["corr_id"], row["context_id"]) for row in kernels}), len(kernels), what)
        self.assertTrue(all(row["time_ns"] + row["duration_ns"] < killed_ns for row in kernels), what)

    def test_each_killed_session_is_readable_and_verify_is_right(self):
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            seen = list(pool.map(self.check, range(KILLS)))
        self.assertGreater(sum(seen), KILLS * 0.85)


if __name__ == "__main__":
    main()
