# SPDX-License-Identifier: Apache-2.0
"""A process that records one session after the other keeps nothing of those that ended."""
import pathlib
import re
import subprocess

from harness import BUILD, FAKES, SOURCE, TestCase, environment, gpufl, main, run, sessions

PROGRAM = pathlib.Path(__file__).with_name("many_sessions.c")
ENGINES = {"Monitor": 1, "Trace": 2, "PcSampling": 3, "SassMetrics": 4}
WARM_UP, COUNT, GROWTH_KIB = 10, 40, 4096


class ManySessions(TestCase):
    def test_descriptors_threads_and_memory_stay_as_they_are(self):
        program = self.directory / "many_sessions"
        subprocess.run(["gcc", "-D_GNU_SOURCE", "-I", SOURCE / "include", PROGRAM, "-o", program, "-L", BUILD / "lib", "-lgpufl",
                        "-L", FAKES, "-lcudart", f"-Wl,-rpath,{BUILD / 'lib'}:{FAKES}"], check=True)
        # Waits for the last samples are bounded by the session's end; here they may take as long as they need.
        env = environment(GPUFL_EXIT_TIMEOUT_MS=600000)
        for engine, number in ENGINES.items():
            with self.subTest(engine):
                log = self.directory / engine
                result = run(program, log, number, COUNT, env=env)
                self.assertEqual(result.returncode, 0, result.stderr)
                found = re.findall(r"descriptors (\d+) threads (\d+) resident (\d+) KiB", result.stdout)
                after = [tuple(map(int, numbers)) for numbers in found[WARM_UP:]]
                self.assertEqual(len(after), COUNT - WARM_UP)
                self.assertEqual({(descriptors, threads) for descriptors, threads, _ in after}, {after[0][:2]})
                # The least of several: how much the allocator holds at one moment depends on its threads.
                early, late = (min(resident for *_, resident in part) for part in (after[:15], after[15:]))
                self.assertLess(late - early, GROWTH_KIB)
                self.assertEqual(len(sessions(log)), COUNT)
                self.assertEqual(gpufl("verify", sessions(log)[-1]).returncode, 0)


if __name__ == "__main__":
    main()
