# SPDX-License-Identifier: Apache-2.0
"""Reports, the Monitor engine, recorded buffers and the demo."""
import json
import os
import pty
import re
import resource
import signal
import subprocess
import time

from harness import FAKE_APP, GPUFL, SOURCE, TIMEOUT_S, Session, TestCase, environment, gpufl, main, sessions

RECORDINGS = sorted((SOURCE / "tests" / "recordings").glob("*.cuptirec.zst"))
DEMO = SOURCE / "examples" / "recorded" / "h200-training"


def on_terminal(*arguments, env=None):
    """Standard output of gpufl on a terminal."""
    primary, secondary = pty.openpty()
    process = subprocess.Popen([GPUFL, *map(str, arguments)], stdout=secondary, env=env or environment())
    os.close(secondary)
    text = b""
    while True:
        try:
            part = os.read(primary, 65536)
        except OSError:
            break
        if not part:
            break
        text += part
    os.close(primary)
    process.wait(TIMEOUT_S)
    return text.decode()


class HostileNames(TestCase):
    def test_control_characters_in_a_file_name_do_not_reach_the_terminal(self):
        (self.directory / "\x1b]0;owned\x07x.device.log").write_text('{"type":"job_start"\n')
        text = gpufl("verify", self.directory).stdout
        self.assertIn("owned", text)
        self.assertEqual([char for char in text if char < " " and char != "\n"], [])


class Untimed(TestCase):
    def test_time_in_which_kernels_were_counted_is_not_called_idle(self):
        traced = self.trace("--launches", 200, "--copies", "--sync-every", 20, options=["--engine", "SassMetrics"])
        report = json.loads(gpufl("report", "--json", traced.sessions[0]).stdout)
        self.assertGreater(report["deep"]["untimed_launches"], 0)
        time_use, = report["time"]
        self.assertGreater(time_use["unknown_ns"], 0)
        for part in ("no_work_ns", "wait_sync_ns", "wait_launch_ns", "queued_ns"):
            self.assertEqual(time_use[part], 0, part)
        self.assertNotIn("no_work_queued", [insight["rule"] for insight in report["insights"]])
        self.assertIn("kernels counted, not timed", gpufl("report", traced.sessions[0]).stdout)


class NoSample(TestCase):
    """Hand-written PC sampling sessions without samples."""

    def stalls(self, *lines):
        session = self.directory / "0192f300-0000-7000-8000-000000000001"
        session.mkdir(exist_ok=True)
        start = {"version": 1, "type": "job_start", "session_id": session.name, "pid": 7, "app": "a", "ts_ns": 1000000,
                 "profiling_engine": "nvidia.pc_sampling", "devices": []}
        (session / "device.log").write_text("".join(json.dumps(line) + "\n" for line in (start, *lines)))
        return gpufl("report", session).stdout.split("STALLS", 1)[1].split("\n\n", 1)[0]

    def test_a_run_without_a_sample_gets_advice_to_sample_more_often(self):
        text = self.stalls()
        self.assertIn("no sample was taken", text)
        self.assertIn("a higher --pc-rate takes some", text)

    def test_a_run_whose_samples_were_lost_gets_advice_to_sample_less_often(self):
        for reason in ("pc_buffer_full", "pc_samples_dropped", "pc_samples_unread", "pc_table_full"):
            text = self.stalls({"version": 1, "type": "loss", "ts_ns": 2000000, "reason": reason,
                                "record_type": "profile_sample_batch", "count": 5})
            self.assertIn("all samples were lost", text)
            self.assertIn("a lower --pc-rate keeps some", text)
            self.assertNotIn("higher", text)

    def test_a_run_in_which_sampling_failed_reports_why_and_advises_no_rate(self):
        failed = {"version": 1, "type": "loss", "ts_ns": 2000000, "reason": "pc_sampling_failed",
                  "record_type": "profile_sample_batch", "count": 1}
        text = self.stalls({**failed, "cause": "process 7 (train) samples GPU 0 already"})
        self.assertIn("no sample could be taken", text)
        self.assertIn("process 7 (train) samples GPU 0 already", text)
        self.assertNotIn("--pc-rate", text)
        self.assertIn("no sample could be taken in", self.stalls(failed))
        taken_back = {"version": 1, "type": "capture_capabilities", "ts_ns": 3000000, "requested_engine": "PcSampling",
                      "selected_engine": "Trace", "capabilities": []}
        self.assertIn("no sample could be taken in", self.stalls(failed, taken_back))


class MissingData(TestCase):
    def setUp(self):
        super().setUp()
        self.path = self.trace("--launches", 6000).sessions[0]

    def assert_incomplete(self, kernels):
        completeness = self.report(self.path)["completeness"]
        self.assertEqual((completeness["is_complete"], completeness["lost_is_exact"], completeness["kernels"]),
                         (False, False, kernels))
        self.assertGreaterEqual(completeness["missing_rows"], 6000 - kernels)
        text = gpufl("report", self.path).stdout
        self.assertIn(f"incomplete: {kernels:,} kernels recorded, an unknown number of records lost", text)
        self.assertIn(f"kernel_event_batch: the shutdown record counts 6000 rows, but there are {kernels}",
                      " ".join(text.split()))
        self.assertNotIn("nothing lost", text)
        self.assertFalse(self.verify(self.path)["is_complete"])

    def test_a_channel_that_was_truncated_between_lines_is_not_complete(self):
        device = self.path / "device.log"
        lines = device.read_text().splitlines(keepends=True)
        batches = [number for number, line in enumerate(lines) if '"type":"kernel_event_batch"' in line]
        device.write_text("".join(lines[:batches[1]]))
        self.assert_incomplete(len(json.loads(lines[batches[0]])["rows"]))

    def test_a_missing_channel_is_not_complete(self):
        (self.path / "device.log").unlink()
        self.assert_incomplete(0)


class Report(TestCase):
    def setUp(self):
        super().setUp()
        self.traced = self.trace("--threads", 2, "--streams", 2, "--launches", 1000, "--copies", "--scopes",
                                 "--sync-every", 100)
        self.path = self.traced.sessions[0]

    def test_copies_that_cupti_refused_are_not_hidden_by_memsets(self):
        traced = self.trace("--launches", 200, "--copies", directory=self.directory / "refused",
                            env=environment(FAKE_FAULTS="fail=cuptiActivityEnable@2:999"))
        text = gpufl("report", traced.session.path).stdout
        self.assertIn(" memset ", text)
        self.assertIn("\n   other copies: not recorded (CUPTI refused this kind of record)\n", text)

    def test_json_agrees_with_the_counts(self):
        report = self.report(self.path)
        counts = self.traced.counts
        self.assertTrue(report["completeness"]["is_complete"])
        self.assertEqual(report["completeness"]["kernels"], counts["kernels"])
        self.assertEqual(sum(kernel["count"] for kernel in report["kernels"]), counts["kernels"])
        self.assertEqual(report["session"]["id"], self.path.name)
        rows = Session(self.path).rows("kernel_event_batch")
        self.assertEqual(sum(kernel["total_ns"] for kernel in report["kernels"]),
                         sum(row["duration_ns"] for row in rows))
        self.assertLessEqual(max(gpu["busy_ns"] for gpu in report["time"]), report["session"]["wall_ns"])

    def test_text_says_that_it_is_complete_and_fits_100_columns(self):
        result = gpufl("report", self.path)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn(f"complete: {self.traced.counts['kernels']:,} kernels recorded, 0 lost", result.stdout)
        self.assertLessEqual(max(map(len, result.stdout.splitlines())), 100)
        self.assertNotIn("\033[", result.stdout)

    def test_colour_only_on_a_terminal_and_not_with_no_color(self):
        self.assertIn("\033[", on_terminal("report", self.path))
        self.assertNotIn("\033[", on_terminal("report", self.path, env=environment(NO_COLOR="1")))
        self.assertNotIn("\033[", on_terminal("report", self.path, "--color", "never"))
        self.assertIn("\033[", gpufl("report", self.path, "--color", "always").stdout)

    def test_output_goes_to_a_file(self):
        target = self.directory / "report.txt"
        result = gpufl("report", self.path, "-o", target)
        self.assertEqual((result.returncode, result.stdout), (0, ""))
        self.assertEqual(target.read_text(), gpufl("report", self.path).stdout)
        result = gpufl("report", self.path, "-o", self.directory / "no" / "where")
        self.assertEqual(result.returncode, 3)
        self.assertIn("No such file or directory", result.stderr)

    def test_a_full_disk_leaves_no_file_and_takes_none_away(self):
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (16, 16))
        target = self.directory / "report.txt"
        for before in (None, "an older report"):
            if before:
                target.write_text(before)
            files = sorted(self.directory.iterdir())
            result = subprocess.run([GPUFL, "report", self.path, "-o", target], stderr=subprocess.PIPE, text=True,
                                    env=environment(), check=False, timeout=TIMEOUT_S, preexec_fn=limit)
            self.assertEqual(result.returncode, 3)
            self.assertEqual(result.stderr, f"gpufl report: cannot write to {target}: File too large\n")
            self.assertEqual(sorted(self.directory.iterdir()), files)
        self.assertEqual(target.read_text(), "an older report")

    def test_a_pipe_is_written_to_and_stays_one(self):
        result = gpufl("report", self.path, "-o", "/dev/stdout")
        self.assertEqual((result.returncode, result.stdout), (0, gpufl("report", self.path).stdout), result.stderr)

    def test_a_damaged_line_is_reported_with_its_place_and_the_rest_is_read(self):
        file = self.path / "device.log"
        lines = file.read_bytes().split(b"\n")
        target = next(i for i, line in enumerate(lines) if b"kernel_event_batch" in line)
        lines[target] = lines[target].replace(b"0", b"1", 1)
        file.write_bytes(b"\n".join(lines))
        result = gpufl("verify", self.path)
        self.assertEqual(result.returncode, 1)
        self.assertIn(f"device.log:{target + 1}: damaged line", result.stdout)
        self.assertEqual(gpufl("report", self.path).returncode, 0)

    def test_a_removed_line_is_reported_as_missing(self):
        file = self.path / "device.log"
        lines = file.read_bytes().split(b"\n")
        del lines[next(i for i, line in enumerate(lines) if b"kernel_event_batch" in line)]
        file.write_bytes(b"\n".join(lines))
        verdict = self.verify(self.path)
        self.assertFalse(verdict["is_complete"])
        self.assertIn("missing lines", [issue["kind"] for issue in verdict["issues"]])


class Monitor(TestCase):
    def test_monitor_samples_the_gpu_and_records_no_kernels(self):
        traced = self.trace("--run-ms", 300, options=["--engine", "Monitor", "--sample-ms", "10"])
        self.assert_whole(traced)
        session = traced.session
        self.assertEqual(session.rows("kernel_event_batch"), [])
        samples = session.rows("device_metric_batch")
        self.assertGreater(len(samples), 5)
        self.assertTrue(all(row["power_mw"] is None or row["power_mw"] > 0 for row in samples))
        self.assertTrue(session.rows("host_metric_batch"))
        self.assertEqual(gpufl("report", session.path).returncode, 0)

    def test_no_sampling_when_asked_for_none(self):
        traced = self.trace("--launches", 100, options=["--sample-ms", "0"])
        self.assert_whole(traced)
        self.assertEqual(traced.session.rows("device_metric_batch"), [])


class Live(TestCase):
    def test_a_session_is_readable_while_it_is_written(self):
        directory = self.directory / "log"
        command = [GPUFL, "trace", "-q", "-o", directory, "--", FAKE_APP, "--run-ms", "600000", "--sync-every", "10"]
        process = subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)
        while process.poll() is None and not list(directory.glob("*/device.log")):
            time.sleep(0.005)
        verdict = self.verify(sessions(directory)[0])
        self.assertTrue(verdict["is_live"])
        self.assertFalse(verdict["is_complete"])
        self.assertNotIn("damaged line", [issue["kind"] for issue in verdict["issues"]])
        self.assertTrue(gpufl("verify", directory).stdout.startswith("still being written: "))
        self.assertEqual(gpufl("report", directory).returncode, 0)
        result = gpufl("seal", directory)
        self.assertEqual(result.returncode, 3)
        self.assertIsNone(process.poll())


class Replay(TestCase):
    """tests/recordings/README.md lists the number of records of each kind in a recording. Waits are not recorded as
    activity records but as calls."""

    KINDS = {"CONCURRENT_KERNEL": "kernel_event_batch", "MEMCPY": "memcpy_event_batch", "MEMSET": "memset_event_batch",
             "MEMORY2": "memory_alloc_event_batch"}

    def test_recorded_buffers_of_a_real_gpu_are_read_to_the_last_record(self):
        table = (SOURCE / "tests" / "recordings" / "README.md").read_text()
        expected = {kind: int(re.search(rf"\| {name} \| ([\d,]+) \|", table).group(1).replace(",", ""))
                    for name, kind in self.KINDS.items()}
        self.assertEqual(len(RECORDINGS), 1)
        traced = self.trace("--launches", 1, env=environment(FAKE_REPLAY=RECORDINGS[0]), options=["--memory"])
        self.assertEqual(traced.returncode, 0, traced.stderr)
        # The calls of the program are not in the recording, and nothing else is missing.
        self.assertEqual({loss["reason"] for loss in traced.session.records("loss")}, {"call_unknown"})
        rows = self.verify(traced.sessions[0])["rows"]
        self.assertEqual({kind: rows.get(kind, 0) for kind in expected}, expected)
        self.assertEqual(gpufl("report", traced.sessions[0]).returncode, 0)


class Demo(TestCase):
    def test_without_a_gpu_the_demo_is_a_recording_and_says_so_first(self):
        result = gpufl("demo", env=environment(library_path=self.directory))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout.splitlines()[0],
                         r"^A recording, not this machine \(.*\): .* on NVIDIA H200, made on \d{4}-")
        self.assertIn("KERNELS", result.stdout)


if __name__ == "__main__":
    main()
