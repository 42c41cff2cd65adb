# SPDX-License-Identifier: Apache-2.0
"""The dashboard's pages and headers, and the requests of its settings page."""
import json
import unittest

from serve_process import Serve, ServeTest, gpufl


class DashboardTest(ServeTest):
    def test_every_address_of_the_dashboard_is_its_page(self):
        with Serve(self.data) as server:
            for path in ("/", "/sessions", "/sessions/some-id/timeline", "/settings"):
                answer = server.ask(path)
                self.assertEqual(answer.status, 200, path)
                self.assertTrue(answer.headers["Content-Type"].startswith("text/html"), path)
                self.assertIn("default-src 'none'; script-src 'self'", answer.headers["Content-Security-Policy"])
                self.assertIn('<div id="app">', answer.body.decode())
            self.assertEqual(server.ask("/no-such-page").status, 404)
            self.assertEqual(server.ask("/assets/none.js").status, 404)

    def test_a_page_that_the_browser_has_keeps_its_policy(self):
        with Serve(self.data) as server:
            first = server.ask("/")
            again = server.ask("/", headers={"If-None-Match": first.headers["ETag"]})
            self.assertEqual(again.status, 304)
            self.assertIsNone(again.headers["Content-Security-Policy"])

    def test_the_server_says_what_it_holds_and_for_how_long(self):
        session = self.record(500)
        with Serve(self.data, "--retention-days", "30") as server:
            self.assertEqual(self.upload(session, server.url).returncode, 0)
            about = server.get("/api/v1/server")
            self.assertEqual((about["sessions"], about["retention_days"], about["retention_bytes"]), (1, 30, None))
            # Single records are rows of the store too.
            self.assertGreaterEqual(about["rows"], server.get(f"/api/v1/sessions/{session.name}")["catalog"]["rows"])
            self.assertGreater(about["bytes"], 0)
            self.assertEqual((about["keys"], about["is_key_needed"]), (0, False))

    def test_keys_are_listed_for_administrators_and_without_their_secrets(self):
        keys = {}
        for scope in ("read", "admin"):
            made = gpufl("serve", "keys", "create", "--scope", scope, "--name", scope, "--data", self.data)
            self.assertEqual(made.returncode, 0, made.stderr)
            keys[scope] = made.stdout.strip()
        with Serve(self.data) as server:
            self.assertEqual(server.ask("/api/v1/keys").status, 401)
            self.assertEqual(server.ask("/api/v1/keys", key=keys["read"]).status, 403)
            answer = server.ask("/api/v1/keys", key=keys["admin"])
            self.assertEqual(answer.status, 200)
            listed = json.loads(answer.body)["keys"]
            self.assertEqual(sorted(key["scope"] for key in listed), ["admin", "read"])
            for key in keys.values():
                self.assertNotIn(key, answer.body.decode())
            self.assertEqual(server.ask("/sessions").status, 200)  # the page itself holds no data


if __name__ == "__main__":
    unittest.main()
