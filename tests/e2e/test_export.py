# SPDX-License-Identifier: Apache-2.0
"""gpufl export: each format is read by an independent reader and compared with the session's lines."""
import collections
import csv
import gzip
import io
import json
import os
import re
import resource
import shutil
import signal
import sqlite3
import subprocess

from harness import GPUFL, SOURCE, TestCase, Session, environment, gpufl, main, needs, run
from protobuf_reader import Message

GOLDEN = SOURCE / "tests" / "golden"


class ExportCase(TestCase):
    def export(self, session, name, *options):
        path = self.directory / name
        result = gpufl("export", session, "-o", path, *options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return path


class Traced(ExportCase):
    """A traced program with scopes, copies, waits and graphs in every format."""

    def setUp(self):
        super().setUp()
        self.traced = self.trace("--threads", 2, "--streams", 2, "--launches", 200, "--copies", "--graphs", "--scopes",
                                 "--sync-every", 50, options=("--graphs", "--sample-ms", "20"))
        self.assert_whole(self.traced)
        self.path = self.traced.sessions[0]
        self.log = Session(self.path)
        self.kernels = self.log.rows("kernel_event_batch")
        self.names = self.log.dictionary("kernel_dict")

    def by_name(self):
        totals = collections.Counter()
        for row in self.kernels:
            totals[self.names[row["kernel_id"]]] += row["duration_ns"]
        return totals

    def test_chrome_has_every_kernel_on_a_stream_and_an_arrow_to_it(self):
        trace = json.loads(self.export(self.path, "trace.json").read_text())
        events = trace["traceEvents"]
        start_ns = int(trace["otherData"]["start_ns"])
        found = sorted((round(event["ts"] * 1000) + start_ns, round(event["dur"] * 1000), event["name"])
                       for event in events if event.get("cat") == "kernel")
        self.assertEqual(found, sorted((row["time_ns"], row["duration_ns"], self.names[row["kernel_id"]])
                                       for row in self.kernels))
        # Every row has a name, and events in a row do not overlap.
        threads = {(event["pid"], event["tid"]) for event in events if event.get("ph") == "M" and "tid" in event}
        lanes = collections.defaultdict(list)
        for event in events:
            if event["ph"] == "X":
                self.assertIn((event["pid"], event["tid"]), threads)
                if event["cat"] in ("kernel", "copy", "memset"):
                    lanes[event["tid"]].append((round(event["ts"] * 1000), round(event["dur"] * 1000)))
        for lane in lanes.values():
            lane.sort()
            for (start, duration), (following, _) in zip(lane, lane[1:]):
                self.assertLessEqual(start + duration, following)
        starts = {event["id"]: event for event in events if event["ph"] == "s"}
        ends = {event["id"]: event for event in events if event["ph"] == "f"}
        self.assertEqual(sorted(starts), sorted(ends))
        self.assertGreater(len(starts), 300)
        for flow, begin in starts.items():
            self.assertLessEqual(begin["ts"], ends[flow]["ts"])
            self.assertEqual(begin["pid"], self.log.first("job_start")["pid"])
        arguments = next(event["args"] for event in events if event.get("cat") == "kernel")
        self.assertRegex(arguments["grid"], r"^\d+ x \d+ x \d+$")
        self.assertGreater(arguments["registers"], 0)
        self.assertTrue(any(event["ph"] == "C" and event["name"] == "power_mw" for event in events))

    def test_compressed_is_the_same(self):
        plain = self.export(self.path, "trace.json").read_bytes()
        self.assertEqual(gzip.decompress(self.export(self.path, "trace.json.gz").read_bytes()), plain)
        piped = subprocess.run([GPUFL, "export", self.path, "-f", "chrome", "-o", "-"], stdout=subprocess.PIPE,
                               env=environment(), check=True, timeout=600)
        self.assertEqual(piped.stdout, plain)

    def perfetto(self, session):
        """Replays begin and end events: slices as (start, end, name, track); tracks; flows; counters."""
        data = self.export(session, "trace.pftrace").read_bytes()
        packets = [Message(packet) for packet in Message(data).all(1)]
        names, tracks, open_slices = {}, {}, collections.defaultdict(list)
        slices, counters, flows = [], collections.defaultdict(list), collections.defaultdict(list)
        events = []
        for packet in packets:
            self.assertEqual(packet.one(10), 1)
            for table in packet.messages(12):
                for entry in table.messages(2):
                    self.assertNotIn(entry.one(1), names)
                    names[entry.one(1)] = entry.text(2)
            descriptor = packet.message(60)
            if descriptor:
                self.assertNotIn(descriptor.one(1), tracks)
                self.assertIn(descriptor.one(5, 0), tracks.keys() | {0}, "a parent comes before its children")
                tracks[descriptor.one(1)] = descriptor
            event = packet.message(11)
            if event:
                self.assertIn(event.one(11), tracks)
                events.append((packet.one(8), event))
        for time_ns, event in sorted(events, key=lambda pair: pair[0]):  # stable, as trace_processor sorts
            track = event.one(11)
            if event.one(9) == 1:
                name = names[event.one(10)] if event.one(10) else event.text(23)
                open_slices[track].append((time_ns, name))
                for flow in event.fixed64(47) + event.fixed64(48):
                    flows[flow].append(time_ns)
            elif event.one(9) == 2:
                begun_ns, name = open_slices[track].pop()
                slices.append((begun_ns, time_ns, name, track))
            elif event.one(9) == 4:
                counters[tracks[track].text(2)].append(event.signed(30))
        return packets, tracks, slices, flows, counters, open_slices

    def test_perfetto_has_every_kernel_with_its_flow(self):
        packets, tracks, slices, flows, counters, open_slices = self.perfetto(self.path)
        expected = collections.Counter((row["time_ns"], row["time_ns"] + row["duration_ns"],
                                        self.names[row["kernel_id"]]) for row in self.kernels)
        kernel_names = set(self.names.values())
        self.assertEqual(collections.Counter(one[:3] for one in slices if one[2] in kernel_names), expected)
        self.assertFalse(any(open_slices.values()))
        self.assertGreater(len(flows), 300)
        for times in flows.values():
            self.assertEqual(len(times), 2)
        clock = packets[0].message(6)
        self.assertEqual(clock.one(2), 1)  # CLOCK_REALTIME is the trace's
        self.assertIn("power_mw", counters)
        self.assertTrue(any(track.text(2, "").startswith("GPU 0 ") for track in tracks.values()))

    def test_sqlite_answers_with_the_same_sums(self):
        database = sqlite3.connect(self.export(self.path, "trace.sqlite"))
        self.addCleanup(database.close)
        self.assertEqual(database.execute("PRAGMA integrity_check").fetchone(), ("ok",))
        self.assertEqual(dict(database.execute("SELECT kernel, total_ns FROM kernel_summary")), dict(self.by_name()))
        self.assertEqual(database.execute("SELECT COUNT(*) FROM kernels_named WHERE kernel IS NULL").fetchone(), (0,))
        self.assertEqual(database.execute("SELECT SUM(bytes) FROM copies").fetchone()[0],
                         sum(row["bytes"] for row in self.log.rows("memcpy_event_batch")))
        self.assertEqual(database.execute("SELECT value FROM session WHERE key='session_id'").fetchone()[0],
                         self.path.name)
        paths = {path for path, in database.execute("SELECT path FROM scope_summary")}
        self.assertIn("thread_0|scope_0", paths)

    def test_sqlite_counts_the_kernels_of_a_scope_as_the_report_does(self):
        for session in (self.path, GOLDEN / "trace"):
            database = sqlite3.connect(self.export(session, session.name + ".sqlite"))
            self.addCleanup(database.close)
            rows = database.execute("SELECT path, kernels, kernels_self, IFNULL(kernel_ns, 0), IFNULL(kernel_self_ns, 0) "
                                    "FROM scope_summary")
            summed = {path.replace("|", " > "): tuple(numbers) for path, *numbers in rows}
            reported = {scope["path"]: (scope["kernels"], scope["kernels_self"], scope["gpu_ns"], scope["gpu_self_ns"])
                        for scope in self.report(session)["scopes"] if scope["calls"]}
            self.assertTrue(any(numbers[0] > numbers[1] for numbers in reported.values()))
            self.assertEqual(summed, reported)

    def test_csv_has_a_file_for_each_table_and_one_on_standard_output(self):
        directory = self.export(self.path, "tables", "--format", "csv")
        with open(directory / "kernels.csv", encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(sum(int(row["duration_ns"]) for row in rows), sum(self.by_name().values()))
        self.assertEqual({row["kernel"] for row in rows}, set(self.by_name()))
        one = gpufl("export", self.path, "-o", "-", "--table", "kernels")
        self.assertEqual(one.stdout, (directory / "kernels.csv").read_text())

    def test_pprof_sums_up_by_scope(self):
        profile = Message(gzip.decompress(self.export(self.path, "profile.pb.gz").read_bytes()))
        strings = [text.decode("utf-8") for text in profile.all(6)]
        self.assertEqual(strings[0], "")
        self.assertEqual([strings[entry.one(1)] for entry in profile.messages(1)], ["gpu_time", "executions"])
        functions = {entry.one(1): strings[entry.one(2)] for entry in profile.messages(5)}
        locations = {entry.one(1): functions[entry.message(4).one(1)] for entry in profile.messages(4)}
        totals, executions = collections.Counter(), collections.Counter()
        for sample in profile.messages(2):
            stack = [locations[identifier] for identifier in sample.packed(1)]
            values = sample.packed(2)
            totals[stack[0]] += values[0]
            executions[stack[0]] += values[1]
            if re.match(r"scope_\d", stack[0]):
                self.assertEqual(stack[1], stack[0].split("(")[0])  # a kernel in the scope of its name
        kernels = self.by_name()
        self.assertEqual({name: totals[name] for name in kernels}, dict(kernels))
        self.assertEqual(sum(executions[name] for name in kernels), len(self.kernels))

    @needs(shutil.which("go"), "go")
    def test_pprof_itself_reads_the_profile(self):
        path = self.export(self.path, "profile.pb.gz")
        result = run("go", "tool", "pprof", "-top", "-unit=ns", "-nodecount=1000", "-nodefraction=0", path)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("Type: gpu_time", result.stdout)
        flat = sum(int(value) for value in re.findall(r"(?m)^ *(\d+)ns +[\d.]+%", result.stdout))
        work = [row for kind in ("kernel", "memcpy", "memset") for row in self.log.rows(kind + "_event_batch")]
        self.assertEqual(flat, sum(row["duration_ns"] for row in work))

    def test_flame_graphs_agree_with_each_other(self):
        collapsed = collections.Counter()
        for line in self.export(self.path, "stacks.folded").read_text().splitlines():
            stack, weight = line.rsplit(" ", 1)
            collapsed[tuple(stack.split(";"))] += int(weight)
        document = json.loads(self.export(self.path, "stacks.speedscope.json").read_text())
        frames = [frame["name"] for frame in document["shared"]["frames"]]
        profile = document["profiles"][0]
        scoped = collections.Counter()
        for sample, weight in zip(profile["samples"], profile["weights"], strict=True):
            scoped[tuple(frames[index] for index in sample)] += weight
        self.assertEqual(scoped, collapsed)
        self.assertEqual(sum(collapsed.values()), profile["endValue"])

    def test_otlp_spans_lie_below_their_scopes(self):
        spans, metrics = {}, set()
        for line in self.export(self.path, "trace.jsonl").read_text().splitlines():
            message = json.loads(line)
            for resource in message.get("resourceSpans", []):
                for span in resource["scopeSpans"][0]["spans"]:
                    self.assertNotIn(span["spanId"], spans)
                    self.assertRegex(span["traceId"], r"^[0-9a-f]{32}$")
                    spans[span["spanId"]] = span
            for resource in message.get("resourceMetrics", []):
                metrics.update(metric["name"] for metric in resource["scopeMetrics"][0]["metrics"])
        kinds = collections.Counter()
        for span in spans.values():
            attributes = {entry["key"]: entry["value"] for entry in span["attributes"]}
            kind = attributes["gpufl.kind"]["stringValue"]
            kinds[kind] += 1
            if kind == "kernel" and "gpufl.scope" in attributes:
                parent = spans[span["parentSpanId"]]
                self.assertEqual(attributes["gpufl.scope"]["stringValue"].split("|")[-1], parent["name"])
            self.assertLessEqual(int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"]))
        self.assertEqual(kinds["kernel"], len(self.kernels))
        self.assertIn("gpufl.gpu.power_mw", metrics)

    def test_a_part_is_what_was_asked_for(self):
        rows = list(csv.DictReader(io.StringIO(gpufl("export", self.path, "-o", "-", "--table", "kernels",
                                                     "--scope", "thread_0|scope_0").stdout)))
        self.assertEqual({row["scope"] for row in rows}, {"thread_0|scope_0"})
        start_ns = self.log.first("job_start")["ts_ns"]
        times = sorted(row["time_ns"] for row in self.kernels)
        middle_ms = (times[len(times) // 2] - start_ns) / 1e6
        parts = [list(csv.DictReader(io.StringIO(gpufl("export", self.path, "-o", "-", "--table", "kernels", option,
                                                       f"{middle_ms:.6f}").stdout))) for option in ("--from", "--to")]
        for part in parts:
            self.assertTrue(0 < len(part) < len(self.kernels))
        self.assertGreaterEqual(sum(map(len, parts)), len(self.kernels))


class Names(ExportCase):
    """Hostile names, stacks, losses and unknown values."""

    def test_hostile_names_survive_every_format(self):
        session = GOLDEN / "hostile"
        expected = set()
        for line in (session / "device.log").read_text(errors="surrogatepass").splitlines():
            if '"dictionary_update"' in line:
                expected.update(json.loads(line).get("kernel_dict", {}).values())
        used = {event["name"] for event in json.loads(self.export(session, "a.json").read_text())["traceEvents"]
                if event.get("cat") == "kernel"} - {"(name not recorded)"}
        self.assertTrue(any(len(name) > 1000 for name in used))
        self.assertTrue(any("\n" in name for name in used))
        self.assertLessEqual(used, expected)
        database = sqlite3.connect(self.export(session, "a.sqlite"))
        self.addCleanup(database.close)
        stored = {name for name, in database.execute("SELECT DISTINCT kernel FROM kernels_named")} - {None}
        self.assertEqual(stored - {""}, used - {""})
        for line in self.export(session, "a.folded").read_text().splitlines():
            self.assertRegex(line, r"^[^\x00-\x1f\x7f]+ \d+$")
        Message(self.export(session, "a.pftrace").read_bytes())

    def test_a_formula_is_no_formula_in_csv(self):
        session = self.directory / "0192f300-0000-7000-8000-000000000001"
        session.mkdir()
        start = ('{"version":1,"type":"job_start","session_id":"s","pid":7,"app":"=cmd()","ts_ns":1000000,'
                 '"profiling_engine":"nvidia.trace","devices":[]}\n')
        (session / "device.log").write_text(start)
        table = gpufl("export", session, "-o", "-", "--table", "session").stdout
        self.assertIn("app,\"'=cmd()\"\n", table)

    def test_losses_are_exported(self):
        session = GOLDEN / "killed"
        losses = json.loads(self.export(session, "a.json").read_text())["otherData"]["losses"]
        self.assertEqual([loss["reason"] for loss in losses], ["buffer_pool_empty", "disk_full"])
        self.assertNotIn("count", losses[1])  # not known, so not there
        lines = self.export(session, "a.jsonl").read_text().splitlines()
        self.assertTrue(any("resourceLogs" in json.loads(line) for line in lines))
        text = gzip.decompress(self.export(session, "a.pb.gz").read_bytes())
        self.assertIn(b"buffer_pool_empty", text)
        packets = [Message(packet) for packet in Message(self.export(session, "a.pftrace").read_bytes()).all(1)]
        instants = [packet.message(11).text(23) for packet in packets if packet.one(11) and packet.message(11).one(9) == 3]
        self.assertEqual(instants, ["session", "lost records", "lost records"])
        # A scope that never ended has no end.
        events = json.loads((self.directory / "a.json").read_text())["traceEvents"]
        self.assertEqual([event["name"] for event in events if event["ph"] == "B"], ["solve"])

    def test_kernels_are_grouped_by_call_stack(self):
        traced = self.trace("--launches", 20, options=("--stacks",))
        session = traced.sessions[0]
        lines = self.export(session, "a.folded").read_text().splitlines()
        for line in lines:
            self.assertRegex(line, r";launch@[^;]*(app_work\.c:\d+|fake_app\+0x)[^;]*;cudaLaunchKernel@[^;]*;[^;]+ \d+$")
        for line in self.export(session, "b.folded", "--by", "scope").read_text().splitlines():
            self.assertNotIn(";", line)


class WrongUse(ExportCase):
    def check(self, arguments, code, text):
        result = gpufl("export", *arguments)
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertIn(text, result.stderr)

    def test_what_cannot_be_done_is_said(self):
        session = GOLDEN / "two_gpus"
        self.check([session], 2, "-o FILE is missing")
        self.check([session, "-o", self.directory / "train"], 2, "cannot tell the format")
        self.check([session, "-o", "-", "-f", "sqlite"], 2, "standard output")
        self.check([session, "-o", "-", "-f", "csv"], 2, "--table")
        self.check([session, "-o", self.directory / "all.csv"], 2, "a file holds one table")
        self.check([session, "-o", "-", "--table", "nonsense"], 2, "no table 'nonsense'; choose session, devices")
        self.check([session, "-o", "a.json", "--table", "kernels", "-f", "chrome"], 2, "--table goes with --format csv")
        self.check([session, "-o", "a.json", "--by", "scope"], 2, "--by goes with")
        self.check([session, "-o", "a.json", "--from", "soon"], 2, "takes milliseconds")
        self.check([session, "-o", "a.json", "--scope", "nothing"], 3, "no scope is named 'nothing'")
        self.check([self.directory / "nowhere", "-o", "a.json"], 3, "nowhere")
        for option in ("--from", "--to"):
            for time in ("-5", "1e300", "nan"):
                self.check([session, "-o", self.directory / "a.json", option, time], 2, f"{option} takes milliseconds")
        self.check([session, "-o", self.directory / "a.json", "--from", "10", "--to", "5"], 2,
                   "--from 10 is later than --to 5")
        (self.directory / "there.json").write_text("mine")
        for force in ([], ["--force"]):
            self.check([session, "-o", self.directory / "there.json", "-f", "csv", *force], 2,
                       "there.json is not a directory; --table NAME")
        self.check([session, "-o", self.directory / "there.json"], 3, "--force")
        self.check([session, "-o", self.directory], 2, "cannot tell")
        self.assertEqual((self.directory / "there.json").read_text(), "mine")
        self.assertEqual([path.name for path in self.directory.iterdir()], ["there.json"])

    def test_a_full_disk_is_reported_and_leaves_no_file(self):
        with open("/dev/full", "wb") as full:
            result = subprocess.run([GPUFL, "export", GOLDEN / "trace", "-f", "chrome", "-o", "-"], stdout=full,
                                    stderr=subprocess.PIPE, env=environment(), check=False, timeout=600)
        self.assertEqual(result.returncode, 3)
        self.assertIn(b"No space left on device", result.stderr)

        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (16384, 16384))
        for name in ("a.json", "a.pftrace", "a.sqlite", "a.jsonl"):
            result = subprocess.run([GPUFL, "export", GOLDEN / "launch_bound", "-o", self.directory / name],
                                    stderr=subprocess.PIPE, env=environment(), check=False, timeout=600, preexec_fn=limit)
            self.assertEqual(result.returncode, 3, name)
            self.assertRegex(result.stderr, b"too large|disk", name)
        self.assertEqual(list(self.directory.iterdir()), [])

    def test_a_pipe_or_device_is_written_to_and_never_replaced(self):
        pipe = self.directory / "pipe.json"
        os.mkfifo(pipe)
        with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE) as reader:
            try:
                result = gpufl("export", GOLDEN / "trace", "-o", pipe, "--force")
                text, _ = reader.communicate(timeout=600)
            finally:
                reader.kill()  # if nothing was ever written
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue(json.loads(text)["traceEvents"])
        self.assertTrue(pipe.is_fifo())
        self.check([GOLDEN / "trace", "-o", "/dev/stdout", "-f", "sqlite", "--force"], 2, "not a regular file")

    def test_an_ended_export_leaves_all_or_nothing(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            target = self.directory / f"{number}.json"
            with subprocess.Popen([GPUFL, "export", GOLDEN / "launch_bound", "-o", target], stderr=subprocess.PIPE,
                                  env=environment()) as process:
                while process.poll() is None and not list(self.directory.glob(f".{number}.json.*")):
                    pass
                process.send_signal(number)
                process.communicate(timeout=600)
            self.assertIn(process.returncode, (0, 128 + number))
            self.assertEqual(list(self.directory.glob(".*")), [])
            if target.exists():
                json.loads(target.read_text())


if __name__ == "__main__":
    main()
