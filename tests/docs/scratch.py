# SPDX-License-Identifier: Apache-2.0
"""The machine on which a page's commands run, with separate processes, network and files that end with it, the
look-alike GPU libraries, gpufl, and the tools that a reader would have. Its root is an overlay on the real one, so that
commands run as root change nothing outside."""
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
SOURCE_PARTS = ("Makefile", "docs", "examples", "packaging", "tests")
DEADLINE_S = 1800  # of one block; a busy machine builds gpufl in ten minutes
NAMESPACES = ["unshare", "--mount", "--net", "--uts", "--ipc", "--pid", "--fork", "--kill-child"]
BASE = pathlib.Path("/tmp/documented")
UNTOUCHED = pathlib.Path("/.untouched")  # the real root, read-only, for pages that start from a fresh Debian

# A long-running command is started in the background, as in another terminal, and is ended with the page.
SERVICE = """#!/bin/bash
program={bin}/$(basename "$0")
stays() {{
    case $(basename "$0") in gpufl-agent) set -- agent "$@" ;; gpufl-monitor) set -- monitor "$@" ;; esac
    case " $* " in *" --once "* | *" --help "* | *" -h "*) return 1 ;; esac
    case $1 in
    agent | monitor | view) return 0 ;;
    trace) [[ ${{2:-}} == --view ]] ;;
    serve) [[ ${{2:--}} == -* ]] ;;
    *) return 1 ;;
    esac
}}
stays "$@" || exec "$program" "$@"
exec /usr/bin/python3 -B {here}/service.py {services} "$program" "$@"
"""

# For hidden commands after blocks that start an agent: waits until a server has a session of an app.
ARRIVES = """#!/bin/bash
# usage: session-arrives URL KEY APP
for _ in $(seq 1200); do
    answer=$(curl -fsS -H "Authorization: Bearer $2" "$1/api/v1/sessions?app=$3") || exit
    case $answer in *'"app":"'"$3"'"'*) exit 0 ;; esac
    sleep 0.1
done
echo "session-arrives: $1 has no session of $3: $answer"
exit 1
"""


def loopback_up():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sh14x", b"lo", 1 | 64)  # IFF_UP | IFF_RUNNING
        fcntl.ioctl(control, 0x8914, request)  # SIOCSIFFLAGS


def loopback_add(address):
    """Adds an address, for programs that look for their address on the machine's interfaces."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        name = f"lo:{address.rpartition('.')[2]}".encode()
        request = struct.pack("16sHH4s8x", name, socket.AF_INET, 0, socket.inet_aton(address))
        fcntl.ioctl(control, 0x8916, request)  # SIOCSIFADDR


def mount(*arguments):
    subprocess.run(["mount", *map(str, arguments)], check=True)


def in_namespaces():
    """Exits unless this is process 1 of a namespace, because the following steps would change the real machine."""
    if os.getpid() != 1:
        sys.exit("this changes the root of the machine; only the tests start it, in separate namespaces")


def layer(lower, place, layers):
    """Mounts an overlay with a directory as its lower layer at `place`."""
    place.mkdir(parents=True, exist_ok=True)
    for part in ("upper", "work"):
        (layers / part).mkdir(parents=True)
    mount("-t", "overlay", "-o", f"lowerdir={lower},upperdir={layers}/upper,workdir={layers}/work", "own", place)


def below(root, path):
    return root / str(path).lstrip("/")


def devices_make(place):
    """The device files that every program expects, and no hardware devices."""
    mount("-t", "tmpfs", "-o", "mode=755", "own", place)
    for name in ("null", "zero", "full", "random", "urandom", "tty"):
        (place / name).touch()
        mount("--bind", f"/dev/{name}", place / name)
    for name, target in (("fd", "/proc/self/fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2"),
                         ("ptmx", "pts/ptmx")):
        (place / name).symlink_to(target)
    for name, kind, options in (("pts", "devpts", "newinstance,ptmxmode=0666,mode=620"), ("shm", "tmpfs", "mode=1777")):
        (place / name).mkdir()
        mount("-t", kind, "-o", options, "own", place / name)


def root_enter(directory):
    """Builds the machine's root on an empty directory and changes to it permanently. It is a layer over this machine's
    root, or over the root in GPUFL_DOCS_ROOT, which contains source and build under the same paths."""
    in_namespaces()
    mount("--make-rprivate", "/")
    mount("-t", "tmpfs", "-o", "size=6g", "gpufl-docs", directory)
    root = directory / "root"
    beneath = pathlib.Path(os.environ.get("GPUFL_DOCS_ROOT", "/"))
    layer(beneath, root, directory / "layers-root")
    for place, mode in (("tmp", "1777"), ("run", "755")):
        mount("-t", "tmpfs", "-o", f"mode={mode}", "own", root / place)
    mount("-t", "proc", "proc", root / "proc")
    for source, place in ((root / "proc/sys", root / "proc/sys"), ("/sys", root / "sys")):  # the kernel is not ours
        mount("--bind", source, place)
        mount("-o", "remount,bind,ro", place)
    devices_make(root / "dev")
    # They may lie in /tmp, in other file systems than the root, and in each other; the build is last.
    for name, path in (("source", harness.SOURCE), ("build", harness.BUILD)):
        layer(below(beneath, path), below(root, path), directory / f"layers-{name}")
    untouched = below(root, UNTOUCHED)
    untouched.mkdir()
    mount("--bind", beneath, untouched)
    mount("-o", "remount,bind,ro", untouched)
    (root / ".old").mkdir()
    subprocess.run(["pivot_root", root, root / ".old"], check=True)
    os.chdir("/")
    subprocess.run(["umount", "--lazy", "/.old"], check=True)


class Scratch:
    """Made inside of the namespaces, on an empty directory that outlives them."""

    def __init__(self, directory):
        root_enter(pathlib.Path(directory))
        loopback_up()
        self.base = BASE
        self.at_end = []
        self.work = self.base / "reader"
        self.services = self.base / "services"
        self.bin = self.base / "bin"
        for path in (self.base, self.work, self.services, self.bin, self.base / "home"):
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
        self.program("session-arrives", ARRIVES)
        self.program("python", '#!/bin/sh\nexec /usr/bin/python3 "$@"\n')
        self.hand_over(self.work)
        for name, target in (("build", harness.BUILD), *((part, harness.SOURCE / part) for part in SOURCE_PARTS)):
            (self.work / name).symlink_to(target)

    @staticmethod
    def hand_over(folder):
        """Puts the reader's own programs there, and libraries that Debian lacks."""
        for path in (HERE / "given").iterdir():
            if path.is_file():
                shutil.copy(path, folder)
        python = harness.SOURCE / "tests" / "python"
        for path in (python / "fake_cuda.py", python / "arrow_consumer.py", *(python / "lookalike").iterdir()):
            (folder / path.name).symlink_to(path)
        (folder / "app").symlink_to(harness.FAKE_APP)

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
        for end in self.at_end:
            end()
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
