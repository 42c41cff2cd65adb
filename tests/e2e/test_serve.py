# SPDX-License-Identifier: Apache-2.0
"""gpufl serve: the server returns every record that the SDK wrote exactly once, whatever happens during delivery."""
import collections
import gzip
import http.client
import json
import pathlib
import random
import shutil
import signal
import socket
import threading
import time
import unittest
import uuid
import zlib

from harness import GPUFL, SANITIZERS, SOURCE, gpufl, main, needs, run
from prometheus_process import PROMETHEUS, PROMTOOL, Prometheus, check_page
from serve_process import COMPLETE, STREAM, Serve, ServeTest, job_start, kernels, window

class Delivery(ServeTest):
    def test_what_was_recorded_is_what_the_server_answers_with(self):
        session = self.record()
        with Serve(self.data) as server:
            result = self.upload(session, server.url)
            self.assertEqual(result.returncode, 0, result.stderr)
            catalog = self.assert_holds(server, session)
            self.assertEqual((catalog["state"], catalog["lost"]), ("complete", 0))
            # Uploaded again, by an uploader that has lost its state.
            (session / ".gpufl-uploaded.json").unlink()
            self.assertEqual(self.upload(session, server.url).returncode, 0)
            self.assertEqual(self.assert_holds(server, session)["rows"], catalog["rows"])
            # And again sealed: the same lines in compressed files.
            (session / ".gpufl-uploaded.json").unlink()
            copy = self.directory / "copy" / session.name
            shutil.copytree(session, copy)
            self.assertEqual(gpufl("seal", copy).returncode, 0)
            self.assertEqual(self.upload(copy, server.url).returncode, 0)
            self.assert_holds(server, session)
            self.assertEqual(server.stop(), 0)
        with Serve(self.data) as server:
            self.assert_holds(server, session)
            self.assertEqual([entry["id"] for entry in server.pages("/api/v1/sessions", "sessions")], [session.name])

    def test_a_session_that_was_deleted_is_taken_again(self):
        session = self.record()
        with Serve(self.data) as server:
            self.assertEqual(self.upload(session, server.url).returncode, 0)
            self.assertIn("has 1 session already", self.upload(session, server.url).stdout)
            self.assertEqual(server.ask(f"/api/v1/sessions/{session.name}", "DELETE").status, 204)
            result = self.upload(session, server.url)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assert_holds(server, session)

    def test_a_gap_in_an_upload_is_reported_by_the_server(self):
        session = self.record()
        parts = ("/losses", "")
        with Serve(self.data) as server:
            self.assertEqual(self.upload(session, server.url).returncode, 0)
            for part in parts:
                whole = server.get(f"/api/v1/sessions/{session.name}{part}")["completeness"]
                self.assertEqual((whole["is_complete"], whole["missing_rows"]), (True, 0), part)
            self.assertEqual(self.entry(server, session.name)["missing_rows"], 0)
        device = session / "device.log"
        lines = device.read_text().splitlines(keepends=True)
        gap = next(number for number, line in enumerate(lines) if '"type":"kernel_event_batch"' in line)
        rows = len(json.loads(lines[gap])["rows"])
        device.write_text("".join(lines[:gap] + lines[gap + 1:]))
        (session / ".gpufl-uploaded.json").unlink()
        with Serve(self.directory / "other") as server:
            self.upload(session, server.url)
            for part in parts:
                holed = server.get(f"/api/v1/sessions/{session.name}{part}")["completeness"]
                self.assertEqual((holed["is_complete"], holed["missing_rows"], holed["lost_is_exact"]),
                                 (False, rows, False), part)
            entry = self.entry(server, session.name)
            self.assertEqual((entry["state"], entry["missing_rows"], entry["lost_is_exact"]), ("complete", rows, False))

    def test_the_amount_that_a_killed_program_lost_is_unknown_to_the_server(self):
        session = self.trace("--launches", 100, "--crash", 9).sessions[0]
        with Serve(self.data) as server:
            self.assertEqual(self.upload(session, server.url).returncode, 0)
            catalog, = server.pages("/api/v1/sessions", "sessions")
            self.assertEqual((catalog["state"], catalog["lost_is_exact"]), ("crashed", False))
            losses = server.get(f"/api/v1/sessions/{session.name}/losses")["completeness"]
            self.assertEqual((losses["is_complete"], losses["signal"], losses["lost_is_exact"]), (False, 9, False))

    def test_the_recorded_training_answers_as_its_report_does(self):
        training = self.directory / "training"
        shutil.copytree(SOURCE / "examples/recorded/h200-training", training)
        report = json.loads(gpufl("report", training, "--json", "--top", 100000).stdout)
        with Serve(self.data) as server:
            self.assertEqual(self.upload(training, server.url).returncode, 0)
            path = "/api/v1/sessions/" + report["session"]["id"]
            self.assertEqual(server.get(path)["catalog"]["kernels"], 146100)
            got = {kernel["name"]: (kernel["count"], kernel["total_ns"])
                   for kernel in server.pages(path + "/kernels", "kernels", exact="true")}
            self.assertEqual(got, {kernel["name"]: (kernel["count"], kernel["total_ns"]) for kernel in report["kernels"]})
            self.assertEqual(sum(count for count, _ in got.values()), 146100)

    def test_gpuflights_protocol_is_accepted(self):
        session_id = str(uuid.uuid4())
        with Serve(self.data) as server:
            version = server.get("/api/v1/info/version")
            self.assertIn("1", version["supported"])
            body, headers = window([job_start(session_id), kernels(session_id)], session_id)
            for _ in range(2):
                answer = server.ask(STREAM, "POST", body, headers)
                self.assertEqual(answer.status, 202, answer.body)
                content = json.loads(answer.body)
                self.assertIs(content["accepted_for_processing"], True)
                self.assertIs(content["window_acknowledged"], True)
                self.assertTrue(content["spool_id"])
            # The embedded uploader: versions instead of windows.
            body, headers = window([kernels(session_id, 2)], session_id)
            headers = {name: value for name, value in headers.items() if "Window" not in name}
            headers |= {"X-GpuFlight-Client-Version": "1.2.3", "X-GpuFlight-Wire-Version": "1"}
            for _ in range(2):
                self.assertEqual(server.ask(STREAM, "POST", body, headers).status, 202)
            # The older protocol: a record in a string in an object.
            envelope = {"data": json.dumps(kernels(session_id, 3)), "agentSendingTime": 1, "hostname": "node1",
                        "ipAddr": "192.0.2.1", "type": "kernel_event_batch"}
            for _ in range(2):
                answer = server.ask("/api/v1/events/kernel_event_batch", "POST", json.dumps(envelope),
                                    {"Content-Type": "application/json", "X-Topic": "x", "X-Key": "y"})
                self.assertEqual(answer.status, 202, answer.body)
            self.assertEqual(server.get(f"/api/v1/sessions/{session_id}")["catalog"]["kernels"], 30)
            headers = {"X-GpuFlight-Session-Id": session_id, "X-GpuFlight-Hostname": "node1"}
            self.assertEqual(server.ask(COMPLETE, "POST", b"", headers).status, 200)
            self.assertEqual(server.get(f"/api/v1/sessions/{session_id}")["catalog"]["state"], "complete")
            headers["X-GpuFlight-Session-Id"] = str(uuid.uuid4())
            self.assertEqual(server.ask(COMPLETE, "POST", b"", headers).status, 404)

    def status_of_size(self, server, size, headers):
        """The status for a request that announces a body size without sending the body."""
        with socket.create_connection(("127.0.0.1", server.port), timeout=600) as connection:
            head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
            connection.sendall(f"POST {STREAM} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {size}\r\n{head}\r\n".encode())
            return int(connection.recv(4096).split()[1])

    def test_invalid_bodies_are_rejected_without_side_effects(self):
        good, bad = str(uuid.uuid4()), str(uuid.uuid4())
        lines = [kernels(bad, number, 100) for number in range(1, 30)]
        bomb = gzip.compress(b"\n" * 100_000_000)
        with Serve(self.data) as server:
            body, headers = window([job_start(good), kernels(good)], good)
            self.assertEqual(server.ask(STREAM, "POST", body, headers).status, 202)

            def refused(status, code, body, headers):
                answer = server.ask(STREAM, "POST", body, headers)
                self.assertEqual(answer.status, status, answer.body)
                self.assertEqual(answer.headers["Content-Type"], "application/json")
                error = json.loads(answer.body)["error"]
                self.assertEqual(error["code"], code)
                self.assertTrue(error["message"])

            body, headers = window(lines, bad)
            refused(422, "body_crc_mismatch", body, headers | {"X-GpuFlight-Window-CRC32": "1"})
            cut = body[:-20]
            refused(422, "body_damaged", cut, headers | {"X-GpuFlight-Window-CRC32": str(zlib.crc32(cut))})
            damaged = body[:200] + bytes([body[200] ^ 255]) + body[201:]
            refused(422, "body_damaged", damaged, headers | {"X-GpuFlight-Window-CRC32": str(zlib.crc32(damaged))})
            refused(413, "body_too_large", bomb, headers | {"X-GpuFlight-Window-CRC32": str(zlib.crc32(bomb))})
            refused(415, "content_encoding_unsupported", body, headers | {"Content-Encoding": "br"})
            refused(415, "content_type_unsupported", body, headers | {"Content-Type": "text/html"})
            refused(400, "session_invalid", body, headers | {"X-GpuFlight-Session-Id": "../../etc/passwd"})
            refused(400, "session_invalid", body, headers | {"X-GpuFlight-Session-Id": "x' OR 1=1 --"})
            refused(400, "window_invalid", body, headers | {"X-GpuFlight-Window-CRC32": "-1"})
            refused(400, "window_invalid", body, headers | {"X-GpuFlight-Window-Channel": "all"})
            refused(400, "wire_version_unsupported", body, headers | {"X-GpuFlight-Wire-Version": "7"})
            missing = dict(headers)
            del missing["X-GpuFlight-Session-Id"]
            refused(400, "session_missing", body, missing)
            refused(400, "body_empty", gzip.compress(b"", mtime=0), {name: value for name, value in headers.items()
                                                                   if "Window" not in name})
            self.assertEqual(self.status_of_size(server, 65 << 20, headers), 413)
            # The store is unchanged, and the valid body is accepted now.
            self.assertEqual(server.ask(f"/api/v1/sessions/{bad}").status, 404)
            self.assertEqual(server.get(f"/api/v1/sessions/{good}")["catalog"]["kernels"], 10)
            self.assertEqual(server.ask(STREAM, "POST", body, headers).status, 202)
            self.assertEqual(server.get(f"/api/v1/sessions/{bad}")["catalog"]["kernels"], 2900)
            body, headers = window(lines[:1], bad)
            refused(409, "window_identity_conflict", body, headers)
            quarantined = sorted((self.data / "quarantine").iterdir())
            reasons = [json.loads(file.read_bytes().split(b"\n", 1)[0])["code"] for file in quarantined]
            for code in ("body_crc_mismatch", "body_damaged", "body_too_large"):
                self.assertIn(code, reasons)

    def test_bad_lines_are_reported_and_the_rest_is_stored(self):
        session_id = str(uuid.uuid4())
        with Serve(self.data) as server:
            evil = kernels(session_id, 2) | {"type": "<script>alert(1)</script>"}
            body, headers = window([kernels(session_id), {"no": "type"}, kernels("other"), evil], session_id)
            answer = server.ask(STREAM, "POST", body, headers)
            self.assertEqual(answer.status, 200, answer.body)
            content = json.loads(answer.body)
            self.assertEqual((content["accepted"], content["rejected"]), (2, 2))
            self.assertEqual([error["line"] for error in content["errors"]], [2, 3])
            self.assertTrue(all(error["reason"] for error in content["errors"]))
            self.assertTrue((self.data / "quarantine" / content["quarantined"]).exists())
            self.assertEqual(server.get(f"/api/v1/sessions/{session_id}")["catalog"]["kernels"], 10)


class Health(ServeTest):
    def test_health_and_metrics_report_progress(self):
        with Serve(self.data) as server:
            health = server.get("/healthz")
            self.assertEqual((health["status"], health["last_commit_age_ms"]), ("ok", None))
            body, headers = window([kernels("s")], "s")
            self.assertEqual(server.ask(STREAM, "POST", body, headers).status, 202)
            health = server.get("/healthz")
            self.assertGreaterEqual(health["last_commit_age_ms"], 0)
            self.assertEqual(health["queue_writes"], 0)
            self.assertEqual(server.get("/readyz"), {"ready": True})
            page = server.ask("/metrics").body.decode()
            values = dict(line.rsplit(" ", 1) for line in page.splitlines() if not line.startswith("#"))
            self.assertEqual(values['gpufl_ingest_bodies_total{result="kept"}'], "1")
            self.assertEqual(float(values["gpufl_ingest_rows_total"]), 10)
            self.assertEqual(float(values["gpufl_store_sessions"]), 1)
            counted = 'gpufl_http_requests_total{method="POST",route="/api/v1/events/stream",status="2xx"}'
            # A request is counted when its connection has finished with it, which may be after the answer was read.
            server.wait_for("the request to be counted", lambda: counted in server.ask("/metrics").body.decode())

    @needs(PROMTOOL, "promtool")
    def test_promtool_accepts_the_metrics(self):
        with Serve(self.data) as server:
            body, headers = window([kernels("s")], "s")
            self.assertEqual(server.ask(STREAM, "POST", body, headers).status, 202)
            self.assertEqual(server.ask("/none").status, 404)
            self.assertEqual(check_page(server.ask("/metrics").body), "")

    @needs(PROMETHEUS, "prometheus")
    def test_a_prometheus_scrapes_it_with_a_key(self):
        self.data.mkdir()
        made = gpufl("serve", "keys", "create", "--scope", "read", "--data", self.data)
        with Serve(self.data, key=made.stdout.strip()) as server:
            with Prometheus(self.directory, {"gpufl": f"127.0.0.1:{server.port}"}, server.key) as prometheus:
                self.assertEqual(prometheus.ask('up{job="gpufl"}', lambda value: value == "1"), "1")
                self.assertEqual(prometheus.ask("gpufl_server_healthy"), "1")
                # Counts of earlier scrapes, by route and in the histogram.
                query = 'gpufl_http_request_duration_seconds_count{route="/metrics"}'
                self.assertIsNotNone(prometheus.ask(query, lambda value: int(value) >= 2))

    def test_backup_and_check_work_beside_the_server_and_without_it(self):
        body, headers = window([kernels("s")], "s")
        with Serve(self.data) as server:
            self.assertEqual(server.ask(STREAM, "POST", body, headers).status, 202)
            copy = self.directory / "copy"
            copy.mkdir()
            result = gpufl("serve", "backup", copy / "gpufl.db", "--data", self.data)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertGreater((copy / "gpufl.db").stat().st_size, 0)
            # It contains the keys' hashes, like the store.
            self.assertEqual((copy / "gpufl.db").stat().st_mode & 0o777, 0o600)
            result = gpufl("serve", "backup", copy / "gpufl.db", "--data", self.data)
            self.assertEqual(result.returncode, 2, result.stderr)
            for _ in range(2):
                result = gpufl("serve", "check", "--json", "--data", self.data)
                self.assertEqual(result.returncode, 0, result.stderr)
                answer = json.loads(result.stdout)
                self.assertEqual((answer["issues"], answer["sessions"], answer["rows"]), ([], 1, 10))
                if server.process.poll() is None:
                    self.assertEqual(server.stop(), 0)

    def test_wrong_settings_are_named(self):
        config = self.directory / "serve.json"
        for text, words in (('{"listn": "x"}', "did you mean 'listen'"), ('{"retention_days": "x"}', "retention_days"),
                            ("{", "serve.json:1:"), ("[]", "object")):
            config.write_text(text)
            result = gpufl("serve", "--config", config, "--data", self.data)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn(words, result.stderr)
        for words in (["--listen", "nowhere"], ["--tls-cert", "x"], ["keys", "explode"], ["keys", "revoke"], ["more"],
                      ["keys", "create"]):
            result = gpufl("serve", *words, "--data", self.data)
            self.assertEqual(result.returncode, 2, result.stderr)
        self.assertEqual(gpufl("serve", "--config", self.directory / "none").returncode, 3)

    def test_the_command_line_overrides_settings_from_the_file(self):
        config = self.directory / "serve.json"
        config.write_text(json.dumps({"data": str(self.directory / "from file"), "requests_per_s": 100}))
        with Serve(self.data, "--config", config):
            self.assertTrue(self.data.exists())
            self.assertFalse((self.directory / "from file").exists())

    def test_two_servers_do_not_share_a_directory(self):
        with Serve(self.data):
            result = gpufl("serve", "--listen", "127.0.0.1:0", "--data", self.data)
            self.assertEqual(result.returncode, 3, result.stderr)


class Endings(ServeTest):
    def test_a_body_under_way_is_finished_before_the_end(self):
        body, headers = window([kernels("s", number, 100) for number in range(100)], "s")
        with Serve(self.data) as server:
            connection = socket.create_connection(("127.0.0.1", server.port))
            head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
            connection.sendall(f"POST {STREAM} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n{head}\r\n"
                               .encode() + body[:100])
            server.wait_for("the request", lambda: "gpufl_http_requests_active 2" in server.ask("/metrics").body.decode())
            server.process.send_signal(signal.SIGTERM)
            server.wait_for("the stop", lambda: any("stopping" in line for line in server.printed))
            connection.sendall(body[100:])
            answer = connection.recv(4096)
            self.assertIn(b"202", answer.split(b"\r\n")[0])
            connection.close()
            self.assertEqual(server.stop(), 0, "".join(server.printed))
        with Serve(self.data) as server:
            self.assertEqual(server.get("/api/v1/sessions/s")["catalog"]["kernels"], 10000)

    def test_killed_at_any_moment_every_row_is_there_once(self):
        session = self.record(20000)
        # As in the files: each line ends with its checksum.
        lines = {file.stem: file.read_bytes().splitlines() for file in session.glob("*.log")}
        windows = [window(part, session.name, channel, number)
                   for channel, texts in lines.items()
                   for number, part in enumerate((texts[i:i + 2] for i in range(0, len(texts), 2)), 1)]
        windows *= 3  # each window is also sent again after it was accepted
        chance = random.Random(20261115)
        chance.shuffle(windows)
        kills, interrupted, is_over = 30, [0], threading.Event()
        waiting = collections.deque(windows)
        server = Serve(self.data)
        server.start()

        def send():
            """Sends each window until it is acknowledged, as an agent does."""
            while not (is_over.is_set() and not waiting):
                try:
                    body, headers = waiting.popleft()
                except IndexError:
                    waiting.extend(chance.sample(windows, min(20, len(windows))))
                    continue
                try:
                    answer = server.ask(STREAM, "POST", body, headers)
                    if answer.status not in (202, 503):
                        failures.append(answer)
                    is_done = answer.status != 503
                except (OSError, http.client.HTTPException):
                    interrupted[0] += 1
                    is_done = False
                if not is_done:
                    waiting.append((body, headers))
                    time.sleep(0.005)

        failures = []
        senders = [threading.Thread(target=send) for _ in range(4)]
        for sender in senders:
            sender.start()
        try:
            for _ in range(kills):
                time.sleep(chance.uniform(0.0, 0.2))
                server.kill()
                server.start()
        finally:
            is_over.set()
            for sender in senders:
                sender.join()
        try:
            self.assertEqual(failures, [])
            self.assertGreater(interrupted[0], 0)
            self.assert_holds(server, session)
            checked = gpufl("serve", "check", "--data", self.data)
            self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
            print(f"{kills} kills, {interrupted[0]} requests cut off, 20000 kernels each once", flush=True)
        finally:
            server.stop()


class Installation(ServeTest):
    def test_without_the_server_library_only_the_server_is_missing(self):
        alone = self.directory / "alone" / "gpufl"
        alone.parent.mkdir()
        shutil.copy(GPUFL, alone)
        self.assertEqual(run(alone, "version").returncode, 0)
        result = run(alone, "serve", "--data", self.data)
        self.assertEqual(result.returncode, 3)
        self.assertIn("the server requires libgpufl-server.so.1", result.stderr)

    @unittest.skipIf(any(SANITIZERS), "sanitizers load additional libraries")
    def test_no_gpu_library_is_ever_loaded(self):
        with Serve(self.data) as server:
            server.get("/healthz")
            maps = pathlib.Path(f"/proc/{server.process.pid}/maps").read_text()
            for name in ("libcuda", "libcupti", "libnvidia-ml", "libnvperf"):
                self.assertNotIn(name, maps)


if __name__ == "__main__":
    main()
