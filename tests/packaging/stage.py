# SPDX-License-Identifier: Apache-2.0
"""A separate installation, moved to another directory after `cmake --install`, with the fake GPU next to it. If
imported before the end-to-end tests' harness, the harness uses the installed files instead of the built ones."""
import atexit
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("GPUFL_BUILD_DIR", SOURCE / "build")).resolve()
DIRECTORY = pathlib.Path(tempfile.mkdtemp(prefix="gpufl-stage-"))
PREFIX = DIRECTORY / "prefix"
atexit.register(shutil.rmtree, DIRECTORY, ignore_errors=True)


def install(prefix, *options):
    subprocess.run(["cmake", "--install", BUILD, "--prefix", prefix, *options], check=True, stdout=subprocess.DEVNULL)


def installed(prefix):
    """Names of everything below a prefix but directories."""
    return {str(path.relative_to(prefix)) for path in prefix.rglob("*") if path.is_symlink() or not path.is_dir()}


install(DIRECTORY / "first")
(DIRECTORY / "first").rename(PREFIX)
FILES = installed(PREFIX)
(PREFIX / "fakes").symlink_to(BUILD / "fakes")
os.environ["GPUFL_BUILD_DIR"] = str(PREFIX)
sys.path.insert(0, str(SOURCE / "tests/e2e"))
sys.dont_write_bytecode = True
