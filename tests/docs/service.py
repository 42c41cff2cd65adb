# SPDX-License-Identifier: Apache-2.0
"""Starts a long-running command and returns when it is ready: when it has printed that, or watches files.
usage: service.py DIRECTORY COMMAND...    writes PID.log there, PID.pid when it is ready, PID.status at its end"""
import os
import pathlib
import re
import subprocess
import sys
import time
import urllib.request

ADDRESS = re.compile(r"^\s*(http://\S+)$", re.M)
READY = {"serve": "data in", "monitor": " ms into ", "view": "press Ctrl-C", "trace": "press Ctrl-C"}
DEADLINE_S = 120


def watches_files(pid):
    """The agent prints nothing: it is ready when it, or a child process, listens for changes."""
    try:
        process = pathlib.Path(f"/proc/{pid}")
        return (any("inotify" in os.readlink(entry) for entry in (process / "fd").iterdir()) or
                any(watches_files(child) for child in (process / f"task/{pid}/children").read_text().split()))
    except OSError:
        return False


def check_addresses(text):
    """Requests each page whose address is printed alone on a line; raises if one does not answer."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    for address in ADDRESS.findall(text):
        with opener.open(address, timeout=DEADLINE_S) as page:
            page.read()


def supervise(directory, command):
    """Runs the service and waits for it, because the process that runs the page may end first."""
    first = directory / f"{os.getpid()}.log"
    with first.open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    first.rename(directory / f"{process.pid}.log")
    sys.stdout.write(f"{process.pid}\n")
    sys.stdout.flush()
    os.close(1)
    (directory / f"{process.pid}.status").write_text(str(process.wait()))


def start(directory, command, said):
    """Returns (0, process id) when the command has printed these words or, without words, watches files."""
    supervisor = subprocess.Popen([sys.executable, "-B", __file__, directory, *command], stdout=subprocess.PIPE,
                                  text=True, env={**os.environ, "GPUFL_DOCS_SUPERVISOR": "1"}, start_new_session=True,
                                  stderr=subprocess.DEVNULL)
    pid = int(supervisor.stdout.readline())
    log, status = directory / f"{pid}.log", directory / f"{pid}.status"
    end = time.monotonic() + DEADLINE_S
    while time.monotonic() < end:
        if status.exists() and status.read_text():
            sys.stderr.write(log.read_text(errors="replace"))
            return int(status.read_text()) or 1, pid  # it should not have ended
        if said in log.read_text(errors="replace") if said else watches_files(pid):
            check_addresses(log.read_text(errors="replace"))
            sys.stderr.write(log.read_text(errors="replace"))
            (directory / f"{pid}.pid").write_text(" ".join(command))
            return 0, pid
        time.sleep(0.02)
    sys.stderr.write(f"{' '.join(command)}: not ready after {DEADLINE_S} s\n" + log.read_text(errors="replace"))
    return 1, pid


def words_of(command):
    """The text that a gpufl command prints when it is ready."""
    names = [word for word in (pathlib.Path(command[0]).name.replace("gpufl-", ""), *command[1:2]) if word in READY]
    return READY[names[0]] if names else ""


def main():
    directory, command = pathlib.Path(sys.argv[1]), sys.argv[2:]
    if os.environ.pop("GPUFL_DOCS_SUPERVISOR", None):
        supervise(directory, command)
        return 0
    return start(directory, command, words_of(command))[0]


if __name__ == "__main__":
    sys.exit(main())
