# SPDX-License-Identifier: Apache-2.0
"""Profilers of frameworks in a program that records with gpufl: each finds CUPTI free."""
import fixture

HEAD = f"""
sys.path[:0] = ["frameworks", {str(fixture.SOURCE / "tests" / "python" / "lookalike")!r}]
import ctypes, gpufl
from fake_cuda import Gpu
gpu = Gpu("work")

def subscribe():
    '''What CUPTI says to a profiler; 39: another one has it.'''
    cupti = ctypes.CDLL("libcupti.so.13")
    handle = ctypes.c_void_p()
    callback = ctypes.CFUNCTYPE(None)(lambda: None)
    result = cupti.cuptiSubscribe(ctypes.byref(handle), callback, None)
    if result == 0:
        assert cupti.cuptiUnsubscribe(handle) == 0
    return result

def work():
    gpu.launch("work", 10)
    gpu.wait()

def start():
    assert gpufl.init(log_path="log", profiling_engine=gpufl.ProfilingEngine.Trace, enable_external_correlation=False)
    work()
    assert subscribe() == 39
"""
TAIL = """
assert subscribe() == 39  # gpufl's again
work()
gpufl.shutdown()
assert subscribe() == 0
"""


class OtherProfilers(fixture.TestCase):
    def framework(self, path, text):
        file = self.directory / "frameworks" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def gaps(self, text, kernels=20):
        session = self.recorded(HEAD + text + TAIL)
        self.assertEqual(len(session.rows("kernel_event_batch")), kernels)
        return [loss["profiler"] for loss in session.records("loss")]

    def test_torch_s_profiler(self):
        for order in ("import torch\nstart()", "start()\nimport torch"):
            with self.subTest(order=order):
                self.directory = self.directory / str(len(order.split("torch")[0]))
                self.directory.mkdir()
                self.framework("torch/__init__.py", "from .autograd import profiler\n")
                self.framework("torch/autograd/__init__.py", "from . import profiler\n")
                self.framework("torch/autograd/profiler.py", """
class profile:
    def __init__(self, activities): self.kineto_activities = activities
    def _prepare_trace(self): pass
    def _start_trace(self): pass
    def __enter__(self):
        self._prepare_trace()
        self._start_trace()
        return self
    def __exit__(self, *error): pass
""")
                self.assertEqual(self.gaps(order + """
profile = torch.autograd.profiler.profile
for _ in range(2):
    with profile({"ProfilerActivity.CPU", "ProfilerActivity.CUDA"}):
        assert subscribe() == 0
        work()
with profile({"ProfilerActivity.CPU"}):  # needs no CUPTI
    assert subscribe() == 39
"""), ["torch.profiler", "torch.profiler"])

    def test_jax_s_profiler(self):
        self.framework("jax/__init__.py", "from . import profiler\n")
        self.framework("jax/_src/__init__.py", "")
        self.framework("jax/_src/profiler.py", """
def start_trace(directory):
    if not directory:
        raise ValueError("no directory")
def stop_trace(): pass
""")
        self.framework("jax/profiler.py", "from jax._src.profiler import start_trace, stop_trace\n")
        for order in ("import jax\nstart()", "start()\nimport jax"):
            with self.subTest(order=order):
                self.assertEqual(self.gaps(order + """
jax.profiler.start_trace("x")
assert subscribe() == 0
work()
jax.profiler.stop_trace()
try:
    jax.profiler.start_trace("")
except ValueError:
    pass
"""), ["JAX's profiler", "JAX's profiler"])
                (self.directory / "log").rename(self.directory / f"log{len(order.split('jax')[0])}")

    def test_proton(self):
        self.framework("triton/__init__.py", "")
        self.framework("triton/profiler/__init__.py", "from .profile import finalize, start\n")
        self.framework("triton/profiler/profile.py", "def start(name): return 1\ndef finalize(session=None): pass\n")
        self.assertEqual(self.gaps("""
import triton.profiler as proton
start()
proton.start("a")
proton.start("b")
assert subscribe() == 0
proton.finalize()
"""), ["Proton"])

    def test_exclusive_keeps_cupti(self):
        session = self.recorded(HEAD + """
start()
assert gpufl._native.yield_to("mine") != 0
assert subscribe() == 39
gpufl._native.resume()
""" + TAIL, GPUFL_EXCLUSIVE="1")
        self.assertEqual(session.records("loss"), [])


if __name__ == "__main__":
    fixture.main()
