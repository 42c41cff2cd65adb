# SPDX-License-Identifier: Apache-2.0
"""Limits of gpufl serve: each gets an answer that names the limit, and the server continues."""
import concurrent.futures
import http.client
import json
import socket

from harness import gpufl, main
from serve_process import STREAM, Serve, ServeTest, kernels, window


class Limits(ServeTest):
    def config(self, **settings):
        file = self.directory / "serve.json"
        file.write_text(json.dumps(settings))
        return "--config", file

    def create(self, scope, *options):
        return gpufl("serve", "keys", "create", "--scope", scope, "--data", self.data, *options).stdout.strip()

    def refused(self, answer, status, code):
        self.assertEqual(answer.status, status, answer.body)
        error = json.loads(answer.body)["error"]
        self.assertEqual(error["code"], code)
        self.assertTrue(error["message"])

    def test_heads_targets_and_small_bodies_have_an_end(self):
        json_type = {"Content-Type": "application/json"}
        with Serve(self.data) as server:
            self.refused(server.ask("/healthz", headers={"X-A": "a" * 40_000}), 431, "head_too_large")
            self.refused(server.ask("/healthz", headers={f"X-{i}": "a" for i in range(120)}), 431, "head_too_large")
            self.refused(server.ask("/" + "a" * 9000), 414, "target_invalid")
            self.refused(server.ask("/" + "a/" * 40), 414, "target_invalid")
            self.refused(server.ask("/api/v1/sessions?" + "&".join(f"a{i}=1" for i in range(70))), 414, "target_invalid")
            self.refused(server.ask("/api/v1/sessions?limit=1&limit=2"), 400, "parameter_invalid")
            self.refused(server.ask("/api/v1/sessions?limt=1"), 400, "parameter_invalid")
            self.refused(server.ask("/api/v1/sessions/s", "PATCH", b"{" + b" " * 70_000 + b"}", json_type), 413, "body_too_large")
            self.refused(server.ask("/api/v1/configs/a", "PUT", b"[" * 60_000, json_type), 400, "config_invalid")
            self.refused(server.ask("/api/v1/configs/a", "PUT", b"{}", json_type | {"Content-Encoding": "gzip"}), 415,
                         "encoding_unsupported")
            body, headers = window([b"[" * 100_000, json.dumps(kernels("s")).encode()], "s")
            answer = server.ask(STREAM, "POST", body, headers)
            self.assertEqual(answer.status, 200, answer.body)
            self.assertEqual((json.loads(answer.body)["accepted"], json.loads(answer.body)["rejected"]), (1, 1))
            self.assertEqual(server.get("/healthz")["status"], "ok")

    def test_the_servers_own_rates_hold_for_every_key(self):
        self.data.mkdir()
        key, other = self.create("ingest"), self.create("ingest")
        body, headers = window([kernels("s", count=1000)], "s")
        with Serve(self.data, *self.config(requests_per_s=2)) as server:
            with concurrent.futures.ThreadPoolExecutor(30) as pool:  # one after the other may be slow enough
                answers = list(pool.map(lambda _: server.ask("/api/v1/info/version", key=key), range(30)))
            self.assertEqual({answer.status for answer in answers}, {200, 429})
            limited = next(answer for answer in answers if answer.status == 429)
            self.refused(limited, 429, "rate_limited")
            self.assertGreaterEqual(int(limited.headers["Retry-After"]), 1)
            self.assertEqual(server.ask("/api/v1/info/version", key=other).status, 200, "another key is not held up")
        with Serve(self.data, *self.config(bytes_per_s=10)) as server:
            self.assertEqual(server.ask(STREAM, "POST", body, headers, key=key).status, 202)
            answer = server.ask(STREAM, "POST", body, headers, key=key)
            self.refused(answer, 429, "rate_limited")
            self.assertIn("bytes per second", json.loads(answer.body)["error"]["message"])
        with Serve(self.data, *self.config(bytes_per_day=10)) as server:
            # The uploads above count for the same day.
            answer = server.ask(STREAM, "POST", body, headers, key=key)
            self.refused(answer, 429, "rate_limited")
            self.assertIn("per day", json.loads(answer.body)["error"]["message"])
            self.assertGreater(int(answer.headers["Retry-After"]), 0)

    def test_an_upload_waits_out_a_limit_and_then_arrives_whole(self):
        session = self.record(3000)
        self.data.mkdir()
        key = self.create("ingest", "--rate", 1)
        reader = self.create("read")
        with Serve(self.data, key=reader) as server:
            result = self.upload(session, server.url, key)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assert_holds(server, session)

    def test_more_connections_than_allowed_wait_their_turn(self):
        with Serve(self.data, *self.config(connections_max=8)) as server:
            held = [socket.create_connection(("127.0.0.1", server.port), timeout=600) for _ in range(20)]
            for connection in held:
                connection.close()

            def is_served():
                try:
                    return server.ask("/healthz").status == 200
                except (OSError, http.client.HTTPException):
                    return False
            server.wait_for("an answer", is_served)


if __name__ == "__main__":
    main()
