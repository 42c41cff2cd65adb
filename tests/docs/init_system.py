# SPDX-License-Identifier: Apache-2.0
"""systemd, as process 1 of a PID namespace in the page's machine. It does not see the host's units, only empty targets
and the units that the page installs."""
import os
import pathlib
import shutil
import subprocess
import time

from scratch import DEADLINE_S, harness, mount

PROGRAM = "/lib/systemd/systemd"
TARGETS = ("sysinit", "basic", "multi-user", "shutdown", "network", "network-online")
DRIVER = pathlib.Path("/opt/driver/lib")
# Its cgroups are in a cgroup that is removed with it; its mounts are private.
START = """set -eu
echo $$ >{cgroup}/cgroup.procs
exec unshare --cgroup --mount --pid --fork --kill-child --mount-proc sh -c '
umount {cgroups}
mount --make-rshared /
mount -t cgroup2 cgroup2 /sys/fs/cgroup
exec env -i container=documented PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin \
    SYSTEMD_UNIT_PATH=/etc/systemd/system:/usr/local/lib/systemd/system:{units} SYSTEMD_GENERATOR_PATH={nothing} \
    {program} --unit=basic.target --log-target=console --show-status=no'
"""
# Clients must run in the same namespaces.
CLIENT = """#!/bin/sh
exec nsenter --target {pid} --pid --mount --cgroup /usr/bin/{name} "$@"
"""


def driver_install():
    """The directory of the look-alike libraries for services and containers, which lack the reader's environment."""
    if not DRIVER.exists():
        DRIVER.mkdir(parents=True)
        for path in harness.FAKES.glob("*.so*"):
            shutil.copy(path, DRIVER)
    return DRIVER


def environment_set():
    """Sets the environment of all services, as an administrator would."""
    names = ("LD_LIBRARY", "GPUFL_CUDA", "GPUFL_CUPTI", "GPUFL_NVML")
    settings = pathlib.Path("/etc/systemd/system.conf.d/driver.conf")
    settings.parent.mkdir(parents=True, exist_ok=True)
    words = " ".join(f"{name}_PATH={driver_install()}" for name in names)
    settings.write_text(f"[Manager]\nDefaultEnvironment={words} GPUFL_SYSFS_ROOT=/nonexistent\n")


def children(pid):
    return [int(word) for word in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def boot(machine):
    """Returns when it takes commands."""
    folder = machine.base / "systemd"
    units, nothing, cgroups = folder / "units", folder / "nothing", folder / "cgroups"
    for path in (units, nothing, cgroups):
        path.mkdir(parents=True)
    for name in TARGETS:
        (units / f"{name}.target").write_text(f"[Unit]\nDescription={name}\n")
    environment_set()
    mount("-t", "cgroup2", "cgroup2", cgroups)
    cgroup = cgroups / f"gpufl-docs-{os.stat('/proc/self/ns/pid').st_ino}"
    cgroup.mkdir()
    script = START.format(cgroup=cgroup, cgroups=cgroups, units=units, nothing=nothing, program=PROGRAM)
    log = folder / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(["sh", "-c", script], stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd="/")
    machine.at_end.append(lambda: halt(process, cgroup))
    end = time.monotonic() + DEADLINE_S
    while time.monotonic() < end and process.poll() is None:
        for pid in children(process.pid):
            for name in ("systemctl", "systemd-sysusers"):
                machine.program(name, CLIENT.format(pid=pid, name=name))
            if machine.run(["systemctl", "is-active", "basic.target"])[1] == 0:
                return
        time.sleep(0.05)
    raise RuntimeError(f"systemd does not start: {log.read_text(errors='replace')}")


def halt(process, cgroup):
    """Ends it with all that it started, and takes its cgroups away."""
    process.kill()
    process.wait()
    end = time.monotonic() + DEADLINE_S
    while (cgroup / "cgroup.events").read_text().startswith("populated 1") and time.monotonic() < end:
        time.sleep(0.02)
    for path in sorted((path for path in cgroup.rglob("*") if path.is_dir()), reverse=True):
        path.rmdir()
    cgroup.rmdir()
