# SPDX-License-Identifier: Apache-2.0
"""Named configurations on a server: fetched by the agent and by gpufl trace, read by the recorder."""
import json

from agent_fixture import AgentTest
from harness import FAKE_APP, Session, environment, gpufl, main, sessions
from test_upload import KEY
from upload_server import Server


class RemoteConfig(AgentTest):
    def variables(self, server, **more):
        return environment(GPUFL_REMOTE_CONFIG="training", GPUFL_BACKEND_URL=server.url, GPUFL_API_KEY=KEY,
                           XDG_CONFIG_HOME=self.directory / "config", **more)

    def traced(self, server, *options):
        result = gpufl("trace", "-o", self.log, *options, "--", FAKE_APP, "--launches", 50, env=self.variables(server),
                       cwd=self.directory)
        session = max(sessions(self.log), key=lambda path: path.stat().st_mtime_ns)
        return result, Session(session)

    def test_trace_follows_the_servers_configuration(self):
        copy = self.directory / "config/gpufl/remote/training.json"
        with Server() as server:
            server.configs["training"] = ('"v1"', '{"profiling_engine": "Monitor", "system_sample_rate_ms": 50}')
            result, session = self.traced(server)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(session.records("kernel_event_batch"), [])
            self.assertEqual(json.loads(copy.read_text())["profiling_engine"], "Monitor")
            # Unchanged: the server sends no content. The command line has precedence.
            result, session = self.traced(server, "--engine", "Trace")
            self.assertEqual(server.config_requests[-1], ("training", '"v1"'))
            self.assertEqual(len(session.rows("kernel_event_batch")), 50)
            server.configs["training"] = ('"v2"', '{"profiling_engine": "Trace"}')
            self.assertEqual(len(self.traced(server)[1].rows("kernel_event_batch")), 50)
        # The server is down: the copy stays valid, and the program runs.
        result, session = self.traced(server)
        self.assertEqual(result.returncode, 0)
        self.assertIn("did not answer", result.stderr)
        self.assertEqual(len(session.rows("kernel_event_batch")), 50)

    def test_a_server_cannot_choose_where_data_goes(self):
        copy = self.directory / "config/gpufl/remote/training.json"
        for name in ("log_path", "backend_url", "api_key", "api_path", "app_name", "config_file"):
            with Server() as server:
                server.configs["training"] = ('"v1"', json.dumps({"profiling_engine": "Monitor", name: "/elsewhere"}))
                result, session = self.traced(server)
                self.assertEqual(result.returncode, 0)
                self.assertIn(f"sets '{name}', which a server must not set", result.stderr)
                self.assertFalse(copy.exists())
                self.assertEqual(len(session.rows("kernel_event_batch")), 50)
        # Nor can a copy that was placed there by other means.
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text('{"profiling_engine": "Monitor", "log_path": "/elsewhere"}')
        with Server() as server:
            server.configs["training"] = ('"v1"', "{")
            result, session = self.traced(server, "--engine", "Trace")
            self.assertIn("'log_path' cannot be set by a remote configuration", result.stderr)
            self.assertEqual(len(session.rows("kernel_event_batch")), 50)

    def test_the_agent_keeps_the_configuration_up_to_date(self):
        self.log.mkdir()
        directory = self.directory / "remote"
        with Server() as server:
            server.configs["training"] = ('"v1"', '{"profiling_engine": "Deep"}')
            result, _ = self.once(server, "--remote-config", "training", "--remote-config-dir", directory)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(json.loads((directory / "training.json").read_text()), {"profiling_engine": "Deep"})


if __name__ == "__main__":
    main()
