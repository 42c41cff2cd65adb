#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""gpufl.cupti.cupti: activity records and callbacks, on the look-alike CUPTI."""
import fixture
import harness

HEAD = """
import sys
from gpufl.cupti import cupti
from fake_cuda import Gpu

def raised(call, *args, **kwargs):
    try:
        print("gave", call(*args, **kwargs))
    except Exception as error:
        print(type(error).__name__, getattr(error, "status", ""), error)

def func_buffer_requested():
    return 1 << 20, 0

activities = []
"""
TRACED = HEAD + """
cupti.activity_register_callbacks(func_buffer_requested, activities.extend)
cupti.activity_enable(cupti.ActivityKind.CONCURRENT_KERNEL)
cupti.activity_enable(cupti.ActivityKind.RUNTIME)
gpu = Gpu("add", "mul")
gpu.launch("add", 3); gpu.launch("mul", 2); gpu.wait()
cupti.activity_flush_all(1)
kernels = [a for a in activities if a.kind == cupti.ActivityKind.CONCURRENT_KERNEL]
calls = [a for a in activities if a.kind == cupti.ActivityKind.RUNTIME]
"""
SUBSCRIBED = HEAD + """
calls = []

def callback(userdata, domain, callback_id, callback_data):
    calls.append((userdata, domain, callback_id, callback_data.callback_site, callback_data.function_name,
                  callback_data.symbol_name))

subscriber = cupti.subscribe(callback, "mine")
launch = cupti.Runtime_api_trace_cbid.cudaLaunchKernel_v7000
cupti.enable_callback(1, subscriber, cupti.CallbackDomain.RUNTIME_API, launch)
gpu = Gpu("k")
"""


class Activity(fixture.TestCase):
    def test_the_tutorial_of_cupti_python_runs(self):
        # As its documentation has it, but for the import.
        out = self.output("""
from fake_cuda import Gpu
from gpufl.cupti import cupti

def func_buffer_requested():
    buffer_size = 8 * 1024 * 1024
    max_num_records = 0
    return buffer_size, max_num_records

def func_buffer_completed(activities: list):
    for activity in activities:
        if activity.kind == cupti.ActivityKind.CONCURRENT_KERNEL:
            print(f"kernel name = {activity.name}")
            print(f"kernel duration (ns) = {activity.end - activity.start}")

cupti.activity_register_callbacks(func_buffer_requested, func_buffer_completed)
cupti.activity_enable(cupti.ActivityKind.CONCURRENT_KERNEL)
gpu = Gpu("vector_add")
gpu.launch("vector_add")
gpu.wait()
cupti.activity_flush_all(1)
cupti.activity_disable(cupti.ActivityKind.CONCURRENT_KERNEL)
""")
        self.assertEqual(out, "kernel name = vector_add\nkernel duration (ns) = 1000\n")

    def test_records_have_the_fields_of_their_kind(self):
        self.output(TRACED + """
assert [k.name for k in kernels] == ["add"] * 3 + ["mul"] * 2, kernels
first = kernels[0]
assert isinstance(first, cupti.ActivityKernel10) and cupti.ActivityKernel12 is cupti.ActivityKernel
assert (first.grid_x, first.block_x, first.registers_per_thread, first.end - first.start) == (64, 128, 32, 1000)
assert first.cache_config.config.requested == first.cache_config.both & 15
assert {k.correlation_id for k in kernels} <= {c.correlation_id for c in calls}
launch = cupti.runtime_api_trace_cbid.cudaLaunchKernel_v7000
assert len([c for c in calls if c.cbid == launch]) == 5 and calls[0].return_value == 0
assert "name='add'" in repr(first)
assert first.tobytes()[:4] == b"\\x0a\\0\\0\\0" and len(first.tobytes()) == 216
try:
    first.start = 3
except AttributeError:
    print("read-only")
""")

    def test_a_field_that_an_older_cupti_does_not_write_reads_as_none_not_zero(self):
        self.output(TRACED + """
assert cupti.get_version() == 22
assert len(kernels) == 5 and len(kernels[0].tobytes()) == 208
assert kernels[0].name == "add" and kernels[0].max_active_clusters is not None
assert kernels[0].is_device_launched is None
""", GPUFL_CUPTI_PATH=harness.FAKES / "cuda12")

    def test_a_field_that_was_padding_in_an_older_cupti_reads_as_none(self):
        text = HEAD + """
cupti.get_version()
record = cupti.ActivityMemset(bytes(88))
print(record.is_device_launched, record.channel_type)
"""
        self.assertEqual(self.output(text), "0 0\n")
        self.assertEqual(self.output(text, GPUFL_CUPTI_PATH=harness.FAKES / "cuda12"), "None 0\n")

    def test_parts_of_records_are_read_in_place(self):
        self.output(HEAD + """
import struct
marker = cupti.ActivityMarker2(struct.pack("<IIQII3I4x16x", 12, 2, 5, 7, 2, 11, 22, 33))
assert (marker.flags, marker.flags_, marker.id) == (2, 2, 7)
assert (marker.object_id.pt.process_id, marker.object_id.pt.thread_id) == (11, 22)
assert (marker.object_id.dcs.device_id, marker.object_id.dcs.stream_id) == (11, 33)
memory = cupti.ActivityMemory4(struct.pack("<80xI4xQQQQ8x", 1, 2, 3, 4, 5))
assert (memory.memory_pool_config.memory_pool_type, memory.memory_pool_config.pool.size) == (1, 4)
assert cupti.ActivityFunction(bytes(32)).function_ind_ex == 0
assert cupti.ActivityKernel(b"1234").start is None
""")

    def test_numpy_views_share_the_buffers_memory(self):
        self.output(HEAD + """
import numpy
seen = []

def completed(buffer):
    assert isinstance(buffer, cupti.ActivityBuffer)
    for kind, array in buffer.runs():
        raw = numpy.frombuffer(buffer._buffer, numpy.uint8)
        assert numpy.shares_memory(array, raw) and not array.flags.writeable
        if kind == cupti.ActivityKind.CONCURRENT_KERNEL:
            view = buffer.array(kind)
            assert numpy.shares_memory(view, raw)
            names = buffer.texts(kind)
            seen.append((view, [names[int(address)] for address in view["name"]], [r.start for r in buffer.records()]))

cupti.activity_register_callbacks(func_buffer_requested, completed, as_buffers=True)
cupti.activity_enable(cupti.ActivityKind.CONCURRENT_KERNEL)
gpu = Gpu("a", "b")
gpu.launch("a", 500); gpu.launch("b", 500); gpu.wait()
cupti.activity_flush_all(1)
names = [name for _, some, _ in seen for name in some]
assert names == ["a"] * 500 + ["b"] * 500, len(names)
for view, _, starts in seen:
    assert view["start"].tolist() == starts and view.dtype.itemsize == 216
    assert ((view["end"] - view["start"]) == 1000).all()
""")

    def test_an_array_joins_runs_that_are_apart(self):
        self.output(HEAD + """
import numpy
parts = []
cupti.activity_register_callbacks(func_buffer_requested, lambda buffer: parts.append(
    (buffer.array(cupti.ActivityKind.RUNTIME), len(buffer.runs()), len(buffer))), as_buffers=True)
cupti.activity_enable(cupti.ActivityKind.RUNTIME)
cupti.activity_enable(cupti.ActivityKind.SYNCHRONIZATION)
gpu = Gpu("k")
for _ in range(3):
    gpu.launch("k"); gpu.wait()
cupti.activity_flush_all(1)
mixed = [part for part in parts if part[1] > 1]
assert mixed, parts
array, runs, records = mixed[0]
assert 0 < len(array) < records and (array["kind"] == 5).all() and (numpy.diff(array["start"].astype(int)) > 0).all()
""")

    def test_buffers_arrive_by_themselves_when_they_are_full(self):
        self.output(HEAD + """
import threading, time
names = set()
def completed(some):
    names.add(threading.current_thread().name)
    activities.extend(some)
cupti.activity_register_callbacks(lambda: (4096, 0), completed)
cupti.activity_enable(cupti.ActivityKind.CONCURRENT_KERNEL)
gpu = Gpu("k")
gpu.launch("k", 200); gpu.wait()
deadline = time.monotonic() + 60
while not activities and time.monotonic() < deadline:
    gpu.launch("k", 50); gpu.wait()
assert activities and names == {"gpufl-cupti"}, names
cupti.activity_flush_all(1)
""")

    def test_an_exception_in_a_callback_is_reported_and_has_no_other_effect(self):
        result = self.program(HEAD + """
def completed(some):
    activities.extend(some)
    raise KeyError("mine")
cupti.activity_register_callbacks(func_buffer_requested, completed)
cupti.activity_enable(cupti.ActivityKind.CONCURRENT_KERNEL)
gpu = Gpu("k")
gpu.launch("k", 2); gpu.wait(); cupti.activity_flush_all(1)
gpu.launch("k", 3); gpu.wait(); cupti.activity_flush_all(1)
print(len(activities))
""")
        self.assertEqual((result.returncode, result.stdout), (0, "5\n"), result.stderr)
        self.assertEqual(result.stderr.count("KeyError: 'mine'"), 2, result.stderr)

    def test_a_buffer_size_that_cannot_be_is_refused_at_once(self):
        out = self.output(HEAD + """
for answer in (5, (1, 0), (1 << 20, -1), ("a", 0)):
    raised(cupti.activity_register_callbacks, lambda: answer, print)
raised(cupti.activity_register_callbacks, 3, print)
raised(cupti.activity_register_callbacks, func_buffer_requested, None)
raised(cupti.activity_register_callbacks, func_buffer_requested, print, as_bufers=True)
""").splitlines()
        for line, text in zip(out, ("TypeError  func_buffer_requested must return (bytes, most records), not 5",
                                    "ValueError  an activity buffer has 1024 to", "ValueError  the most records",
                                    "TypeError  the size of a buffer must be int, not str",
                                    "TypeError  func_buffer_requested must be callable, not int",
                                    "TypeError  func_buffer_completed must be callable, not NoneType",
                                    "TypeError  activity_register_callbacks() got an unexpected keyword")):
            self.assertTrue(line.startswith(text), line)

    def test_damaged_records_end_a_buffer_and_no_more(self):
        out = self.output(TRACED + "print(sum(k.name in ('add', 'mul') for k in kernels))",
                          FAKE_FAULTS="absurd_record_every=2")
        self.assertEqual(out, "5\n")

    def test_dropped_records_are_counted(self):
        out = self.output(TRACED + "print(len(activities) < 11, cupti.activity_get_num_dropped_records(None, 0) > 0)",
                          FAKE_FAULTS="drop_every=3")
        self.assertEqual(out, "True True\n")

    def test_records_of_a_training_run_on_an_h200_are_read(self):
        recording = fixture.SOURCE / "tests" / "recordings" / "h200_torch_train.cuptirec.zst"
        # The counts are those of tests/recordings/README.md. Of kinds with texts only kernels: it has no other texts.
        self.output(HEAD + """
import collections
cupti.activity_register_callbacks(func_buffer_requested, activities.extend)
kinds = {"CONCURRENT_KERNEL": 2332, "RUNTIME": 2361, "DRIVER": 122, "MEMCPY": 54, "MEMSET": 73, "SYNCHRONIZATION": 2,
         "OVERHEAD": 30, "CONTEXT": 1, "STREAM": 8}
for name in kinds:
    cupti.activity_enable(cupti.ActivityKind[name])
gpu = Gpu("k")
gpu.wait()
cupti.activity_flush_all(1)
found = collections.Counter(cupti.ActivityKind(one.kind).name for one in activities)
assert found == kinds, found
kernels = [one for one in activities if one.kind == cupti.ActivityKind.CONCURRENT_KERNEL]
assert all(one.name and one.end > one.start and one.grid_x > 0 and one.block_x > 0 for one in kernels)
assert len({one.correlation_id for one in kernels}) == len(kernels)
copies = [one for one in activities if one.kind == cupti.ActivityKind.MEMCPY]
assert all(one.bytes > 0 and cupti.ActivityMemcpyKind(one.copy_kind) and one.copy_count is not None for one in copies)
contexts = [one for one in activities if one.kind == cupti.ActivityKind.CONTEXT]
assert contexts[0].compute_api_kind == cupti.ActivityComputeApiKind.CUDA and contexts[0].cig_mode is not None
""", FAKE_REPLAY=recording, FAKE_REPLAY_TIMES="recorded")

    def test_attributes_and_external_ids_are_read_and_set(self):
        self.output(HEAD + """
attribute = cupti.ActivityAttribute.DEVICE_BUFFER_SIZE
before = cupti.activity_get_attribute(attribute)
cupti.activity_set_attribute(attribute, before * 2)
assert cupti.activity_get_attribute(attribute) == before * 2
import ctypes
size, value = ctypes.c_size_t(8), ctypes.c_size_t()
cupti.activity_get_attribute(attribute, ctypes.addressof(size), ctypes.addressof(value))
assert value.value == before * 2
cupti.activity_register_callbacks(func_buffer_requested, activities.extend)
for kind in (cupti.ActivityKind.RUNTIME, cupti.ActivityKind.EXTERNAL_CORRELATION):
    cupti.activity_enable(kind)
gpu = Gpu("k")
cupti.activity_push_external_correlation_id(cupti.ExternalCorrelationKind.CUSTOM0, 77)
gpu.launch("k")
assert cupti.activity_pop_external_correlation_id(cupti.ExternalCorrelationKind.CUSTOM0) == 77
gpu.wait(); cupti.activity_flush_all(1)
external = [a for a in activities if a.kind == cupti.ActivityKind.EXTERNAL_CORRELATION]
assert [(e.external_id, e.external_kind) for e in external] == [(77, cupti.ExternalCorrelationKind.CUSTOM0)], external
""")

    def test_results_are_exceptions_with_status_and_advice(self):
        out = self.output(HEAD + """
raised(cupti.activity_enable, 3)
raised(cupti.activity_enable, 9999)
raised(cupti.activity_enable, "KERNEL")
raised(cupti.activity_enable, -1)
raised(cupti.activity_enable, knd=3)
raised(cupti.activity_enable_hw_trace, 1)
raised(cupti.pm_sampling_enable, 0)
raised(cupti.unsubscribe, 12345)
raised(cupti.enable_domain, 1, 12345, 1)
import pickle
error = pickle.loads(pickle.dumps(cupti.cuptiError(35)))
assert error.status is cupti.Result.ERROR_INSUFFICIENT_PRIVILEGES and cupti.cuptiError(4711).status == 4711
""", FAKE_FAULTS="fail=cuptiActivityEnable@1:35").splitlines()
        for line, text in zip(out, ("cuptiError 35 cuptiActivityEnable: hardware counters are restricted to administrators",
                                    "cuptiError 21 cuptiActivityEnable: CUPTI_ERROR_INVALID_KIND (21)",
                                    "TypeError  argument 1 of cuptiActivityEnable must be int",
                                    "ValueError  argument 1 of cuptiActivityEnable must be 0 to 4294967295, not -1",
                                    "TypeError  activity_enable() got an unexpected keyword argument 'knd'",
                                    "FunctionNotFoundError  ", "ValueError  p_params must not be NULL",
                                    "ValueError  subscriber: not a handle from subscribe()",
                                    "ValueError  subscriber: not a handle from subscribe()")):
            self.assertTrue(line.startswith(text), line)

    def test_a_gpufl_session_keeps_cupti(self):
        out = self.output(HEAD + """
import gpufl
gpufl.init(log_path="log", profiling_engine=gpufl.ProfilingEngine.Trace)
raised(cupti.activity_register_callbacks, func_buffer_requested, print)
raised(cupti.activity_enable, 3)
raised(cupti.subscribe, print, None)
gpufl.shutdown()
cupti.activity_register_callbacks(func_buffer_requested, print)
gpufl.init(log_path="log", profiling_engine=gpufl.ProfilingEngine.Monitor)
cupti.activity_enable(cupti.ActivityKind.CONCURRENT_KERNEL)
gpufl.shutdown()
""").splitlines()
        for line in out:
            self.assertRegex(line,
                             "^cuptiError 39 .*a gpufl session of this process is using CUPTI; end it with")
        self.assertEqual(len(out), 3)


class Callback(fixture.TestCase):
    def test_callbacks_come_at_entry_and_exit_with_their_data(self):
        self.output(SUBSCRIBED + """
gpu.launch("k", 2)
enter, leave = cupti.ApiCallbackSite.API_ENTER, cupti.ApiCallbackSite.API_EXIT
one = [("mine", 2, 211, site, "cudaLaunchKernel", "k") for site in (enter, leave)]
assert calls == one * 2, calls
cupti.unsubscribe(subscriber)
gpu.launch("k")
assert len(calls) == 4
""")

    def test_texts_of_callback_data_end_with_the_callback_and_numbers_stay(self):
        out = self.output(HEAD + """
kept = []
subscriber = cupti.subscribe(lambda user, domain, cbid, data: kept.append(data), None)
cupti.enable_domain(1, subscriber, cupti.CallbackDomain.RUNTIME_API)
gpu = Gpu("k")
gpu.launch("k")
cupti.unsubscribe(subscriber)
assert kept[-1].correlation_id > 0 and isinstance(kept[-1], cupti.CallbackData)
raised(lambda: kept[-1].function_name)
assert "correlation_id" in repr(kept[-1])
""")
        self.assertTrue(out.startswith("RuntimeError  texts of callback data"), out)

    def test_an_exception_in_a_callback_is_reported_and_has_no_other_effect(self):
        result = self.program(HEAD + """
def callback(*unused):
    raise KeyError("mine")
subscriber = cupti.subscribe(callback, None)
cupti.enable_callback(1, subscriber, 2, 211)
gpu = Gpu("k")
gpu.launch("k")
cupti.unsubscribe(subscriber)
print("done")
""")
        self.assertEqual((result.returncode, result.stdout), (0, "done\n"), result.stderr)
        self.assertEqual(result.stderr.count("KeyError: 'mine'"), 2)

    def test_threads_that_launch_alternate_on_the_gil(self):
        self.output(SUBSCRIBED + """
import threading
threads = [threading.Thread(target=gpu.launch, args=("k", 100)) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert len(calls) == 800, len(calls)
cupti.unsubscribe(subscriber)
""")

    def test_no_callback_enters_an_interpreter_that_ends(self):
        # A thread of C launches until the very end, without the GIL.
        result = self.program(SUBSCRIBED + """
import threading
def work():
    while True:
        gpu.launch("k")
threading.Thread(target=work, daemon=True).start()
while len(calls) < 10: gpu.launch("k")
cupti.activity_register_callbacks(func_buffer_requested, activities.extend)
cupti.activity_enable(cupti.ActivityKind.CONCURRENT_KERNEL)
print("end")
""")
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "end\n", ""))

    def test_an_atexit_function_of_the_program_still_gets_records(self):
        out = self.output(HEAD + """
import atexit
cupti.activity_register_callbacks(func_buffer_requested, activities.extend)
cupti.activity_enable(cupti.ActivityKind.CONCURRENT_KERNEL)
@atexit.register
def finish():
    cupti.activity_flush_all(1)
    print(len(activities))
gpu = Gpu("k")
gpu.launch("k", 4); gpu.wait()
""")
        self.assertEqual(out, "4\n")

    def test_whoever_holds_cupti_is_named(self):
        out = self.output(HEAD + """
params = cupti.SubscriberParams(subscriber_name="me")
raised(cupti.subscribe_v2, print, None, params.ptr)
print(params.old_subscriber_name)
""", FAKE_FAULTS="subscriber=Kineto").splitlines()
        self.assertTrue(out[0].startswith("cuptiError 39 cuptiSubscribe_v2"), out)
        self.assertEqual(out[1], "Kineto")

    def test_an_older_cupti_has_no_subscribe_v2_and_says_so(self):
        out = self.output(HEAD + "raised(cupti.subscribe_v2, print, None, cupti.SubscriberParams().ptr)",
                          GPUFL_CUPTI_PATH=harness.FAKES / "cuda12")
        self.assertRegex(out,
                         "^FunctionNotFoundError  .* has no cuptiSubscribe_v2; install the CUPTI of a newer CUDA")

    def test_a_forked_child_ends_well(self):
        # Forked beside a thread that launches: what it holds, the child does not wait for.
        out = self.output(SUBSCRIBED + """
import os, threading
cupti.activity_register_callbacks(lambda: (4096, 0), activities.extend)
cupti.activity_enable(cupti.ActivityKind.CONCURRENT_KERNEL)
is_done = False

def work():
    while not is_done:
        gpu.launch("k", 10)

thread = threading.Thread(target=work)
thread.start()
codes = []
for _ in range(5):
    child = os.fork()
    if child == 0:
        sys.exit(7)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
is_done = True
thread.join()
cupti.unsubscribe(subscriber)
print(codes)
""")
        self.assertEqual(out, "[7, 7, 7, 7, 7]\n")

    def test_parameters_name_a_wrong_field(self):
        out = self.output(HEAD + """
raised(cupti.SubscriberParams, subscriber_nam="x")
raised(cupti.PmSampling_Enable_Params, devce_index=1)
raised(cupti.PmSampling_Enable_Params, device_index="x")
raised(lambda: cupti.nothing_like_it)
config = cupti.ActivityUnifiedMemoryCounterConfig(2)
config.enable = 1
config[1].device_id = 3
print([one.enable for one in config], config.device_id, config.ptr > 0, len(config))
""").splitlines()
        self.assertTrue(out[0].startswith("TypeError  SubscriberParams has no field 'subscriber_nam'"), out[0])
        self.assertEqual(out[1],
                         "TypeError  PmSampling_Enable_Params has no field 'devce_index'; did you mean 'device_index'?")
        self.assertEqual(out[2], "TypeError  device_index must be int, not str")
        self.assertTrue(out[3].startswith("AttributeError"), out[3])
        self.assertEqual(out[4], "[1, 1] [0, 3] True 2")


if __name__ == "__main__":
    fixture.main()
