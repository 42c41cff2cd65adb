# SPDX-License-Identifier: Apache-2.0
"""Every CUPTI function that an engine calls fails in turn: the program is not affected, the log verifies, contains only
measured values, and has a reason for everything that is missing."""
import concurrent.futures
import json
import os
import re
import shutil

from deep_fixture import Deep
from harness import FAKE_APP, SANITIZERS, SOURCE, Session, Traced, environment, gpufl, main, run, sessions

# Out of memory, counters used by another client, no permission, and any other error; 999 also at every or later calls.
FAULTS = ["1:8", "1:26", "1:35", "1:999", "2:999", "*:999"]
APP = ("--launches", 200, "--kernel-us", 20, "--sync-every", 20, "--scopes")
LONG_APP = ("--launches", 300, "--kernel-us", 20, "--sync-every", 20, "--pause-us", 100)
# If a library fails to free an object, the object leaks.
WITHOUT_LEAKS = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
SHORT_WINDOWS = {"GPUFL_DEEP_COUNTING_MS": 10, "GPUFL_DEEP_SAMPLING_MS": 10, "GPUFL_PC_SAMPLING_CYCLE_MS": 20}


def functions(*headers):
    """The functions in the tables of src/driver, which the product binds by name."""
    found = []
    for header in headers:
        found += re.findall(r"^    X\(\w+, (cupti\w+),", (SOURCE / "src/driver" / header).read_text(), re.M)
    return found


def measured_samples(kind):
    return lambda session: [row for row in session.rows("profile_sample_batch") if row["sample_kind"] == kind]


def measured_events(kind):
    return lambda session: [event for event in session.records(kind) if event["metrics"]]


class Engine:
    def __init__(self, options, app, headers, **data):
        self.options, self.app, self.data = options, app, data
        self.faults = [f"fail={name}@{fault}" for name in functions(*headers) for fault in FAULTS]
        # test_faults.py covers Trace; here only the two most different faults.
        self.faults += [f"fail={name}@{fault}" for name in functions("cupti_abi.h") for fault in ("1:999", "*:999")]
        if SANITIZERS != [""]:  # ten times slower, and one run of each function is enough for a sanitizer
            self.faults = [f"fail={name}@*:999" for name in functions(*headers)]


COUNTERS = ("range_profiler_abi.h", "profiler_host_abi.h")
ENGINES = {
    "PcSampling": Engine(["-e", "PcSampling", "--pc-period", 13], APP, ["pc_sampling_abi.h", "profiler_host_abi.h"],
                         pc_sampling=measured_samples(0)),
    "breaks": Engine(["-e", "PcSampling", "--pc-period", 13, "--pc-share", 50], LONG_APP, ["pc_sampling_abi.h"],
                     pc_sampling=measured_samples(0)),
    "SassMetrics": Engine(["-e", "SassMetrics"], APP, ["sass_metrics_abi.h", "pc_sampling_abi.h"],
                          sass_metrics=measured_samples(1)),
    "Deep": Engine(["-e", "Deep", "--pc-period", 13], LONG_APP, ["sass_metrics_abi.h", "pc_sampling_abi.h"],
                   pc_sampling=measured_samples(0), sass_metrics=measured_samples(1)),
    "kernels": Engine(["-e", "RangeProfiler", "--range-mode", "kernel"], APP, COUNTERS,
                      range_counters=measured_events("kernel_perf_metric_event")),
    "scopes": Engine(["-e", "RangeProfiler", "--range-mode", "scope", "--range-scopes", "scope_0"], APP, COUNTERS,
                     range_counters=measured_events("perf_metric_event")),
    "pm": Engine(["--pm", "overview", "--pm-interval", 500], LONG_APP, ["pm_sampling_abi.h", "profiler_host_abi.h"],
                 pm_sampling=lambda session: session.rows("pm_sample_batch")),
}


class Faults(Deep):
    def check(self, name):
        engine = ENGINES[name]
        plain = run(FAKE_APP, *engine.app)
        self.assert_unharmed(engine)
        faults = engine.faults
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            outcomes = list(pool.map(lambda numbered: self.play(engine, *numbered), enumerate(faults)))
        for fault, (traced, session, verdict) in zip(faults, outcomes):
            with self.subTest(fault):
                self.assertEqual((traced.returncode, traced.stdout), (plain.returncode, plain.stdout), traced.stderr)
                self.assert_sound(verdict)
                self.assert_truthful(engine, traced, session, verdict)

    def play(self, engine, number, fault):
        directory = self.directory / str(number)
        result = gpufl("trace", "-o", directory, *engine.options, "--", FAKE_APP, *engine.app, cwd=self.directory,
                       env=environment(FAKE_MACHINE=None, FAKE_FAULTS=fault, ASAN_OPTIONS=WITHOUT_LEAKS, **SHORT_WINDOWS))
        traced = Traced(result, directory)
        path = sessions(directory)[0]
        session, verdict = Session(path), json.loads(gpufl("verify", path, "--json").stdout)
        shutil.rmtree(directory)
        return traced, session, verdict

    def assert_sound(self, verdict):
        self.assertEqual({issue["kind"] for issue in verdict["issues"]} - {"loss"}, set(), verdict["issues"])

    def assert_unharmed(self, engine):
        """A run without a fault has the data and loses nothing; otherwise the others would prove nothing."""
        for pause_us in (3000, 30000, 300000):  # on a busy machine threads may get their turn in a longer run only
            traced = self.trace(*engine.app, "--pause-us", pause_us, options=engine.options,
                                directory=self.directory / f"unharmed-{pause_us}",
                                env=environment(FAKE_MACHINE=None, ASAN_OPTIONS=WITHOUT_LEAKS, **SHORT_WINDOWS))
            self.assertEqual(traced.returncode, 0, traced.stderr)
            self.assert_nothing_lost(traced.session)
            missing = [feature for feature, data in engine.data.items() if not data(traced.session)]
            if not missing:
                return
        self.fail(f"no data of {missing}")

    def assert_truthful(self, engine, traced, session, verdict):
        last = max(session.records("capture_capabilities"), key=lambda record: record["ts_ns"])
        capabilities = {entry["feature"]: entry for entry in last["capabilities"]}
        says_something = "gpufl trace: " in traced.stderr
        for feature, data in engine.data.items():
            answer, values = capabilities[feature], data(session)
            self.assertIn(answer["status"], ("collected", "skipped"))
            if answer["status"] == "skipped":
                self.assertEqual(values, [], answer)
                self.assertTrue(answer["message"])
                self.assertTrue(says_something, "refused without a message")
            elif not values and self.had_its_turn(session, feature):
                self.assertFalse(verdict["is_complete"], "granted, empty, and called complete")
        self.assert_counted(traced, session, verdict, last)

    @staticmethod
    def had_its_turn(session, feature):
        """False if the engine alternates and, on a busy machine, the program ended before this feature was on."""
        sources = {window["source"] for window in session.records("deep_window_event")}
        return not sources or feature in sources

    def assert_counted(self, traced, session, verdict, capabilities):
        rows = len(session.rows("kernel_event_batch")) + len(session.rows("launch_event_batch"))
        self.assertLessEqual(rows, traced.counts["kernels"])
        if rows < traced.counts["kernels"]:
            self.assertTrue(not verdict["is_complete"] or capabilities["selected_engine"] == "Monitor",
                            "launches are missing without a loss record")

    def test_pc_sampling(self):
        self.check("PcSampling")

    def test_pc_sampling_with_breaks(self):
        self.check("breaks")

    def test_sass_metrics(self):
        self.check("SassMetrics")

    def test_deep(self):
        self.check("Deep")

    def test_counters_of_kernels(self):
        self.check("kernels")

    def test_counters_of_scopes(self):
        self.check("scopes")

    def test_pm_sampling(self):
        self.check("pm")


if __name__ == "__main__":
    main()
