# SPDX-License-Identifier: Apache-2.0
"""End to end: a program with the SDK on the look-alike driver, its files, the agent, HTTPS, the server and the store;
the answers equal those of `gpufl report` on the files."""
import json
import shutil
import signal
import subprocess
import unittest

from clickhouse_cluster import Cluster, is_installed
from flow_fixture import Authority, TlsServe, Written, stored_kernels
from harness import FAKE_APP, GPUFL, SANITIZERS, TIMEOUT_S, TestCase, environment, gpufl, main, needs, printed_counts, sessions

HAS_OPENSSL = shutil.which("openssl")
WORK = ("--scopes", "--copies", "--graphs", "--sync-every", 200, "--scopes-per-thread", 3)
# The server routes and names of the parts of the report.
PARTS = {"time": ("time",), "scopes": ("scopes", "outside_scopes"), "copies": ("copies", "memsets"),
         "syncs": ("syncs", "sync_places"), "allocations": ("memory",), "graphs": ("graphs",),
         "insights": ("insights",)}
# Values that only files have, or only a store.
OF_FILES = ("lines", "bytes", "is_live", "has_torn_tail", "damaged_lines", "missing_lines")


class FlowTest(TestCase):
    def setUp(self):
        super().setUp()
        self.log = self.directory / "log"
        self.authority = Authority(self.directory / "tls")

    def serve(self, name="data", store=()):
        """A server that requires keys; the agent's key and the one for requests."""
        data = self.directory / name
        keys = {}
        for scope in ("ingest", "read"):
            made = gpufl("serve", "keys", "create", "--scope", scope, "--name", scope, "--json", "--data", data, *store)
            self.assertEqual(made.returncode, 0, made.stderr)
            keys[scope] = json.loads(made.stdout)["key"]
        (self.directory / f"{name}.key").write_text(keys["ingest"] + "\n")
        return TlsServe(data, self.authority, *store, key=keys["read"])

    def agent_command(self, server, *options):
        name = server.data.name
        words = (GPUFL, "agent", "--server", server.url, "--root", self.log, "--interval", 20,
                 "--state", self.directory / f"{name}.state", "--key-file", self.directory / f"{name}.key",
                 *options)
        return [str(word) for word in words]

    def agent_start(self, server, *options):
        agent = subprocess.Popen(self.agent_command(server, *options), stdin=subprocess.DEVNULL, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                 env=environment(GPUFL_CA_FILE=self.authority.file))
        self.addCleanup(agent.stdout.close)
        self.addCleanup(agent.wait)
        self.addCleanup(agent.kill)
        return agent

    def agent_stop(self, agent):
        agent.send_signal(signal.SIGTERM)
        text, _ = agent.communicate(timeout=TIMEOUT_S)
        self.assertEqual(agent.returncode, 0, text)

    def program_start(self, *arguments):
        program = subprocess.Popen([str(word) for word in (GPUFL, "trace", "-q", "-o", self.log, "--", FAKE_APP,
                                                           *arguments)],
                                   env=environment(GPUFL_LOG_ROTATE_BYTES=65536), cwd=self.directory, text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.addCleanup(program.stdout.close)
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        return program

    def program_end(self, program):
        """Waits for the program to end; the number of kernels it launched."""
        text, _ = program.communicate(timeout=TIMEOUT_S)
        self.assertEqual(program.returncode, 0, text)
        return printed_counts(text)["kernels"]

    def wait_complete(self, server, *found):
        """Reads only the catalog: answers about a session that is still growing may be slightly out of date."""
        def complete():
            listed = server.pages("/api/v1/sessions", "sessions")
            return {entry["id"] for entry in listed if entry["state"] == "complete"}
        server.wait_for("the end of the sessions", lambda: {session.name for session in found} <= complete(), TIMEOUT_S)

    def agent_finish(self, server):
        """Sends the data that the agent had not sent when it was stopped."""
        result = subprocess.run(self.agent_command(server, "--once"), capture_output=True, text=True, timeout=TIMEOUT_S,
                                env=environment(GPUFL_CA_FILE=self.authority.file), check=False,
                                stdin=subprocess.DEVNULL)
        self.assertEqual(result.returncode, 0, result.stderr)

    @staticmethod
    def answers(server, session_id):
        """All answers about a session that do not depend on when and where it was uploaded."""
        path = f"/api/v1/sessions/{session_id}"
        result = {name: server.get(f"{path}/{name}") for name in (*PARTS, "losses", "metrics", "timeline/tracks")}
        del result["losses"]["completeness"]["bytes"]  # the stored size depends on how the lines were uploaded
        result["kernels"] = server.pages(path + "/kernels", "kernels", exact="true")
        for kernel in result["kernels"]:
            one = f"{path}/kernels/{kernel['kernel_id']}"
            result[kernel["name"]] = (server.get(one + "/histogram"), server.get(one + "/occupancy"),
                                      server.pages(one + "/instances", "instances", limit=1000))
        catalog = server.get(path)["catalog"]
        result["catalog"] = {name: catalog[name] for name in ("app", "host", "state", "kernels", "rows", "lost")}
        return result

    def assert_answers(self, server, session):
        """Checks that the server has each row of the files once and that its answers equal the report; returns them."""
        written = Written(session)
        self.assertEqual(stored_kernels(server, session.name), written.kernels())
        answers = self.answers(server, session.name)
        report = json.loads(gpufl("report", session, "--json", "--top", 100000).stdout)
        self.assertEqual(answers["kernels"], report["kernels"])
        for part, names in PARTS.items():
            for name in names:
                self.assertEqual(answers[part][name], report[name], f"{part}: {name}")
        losses = answers["losses"]["completeness"]
        for name in report["completeness"].keys() - set(OF_FILES):
            self.assertEqual(losses[name], report["completeness"][name], name)
        self.assertEqual(answers["catalog"]["rows"], sum(len(written.rows(kind)) for kind in written.batch_types()))
        self.assertEqual(answers["catalog"]["kernels"], written.kernels().total())
        return answers


    def assert_same(self, answers, others):
        """Compares answers; reports only the first difference."""
        self.assertEqual(answers.keys(), others.keys())
        for name, answer in answers.items():
            if answer != others[name]:
                texts = [json.dumps(each, sort_keys=True) for each in (answer, others[name])]
                place = next((i for i, pair in enumerate(zip(*texts)) if pair[0] != pair[1]), min(map(len, texts)))
                self.fail(f"{name}: " + " is not ".join(text[max(0, place - 200):place + 200] for text in texts))

    def run_programs(self, *servers):
        """Runs programs that are uploaded to every server while they run; their sessions and number of kernels."""
        agents = [self.agent_start(server) for server in servers]
        programs = [self.program_start(*WORK, "--launches", 6000, "--threads", threads, "--streams", threads)
                    for threads in (1, 3)]
        launched = sum(self.program_end(program) for program in programs)
        found = sessions(self.log)
        self.assertEqual(len(found), len(programs))
        for server, agent in zip(servers, agents):
            self.wait_complete(server, *found)
            self.agent_stop(agent)
            self.agent_finish(server)
        return found, launched


class Embedded(FlowTest):
    @needs(HAS_OPENSSL, "openssl")
    def test_programs_arrive_while_they_run_and_are_answered_as_reported(self):
        with self.serve() as server:
            found, launched = self.run_programs(server)
            stored = sum(self.assert_answers(server, session)["catalog"]["kernels"] for session in found)
            self.assertEqual(stored, launched)
            listed = server.pages("/api/v1/sessions", "sessions")
            self.assertEqual({entry["id"] for entry in listed}, {session.name for session in found})
            print(f"{launched} kernels launched, {stored} stored, as reported", flush=True)

    @needs(HAS_OPENSSL, "openssl")
    def test_a_server_of_an_unknown_authority_gets_nothing(self):
        self.assertEqual(self.trace("--launches", 100).returncode, 0)
        with self.serve() as server:
            result = subprocess.run(self.agent_command(server, "--once"), env=environment(), capture_output=True,
                                    text=True, timeout=TIMEOUT_S, check=False)
            self.assertEqual(result.returncode, 3, result.stderr)
            self.assertIn("certificate", result.stderr)
            self.assertEqual(server.pages("/api/v1/sessions", "sessions"), [])


@unittest.skipIf(any(SANITIZERS), "sanitizers need too much memory with five servers")
class Fleet(FlowTest):
    """The same on a ClickHouse cluster with two shards of two replicas."""

    cluster = None

    def fleet_store(self):
        """Options of a server on the cluster, with a database for this test; it uses node (0, 0) first."""
        if not Fleet.cluster:
            Fleet.cluster = Cluster()
            unittest.addModuleCleanup(Fleet.cluster.stop)
            Fleet.cluster.start_all()
        return "--store", self.cluster.url(self._testMethodName[:20])

    @needs(HAS_OPENSSL and is_installed(), "openssl, clickhouse-server and zookeeper")
    def test_both_stores_give_the_same_answers_to_the_row(self):
        with self.serve() as embedded, self.serve("fleet", self.fleet_store()) as fleet:
            found, launched = self.run_programs(embedded, fleet)
            stored = 0
            for session in found:
                answers = self.assert_answers(fleet, session)
                self.assert_same(answers, self.assert_answers(embedded, session))
                stored += answers["catalog"]["kernels"]
            self.assertEqual(stored, launched)
            print(f"{launched} kernels launched, {stored} stored in both, as reported", flush=True)

    @staticmethod
    def is_held(server, session):
        """Whether the server has the session; a restarted replica may be behind, which the server reports."""
        stored, written = stored_kernels(server, session.name), Written(session).kernels()
        if stored != written:
            raise AssertionError(f"{(written - stored).total()} kernels of {written.total()} are missing and"
                                 f" {(stored - written).total()} doubled at {server.url}")
        return True

    @needs(HAS_OPENSSL and is_installed(), "openssl, clickhouse-server and zookeeper")
    def test_a_replica_that_dies_in_the_middle_costs_nothing_and_doubles_nothing(self):
        store, victim = self.fleet_store(), (0, 0)
        work = (*WORK, "--run-ms", 2000, "--pause-us", 500)
        with self.serve("fleet", store) as server:
            agent, programs = self.agent_start(server), []
            # Before the replica dies, without it, and while it catches up; each time pending data is sent again.
            for change in (self.cluster.kill, self.cluster.start, None):
                programs += [self.program_start(*work) for _ in range(2)]
                server.wait_for("kernels of the new programs", lambda: len(
                    [entry for entry in server.pages("/api/v1/sessions", "sessions") if entry["kernels"]]
                ) > len(programs) - 2, TIMEOUT_S)
                if change:
                    change(*victim)
                agent.kill()
                agent.wait()
                agent = self.agent_start(server)
            launched = sum(self.program_end(program) for program in programs)
            found = sessions(self.log)
            self.wait_complete(server, *found)
            self.agent_stop(agent)
            self.agent_finish(server)
            # Another server, which stores nothing itself and uses the restarted node first, has everything too.
            with TlsServe(self.directory / "second", self.authority, *store, key=server.key) as second:
                for session in found:
                    for each in (server, second):
                        each.wait_for(session.name, lambda: self.is_held(each, session), TIMEOUT_S)
                    self.assert_same(self.assert_answers(second, session), self.assert_answers(server, session))
            stored = sum(Written(session).kernels().total() for session in found)
            self.assertEqual(stored, launched)
            print(f"{launched} kernels launched, {stored} stored, one replica killed and back", flush=True)


if __name__ == "__main__":
    main()
