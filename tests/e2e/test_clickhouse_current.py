# SPDX-License-Identifier: Apache-2.0
"""gpufl serve on a current ClickHouse. Debian's is from 2018 and accepts statements that a current one may not."""
import json
import os
import subprocess
import unittest
import uuid

from clickhouse_answers import StoreAnswers
from current_clickhouse import CurrentClickHouse
from harness import main
from serve_process import STREAM, Serve, ServeTest, kernels, window


class Current(StoreAnswers, ServeTest):
    """One ClickHouse for all tests; each test has its own database."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        try:
            cls.clickhouse = CurrentClickHouse()
        except subprocess.CalledProcessError as error:
            if "CI" in os.environ:
                raise AssertionError("tests/clickhouse/install.sh failed, and CI must not skip") from error
            raise unittest.SkipTest("needs npm and its registry") from error
        cls.addClassCleanup(cls.clickhouse.stop)

    def setUp(self):
        super().setUp()
        self.database = "t" + uuid.uuid4().hex

    def serve(self, name):
        return Serve(self.directory / name, "--store", self.clickhouse.url(self.database))

    def store_url(self):
        return self.clickhouse.url()

    def test_it_is_not_the_old_one(self):
        self.assertGreaterEqual(int(self.clickhouse.version.split(".")[0]), 26)

    def test_sessions_are_tagged_kept_deleted_and_sent_again(self):
        session_id = str(uuid.uuid4())
        path = f"/api/v1/sessions/{session_id}"
        body, headers = window([kernels(session_id, 1)], session_id, "device", 1)
        with self.serve("current") as server:
            for _ in range(2):
                self.assertEqual(server.ask(STREAM, "POST", body, headers).status, 202)
                self.assertEqual(server.get(path)["catalog"]["kernels"], 10)
                tagged = server.ask(path, "PATCH", json.dumps({"tags": ["kept"]}), {"Content-Type": "application/json"})
                self.assertEqual(tagged.status, 200, tagged.body)
                self.assertEqual(server.get(path)["catalog"]["tags"], ["kept"])
                self.assertEqual(server.get("/api/v1/sessions?q=")["sessions"][0]["id"], session_id)
                self.assertIn(server.ask(path, "DELETE").status, (200, 204))
                self.assertEqual(server.ask(path).status, 404)


if __name__ == "__main__":
    main()
