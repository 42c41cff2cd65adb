# SPDX-License-Identifier: Apache-2.0
"""Starts, queries, kills and stops `gpufl serve` for tests, and makes the data that they send to it."""
import collections
import gzip
import http.client
import json
import re
import signal
import subprocess
import threading
import time
import urllib.parse
import uuid
import zlib

from harness import GPUFL, TIMEOUT_S, Session, TestCase, environment, gpufl

Answer = collections.namedtuple("Answer", "status headers body")
STREAM = "/api/v1/events/stream"
COMPLETE = "/api/v1/events/session-complete"


class Serve:
    """A context manager. `printed` has the server's output."""

    def __init__(self, data, *options, listen="127.0.0.1:0", key=None, survives_file_limit=False, **variables):
        self.survives_file_limit = survives_file_limit  # writes beyond RLIMIT_FSIZE fail, as on a full disk
        self.data = data
        self.options = options
        self.listen = listen
        self.key = key
        self.variables = variables
        self.printed = []
        self.process = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, kind, *_):
        code = self.stop()
        if code and not kind:
            raise AssertionError(f"the server ended with status {code}:\n" + "".join(self.printed))

    def start(self):
        command = [GPUFL, "serve", "--listen", self.listen, "--data", self.data, *self.options]
        self.process = subprocess.Popen([str(word) for word in command], env=environment(**self.variables), text=True,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                        restore_signals=not self.survives_file_limit)
        self.url = None
        ready = threading.Event()

        def read(pipe):
            for line in pipe:
                self.printed.append(line)
                found = re.search(r"(https?)://(\S+):(\d+), data in", line)
                if found:
                    self.url = f"{found[1]}://127.0.0.1:{found[3]}"
                    self.port = int(found[3])
                    ready.set()
            ready.set()

        self.reader = threading.Thread(target=read, args=(self.process.stderr,), daemon=True)
        self.reader.start()
        ready.wait(TIMEOUT_S)
        if not self.url:
            self.kill()
            raise AssertionError("the server did not start:\n" + "".join(self.printed))
        # A restarted server must have the same address.
        self.listen = f"{self.listen.rsplit(':', 1)[0]}:{self.port}"

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.reader.join()
        self.process.stderr.close()

    def stop(self):
        """Its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(TIMEOUT_S)
        self.reader.join()
        self.process.stderr.close()
        return code

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)

    def ask(self, path, method="GET", body=None, headers=(), key=None):
        connection = self.connect()
        try:
            headers = dict(headers)
            if key or self.key:
                headers["Authorization"] = f"Bearer {key or self.key}"
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            return Answer(response.status, response.headers, response.read())
        finally:
            connection.close()

    def get(self, path, **query):
        """The JSON of an answer, which must have status 200."""
        if query:
            path += "?" + urllib.parse.urlencode(query)
        answer = self.ask(path)
        if answer.status != 200:
            raise AssertionError(f"GET {path}: {answer.status} {answer.body[:500]}")
        return json.loads(answer.body)

    def pages(self, path, member, **query):
        """All elements of a paginated list."""
        result, cursor = [], None
        while True:
            answer = self.get(path, **query, **({"cursor": cursor} if cursor else {}))
            result += answer[member]
            cursor = answer["next_cursor"]
            if not cursor:
                return result

    def wait_for(self, what, is_true, timeout_s=TIMEOUT_S):
        """Waits until is_true() is true. is_true may raise an AssertionError with a reason; the last one is reported on
        timeout."""
        end, why = time.monotonic() + timeout_s, ""
        while True:
            try:
                if is_true():
                    return
            except AssertionError as not_yet:
                why = f"; last: {not_yet}"
            if time.monotonic() > end:
                raise AssertionError(f"{what}: not within {timeout_s} s{why}")
            time.sleep(0.05)


class ServeTest(TestCase):
    def setUp(self):
        super().setUp()
        self.data = self.directory / "data"

    def record(self, launches=3000, *arguments):
        traced = self.trace("--launches", launches, "--copies", "--scopes", *arguments)
        self.assertEqual(traced.returncode, 0, traced.stderr)
        return traced.sessions[-1]

    def upload(self, session, url, key=None, **variables):
        return gpufl("upload", session, "--server", url, env=environment(GPUFL_API_KEY=key, **variables))

    @staticmethod
    def entry(server, session_id):
        """The session's entry in the list of sessions."""
        return next(one for one in server.pages("/api/v1/sessions", "sessions") if one["id"] == session_id)

    def assert_holds(self, server, session):
        """The server has every kernel of the session once, and the same number of other records."""
        written = Session(session)
        path = f"/api/v1/sessions/{session.name}"
        catalog = server.get(path)["catalog"]
        kinds = {line["type"] for lines in written.lines.values() for line in lines if "rows" in line and "columns" in line}
        self.assertEqual(catalog["rows"], sum(len(written.rows(kind)) for kind in kinds))
        self.assertEqual(catalog["kernels"], len(written.rows("kernel_event_batch")))
        names = written.dictionary("kernel_dict")
        expected = collections.Counter((names[row["kernel_id"]], row["time_ns"], row["duration_ns"])
                                       for row in written.rows("kernel_event_batch"))
        got = collections.Counter()
        for kernel in server.pages(path + "/kernels", "kernels"):
            for instance in server.pages(f"{path}/kernels/{kernel['kernel_id']}/instances", "instances", limit=1000):
                got[kernel["name"], instance["start_ns"], instance["duration_ns"]] += 1
        self.assertEqual(got, expected)
        return catalog


def window(lines, session_id, channel="device", sequence=1, **changes):
    """Body and headers of a window, as documented for GPUFlight's agent."""
    texts = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    body = gzip.compress(b"".join(text + b"\n" for text in texts), mtime=0)
    headers = {"Content-Type": "application/x-ndjson", "Content-Encoding": "gzip",
               "X-GpuFlight-Session-Id": session_id, "X-GpuFlight-Hostname": "node1",
               "X-GpuFlight-Window-Id": str(uuid.uuid5(uuid.NAMESPACE_OID, f"{session_id} {channel} {sequence}")),
               "X-GpuFlight-Window-Channel": channel, "X-GpuFlight-Window-Sequence": str(sequence),
               "X-GpuFlight-Window-CRC32": str(zlib.crc32(body))}
    headers.update({"X-GpuFlight-" + name.replace("_", "-"): value for name, value in changes.items()})
    return body, headers


def kernels(session_id, batch_id=1, count=10):
    return {"version": 1, "type": "kernel_event_batch", "session_id": session_id, "batch_id": batch_id,
            "base_time_ns": 1_700_000_000_000_000_000,
            "columns": ["dt_ns", "kernel_id", "stream_id", "duration_ns", "corr_id"],
            "rows": [[i * 1000, 1, 7, 500 + i, i] for i in range(count)]}


def job_start(session_id):
    return {"version": 1, "type": "job_start", "pid": 1, "app": "v1", "session_id": session_id, "log_path": "",
            "ts_ns": 1_700_000_000_000_000_000, "hostname": "node1", "ip_addr": "", "host": {}, "devices": [],
            "session_kind": "trace"}
