# SPDX-License-Identifier: Apache-2.0
"""gpufl serve on a full disk: sessions can be read and deleted, and deleting frees space."""
import json
import os
import uuid

from harness import FAKES, gpufl, main
from serve_process import COMPLETE, STREAM, Serve, ServeTest, window

CAPACITY = 80 << 20


def blob(session_id):
    """A record that cannot be compressed."""
    return {"version": 1, "type": "loss", "session_id": session_id, "ts_ns": 1, "reason": "r", "record_type": "x",
            "count": 1, "message": os.urandom(1000000).hex()}


class Full(ServeTest):
    def serve(self, *options):
        data = self.directory / "data"
        return Serve(data, *options, LD_PRELOAD=FAKES / "libenospc.so", GPUFL_TEST_DISK_DIR=data,
                     GPUFL_TEST_DISK_CAPACITY=CAPACITY,
                     ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0")

    @staticmethod
    def send(server):
        session_id = str(uuid.uuid4())
        body, headers = window([blob(session_id)], session_id, "system", 1)
        status = server.ask(STREAM, "POST", body, headers).status
        server.ask(COMPLETE, "POST", b"", {"X-GpuFlight-Session-Id": session_id})
        return status, session_id

    def fill(self, server):
        """Sends sessions until three in a row are rejected; the accepted sessions."""
        taken, refused = [], 0
        while refused < 3:
            status, session_id = self.send(server)
            self.assertIn(status, (202, 503))
            refused = refused + 1 if status == 503 else 0
            if status == 202:
                taken.append(session_id)
        self.assertGreater(len(taken), 5)
        return taken

    def test_sessions_are_deleted_on_a_full_disk_and_their_room_is_used_again(self):
        with self.serve() as server:
            taken = self.fill(server)
            ids = {entry["id"] for entry in server.pages("/api/v1/sessions", "sessions")}
            self.assertEqual(ids, set(taken))
            for session_id in taken:
                answer = server.ask(f"/api/v1/sessions/{session_id}", "DELETE")
                self.assertEqual(answer.status, 204, answer.body)
            self.assertEqual(server.get("/api/v1/sessions")["sessions"], [])
            # Again: the reserve has been restored.
            again = self.fill(server)
            for session_id in again:
                answer = server.ask(f"/api/v1/sessions/{session_id}", "DELETE")
                self.assertEqual(answer.status, 204, answer.body)
            server.wait_for("there is room", lambda: self.send(server)[0] == 202)
            audit = gpufl("serve", "audit", "--json", "--data", self.directory / "data")
            deleted = [entry["subject"] for entry in json.loads(audit.stdout) if entry["action"] == "session.delete"]
            self.assertEqual(sorted(deleted), sorted(taken + again))

    def test_a_server_starts_on_a_full_disk_and_sessions_can_be_deleted(self):
        server = self.serve()
        server.start()
        taken = self.fill(server)
        server.kill()
        with server:
            ids = {entry["id"] for entry in server.pages("/api/v1/sessions", "sessions")}
            self.assertEqual(ids, set(taken))
            for session_id in taken:
                self.assertEqual(server.ask(f"/api/v1/sessions/{session_id}", "DELETE").status, 204)
            server.wait_for("there is room", lambda: self.send(server)[0] == 202)

    def test_retention_works_on_a_full_disk(self):
        server = self.serve()
        server.start()
        taken = self.fill(server)
        server.kill()
        server.options = ("--retention-bytes", "1")
        with server:
            server.wait_for("complete sessions are gone",
                            lambda: len(server.get("/api/v1/sessions")["sessions"]) < len(taken) // 2)
            server.wait_for("there is room", lambda: self.send(server)[0] == 202)


if __name__ == "__main__":
    main()
