# SPDX-License-Identifier: Apache-2.0
"""gpufl upload and gpufl trace --upload against a local server that checks every byte and misbehaves on request."""
import collections
import ctypes
import json
import os
import pathlib
import shutil
import socket
import stat
import subprocess
import unittest

from harness import BUILD, SANITIZERS, SOURCE, Session, TestCase, environment, gpufl, main, needs, run, sessions
from upload_server import COMPLETE, Reply, Server

KEY = "gpfl_test_key"
CURSOR = ".gpufl-uploaded.json"


def canonical(lines):
    """Records without the members that only the log needs."""
    result = collections.Counter()
    for line in lines:
        result[json.dumps({name: value for name, value in line.items() if name != "crc"}, sort_keys=True)] += 1
    return result


class UploadTest(TestCase):
    def record(self, *arguments, rotate_bytes=None):
        traced = self.trace("--launches", 3000, "--copies", "--scopes", *arguments,
                            env=environment(GPUFL_LOG_ROTATE_BYTES=rotate_bytes))
        self.assertEqual(traced.returncode, 0, traced.stderr)
        return sessions(traced.directory)[0]

    def upload(self, directory, url, *options, key=KEY, **variables):
        return gpufl("upload", directory, "--server", url, *options, env=environment(GPUFL_API_KEY=key, **variables))

    def upload_json(self, directory, url, *options, **variables):
        result = self.upload(directory, url, "--json", *options, **variables)
        answer = json.loads(result.stdout)
        self.assertEqual(answer["success"], result.returncode == 0)
        return result, answer

    def assert_arrived_once(self, server, session):
        """Exactly the session's records, in order within each channel."""
        self.assertEqual(server.breaches, [])
        written = Session(session)
        self.assertEqual(canonical(server.lines()), canonical(line for lines in written.lines.values() for line in lines))
        self.assertEqual(len(set(server.window_ids())), len(server.windows))


class Delivery(UploadTest):
    def test_every_record_arrives_once_in_wire_v1(self):
        session = self.record()
        with Server() as server:
            result, answer = self.upload_json(session, server.url)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assert_arrived_once(server, session)
            self.assertEqual(server.completed, [session.name])
            self.assertEqual((answer["sessions"], answer["files_skipped"], answer["http_status"]), (1, 0, 202))
            self.assertEqual(answer["files_uploaded"], len(server.windows))
            self.assertEqual(answer["events_uploaded"], server.events())

    def test_sealed_files_arrive_as_the_plain_ones_would(self):
        session = self.record(rotate_bytes=65536)
        expected = canonical(line for lines in Session(session).lines.values() for line in lines)
        self.assertEqual(gpufl("seal", session).returncode, 0)
        self.assertGreater(len(list(session.glob("device.*.log.zst"))), 1)
        with Server() as server:
            self.assertEqual(self.upload(session, server.url).returncode, 0)
            self.assertEqual(server.breaches, [])
            # Segments sealed while the program ran have no plain file.
            self.assertEqual(expected - canonical(server.lines()), collections.Counter())
            self.assertEqual(server.rows("kernel_event_batch"), 3000)
            places = [(headers["X-GpuFlight-Window-Channel"], int(headers["X-GpuFlight-Window-Sequence"]))
                      for headers, _ in server.windows]
            for channel in {channel for channel, _ in places}:
                numbers = [number for name, number in places if name == channel]
                self.assertEqual(numbers, list(range(1, len(numbers) + 1)))

    def test_sealing_does_not_change_a_window(self):
        session = self.record()
        copy = self.directory / "copy"
        shutil.copytree(session, copy)
        self.assertEqual(gpufl("seal", copy).returncode, 0)
        with Server() as plain, Server() as sealed:
            self.assertEqual(self.upload(session, plain.url).returncode, 0)
            self.assertEqual(self.upload(copy, sealed.url).returncode, 0)
            self.assertEqual(plain.window_ids(), sealed.window_ids())
            self.assertEqual([headers["X-GpuFlight-Window-CRC32"] for headers, _ in plain.windows],
                             [headers["X-GpuFlight-Window-CRC32"] for headers, _ in sealed.windows])

    def test_the_recorded_training_arrives_exactly_once(self):
        session = self.directory / "training"
        shutil.copytree(SOURCE / "examples/recorded/h200-training", session, ignore=shutil.ignore_patterns(".gpufl-*"))
        with Server() as server:
            for _ in range(2):
                self.assertEqual(self.upload(session, server.url).returncode, 0)
            self.assertEqual(server.breaches, [])
            self.assertEqual(server.rows("kernel_event_batch"), 146100)
            self.assertEqual(server.rows("scope_event_batch"), 6030)
            self.assertEqual(len(server.completed), 1)
            # The server has the rows that the program counted at its end.
            counted = next(line["rows"] for line in server.lines() if line["type"] == "shutdown")
            self.assertEqual(counted, {kind: server.rows(kind) for kind in counted})

    def test_a_second_run_sends_nothing(self):
        session = self.record()
        with Server() as server:
            self.assertEqual(self.upload(session, server.url).returncode, 0)
            before = len(server.requests)
            result, answer = self.upload_json(session, server.url)
            self.assertEqual((result.returncode, len(server.requests)), (0, before))
            self.assertEqual((answer["files_uploaded"], answer["events_uploaded"], answer["sessions"]), (0, 0, 1))
            self.assertIn("nothing to send", answer["message"])
            mode = os.stat(session / CURSOR).st_mode
            self.assertEqual(stat.S_IMODE(mode), 0o600)
            self.assertNotIn(KEY, (session / CURSOR).read_text())
        with Server() as other:
            self.assertEqual(self.upload(session, other.url).returncode, 0)
            self.assert_arrived_once(other, session)

    def test_the_address_of_the_sessions_page_is_printed(self):
        session = self.record()
        with Server() as server:
            page = f". Look: {server.url}/sessions/{session.name}\n"
            for _ in range(2):
                result = self.upload(session, server.url)
                self.assertEqual(result.returncode, 0)
                self.assertTrue(result.stdout.endswith(page), result.stdout)
        with Server(lambda _: Reply(401)) as server:
            self.assertNotIn("Look:", self.upload_json(session, server.url)[1]["message"])

    def test_a_session_that_the_server_lost_is_sent_again(self):
        session = self.record()
        with Server() as server:
            self.assertEqual(self.upload(session, server.url).returncode, 0)
            server.windows.clear()
            result, answer = self.upload_json(session, server.url)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assert_arrived_once(server, session)
            self.assertEqual(server.completed, [session.name] * 2)
            result = self.upload(session, server.url)
            self.assertIn(f"{server.url}/api/v1 has 1 session already", result.stdout)

    def test_a_server_that_cannot_confirm_a_session_is_not_reported_as_having_it(self):
        session = self.record()
        with Server(knows_sessions=False) as server:
            self.assertEqual(self.upload(session, server.url).returncode, 0)
            before = len(server.windows)
            result = self.upload(session, server.url)
            self.assertEqual((result.returncode, len(server.windows)), (0, before), result.stderr)
            self.assertIn(f"1 session was already sent to {server.url}/api/v1 (recorded in {CURSOR}); remove that "
                          "file to send again", result.stdout)

    def test_a_lost_or_damaged_cursor_costs_only_another_delivery(self):
        session = self.record()
        with Server() as server:
            self.assertEqual(self.upload(session, server.url).returncode, 0)
            first = server.window_ids()
            for text in ("", "{", '{"schema_version":1,"servers":[{"address":"x","files":[{"channel":"no"}]}]}'):
                (session / CURSOR).write_text(text)
                server.windows.clear()
                self.assertEqual(self.upload(session, server.url).returncode, 0)
                self.assertEqual(server.window_ids(), first)

    def test_all_sessions_of_a_directory_are_sent(self):
        for _ in range(3):
            self.record()
        with Server() as server:
            result, answer = self.upload_json(self.directory / "log", server.url)
            self.assertEqual((result.returncode, answer["sessions"]), (0, 3))
            self.assertEqual(sorted(server.completed), [path.name for path in sessions(self.directory / "log")])
            self.assertEqual(server.breaches, [])

    def test_a_killed_programs_session_is_sent_without_its_torn_line(self):
        session = self.record()
        with open(session / "device.log", "ab") as log:
            log.write(b'{"version":1,"type":"kernel_event_batch","sess')
        with Server() as server:
            self.assertEqual(self.upload(session, server.url).returncode, 0)
            self.assert_arrived_once(server, session)

    def test_a_damaged_line_is_skipped_and_reported_each_time(self):
        session = self.record()
        data = (session / "device.log").read_bytes()
        lines = data.split(b"\n")
        lines[3] = lines[3].replace(b"1", b"2", 1)
        (session / "device.log").write_bytes(b"\n".join(lines))
        with Server() as server:
            for _ in range(2):
                result = self.upload(session, server.url)
                self.assertIn("1 damaged line", result.stderr)
                self.assertEqual(result.returncode, 1)
            self.assertEqual(len([line for headers, lines_ in server.windows for line in lines_
                                  if headers["X-GpuFlight-Window-Channel"] == "device"]), len(lines) - 2)

    def test_a_session_that_is_still_written_is_refused(self):
        process = subprocess.Popen([BUILD / "bin/gpufl", "trace", "-o", self.directory / "log", "--", "sh", "-c",
                                    f'"{BUILD}/fakes/fake_app" --run-ms 20000'], env=environment(),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            while not sessions(self.directory / "log") or not list(sessions(self.directory / "log")[0].glob("*.log")):
                self.assertIsNone(process.poll())
            with Server() as server:
                for path in (self.directory / "log", sessions(self.directory / "log")[0]):
                    result = self.upload(path, server.url)
                    self.assertEqual(result.returncode, 3, result.stderr)
                    self.assertIn("still being written", result.stderr)
                self.assertEqual(server.requests, [])
        finally:
            os.killpg(process.pid, 9)
            process.wait()


class Trouble(UploadTest):
    """Each kind of answer, and its effect on the session."""

    def test_a_temporary_error_is_retried(self):
        session = self.record()
        for trouble in (Reply(500), Reply(502), Reply(action="drop"), Reply(action="half"), Reply(429), Reply(408)):
            with Server([trouble]) as server:
                result = self.upload(session, server.url)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assert_arrived_once(server, session)
                self.assertEqual(len(server.requests), len(server.windows) + 2)

    def test_the_retry_after_header_is_followed(self):
        session = self.record()
        with Server([Reply(503, headers={"Retry-After": "1"})]) as server:
            self.assertEqual(self.upload(session, server.url).returncode, 0)
            self.assertGreaterEqual(server.requests[1][1] - server.requests[0][1], 1.0)

    def test_a_retry_after_the_timeout_is_not_waited_for(self):
        session = self.record()
        with Server([Reply(503, headers={"Retry-After": "3600"})]) as server:
            result, answer = self.upload_json(session, server.url, "--timeout-ms", 5000)
            self.assertEqual((result.returncode, len(server.requests)), (1, 1))
            self.assertEqual(answer["http_status"], 503)
            self.assertIn("HTTP 503", result.stderr)

    def test_uploading_to_a_failing_server_stops_after_five_tries_and_resumes_later(self):
        session = self.record()
        with Server([Reply()] + [Reply(500, {"error": "disk full"})] * 5) as server:
            result, answer = self.upload_json(session, server.url)
            self.assertEqual((result.returncode, len(server.requests)), (1, 6))
            self.assertIn("disk full", result.stderr)
            self.assertEqual((answer["files_uploaded"], answer["sessions"]), (1, 0))
            self.assertGreaterEqual(answer["files_skipped"], 1)
            self.assertEqual(self.upload(session, server.url).returncode, 0)
            self.assert_arrived_once(server, session)
            self.assertEqual(server.completed, [session.name])

    def test_a_refused_key_stops_at_once_and_is_in_no_message(self):
        session = self.record()
        for status in (401, 403):
            with Server(lambda _, status=status: Reply(status, {"error": f"key {KEY}\033[31m is revoked"})) as server:
                result, answer = self.upload_json(session, server.url)
                self.assertEqual((result.returncode, len(server.requests)), (3, 1))
                self.assertIn("refused the API key", result.stderr)
                self.assertIn("is revoked", result.stderr)
                self.assertNotIn(KEY, result.stderr + result.stdout)
                self.assertNotIn("\033", result.stderr)
                self.assertEqual((answer["events_uploaded"], answer["http_status"]), (0, status))

    def test_a_server_without_this_protocol_stops_the_upload(self):
        session = self.record()
        for reply in (Reply(404), Reply(301, headers={"Location": "http://127.0.0.1:1/"})):
            with Server(lambda _, reply=reply: reply) as server:
                result = self.upload(session, server.url)
                self.assertEqual((result.returncode, len(server.requests)), (1, 1), result.stderr)
                self.assertIn(f"HTTP {reply.status}", result.stderr)

    def test_a_refused_file_is_skipped_and_never_called_success(self):
        for status in (402, 409, 413, 422):
            session = self.record(rotate_bytes=65536)
            with Server([Reply(status, {"message": "no room"})]) as server:
                result, answer = self.upload_json(session, server.url)
                self.assertEqual(result.returncode, 1)
                self.assertEqual((answer["files_skipped"], answer["sessions"]), (1, 0))
                self.assertGreaterEqual(answer["files_uploaded"], 2)
                self.assertIn(f"HTTP {status}", answer["message"])
                self.assertIn("no room", answer["message"])
                self.assertEqual(server.completed, [])
                self.assertEqual(self.upload(session, server.url).returncode, 0)
                self.assertEqual(server.rows("kernel_event_batch"), 3000)
                self.assertEqual(len(set(server.window_ids())), len(server.windows))
                self.assertEqual(server.breaches, [])

    def test_rejected_lines_are_reported(self):
        session = self.record()
        answer_200 = Reply(200, {"accepted": 5, "rejected": 2, "errors": [{"line": 1, "type": "x", "reason": "too new"}]})
        with Server([answer_200]) as server:
            result, answer = self.upload_json(session, server.url)
            self.assertEqual(result.returncode, 0)
            self.assertIn("rejected 2 lines: too new", answer["message"])

    def test_a_server_may_refuse_the_completion_request(self):
        session = self.record()
        for status in (400, 404, 409):
            (session / CURSOR).unlink(missing_ok=True)
            with Server(lambda path, status=status: Reply(status if path == COMPLETE else 202)) as server:
                self.assertEqual(self.upload(session, server.url).returncode, 0)
                self.assert_arrived_once(server, session)

    def test_an_unreachable_server_is_an_environment_error(self):
        session = self.record()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{free.getsockname()[1]}"
            result, answer = self.upload_json(session, url)
        self.assertEqual((result.returncode, answer["http_status"]), (3, 0))
        self.assertIn("did not answer (5 tries)", result.stderr)

    def test_a_silent_server_ends_the_upload_at_the_timeout(self):
        session = self.record()
        with Server(lambda _: Reply(action="hang")) as server:
            result, answer = self.upload_json(session, server.url, "--timeout-ms", 700)
            self.assertEqual((result.returncode, answer["http_status"]), (3, 0))
            self.assertIn("did not answer", result.stderr)


class Options(UploadTest):
    def check(self, arguments, message, code=2, **variables):
        result = gpufl("upload", *arguments, env=environment(**variables))
        self.assertEqual((result.returncode, result.stdout), (code, ""), result.stderr)
        self.assertIn(message, result.stderr)
        return result.stderr

    def test_invalid_server_addresses_are_reported(self):
        session = self.record()
        self.check([session], "no server: give --server URL, or set GPUFL_BACKEND_URL")
        self.check([session, "--server", "ftp://host"], "invalid server address 'ftp://host'")
        self.check([session, "--server", "host only"], "invalid server address 'host only'")
        self.check([session, "--server", "http://host/api/v1"], "must end after host and port")
        self.check([session, "--server", "http://host", "--api-path", "no slash"], "invalid api_path 'no slash'")
        error = self.check([session, "--server", "http://me:secret@host"], "user name or password")
        self.assertNotIn("secret", error)
        error = self.check([session, "--server", "http://host"], "control character", GPUFL_API_KEY="bad\nX-Evil: 1")
        self.assertNotIn("Evil", error)
        self.check([self.directory / "nowhere", "--server", "http://host"], "nowhere", code=3)

    def test_environment_names_server_key_and_path(self):
        session = self.record()
        with Server() as server:
            variables = {"GPUFL_BACKEND_URL": server.url + "/", "GPUFL_API_KEY": KEY, "GPUFL_API_PATH": "/api/v1/"}
            result = gpufl("upload", session, env=environment(**variables))
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assert_arrived_once(server, session)

    def test_the_key_comes_from_a_file_and_never_from_the_command_line(self):
        session = self.record()
        file = self.directory / "key"
        file.write_text("gpfl_from_file\nsecond line\n")
        with Server(key="gpfl_from_file") as server:
            self.assertEqual(self.upload(session, server.url, "--key-file", file, key="gpfl_wrong").returncode, 0)
            self.assertEqual(server.breaches, [])
        self.check([session, "--server", "http://host", "--key-file", self.directory / "none"], "key file", code=3)
        self.assertNotIn("--key ", gpufl("upload", "--help").stdout)

    def test_without_a_key_no_authorization_is_sent(self):
        session = self.record()
        with Server(key=None) as server:
            self.assertEqual(self.upload(session, server.url, key=None).returncode, 0)
            self.assertEqual(server.breaches, [])
        with Server(lambda _: Reply(401), key=None) as server:
            self.assertIn("requires an API key", self.upload(session, server.url, key=None).stderr)

    def test_disabled_means_no_network(self):
        session = self.record()
        with Server() as server:
            result, answer = self.upload_json(session, server.url, GPUFL_DISABLED="yes")
            self.assertEqual((result.returncode, answer["events_uploaded"], server.requests), (0, 0, []))
        self.assertFalse((session / CURSOR).exists())

    @needs(shutil.which("openssl"), "openssl")
    def test_certificates_are_checked(self):
        session = self.record()
        certificate = self.directory / "server.pem"
        made = run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1",
                   "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", certificate, "-out", self.directory / "ca.pem",
                   env=os.environ.copy())
        self.assertEqual(made.returncode, 0, made.stderr)
        with open(certificate, "a", encoding="utf-8") as both:
            both.write((self.directory / "ca.pem").read_text())
        with Server(certificate=certificate) as server:
            result = self.upload(session, server.url, "--timeout-ms", 2000)
            self.assertEqual(result.returncode, 3, result.stderr)
            self.assertEqual(server.requests, [])
            result = self.upload(session, server.url, GPUFL_CA_FILE=self.directory / "ca.pem")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assert_arrived_once(server, session)


class Installation(UploadTest):
    def test_without_the_upload_library_only_uploads_are_missing(self):
        alone = self.directory / "alone" / "gpufl"
        alone.parent.mkdir()
        shutil.copy(BUILD / "bin/gpufl", alone)
        self.assertEqual(run(alone, "version").returncode, 0)
        result = run(alone, "upload", self.record(), "--server", "http://127.0.0.1:9")
        self.assertEqual(result.returncode, 3)
        self.assertIn("uploads require libgpufl-upload.so.1", result.stderr)


class AfterTrace(UploadTest):
    def test_trace_uploads_when_the_program_has_ended(self):
        with Server() as server:
            traced = self.trace("--launches", 500, options=("--upload", server.url), env=environment(GPUFL_API_KEY=KEY))
            self.assertEqual(traced.returncode, 0, traced.stderr)
            self.assert_arrived_once(server, traced.sessions[0])
            self.assertEqual(server.completed, [traced.sessions[0].name])

    def test_a_failed_upload_is_one_line_and_leaves_the_exit_status_alone(self):
        with Server(lambda _: Reply(401)) as server:
            for code in (0, 7):
                traced = self.trace("--launches", 10, "--exit", code, options=("-q", "--upload", server.url),
                                    env=environment(GPUFL_API_KEY=KEY))
                self.assertEqual(traced.returncode, code)
                self.assertEqual(len(traced.stderr.splitlines()), 1, traced.stderr)
                self.assertIn("not uploaded", traced.stderr)
                again = f"to try again: gpufl upload {traced.sessions[-1]} --server {server.url}\n"
                self.assertTrue(traced.stderr.endswith(again), traced.stderr)
                self.assertNotIn(KEY, traced.stderr)

    def test_an_invalid_address_is_refused_before_the_program_runs(self):
        for address in ("foo", "ftp://host", "http://host/path"):
            traced = self.trace("--launches", 10, options=("--upload", address))
            self.assertEqual(traced.returncode, 2, traced.stderr)
            self.assertIn("gpufl trace: --upload: ", traced.stderr)
            self.assertEqual((traced.stdout, traced.sessions), ("", []))


class UploadOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("timeout_ms", ctypes.c_int32)] + [
        (name, ctypes.c_char_p) for name in ("log_path", "backend_url", "api_key", "api_path", "config_file")]


class UploadResult(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("success", ctypes.c_int32), ("http_status", ctypes.c_int32),
                ("reserved", ctypes.c_uint32)] + [
        (name, ctypes.c_uint64) for name in ("sessions", "files_uploaded", "files_already_sent", "files_skipped",
                                             "events_uploaded", "bytes_sent")] + [("message", ctypes.c_char * 512)]


@unittest.skipIf(any(SANITIZERS), "a sanitized library wants a sanitized program")
class Library(UploadTest):
    def test_a_program_uploads_through_the_library(self):
        session = self.record()
        library = ctypes.CDLL(str(BUILD / "lib/libgpufl.so"))
        self.assertNotIn("libgpufl-upload", pathlib.Path("/proc/self/maps").read_text())
        with Server() as server:
            options = UploadOptions(struct_size=ctypes.sizeof(UploadOptions), log_path=str(session).encode(),
                                    backend_url=server.url.encode(), api_key=KEY.encode())
            result = UploadResult(struct_size=ctypes.sizeof(UploadResult))
            status = library.gpufl_upload_logs(ctypes.byref(options), ctypes.byref(result))
            self.assertEqual((status, result.success), (0, 1), result.message)
            self.assert_arrived_once(server, session)
            self.assertEqual(result.files_uploaded, len(server.windows))


if __name__ == "__main__":
    main()
