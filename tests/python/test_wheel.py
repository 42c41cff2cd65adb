#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The wheel and the source distribution, made by pip without a network; installed, used and removed again."""
import base64
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import tempfile
import unittest
import zipfile

import fixture
import harness

PYTHON = "/usr/bin/python3"
FROM_BUILD = ("--config-settings", f"build-dir={harness.BUILD}")
LIBRARIES = {"gpufl/lib/libgpufl.so.1", "gpufl/lib/libgpufl_inject.so", "gpufl/lib/libgpufl_preload.so"}
# Records three kernels in a scope, by the package that is installed.
RECORD = f"""
import sys
sys.path.insert(0, {str(fixture.SOURCE / "tests" / "python")!r})
import gpufl
from fake_cuda import Gpu
gpu = Gpu("k")
gpufl.init(app_name="wheel", log_path="log", profiling_engine=gpufl.ProfilingEngine.Trace)
with gpufl.Scope("step"):
    gpu.launch("k", 3)
gpu.wait()
gpufl.shutdown()
"""


def pip(*arguments, **options):
    return harness.run(PYTHON, "-B", "-m", "pip", "--disable-pip-version-check", *arguments,
                       env=harness.environment(PIP_NO_INDEX="1", PIP_NO_CACHE_DIR="1", PYTHONDONTWRITEBYTECODE="1"),
                       **options)


def source_files():
    return {path.relative_to(fixture.SOURCE) for path in (fixture.SOURCE / "python").rglob("*")
            if "__pycache__" not in path.parts}


class Wheel(fixture.TestCase):
    @classmethod
    def setUpClass(cls):
        if pip("--version").returncode and "CI" not in os.environ:
            raise unittest.SkipTest("needs pip (python3-pip)")
        cls.made = pathlib.Path(tempfile.mkdtemp(prefix="gpufl-wheel-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.made, ignore_errors=True)
        before = source_files()
        result = pip("wheel", "--no-deps", "--wheel-dir", cls.made, *FROM_BUILD, fixture.SOURCE)
        if result.returncode:
            raise AssertionError(result.stdout + result.stderr)
        cls.wheel, = cls.made.glob("*.whl")
        cls.left = source_files() - before

    def venv(self, *options):
        """A fresh environment with the wheel installed; its interpreter."""
        folder = self.directory / "venv"
        harness.run(PYTHON, "-m", "venv", "--without-pip", *options, folder)
        python = folder / "bin" / "python"
        result = pip("--python", python, "install", "--no-deps", self.wheel)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return python

    def run_python(self, python, *arguments):
        """Python in the environment, in a directory without the source, beside the fake GPU."""
        result = harness.run(python, *arguments, cwd=self.directory, env=harness.environment())
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return result.stdout

    def test_it_holds_the_package_the_program_and_the_libraries_once_each(self):
        self.assertRegex(self.wheel.name, r"^gpufl-[0-9.]+-cp39-abi3-(many)?linux_\w+\.whl$")
        with zipfile.ZipFile(self.wheel) as archive:
            names = set(archive.namelist())
            modes = {entry.filename: entry.external_attr >> 16 & 0o777 for entry in archive.infolist()}
        python_files = {str(path.relative_to(fixture.SOURCE / "python"))
                        for path in (fixture.SOURCE / "python" / "gpufl").rglob("*.py*") if path.suffix != ".pyc"}
        wanted = python_files | LIBRARIES | {"gpufl/_native.abi3.so", "gpufl/_cupti.abi3.so", "gpufl/bin/gpufl",
                                             "gpufl/py.typed"}
        self.assertEqual(wanted - names, set())
        libraries = {name for name in names if name.startswith("gpufl/lib/")}
        self.assertLessEqual(libraries - LIBRARIES, {"gpufl/lib/libgpufl-upload.so.1", "gpufl/lib/libgpufl-server.so.1"})
        self.assertEqual(modes["gpufl/bin/gpufl"], 0o755)
        self.assertEqual(self.left, set(), "building wrote into the source")

    def test_its_list_of_contents_is_true_and_nothing_tells_where_it_was_built(self):
        with zipfile.ZipFile(self.wheel) as archive:
            files = {name: archive.read(name) for name in archive.namelist()}
        record = next(data for name, data in files.items() if name.endswith("/RECORD")).decode()
        rows = [row.split(",") for row in record.splitlines()]
        self.assertEqual({row[0] for row in rows}, set(files))
        for name, digest, size in rows:
            if digest:
                actual = base64.urlsafe_b64encode(hashlib.sha256(files[name]).digest()).rstrip(b"=").decode()
                self.assertEqual((digest, int(size)), (f"sha256={actual}", len(files[name])), name)
        for name, data in files.items():
            if data[:4] == b"\x7fELF":
                part = self.directory / "part"
                part.write_bytes(data)
                paths = re.findall(r"R(?:UN)?PATH.*\[(.*)\]", harness.run("readelf", "-d", part).stdout)
                self.assertTrue(all(path in ("$ORIGIN", "$ORIGIN/lib") for path in paths), (name, paths))

    def test_it_works_alone_and_leaves_nothing_behind(self):
        python = self.venv()
        self.run_python(python, "-c", RECORD)
        out = self.run_python(python, "-c", """
import gpufl, gpufl.cupti.cupti, importlib.metadata
from gpufl.analyzer import GpuFlightSession
print(len(GpuFlightSession("log").table("kernels")), gpufl.__version__ == importlib.metadata.version("gpufl"))
print(gpufl.__file__)
import gpufl.frameworks
print(gpufl.frameworks.nvtx.find_obstacle())
import ctypes, pathlib
libraries = sorted((pathlib.Path(gpufl.__file__).parent / "lib").iterdir())
print([ctypes.CDLL(str(file)) and file.name for file in libraries])
""")
        self.assertTrue(out.startswith("3 True\n"), out)
        self.assertIn(str(self.directory / "venv"), out)
        self.assertIn("\nNone\n", out)
        if (harness.BUILD / "lib" / "libgpufl-upload.so").exists():
            self.assertIn("'libgpufl-upload.so.1'", out)
        version = harness.gpufl("version").stdout
        self.assertEqual(self.run_python(python, "-m", "gpufl", "version"), version)
        self.assertEqual(self.run_python(python.parent / "gpufl", "version"), version)
        self.assertIn("step", self.run_python(python, "-m", "gpufl", "report", "log"))
        self.run_python(python.parent / "gpufl", "trace", "-o", "traced", "--", harness.FAKE_APP, "--launches", "5")
        self.assertEqual(len(harness.sessions(self.directory / "traced")), 1)
        result = pip("--python", python, "uninstall", "--yes", "gpufl")
        self.assertEqual(result.returncode, 0, result.stderr)
        left = [path for path in (self.directory / "venv").rglob("*") if "gpufl" in path.name]
        self.assertEqual(left, [])

    def test_data_frames_come_from_the_systems_pandas(self):
        python = self.venv("--system-site-packages")
        self.run_python(python, "-c", RECORD)
        out = self.run_python(python, "-c", """
from gpufl.analyzer import GpuFlightSession
kernels = GpuFlightSession("log").kernels
print(len(kernels), kernels.scope.unique().tolist(), kernels.duration_ns.dtype)
""")
        self.assertEqual(out, "3 ['step'] int64\n")

    def test_the_same_sources_give_the_same_wheel_and_without_uploads_it_runs_everywhere(self):
        again = self.directory / "again"
        backend = ("import sys\nsys.dont_write_bytecode = True\n"
                   f"sys.path.insert(0, {str(fixture.SOURCE / 'python' / 'build_backend')!r})\n"
                   "import gpufl_build\n"
                   f"settings = {{'build-dir': {str(harness.BUILD)!r}}}\n"
                   f"gpufl_build.build_wheel({str(again)!r}, settings)\n"
                   f"gpufl_build.build_wheel({str(again)!r}, {{**settings, 'upload': 'off'}})\n")
        again.mkdir()
        self.run_python(PYTHON, "-c", backend)
        self.assertEqual((again / self.wheel.name).read_bytes(), self.wheel.read_bytes())
        everywhere, = again.glob("*manylinux_2_*.whl")
        with zipfile.ZipFile(everywhere) as archive:
            self.assertEqual([name for name in archive.namelist() if "upload" in name or "server" in name], [])

    def test_settings_that_cannot_be_are_named(self):
        for setting, message in (("colour=red", "no setting 'colour'; settings are build-dir, upload and platform"),
                                 ("upload=perhaps", "on or off, not 'perhaps'"),
                                 (f"build-dir={self.directory}", "is not a CMake build directory")):
            result = pip("wheel", "--no-deps", "--wheel-dir", self.directory, "--config-settings", setting,
                         fixture.SOURCE)
            self.assertNotEqual(result.returncode, 0)
            self.assertIn(message, result.stdout + result.stderr)

    def test_a_missing_tool_is_named_with_what_to_install(self):
        (self.directory / "bin").mkdir()
        backend = fixture.SOURCE / "python/build_backend/gpufl_build.py"
        result = harness.run(PYTHON, "-B", backend, "wheel", self.directory,
                             env=harness.environment(PATH=self.directory / "bin"))
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r"gpufl: cmake was not found; .* apt-get install cmake")


class SourceDistribution(fixture.TestCase):
    def unpacked(self):
        result = harness.run(PYTHON, "-B", fixture.SOURCE / "python/build_backend/gpufl_build.py", "sdist",
                             self.directory)
        self.assertEqual(result.returncode, 0, result.stderr)
        archive = self.directory / result.stdout.strip()
        with tarfile.open(archive) as files:
            files.extractall(self.directory)
        return self.directory / archive.name.removesuffix(".tar.gz")

    def test_all_that_the_wheel_is_made_of_is_in_it(self):
        folder = self.unpacked()
        build = self.directory / "build"
        configure = harness.run("cmake", "-S", folder, "-B", build, "-GNinja", "-DGPUFL_TESTS=OFF",
                                "-DGPUFL_SERVER=OFF", "-DGPUFL_DEMO_APP=OFF", "-DGPUFL_PYTHON=ON")
        self.assertEqual(configure.returncode, 0, configure.stdout + configure.stderr)
        # Ninja knows every source; what these include was written down when the product was built.
        inputs = subprocess.run(["ninja", "-C", build, "-t", "inputs", "gpufl_wheel_parts"], check=True,
                                capture_output=True, text=True).stdout.split()
        self.assertEqual([name for name in inputs if name.startswith(str(folder)) and not os.path.exists(name)], [])
        objects = {name for name in inputs if name.endswith(".c.o")}
        self.assertGreater(len(objects), 100)
        used = set()
        listing = subprocess.run(["ninja", "-C", harness.BUILD, "-t", "deps"], check=True, capture_output=True,
                                 text=True).stdout
        for block in listing.split("\n\n"):
            if block.split(":")[0] in objects:
                used.update(re.findall(rf"^\s+{re.escape(str(fixture.SOURCE))}/(\S+)", block, re.M))
        self.assertIn("include/gpufl/gpufl.h", used)
        missing = {name for name in used if not name.startswith("build/") and not (folder / name).exists()}
        self.assertEqual(missing, set())
        for file in (fixture.SOURCE / "python" / "gpufl").rglob("*.py"):
            copy = folder / file.relative_to(fixture.SOURCE)
            self.assertEqual(copy.read_bytes(), file.read_bytes())

    def test_it_makes_itself_again(self):
        folder = self.unpacked()
        again = self.directory / "again"
        result = harness.run(PYTHON, "-B", folder / "python/build_backend/gpufl_build.py", "sdist", again)
        self.assertEqual(result.returncode, 0, result.stderr)
        first, second = (tarfile.open(place / (folder.name + ".tar.gz")) for place in (self.directory, again))
        with first, second:
            self.assertEqual({entry.name: (entry.size, entry.mode) for entry in first},
                             {entry.name: (entry.size, entry.mode) for entry in second})


if __name__ == "__main__":
    unittest.main(verbosity=2)
