#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""gpufl.analyzer: every row and type against the files, and what directories of all kinds lead to."""
import contextlib
import io
import json
import os
import shutil
import warnings

import fixture
import harness
import numpy
import pandas
from gpufl.analyzer import GpuFlightSession
from gpufl.report import HtmlReport, TextReport, generate_report


def golden(name):
    return GpuFlightSession(fixture.GOLDEN / name)


def printed(call, *args, **kwargs):
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        call(*args, **kwargs)
    return text.getvalue()


class Frames(fixture.TestCase):
    def test_kernels_hold_what_the_files_hold(self):
        frame, files = golden("trace").kernels, harness.Session(fixture.GOLDEN / "trace")
        rows = sorted(files.rows("kernel_event_batch"), key=lambda row: row["time_ns"])
        names, launches = files.dictionary("kernel_dict"), {}
        for row in files.rows("launch_config_batch"):
            launches[row["launch_id"]] = row
        self.assertEqual(frame.start_ns.tolist(), [row["time_ns"] for row in rows])
        self.assertEqual(frame.duration_ns.tolist(), [row["duration_ns"] for row in rows])
        self.assertEqual(frame.name.tolist(), [names[row["kernel_id"]] for row in rows])
        self.assertEqual(frame.corr_id.tolist(), [row["corr_id"] for row in rows])
        self.assertEqual(frame.stream_id.tolist(), [row["stream_id"] for row in rows])
        self.assertEqual(frame.thread_id.tolist(), [row["thread_id"] for row in rows])
        self.assertEqual(frame.api_start_ns.tolist(), [row["time_ns"] - row["api_lead_ns"] for row in rows])
        configs = [launches[row["launch_id"]] for row in rows]
        self.assertEqual(frame.grid.tolist(), ["{grid_x},{grid_y},{grid_z}".format(**config) for config in configs])
        self.assertEqual(frame.num_regs.tolist(), [config["num_regs"] for config in configs])
        numpy.testing.assert_allclose(frame.occupancy, [config["occupancy_bp"] / 1e4 for config in configs])

    def test_scopes_of_kernels_are_rows_of_scope_events(self):
        session = golden("trace")
        known = session.kernels[session.kernels.scope_row.notna()]
        events = session.scope_events.iloc[known.scope_row.astype("int64")]
        self.assertEqual(events.path.astype(str).tolist(), known.scope.astype(str).tolist())
        self.assertEqual(set(session.scope_events.name), {"epoch", "forward", "backward"})
        self.assertEqual(session.scope_events.set_index("name").tag.dropna().to_dict(), {"forward": "bf16"})
        self.assertTrue(session.kernels.scope[session.kernels.scope_row.isna()].isna().all())

    def test_columns_have_their_types_in_every_session_also_without_rows(self):
        kinds = {}
        for path in fixture.GOLDEN_SESSIONS:
            session = GpuFlightSession(path)
            for name in session.table_names():
                frame = getattr(session, name)
                self.assertEqual(len(frame), len(session.table(name)))
                for column, kind in frame.dtypes.items():
                    kinds.setdefault((name, column), set()).add(str(kind))
        for place, found in kinds.items():
            self.assertEqual(len(found), 1, (place, found))
        for place, kind in {("kernels", "name"): "category", ("kernels", "start_ns"): "int64",
                            ("kernels", "duration_ns"): "int64", ("kernels", "api_start_ns"): "Int64",
                            ("memcpy", "bytes"): "uint64", ("memcpy", "is_async"): "boolean",
                            ("scope_events", "end_ns"): "Int64", ("perf", "value"): "float64"}.items():
            self.assertEqual(kinds[place], {kind})

    def test_unknown_is_never_zero(self):
        kernels = golden("v1").kernels
        self.assertTrue(kernels.thread_id.isna().all())
        self.assertTrue(kernels.api_start_ns.isna().all())
        self.assertTrue(golden("trace").kernels.graph_id.isna().all())
        open_scope = golden("killed").scope_events
        self.assertTrue(open_scope.end_ns.isna().any() and open_scope.duration_ns.isna().any())

    def test_other_tables_hold_what_the_files_hold(self):
        session, files = golden("trace"), harness.Session(fixture.GOLDEN / "trace")
        words = {"copy_kind", "sync_type", "memory_kind", "memory_op", "src_kind", "dst_kind"}
        for table, batch in (("memcpy", "memcpy_event_batch"), ("memsets", "memset_event_batch"),
                             ("graphs", "graph_launch_batch"),
                             ("syncs", "synchronization_event_batch"), ("allocs", "memory_alloc_event_batch"),
                             ("device_metrics", "device_metric_batch"), ("host_metrics", "host_metric_batch")):
            rows = sorted(files.rows(batch), key=lambda row: row["time_ns"])
            frame = getattr(session, table)
            self.assertEqual(len(frame), len(rows), table)
            for column in set(frame.columns) & set(rows[0]) - words:
                found = [None if pandas.isna(value) else int(value) for value in frame[column]]
                wanted = [row[column] for row in rows]
                if column == "graph_id":
                    wanted = [value or None for value in wanted]
                self.assertEqual(found, wanted, (table, column))
        self.assertEqual(session.memcpy.copy_kind.tolist(), ["H2D", "D2H"])
        self.assertEqual(session.syncs.call_stack.tolist()[0], "main@train.py:10|step@train.py:88")

    def test_work_by_kind_is_the_sum_of_the_kernels_of_each_kind(self):
        session = golden("trace")
        frame = session.work_by_kind
        self.assertEqual(frame.kind.tolist(), ["matmul", "reduction", "elementwise"])
        sums = session.kernels.groupby("kind", observed=True).duration_ns.agg(["sum", "count"])
        self.assertEqual(frame.total_ns.tolist(), sums.loc[frame.kind, "sum"].tolist())
        self.assertEqual(frame["count"].tolist(), sums.loc[frame.kind, "count"].tolist())
        self.assertAlmostEqual(frame.share.sum(), 1)

    def test_steps_are_listed_with_their_warm_up(self):
        session = golden("training_steps")
        summary, frame = session.analysis["steps"], session.steps
        self.assertEqual((summary["source"], summary["name"], summary["warmup"]), ("scope", "step", 2))
        self.assertEqual(frame.is_warmup.tolist(), [True] * 2 + [False] * 10)
        self.assertEqual(frame.step[frame.duration_ns == frame.duration_ns[~frame.is_warmup].max()].tolist(), [8])
        self.assertIn("step > load", session.report_text("steps"))
        none = golden("launch_bound")
        self.assertEqual(len(none.steps), 0)
        self.assertIn("do not repeat", none.analysis["steps"]["none_because"])

    def test_launches_have_the_registers_that_amd_counts_apart(self):
        line = {"version": 1, "session_id": "0192f300-0000-7000-8000-00000000a3d0"}
        rows = [[1, 1, 256, 64, 48, 16], [2, 1, 256, 64, 0, None], [3, 2, 128, 32, None, None]]
        records = [
            {**line, "type": "job_start", "pid": 7, "app": "hip", "ts_ns": 1789000000000000000},
            {**line, "type": "dictionary_update", "kernel_dict": {"1": "gemm", "2": "copy"}},
            {**line, "type": "launch_config_batch", "batch_id": 1, "base_time_ns": 1789000000000000000,
             "columns": ["launch_id", "kernel_id", "block_x", "num_regs", "sgprs", "accum_vgprs"], "rows": rows}]
        (self.directory / "device.log").write_text("".join(json.dumps(record) + "\n" for record in records))
        launches = GpuFlightSession(self.directory).launches
        self.assertEqual(launches.name.tolist(), ["gemm", "gemm", "copy"])
        for at, column in ((3, "num_regs"), (4, "sgprs"), (5, "accum_vgprs")):
            self.assertEqual([None if pandas.isna(value) else value for value in launches[column]], [row[at] for row in rows])
        # A launch of CUDA has none, which is not the same as 0.
        self.assertTrue(golden("trace").launches.sgprs.isna().all())

    def test_deep_tables_agree_with_the_report(self):
        session = golden("deep")
        stalls = session.analysis["deep"]["stalls"]
        pc = session.scopes[session.scopes.sample_kind == "pc sampling"]
        issued = pc[~pc.metric.astype(str).str.endswith("_not_issued")]
        self.assertEqual(int(issued.value.sum()), stalls["samples"])
        per_function = issued.groupby("function", observed=True).value.sum().to_dict()
        self.assertEqual(per_function, {one["name"]: one["samples"] for one in stalls["functions"]})
        self.assertEqual(set(session.scope_samples.scope.dropna()), {"step|add", "step|reduce"})
        self.assertEqual(len(session.untimed_launches), 3)
        ranges = golden("range_metrics")
        self.assertEqual(set(ranges.perf.level), {"scope", "kernel"} & set(ranges.perf.level))
        self.assertEqual(len(ranges.pm_samples), 120)
        self.assertEqual(golden("killed").losses["count"].sum(), golden("killed").analysis["completeness"]["lost"])
        self.assertEqual(golden("hostile").losses["cause"].iloc[0], '<b>\x1b[2J"cuptiX" failed\u202e\n')

    def test_frames_share_the_sessions_memory_and_outlive_it(self):
        session = golden("trace")
        kernels = session.kernels
        self.assertIs(kernels, session.kernels)
        self.assertFalse(kernels.start_ns.to_numpy().flags.writeable)
        total = int(kernels.duration_ns.sum())
        del session
        self.assertEqual(int(kernels.duration_ns.sum()), total)
        changed = kernels.assign(end_ns=kernels.start_ns + kernels.duration_ns)
        self.assertEqual(len(changed), len(kernels))


class Segments(fixture.TestCase):
    def test_live_rotated_and_sealed_files_give_the_same_rows(self):
        traced = self.trace("--launches", "3000", "--threads", "2", "--scopes", "--copies",
                            env=harness.environment(GPUFL_LOG_ROTATE_BYTES="65536"))
        self.assertEqual(traced.returncode, 0, traced.stderr)
        path = traced.sessions[0]
        self.assertTrue(list(path.glob("device.[0-9]*.log*")), "it was rotated")
        frame = GpuFlightSession(path).kernels
        self.assertEqual(len(frame), traced.counts["kernels"])
        self.assertTrue(frame.start_ns.is_monotonic_increasing)
        sealed = harness.gpufl("seal", path)
        self.assertEqual(sealed.returncode, 0, sealed.stderr)
        self.assertTrue(list(path.glob("device.[0-9]*.log.zst")))
        self.assertFalse(list(path.glob("device*.log")))
        pandas.testing.assert_frame_equal(GpuFlightSession(path).kernels, frame)

    def test_a_session_is_read_while_it_is_written(self):
        out = self.output("""
import gpufl
from gpufl.analyzer import GpuFlightSession
gpufl.init(app_name="live", log_path="log", flush_logs_always=True)
session = GpuFlightSession("log", log_prefix="live")
print(session.info["app"], session.is_complete)
gpufl.shutdown()
print(GpuFlightSession("log").is_complete)
""")
        self.assertEqual(out, "live False\nTrue\n")

    def test_other_threads_run_while_a_session_is_read(self):
        """With a switch interval of an hour another thread runs only when the reader lets it."""
        out = self.output("""
import threading, time
from gpufl import _native
turns, is_over = 0, False
def take_turns():
    global turns
    while not is_over:
        turns += 1
        time.sleep(0)
sys.setswitchinterval(3600)
thread = threading.Thread(target=take_turns)
thread.start()
deadline = time.monotonic() + 50
has_run = False
while not has_run and time.monotonic() < deadline:
    before = turns
    session = _native.Session(%r)
    has_run = turns > before
is_over = True
print(has_run)
""" % str(fixture.SOURCE / "examples" / "recorded" / "h200-training"))
        self.assertEqual(out, "True\n")

    def test_the_flat_layout_of_other_writers_is_read(self):
        flat = self.directory / "flat"
        flat.mkdir()
        for file in (fixture.GOLDEN / "v1" / ".tmp").iterdir():
            shutil.copy(file, flat / ("matmul." + file.name))
        pandas.testing.assert_frame_equal(GpuFlightSession(flat, log_prefix="matmul").kernels, golden("v1").kernels)


class Directories(fixture.TestCase):
    """Which session a directory means; each mistake one line that says what to do."""

    def place(self, name, base="logs", golden_name="trace"):
        target = self.directory / base / name
        shutil.copytree(fixture.GOLDEN / golden_name, target)
        return target

    def assert_raises(self, kind, words, *args, **kwargs):
        with self.assertRaises(kind) as caught:
            GpuFlightSession(*args, **kwargs)
        for word in words:
            self.assertIn(word, str(caught.exception))
        self.assertLess(len(str(caught.exception).splitlines()[0]), 400)

    def test_a_directory_with_no_session(self):
        self.assert_raises(FileNotFoundError, ["does not exist"], self.directory / "nowhere")
        self.assert_raises(FileNotFoundError, ["there is no session in"], self.directory)
        (self.directory / "file").write_text("")
        self.assert_raises(FileNotFoundError, ["is not a directory"], self.directory / "file")

    def test_a_directory_with_two_sessions_reads_the_newest_and_says_so(self):
        old = self.place("0192f300-0000-7000-8000-000000000001")
        new = self.place("0192f300-0000-7000-8000-000000000002", golden_name="bench")
        os.utime(old, (1, 1))
        os.utime(new, (2, 2))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            session = GpuFlightSession(self.directory / "logs")
        self.assertEqual(session.path, str(new))
        self.assertEqual([one.category for one in caught], [UserWarning])
        self.assertIn("2 sessions in", str(caught[0].message))
        self.assertIn(old.name, str(caught[0].message))

    def test_the_session_id_chooses_also_by_its_start(self):
        old = self.place("0192f300-0000-7000-8000-000000000001")
        self.place("0192f400-0000-7000-8000-000000000002")
        logs = self.directory / "logs"
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.assertEqual(GpuFlightSession(logs, session_id=old.name).path, str(old))
            self.assertEqual(GpuFlightSession(logs, session_id="0192f3").path, str(old))
            self.assertEqual(GpuFlightSession(old, session_id=old.name).path, str(old))
        self.assert_raises(ValueError, ["is the start of 2 sessions"], logs, session_id="0192f")
        self.assert_raises(FileNotFoundError, ["there is no session 'nope'", old.name], logs, session_id="nope")
        self.assert_raises(FileNotFoundError, ["there is no session ''"], logs, session_id="")

    def test_the_prefix_chooses_by_application(self):
        self.place("0192f300-0000-7000-8000-000000000001", golden_name="trace")
        bench = self.place("0192f300-0000-7000-8000-000000000002", golden_name="bench")
        logs = self.directory / "logs"
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.assertEqual(GpuFlightSession(logs, log_prefix="bench").path, str(bench))
        self.assert_raises(FileNotFoundError, ["no session of 'other'", "bench, train.py"], logs, log_prefix="other")
        self.assert_raises(FileNotFoundError, ["was recorded by 'bench', not 'other'"], bench, log_prefix="other")

    def test_the_prefix_may_be_the_directory_that_a_default_log_path_makes(self):
        path = self.place("0192f300-0000-7000-8000-000000000002", base="bench", golden_name="bench")
        self.assertEqual(GpuFlightSession(self.directory, log_prefix="bench").path, str(path))

    def test_a_torn_session_is_read_as_far_as_it_goes(self):
        path = self.place("0192f300-0000-7000-8000-000000000001")
        device = path / "device.log"
        device.write_bytes(device.read_bytes()[:-100])
        session = GpuFlightSession(path)
        self.assertFalse(session.is_complete)
        self.assertGreater(len(session.kernels), 0)
        device.write_bytes(b"")
        self.assertEqual(len(GpuFlightSession(path).kernels), 0)
        for file in path.iterdir():
            file.write_bytes(os.urandom(999))
        session = GpuFlightSession(path)
        self.assertFalse(session.is_complete)
        self.assertTrue(session.report_text())

    def test_arguments_of_other_types_are_named(self):
        self.assert_raises(TypeError, ["log_dir must be str or os.PathLike, not int"], 3)
        self.assert_raises(TypeError, ["log_prefix must be str, not int"], self.directory, log_prefix=3)
        self.assert_raises(TypeError, ["session_id must be str, not bytes"], self.directory, session_id=b"x")
        self.assert_raises(TypeError, ["'log_prefx'; did you mean 'log_prefix'?"], self.directory, log_prefx="x")
        with self.assertRaisesRegex(TypeError, "'topn'; did you mean 'top_n'"):
            generate_report(self.directory, topn=3)
        session = golden("trace")
        with self.assertRaisesRegex(TypeError, "top_n must be int, not str"):
            session.inspect_hotspots(top_n="5")
        with self.assertRaisesRegex(ValueError, "top_n must be 1 or more, not 0"):
            session.inspect_hotspots(top_n=0)
        with self.assertRaisesRegex(KeyError, "there is no table 'kernel'; tables are kernels"):
            session.table("kernel")


class Reports(fixture.TestCase):
    def test_text_is_what_the_command_prints(self):
        for name in ("trace", "v1", "killed", "monitor"):
            printed_by_command = harness.gpufl("report", fixture.GOLDEN / name, "--color", "never").stdout
            self.assertEqual(TextReport(golden(name)).generate(), printed_by_command)

    def test_every_inspection_prints_its_part(self):
        session = golden("deep")
        whole = session.report_text()
        for call, title in ((session.print_summary, "WHERE THE TIME WENT"), (session.inspect_scopes, "SCOPES"),
                            (session.inspect_hotspots, "KERNELS"), (session.inspect_stalls, "STALLS"),
                            (session.inspect_profile_samples, "HOT CODE")):
            text = printed(call)
            self.assertIn(title, text)
            self.assertIn(title, whole)
        self.assertIn("STALLS", printed(session.inspect_stalls))
        self.assertNotIn("KERNELS", printed(session.inspect_stalls))
        self.assertIn("and 1 more", printed(session.inspect_hotspots, top_n=1))
        self.assertIn("dram__bytes_read.sum", printed(golden("range_metrics").inspect_perf_metrics))

    def test_inspections_without_data_say_what_to_record(self):
        session = golden("trace")
        self.assertIn("ProfilingEngine.PcSampling", printed(session.inspect_stalls))
        self.assertIn("ProfilingEngine.PcSampling", printed(session.inspect_profile_samples))
        self.assertIn("ProfilingEngine.RangeProfiler", printed(session.inspect_perf_metrics))

    def test_inspections_of_an_engine_that_took_nothing_do_not_say_to_record_with_it(self):
        for engine, name in (("pc_sampling", "PcSampling"), ("deep", "Deep"), ("sass_metrics", "SassMetrics"),
                             ("range_profiler", "RangeProfiler")):
            path = self.directory / "0192f300-0000-7000-8000-000000000001"
            path.mkdir(exist_ok=True)
            (path / "device.log").write_text(
                '{"version":1,"type":"job_start","session_id":"s","pid":7,"app":"a","ts_ns":1000000,'
                f'"profiling_engine":"nvidia.{engine}","devices":[]}}\n')
            session = GpuFlightSession(path)
            self.assertEqual(session.info["engine"], name)
            took = f"engine {name} ran and recorded none"
            self.assertEqual(took in printed(session.inspect_profile_samples), name != "RangeProfiler")
            self.assertEqual(took in printed(session.inspect_perf_metrics), name == "RangeProfiler")
            stalls = printed(session.inspect_stalls)
            self.assertEqual("ProfilingEngine.PcSampling" in stalls, name in ("SassMetrics", "RangeProfiler"), stalls)

    def test_html_is_the_page_that_the_command_writes(self):
        for path in fixture.GOLDEN_SESSIONS:
            page = harness.gpufl("report", path, "--html", "-", "--top", 3).stdout
            self.assertEqual(HtmlReport(GpuFlightSession(path), top_n=3).generate(), page, path.name)
        with self.assertRaises(ValueError):
            golden("trace").report_html(top_n=0)

    def test_an_output_path_is_written_as_its_ending_says(self):
        text = generate_report(fixture.GOLDEN / "trace", top_n=1, output_path=self.directory / "a.txt")
        self.assertEqual((self.directory / "a.txt").read_text(), text)
        self.assertIn("and 2 more", text)
        page = generate_report(str(fixture.GOLDEN / "trace"), output_path=self.directory / "a.html")
        self.assertEqual((self.directory / "a.html").read_text(), page)
        self.assertTrue(page.startswith("<!doctype html>"))
        with self.assertRaises(FileNotFoundError):
            generate_report(self.directory / "nowhere")

    def test_analysis_is_the_commands_json(self):
        answer = harness.gpufl("report", fixture.GOLDEN / "trace", "--json").stdout
        self.assertEqual(golden("trace").analysis, json.loads(answer))


if __name__ == "__main__":
    fixture.main()
