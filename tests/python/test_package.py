#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The package itself: what it needs, what it exports, and that its stubs tell the truth."""
import ast
import inspect
import json
import shutil
import subprocess

import fixture
import harness

EXTENSION = fixture.PACKAGE / "gpufl" / "_native.abi3.so"


def printed(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


class Package(fixture.TestCase):
    def test_importing_needs_no_gpu_no_driver_no_pandas(self):
        shutil.copytree(fixture.GOLDEN / "trace", self.directory / "session")
        result = self.program("""
import sys
for name in ("numpy", "pandas", "matplotlib"):
    sys.modules[name] = None
import gpufl
import gpufl.analyzer, gpufl.report
from gpufl.analyzer import GpuFlightSession
session = GpuFlightSession("session")
print(len(session.table("kernels")), len(session.report_text()) > 100)
try:
    session.kernels
except ImportError as error:
    print(error)
loaded = open("/proc/self/maps").read()
assert "libcuda" not in loaded and "libnvidia" not in loaded and "libcupti" not in loaded
""", LD_LIBRARY_PATH=None)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue(result.stdout.startswith("62 True\n"), result.stdout)
        self.assertIn("apt-get install python3-pandas", result.stdout)

    def test_init_without_a_gpu_records_the_host(self):
        session = self.recorded("""
import gpufl
print(gpufl.init(log_path="log", profiling_engine=gpufl.ProfilingEngine.Trace, continuous_system_sampling=True,
                 system_sample_rate_ms=5))
with gpufl.Scope("x"): pass
gpufl.shutdown()
""", LD_LIBRARY_PATH="/nonexistent", GPUFL_CUDA_PATH="/nonexistent", GPUFL_CUPTI_PATH="/nonexistent",
            GPUFL_NVML_PATH="/nonexistent")
        self.assertTrue(session.rows("host_metric_batch"))

    def test_the_extension_shows_its_entry_alone_and_wants_libc_and_libgpufl(self):
        shown = printed("nm", "-D", "--defined-only", EXTENSION)
        self.assertEqual([line.split()[-1] for line in shown.splitlines()], ["PyInit__native"])
        needed = printed("readelf", "-d", EXTENSION)
        libraries = {line.split("[")[1].rstrip("]") for line in needed.splitlines() if "NEEDED" in line}
        self.assertLessEqual(libraries, {"libgpufl.so.1", "libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2",
                                         "libgcc_s.so.1", "ld-linux-x86-64.so.2"})

    def test_private_functions_of_cpython_are_not_used(self):
        wanted = printed("nm", "-D", "--undefined-only", EXTENSION)
        names = [line.split()[-1] for line in wanted.splitlines() if "Py" in line]
        self.assertTrue(names)
        # Macros of the limited API expand to these; all other names with an underscore are private.
        allowed = {"_Py_NoneStruct", "_Py_Dealloc", "_Py_TrueStruct", "_Py_FalseStruct", "_PyObject_New"}
        self.assertEqual({name for name in names if name.startswith("_")} - allowed, set())

    def test_later_interpreters_load_the_same_extension(self):
        for name in ("python3.12", "python3.13", "python3.14"):
            path = shutil.which(name)
            if not path or harness.run(path, "-c", "").returncode:
                continue
            with self.subTest(interpreter=name):
                result = self.program("import gpufl\nwith gpufl.Scope('x'): pass\n"
                                      "print(list(gpufl.Scope('y', repeat=2)))", interpreter=path)
                self.assertEqual((result.returncode, result.stdout), (0, "[0, 1]\n"), result.stderr)

    def test_stubs_name_exactly_what_the_extension_has(self):
        from gpufl import _native
        tree = ast.parse((fixture.PACKAGE / "gpufl" / "_native.pyi").read_text())
        functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        classes = {node.name: {inner.name for inner in node.body if isinstance(inner, ast.FunctionDef)}
                   for node in tree.body if isinstance(node, ast.ClassDef)}
        public = {name for name in vars(_native) if not name.startswith("__")}
        self.assertEqual(functions | set(classes), public)
        for name, members in classes.items():
            for member in members:
                self.assertTrue(hasattr(getattr(_native, name), member), f"{name}.{member}")
            real = {member for member in vars(getattr(_native, name)) if not member.startswith("__")}
            self.assertLessEqual(real, members, name)

    def test_the_module_is_the_command(self):
        module = ("/usr/bin/python3", "-B", "-m", "gpufl")
        environment = harness.environment(PYTHONPATH=fixture.PACKAGE)
        report = ("report", fixture.GOLDEN / "trace", "--color", "never")
        self.assertEqual(harness.run(*module, *report, env=environment).stdout, harness.gpufl(*report).stdout)
        self.assertEqual(harness.run(*module, "nonsense", env=environment).returncode, 2)

    def test_everything_public_has_a_docstring(self):
        import gpufl
        for name in gpufl.__all__:
            self.assertTrue(inspect.getdoc(getattr(gpufl, name)), name)

    @harness.needs(shutil.which("mypy"), "mypy")
    def test_types_hold(self):
        result = subprocess.run([shutil.which("mypy"), "--strict", "--ignore-missing-imports", "--cache-dir",
                                 str(self.directory / "cache"), "--python-version", "3.11", "-p", "gpufl"],
                                cwd=fixture.PACKAGE, capture_output=True, text=True, timeout=400, check=False)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_records_are_the_catalogue(self):
        from gpufl import records
        catalogue = json.loads((fixture.SOURCE / "schema" / "records.json").read_text())
        self.assertEqual(set(records.BATCHES), {batch["type"] for batch in catalogue["batches"]})


if __name__ == "__main__":
    fixture.main()
