# SPDX-License-Identifier: Apache-2.0
"""Builds the examples with CMake and runs each on a real GPU under gpufl: examples_check.py BUILD_DIR WORK_DIR OUT_DIR

A line for each: how it ended, what it printed last, and that its session is complete and holds what it should. STEPS:
build and the examples' names. Exit 1 when a line of the table does not hold."""
import os
import pathlib
import signal
import socket
import subprocess
import sys

from bench_table import BenchTable, end_all

ROOT = pathlib.Path(__file__).resolve().parents[2]
table = BenchTable(*sys.argv[1:4])
WORK, GPUFL = table.work, table.gpufl
BUILT = WORK / "built-examples"
PYTHON = {"PYTHONPATH": os.pathsep.join(filter(None, [str(table.build / "python"), os.environ.get("PYTHONPATH")]))}


def build():
    for command in (["cmake", "-S", ROOT / "examples", "-B", BUILT, "-G", "Ninja", f"-DGPUFL_BUILD_DIR={table.build}"],
                    ["cmake", "--build", BUILT]):
        result = table.run(command, timeout=100)
        if result.returncode:
            raise RuntimeError((result.stdout + result.stderr)[-600:])
    programs = sorted(path.name for path in BUILT.iterdir() if path.is_file() and os.access(path, os.X_OK))
    table.say("examples built by CMake", ", ".join(programs), "5 programs", len(programs) == 5)


def sessions_hold(sessions, wanted):
    """Whether there is one session, complete, with something under each of the report's keys."""
    if len(sessions) != 1:
        return False, f"{len(sessions)} sessions"
    verified = table.run([GPUFL, "verify", sessions[0]])
    report = table.report(sessions[0])
    missing = [key for key in wanted if not report.get(key)]
    return verified.returncode == 0 and not missing, f"{verified.stdout.strip().splitlines()[0]} {missing or ''}"


def traced(name, command, wanted, env=None, timeout=60):
    result, sessions = table.trace(command, WORK / f"x-{name}", env, timeout, ("--quiet", "--name", name))
    holds, found = sessions_hold(sessions, wanted)
    printed = ((result.stdout.strip() or result.stderr.strip()).splitlines() or ["nothing was printed"])[-1]
    table.say(name, f"exit {result.returncode}: {printed}; {found}"[:220], "0, complete",
              result.returncode == 0 and holds)


def service():
    directory = WORK / "x-service"
    directory.mkdir(exist_ok=True)
    before = set(table.sessions(directory / "service"))
    process = subprocess.Popen([str(BUILT / "service")], cwd=directory, text=True, stdout=subprocess.PIPE,
                               start_new_session=True)
    try:
        port = int(process.stdout.readline().rsplit(":", 1)[1])
        with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
            client.sendall(b"hello")
            answer = client.recv(100)
        process.send_signal(signal.SIGTERM)
        code = process.wait(30)
    finally:
        end_all(process)
        process.stdout.close()
    fresh = [path for path in table.sessions(directory / "service") if path not in before]
    holds, found = sessions_hold(fresh, ("copies", "scopes"))
    table.say("service", f"exit {code}, answered {answer!r}; {found}"[:220], "0, complete",
              code == 0 and answer == b"hello" and holds)


STEPS = {
    "build": build,
    "vector_add": lambda: traced("vector_add", [BUILT / "vector_add"], ("kernels", "copies", "scopes")),
    "pipeline": lambda: traced("pipeline", [BUILT / "pipeline"], ("kernels", "copies", "scopes")),
    "benchmark": lambda: traced("benchmark", [BUILT / "benchmark"], ("copies", "scopes")),
    "gemm": lambda: traced("gemm", [BUILT / "gemm", "--size", "1024"], ("kernels", "scopes")),
    "service": service,
    "triton_softmax": lambda: traced("triton_softmax", [sys.executable, ROOT / "examples/triton_softmax.py"],
                                     ("kernels", "scopes"), PYTHON, 90),
}
LIMITS_S = {"build": 120, "triton_softmax": 90}
if __name__ == "__main__":
    table.run_steps(STEPS, os.environ.get("STEPS", ",".join(STEPS)).split(","), LIMITS_S)
