#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""gpufl.cupti's modules for counters, on the look-alike CUPTI: PM sampling, ranges, PC sampling, SASS metrics,
checkpoints."""
import fixture
import harness

HEAD = """
import time
from gpufl.cupti import checkpoint, cupti, pc_sampling, pm_sampling, range_profiler, sass_metrics
from fake_cuda import Gpu

def raised(call, *args, **kwargs):
    try:
        print("gave", call(*args, **kwargs))
    except Exception as error:
        print(type(error).__name__, getattr(error, "status", ""), error)

METRICS = ["sm__cycles_active.avg", "dram__bytes_read.sum"]

def started():
    gpu = Gpu("k", "j")
    gpu.launch("k"); gpu.wait()
    return gpu

def sample(collector, least=5):
    # Until there are enough samples, however busy the machine is.
    collector.start()
    deadline = time.monotonic() + 60
    data = collector.decode()
    while len(data) < least and time.monotonic() < deadline:
        data = collector.decode()
    collector.stop()
    return data
"""


class Case(fixture.TestCase):
    def lines(self, text, **variables):
        return self.output(HEAD + text, **variables).splitlines()

    def check(self, lines, *beginnings):
        self.assertEqual(len(lines), len(beginnings), lines)
        for line, beginning in zip(lines, beginnings):
            self.assertTrue(line.startswith(beginning), f"{line!r} is not {beginning!r}")


class PmSampling(Case):
    def test_samples_have_times_and_values(self):
        self.lines("""
import numpy
collector = pm_sampling.Collector(device_index=0)
collector.enable()
collector.configure(metrics=METRICS, hardware_buffer_size=1 << 20, sampling_interval=100000,
                    trigger_mode=pm_sampling.TriggerMode.GPU_TIME_INTERVAL,
                    hw_buffer_append_mode=pm_sampling.HardwareBuffer_AppendMode.KEEP_OLDEST)
data = sample(collector)
collector.disable()
collector.disable()
assert data.metrics == METRICS and data.num_completed_samples == len(data) == len(list(data)) >= 5
assert all(one.metric_values.dtype == numpy.float64 and one.metric_values.shape == (2,) for one in data)
times = [(one.start_timestamp, one.end_timestamp) for one in data][1:]
assert all(end - start == 100000 for start, end in times) and times == sorted(times)
assert (data[-1].metric_values == data[len(data) - 1].metric_values).all()
""")

    def test_a_collector_is_configured_again(self):
        self.lines("""
with pm_sampling.Collector() as collector:
    collector.configure(metrics=METRICS, sampling_interval=100000)
    first = sample(collector)
    collector.configure(metrics=METRICS[:1], sampling_interval=50000)
    second = sample(collector)
    assert len(first[0].metric_values) == 2 and len(second[0].metric_values) == 1
    assert second[1].end_timestamp - second[1].start_timestamp == 50000
""")

    def test_the_stop_reason_reports_discarded_samples(self):
        self.lines("""
with pm_sampling.Collector() as collector:
    collector.configure(metrics=METRICS, sampling_interval=10000)
    collector.start()
    deadline = time.monotonic() + 60
    data = collector.decode(3)
    while data.decode_stop_reason != pm_sampling.DecodeStopReason.COUNTER_DATA_FULL and time.monotonic() < deadline:
        data = collector.decode(max_samples=3)
    assert len(data) == 3, data
""")

    def test_a_full_hardware_buffer_is_a_memory_error_that_keeps_the_samples(self):
        self.lines("""
with pm_sampling.Collector() as collector:
    collector.configure(metrics=METRICS, sampling_interval=10000, hardware_buffer_size=4096)
    collector.start()
    deadline, caught = time.monotonic() + 60, None
    while caught is None and time.monotonic() < deadline:
        time.sleep(0.001)
        try:
            collector.decode()
        except MemoryError as error:
            caught = error
    assert "hardware_buffer_size" in str(caught) and isinstance(caught.counter_data, pm_sampling.CounterData)
""")

    def test_samples_and_activity_records_are_taken_together(self):
        self.lines("""
activities = []
cupti.activity_register_callbacks(lambda: (1 << 20, 0), activities.extend)
cupti.activity_enable(cupti.ActivityKind.CONCURRENT_KERNEL)
gpu = started()
with pm_sampling.Collector() as collector:
    collector.configure(metrics=METRICS, sampling_interval=100000)
    assert len(sample(collector)) >= 5
cupti.activity_flush_all(1)
assert [one.name for one in activities] == ["k"]
""")

    def test_a_device_that_the_one_to_one_layer_holds_is_refused(self):
        self.check(self.lines("""
started()
cupti.profiler_initialize(cupti.Profiler_Initialize_Params())
held = cupti.PmSampling_Enable_Params(device_index=0)
cupti.pm_sampling_enable(held.ptr)
raised(pm_sampling.Collector(0).enable)
cupti.pm_sampling_disable(cupti.PmSampling_Disable_Params(p_pm_sampling_object=held.p_pm_sampling_object))
raised(pm_sampling.Collector(0).enable)
"""), "RuntimeError  PM sampling is already enabled on device 0, by other code", "gave None")

    def test_calls_out_of_order_are_runtime_errors(self):
        self.check(self.lines("""
collector = pm_sampling.Collector()
for call in (collector.start, collector.stop, collector.decode): raised(call)
raised(collector.configure, metrics=METRICS)
collector.enable()
raised(pm_sampling.Collector(0).enable)
raised(collector.start)
raised(collector.decode)
collector.configure(metrics=METRICS, sampling_interval=100000)
collector.start()
raised(collector.configure, metrics=METRICS)
collector.disable()
raised(collector.decode)
"""), *["RuntimeError  this Collector is not enabled"] * 4, "RuntimeError  PM sampling is already enabled on device 0",
            *["RuntimeError  this Collector is not configured"] * 2, "RuntimeError  this Collector is sampling",
            "RuntimeError  this Collector is not enabled")

    def test_wrong_arguments_are_named(self):
        self.check(self.lines("""
raised(pm_sampling.Collector, "0")
raised(pm_sampling.Collector(9).enable)
with pm_sampling.Collector() as collector:
    raised(collector.configure, metrics=["bogus__metric.avg"])
    raised(collector.configure, metrics="sm__cycles_active.avg")
    raised(collector.configure, metrics=[f"sm__metric_{i}.avg" for i in range(60)])
    raised(collector.configure, metrics=METRICS, sampling_interval=0)
    raised(collector.configure, metrics=METRICS, trigger_mode=7)
    raised(collector.configure, metrics=METRICS, sampling_intervall=3)
    raised(collector.configure, METRICS)
    raised(collector.configure, metrics=METRICS, single_pass_metric_set_name="Triage")
    collector.configure(metrics=METRICS)
    raised(collector.decode, 0)
    collector.start()
    data = collector.decode()
    raised(lambda: data[10**9])
    raised(lambda: data["x"])
keep, address = pm_sampling.metrics_to_c_array(METRICS)
import ctypes
assert ctypes.cast(address, ctypes.POINTER(ctypes.c_char_p))[1] == b"dram__bytes_read.sum"
"""), "TypeError  device_index must be int, not str", "ValueError  device_index 9: there is 1 CUDA device",
            "ValueError  GH100 has no metric 'bogus__metric.avg'",
            "TypeError  metrics must be a sequence of str, not str",
            "ValueError  PM sampling supports metrics that one pass can count",
            "ValueError  sampling_interval must not be 0",
            "ValueError  7 is not a valid", "TypeError  Collector.configure() got an unexpected keyword argument",
            "TypeError  Collector.configure() takes 1 positional",
            "ValueError  GH100 has no single-pass metric set 'Triage'",
            "ValueError  max_samples must not be 0", "IndexError  sample 1000000000 of",
            "TypeError  samples are indexed by int")

    def test_refusals_are_the_documented_exceptions(self):
        text = "raised(pm_sampling.Collector().enable)\nraised(pm_sampling.Collector().enable)"
        for function, code, beginning in (
                ("cuptiPmSamplingEnable", 35, "PermissionError  cuptiPmSamplingEnable: hardware counters are restricted"),
                ("cuptiPmSamplingEnable", 8, "MemoryError  cuptiPmSamplingEnable"),
                ("cuptiPmSamplingEnable", 7, "RuntimeError  PM sampling is already enabled"),
                ("cuptiPmSamplingEnable", 26, "cuptiError 26 cuptiPmSamplingEnable: another client holds"),
                ("cuptiProfilerInitialize", 35, "PermissionError  cuptiProfilerInitialize"),
                ("cuptiProfilerInitialize", 15, "RuntimeError  libnvperf_host.so is missing")):
            with self.subTest(function=function, code=code):
                # Twice: a failure leaves nothing behind that would refuse the next try.
                self.check(self.lines(text, FAKE_FAULTS=f"fail={function}@*:{code}"), beginning, beginning)
        self.check(self.lines("raised(pm_sampling.Collector().enable)", FAKE_FAULTS="unsupported=vgpu"),
            "cuptiError 27 ")
        self.check(self.lines("raised(pm_sampling.Collector().enable)", FAKE_FAULTS="no_device=1"), "cuptiError 15 ")
        self.check(self.lines("raised(pm_sampling.Collector().enable)", GPUFL_CUPTI_PATH=harness.FAKES / "cuda12"),
                   "FunctionNotFoundError  ")


class Ranges(Case):
    def test_a_named_range_is_repeated_until_all_passes_are_in(self):
        self.lines("""
gpu = started()
metrics = [f"sm__metric_{i}.sum" for i in range(20)]
with range_profiler.RangeProfiler() as profiler:
    profiler.configure(metrics=metrics)
    assert profiler.num_passes > 1
    passes = []
    for number in profiler.passes():
        passes.append(number)
        with profiler.range("step"): gpu.launch("k", 2)
    data = profiler.decode()
assert passes == list(range(profiler.num_passes)), passes
assert [one.name for one in data] == ["step"] and data.num_dropped_ranges == 0, list(data)
import numpy
assert len(data) == 1 and not numpy.isnan(data[0].metric_values).any() and len(data[-1].metric_values) == 20
""")

    def test_kernels_are_counted_one_by_one(self):
        self.lines("""
gpu = started()
with range_profiler.RangeProfiler() as profiler:
    profiler.configure(metrics=["smsp__inst_executed.sum"], range_mode=range_profiler.ProfilerRange.AutoRange,
                       max_ranges=2)
    profiler.start()
    gpu.launch("k", 3); gpu.wait()
    assert profiler.stop() is True
    data = profiler.decode()
    assert [one.name for one in data] == ["0", "1"] and data.num_dropped_ranges == 1, list(data)
""")

    def test_mistakes_and_refusals_are_reported(self):
        self.check(self.lines("""
raised(range_profiler.RangeProfiler().enable)
gpu = started()
profiler = range_profiler.RangeProfiler()
for call in (profiler.start, profiler.decode): raised(call)
profiler.enable()
raised(profiler.enable)
raised(range_profiler.RangeProfiler().enable)
raised(profiler.push_range, "x")
raised(profiler.configure, metrics=["bogus__metric.sum"])
raised(profiler.configure, metrics=["sm__a.sum"], range_mode=range_profiler.ProfilerRange.AutoRange,
       replay_mode=range_profiler.ProfilerReplayMode.UserReplay)
profiler.configure(metrics=["sm__a.sum"])
raised(profiler.push_range, "")
raised(profiler.pop_range)
profiler.disable()
raised(range_profiler.RangeProfiler("x").enable)
"""), "RuntimeError  this thread has no CUDA context", *["RuntimeError  this RangeProfiler is not configured"] * 2,
            "RuntimeError  this RangeProfiler is already enabled",
            "RuntimeError  the context already has a range profiler",
            "RuntimeError  this RangeProfiler is not configured", "ValueError  GH100 has no metric 'bogus__metric.sum'",
            "ValueError  AutoRange requires KernelReplay", "ValueError  name must be a name", "cuptiError 7 ",
            "TypeError  context must be a CUDA handle")
        self.check(self.lines("started()\nraised(range_profiler.RangeProfiler().enable)",
                              FAKE_FAULTS="fail=cuptiRangeProfilerEnable@*:35"),
            "PermissionError  cuptiRangeProfilerEnable")


class PcSampling(Case):
    def test_samples_name_function_instruction_and_reason(self):
        self.lines("""
gpu = started()
with pc_sampling.PCSampler(sampling_period=8) as sampler:
    gpu.launch("k", 20); gpu.wait()
    data = sampler.get_data()
    assert data.samples and {one.function_name for one in data.samples} == {"k"}
    assert sum(one.samples for one in data.samples) == data.total_samples > 0
    assert {one.stall_reason for one in data.samples} <= set(sampler.stall_reasons.values())
    assert not data.has_more and not data.hardware_buffer_full and data.dropped_samples == 0
    gpu.launch("j", 20); gpu.wait()
    rest = sampler.stop()
    assert {one.function_name for one in rest.samples} == {"j"}
    sampler.start()
    gpu.launch("k"); gpu.wait()
    assert {one.function_name for one in sampler.disable().samples} == {"k"}
assert sampler.disable().samples == []
""")

    def test_losses_are_reported(self):
        self.lines("""
gpu = started()
with pc_sampling.PCSampler(sampling_period=8) as sampler:
    gpu.launch("k", 20); gpu.wait()
    data = sampler.get_data()
    assert (data.dropped_samples, data.non_usr_kernels_total_samples) == (3, 5), data
""", FAKE_FAULTS="pc_dropped=3; pc_non_user=5")

    def test_samples_recorded_on_an_h200_are_read(self):
        recording = fixture.SOURCE / "tests" / "recordings" / "h200_two_kernels.pcrec"
        out = self.lines("""
gpu = started()
with pc_sampling.PCSampler() as sampler:
    samples = sampler.get_data().samples + sampler.stop().samples
print(len({one.function_name for one in samples}) > 1)
print(all(one.stall_reason.startswith("smsp__pcsamp") for one in samples))
""", FAKE_PC_RECORDING=recording)
        self.assertEqual(out, ["True", "True"])

    def test_mistakes_and_refusals_are_reported(self):
        self.check(self.lines("""
raised(pc_sampling.PCSampler, sampling_period=4)
raised(pc_sampling.PCSampler, collection_mode=pc_sampling.CollectionMode.INVALID)
raised(pc_sampling.PCSampler, samplingperiod=5)
raised(pc_sampling.PCSampler().enable)
started()
sampler = pc_sampling.PCSampler()
raised(sampler.get_data); raised(sampler.start)
sampler.enable()
raised(sampler.enable); raised(sampler.start)
"""), "ValueError  sampling_period must be 5 to 31, not 4", "ValueError  collection_mode must be",
            "TypeError  PCSampler.__init__",
            "RuntimeError  this thread has no CUDA context", *["RuntimeError  this PCSampler is not enabled"] * 2,
            "RuntimeError  this PCSampler is already enabled", "RuntimeError  this PCSampler is sampling")
        self.check(self.lines("started()\nraised(pc_sampling.PCSampler().enable)",
                              FAKE_FAULTS="fail=cuptiPCSamplingEnable@*:35"), "PermissionError  cuptiPCSamplingEnable")
        self.check(self.lines("started()\nraised(pc_sampling.PCSampler().enable)",
                              FAKE_FAULTS="fail=cuptiPCSamplingEnable@*:26"), "cuptiError 26 ")


class SassMetrics(Case):
    def test_instructions_are_counted(self):
        self.lines("""
gpu = started()
# Without PC sampling CUPTI counts the first function alone.
with pc_sampling.PCSampler(), sass_metrics.SassMetrics(metrics=["smsp__sass_thread_inst_executed"]) as counter:
    assert counter.metrics == ["smsp__sass_inst_executed", "smsp__sass_thread_inst_executed"], counter.metrics
    gpu.launch("k", 2); gpu.launch("j")
    counts = counter.flush_data()
    assert {one.function_name for one in counts} == {"k", "j"}
    assert {one.metric for one in counts} == set(counter.metrics)
    assert any(one.value > 0 for one in counts) and len({one.pc_offset for one in counts}) > 1
    gpu.launch("k"); gpu.wait()
    assert counter.disable() > 0
    assert counter.disable() == 0
""")

    def test_metrics_are_listed_and_mistakes_reported(self):
        self.check(self.lines("""
names = [metric.name for metric in sass_metrics.get_metrics("GH100")]
assert "smsp__sass_inst_executed" in names
raised(sass_metrics.get_metrics, 3)
raised(sass_metrics.SassMetrics, metrics=["a,b"])
raised(sass_metrics.SassMetrics, enable_lazy_patching=1)
raised(sass_metrics.SassMetrics().enable)
started()
raised(sass_metrics.SassMetrics(metrics=["smsp__sass_inst_execute"]).enable)
counter = sass_metrics.SassMetrics()
raised(counter.flush_data)
counter.enable()
raised(counter.enable)
counter.disable()
raised(sass_metrics.SassMetrics(metrics=["smsp__sass_thread_inst_executed"]).enable)
"""), "TypeError  chip_name must be str, not int", "ValueError  metrics: one name",
            "TypeError  enable_lazy_patching must be bool",
            "RuntimeError  this thread has no CUDA context",
            'ValueError  GH100 has no SASS metric "smsp__sass_inst_execute"; did you mean "smsp__sass_inst_executed"?',
            "RuntimeError  these SassMetrics are not enabled", "RuntimeError  these SassMetrics are already enabled",
            "cuptiError 26 the SASS metrics of GPU 0 were chosen earlier in this process")


class Checkpoints(Case):
    def test_memory_is_put_back(self):
        self.lines(f"""
import ctypes
library = ctypes.CDLL({str(harness.FAKES / "libcheckpoint.so")!r})
memory = (ctypes.c_uint8 * 16)(*range(16))
library.fake_checkpoint_memory(memory, 16)
started()
with checkpoint.Checkpoint(reserve_host_mb=checkpoint.RESERVE_ALL) as saved:
    saved.save()
    for _ in range(2):
        memory[3] = 99
        saved.restore()
        assert memory[3] == 3
    memory[3] = 7
    saved.save()
    memory[3] = 8
    saved.restore()
    assert memory[3] == 7
saved.free()
""")

    def test_mistakes_and_refusals_are_reported(self):
        self.check(self.lines("""
saved = checkpoint.Checkpoint()
raised(saved.restore)
raised(saved.save)
raised(checkpoint.Checkpoint, reserve_device_mb=-1)
raised(checkpoint.Checkpoint, optimizations="TRANSFER")
started()
raised(saved.save)
raised(saved.restore)
""", FAKE_FAULTS="fail=cuptiCheckpointSave@*:8"), "RuntimeError  nothing was saved",
            "RuntimeError  this thread has no CUDA context",
            "ValueError  reserve_device_mb must be",
            "TypeError  optimizations must be CheckpointOptimizations, not str",
            "MemoryError  cuptiCheckpointSave", "ValueError  there is no saved device memory")


if __name__ == "__main__":
    fixture.main()
