# SPDX-License-Identifier: Apache-2.0
"""`gpufl trace` on a program with the fake GPU: the log has everything that the program did, and nothing else."""
import json
import os
import re
import stat
import sys
import unittest

from harness import FAKE_APP, FAKES, GPUFL, RECORDER, SANITIZERS, Session, TestCase, environment, gpufl, main, run, sessions

ROW_TYPES = {"kernels": "kernel_event_batch", "copies": "memcpy_event_batch", "memsets": "memset_event_batch",
             "syncs": "synchronization_event_batch"}


class Counts(TestCase):
    def check(self, *arguments, options=(), env=None):
        """Every count that the program printed equals the number of rows in the log, in verify and in the report."""
        traced = self.trace(*arguments, options=options, env=env)
        self.assert_whole(traced)
        session = traced.session
        rows = {name: len(session.rows(kind)) for name, kind in ROW_TYPES.items()}
        self.assertEqual({name: traced.counts[name] for name in ROW_TYPES}, rows, traced.stdout)
        verified = self.verify(session.path)
        self.assertEqual(verified["rows"].get("kernel_event_batch", 0), traced.counts["kernels"])
        self.assertEqual(verified["lost_records"], 0)
        return traced, session

    def test_one_stream_to_the_last_kernel(self):
        traced, _ = self.check("--launches", 1000, "--copies", "--sync-every", 100)
        self.assertEqual(traced.counts["kernels"], 1000)

    def test_many_threads_streams_and_batches(self):
        self.check("--threads", 4, "--streams", 8, "--launches", 5000, "--copies", "--sync-every", 500)

    def test_as_fast_as_four_threads_can_every_kernel_is_recorded_or_counted_as_lost(self):
        traced = self.trace("--threads", 4, "--streams", 4, "--launches", 25000, "--kernel-us", 0)
        self.assertEqual(traced.returncode, 0, traced.stderr)
        verdict = self.verify(traced.sessions[0])
        missing = traced.counts["kernels"] - verdict["rows"]["kernel_event_batch"]
        self.assertGreaterEqual(missing, 0)
        self.assertGreaterEqual(verdict["lost_records"], missing)
        if verdict["is_complete"]:
            self.assertEqual(missing, 0)

    def test_several_gpus(self):
        env = environment(FAKE_GPU_COUNT=2)
        _, session = self.check("--gpus", 2, "--threads", 4, "--launches", 500, "--copies", env=env)
        self.assertEqual({row["device_id"] for row in session.rows("kernel_event_batch")}, {0, 1})
        self.assertEqual([record["device_id"] for record in session.records("device_limits")], [0, 1])
        self.assertIn("P2P", {row["copy_kind"] == 10 and "P2P" for row in session.rows("memcpy_event_batch")})

    def test_contexts_of_the_driver_api(self):
        _, session = self.check("--contexts", 3, "--threads", 6, "--launches", 500)
        self.assertEqual(len({row["context_id"] for row in session.rows("kernel_event_batch")}), 3)

    def test_graphs(self):
        traced, session = self.check("--graphs", "--launches", 1000, "--streams", 2, options=["--graphs"])
        self.assertEqual(len(session.rows("graph_launch_batch")), traced.counts["graph_launches"])
        nodes = [row for row in session.rows("kernel_event_batch") if row.get("graph_id")]
        self.assertTrue(nodes)
        self.assertEqual(sum(row["node_count"] for row in session.rows("graph_launch_batch")),
                         sum(1 for kind in ("kernel_event_batch", "memcpy_event_batch", "memset_event_batch")
                             for row in session.rows(kind) if row.get("graph_id")))

    def test_rotated_and_sealed_files_hold_the_same(self):
        # Few enough for a thread's ring: what is recorded does not depend on when it is read.
        traced = self.trace("--launches", 4000, "--copies", env=environment(GPUFL_LOG_ROTATE_BYTES=65536))
        self.assert_whole(traced)
        path = traced.sessions[0]
        self.assertTrue(list(path.glob("device.*.log*")))
        self.assertEqual(self.verify(path)["rows"]["kernel_event_batch"], traced.counts["kernels"])

    def test_no_sync_records_no_waits(self):
        traced = self.trace("--launches", 100, "--sync-every", 10, options=["--no-sync"])
        self.assert_whole(traced)
        self.assertEqual(traced.session.rows("synchronization_event_batch"), [])
        self.assertEqual(len(traced.session.rows("kernel_event_batch")), traced.counts["kernels"])


class Options(TestCase):
    def test_memory_records_every_allocation_and_release(self):
        traced = self.trace("--threads", 3, "--launches", 100, "--copies", options=["--memory"])
        self.assert_whole(traced)
        rows = traced.session.rows("memory_alloc_event_batch")
        taken = sorted((row["address"], row["bytes"]) for row in rows if row["memory_op"] == 1)
        released = sorted((row["address"], row["bytes"]) for row in rows if row["memory_op"] == 2)
        self.assertEqual(len(taken), 3)
        self.assertEqual(taken, released)

    def test_without_memory_and_graphs_nothing_of_them_is_recorded(self):
        session = self.trace("--launches", 200, "--copies", "--graphs").session
        self.assertEqual(session.rows("memory_alloc_event_batch"), [])
        self.assertEqual(session.rows("graph_launch_batch"), [])

    # libunwind and the sanitizer both clean up a thread in its last round of destructors; libunwind runs second and
    # takes a lock after the sanitizer has freed its state of the thread.
    @unittest.skipIf("thread" in SANITIZERS, "libunwind and the thread sanitizer are incompatible")
    def test_stacks_lead_from_each_kernel_into_the_program(self):
        self.check_stacks(environment())

    def test_stacks_without_libunwind_are_glibcs(self):
        without = self.directory / "without"
        without.mkdir()
        (without / "libunwind.so.8").write_bytes(b"")  # found first, but cannot be loaded
        self.check_stacks(environment(LD_LIBRARY_PATH=f"{without}:{FAKES}"))

    def check_stacks(self, env):
        traced = self.trace("--launches", 200, "--sync-every", 50, options=["--stacks"], env=env)
        self.assert_whole(traced)
        session = traced.session
        stacks = session.dictionary("function_dict")
        kernels = session.rows("kernel_event_batch")
        self.assertEqual(len(kernels), 200)
        for row in kernels:
            self.assertRegex(stacks[row["stack_id"]], r"@.*(app_work\.c:\d+|fake_app\+0x).*\|cudaLaunchKernel@")
        waits = [row for row in session.rows("synchronization_event_batch") if row["function_id"]]
        self.assertEqual(len(waits), traced.counts["syncs"])

    def test_an_engine_from_the_environment_is_kept(self):
        traced = self.trace("--launches", 100, env=environment(GPUFL_PROFILING_ENGINE="Monitor"))
        self.assert_whole(traced)
        self.assertEqual(traced.session.rows("kernel_event_batch"), [])


class Log(TestCase):
    def setUp(self):
        super().setUp()
        self.traced = self.trace("--threads", 2, "--streams", 2, "--launches", 300, "--copies", "--sync-every", 50,
                                 options=["--name", "me"])
        self.session = self.traced.session

    def test_each_channel_starts_and_ends_as_the_format_says(self):
        for channel, lines in self.session.lines.items():
            if not lines:
                continue
            self.assertEqual(lines[0]["type"], "job_start", channel)
            self.assertEqual(lines[-1]["type"], "shutdown", channel)
            self.assertEqual([line["seq"] for line in lines], list(range(1, len(lines) + 1)), channel)
            self.assertEqual({line["session_id"] for line in lines}, {self.session.path.name})

    def test_the_program_is_described(self):
        start = self.session.first("job_start")
        self.assertEqual(start["app"], "me")
        self.assertIn("fake_app", start["command"])
        capabilities = self.session.first("capture_capabilities")
        self.assertEqual(capabilities["selected_engine"], capabilities["requested_engine"])

    def test_files_are_private(self):
        for path in [self.traced.directory, self.session.path, *self.session.path.iterdir()]:
            expected = 0o700 if path.is_dir() else 0o600
            self.assertEqual(stat.S_IMODE(path.stat().st_mode), expected, path)

    def test_kernels_refer_to_names_and_launch_configurations(self):
        names = self.session.dictionary("kernel_dict")
        launches = {row["launch_id"]: row for row in self.session.rows("launch_config_batch")}
        for row in self.session.rows("kernel_event_batch"):
            self.assertIn(row["kernel_id"], names)
            self.assertEqual(launches[row["launch_id"]]["kernel_id"], row["kernel_id"])
            self.assertGreater(row["duration_ns"], 0)
            self.assertIsNotNone(row["api_lead_ns"])
            self.assertGreaterEqual(row["api_lead_ns"], 0)
        self.assertEqual(len({row["corr_id"] for row in self.session.rows("kernel_event_batch")}),
                         self.traced.counts["kernels"])

    def test_the_last_line_is_the_only_one_and_leads_to_the_report(self):
        lines = self.traced.stderr.splitlines()
        self.assertEqual(len(lines), 1, self.traced.stderr)
        match = re.match(r"gpufl: (\S+) in (\S+): (.*)\. Look: gpufl view (\S+)$", lines[0])
        self.assertTrue(match, lines[0])
        self.assertEqual(os.path.realpath(match.group(2)), os.path.realpath(self.session.path.parent))
        kernels = f"{self.traced.counts['kernels']:,} kernels"
        self.assertIn(kernels, match.group(3))
        self.assertEqual(os.path.basename(match.group(4)), match.group(1))
        self.assertEqual(gpufl("report", match.group(4), cwd=self.traced.directory.parent).returncode, 0)

    def test_the_command_at_the_end_can_be_pasted_into_a_shell_whatever_the_directory_is_called(self):
        for place in ("sp ace/$x", "it's", "a;b", "~", "#1", "a=b,c+d@e:f%g", "grün"):
            traced = self.trace("--launches", 1, directory=f"below/{place}")
            line = traced.stderr.splitlines()[-1]
            command = line.split(". Look: ")[-1]
            self.assertTrue(command.startswith("gpufl view "), line)
            is_plain = place in ("a=b,c+d@e:f%g", "grün")
            self.assertEqual("'" in command, not is_plain, line)
            result = run("sh", "-c", command.replace("gpufl view", f"'{GPUFL}' report", 1), cwd=self.directory)
            self.assertEqual(result.returncode, 0, result.stderr)


class Scopes(TestCase):
    """fake_app launches kernel scope_N only inside its scope thread_T|scope_N, and thread_T only outside of those."""

    def scope_paths(self, session):
        paths = session.dictionary("scope_name_dict")
        return {row["scope_instance_id"]: paths[row["name_id"]] for row in session.rows("scope_event_batch")}

    def kernel_words(self, session):
        """Name without its parameters, and the row, of each kernel."""
        names = session.dictionary("kernel_dict")
        return [(names[row["kernel_id"]].split("(")[0], row) for row in session.rows("kernel_event_batch")]

    def test_eight_threads_on_eight_streams_are_attributed_exactly(self):
        traced = self.trace("--threads", 8, "--streams", 8, "--launches", 2000, "--scopes", "--scopes-per-thread", 5,
                            "--sync-every", 200)
        self.assert_whole(traced)
        session = traced.session
        paths = self.scope_paths(session)
        kernels = self.kernel_words(session)
        self.assertEqual(len(kernels), 16000)
        self.assertEqual(len({row["thread_id"] for _, row in kernels}), 8)
        self.assertEqual(len({row["stream_id"] for _, row in kernels}), 8)
        wrong = [(word, paths.get(row["scope_id"])) for word, row in kernels
                 if paths.get(row["scope_id"], "").split("|")[-1] != word]
        self.assertEqual(wrong, [])
        for word, row in kernels:
            parts = paths[row["scope_id"]].split("|")
            thread = int(word[6:]) // 5 if word.startswith("scope_") else int(word[7:])
            self.assertEqual(parts[0], f"thread_{thread}")

    def test_every_scope_that_began_ended_on_its_thread(self):
        traced = self.trace("--threads", 4, "--launches", 500, "--scopes")
        begun, ended = {}, {}
        for row in traced.session.rows("scope_event_batch"):
            (begun if row["event_type"] == 0 else ended)[row["scope_instance_id"]] = row
        self.assertEqual(begun.keys(), ended.keys())
        for number, row in begun.items():
            self.assertEqual(ended[number]["thread_id"], row["thread_id"])
            self.assertGreaterEqual(ended[number]["time_ns"], row["time_ns"])
            self.assertEqual(row["depth"], 1 if row["parent_id"] else 0)

    def test_nvtx_ranges_are_scopes(self):
        traced = self.trace("--threads", 4, "--streams", 4, "--launches", 700, "--nvtx")
        self.assert_whole(traced)
        session = traced.session
        paths = self.scope_paths(session)
        self.assertEqual({row["source"] for row in session.rows("scope_event_batch")}, {1})
        for word, row in self.kernel_words(session):
            self.assertEqual(paths.get(row["scope_id"], ""), word if word.startswith("range_") else "")


class Processes(TestCase):
    def test_the_exit_status_is_the_programs_and_the_session_is_complete(self):
        traced = self.trace("--launches", 50, "--exit", 7)
        self.assertEqual(traced.returncode, 7)
        self.assertTrue(self.verify(traced.sessions[0])["is_complete"])

    def test_what_a_killed_program_lost_is_not_called_nothing(self):
        for number in (9, 15):
            traced = self.trace("--run-ms", 300, "--pause-us", 500, "--crash", number,
                                directory=self.directory / str(number))
            closing = traced.stderr.splitlines()[-1]
            self.assertIn(f"an unknown number of records lost, killed by signal {number}: the end is missing", closing)
            completeness = self.report(traced.sessions[0])["completeness"]
            self.assertFalse(completeness["lost_is_exact"])
            text = gpufl("report", traced.sessions[0]).stdout
            self.assertIn("an unknown amount is missing at the end", text)
            self.assertNotIn("nothing lost", text)

    def test_a_crash_is_recorded_with_its_signal(self):
        traced = self.trace("--launches", 50, "--crash", 6)
        self.assertGreater(traced.returncode, 128)
        session = traced.session
        for channel, lines in session.lines.items():
            if lines:
                end = lines[-1]
                self.assertEqual((end["type"], end["synthetic"], end["signaled"], end["crashed"]),
                                 ("shutdown", True, True, True), channel)
                self.assertEqual(end["signal"], traced.returncode - 128)
        self.assertFalse(self.verify(session.path)["is_complete"])
        self.assertEqual(gpufl("report", session.path).returncode, 0)

    def check_processes(self, option, session_count):
        # A forked child abandons memory owned by the parent, which a leak checker reports.
        traced = self.trace("--launches", 200, "--threads", 2, option,
                            env=environment(ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"))
        self.assert_whole(traced)
        self.assertEqual(len(traced.sessions), session_count)
        recorded = sum(len(Session(path).rows("kernel_event_batch")) for path in traced.sessions)
        self.assertEqual(recorded, traced.counts["kernels"], traced.stdout)
        pids = [Session(path).first("job_start")["pid"] for path in traced.sessions]
        self.assertEqual(len(set(pids)), session_count)
        self.assertEqual(len(traced.stderr.splitlines()), 1)

    def test_a_forked_child_leaves_the_session_alone(self):
        self.check_processes("--fork", 1)

    def test_a_child_that_was_forked_before_cuda_has_a_separate_session(self):
        self.check_processes("--fork-first", 2)

    def test_an_executed_child_has_a_separate_session(self):
        self.check_processes("--exec", 2)

    def test_work_that_still_ran_at_the_end_is_recorded_or_counted_as_lost(self):
        traced = self.trace("--launches", 500, "--no-sync")
        self.assertEqual(traced.returncode, 0)
        verdict = self.verify(traced.sessions[0])
        recorded = verdict["rows"].get("kernel_event_batch", 0)
        self.assertEqual(recorded + verdict["lost_records"], 500)
        self.assertEqual(verdict["is_complete"], recorded == 500)

    def test_two_runs_into_one_directory_are_two_sessions(self):
        first = self.trace("--launches", 10)
        second = self.trace("--launches", 20)
        self.assertEqual(len(sessions(second.directory)), 2)
        self.assertEqual(len(second.stderr.splitlines()), 1)
        self.assertNotEqual(first.stderr, second.stderr)

    def trace_and_leave(self, program, until):
        """The output of trace when its program ends before `program`, a child process that continues."""
        pipe = self.directory / "pipe"
        os.mkfifo(pipe)
        end = os.open(pipe, os.O_RDWR)
        self.addCleanup(os.close, end)  # this ends the program
        log = self.directory / "log"
        script = f"{program} < '{pipe}' > '{self.directory}/out' 2>&1 & until {until}; do sleep 0.01; done; exit 3"
        result = gpufl("trace", "-o", log, "--", "sh", "-c", script, cwd=self.directory)
        self.assertEqual(result.returncode, 3, result.stderr)
        lines = result.stderr.splitlines()
        self.assertEqual(len(lines), 1, result.stderr)
        return lines[0], log

    def test_a_session_of_a_program_that_runs_on_is_said_to_be_still_written(self):
        line, log = self.trace_and_leave(f"'{FAKE_APP}' --until-input-ends", "grep -qs job_start log/*/device.log")
        self.assertRegex(line, r"^gpufl: \S+ in \S+: still being written, so far .*\. Look: gpufl view \S+$")
        self.assertEqual(len(sessions(log)), 1)

    def test_a_session_that_has_no_record_yet_is_said_to_be_still_written(self):
        name = "0192f300-0000-7000-8000-000000000001"
        (self.directory / "hold.py").write_text(
            f"import fcntl, os\nos.makedirs('log/{name}')\nlock = open('log/{name}/.gpufl-session.lock', 'w')\n"
            "fcntl.lockf(lock, fcntl.LOCK_EX)\nopen('held', 'w').close()\nos.read(0, 1)\n")
        line, log = self.trace_and_leave(f"'{sys.executable}' hold.py", "test -e held")
        self.assertEqual(line, f"gpufl: {log / name} is still being written: nothing is in it yet")

    def test_a_program_that_runs_on_is_not_said_never_to_have_used_the_gpu(self):
        line, _ = self.trace_and_leave("cat", "true")
        self.assertEqual(line, "gpufl: no GPU work was recorded: what the program started still runs, and may do "
                               "some yet")

    def test_a_directory_of_two_sessions_means_the_newest_and_that_is_said(self):
        self.trace("--launches", 10)
        log = self.trace("--launches", 20).directory
        old, new = sessions(log)
        self.assertEqual(json.loads(gpufl("report", new, "--json").stdout)["completeness"]["kernels"], 20)
        file = self.directory / "kernels.csv"
        for command in (("report",), ("verify",), ("diff", new), ("export", "-o", file, "--table", "kernels")):
            for json_option in ([], ["--json"])[:1 if command[0] == "export" else 2]:
                result = gpufl(*command, log, *json_option)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertEqual(result.stderr.splitlines()[0],
                                 f"gpufl {command[0]}: 2 sessions in {log}; taking the newest, fake_app-2")
                self.assertEqual(result.stdout, gpufl(*command, new, *json_option, *(
                    ["--force"] if command[0] == "export" else [])).stdout)
        self.assertEqual(len(file.read_text().splitlines()), 21)
        self.assertEqual(gpufl("verify", old).stderr, "")

    def test_a_directory_of_one_session_is_that_session(self):
        traced = self.trace("--launches", 10)
        self.assertEqual(gpufl("verify", traced.directory).returncode, 0)


class Disabled(TestCase):
    def test_an_injected_recorder_that_is_disabled_writes_nothing(self):
        env = environment(CUDA_INJECTION64_PATH=RECORDER, GPUFL_INJECT=1, GPUFL_DISABLED=1,
                          GPUFL_PROFILING_ENGINE="Trace", GPUFL_LOG_DIR=self.directory / "log")
        result = run(FAKE_APP, "--launches", 100, env=env, cwd=self.directory)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("kernels=100", result.stdout)
        self.assertEqual(list(self.directory.iterdir()), [])

    def test_the_program_prints_the_same_traced_and_not(self):
        plain = run(FAKE_APP, "--launches", 300, "--copies")
        self.assertEqual(self.trace("--launches", 300, "--copies").stdout, plain.stdout)


class Seal(TestCase):
    def test_a_sealed_session_reads_the_same(self):
        traced = self.trace("--threads", 2, "--launches", 3000, "--copies")
        self.assert_whole(traced)
        path = traced.sessions[0]
        before = self.report(path)
        self.assertGreater(before["completeness"].pop("bytes"), 0)
        result = gpufl("seal", path)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue(list(path.glob("*.log.zst")))
        self.assertEqual(list(path.glob("*.log")), [])
        self.assert_whole(traced)
        after = self.report(path)
        self.assertGreater(after["completeness"].pop("bytes"), 0)
        for sealing in ("files", "sealed_files", "sealed_bytes"):
            before["completeness"].pop(sealing, None)
            after["completeness"].pop(sealing, None)
        self.assertEqual(after, before)
        self.assertEqual(gpufl("seal", path).returncode, 0)

    def test_all_sessions_of_a_directory_are_sealed(self):
        for launches in (10, 20):
            traced = self.trace("--launches", launches)
        result = gpufl("seal", traced.directory)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(len(result.stdout.splitlines()), 2)
        for path in traced.sessions:
            self.assertEqual(list(path.glob("*.log")), [])
            self.assertTrue(self.verify(path)["is_complete"])


if __name__ == "__main__":
    main()
