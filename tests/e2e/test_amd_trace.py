# SPDX-License-Identifier: Apache-2.0
"""`gpufl trace` and gpufl_init on programs of a fake HIP, through a look-alike rocprofiler-sdk."""
import os
import re
import unittest

from harness import (BUILD, FAKES, RECORDER, SANITIZERS, SOURCE, Session, TestCase, environment, gpufl, main, run,
                     sessions)

HIP_APP = FAKES / "fake_hip_app"
ROCM = FAKES / "rocm"    # rocprofiler-sdk 1.0
ROCM6 = FAKES / "rocm6"  # 0.5, with the names of its time
CODE_OBJECTS = SOURCE / "tests" / "recordings" / "code_objects"
LIBRARY = BUILD / "lib" / "libgpufl.so"
ROW_TYPES = {"kernels": "kernel_event_batch", "copies": "memcpy_event_batch", "syncs": "synchronization_event_batch"}


GOLDEN_REPORT = """
 KERNELS   30 executions of 2 kernels, 600 us
    total   share  calls     mean   median      p90      p99    occupancy  name
   400 us  66.7 %     20  20.0 us  20.0 us  20.0 us  20.0 us  88 % (regs)  saxpy(float*)
   200 us  33.3 %     10  20.0 us  20.0 us  20.0 us  20.0 us  88 % (regs)  scale(float*)

 METRICS OF KERNELS
   saxpy(float*) · 20 executions · amd_dispatch · 1 pass
          mean          min           max  metric
     16 cycles     2 cycles     30 cycles  GRBM_GUI_ACTIVE
      32 waves      4 waves      60 waves  SQ_WAVES
    128 cycles    16 cycles    240 cycles  SQ_BUSY_CYCLES
       48 inst       6 inst       90 inst  SQ_INSTS_VALU
   64 requests   8 requests  120 requests  TCC_HIT_sum
   80 requests  10 requests  150 requests  TCC_MISS_sum
   scale(float*) · 10 executions · amd_dispatch · 1 pass
            mean         min           max  metric
     14.5 cycles     1 cycle     28 cycles  GRBM_GUI_ACTIVE
        29 waves     2 waves      56 waves  SQ_WAVES
      116 cycles    8 cycles    224 cycles  SQ_BUSY_CYCLES
       43.5 inst      3 inst       84 inst  SQ_INSTS_VALU
     58 requests  4 requests  112 requests  TCC_HIT_sum
   72.5 requests  5 requests  140 requests  TCC_MISS_sum

 COPIES
         bytes    time  throughput  calls
   H2D  123 kB  150 us    819 MB/s     30
   D2H  123 kB  150 us    819 MB/s     30
"""


def amd(library_path=ROCM, **variables):
    """A machine with AMD's libraries only; CUDA, CUPTI and NVML are searched where they are missing."""
    return environment(library_path, LD_LIBRARY_PATH=f"{library_path}:{FAKES / 'hip'}",
                       **{"ROCP_TOOL_LIBRARIES": None, "GPUFL_ROCPROFILER_PATH": library_path, **variables})


class AmdCase(TestCase):
    def hip(self, *arguments, options=(), env=None):
        return self.trace(*arguments, options=options, env=env or amd(), app=HIP_APP)

    def check(self, *arguments, options=(), env=None):
        """Every count that the program printed equals the number of rows in the log."""
        traced = self.hip(*arguments, options=options, env=env)
        self.assert_whole(traced)
        session = traced.session
        rows = {name: len(session.rows(kind)) for name, kind in ROW_TYPES.items()}
        self.assertEqual({name: traced.counts[name] for name in ROW_TYPES}, rows, traced.stdout)
        self.assertEqual(self.verify(session.path)["lost_records"], 0)
        return traced, session


class Counts(AmdCase):
    def check_release(self, env):
        _, session = self.check("--launches", 300, "--threads", 3, "--copies", "--ranges", env=env)
        names = session.dictionary("kernel_dict")
        self.assertEqual(set(names.values()), {"saxpy(float*)", "scale(float*)"})
        kernels = session.rows("kernel_event_batch")
        self.assertEqual({row["duration_ns"] for row in kernels}, {20000})
        self.assertNotIn(None, {row["thread_id"] for row in kernels})
        self.assertTrue(all(row["api_lead_ns"] >= 0 and row["api_duration_ns"] >= 0 for row in kernels))
        config = session.rows("launch_config_batch")[0]
        self.assertEqual([config[name] for name in ("grid_x", "grid_y", "block_x", "num_regs", "sgprs", "accum_vgprs",
                                                    "static_shared", "dyn_shared", "occupancy_bp")],
                         # 64 + 4 vector registers are rounded to 72: 7 of the 8 waves of a SIMD find room in 512.
                         [120, 2, 256, 64, 32, 4, 1024, 512, 8750])
        # No cheap call was recorded as one that waits, and copies know whether they were asynchronous.
        copies = session.rows("memcpy_event_batch")
        self.assertEqual({(row["copy_kind"], row["is_async"]) for row in copies}, {(1, 1), (2, 0)})
        self.assert_ranges(session, kernels)

    def assert_ranges(self, session, kernels):
        """Each kernel ran in the ROCTX range of its thread."""
        names = session.dictionary("scope_name_dict")
        begins = {row["scope_instance_id"]: row for row in session.rows("scope_event_batch") if row["event_type"] == 0}
        self.assertEqual({row["source"] for row in begins.values()}, {3, 4, 5})
        self.assertEqual({names[row["name_id"]] for row in begins.values() if row["source"] == 5}, {"done"})
        for row in kernels:
            scope = begins[row["scope_id"]]
            self.assertRegex(names[scope["name_id"]], r"^thread_\d$")
            self.assertEqual(scope["thread_id"], row["thread_id"])
        self.assertEqual(sum(1 for row in begins.values() if names[row["name_id"]] == "whole"), 3)

    def test_everything_that_ran_is_recorded_with_1_0(self):
        self.check_release(amd())

    def test_everything_that_ran_is_recorded_with_0_5(self):
        self.check_release(amd(ROCM6))

    def test_several_gpus_have_their_own_numbers_and_limits(self):
        _, session = self.check("--gpus", 2, "--threads", 4, "--launches", 50, env=amd(FAKE_AMD_GPU_COUNT=2))
        self.assertEqual({row["device_id"] for row in session.rows("kernel_event_batch")}, {0, 1})
        limits = session.records("device_limits")
        self.assertEqual([(record["device_id"], record["name"], record["multiprocessors"]) for record in limits],
                         [(0, "AMD Instinct MI300X", 304), (1, "AMD Instinct MI300X", 304)])

    def test_memory_is_recorded_if_the_release_reports_it(self):
        traced = self.hip("--threads", 3, options=["--memory"])
        self.assert_whole(traced)
        rows = traced.session.rows("memory_alloc_event_batch")
        self.assertEqual(sorted(row["memory_op"] for row in rows), [1, 1, 1, 2, 2, 2])
        self.assertEqual({row["bytes"] for row in rows if row["memory_op"] == 1}, {4096})
        older = self.trace("--threads", 1, options=["--memory"], env=amd(ROCM6), app=HIP_APP,
                           directory=self.directory / "older")
        self.assertEqual(older.session.capabilities()["memory_activity"]["status"], "skipped")

    def test_the_capability_record_names_the_release_and_the_clock_is_there(self):
        _, session = self.check("--launches", 3)
        self.assertEqual(session.first("capture_capabilities")["rocprofiler_version"], 10000)
        self.assertEqual(session.first("job_start")["profiling_engine"], "amd.trace")
        capabilities = session.capabilities()
        self.assertEqual([capabilities[name]["status"] for name in ("kernel_events", "amd_trace", "scope_attribution")],
                         ["collected"] * 3)
        self.assertTrue(all(record["rocprofiler_ns"] > 0 for record in session.records("clock_sync")))

    def test_the_report_and_verify_say_what_ran(self):
        traced = self.hip("--launches", 30, "--copies", options=["--engine", "RangeProfiler", "--no-disassemble"])
        text = gpufl("report", traced.session.path).stdout
        self.assertIn(" · AMD Instinct MI300X · engine Trace · ", text)
        # The start was timed; CUPTI's cost of a record is not rocprofiler's.
        self.assertRegex(text, r"slowed down by at least \S+ % \(start \S+\)\n")
        for part in GOLDEN_REPORT.strip("\n").split("\n\n"):
            self.assertIn(part, text)
        verified = gpufl("verify", traced.session.path)
        self.assertRegex(verified.stdout, r"^complete: 30 kernels, 60 copies, 1 wait, \d+ lines in 4 files, 0 lost$")


class Engines(AmdCase):
    ENGINES = ("PcSampling", "SassMetrics", "RangeProfiler", "Deep")

    def test_higher_engines_fall_back_to_dispatch_counters_with_a_warning(self):
        for library_path, engine in zip((ROCM, ROCM6, ROCM, ROCM6), self.ENGINES):
            with self.subTest(engine=engine):
                traced = self.trace("--launches", 12, "--ranges", options=["--engine", engine, "--no-disassemble"],
                                    env=amd(library_path), app=HIP_APP, directory=self.directory / engine)
                self.assert_whole(traced)
                self.assertIn(f"engine {engine} is for NVIDIA GPUs: on AMD GPUs kernels are traced and counted per "
                              "dispatch\n", traced.stderr)
                self.assert_counted(traced.session, engine)

    def assert_counted(self, session, engine):
        record = session.first("capture_capabilities")
        self.assertEqual((record["requested_engine"], record["selected_engine"]), (engine, "Trace"))
        capabilities = session.capabilities()
        self.assertEqual(capabilities["dispatch_counters"]["status"], "collected")
        self.assertEqual(capabilities["dispatch_counters_left_out"]["message"], "")
        self.assertIn("NVIDIA", " ".join(entry["message"] for entry in record["capabilities"]))
        events = session.records("kernel_perf_metric_event")
        self.assertEqual(len(events), len(session.rows("kernel_event_batch")))
        for number, event in enumerate(sorted(events, key=lambda event: event["corr_id"]), 1):
            metrics = event["metrics"]
            self.assertEqual((metrics["GRBM_GUI_ACTIVE"], metrics["SQ_WAVES"], metrics["SQ_BUSY_CYCLES"]),
                             (number, 2 * number, 8 * number))
            self.assertEqual(event["dram_read_bytes"], -1)
            self.assertAlmostEqual(event["l2_hit_rate_pct"], 100 * 4 / 9)
            self.assertEqual(event["sm_throughput_pct"], -1)
            self.assertRegex(event["kernel_name"], r"^(saxpy|scale)\(float\*\)$")
            self.assertGreater(event["scope_id"], 0)

    def counted(self, metrics, name="log", **variables):
        traced = self.trace("--launches", 4, "--threads", 2, "--gpus", variables.get("FAKE_AMD_GPU_COUNT", 1),
                            env=amd(**variables), app=HIP_APP, directory=self.directory / name,
                            options=["--engine", "RangeProfiler", "--no-disassemble", "--range-metrics", metrics])
        self.assert_whole(traced)
        return traced

    def test_counters_that_do_not_fit_one_pass_are_named(self):
        # A level 2 cache channel counts four events, and FETCH_SIZE takes three.
        traced = self.counted("SQ_WAVES,TCC_HIT_sum,TCC_MISS_sum,FETCH_SIZE,WRITE_SIZE,NOPE")
        self.assertIn("FETCH_SIZE, NOPE", traced.stderr)
        first = min(traced.session.records("kernel_perf_metric_event"), key=lambda event: event["metrics"]["SQ_WAVES"])
        self.assertEqual(first["metrics"], {"SQ_WAVES": 2, "TCC_HIT_sum": 4, "TCC_MISS_sum": 5, "FETCH_SIZE": None,
                                            "WRITE_SIZE": 7, "NOPE": None})

    def test_every_set_fits_one_pass_on_either_generation(self):
        for number, metrics in enumerate(("overview", "compute", "memory", "occupancy")):
            for architecture in ("gfx942", "gfx1100"):
                with self.subTest(metrics=metrics, architecture=architecture):
                    traced = self.counted(metrics, f"{number}_{architecture}", FAKE_AMD_ARCHITECTURES=architecture)
                    self.assertEqual(traced.session.capabilities()["dispatch_counters_left_out"]["message"], "")
                    for event in traced.session.records("kernel_perf_metric_event"):
                        self.assertNotIn(None, event["metrics"].values())
                        self.assertEqual(event["dram_read_bytes"] > 0, metrics == "memory")
                        self.assertEqual(event["l2_hit_rate_pct"] > 0, metrics == "overview")

    def test_gpus_of_two_generations_are_each_counted_with_their_own_names(self):
        traced = self.counted("overview", FAKE_AMD_GPU_COUNT=2, FAKE_AMD_ARCHITECTURES="gfx942,gfx1100")
        self.assertEqual(traced.session.capabilities()["dispatch_counters_left_out"]["message"], "")
        for event in traced.session.records("kernel_perf_metric_event"):
            metrics = event["metrics"]
            self.assertEqual([metrics["TCC_HIT_sum"] is None, metrics["GL2C_HIT_sum"] is None],
                             [event["device_id"] == 1, event["device_id"] == 0])
            self.assertAlmostEqual(event["l2_hit_rate_pct"], 100 * 4 / 9)

    def test_cycles_of_several_dies_are_not_added_up(self):
        # The parts of GRBM_GUI_ACTIVE are the value and half of it; those of SQ_WAVES add up to theirs.
        traced = self.counted("GRBM_GUI_ACTIVE,SQ_WAVES")
        for event in traced.session.records("kernel_perf_metric_event"):
            self.assertEqual(event["metrics"]["SQ_WAVES"], 2 * event["metrics"]["GRBM_GUI_ACTIVE"])

    def test_more_counters_than_can_be_named_are_not_cut_without_a_note(self):
        names = [f"SQ_NOT_ON_THIS_GPU_{number}" for number in range(40)] + ["SQ_WAVES"]
        traced = self.hip("--launches", 2, options=["--engine", "Deep", "--no-disassemble"],
                          env=amd(GPUFL_RANGE_METRICS=",".join(reversed(names))))
        self.assert_whole(traced)
        left_out = traced.session.capabilities()["dispatch_counters_left_out"]["message"]
        self.assertTrue(left_out.startswith("SQ_NOT_ON_THIS_GPU_24, ") and left_out.endswith(", and more"), left_out)
        self.assertEqual(traced.session.first("kernel_perf_metric_event")["metrics"]["SQ_WAVES"], 2)

    def test_a_name_that_another_begins_with_is_still_named(self):
        traced = self.hip("--launches", 2, options=["--engine", "Deep", "--no-disassemble"],
                          env=amd(GPUFL_RANGE_METRICS="SQ_WAVES,NOPE_sum,NOPE"))
        self.assertEqual(traced.session.capabilities()["dispatch_counters_left_out"]["message"], "NOPE_sum, NOPE")

    def test_without_counters_the_kernels_are_still_traced(self):
        env = amd(FAKE_FAULTS="fail=rocprofiler_iterate_agent_supported_counters@*:1")
        traced = self.hip("--launches", 4, options=["--engine", "Deep", "--no-disassemble"], env=env)
        self.assert_whole(traced)
        self.assertIn("not counted: rocprofiler_iterate_agent_supported_counters failed", traced.stderr)
        self.assertEqual(traced.session.capabilities()["dispatch_counters"]["status"], "skipped")
        self.assertEqual(len(traced.session.rows("kernel_event_batch")), 4)


    def test_code_objects_are_kept_from_memory(self):
        self.check_code(amd())

    def test_code_objects_are_kept_from_the_file_they_lie_in(self):
        self.check_code(amd(FAKE_FAULTS="rocprofiler_code_file=1"))

    def check_code(self, env):
        code = CODE_OBJECTS / "kernels.gfx90a.co"
        traced = self.hip("--launches", 2, "--code", code, options=["--engine", "Deep", "--no-disassemble"], env=env)
        self.assert_whole(traced)
        kept = traced.session.first("code_object")
        self.assertTrue(kept["arch"].startswith("gfx90a"), kept["arch"])
        self.assertEqual(kept["bytes"], code.stat().st_size)
        self.assertNotIn("skipped", kept)
        self.assertEqual(traced.session.capabilities()["cubin_disassembly"]["status"], "collected")

    def test_an_invalid_code_object_is_counted(self):
        traced = self.hip("--launches", 2, "--code", __file__, options=["--engine", "Deep", "--no-disassemble"])
        self.assertEqual(traced.returncode, 0, traced.stderr)
        self.assertEqual(traced.session.records("shutdown")[0]["lost"], {"code_invalid": 1})
        self.assertEqual(len(traced.session.rows("kernel_event_batch")), 2)

    def test_the_report_says_what_ran_instead(self):
        traced = self.hip("--launches", 2, options=["--engine", "PcSampling", "--no-disassemble"])
        text = " ".join(gpufl("report", traced.session.path).stdout.split())
        self.assertIn("engine PcSampling was requested, Trace ran: for NVIDIA GPUs only; on AMD GPUs dispatches are counted",
                      text)
        self.assertIn("SQ_WAVES", text)


class Faults(AmdCase):
    NEEDED = ("rocprofiler_get_version@1", "rocprofiler_create_context@1", "rocprofiler_create_context@2",
              "rocprofiler_query_available_agents@1", "rocprofiler_create_buffer@1",
              "rocprofiler_configure_buffer_tracing_service@1", "rocprofiler_start_context@2")
    SPARED = {"rocprofiler_create_buffer@2": "memcpy_activity",
              "rocprofiler_configure_buffer_tracing_service@2": "memcpy_activity",
              "rocprofiler_iterate_buffer_tracing_kind_operations@1": "scope_attribution",
              "rocprofiler_create_callback_thread@*": None, "rocprofiler_assign_callback_thread@*": None,
              "rocprofiler_configure_callback_tracing_service@1": "nvtx_markers",
              "rocprofiler_configure_callback_tracing_service@2": "kernel_names",
              "rocprofiler_start_context@1": "kernel_names",
              "rocprofiler_stop_context@*": None, "rocprofiler_flush_buffer@1": None,
              "rocprofiler_get_timestamp@2": None}

    def test_a_call_that_is_needed_refuses_and_the_program_runs_with_a_reason(self):
        for call in self.NEEDED:
            with self.subTest(call=call):
                directory = self.directory / call.replace("@", "_")
                traced = self.trace("--launches", 3, env=amd(FAKE_FAULTS=f"fail={call}:1"), app=HIP_APP,
                                    directory=directory)
                self.assertEqual((traced.returncode, traced.counts["kernels"]), (0, 3), traced.stderr)
                self.assertIn(call.split("@", maxsplit=1)[0] + " failed: ROCPROFILER_STATUS_ERROR (1)", traced.stderr)
                session = traced.session
                self.assertEqual(session.first("capture_capabilities")["selected_engine"], "Monitor")
                self.assertEqual(session.capabilities()["amd_trace"]["status"], "skipped")

    def test_a_call_that_can_be_spared_refuses_and_the_rest_is_traced(self):
        for call, lost in self.SPARED.items():
            with self.subTest(call=call):
                directory = self.directory / call.replace("@", "_").replace("*", "all")
                traced = self.trace("--launches", 5, env=amd(FAKE_FAULTS=f"fail={call}:1"), app=HIP_APP,
                                    directory=directory)
                self.assert_whole(traced)
                session = traced.session
                self.assertEqual(len(session.rows("kernel_event_batch")), 5)
                if lost:
                    self.assertEqual(session.capabilities()[lost]["status"], "skipped")

    def test_dropped_short_and_unknown_records_are_counted(self):
        for fault, reason in (("rocprofiler_drop_every", "rocprofiler_dropped"), ("rocprofiler_short_every", "bad_record"),
                              ("rocprofiler_unknown_every", None)):
            with self.subTest(fault=fault):
                traced = self.trace("--launches", 100, env=amd(FAKE_FAULTS=f"{fault}=10"), app=HIP_APP,
                                    directory=self.directory / fault)
                self.assertEqual(traced.returncode, 0, traced.stderr)
                lost = traced.session.records("shutdown")[0]["lost"]
                self.assertEqual(set(lost), {reason} if reason else set())
                missing = 100 - len(traced.session.rows("kernel_event_batch"))
                self.assertEqual(missing > 0, reason is not None)
                if reason:
                    self.assertGreaterEqual(lost[reason], missing)

    def test_too_old_a_release_is_named(self):
        env = amd(FAKE_FAULTS="rocprofiler_version=400")
        traced = self.hip("--launches", 3, env=env)
        # A tool that asks for nothing is left out: there is no session, and the program ran.
        self.assertEqual((traced.returncode, traced.counts["kernels"], traced.sessions), (0, 3, []))
        result = run(HIP_APP, "--gpufl", LIBRARY, "--init", "before",
                     env=dict(env, GPUFL_LOG_DIR=str(self.directory / "own"), GPUFL_PROFILING_ENGINE="Trace"))
        self.assertEqual(result.returncode, 0, result.stderr)
        message = Session(sessions(self.directory / "own")[0]).capabilities()["amd_trace"]["message"]
        self.assertIn("is rocprofiler-sdk 0.4.0; 0.5 (ROCm 6.3) to 1.x are supported", message)


class InProcess(AmdCase):
    def init(self, *arguments, env=None, **variables):
        directory = self.directory / "own"
        result = run(HIP_APP, "--gpufl", LIBRARY, *arguments,
                     env=dict(env or amd(), GPUFL_LOG_DIR=str(directory), GPUFL_PROFILING_ENGINE="Trace", **variables))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("gpufl_init=0", result.stdout)
        return [Session(path) for path in sessions(directory)]

    def test_before_hip_starts_everything_is_traced(self):
        session, = self.init("--init", "before", "--launches", 7)
        self.assertEqual(len(session.rows("kernel_event_batch")), 7)

    def test_a_second_session_of_the_process_is_traced_too(self):
        first, second = self.init("--init", "before", "--launches", 7, "--sessions", 2)
        self.assertEqual([len(session.rows("kernel_event_batch")) for session in (first, second)], [7, 7])
        self.assertEqual(set(second.dictionary("kernel_dict").values()), {"saxpy(float*)", "scale(float*)"})

    def assert_refused(self, session, *words):
        self.assertEqual(session.first("capture_capabilities")["selected_engine"], "Monitor")
        message = session.capabilities()["amd_trace"]["message"]
        for word in words:
            self.assertIn(word, message)

    def test_after_hip_started_the_reason_says_what_to_do(self):
        device = self.directory / "dev" / "kfd"
        device.parent.mkdir()
        device.touch()
        session, = self.init("--init", "after", FAKE_KFD=str(device))
        self.assert_refused(session, "HIP was initialized before gpufl", "gpufl trace -- PROGRAM", "gpufl_init before")

    def test_another_tool_was_first(self):
        session, = self.init("--init", "before", env=amd(FAKE_FAULTS="rocprofiler_first=1"))
        self.assert_refused(session, "another tool in this process")

    def test_rocprofiler_takes_no_more_tools(self):
        session, = self.init("--init", "before", env=amd(FAKE_FAULTS="fail=rocprofiler_force_configure@1:16"))
        self.assert_refused(session, "accepts no more tools", "gpufl trace")

    def test_rocprofiler_never_calls_back(self):
        session, = self.init("--init", "before", env=amd(FAKE_FAULTS="rocprofiler_silent=1"))
        self.assert_refused(session, "did not call gpufl back")

    def test_a_missing_library_is_named(self):
        session, = self.init("--init", "before", env=amd(self.directory))
        self.assert_refused(session, "GPUFL_ROCPROFILER_PATH")

    def test_backends_restrict(self):
        nvidia, = self.init("--init", "before", GPUFL_BACKEND="Nvidia")
        self.assertNotIn("amd_trace", nvidia.capabilities())
        self.assertEqual(nvidia.rows("kernel_event_batch"), [])

    def test_backend_none_traces_nothing(self):
        none, = self.init("--init", "before", GPUFL_BACKEND="None")
        self.assertNotIn("amd_trace", none.capabilities())

    def test_a_forked_child_has_a_separate_session_without_amd(self):
        parent, child = self.init("--init", "before", "--launches", 4, "--fork")
        self.assertEqual(len(parent.rows("kernel_event_batch")), 4)
        self.assert_refused(child, "forked")


class Together(AmdCase):
    def mixed(self, **variables):
        return environment(FAKES, LD_LIBRARY_PATH=f"{ROCM}:{FAKES / 'hip'}:{FAKES}", ROCP_TOOL_LIBRARIES=None, **variables)

    def test_cuda_and_hip_in_one_process_are_both_traced(self):
        session = self.check_both("--cuda", "--launches", 40)
        self.assertEqual(len([line for line in session.lines["device"] if line["type"] == "capture_capabilities"]), 1)

    def test_hip_loaded_later_joins_the_session(self):
        session = self.check_both("--cuda", "--late", "--launches", 40)
        records = [line for line in session.lines["device"] if line["type"] == "capture_capabilities"]
        self.assertEqual(["rocprofiler_version" in record for record in records], [False, True])

    def test_hip_that_starts_while_another_thread_is_in_gpufl_joins_too(self):
        self.check_both("--cuda", "--late", "--launches", 40, "--gpufl", LIBRARY, "--ask")

    def check_both(self, *arguments):
        traced = self.hip(*arguments, env=self.mixed())
        self.assert_whole(traced)
        session = traced.session
        names = session.dictionary("kernel_dict")
        counts = {}
        for row in session.rows("kernel_event_batch"):
            key = names[row["kernel_id"]], row["device_id"]
            counts[key] = counts.get(key, 0) + 1
            self.assertIsNotNone(row["thread_id"])
        self.assertEqual(counts, {("gemm(float*)", 0): 40, ("saxpy(float*)", 1): 26, ("scale(float*)", 1): 14})
        self.assertIn("cupti_version", session.lines["device"][1])
        return session

    @unittest.skipIf("thread" in SANITIZERS, "libunwind and the thread sanitizer are incompatible")
    def test_stacks_do_not_bring_along_the_code_that_ran(self):
        traced = self.hip("--cuda", "--launches", 40, "--code", CODE_OBJECTS / "kernels.gfx90a.co", options=["--stacks"],
                          env=self.mixed())
        self.assert_whole(traced)
        self.assertEqual(traced.session.records("code_object"), [])

    def test_an_engine_of_nvidias_counts_there_and_by_dispatch_on_amd(self):
        traced = self.hip("--cuda", "--launches", 40, options=["--engine", "SassMetrics", "--no-disassemble"],
                          env=self.mixed())
        self.assertEqual(traced.returncode, 0, traced.stderr)
        session = traced.session
        last = max(session.records("capture_capabilities"), key=lambda record: record["ts_ns"])
        status = {entry["feature"]: entry["status"] for entry in last["capabilities"]}
        self.assertEqual((last["selected_engine"], status["sass_metrics"], status["dispatch_counters"]),
                         ("SassMetrics", "collected", "collected"))
        self.assertTrue(session.rows("profile_sample_batch"))
        events = session.records("kernel_perf_metric_event")
        self.assertEqual({event["device_id"] for event in events}, {1})
        self.assertEqual(len(events), 40)
        # NVIDIA's kernels are not timed while they are counted; AMD's are.
        self.assertEqual({row["device_id"] for row in session.rows("kernel_event_batch")}, {1})

    def test_kernels_and_telemetry_number_the_gpus_alike(self):
        root = self.directory / "host"
        # rocprofiler's first GPU is at c1, its second at c2; on the bus another one comes before them.
        run(FAKES / "fake_amd_tree", root, "rx7900@0000:03:00.0", "mi300x@0000:c1:00.0", "mi300x@0000:c2:00.0")
        env = self.mixed(FAKE_AMD_GPU_COUNT=2, GPUFL_SYSFS_ROOT=root)
        traced = self.hip("--cuda", "--gpus", 2, "--threads", 2, "--launches", 3, env=env)
        self.assert_whole(traced)
        session = traced.session
        devices = {device["id"]: device["name"] for device in session.first("job_start")["gpu_static_devices"]}
        self.assertEqual(sorted(devices), [0, 1, 2, 3])
        self.assertEqual({row["device_id"] for row in session.rows("kernel_event_batch")}, {0, 2, 3})
        self.assertEqual({record["device_id"]: record["name"] for record in session.records("device_limits")},
                         {0: devices[0], 2: "AMD Instinct MI300X", 3: "AMD Instinct MI300X"})

    def test_partitions_of_a_gpu_are_devices_in_kernels_and_telemetry(self):
        root = self.directory / "host"
        run(FAKES / "fake_amd_tree", root, "mi300x@0000:c1:00.0/4")
        env = amd(FAKE_AMD_GPU_COUNT=4, FAKE_AMD_PARTITIONS=4, GPUFL_SYSFS_ROOT=root)
        traced = self.hip("--gpus", 4, "--threads", 4, "--launches", 3, env=env)
        self.assert_whole(traced)
        devices = traced.session.first("job_start")["gpu_static_devices"]
        self.assertEqual([(device["id"], device["name"]) for device in devices],
                         [(number, f"AMD Instinct MI300X OAM, partition {number}") for number in range(4)])
        counts = [row["device_id"] for row in traced.session.rows("kernel_event_batch")]
        self.assertEqual({number: counts.count(number) for number in range(4)}, dict.fromkeys(range(4), 3))

    def test_the_users_own_tools_stay(self):
        own = "/somewhere/libtool.so"
        for value, wanted in ((None, str(RECORDER)), (own, f"{own}:{RECORDER}:"), (own + ":", f"{own}:{RECORDER}:"),
                              (str(RECORDER), str(RECORDER))):
            env = amd(ROCP_TOOL_LIBRARIES=value)
            result = gpufl("trace", "-q", "-o", self.directory / "log", "--", "/usr/bin/env", env=env)
            found = re.search(r"^ROCP_TOOL_LIBRARIES=(.*)$", result.stdout, re.MULTILINE)
            self.assertEqual(found and os.path.normpath(found[1]), os.path.normpath(wanted), result.stderr)

    def test_another_tool_that_comes_first_works_beside_gpufl(self):
        out = self.directory / "tool"
        env = dict(amd(FAKE_TOOL_OUT=out), ROCP_TOOL_LIBRARIES=str(FAKES / "librocprofiler_tool.so"))
        self.check("--launches", 20, "--copies", env=env)
        self.assertEqual(out.read_text(), "initialized\n")

    def test_disabled_means_left_out(self):
        traced = self.hip("--launches", 2, env=amd(GPUFL_DISABLED=1))
        self.assertEqual((traced.returncode, traced.sessions), (0, []))


if __name__ == "__main__":
    main()
