# SPDX-License-Identifier: Apache-2.0
"""The Debian packages, built once for all tests that use them, and a directory that is removed after the tests."""
import atexit
import functools
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("GPUFL_BUILD_DIR", SOURCE / "build")).resolve()
DIRECTORY = pathlib.Path(tempfile.mkdtemp(prefix="gpufl-packages-"))
atexit.register(shutil.rmtree, DIRECTORY, ignore_errors=True)
sys.dont_write_bytecode = True


@functools.cache
def built():
    """Output directory of tools/build_deb.sh, with the packages in packages/; GPUFL_DEB_DIR names an existing one."""
    if "GPUFL_DEB_DIR" in os.environ:
        return pathlib.Path(os.environ["GPUFL_DEB_DIR"])
    result = subprocess.run([SOURCE / "tools/build_deb.sh", BUILD / "deb"], capture_output=True, text=True, check=False)
    if result.returncode:
        raise AssertionError(result.stdout + result.stderr)
    return BUILD / "deb"
