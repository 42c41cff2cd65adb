# SPDX-License-Identifier: Apache-2.0
"""Keys of gpufl serve: who may do what, how much, and until when."""
import json
import pathlib

from harness import gpufl, main
from serve_process import STREAM, Serve, ServeTest, kernels, window


class Keys(ServeTest):
    def create(self, scope, *options):
        result = gpufl("serve", "keys", "create", "--scope", scope, "--data", self.data, *options)
        self.assertEqual(result.returncode, 0, result.stderr)
        key = result.stdout.strip()
        self.assertRegex(key, r"^gpfl_[A-Za-z0-9_-]{32}$")
        self.assertNotIn(key, result.stderr)
        return key

    def keys(self):
        result = gpufl("serve", "keys", "list", "--json", "--data", self.data)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def test_each_key_opens_its_scope_until_it_is_revoked(self):
        with Serve(self.data, "-v") as server:
            # On this machine, before the first key, nobody needs one.
            self.assertEqual(server.ask("/api/v1/sessions").status, 200)
            secrets = {scope: self.create(scope, "--name", scope + " key") for scope in ("ingest", "read", "admin")}
            body, headers = window([kernels("s")], "s")
            expected = {None: (401, 401, 401), "ingest": (202, 403, 403), "read": (403, 200, 403),
                        "admin": (202, 200, 404), "gpfl_" + "A" * 32: (401, 401, 401)}
            for scope, statuses in expected.items():
                key = secrets.get(scope, scope)
                got = (server.ask(STREAM, "POST", body, headers, key=key).status,
                       server.ask("/api/v1/sessions", key=key).status,
                       server.ask("/api/v1/sessions/none", "DELETE", key=key).status)
                self.assertEqual(got, statuses, scope)
            for path in ("/healthz", "/readyz"):
                self.assertEqual(server.ask(path).status, 200)
            self.assertEqual(server.ask("/metrics").status, 401)
            # Revoked and rotated, at once, in the running server.
            self.assertEqual(gpufl("serve", "keys", "revoke", "read key", "--data", self.data).returncode, 0)
            self.assertEqual(server.ask("/api/v1/sessions", key=secrets["read"]).status, 401)
            rotated = gpufl("serve", "keys", "rotate", "ingest key", "--data", self.data)
            self.assertEqual(rotated.returncode, 0, rotated.stderr)
            new = rotated.stdout.strip()
            self.assertEqual(server.ask(STREAM, "POST", body, headers, key=secrets["ingest"]).status, 401)
            self.assertEqual(server.ask(STREAM, "POST", body, headers, key=new).status, 202)
            listed = self.keys()
            self.assertEqual([key["scope"] for key in listed], ["ingest", "read", "admin", "ingest"])
            self.assertEqual([key["revoked_ns"] is not None for key in listed], [True, True, False, False])
            text = gpufl("serve", "keys", "list", "--data", self.data).stdout
            self.assertIn("revoked", text)
            self.assertEqual(gpufl("serve", "keys", "revoke", "nobody", "--data", self.data).returncode, 3)
            self.assertEqual(server.stop(), 0)
            # No secret in what it printed, nor in what it keeps.
            printed = "".join(server.printed) + json.dumps(listed) + text
            stored = b"".join(file.read_bytes() for file in self.data.rglob("*") if file.is_file())
            for secret in [*secrets.values(), new]:
                self.assertNotIn(secret, printed)
                self.assertNotIn(secret.encode(), stored)
        # Keys outlive the server.
        with Serve(self.data) as server:
            self.assertEqual(server.ask("/api/v1/sessions", key=secrets["admin"]).status, 200)
            self.assertEqual(server.ask("/api/v1/sessions").status, 401)

    def test_uploads_hear_of_wrong_keys(self):
        session = self.record(10)
        self.data.mkdir()
        key = self.create("ingest")
        other = self.create("read")
        with Serve(self.data) as server:
            for wrong in (None, other, "gpfl_" + "B" * 32):
                result = self.upload(session, server.url, wrong)
                self.assertEqual(result.returncode, 3, result.stderr)
                if wrong:
                    self.assertNotIn(wrong, result.stderr)
            self.assertEqual(self.upload(session, server.url, key).returncode, 0)

    def test_beyond_this_machine_a_key_is_needed(self):
        for listen in ("0.0.0.0:0", "[::]:0"):
            result = gpufl("serve", "--listen", listen, "--data", self.data)
            self.assertEqual(result.returncode, 3, result.stderr)
            self.assertIn("keys create", result.stderr)
        self.create("read")
        with Serve(self.data, listen="0.0.0.0:0") as server:
            self.assertEqual(server.ask("/api/v1/sessions").status, 401)
            self.assertEqual(server.ask("/healthz").status, 200)

    def test_the_first_key_comes_from_a_file_or_the_environment(self):
        secret = "gpfl_only_in_the_file_and_nowhere_else"
        file = self.directory / "key"
        file.write_text(secret + "\n")
        with Serve(self.data, "--admin-key-file", file, listen="0.0.0.0:0") as server:
            self.assertEqual(server.ask("/api/v1/sessions", key=secret).status, 200)
            self.assertEqual(server.ask("/api/v1/sessions").status, 401)
            command_line = pathlib.Path(f"/proc/{server.process.pid}/cmdline").read_bytes()
            self.assertNotIn(secret.encode(), command_line)
        with Serve(self.data, listen="0.0.0.0:0", GPUFL_SERVE_ADMIN_KEY=secret) as server:
            self.assertEqual(server.ask("/api/v1/sessions", key=secret).status, 200)
            self.assertNotIn(secret, "".join(server.printed))

    def test_a_keys_rate_and_quota_are_kept(self):
        self.data.mkdir()
        slow = self.create("ingest", "--rate", 1)
        small = self.create("ingest", "--quota-bytes", 100)
        with Serve(self.data) as server:
            answers = [server.ask("/api/v1/info/version", key=slow) for _ in range(20)]
            self.assertEqual({answer.status for answer in answers}, {200, 429})
            limited = next(answer for answer in answers if answer.status == 429)
            self.assertGreaterEqual(int(limited.headers["Retry-After"]), 1)
            body, headers = window([kernels("s", count=1000)], "s")
            self.assertEqual(server.ask(STREAM, "POST", body, headers, key=small).status, 202)
            answer = server.ask(STREAM, "POST", body, headers, key=small)
            self.assertEqual(answer.status, 429)
            self.assertIn("quota", json.loads(answer.body)["error"]["message"])


if __name__ == "__main__":
    main()
