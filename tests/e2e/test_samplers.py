# SPDX-License-Identifier: Apache-2.0
"""PC sampling, with and without breaks, and PM sampling on the fake GPU."""
import collections
import os

from deep_fixture import (CUBIN, DEEP, PC, PM, SHORT_WINDOWS, USUAL_END, Deep, final_capabilities, function_word,
                          records_in)
from harness import environment, gpufl, main


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
        paths = session.dictionary("scope_name_dict")
        rows = self.samples(session, 0)
        self.assertTrue(rows)
        for row in rows:
            self.assertIn(str(row["stall_reason"]), reasons)
            self.assertGreater(row["metric_value"], 0)
            self.assertTrue(0 <= row["confidence_bp"] <= 10000)
            if row["confidence_bp"] == 10000:
                self.assertEqual(paths[row["scope_name_id"]].split("|")[-1], function_word(functions[row["function_id"]]))

    def test_samples_of_a_kernel_that_runs_in_several_scopes_are_split_by_its_time_in_each(self):
        """range_0 is launched inside three scopes and outside of them."""
        options = ["--engine", "PcSampling", "--pc-period", 15]  # fits in the GPU's buffer, whenever it is read
        _, session = self.run_engine(options, "--launches", 420, "--kernel-us", 50, "--sync-every", 20, "--scopes",
                                     "--scopes-per-thread", 3, "--nvtx", GPUFL_PC_SAMPLING_DRAIN_MS=50)
        functions, kernels = session.dictionary("function_dict"), session.dictionary("kernel_dict")
        paths = session.dictionary("scope_name_dict")
        path_of = {row["scope_instance_id"]: paths[row["name_id"]] for row in session.rows("scope_event_batch")}
        time_ns, samples = collections.Counter(), collections.Counter()
        for row in session.rows("kernel_event_batch"):
            if function_word(kernels[row["kernel_id"]]) == "range_0":
                time_ns[path_of[row["scope_id"]]] += row["duration_ns"]
        for row in self.samples(session, 0):
            if function_word(functions[row["function_id"]]) == "range_0":
                samples[paths[row["scope_name_id"]] if row["scope_name_id"] else None] += row["metric_value"]
        self.assertGreater(len(time_ns), 2)
        self.assertEqual(set(samples) - {None}, set(time_ns))
        for path, used_ns in time_ns.items():
            self.assertAlmostEqual(samples[path] / samples.total(), used_ns / time_ns.total(), delta=0.05)

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
        traced, session = self.run_engine(
            self.SHARE, *self.APP, GPUFL_PC_SAMPLING_CYCLE_MS=80, is_seen=lambda found:
            records_in(found, "deep_window_event") > 3 and records_in(found, "profile_sample_batch") > 1)
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
                least = 2 if name == "PcSampling" else 0
                env = environment(GPUFL_PC_SAMPLING_CYCLE_MS=80, **SHORT_WINDOWS, **self.calls_are_written())
                is_launched = self.is_called("cudaLaunchKernel", 110)  # after a hundred the graph is launched
                traced = self.trace_until(
                    lambda found: is_launched(found) and records_in(found, "deep_window_event") > least, "--pause-us", 500,
                    "--graphs", "--capture-ms", 300, options=options, env=env, directory=self.directory / name)
                self.assertEqual(traced.returncode, 0, traced.stderr)
                self.assertGreater(traced.counts["graph_launches"], 0)
                windows = traced.session.records("deep_window_event")
                self.assertEqual(len([window for window in windows if window["source"] == "sass_metrics"]),
                                 1 if name == "Deep" else 0)

    def test_a_switch_that_hangs_in_cupti_is_reported_and_launches_continue(self):
        traced = self.trace("--launches", 3000, *self.APP[2:], options=[*PC, "--pc-share", 50], env=environment(
            GPUFL_PC_SAMPLING_CYCLE_MS=20, FAKE_FAULTS="fail=cuptiPCSamplingDisable@2:-1", **USUAL_END,
            ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"))  # CUPTI still uses it
        self.assertEqual((traced.returncode, traced.counts["kernels"]), (0, 3000))
        self.assertIn("launches were held for 10000 ms", traced.stderr)
        windows = traced.session.records("deep_window_event")
        self.assertEqual([(window["window_id"], window["close_reason"]) for window in windows],
                         [(1, "deadline"), (2, "session_stop")])
        causes = [loss["cause"] for loss in traced.session.records("loss") if loss["reason"] == "pc_sampling_failed"]
        self.assertIn("from a switch between sampling and a break", causes[0])

    def test_an_end_that_hangs_in_cupti_is_reported_and_its_window_is_written_once(self):
        traced = self.trace("--launches", 20, options=PC, env=environment(
            FAKE_FAULTS="fail=cuptiPCSamplingDisable@1:-1", **USUAL_END,
            ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"))
        self.assertEqual((traced.returncode, traced.counts["kernels"]), (0, 20))
        window, = traced.session.records("deep_window_event")
        self.assertEqual((window["close_reason"], window["launches_covered"]), ("session_stop", 20))
        causes = [loss["cause"] for loss in traced.session.records("loss") if loss["reason"] == "pc_sampling_failed"]
        self.assertIn("from switching sampling off", causes[0])

    def test_a_context_that_cannot_be_switched_off_ends_the_breaks_and_the_others_are_sampled_on(self):
        traced = self.trace_until(
            self.after(self.is_called("cuptiPCSamplingDisable", 12), "profile_sample_batch"), "--threads", 3, "--contexts", 3,
            "--kernel-us", 400, "--sync-every", 4, options=[*PC, "--pc-share", 50],
            env=environment(GPUFL_PC_SAMPLING_CYCLE_MS=20, FAKE_FAULTS="fail=cuptiPCSamplingDisable@12:999",
                            **self.calls_are_written()))
        self.assertIn("PC sampling takes no more breaks", traced.stderr)
        windows = traced.session.records("deep_window_event")
        self.assertEqual([window["close_reason"] for window in windows], ["deadline"] * (len(windows) - 1) + ["session_stop"])
        self.assertEqual([window["window_id"] for window in windows], list(range(1, len(windows) + 1)))
        self.assertIn(len(windows), {row["window_id"] for row in self.samples(traced.session, 0)})

    def windows_with_fault(self, function, number, cycle_ms):
        fault = f"fail={function}@{number}:999"
        traced = self.trace_until(
            self.after(self.is_called(function, int(number.replace("*", "1"))), "kernel_event_batch"), *self.APP,
            options=self.SHARE, directory=self.directory / function,
            env=environment(GPUFL_PC_SAMPLING_CYCLE_MS=cycle_ms, GPUFL_PC_SAMPLING_DRAIN_MS=20, FAKE_FAULTS=fault,
                            **self.calls_are_written()))
        return [window["close_reason"] for window in traced.session.records("deep_window_event")]

    def test_where_no_context_is_sampled_there_is_no_window(self):
        self.assertEqual(self.windows_with_fault("cuptiPCSamplingEnable", "*", 80), [])

    def test_a_window_ends_with_the_last_context_that_is_sampled(self):
        self.assertEqual(self.windows_with_fault("cuptiPCSamplingGetData", "12", 60000), ["sampling_failed"])
        *before, last = self.windows_with_fault("cuptiPCSamplingDisable", "2", 80)
        self.assertEqual((set(before), last), ({"deadline"}, "sampling_failed"))

    def test_breaks_are_taken_by_default_but_not_with_a_share_of_100(self):
        _, session = self.run_engine(PC, *self.APP, GPUFL_PC_SAMPLING_CYCLE_MS=80,
                                     is_seen=lambda found: records_in(found, "deep_window_event") > 2)
        self.assertEqual({window["requested_duration_ms"] for window in session.records("deep_window_event")}, {12, 8})
        _, session = self.run_engine([*PC, "--pc-share", 100], *self.APP, directory=self.directory / "all",
                                     is_seen=lambda found: records_in(found, "profile_sample_batch"),
                                     GPUFL_PC_SAMPLING_CYCLE_MS=80)
        self.assertEqual(session.records("deep_window_event"), [])
        self.assertTrue(self.samples(session, 0))

    def test_the_samples_of_a_program_that_ends_before_they_are_read_are_recorded(self):
        for share in (10, 100):
            with self.subTest(share):
                _, session = self.run_engine([*PC, "--pc-share", share], "--launches", 20, "--kernel-us", 100,
                                             directory=self.directory / str(share), GPUFL_PC_SAMPLING_DRAIN_MS=10000)
                kernel_s = sum(row["duration_ns"] for row in session.rows("kernel_event_batch")) / 1e9
                expected = kernel_s * 1.98e9 / 2**13 * 132 * 4  # four an SM of the fake, every 2^13 cycles
                self.assertGreater(sum(row["metric_value"] for row in self.samples(session, 0)), 0.9 * expected)

    def test_without_launch_callbacks_sampling_continues_without_breaks(self):
        traced = self.trace(*self.APP, options=self.SHARE, env=environment(FAKE_FAULTS="fail=cuptiEnableCallback@*:1"))
        self.assertEqual(traced.returncode, 0)
        self.assertIn("PC sampling takes no breaks: CUPTI does not report launches", traced.stderr)


class PmSampling(Deep):
    APP = ("--launches", 400, "--kernel-us", 20, "--pause-us", 1000)

    @staticmethod
    def has_samples(found):
        return records_in(found, "pm_sample_batch") > 1

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

    def test_the_report_counts_samples_that_could_not_be_used(self):
        traced = self.trace_until(lambda found: records_in(found, "loss"), *self.APP, options=PM,
                                  env=environment(FAKE_FAULTS="pm_zero_every=1"))
        self.assertRegex(gpufl("report", traced.session.path).stdout,
                         r"\n COUNTERS OVER TIME   not recorded \(none of the \d+ samples could be used\)\n")

    def test_samples_at_the_interval_beside_every_kernel(self):
        traced, session = self.run_engine(PM, *self.APP, is_seen=self.has_samples)
        self.assertEqual(len(session.rows("kernel_event_batch")), traced.counts["kernels"])
        self.assert_granted(session, "Trace", "pm_sampling", "kernel_events")
        config = session.first("pm_sampling_config")
        self.assertEqual((config["interval_us"], config["skipped_metrics"]), (500, []))
        times = sorted({row["time_ns"] for row in session.rows("pm_sample_batch")})
        self.assertGreater(len(times), 5)
        self.assertTrue(all(450000 < after - before for before, after in zip(times, times[1:])))

    def test_a_full_hardware_buffer_is_reported_and_sampling_continues(self):
        traced = self.trace_until(self.after(lambda found: records_in(found, "loss"), "pm_sample_batch"), *self.APP,
                                  options=PM, env=environment(FAKE_FAULTS="pm_full_at=2"))
        losses = [loss for loss in traced.session.records("loss") if loss["reason"] == "pm_overflow"]
        self.assertEqual(len(losses), 1)
        self.assertRegex(losses[0]["cause"], r"^the hardware buffer of 64 MiB was full \d+ ms after the last read$")
        self.assertGreater(max(row["time_ns"] for row in traced.session.rows("pm_sample_batch")), losses[0]["ts_ns"])

    def test_a_metric_that_the_gpu_lacks_is_named_and_not_a_loss(self):
        for fault in ("missing_metric", "uncountable_metric"):
            with self.subTest(fault):
                _, session = self.run_engine(PM, *self.APP, FAKE_FAULTS=fault + "=nvlrx", directory=self.directory / fault,
                                             is_seen=self.has_samples)
                config = session.first("pm_sampling_config")
                self.assertEqual(config["skipped_metrics"], ["nvlrx__bytes.sum.per_second"])
                names = session.dictionary("metric_dict")
                seen = {names[row["metric_id"]] for row in session.rows("pm_sample_batch")}
                self.assertEqual(seen, set(config["metrics"]))

    def test_beside_another_engine_it_is_refused_with_the_reason(self):
        _, session = self.run_engine(PC, "--launches", 100, GPUFL_PM_METRICS="overview")
        self.assertIn("engine Trace only", final_capabilities(session)[1]["pm_sampling"]["message"])
        self.assertEqual(session.rows("pm_sample_batch"), [])


if __name__ == "__main__":
    main()
