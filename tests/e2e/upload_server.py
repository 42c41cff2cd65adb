# SPDX-License-Identifier: Apache-2.0
"""A server for the tests of uploads: it stores what it accepts, records every breach of the protocol, and misbehaves on
request."""
import gzip
import http.server
import json
import socket
import ssl
import subprocess
import threading
import time
import uuid
import zlib

from harness import TIMEOUT_S

STREAM = "/api/v1/events/stream"
COMPLETE = "/api/v1/events/session-complete"
VERSION = "/api/v1/info/version"
SESSIONS = "/api/v1/sessions/"
CONFIGS = "/api/v1/configs/"


class Reply:
    """How one request is answered. action: None, "drop" (no answer), "half" (half an answer), "hang", "mute" (the body
    is accepted, but not answered). text: the answer's text, instead of JSON."""

    def __init__(self, status=202, body=None, headers=(), action=None, text=None):
        self.status = status
        self.body = text if text is not None else json.dumps({"accepted_for_processing": True,
                                                              "window_acknowledged": True} if body is None else body)
        self.headers = dict(headers)
        self.action = action

    def takes(self):
        return self.action in (None, "mute") and 200 <= self.status < 300


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.answer(self.server.owner.give(self.path, self.headers))

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.answer(self.server.owner.take(self.path, self.headers, body))

    def answer(self, reply):
        if reply.action == "hang":
            self.server.owner.released.wait(TIMEOUT_S)
        if reply.action:
            if reply.action == "half":
                self.wfile.write(b"HTTP/1.1 202 Accepted\r\nContent-Length: 100\r\n\r\n{")
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        content = reply.body.encode()
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


class Quiet(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass  # clients that close the connection are expected


class Server:
    """Use as a context manager. replies: one per request in order, then 202 always; or a function of the path."""

    def __init__(self, replies=(), key="gpfl_test_key", certificate=None, encodings=("gzip",), knows_sessions=True):
        self.knows_sessions = knows_sessions  # reports which sessions it has, as gpufl serve does
        self.encodings = encodings
        self.configs = {}  # name: (etag, text)
        self.config_requests = []  # (name, If-None-Match)
        self.replies = list(replies) if not callable(replies) else replies
        self.key = key
        self.certificate = certificate
        self.requests = []  # (path, monotonic time)
        self.windows = []  # (headers, lines) of accepted bodies
        self.completed = []
        self.breaches = []
        self.released = threading.Event()
        self.lock = threading.Lock()

    def __enter__(self):
        self.http = Quiet(("127.0.0.1", 0), Handler)
        self.http.owner = self
        scheme = "http"
        if self.certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.certificate)
            self.http.socket = context.wrap_socket(self.http.socket, server_side=True)
            scheme = "https"
        self.url = f"{scheme}://127.0.0.1:{self.http.server_port}"
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.02})
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.released.set()
        self.http.shutdown()
        self.thread.join()
        self.http.server_close()

    def take(self, path, headers, body):
        with self.lock:
            number = len(self.requests)
            self.requests.append((path, time.monotonic()))
            reply = (self.replies(path) if callable(self.replies)
                     else self.replies[number] if number < len(self.replies) else Reply())
            try:
                window = self.check(path, headers, body)
                if reply.takes():
                    if path == COMPLETE:
                        self.completed.append(headers["X-GpuFlight-Session-Id"])
                    else:
                        self.windows.append((dict(headers), window))
            except (AssertionError, KeyError, ValueError, OSError, zlib.error) as error:
                self.breaches.append(f"{path}: {error!r}")
            return reply

    def give(self, path, headers):
        """GET: the server's capabilities, and named configurations."""
        with self.lock:
            if path == VERSION:
                return Reply(200, {"supported": ["1"], "encodings": list(self.encodings)})
            if self.key and headers.get("Authorization") != f"Bearer {self.key}":
                return Reply(401, {"error": {"code": "key", "message": "who are you?"}})
            if path.startswith(SESSIONS) and self.knows_sessions:
                is_here = any(headers["X-GpuFlight-Session-Id"] == path.removeprefix(SESSIONS)
                              for headers, _ in self.windows)
                return Reply(200, {}) if is_here else Reply(404, {"error": {"code": "session_unknown", "message": "no"}})
            name = path.removeprefix(CONFIGS)
            self.config_requests.append((name, headers.get("If-None-Match")))
            if not path.startswith(CONFIGS) or name not in self.configs:
                return Reply(404, {})
            etag, text = self.configs[name]
            if headers.get("If-None-Match") == etag:
                return Reply(304, text="", headers={"ETag": etag})
            return Reply(200, text=text, headers={"ETag": etag})

    def check(self, path, headers, body):
        """Checks the protocol by its specification alone; returns the lines of a window."""
        assert headers.get("Authorization") == (f"Bearer {self.key}" if self.key else None), "Authorization"
        assert headers["X-GpuFlight-Wire-Version"] == "1"
        assert headers["X-GpuFlight-Client-Version"]
        assert headers["X-GpuFlight-Hostname"]
        uuid.UUID(headers["X-GpuFlight-Session-Id"])
        if path == COMPLETE:
            assert body == b""
            return None
        assert path == STREAM, path
        assert headers["Content-Type"] == "application/x-ndjson"
        assert headers["Content-Encoding"] in self.encodings
        uuid.UUID(headers["X-GpuFlight-Window-Id"])
        assert headers["X-GpuFlight-Window-Channel"] in ("device", "scope", "system", "sass")
        assert int(headers["X-GpuFlight-Window-Sequence"]) >= 1
        assert int(headers["X-GpuFlight-Window-CRC32"]) == zlib.crc32(body)
        assert len(body) <= 30_000_000
        text = (gzip.decompress(body) if headers["Content-Encoding"] == "gzip" else
                subprocess.run(["zstd", "-dc"], input=body, capture_output=True, check=True).stdout)
        assert len(text) <= 128_000_000 and text.endswith(b"\n")
        lines = [json.loads(line) for line in text[:-1].split(b"\n")]
        for line in lines:
            assert isinstance(line["type"], str)
            assert "cols" not in line and "delta" not in line, line["type"]
            if line["type"].endswith("_batch"):
                assert all(len(row) == len(line["columns"]) for row in line["rows"])
                assert isinstance(line["base_time_ns"], int) and isinstance(line["batch_id"], int)
        return lines

    def lines(self):
        return [line for _, lines in self.windows for line in lines]

    def counted_windows(self):
        """Each window once; the same id with other data is a breach."""
        seen = {}
        for headers, lines in self.windows:
            crc = headers["X-GpuFlight-Window-CRC32"]
            if seen.setdefault(headers["X-GpuFlight-Window-Id"], (crc, lines))[0] != crc:
                self.breaches.append(f"window {headers['X-GpuFlight-Window-Id']} changed")
        return seen

    def counted_lines(self):
        return [line for _, lines in self.counted_windows().values() for line in lines]

    def rows(self, kind):
        return sum(len(line["rows"]) for line in self.lines() if line["type"] == kind)

    def events(self):
        return sum(len(line["rows"]) if line["type"].endswith("_batch") else 1 for line in self.lines())

    def window_ids(self):
        return [headers["X-GpuFlight-Window-Id"] for headers, _ in self.windows]
