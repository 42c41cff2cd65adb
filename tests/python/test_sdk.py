#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""gpufl.init and what belongs to it: options, old names, mistakes, sessions."""
import fixture
import harness

IMPORT = """
import gpufl
import warnings

def raised(call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except Exception as error:
        print(f"{type(error).__name__}: {error}")
    else:
        print("nothing was raised")
"""


class Options(fixture.TestCase):
    def test_every_option_of_the_c_api_is_a_keyword(self):
        header = (fixture.SOURCE / "include/gpufl/gpufl.h").read_text()
        struct = header[header.index("typedef struct gpufl_options {"):header.index("} gpufl_options;")]
        members = [line.split(";")[0].split()[-1].lstrip("*") for line in struct.splitlines()[1:] if ";" in line]
        wanted = set(members) - {"struct_size", "log_fn", "log_user"}
        out = self.output("import inspect, gpufl\nprint(*inspect.signature(gpufl.init).parameters)")
        self.assertEqual(set(out.split()) - {"others"}, wanted)

    def test_options_reach_the_session(self):
        session = self.recorded(IMPORT + """
import pathlib
from fake_cuda import Gpu
assert gpufl.init("app", pathlib.Path("log"), profiling_engine=gpufl.ProfilingEngine.Trace,
                  enable_synchronization=False)
assert gpufl.active_engine() is gpufl.ProfilingEngine.Trace
gpu = Gpu("k")
gpu.launch("k"); gpu.wait()
gpufl.shutdown()
assert gpufl.active_engine() is None
""")
        self.assertEqual(session.first("job_start")["app"], "app")
        self.assertEqual(len(session.rows("kernel_event_batch")), 1)
        self.assertEqual(session.rows("synchronization_event_batch"), [])

    def test_code_wins_over_the_environment_and_silence_does_not(self):
        text = IMPORT + "gpufl.init(%s log_path='log')\nprint(gpufl.active_engine().name)\ngpufl.shutdown()"
        self.assertEqual(self.output(text % "", GPUFL_PROFILING_ENGINE="Trace"), "Trace\n")
        self.assertEqual(self.output(text % "profiling_engine=gpufl.ProfilingEngine.Monitor,",
                                     GPUFL_PROFILING_ENGINE="Trace"), "Monitor\n")

    def test_a_rate_of_zero_in_code_wins_over_the_environment(self):
        text = "import gpufl\ngpufl.init(log_path='log', continuous_system_sampling=True%s)\ngpufl.shutdown()"
        session = self.recorded(text % ", system_sample_rate_ms=0", GPUFL_SYSTEM_SAMPLE_RATE_MS="1")
        self.assertEqual(session.rows("host_metric_batch"), [])

    def test_a_file_of_the_apps_name_is_not_in_the_way_of_its_logs(self):
        (self.directory / "app").write_text("a program\n")
        session = self.recorded("import gpufl\nassert gpufl.init('app')\ngpufl.shutdown()", "app.gpufl")
        self.assertEqual(session.first("job_start")["app"], "app")
        self.assertEqual((self.directory / "app").read_text(), "a program\n")

    def test_an_engine_that_the_machine_lacks_is_a_warning(self):
        result = self.program("import gpufl\ngpufl.init('a', 'log', profiling_engine=gpufl.ProfilingEngine.Deep)\n"
                              "print(gpufl.active_engine().name)", GPUFL_CUPTI_PATH="/nonexistent")
        self.assertEqual((result.returncode, result.stdout), (0, "Monitor\n"), result.stderr)
        self.assertRegex(result.stderr, "program.py:.*RuntimeWarning: gpufl: asked for Deep, running Monitor .*: "
                         "GPUFL_CUPTI_PATH=/nonexistent: cannot load it")

    def test_mistakes_are_type_errors_that_name_the_nearest_option(self):
        out = self.output(IMPORT + """
raised(gpufl.init, app_nmae="x")
raised(gpufl.init, profiling_engin=gpufl.ProfilingEngine.Trace)
raised(gpufl.init, qqqqqq=1)
raised(gpufl.init, profiling_engine="PcSampling")
raised(gpufl.init, profiling_engine=3)
raised(gpufl.init, backend="cuda")
raised(gpufl.init, enabled=1)
raised(gpufl.init, app_name=b"x")
raised(gpufl.init, system_sample_rate_ms="50")
raised(gpufl.init, system_sample_rate_ms=True)
raised(gpufl.init, system_sample_rate_ms=-1)
raised(gpufl.init, app_name="a\\0b")
raised(gpufl.session, log_pth="x")
raised(gpufl.upload_logs, backend="x")
raised(gpufl.system_start, 3)
print(gpufl.session_dir() == "")
""").splitlines()
        self.assertEqual(out, [
            "TypeError: init() got an unexpected keyword argument 'app_nmae'; did you mean 'app_name'?",
            "TypeError: init() got an unexpected keyword argument 'profiling_engin'; did you mean 'profiling_engine'?",
            "TypeError: init() got an unexpected keyword argument 'qqqqqq'",
            "TypeError: init(): profiling_engine must be gpufl.ProfilingEngine, not str; did you mean "
            "gpufl.ProfilingEngine.PcSampling?",
            "TypeError: init(): profiling_engine must be gpufl.ProfilingEngine, not int",
            "TypeError: init(): backend must be gpufl.BackendKind, not str",
            "TypeError: init(): enabled must be bool, not int",
            "TypeError: init(): app_name must be str, not bytes",
            "TypeError: init(): system_sample_rate_ms must be int, not str",
            "TypeError: init(): system_sample_rate_ms must be int, not bool",
            "ValueError: init(): system_sample_rate_ms must be 0 to 2147483647, not -1",
            "ValueError: app_name must not contain a NUL character: 'a\\x00b'",
            "TypeError: session() got an unexpected keyword argument 'log_pth'; did you mean 'log_path'?",
            "TypeError: upload_logs() got an unexpected keyword argument 'backend'; did you mean 'backend_url'?",
            "TypeError: name must be str, not <class 'int'>",
            "True"])

    def test_removed_options_say_what_to_write_instead(self):
        out = self.output(IMPORT + """
raised(gpufl.init, enable_profiling=False)
raised(gpufl.init, enable_perf_scope=True)
raised(gpufl.init, remote_config="https://x")
""").splitlines()
        self.assertIn("profiling_engine=gpufl.ProfilingEngine.Monitor", out[0])
        self.assertIn("profiling_engine=gpufl.ProfilingEngine.RangeProfiler", out[1])
        self.assertIn("backend_url=", out[2])
        for line in out:
            self.assertTrue(line.startswith("TypeError: init() got an unexpected keyword argument"), line)

    def test_old_names_work_and_warn_in_the_callers_line(self):
        out = self.output(IMPORT + """
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    gpufl.init(log_path="log", sampling_auto_start=True, system_sample_rate_ms=5, kernel_sample_rate_ms=3)
gpufl.shutdown()
for one in caught:
    print(one.category.__name__, one.filename == __file__, one.message)
raised(gpufl.init, sampling_auto_start=True, continuous_system_sampling=True)
""").splitlines()
        self.assertEqual(out[0], "DeprecationWarning True init(): sampling_auto_start is now "
                                 "continuous_system_sampling")
        self.assertIn("DeprecationWarning True init(): kernel_sample_rate_ms has no effect", out[1])
        self.assertIn("TypeError: init(): sampling_auto_start is the old name", out[2])
        session = harness.Session(harness.sessions(self.directory / "log")[0])
        self.assertTrue(session.rows("host_metric_batch"))

    def test_a_value_that_cannot_be_is_a_value_error_with_the_librarys_words(self):
        out = self.output(IMPORT + "raised(gpufl.init, system_sample_rate_ms=2**31 - 1)")
        self.assertRegex(out, r"^ValueError: init\(\): .*system_sample_rate_ms")

    def test_a_session_that_cannot_start_is_a_warning_and_the_program_goes_on(self):
        (self.directory / "file").write_text("")
        result = self.program(IMPORT + """
print(gpufl.init(log_path="file/below"))
with gpufl.Scope("x"): pass
gpufl.shutdown()
""")
        self.assertEqual((result.returncode, result.stdout), (0, "False\n"), result.stderr)
        self.assertRegex(result.stderr, r"program\.py:\d+: RuntimeWarning: gpufl does not record")

    def test_an_invalid_environment_is_a_warning_and_the_program_goes_on(self):
        broken = self.directory / "broken.json"
        broken.write_text("{broken")
        for name, value in {"GPUFL_PROFILING_ENGINE": "Depe", "GPUFL_SYSTEM_SAMPLE_RATE_MS": "often",
                            "GPUFL_CONFIG_FILE": broken}.items():
            for quiet in ("", "1"):
                with self.subTest(name, quiet=quiet):
                    result = self.program(IMPORT + "print(gpufl.init(log_path='log'))\ngpufl.shutdown()",
                                          **{name: value, "GPUFL_QUIET": quiet})
                    self.assertEqual((result.returncode, result.stdout), (0, "False\n"), result.stderr)
                    self.assertEqual("RuntimeWarning: gpufl does not record: " + str(value if name.endswith("FILE") else
                                                                                     name) in result.stderr, not quiet)

    def test_a_config_file_that_the_program_names_is_its_own_mistake(self):
        (self.directory / "broken.json").write_text("{broken")
        out = self.output(IMPORT + "raised(gpufl.init, config_file='broken.json')")
        self.assertRegex(out, r"^ValueError: init\(\): broken\.json:1:2")


class Sessions(fixture.TestCase):
    def test_a_with_block_records_and_ends_its_session(self):
        session = self.recorded(IMPORT + """
with gpufl.session(app_name="block", log_path="log") as session:
    assert session.is_recording and session.path == gpufl.session_dir()
    with gpufl.Scope("inside"): pass
assert not session.is_recording and session.upload_result is None
""")
        self.assertEqual(session.first("job_start")["app"], "block")
        self.assertTrue(session.records("shutdown"))

    def test_a_session_is_ended_when_its_block_raises(self):
        session = self.recorded(IMPORT + """
def body():
    with gpufl.session(log_path="log"):
        raise KeyError("the program's own")
raised(body)
""")
        self.assertTrue(session.records("shutdown"))

    def test_a_disabled_session_is_a_block_like_any_other(self):
        self.output(IMPORT + 'with gpufl.session(enabled=False, backend_url="http://127.0.0.1:1") as session: pass\n'
                    "assert session.upload_result is None")
        self.assertEqual([path.name for path in self.directory.iterdir()], ["program.py"])

    def test_two_sessions_in_a_row_are_two_directories(self):
        self.output(IMPORT + 2 * """
with gpufl.session(log_path="log"):
    with gpufl.Scope("x"): pass
""")
        self.assertEqual(len(harness.sessions(self.directory / "log")), 2)


class Reports(fixture.TestCase):
    def test_a_program_that_is_not_recorded_has_no_report_and_no_trouble(self):
        text = "import gpufl\ngpufl.init('a', 'log'%s)\ngpufl.generate_report()\ngpufl.generate_report('r.txt')\nprint('end')"
        for options, variables in (("", {"GPUFL_DISABLED": "1"}), (", enabled=False", {})):
            self.assertEqual(self.output(text % options, **variables), "end\n")
        (self.directory / "log").write_text("in the way\n")
        self.assertEqual(self.output(text % ""), "end\n")
        self.assertFalse((self.directory / "r.txt").exists())
        self.assertEqual(self.output(IMPORT + "raised(gpufl.generate_report)"),
                         "RuntimeError: there was no session to report; call gpufl.init() first\n")

    def test_a_report_to_an_invalid_path_raises_and_names_it(self):
        self.assertEqual(self.output(IMPORT + """
gpufl.init("app", "log"); gpufl.shutdown()
raised(gpufl.generate_report, "nowhere/report.txt")
raised(gpufl.generate_report, ".")
"""), "OSError: cannot write the report to 'nowhere/report.txt': No such file or directory\n"
      "OSError: cannot write the report to '.': Is a directory\n")

    def test_a_switch_that_is_neither_on_nor_off_disables_with_a_warning(self):
        result = self.program("import gpufl\nprint(gpufl.init('a', 'log'))", GPUFL_DISABLED="maybe")
        self.assertEqual((result.returncode, result.stdout), (0, "False\n"), result.stderr)
        self.assertIn("RuntimeWarning: gpufl: not recording: GPUFL_DISABLED: 'maybe' is neither on", result.stderr)
        self.assertFalse((self.directory / "log").exists())

    def test_a_printed_report_goes_where_the_program_prints_and_in_its_turn(self):
        out = self.output("""
import contextlib, gpufl, io
print("before")
gpufl.init("app", "log"); gpufl.shutdown()
gpufl.generate_report()
print("after")
with contextlib.redirect_stdout(io.StringIO()) as text:
    gpufl.generate_report()
assert "engine Monitor" in text.getvalue()
""")
        lines = out.splitlines()
        self.assertEqual((lines[0], lines[-1], out.count("engine Monitor ·")), ("before", "after", 1), out)


if __name__ == "__main__":
    fixture.main()
