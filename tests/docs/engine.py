# SPDX-License-Identifier: Apache-2.0
"""Images, volumes and running containers of a page's machine, for the stand-ins of docker and kubectl. Containers are
services of the page: they end with it, and have to end well."""
import json
import os
import pathlib
import sys
import time

import container
import init_system
import service
from scratch import BASE

STATE = BASE / "containers"
SERVICES = BASE / "services"


def image_put(tag, image):
    folder = STATE / "images"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / tag.replace("/", "+")).write_text(json.dumps(image))


def image_get(tag):
    path = STATE / "images" / tag.replace("/", "+")
    if not path.exists():
        sys.exit(f"{tag}: there is no such image, and no registry")
    return json.loads(path.read_text())


def host_name(name):
    """Containers find each other by name; all are on this machine's loopback."""
    hosts = pathlib.Path("/etc/hosts")
    if f" {name}\n" not in hosts.read_text():
        hosts.write_text(f"{hosts.read_text().rstrip()}\n127.0.0.1 {name}\n")


def record(name):
    return STATE / f"{name}.json"


def start(name, command, said):
    """Starts what stays, and returns when it is ready."""
    STATE.mkdir(exist_ok=True)
    status, pid = service.start(SERVICES, [str(word) for word in command], said)
    if status:
        sys.exit(f"{name}: ended with {status}")
    (STATE / f"{name}.pid").write_text(str(pid))


def container_start(name, tag, command, environment, volumes, tmpfs, is_read_only, user=""):
    """volumes: (name, target); one that is not there yet is made as the image has it. user: not the image's."""
    STATE.mkdir(exist_ok=True)
    image, mounts = image_get(tag), []
    for volume, target in volumes:
        place = STATE / volume
        if not place.exists():
            container.volume_make(place, image["layers"], target)
        mounts.append((str(place), target))
    variables = {**image["environment"], **environment}
    # What NVIDIA's runtime brings into a container that does not refuse it.
    if variables.get("NVIDIA_VISIBLE_DEVICES", "void") != "void":
        mounts.append((str(init_system.driver_install()), "/mnt"))
        variables.update(LD_LIBRARY_PATH="/mnt", GPUFL_NVML_PATH="/mnt", GPUFL_SYSFS_ROOT="/nonexistent")
    spec = container.Spec(image["layers"], [*image["entrypoint"], *(command or image["command"])],
                          environment=variables, mounts=mounts, tmpfs=tmpfs, directory=image["directory"],
                          user=user or image["user"], is_confined=True)
    if not is_read_only:
        spec.upper = str(STATE / f"{name}.upper")
        os.makedirs(spec.upper)
    spec.write(record(name))
    start(name, container.stay_command(record(name)), service.words_of(["gpufl", *(command or image["command"])]))


def is_running(name):
    return (STATE / f"{name}.pid").exists()


def pid_of(name):
    if not is_running(name):
        sys.exit(f"{name}: no such container is running")
    return int((STATE / f"{name}.pid").read_text())


def execute(name, command):
    return container.execute(pid_of(name), record(name), command)


def stop(name, number):
    """Ends a container and waits for it; a bad end is an error."""
    pid = pid_of(name)
    os.kill(pid, number)
    status, end = SERVICES / f"{pid}.status", time.monotonic() + service.DEADLINE_S
    while not (status.exists() and status.read_text()):
        if time.monotonic() > end:
            sys.exit(f"{name} does not end")
        time.sleep(0.02)
    if int(status.read_text()):
        sys.exit(f"{name} ended with {status.read_text()}: {(SERVICES / f'{pid}.log').read_text()}")
    (SERVICES / f"{pid}.pid").unlink()
    (STATE / f"{name}.pid").unlink()
