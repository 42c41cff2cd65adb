# SPDX-License-Identifier: Apache-2.0
"""The examples: they build with this build and with an installed gpufl; those without kernels run on the fake GPU."""
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest

from harness import BUILD, FAKE_APP, GPUFL, SANITIZERS, SOURCE, TestCase, environment, main, run, sessions

EXAMPLES = SOURCE / "examples"
NVCC = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
BUILD_TIMEOUT_S = 500
DEADLINE_S = 600


def build(directory, *options):
    """Configures and builds the examples; (exit status, output)."""
    output = ""
    for command in (["cmake", "-S", EXAMPLES, "-B", directory, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", *options],
                    ["cmake", "--build", directory]):
        result = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, timeout=BUILD_TIMEOUT_S, check=False)
        output += result.stdout
        if result.returncode:
            return result.returncode, output
    return 0, output


@unittest.skipUnless(NVCC, "needs a CUDA toolkit")
@unittest.skipIf(any(SANITIZERS), "an example links the library as a user would, without sanitizers")
class Programs(TestCase):
    @classmethod
    def setUpClass(cls):
        cls.built = pathlib.Path(tempfile.mkdtemp(prefix="gpufl-examples-"))
        cls.addClassCleanup(shutil.rmtree, cls.built, ignore_errors=True)
        cls.code, cls.output = build(cls.built, f"-DGPUFL_BUILD_DIR={BUILD}")

    def program(self, name):
        self.assertEqual(self.code, 0, self.output[-4000:])
        return self.built / name

    def test_all_build_with_this_build(self):
        for name in ("service", "benchmark", "vector_add", "pipeline", "gemm"):
            self.assertTrue(os.access(self.program(name), os.X_OK), f"{name} was not built:\n{self.output[-4000:]}")

    def test_those_in_c_and_cpp_build_with_an_installed_gpufl(self):
        prefix = self.directory / "prefix"
        for component in ("runtime", "devel"):
            installed = run("cmake", "--install", BUILD, "--prefix", prefix, "--component", component)
            self.assertEqual(installed.returncode, 0, installed.stdout + installed.stderr)
        code, output = build(self.directory / "built", f"-DCMAKE_PREFIX_PATH={prefix}", "-DEXAMPLES_CUDA=OFF")
        self.assertEqual(code, 0, output[-4000:])
        linked = run("ldd", self.directory / "built/service", env=environment()).stdout
        self.assertRegex(linked, rf"libgpufl\.so\.1 => {prefix}/lib/libgpufl\.so\.1 ")

    def test_a_benchmark_is_shown_by_iteration_and_without_its_warm_up(self):
        result = run(self.program("benchmark"), 4, cwd=self.directory)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual([line.split(" us")[0].rsplit(None, 1)[0].strip() for line in result.stdout.splitlines()],
                         ["copy in 1", "copy in 16", "copy in 256"])
        session, = sessions(self.directory / "benchmark")
        self.assertTrue(self.verify(session)["is_complete"])
        report = self.report(session)
        scopes = {scope["path"]: scope for scope in report["scopes"]}
        self.assertEqual(sorted(scopes), ["copy in 1", "copy in 16", "copy in 256"])
        self.assertEqual({(scope["repeat"], scope["warmup"]) for scope in scopes.values()}, {(4, 3)})
        self.assertEqual(sum(copy["calls"] for copy in report["copies"]), (4 + 3) * (1 + 16 + 256))
        self.assertEqual(run(self.program("benchmark"), "none").returncode, 2)

    def test_a_signal_ends_the_service_in_order(self):
        service = subprocess.Popen([self.program("service")], cwd=self.directory, env=environment(), text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(service.stdout.close)
        self.addCleanup(service.stderr.close)
        self.addCleanup(lambda: service.poll() is None and (service.kill(), service.wait()))
        line = service.stdout.readline()
        self.assertIn("listening on", line, "" if service.poll() is None else service.stderr.read())
        port = int(line.rsplit(":", 1)[1])
        for number in range(3):
            with socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S) as client:
                client.sendall(f"request {number}".encode())
                self.assertEqual(client.recv(100), f"request {number}".encode())
        service.send_signal(signal.SIGTERM)
        self.assertEqual(service.wait(DEADLINE_S), 0, service.stderr.read())
        session, = sessions(self.directory / "service")
        self.assertTrue(self.verify(session)["is_complete"])
        scopes = {scope["path"]: scope["calls"] for scope in self.report(session)["scopes"]}
        steps = ("receive", "upload", "download", "answer")
        self.assertEqual(scopes, {"request": 3, **{f"request > {step}": 3 for step in steps}})


class Gate(TestCase):
    def gate(self, *app_arguments, **variables):
        return run(EXAMPLES / "ci_gate/gate.sh", self.directory / "kept/baseline", FAKE_APP, "--launches", 60,
                   *app_arguments, env=environment(GPUFL=GPUFL, TMPDIR=self.directory, **variables))

    def test_it_fails_on_what_became_slower_and_only_then(self):
        first = self.gate("--kernel-us", 50)
        self.assertEqual(first.returncode, 0, first.stderr)
        self.assertIn("is the baseline now", first.stdout)
        same = self.gate("--kernel-us", 50, GATE_REPORT=self.directory / "diff.json")
        self.assertEqual(same.returncode, 0, same.stdout + same.stderr)
        self.assertEqual(json.loads((self.directory / "diff.json").read_text())["regressions"], 0)
        slower = self.gate("--kernel-us", 100)
        self.assertEqual(slower.returncode, 1, slower.stdout + slower.stderr)
        self.assertRegex(slower.stdout, r"\+100\.0 % .* SLOWER")
        self.assertEqual(self.gate("--kernel-us", 100, GATE_THRESHOLD=150).returncode, 0)
        meant = self.gate("--kernel-us", 100, GATE_UPDATE=1)
        self.assertEqual(meant.returncode, 0, meant.stdout + meant.stderr)
        self.assertEqual(self.gate("--kernel-us", 100).returncode, 0)
        self.assertEqual(sorted(path.name for path in self.directory.iterdir()), ["diff.json", "kept"])

    def test_it_does_not_pass_what_proves_nothing(self):
        self.assertEqual(self.gate("--exit", 4).returncode, 3)
        faults = "fail=cuptiSubscribe_v2@*:999; fail=cuptiActivityRegisterCallbacks@*:999"
        blind = self.gate(FAKE_FAULTS=faults)
        self.assertEqual(blind.returncode, 3, blind.stdout + blind.stderr)
        self.assertIn("no kernels were recorded", blind.stderr)
        self.assertFalse((self.directory / "kept").exists())
        self.assertEqual(run(EXAMPLES / "ci_gate/gate.sh", "only-a-baseline").returncode, 2)


class Page(TestCase):
    def test_every_example_is_on_the_page(self):
        page = (EXAMPLES / "README.md").read_text()
        for path in sorted(EXAMPLES.iterdir()):
            if path.name not in ("README.md", "CMakeLists.txt", "__pycache__"):
                self.assertIn(f"]({path.name})", page)

    def test_python_examples_compile(self):
        for path in sorted(EXAMPLES.glob("*.py")):
            compile(path.read_text(), str(path), "exec")


if __name__ == "__main__":
    main()
