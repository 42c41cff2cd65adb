#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""gpufl.cupti.profiler_host: every method and every documented exception, against the real libcupti where there is
one (it needs no GPU), and against the look-alike for what only newer releases or failures show."""
import inspect
import os
import pathlib
import struct
import subprocess
import threading
import unittest

import fixture
import harness

for variable in [name for name in os.environ if name.startswith("GPUFL_") and name.endswith("_PATH")]:
    del os.environ[variable]

import numpy  # noqa: E402
from gpufl.cupti import cupti, profiler_host  # noqa: E402
from gpufl.cupti.profiler_host import (MetricCollectionScope, MetricProperties, MetricType, ProfilerHost,  # noqa: E402
                                       ProfilerType)

CHIP = "GH100"
THROUGHPUT = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
ONE_PASS = ["sm__warps_active.avg", "dram__bytes.sum"]
RECORDING = fixture.SOURCE / "tests" / "recordings" / "h200_range.rangerec.zst"


def has_real_cupti():
    try:
        return bool(profiler_host.get_supported_chips())
    except (RuntimeError, cupti.cuptiError):
        return False


class Recording:
    """Counters of two kernels on an H200, and the values that they were evaluated to there."""

    def __init__(self):
        self.data = subprocess.run(["zstdcat", RECORDING], capture_output=True, check=True).stdout
        self.at = len("RANGEREC")
        self.number()
        self.chip, self.passes = self.text(), self.number()
        self.metrics = [self.text() for _ in range(self.number())]
        ranges, size = self.number(), self.number()
        self.image = numpy.frombuffer(self.take(size), numpy.uint8).copy()
        self.values = []
        for _ in range(ranges):
            self.text()
            self.values.append(numpy.frombuffer(self.take(8 * len(self.metrics)), numpy.float64))

    def take(self, size):
        self.at += size
        return self.data[self.at - size:self.at]

    def number(self):
        return struct.unpack("<I", self.take(4))[0]

    def text(self):
        return self.take(self.number()).rstrip(b"\0").decode()


class Real(unittest.TestCase):
    @harness.needs(has_real_cupti(), "libcupti with libnvperf_host")
    def setUp(self):
        self.host = ProfilerHost(CHIP, ProfilerType.RANGE_PROFILER)
        self.host.initialize()
        self.addCleanup(self.host.deinitialize)

    def raises(self, kind, text, call, *arguments):
        with self.assertRaisesRegex(kind, text) as caught:
            call(*arguments)
        self.assertIs(type(caught.exception), kind)

    def test_chips_are_listed(self):
        chips = profiler_host.get_supported_chips()
        self.assertGreaterEqual(len(chips), 20)
        self.assertLessEqual({"GH100", "GA100", "TU102"}, set(chips))

    def test_base_metrics_come_by_type(self):
        for kind, least in ((MetricType.COUNTER, 1000), (MetricType.RATIO, 100), (MetricType.THROUGHPUT, 20)):
            names = self.host.get_base_metrics(kind)
            self.assertGreaterEqual(len(names), least, kind)
            self.assertTrue(all("__" in name for name in names))
        self.assertIn("sm__throughput", self.host.get_base_metrics(MetricType.THROUGHPUT))

    def test_sub_metrics_are_the_suffixes_of_a_metric(self):
        suffixes = self.host.get_sub_metrics("sm__throughput", MetricType.THROUGHPUT)
        self.assertIn(".avg.pct_of_peak_sustained_elapsed", suffixes)

    def test_properties_are_returned_with_and_without_suffix(self):
        for name in ("sm__throughput", THROUGHPUT):
            properties = self.host.get_metric_properties(name)
            self.assertIsInstance(properties, MetricProperties)
            self.assertIn("throughput", properties.description)
            self.assertEqual((properties.hw_unit, properties.dim_unit, properties.metric_type),
                             ("sm", "percent", MetricType.THROUGHPUT))
            self.assertIsInstance(properties.metric_collection_scope, MetricCollectionScope)
            if cupti.get_version() < 130100:
                self.assertEqual(properties.metric_collection_scope, MetricCollectionScope.INVALID)

    def test_a_config_image_says_how_many_passes_it_takes(self):
        image = self.host.create_config_image(ONE_PASS)
        self.assertEqual((image.dtype, image.ndim), (numpy.uint8, 1))
        self.assertEqual(profiler_host.get_num_of_passes(image), 1)
        self.assertGreater(profiler_host.get_num_of_passes(self.host.create_config_image([THROUGHPUT])), 1)

    def test_each_config_image_starts_anew(self):
        first = self.host.create_config_image(ONE_PASS)
        self.host.create_config_image([THROUGHPUT])
        numpy.testing.assert_array_equal(self.host.create_config_image(tuple(ONE_PASS)), first)

    def test_a_host_works_on_after_a_wrong_metric(self):
        first = self.host.create_config_image(ONE_PASS)
        self.raises(ValueError, "dram__byte.sum", self.host.create_config_image, [*ONE_PASS, "dram__byte.sum"])
        numpy.testing.assert_array_equal(self.host.create_config_image(ONE_PASS), first)

    def test_hardware_metrics_per_pass_depend_on_the_profiler(self):
        most = [profiler_host.get_max_num_hardware_metrics_per_pass(CHIP, kind)
                for kind in (ProfilerType.RANGE_PROFILER, ProfilerType.PM_SAMPLING)]
        self.assertTrue(0 < most[0] < most[1], most)

    @harness.needs(RECORDING.exists() and pathlib.Path("/usr/bin/zstdcat").exists(), "the recording and zstdcat")
    def test_counters_of_an_h200_evaluate_to_the_values_they_had_there(self):
        recording = Recording()
        host = ProfilerHost(recording.chip, ProfilerType.RANGE_PROFILER)
        host.initialize()
        for index, values in enumerate(recording.values):
            found = host.evaluate_metric_values(recording.image, recording.metrics, index)
            self.assertEqual((found.dtype, found.shape), (numpy.float64, (len(recording.metrics),)))
            numpy.testing.assert_allclose(found, values, rtol=1e-9)
        numpy.testing.assert_allclose(host.evaluate_metric_values(recording.image, recording.metrics[::-1], 0),
                                      recording.values[0][::-1], rtol=1e-9)
        self.assertEqual(profiler_host.get_num_of_passes(host.create_config_image(recording.metrics)), recording.passes)
        self.assertTrue(numpy.isnan(host.evaluate_metric_values(recording.image, ["gpc__cycles_elapsed.max"], 0)).all())
        self.raises(ValueError, "hold 2 samples or ranges", host.evaluate_metric_values, recording.image,
                    recording.metrics, 2)
        self.raises(ValueError, "index must be 0", host.evaluate_metric_values, recording.image, recording.metrics, -1)
        self.raises(ValueError, "no metric 'nope__x.sum'", host.evaluate_metric_values, recording.image,
                    ["nope__x.sum"], 0)
        self.raises(TypeError, "index must be int", host.evaluate_metric_values, recording.image, recording.metrics,
                    "0")
        host.deinitialize()
        self.raises(RuntimeError, "not initialized", host.evaluate_metric_values, recording.image, recording.metrics, 0)

    def test_nothing_works_before_initialize_or_after_deinitialize(self):
        self.host.deinitialize()
        self.host.deinitialize()
        for host in (self.host, ProfilerHost(CHIP, ProfilerType.PM_SAMPLING)):
            image = numpy.zeros(100, numpy.uint8)
            self.raises(RuntimeError, "initialize", host.create_config_image, ONE_PASS)
            self.raises(RuntimeError, "initialize", host.evaluate_metric_values, image, ONE_PASS, 0)
            self.raises(RuntimeError, "initialize", host.get_base_metrics, MetricType.COUNTER)
            self.raises(RuntimeError, "initialize", host.get_sub_metrics, "sm__throughput", MetricType.THROUGHPUT)
            self.raises(RuntimeError, "initialize", host.get_metric_properties, "sm__throughput")
        self.host.initialize()
        self.assertTrue(self.host.get_base_metrics(MetricType.RATIO))

    def test_a_wrong_chip_is_a_value_error_with_the_nearest(self):
        text = "knows no chip 'GH10'; did you mean 'GH100'"
        self.raises(ValueError, text, ProfilerHost("GH10", ProfilerType.PM_SAMPLING).initialize)
        self.raises(ValueError, text, profiler_host.get_max_num_hardware_metrics_per_pass, "GH10",
                    ProfilerType.PM_SAMPLING)

    def test_a_wrong_metric_is_a_value_error_that_says_what_is_wrong_with_it(self):
        create = self.host.create_config_image
        self.raises(ValueError, "no metric 'dram__byte.sum'; did you mean 'dram__bytes'", create, ["dram__byte.sum"])
        self.raises(ValueError, "needs a suffix, like '.avg'", create, ["sm__warps_active"])
        self.raises(ValueError, "no suffix '.avgg'; did you mean '.avg'", create, ["sm__warps_active.avgg"])
        self.raises(ValueError, "metrics is empty", create, [])
        self.raises(ValueError, "of type COUNTER", self.host.get_sub_metrics, "sm__throughput", MetricType.COUNTER)
        self.raises(ValueError, "did you mean 'sm__throughput'", self.host.get_sub_metrics, "sm__throughpu",
                    MetricType.THROUGHPUT)
        self.raises(ValueError, "did you mean 'sm__throughput'", self.host.get_metric_properties, "sm__thrughput")

    def test_bytes_that_are_no_image_are_refused_and_not_given_to_cupti(self):
        self.raises(ValueError, "not a config image", profiler_host.get_num_of_passes, numpy.zeros(4096, numpy.uint8))
        image = self.host.create_config_image(ONE_PASS)
        self.raises(ValueError, "not a config image", profiler_host.get_num_of_passes, image[:40])
        self.raises(ValueError, "is empty", profiler_host.get_num_of_passes, image[:0])
        self.raises(TypeError, "flat array of uint8", profiler_host.get_num_of_passes, image.astype(numpy.int32))
        self.raises(TypeError, "not bytes", profiler_host.get_num_of_passes, image.tobytes())
        self.raises(ValueError, "not decoded counters", self.host.evaluate_metric_values, image, ONE_PASS, 0)

    def test_wrong_types_are_type_errors_that_name_the_argument(self):
        self.raises(TypeError, "chip_name must be str, not int", ProfilerHost, 3, ProfilerType.PM_SAMPLING)
        self.raises(TypeError, "profiler_type must be ProfilerType, not str", ProfilerHost, CHIP, "PM_SAMPLING")
        self.raises(ValueError, "7 is not a ProfilerType", ProfilerHost, CHIP, 7)
        self.raises(TypeError, "metrics must be a sequence of str, not str", self.host.create_config_image, "abc")
        self.raises(TypeError, r"metrics\[1\] must be str, not int", self.host.create_config_image, [ONE_PASS[0], 3])
        self.raises(ValueError, "without NUL", self.host.get_metric_properties, "a\0b")
        self.raises(TypeError, "metric_type must be MetricType, not str", self.host.get_base_metrics, "COUNTER")
        self.raises(ValueError, "9 is not a MetricType", self.host.get_base_metrics, 9)
        with self.assertRaisesRegex(TypeError, "chipname"):
            ProfilerHost(chipname=CHIP, profiler_type=ProfilerType.PM_SAMPLING)
        self.raises(ValueError, "PROFILER_INVALID", ProfilerHost(CHIP, ProfilerType.PROFILER_INVALID).initialize)

    def test_single_pass_sets_are_listed_or_need_a_newer_cupti(self):
        if cupti.get_version() >= 130200:
            name = profiler_host.get_single_pass_sets(CHIP)[0]
            self.assertTrue(profiler_host.get_metrics_in_single_pass_set(CHIP, name))
            return
        for call in (lambda: profiler_host.get_single_pass_sets(CHIP),
                     lambda: profiler_host.get_metrics_in_single_pass_set(CHIP, "x"),
                     ProfilerHost(CHIP, ProfilerType.PM_SAMPLING, "x").initialize):
            with self.assertRaisesRegex(RuntimeError,
                                        "has no cuptiProfilerHostGetSinglePassSets; install the CUPTI of a newer"):
                call()

    def test_threads_share_a_host(self):
        images, errors = [], []

        def work():
            try:
                for _ in range(5):
                    images.append(self.host.create_config_image(ONE_PASS).tobytes())
            except Exception as error:
                errors.append(error)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual((errors, len(images), len(set(images))), ([], 20, 1))

    def test_the_one_to_one_layer_asks_the_same_library(self):
        params = cupti.Profiler_Host_GetSupportedChips_Params()
        self.assertEqual(params.struct_size, cupti.PROFILER_HOST_GET_SUPPORTED_CHIPS_PARAMS_STRUCT_SIZE)
        cupti.profiler_host_get_supported_chips(params.ptr)
        self.assertEqual(params.num_chips, len(profiler_host.get_supported_chips()))
        self.assertEqual(cupti.get_callback_name(cupti.CallbackDomain.RUNTIME_API, 211), "cudaLaunchKernel_v7000")
        self.assertEqual(cupti.Runtime_api_trace_cbid.cudaLaunchKernel_v7000, 211)
        self.assertEqual(cupti.driver_api_trace_cbid.cuLaunchKernel, 307)
        self.assertEqual(cupti.get_result_string(35), "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES")


class Contract(unittest.TestCase):
    def test_names_signatures_and_numbers_are_those_of_cupti_python(self):
        def shape(function):
            return [(one.name, one.default is not one.empty) for one in inspect.signature(function).parameters.values()]

        self.assertEqual(shape(ProfilerHost), [("chip_name", False), ("profiler_type", False),
                                               ("single_pass_metric_set_name", True)])
        for name, parameters in {
                "initialize": [], "deinitialize": [], "create_config_image": ["metrics"],
                "get_base_metrics": ["metric_type"],
                "evaluate_metric_values": ["counter_data_image", "metrics", "index"],
                "get_sub_metrics": ["metric_name", "metric_type"], "get_metric_properties": ["metric_name"]}.items():
            self.assertEqual(shape(getattr(ProfilerHost, name))[1:], [(one, False) for one in parameters], name)
        for name, parameters in {
                "get_supported_chips": [], "get_single_pass_sets": ["chip_name"],
                "get_metrics_in_single_pass_set": ["chip_name", "set_name"], "get_num_of_passes": ["config_image"],
                "get_max_num_hardware_metrics_per_pass": ["chip_name", "profiler_type"]}.items():
            self.assertEqual(shape(getattr(profiler_host, name)), [(one, False) for one in parameters], name)
        self.assertEqual(shape(MetricProperties), [(one, False) for one in (
            "description", "hw_unit", "dim_unit", "metric_type", "metric_collection_scope")])
        self.assertEqual({one.name: int(one) for one in MetricType}, {"COUNTER": 0, "RATIO": 1, "THROUGHPUT": 2})
        self.assertEqual({one.name: int(one) for one in MetricCollectionScope}, {"CONTEXT": 0, "DEVICE": 1,
                                                                                 "INVALID": 2})
        self.assertEqual({one.name: int(one) for one in ProfilerType},
                         {"RANGE_PROFILER": 0, "PM_SAMPLING": 1, "PROFILER_INVALID": 2})
        self.assertTrue(issubclass(cupti.cuptiError, Exception) and not issubclass(cupti.cuptiError, RuntimeError))


FAKE = """
from gpufl.cupti import cupti, profiler_host
from gpufl.cupti.profiler_host import ProfilerHost, ProfilerType

def raised(call, *args):
    try:
        print("gave", call(*args))
    except Exception as error:
        print(type(error).__name__, getattr(error, "status", ""), error)
"""


class LookAlike(fixture.TestCase):
    def test_single_pass_sets_and_their_metrics_are_read(self):
        out = self.output(FAKE + """
raised(profiler_host.get_single_pass_sets, "GH100")
raised(profiler_host.get_metrics_in_single_pass_set, "GH100", "TriageCompute")
raised(profiler_host.get_metrics_in_single_pass_set, "GH100", "TriageComput")
raised(profiler_host.get_single_pass_sets, "GH10")
raised(ProfilerHost("GH100", ProfilerType.PM_SAMPLING, "Triage").initialize)
raised(ProfilerHost("GH100", ProfilerType.PM_SAMPLING, "TriageCompute").initialize)
""").splitlines()
        self.assertEqual(out, [
            "gave ['TriageCompute']", "gave ['sm__cycles_active.avg', 'sm__warps_active.avg']",
            "ValueError  GH100 has no single-pass metric set 'TriageComput'; did you mean 'TriageCompute'?",
            "ValueError  CUPTI knows no chip 'GH10'; did you mean 'GH100'?",
            "ValueError  GH100 has no single-pass metric set 'Triage'; did you mean 'TriageCompute'?", "gave None"])

    def test_every_call_that_fails_is_a_cupti_error_with_its_status(self):
        calls = {
            "cuptiProfilerHostInitialize": "host.initialize()",
            "cuptiProfilerHostGetSupportedChips": "profiler_host.get_supported_chips()",
            "cuptiProfilerHostGetBaseMetrics": "host.get_base_metrics(0)",
            "cuptiProfilerHostGetSubMetrics": "host.get_sub_metrics('sm__throughput', 2)",
            "cuptiProfilerHostGetMetricProperties": "host.get_metric_properties('sm__throughput')",
            "cuptiProfilerHostConfigAddMetrics": "host.create_config_image(['sm__cycles_active.avg'])",
            "cuptiProfilerHostGetConfigImageSize": "host.create_config_image(['sm__cycles_active.avg'])",
            "cuptiProfilerHostGetConfigImage": "host.create_config_image(['sm__cycles_active.avg'])",
            "cuptiProfilerHostGetNumOfPasses":
                "profiler_host.get_num_of_passes(host.create_config_image(['sm__cycles_active.avg']))",
            "cuptiProfilerHostGetMaxNumHardwareMetricsPerPass":
                "profiler_host.get_max_num_hardware_metrics_per_pass('GH100', 1)",
            "cuptiProfilerHostGetSinglePassSets": "profiler_host.get_single_pass_sets('GH100')",
            "cuptiProfilerHostGetMetricsInSinglePassSet":
                "profiler_host.get_metrics_in_single_pass_set('GH100', 'TriageCompute')",
        }
        for function, call in calls.items():
            with self.subTest(function=function):
                begin = "" if function.endswith("HostInitialize") else "host.initialize()\n"
                out = self.output(FAKE + "host = ProfilerHost('GH100', ProfilerType.PM_SAMPLING)\n" + begin
                                  + f"raised(lambda: {call})\n", FAKE_FAULTS=f"fail={function}@*:999")
                self.assertEqual(out, f"cuptiError 999 {function}: ERROR_UNKNOWN (999)\n")

    def test_missing_counter_libraries_are_a_runtime_error_that_names_them(self):
        out = self.output(FAKE + "raised(ProfilerHost('GH100', ProfilerType.PM_SAMPLING).initialize)",
                          FAKE_FAULTS="fail=cuptiProfilerHostInitialize@*:15")
        self.assertRegex(out, r"^RuntimeError  libnvperf_host.so is not in .*, where libcupti is; install all of")

    def test_no_memory_is_a_memory_error(self):
        out = self.output(FAKE + "raised(ProfilerHost('GH100', ProfilerType.PM_SAMPLING).initialize)",
                          FAKE_FAULTS="fail=cuptiProfilerHostInitialize@*:8")
        self.assertTrue(out.startswith("MemoryError"), out)

    def test_no_cupti_at_all_is_a_runtime_error_that_says_where_it_was_looked_for(self):
        out = self.output(FAKE + "raised(profiler_host.get_supported_chips)", GPUFL_CUPTI_PATH="/nonexistent")
        self.assertRegex(out, "^RuntimeError  GPUFL_CUPTI_PATH=/nonexistent: cannot load it")


if __name__ == "__main__":
    fixture.main()
