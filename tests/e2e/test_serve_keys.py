# SPDX-License-Identifier: Apache-2.0
"""API keys of gpufl serve: scopes, limits and expiry."""
import concurrent.futures
import json
import pathlib

from harness import environment, gpufl, main
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
            # On the loopback, no key is needed until the first one is created.
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
            # Revoking and rotating takes effect at once in the running server.
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
            # No secret is in its output or its files.
            printed = "".join(server.printed) + json.dumps(listed) + text
            stored = b"".join(file.read_bytes() for file in self.data.rglob("*") if file.is_file())
            for secret in [*secrets.values(), new]:
                self.assertNotIn(secret, printed)
                self.assertNotIn(secret.encode(), stored)
        # Keys outlive the server.
        with Serve(self.data) as server:
            self.assertEqual(server.ask("/api/v1/sessions", key=secrets["admin"]).status, 200)
            self.assertEqual(server.ask("/api/v1/sessions").status, 401)

    def test_uploads_report_wrong_keys(self):
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

    def test_the_first_key_makes_the_data_directory(self):
        home = self.directory / "home"
        result = gpufl("serve", "keys", "create", "--scope", "admin", env=environment(HOME=home, XDG_STATE_HOME=None,
                                                                                     XDG_DATA_HOME=None))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(len(list(home.rglob("gpufl.db"))), 1)

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
            with concurrent.futures.ThreadPoolExecutor(20) as pool:  # one after the other may be slow enough
                answers = list(pool.map(lambda _: server.ask("/api/v1/info/version", key=slow), range(20)))
            self.assertEqual({answer.status for answer in answers}, {200, 429})
            limited = next(answer for answer in answers if answer.status == 429)
            self.assertGreaterEqual(int(limited.headers["Retry-After"]), 1)
            body, headers = window([kernels("s", count=1000)], "s")
            self.assertEqual(server.ask(STREAM, "POST", body, headers, key=small).status, 202)
            answer = server.ask(STREAM, "POST", body, headers, key=small)
            self.assertEqual(answer.status, 429)
            self.assertIn("quota", json.loads(answer.body)["error"]["message"])

    def test_a_restart_gives_nobody_a_second_quota(self):
        self.data.mkdir()
        key = self.create("ingest", "--quota-bytes", 100)
        body, headers = window([kernels("s", count=1000)], "s")
        with Serve(self.data) as server:
            self.assertEqual(server.ask(STREAM, "POST", body, headers, key=key).status, 202)
        with Serve(self.data) as server:
            answer = server.ask(STREAM, "POST", body, headers, key=key)
            self.assertEqual(answer.status, 429)
            self.assertIn("quota", json.loads(answer.body)["error"]["message"])
            # After a kill, the server knows the usage it had saved, which includes the first upload.
            server.kill()
            server.start()
            self.assertEqual(server.ask(STREAM, "POST", body, headers, key=key).status, 429)
        noted = self.data / "key_usage.json"
        self.assertEqual(noted.stat().st_mode & 0o777, 0o600)
        self.assertGreaterEqual(json.loads(noted.read_text())["keys"][0]["bytes"], len(body))
        # Yesterday's usage and a damaged file are ignored.
        for text in (json.dumps({**json.loads(noted.read_text()), "day": 1}), "{damaged"):
            noted.write_text(text)
            with Serve(self.data) as server:
                self.assertEqual(server.ask(STREAM, "POST", body, headers, key=key).status, 202)

    def audit(self):
        result = gpufl("serve", "audit", "--json", "--data", self.data)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def test_every_change_and_every_refused_key_is_in_the_audit_log(self):
        with Serve(self.data) as server:
            admin = self.create("admin", "--name", "boss")
            read = self.create("read", "--name", "board")
            prefixes = {name: f"{key[:8]} {name}" for name, key in (("boss", admin), ("board", read))}
            body, headers = window([kernels("s")], "s")
            self.assertEqual(server.ask(STREAM, "POST", body, headers, key=admin).status, 202)
            json_type = {"Content-Type": "application/json"}
            self.assertEqual(server.ask("/api/v1/sessions/s", "PATCH", '{"tags":["a"]}', json_type, key=admin).status, 200)
            self.assertEqual(server.ask("/api/v1/configs/fast", "PUT", '{"engine":"Trace"}', json_type, key=admin).status, 200)
            self.assertEqual(server.ask("/api/v1/configs/fast", "DELETE", key=admin).status, 204)
            self.assertEqual(server.ask("/api/v1/sessions/s", "DELETE", key=admin).status, 204)
            for _ in range(3):
                self.assertEqual(server.ask("/api/v1/sessions/s", "DELETE", key=read).status, 403)
            self.assertEqual(gpufl("serve", "keys", "rotate", "board", "--data", self.data).returncode, 0)
            self.assertEqual(server.ask("/api/v1/sessions", key=read).status, 401)
            guess = "gpfl_" + "C" * 32
            self.assertEqual(server.ask("/api/v1/sessions", key=guess).status, 401)
            self.assertEqual(gpufl("serve", "backup", self.directory / "copy.db", "--data", self.data).returncode, 0)
            # A failed backup is not logged.
            self.assertEqual(gpufl("serve", "backup", self.directory / "no/copy.db", "--data", self.data).returncode, 3)
            self.assertEqual(gpufl("serve", "keys", "revoke", "boss", "--data", self.data).returncode, 0)
            entries = [(entry["actor"], entry["action"], entry["subject"]) for entry in reversed(self.audit())]
            expected = [("local", "key.create", prefixes["boss"]), ("local", "key.create", prefixes["board"]),
                        (prefixes["boss"], "session.tag", "s"), (prefixes["boss"], "config.put", "fast"),
                        (prefixes["boss"], "config.delete", "fast"), (prefixes["boss"], "session.delete", "s"),
                        ("127.0.0.1", "key.refused", prefixes["board"]), ("local", "key.rotate", None),
                        ("127.0.0.1", "key.refused", prefixes["board"]), ("127.0.0.1", "key.refused", ""),
                        ("local", "store.backup", str(self.directory / "copy.db")), ("local", "key.revoke", prefixes["boss"])]
            self.assertEqual([entry[:2] for entry in entries], [entry[:2] for entry in expected])
            for got, wanted in zip(entries, expected):
                if wanted[2] is not None:
                    self.assertEqual(got, wanted)
            details = [entry["detail"] for entry in self.audit() if entry["action"] == "key.refused"]
            self.assertEqual(details[-1], "the API key's scope is read; this request needs admin, 3 times")
            text = gpufl("serve", "audit", "--data", self.data).stdout
            self.assertIn("key.refused", text)
            for secret in (admin, read, guess):
                self.assertNotIn(secret, text + json.dumps(self.audit()))
        # Also without a server, and limited.
        result = gpufl("serve", "audit", "--limit", 2, "--json", "--data", self.data)
        self.assertEqual([entry["action"] for entry in json.loads(result.stdout)], ["key.revoke", "store.backup"])

    def test_no_secret_is_ever_printed_kept_or_in_a_process_title(self):
        secret = "gpfl_ThisIsTheKeyThatMustNotAppear"
        file = self.directory / "key"
        file.write_text(secret + "\n")
        session = self.record(10)
        seen = []
        with Serve(self.data, "-v", "--admin-key-file", file) as server:
            with Serve(self.directory / "other", "-v", GPUFL_SERVE_ADMIN_KEY=secret + "Other") as other:
                for path in ("/api/v1/sessions", "/none", f"/api/v1/sessions/{'x' * 200}", "/api/v1/sessions?limit=x"):
                    for key in (secret, secret + "Wrong"):
                        for running in (server, other):
                            answer = running.ask(path, key=key)
                            seen += [answer.body.decode(), str(answer.headers)]
                body, headers = window([kernels("s")], "s")
                answer = server.ask(STREAM, "POST", body[:-5], headers, key=secret)
                self.assertEqual(answer.status, 422)
                for arguments in (("upload", session, "--server", server.url), ("upload", session, "--server", other.url),
                                  ("agent", "--once", "--root", session.parent, "--server", other.url,
                                   "--state", self.directory / "state")):
                    result = gpufl(*arguments, env=environment(GPUFL_API_KEY=secret))
                    seen += [result.stdout, result.stderr]
                for running in (server, other):
                    for name in ("cmdline", "comm", "status"):
                        seen.append(pathlib.Path(f"/proc/{running.process.pid}/{name}").read_text(errors="replace"))
                    seen.append(gpufl("serve", "keys", "list", "--json", "--data", running.data).stdout)
                    seen.append(gpufl("serve", "audit", "--json", "--data", running.data).stdout)
                    seen.append(running.ask("/metrics", key=secret).body.decode())
            seen += other.printed
        seen += server.printed
        seen += [found.read_bytes().decode("latin-1") for directory in ("data", "other", "state", "log")
                 for found in (self.directory / directory).rglob("*") if found.is_file()]
        self.assertGreater(len(seen), 30)
        self.assertEqual([text for text in seen if secret in text], [])


if __name__ == "__main__":
    main()
