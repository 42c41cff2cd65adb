# SPDX-License-Identifier: Apache-2.0
"""Shared by the end-to-end tests: the built binaries, the fake GPU's environment, and a reader of session directories
that is independent of the product's."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("GPUFL_BUILD_DIR", SOURCE / "build")).resolve()
FAKES = pathlib.Path(os.environ.get("GPUFL_FAKES_DIR", BUILD / "fakes"))
GPUFL = BUILD / "bin" / "gpufl"
FAKE_APP = FAKES / "fake_app"
RECORDER = BUILD / "lib" / "libgpufl_inject.so"
SESSION_ID = re.compile(r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")
SANITIZERS = os.environ.get("GPUFL_SANITIZE", "").split(",")
TIMEOUT_S = 600  # against hangs alone: a busy machine may be slow, and no test may depend on speed


def environment(library_path=FAKES, **variables):
    """An environment in which the only GPU libraries are the fakes; None removes a variable."""
    result = {name: value for name, value in os.environ.items()
              if not name.startswith(("GPUFL_", "FAKE_", "CUDA_", "NVTX_")) and name not in ("NO_COLOR", "LD_PRELOAD")}
    result["LD_LIBRARY_PATH"] = str(library_path)
    # Otherwise a CUDA toolkit on this machine would be found first.
    for library in ("CUDA", "CUPTI", "NVML"):
        result[f"GPUFL_{library}_PATH"] = str(library_path)
    result["FAKE_MACHINE"] = str(os.getpid())  # concurrent tests have different GPUs
    result["GPUFL_SYSFS_ROOT"] = "/nonexistent"  # hide this machine's AMD GPUs
    result["GPUFL_MIN_FREE_BYTES"] = "0"  # tests must also pass on an almost full disk
    result["GPUFL_EXIT_TIMEOUT_MS"] = "60000"  # on a busy machine the end of a session may take long
    result["LC_ALL"] = "C.UTF-8"
    for name, value in variables.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = str(value)
    return result


def needs(is_there, what):
    """Skips a test, or a class of them, if the machine lacks something; in CI it fails, so that nothing is skipped
    unnoticed."""
    def decorate(test):
        if is_there:
            return test
        if "CI" not in os.environ:
            return unittest.skip(f"needs {what}")(test)

        def fail(*_):
            raise AssertionError(f"{what} is missing, and CI must not skip")
        if not isinstance(test, type):
            return fail
        test.setUpClass = fail
        return test
    return decorate


def run(*command, env=None, cwd=None, **options):
    """Runs a command to its end; returncode, stdout, stderr."""
    return subprocess.run([str(word) for word in command], env=env or environment(), cwd=cwd, text=True,
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S, check=False, **options)


def gpufl(*arguments, **options):
    return run(GPUFL, *arguments, **options)


def printed_counts(text):
    """Sums of the kernels=... copies=... lines that fake_app's processes printed."""
    counts = {}
    for name, value in re.findall(r"\b(kernels|copies|memsets|syncs|graph_launches)=(\d+)", text):
        counts[name] = counts.get(name, 0) + int(value)
    return counts


def sessions(directory):
    """Session directories, by their start."""
    if not os.path.isdir(directory):
        return []
    found = [entry for entry in pathlib.Path(directory).iterdir() if SESSION_ID.match(entry.name)]
    return sorted(found, key=lambda entry: entry.name)


class Session:
    """Every whole line of a session's plain files, parsed with Python's own JSON."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.lines = {}
        self.torn = 0
        for channel in ("device", "scope", "system", "sass"):
            self.lines[channel] = []
            rotated = sorted(self.path.glob(channel + ".[0-9]*.log"))
            for file in rotated + [self.path / (channel + ".log")]:
                if file.exists():
                    self._read(channel, file)

    def _read(self, channel, file):
        for line in file.read_bytes().split(b"\n"):
            if not line:
                continue
            try:
                self.lines[channel].append(json.loads(line))
            except ValueError:
                self.torn += 1

    def records(self, kind):
        """Objects of a type; records that go to every channel are there once per channel."""
        return [line for lines in self.lines.values() for line in lines if line["type"] == kind]

    def first(self, kind):
        return self.records(kind)[0]

    def rows(self, kind):
        """Rows of a batch type as dictionaries, times absolute as time_ns."""
        result = []
        for batch in self.records(kind):
            for cells in batch["rows"]:
                row = dict(zip(batch["columns"], cells))
                if "dt_ns" in row:
                    row["time_ns"] = batch["base_time_ns"] + row["dt_ns"]
                result.append(row)
        return result

    def dictionary(self, name):
        result = {}
        for update in self.records("dictionary_update"):
            result.update({int(key): text for key, text in update.get(name, {}).items()})
        return result

    def capabilities(self):
        return {entry["feature"]: entry for entry in self.first("capture_capabilities")["capabilities"]}


class Traced:
    """The outcome of `gpufl trace` on a program."""

    def __init__(self, result, directory):
        self.returncode = result.returncode
        self.stdout = result.stdout
        self.stderr = result.stderr
        self.directory = pathlib.Path(directory)
        self.counts = printed_counts(result.stdout)

    @property
    def sessions(self):
        return sessions(self.directory)

    @property
    def session(self):
        found = self.sessions
        if len(found) != 1:
            raise AssertionError(f"{len(found)} sessions instead of one; stderr:\n{self.stderr}")
        return Session(found[0])


class TestCase(unittest.TestCase):
    """A test with its own directory, which is removed afterwards."""

    maxDiff = None

    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="gpufl-e2e-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    def trace(self, *app_arguments, options=(), env=None, app=FAKE_APP, directory=None, **more):
        directory = directory or self.directory / "log"
        result = gpufl("trace", "-o", directory, *options, "--", app, *app_arguments, env=env, cwd=self.directory,
                       **more)
        return Traced(result, directory)

    def trace_until(self, is_seen, *app_arguments, options=(), env=None, directory=None):
        """Lets the program launch until is_seen(sessions): how long that takes depends on the machine."""
        directory = directory or self.directory / "log"
        command = [GPUFL, "trace", "-o", directory, *options, "--", FAKE_APP, "--until-input-ends", *app_arguments]
        with subprocess.Popen([str(word) for word in command], cwd=self.directory, env=env or environment(), text=True,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            deadline = time.monotonic() + TIMEOUT_S
            while not is_seen(sessions(directory)):
                self.assertIsNone(process.poll(), "the program ended by itself")
                self.assertLess(time.monotonic(), deadline, "not seen in time")
                time.sleep(0.02)
            stdout, stderr = process.communicate(timeout=TIMEOUT_S)
        return Traced(subprocess.CompletedProcess(command, process.returncode, stdout, stderr), directory)

    def assert_whole(self, traced):
        """The run succeeded and verify finds nothing missing in any of its sessions."""
        self.assertEqual(traced.returncode, 0, traced.stderr)
        self.assertTrue(traced.sessions, traced.stderr)
        for session in traced.sessions:
            verified = gpufl("verify", session)
            self.assertEqual(verified.returncode, 0, verified.stdout + verified.stderr)
            self.assertTrue(verified.stdout.startswith("complete: "), verified.stdout)

    def verify(self, session):
        """verify --json as a dictionary; its exit code must agree with it."""
        result = gpufl("verify", session, "--json")
        self.assertIn(result.returncode, (0, 1), result.stderr)
        answer = json.loads(result.stdout)
        self.assertEqual(answer["is_complete"], result.returncode == 0)
        return answer

    def report(self, session):
        result = gpufl("report", session, "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)


def main():
    unittest.main(verbosity=2)
