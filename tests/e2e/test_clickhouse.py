# SPDX-License-Identifier: Apache-2.0
"""gpufl serve on a ClickHouse cluster of two shards and two replicas: the same answers as on the embedded store, each
line stored once whatever process dies, and several servers act as one."""
import concurrent.futures
import json
import os
import sys
import unittest
import uuid

from clickhouse_answers import StoreAnswers
from clickhouse_cluster import Cluster, is_installed
from harness import SANITIZERS, SOURCE, main
from serve_process import STREAM, Serve, ServeTest, job_start, kernels, window

sys.path.insert(0, str(SOURCE / "tests/golden"))
from make_sessions import crc32c  # pylint: disable=wrong-import-position


def numbered(line, number):
    """A line as the SDK writes it: with its number in the channel and its CRC."""
    text = json.dumps(line)[:-1] + f', "seq": {number}'
    return (text + ',"crc":"%08x"}' % crc32c(text.encode())).encode()


class ClickHouse(StoreAnswers, ServeTest):
    """One cluster for all tests; each test has its own database."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if not is_installed():
            if "CI" in os.environ:
                raise AssertionError("clickhouse-server, libzookeeper-java or java is missing, and CI must not skip")
            raise unittest.SkipTest("needs clickhouse-server, libzookeeper-java and java")
        cls.cluster = Cluster()
        cls.addClassCleanup(cls.cluster.stop)
        cls.cluster.start_all()

    def setUp(self):
        super().setUp()
        self.database = "t" + uuid.uuid4().hex

    def serve(self, name, first=(0, 0), **variables):
        return Serve(self.directory / name, "--store", self.cluster.url(self.database, first), **variables)

    def store_url(self):
        """On one host without a cluster."""
        return f"clickhouse://{self.cluster.hosts().split(',', maxsplit=1)[0]}/"

    def send(self, server, lines, session_id, channel="device", sequence=1):
        body, headers = window(lines, session_id, channel, sequence)
        return server.ask(STREAM, "POST", body, headers).status

    def send_until_taken(self, server, lines, session_id, channel="device", sequence=1):
        """Retries while the server is busy, as an agent does."""
        def is_taken():
            status = self.send(server, lines, session_id, channel, sequence)
            self.assertIn(status, (202, 429, 503))
            return status == 202
        server.wait_for("the window is taken", is_taken)

    def assert_rows(self, server, session_id, windows, count=10):
        """The server has every window's rows once."""
        path = f"/api/v1/sessions/{session_id}"
        server.wait_for("the server can read", lambda: server.ask(path).status == 200)
        catalog = server.get(path)["catalog"]
        self.assertEqual((catalog["rows"], catalog["kernels"]), (windows * count, windows * count))
        kernel = server.get(path + "/kernels")["kernels"][0]
        self.assertEqual(kernel["count"], windows * count)
        instances = server.pages(f"{path}/kernels/{kernel['kernel_id']}/instances", "instances", limit=1000)
        self.assertEqual(len(instances), windows * count)

    @unittest.skipIf(any(SANITIZERS), "sanitizers report nothing after SIGKILL")
    def test_a_replica_may_die_in_the_middle(self):
        session_id = str(uuid.uuid4())
        with self.serve("fleet") as server:
            for number in range(12):
                if number == 4:
                    self.cluster.kill(0, 0)  # the node that the server uses
                if number == 8:
                    self.cluster.start(0, 0)
                self.send_until_taken(server, [kernels(session_id, number + 1)], session_id, sequence=number + 1)
            self.assert_rows(server, session_id, 12)
            # The restarted replica has caught up, so the other one is not needed.
            server.wait_for("the replica has caught up", lambda: self.cluster.sync(self.database, 0, 0))
            self.cluster.kill(0, 1)
            try:
                self.assert_rows(server, session_id, 12)
                # Everything is sent again: nothing is counted twice.
                for number in range(12):
                    self.send_until_taken(server, [kernels(session_id, number + 1)], session_id, sequence=number + 1)
                self.assert_rows(server, session_id, 12)
            finally:
                self.cluster.start(0, 1)

    @unittest.skipIf(any(SANITIZERS), "sanitizers report nothing after SIGKILL")
    def test_a_replica_that_dies_with_the_only_copy_of_an_insert_costs_nothing(self):
        session_id = str(uuid.uuid4())
        unfinished = (f"SELECT count() FROM system.zookeeper WHERE path = '/gpufl/{self.database}/0/segment/quorum' AND"
                      " name = 'status'")
        with Cluster(shards=1) as cluster, concurrent.futures.ThreadPoolExecutor(1) as pool, \
                Serve(self.directory / "fleet", "--store", cluster.url(self.database)) as server:
            self.send_until_taken(server, [kernels(session_id, 1)], session_id, sequence=1)
            cluster.query(f"SYSTEM STOP REPLICATION QUEUES {self.database}.segment_local", 0, 1)
            sent = pool.submit(self.send, server, [kernels(session_id, 2)], session_id, sequence=2)
            server.wait_for("an insert that only one replica has", lambda: cluster.query(unfinished, 0, 1) == "1\n")
            cluster.kill(0, 0)
            self.assertIn(sent.result(), (202, 429, 503))
            # After the dead replica's ZooKeeper session has expired, the other replica abandons the insert.
            cluster.query(f"SYSTEM START REPLICATION QUEUES {self.database}.segment_local", 0, 1)
            server.wait_for("the insert is abandoned", lambda: cluster.query(unfinished, 0, 1) == "0\n")
            self.send_until_taken(server, [kernels(session_id, 2)], session_id, sequence=2)
            cluster.start(0, 0)
            self.assert_rows(server, session_id, 2)

    def test_two_servers_are_one(self):
        session_id = str(uuid.uuid4())
        with self.serve("one") as one, self.serve("two", first=(1, 1)) as two, \
                concurrent.futures.ThreadPoolExecutor(8) as pool:
            # The same windows are sent to both at the same time, and windows overlap: each line counts once.
            for number in range(6):
                lines = [numbered(kernels(session_id, number + 1), number + 1)]
                overlap = [numbered(kernels(session_id, n + 1), n + 1) for n in range(max(number - 1, 0), number + 1)]
                sends = [pool.submit(self.send_until_taken, server, lines, session_id, "device", number + 1)
                         for server in (one, two)]
                sends.append(pool.submit(self.send_until_taken, two, overlap, session_id, "device", 100 + number))
                for send in sends:
                    send.result()
            for server in (one, two):
                self.assert_rows(server, session_id, 6)
            # Objects created on one server exist on the other.
            made = one.ask("/api/v1/configs/night", "PUT", json.dumps({"engine": "trace"}))
            self.assertIn(made.status, (200, 201), made.body)
            two.wait_for("the configuration", lambda: two.ask("/api/v1/configs/night").status == 200)
            tagged = two.ask(f"/api/v1/sessions/{session_id}", "PATCH", json.dumps({"tags": ["kept"]}),
                             {"Content-Type": "application/json"})
            self.assertEqual(tagged.status, 200, tagged.body)
            one.wait_for("the tag", lambda: one.get(f"/api/v1/sessions/{session_id}")["catalog"]["tags"] == ["kept"])
            self.assertIn(one.ask(f"/api/v1/sessions/{session_id}", "DELETE").status, (200, 204))
            two.wait_for("the deletion", lambda: two.ask(f"/api/v1/sessions/{session_id}").status == 404)
            # A deleted session starts again with its next upload.
            self.send_until_taken(two, [kernels(session_id, 1)], session_id, sequence=1)
            self.assert_rows(two, session_id, 1)

    @unittest.skipIf(any(SANITIZERS), "sanitizers report nothing after SIGKILL")
    def test_a_server_killed_at_any_moment_leaves_nothing_half(self):
        session_id = str(uuid.uuid4())
        server = self.serve("fleet")
        server.start()
        try:
            for number in range(5):
                lines = [kernels(session_id, number + 1, count=50)]
                body, headers = window(lines, session_id, "device", number + 1)
                connection = server.connect()
                connection.request("POST", STREAM, body, headers)
                # Does not wait for an answer: the commit may be running, finished or not started.
                if number % 2:
                    connection.sock.settimeout(0.05 * number)
                    try:
                        connection.getresponse()
                    except OSError:
                        pass
                server.kill()
                connection.close()
                server.start()
                self.send_until_taken(server, lines, session_id, sequence=number + 1)
            self.assert_rows(server, session_id, 5, count=50)
        finally:
            server.stop()

    def test_a_store_of_an_older_server_is_migrated(self):
        """An older store lacks a column."""
        old, new = "0192f300-0000-7000-8000-0000000000a1", "0192f300-0000-7000-8000-0000000000a2"
        with self.serve("first") as server:
            self.assertEqual(self.send(server, [job_start(old)], old, "system"), 202)
        self.cluster.query(f"ALTER TABLE {self.database}.write DROP COLUMN rows_told")
        end = {"version": 1, "type": "shutdown", "session_id": new, "ts_ns": 2, "rows": {"kernel_event_batch": 7}}
        with self.serve("second") as server:
            self.send_until_taken(server, [job_start(new), end], new, "system")
            missing = {entry["id"]: entry["missing_rows"] for entry in server.pages("/api/v1/sessions", "sessions")}
            self.assertEqual(missing, {old: None, new: 7})

    def test_the_password_is_in_no_message(self):
        secret = Cluster.password
        url = self.cluster.url(self.database, user="gpufl")
        with Serve(self.directory / "a", "--store", url, GPUFL_CLICKHOUSE_PASSWORD=secret) as server:
            self.assertEqual(server.get("/healthz")["store"], "clickhouse")
        self.assertNotIn(secret, "".join(server.printed))
        for name, store, variables, reason in (
                ("wrong", url, {"GPUFL_CLICKHOUSE_PASSWORD": "wrong-secret"}, "rejects the user or the password"),
                ("seen", url.replace("gpufl@", "gpufl:wrong-secret@"), {}, "command line")):
            with self.assertRaises(AssertionError) as failure:
                Serve(self.directory / name, "--store", store, **variables).start()
            self.assertIn(reason, str(failure.exception))
            self.assertNotIn("wrong-secret", str(failure.exception))


if __name__ == "__main__":
    main()
