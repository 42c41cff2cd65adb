# SPDX-License-Identifier: Apache-2.0
"""A server without nvdisasm shows the disassembly stored in the session."""
from code_fixture import TEXTS, CodeTest
from harness import environment, gpufl, main
from serve_process import Serve


class ServedText(CodeTest):
    def instructions(self, server, session):
        answer = server.get(f"/api/v1/sessions/{session.name}/code/vector_add")
        return {entry["pc"]: entry for entry in answer["instructions"]}

    def assert_text(self, server, session):
        """Waits for the disassembly: a cached session is reloaded after a while."""
        server.wait_for("text", lambda: not self.instructions(server, session)[0]["is_raw"])
        instructions = self.instructions(server, session)
        for pc, text in TEXTS.items():
            self.assertEqual((instructions[pc]["sass"], instructions[pc]["is_raw"]), (text, False))
        self.assertTrue(instructions[0x20]["is_raw"])
        self.assertTrue(instructions[0xE0]["file"].endswith("vector_add.cu"))

    def send(self, session, url):
        result = gpufl("upload", session, "--server", url)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def ship(self, url):
        result = gpufl("agent", "--once", "--root", self.directory / "log", "--server", url, "--state",
                       self.directory / "state", env=environment())
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def disassemble(self, session):
        result = gpufl("disassemble", session, env=self.environment(self.good_tool()))
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def assert_raw(self, server, session):
        self.assertTrue(all(entry["is_raw"] for entry in self.instructions(server, session).values()))

    def test_text_arrives_with_an_upload(self):
        session = self.record(tool=self.good_tool()).sessions[0]
        with Serve(self.directory / "data") as server:
            self.send(session, server.url)
            self.assert_text(server, session)
            catalog = server.get(f"/api/v1/sessions/{session.name}")["catalog"]
            self.assertEqual(catalog["state"], "complete")

    def test_text_that_is_made_after_the_upload_is_sent_by_the_next_one(self):
        session = self.record().sessions[0]
        with Serve(self.directory / "data") as server:
            self.send(session, server.url)
            self.assert_raw(server, session)
            self.disassemble(session)
            self.send(session, server.url)
            self.assert_text(server, session)

    def test_text_that_is_made_after_sealing_and_sending_is_sent_by_the_next_upload(self):
        session = self.record().sessions[0]
        with Serve(self.directory / "data") as server:
            self.assertEqual(gpufl("seal", session).returncode, 0)
            self.send(session, server.url)
            self.disassemble(session)
            self.send(session, server.url)
            self.assert_text(server, session)

    def test_an_agent_sends_what_came_after_the_end(self):
        session = self.record().sessions[0]
        with Serve(self.directory / "data") as server:
            self.ship(server.url)
            self.assert_raw(server, session)
            self.disassemble(session)
            self.ship(server.url)
            self.assert_text(server, session)


if __name__ == "__main__":
    main()
