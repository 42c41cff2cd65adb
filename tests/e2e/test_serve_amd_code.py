# SPDX-License-Identifier: Apache-2.0
"""A server without llvm-objdump shows AMD code with the disassembly stored in the session."""
from amd_code_fixture import AmdCodeTest
from harness import gpufl, main
from serve_process import Serve


class ServedIsa(AmdCodeTest):
    def test_a_server_shows_isa_and_what_the_kernel_takes(self):
        self.disassemble(self.recorded)
        with Serve(self.directory / "data") as server:
            result = gpufl("upload", self.session, "--server", server.url)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            base = f"/api/v1/sessions/{self.session.name}/code"
            functions = server.get(base)["functions"]
            self.assertEqual([(entry["symbol"], entry["language"], entry["function_id"]) for entry in functions],
                             [("block_sum", "ISA", None), ("vector_add", "ISA", None)])
            code = server.get(f"{base}/block_sum")
            self.assertEqual(code["resources"], {
                "arch": "gfx90a:sramecc+:xnack-", "vgprs": 4, "agprs": None, "sgprs": 10, "vgpr_spills": 0,
                "sgpr_spills": 0, "lds_bytes": 1024, "scratch_bytes": 0, "wave_size": 64, "work_group_size": 256,
                "waves_per_simd": 8, "waves_per_simd_max": 8, "limiter": "none", "occupancy_problem": None})
            self.assertEqual(code["instructions"][0]["word"], "0xc00a0002 0x00000000")
            self.assertEqual(code["instructions"][1]["pc"], 8)
            self.assertFalse(any(entry["is_raw"] for entry in code["instructions"]))
            self.assertEqual(code["instructions"][1]["file"], "/kernels/kernels.cl")


if __name__ == "__main__":
    main()
