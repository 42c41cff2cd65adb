# SPDX-License-Identifier: Apache-2.0
"""gpufl diff on recorded sessions: its output and exit status."""
import json
import os

from harness import SOURCE, TestCase, gpufl, main

GOLDEN = os.path.join(SOURCE, "tests", "golden")


def session(name):
    return os.path.join(GOLDEN, name)


class Diff(TestCase):
    def test_a_session_does_not_differ_from_itself(self):
        for threshold in ("0", "5"):
            result = gpufl("diff", session("trace"), session("trace"), "--threshold", threshold)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn(" 0 regressions", result.stdout)

    def test_more_kernel_time_is_a_regression_and_less_is_not(self):
        worse = gpufl("diff", session("two_gpus"), session("trace"), "--allow-unrelated")
        self.assertEqual(worse.returncode, 1, worse.stderr)
        self.assertIn(" 1 regression ", worse.stdout)
        better = gpufl("diff", session("trace"), session("two_gpus"), "--allow-unrelated")
        self.assertEqual(better.returncode, 0, better.stderr)

    def test_json_holds_the_numbers_of_both_reports(self):
        answer = json.loads(gpufl("diff", session("two_gpus"), session("trace"), "--json", "--allow-unrelated").stdout)
        for side, name in (("base", "two_gpus"), ("new", "trace")):
            report = json.loads(gpufl("report", session(name), "--json").stdout)
            self.assertEqual(answer[side]["kernels"], report["completeness"]["kernels"])
            kernels = {kernel["name"]: kernel for kernel in report["kernels"]}
            compared = {row["name"]: row[side] for row in answer["kernels"] if row[side]}
            self.assertEqual(kernels.keys(), compared.keys())
            for kernel_name, row in compared.items():
                for key in ("count", "total_ns", "median_ns", "p90_ns", "p99_ns", "min_ns", "max_ns"):
                    self.assertEqual(row[key], kernels[kernel_name][key], (kernel_name, key))
        self.assertTrue(answer["is_total_regression"])

    def test_kernels_timed_on_one_side_only_give_no_verdict(self):
        for name, why in (("monitor", "not recorded (engine Monitor)"),
                          ("degraded", "not recorded (engine Monitor)"),
                          ("sass_metrics", "kernels were counted, not timed")):
            for side, sessions in (("new", ("trace", name)), ("base", (name, "trace"))):
                with self.subTest(session=name, side=side):
                    result = gpufl("diff", *map(session, sessions))
                    self.assertEqual(result.returncode, 3, result.stdout)
                    self.assertNotIn("0 ns", result.stdout)
                    self.assertNotIn("cutlass", result.stdout)
                    self.assertIn(f"{side}: {why}", result.stdout)
                    self.assertIn(f"no verdict: kernel times are missing ({side}: {why})", result.stderr)
                    self.assertIn("gpufl doctor", result.stderr)
                    self.assertEqual(result.stderr.count("\n"), 1, result.stderr)

    def test_json_has_null_where_kernels_were_not_timed(self):
        for name, why in (("monitor", "not recorded (engine Monitor)"),
                          ("sass_metrics", "kernels were counted, not timed")):
            result = gpufl("diff", session("trace"), session(name), "--json")
            answer = json.loads(result.stdout)
            self.assertEqual(result.returncode, 3)
            self.assertEqual(answer["new"]["kernel_times_missing"], why)
            self.assertIsNone(answer["base"]["kernel_times_missing"])
            self.assertGreater(answer["base"]["kernel_ns"], 0)
            for key in ("kernels", "kernel_ns", "busy_ns"):
                self.assertIsNone(answer["new"][key], key)
            self.assertIsNone(answer["regressions"])
            self.assertIsNone(answer["is_total_regression"])
            self.assertEqual(answer["kernels"], [])
            self.assertEqual({row["new"]["gpu_ns"] for row in answer["scopes"] if row["new"]} - {None}, set())

    def test_without_kernel_times_on_both_sides_scopes_alone_are_judged(self):
        counted = gpufl("diff", session("sass_metrics"), session("sass_metrics"))
        self.assertEqual(counted.returncode, 0, counted.stderr)
        self.assertIn("base and new: kernels were counted, not timed", counted.stdout)
        watched = gpufl("diff", session("monitor"), session("monitor"))
        self.assertEqual(watched.returncode, 3, watched.stdout)
        self.assertNotIn("0 ns", watched.stdout)
        either = gpufl("diff", session("monitor"), session("sass_metrics"))
        self.assertEqual(either.returncode, 3, either.stdout)
        self.assertIn("base: not recorded (engine Monitor); new: kernels were counted, not timed", either.stderr)

    def test_a_program_that_ran_no_kernel_any_more_does_not_pass(self):
        for side, sessions in (("new", ("trace", "empty")), ("base", ("empty", "trace"))):
            result = gpufl("diff", *map(session, sessions))
            self.assertEqual(result.returncode, 3, result.stdout)
            self.assertIn(f"no verdict: kernel times are missing ({side}: no kernel ran)", result.stderr)
            answer = json.loads(gpufl("diff", *map(session, sessions), "--json").stdout)
            self.assertEqual((answer["regressions"], answer[side]["kernels"]), (None, 0))
        both = gpufl("diff", session("empty"), session("empty"))
        self.assertEqual(both.returncode, 3, both.stdout)
        self.assertIn("(base and new: no kernel ran): compare sessions of programs that use the GPU", both.stderr)

    def test_an_incomplete_session_does_not_pass(self):
        for side, sessions in (("new", ("trace", "killed")), ("base", ("killed", "trace")),
                               ("base and new", ("killed", "killed"))):
            with self.subTest(side=side):
                result = gpufl("diff", *map(session, sessions), "--allow-unrelated")
                self.assertEqual(result.returncode, 3, result.stdout)
                self.assertIn("no verdict: a session is not complete", result.stdout)
                self.assertNotIn("0 regressions", result.stdout)
                self.assertIn(f"no verdict: {side} {'are' if ' ' in side else 'is'} not complete: ", result.stderr)
                self.assertIn("--allow-incomplete", result.stderr)
                answer = json.loads(gpufl("diff", *map(session, sessions), "--allow-unrelated", "--json").stdout)
                self.assertEqual((answer["no_verdict"], answer["regressions"]), ("incomplete", None))
        allowed = gpufl("diff", session("killed"), session("killed"), "--allow-incomplete")
        self.assertEqual(allowed.returncode, 0, allowed.stderr)
        self.assertIn(" 0 regressions", allowed.stdout)

    def test_two_unrelated_programs_do_not_pass(self):
        sessions = session("sync_loop"), session("launch_bound")
        result = gpufl("diff", *sessions)
        self.assertEqual(result.returncode, 3, result.stdout)
        self.assertIn("no verdict: the sessions are not comparable", result.stdout)
        self.assertIn("no verdict: the sessions are not comparable: the kernels in both take 0 % of the kernel time of base",
                      result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        answer = json.loads(gpufl("diff", *sessions, "--json").stdout)
        self.assertEqual((answer["no_verdict"], answer["regressions"]), ("not comparable", None))
        self.assertEqual((answer["base"]["common_share"], answer["new"]["common_share"]), (0, 0))
        allowed = gpufl("diff", *sessions, "--allow-unrelated", "--json")
        self.assertIsNone(json.loads(allowed.stdout)["no_verdict"])
        self.assertIn(allowed.returncode, (0, 1))

    def test_a_path_without_a_session_is_an_environment_error(self):
        result = gpufl("diff", session("trace"), session("no_such_session"))
        self.assertEqual(result.returncode, 3)
        self.assertTrue(result.stderr.startswith("gpufl diff: "), result.stderr)
        self.assertEqual(gpufl("diff", session("trace"), session("trace"), session("trace")).returncode, 2)


if __name__ == "__main__":
    main()
