#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""gpufl.frameworks on the look-alike PyTorch: operators and modules on kernels, and what is in the way of them."""
import collections

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
assert gpufl.init(app_name="train", log_path="log", profiling_engine=gpufl.ProfilingEngine.Trace)
"""
TAIL = "\ntorch.cuda.synchronize()\ngpufl.shutdown()\n"


class Frameworks(fixture.TestCase):
    def recorded_by(self, text, **variables):
        session = self.recorded(HEAD + text + TAIL, **variables)
        return GpuFlightSession(session.path)

    def paths(self, session):
        return collections.Counter(session.kernels.scope.astype(object).fillna("none"))

    def test_every_kernel_has_its_operator_and_calls_of_one_share_a_name(self):
        session = self.recorded_by("""
with gpufl.frameworks.attach():
    for _ in range(5):
        with gpufl.Scope("step"):
            model()
            torch.backward()
""")
        self.assertEqual(self.paths(session), {
            "step|aten::linear|aten::addmm": 10, "step|aten::relu": 5,
            "autograd::engine::evaluate_function: AddmmBackward0|aten::mm": 10,
            "autograd::engine::evaluate_function: ReluBackward0|aten::mm": 5})
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
        self.assertEqual(self.paths(session), {"aten::relu": 1})
        result = self.program("import runpy\nsys.argv[1:] = ['missing.py']\n"
                              "runpy.run_module('gpufl.frameworks', run_name='__main__')")
        self.assertEqual((result.returncode, "Traceback" in result.stderr), (2, False), result.stderr)
        self.assertIn("there is no file 'missing.py'", result.stderr)

    def test_modules_have_their_names_in_the_model(self):
        session = self.recorded_by("with gpufl.frameworks.attach(model):\n    model()\nmodel()\n")
        self.assertEqual(self.paths(session), {
            "Net|block|block.first|aten::linear|aten::addmm": 1, "Net|block|block.act|aten::relu": 1,
            "Net|head|aten::linear|aten::addmm": 1, "none": 3})

    def test_modules_without_a_model_go_by_class_and_operators_can_be_left_out(self):
        session = self.recorded_by("with gpufl.frameworks.attach(modules=True, ops=False):\n    model()\n")
        self.assertEqual(self.paths(session), {"Net|Block|Linear": 1, "Net|Block|ReLU": 1, "Net|Linear": 1})

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
        self.assertEqual(self.paths(session), {"none": 1})
        self.assertTrue(session.scope_events.end_ns.notna().all())

    def test_compiled_code_is_traced_without_scopes(self):
        session = self.recorded_by("""
torch._state.is_compiling = True
with gpufl.frameworks.attach(model, ops=False):
    model()
""")
        self.assertEqual(self.paths(session), {"none": 3})

    def test_triton_kernels_have_their_names(self):
        session = self.recorded_by("torch._gpu.launch('triton_poi_fused_relu_0')\n")
        self.assertEqual(session.kernels.name.tolist(), ["triton_poi_fused_relu_0"])

    def test_what_is_in_the_way_is_said(self):
        text = self.output(HEAD + """
import warnings
first = gpufl.frameworks.attach()
try:
    gpufl.frameworks.attach()
except RuntimeError as error:
    print(error)
first.detach()
gpufl.frameworks.attach().detach()
try:
    gpufl.frameworks.attach(model=3)
except TypeError as error:
    print(error)
""" + TAIL)
        self.assertIn("another profiler of PyTorch", text)
        self.assertIn("not int", text)
        result = self.program("import gpufl.frameworks\nprint(gpufl.frameworks.nvtx.enable())\n",
                              NVTX_INJECTION64_PATH="/opt/other/libtool.so")
        self.assertEqual((result.returncode, result.stdout), (0, "False\n"), result.stderr)
        self.assertIn("names another tool, /opt/other/libtool.so", result.stderr)
        result = self.program("import gpufl.frameworks\ngpufl.frameworks.attach().detach()\n"
                              "gpufl.frameworks.attach(modules=True)\n")
        self.assertIn("RuntimeError: PyTorch has not been imported", result.stderr)


if __name__ == "__main__":
    fixture.main()
