# SPDX-License-Identifier: Apache-2.0
"""Programs that run another profiler under `gpufl trace`: that profiler sees the same records as without gpufl, and the
session records when it ran."""
import re

from harness import FAKES, GPUFL, TestCase, environment, gpufl, main, run

LINKED, BY_DLSYM, KINETO = FAKES / "profiled_app", FAKES / "profiled_app_dlsym", FAKES / "kineto_app"
STYLES = ("kineto", "xla", "proton")
CYCLES, BEFORE, PROFILED, AFTER = 3, 40, 30, 20


def counts(text):
    return {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", text)}


class OtherProfilers(TestCase):
    def gaps(self, session):
        return [loss for loss in session.records("loss") if loss["reason"] == "other_profiler"]

    def check_session(self, session, profiler, kernels):
        """All kernels outside of the gaps are recorded, with their calls and unique ids."""
        gaps, rows = self.gaps(session), session.rows("kernel_event_batch")
        self.assertEqual(len(gaps), CYCLES)
        self.assertEqual({gap["profiler"] for gap in gaps}, {profiler})
        self.assertEqual(len(rows), kernels)
        self.assertEqual(len({row["corr_id"] for row in rows}), kernels)
        self.assertTrue(all(row["thread_id"] for row in rows))
        for gap in gaps:
            self.assertIsNone(gap["count"])
            self.assertLess(gap["start_ns"], gap["end_ns"])
        self.assertEqual([loss for loss in session.records("loss") if loss not in gaps], [])

    def test_it_sees_as_many_records_as_without_gpufl(self):
        for app, style, profiler in ((KINETO, "kineto", "torch.profiler"), (LINKED, "xla", LINKED.name),
                                     (LINKED, "proton", LINKED.name), (BY_DLSYM, "xla", BY_DLSYM.name),
                                     (BY_DLSYM, "proton", BY_DLSYM.name)):
            with self.subTest(app=app.name, style=style):
                arguments = (style, CYCLES, BEFORE, PROFILED, AFTER)
                alone = run(app, *arguments)
                self.assertEqual(counts(alone.stdout)["seen"], CYCLES * PROFILED, alone.stderr)
                traced = self.trace(*arguments, app=app, directory=self.directory / app.name / style)
                self.assertEqual((traced.returncode, traced.stdout), (0, alone.stdout), traced.stderr)
                self.check_session(traced.session, profiler, CYCLES * (BEFORE + AFTER))

    def test_a_profiler_that_stays_subscribed_for_callbacks_keeps_cupti_until_the_end(self):
        arguments = ("kineto", CYCLES, BEFORE, PROFILED, AFTER)
        for app in (LINKED, BY_DLSYM):  # not recognized as Kineto: it needs the callbacks that it has enabled
            with self.subTest(app=app.name):
                alone = run(app, *arguments)
                traced = self.trace(*arguments, app=app, directory=self.directory / app.name)
                self.assertEqual((traced.returncode, traced.stdout), (0, alone.stdout), traced.stderr)
                self.assertEqual(len(self.gaps(traced.session)), 1)
                self.assertEqual(traced.session.rows("kernel_event_batch"), [])

    def test_one_that_begins_before_cuda_does_is_the_first(self):
        for app in (LINKED, BY_DLSYM):
            with self.subTest(app=app.name):
                traced = self.trace("xla", 1, 0, PROFILED, AFTER, app=app, directory=self.directory / app.name)
                self.assertEqual(traced.returncode, 0, traced.stderr)
                self.assertEqual(counts(traced.stdout)["seen"], PROFILED)
                self.assertEqual(len(self.gaps(traced.session)), 1)
                self.assertEqual(len(traced.session.rows("kernel_event_batch")), AFTER)

    def test_threads_that_launch_meanwhile_are_not_disturbed(self):
        for style in STYLES:
            with self.subTest(style=style):
                traced = self.trace(style, CYCLES, BEFORE, PROFILED, AFTER, "beside", app=KINETO,
                                    directory=self.directory / style)
                self.assertEqual(traced.returncode, 0, traced.stdout + traced.stderr)
                self.assertGreaterEqual(counts(traced.stdout)["seen"], CYCLES * PROFILED)
                self.assertEqual(len(self.gaps(traced.session)), CYCLES)

    def test_every_engine_detaches_from_cupti(self):
        for engine in ("Monitor", "PcSampling", "SassMetrics", "RangeProfiler", "Deep"):
            with self.subTest(engine=engine):
                traced = self.trace("xla", CYCLES, BEFORE, PROFILED, AFTER, app=LINKED, options=["--engine", engine],
                                    directory=self.directory / engine)
                self.assertEqual(traced.returncode, 0, traced.stderr)
                self.assertEqual(counts(traced.stdout)["seen"], CYCLES * PROFILED)
                self.assertEqual(len(self.gaps(traced.session)), 0 if engine == "Monitor" else CYCLES)

    def test_the_gap_is_in_report_and_verify(self):
        traced = self.trace("kineto", CYCLES, BEFORE, PROFILED, AFTER, app=KINETO)
        said = r"gap of [0-9.]+ s: torch\.profiler was using CUPTI"
        verified = gpufl("verify", traced.sessions[0])
        self.assertEqual(verified.returncode, 1)
        self.assertEqual(len(re.findall(said, verified.stdout)), CYCLES, verified.stdout)
        reported = gpufl("report", traced.sessions[0])
        self.assertEqual(len(re.findall(said, reported.stdout)), CYCLES, reported.stdout)

    def test_exclusive_keeps_cupti(self):
        for options, variables in ((["--exclusive"], {}), ([], {"GPUFL_EXCLUSIVE": "1"})):
            with self.subTest(options=options):
                traced = self.trace("xla", 1, BEFORE, PROFILED, AFTER, app=LINKED, options=options,
                                    env=environment(**variables), directory=self.directory / str(len(options)))
                self.assertIn("cuptiSubscribe: 39", traced.stderr)
                self.assertEqual(self.gaps(traced.session), [])

    def test_the_users_preloaded_libraries_are_kept(self):
        shown = run(GPUFL, "trace", "-q", "-o", self.directory / "log", "--",
                    "sh", "-c", "echo $LD_PRELOAD; echo $ASAN_OPTIONS",
                    env=environment(LD_PRELOAD=FAKES / "libcheckpoint.so.1", ASAN_OPTIONS="x=1")).stdout.splitlines()
        self.assertRegex(shown[0], r"libgpufl_preload\.so:.*libcheckpoint\.so\.1$")
        self.assertEqual(shown[1], "x=1:verify_asan_link_order=0")


if __name__ == "__main__":
    main()
