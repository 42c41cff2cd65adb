#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Python functions in the stacks of kernels (enable_stack_trace), in calls that release the GIL."""
import collections
import http.server
import pathlib
import re
import shutil
import subprocess
import threading

import fixture
import harness
from gpufl.analyzer import GpuFlightSession
from serve_process import Serve

START = """
import gpufl
from fake_cuda import Gpu
gpu = Gpu("k")
gpu.wait()
assert gpufl.init(app_name="stacks", log_path="log", profiling_engine=gpufl.ProfilingEngine.Trace,
                  enable_stack_trace=True)
"""
END = "\ngpu.wait()\ngpufl.shutdown()\n"
NESTED = """
class Net:
    def forward(self):
        gpu.launch("k")  # line 4

def höhe(call):
    call()  # line 7

def main():
    sorted([1], key=lambda value: höhe(Net().forward) or value)  # line 10, through C

main()  # line 12
"""
# 2,000 launches of two threads, out of 36 to 55 functions each, while no name of a C function can be found out.
BUSY = f"""
import ctypes, threading, time
sys.path.insert(0, {str(fixture.SOURCE / "tests" / "python" / "lookalike")!r})
import torch
{START}
STEPS, DEPTHS = 50, range(35, 55)
space = {{}}
for number in range(DEPTHS.stop):
    exec(f"def layer_{{number}}(depth, work):\\n"
         f"    return work() if depth == {{number}} else layer_{{number + 1}}(depth, work)", space)

def run(names, work):
    for _ in range(STEPS):
        for depth in DEPTHS:
            with gpufl.Scope(names[0]), gpufl.Scope(names[1]):
                space["layer_0"](depth, work)
        time.sleep(0.02)  # a thousand launches a second and thread

worker = threading.Thread(target=run, args=(("worker", "load"), lambda: gpu.launch("k")))
worker.start()
run(("step", "forward"), torch.linear)
worker.join()
ctypes.CDLL("libsymbols.so").symbols_release()
torch.cuda.synchronize()
{END}
"""
# An interpreter that says it is of another release than it is.
LIBRARY = pathlib.Path("/usr/lib/x86_64-linux-gnu/libpython3.11.so.1")
HOST = """
int Py_BytesMain(int count, char **words);
const unsigned long Py_Version = {};
int main(int count, char **words) {{ return Py_BytesMain(count, words); }}
"""


class DebugServer(http.server.ThreadingHTTPServer):
    """Has nothing, and remembers what it was asked for."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):  # pylint: disable=invalid-name
            self.server.asked.append(self.path)
            self.send_error(404)

        def log_message(self, *unused):
            pass

    def __init__(self):
        super().__init__(("127.0.0.1", 0), self.Handler)
        self.asked = []
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Stacks(fixture.TestCase):
    def stacks(self, text, interpreter=fixture.sys.executable, **variables):
        """The call stacks of the kernels that the text launches, as lists of frames; lines count from the text's."""
        file = self.directory / "work.py"
        file.write_text(text)
        result = self.program(START + f"exec(compile(open({str(file)!r}).read(), 'work.py', 'exec'))" + END,
                              interpreter=interpreter, **variables)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return self.recorded_stacks()

    def recorded_stacks(self):
        found = harness.sessions(self.directory / "log")
        kernels = GpuFlightSession(found[-1]).kernels
        return [stack.split("|") for stack in kernels.call_stack.dropna().tolist()]

    @staticmethod
    def of_work(stack):
        return [frame for frame in stack if "@work.py" in frame]

    def check_nested(self, stack):
        self.assertEqual(self.of_work(stack), [
            "<module>@work.py:12", "main@work.py:10", "main.<locals>.<lambda>@work.py:10", "höhe@work.py:7",
            "Net.forward@work.py:4"])
        at = stack.index("Net.forward@work.py:4")
        self.assertRegex(stack[at + 1], r"^Gpu\.launch@.*fake_cuda\.py:\d+$")
        self.assertTrue(stack[-1].startswith("cudaLaunchKernel@"), stack)
        self.assertFalse([frame for frame in stack if "_PyEval" in frame or "PyObject_" in frame], stack)

    def test_functions_files_and_lines_of_python_lie_between_frames_of_c(self):
        stack, = self.stacks(NESTED)
        self.check_nested(stack)
        program = next(place for place, frame in enumerate(stack) if "program.py" in frame)
        self.assertLess(program, stack.index("main@work.py:10"))

    def test_every_interpreter_that_is_there_shows_the_same(self):
        for name in ("python3.11", "python3.12", "python3.13"):
            path = shutil.which(name)
            if not path or harness.run(path, "-c", "").returncode:
                continue
            with self.subTest(interpreter=name):
                stack, = self.stacks(NESTED, interpreter=path)
                self.check_nested(stack)
                shutil.rmtree(self.directory / "log")

    def test_a_program_that_knows_nothing_of_gpufl_has_them_under_trace(self):
        file = self.directory / "work.py"
        file.write_text(NESTED)
        start = "from fake_cuda import Gpu\ngpu = Gpu('k')\ngpu.wait()\n"
        (self.directory / "program.py").write_text(
            f"{fixture.PROGRAM_HEAD}{start}exec(compile(open({str(file)!r}).read(), 'work.py', 'exec'))\ngpu.wait()\n")
        result = harness.gpufl("trace", "--stacks", "-o", self.directory / "log", "--", fixture.sys.executable, "-B",
                               self.directory / "program.py", cwd=self.directory)
        self.assertEqual(result.returncode, 0, result.stderr)
        stack, = self.recorded_stacks()
        self.check_nested(stack)

    def traced(self, **variables):
        """The session of the nested program, which lies where its frames say, and the program's own path."""
        (self.directory / "work.py").write_text(NESTED)
        program = self.directory / "program.py"
        program.write_text(f"{fixture.PROGRAM_HEAD}from fake_cuda import Gpu\ngpu = Gpu('k')\ngpu.wait()\n"
                           "exec(compile(open('work.py').read(), 'work.py', 'exec'))\ngpu.wait()\n")
        result = harness.gpufl("trace", "--stacks", "-o", self.directory / "log", "--", fixture.sys.executable, "-B",
                               program, cwd=self.directory, env=harness.environment(**variables))
        self.assertEqual(result.returncode, 0, result.stderr)
        return harness.sessions(self.directory / "log")[-1], program

    def test_the_files_that_frames_name_are_kept_and_their_lines_shown(self):
        session, program = self.traced()
        files = {record["path"]: record["lines"] for record in harness.Session(session).records("source_file_content")}
        self.assertEqual(files["work.py"], NESTED.splitlines())
        self.assertEqual(files[str(program)], program.read_text().splitlines())
        with Serve(self.directory / "data") as server:
            result = harness.gpufl("upload", session, "--server", server.url)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            at = f"/api/v1/sessions/{session.name}/timeline"
            track = next(track for track in server.get(f"{at}/tracks")["tracks"] if track["kind"] == "kernels")
            start_ns = harness.Session(session).rows("kernel_event_batch")[0]["time_ns"]
            answer = server.get(f"{at}/event?track={track['id']}&start_ns={start_ns}")
        source = dict(zip(answer["event"]["stack"].split("|"), answer["stack_source"], strict=True))
        self.assertEqual(source["Net.forward@work.py:4"], '        gpu.launch("k")  # line 4')
        self.assertIsNone(source[answer["event"]["stack"].split("|")[-1]])  # of a library without lines

    def test_where_source_is_not_wanted_no_file_is_read(self):
        session, _ = self.traced(GPUFL_ENABLE_SOURCE_COLLECTION="0")
        self.assertEqual(harness.Session(session).records("source_file_content"), [])
        self.check_nested(self.recorded_stacks()[0])

    def test_threads_generators_and_coroutines_have_their_own(self):
        stacks = self.stacks("""
import asyncio, threading

def steps():
    gpu.launch("k")
    yield

async def inner():
    gpu.launch("k")

async def outer():
    await inner()

def run():
    next(steps())
    asyncio.run(outer())

thread = threading.Thread(target=run)
thread.start()
thread.join()
""")
        self.assertEqual([self.of_work(stack) for stack in stacks],
                         [["run@work.py:15", "steps@work.py:5"],
                          ["run@work.py:16", "outer@work.py:12", "inner@work.py:9"]])

    def test_names_of_all_scripts_are_text_and_never_break_the_list_of_frames(self):
        stacks = self.stacks("""
for name, file in (("größe", "a.py"), ("функция", "b.py"), ("f", "日本/\U0001f600.py"), ("f", "one|two.py"),
                   ("f", "\\udcff.py"), ("n" * 400, "c.py"), ("f", "d" * 900)):
    space = {"gpu": gpu}
    exec(compile(f"def {name}():\\n    gpu.launch('k')", file, "exec"), space)
    space[name]()
""")
        found = [next(frame for frame in reversed(stack) if frame.endswith(":2")) for stack in stacks]
        self.assertEqual(found[:5], ["größe@a.py:2", "функция@b.py:2", "f@日本/\U0001f600.py:2", "f@one/two.py:2",
                                     "f@?.py:2"])
        self.assertRegex(found[5], r"^n{200,256}@c\.py:2$")
        self.assertRegex(found[6], r"^f@d{450,512}:2$")

    def test_a_launch_while_the_interpreter_ends_is_recorded(self):
        self.output(START + """
class Last:
    def __del__(self, gpu=gpu):
        gpu.launch("k")
        gpu.wait()
last = Last()
""")
        stack, = self.recorded_stacks()
        self.assertTrue(stack[-1].startswith("cudaLaunchKernel@"), stack)

    def test_of_a_deep_recursion_the_innermost_are_kept_and_calls_of_a_loop_share_a_stack(self):
        stacks = self.stacks("""
def fall(depth):
    if depth:
        fall(depth - 1)
    else:
        for _ in range(20):
            gpu.launch("k")

fall(500)
""")
        self.assertEqual(len(stacks), 20)
        self.assertEqual(len({tuple(stack) for stack in stacks}), 1)
        frames = self.of_work(stacks[0])
        self.assertEqual((frames[0], frames[-1]), ("fall@work.py:4", "fall@work.py:7"))
        self.assertTrue(50 <= len(frames) <= 64, len(frames))

    def test_scopes_and_stacks_are_all_there_however_long_names_take(self):
        session = self.recorded(BUSY, LD_PRELOAD=harness.FAKES / "libsymbols.so")
        self.assertEqual(session.records("loss"), [])
        kernels = GpuFlightSession(session.path).kernels
        rows = list(zip(zip(kernels.scope.astype(object), kernels.operator_path.astype(object).fillna("")),
                        kernels.call_stack.astype(object)))
        self.assertEqual(collections.Counter(place for place, _ in rows),
                         {("step|forward", "aten::linear|aten::addmm"): 1000, ("worker|load", ""): 1000})
        depths = collections.Counter(sum("layer_" in frame for frame in stack.split("|")) for _, stack in rows)
        self.assertEqual(depths, {depth: 100 for depth in range(36, 56)})
        self.assertEqual(harness.gpufl("verify", session.path).returncode, 0)

    def test_debug_information_is_not_asked_for_over_the_network(self):
        with DebugServer() as server:
            stack, = self.stacks(NESTED, DEBUGINFOD_URLS=f"http://127.0.0.1:{server.server_port}/", NO_PROXY="*",
                                 DEBUGINFOD_CACHE_PATH=self.directory / "cache")
            server.shutdown()
        self.check_nested(stack)
        self.assertEqual(server.asked, [])

    def test_more_functions_than_fit_are_counted_and_named_unknown(self):
        # The collector may be late and a ring full; what was seen last is launched until it is in the log.
        stacks = self.stacks("""
import glob, time
for number in range(9000):
    space = {"gpu": gpu}
    exec(f"def function_{number}():\\n    gpu.launch('k')", space)
    space[f"function_{number}"]()
end = time.monotonic() + 60
while time.monotonic() < end and not any("??@python" in open(file).read() for file in glob.glob("log/*/device*.log")):
    space["function_8999"]()
    time.sleep(0.05)
""")
        wanted = re.compile(r"function_\d+@<string>:2|\?\?@python$")
        inner = [next(frame for frame in reversed(stack[:-1]) if wanted.match(frame)) for stack in stacks]
        self.assertIn("function_0@<string>:2", inner)
        self.assertIn("??@python", inner)
        session = harness.Session(harness.sessions(self.directory / "log")[0])
        self.assertTrue([record for record in session.records("loss") if record["reason"] == "stack_texts_full"], inner[-1])

    @harness.needs(shutil.which("cc") and LIBRARY.exists(), "a C compiler and the interpreter as a library")
    def test_a_release_that_is_not_known_or_not_what_it_says_shows_c_alone(self):
        source, host = self.directory / "host.c", self.directory / "host"
        for claimed, is_true in ((0x030b0000, True), (0x03630000, False), (0x030c0000, False), (0x030d0000, False)):
            with self.subTest(claimed=hex(claimed)):
                source.write_text(HOST.format(claimed))
                subprocess.run(["cc", "-rdynamic", "-o", host, source, LIBRARY], check=True)
                stack, = self.stacks(NESTED, interpreter=host)
                self.assertEqual(bool(self.of_work(stack)), is_true, stack)
                self.assertTrue(stack[-1].startswith("cudaLaunchKernel@"), stack)
                shutil.rmtree(self.directory / "log")

    def test_without_the_option_there_are_none(self):
        self.output("""
import gpufl
from fake_cuda import Gpu
gpu = Gpu("k")
gpufl.init(app_name="stacks", log_path="log", profiling_engine=gpufl.ProfilingEngine.Trace)
gpu.launch("k")
""" + END)
        kernels = GpuFlightSession(harness.sessions(self.directory / "log")[0]).kernels
        self.assertEqual((len(kernels), kernels.call_stack.notna().sum()), (1, 0))


if __name__ == "__main__":
    fixture.main()
