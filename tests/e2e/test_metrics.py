# SPDX-License-Identifier: Apache-2.0
"""`gpufl metrics` on the look-alike CUPTI and, if installed, on the real one."""
import json
import pathlib

from harness import FAKES, SANITIZERS, TestCase, environment, gpufl, main, needs

REAL = next((path for path in (pathlib.Path("/usr/local/cuda/lib64"), pathlib.Path("/usr/local/cuda/extras/CUPTI/lib64"))
             if (path / "libnvperf_host.so").exists()), None)
# CUPTI loads its libraries with flags that sanitizers reject.
CAN_USE_REAL = REAL is not None and not {"address", "thread"} & set(SANITIZERS)
OVERVIEW = "sm__throughput.avg.pct_of_peak_sustained_elapsed"


class FakeGpu(TestCase):
    def ask(self, *arguments, **variables):
        return gpufl("metrics", *arguments, env=environment(**variables))

    def answer(self, *arguments, **variables):
        result = self.ask(*arguments, "--json", **variables)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return json.loads(result.stdout)

    def refusal(self, code, *arguments, **variables):
        result = self.ask(*arguments, **variables)
        self.assertEqual((result.returncode, result.stdout), (code, ""), result.stderr)
        self.assertTrue(result.stderr.startswith("gpufl metrics: "))
        return result.stderr

    def test_the_chip_is_that_of_the_gpu_unless_named(self):
        self.assertEqual(self.answer("list")["chip"], "GH100")
        self.assertEqual(self.answer("list", "--chip", "AD102")["chip"], "AD102")

    def test_without_a_gpu_a_chip_must_be_named(self):
        said = self.refusal(3, "list", FAKE_FAULTS="no_device=1")
        self.assertIn("--chip GH100", said)
        self.assertIn("cuInit", said)
        self.assertEqual(self.answer("list", "--chip", "GH100", FAKE_FAULTS="no_device=1")["profiler"], "range")

    def test_chips_one_a_line(self):
        lines = self.ask("chips").stdout.split()
        self.assertEqual(lines, self.answer("chips")["chips"])
        self.assertIn("GH100", lines)

    def test_list_by_type_and_by_part_of_the_name(self):
        every = self.answer("list")["metrics"]
        self.assertEqual(len(every), 7)
        for kind in ("counter", "ratio", "throughput"):
            some = self.answer("list", "--type", kind)["metrics"]
            self.assertEqual({metric["type"] for metric in some}, {kind})
        self.assertEqual([m["name"] for m in self.answer("list", "DRAM")["metrics"]],
                         ["dram__bytes_read", "gpu__dram_throughput"])
        self.assertEqual([m["name"] for m in self.answer("list", "dram*")["metrics"]], ["dram__bytes_read"])
        self.assertIn("matches 'nothing'", self.refusal(1, "list", "nothing"))
        self.assertIn("did you mean 'ratio'", self.refusal(2, "list", "--type", "ration"))

    def test_show_with_and_without_suffix(self):
        base = self.answer("show", "sm__warps_active")
        self.assertIsNone(base["passes"])
        self.assertIn(".avg", base["suffixes"])
        self.assertEqual(self.answer("show", "sm__warps_active.avg")["passes"], 1)
        self.assertIn("suffixes", self.ask("show", "sm__warps_active").stdout)
        self.assertIn("requires a NAME", self.refusal(2, "show"))
        self.assertIn("one too many", self.refusal(2, "show", "a__b", "c__d"))

    def test_passes_of_metrics_and_sets(self):
        names = [f"sm__m{i}.avg" for i in range(5)]
        answer = self.answer("passes", *names)
        self.assertEqual(answer["passes"], 2)
        self.assertEqual([metric["passes"] for metric in answer["metrics"]], [1] * 5)
        self.assertEqual(self.answer("passes", "--pm", *names)["passes"], 1)
        self.assertEqual(len(self.answer("passes", "tensor")["metrics"]), 7)
        self.assertIn("   2 together", self.ask("passes", *names).stdout)
        self.assertIn("did you mean 'overview'", self.refusal(2, "passes", "overvew"))
        self.assertIn("bogus__thing", self.refusal(2, "passes", "bogus__thing.avg"))

    def test_sets_need_no_cupti(self):
        broken = str(FAKES / "nowhere")
        sets = self.answer("sets", GPUFL_CUPTI_PATH=broken)["sets"]
        self.assertEqual([entry["name"] for entry in sets], ["overview", "memory", "compute", "occupancy", "tensor",
                                                           "roofline"])
        self.assertNotIn("passes", sets[0])
        self.assertEqual([entry["name"] for entry in self.answer("sets", "--pm", GPUFL_CUPTI_PATH=broken)["sets"]],
                         ["overview", "sm", "memory", "tensor", "links"])
        self.assertIn(OVERVIEW, self.ask("sets", GPUFL_CUPTI_PATH=broken).stdout)
        self.assertIn("GPUFL_CUPTI_PATH", self.refusal(3, "chips", GPUFL_CUPTI_PATH=broken))

    def test_sets_with_a_chip_show_their_passes(self):
        sets = self.answer("sets", "--chip", "GH100")["sets"]
        self.assertTrue(all(entry["passes"] >= 1 for entry in sets))
        self.assertIn("(GH100: ", self.ask("sets", "--chip", "GH100").stdout)

    def test_wrong_words_name_the_nearest(self):
        self.assertIn("did you mean 'passes'", self.refusal(2, "pases"))
        self.assertIn("chips, list, show, passes and sets", self.refusal(2, "frobnicate"))
        self.assertIn("did you mean 'GH100'", self.refusal(2, "list", "--chip", "GH10"))
        self.assertIn("no operand", self.refusal(2, "chips", "GH100"))
        self.assertIn("ACTION is missing", self.refusal(2))

    def test_each_failing_call_is_an_error_with_its_name(self):
        for function in ("cuptiProfilerHostInitialize", "cuptiProfilerHostGetBaseMetrics",
                         "cuptiProfilerHostGetMetricProperties"):
            said = self.refusal(3, "list", "--chip", "GH100", FAKE_FAULTS=f"fail={function}@1:999")
            self.assertIn(function, said)


@needs(CAN_USE_REAL or bool({"address", "thread"} & set(SANITIZERS)), "CUPTI with libnvperf_host")
class RealCupti(TestCase):
    def setUp(self):
        super().setUp()
        if not CAN_USE_REAL:
            self.skipTest("sanitizers refuse CUPTI")

    def ask(self, *arguments):
        # No driver: a real CUPTI must not be combined with the fake CUDA.
        return gpufl("metrics", *arguments, env=environment(GPUFL_CUPTI_PATH=REAL))

    def test_thirty_chips(self):
        self.assertGreaterEqual(len(self.ask("chips").stdout.split()), 30)

    def test_thousands_of_counters(self):
        metrics = json.loads(self.ask("list", "--chip", "GH100", "--type", "counter", "--json").stdout)["metrics"]
        self.assertGreaterEqual(len(metrics), 3000)
        self.assertTrue(all(metric["name"] and metric["type"] == "counter" for metric in metrics))

    def test_passes_of_the_overview(self):
        answer = json.loads(self.ask("passes", "--chip", "GH100", "overview", "--json").stdout)
        self.assertGreaterEqual(answer["passes"], max(metric["passes"] for metric in answer["metrics"]))
        self.assertGreater(answer["config_image_bytes"], 0)

    def test_metrics_that_a_chip_lacks_are_reported(self):
        self.assertIn("AD102 has no nvlrx__bytes", self.ask("passes", "--pm", "--chip", "AD102", "links").stdout)

    def test_a_near_metric_is_named(self):
        result = self.ask("show", "sm__warps_actve", "--chip", "GH100")
        self.assertEqual(result.returncode, 2)
        self.assertIn("did you mean 'sm__warps_active'", result.stderr)


if __name__ == "__main__":
    main()
