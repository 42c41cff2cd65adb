# SPDX-License-Identifier: Apache-2.0
"""Data that exists only on this disk is not deleted: files that cannot be read or are damaged, windows that the server
refused, sessions that are still being written. And a session that was moved is sent from its new place."""
import json
import os
import shutil
import signal
import subprocess
import time
import urllib.request

from agent_fixture import ON_BAD_FILES, AgentTest, wait_for
from harness import TIMEOUT_S, environment, gpufl, main, sessions
from upload_server import Reply, Server

WITHOUT_LOCKS = {**ON_BAD_FILES, "GPUFL_TEST_NO_LOCKS": 1}
OUTAGE = Reply(503, headers={"Retry-After": "1"})  # without the header the agent's pauses grow to a minute


class Unsent(AgentTest):
    def sealed(self):
        """A session of several sealed files per channel."""
        session = self.record("--launches", 12000, rotate_bytes=65536)
        self.assertEqual(gpufl("seal", session).returncode, 0)
        self.assertGreater(len(list(session.glob("device.*.log.zst"))), 1)
        return session

    def assert_kept(self, session, server, *causes):
        """The rest was sent, the session stays, also after a restart, and the cause is reported."""
        files = sorted(file.name for file in session.iterdir())
        result, answer = self.once(server, "--delete-after-ack")
        self.assertEqual(result.returncode, 1, result.stderr)
        for cause in causes:
            self.assertGreater(answer[cause], 0, answer)
        self.assertEqual(server.completed, [session.name])
        self.assertNotIn("deleted", result.stderr)
        self.once(server, "--delete-after-ack")
        self.assertEqual(sorted(file.name for file in session.iterdir()), files)

    def test_a_temporarily_unreadable_file_is_sent_later(self):
        session = self.sealed()
        trouble = self.directory / "trouble"
        trouble.touch()
        variables = {**ON_BAD_FILES, "GPUFL_TEST_EIO_FILE": "/device.000001.", "GPUFL_TEST_EIO_WHILE": trouble}
        with Server() as server:
            result, answer = self.once(server, "--delete-after-ack", **variables)
            self.assertEqual((result.returncode, answer["waiting_sessions"]), (1, 1), result.stderr)
            self.assertIn("device.000001.log.zst: cannot be read", result.stderr)
            self.assertEqual(server.completed, [])
            self.assertTrue((session / "device.000001.log.zst").exists())
            agent = self.start(server, "--delete-after-ack", **variables)
            said = agent.stdout.readline()
            self.assertIn("device.000001.log.zst: cannot be read", said)
            trouble.unlink()
            wait_for(lambda: not session.exists(), "the session, sent and deleted")
            self.stop(agent)
            self.assert_whole(server, session.name)

    def test_a_damaged_segment_is_kept(self):
        session = self.sealed()
        segment = session / "device.000001.log.zst"
        content = bytearray(segment.read_bytes())
        content[len(content) // 3] ^= 0x10
        segment.write_bytes(content)
        with Server() as server:
            self.assert_kept(session, server, "missing_lines", "damaged_sessions")

    def test_a_damaged_line_is_kept(self):
        session = self.record()
        file = session / "device.log"
        lines = file.read_bytes().split(b"\n")
        longest = max(range(len(lines)), key=lambda index: len(lines[index]))
        middle = len(lines[longest]) // 2
        lines[longest] = lines[longest][:middle] + b"\x01" + lines[longest][middle + 1:]
        file.write_bytes(b"\n".join(lines))
        with Server() as server:
            self.assert_kept(session, server, "left_out_lines")

    def test_a_refused_window_keeps_its_session(self):
        session = self.record()
        with Server([Reply(402, {"error": {"code": "plan", "message": "no more this month"}})]) as server:
            files = sorted(file.name for file in session.iterdir())
            result, answer = self.once(server, "--delete-after-ack")
            self.assertEqual((result.returncode, answer["quarantined_windows"]), (1, 1), result.stderr)
            self.once(server, "--delete-after-ack")
            self.assertEqual(sorted(file.name for file in session.iterdir()), files)

    def test_a_gap_in_the_numbers_is_reported_and_does_not_keep_the_session(self):
        session = self.record()
        file = session / "device.log"
        lines = file.read_bytes().split(b"\n")
        del lines[len(lines) // 2]
        file.write_bytes(b"\n".join(lines))
        with Server() as server:
            result, answer = self.once(server, "--delete-after-ack")
            self.assertEqual((result.returncode, answer["missing_lines"]), (0, 1), result.stderr)
        self.assertFalse(session.exists())


class Foreign(AgentTest):
    """Files that have the names of a recording, but other contents."""

    NAME = "0190a5c7-5b1e-7cc3-98f4-5d3f4b6d8a11"

    def foreign(self, **files):
        directory = self.log / self.NAME
        directory.mkdir(parents=True)
        for name, content in files.items():
            (directory / (name + ".log")).write_bytes(content)
        return directory

    @staticmethod
    def contents(directory):
        return {file.name: file.read_bytes() for file in directory.iterdir()}

    def test_files_that_are_not_a_recording_are_not_deleted_to_stay_below_the_limit(self):
        contents = {"system": b"Nov 16 kernel: somebody's own words\n" * 1000, "device": b"without a line's end",
                    "scope": b'{"type":"note","text":"JSON of somebody else"}\n' * 50}
        directory = self.foreign(**contents)
        before = self.contents(directory)
        for replies in ((), lambda path: Reply(503)):
            with Server(replies) as server:
                result, answer = self.once(server, "--spool-bytes", 1, "--delete-after-ack")
            self.assertEqual(self.contents(directory), before, result.stderr)
            self.assertEqual(answer["dropped_lines"], 0, result.stderr)

    def test_a_recording_of_another_session_is_not_deleted(self):
        session = self.record()
        # Without a job_start the session id is the directory's name.
        lines = [line for line in (session / "device.log").read_bytes().splitlines(True) if b'"job_start"' not in line]
        directory = self.foreign(device=b"".join(lines))
        shutil.rmtree(session)
        before = self.contents(directory)
        for replies in ((), lambda path: Reply(503)):
            with Server(replies) as server:
                result, _ = self.once(server, "--spool-bytes", 1)
            self.assertEqual(self.contents(directory), before, result.stderr)

    def test_a_foreign_file_in_a_session_stays_when_the_session_is_deleted(self):
        for options, replies in ((("--delete-after-ack",), ()), (("--spool-bytes", 1), lambda path: Reply(503))):
            session = self.record()
            note = session / "sass.log"
            note.write_bytes(b"somebody's own words, without an end")
            with Server(replies) as server:
                result, _ = self.once(server, *options)
            left = {name for name in self.contents(session) if not name.startswith(".gpufl-")}
            self.assertEqual(left, {"sass.log"}, result.stderr)
            self.assertIn("sass.log", result.stderr)
            shutil.rmtree(session)


class Rejected(AgentTest):
    """Lines that the server rejected from a window that it accepted."""

    ANSWER = Reply(200, {"accepted_for_processing": True, "window_acknowledged": True, "accepted": 1, "rejected": 2,
                         "errors": [{"line": 1, "type": "x", "reason": "too new"}]})

    def test_a_session_with_rejected_lines_is_kept(self):
        session = self.record()
        files = sorted(file.name for file in session.iterdir())
        with Server([self.ANSWER]) as server:
            result, answer = self.once(server, "--delete-after-ack")
            self.assertEqual((result.returncode, answer["rejected_lines"]), (1, 2), result.stderr)
            self.assertIn("too new", result.stderr)
            self.assertEqual(server.completed, [session.name])
            self.once(server, "--delete-after-ack")
        self.assertEqual(sorted(file.name for file in session.iterdir()), files)

    def test_rejected_lines_are_deleted_before_unsent_ones_and_are_counted(self):
        rejected = self.record()
        with Server([self.ANSWER]) as server:
            self.once(server)
            unsent = self.record()
            os.utime(unsent / "device.log", (1, 1))
            size = sum(file.stat().st_size for file in unsent.iterdir())
            server.replies = lambda path: Reply(503)
            result, answer = self.once(server, "--spool-bytes", size + size // 2)
        self.assertEqual((rejected.exists(), unsent.exists()), (False, True), result.stderr)
        self.assertEqual(answer["dropped_lines"], 2, result.stderr)

    def test_quarantined_windows_count_as_spool(self):
        session = self.record()
        with Server([Reply(402)] * 3) as server:
            _, answer = self.once(server)
            self.assertEqual(answer["quarantined_windows"], 3)
            quarantine = self.state / "quarantine"
            note = quarantine / "mine.json"
            note.write_text("{}")
            self.assertEqual(len(list(quarantine.iterdir())), 7)
            result, answer = self.once(server, "--spool-bytes", sum(f.stat().st_size for f in session.iterdir()) + 10)
        self.assertEqual([file.name for file in quarantine.iterdir()], ["mine.json"], result.stderr)
        self.assertTrue(session.exists())
        self.assertIn("the disk budget is exceeded", result.stderr)


class Written(AgentTest):
    def test_without_working_locks_the_files_of_a_running_program_stay(self):
        with Server() as server:
            program = self.program("--until-input-ends", "--pause-us", 200, "--scopes", stdin=subprocess.PIPE,
                                   **WITHOUT_LOCKS)
            self.addCleanup(program.stdin.close)
            agent = self.start(server, "--delete-after-ack", **WITHOUT_LOCKS)
            wait_for(lambda: server.rows("kernel_event_batch") > 100, "kernels")
            # After the time at which a session without a lock is considered complete, and deleted.
            time.sleep(5)
            self.assertIsNone(program.poll())
            session = sessions(self.log)[0]
            self.assertTrue((session / "device.log").exists())
            self.assertEqual(server.completed, [])
            with Server() as other:
                result, answer = self.once(other, "--state", self.directory / "other", "--delete-after-ack",
                                           **WITHOUT_LOCKS)
                self.assertEqual((result.returncode, answer["sessions"]), (0, 0), result.stderr)
            self.assertTrue((session / "device.log").exists())
            program.stdin.close()
            self.assertEqual(program.wait(TIMEOUT_S), 0)
            wait_for(lambda: server.completed and not session.exists(), "the session, sent and deleted")
            self.stop(agent)
            self.assert_whole(server, session.name)

    def test_without_working_locks_a_program_without_an_end_is_dead_after_a_day_of_silence(self):
        traced = self.trace("--launches", 2000, "--crash", int(signal.SIGKILL), env=environment(**WITHOUT_LOCKS))
        session = traced.sessions[0]
        for age_s, is_dead in ((3600, False), (2 * 86400, True)):
            for file in session.iterdir():
                os.utime(file, (time.time() - age_s,) * 2)
            with Server() as server:
                result, _ = self.once(server, "--delete-after-ack", **WITHOUT_LOCKS)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertEqual((server.completed, session.exists()), ([session.name] * is_dead, not is_dead))

    def test_lines_written_after_the_last_check_are_sent_before_the_session_is_deleted(self):
        late = {"version": 1, "type": "nvtx_marker_event", "name": "late"}
        log = self.log
        for _ in range(2):
            self.record()

        class Slow(Server):
            """While one session is being sent, a line is added to the other, which is complete."""

            def take(self, path, headers, body):
                reply = super().take(path, headers, body)
                if len(self.completed) == 2 and "session_id" not in late:
                    late["session_id"] = self.completed[0]
                    with open(log / self.completed[0] / "scope.log", "a", encoding="utf-8") as file:
                        file.write(json.dumps(late) + "\n")
                    time.sleep(2.5)
                return reply

        with Slow() as server:
            agent = self.start(server, "--delete-after-ack")
            wait_for(lambda: not sessions(log), "both sessions, sent and deleted")
            self.stop(agent)
            self.assertEqual(server.breaches, [])
            self.assertEqual([line for line in server.lines() if line.get("name") == "late"], [late])


class Moved(AgentTest):
    def test_a_session_that_is_moved_in_an_outage_is_sent_from_its_new_place(self):
        session = self.record()
        current, archive = self.log / "current", self.log / "archive"
        current.mkdir()
        session.rename(current / session.name)
        is_down = []

        def reply(_):
            is_down.append(True)
            return OUTAGE if len(is_down) != 1 else Reply()
        with Server(reply) as server:
            agent = self.start(server)
            wait_for(lambda: len(server.requests) > 2, "a window, and the outage")
            current.rename(archive)
            time.sleep(1)
            server.replies = []
            wait_for(lambda: server.completed, "the session")
            text = self.stop(agent)
            self.assertIn("archive", text)
            self.assert_arrived(server, archive / session.name)
            self.assertEqual(len(set(server.window_ids())), len(server.windows))

    def test_a_copy_is_sent_when_the_first_session_is_gone(self):
        session = self.record()
        copy = self.log / "copies" / session.name
        with Server(lambda path: OUTAGE) as server:
            agent = self.start(server, "--listen", "127.0.0.1:0")
            address = agent.stdout.readline().rsplit(" ", 1)[1].strip()
            wait_for(lambda: len(server.requests) > 1, "the outage")
            shutil.copytree(session, copy)

            def page():
                with urllib.request.urlopen(address, timeout=600) as answer:
                    return answer.read().decode()
            wait_for(lambda: "\ngpufl_agent_sessions_waiting 2\n" in page(), "the copy, which waits too")
            shutil.rmtree(session)
            server.replies = []
            wait_for(lambda: server.completed, "the session")
            text = self.stop(agent)
            self.assertEqual(text.count("it is the same session as"), 1, text)
            self.assert_arrived(server, copy)


if __name__ == "__main__":
    main()
