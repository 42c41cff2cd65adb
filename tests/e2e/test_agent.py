# SPDX-License-Identifier: Apache-2.0
"""gpufl agent against a local server that checks every byte and can misbehave."""
import collections
import gzip
import json
import os
import shutil
import subprocess
import time
import urllib.request
import uuid
import zlib

from agent_fixture import ON_BAD_FILES, AgentTest, wait_for
from harness import GPUFL, TIMEOUT_S, Session, environment, gpufl, main, run, sessions
from test_upload import KEY, canonical
from upload_server import Reply, Server


class Delivery(AgentTest):
    def test_existing_sessions_arrive_once(self):
        session = self.record()
        with Server() as server:
            result, answer = self.once(server)
            self.assertEqual((result.returncode, answer["sessions"]), (0, 1), result.stderr)
            self.assert_arrived(server, session)
            self.assertEqual(server.completed, [session.name])
            self.assertEqual(answer["lines"], len(server.lines()))
            before = len(server.requests)
            result, answer = self.once(server)
            self.assertEqual((result.returncode, answer["windows"], len(server.requests)), (0, 0, before))
            for file in self.state.glob("*.json"):
                self.assertEqual(file.stat().st_mode & 0o777, 0o600)
                self.assertNotIn(KEY, file.read_text())
        with Server() as other:
            self.assertEqual(self.once(other)[0].returncode, 0)
            self.assert_arrived(other, session)

    def test_a_missing_root_is_reported(self):
        session = self.record()
        missing, file = self.directory / "lgo", self.directory / "file"
        file.write_text("")
        with Server() as server:
            for root, words in ((missing, "does not exist yet"), (file, "is not a directory")):
                result, answer = self.once(server, roots=[root, self.log])
                self.assertEqual(result.returncode, 3, result.stderr)
                self.assertEqual(result.stderr.count(f"root {root} {words}"), 1, result.stderr)
                self.assertEqual(answer["message"], f"nothing was sent from {root}")
            # The other roots are still sent.
            self.assert_arrived(server, session)
        with Server() as other:
            agent = self.start(other, roots=[missing])
            while "does not exist yet" not in agent.stdout.readline():
                self.assertIsNone(agent.poll())
            self.log.rename(missing)
            wait_for(lambda: other.completed, "the root")
            self.assertNotIn("does not exist yet", self.stop(agent))

    def test_lines_arrive_while_the_program_runs(self):
        with Server() as server:
            agent = self.start(server)
            program = self.program("--until-input-ends", "--pause-us", 200, "--scopes", stdin=subprocess.PIPE)
            wait_for(lambda: server.rows("kernel_event_batch") > 100, "kernels")
            self.assertIsNone(program.poll())
            self.assertEqual(server.completed, [])
            program.stdin.close()
            self.assertEqual(program.wait(TIMEOUT_S), 0)
            wait_for(lambda: server.completed, "the end of the session")
            self.stop(agent)
            self.assert_arrived(server, sessions(self.log)[0])

    def test_sealing_during_the_upload_changes_nothing(self):
        with Server() as server:
            agent = self.start(server)
            program = self.program("--until-input-ends", "--pause-us", 30, "--scopes", "--copies", rotate_bytes=65536,
                                   stdin=subprocess.PIPE)
            wait_for(lambda: len(list(self.log.glob("*/*.log.zst"))) > 1, "sealed files")
            program.stdin.close()
            self.assertEqual(program.wait(TIMEOUT_S), 0)
            wait_for(lambda: server.completed, "the end of the session")
            session = sessions(self.log)[0]
            self.assertEqual(gpufl("seal", session).returncode, 0)
            before = len(server.windows)
            time.sleep(0.3)
            self.stop(agent)
            self.assertEqual(len(server.windows), before)
            self.assert_whole(server, session.name)
            # An agent that starts with the sealed files sends the same lines.
            with Server() as other:
                self.assertEqual(self.once(other)[0].returncode, 0)
                self.assertEqual(canonical(other.counted_lines()), canonical(server.counted_lines()))

    def test_zstd_where_the_server_takes_it(self):
        session = self.record()
        with Server(encodings=("gzip", "zstd")) as server:
            self.assertEqual(self.once(server)[0].returncode, 0)
            self.assertEqual({headers["Content-Encoding"] for headers, _ in server.windows}, {"zstd"})
            self.assert_arrived(server, session)

    def test_many_sessions_in_two_roots(self):
        expected = []
        for _ in range(3):
            expected.append(self.record())
        template = expected[0]
        roots = [self.directory / "log", self.directory / "other" / "deep"]
        for number in range(20):
            name = str(uuid.uuid4())
            copy = roots[1] / f"app{number % 4}" / name
            copy.mkdir(parents=True)
            for file in template.glob("*.log"):
                # Another session id changes the bytes, so the lines' checksums are removed.
                lines = [json.loads(line) for line in file.read_text().splitlines()]
                for line in lines:
                    line.update(session_id=name)
                    del line["seq"], line["crc"]
                (copy / file.name).write_text("".join(json.dumps(line) + "\n" for line in lines))
            expected.append(copy)
        with Server() as server:
            agent = self.start(server, roots=roots[:1] + [self.directory / "other"])
            wait_for(lambda: len(server.completed) >= 23, "all sessions")
            self.stop(agent)
            self.assertEqual(sorted(server.completed), sorted(path.name for path in expected))
            self.assert_arrived(server, *expected)

    def test_the_same_session_twice_is_sent_once(self):
        session = self.record()
        copy = self.directory / "log" / "copies" / session.name
        shutil.copytree(session, copy)
        with Server() as server:
            result, _ = self.once(server)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("it is the same session as", result.stderr)
            self.assert_arrived(server, session)

    def test_growth_after_the_end_is_sent_too(self):
        session = self.record()
        last = Session(session).lines["scope"][-1]
        with Server() as server:
            agent = self.start(server)
            wait_for(lambda: server.completed, "the end of the session")
            late = {"version": 1, "type": "nvtx_marker_event", "session_id": session.name, "name": "late"}
            with open(session / "scope.log", "a", encoding="utf-8") as file:
                file.write(json.dumps(late))
                file.flush()
                time.sleep(0.1)
                self.assertEqual(len(server.completed), 1)  # a partial line is not sent
                file.write("\n")
            wait_for(lambda: len(server.completed) == 2, "the second end")
            self.stop(agent)
            self.assertEqual([line for line in server.lines() if line.get("name") == "late"], [late])
            window = server.windows[-1][0]
            self.assertEqual(int(window["X-GpuFlight-Window-Sequence"]), last["seq"] + 1)

    def make_windows(self):
        """A session of GPUFlight's: two windows in each of two channels, and a rest in .tmp. Returns the ids."""
        lines = {"device": {"version": 1, "type": "job_start", "pid": 1, "app": "v1", "ts_ns": 1},
                 "system": {"version": 1, "type": "system_start", "pid": 1, "name": "s", "ts_ns": 2}}
        session = self.log / str(uuid.uuid4())
        (session / ".tmp").mkdir(parents=True)
        names = {}
        for channel, record in lines.items():
            for number in (1, 2):
                text = json.dumps({**record, "session_id": session.name, "n": number}) + "\n"
                payload = gzip.compress(text.encode())
                (session / f"{channel}.{number}.log.gz").write_bytes(payload)
                names[channel, number] = str(uuid.uuid4())
                (session / f".gpufl-window.{channel}.{number}.json").write_text(json.dumps(
                    {"schema_version": 1, "type": "transport_window", "window_id": names[channel, number],
                     "session_id": session.name, "channel": channel, "window_sequence": number,
                     "payload_file": f"{channel}.{number}.log.gz", "payload_bytes": len(payload),
                     "payload_crc32": zlib.crc32(payload)}))
        (session / ".tmp" / "device.log").write_text(json.dumps(
            {"type": "shutdown", "pid": 1, "app": "v1", "session_id": session.name, "ts_ns": 9}) + "\n{\"torn")
        return session, names

    @staticmethod
    def places(server):
        return {(headers["X-GpuFlight-Window-Channel"], int(headers["X-GpuFlight-Window-Sequence"])):
                headers["X-GpuFlight-Window-Id"] for headers, _ in server.windows}

    def test_gpuflights_windows_are_sent_unchanged(self):
        session, names = self.make_windows()
        with Server(encodings=("gzip", "zstd")) as server:
            result, answer = self.once(server)
            self.assertEqual((result.returncode, answer["windows"]), (0, 5), result.stderr)
            self.assertEqual(server.breaches, [])
            sent = self.places(server)
            self.assertIsNotNone(sent.pop(("device", 3)))  # unpublished, with the number that it would have got
            self.assertEqual(sent, names)
            self.assertEqual(collections.Counter(line["type"] for line in server.lines()),
                             {"job_start": 2, "system_start": 2, "shutdown": 1})
            self.assertEqual(server.completed, [session.name])
            self.assertEqual(self.once(server)[1]["windows"], 0)

    def test_a_window_that_does_not_match_its_sidecar_is_not_sent(self):
        session, names = self.make_windows()
        with open(session / "device.1.log.gz", "ab") as file:
            file.write(b"x")
        (session / "system.1.log.gz").unlink()
        with Server() as server:
            result, answer = self.once(server, "--delete-after-ack")
            self.assertEqual((result.returncode, answer["left_out_windows"]), (1, 2), result.stderr)
            self.assertIn("device.1.log.gz: the size is", result.stderr)
            self.assertEqual(sorted(self.places(server)), [("device", 2), ("device", 3), ("system", 2)])
        self.assertTrue((session / "device.1.log.gz").exists())

    def test_a_temporarily_unreadable_window_is_sent_later(self):
        session, names = self.make_windows()
        trouble = self.directory / "trouble"
        for file in ("system.1.log.gz", ".tmp/device.log"):
            trouble.touch()
            variables = {**ON_BAD_FILES, "GPUFL_TEST_EIO_FILE": f"/{file}", "GPUFL_TEST_EIO_WHILE": trouble}
            shutil.rmtree(self.state, ignore_errors=True)
            with Server() as server:
                result, answer = self.once(server, **variables)
                self.assertEqual((result.returncode, answer["waiting_sessions"], server.completed), (1, 1, []),
                                 result.stderr)
                self.assertIn(f"{file}: ", result.stderr)
                trouble.unlink()
                self.assertEqual(self.once(server, **variables)[0].returncode, 0)
                self.assertEqual(sorted(self.places(server)), sorted([*names, ("device", 3)]))
                self.assertEqual(server.completed, [session.name])


class Answers(AgentTest):
    def test_the_agent_survives_errors_dropped_connections_and_unexpected_answers(self):
        session = self.record()
        replies = [Reply(503), Reply(500), Reply(action="drop"), Reply(200, text="<html>Please log in</html>"),
                   Reply(429, headers={"Retry-After": "1"}), Reply(action="half")]
        with Server(replies) as server:
            agent = self.start(server)
            wait_for(lambda: server.completed, "the session")
            self.stop(agent)
            self.assert_arrived(server, session)
            times = [when for _, when in server.requests]
            self.assertGreaterEqual(times[5] - times[4], 1.0)  # Retry-After

    def test_a_refused_key_stops_the_agent_and_is_reported(self):
        self.record()
        with Server(lambda path: Reply(401, {"message": "unknown key " + KEY})) as server:
            result, _ = self.once(server)
            self.assertEqual(result.returncode, 3)
            self.assertIn("refused the API key (HTTP 401)", result.stderr)
            self.assertNotIn(KEY, result.stderr)
            self.assertEqual(len(server.requests), 1)

    def test_a_new_key_in_the_file_is_used(self):
        session = self.record()
        key_file = self.directory / "key"
        key_file.write_text("gpfl_old\n")
        with Server(lambda path: Reply(401)) as server:
            server.key = "gpfl_old"
            self.assertEqual(self.once(server, "--key-file", key_file, key=None)[0].returncode, 3)
            key_file.write_text(KEY + "\n")
            server.key, server.replies = KEY, []
            self.assertEqual(self.once(server, "--key-file", key_file, key=None)[0].returncode, 0)
            self.assert_arrived(server, session)

    def test_an_older_server_is_recognized(self):
        self.record()
        with Server(lambda path: Reply(404)) as server:
            result, _ = self.once(server)
            self.assertEqual(result.returncode, 3)
            self.assertIn("older server", result.stderr)

    def test_a_refused_window_goes_to_quarantine_and_the_others_are_sent(self):
        session = self.record()
        for status in (402, 409, 413, 422):
            shutil.rmtree(self.state, ignore_errors=True)
            with Server([Reply(status, {"error": {"code": "no", "message": "not this one"}})]) as server:
                result, answer = self.once(server)
                self.assertEqual((result.returncode, answer["quarantined_windows"]), (1, 1), result.stderr)
                notes = list((self.state / "quarantine").glob("*.json"))
                note = json.loads(notes[0].read_text())
                self.assertIn(f"HTTP {status}", note["reason"])
                self.assertIn("not this one", note["reason"])
                body = gzip.decompress((self.state / "quarantine" / note["body"]).read_bytes())
                aside = [json.loads(line) for line in body.splitlines()]
                written = canonical(line for lines in Session(session).lines.values() for line in lines)
                self.assertEqual(canonical(server.counted_lines() + aside), written)
                self.assertEqual(server.completed, [session.name])

    def test_an_unreachable_server_is_reported(self):
        self.record()
        with Server() as server:
            pass
        result, answer = self.once(server)
        self.assertEqual((result.returncode, answer["waiting_sessions"]), (3, 1))
        self.assertIn("did not answer", result.stderr)

    def test_the_bandwidth_limit_is_kept(self):
        self.record()
        with Server() as server:
            result, answer = self.once(server)
            self.assertEqual(result.returncode, 0)
            total, windows = answer["bytes"], answer["windows"]
        shutil.rmtree(self.state)
        rate = total // 3
        with Server() as server:
            self.assertEqual(self.once(server, "--rate", rate)[0].returncode, 0)
            spent = server.requests[-1][1] - server.requests[0][1]
            self.assertEqual(len(server.windows), windows)
            # The first second's bytes may be sent at once, and nothing waits for the last window.
            largest = total  # no window is larger
            self.assertGreaterEqual(spent, (total - rate - largest) / rate)


class Keeping(AgentTest):
    def test_acknowledged_sessions_are_deleted_on_request(self):
        for answer, is_left in (({"accepted_for_processing": True}, True), (None, False)):
            shutil.rmtree(self.state, ignore_errors=True)
            session = self.record()
            foreign = session / "notes.txt"
            with Server(lambda path: Reply(202, answer)) as server:
                result, _ = self.once(server, "--delete-after-ack")
                self.assertEqual(result.returncode, 0, result.stderr)
            # Only sessions that the server acknowledged as durable may be deleted.
            self.assertEqual(session.exists(), is_left, foreign)
            shutil.rmtree(self.log, ignore_errors=True)

    def test_foreign_files_are_not_touched(self):
        session = self.record()
        (session / "notes.txt").write_text("mine")
        with Server() as server:
            self.assertEqual(self.once(server, "--keep-days", 0)[0].returncode, 0)
        self.assertEqual([entry.name for entry in session.iterdir()], ["notes.txt"])

    def test_over_the_budget_the_oldest_session_is_deleted_and_counted(self):
        old, new = self.record(), self.record()
        for file in old.iterdir():
            os.utime(file, (1, 1))
        size = sum(file.stat().st_size for file in new.iterdir())
        with Server(lambda path: Reply(503)) as server:
            result, answer = self.once(server, "--spool-bytes", size + size // 2)
            lines = answer["dropped_lines"]
            self.assertEqual(result.returncode, 3)
            self.assertGreater(lines, 5)
            self.assertIn(f"deleted with {lines} unsent lines", result.stderr)
        self.assertEqual((old.exists(), new.exists()), (False, True))


class Pages(AgentTest):
    def test_metrics_and_health(self):
        self.record()
        with Server() as server:
            agent = self.start(server, "--listen", "127.0.0.1:0")
            wait_for(lambda: server.completed, "the session")
            address = agent.stdout.readline().rsplit(" ", 1)[1].strip()
            self.assertTrue(address.startswith("http://127.0.0.1:"), address)

            def page():
                with urllib.request.urlopen(address, timeout=600) as answer:
                    return answer.read().decode()
            wanted = ["gpufl_agent_sessions 1", "gpufl_agent_sessions_waiting 0", "gpufl_agent_backlog_bytes 0",
                      "gpufl_agent_sessions_completed_total 1",
                      f"gpufl_agent_windows_sent_total {len(server.windows)}",
                      f"gpufl_agent_lines_sent_total {len(server.lines())}"]
            wait_for(lambda: all(f"\n{line}\n" in page() for line in wanted), "the counts")
            with urllib.request.urlopen(address.replace("/metrics", "/healthz"), timeout=600) as answer:
                self.assertEqual(json.loads(answer.read())["status"], "ok")
            self.stop(agent)

    def test_settings_from_a_file(self):
        session = self.record()
        with Server() as server:
            config = self.directory / "agent.json"
            config.write_text(json.dumps({"roots": [str(self.log)], "server": server.url, "state": str(self.state)}))
            result = gpufl("agent", "--config", config, "--once", env=environment(GPUFL_API_KEY=KEY))
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assert_arrived(server, session)
            config.write_text('{"rots": []}')
            result = gpufl("agent", "--config", config, "--once", env=environment())
            self.assertEqual(result.returncode, 2)
            self.assertIn("did you mean 'roots'?", result.stderr)

    def test_the_binary_works_under_the_name_gpufl_agent(self):
        session = self.record()
        with Server() as server:
            result = run(GPUFL.with_name("gpufl-agent"), "--root", self.log, "--server", server.url, "--state", self.state,
                         "--once", env=environment(GPUFL_API_KEY=KEY))
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assert_arrived(server, session)


if __name__ == "__main__":
    main()
