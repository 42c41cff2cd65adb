# SPDX-License-Identifier: Apache-2.0
"""Replaces `docker`, without a registry: builds a Dockerfile in layers over this machine's Debian, and runs the
containers of a compose file. Unsupported instructions are errors.
usage: lookalike_docker.py build -f FILE --target STAGE -t TAG CONTEXT
       lookalike_docker.py compose -f FILE up -d | exec SERVICE COMMAND... | down"""
import argparse
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import yaml

import container
import engine
import lookalike_clickhouse
import service
from scratch import BASE, harness

sys.path.insert(0, str(harness.SOURCE / "tests/packaging"))
import dockerfile  # noqa: E402

# Of a service in a compose file. Of these restart, build, ulimits, pid and hostname change nothing here, and there is
# one network for all; the others are done, or have to say what is done anyway.
SERVICE_KEYS = {"image", "build", "restart", "read_only", "cap_drop", "security_opt", "tmpfs", "command", "environment",
                "ports", "volumes", "networks", "depends_on", "ulimits", "healthcheck", "pid", "hostname", "deploy"}
PUBLISHED = re.compile(r"127\.0\.0\.1:(\d+):(\d+)(/tcp)?")
DEBIAN = re.compile(r"debian:12\.\d+-slim")


def stop(message):
    sys.exit(f"docker: {message}")


def copy(source, target):
    """COPY of a file, or of a directory's content."""
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)


class Stage:
    """A stage of a Dockerfile, while it is built."""

    def __init__(self, folder, built):
        self.folder, self.built = folder, built
        self.layer = folder / "layer"
        self.layer.mkdir()
        self.image = {"layers": [container.base_layer(), str(self.layer)], "environment": {}, "directory": "/",
                      "user": "", "entrypoint": [], "command": [], "volumes": []}

    def path(self, name):
        return self.layer / os.path.join(self.image["directory"], name).strip("/")

    def do(self, word, rest):
        actions = {"RUN": self.run, "COPY": self.copy, "WORKDIR": self.workdir, "ENV": self.env, "USER": self.user,
                   "ENTRYPOINT": lambda text: self.image.update(entrypoint=json.loads(text)),
                   "CMD": lambda text: self.image.update(command=json.loads(text)),
                   "VOLUME": self.image["volumes"].append, "EXPOSE": int}
        if word not in actions:
            stop(f"no instruction {word}")
        actions[word](rest)

    def run(self, text):
        tools = BASE / "build-tools"
        spec = container.Spec([container.base_layer()], ["/bin/sh", "-c", text], upper=str(self.layer),
                              mounts=[(str(tools), "/mnt")], directory=self.image["directory"], user=self.image["user"],
                              environment={"PATH": f"/mnt/bin:{container.PATH}", "HOME": "/root",
                                           **self.image["environment"]})
        status = container.run(spec.write(self.folder / "run.json"))
        if status:
            stop(f"RUN {text}: ended with {status}")

    def copy(self, text):
        *sources, target = text.split()
        if sources[0].startswith("--from="):
            root = self.built(sources.pop(0).partition("=")[2])
            for name in sources:
                copy(root / name.strip("/"), self.path(target))
            return
        if sources == ["."]:
            for name in dockerfile.context_files():
                copy(harness.SOURCE / name, self.path(target) / name)
            return
        for name in sources:
            if name not in dockerfile.context_files():
                stop(f"COPY {name}: not in the context")
            copy(harness.SOURCE / name, self.path(target))

    def workdir(self, text):
        self.image["directory"] = text
        self.path("").mkdir(parents=True, exist_ok=True)

    def env(self, text):
        self.image["environment"].update(word.split("=", 1) for word in text.split())

    def user(self, text):
        self.image["user"] = text


def tools_make():
    """The compiler of the image is this machine's; what it makes is not for long, so it does not optimize."""
    folder = BASE / "build-tools"
    if folder.exists():
        return
    (folder / "bin").mkdir(parents=True)
    for name, program in (("cc", "gcc"), ("c++", "g++")):
        path = folder / "bin" / name
        path.write_text(f'#!/bin/sh\nexec /usr/bin/{program} "$@" -O0 -g0\n')
        path.chmod(0o755)


def stage_build(name, stages):
    """The stage's layer; built once for the same instructions and context, as Docker would."""
    if name not in stages:
        stop(f"no stage {name}")
    base, lines = stages[name]
    if not DEBIAN.fullmatch(base):
        stop(f"{base}: there is no registry, and this machine is no stand-in for it")
    files = [(file, (harness.SOURCE / file).stat().st_mtime_ns) for file in dockerfile.context_files()]
    key = hashlib.sha256(json.dumps([base, lines, files]).encode()).hexdigest()[:16]
    folder = BASE / "stages" / key
    if not (folder / "image.json").exists():
        tools_make()
        folder.mkdir(parents=True)
        stage = Stage(folder, lambda other: stage_build(other, stages) / "layer")
        for word, rest in lines:
            stage.do(word, rest)
        (folder / "image.json").write_text(json.dumps(stage.image))
    return folder


def build(words):
    parser = argparse.ArgumentParser(prog="docker build")
    parser.add_argument("-f", "--file", required=True)
    parser.add_argument("--target", required=True)
    parser.add_argument("-t", "--tag", required=True)
    parser.add_argument("context")
    options = parser.parse_args(words)
    if pathlib.Path(options.context).resolve() != harness.SOURCE:
        stop(f"{options.context}: the context is the source")
    folder = stage_build(options.target, dockerfile.stages(pathlib.Path(options.file).resolve()))
    engine.image_put(options.tag, json.loads((folder / "image.json").read_text()))


def services_of(path):
    """The services as docker-compose itself understands them, with what they depend on first."""
    done = subprocess.run(["docker-compose", "-f", path, "config"], capture_output=True, text=True, check=False)
    if done.returncode:
        stop(done.stderr)
    services = yaml.safe_load(done.stdout)["services"]
    for name, settings in services.items():
        for key in settings:
            if key not in SERVICE_KEYS:
                stop(f"{name}: no {key}")
        for port in settings.get("ports", []):
            found = PUBLISHED.fullmatch(str(port))
            if not found or found.group(1) != found.group(2):
                stop(f"{name}: {port}: containers share one network here, so ports stay what they are")
    return dict(sorted(services.items(), key=lambda item: len(item[1].get("depends_on", {}))))


def healthy(name, settings):
    test = settings["healthcheck"]["test"]
    if test[0] != "CMD":
        stop(f"{name}: healthcheck {test}")
    end = time.monotonic() + service.DEADLINE_S
    while subprocess.run(test[1:], check=False, stdout=subprocess.DEVNULL).returncode:
        if time.monotonic() > end:
            stop(f"{name} is not healthy")
        time.sleep(0.1)


def up(name, settings):
    if settings["image"].startswith("clickhouse/clickhouse-server:"):
        command = [sys.executable, "-B", lookalike_clickhouse.__file__]
        os.environ.update(settings["environment"])
        engine.start(name, command, lookalike_clickhouse.READY)
    else:
        if settings.get("cap_drop") != ["ALL"] or settings.get("security_opt") != ["no-new-privileges:true"]:
            stop(f"{name}: only containers without privileges are known")
        volumes = [volume.split(":")[:2] for volume in settings.get("volumes", [])]
        engine.container_start(name, settings["image"], settings["command"],
                               {key: str(value) for key, value in settings.get("environment", {}).items()},
                               [(f"volume-{volume}", target) for volume, target in volumes],
                               settings.get("tmpfs", []), settings["read_only"])
    if "healthcheck" in settings:
        healthy(name, settings)


def compose(words):
    parser = argparse.ArgumentParser(prog="docker compose")
    parser.add_argument("-f", "--file", required=True)
    actions = parser.add_subparsers(dest="action", required=True)
    actions.add_parser("up").add_argument("-d", "--detach", action="store_true", required=True)
    actions.add_parser("down")
    execute = actions.add_parser("exec")
    execute.add_argument("service")
    execute.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args(words)
    services = services_of(options.file)
    if options.action == "exec":
        sys.exit(engine.execute(options.service, options.command))
    for name, settings in services.items():
        if options.action == "down":
            engine.stop(name, signal.SIGTERM)
        else:
            engine.host_name(name)
            up(name, settings)


def main():
    actions = {"build": build, "compose": compose}
    if len(sys.argv) < 2 or sys.argv[1] not in actions:
        stop(f"only {' and '.join(actions)} are known here: {' '.join(sys.argv[1:])}")
    actions[sys.argv[1]](sys.argv[2:])


if __name__ == "__main__":
    main()
