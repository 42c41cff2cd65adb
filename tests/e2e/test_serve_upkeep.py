# SPDX-License-Identifier: Apache-2.0
"""gpufl serve keeps its store in order by itself: small deliveries are melted, what is too old or too much goes, and the
room comes back."""
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

    def test_small_deliveries_are_melted_while_the_session_goes_on(self):
        session_id = str(uuid.uuid4())
        with Serve(self.data) as server:
            self.send(server, session_id, [job_start(session_id)])
            for number in range(2, 82):
                self.send(server, session_id, [kernels(session_id, number)], number)
            # 80 small segments of kernels and one of job_start; fewer than 32 may wait for company.
            def is_melted():
                told = metrics(server)
                return told["gpufl_store_segments"] < 34 and told["gpufl_store_compactions_total"] > 0
            server.wait_for("the melting", is_melted, PATIENCE_S)
            catalog = server.get(f"/api/v1/sessions/{session_id}")["catalog"]
            self.assertEqual((catalog["state"], catalog["kernels"]), ("live", 800))
            listed = server.get(f"/api/v1/sessions/{session_id}/kernels", exact="true")["kernels"]
            self.assertEqual([kernel["count"] for kernel in listed], [800])

    def test_the_oldest_beyond_the_limit_go_and_their_room_comes_back(self):
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
            server.wait_for("the end of the oldest", lambda: server.ask(f"/api/v1/sessions/{old}").status == 404, PATIENCE_S)
            # What has a retention of its own stays, and so does what is still coming in.
            self.assertEqual(sorted(session["id"] for session in server.get("/api/v1/sessions")["sessions"]),
                             sorted([kept, live]))
            server.wait_for("the room", lambda: metrics(server)["gpufl_store_free_bytes"] < size / 4, PATIENCE_S)
        self.assertLess((self.data / "gpufl.db").stat().st_size, size / 2)

    def test_what_is_older_than_allowed_goes(self):
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
            server.wait_for("the end of the old one", lambda: server.ask(f"/api/v1/sessions/{old}").status == 404, PATIENCE_S)
            self.assertEqual(server.get(f"/api/v1/sessions/{young}")["catalog"]["kernels"], 10)

    def test_commits_that_fail_are_told_by_the_health_and_once_in_the_log(self):
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
            # Whoever reads is still served, and only a write can show that the trouble is over.
            self.assertEqual(server.ask("/readyz").status, 200)
            server.wait_for("the log", lambda: any("commits fail: " in line for line in server.printed))
            resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (hard, hard))
            self.send(server, session_id, [kernels(session_id)], 2)
            self.assertEqual(json.loads(server.ask("/healthz").body)["status"], "ok")
            server.wait_for("the end of it", lambda: any("commits work again" in line for line in server.printed))
            told = [line for line in server.printed if "commits " in line]
            self.assertEqual(len(told), 2, told)

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
