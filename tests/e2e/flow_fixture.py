# SPDX-License-Identifier: Apache-2.0
"""End-to-end delivery from a program to the server's answers: certificates, a server that uses them, and the expected
data, read from the files without any of the product's code."""
import collections
import http.client
import json
import os
import pathlib
import ssl
import subprocess

from harness import run
from serve_process import Serve

CHANNELS = ("device", "scope", "system", "sass")


class Authority:
    """A test certificate authority, and a certificate for the loopback signed by it."""

    def __init__(self, directory):
        directory = pathlib.Path(directory)
        directory.mkdir()
        self.file = directory / "ca.pem"
        self.certificate, self.key = directory / "server.pem", directory / "server.key"
        names, request = directory / "names", directory / "request"
        names.write_text("subjectAltName=IP:127.0.0.1\n")
        self._openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=a test's authority",
                      "-keyout", directory / "ca.key", "-out", self.file)
        self._openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=127.0.0.1", "-keyout", self.key,
                      "-out", request)
        self._openssl("x509", "-req", "-in", request, "-days", "2", "-CA", self.file, "-CAkey", directory / "ca.key",
                      "-CAcreateserial", "-extfile", names, "-out", self.certificate)

    @staticmethod
    def _openssl(*words):
        result = run("openssl", *words, env=os.environ.copy())
        if result.returncode:
            raise AssertionError(f"openssl {words[0]}: {result.stderr}")


class TlsServe(Serve):
    """`gpufl serve` over HTTPS; requests trust only its authority."""

    def __init__(self, data, authority, *options, **more):
        super().__init__(data, "--tls-cert", authority.certificate, "--tls-key", authority.key, *options, **more)
        self.context = ssl.create_default_context(cafile=str(authority.file))

    def connect(self):
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=600, context=self.context)


def summed(cells):
    """Decodes differences; unknown values stay unknown, and the next difference is to the last known value."""
    total, values = 0, []
    for cell in cells:
        total += cell or 0
        values.append(None if cell is None else total)
    return values


def batch_rows(batch):
    """The rows of a batch in either shape, as dictionaries with time_ns absolute."""
    names = batch["columns"]
    if "rows" in batch:
        cells = batch["rows"]
    else:
        columns = []
        for name, values in zip(names, batch["cols"]):
            if name in batch.get("delta", ()):
                values = summed(values)
            columns.append(values)
        cells = zip(*columns)
    rows = [dict(zip(names, row)) for row in cells]
    for row in rows:
        if "dt_ns" in row:
            row["time_ns"] = batch["base_time_ns"] + row["dt_ns"]
    return rows


class Written:
    """Every whole line of a session, by its number, whatever file holds it: live, rotated or sealed."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.lines = {channel: {} for channel in CHANNELS}
        for file in sorted(self.path.iterdir()):
            channel = file.name.split(".")[0]
            if channel in CHANNELS and file.name.endswith((".log", ".log.zst")):
                self._read(channel, file)

    def _read(self, channel, file):
        text = file.read_bytes()
        if file.suffix == ".zst":
            text = subprocess.run(["zstd", "-dc"], input=text, capture_output=True, check=True).stdout
        for line in text.split(b"\n"):
            try:
                record = json.loads(line)
            except ValueError:
                continue  # torn by a kill, or the end of the file
            self.lines[channel].setdefault(record["seq"], record)

    def records(self, kind):
        return [record for lines in self.lines.values() for record in lines.values() if record["type"] == kind]

    def rows(self, kind):
        return [row for batch in self.records(kind) for row in batch_rows(batch)]

    def batch_types(self):
        return {record["type"] for lines in self.lines.values() for record in lines.values() if "columns" in record}

    def kernel_names(self):
        result = {}
        for update in self.records("dictionary_update"):
            result.update({int(key): text for key, text in update.get("kernel_dict", {}).items()})
        return result

    def kernels(self):
        """Counts each kernel execution."""
        names = self.kernel_names()
        return collections.Counter((names[row["kernel_id"]], row["time_ns"], row["duration_ns"], row["stream_id"],
                                    row["corr_id"]) for row in self.rows("kernel_event_batch"))

    def lost_kernels(self):
        """The number of kernels in loss records."""
        return sum(loss["count"] for loss in self.records("loss") if loss.get("record_type") == "kernel_event_batch")


def stored_kernels(server, session_id):
    """The same from the server's answers."""
    result = collections.Counter()
    path = f"/api/v1/sessions/{session_id}"
    for kernel in server.pages(path + "/kernels", "kernels", exact="true", limit=1000):
        for row in server.pages(f"{path}/kernels/{kernel['kernel_id']}/instances", "instances", limit=1000):
            result[kernel["name"], row["start_ns"], row["duration_ns"], row["stream_id"], row["correlation_id"]] += 1
    return result
