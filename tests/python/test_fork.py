# SPDX-License-Identifier: Apache-2.0
"""Processes that fork: pre-fork servers, multiprocessing, workers that never touch the GPU."""
import fixture

from fixture import harness

HEAD = """
import multiprocessing, os, sys
import gpufl
from fake_cuda import Gpu

def work(count):
    global gpu  # its names must outlive the records
    gpu = Gpu("work")
    gpu.launch("work", count)
    gpu.wait()

def start(**options):
    return gpufl.init(profiling_engine=gpufl.ProfilingEngine.Trace, **options)

def wait_for(children):
    for child in children:
        assert os.waitpid(child, 0)[1] == 0
"""


class Fork(fixture.TestCase):
    def kernels(self, directory):
        """Kernels of each session that verify calls complete, in the order of their starts."""
        counts = []
        for path in harness.sessions(self.directory / directory):
            verified = harness.gpufl("verify", path)
            self.assertEqual(verified.returncode, 0, verified.stdout)
            counts.append(len(harness.Session(path).rows("kernel_event_batch")))
        return counts

    def traced(self, text, *options):
        file = self.directory / "program.py"
        file.write_text(fixture.PROGRAM_HEAD + HEAD + text)
        result = harness.gpufl("trace", "-q", "-o", self.directory / "log", *options, "--", "python3", "-B", file,
                               cwd=self.directory)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return result

    def test_children_of_a_recording_server_record_separate_sessions(self):
        self.output(HEAD + """
start(app_name="server", log_path="parent")
children = []
for count in (10, 20, 30):
    child = os.fork()
    if not child:
        assert start(app_name="worker", log_path="children")
        assert gpufl.active_engine() == gpufl.ProfilingEngine.Trace
        work(count)
        gpufl.shutdown()
        os._exit(0)
    children.append(child)
wait_for(children)
gpufl.shutdown()
""")
        self.assertEqual(self.kernels("parent"), [0])
        self.assertEqual(sorted(self.kernels("children")), [10, 20, 30])

    def test_a_grandchild_of_a_recording_process_records(self):
        self.output(HEAD + """
start(app_name="server", log_path="parent")
child = os.fork()
if not child:
    grandchild = os.fork()
    if not grandchild:
        assert start(app_name="worker", log_path="children")
        work(5)
        gpufl.shutdown()
        os._exit(0)
    wait_for([grandchild])
    os._exit(0)
wait_for([child])
gpufl.shutdown()
""")
        self.assertEqual(self.kernels("children"), [5])

    def test_under_trace_children_that_use_cuda_get_separate_sessions(self):
        for beginning in ("", 'start(app_name="server", log_path="log")'):
            with self.subTest(beginning=beginning):
                self.directory = self.directory / ("recording" if beginning else "silent")
                self.directory.mkdir()
                self.traced(beginning + """
children = []
for count in (10, 20):
    child = os.fork()
    if not child:
        work(count)
        sys.exit(0)
    children.append(child)
wait_for(children)
""")
                self.assertEqual(sorted(self.kernels("log")), [0, 10, 20] if beginning else [10, 20])

    def test_workers_that_never_touch_cuda_leave_no_session(self):
        self.traced("""
work(7)
context = multiprocessing.get_context("fork")
with context.Pool(3) as pool:
    assert pool.map(abs, range(-4, 0)) == [4, 3, 2, 1]
child = os.fork()
if not child:
    os._exit(0)
wait_for([child])
""")
        self.assertEqual(self.kernels("log"), [7])

    def test_under_trace_children_that_end_without_exit_handlers_have_complete_sessions(self):
        self.traced("""
def child(count):
    work(count)
    os._exit(0)  # whatever multiprocessing would do
context = multiprocessing.get_context("fork")
processes = [context.Process(target=target, args=(count,)) for target, count in ((work, 3), (work, 4), (child, 5))]
for process in processes:
    process.start()
for process in processes:
    process.join()
    assert process.exitcode == 0
forked = os.fork()
if not forked:
    work(6)
    os._exit(0)
wait_for([forked])
""")
        self.assertEqual(sorted(self.kernels("log")), [3, 4, 5, 6])

    def test_a_child_of_multiprocessing_that_records_ends_its_session(self):
        self.output(HEAD + """
def child(count):
    assert start(log_path="children")
    work(count)
context = multiprocessing.get_context("fork")
processes = [context.Process(target=child, args=(count,)) for count in (3, 4)]
for process in processes:
    process.start()
for process in processes:
    process.join()
    assert process.exitcode == 0
""")
        self.assertEqual(sorted(self.kernels("children")), [3, 4])

    def test_spawned_processes_get_separate_sessions(self):
        self.traced("""
if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=work, args=(count,)) for count in (3, 4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
""")
        self.assertEqual(sorted(self.kernels("log")), [3, 4])

    def test_a_child_forked_after_cuda_was_started_says_why_it_cannot_trace(self):
        output = self.output(HEAD + """
import warnings
start(app_name="parent", log_path="parent")
work(3)
child = os.fork()
if not child:
    with warnings.catch_warnings(record=True) as caught:
        start(app_name="child", log_path="child")
    assert gpufl.active_engine() == gpufl.ProfilingEngine.Monitor
    print(caught[0].message, flush=True)
    gpufl.shutdown()
    os._exit(0)
wait_for([child])
gpufl.shutdown()
""")
        self.assertIn("CUDA was initialized before this process was forked", output)
        self.assertEqual(self.kernels("parent"), [3])


if __name__ == "__main__":
    fixture.main()
