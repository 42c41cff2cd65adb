# SPDX-License-Identifier: Apache-2.0
"""HIP programs without rocprofiler-sdk, or with it in another directory: HIP is linked to librocprofiler-register,
which aborts the program if a tool is set and rocprofiler-sdk cannot be loaded."""
from harness import BUILD, FAKES, RECORDER, Session, TestCase, environment, gpufl, main, run, sessions

HIP_APP = FAKES / "fake_hip_app"
HIP = FAKES / "hip"
ROCM = FAKES / "rocm"
SDK = ROCM / "librocprofiler-sdk.so.1"
LIBRARY = BUILD / "lib" / "libgpufl.so"


def hip_only(*library_path, **variables):
    """A machine with HIP, without rocprofiler-sdk on the loader's path."""
    names = ("ROCP_TOOL_LIBRARIES", "ROCPROFILER_REGISTER_LIBRARY", "ROCPROFILER_REGISTER_FORCE_LOAD", "ROCM_PATH")
    return environment(ROCM, LD_LIBRARY_PATH=":".join(map(str, (*library_path, HIP))),
                       **{name: variables.pop(name, None) for name in names}, **variables)


class Lookup(TestCase):
    def variables(self, env):
        """What `gpufl trace` adds to the program's environment for rocprofiler."""
        result = gpufl("trace", "-q", "-o", self.directory / "log", "--", "/usr/bin/env", env=env)
        found = dict(line.split("=", 1) for line in result.stdout.splitlines() if line.startswith("ROCP"))
        return {name: value for name, value in found.items() if env.get(name) != value}

    def hip(self, env, directory=None):
        return self.trace("--launches", 4, env=env, app=HIP_APP, directory=directory)

    def assert_recorded(self, env, directory=None):
        traced = self.hip(env, directory)
        self.assert_whole(traced)
        self.assertEqual(len(traced.session.rows("kernel_event_batch")), 4)

    def assert_runs_bare(self, env):
        traced = self.hip(env)
        self.assertEqual((traced.returncode, traced.counts["kernels"], traced.sessions), (0, 4, []), traced.stderr)
        self.assertEqual(self.variables(env), {})

    def test_without_rocprofiler_sdk_the_program_runs_and_no_tool_is_named(self):
        self.assert_runs_bare(hip_only())

    def test_the_look_alike_aborts_as_the_real_one_does(self):
        result = run(HIP_APP, env=hip_only(ROCP_TOOL_LIBRARIES=RECORDER))
        self.assertEqual(result.returncode, -6)
        self.assertIn("rocprofiler_set_api_table not found. Tried to dlopen librocprofiler-sdk.so", result.stderr)

    def test_a_library_on_the_loaders_path_needs_no_other_variable(self):
        env = hip_only(ROCM)
        self.assertEqual(list(self.variables(env)), ["ROCP_TOOL_LIBRARIES"])
        self.assert_recorded(env)

    def test_a_library_elsewhere_is_named_for_hip(self):
        root = self.directory / "rocm"
        root.mkdir()
        (root / "lib").symlink_to(ROCM)
        choices = (("GPUFL_ROCPROFILER_PATH", ROCM), ("GPUFL_ROCPROFILER_PATH", SDK), ("ROCM_PATH", root))
        for number, (name, value) in enumerate(choices):
            with self.subTest(name=name, value=value):
                env = hip_only(**{name: value})
                self.assertEqual(self.variables(env)["ROCPROFILER_REGISTER_LIBRARY"], str(SDK.resolve()))
                self.assert_recorded(env, self.directory / f"log_{number}")

    def test_the_users_choice_of_library_stays(self):
        env = hip_only(ROCPROFILER_REGISTER_LIBRARY=SDK)
        self.assertEqual(list(self.variables(env)), ["ROCP_TOOL_LIBRARIES"])
        self.assert_recorded(env)

    def test_a_library_that_hip_cannot_use_is_not_used(self):
        directory = self.directory / "other"
        directory.mkdir()
        (directory / "librocprofiler-sdk.so").symlink_to(FAKES / "libprobe_inject.so")
        self.assert_runs_bare(hip_only(directory))

    def test_a_file_that_is_not_a_library_is_not_used(self):
        directory = self.directory / "other"
        directory.mkdir()
        (directory / "librocprofiler-sdk.so").write_text("not a library")
        self.assert_runs_bare(hip_only(directory))

    def test_a_program_that_aborts_by_itself_gets_no_tool(self):
        env = hip_only(ROCPROFILER_REGISTER_LIBRARY="/nonexistent/librocprofiler-sdk.so")
        self.assertEqual(run(HIP_APP, env=env).returncode, -6)
        self.assertEqual(self.variables(env), {})

    def init(self, env):
        directory = self.directory / "own"
        result = run(HIP_APP, "--gpufl", LIBRARY, "--init", "before", "--launches", 4,
                     env=dict(env, GPUFL_LOG_DIR=str(directory), GPUFL_PROFILING_ENGINE="Trace"))
        self.assertEqual(result.returncode, 0, result.stderr)
        session, = sessions(directory)
        return Session(session)

    def test_gpufl_init_lets_hip_find_the_library_that_gpufl_found(self):
        session = self.init(hip_only(GPUFL_ROCPROFILER_PATH=ROCM))
        self.assertEqual(len(session.rows("kernel_event_batch")), 4)

    def test_gpufl_init_without_rocprofiler_sdk_leaves_hip_alone(self):
        session = self.init(hip_only())
        self.assertIn("librocprofiler-sdk.so was not found", session.capabilities()["amd_trace"]["message"])

    def test_two_libraries_are_not_mixed(self):
        session = self.init(hip_only(GPUFL_ROCPROFILER_PATH=ROCM,
                                     ROCPROFILER_REGISTER_LIBRARY=FAKES / "rocm6" / "librocprofiler-sdk.so.0"))
        self.assertIn("ROCPROFILER_REGISTER_LIBRARY names", session.capabilities()["amd_trace"]["message"])


if __name__ == "__main__":
    main()
