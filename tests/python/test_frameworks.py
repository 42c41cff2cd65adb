#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""gpufl.frameworks on the look-alike PyTorch: operators and modules on kernels, and what is in the way of them."""
import collections
import shutil

import fixture
from gpufl.analyzer import GpuFlightSession

HEAD = f"""
sys.path.insert(0, {str(fixture.SOURCE / "tests" / "python" / "lookalike")!r})
import gpufl, gpufl.frameworks, torch

class Block(torch.nn.Module):
    def __init__(self):
        self.first, self.act = torch.nn.Linear(), torch.nn.ReLU()

    def forward(self):
        self.first()
        self.act()

class Net(torch.nn.Module):
    def __init__(self):
        self.block, self.head = Block(), torch.nn.Linear()

    def forward(self):
        self.block()
        self.head()

model = Net()
assert gpufl.init(app_name="train", log_path="log", profiling_engine=gpufl.ProfilingEngine.Trace,
                  enable_external_correlation=False)
"""
TAIL = "\ntorch.cuda.synchronize()\ngpufl.shutdown()\n"


def paths_in(session):
    """How many kernels lie in each scope, and there in each operator."""
    kernels = session.kernels
    parts = zip(*(column.astype(object).where(column.notna(), None) for column in (kernels.scope, kernels.operator_path)))
    return collections.Counter("|".join(part for part in pair if part) or "none" for pair in parts)


class Frameworks(fixture.TestCase):
    def recorded_by(self, text, **variables):
        session = self.recorded(HEAD + text + TAIL, **variables)
        return GpuFlightSession(session.path)

    def test_every_kernel_has_its_operator_and_calls_of_one_share_a_name(self):
        session = self.recorded_by("""
with gpufl.frameworks.attach():
    for _ in range(5):
        with gpufl.Scope("step"):
            model()
            torch.backward()
""")
        self.assertEqual(paths_in(session), {
            "step|aten::linear|aten::addmm": 10, "step|aten::relu": 5,
            # The first operator of a pass begins before autograd's thread knows whose pass it is.
            "step|autograd::engine::evaluate_function: AddmmBackward0|aten::mm": 5,
            "step|autograd::engine::evaluate_function: ReluBackward0|aten::mm": 5, "step|aten::mm": 5})
        import gpufl.frameworks
        ops = gpufl.frameworks.ops_of(session.kernels)
        self.assertEqual(ops.value_counts().to_dict(), {"aten::addmm": 10, "aten::mm": 15, "aten::relu": 5})

    def test_a_kernel_of_the_compiler_is_its_own_operator_and_a_kernel_outside_has_none(self):
        session = self.recorded_by("""
with gpufl.frameworks.attach():
    torch._op("triton_poi_fused_relu_0", "triton_poi_fused_relu_0")
with gpufl.Scope("tail"):
    torch.relu()
torch.relu()
""")
        import gpufl.frameworks
        ops = gpufl.frameworks.ops_of(session.kernels).astype(object).fillna("none")
        self.assertEqual(ops.tolist(), ["triton_poi_fused_relu_0", "none", "none"])

    def test_only_pytorchs_numbers_are_left_out_of_ranges(self):
        names = {"load, seq = 5": "load", "load, op_id = 7, seq = 5": "load", ", seq = 5": ", seq = 5",
                 "load, seq = ": "load, seq = ", "load, batch = 5": "load, batch = 5", "step 12": "step 12"}
        session = self.recorded_by(f"""
gpufl.frameworks.attach()
for name in {list(names)!r}:
    torch._nvtx.nvtx_push(name.encode())
    torch._gpu.launch("relu_kernel")
    torch._nvtx.nvtx_pop()
""")
        self.assertEqual(session.kernels.scope.tolist(), list(names.values()))

    def test_an_unchanged_program_runs_with_its_operators_observed(self):
        script = self.directory / "train.py"
        script.write_text("import sys, torch\nassert __name__ == '__main__'\nprint(sys.argv)\ntorch.relu()\n"
                          "torch.cuda.synchronize()\nsys.exit(3)\n")
        result = fixture.harness.run(
            fixture.sys.executable, "-B", "-m", "gpufl.frameworks", "--log-path", "log", script, "--epochs", "2",
            cwd=self.directory, env=fixture.harness.environment(PYTHONPATH=":".join(str(path) for path in (
                fixture.PACKAGE, fixture.SOURCE / "tests/python", fixture.SOURCE / "tests/python/lookalike"))))
        self.assertEqual((result.returncode, result.stdout), (3, f"{[str(script), '--epochs', '2']}\n"), result.stderr)
        session = GpuFlightSession(self.directory / "log", log_prefix="train.py")
        self.assertEqual(paths_in(session), {"aten::relu": 1})
        result = self.program("import runpy\nsys.argv[1:] = ['missing.py']\n"
                              "runpy.run_module('gpufl.frameworks', run_name='__main__')")
        self.assertEqual((result.returncode, "Traceback" in result.stderr), (2, False), result.stderr)
        self.assertIn("there is no file 'missing.py'", result.stderr)

    def test_modules_have_their_names_in_the_model(self):
        session = self.recorded_by("with gpufl.frameworks.attach(model):\n    model()\nmodel()\n")
        self.assertEqual(paths_in(session), {
            "Net|block|block.first|aten::linear|aten::addmm": 1, "Net|block|block.act|aten::relu": 1,
            "Net|head|aten::linear|aten::addmm": 1, "none": 3})

    def test_modules_without_a_model_go_by_class_and_operators_can_be_left_out(self):
        session = self.recorded_by("with gpufl.frameworks.attach(modules=True, ops=False):\n    model()\n")
        self.assertEqual(paths_in(session), {"Net|Block|Linear": 1, "Net|Block|ReLU": 1, "Net|Linear": 1})

    def test_a_forward_that_fails_leaves_no_scope_open(self):
        session = self.recorded_by("""
class Broken(torch.nn.Module):
    def forward(self):
        raise ValueError("broken")

class Outer(torch.nn.Module):
    def __init__(self):
        self.broken = Broken()

    def forward(self):
        try:
            self.broken()
        except ValueError:
            pass

outer = Outer()
with gpufl.frameworks.attach(outer, ops=False):
    outer()
    try:
        outer.broken()
    except ValueError:
        pass
torch.relu()
""")
        self.assertEqual(paths_in(session), {"none": 1})
        self.assertTrue(session.scope_events.end_ns.notna().all())

    def test_compiled_code_is_traced_without_scopes(self):
        session = self.recorded_by("""
torch._state.is_compiling = True
with gpufl.frameworks.attach(model, ops=False):
    model()
""")
        self.assertEqual(paths_in(session), {"none": 3})

    def test_triton_kernels_have_their_names(self):
        session = self.recorded_by("torch._gpu.launch('triton_poi_fused_relu_0')\n")
        self.assertEqual(session.kernels.name.tolist(), ["triton_poi_fused_relu_0"])

    def test_what_is_in_the_way_is_said(self):
        text = self.output(HEAD + """
import warnings
first = gpufl.frameworks.attach()
gpufl.frameworks.attach().detach()
print(torch.autograd.profiler._thread.kind)
first.detach()
with torch.autograd.profiler.profile():
    try:
        gpufl.frameworks.attach()
    except RuntimeError as error:
        print(error)
gpufl.frameworks.attach().detach()
print(torch.autograd.profiler._thread.kind)
try:
    gpufl.frameworks.attach(model=3)
except TypeError as error:
    print(error)
""" + TAIL)
        self.assertTrue(text.startswith("NVTX\n"), text)
        self.assertIn("another profiler of PyTorch", text)
        self.assertIn("\nNone\n", text)
        self.assertIn("not int", text)
        result = self.program("import gpufl.frameworks\nprint(gpufl.frameworks.nvtx.enable())\n",
                              NVTX_INJECTION64_PATH="/opt/other/libtool.so")
        self.assertEqual((result.returncode, result.stdout), (0, "False\n"), result.stderr)
        self.assertIn("names another tool, /opt/other/libtool.so", result.stderr)
        result = self.program("import gpufl.frameworks\ngpufl.frameworks.attach().detach()\n"
                              "gpufl.frameworks.attach(modules=True)\n")
        self.assertIn("RuntimeError: PyTorch has not been imported", result.stderr)


WATCHED = f"""
sys.path.insert(0, {str(fixture.SOURCE / "tests" / "python" / "lookalike")!r})
import gpufl

def start(**options):
    assert gpufl.init(**{{"app_name": "train", "log_path": "log", "profiling_engine": gpufl.ProfilingEngine.Trace,
                         **options}})
"""
STEPS = """
for _ in range(5):
    with gpufl.Scope("step"):
        torch.linear()
        torch.relu()
    torch.backward()
"""
NAMED = {"step|aten::linear|aten::addmm": 5, "step|aten::relu": 5,
         "autograd::engine::evaluate_function: AddmmBackward0|aten::mm": 5,
         "autograd::engine::evaluate_function: ReluBackward0|aten::mm": 5}
UNNAMED = {"step": 10, "none": 10}


class Watched(fixture.TestCase):
    """What gpufl.init() does of itself."""

    def paths_of(self, text, interpreter=fixture.sys.executable, **variables):
        result = self.program(WATCHED + text + TAIL, interpreter=interpreter, **variables)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        found = fixture.harness.sessions(self.directory / "log")
        return paths_in(GpuFlightSession(found[-1])), result

    def test_every_kernel_has_its_operator_by_init_alone_wherever_pytorch_is_imported(self):
        self.assertEqual(self.paths_of("start()\nimport torch\n" + STEPS)[0], NAMED)
        self.assertEqual(self.paths_of("import torch\nstart()\n" + STEPS)[0], NAMED)
        asked = "import importlib.util\nassert importlib.util.find_spec('torch').loader\n"
        self.assertEqual(self.paths_of("start()\n" + asked + "import torch\n" + STEPS)[0], NAMED)

    def test_under_trace_importing_gpufl_is_enough(self):
        # The session begins with CUDA, by the first call.
        text = fixture.PROGRAM_HEAD + WATCHED + "import torch\ntorch.cuda.synchronize()" + STEPS + \
            "torch.cuda.synchronize()\n"
        (self.directory / "train.py").write_text(text)
        for engine, wanted in (("Trace", NAMED), ("Monitor", None)):
            result = fixture.harness.gpufl("trace", "--engine", engine, "-o", self.directory / engine, "--",
                                           fixture.sys.executable, "-B", self.directory / "train.py",
                                           cwd=self.directory)
            self.assertEqual(result.returncode, 0, result.stderr)
            session, = fixture.harness.sessions(self.directory / engine)
            if wanted:
                self.assertEqual(paths_in(GpuFlightSession(session)), wanted)
            else:
                names = fixture.harness.Session(session).dictionary("scope_name_dict").values()
                self.assertEqual([name for name in names if "::" in name], [])

    def test_it_is_off_where_the_program_the_environment_or_the_config_file_says_so(self):
        off = "start(enable_external_correlation=False)\nimport torch\n" + STEPS
        on = "start()\nimport torch\n" + STEPS
        (self.directory / "gpufl.json").write_text('{"enable_external_correlation": false}')
        self.assertEqual(self.paths_of(off)[0], UNNAMED)
        self.assertEqual(self.paths_of(on, GPUFL_ENABLE_EXTERNAL_CORRELATION="off")[0], UNNAMED)
        self.assertEqual(self.paths_of(on, GPUFL_CONFIG_FILE="gpufl.json")[0], UNNAMED)
        self.assertEqual(self.paths_of(on, GPUFL_CONFIG_FILE="gpufl.json",
                                       GPUFL_ENABLE_EXTERNAL_CORRELATION="on")[0], NAMED)

    def test_nothing_is_left_in_pytorch_or_the_import_system(self):
        out = self.output(WATCHED + """
import sys
before = list(sys.meta_path)
start()
gpufl.shutdown()
assert sys.meta_path == before
start()
import torch
assert "torch" not in [getattr(finder, "name", None) for finder in sys.meta_path]
assert not vars(torch.__spec__.loader).get("exec_module")
print(torch.autograd.profiler._thread.kind)
gpufl.shutdown()
assert sys.meta_path == before
print(torch.autograd.profiler._thread.kind, torch.autograd.profiler._is_profiler_enabled)
torch.autograd.profiler.profile().__enter__()
""")
        self.assertEqual(out, "NVTX\nNone False\n")

    def test_however_the_program_ends_pytorch_finds_no_observer_when_it_is_torn_down(self):
        for end, code in (("", 0), ("raise ValueError('broken')\n", 1), ("sys.exit(3)\n", 3),
                          ("import gpufl.frameworks\nattachment = gpufl.frameworks.attach()\n", 0)):
            with self.subTest(end=end):
                result = self.program(WATCHED + "import sys\nstart()\nimport torch\ntorch.relu()\n"
                                      "print(torch.autograd.profiler._thread.kind)\n" + end)
                self.assertEqual((result.returncode, result.stdout), (code, "NVTX\n"), result.stderr)
                self.assertNotIn("Leaked callback handle", result.stderr)

    def test_without_kernels_or_with_another_tool_nothing_is_observed(self):
        show = "import torch\nprint(torch.autograd.profiler._thread.kind)\n"
        for start, variables in (("start(profiling_engine=gpufl.ProfilingEngine.Monitor)\n", {}),
                                 ("start()\n", {"NVTX_INJECTION64_PATH": "/opt/other/libtool.so"})):
            result = self.program(WATCHED + start + show, **variables)
            self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "None\n", ""))

    def test_attaching_a_model_adds_its_modules(self):
        paths, _ = self.paths_of("start()\nimport torch, gpufl.frameworks\nmodel = torch.nn.Linear()\n"
                                 "with gpufl.frameworks.attach(model):\n    model()\nmodel()\n")
        self.assertEqual(paths, {"Linear|aten::linear|aten::addmm": 1, "aten::linear|aten::addmm": 1})

    def test_a_profiler_of_pytorch_that_is_on_stays(self):
        paths, result = self.paths_of("import torch\nwith torch.autograd.profiler.profile():\n    start()\n"
                                      "    torch.relu()\n")
        self.assertEqual(paths, {"none": 1})
        self.assertIn("operators are not recorded", result.stderr)

    def test_later_interpreters_give_pytorchs_profilers_their_turn(self):
        for name in ("python3.12", "python3.13"):
            path = shutil.which(name)
            if not path or fixture.harness.run(path, "-c", "").returncode:
                continue
            with self.subTest(interpreter=name):
                paths, result = self.paths_of("""
start()
import torch
torch.relu()
with torch.autograd.profiler.profile():
    print(torch.autograd.profiler._thread.kind)
    torch.linear()
torch.relu()
""", interpreter=path)
                self.assertEqual((result.stdout, result.stderr), ("KINETO\n", ""))
                self.assertEqual(paths, {"aten::relu": 2, "none": 1})


if __name__ == "__main__":
    fixture.main()
