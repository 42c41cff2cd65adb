#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Scopes across threads: tokens, bound functions, executors and asyncio, against the fake GPU."""
import collections

import fixture
from gpufl.analyzer import GpuFlightSession

START = """
import asyncio, concurrent.futures, contextvars, threading
import gpufl
from fake_cuda import Gpu
assert gpufl.init(log_path="log", profiling_engine=gpufl.ProfilingEngine.Trace)
gpu = Gpu("k")
def work():
    gpu.launch("k")
def elsewhere(function, *arguments):
    thread = threading.Thread(target=function, args=arguments)
    thread.start()
    thread.join()
"""
END = "\ngpu.wait()\ngpufl.shutdown()\n"


class Threads(fixture.TestCase):
    def launched(self, text):
        """How many kernels lie in each scope, and the session."""
        session = GpuFlightSession(self.recorded(START + text + END).path)
        scopes = session.kernels.scope.astype(object).where(~session.kernels.scope_inferred)  # only what was recorded
        return dict(collections.Counter(scopes.fillna("none"))), session

    def test_a_pools_threads_work_for_the_scope_that_they_adopt(self):
        paths, session = self.launched("""
def job(token):
    work()
    with gpufl.adopt(token):
        work()
        with gpufl.Scope("inner"):
            work()
    work()
with gpufl.Scope("outer"):
    elsewhere(job, gpufl.current_scope())
work()
""")
        self.assertEqual(paths, {"none": 3, "outer": 1, "outer|inner": 1})
        self.assertEqual(session.adoptions.scope.tolist(), ["outer"])
        self.assertEqual(session.adoptions.origin.tolist(), ["token"])
        self.assertEqual(len(session.scope_events), 2)  # adopting a scope is no entry into it
        thread = session.adoptions.thread_id[0]
        self.assertEqual(set(session.kernels.thread_id[session.kernels.scope.isin(["outer", "outer|inner"])]), {thread})

    def test_executors_and_bound_functions_keep_the_scope_of_whoever_hands_them_out(self):
        paths, _ = self.launched("""
pool = concurrent.futures.ThreadPoolExecutor(2)
with gpufl.executor(pool) as bound:
    with gpufl.Scope("a"):
        first = bound.submit(work)
    with gpufl.Scope("b"):
        second = list(bound.map(lambda number: work(), range(3)))
    first.result()
    bound.submit(work).result()
with gpufl.Scope("c"):
    later = gpufl.bind(work)
elsewhere(later)
elsewhere(contextvars.copy_context().run, later)
try:
    gpufl.executor(concurrent.futures.ProcessPoolExecutor(1))
    raise AssertionError
except TypeError:
    pass
""")
        self.assertEqual(paths, {"a": 1, "b": 3, "c": 2, "none": 1})

    def test_asyncio_keeps_the_scope_in_threads_tasks_and_coroutines(self):
        paths, _ = self.launched("""
async def handle():
    work()
    await asyncio.sleep(0)
    work()
async def carried():
    with gpufl.adopt():
        work()
async def main():
    with gpufl.Scope("serve"):
        await gpufl.to_thread(work)
        handler = gpufl.bind(handle)
        with gpufl.carry() as token:
            assert token == gpufl.current_scope() != 0
            task = asyncio.create_task(carried())
            thread = asyncio.create_task(asyncio.to_thread(lambda: asyncio.run(carried())))
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(gpufl.executor(concurrent.futures.ThreadPoolExecutor(1)), work)
    await asyncio.gather(handler(), task, thread)
    await asyncio.to_thread(work)
asyncio.run(main())
""")
        self.assertEqual(paths, {"serve": 6, "none": 1})

    def test_propagation_covers_pools_and_threads_until_it_ends(self):
        paths, _ = self.launched("""
start, submit = threading.Thread.start, concurrent.futures.ThreadPoolExecutor.submit
pool = concurrent.futures.ThreadPoolExecutor(1)
pool.submit(int).result()
with gpufl.propagate(), gpufl.Scope("step"):
    elsewhere(work)
    pool.submit(work).result()
    asyncio.run(asyncio.to_thread(work))
with gpufl.Scope("after"):
    elsewhere(work)
    pool.submit(work).result()
assert (start, submit) == (threading.Thread.start, concurrent.futures.ThreadPoolExecutor.submit)
""")
        self.assertEqual(paths, {"step": 3, "none": 2})

    def test_without_a_session_tokens_are_zero_and_functions_run_as_they_are(self):
        result = self.program("""
import gpufl
with gpufl.Scope("a"):
    assert gpufl.current_scope() == 0
    with gpufl.adopt(0), gpufl.adopt(12345), gpufl.carry():
        assert gpufl.bind(lambda x: x + 1)(1) == 2
for wrong in ("text", 1.5, True):
    try:
        gpufl.adopt(wrong)
        raise AssertionError
    except TypeError:
        pass
""")
        self.assertEqual(result.returncode, 0, result.stderr)


if __name__ == "__main__":
    fixture.main()
