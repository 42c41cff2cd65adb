#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Scope in all its forms, and what becomes of scopes that do not nest."""
import json

import fixture
import harness

START = """
import gpufl
from fake_cuda import Gpu
gpufl.init(log_path="log", profiling_engine=gpufl.ProfilingEngine.Trace)
gpu = Gpu("k")
"""
END = """
gpu.wait()
gpufl.shutdown()
"""


class Scopes(fixture.TestCase):
    def paths(self, text, **variables):
        """The scope path of each kernel in order of launch, None outside of scopes."""
        session = self.recorded(START + text + END, **variables)
        names = session.dictionary("scope_name_dict")
        begins = {row["scope_instance_id"]: names[row["name_id"]] for row in session.rows("scope_event_batch")
                  if row["event_type"] == 0}
        ends = [row["scope_instance_id"] for row in session.rows("scope_event_batch") if row["event_type"] == 1]
        self.assertEqual(sorted(begins), sorted(ends), "every scope that began has ended")
        rows = sorted(session.rows("kernel_event_batch"), key=lambda row: row["corr_id"])
        return [begins[row["scope_id"]] if row["scope_id"] else None for row in rows]

    def test_scopes_nest_and_end_with_their_block(self):
        self.assertEqual(self.paths("""
gpu.launch("k")
with gpufl.Scope("a"):
    with gpufl.Scope("b", "tag") as b:
        assert (b.name, b.tag, b.repeat, b.warmup) == ("b", "tag", 0, 0)
        gpu.launch("k")
    try:
        with gpufl.Scope("c"):
            raise KeyError
    except KeyError:
        gpu.launch("k")
gpu.launch("k")
"""), [None, "a|b", "a", None])

    def test_one_scope_object_serves_many_times_and_inside_of_itself(self):
        self.assertEqual(self.paths("""
step = gpufl.Scope("step")
for _ in range(2):
    with step:
        gpu.launch("k")
        with step:
            gpu.launch("k")
"""), ["step", "step|step"] * 2)

    def test_a_decorated_function_is_in_its_scope(self):
        self.assertEqual(self.paths("""
@gpufl.scope("named", "tag")
def named(value):
    "a function"
    gpu.launch("k")
    return value

@gpufl.scope
def plain():
    gpu.launch("k")

@gpufl.Scope("object")
def with_object():
    gpu.launch("k")

class Layer:
    @gpufl.scope
    def forward(self):
        gpu.launch("k")

    @gpufl.scope("static")
    @staticmethod
    def static():
        gpu.launch("k")

assert named(3) == 3 and named.__name__ == "named" and named.__doc__ == "a function"
plain(); with_object(); Layer().forward(); Layer.static()
gpu.launch("k")
"""), ["named", "plain", "object", "Layer.forward", "static", None])

    def test_interleaved_coroutines_keep_their_own_scopes(self):
        self.assertEqual(self.paths("""
import asyncio, inspect

async def turn():
    await asyncio.sleep(0)

@gpufl.scope("inner")
async def inner():
    gpu.launch("k")
    await turn()
    gpu.launch("k")

@gpufl.scope("first")
async def first():
    gpu.launch("k")
    await turn()
    await inner()
    gpu.launch("k")

@gpufl.scope("second")
async def second():
    for _ in range(4):
        gpu.launch("k")
        await turn()
    return "second's result"

async def both():
    return await asyncio.gather(first(), second())

assert inspect.iscoroutinefunction(first)
assert asyncio.run(both()) == [None, "second's result"]
gpu.launch("k")
"""), ["first", "second", "first|inner", "second", "first|inner", "first", "second", "second", None])

    def test_generators_and_asynchronous_generators_are_in_their_scope_while_they_run(self):
        self.assertEqual(self.paths("""
import asyncio

@gpufl.scope("generator")
def numbers():
    gpu.launch("k")
    got = yield 1
    gpu.launch("k")
    yield got

@gpufl.scope("stream")
async def stream():
    gpu.launch("k")
    try:
        yield 1
    finally:
        gpu.launch("k")

async def consume():
    async for _ in stream():
        gpu.launch("k")

g = numbers()
assert next(g) == 1
gpu.launch("k")
assert g.send("sent") == "sent"
g.close()
asyncio.run(consume())
"""), ["generator", None, "generator", "stream", None, "stream"])

    def test_a_scope_that_is_not_the_innermost_is_taken_out_from_under_the_others(self):
        self.assertEqual(self.paths("""
a, b = gpufl.Scope("a"), gpufl.Scope("b")
a.__enter__()
b.__enter__()
gpu.launch("k")
a.__exit__(None, None, None)
gpu.launch("k")
b.__exit__(None, None, None)
gpu.launch("k")
b.__exit__(None, None, None)
"""), ["a|b", "b", None])

    def test_a_loop_that_is_left_early_closes_its_scope(self):
        self.assertEqual(self.paths("""
for i in gpufl.Scope("loop", repeat=10):
    gpu.launch("k")
    if i == 1:
        break
gpu.launch("k")
"""), ["loop", "loop", None])

    def iterations(self, text):
        """Planned and begun iterations of the one scope, and what the report divides by."""
        session = self.recorded(START + text + END)
        rows = session.rows("scope_event_batch")
        scope, = json.loads(harness.gpufl("report", session.path, "--json").stdout)["scopes"]
        self.assertAlmostEqual(scope["per_iteration_ns"] * scope["repeat"], scope["wall_ns"], delta=1)
        return [row["repeat"] for row in rows if row["event_type"] == 0] + [
            row["repeat"] for row in rows if row["event_type"] == 1] + [scope["repeat"]]

    def test_averages_are_over_the_iterations_that_ran(self):
        self.assertEqual(self.iterations("""
for i in gpufl.Scope("whole", repeat=10, warmup=3):
    gpu.launch("k")
"""), [10, 10, 10])

    def test_averages_of_a_loop_that_breaks_are_over_the_iterations_that_ran(self):
        self.assertEqual(self.iterations("""
for i in gpufl.Scope("early", repeat=10):
    gpu.launch("k")
    if i == 1:
        break
"""), [10, 2, 2])

    def test_averages_of_a_loop_that_raises_are_over_the_iterations_that_ran(self):
        self.assertEqual(self.iterations("""
try:
    for i in gpufl.Scope("raises", repeat=10, warmup=2):
        gpu.launch("k")
        if i == 3:
            raise KeyError
except KeyError:
    pass
"""), [10, 4, 4])

    def test_a_scope_that_is_dropped_while_it_is_open_ends(self):
        self.assertEqual(self.paths("""
scope = gpufl.Scope("dropped")
scope.__enter__()
gpu.launch("k")
del scope
gpu.launch("k")
"""), ["dropped", None])

    def test_a_scope_that_another_thread_drops_ends_when_its_own_comes_by(self):
        self.assertEqual(self.paths("""
import threading
box = [gpufl.Scope("dropped")]
box[0].__enter__()
outer = gpufl.Scope("outer")
with outer:
    thread = threading.Thread(target=box.clear)
    thread.start()
    thread.join()
    gpu.launch("k")
gpu.launch("k")
"""), ["dropped|outer", None])

    def test_threads_have_separate_scopes(self):
        paths = self.paths("""
import threading
def work(name):
    for _ in range(50):
        with shared, gpufl.Scope(name):
            gpu.launch("k")
shared = gpufl.Scope("shared")
threads = [threading.Thread(target=work, args=(f"thread_{i}",)) for i in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
""")
        self.assertEqual({path: paths.count(path) for path in paths}, {f"shared|thread_{i}": 50 for i in range(4)})

    def test_a_scope_that_outlives_its_session_does_not_reach_into_the_next(self):
        self.output("""
import gpufl
old = gpufl.Scope("old")
gpufl.init(log_path="first")
old.__enter__()
gpufl.shutdown()
gpufl.init(log_path="log")
with gpufl.Scope("new"):
    old.__exit__(None, None, None)
    with gpufl.Scope("inner"): pass
gpufl.shutdown()
""")
        session = fixture.harness.Session(fixture.harness.sessions(self.directory / "log")[0])
        self.assertEqual(sorted(session.dictionary("scope_name_dict").values()), ["new", "new|inner"])


    def test_a_forked_child_has_no_session_until_it_starts_one(self):
        self.output("""
import os
import gpufl
gpufl.init(app_name="parent", log_path="log")
scope = gpufl.Scope("parent's")
with scope:
    child = os.fork()
    with gpufl.Scope("inside"): pass
    if not child:
        scope.__exit__(None, None, None)
        gpufl.init(app_name="child", log_path="child")
        with gpufl.Scope("child's"): pass
        gpufl.shutdown()
        os._exit(0)
assert os.waitpid(child, 0)[1] == 0
gpufl.shutdown()
""")
        names = {}
        for base in ("log", "child"):
            session = fixture.harness.Session(fixture.harness.sessions(self.directory / base)[0])
            names[base] = sorted(session.dictionary("scope_name_dict").values())
        self.assertEqual(names, {"log": ["parent's", "parent's|inside"], "child": ["child's"]})


class Mistakes(fixture.TestCase):
    def test_mistakes_are_named(self):
        out = self.output("""
import gpufl
def raised(call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except Exception as error:
        print(f"{type(error).__name__}: {error}")
    else:
        print("nothing was raised")
raised(gpufl.Scope)
raised(gpufl.Scope, 3)
raised(gpufl.Scope, "a", 3)
raised(gpufl.Scope, "a\\0b")
raised(gpufl.Scope, "a", repaet=3)
raised(gpufl.Scope, "a", repeat="3")
raised(gpufl.Scope, "a", repeat=-1)
raised(gpufl.Scope, "a", repeat=True)
raised(iter, gpufl.Scope("a"))
raised(gpufl.Scope("a"), 3)
raised(gpufl.Scope("a", repeat=2), len)
raised(gpufl.scope, 3)
print(repr(gpufl.Scope("it's", "t")))
""").splitlines()
        self.assertIn("TypeError: Scope() missing required argument 'name'", out[0])
        self.assertEqual(out[1], "TypeError: Scope: name must be str, not <class 'int'>")
        self.assertEqual(out[2], "TypeError: Scope: tag must be str, not <class 'int'>")
        self.assertIn("ValueError: Scope: name must not contain a NUL", out[3])
        self.assertEqual(out[4], "TypeError: Scope() got an unexpected keyword argument 'repaet'; "
                                 "did you mean 'repeat'?")
        self.assertEqual(out[5], "TypeError: Scope: repeat must be int, not <class 'str'>")
        self.assertEqual(out[6], "ValueError: Scope: repeat must be 0 to 2147483647, not -1")
        self.assertEqual(out[7], "TypeError: Scope: repeat must be int, not <class 'bool'>")
        self.assertIn("TypeError: Scope 'a' is not a benchmark loop: pass repeat=N", out[8])
        self.assertIn("TypeError: Scope: expected a function to decorate, not 3", out[9])
        self.assertIn("TypeError: Scope: repeat and warmup are for loops", out[10])
        self.assertIn("TypeError: scope: expected a name or a function, not 3", out[11])
        self.assertEqual(out[12], """gpufl.Scope("it's", 't')""")


if __name__ == "__main__":
    fixture.main()
