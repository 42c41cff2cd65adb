# SPDX-License-Identifier: Apache-2.0
"""Sessions with code whose instructions were counted, and look-alikes of nvdisasm."""
from harness import SOURCE, TestCase, environment

CUBIN = SOURCE / "tests/recordings/cubins/vector_add.sm_90.cubin"
ENGINE = ["--engine", "SassMetrics"]
TEXTS = {0x00: "LDC R1, c[0x0][0x28]", 0x10: "S2R R0, SR_TID.X", 0xE0: "IMAD.WIDE R4, R9, 0x4, R4"}
LISTING = "\t.section\t.text.vector_add,\"ax\",@progbits\n" + "".join(
    f"        /*{pc:04x}*/                   {text} ;\n" for pc, text in TEXTS.items())


def fake_crc(cubin):
    """The CRC that the look-alike CUPTI returns for a cubin."""
    crc = 2166136261
    for byte in cubin:
        crc = (crc ^ byte) * 16777619 & 0xFFFFFFFF
    return crc


class CodeTest(TestCase):
    def setUp(self):
        super().setUp()
        self.cache = self.directory / "cache"
        self.crc = fake_crc(CUBIN.read_bytes())

    def tool(self, script):
        """A look-alike nvdisasm that runs the given shell code and counts its runs."""
        path = self.directory / "nvdisasm"
        path.write_text(f"#!/bin/sh\necho >> '{self.directory}/runs'\n{script}\n")
        path.chmod(0o755)
        return path

    def good_tool(self):
        listing = self.directory / "listing"
        listing.write_text(LISTING)
        return self.tool(f"cat '{listing}'")

    @property
    def tool_runs(self):
        runs = self.directory / "runs"
        return len(runs.read_text()) if runs.exists() else 0

    def environment(self, tool=None, **variables):
        """The environment with a tool; without one, the variables point to places that have no tool."""
        return environment(GPUFL_NVDISASM=tool, XDG_CACHE_HOME=self.cache, VIRTUAL_ENV=None, CONDA_PREFIX=None,
                           PATH="/nowhere" if tool is None else "/usr/bin:/bin", **variables)

    def counting(self, tool=None):
        """The environment of a machine that counts vector_add's first and hottest instructions."""
        recording = self.directory / "counts.sassrec"
        recording.write_text("sassrec 1\ncupti 130001\nmetric 0 smsp__sass_inst_executed\n"
                             f"function 0 {self.crc} 0 vector_add\n"
                             f"flush 2 1\nrecord 0 0 0:640\nrecord 0 {0xE0} 0:640\n")
        return self.environment(tool, FAKE_CUBIN=CUBIN, FAKE_SASS_RECORDING=recording)

    def record(self, *options, tool=None, launches=20):
        """Records a session that counts vector_add's first and hottest instructions; the log has its cubin, and its
        disassembly if there is a tool."""
        return self.trace("--launches", launches, options=[*ENGINE, *options, *([] if tool else ["--no-disassemble"])],
                          env=self.counting(tool))
