# SPDX-License-Identifier: Apache-2.0
"""A session with AMD code: `gpufl disassemble` with this machine's llvm-objdump, and the report."""
import glob
import shutil
import subprocess

from amd_code_fixture import RECORDINGS, AmdCodeTest
from harness import FAKES, SOURCE, Session, TestCase, environment, gpufl, main, needs

# The kernels of fake_hip_app, mangled as HIP's are.
KERNELS = """__kernel void _Z5saxpyPf(__global float *x)
{
    x[__builtin_amdgcn_workitem_id_x()] *= 2.0f;
}

__kernel void _Z5scalePf(__global float *x)
{
    x[__builtin_amdgcn_workitem_id_x()] += 1.0f;
}
"""


def llvm_objdump():
    """The newest llvm-objdump on this machine that supports AMD; None if there is none."""
    for path in sorted(glob.glob("/usr/bin/llvm-objdump*"), reverse=True):
        result = subprocess.run([path, "--disassemble", "--mcpu=gfx90a", RECORDINGS / "kernels.gfx90a.co"],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        if result.returncode == 0 and "s_endpgm" in result.stdout:
            return path
    return None


def can_compile():
    """Whether this machine's clang builds for AMD's GPUs."""
    clang = shutil.which("clang") if shutil.which("ld.lld") else None
    return clang and "amdgcn" in subprocess.run([clang, "-print-targets"], capture_output=True, text=True, check=False).stdout


OBJDUMP = llvm_objdump()
OBJDUMP_NEED = "an llvm-objdump with AMD's targets (tools/setup.sh test installs one)"


class AmdCode(AmdCodeTest):
    def report(self, function):
        result = gpufl("report", "--code", function, "--color", "never", self.session,
                       env=dict(self.environment("/nowhere"), COLUMNS="100"))
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def assert_golden(self):
        for function in ("vector_add", "block_sum"):
            golden = (SOURCE / f"tests/golden/amd_code.{function}.txt").read_text()
            self.assertEqual([line.strip() for line in self.report(function).splitlines()],
                             [line.strip() for line in golden.splitlines()])

    @needs(OBJDUMP, OBJDUMP_NEED)
    def test_this_machines_tool_gives_the_session_its_text(self):
        self.assertIn("2 functions,", self.disassemble(OBJDUMP).stdout)
        self.assert_golden()
        self.assertTrue(self.verify(self.session)["is_complete"])

    def test_a_recorded_listing_gives_it_once(self):
        self.assertIn("2 functions,", self.disassemble(self.recorded).stdout)
        self.assertRegex(self.disassemble(self.recorded).stdout, "^nothing to disassemble: .*, 2 already disassembled\n$")
        listings = Session(self.session).records("cubin_disassembly")
        self.assertEqual([listing["tool"] for listing in listings], ["llvm-objdump"] * 2)
        first = next(listing for listing in listings if listing["function_name"] == "vector_add")["entries"][0]
        self.assertEqual(first, {"pc": 0, "sass": "s_load_dword s0, s[4:5], 0x18", "bytes": 8})
        self.assert_golden()

    def test_a_tool_that_is_not_there_is_named(self):
        self.assertIn("GPUFL_LLVM_OBJDUMP", self.disassemble("/nowhere/llvm-objdump", code=3).stderr)

    def test_a_tool_that_crashes_costs_the_text_alone(self):
        self.recorded.write_text("#!/bin/sh\necho broken >&2\nkill -6 $$\n")
        self.assertIn("broken", self.disassemble(self.recorded, code=1).stderr)
        self.assertIn("0xc0020002", self.report("vector_add"))


class Traced(TestCase):
    """End to end with this machine's compiler and disassembler and a look-alike rocprofiler."""

    def compile(self, target):
        source, code = self.directory / "kernels.cl", self.directory / "kernels.co"
        source.write_text(KERNELS)
        result = subprocess.run(["clang", "--target=amdgcn-amd-amdhsa", f"-mcpu={target}", "-nogpulib", "-g", "-O2", "-x", "cl",
                                 "-cl-std=CL2.0", source, "-o", code], capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        return source, code

    def trace_code(self, code, tool):
        rocm = FAKES / "rocm"
        env = environment(rocm, LD_LIBRARY_PATH=f"{rocm}:{FAKES / 'hip'}", ROCP_TOOL_LIBRARIES=None,
                          GPUFL_ROCPROFILER_PATH=rocm, GPUFL_LLVM_OBJDUMP=tool,
                          XDG_CACHE_HOME=self.directory / "cache")
        traced = self.trace("--launches", 6, "--code", code, options=["--engine", "Deep"], env=env,
                            app=FAKES / "fake_hip_app")
        self.assert_whole(traced)
        return traced

    @needs(OBJDUMP, OBJDUMP_NEED)
    @needs(can_compile(), "clang with AMD's targets, and lld (tools/setup.sh test installs them)")
    def test_a_traced_program_has_the_isa_of_its_kernels_with_lines_and_source(self):
        for target, expected in (("gfx90a", "waves of 64"), ("gfx1030", "waves of 32")):
            with self.subTest(target):
                source, code = self.compile(target)
                session = self.trace_code(code, OBJDUMP).sessions[-1]
                listings = Session(session).records("cubin_disassembly")
                self.assertEqual({listing["function_name"] for listing in listings}, {"_Z5saxpyPf", "_Z5scalePf"})
                report = gpufl("report", "--code", "saxpy", session, env=environment(GPUFL_LLVM_OBJDUMP="/nowhere"))
                self.assertEqual(report.returncode, 0, report.stderr)
                for words in ("saxpy(float*)", target, expected, "s_endpgm", f"{source.name}:3",
                              "x[__builtin_amdgcn_workitem_id_x()] *= 2.0f;"):
                    self.assertIn(words, report.stdout)


if __name__ == "__main__":
    main()
