#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Each GPU library function that gpufl calls hangs in turn: the program still ends in time, and the session names the
function."""
import collections
import concurrent.futures
import pathlib
import re
import subprocess
import time
import unittest

from harness import BUILD, FAKES, SOURCE, TIMEOUT_S, Session, TestCase, environment, main, sessions

HUNG_APP = FAKES / "fake_hung_app"
HIP_APP = FAKES / "fake_hip_app"
LIBRARY = BUILD / "lib" / "libgpufl.so"
EXIT_TIMEOUT_MS, START_TIMEOUT_MS = 2000, 1000
# A program that waited for the call would never end, so a limit far above the timeout suffices, even on a busy machine.
LONGEST_S = 30
WORKERS = 24
TABLE = re.compile(r"^WATCHED_CALL\((\w+),", re.M)

# Functions that a recorded program does not call, by reason.
UNUSED = {
    "by gpufl.cupti and gpufl metrics only": {
        "cuptiCheckpointSave", "cuptiCheckpointRestore", "cuptiCheckpointFree", "cuptiProfilerHostGetSupportedChips",
        "cuptiProfilerHostGetBaseMetrics", "cuptiProfilerHostGetSubMetrics", "cuptiProfilerHostGetMetricProperties",
        "cuptiProfilerHostGetSinglePassSets", "cuptiProfilerHostGetMetricsInSinglePassSet",
        "cuptiProfilerHostGetMaxNumHardwareMetricsPerPass"},
    "in gpufl's own processes only": {
        "rsmi_init", "rsmi_shut_down", "rsmi_num_monitor_devices", "rsmi_dev_pci_id_get", "rsmi_dev_energy_count_get",
        "rsmi_dev_ecc_enabled_get", "rsmi_dev_ecc_count_get",
        "nvmlEventSetCreate", "nvmlEventSetWait_v2", "nvmlEventSetFree", "nvmlDeviceRegisterEvents",
        "nvmlDeviceGetSupportedEventTypes"},
    "in a forked child, in its start": {"cuptiFinalize"},
    "for modules that are cubins, and the look-alike's are not; on the thread that keeps code": {"cuptiGetCubinCrc"},
    "and the look-alike lacks them": {"nvmlDeviceGetCurrPcieLinkGeneration", "nvmlDeviceGetCurrPcieLinkWidth"},
    "where the library lacks another function, which the look-alikes have": {
        "nvmlDeviceGetCurrentClocksEventReasons",
        "rocprofiler_configure_buffered_dispatch_counting_service"},
}

Scenario = collections.namedtuple("Scenario", "command variables faults")


def nvidia(engine, *words, faults="", **variables):
    return Scenario([HUNG_APP, *words], {"GPUFL_PROFILING_ENGINE": engine, **variables}, faults)


def amd(engine, directory, init):
    path = FAKES / directory
    missing = {f"GPUFL_{name}_PATH": "/nonexistent" for name in ("CUDA", "CUPTI", "NVML")}
    return Scenario([HIP_APP, "--launches", "20", "--copies", "--gpufl", LIBRARY, "--init", init],
                    {"GPUFL_PROFILING_ENGINE": engine, "GPUFL_BACKEND": "Amd", "GPUFL_ROCPROFILER_PATH": path,
                     "LD_LIBRARY_PATH": f"{path}:{FAKES / 'hip'}", **missing}, "")


SCENARIOS = {
    "monitor": nvidia("Monitor", GPUFL_SYSTEM_SAMPLE_RATE_MS=20, GPUFL_CONTINUOUS_SYSTEM_SAMPLING=1),
    "mig": nvidia("Monitor", faults="mig=2", GPUFL_SYSTEM_SAMPLE_RATE_MS=20, GPUFL_CONTINUOUS_SYSTEM_SAMPLING=1),
    "no nvml": nvidia("Monitor", faults="fail=nvmlInit_v2@*:9"),
    "no gpm": nvidia("Monitor", faults="fail=nvmlGpmQueryDeviceSupport@*:3", GPUFL_SYSTEM_SAMPLE_RATE_MS=20,
                     GPUFL_CONTINUOUS_SYSTEM_SAMPLING=1),
    "cuda 12": nvidia("Trace", GPUFL_CUPTI_PATH=FAKES / "cuda12"),
    "refused": nvidia("Trace", faults="fail=cuptiActivityEnable@2:27"),
    "no calls": nvidia("Trace", faults="fail=cuptiEnableCallback@*:27"),
    "trace": nvidia("Trace", GPUFL_ENABLE_MEMORY_TRACKING=1),
    "trace late": nvidia("Trace", "late"),
    "pm": nvidia("Trace", "late", GPUFL_PM_METRICS="overview"),
    "pc": nvidia("PcSampling", "late"),
    "sass": nvidia("SassMetrics", "late"),
    "ranges": nvidia("RangeProfiler", "late", "launches", "20", GPUFL_RANGE_MODE="scope"),
    "kernels": nvidia("RangeProfiler", "late", "launches", "20", GPUFL_RANGE_MODE="kernel"),
    "deep": nvidia("Deep", "late", GPUFL_DEEP_COUNTING_MS=20, GPUFL_DEEP_SAMPLING_MS=60),
    "amd": amd("Trace", "rocm", "before"),
    "amd late": amd("Deep", "rocm", "after"),
    "amd 6": amd("Deep", "rocm6", "before"),
}


NVML_SCENARIOS = ("monitor", "mig", "no nvml", "no gpm")


def table():
    """The functions of all tables of the driver."""
    return set(TABLE.findall((SOURCE / "src/driver/watched_calls.inc").read_text(encoding="utf-8")))


def is_watched(function):
    """CUDA functions are not watched: the program itself hangs in them."""
    return not re.match("cu[A-Z]", function)


def is_gpufls(scenario, function):
    """NVML's calls are the same in every engine."""
    return is_watched(function) and (not function.startswith("nvml") or scenario in NVML_SCENARIOS)


def first_of(function):
    """The number of gpufl's first call: the program also pushes ids."""
    return 2 if function == "cuptiActivityPushExternalCorrelationId" else 1


class HungCase(TestCase):
    def play(self, scenario, directory, hang="", timeout_ms=EXIT_TIMEOUT_MS):
        """Runs a scenario; returns its duration, output, the calls in order and the one that hung."""
        pathlib.Path(directory).mkdir(parents=True)
        calls = pathlib.Path(directory) / "calls"
        faults = ";".join(part for part in (scenario.faults, hang and f"fail={hang}:-1") if part)
        env = environment(**{"GPUFL_LOG_DIR": directory, "FAKE_CALLS": calls, "FAKE_FAULTS": faults,
                             "GPUFL_EXIT_TIMEOUT_MS": timeout_ms, "GPUFL_START_TIMEOUT_MS": START_TIMEOUT_MS,
                             "FAKE_MACHINE": None, **scenario.variables})
        began_s = time.monotonic()
        process = subprocess.Popen([str(word) for word in scenario.command], env=env, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True)
        try:
            output = process.communicate(timeout=LONGEST_S)[0]
        except subprocess.TimeoutExpired:
            process.kill()
            output = "did not end: " + process.communicate()[0]
        names = calls.read_text(encoding="utf-8").split("\n")[:-1] if calls.exists() else []
        hung = [name[1:] for name in names if name.startswith("!")]
        return time.monotonic() - began_s, process.returncode, output, [n for n in names if n[0] != "!"], hung

    def losses(self, directory):
        """Of the first session in it."""
        found = sessions(directory)
        return [record["cause"] for record in Session(found[0]).records("loss")
                if record["reason"] == "hung_call"] if found else []

    def complaint(self, name, hang, directory):
        """What is wrong with the end of the program; "" if nothing. On a busy machine it gets more time."""
        return self.complaint_in(name, hang, directory / "1", EXIT_TIMEOUT_MS) and \
            self.complaint_in(name, hang, directory / "2", 5 * EXIT_TIMEOUT_MS)

    def complaint_in(self, name, hang, directory, timeout_ms):
        _, code, output, _, hung = self.play(SCENARIOS[name], directory, hang, timeout_ms)
        function = hang.split("@")[0]
        if output.startswith("did not end"):
            return f"{name}: {hang}: {output}"
        if code != 0:
            return f"{name}: {hang}: status {code}: {output}"
        if hung and not any(function in cause for cause in self.losses(directory)):
            return f"{name}: {hang}: not named in {self.losses(directory)}: {output}"
        return ""


class Table(HungCase):
    def test_the_program_ends_in_time_and_the_session_names_the_call(self):
        with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
            plain = {name: pool.submit(self.play, scenario, self.directory / name)
                     for name, scenario in SCENARIOS.items()}
            cases, used = [], set()
            for name, future in plain.items():
                _, code, output, calls, _ = future.result()
                self.assertEqual(code, 0, f"{name}: {output}")
                counts = collections.Counter(calls)
                used |= counts.keys()
                for function, count in counts.items():
                    if function in table() and is_gpufls(name, function):
                        cases += [(name, f"{function}@{number}") for number in sorted({first_of(function), count})
                                  if number >= first_of(function)]
            unused = {function for function in table() - used - set().union(*UNUSED.values()) if is_watched(function)}
            self.assertFalse(unused, "no scenario calls them")
            complaints = list(pool.map(
                lambda case: self.complaint(*case, self.directory / f"{case[0]} {case[1]}"), cases))
        complaints = [text for text in complaints if text]
        if complaints:
            self.fail(f"{len(complaints)} of {len(cases)}:\n" + "\n".join(complaints))


class Ends(HungCase):
    """Ways for a program to end."""
    def end(self, *words, hang="", engine="Trace", **variables):
        _, code, output, _, hung = self.play(nvidia(engine, *words, **variables), self.directory / "run", hang)
        self.assertEqual(code, 0, output)
        self.assertEqual(bool(hung), bool(hang), output)
        return output

    def test_a_program_that_returns_from_main_ends_beside_a_hung_call(self):
        self.end("exit", hang="cuptiActivityFlushAll@1")
        self.assertTrue(any("cuptiActivityFlushAll" in cause for cause in self.losses(self.directory / "run")))

    def test_exit_in_a_signal_handler_ends_the_program(self):
        for number in range(5):
            for engine in ("Trace", "PcSampling", "Deep"):
                with self.subTest(number=number, engine=engine):
                    _, code, output, _, _ = self.play(nvidia(engine, "signal"), self.directory / f"{engine} {number}")
                    self.assertEqual(code, 0, output)

    def test_a_later_session_does_not_use_the_library_that_hung(self):
        output = self.end("again", hang="cuptiUnsubscribe@1")
        self.assertIn("again 0", output)
        second = max(sessions(self.directory / "run"), key=lambda path: path.stat().st_mtime)
        capabilities = [record for record in Session(second).records("capture_capabilities")]
        self.assertEqual(capabilities[0]["selected_engine"], "Monitor")
        self.assertIn("cuptiUnsubscribe did not return", str(capabilities[0]))

    def test_a_start_that_hangs_leaves_the_program_unrecorded_and_running(self):
        output = self.end(hang="cuptiSubscribe_v2@1")
        self.assertIn("cuptiSubscribe_v2 did not return", output)
        self.assertIn("shutdown in", output)

    def test_a_write_that_blocks_does_not_delay_the_exit_for_ever(self):
        output = self.end(LD_PRELOAD=FAKES / "libblocked.so", BLOCKED_AFTER_LINES=5)
        self.assertIn("shutdown in", output)


if __name__ == "__main__":
    main()
