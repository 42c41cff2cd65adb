# SPDX-License-Identifier: Apache-2.0
"""gpufl diff on recorded sessions: what it says and how it ends."""
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

    def test_more_kernel_time_is_a_regression_and_less_is_none(self):
        worse = gpufl("diff", session("two_gpus"), session("trace"))
        self.assertEqual(worse.returncode, 1, worse.stderr)
        self.assertIn(" 1 regression ", worse.stdout)
        better = gpufl("diff", session("trace"), session("two_gpus"))
        self.assertEqual(better.returncode, 0, better.stderr)

    def test_json_holds_the_numbers_of_both_reports(self):
        answer = json.loads(gpufl("diff", session("two_gpus"), session("trace"), "--json").stdout)
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

    def test_what_is_no_session_is_an_error_of_the_environment(self):
        result = gpufl("diff", session("trace"), session("no_such_session"))
        self.assertEqual(result.returncode, 3)
        self.assertTrue(result.stderr.startswith("gpufl diff: "), result.stderr)
        self.assertEqual(gpufl("diff", session("trace")).returncode, 2)


if __name__ == "__main__":
    main()
