# SPDX-License-Identifier: Apache-2.0
"""gpufl serve with TLS, and its notifications to the service manager."""
import json
import pathlib
import shutil
import socket
import ssl
import tempfile
import warnings

from flow_fixture import Authority, TlsServe
from harness import TIMEOUT_S, gpufl, main
from serve_process import STREAM, Serve, ServeTest, kernels, window


class Tls(ServeTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        directory = pathlib.Path(tempfile.mkdtemp(prefix="gpufl-e2e-"))
        cls.addClassCleanup(shutil.rmtree, directory)
        cls.authority, cls.other = Authority(directory / "ours"), Authority(directory / "theirs")

    def test_only_clients_that_trust_its_authority_connect(self):
        with TlsServe(self.data, self.authority) as server:
            self.assertTrue(server.url.startswith("https://"))
            self.assertEqual(server.get("/healthz")["status"], "ok")
            body, headers = window([kernels("s")], "s")
            self.assertEqual(server.ask(STREAM, "POST", body, headers).status, 202)
            server.context = ssl.create_default_context(cafile=self.other.file)
            with self.assertRaises(ssl.SSLCertVerificationError):
                server.ask("/healthz")

    def test_only_current_versions_of_tls_are_accepted(self):
        with TlsServe(self.data, self.authority) as server:
            for version, is_spoken in ((ssl.TLSVersion.TLSv1_3, True), (ssl.TLSVersion.TLSv1_2, True),
                                       (ssl.TLSVersion.TLSv1_1, False)):
                server.context = ssl.create_default_context(cafile=self.authority.file)
                server.context.set_ciphers("ALL:@SECLEVEL=0")
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", DeprecationWarning)
                    server.context.minimum_version = server.context.maximum_version = version
                if is_spoken:
                    self.assertEqual(server.ask("/healthz").status, 200)
                else:
                    with self.assertRaises(OSError):
                        server.ask("/healthz")

    def test_plain_text_gets_no_answer_there(self):
        with TlsServe(self.data, self.authority) as server:
            with socket.create_connection(("127.0.0.1", server.port), timeout=600) as connection:
                connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
                received = b""
                try:
                    while data := connection.recv(4096):
                        received += data
                except ConnectionResetError:
                    pass
                self.assertNotIn(b"HTTP/1.1", received)

    def test_uploads_check_the_certificate(self):
        session = self.record(10)
        with TlsServe(self.data, self.authority) as server:
            result = self.upload(session, server.url, GPUFL_CA_FILE=self.other.file)
            self.assertEqual(result.returncode, 3, result.stderr)
            self.assertIn("certificate", result.stderr)
            self.assertEqual(server.get("/api/v1/sessions")["sessions"], [])
            result = self.upload(session, server.url, GPUFL_CA_FILE=self.authority.file)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assert_holds(server, session)

    def test_mismatched_settings_are_reported_before_the_start(self):
        garbage = self.directory / "garbage.pem"
        garbage.write_text("not a certificate\n")
        for cert, key, words in ((self.authority.certificate, self.other.key, "do not match"),
                                 (garbage, self.authority.key, "garbage.pem is not a PEM file with a certificate"),
                                 (self.authority.certificate, garbage, "garbage.pem is not a PEM file with a key"),
                                 (self.directory / "none.pem", self.authority.key, "cannot read the certificate")):
            result = gpufl("serve", "--listen", "127.0.0.1:0", "--data", self.data, "--tls-cert", cert, "--tls-key", key)
            self.assertIn(result.returncode, (2, 3), result.stderr)
            self.assertIn(words, result.stderr)
            self.assertNotIn("PRIVATE", result.stderr)
        result = gpufl("serve", "--listen", "127.0.0.1:0", "--data", self.data, "--tls-cert", self.authority.certificate)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("--tls-key", result.stderr)


class Service(ServeTest):
    def test_the_service_manager_is_notified_of_start_life_and_end(self):
        path = self.directory / "notify"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(str(path))
            manager.settimeout(TIMEOUT_S)
            with Serve(self.data, NOTIFY_SOCKET=path, WATCHDOG_USEC="200000") as server:
                heard = [manager.recv(400).decode() for _ in range(4)]
                self.assertEqual(heard[0].split("\n"), ["READY=1", f"STATUS={server.url}"])
                self.assertEqual(heard[1:], ["WATCHDOG=1"] * 3)
                self.assertEqual(server.stop(), 0)
                while heard[-1] != "STOPPING=1":
                    self.assertIn(heard[-1], ("WATCHDOG=1", heard[0]))
                    heard.append(manager.recv(400).decode())

    def test_without_a_watchdog_nothing_is_sent_in_between(self):
        path = self.directory / "notify"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(str(path))
            manager.settimeout(TIMEOUT_S)
            # A watchdog of another process is ignored.
            with Serve(self.data, NOTIFY_SOCKET=path, WATCHDOG_USEC="1000", WATCHDOG_PID="1") as server:
                body, headers = window([kernels("s")], "s")
                self.assertEqual(json.loads(server.ask(STREAM, "POST", body, headers).body)["accepted"], 1)
                self.assertEqual(server.stop(), 0)
                self.assertTrue(manager.recv(400).startswith(b"READY=1\n"))
                self.assertEqual(manager.recv(400), b"STOPPING=1")


if __name__ == "__main__":
    main()
