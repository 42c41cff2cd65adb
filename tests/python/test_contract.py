#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The public contract: documented programs, as they are written, run with the fake GPU and leave what they promise."""
import fixture
import harness
from documented_programs import (ANALYZER, CORE, DATA_FRAMES, LOOP, NO_BACKEND, REPORT, SCOPES, SWITCHED_OFF,
                                 VISUALIZATION)

IMPORT = "import gpufl as gfl\n"

# What the documented programs take for granted.
FRAMEWORK = """
from fake_cuda import Gpu
gpu = Gpu("forward_kernel", "backward_kernel", "matmul_kernel")
gpu.wait()
input = A = B = C = bpg = tpb = None
def model(value):
    gpu.launch("forward_kernel", 3)
class loss:
    @staticmethod
    def backward():
        gpu.launch("backward_kernel", 2)
class matmul_kernel:
    def __class_getitem__(cls, launch):
        return lambda *matrices: gpu.launch("matmul_kernel")
"""

RECORD_MY_APP = FRAMEWORK + """
import gpufl
gpufl.init(app_name="my_app", log_path="log", profiling_engine=gpufl.ProfilingEngine.Trace)
with gpufl.Scope("step"):
    model(input)
gpu.wait()
gpufl.shutdown()
"""


class Contract(fixture.TestCase):
    def test_the_core_functions_record_a_session_below_the_app_name(self):
        session = self.recorded(CORE, log_path="my_app")
        self.assertEqual(session.first("job_start")["app"], "my_app")
        self.assertIn("phase_name", session.dictionary("scope_name_dict").values())
        self.assertTrue(session.rows("device_metric_batch"))

    def test_a_disabled_init_returns_false_and_leaves_nothing(self):
        out = self.output(IMPORT + SWITCHED_OFF + """
print(gfl.init(app_name="my_app", enabled=False))
with gfl.Scope("x"): pass
for i in gfl.Scope("x", repeat=2): pass
gfl.system_start("s"); gfl.system_stop("s")
result = gfl.upload_logs(backend_url="http://127.0.0.1:1")
print(result.success, result.events_uploaded)
gfl.shutdown()
""")
        self.assertEqual(out, "False\nTrue 0\n")
        self.assertEqual([path.name for path in self.directory.iterdir()], ["program.py"])

    def test_gpufl_disabled_wins_over_the_keyword(self):
        for word in ("1", "true", "YES", "On"):
            out = self.output('import gpufl\nprint(gpufl.init(app_name="my_app", enabled=True))', GPUFL_DISABLED=word)
            self.assertEqual(out, "False\n", word)
        self.assertEqual([path.name for path in self.directory.iterdir()], ["program.py"])

    def test_the_backend_none_has_a_name_that_python_can_write(self):
        self.recorded(IMPORT + NO_BACKEND, log_path="m")
        out = self.output('import gpufl\nprint(gpufl.BackendKind.None_ is gpufl.BackendKind["None"],'
                          ' getattr(gpufl.BackendKind, "None") is gpufl.BackendKind.None_)')
        self.assertEqual(out, "True True\n")

    def test_kernels_belong_to_the_scope_they_were_launched_in_and_tags_are_kept(self):
        session = self.recorded(FRAMEWORK + SCOPES.replace("gpufl.shutdown()", "gpu.wait()\ngpufl.shutdown()"), "logs")
        names, kernels = session.dictionary("scope_name_dict"), session.dictionary("kernel_dict")
        begins = {row["scope_instance_id"]: row for row in session.rows("scope_event_batch") if row["event_type"] == 0}
        found = sorted((kernels[row["kernel_id"]], names[begins[row["scope_id"]]["name_id"]])
                       for row in session.rows("kernel_event_batch"))
        self.assertEqual(found, [("backward_kernel", "backward_pass")] * 2 + [("forward_kernel", "forward_pass")] * 3)
        tags = {names[row["name_id"]]: session.dictionary("tag_dict").get(row["tag_id"]) for row in begins.values()}
        self.assertEqual(tags, {"forward_pass": None, "backward_pass": "batch_42"})

    def test_the_documented_program_runs_as_it_is_written(self):
        self.output(FRAMEWORK + SCOPES)
        self.assertEqual(len(harness.sessions(self.directory / "logs")), 1)

    def test_a_benchmark_loop_warms_up_outside_of_its_scope(self):
        text = FRAMEWORK + """
import gpufl
gpufl.init(app_name="bench", log_path="log", profiling_engine=gpufl.ProfilingEngine.Trace)
""" + LOOP + """
gpu.wait()
gpufl.shutdown()
print([i for i in gpufl.Scope("again", repeat=4, warmup=2)])
"""
        self.assertEqual(self.output(text), "[-2, -1, 0, 1, 2, 3]\n")
        session = harness.Session(harness.sessions(self.directory / "log")[0])
        begin = [row for row in session.rows("scope_event_batch") if row["event_type"] == 0]
        self.assertEqual([(row["repeat"], row["warmup"]) for row in begin], [(10, 3)])
        scopes = [row["scope_id"] for row in session.rows("kernel_event_batch")]
        self.assertEqual(sorted(scope == begin[0]["scope_instance_id"] for scope in scopes), [False] * 3 + [True] * 10)

    def test_the_analyzer_prints_and_has_its_data_frames(self):
        self.output(RECORD_MY_APP)
        out = self.output('log_dir = "log"\n' + ANALYZER + f"""
print([type(getattr(session, name)).__name__ for name in {DATA_FRAMES!r}])
print(len(session.kernels), session.kernels.scope.unique().tolist())
""")
        self.assertIn("WHERE THE TIME WENT", out)
        self.assertIn("forward_kernel", out)
        self.assertIn("no stall samples", out)
        self.assertIn(str(["DataFrame"] * len(DATA_FRAMES)), out)
        self.assertIn("3 ['step']", out)

    def test_reports_are_text_files_and_strings(self):
        self.output(RECORD_MY_APP)
        out = self.output('log_dir = "log"\n' + REPORT + "print(text == open('report.txt').read())")
        self.assertIn("KERNELS", out)
        self.assertTrue(out.endswith("True\n"))

    def test_the_pictures_of_the_last_session_are_shown(self):
        self.output(FRAMEWORK + SCOPES)
        self.output(VISUALIZATION + "viz.show().savefig('shown.png')", MPLBACKEND="Agg")
        self.assertGreater((self.directory / "shown.png").stat().st_size, 10_000)

    def test_generate_report_prints_the_last_session(self):
        out = self.output(RECORD_MY_APP + "gpufl.generate_report()\ngpufl.generate_report('own.txt')")
        self.assertIn("my_app · pid", out)
        self.assertEqual((self.directory / "own.txt").read_text(), out)


if __name__ == "__main__":
    fixture.main()
