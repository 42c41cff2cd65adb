# SPDX-License-Identifier: Apache-2.0
"""A session with AMD code, and a look-alike of llvm-objdump."""
import shutil

from harness import SOURCE, TestCase, environment, gpufl

RECORDINGS = SOURCE / "tests/recordings/code_objects"


class AmdCodeTest(TestCase):
    def setUp(self):
        super().setUp()
        self.session = self.directory / "0192f300-0000-7000-8000-00000000032c"
        shutil.copytree(SOURCE / "tests/golden/amd_code", self.session)
        self.recorded = self.directory / "llvm-objdump"
        self.recorded.write_text(f"#!/bin/sh\ncat '{RECORDINGS}/listing.gfx90a.txt'\n")
        self.recorded.chmod(0o755)

    def environment(self, tool):
        return environment(GPUFL_LLVM_OBJDUMP=tool, XDG_CACHE_HOME=self.directory / "cache", PATH="/usr/bin:/bin")

    def disassemble(self, tool, code=0):
        result = gpufl("disassemble", self.session, env=self.environment(tool))
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result
