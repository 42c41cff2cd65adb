# SPDX-License-Identifier: Apache-2.0
"""`gpufl cost` and `gpufl doctor --calibrate`: what recording costs a program, on the look-alike GPU."""
import json

from harness import FAKE_APP, TestCase, environment, gpufl, main, sessions, Session


class Calibration(TestCase):
    def setUp(self):
        super().setUp()
        self.file = self.directory / "cache" / "calibration.json"
        self.env = environment(GPUFL_CALIBRATION_FILE=self.file, TMPDIR=self.directory)

    def cost_record(self):
        self.assert_whole(self.trace("--launches", "10", env=self.env))
        newest = max(sessions(self.directory / "log"), key=lambda path: path.stat().st_mtime_ns)
        return Session(newest).records("overhead")[-1]["cupti_cost"]

    def test_sessions_use_the_calibration_of_their_host(self):
        self.assertTrue(self.cost_record()["is_default"])
        result = gpufl("doctor", "--calibrate", env=self.env)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"CUPTI's record of a kernel costs \d+ ns on the launching thread \(\d+ ns with cold caches\), \d+ ns on ")
        stored = json.loads(self.file.read_text())["calibrations"][0]
        self.assertEqual((stored["cuda_version"], stored["cupti_version"]), (13000, 130001))
        self.assertGreaterEqual(stored["host_cold_ns"], stored["host_ns"])
        self.assertGreater(stored["call_ns"], 0, "how long a launch took is known from the session")
        self.assertGreater(stored["call_cold_ns"], 0)
        # Another host's entry stays, this host's is replaced by the next calibration.
        self.file.write_text(json.dumps({"calibrations": [
            {**stored, "host_ns": 4321}, {**stored, "cpu": "another", "host_ns": 7}]}))
        costs = {name: value for name, value in stored.items() if name.endswith("_ns")}
        self.assertEqual(sorted(costs), ["call_cold_ns", "call_ns", "gpu_ns", "graph_node_ns", "host_cold_ns", "host_ns"])
        self.assertEqual(self.cost_record(), {**costs, "host_ns": 4321, "is_default": False})
        self.assertEqual(gpufl("doctor", "--calibrate", env=self.env).returncode, 0)
        entries = json.loads(self.file.read_text())["calibrations"]
        self.assertEqual([entry["cpu"] for entry in entries], [stored["cpu"], "another"])
        self.assertEqual(entries[1]["host_ns"], 7)

    def test_a_damaged_calibration_is_not_used(self):
        self.file.parent.mkdir()
        for text in ("", "{", "[]", '{"calibrations": 1}', '{"calibrations": [1, {"cpu": 1}, {"host_ns": -5}]}'):
            with self.subTest(text=text):
                self.file.write_text(text)
                self.assertTrue(self.cost_record()["is_default"])

    def test_without_a_gpu_it_says_why(self):
        result = gpufl("doctor", "--calibrate", env={**self.env, "FAKE_FAULTS": "no_device=1"})
        self.assertEqual(result.returncode, 3)
        self.assertIn("cannot calibrate: there is no usable GPU", result.stderr)
        self.assertEqual(list(self.directory.glob("gpufl-doctor-*")), [])


class Calls(TestCase):
    def calls(self, engine):
        self.assert_whole(self.trace("--launches", "40", options=["--engine", engine]))
        return Session(sessions(self.directory / "log")[-1]).records("overhead")[-1].get("calls")

    def test_calls_while_instructions_are_counted_are_reported_separately(self):
        calls = self.calls("SassMetrics")
        self.assertEqual([calls[state]["launches"] for state in ("plain", "sampled", "counted")], [0, 0, 40])
        self.assertGreater(calls["counted"]["calls_ns"], 0)
        self.assertIsNone(calls["plain"]["typical_ns"], "there is nothing to compare with")

    def test_calls_during_pc_sampling_are_reported_separately(self):
        calls = self.calls("PcSampling")
        self.assertEqual([calls[state]["launches"] for state in ("plain", "sampled", "counted")], [0, 40, 0])

    def test_a_trace_has_no_states_to_compare(self):
        self.assertIsNone(self.calls("Trace"))


class Cost(TestCase):
    def cost(self, *arguments):
        return gpufl("cost", *arguments, env=environment(TMPDIR=self.directory), cwd=self.directory)

    def test_a_program_is_run_alone_and_recorded_and_its_output_left_out(self):
        result = self.cost("--pairs", "2", "--json", "--", FAKE_APP, "--launches", "2000")
        self.assertEqual(result.returncode, 0, result.stderr)
        answer = json.loads(result.stdout)
        self.assertEqual((answer["engine"], answer["pairs"]), ("Trace", 2))
        self.assertGreater(answer["bare_s"], 0)
        self.assertGreater(answer["recorded_s"], 0)
        self.assertGreater(answer["estimate_fraction"], 0)
        self.assertIn("pair 2 of 2", result.stderr)
        self.assertEqual(list(self.directory.iterdir()), [], "nothing is left behind")

    def test_in_words(self):
        result = self.cost("--pairs", "1", "--engine", "Monitor", "--", FAKE_APP)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"recorded with Monitor .*\(medians of 1 pairs?\)\nslowed down by -?[0-9.]+ % ")

    def test_a_program_that_fails_gives_its_status(self):
        self.assertEqual(self.cost("--", FAKE_APP, "--exit", "7").returncode, 7)
        missing = self.cost("--", "/nonexistent/program")
        self.assertEqual(missing.returncode, 127)
        self.assertEqual(missing.stderr.count("\n"), 1, missing.stderr)


if __name__ == "__main__":
    main()
