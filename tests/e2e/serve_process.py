# SPDX-License-Identifier: Apache-2.0
"""`gpufl serve` as tests start, ask, kill and stop it."""
import collections
import http.client
import json
import re
import signal
import subprocess
import threading
import time
import urllib.parse

from harness import GPUFL, environment

Answer = collections.namedtuple("Answer", "status headers body")
START_TIMEOUT_S = 60


class Serve:
    """Use as a context manager. Everything that it prints is in `printed`."""

    def __init__(self, data, *options, listen="127.0.0.1:0", key=None, **variables):
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

    def __exit__(self, *_):
        self.stop()

    def start(self):
        command = [GPUFL, "serve", "--listen", self.listen, "--data", self.data, *self.options]
        self.process = subprocess.Popen([str(word) for word in command], env=environment(**self.variables), text=True,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
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
        ready.wait(START_TIMEOUT_S)
        if not self.url:
            self.kill()
            raise AssertionError("the server did not start:\n" + "".join(self.printed))
        # A restart must be found where the one before was.
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
        code = self.process.wait(START_TIMEOUT_S)
        self.reader.join()
        self.process.stderr.close()
        return code

    def ask(self, path, method="GET", body=None, headers=(), key=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
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
        """The JSON of an answer that must be 200."""
        if query:
            path += "?" + urllib.parse.urlencode(query)
        answer = self.ask(path)
        if answer.status != 200:
            raise AssertionError(f"GET {path}: {answer.status} {answer.body[:500]}")
        return json.loads(answer.body)

    def pages(self, path, member, **query):
        """All elements of a list that comes in pages."""
        result, cursor = [], None
        while True:
            answer = self.get(path, **query, **({"cursor": cursor} if cursor else {}))
            result += answer[member]
            cursor = answer["next_cursor"]
            if not cursor:
                return result

    def wait_for(self, what, is_true, timeout_s=30):
        end = time.monotonic() + timeout_s
        while not is_true():
            if time.monotonic() > end:
                raise AssertionError(f"{what}: not within {timeout_s} s")
            time.sleep(0.05)
