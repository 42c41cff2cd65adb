# SPDX-License-Identifier: Apache-2.0
"""A bad network between agent and server: it refuses, stalls, slows down, cuts requests and answers in the middle,
answers in the server's place, and delivers twice."""
import collections
import http.client
import http.server
import random
import socket
import struct
import threading
import time

MOODS = ("pass", "refuse", "stall", "slow", "cut_request", "cut_answer", "twice", "storm")
STORM = ((503, {"Retry-After": "1"}), (500, {}), (429, {"Retry-After": "1"}), (502, {}), (504, {}))
STALL_MAX_S = 2
PIECE_BYTES = 4096


def reset(connection):
    """Closes the connection with a reset, which discards what was sent."""
    try:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()
    except OSError:
        pass


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.pass_on()

    def do_POST(self):
        self.pass_on()

    def pass_on(self):
        proxy = self.server.proxy
        mood, chance = proxy.note(), proxy.chance
        if mood == "refuse":
            return self.hang_up()
        if mood == "stall":
            proxy.changed.wait(STALL_MAX_S)
            return self.hang_up()
        if mood == "storm":
            return self.storm(*chance.choice(STORM))
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        try:
            answer = self.forward(body, mood, chance)
            if answer and mood == "twice":
                answer = self.forward(body, mood, chance)
        except (OSError, http.client.HTTPException):
            answer = None  # the server was killed or is down
        if answer is None:
            return self.hang_up()
        text = (b"HTTP/1.1 %d Proxied\r\n" % answer[0] +
                b"".join(f"{name}: {value}\r\n".encode() for name, value in answer[1]) + b"\r\n" + answer[2])
        if mood == "cut_answer":
            self.wfile.write(text[:chance.randrange(len(text))])
            return self.hang_up()
        self.wfile.write(text)
        proxy.answers[answer[0]] += 1

    def forward(self, body, mood, chance):
        """Status, headers and content of the server's answer; None: no answer is passed on."""
        with socket.create_connection(("127.0.0.1", self.server.proxy.port_of_server()), timeout=30) as upstream:
            head = f"{self.command} {self.path} HTTP/1.1\r\n" + "".join(
                f"{name}: {value}\r\n" for name, value in self.headers.items()
                if name.lower() not in ("connection", "expect")) + "Connection: close\r\n\r\n"
            text = head.encode() + body
            if mood == "cut_request":
                upstream.sendall(text[:chance.randrange(len(text))])
                reset(upstream)
                return None
            if mood == "slow":
                for at in range(0, len(text), PIECE_BYTES):
                    upstream.sendall(text[at:at + PIECE_BYTES])
                    time.sleep(0.01)
            else:
                upstream.sendall(text)
            response = http.client.HTTPResponse(upstream, method=self.command)
            response.begin()
            content = response.read()
            kept = [(name, value) for name, value in response.getheaders() if name.lower() not in
                    ("connection", "transfer-encoding", "content-length")]
            return response.status, kept + [("Content-Length", len(content))], content

    def storm(self, status, headers):
        """Answers with an error; half of the time reads the body first."""
        if self.server.proxy.chance.random() < 0.5:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
        else:
            self.close_connection = True
        content = b"<html>an overloaded server</html>"
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def hang_up(self):
        self.close_connection = True
        reset(self.connection)


class Listener(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request, client_address):
        pass  # killed agents close their connections


class Proxy:
    """Use as a context manager. port_of_server: a function, because the server may restart on another port."""

    def __init__(self, port_of_server, seed):
        self.port_of_server = port_of_server
        self.chance = random.Random(seed)
        self.moods = collections.Counter()  # requests by mood
        self.answers = collections.Counter()  # complete answers of the server that were passed on, by status
        self.mood = "pass"
        self.changed = threading.Event()

    def __enter__(self):
        self.http = Listener(("127.0.0.1", 0), Handler)
        self.http.proxy = self
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.02})
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.turn("pass")
        self.http.shutdown()
        self.thread.join()
        self.http.server_close()

    def turn(self, mood):
        self.mood = mood
        self.changed.set()
        self.changed.clear()

    def note(self):
        self.moods[self.mood] += 1
        return self.mood
