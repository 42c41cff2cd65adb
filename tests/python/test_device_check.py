#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""tests/device/python_check.py, the check on a real GPU: its programs compile, its counts are right, and it fails when
it should."""
import fixture
import harness

CHECK = fixture.SOURCE / "tests" / "device"
# The check with programs for the look-alikes.
RUN = f"""
sys.path[:0] = [{str(CHECK)!r}]
import python_programs, scope_owner_check
for name, (_, text) in python_programs.PROGRAMS.items():
    compile(text, name, "exec")
for name, text in {{**scope_owner_check.PROGRAMS, **scope_owner_check.TRACED}}.items():
    compile(scope_owner_check.INIT + scope_owner_check.START + text, name, "exec")
PLACES = f"import sys\\nsys.path[:0] = {{sys.path[:4]!r}} + [{str(fixture.SOURCE / "tests/python/lookalike")!r}]\\n"
STEPS = '''
import torch
for _ in range(10):
    with gpufl.Scope("forward"):
        torch.linear()
        torch.relu()
    torch.backward()
torch._gpu.launch("gemm_kernel", {{}})
torch.cuda.synchronize()
'''
TRACED = "import gpufl, torch\\ntorch.cuda.synchronize()"
def program(unnamed):
    return PLACES + python_programs.START + STEPS.format(unnamed) + python_programs.END
python_programs.PROGRAMS = {{"train": ("json", program(0)), "train_late": ("json", program(2)),
                            "turns": ("json", "raise SystemExit(3)"), "triton": ("no_such_module", ""),
                            "traced": ("json", PLACES + TRACED + STEPS.format(0))}}
import python_check
sys.argv[1:] = ["checked", *sys.argv[1:]]
sys.exit(python_check.main())
"""


class DeviceCheck(fixture.TestCase):
    def test_it_counts_kernels_with_an_operator_and_names_what_failed(self):
        result = self.program(RUN)
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        for line in (r"train +autograd thread +20 of 20 +100.00%", r"train +forward +20 of 20 +100.00%",
                     r"train_late +outside of scopes +0 of 2 +0.00%", r"train_late +FAILED: only 95.24% of kernels",
                     r"traced +forward +20 of 20 +100.00%", r"turns +FAILED: exit 3",
                     r"triton +skipped, there is no no_such_module", r"python_check: 2 checks failed"):
            self.assertRegex(result.stdout, line)
        self.assertNotRegex(result.stdout, r"train +FAILED")

    def test_a_part_that_fails_is_reported(self):
        result = harness.run("/usr/bin/python3", "-B", CHECK / "cupti_python_check.py", "activity",
                             env=harness.environment(PYTHONPATH=""), cwd=self.directory)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertRegex(result.stdout, r"activity +FAILED, exit 1 .*\n")
        self.assertIn("cupti_python_check: 1 parts failed", result.stdout)


if __name__ == "__main__":
    fixture.main()
