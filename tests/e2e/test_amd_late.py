# SPDX-License-Identifier: Apache-2.0
"""rocprofiler-sdk delivers records after the work has ended, from HSA's signal handler: none is lost uncounted."""
from harness import BUILD, FAKES, Session, TestCase, environment, main, run, sessions

HIP_APP = FAKES / "fake_hip_app"
ROCM = FAKES / "rocm"
ROCM6 = FAKES / "rocm6"
LIBRARY = BUILD / "lib" / "libgpufl.so"
DELAYS_US = (100, 1000, 10000, 50000)
NEVER_US = 3600 * 1000 * 1000


def amd(library_path=ROCM, late_us=0, faults="", **variables):
    return environment(library_path, LD_LIBRARY_PATH=f"{library_path}:{FAKES / 'hip'}", ROCP_TOOL_LIBRARIES=None,
                       GPUFL_ROCPROFILER_PATH=library_path, FAKE_FAULTS=f"rocprofiler_late_us={late_us}; {faults}",
                       **variables)


class Late(TestCase):
    def check(self, env, *arguments, name="log", options=()):
        traced = self.trace("--launches", 50, "--threads", 2, "--copies", *arguments, app=HIP_APP, options=options,
                            env=env, directory=self.directory / name)
        self.assert_whole(traced)
        session = traced.session
        self.assertEqual((len(session.rows("kernel_event_batch")), len(session.rows("memcpy_event_batch"))),
                         (traced.counts["kernels"], traced.counts["copies"]))
        verified = self.verify(session.path)
        self.assertEqual(verified["lost_records"], 0)
        return session

    def test_records_that_come_late_are_all_recorded(self):
        for delay_us in DELAYS_US:
            with self.subTest(delay_us=delay_us):
                self.check(amd(late_us=delay_us), name=f"new_{delay_us}")
                self.check(amd(ROCM6, late_us=delay_us), name=f"old_{delay_us}")

    def test_counters_that_come_late_are_all_recorded(self):
        for delay_us in DELAYS_US:
            with self.subTest(delay_us=delay_us):
                session = self.check(amd(late_us=delay_us), name=f"log_{delay_us}",
                                     options=["--engine", "RangeProfiler", "--no-disassemble"])
                self.assertEqual(len(session.records("kernel_perf_metric_event")), 100)

    def test_where_starts_are_not_reported_the_end_waits_until_nothing_comes(self):
        # The third and fourth callback services are those of kernels and copies.
        for number in (3, 4):
            with self.subTest(number=number):
                self.check(amd(late_us=20000, faults=f"fail=rocprofiler_configure_callback_tracing_service@{number}:1"),
                           name=f"log_{number}")

    def sessions_of(self, env, *arguments):
        directory = self.directory / "own"
        result = run(HIP_APP, "--gpufl", LIBRARY, "--init", "before", "--launches", 7, "--copies", *arguments,
                     env=dict(env, GPUFL_LOG_DIR=str(directory), GPUFL_PROFILING_ENGINE="Trace"))
        self.assertEqual(result.returncode, 0, result.stderr)
        return [Session(path) for path in sessions(directory)]

    def test_gpufl_shutdown_waits_and_each_session_has_its_own(self):
        found = self.sessions_of(amd(late_us=50000), "--sessions", 2)
        self.assertEqual([len(session.rows("kernel_event_batch")) for session in found], [7, 7])
        self.assertEqual([session.records("shutdown")[0]["lost"] for session in found], [{}, {}])

    def test_records_that_do_not_come_are_counted(self):
        session, = self.sessions_of(amd(late_us=NEVER_US))
        self.assertEqual(session.records("shutdown")[0]["lost"],
                         {"rocprofiler_kernels_late": 7, "rocprofiler_copies_late": 14})
        self.assertEqual(session.rows("kernel_event_batch"), [])

    def test_records_of_an_earlier_session_are_not_counted_again(self):
        # The first session ends before its records come; they come in the second.
        for session in self.sessions_of(amd(late_us=2500 * 1000), "--sessions", 2):
            lost = session.records("shutdown")[0]["lost"]
            for kind, reason, count in (("kernel_event_batch", "rocprofiler_kernels_late", 7),
                                        ("memcpy_event_batch", "rocprofiler_copies_late", 14)):
                self.assertEqual(len(session.rows(kind)) + lost.get(reason, 0), count, reason)

    def test_counters_that_do_not_come_are_counted(self):
        traced = self.trace("--launches", 5, env=amd(late_us=NEVER_US), app=HIP_APP,
                            options=["--engine", "RangeProfiler", "--no-disassemble"])
        self.assertEqual(traced.returncode, 0, traced.stderr)
        self.assertEqual(traced.session.records("shutdown")[0]["lost"],
                         {"rocprofiler_kernels_late": 5, "rocprofiler_counters_late": 5})
        self.assertFalse(self.verify(traced.session.path)["is_complete"])


if __name__ == "__main__":
    main()
