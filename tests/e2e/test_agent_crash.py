# SPDX-License-Identifier: Apache-2.0
"""The agent is killed, disconnected or out of disk space: nothing is lost, and nothing counts twice."""
import os
import random
import resource
import signal
import time
import unittest

from agent_fixture import AgentTest, wait_for
from harness import SANITIZERS, TIMEOUT_S, main, sessions
from test_upload import canonical
from upload_server import Reply, Server

KILLS = int(os.environ.get("GPUFL_TEST_AGENT_KILLS", "30"))


class Crashes(AgentTest):
    def test_killed_at_any_moment_nothing_is_lost_or_duplicated(self):
        moments = random.Random(4)
        bad = [Reply(503), Reply(action="mute"), Reply(action="drop"), Reply(action="half"), Reply(500)]
        with Server(lambda path: moments.choice(bad) if moments.random() < 0.15 else Reply()) as server:
            program = self.program("--run-ms", 200 * KILLS, "--pause-us", 60, "--scopes", "--copies",
                                   rotate_bytes=65536)
            for _ in range(KILLS):
                agent = self.start(server)
                time.sleep(moments.uniform(0.005, 0.3))
                self.end(agent)
            self.assertEqual(program.wait(TIMEOUT_S), 0)
            server.replies = []
            result, _ = self.once(server)
            self.assertEqual(result.returncode, 0, result.stderr)
            session = sessions(self.log)[0]
            self.assert_whole(server, session.name)
            counted = len(server.counted_windows())
            repeated = len(server.windows) - counted
            print(f"\n{KILLS} kills: {counted} windows, {repeated} of them sent again under the same ids; "
                  f"{server.rows('kernel_event_batch')} kernel rows", end=" ")

    def test_a_window_accepted_without_an_answer_is_sent_again_under_its_id(self):
        session = self.record()
        replies = [Reply(action="mute"), Reply(action="mute"), Reply(action="drop"), Reply(action="half")]
        with Server(replies) as server:
            result, _ = self.once(server)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assert_arrived(server, session)
            ids = server.window_ids()
            self.assertEqual(ids[0], ids[1])

    def test_a_pending_window_keeps_its_coding_when_the_server_supports_a_better_one(self):
        session = self.record()
        with Server([Reply(action="mute") for _ in range(4)], encodings=("gzip", "zstd")) as server:
            give, asked = server.give, []

            def give_late(path, headers):
                """The server's capabilities are unavailable at first."""
                asked.append(path)
                return Reply(action="drop") if len(asked) == 1 else give(path, headers)
            server.give = give_late
            result, _ = self.once(server)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assert_arrived(server, session)
            self.assertEqual(len(set(server.window_ids()[:5])), 1)
            codings = [headers["Content-Encoding"] for headers, _ in server.windows]
            self.assertEqual(codings[:5], ["gzip"] * 5)
            self.assertEqual(set(codings[5:]), {"zstd"})

    def test_a_killed_program_is_sent_up_to_its_last_complete_line(self):
        with Server() as server:
            agent = self.start(server)
            traced = self.trace("--launches", 2000, "--scopes", "--crash", int(signal.SIGKILL))
            self.assertEqual(traced.returncode, 128 + signal.SIGKILL)
            wait_for(lambda: server.completed, "the end of the session")
            self.stop(agent)
            self.assert_arrived(server, traced.sessions[0])

    @unittest.skipIf("thread" in SANITIZERS, "the thread sanitizer writes files itself and is killed by the limit")
    def test_a_full_disk_stops_the_sending_until_there_is_space(self):
        session = self.record()
        with Server() as server:
            agent = self.start(server, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, -1)))
            self.assertIn("cannot write", agent.stdout.readline())
            # Nothing is sent before the window's limits are saved.
            self.assertEqual(server.windows, [])
            resource.prlimit(agent.pid, resource.RLIMIT_FSIZE, (-1, -1))
            wait_for(lambda: server.completed, "the session")
            self.stop(agent)
            self.assert_arrived(server, session)

    def test_two_agents_cannot_use_one_state_directory(self):
        self.record()
        with Server() as server:
            self.start(server)
            wait_for(lambda: server.completed, "the first agent")
            result, _ = self.once(server)
            self.assertEqual(result.returncode, 3)
            self.assertIn("another agent", result.stderr)

    def test_a_damaged_state_costs_only_another_delivery(self):
        session = self.record()
        with Server() as server:
            self.assertEqual(self.once(server)[0].returncode, 0)
            (self.state / f"{session.name}.json").write_text('{"schema_version":1,"channels":')
            first = canonical(server.counted_lines())
            result, _ = self.once(server)
            self.assertEqual(result.returncode, 0)
            self.assertIn("is damaged", result.stderr)
            self.assertEqual(canonical(server.counted_lines()), first)


if __name__ == "__main__":
    main()
