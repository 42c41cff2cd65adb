# SPDX-License-Identifier: Apache-2.0
"""Tests for every version of ClickHouse: the store's contract, and the same answers as the embedded store."""
import os
import shutil
import subprocess

from harness import BUILD, SOURCE, TIMEOUT_S
from route_answers import assert_same_answers
from serve_process import Serve

GOLDEN = ("monitor", "two_gpus", "deep_v1", "v1", "range_metrics", "killed")
PROGRAMS = ("test_store_contract", "test_store_catalog", "test_store_rollups", "test_store_clickhouse")


class StoreAnswers:
    """A mixin for a ServeTest with serve(name), which starts a server on the ClickHouse under test, and store_url(), to
    which the name of a database can be appended."""

    def test_every_route_answers_as_on_the_embedded_store(self):
        sessions = [self.record(2000)]
        for name in GOLDEN:
            shutil.copytree(SOURCE / "tests/golden" / name, self.directory / "golden" / name)
            sessions.append(self.directory / "golden" / name)
        # More rows than one timeline tile reads: the server answers from sums.
        shutil.copytree(SOURCE / "examples/recorded/h200-training", self.directory / "h200",
                        ignore=shutil.ignore_patterns(".gpufl-*"))
        sessions.append(self.directory / "h200")
        with Serve(self.directory / "embedded") as embedded, self.serve("fleet") as fleet:
            for session in sessions:
                for server in (embedded, fleet):
                    (session / ".gpufl-uploaded.json").unlink(missing_ok=True)
                    self.assertEqual(self.upload(session, server.url).returncode, 0, session)
            ids = [entry["id"] for entry in embedded.pages("/api/v1/sessions", "sessions")]
            self.assertEqual(len(ids), len(sessions))
            count = assert_same_answers(self, embedded, fleet, ids)
            print(f"{len(ids)} sessions, {count} questions, the same answers")
            self.assert_holds(fleet, sessions[0])

    def test_the_store_keeps_its_contract(self):
        """The tests that every storage engine must pass."""
        environment = {**os.environ, "GPUFL_TEST_STORE": self.store_url()}
        for name in PROGRAMS:
            result = subprocess.run([BUILD / "tests" / name], env=environment, text=True, capture_output=True,
                                    timeout=TIMEOUT_S, check=False)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
