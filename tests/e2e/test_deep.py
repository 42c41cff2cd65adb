# SPDX-License-Identifier: Apache-2.0
"""The engines above Trace on the fake GPU: every launch is counted, and the log has the source of each value."""
import json
import os
import pathlib
import re
import signal
import subprocess
import time

from deep_fixture import DEEP, ENGINES, KERNELS, PC, SASS, SCOPES, SHORT_WINDOWS, WARPS, Deep, final_capabilities, records_in
from harness import FAKE_APP, GPUFL, TIMEOUT_S, Session, TestCase, Traced, environment, gpufl, main, sessions

FIRST_PATCHED_PC = 0x4000  # of the fake GPU


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

    def test_samples_taken_while_counting_are_not_attributed(self):
        """Sampling has the longest period, 1.1 s; a longer kernel is sampled."""
        _, session = self.run_engine(SASS, "--launches", 2, "--kernel-us", 1_300_000)
        self.assert_granted(session, "SassMetrics", "sass_metrics", "cubin_disassembly")
        self.assertEqual(self.samples(session, 0), [])
        self.assertEqual(session.records("pc_sampling_config"), [])

    def test_zeros_are_never_published(self):
        """Pausing kernel records fails silently: CUPTI then counts zeros."""
        traced = self.trace("--launches", 100, options=SASS, env=environment(FAKE_FAULTS="fail=cuptiActivityDisable@*:0"))
        self.assertEqual(traced.returncode, 0)
        self.assertFalse([row for row in self.samples(traced.session, 1) if row["metric_value"] == 0])


class Alternation(Deep):
    @staticmethod
    def has_alternated(found):
        return records_in(found, "deep_window_event") > 5 and records_in(found, "profile_sample_batch") > 2

    def test_windows_share_the_run_without_overlap(self):
        traced, session = self.run_engine(DEEP, "--kernel-us", 20, "--sync-every", 20, "--pause-us", 100,
                                          is_seen=self.has_alternated)
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

    def test_windows_have_their_lengths_where_none_was_asked_for(self):
        traced = self.trace("--run-ms", 6000, "--kernel-us", 20, "--sync-every", 20, "--pause-us", 500,
                            options=["--engine", "Deep", "--pc-period", 20])
        self.assert_whole(traced)
        windows = sorted(traced.session.records("deep_window_event"), key=lambda window: window["start_ns"])
        self.assertEqual([window["requested_duration_ms"] for window in windows[:4]], [500, 2000, 500, 2000])

    def test_no_sample_is_of_code_that_was_patched_to_be_counted(self):
        traced, session = self.run_engine(DEEP, "--kernel-us", 20, "--sync-every", 20, "--pause-us", 100,
                                          is_seen=self.has_alternated)
        samples = self.samples(session, 0)
        self.assertTrue(samples)
        self.assertLess(max(row["pc_offset"] for row in samples), FIRST_PATCHED_PC)
        self.assertTrue([row for row in self.samples(session, 1) if row["metric_value"]])


class BusyGpu(Deep):
    """Kernels that do not end: operations that need an idle GPU are skipped, and the program does not wait for them."""
    ENGINES = {"SassMetrics": SASS, "Deep": DEEP}
    KERNEL_US, END_S = 300000000, 60

    def trace_until(self, end_s, name, options, *arguments):
        directory = self.directory / name
        command = [GPUFL, "trace", "-o", directory, *options, "--", FAKE_APP, *arguments, "--no-sync"]
        # Memory that CUPTI still uses cannot be freed. FAKE_MACHINE: a hung program must not block the next one's GPU.
        env = environment(FAKE_MACHINE=None, ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0")
        result = subprocess.run([str(word) for word in command], env=env, cwd=self.directory, text=True, timeout=end_s,
                                stdin=subprocess.DEVNULL, capture_output=True, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        return Traced(result, directory)

    def test_a_program_ends_before_its_kernel_and_the_log_says_what_was_not_read(self):
        for name, options in self.ENGINES.items():
            with self.subTest(name):
                session = self.trace_until(self.END_S, name, options, "--kernel-us", self.KERNEL_US, "--launches",
                                           1).session
                losses = [loss for loss in session.records("loss") if loss["reason"] == "sass_records_dropped"]
                self.assertEqual([(loss["count"], loss["cause"]) for loss in losses],
                                 [(1, "the GPU was still busy when the session had to end, so the counts of window 1 "
                                      "were not read")])
                self.assertEqual(self.samples(session, 1), [])
                self.assertEqual([window["close_reason"] for window in session.records("deep_window_event")],
                                 ["counts_unread"])
                self.assertEqual(len(session.rows("launch_event_batch")), 1)
                self.assertFalse(self.verify(session.path)["is_complete"])
                _, capabilities = final_capabilities(session)
                self.assertEqual(capabilities["sass_metrics"]["status"], "skipped", capabilities["sass_metrics"])

    def test_records_that_could_not_be_requested_are_not_reported_as_taken_over(self):
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

    def test_a_break_that_cannot_begin_delays_no_launch(self):
        options = [*PC, "--pc-share", 50]
        long = self.trace_until(TIMEOUT_S, "long", options, "--kernel-us", 1000000, "--pause-us", 10000, "--run-ms", 3000)
        self.assertGreater(long.counts["kernels"], 3)  # not one a second, as if each waited for the GPU
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


class Causes(Deep):
    FAULTS = (("pm", "cuptiPmSamplingDecodeData", "pm_overflow"),
              ("PcSampling", "cuptiPCSamplingGetData", "pc_sampling_failed"),
              ("SassMetrics", "cuptiSassMetricsFlushData", "sass_records_dropped"),
              ("kernels", "cuptiRangeProfilerDecodeData", "ranges_dropped"))

    def test_the_call_that_failed_is_in_the_log_when_nothing_was_printed(self):
        for engine, call, reason in self.FAULTS:
            with self.subTest(engine):
                self.assert_reported(engine, call, reason)

    def assert_reported(self, engine, call, reason):
        traced = self.trace("--launches", 400, "--kernel-us", 20, "--pause-us", 1000, directory=self.directory / engine,
                            options=["--quiet", *ENGINES[engine]], env=environment(FAKE_FAULTS=f"fail={call}@*:999"))
        self.assertEqual(traced.stderr, "")
        cause = f"{call} failed: CUPTI_ERROR_UNKNOWN (999)"
        session = traced.session
        causes = [loss.get("cause") for loss in session.records("loss") if loss["reason"] == reason]
        self.assertEqual(causes, [cause] + [None] * (len(causes) - 1))
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

    def test_a_refusal_is_reported_once_with_the_engine_that_runs_instead(self):
        for engine in ("PcSampling", "SassMetrics", "RangeProfiler", "Deep"):
            with self.subTest(engine):
                traced = self.trace("--launches", 20, options=["--engine", engine], directory=self.directory / engine,
                                    env=environment(FAKE_FAULTS="unsupported=vgpu"))
                lines = [line for line in traced.stderr.splitlines() if "virtual GPU" in line]
                self.assertEqual(len(lines), 1, traced.stderr)
                self.assertRegex(lines[0], f"asked for {engine}, running Trace: GPU 0 has no")


class Switching(Deep):
    """A call fails while Deep switches from one data source to the other."""

    def run_with(self, fault, options=DEEP, **variables):
        """The program launches on after the call that fails."""
        function, number = re.search(r"fail=(\w+)@(\d+):", fault).groups()
        traced = self.trace_until(
            self.after(self.is_called(function, int(number)), "kernel_event_batch", "launch_event_batch"), "--kernel-us", 20,
            "--sync-every", 20, "--pause-us", 100, options=options, directory=self.directory / re.sub(r"\W", "-", fault),
            env=environment(**SHORT_WINDOWS, FAKE_FAULTS=fault, **variables, **self.calls_are_written()))
        self.assertEqual(traced.returncode, 0, traced.stderr)
        windows = sorted(traced.session.records("deep_window_event"), key=lambda window: window["start_ns"])
        losses = {loss["reason"] for loss in traced.session.records("loss")}
        return traced, [(window["source"], window["close_reason"]) for window in windows], losses

    def test_nothing_is_called_sampled_after_sampling_failed(self):
        for call, count in (("Disable", 2), ("Disable", 3), ("GetData", 2), ("GetData", 4)):
            with self.subTest(call, count=count):
                _, windows, losses = self.run_with(f"fail=cuptiPCSampling{call}@{count}:1")
                self.assertNotEqual(windows[-1], ("pc_sampling", "session_stop"))
                self.assertIn("pc_sampling_failed", losses)

    def test_a_break_that_cannot_end_is_not_called_sampled(self):
        for call in ("Enable", "SetConfigurationAttribute"):
            with self.subTest(call):
                _, windows, losses = self.run_with(f"fail=cuptiPCSampling{call}@2:1", PC, GPUFL_PC_SAMPLING_SHARE=50,
                                                   GPUFL_PC_SAMPLING_CYCLE_MS=40)
                self.assertEqual(windows, [("pc_sampling", "deadline")])
                self.assertEqual(losses, {"pc_sampling_failed"})

    def test_sampling_that_counters_need_loses_no_samples_when_it_fails(self):
        for call in ("Enable", "SetConfigurationAttribute"):
            with self.subTest(call):
                traced, windows, losses = self.run_with(f"fail=cuptiPCSampling{call}@3:1")
                self.assertEqual(losses, set())
                self.assertIn(("sass_metrics", "counting_failed"), windows)
                self.assertEqual(windows[-1], ("pc_sampling", "session_stop"))
                self.assertTrue(traced.session.rows("kernel_event_batch"))

    def test_counting_that_ends_early_is_in_the_log(self):
        _, windows, _ = self.run_with("fail=cuptiSassMetricsEnable@2:1")
        self.assertIn(("sass_metrics", "counting_failed"), windows)
        self.assertEqual(windows[-1], ("pc_sampling", "session_stop"))

    def test_sampling_is_not_left_on_for_counters_that_cannot_be(self):
        traced, _, losses = self.run_with("fail=cuptiActivityDisable@1:1; fail=cuptiPCSamplingEnable@1:1", SASS)
        self.assertEqual(losses, set())
        self.assertNotIn("PC sampling:", traced.stderr)
        self.assertEqual(len(traced.session.rows("kernel_event_batch")), traced.counts["kernels"])


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
                    # A forked child abandons memory owned by the parent, which a leak checker reports.
                    # FAKE_MACHINE: only one of the two could sample the same GPU.
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
                command = [GPUFL, "trace", "-o", directory, *options, "--", FAKE_APP, "--run-ms", 600000, "--scopes",
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
        self.refused("--pm: 'compute' is neither a metric set nor a metric; `gpufl metrics sets` lists the sets",
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
