# SPDX-License-Identifier: Apache-2.0
"""Shared by tests of the engines above Trace: their options, and a session in which every launch is accounted for."""
import collections

from harness import SOURCE, TestCase, environment, gpufl

WARPS = 264 * 256 // 32  # of each of fake_app's launches, and so the count of each instruction
CUBIN = SOURCE / "tests/fuzz/corpus/cubin/linked"
PC = ["--engine", "PcSampling", "--pc-period", 13]
SASS = ["--engine", "SassMetrics"]
DEEP = ["--engine", "Deep", "--pc-period", 13]
KERNELS = ["--engine", "RangeProfiler", "--range-mode", "kernel"]
SCOPES = ["--engine", "RangeProfiler", "--range-mode", "scope", "--range-scopes", "scope_0"]
PM = ["--pm", "overview", "--pm-interval", 500]
ENGINES = {"PcSampling": PC, "SassMetrics": SASS, "Deep": DEEP, "kernels": KERNELS, "scopes": SCOPES, "pm": PM}
USUAL_END = {"GPUFL_EXIT_TIMEOUT_MS": None}  # where a call never returns
SHORT_WINDOWS = {"GPUFL_DEEP_COUNTING_MS": 10, "GPUFL_DEEP_SAMPLING_MS": 10}


def final_capabilities(session):
    last = max(session.records("capture_capabilities"), key=lambda record: record["ts_ns"])
    return last, {entry["feature"]: entry for entry in last["capabilities"]}


def function_word(text):
    return text.split("(")[0]


def records_in(found, kind):
    """How many records of that type the sessions' files have so far."""
    return sum(file.read_bytes().count(f'"type":"{kind}"'.encode()) for path in found for file in path.glob("*.log"))


class Deep(TestCase):
    def run_engine(self, options, *arguments, directory=None, is_seen=None, **variables):
        """A whole session in which every launch is timed or counted, and no wait of gpufl's own is the program's. With
        is_seen it lasts as long as trace_until says."""
        settings = {"options": options, "env": environment(**SHORT_WINDOWS, **variables), "directory": directory}
        traced = self.trace_until(is_seen, *arguments, **settings) if is_seen else self.trace(*arguments, **settings)
        self.assertEqual(traced.returncode, 0, traced.stderr)
        self.assert_nothing_lost(traced.session)
        self.assert_counted(traced.counts, traced.session)
        return traced, traced.session

    def assert_nothing_lost(self, session):
        """Except intervals that PM sampling missed, because its thread had to wait for a busy machine."""
        losses = {loss["reason"] for loss in session.records("loss")}
        self.assertLessEqual(losses, {"pm_gap"})
        issues = self.verify(session.path)["issues"]
        self.assertLessEqual({issue["kind"] for issue in issues}, {"loss"} if losses else set(), issues)

    def after(self, is_seen, *kinds):
        """For trace_until: is_seen, and more records of one of those types were written since."""
        counts = []

        def is_over(found):
            if is_seen(found):
                counts.append(sum(records_in(found, kind) for kind in kinds))
            return bool(counts) and counts[-1] > counts[0] + 1  # one may have been on its way
        return is_over

    def calls_are_written(self):
        """Variables with which the look-alike writes its calls into a file, for is_called."""
        (self.directory / "calls").unlink(missing_ok=True)
        return {"FAKE_CALLS": self.directory / "calls"}

    def is_called(self, function, times):
        """For trace_until: the look-alike's function was called that often."""
        calls = self.directory / "calls"
        return lambda _: calls.exists() and calls.read_text().split("\n").count(function) >= times

    def assert_counted(self, counts, session):
        rows = len(session.rows("kernel_event_batch")) + len(session.rows("launch_event_batch"))
        self.assertEqual(rows, counts["kernels"])
        self.assertEqual(len(session.rows("synchronization_event_batch")), counts["syncs"])

    def assert_granted(self, session, engine, *features):
        record, capabilities = final_capabilities(session)
        self.assertEqual((record["requested_engine"], record["selected_engine"]), (engine, engine))
        for feature in features:
            self.assertEqual(capabilities[feature]["status"], "collected", capabilities[feature])
        others = {"pc_sampling", "sass_metrics", "range_counters", "pm_sampling"} - set(features)
        self.assertEqual({capabilities[feature]["status"] for feature in others}, {"not_requested"})

    def assert_sections(self, session, *titles):
        report = gpufl("report", session.path)
        self.assertEqual(report.returncode, 0, report.stderr)
        for title in titles:
            self.assertIn(title, report.stdout)

    def samples(self, session, kind):
        return [row for row in session.rows("profile_sample_batch") if row["sample_kind"] == kind]

    def executed(self, session):
        """Executions of each function's first instruction."""
        functions, metrics = session.dictionary("function_dict"), session.dictionary("metric_dict")
        counts = collections.Counter()
        for row in self.samples(session, 1):
            if row["pc_offset"] == 0 and metrics[row["metric_id"]] == "smsp__sass_inst_executed":
                counts[function_word(functions[row["function_id"]])] += row["metric_value"]
        return counts

    def launched(self, session):
        """Launches of each kernel in counting windows."""
        names = session.dictionary("kernel_dict")
        return collections.Counter(function_word(names[row["kernel_id"]]) for row in session.rows("launch_event_batch")
                                   if row["window_id"])
