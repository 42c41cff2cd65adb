# SPDX-License-Identifier: Apache-2.0
"""A program that captures and launches CUDA graphs runs under every engine as it does alone."""
import subprocess

from deep_fixture import DEEP, KERNELS, PC, SASS, SCOPES, Deep
from harness import FAKE_APP, TIMEOUT_S, environment, gpufl, main

ENGINES = {"Monitor": ["--engine", "Monitor"], "Trace": ["--engine", "Trace"], "PcSampling": PC, "SassMetrics": SASS,
           "Deep": DEEP, "kernels": KERNELS, "scopes": SCOPES}
COUNTING = ("SassMetrics", "Deep", "kernels")
NODES = 3  # kernels of fake_app's graph
APP = ("--launches", 400, "--kernel-us", 20, "--sync-every", 20, "--scopes", "--graphs")


class Graphs(Deep):
    def check(self, name, *arguments, **variables):
        """The program's output and exit status are those of a run without gpufl."""
        app = [str(argument) for argument in (*APP, *arguments)]
        bare = subprocess.run([FAKE_APP, *app], env=environment(), capture_output=True, text=True, timeout=TIMEOUT_S,
                              check=True)
        traced = self.trace(*app, options=ENGINES[name], env=environment(**variables), directory=self.directory / name)
        self.assertEqual((traced.returncode, traced.stdout.splitlines()[-1]), (0, bare.stdout.splitlines()[-1]),
                         traced.stderr)
        return traced

    def lost(self, session, reason):
        return sum(loss["count"] for loss in session.records("loss") if loss["reason"] == reason)

    def test_the_program_ends_as_it_does_alone(self):
        for name in ENGINES:
            for capture_ms, nodes in ((0, NODES), (300, 100)):
                with self.subTest(name, capture_ms=capture_ms):
                    traced = self.check(name, "--capture-ms", capture_ms, "--graph-nodes", nodes)
                    self.assertEqual(traced.counts["graph_launches"], 4)

    def test_graphs_of_many_threads_are_captured_beside_launches(self):
        for name in ENGINES:
            with self.subTest(name):
                traced = self.check(name, "--threads", 4, "--streams", 4, "--capture-ms", 20, "--graph-nodes", 50)
                self.assertEqual(traced.counts["graph_launches"], 16)

    def test_kernels_before_the_first_graph_are_counted_and_those_of_graphs_are_timed_and_reported(self):
        for name in ("SassMetrics", "Deep"):
            with self.subTest(name):
                traced = self.check(name)
                session = traced.session
                timed = [row for row in session.rows("kernel_event_batch") if row["graph_id"]]
                self.assertEqual(len(timed), 4 * NODES)
                self.assertEqual(self.lost(session, "graph_not_counted"), 4 * NODES)
                self.assertEqual(self.lost(session, "graph_in_window"), 0)
                self.assert_counted(traced.counts, session)
                verified = gpufl("verify", session.path)
                self.assertEqual(verified.returncode, 1)
                self.assertIn("graph_not_counted", verified.stdout)

    def test_counting_ends_with_the_first_graph(self):
        session = self.check("SassMetrics").session
        self.assertEqual([window["close_reason"] for window in session.records("deep_window_event")], ["graph_used"])

    def test_kernels_between_graphs_are_counted_one_by_one(self):
        traced = self.check("kernels")
        session = traced.session
        events = session.records("kernel_perf_metric_event")
        self.assertEqual(len(events), 400)
        self.assertEqual(len({event["launch_ordinal"] for event in events}), 400)
        self.assertEqual(len(session.rows("launch_event_batch")), 400)
        self.assertEqual(self.lost(session, "graph_not_counted"), 4 * NODES)
        self.assertEqual(self.lost(session, "range_unnamed"), 0)
        self.assertEqual(self.lost(session, "ranges_dropped"), 0)

    def test_a_scope_that_contains_a_graph_is_reported_as_not_counted(self):
        session = self.check("scopes").session
        self.assertGreater(self.lost(session, "range_graph"), 0)
        self.assertEqual(self.lost(session, "ranges_dropped"), 0)


if __name__ == "__main__":
    main()
