# SPDX-License-Identifier: Apache-2.0
"""What the checks on a real GPU share: running and tracing programs under a time limit, and the table of claims.

A program that hangs is ended with everything it started, so that one hang costs one step and not the run."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import time


def is_directory_with_log(path):
    return path.is_dir() and any(path.glob("*.log*"))


class BenchTable:
    def __init__(self, build, work, out):
        self.build, self.work, self.out = (pathlib.Path(path).resolve() for path in (build, work, out))
        self.gpufl = self.build / "bin/gpufl"
        self.rows, self.failures = [], 0
        self.deadline = None  # of the running step

    def say(self, what, value, claim=None, holds=None):
        mark = "" if holds is None else ("holds" if holds else "DOES NOT HOLD")
        self.failures += holds is False
        self.rows.append((what, value, claim or "", mark))
        print(f"  .. {what}: {value} {claim or ''} {mark}", flush=True)

    def time_left_s(self):
        return self.deadline - time.monotonic() if self.deadline else float("inf")

    def _start(self, command, env, cwd, stderr):
        return subprocess.Popen([str(part) for part in command], env={**os.environ, **(env or {})}, cwd=cwd, text=True,
                                errors="replace", stdout=subprocess.PIPE, stderr=stderr, start_new_session=True)

    def _limit_s(self, timeout):
        return max(1.0, min(timeout, self.time_left_s()))

    def run(self, command, env=None, timeout=120, cwd=None):
        limit = self._limit_s(timeout)
        process = self._start(command, env, cwd, subprocess.PIPE)
        try:
            stdout, stderr = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            end_all(process)
            stdout, stderr = process.communicate()
            print(f"  took longer than {limit:.0f} s: {' '.join(map(str, command))}\n{stdout[-800:]}\n{stderr[-800:]}",
                  flush=True)
            raise
        return subprocess.CompletedProcess(command, process.returncode, stdout, stderr)

    def stream(self, command, env=None, timeout=120, cwd=None, is_echoed=True):
        """Exit status, and each line of output and errors with the time at which it came."""
        process = self._start(command, env, cwd, subprocess.STDOUT)
        limit = self._limit_s(timeout)
        timer = threading.Timer(limit, end_all, [process])
        timer.start()
        lines = []
        try:
            with process:  # closes its pipe and waits for it
                for line in process.stdout:
                    lines.append((time.monotonic(), line.rstrip("\n")))
                    if is_echoed:
                        print("    |", line.rstrip("\n")[:240], flush=True)
        finally:
            is_over_time = not timer.is_alive()
            timer.cancel()
        if is_over_time:
            print(f"  took longer than {limit:.0f} s: {' '.join(map(str, command))}", flush=True)
        return process.returncode, lines

    def trace_command(self, command, directory, extra=()):
        shutil.rmtree(directory, ignore_errors=True)
        return [self.gpufl, "trace", *extra, "-o", directory, "--", *command]

    def sessions(self, directory):
        return sorted(path for path in pathlib.Path(directory).glob("*") if is_directory_with_log(path))

    def trace(self, command, directory, env=None, timeout=120, extra=(), cwd=None):
        result = self.run(self.trace_command(command, directory, extra), env, timeout, cwd)
        return result, self.sessions(directory)

    def floor(self, command, env=None, timeout=120, cwd=None, name="floor"):
        counts = self.work / f"{name}.json"
        counts.unlink(missing_ok=True)
        result = self.run(command, {"CUDA_INJECTION64_PATH": str(self.work / "libfloor.so"), "FLOOR_OUT": str(counts),
                                    **(env or {})}, timeout, cwd)
        return result, json.loads(counts.read_text()) if counts.exists() else None

    def report(self, session):
        return json.loads(self.run([self.gpufl, "report", "--json", session]).stdout)

    def run_steps(self, steps, wanted, limits_s=None):
        """Runs the named steps, prints the table and leaves with 1 when a claim does not hold."""
        started = time.time()
        for name in wanted:
            limit = (limits_s or {}).get(name)
            self.deadline = time.monotonic() + limit if limit else None
            try:
                steps[name]()
            except Exception as problem:  # one broken step must not hide the others
                self.say(name, f"step failed: {problem!r}"[:200], "", False)
            print(f"  -- {name} done at {time.time() - started:.0f} s", flush=True)
        self.deadline = None
        print()
        if shutil.which("nvidia-smi"):
            print(self.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]).stdout.strip())
        for what, value, claim, mark in self.rows:
            print(f"| {what} | {value} | {claim} | {mark} |")
        sys.exit(1 if self.failures else 0)


def end_all(process):
    """Ends the program and what it started; with it the other ends of its pipes."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
