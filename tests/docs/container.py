# SPDX-License-Identifier: Apache-2.0
"""Runs processes in a separate root, as a container engine would: with image layers over this machine's original
Debian, users, capabilities, volumes and environment. They share the page's network.
usage: container.py enter|stay SPEC    enter: run the command in fresh namespaces; stay: create them and wait"""
import dataclasses
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

from scratch import BASE, UNTOUCHED, harness, in_namespaces, mount

HERE = pathlib.Path(__file__).resolve()
NAMESPACES = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclasses.dataclass
class Spec:
    """What runs, and where. Without an upper layer the root is read-only."""

    layers: list  # the first is the lowest
    command: list
    upper: str = ""
    environment: dict = dataclasses.field(default_factory=dict)
    mounts: list = dataclasses.field(default_factory=list)  # (source, target)
    tmpfs: list = dataclasses.field(default_factory=list)
    directory: str = "/"
    user: str = ""  # uid:gid; empty: root
    is_confined: bool = False

    def write(self, path):
        path.write_text(json.dumps(dataclasses.asdict(self)))
        return path


def spec_read(path):
    return Spec(**json.loads(pathlib.Path(path).read_text()))


def base_layer():
    """Makes this machine's Debian a fresh one: without the source, what is in /usr/local, and knowledge of packages
    that could be fetched if there were a network."""
    layer = BASE / "base-layer"
    if not layer.exists():
        for hidden in ("usr/local", "etc/apt/sources.list.d", "var/lib/apt/lists", str(harness.SOURCE).strip("/")):
            (layer / hidden).mkdir(parents=True)
            os.setxattr(layer / hidden, "trusted.overlay.opaque", b"y")
        (layer / "etc/apt/sources.list").touch()
    return str(layer)


def environment(spec):
    return {"PATH": PATH, "HOME": "/", **spec.environment}


def as_user(spec, command):
    """The command with the user and privileges of the container."""
    words = ["setpriv"]
    if spec.user:
        uid, _, gid = spec.user.partition(":")
        words += ["--reuid", uid, "--regid", gid or uid, "--clear-groups"]
    if spec.is_confined:
        words += ["--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"]
    return [*words, *command] if len(words) > 1 else list(command)


def enter(path):
    in_namespaces()
    spec, place = spec_read(path), pathlib.Path(path).with_suffix(".root")
    mount("--make-rprivate", "/")
    place.mkdir(exist_ok=True)
    options = "lowerdir=" + ":".join([*reversed(spec.layers), str(UNTOUCHED)])
    if spec.upper:
        work = pathlib.Path(f"{spec.upper}.work")
        work.mkdir(exist_ok=True)
        options += f",upperdir={spec.upper},workdir={work}"
    mount("-t", "overlay", "-o", options, "own", place)
    mount("-t", "proc", "proc", place / "proc")
    mount("--rbind", "/dev", place / "dev")
    for target in ("tmp", "run", *spec.tmpfs):
        mount("-t", "tmpfs", "-o", "mode=1777", "own", place / target.strip("/"))
    for source, target in [("/etc/hosts", "/etc/hosts"), *spec.mounts]:
        at = place / target.strip("/")
        if not at.exists():
            at.mkdir(parents=True)
        mount("--bind", source, at)
    os.chroot(place)
    os.chdir(spec.directory)
    command = as_user(spec, spec.command)
    os.execvpe(command[0], command, environment(spec))


def run(path):
    """Runs a container to its end."""
    return subprocess.run([*NAMESPACES, sys.executable, "-B", HERE, "enter", path], check=False).returncode


def first_child(pid):
    children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(children[0]) if children else 0


def stay(path):
    """A container's engine: hands SIGTERM on to the process, and ends as it did."""
    process = subprocess.Popen([*NAMESPACES, sys.executable, "-B", HERE, "enter", path])

    def hand_on(*_):
        os.kill(first_child(process.pid) or process.pid, signal.SIGTERM)

    signal.signal(signal.SIGTERM, hand_on)
    sys.exit(process.wait())


def stay_command(path):
    return [sys.executable, "-B", str(HERE), "stay", str(path)]


def execute(pid, path, command):
    """Runs a command in a container whose engine has this process id; its exit status."""
    spec = spec_read(path)
    inside = first_child(first_child(pid))
    words = ["nsenter", "--target", str(inside), "--mount", "--pid", "--root", f"--wd={spec.directory}"]
    return subprocess.run([*words, *as_user(spec, command)], env=environment(spec), check=False).returncode


def volume_make(path, layers, target):
    """A volume that begins with owner and mode of the image's directory, as a named one does."""
    path.mkdir(parents=True)
    for layer in reversed(layers):
        origin = pathlib.Path(layer) / target.strip("/")
        if origin.is_dir():
            shutil.copystat(origin, path)
            os.chown(path, origin.stat().st_uid, origin.stat().st_gid)
            return


if __name__ == "__main__":
    {"enter": enter, "stay": stay}[sys.argv[1]](sys.argv[2])
