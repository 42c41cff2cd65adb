# SPDX-License-Identifier: Apache-2.0
"""The Dockerfile's instructions, and the files in the context of `docker build`."""
import fnmatch
import pathlib
import re
import subprocess

SOURCE = pathlib.Path(__file__).resolve().parents[2]
DIRECTORY = SOURCE / "packaging/docker"


def instructions(path=DIRECTORY / "Dockerfile"):
    """(word, rest) of each instruction, continued lines joined."""
    text = re.sub(r"(?m)^\s*#.*\n", "", path.read_text())
    return [tuple(line.split(None, 1)) for line in re.sub(r"\\\n", " ", text).splitlines() if line.strip()]


def stages(path=DIRECTORY / "Dockerfile"):
    """name: (base, instructions) of each FROM."""
    result = {}
    for word, rest in instructions(path):
        if word == "FROM":
            base, _, name = rest.split()
            result[name] = (base, [])
        else:
            result[name][1].append((word, rest))
    return result


def context_files():
    """The tracked and untracked files that `docker build .` would see."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=SOURCE, check=True,
                            capture_output=True, text=True).stdout.split("\0")
    patterns = [line for line in (SOURCE / ".dockerignore").read_text().splitlines() if line and line[0] != "#"]
    return [name for name in listed if name and (SOURCE / name).is_file()
            and not any(ignored(name, pattern) for pattern in patterns)]


def ignored(name, pattern):
    parts = name.split("/")
    if pattern.startswith("**/"):
        return any(fnmatch.fnmatch(part, pattern[3:]) for part in parts)
    return any(fnmatch.fnmatch("/".join(parts[:i + 1]), pattern) for i in range(len(parts)))
