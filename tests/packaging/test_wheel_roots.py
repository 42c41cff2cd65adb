# SPDX-License-Identifier: Apache-2.0
"""The wheel of build/dist is installed by pip and records on the fake GPU in fresh systems of several ages, each with its
own CPython. The systems are made by debootstrap and kept in build/roots.

GPUFL_WHEEL_SUITES: which, such as "bullseye sid"; otherwise the releases, which do not change every day as sid does."""
import os
import shutil
import subprocess
import unittest

from packages import BUILD, SOURCE

PORTABLE = BUILD / "portable/x86_64-linux-gnu"
ROOTS = {"bullseye": "3.9", "bookworm": "3.11", "trixie": "3.13", "sid": "3.14"}
SUITES = os.environ.get("GPUFL_WHEEL_SUITES", "bullseye bookworm trixie").split()
FRESH = SOURCE / "tools/fresh_debian.sh"
FAKES = ("fake_cuda", "fake_cudart", "fake_nvml", "fake_cupti13", "fake_app")
LIFE = """
set -eu
cd /try
python3 -c 'import sys; print("python %d.%d" % sys.version_info[:2])'
python3 -m venv environment
environment/bin/pip install -q --no-index --disable-pip-version-check gpufl-*.whl
export LD_LIBRARY_PATH=/try/fakes GPUFL_CUDA_PATH=/try/fakes GPUFL_CUPTI_PATH=/try/fakes GPUFL_NVML_PATH=/try/fakes
export GPUFL_MIN_FREE_BYTES=0
environment/bin/python record.py
environment/bin/gpufl verify log
environment/bin/gpufl report log | grep step
environment/bin/gpufl trace -q -o traced -- fakes/fake_app --launches 5 >/dev/null
environment/bin/gpufl verify traced
environment/bin/gpufl demo --once | grep H200
environment/bin/gpufl upload --server http://127.0.0.1:9 log 2>&1 | grep 'did not answer'
environment/bin/pip uninstall -q -y gpufl
find environment -name '*gpufl*'
echo nothing is left
"""
RECORD = """
import gpufl, gpufl.cupti.cupti, gpufl._native
from gpufl.analyzer import GpuFlightSession
from fake_cuda import Gpu

gpu = Gpu("k")
gpufl.init(app_name="wheel", log_path="log", profiling_engine=gpufl.ProfilingEngine.Trace)
with gpufl.Scope("step"):
    gpu.launch("k", 3)
gpu.wait()
gpufl.shutdown()
print(len(GpuFlightSession("log").table("kernels")), "kernels")
try:
    gpufl._native.Table()
except TypeError as error:
    print(error)
"""


def checked(*command):
    done = subprocess.run([str(word) for word in command], text=True, stdin=subprocess.DEVNULL, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        raise AssertionError(f"{command} ended with {done.returncode}:\n{done.stdout[-3000:]}")
    return done.stdout


def mirror():
    """Where this machine gets Debian: other releases are in the same place."""
    listed = checked("apt-get", "indextargets", "--format", "$(ORIGIN) $(REPO_URI) $(RELEASE)", "Created-By: Packages")
    rows = [line.split() for line in listed.splitlines() if line.startswith("Debian http")]
    return next(uri for _, uri, release in rows if "-" not in release)


def root_of(suite):
    """A fresh system with Python and pip."""
    root = BUILD / "roots" / f"python-{suite}"
    if not (root / "try/ready").exists():
        subprocess.run(["rm", "-rf", "--one-file-system", root], check=True)
        checked(FRESH, "make", root, suite, mirror())
        checked(FRESH, "run", root, "apt-get", "-qq", "-o", "Acquire::Check-Valid-Until=false", "update")
        checked(FRESH, "run", root, "apt-get", "-qq", "install", "-y", "--no-install-recommends", "python3-pip", "python3-venv")
        (root / "try").mkdir()
        (root / "try/ready").touch()
    return root


def fakes():
    """The look-alike GPU, built for old systems as the wheel is."""
    build = BUILD / "portable/fakes"
    checked("cmake", "-S", SOURCE, "-B", build, "-G", "Ninja", f"-DCMAKE_TOOLCHAIN_FILE={PORTABLE}/toolchain.cmake",
            f"-DCMAKE_PREFIX_PATH={PORTABLE}/bundled", f"-DCMAKE_C_FLAGS=-isystem {PORTABLE}/bundled/include",
            "-DGPUFL_TESTS=ON", "-DGPUFL_CMOCKA=unused", "-DGPUFL_PYTHON=OFF", "-DGPUFL_DEMO_APP=OFF")
    checked("ninja", "-C", build, *FAKES)
    return build / "fakes"


class Roots(unittest.TestCase):
    def life(self, suite, root, fakes_directory):
        place = root / "try"
        for path in place.iterdir():
            if path.name != "ready":
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        shutil.copytree(fakes_directory, place / "fakes", symlinks=True)
        wheel, = (BUILD / "dist").glob("gpufl-*-cp39-abi3-manylinux_2_28_x86_64.whl")
        shutil.copy(wheel, place)
        shutil.copy(SOURCE / "tests/python/fake_cuda.py", place)
        (place / "record.py").write_text(RECORD)
        text = checked(FRESH, "run", root, "sh", "-c", LIFE)
        self.assertIn(f"python {ROOTS[suite]}", text)
        self.assertIn("\n3 kernels\ncannot create instances of", text)
        self.assertIn("complete: 5 kernels", text)
        self.assertTrue(text.endswith("nothing is left\n"), text)

    def test_it_is_installed_records_and_goes_away(self):
        built = fakes()
        for suite in SUITES:
            with self.subTest(suite):
                self.life(suite, root_of(suite), built)


if __name__ == "__main__":
    unittest.main()
