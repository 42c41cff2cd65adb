# SPDX-License-Identifier: Apache-2.0
"""gpufl serve maintains its store: small uploads are compacted, sessions beyond the retention limits are deleted, and
their space is freed."""
import json
import resource
import shutil
import sqlite3
import time
import uuid

from harness import SOURCE, gpufl, main
from serve_process import COMPLETE, STREAM, Serve, ServeTest, job_start, kernels, window

PATIENCE_S = 120


def metrics(server):
    page = server.ask("/metrics").body.decode()
    return {name: float(value) for name, value in
            (line.rsplit(" ", 1) for line in page.splitlines() if line and not line.startswith("#"))}


class Upkeep(ServeTest):
    def send(self, server, session_id, lines, sequence=1):
        body, headers = window(lines, session_id, sequence=sequence)
        answer = server.ask(STREAM, "POST", body, headers)
        self.assertEqual(answer.status, 202, answer.body)

    def complete(self, server, session_id):
        answer = server.ask(COMPLETE, "POST", b"", {"X-GpuFlight-Session-Id": session_id})
        self.assertEqual(answer.status, 200, answer.body)

    def test_small_uploads_are_compacted_while_the_session_continues(self):
        session_id = str(uuid.uuid4())
        with Serve(self.data) as server:
            self.send(server, session_id, [job_start(session_id)])
            for number in range(2, 82):
                self.send(server, session_id, [kernels(session_id, number)], number)
            # 80 small segments of kernels and one of job_start; fewer than 32 may stay uncompacted.
            def is_compacted():
                values = metrics(server)
                return values["gpufl_store_segments"] < 34 and values["gpufl_store_compactions_total"] > 0
            server.wait_for("the compaction", is_compacted, PATIENCE_S)
            catalog = server.get(f"/api/v1/sessions/{session_id}")["catalog"]
            self.assertEqual((catalog["state"], catalog["kernels"]), ("live", 800))
            listed = server.get(f"/api/v1/sessions/{session_id}/kernels", exact="true")["kernels"]
            self.assertEqual([kernel["count"] for kernel in listed], [800])

    def test_the_oldest_sessions_beyond_the_limit_are_deleted_and_their_space_is_freed(self):
        training = self.directory / "training"
        shutil.copytree(SOURCE / "examples/recorded/h200-training", training, ignore=shutil.ignore_patterns(".gpufl-*"))
        kept, live = str(uuid.uuid4()), str(uuid.uuid4())
        with Serve(self.data) as server:
            self.assertEqual(self.upload(training, server.url).returncode, 0)
            old = server.get("/api/v1/sessions")["sessions"][0]["id"]
            for session_id in (kept, live):
                self.send(server, session_id, [job_start(session_id), kernels(session_id)])
            self.complete(server, kept)
            answer = server.ask(f"/api/v1/sessions/{kept}", "PATCH", json.dumps({"retention_days": "forever"}),
                                {"Content-Type": "application/json"})
            self.assertLess(answer.status, 300, answer.body)
        size = (self.data / "gpufl.db").stat().st_size
        with Serve(self.data, "--retention-bytes", 1) as server:
            server.wait_for("the deletion of the oldest", lambda: server.ask(f"/api/v1/sessions/{old}").status == 404, PATIENCE_S)
            # Sessions with an individual retention stay, and so do those still being uploaded.
            self.assertEqual(sorted(session["id"] for session in server.get("/api/v1/sessions")["sessions"]),
                             sorted([kept, live]))
            server.wait_for("the space to be freed", lambda: metrics(server)["gpufl_store_free_bytes"] < size / 4, PATIENCE_S)
        self.assertLess((self.data / "gpufl.db").stat().st_size, size / 2)

    def test_sessions_older_than_the_retention_are_deleted(self):
        old, young = str(uuid.uuid4()), str(uuid.uuid4())
        with Serve(self.data) as server:
            for session_id in (old, young):
                self.send(server, session_id, [job_start(session_id), kernels(session_id)])
        database = sqlite3.connect(self.data / "gpufl.db")
        with database:
            database.execute("UPDATE session SET received_ns=? WHERE session_id=?",
                             (time.time_ns() - 3 * 86400 * 10**9, old))
        database.close()
        with Serve(self.data, "--retention-days", 2) as server:
            server.wait_for("the deletion of the old one", lambda: server.ask(f"/api/v1/sessions/{old}").status == 404, PATIENCE_S)
            self.assertEqual(server.get(f"/api/v1/sessions/{young}")["catalog"]["kernels"], 10)

    def test_failing_commits_are_reported_by_the_health_and_once_in_the_log(self):
        session_id = str(uuid.uuid4())
        with Serve(self.data, survives_file_limit=True) as server:
            self.send(server, session_id, [job_start(session_id)])
            self.assertEqual(server.ask("/healthz").status, 200)
            _, hard = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE)
            resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (0, hard))
            body, headers = window([kernels(session_id)], session_id, sequence=2)
            for _ in range(3):
                self.assertGreaterEqual(server.ask(STREAM, "POST", body, headers).status, 500)
            answer = server.ask("/healthz")
            health = json.loads(answer.body)
            self.assertEqual((answer.status, health["status"]), (503, "failing"))
            self.assertRegex(health["reason"], "^the latest commit failed: .*(disk|full)")
            self.assertEqual(metrics(server)["gpufl_server_healthy"], 0)
            # Reads still work, and only a write can show that the problem is over.
            self.assertEqual(server.ask("/readyz").status, 200)
            server.wait_for("the log", lambda: any("commits fail: " in line for line in server.printed))
            resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (hard, hard))
            self.send(server, session_id, [kernels(session_id)], 2)
            self.assertEqual(json.loads(server.ask("/healthz").body)["status"], "ok")
            server.wait_for("the end of it", lambda: any("commits succeed again" in line for line in server.printed))
            reports = [line for line in server.printed if "commits " in line]
            self.assertEqual(len(reports), 2, reports)

    def test_the_stores_size_is_that_of_its_files(self):
        session_id = str(uuid.uuid4())
        with Serve(self.data) as server:
            self.send(server, session_id, [job_start(session_id), kernels(session_id, count=50_000)])

            def files():
                return sum((self.data / name).stat().st_size for name in ("gpufl.db", "gpufl.db-wal"))
            server.wait_for("the size", lambda: metrics(server)["gpufl_store_bytes"] == files())
            self.assertGreater((self.data / "gpufl.db-wal").stat().st_size, 0)
            server.wait_for("the check", lambda: json.loads(
                gpufl("serve", "check", "--json", "--data", self.data).stdout)["bytes"] == files())


if __name__ == "__main__":
    main()
