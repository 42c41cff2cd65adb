#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""README and the quick starts work for a new user: in a fresh, minimal Debian 12 without compiler, Node.js or CUDA, with
the source of this checkout under the same path. The build uses the network. Afterwards each page runs on a separate
machine without network, as in test_blocks.py, but as a layer over the fresh root.
The minimal Debian is kept in build/fresh-root; packages and program are installed and built in a copy each time."""
import pathlib
import re
import shutil
import subprocess
import time
import unittest

import blocks
import pages
from scratch import harness

KEPT = harness.BUILD / "fresh-root"
FRESH_DEBIAN = harness.SOURCE / "tools" / "fresh_debian.sh"
README = harness.SOURCE / "README.md"
PAGES = [README, *sorted((harness.SOURCE / "docs").glob("quickstart-*.md"))]
READER_PACKAGES = ("curl", "python3-pandas")  # what the pages expect besides the program to record
DOWNLOAD_LIMIT_MB = 130
GPU = pathlib.Path("/opt/look-alike-gpu")
INSTALLED = ["dpkg-query", "-W", "-f", "${Package}=${Version}\n"]


def source_files():
    """Tracked and new files, without build output."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=harness.SOURCE, check=True,
                            capture_output=True, text=True)
    return [name for name in listed.stdout.split("\0") if name and (harness.SOURCE / name).is_file()]


def prerequisite():
    """The command that README names for a minimal Debian."""
    found = re.search(r"`(apt update && apt install [^`]*)`", README.read_text())
    if not found:
        raise AssertionError("README.md does not say what has to be installed before `make demo`")
    return found.group(1)


def first_block():
    return next(step.text for step in blocks.steps_of(README.read_text()) if step.kind == "block")


class FreshRoot(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        pages.needs_machines(cls.prepare)()

    @classmethod
    def prepare(cls):
        """Makes the root and builds in it, up to the point where the pages can run."""
        if not (KEPT / "debian").is_dir():
            subprocess.run([FRESH_DEBIAN, "make", KEPT / "debian"], check=True)
        cls.root = KEPT / "root"
        subprocess.run(["rm", "-rf", "--one-file-system", cls.root], check=True)
        cls.addClassCleanup(shutil.rmtree, cls.root, ignore_errors=True)
        subprocess.run(["cp", "-a", "--reflink=auto", KEPT / "debian", cls.root], check=True)
        (cls.root / "etc/apt/apt.conf.d/99answers").write_text('APT::Get::Assume-Yes "true";\n')
        for name in source_files():
            target = cls.place(harness.SOURCE / name)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(harness.SOURCE / name, target)
        cls.inside("sh", "-c", prerequisite())
        before = set(cls.inside(*INSTALLED).split())
        began = time.monotonic()
        cls.inside("make")
        print(f"make: {time.monotonic() - began:.0f} s with the packages", flush=True)
        cls.installed = sorted(set(cls.inside(*INSTALLED).split()) - before)
        cls.demo = cls.inside("sh", "-euc", first_block())
        cls.after_demo = sorted(set(cls.inside(*INSTALLED).split()) - before)
        cls.inside("apt-get", "-q", "install", "--no-install-recommends", *READER_PACKAGES)
        shutil.copytree(harness.FAKES, cls.place(GPU), symlinks=True)
        cls.variables = {"GPUFL_DOCS_ROOT": str(cls.root), "GPUFL_BUILD_DIR": str(harness.SOURCE / "build"),
                         "GPUFL_FAKES_DIR": str(GPU)}

    @classmethod
    def place(cls, path):
        return cls.root / str(path).lstrip("/")

    @classmethod
    def inside(cls, *command):
        """Runs a command in the fresh root, in the source directory, and returns its output."""
        words = ["env", "-C", harness.SOURCE, *command]
        done = subprocess.run([FRESH_DEBIAN, "run", cls.root, *words], text=True, stdin=subprocess.DEVNULL, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode:
            raise AssertionError(f"{command}: ended with {done.returncode}: {done.stdout[-3000:]}")
        return done.stdout

    def test_make_downloads_little_and_needs_no_node(self):
        sizes = re.findall(r"^Size: (\d+)", self.inside("apt-cache", "show", *self.installed), re.M)
        download = sum(map(int, sizes)) / 1e6
        print(f"make: {len(self.installed)} packages, {download:.0f} MB to download", flush=True)
        self.assertGreaterEqual(len(sizes), len(self.installed))
        self.assertLess(download, DOWNLOAD_LIMIT_MB, self.installed)
        self.assertEqual(self.after_demo, self.installed, "make demo installs more than make")
        for name in ("node", "nodejs", "npm", "nvcc", "java"):
            self.assertFalse(list(self.root.glob(f"usr/*bin/{name}")), name)

    def test_make_demo_prints_a_report(self):
        self.assertIn("WHERE THE TIME WENT", self.demo)

    def test_every_block_does_what_it_says(self):
        found = pages.problems(pages.run_all(PAGES, self.variables))
        self.assertFalse(found, "\n\n".join(found))

    def test_pages_run_with_the_programs_of_the_fresh_root_alone(self):
        programs = sum(1 for _ in (self.root / "usr/bin").iterdir())
        outcomes = pages.outcomes_of(f"```console\n$ ls /usr/bin | wc -l\n{programs}\n```\n", self.variables)
        self.assertEqual([kind for kind, _ in outcomes], ["executed"], outcomes)


if __name__ == "__main__":
    harness.main()
