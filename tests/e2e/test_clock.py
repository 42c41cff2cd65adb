# SPDX-License-Identifier: Apache-2.0
"""The wall clock is changed while a program runs: the log has every step, and no time in the session depends on it."""
import json
import struct
import subprocess
import time

from harness import FAKE_APP, FAKES, GPUFL, TIMEOUT_S, Session, TestCase, environment, gpufl, main, sessions

STEPS_NS = (60_000_000_000, 500_000_000, 3_600_000_000_000)


class ClockSteps(TestCase):
    def wait_for(self, condition, what):
        end = time.monotonic() + TIMEOUT_S
        while not condition():
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.01)

    def lines(self, channel):
        """The lines of the one session so far."""
        found = sessions(self.directory / "log")
        file = found[0] / f"{channel}.log" if found else None
        return file.read_text().splitlines() if file and file.exists() else []

    def steps(self):
        records = [json.loads(line) for line in self.lines("system") if '"clock_sync"' in line and line.endswith("}")]
        return [record["wall_step_ns"] for record in records if record["wall_step_ns"]]

    def kernel_batches(self):
        return sum('"kernel_event_batch"' in line for line in self.lines("device"))

    def record(self):
        """The session of a program whose wall clock is changed three times, and how long the program really ran."""
        clock = self.directory / "clock"
        clock.write_bytes(bytes(8))
        env = environment(LD_PRELOAD=FAKES / "libclock.so", GPUFL_TEST_CLOCK_FILE=clock)
        command = [GPUFL, "trace", "-q", "-o", self.directory / "log", "--", FAKE_APP, "--scopes", "--pause-us", "1000",
                   "--until-input-ends", "--no-sync"]
        begun = time.monotonic()
        with subprocess.Popen([str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True, env=env) as process:
            self.wait_for(lambda: self.kernel_batches() > 1, "kernels")
            for count in range(1, len(STEPS_NS) + 1):
                with open(clock, "r+b") as file:
                    file.write(struct.pack("=q", sum(STEPS_NS[:count])))
                self.wait_for(lambda: len(self.steps()) == count, f"step {count} in the log")
                batches = self.kernel_batches()
                self.wait_for(lambda: self.kernel_batches() > batches + 1, "kernels after the step")
            process.stdin.close()
            self.assertEqual(process.wait(TIMEOUT_S), 0, process.stderr.read())
        return sessions(self.directory / "log")[0], time.monotonic() - begun

    def test_each_step_is_recorded_and_times_go_on_as_if_there_were_none(self):
        path, ran_s = self.record()
        for found, wanted in zip(self.steps(), STEPS_NS):
            self.assertLess(abs(found - wanted), 1_000_000)
        report = self.report(path)
        self.assertLess(report["session"]["wall_ns"], ran_s * 1e9)
        self.assertEqual(report["completeness"]["lost"], sum(
            loss["count"] for loss in report["completeness"]["losses"] if loss["reason"] == "still_running"))
        session = Session(path)
        start_ns = session.first("job_start")["ts_ns"]
        for row in session.rows("kernel_event_batch"):
            self.assertLessEqual(start_ns, row["time_ns"])
            self.assertLess(row["time_ns"] + row["duration_ns"], start_ns + ran_s * 1e9)
        for scope in report["scopes"]:
            self.assertLess(scope["wall_ns"], ran_s * 1e9)
        text = gpufl("report", path).stdout
        self.assertIn("the wall clock was set forward by 60.0 s after ", text)
        self.assertIn("all times are as if it had not been", text)

    def test_the_log_keeps_what_the_wall_clock_said(self):
        path, _ = self.record()
        readings = [json.loads(line) for line in (path / "system.log").read_text().splitlines() if '"clock_sync"' in line]
        ahead_ns = 0
        for reading in readings:
            ahead_ns += reading["wall_step_ns"]
            self.assertLess(abs(reading["wall_ns"] - reading["ts_ns"] - ahead_ns), 1000)
            self.assertGreater(reading["boot_ns"], 0)


if __name__ == "__main__":
    main()
