# SPDX-License-Identifier: Apache-2.0
"""Session names, `gpufl ls`, and the ways to refer to a session in every command."""
import fcntl
import json
import os
import pathlib
import pty
import re
import shutil
import struct
import subprocess
import termios

from harness import FAKE_APP, GPUFL, SOURCE, TIMEOUT_S, TestCase, environment, gpufl, main

RECORDED = SOURCE / "examples" / "recorded"


def on_terminal(columns, *arguments, cwd):
    """The lines that a command prints on a terminal of this width."""
    primary, secondary = pty.openpty()
    fcntl.ioctl(secondary, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    result = subprocess.run([GPUFL, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=secondary, cwd=cwd,
                            env=environment(), check=True, timeout=600)
    assert result.returncode == 0
    os.close(secondary)
    text = b""
    try:
        while chunk := os.read(primary, 65536):
            text += chunk
    except OSError:  # the end of a terminal
        pass
    os.close(primary)
    return text.decode().splitlines()


class Here(TestCase):
    """Commands in a working directory, as a user types them."""

    def gpufl(self, *arguments, **more):
        return gpufl(*arguments, cwd=self.directory, **more)

    def record(self, *arguments, program=FAKE_APP, options=(), env=None):
        result = self.gpufl("trace", *options, "--", program, *arguments, env=env)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stderr

    def rows(self, *arguments, env=None):
        result = self.gpufl("ls", *arguments, "--json", env=env)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return json.loads(result.stdout)

    def names(self, *arguments, env=None):
        return [row["name"] for row in self.rows(*arguments, env=env)]

    def kernels_of(self, *arguments):
        """The number of kernels in the session that these arguments refer to."""
        result = self.gpufl("report", *arguments, "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)["completeness"]["kernels"]

    def program(self, name):
        path = self.directory / name
        path.parent.mkdir(exist_ok=True)
        shutil.copy(FAKE_APP, path)
        return path


class Names(Here):
    def test_sessions_are_numbered_in_their_directory_and_the_name_is_written_into_them(self):
        for _ in range(3):
            self.record()
        rows = self.rows()
        self.assertEqual([row["name"] for row in rows], ["fake_app-3", "fake_app-2", "fake_app-1"])
        for row in rows:
            path = self.directory / row["path"]
            self.assertEqual((path / ".gpufl-session.lock").read_text(), row["name"])
            first = json.loads((path / "system.log").read_text().splitlines()[0])
            self.assertEqual((first["type"], first["session_name"]), ("job_start", row["name"]))

    def test_a_name_outlives_the_sessions_before_it(self):
        for _ in range(3):
            self.record()
        for row in self.rows()[1:]:
            shutil.rmtree(self.directory / row["path"])
        self.assertEqual(self.names(), ["fake_app-3"])
        self.record()
        self.assertEqual(self.names(), ["fake_app-4", "fake_app-3"])

    def test_a_name_outlives_its_lock_file_and_another_name_of_the_directory(self):
        self.record()
        (self.directory / self.rows()[0]["path"] / ".gpufl-session.lock").unlink()
        (self.directory / "fake_app").rename(self.directory / "kept")
        self.assertEqual(self.names(), ["fake_app-1"])

    def test_processes_that_begin_at_once_get_different_names(self):
        log = self.directory / "log"
        started = [subprocess.Popen([GPUFL, "trace", "-q", "-o", log, "--", FAKE_APP, "--launches", "1"],
                                    env=environment(), stdout=subprocess.DEVNULL) for _ in range(8)]
        self.assertEqual([process.wait(TIMEOUT_S) for process in started], [0] * 8)
        self.assertEqual(sorted(self.names("log")), [f"fake_app-{i}" for i in range(1, 9)])

    def test_sessions_without_a_name_are_numbered_on_from_the_one_before(self):
        for _ in range(3):
            self.record()
        for row in self.rows()[:2]:
            path = self.directory / row["path"]
            (path / ".gpufl-session.lock").write_text("")
            for log in path.glob("*.log"):  # as gpufl 1.0.0 wrote it
                log.write_text(re.sub(r'"session_name":"[^"]*",|,"seq":\d+,"crc":"[0-9a-f]{8}"', "", log.read_text()))
        self.assertEqual(self.names(), ["fake_app-3", "fake_app-2", "fake_app-1"])
        self.record()
        self.assertEqual(self.names()[0], "fake_app-4")

    def test_a_python_program_is_called_by_its_file_and_odd_characters_are_replaced(self):
        self.record(options=("-n", "train.py"))
        self.record(options=("-n", "my model (v2)", "-o", "train"))
        self.assertEqual(self.names(), ["my_model__v2_-2", "train-1"])

    def test_a_program_in_the_way_of_its_directory_moves_the_output_and_the_line_says_where(self):
        self.program("app")
        self.assertRegex(self.record(program="./app"), r"^gpufl: app-1 in \./app\.gpufl: .* Look: gpufl view app-1\n$")
        self.assertRegex(self.record(program="./app"), r"^gpufl: app-2 in \./app\.gpufl: ")
        self.assertEqual(self.names(), ["app-2", "app-1"])
        self.assertEqual(self.gpufl("verify", "app-1").returncode, 0)
        self.assertEqual(self.gpufl("verify", "app").returncode, 0)  # the program's newest: ./app is a file

    def test_a_trace_of_four_processes_prints_one_line(self):
        script = f"for i in 1 2 3 4; do '{FAKE_APP}' --launches 10 & done; wait"
        line = self.record("-c", script, program="sh", options=("-n", "four"))
        self.assertEqual(line, "gpufl: 4 processes in ./four, four-1 to four-4: 40 kernels, 0 lost. "
                               "Look: gpufl view four-1\n")

    def test_the_line_of_a_directory_that_is_not_searched_gives_its_path(self):
        line = self.record(options=("-o", "far/away"))
        self.assertRegex(line, r"^gpufl: fake_app-1 in far/away: .* Look: gpufl view far/away/fake_app-1\n$")
        self.assertEqual(self.gpufl("verify", "far/away/fake_app-1").returncode, 0)


class Words(Here):
    """Five sessions: other-1 and fake_app-1 to -4 of 10, 20, 30 and 40 kernels."""

    def setUp(self):
        super().setUp()
        self.record("--launches", 5, options=("-n", "other"))
        for launches in (10, 20, 30, 40):
            self.record("--launches", launches)

    def test_every_word_means_its_session(self):
        newest = self.rows()[0]
        for word, kernels in (("fake_app-2", 20), ("fake_app", 40), ("latest", 40), ("latest~", 30), ("latest~1", 30),
                              ("latest~4", 5), ("other-1", 5), ("oth", 5), ("./fake_app", 40), ("./fake_app/", 40),
                              ("other", 5), ("fake_app/fake_app-3", 30), ("fake_app/latest~3", 10), (".", 40),
                              (newest["session_id"], 40), (newest["session_id"][:-1], 40), (newest["path"], 40),
                              (str(self.directory / "fake_app" / "fake_app-1"), 10)):
            with self.subTest(word):
                self.assertEqual(self.kernels_of(word), kernels)
        self.assertEqual(self.kernels_of(), 40)

    def test_every_command_that_takes_a_session_takes_a_word_and_nothing(self):
        for command in (("report",), ("verify",), ("export", "-o", "-", "-f", "csv", "--table", "kernels"), ("seal",)):
            for word in (["fake_app-2"], []):
                with self.subTest((command, word)):
                    result = self.gpufl(*command, *word)
                    self.assertEqual(result.returncode, 0, result.stderr)
                    said = "" if word else f"gpufl {command[0]}: 5 sessions here; taking the newest, fake_app-4\n"
                    self.assertEqual(result.stderr, said)
        self.assertIn("nothing to disassemble: fake_app/", self.gpufl("disassemble", "fake_app-2").stdout)
        refused = self.gpufl("upload", "fake_app-9", "--server", "http://127.0.0.1:9")
        self.assertEqual((refused.returncode, refused.stderr), (
            3, "gpufl upload: cannot open session 'fake_app-9': no such session. Recent sessions: run 'gpufl ls'.\n"))

    def check_refused(self, word, reason):
        result = self.gpufl("verify", word)
        self.assertEqual((result.returncode, result.stdout), (3, ""))
        self.assertEqual(result.stderr, f"gpufl verify: cannot open session '{word}': {reason} "
                                        "Recent sessions: run 'gpufl ls'.\n")

    def test_a_word_that_means_none_or_several_is_refused_and_says_what_to_do(self):
        self.check_refused("train", "no such session.")
        self.check_refused("fake_app-9", "no such session.")
        self.check_refused("latest~7", "there are only 5 sessions.")
        self.check_refused("latest~x", "no such session.")
        self.check_refused("./nowhere/x", "no such directory.")
        self.check_refused("fake", "ambiguous: it matches fake_app-4, fake_app-3, fake_app-2, fake_app-1.")
        shutil.copytree(self.directory / "fake_app", self.directory / "copy")
        paths = [row["path"] for row in self.rows() if row["name"] == "fake_app-2"]
        self.check_refused("fake_app-2", f"ambiguous: it matches {paths[0]}, {paths[1]}.")
        self.assertEqual(self.kernels_of("copy/fake_app-2"), 20)

    def test_where_nothing_was_recorded_the_first_step_is_named(self):
        empty = self.directory / "empty"
        empty.mkdir()
        result = gpufl("report", cwd=empty)
        self.assertEqual((result.returncode, result.stderr), (
            3, "gpufl report: no session was recorded here. Record one: gpufl trace -- CMD, or give the directory of "
               "one\n"))

    def test_diff_with_one_session_compares_it_with_the_one_of_its_program_before_it(self):
        self.record("--launches", 5, options=("-n", "other", "-o", "fake_app"))
        self.record("--launches", 80)
        names = self.names("fake_app")
        self.assertEqual(names[:3], ["fake_app-6", "other-5", "fake_app-4"])

        def calls(*words):
            answer = json.loads(self.gpufl("diff", *words, "--allow-incomplete", "--json").stdout)
            return answer["base"]["session_id"], answer["new"]["session_id"]
        ids = {row["name"]: row["session_id"] for row in self.rows("fake_app")}
        self.assertEqual(calls("fake_app-6"), (ids["fake_app-4"], ids["fake_app-6"]))
        self.assertEqual(calls("fake_app-2"), (ids["fake_app-1"], ids["fake_app-2"]))
        self.assertEqual(calls(), (ids["fake_app-4"], ids["fake_app-6"]))
        self.assertEqual(calls("latest~2", "latest"), (ids["fake_app-4"], ids["fake_app-6"]))
        first = self.gpufl("diff", "fake_app-1")
        self.assertEqual((first.returncode, first.stderr), (
            3, "gpufl diff: there is no session of the same program before 'fake_app-1' in 'fake_app'; give two sessions "
               "to compare\n"))

    def test_sessions_in_the_directory_of_the_environment_are_here_too(self):
        elsewhere = self.directory / "far" / "away"
        env = environment(GPUFL_LOG_DIR=elsewhere)
        self.record("--launches", 7, options=("-n", "far"), env=env)
        self.assertEqual(self.names(env=env)[0], "far-1")
        self.assertNotIn("far-1", self.names())
        self.assertEqual(self.gpufl("verify", "far-1", env=env).returncode, 0)


class List(Here):
    def test_recorded_sessions_are_listed_newest_first_with_what_they_hold(self):
        rows = {row["name"]: row for row in self.rows(RECORDED)}
        self.assertEqual(set(rows), {path.name for path in RECORDED.iterdir() if path.is_dir()})
        starts = [row["start_ns"] for row in self.rows(RECORDED)]
        self.assertEqual(starts, sorted(starts, reverse=True))
        training = rows["h200-training"]
        self.assertEqual([training[key] for key in ("program", "engine", "kernels", "lost_records", "state")],
                         ["pytorch_training.py", "Trace", 146100, 0, "complete"])
        self.assertEqual(training["duration_ns"], 12310919427)
        self.assertEqual(training["bytes"], sum(path.stat().st_size for path in (RECORDED / "h200-training").iterdir()))
        for name, row in rows.items():
            completeness = self.report(RECORDED / name)["completeness"]
            self.assertEqual(row["kernels"], completeness["kernels"], name)

    def test_a_session_that_was_killed_or_runs_or_lost_something_says_so(self):
        self.record()
        killed = self.gpufl("trace", "--", FAKE_APP, "--crash", "9")
        self.assertEqual(killed.returncode, 137, killed.stderr)
        (self.directory / "fake_app" / "01a00000-0000-7000-8000-000000000000").mkdir()
        rows = self.rows()
        self.assertEqual([(row["name"], row["state"], row["kernels"]) for row in rows[:2]],
                         [("fake_app-2", "cut off", None), ("fake_app-1", "complete", 100)])
        self.assertEqual((rows[2]["name"], rows[2]["state"]), (None, "unreadable"))
        holder = subprocess.Popen([GPUFL, "trace", "-q", "--", FAKE_APP, "--until-input-ends"], env=environment(),
                                  cwd=self.directory, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        try:
            while not any(row["state"] == "running" for row in self.rows()):
                self.assertIsNone(holder.poll())
        finally:
            holder.communicate(timeout=600)

    def test_the_table_fits_the_terminal_and_a_pipe_gets_whole_names(self):
        long = "a_program_with_a_very_long_name_indeed"
        self.record(options=("-n", long))
        self.record(options=("-e", "RangeProfiler"))
        for columns in (60, 80, 200):
            lines = on_terminal(columns, "ls", cwd=self.directory)
            self.assertEqual(len(lines), 3)
            self.assertLessEqual(max(map(len, lines)), columns, "\n".join(lines))
            self.assertTrue(lines[0].startswith("NAME"), lines[0])
        piped = self.gpufl("ls").stdout.splitlines()
        self.assertEqual({line.split()[0] for line in piped}, {"NAME", "fake_app-1", f"{long}-1"})
        self.assertEqual(piped[0].split(), ["NAME", "STARTED", "PROGRAM", "ENGINE", "TIME", "KERNELS", "STATE", "SIZE"])

    def test_two_sessions_of_one_name_are_listed_by_their_paths(self):
        self.record(options=("-o", "a"))
        self.record(options=("-o", "b"))
        listed = [line.split()[0] for line in self.gpufl("ls").stdout.splitlines()[1:]]
        self.assertEqual(listed, ["b/fake_app-1", "a/fake_app-1"])
        for word in listed:
            self.assertEqual(self.gpufl("verify", word).returncode, 0)

    def test_files_that_only_look_like_a_log_are_not_listed(self):
        (self.directory / "var").mkdir()
        (self.directory / "var" / "system.log").write_text("Nov 17 02:00:00 host kernel: hello\n")
        result = self.gpufl("ls")
        self.assertEqual((result.returncode, result.stdout), (0, ""))
        self.assertEqual(result.stderr, "gpufl: no sessions in this directory. Record one: gpufl trace -- CMD\n")
        self.assertEqual(self.rows(), [])

    def test_a_directory_that_is_not_there_is_an_error(self):
        result = self.gpufl("ls", "nowhere")
        self.assertEqual((result.returncode, result.stderr),
                         (3, "gpufl ls: cannot open 'nowhere': No such file or directory\n"))


if __name__ == "__main__":
    main()
