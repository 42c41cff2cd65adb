# SPDX-License-Identifier: Apache-2.0
"""The engines above Trace on the fake GPU: every launch is counted, every value was measured, and the log says from what."""
import collections
import json
import os
import pathlib
import re
import signal
import subprocess
import time

from harness import FAKE_APP, GPUFL, SOURCE, TIMEOUT_S, Session, TestCase, Traced, environment, gpufl, main, sessions

WARPS = 264 * 256 // 32  # of each of fake_app's launches, and so the count of each instruction
CUBIN = SOURCE / "tests/fuzz/corpus/cubin/linked"
PC = ["--engine", "PcSampling", "--pc-period", 13]
SASS = ["--engine", "SassMetrics"]
DEEP = ["--engine", "Deep", "--pc-period", 13]
KERNELS = ["--engine", "RangeProfiler", "--range-mode", "kernel"]
SCOPES = ["--engine", "RangeProfiler", "--range-mode", "scope", "--range-scopes", "scope_0"]
PM = ["--pm", "overview", "--pm-interval", 500]
ENGINES = {"PcSampling": PC, "SassMetrics": SASS, "Deep": DEEP, "kernels": KERNELS, "scopes": SCOPES, "pm": PM}
SHORT_WINDOWS = {"GPUFL_DEEP_COUNTING_MS": 10, "GPUFL_DEEP_SAMPLING_MS": 10}


def final_capabilities(session):
    last = max(session.records("capture_capabilities"), key=lambda record: record["ts_ns"])
    return last, {entry["feature"]: entry for entry in last["capabilities"]}


def function_word(text):
    return text.split("(")[0]


class Deep(TestCase):
    def run_engine(self, options, *arguments, directory=None, **variables):
        """A whole session in which every launch is timed or counted, and no wait of gpufl's own is the program's."""
        traced = self.trace(*arguments, options=options, env=environment(**SHORT_WINDOWS, **variables),
                            directory=directory)
        self.assert_whole(traced)
        session = traced.session
        self.assert_counted(traced.counts, session)
        return traced, session

    def assert_counted(self, counts, session):
        rows = len(session.rows("kernel_event_batch")) + len(session.rows("launch_event_batch"))
        self.assertEqual(rows, counts["kernels"])
        self.assertEqual(len(session.rows("synchronization_event_batch")), counts["syncs"])

    def assert_granted(self, session, engine, *features):
        record, capabilities = final_capabilities(session)
        self.assertEqual((record["requested_engine"], record["selected_engine"]), (engine, engine))
        for feature in features:
            self.assertEqual(capabilities[feature]["status"], "collected", capabilities[feature])
        others = {"pc_sampling", "sass_metrics", "range_counters", "pm_sampling"} - set(features)
        self.assertEqual({capabilities[feature]["status"] for feature in others}, {"not_requested"})

    def assert_sections(self, session, *titles):
        report = gpufl("report", session.path)
        self.assertEqual(report.returncode, 0, report.stderr)
        for title in titles:
            self.assertIn(title, report.stdout)

    def samples(self, session, kind):
        return [row for row in session.rows("profile_sample_batch") if row["sample_kind"] == kind]

    def executed(self, session):
        """Executions of each function's first instruction."""
        functions, metrics = session.dictionary("function_dict"), session.dictionary("metric_dict")
        counts = collections.Counter()
        for row in self.samples(session, 1):
            if row["pc_offset"] == 0 and metrics[row["metric_id"]] == "smsp__sass_inst_executed":
                counts[function_word(functions[row["function_id"]])] += row["metric_value"]
        return counts

    def launched(self, session):
        """Launches of each kernel in counting windows."""
        names = session.dictionary("kernel_dict")
        return collections.Counter(function_word(names[row["kernel_id"]]) for row in session.rows("launch_event_batch")
                                   if row["window_id"])


class PcSampling(Deep):
    def check(self, *options):
        _, session = self.run_engine([*PC, *options], "--launches", 200, "--kernel-us", 20, "--sync-every", 20, "--scopes")
        self.assertEqual(len(session.rows("kernel_event_batch")), 200)
        self.assert_granted(session, "PcSampling", "pc_sampling", "kernel_events", "cubin_disassembly")
        config = session.first("pc_sampling_config")
        self.assertEqual(config["period_cycles"], 8192)
        self.assert_sections(session, "STALLS")
        return session, config

    def test_a_run_too_short_for_a_sample_says_so(self):
        _, session = self.run_engine(["--engine", "PcSampling", "--pc-period", 31], "--launches", 1)
        self.assertEqual(self.samples(session, 0), [])
        self.assert_sections(session, "STALLS", "no sample was taken in ")

    def test_samples_belong_to_functions_stalls_and_scopes(self):
        session, config = self.check()
        self.assertEqual(config["mode"], "continuous")
        functions, reasons = session.dictionary("function_dict"), set(config["stall_reasons"])
        scopes = {row["scope_instance_id"]: session.dictionary("scope_name_dict")[row["name_id"]]
                  for row in session.rows("scope_event_batch")}
        rows = self.samples(session, 0)
        self.assertTrue(rows)
        for row in rows:
            self.assertIn(str(row["stall_reason"]), reasons)
            self.assertGreater(row["metric_value"], 0)
            self.assertTrue(0 <= row["confidence_bp"] <= 10000)
            if row["confidence_bp"] == 10000:
                self.assertEqual(scopes[row["scope_id"]].split("|")[-1], function_word(functions[row["function_id"]]))

    def test_serialized_samples_name_their_launch(self):
        session, config = self.check("--pc-mode", "serialized")
        self.assertEqual(config["mode"], "serialized")
        launches = {row["corr_id"] for row in session.rows("kernel_event_batch")}
        rows = self.samples(session, 0)
        self.assertTrue(rows)
        self.assertTrue({row["corr_id"] for row in rows} <= launches)
        self.assertEqual({row["confidence_bp"] for row in rows}, {10000})

    def test_the_code_of_modules_is_kept_once(self):
        _, session = self.run_engine(PC, "--contexts", 2, "--threads", 2, FAKE_CUBIN=CUBIN)
        self.assertEqual(len(session.records("code_object")), 1)


class Breaks(Deep):
    SHARE = [*PC, "--pc-share", 25]
    APP = ("--launches", 800, "--kernel-us", 20, "--pause-us", 500)

    def test_every_kernel_is_timed_and_samples_are_of_windows(self):
        traced, session = self.run_engine(self.SHARE, *self.APP, GPUFL_PC_SAMPLING_CYCLE_MS=80)
        self.assert_granted(session, "PcSampling", "pc_sampling", "kernel_events", "cubin_disassembly")
        self.assertEqual(len(session.rows("kernel_event_batch")), traced.counts["kernels"])
        windows = sorted(session.records("deep_window_event"), key=lambda window: window["start_ns"])
        self.assertGreater(len(windows), 2)
        self.assertEqual([window["window_id"] for window in windows], list(range(1, len(windows) + 1)))
        self.assertEqual({window["source"] for window in windows}, {"pc_sampling"})
        self.assertTrue(all(before["end_ns"] < after["start_ns"] for before, after in zip(windows, windows[1:])))
        covered = sum(window["launches_covered"] for window in windows)
        self.assertTrue(0 < covered < traced.counts["kernels"], covered)
        rows = self.samples(session, 0)
        self.assertTrue(rows)
        self.assertTrue({row["window_id"] for row in rows} <= {window["window_id"] for window in windows})
        self.assert_sections(session, "STALLS", " % of the run", "DEEP DATA")

    def test_a_graph_that_is_captured_meanwhile_stays_whole(self):
        for name, options in {"PcSampling": self.SHARE, "Deep": DEEP}.items():
            with self.subTest(name):
                traced = self.trace("--launches", 400, "--pause-us", 500, "--graphs", "--capture-ms", 300, options=options,
                                    env=environment(GPUFL_PC_SAMPLING_CYCLE_MS=80, **SHORT_WINDOWS),
                                    directory=self.directory / name)
                self.assertEqual(traced.returncode, 0, traced.stderr)
                self.assertEqual(traced.counts["graph_launches"], 4)
                self.assertGreater(len(traced.session.records("deep_window_event")), 2)

    def test_a_switch_that_cupti_does_not_come_back_from_is_told_and_launches_go_on(self):
        traced = self.trace(*self.APP, options=[*PC, "--pc-share", 50], env=environment(
            GPUFL_PC_SAMPLING_CYCLE_MS=20, FAKE_FAULTS="fail=cuptiPCSamplingDisable@2:-1",
            ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"))  # what CUPTI still uses cannot be freed
        self.assertEqual((traced.returncode, traced.counts["kernels"]), (0, 800))
        self.assertIn("launches were held for 10000 ms", traced.stderr)
        windows = traced.session.records("deep_window_event")
        self.assertEqual([(window["window_id"], window["close_reason"]) for window in windows],
                         [(1, "deadline"), (2, "session_stop")])
        causes = [loss["cause"] for loss in traced.session.records("loss") if loss["reason"] == "pc_sampling_failed"]
        self.assertIn("from a change between sampling and a break", causes[0])

    def test_a_context_that_cannot_be_switched_off_ends_the_breaks_and_the_others_are_sampled_on(self):
        traced = self.trace("--threads", 3, "--contexts", 3, "--run-ms", 1000, "--kernel-us", 400, "--sync-every", 4,
                            options=[*PC, "--pc-share", 50], env=environment(
                                GPUFL_PC_SAMPLING_CYCLE_MS=20, FAKE_FAULTS="fail=cuptiPCSamplingDisable@12:999"))
        self.assertIn("PC sampling takes no more breaks", traced.stderr)
        windows = traced.session.records("deep_window_event")
        self.assertEqual([window["close_reason"] for window in windows], ["deadline"] * (len(windows) - 1) + ["session_stop"])
        self.assertEqual([window["window_id"] for window in windows], list(range(1, len(windows) + 1)))
        self.assertIn(len(windows), {row["window_id"] for row in self.samples(traced.session, 0)})

    def windows_with_fault(self, fault, cycle_ms):
        traced = self.trace(*self.APP, options=self.SHARE, directory=self.directory / fault, env=environment(
            GPUFL_PC_SAMPLING_CYCLE_MS=cycle_ms, FAKE_FAULTS=f"fail={fault}:999"))
        return [window["close_reason"] for window in traced.session.records("deep_window_event")]

    def test_where_no_context_is_sampled_there_is_no_window(self):
        self.assertEqual(self.windows_with_fault("cuptiPCSamplingEnable@*", 80), [])

    def test_a_window_ends_with_the_last_context_that_is_sampled(self):
        self.assertEqual(self.windows_with_fault("cuptiPCSamplingGetData@2", 60000), ["sampling_failed"])
        *before, last = self.windows_with_fault("cuptiPCSamplingDisable@2", 80)
        self.assertEqual((set(before), last), ({"deadline"}, "sampling_failed"))

    def test_without_a_share_there_are_none(self):
        _, session = self.run_engine(PC, *self.APP, GPUFL_PC_SAMPLING_CYCLE_MS=80)
        self.assertEqual(session.records("deep_window_event"), [])

    def test_where_launches_are_not_told_sampling_goes_on_without_them(self):
        traced = self.trace(*self.APP, options=self.SHARE, env=environment(FAKE_FAULTS="fail=cuptiEnableCallback@*:1"))
        self.assertEqual(traced.returncode, 0)
        self.assertIn("PC sampling takes no breaks: CUPTI does not tell of launches", traced.stderr)


class SassMetrics(Deep):
    def test_each_instruction_of_each_launch_is_counted(self):
        traced, session = self.run_engine(SASS, "--launches", 200, "--threads", 2, "--sync-every", 20, "--scopes")
        self.assert_granted(session, "SassMetrics", "sass_metrics", "cubin_disassembly")
        self.assertEqual(session.rows("kernel_event_batch"), [])
        launched = self.launched(session)
        self.assertEqual(sum(launched.values()), traced.counts["kernels"])
        self.assertEqual(self.executed(session), {name: count * WARPS for name, count in launched.items()})
        self.assertEqual(final_capabilities(session)[1]["kernel_events"]["reason_code"], "paused_for_counters")
        self.assert_sections(session, "INSTRUCTIONS", "DEEP DATA", "not timed")
        self.assertIn(f"{traced.counts['kernels']} untimed launches", gpufl("verify", session.path).stdout)

    def test_more_metrics_on_request(self):
        _, session = self.run_engine([*SASS, "--sass-metrics", "all-memory"], "--launches", 50)
        metrics = session.first("sass_config")["configured_metrics"]
        self.assertIn("smsp__sass_inst_executed_op_global", metrics)
        self.assertNotIn("smsp__sass_branch_targets_threads_divergent", metrics)

    def test_zeros_are_never_published(self):
        """Pausing kernel records fails in silence: CUPTI then counts zeros."""
        traced = self.trace("--launches", 100, options=SASS, env=environment(FAKE_FAULTS="fail=cuptiActivityDisable@*:0"))
        self.assertEqual(traced.returncode, 0)
        self.assertFalse([row for row in self.samples(traced.session, 1) if row["metric_value"] == 0])


class Alternation(Deep):
    def test_windows_share_the_run_without_overlap(self):
        traced, session = self.run_engine(DEEP, "--launches", 600, "--kernel-us", 20, "--sync-every", 20, "--pause-us", 100)
        self.assert_granted(session, "Deep", "pc_sampling", "sass_metrics", "kernel_events")
        windows = sorted(session.records("deep_window_event"), key=lambda window: window["start_ns"])
        self.assertGreater(len(windows), 3)
        for before, after in zip(windows, windows[1:]):
            self.assertNotEqual(before["source"], after["source"])
            self.assertLessEqual(before["end_ns"], after["start_ns"])
        self.assertEqual(sum(window["launches_covered"] for window in windows), traced.counts["kernels"])
        sources = {window["window_id"]: window["source"] for window in windows}
        self.assertEqual({sources[row["window_id"]] for row in self.samples(session, 0)}, {"pc_sampling"})
        self.assertEqual({sources[row["window_id"]] for row in self.samples(session, 1)}, {"sass_metrics"})
        counted = sum(window["launches_covered"] for window in windows if window["source"] == "sass_metrics")
        self.assertEqual(len(session.rows("launch_event_batch")), counted)
        self.assertEqual(self.executed(session), {n: c * WARPS for n, c in self.launched(session).items()})
        self.assert_sections(session, "STALLS", "INSTRUCTIONS", "DEEP DATA")


class BusyGpu(Deep):
    """Kernels that do not end: what needs an idle GPU is not done, and the program does not wait for it."""
    ENGINES = {"SassMetrics": SASS, "Deep": DEEP}
    END_S = 10

    def trace_until(self, end_s, name, options, *arguments):
        directory = self.directory / name
        command = [GPUFL, "trace", "-o", directory, *options, "--", FAKE_APP, *arguments, "--no-sync"]
        # What CUPTI still counts cannot be freed. FAKE_MACHINE: a program that hangs must not keep the GPU from the next.
        env = environment(FAKE_MACHINE=None, ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0")
        result = subprocess.run([str(word) for word in command], env=env, cwd=self.directory, text=True, timeout=end_s,
                                stdin=subprocess.DEVNULL, capture_output=True, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        return Traced(result, directory)

    def test_a_program_ends_before_its_kernel_and_the_log_says_what_was_not_read(self):
        for name, options in self.ENGINES.items():
            with self.subTest(name):
                session = self.trace_until(self.END_S, name, options, "--kernel-us", 30000000, "--launches", 1).session
                losses = [loss for loss in session.records("loss") if loss["reason"] == "sass_records_dropped"]
                self.assertEqual([(loss["count"], loss["cause"]) for loss in losses],
                                 [(1, "the GPU was still at work 2 s after the end, so the counts of window 1 were not read")])
                self.assertEqual(self.samples(session, 1), [])
                self.assertEqual([window["close_reason"] for window in session.records("deep_window_event")],
                                 ["counts_unread"])
                self.assertEqual(len(session.rows("launch_event_batch")), 1)
                self.assertFalse(self.verify(session.path)["is_complete"])
                _, capabilities = final_capabilities(session)
                self.assertEqual(capabilities["sass_metrics"]["status"], "skipped", capabilities["sass_metrics"])

    def test_records_that_cupti_could_not_be_asked_for_are_not_taken_over_by_somebody(self):
        session = self.trace_until(TIMEOUT_S, "copies", SASS, "--kernel-us", 60000, "--launches", 149, "--sync-every", 50,
                                   "--copies").session
        self.assertEqual({loss["reason"] for loss in session.records("loss")}, {"sass_records_dropped", "cupti_left"})

    def test_launches_go_on_while_the_gpu_is_busy(self):
        launches = {}
        for name, options in {"Trace": [], **self.ENGINES}.items():
            traced = self.trace_until(TIMEOUT_S, name, options, "--kernel-us", 1000000, "--pause-us", 10000, "--run-ms", 3000)
            launches[name] = traced.counts["kernels"]
            if options:
                self.assertEqual({row["window_id"] for row in traced.session.rows("launch_event_batch")}, {1})
        for name in self.ENGINES:
            self.assertGreater(launches[name], launches["Trace"] / 2, launches)

    def test_a_break_that_cannot_begin_holds_nobody_up(self):
        options = [*PC, "--pc-share", 50]
        long = self.trace_until(TIMEOUT_S, "long", options, "--kernel-us", 1000000, "--pause-us", 10000, "--run-ms", 3000)
        self.assertGreater(long.counts["kernels"], 100)
        short = self.trace_until(self.END_S, "short", options, "--kernel-us", 30000000, "--launches", 1)
        self.assertEqual([window["close_reason"] for window in short.session.records("deep_window_event")],
                         ["session_stop"])


class Ranges(Deep):
    def test_each_launch_has_its_counters(self):
        traced, session = self.run_engine(KERNELS, "--launches", 100, "--scopes", "--sync-every", 10)
        self.assert_granted(session, "RangeProfiler", "range_counters", "cubin_disassembly")
        events = session.records("kernel_perf_metric_event")
        self.assertEqual(len(events), traced.counts["kernels"])
        self.assertEqual(len({event["launch_ordinal"] for event in events}), len(events))
        self.assertTrue(all(None not in event["metrics"].values() for event in events))
        self.assert_sections(session, "METRICS OF KERNELS")

    def test_a_scope_that_repeats_collects_its_passes(self):
        _, session = self.run_engine([*SCOPES, "--range-metrics", "overview"], "--launches", 200, "--scopes")
        events = session.records("perf_metric_event")
        whole = [event for event in events if event["metrics"]]
        self.assertTrue(whole)
        for event in whole:
            self.assertEqual((event["passes_collected"], event["instances"]), (event["passes_needed"],) * 2)
            self.assertEqual(event["user_scope"], "thread_0|scope_0")
        for event in events[len(whole):]:
            self.assertIn("passes are needed", event["reason"])
        self.assertEqual(sum(event["instances"] for event in whole), 19 // 4 * 4)  # scope_0 runs 19 times
        self.assert_sections(session, "METRICS OF SCOPES")

    def test_a_metric_that_the_gpu_lacks_is_named_and_null(self):
        traced, session = self.run_engine(KERNELS, "--launches", 20, FAKE_FAULTS="missing_metric=dram__bytes")
        self.assertIn("dram__bytes_read.sum", traced.stderr)
        for event in session.records("kernel_perf_metric_event"):
            missing = {name for name, value in event["metrics"].items() if value is None}
            self.assertEqual(missing, {"dram__bytes_read.sum", "dram__bytes_write.sum"})
            self.assertEqual(event["dram_read_bytes"], -1)

    def test_a_metric_that_was_named_must_be_there(self):
        traced = self.trace("--launches", 20, options=[*KERNELS, "--range-metrics", "bogus__x.sum"])
        self.assertEqual(traced.returncode, 0)
        self.assertIn("bogus__x", traced.stderr)
        self.assertEqual(len(traced.session.rows("kernel_event_batch")), 20)


class PmSampling(Deep):
    APP = ("--launches", 400, "--kernel-us", 20, "--pause-us", 1000)

    def test_a_program_that_ends_at_once_leaves_nothing_pending(self):
        for turn in range(10):
            _, session = self.run_engine(PM, "--launches", 1, directory=self.directory / str(turn))
            _, capabilities = final_capabilities(session)
            answer = capabilities["pm_sampling"]
            has_samples = bool(session.rows("pm_sample_batch"))
            self.assertEqual((answer["status"], answer["reason_code"]),
                             ("collected", "") if has_samples else ("skipped", "program_ended"))

    def test_why_there_are_no_samples_is_in_the_report(self):
        rare = [*PM[:2], "--pm-interval", 1000000]
        cases = ((("--launches", 1), {}, r"the program ended before (it began|the first sample)"),
                 (self.APP, {"FAKE_FAULTS": "fail=cuptiPmSamplingEnable@*:17"},
                  r"cuptiPmSamplingEnable failed: unknown result \(17\)"))
        for number, (app, variables, why) in enumerate(cases):
            _, session = self.run_engine(rare, *app, directory=self.directory / str(number), **variables)
            self.assertRegex(gpufl("report", session.path).stdout,
                             rf"\n COUNTERS OVER TIME   not recorded \({why}\)\n")

    def test_samples_of_which_none_is_of_use_were_there_all_the_same(self):
        traced = self.trace(*self.APP, options=PM, env=environment(FAKE_FAULTS="pm_zero_every=1"))
        self.assertRegex(gpufl("report", traced.session.path).stdout,
                         r"\n COUNTERS OVER TIME   not recorded \(none of the \d+ samples that came could be used\)\n")

    def test_samples_at_the_interval_beside_every_kernel(self):
        traced, session = self.run_engine(PM, *self.APP)
        self.assertEqual(len(session.rows("kernel_event_batch")), traced.counts["kernels"])
        self.assert_granted(session, "Trace", "pm_sampling", "kernel_events")
        config = session.first("pm_sampling_config")
        self.assertEqual((config["interval_us"], config["skipped_metrics"]), (500, []))
        times = sorted({row["time_ns"] for row in session.rows("pm_sample_batch")})
        self.assertGreater(len(times), 5)
        self.assertTrue(all(450000 < after - before for before, after in zip(times, times[1:])))

    def test_a_full_hardware_buffer_is_told_and_sampling_goes_on(self):
        traced = self.trace("--launches", 800, "--kernel-us", 20, "--pause-us", 1000, options=PM,
                            env=environment(FAKE_FAULTS="pm_full_at=2"))
        told = [loss for loss in traced.session.records("loss") if loss["reason"] == "pm_overflow"]
        self.assertEqual(len(told), 1)
        self.assertRegex(told[0]["cause"], r"^the hardware buffer of 64 MiB was full \d+ ms after the last read$")
        self.assertGreater(max(row["time_ns"] for row in traced.session.rows("pm_sample_batch")), told[0]["ts_ns"])

    def test_a_metric_that_the_gpu_lacks_is_named_and_not_a_loss(self):
        for fault in ("missing_metric", "uncountable_metric"):
            with self.subTest(fault):
                _, session = self.run_engine(PM, *self.APP, FAKE_FAULTS=fault + "=nvlrx", directory=self.directory / fault)
                config = session.first("pm_sampling_config")
                self.assertEqual(config["skipped_metrics"], ["nvlrx__bytes.sum.per_second"])
                names = session.dictionary("metric_dict")
                seen = {names[row["metric_id"]] for row in session.rows("pm_sample_batch")}
                self.assertEqual(seen, set(config["metrics"]))

    def test_beside_another_engine_it_is_refused_with_the_reason(self):
        _, session = self.run_engine(PC, "--launches", 100, GPUFL_PM_METRICS="overview")
        self.assertIn("engine Trace only", final_capabilities(session)[1]["pm_sampling"]["message"])
        self.assertEqual(session.rows("pm_sample_batch"), [])


class Causes(Deep):
    FAULTS = (("pm", "cuptiPmSamplingDecodeData", "pm_overflow"),
              ("PcSampling", "cuptiPCSamplingGetData", "pc_sampling_failed"),
              ("SassMetrics", "cuptiSassMetricsFlushData", "sass_records_dropped"),
              ("kernels", "cuptiRangeProfilerDecodeData", "ranges_dropped"))

    def test_the_call_that_failed_is_in_the_log_when_nothing_was_printed(self):
        for engine, call, reason in self.FAULTS:
            with self.subTest(engine):
                self.assert_told(engine, call, reason)

    def assert_told(self, engine, call, reason):
        traced = self.trace("--launches", 400, "--kernel-us", 20, "--pause-us", 1000, directory=self.directory / engine,
                            options=["--quiet", *ENGINES[engine]], env=environment(FAKE_FAULTS=f"fail={call}@*:999"))
        self.assertEqual(traced.stderr, "")
        cause = f"{call} failed: CUPTI_ERROR_UNKNOWN (999)"
        session = traced.session
        told = [loss.get("cause") for loss in session.records("loss") if loss["reason"] == reason]
        self.assertEqual(told, [cause] + [None] * (len(told) - 1))
        verified = gpufl("verify", session.path).stdout
        self.assertRegex(verified, f"not recorded: {reason}; .*; first cause: {re.escape(cause)}")
        self.assertIn(cause, " ".join(gpufl("report", session.path).stdout.split()))
        losses = json.loads(gpufl("report", "--json", session.path).stdout)["completeness"]["losses"]
        self.assertIn((reason, cause), [(loss["reason"], loss["cause"]) for loss in losses])


class Degrading(Deep):
    def test_deep_without_counters_samples_also_where_no_sample_came(self):
        traced = self.trace("--launches", 100, options=["--engine", "Deep", "--pc-period", 31],
                            env=environment(FAKE_FAULTS="fail=cuptiSassMetricsSetConfig@*:999"))
        record, capabilities = final_capabilities(traced.session)
        self.assertEqual(record["selected_engine"], "PcSampling")
        self.assertEqual(capabilities["pc_sampling"]["status"], "collected", capabilities["pc_sampling"])
        self.assertIn("cuptiSassMetricsSetConfig", capabilities["sass_metrics"]["message"])


class Life(Deep):
    def test_contexts_that_come_and_go_are_measured(self):
        for name, options in ENGINES.items():
            with self.subTest(name):
                directory = self.directory / name
                traced = self.trace("--contexts", 2, "--threads", 4, "--launches", 200, "--churn", 20, "--sync-every", 50,
                                    options=options, env=environment(**SHORT_WINDOWS), directory=directory)
                self.assert_whole(traced)
                self.assert_counted(traced.counts, traced.session)
                if name == "SassMetrics":
                    self.assertEqual(self.executed(traced.session),
                                     {n: c * WARPS for n, c in self.launched(traced.session).items()})

    def test_forks_before_and_after(self):
        for name, options in ENGINES.items():
            for fork in ("--fork", "--fork-first"):
                with self.subTest(engine=name, fork=fork):
                    # A forked child abandons what the parent owns: for a leak checker that is a leak.
                    # FAKE_MACHINE: PC samples of one GPU would be for one of the two.
                    env = environment(FAKE_MACHINE=None,
                                      ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0")
                    traced = self.trace("--launches", 100, fork, options=options, env=env,
                                        directory=self.directory / (name + fork))
                    self.assert_whole(traced)
                    found = [Session(path) for path in traced.sessions]
                    rows = sum(len(session.rows(kind)) for session in found
                               for kind in ("kernel_event_batch", "launch_event_batch"))
                    self.assertEqual(rows, traced.counts["kernels"])

    def test_a_kill_in_the_middle_leaves_a_readable_session(self):
        for name, options in ENGINES.items():
            with self.subTest(name):
                directory = self.directory / name
                command = [GPUFL, "trace", "-o", directory, *options, "--", FAKE_APP, "--run-ms", 20000, "--scopes",
                           "--pause-us", 50]
                process = subprocess.Popen([str(word) for word in command], env=environment(**SHORT_WINDOWS),
                                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                while not any(file.stat().st_size for file in directory.glob("*/device.log")):
                    self.assertIsNone(process.poll())
                    time.sleep(0.01)
                time.sleep(0.3)
                children = f"/proc/{process.pid}/task/{process.pid}/children"
                os.kill(int(pathlib.Path(children).read_text().split()[0]), signal.SIGKILL)
                self.assertEqual(process.wait(TIMEOUT_S), 128 + signal.SIGKILL)
                verdict = self.verify(sessions(directory)[0])
                kinds = {issue["kind"] for issue in verdict["issues"]}
                self.assertIn("unfinished", kinds)
                self.assertFalse(kinds & {"damaged line", "bad reference", "count mismatch", "missing lines"}, kinds)
                self.report(sessions(directory)[0])


class Settings(TestCase):
    def refused(self, message, *options):
        result = gpufl("trace", *options, "--", FAKE_APP, cwd=self.directory)
        self.assertEqual((result.returncode, result.stdout), (2, ""), result.stderr)
        self.assertEqual(result.stderr.splitlines()[0], "gpufl trace: " + message)

    def test_wrong_settings_stop_before_the_program_starts(self):
        self.refused("--range-metrics: no metric set 'overvew'; did you mean 'overview'?",
                     "-e", "RangeProfiler", "--range-metrics", "overvew")
        self.refused("--pm: no metric set 'compute', and not a metric's name either; `gpufl metrics sets` lists the sets",
                     "--pm", "compute")
        self.refused('--sass-metrics: "defalt" is neither a set of SASS metrics (default, all-memory) nor the name of a '
                     'metric; did you mean "default"?', "-e", "Deep", "--sass-metrics", "defalt")
        self.refused("no pc-mode 'serialised'; did you mean 'serialized'?", "-e", "Deep", "--pc-mode", "serialised")
        self.refused("--pc-period takes a whole number from 5 to 31, not '4'", "-e", "Deep", "--pc-period", 4)
        self.refused("--pc-share takes a whole number from 1 to 100, not '0'", "-e", "PcSampling", "--pc-share", 0)
        self.refused("--range-scopes: no scope is named", "-e", "RangeProfiler", "--range-scopes", ", ,")

    def test_a_setting_of_another_engine_names_its_own(self):
        self.refused("--pc-rate is a setting of engine PcSampling or Deep, not of Trace; add --engine PcSampling",
                     "--pc-rate", 1000)
        self.refused("--pm is a setting of engine Trace, not of Deep; add --engine Trace", "-e", "deep", "--pm", "sm")
        self.refused("--pc-share is a setting of engine PcSampling, not of Deep; add --engine PcSampling",
                     "-e", "deep", "--pc-share", 50)
        self.refused("--pc-rate and --pc-period say the same thing; give one of them",
                     "-e", "PcSampling", "--pc-rate", 10, "--pc-period", 10)
        self.refused("--pm-interval needs --pm METRICS", "--pm-interval", 100)


if __name__ == "__main__":
    main()
