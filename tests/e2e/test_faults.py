# SPDX-License-Identifier: Apache-2.0
"""Faults of the driver, CUPTI or the disk: one clear message, the program's exit status, and a log that lists what is
missing."""
import os

from harness import FAKE_APP, FAKES, Session, TestCase, environment, gpufl, main, run

ENOSPC = FAKES / "libenospc.so"


class Driver(TestCase):
    ARGUMENTS = ("--launches", 2000, "--copies", "--sync-every", 100)

    def faulty(self, faults, *arguments, **options):
        return self.trace(*(arguments or self.ARGUMENTS), env=environment(FAKE_FAULTS=faults), **options)

    def assert_monitored(self, traced, *words):
        """The program ran, no kernel was recorded, and the reason is in the message and in the log."""
        self.assertEqual(traced.returncode, 0, traced.stderr)
        self.assertIn("kernels=2000", traced.stdout)
        session = traced.session
        self.assertEqual(session.rows("kernel_event_batch"), [])
        messages = [line for line in traced.stderr.splitlines() if line.startswith("gpufl trace: ")]
        self.assertEqual(len(messages), 1, traced.stderr)
        capabilities = session.first("capture_capabilities")
        self.assertNotEqual(capabilities["selected_engine"], capabilities["requested_engine"])
        reasons = " ".join(str(entry.get("message")) for entry in capabilities["capabilities"])
        for word in words:
            self.assertIn(word, messages[0])
            self.assertIn(word, reasons)

    def test_another_profiler_is_named(self):
        self.assert_monitored(self.faulty("subscriber=Nsight Systems"), "Nsight Systems")

    def test_a_profiler_that_takes_the_buffers_away_costs_kernels_that_are_counted(self):
        traced = self.trace(*self.ARGUMENTS, "--take-over", options=["--exclusive"])
        self.assertEqual(traced.returncode, 0)
        losses = {loss["reason"]: loss["count"] for loss in traced.session.records("loss")}
        self.assertLessEqual(set(losses), {"kernel_missing", "taken_over"})  # the latter if CUPTI had a buffer at that time
        recorded = len(traced.session.rows("kernel_event_batch"))
        self.assertGreater(losses["kernel_missing"], 0)
        self.assertEqual(recorded + losses["kernel_missing"], 4000)
        self.assertEqual(gpufl("verify", traced.session.path).returncode, 1)

    def test_missing_cupti_is_named(self):
        traced = self.trace(*self.ARGUMENTS, env=environment(GPUFL_CUPTI_PATH=self.directory))
        self.assert_monitored(traced, "CUPTI")

    def test_a_cupti_that_lacks_a_needed_function_is_named(self):
        traced = self.trace(*self.ARGUMENTS, env=environment(GPUFL_CUPTI_PATH=FAKES / "broken"))
        self.assert_monitored(traced, "broken/libcupti.so.13")

    def test_older_cupti_releases_record_every_kernel(self):
        for release in ("cuda12", "old"):
            with self.subTest(release):
                traced = self.trace(*self.ARGUMENTS, env=environment(GPUFL_CUPTI_PATH=FAKES / release),
                                    directory=self.directory / release)
                self.assert_whole(traced)
                self.assertEqual(len(traced.session.rows("kernel_event_batch")), 2000)

    def test_a_failing_call_costs_only_what_it_was_for(self):
        for function in ("cuptiActivityRegisterCallbacks", "cuptiActivityEnable", "cuptiActivityFlushAll",
                         "cuptiGetTimestamp", "cuptiSetThreadIdType", "cuptiActivityGetNumDroppedRecords"):
            for number in (1, 2, 5):
                with self.subTest(function=function, number=number):
                    traced = self.faulty(f"fail={function}@{number}:999",
                                         directory=self.directory / f"{function}{number}")
                    self.assertEqual(traced.returncode, 0, traced.stderr)
                    self.assertIn("kernels=2000", traced.stdout)
                    self.assertEqual(len(traced.sessions), 1)
                    verdict = self.verify(traced.sessions[0])
                    recorded = verdict["rows"].get("kernel_event_batch", 0)
                    self.assertLessEqual(recorded, 2000)
                    capabilities = Session(traced.sessions[0]).capabilities()
                    is_degraded = any(entry["requested"] and entry["status"] != "granted"
                                      for entry in capabilities.values())
                    if recorded < 2000:
                        self.assertTrue(is_degraded or not verdict["is_complete"], "records are missing, uncounted")

    def test_absurd_records_are_counted_as_lost_and_never_crash(self):
        traced = self.faulty("absurd_record_every=100")
        self.assertEqual(traced.returncode, 0, traced.stderr)
        verdict = self.verify(traced.sessions[0])
        self.assertFalse(verdict["is_complete"])
        self.assertIn("loss", [issue["kind"] for issue in verdict["issues"]])

    def test_records_that_cupti_dropped_are_a_loss_with_its_count(self):
        traced = self.faulty("drop_every=100")
        self.assertEqual(traced.returncode, 0, traced.stderr)
        verdict = self.verify(traced.sessions[0])
        self.assertFalse(verdict["is_complete"])
        missing = traced.counts["kernels"] - verdict["rows"]["kernel_event_batch"]
        self.assertGreaterEqual(verdict["lost_records"], missing)

    def test_a_storm_of_buffers_loses_nothing_without_counting_it(self):
        traced = self.faulty("storm=1", "--threads", 4, "--streams", 4, "--launches", 1000)
        self.assertEqual(traced.returncode, 0, traced.stderr)
        verdict = self.verify(traced.sessions[0])
        # One record per buffer: on a busy machine there may be no buffer for any kernel.
        recorded = verdict["rows"].get("kernel_event_batch", 0)
        self.assertLessEqual(recorded, traced.counts["kernels"])
        self.assertGreaterEqual(recorded + verdict["lost_records"], traced.counts["kernels"])
        self.assertEqual(verdict["is_complete"], verdict["lost_records"] == 0)

    def test_a_lost_gpu_ends_the_program_as_it_does_without_gpufl(self):
        arguments = ("--run-ms", 400, "--sync-every", 10)
        env = environment(FAKE_FAULTS="lost_gpu_after_ms=100")
        plain = run(FAKE_APP, *arguments, env=env)
        traced = self.trace(*arguments, env=env)
        self.assertEqual(traced.returncode, plain.returncode if plain.returncode >= 0 else 128 - plain.returncode)
        self.assertEqual(gpufl("report", traced.sessions[0]).returncode, 0)

    def test_without_a_device_the_program_says_so_itself(self):
        env = environment(FAKE_FAULTS="no_device=1")
        plain = run(FAKE_APP, *self.ARGUMENTS, env=env)
        traced = self.trace(*self.ARGUMENTS, env=env)
        self.assertEqual((traced.returncode, traced.stdout), (plain.returncode, plain.stdout))
        self.assertIn("gpufl: no GPU work was recorded: ", traced.stderr)

    def test_deep_without_permission_traces_every_kernel_and_says_how_to_get_it(self):
        traced = self.trace("--launches", 100, options=["--engine", "Deep"],
                            env=environment(FAKE_FAULTS="fail=cuptiPCSamplingEnable@*:35"))
        self.assertEqual(traced.returncode, 0)
        self.assertEqual(len(traced.session.rows("kernel_event_batch")), 100)
        self.assertIn("RmProfilingAdminOnly", traced.stderr)
        self.assertIn("CAP_PERFMON", traced.stderr)


class Disk(TestCase):
    def full(self, free_bytes, *arguments, **variables):
        directory = self.directory / "log"
        variables = {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0",
                     "LD_PRELOAD": ENOSPC, "GPUFL_TEST_DISK_BYTES": free_bytes, "GPUFL_TEST_DISK_DIR": directory, **variables}
        assignments = [f"{name}={value}" for name, value in variables.items()]
        return self.trace(*assignments, FAKE_APP, *arguments, app="env", directory=directory)

    def test_a_full_disk_gives_one_message_and_the_programs_own_status(self):
        traced = self.full(40000, "--launches", 20000, "--exit", 5)
        self.assertEqual(traced.returncode, 5)
        self.assertEqual(traced.counts["kernels"], 20000)
        messages = [line for line in traced.stderr.splitlines() if "No space left on device" in line]
        self.assertEqual(len(messages), 1, traced.stderr)
        path = traced.sessions[0]
        verdict = self.verify(path)
        self.assertFalse(verdict["is_complete"])
        self.assertNotIn("damaged line", [issue["kind"] for issue in verdict["issues"]])
        self.assertLess(verdict["rows"].get("kernel_event_batch", 0), 20000)
        self.assertEqual(gpufl("report", path).returncode, 0)

    def test_a_disk_that_is_full_from_the_start(self):
        traced = self.full(0, "--launches", 500)
        self.assertEqual(traced.returncode, 0)
        self.assertIn("No space left on device", traced.stderr)

    def test_space_that_becomes_free_is_used_and_the_gap_is_counted(self):
        traced = self.full(40000, "--run-ms", 2500, "--sync-every", 20, GPUFL_TEST_DISK_RECOVER_MS=700)
        self.assertEqual(traced.returncode, 0, traced.stderr)
        session = traced.session
        verdict = self.verify(session.path)
        self.assertFalse(verdict["is_complete"])
        self.assertIn("loss", [issue["kind"] for issue in verdict["issues"]])
        self.assertEqual(session.lines["system"][-1]["type"], "shutdown")
        self.assertEqual(verdict["rows"]["kernel_event_batch"] + self.lost_kernels(session), traced.counts["kernels"])

    def test_names_that_found_no_room_are_written_when_there_is_some(self):
        # Names are written with the first kernels, at most a second after the start, when there is no space.
        traced = self.full(9000, "--run-ms", 4000, "--pause-us", 200, "--scopes", GPUFL_TEST_DISK_RECOVER_MS=2000)
        self.assertEqual(traced.returncode, 0, traced.stderr)
        session = traced.session
        rows = session.rows("kernel_event_batch")
        self.assertTrue(rows)
        self.assertEqual({row["kernel_id"] for row in rows} - session.dictionary("kernel_dict").keys(), set())

    def lost_kernels(self, session):
        return sum(record["count"] for record in session.records("loss")
                   if record.get("record_type") == "kernel_event_batch")


if __name__ == "__main__":
    main()
