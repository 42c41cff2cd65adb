# SPDX-License-Identifier: Apache-2.0
"""Starts a command that stays, and returns when it is ready: when it has said so, or watches files.
usage: service.py DIRECTORY COMMAND...    leaves PID.log there, PID.pid when it is ready, PID.status at its end"""
import os
import pathlib
import subprocess
import sys
import time

READY = {"serve": "data in", "monitor": " ms into ", "view": "press Ctrl-C", "trace": "press Ctrl-C"}
DEADLINE_S = 120


def watches_files(pid):
    """The agent says nothing: it, or a process below it, is ready when it listens for changes."""
    try:
        process = pathlib.Path(f"/proc/{pid}")
        return (any("inotify" in os.readlink(entry) for entry in (process / "fd").iterdir()) or
                any(watches_files(child) for child in (process / f"task/{pid}/children").read_text().split()))
    except OSError:
        return False


def keeper(directory, command):
    """Waits for the service in its place, since whoever reads the page may be gone by then."""
    first = directory / f"{os.getpid()}.log"
    with first.open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    first.rename(directory / f"{process.pid}.log")
    sys.stdout.write(f"{process.pid}\n")
    sys.stdout.flush()
    os.close(1)
    (directory / f"{process.pid}.status").write_text(str(process.wait()))


def start(directory, command, said):
    """Returns (0, process id) when the command has said these words or, without words, watches files."""
    holder = subprocess.Popen([sys.executable, "-B", __file__, directory, *command], stdout=subprocess.PIPE, text=True,
                              env={**os.environ, "GPUFL_DOCS_KEEPER": "1"}, start_new_session=True,
                              stderr=subprocess.DEVNULL)
    pid = int(holder.stdout.readline())
    log, status = directory / f"{pid}.log", directory / f"{pid}.status"
    end = time.monotonic() + DEADLINE_S
    while time.monotonic() < end:
        if status.exists() and status.read_text():
            sys.stderr.write(log.read_text(errors="replace"))
            return int(status.read_text()) or 1, pid  # it should have stayed
        if said in log.read_text(errors="replace") if said else watches_files(pid):
            sys.stderr.write(log.read_text(errors="replace"))
            (directory / f"{pid}.pid").write_text(" ".join(command))
            return 0, pid
        time.sleep(0.02)
    sys.stderr.write(f"{' '.join(command)}: not ready after {DEADLINE_S} s\n" + log.read_text(errors="replace"))
    return 1, pid


def words_of(command):
    """What a command of ours says when it is ready."""
    names = [word for word in (pathlib.Path(command[0]).name.replace("gpufl-", ""), *command[1:2]) if word in READY]
    return READY[names[0]] if names else ""


def main():
    directory, command = pathlib.Path(sys.argv[1]), sys.argv[2:]
    if os.environ.pop("GPUFL_DOCS_KEEPER", None):
        keeper(directory, command)
        return 0
    return start(directory, command, words_of(command))[0]


if __name__ == "__main__":
    sys.exit(main())
