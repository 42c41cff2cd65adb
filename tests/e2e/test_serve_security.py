# SPDX-License-Identifier: Apache-2.0
"""gpufl serve against hostile clients and hostile content, on the running program."""
import http.client
import json
import socket
import urllib.parse

from harness import gpufl, main
from serve_process import STREAM, Serve, ServeTest, job_start, kernels, window

HTML = "<img src=x onerror=alert(1)></script><script>alert(\"2\")</script>&lt;\u2028"
SQL = ("'; DROP TABLE sessions; --", "\" OR \"\"=\"", "x' UNION SELECT hash FROM keys --", "%' ESCAPE '", "a\\'b", "\u2019 OR 1=1")
DEADLINE_S = 600


def exchange(server, request):
    """Everything that the server sends in reply until it closes the connection or sends no more."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=DEADLINE_S) as connection:
        received = b""
        try:
            connection.sendall(request)
            connection.shutdown(socket.SHUT_WR)
            while data := connection.recv(65536):
                received += data
        except OSError as error:
            # The server closed the connection while the test was sending; a timeout is different.
            if isinstance(error, TimeoutError):
                raise
    return received


class Content(ServeTest):
    def send(self, server, session_id, *lines):
        body, headers = window(lines, session_id)
        answer = server.ask(STREAM, "POST", body, headers)
        self.assertEqual(answer.status, 202, answer.body)

    def test_paths_outside_of_the_tree_are_not_served(self):
        with Serve(self.data) as server:
            before = sorted(self.directory.rglob("*"))
            for path in ("/../../../../etc/passwd", "/api/v1/../../etc/passwd", "/api/v1/sessions/../../../etc/passwd",
                         "/api/v1/sessions/..%2f..%2f..%2fetc%2fpasswd", "/api/v1/sessions/%2e%2e/%2e%2e/etc/passwd",
                         "/api/v1/sessions/..%5c..%5cetc", "/api/v1/sessions/%00", "/api/v1/sessions/a%00b",
                         "//etc/passwd", "/api/v1//sessions", "/./healthz", "/api/v1/configs/..%2fx",
                         "/assets/../../etc/passwd", "/assets/%2e%2e%2fgpufl.db", "/gpufl.db", "/control.sock",
                         "/api/v1/sessions/%c0%ae%c0%ae/x", "http://127.0.0.1/healthz", "/api/v1/sessions/%zz"):
                answer = exchange(server, f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
                status = int(answer.split()[1])
                self.assertIn(status, (400, 404), (path, answer))
                self.assertNotIn(b"root:", answer)
                self.assertTrue(json.loads(answer.split(b"\r\n\r\n", 1)[1])["error"]["code"], path)
                for method in ("PUT", "DELETE"):
                    answer = server.ask(path if path.startswith("/") else "/x", method, b"{}" if method == "PUT" else None)
                    self.assertIn(answer.status, (400, 404, 405), (method, path, answer.body))
            self.assertEqual(sorted(self.directory.rglob("*")), before)

    def test_sql_in_names_is_only_a_name(self):
        with Serve(self.data) as server:
            for number, text in enumerate(SQL):
                session_id = f"s{number}"
                self.send(server, session_id, {**job_start(session_id), "app": text, "hostname": text},
                          {"version": 1, "type": "dictionary_update", "session_id": session_id, "kernel_dict": {"1": text}},
                          kernels(session_id, count=number + 1))
                change = server.ask(f"/api/v1/sessions/{session_id}", "PATCH", json.dumps({"tags": [text]}),
                                    {"Content-Type": "application/json"})
                self.assertEqual(change.status, 200, change.body)
            for number, text in enumerate(SQL):
                expected = [f"s{number}"]
                for name in ("app", "host", "tag"):
                    found = server.pages("/api/v1/sessions", "sessions", **{name: text})
                    self.assertEqual([session["id"] for session in found], expected, (name, text))
                    self.assertEqual(found[0]["app"], text)
                found = server.get("/api/v1/search/kernels", q=text)["kernels"]
                self.assertEqual([(kernel["session_id"], kernel["name"], kernel["count"]) for kernel in found],
                                 [(f"s{number}", text, number + 1)])
                self.assertEqual([host["host"] for host in server.get("/api/v1/hosts", host=text)["hosts"]], [])
                for path in ("sessions/{}", "sessions/{}/kernels", "hosts/{}/metrics", "configs/{}"):
                    answer = server.ask("/api/v1/" + path.format(urllib.parse.quote(text, safe="")))
                    self.assertIn(answer.status, (200, 400, 404), (path, answer.body))
                for query in ("cursor", "sort", "state", "limit"):
                    answer = server.ask("/api/v1/sessions?" + urllib.parse.urlencode({query: text}))
                    self.assertEqual(answer.status, 400, (query, answer.body))
            self.assertEqual(len(server.pages("/api/v1/sessions", "sessions")), len(SQL))
            checked = gpufl("serve", "check", "--data", self.data)
            self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)

    def test_html_in_names_is_json_that_no_browser_runs(self):
        with Serve(self.data) as server:
            self.send(server, "s", {**job_start("s"), "app": HTML, "hostname": HTML},
                      {"version": 1, "type": "dictionary_update", "session_id": "s", "kernel_dict": {"1": HTML}},
                      kernels("s"))
            quoted = urllib.parse.quote(HTML, safe="")
            for path in ("/api/v1/sessions", "/api/v1/sessions/s", "/api/v1/sessions/s/kernels", f"/api/v1/sessions/{quoted}",
                         f"/api/v1/search/kernels?q={quoted}", f"/{quoted}", f"/api/v1/sessions?sort={quoted}",
                         f"/api/v1/sessions?{quoted}=1", f"/api/v1/hosts/{quoted}/metrics"):
                answer = server.ask(path)
                self.assertTrue(answer.headers["Content-Type"].startswith("application/json"), path)
                self.assertEqual(answer.headers["X-Content-Type-Options"], "nosniff")
                self.assertIn("default-src 'none'", answer.headers["Content-Security-Policy"])
                json.loads(answer.body)
            self.assertEqual(server.get("/api/v1/sessions/s/kernels")["kernels"][0]["name"], HTML)
            self.assertEqual(server.get("/api/v1/sessions")["sessions"][0]["app"], HTML)


class Requests(ServeTest):
    smuggled = b"GET /api/v1/sessions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    head = b"POST /api/v1/events/session-complete HTTP/1.1\r\nHost: localhost\r\nX-GpuFlight-Session-Id: s\r\n"

    def test_an_ambiguous_request_is_rejected_and_ends_the_connection(self):
        ambiguous = {
            "length and chunked": b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "chunked and length": b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
            "two lengths": b"Content-Length: 0\r\nContent-Length: 5\r\n\r\nhello",
            "two equal lengths": b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
            "two codings": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
            "coding in disguise": b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
            "bare LF": b"X-A: b\nContent-Length: 5\r\n\r\nhello",
            "folded line": b"X-A: b\r\n Content-Length: 5\r\n\r\nhello",
            "blank before the colon": b"Content-Length : 5\r\n\r\nhello",
            "NUL": b"X-A: b\0c\r\nContent-Length: 0\r\n\r\n",
            "bare CR": b"X-A: b\rContent-Length: 5\r\n\r\nhello",
        }
        with Serve(self.data) as server:
            for name, rest in ambiguous.items():
                answer = exchange(server, self.head + rest + self.smuggled)
                self.assertEqual(answer.count(b"HTTP/1.1 "), 1, (name, answer))
                self.assertEqual(int(answer.split()[1]), 400, (name, answer))
                self.assertNotIn(b'"sessions"', answer)
                head, body = answer.split(b"\r\n\r\n", 1)
                self.assertIn(b"application/json", head, name)
                self.assertTrue(json.loads(body)["error"]["message"], name)

    def test_bytes_that_are_not_http_are_an_error_and_end_the_connection(self):
        # The HTTP library answers these itself, in HTML, which is documented.
        broken = (b"Content-Length: 5x\r\n\r\nhello", b"Content-Length: -1\r\n\r\n", b"Content-Length: 99999999999999999999\r\n\r\n",
                  b"no colon\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", b"Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n")
        config = self.directory / "serve.json"
        config.write_text('{"head_timeout_ms": 1000}')  # for headers that never end
        with Serve(self.data, "--config", config) as server:
            for rest in broken:
                answer = exchange(server, self.head + rest + self.smuggled)
                self.assertNotIn(b"HTTP/1.1 2", answer)
                self.assertNotIn(b'"sessions"', answer)
            for text in (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"\r\n" * 10, b"GET\r\n\r\n", b"\0" * 100, b"A" * 200_000):
                self.assertNotIn(b"HTTP/1.1 2", exchange(server, text))
            self.assertEqual(server.get("/healthz")["status"], "ok")

    def test_slow_clients_are_disconnected_and_do_not_delay_others(self):
        config = self.directory / "serve.json"
        config.write_text(json.dumps({"head_timeout_ms": 500, "idle_timeout_ms": 1000, "body_timeout_ms": 500}))
        with Serve(self.data, "--config", config) as server:
            starts = [b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A: ", b"", self.head + b"Content-Length: 1000\r\n\r\n{",
                      b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"]
            held = []
            for start in starts * 25:
                connection = socket.create_connection(("127.0.0.1", server.port), timeout=DEADLINE_S)
                self.addCleanup(connection.close)
                connection.sendall(start)
                held.append(connection)
            self.assertEqual(server.get("/healthz")["status"], "ok")
            for connection in held:
                try:
                    while connection.recv(65536):
                        pass  # until the server closes the connection
                except ConnectionResetError:
                    pass

            def gone():
                lines = dict(line.rsplit(" ", 1) for line in server.ask("/metrics").body.decode().splitlines()
                             if not line.startswith("#"))
                return (float(lines['gpufl_http_refused_total{reason="timeout"}']) >= 75
                        and float(lines["gpufl_http_connections"]) < 10)
            server.wait_for("all of them to be counted", gone)

    def test_one_address_cannot_take_every_connection(self):
        config = self.directory / "serve.json"
        config.write_text(json.dumps({"connections_peer_max": 4}))
        with Serve(self.data, "--config", config) as server:
            held = [socket.create_connection(("127.0.0.1", server.port), timeout=DEADLINE_S) for _ in range(4)]
            for connection in held:
                self.addCleanup(connection.close)
            request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
            for connection in held:
                connection.sendall(request)
                self.assertIn(b"200 OK", connection.recv(4096))
            self.assertEqual(exchange(server, request), b"")
            held.pop().close()

            def is_served():
                try:
                    return server.ask("/healthz").status == 200
                except (OSError, http.client.HTTPException):
                    return False
            server.wait_for("a free place", is_served)


class Browsers(ServeTest):
    def ask(self, server, method="GET", path="/api/v1/sessions", **headers):
        return server.ask(path, method, b"{}" if method in ("PUT", "PATCH") else None,
                          {name.replace("_", "-"): value for name, value in headers.items()})

    def test_requests_with_a_foreign_host_name_are_rejected(self):
        with Serve(self.data) as server:
            for name in ("localhost", f"localhost:{server.port}", "127.0.0.1", "[::1]:80", "192.0.2.7"):
                self.assertEqual(self.ask(server, Host=name).status, 200, name)
            for name in ("evil.example", f"evil.example:{server.port}", "localhost.evil.example", "127.0.0.1.evil.example", "gpu"):
                answer = self.ask(server, Host=name)
                self.assertEqual(answer.status, 421, name)
                self.assertEqual(json.loads(answer.body)["error"]["code"], "host_unknown")
        with Serve(self.data, "--allow-host", "gpu, metrics.example") as server:
            for name, status in (("gpu", 200), ("metrics.example:8080", 200), ("METRICS.example", 200), ("evil.example", 421)):
                self.assertEqual(self.ask(server, Host=name).status, status, name)

    def test_pages_of_other_sites_may_not_read_or_write_by_default(self):
        with Serve(self.data) as server:
            answer = self.ask(server, Origin="https://evil.example")
            self.assertNotIn("Access-Control-Allow-Origin", answer.headers)
            self.assertEqual(answer.headers["Cross-Origin-Resource-Policy"], "same-origin")
            answer = self.ask(server, "OPTIONS", Origin="https://evil.example", Access_Control_Request_Method="DELETE")
            self.assertEqual(answer.status, 501)
            self.assertFalse([name for name in answer.headers if name.startswith("Access-Control")])
            for headers in ({"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec_Fetch_Site": "cross-site"}):
                for method in ("DELETE", "PATCH"):
                    answer = self.ask(server, method, "/api/v1/sessions/s", **headers)
                    self.assertEqual(answer.status, 403, headers)
                    self.assertEqual(json.loads(answer.body)["error"]["code"], "origin_foreign")
            # The server's own page may.
            own = f"http://127.0.0.1:{server.port}"
            self.assertEqual(self.ask(server, "DELETE", "/api/v1/sessions/s", Origin=own).status, 404)

    def test_named_sites_may(self):
        site, other = "https://grafana.example:3000", "https://grafana.example"
        with Serve(self.data, "--cors-origin", site) as server:
            answer = self.ask(server, Origin=site)
            self.assertEqual((answer.status, answer.headers["Access-Control-Allow-Origin"]), (200, site))
            self.assertIn("Origin", answer.headers.get_all("Vary"))
            self.assertNotIn("Access-Control-Allow-Credentials", answer.headers)
            answer = self.ask(server, "OPTIONS", Origin=site, Access_Control_Request_Method="PATCH",
                              Access_Control_Request_Headers="authorization")
            self.assertEqual((answer.status, answer.headers["Access-Control-Allow-Origin"]), (204, site))
            self.assertIn("PATCH", answer.headers["Access-Control-Allow-Methods"])
            self.assertIn("Authorization", answer.headers["Access-Control-Allow-Headers"])
            self.assertEqual(self.ask(server, "DELETE", "/api/v1/sessions/s", Origin=site, Sec_Fetch_Site="cross-site").status, 404)
            # Errors can be read as well.
            self.assertEqual(self.ask(server, path="/none", Origin=site).headers["Access-Control-Allow-Origin"], site)
            for origin in (other, "http://grafana.example:3000", "https://evil.example", "null"):
                answer = self.ask(server, Origin=origin)
                self.assertNotIn("Access-Control-Allow-Origin", answer.headers)
                answer = self.ask(server, "OPTIONS", Origin=origin, Access_Control_Request_Method="GET")
                self.assertEqual(answer.status, 403)
                self.assertNotIn("Access-Control-Allow-Origin", answer.headers)
                self.assertEqual(self.ask(server, "DELETE", "/api/v1/sessions/s", Origin=origin).status, 403)
        for wrong in ("*", "grafana.example", "https://a.example/path", "ftp://a.example", "https://"):
            result = gpufl("serve", "--listen", "127.0.0.1:0", "--data", self.data, "--cors-origin", wrong)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn("--cors-origin", result.stderr)


if __name__ == "__main__":
    main()
