#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Whose time the kernels of PyTorch's autograd are, against the look-alike of its engine: one thread evaluates the nodes of
all backward passes."""
import collections

import fixture
from gpufl.analyzer import GpuFlightSession

LOOKALIKE = fixture.SOURCE / "tests" / "python" / "lookalike"
START = f"""
sys.path.insert(0, {str(LOOKALIKE)!r})
import threading
import gpufl, torch
from torch import _engine
assert gpufl.init(log_path="log", profiling_engine=gpufl.ProfilingEngine.Trace, enable_external_correlation=False)
def node():
    torch._gpu.launch("gemm_kernel")
def loss(*nodes):
    return torch._Loss(nodes or [node] * 5)
"""
END = "\ntorch.cuda.synchronize()\ngpufl.shutdown()\n"


class Autograd(fixture.TestCase):
    def launched(self, text, start=START):
        """How many kernels lie in each scope, and the session."""
        session = GpuFlightSession(self.recorded(start + text + END).path)
        scopes = session.kernels.scope.astype(object).where(~session.kernels.scope_inferred)  # only what was recorded
        return dict(collections.Counter(scopes.fillna("none"))), session

    def test_a_backward_pass_belongs_to_the_scope_that_called_it(self):
        paths, session = self.launched("""
for _ in range(3):
    with gpufl.Scope("forward"):
        node()
    with gpufl.Scope("backward"):
        loss().backward()
    with gpufl.Scope("optimizer"):
        node()
loss().backward()
""")
        self.assertEqual(paths, {"forward": 3, "backward": 15, "optimizer": 3, "none": 5})
        self.assertEqual(set(session.adoptions.origin), {"autograd"})
        ends = session.adoptions.start_ns + session.adoptions.duration_ns
        scopes = session.scope_events.set_index("begin_ns").sort_index()
        self.assertEqual(len(ends), 3)
        self.assertTrue((ends.to_numpy() <= scopes[scopes.name == "backward"].end_ns.to_numpy()).all())

    def test_concurrent_passes_keep_apart_although_one_thread_runs_them(self):
        paths, session = self.launched("""
_engine.passes_to_wait_for = 4
def train(name):
    with gpufl.Scope(name):
        loss(*[node] * 10).backward()
threads = [threading.Thread(target=train, args=(name,)) for name in "abcd"]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
""")
        self.assertEqual(paths, {name: 10 for name in "abcd"})
        self.assertEqual(session.kernels.thread_id.nunique(), 1)
        by_launch = session.kernels.sort_values("corr_id").scope.astype(object).tolist()
        self.assertGreater(sum(one != other for one, other in zip(by_launch, by_launch[1:])), 20)  # they do interleave

    def test_checkpoints_double_backward_and_work_after_the_last_node_are_of_the_pass(self):
        paths, _ = self.launched("""
def CheckpointFunctionBackward():  # runs the forward again, and a pass inside of the pass
    node()
    loss(node, node).backward()
    node()
with gpufl.Scope("checkpointed"):
    loss(node, CheckpointFunctionBackward, node).backward()
with gpufl.Scope("double"):
    for _ in range(2):
        loss().backward()
with gpufl.Scope("ddp"):  # its reducer ends what it began when the pass is over
    torch.autograd._engine_run_backward((loss(),), after=node)
""")
        self.assertEqual(paths, {"checkpointed": 6, "double": 10, "ddp": 6})

    def test_a_scope_opened_inside_of_a_node_is_inside_of_the_scope_that_called_backward(self):
        paths, _ = self.launched("""
def CustomBackward():
    with gpufl.Scope("custom"):
        node()
        loss(node).backward()
with gpufl.Scope("backward"):
    loss(node, CustomBackward).backward()
""")
        self.assertEqual(paths, {"backward": 1, "backward|custom": 2})

    def test_compiled_autograd_gets_no_hooks(self):
        paths, session = self.launched("""
import types
sys.modules["torch._dynamo.compiled_autograd"] = types.SimpleNamespace(compiled_autograd_enabled=True)
output = loss(node)
output.grad_fn.register_prehook = None
with gpufl.Scope("backward"):
    output.backward()
""")
        self.assertEqual(paths, {"none": 1})  # the look-alike does not run it on the caller's thread, but that one waits:
        self.assertEqual(session.kernels.scope.tolist(), ["backward"])

    def test_older_releases_and_ended_sessions_leave_pytorch_alone(self):
        result = self.program(START + """
assert torch.autograd._engine_run_backward is not _engine.run_backward
gpufl.shutdown()
assert torch.autograd._engine_run_backward is _engine.run_backward
del torch._C._current_graph_task_id
assert gpufl.init(log_path="log", profiling_engine=gpufl.ProfilingEngine.Trace)
assert torch.autograd._engine_run_backward is _engine.run_backward
with gpufl.Scope("backward"):
    loss().backward()
""" + END)
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_pytorch_may_be_imported_after_init(self):
        paths, _ = self.launched("""
with gpufl.Scope("backward"):
    loss().backward()
""", START.replace("import gpufl, torch\nfrom torch import _engine\n", "import gpufl\n") + "import torch\n")
        self.assertEqual(paths, {"backward": 5})


if __name__ == "__main__":
    fixture.main()
