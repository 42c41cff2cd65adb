# SPDX-License-Identifier: Apache-2.0
"""GPUFlight's agent and embedded uploader, replayed from the documentation of their protocol against gpufl serve:
uploads are accepted, clients react correctly to each answer, and invalid bodies are quarantined and change nothing."""
import gzip
import json
import pathlib
import re
import shutil
import socket
import subprocess
import uuid
import zlib

from harness import SANITIZERS, gpufl, main, needs
from serve_process import COMPLETE, STREAM, Serve, ServeTest, job_start, kernels, window

ZSTD = shutil.which("zstd")


class Agent:
    """GPUFlight's agent: sends windows strictly in order, each until the answer lets it advance. What it would do with
    its files is in `kept` (not yet acknowledged), `deleted` and `skipped`."""

    def __init__(self, server, session_id, key=None):
        self.server, self.session_id, self.key = server, session_id, key
        self.kept, self.deleted, self.skipped, self.answers = [], [], [], []

    def send(self, body, headers):
        answer = self.server.ask(STREAM, "POST", body, headers, key=self.key)
        content = json.loads(answer.body)
        self.answers.append((answer.status, content))
        window_id = headers["X-GpuFlight-Window-Id"]
        if answer.status == 202:
            (self.deleted if content.get("window_acknowledged") is True else self.kept).append(window_id)
        elif answer.status in (200, 402) or (answer.status == 409 and "window_identity_conflict" not in answer.body.decode()):
            self.skipped.append(window_id)
        else:
            self.kept.append(window_id)  # it would be sent again
        return answer.status


def session_windows(session_id, count=6):
    """Windows as in a session's directory: three channels, numbered from 1."""
    start = job_start(session_id)
    names = {"version": 1, "type": "dictionary_update", "session_id": session_id, "kernel_dict": {"1": "gemm"}}
    for sequence in range(1, count + 1):
        lines = [kernels(session_id, sequence, 100)]
        yield window([start, names] + lines if sequence == 1 else lines, session_id, "device", sequence)
        yield window([start] if sequence == 1 else [{"version": 1, "type": "scope_event_batch", "session_id": session_id,
                                                     "batch_id": sequence, "base_time_ns": 1, "columns": ["dt_ns"], "rows": []}],
                     session_id, "scope", sequence)


class Replay(ServeTest):
    def test_an_agent_delivers_a_session_and_may_delete_every_window(self):
        session_id = str(uuid.uuid4())
        with Serve(self.data) as server:
            self.assertIn("1", server.get("/api/v1/info/version")["supported"])
            agent = Agent(server, session_id)
            windows = list(session_windows(session_id))
            for number, (body, headers) in enumerate(windows):
                self.assertIn(agent.send(body, headers), (200, 202))
                if number == 3:  # a restart in the middle; the agent sends its last window again
                    server.kill()
                    server.start()
                    self.assertEqual(agent.send(body, headers), 202)
            self.assertEqual(agent.kept, [])
            answer = server.ask(COMPLETE, "POST", b"", {"X-GpuFlight-Session-Id": session_id, "X-GpuFlight-Hostname": "node1"})
            self.assertEqual(answer.status, 200, answer.body)
            catalog = server.get(f"/api/v1/sessions/{session_id}")["catalog"]
            self.assertEqual((catalog["kernels"], catalog["state"], catalog["host"]), (600, "complete", "node1"))
            # The agent lost its cursor and starts from the beginning: nothing is counted twice.
            agent = Agent(server, session_id)
            for body, headers in windows:
                self.assertIn(agent.send(body, headers), (200, 202))
            self.assertEqual(server.get(f"/api/v1/sessions/{session_id}")["catalog"]["kernels"], 600)

    def test_the_embedded_uploader_is_understood(self):
        session_id = str(uuid.uuid4())
        with Serve(self.data) as server:
            for (body, headers), status in zip(session_windows(session_id), (202, 202, 202)):
                headers = {name: value for name, value in headers.items() if "Window" not in name}
                headers |= {"X-GpuFlight-Client-Version": "1.4.0", "X-GpuFlight-Wire-Version": "1"}
                answer = server.ask(STREAM, "POST", body, headers)
                self.assertIn(answer.status, (200, status), answer.body)
                self.assertIn("accepted", json.loads(answer.body))
            # Completing an unknown session is a 4xx, which the uploader treats as "will be finished later".
            answer = server.ask(COMPLETE, "POST", b"", {"X-GpuFlight-Session-Id": "never"})
            self.assertEqual(answer.status, 404)

    def test_answers_make_agents_wait_stop_or_go_on_as_documented(self):
        self.data.mkdir()
        keys = {scope: gpufl("serve", "keys", "create", "--scope", scope, "--data", self.data).stdout.strip()
                for scope in ("ingest", "read")}
        session_id = str(uuid.uuid4())
        body, headers = window([job_start(session_id), kernels(session_id)], session_id)
        with Serve(self.data) as server:
            for key, status in ((None, 401), ("gpfl_" + "A" * 32, 401), (keys["read"], 403), (keys["ingest"], 202)):
                agent = Agent(server, session_id, key)
                self.assertEqual(agent.send(body, headers), status)
                self.assertEqual(bool(agent.deleted), status == 202)
                self.assertEqual(agent.skipped, [], "nothing may be lost for a wrong key")
            # The same identity with other content is not answered as a duplicate, so that nothing is skipped.
            other, _ = window([kernels(session_id, 9)], session_id)
            agent = Agent(server, session_id, keys["ingest"])
            self.assertEqual(agent.send(other, headers | {"X-GpuFlight-Window-CRC32": str(zlib.crc32(other))}), 409)
            self.assertEqual((agent.skipped, len(agent.kept)), ([], 1))
            self.assertEqual(agent.answers[0][1]["error"]["code"], "window_identity_conflict")


class WrongBodies(ServeTest):
    def setUp(self):
        super().setUp()
        self.good, self.bad = str(uuid.uuid4()), str(uuid.uuid4())

    def refuse(self, server, status, code, body, headers, **more):
        """The answer is a JSON error, the body is in quarantine, and the store is unchanged."""
        before = {file.name for file in (self.data / "quarantine").glob("*")}
        answer = server.ask(STREAM, "POST", body, headers, **more)
        self.assertEqual(answer.status, status, answer.body)
        self.assertEqual(answer.headers["Content-Type"], "application/json")
        content = json.loads(answer.body)
        self.assertEqual(content["error"]["code"], code)
        self.assertGreater(len(content["error"]["message"]), 10)
        new = {file.name for file in (self.data / "quarantine").glob("*")} - before
        self.assertEqual(len(new), 1, code)
        about = json.loads((self.data / "quarantine" / new.pop()).read_bytes().split(b"\n", 1)[0])
        self.assertEqual((about["code"], about["session_id"]), (code, self.bad))
        self.assertEqual(server.ask(f"/api/v1/sessions/{self.bad}").status, 404)
        self.assertEqual(server.get(f"/api/v1/sessions/{self.good}")["catalog"]["kernels"], 10)
        return content

    def start(self, server):
        body, headers = window([job_start(self.good), kernels(self.good)], self.good)
        self.assertEqual(server.ask(STREAM, "POST", body, headers).status, 202)
        return window([job_start(self.bad)] + [kernels(self.bad, number, 200) for number in range(1, 40)], self.bad)

    @staticmethod
    def stamped(body, headers, **changes):
        return body, {**headers, "X-GpuFlight-Window-CRC32": str(zlib.crc32(body)), **changes}

    def test_each_is_refused_with_its_reason_and_quarantined(self):
        with Serve(self.data) as server:
            body, headers = self.start(server)
            self.refuse(server, 422, "body_crc_mismatch", body, headers | {"X-GpuFlight-Window-CRC32": "1"})
            for cut in (10, len(body) // 2, len(body) - 1):
                self.refuse(server, 422, "body_damaged", *self.stamped(body[:cut], headers))
            for place in (12, len(body) // 3, len(body) - 6):
                damaged = body[:place] + bytes([body[place] ^ 0x55]) + body[place + 1:]
                self.refuse(server, 422, "body_damaged", *self.stamped(damaged, headers))
            self.refuse(server, 422, "body_damaged", *self.stamped(body + b"more", headers))
            self.refuse(server, 422, "body_damaged", *self.stamped(b"not gzip at all, whatever it says", headers))
            plain = gzip.decompress(body)
            self.refuse(server, 422, "no_line_accepted", *self.stamped(b"[" * 5000 + b"\n", headers, **{"Content-Encoding": "identity"}))
            self.refuse(server, 422, "no_line_accepted", *self.stamped(plain.replace(b'"type"', b'"tipe"'), headers,
                                                                       **{"Content-Encoding": "identity"}))
            # The valid body is accepted with the same id.
            self.assertEqual(server.ask(STREAM, "POST", body, headers).status, 202)
            self.assertEqual(server.get(f"/api/v1/sessions/{self.bad}")["catalog"]["kernels"], 39 * 200)

    def test_bodies_that_explode_are_refused_in_little_memory(self):
        with Serve(self.data) as server:
            _, headers = self.start(server)
            for text in (b"\n", b"a", b"["):  # blank lines, one endless line, deep JSON
                bomb = gzip.compress(text * 50_000_000, mtime=0)
                self.refuse(server, 413, "body_too_large", *self.stamped(bomb, headers))
            status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
            if not any(SANITIZERS):
                self.assertLess(int(re.search(r"VmHWM:\s+(\d+)", status)[1]), 200 << 10)

    @needs(ZSTD, "zstd")
    def test_zstd_bodies_too(self):
        def compress(data, *options):
            return subprocess.run([ZSTD, "-q", "-c", *options], input=data, capture_output=True, check=True).stdout

        with Serve(self.data) as server:
            body, headers = self.start(server)
            headers = headers | {"Content-Encoding": "zstd"}
            good = compress(gzip.decompress(body), "--check")
            self.refuse(server, 413, "body_too_large", *self.stamped(compress(b"\n" * 50_000_000), headers))
            self.refuse(server, 422, "body_damaged", *self.stamped(good[:-3], headers))
            damaged = good[:-2] + bytes([good[-2] ^ 1]) + good[-1:]  # its checksum
            self.refuse(server, 422, "body_damaged", *self.stamped(damaged, headers))
            # A zstd window of 1 GiB requires 1 GiB of memory.
            wide = compress(gzip.decompress(body) + b"\n" * 1000, "--long=30", "--no-check", "--ultra", "-20")
            self.assertIn(server.ask(STREAM, "POST", *self.stamped(wide, headers)).status, (202, 413, 422))
            self.assertIn(server.ask(STREAM, "POST", *self.stamped(good, headers)).status, (202, 409))

    def test_a_body_that_is_larger_than_it_may_be_is_refused_announced_or_not(self):
        with Serve(self.data) as server:
            _, headers = self.start(server)
            lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items() if name != "Content-Encoding")
            with socket.create_connection(("127.0.0.1", server.port), timeout=600) as connection:
                connection.sendall(f"POST {STREAM} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {65 << 20}\r\n{lines}\r\n".encode())
                self.assertIn(b" 413 ", connection.recv(4096).split(b"\r\n")[0])
            # With chunks the size is not known in advance.
            with socket.create_connection(("127.0.0.1", server.port), timeout=600) as connection:
                connection.sendall(f"POST {STREAM} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n{lines}\r\n".encode())
                line = b'{"type":"x","more":"' + b"x" * 1001 + b'"}\n'
                chunk = b"100000\r\n" + line * 1024 + b"\r\n"
                self.assertEqual(len(chunk), 0x100000 + 10)
                received = b""
                try:
                    for _ in range(80):
                        connection.sendall(chunk)
                except OSError:
                    pass  # it hung up
                try:
                    received = connection.recv(65536)
                except ConnectionResetError:
                    pass
                if received:
                    self.assertIn(b" 413 ", received.split(b"\r\n")[0])
                    self.assertIn(b"body_too_large", received)
            server.wait_for("the body to be discarded", lambda: "gpufl_ingest_flight_bytes 0" in server.ask("/metrics").body.decode())
            self.assertEqual(server.ask(f"/api/v1/sessions/{self.bad}").status, 404)
            self.assertEqual(server.get(f"/api/v1/sessions/{self.good}")["catalog"]["kernels"], 10)

    def test_the_quarantine_is_bounded_and_ids_cannot_escape_its_directory(self):
        with Serve(self.data) as server:
            self.start(server)
            for number in range(30):
                body, headers = window([kernels("x")], "x", sequence=number)
                answer = server.ask(STREAM, "POST", body[:-4] + bytes([number] * 4),
                                    headers | {"X-GpuFlight-Hostname": "../../" + "n" * 200})
                self.assertEqual(answer.status, 422)
            files = list((self.data / "quarantine").iterdir())
            self.assertEqual(len(files), 30)
            self.assertTrue(all(file.is_file() and file.stat().st_size < 300 << 10 for file in files))
            self.assertTrue(all(file.stat().st_mode & 0o077 == 0 for file in files))


if __name__ == "__main__":
    main()
