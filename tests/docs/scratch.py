# SPDX-License-Identifier: Apache-2.0
"""The machine on which a page's commands run: its own processes, network, /etc, /var, /opt and /usr/local, none of
which outlives it, with the look-alike GPU libraries, and gpufl and what a reader would have at hand."""
import fcntl
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import harness  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
OWN_DIRECTORIES = ("/etc", "/var", "/opt", "/usr/local")
DEADLINE_S = 120
NAMESPACES = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]

# A command that stays gets a terminal of its own: it runs on beside the page, and is ended with it.
SERVICE = """#!/bin/bash
program={bin}/$(basename "$0")
stays() {{
    case $(basename "$0") in gpufl-agent) set -- agent "$@" ;; gpufl-monitor) set -- monitor "$@" ;; esac
    case " $* " in *" --once "* | *" --help "* | *" -h "*) return 1 ;; esac
    case $1 in
    agent | monitor) return 0 ;;
    serve) [[ ${{2:--}} == -* ]] ;;
    *) return 1 ;;
    esac
}}
stays "$@" || exec "$program" "$@"
exec /usr/bin/python3 -B {here}/service.py {services} "$program" "$@"
"""


def loopback_up():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sh14x", b"lo", 1 | 64)  # IFF_UP | IFF_RUNNING
        fcntl.ioctl(control, 0x8914, request)  # SIOCSIFFLAGS


def mount(*arguments):
    subprocess.run(["mount", *arguments], check=True)


class Scratch:
    """Made inside of the namespaces, on an empty directory that outlives them."""

    def __init__(self, directory):
        self.base = pathlib.Path(directory)
        mount("-t", "tmpfs", "-o", "size=2g", "gpufl-docs", str(self.base))
        for own in OWN_DIRECTORIES:
            layers = self.base / "layers" / own.strip("/").replace("/", "-")
            for part in ("upper", "work"):
                (layers / part).mkdir(parents=True)
            mount("-t", "overlay", "-o", f"lowerdir={own},upperdir={layers}/upper,workdir={layers}/work", "own", own)
        loopback_up()
        self.work = self.base / "reader"
        self.services = self.base / "services"
        self.bin = self.base / "bin"
        for path in (self.work, self.services, self.bin, self.base / "home"):
            path.mkdir()
        self.furnish()
        self.variables = harness.environment(
            HOME=self.base / "home", PATH=f"{self.bin}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            LD_LIBRARY_PATH=f"{harness.FAKES}:{harness.BUILD / 'lib'}",
            PYTHONPATH=f"{harness.BUILD / 'python'}:{self.work}", PYTHONDONTWRITEBYTECODE="1", MPLBACKEND="Agg",
            TMPDIR=self.base / "home", CI=None, COLUMNS=None)
        for name in ("XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
            self.variables.pop(name, None)

    def furnish(self):
        service = SERVICE.format(bin=harness.BUILD / "bin", here=HERE, services=self.services)
        for name in ("gpufl", "gpufl-agent", "gpufl-monitor"):
            self.program(name, service)
        self.program("python", '#!/bin/sh\nexec /usr/bin/python3 "$@"\n')
        for path in (HERE / "given").iterdir():
            if path.is_file():
                shutil.copy(path, self.work)
        shutil.copy(harness.SOURCE / "tests" / "python" / "fake_cuda.py", self.work)
        (self.work / "app").symlink_to(harness.FAKE_APP)
        for name, target in (("build", harness.BUILD), ("examples", harness.SOURCE / "examples"),
                             ("tests", harness.SOURCE / "tests"), ("docs", harness.SOURCE / "docs"),
                             ("torch", harness.SOURCE / "tests" / "python" / "lookalike" / "torch"),
                             ("packaging", harness.SOURCE / "packaging"), ("Makefile", harness.SOURCE / "Makefile")):
            (self.work / name).symlink_to(target)

    def program(self, name, text):
        path = self.bin / name
        path.write_text(text)
        path.chmod(0o755)

    def run(self, command, text=None, **variables):
        """Runs to its end; output of both streams together, and the status."""
        done = subprocess.run([str(word) for word in command], input=text, text=True, cwd=self.work,
                              env={**self.variables, **variables}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              stdin=None if text is not None else subprocess.DEVNULL, timeout=DEADLINE_S, check=False,
                              errors="replace")
        return done.stdout, done.returncode

    def end_services(self):
        """Ends what stayed, as Ctrl-C would; a list of complaints."""
        complaints = []
        for path in sorted(self.services.glob("*.pid")):
            pid, log = int(path.stem), path.with_suffix(".log")
            try:
                os.kill(pid, signal.SIGTERM)
            except ProcessLookupError:
                pass
            status = self.status_of(path)
            if status != 0:
                complaints.append(f"{path.read_text().strip()}: ended with {status}\n{log.read_text(errors='replace')}")
            path.unlink()
        return complaints

    @staticmethod
    def status_of(path):
        """What service.py noted as the exit status of a service, once it has ended."""
        status, end = path.with_suffix(".status"), time.monotonic() + DEADLINE_S
        while time.monotonic() < end:
            if status.exists() and status.read_text():
                return int(status.read_text())
            time.sleep(0.02)
        return "no end"
