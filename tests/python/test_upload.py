#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""gpufl.upload_logs and the ways in which a program uploads by itself."""
import json

import fixture
from upload_server import Server

KEY = "gpfl_test_key"
IMPORT = """
import gpufl
"""


class Uploads(fixture.TestCase):
    def test_a_session_block_uploads_when_a_server_is_named(self):
        with Server(key=KEY) as server:
            out = self.output(IMPORT + f"""
with gpufl.session(log_path="log", backend_url="{server.url}", api_key="{KEY}") as session:
    with gpufl.Scope("x"): pass
result = session.upload_result
print(bool(result), result.success, result.sessions, result.events_uploaded > 0, result.http_status)
again = gpufl.upload_logs(session.path)
print(again.files_uploaded, again.files_already_sent == result.files_uploaded)
""")
            self.assertEqual(out.splitlines()[0].split()[:4], ["True", "True", "1", "True"])
            self.assertEqual(out.splitlines()[1], "0 True")
            self.assertTrue(server.rows("scope_event_batch"))

    def test_remote_upload_warns_and_uploads_at_exit(self):
        with Server(key=KEY) as server:
            result = self.program(IMPORT + f"""
gpufl.init(log_path="log", backend_url="{server.url}", api_key="{KEY}", remote_upload=True)
with gpufl.Scope("x"): pass
""")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("DeprecationWarning: init(): remote_upload", result.stderr)
            self.assertTrue(server.rows("scope_event_batch"))

    def test_the_environments_remote_upload_does_the_same(self):
        with Server(key=KEY) as server:
            result = self.program(IMPORT + "gpufl.init(log_path='log')\nwith gpufl.Scope('x'): pass\n",
                                  GPUFL_REMOTE_UPLOAD="1", GPUFL_BACKEND_URL=server.url, GPUFL_API_KEY=KEY)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("DeprecationWarning: GPUFL_REMOTE_UPLOAD", result.stderr)
            self.assertTrue(server.rows("scope_event_batch"))

    def test_every_session_of_the_process_is_uploaded_at_its_end(self):
        with Server(key=KEY) as server:
            self.output(IMPORT + f"""
for name in ("first", "second"):
    gpufl.init(name, "log", backend_url="{server.url}", api_key="{KEY}", remote_upload=True)
    with gpufl.Scope(name): pass
    gpufl.shutdown()
""")
            self.assertEqual(len({line["session_id"] for line in server.lines()}), 2)

    def test_the_config_files_server_and_remote_upload_count_too(self):
        with Server(key=KEY) as server:
            file = self.directory / "c.json"
            file.write_text(json.dumps({"backend_url": server.url, "api_key": KEY}))
            out = self.output(IMPORT + """
with gpufl.session(log_path="log", config_file="c.json") as session: pass
print(bool(session.upload_result))
""")
            self.assertEqual(out, "True\n")
            file.write_text(json.dumps({"backend_url": server.url, "api_key": KEY, "remote_upload": True}))
            result = self.program(IMPORT + "gpufl.init(log_path='log2')\nwith gpufl.Scope('x'): pass\n",
                                  GPUFL_CONFIG_FILE=file)
            self.assertIn("DeprecationWarning: remote_upload in the config file", result.stderr)
            self.assertTrue(server.rows("scope_event_batch"))

    def test_a_server_that_is_not_there_is_a_result_and_a_warning(self):
        result = self.program(IMPORT + """
with gpufl.session(log_path="log", backend_url="http://127.0.0.1:1", api_key="k"):
    pass
result = gpufl.upload_logs(timeout_ms=1000)
print(bool(result), bool(result.message))
""")
        self.assertEqual((result.returncode, result.stdout), (0, "False True\n"), result.stderr)
        self.assertIn("RuntimeWarning: gpufl: the session was not uploaded", result.stderr)

    def test_no_server_at_all_is_a_value_error(self):
        out = self.output(IMPORT + """
with gpufl.session(log_path='log'): pass
try:
    gpufl.upload_logs()
except ValueError as error:
    print('ValueError:', error)
""")
        self.assertRegex(out, "^ValueError: upload_logs")


if __name__ == "__main__":
    fixture.main()
