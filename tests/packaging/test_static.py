# SPDX-License-Identifier: Apache-2.0
"""The static program works in an empty root directory, and prints what the ordinary one prints. GPUFL_STATIC_TRIPLET: which
(default x86_64-linux-musl); that of another architecture runs under qemu."""
import os
import platform
import re
import shutil
import subprocess
import unittest
import urllib.request

from packages import BUILD, DIRECTORY, SOURCE

TRIPLET = os.environ.get("GPUFL_STATIC_TRIPLET", "x86_64-linux-musl")
MACHINE = TRIPLET.split("-", maxsplit=1)[0]
PROGRAM = BUILD / "portable" / TRIPLET / "bin/gpufl"
ROOT = DIRECTORY / "root"
ENVIRONMENT = {"LC_ALL": "C.UTF-8", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
SESSIONS = [SOURCE / "tests/golden" / name for name in ("trace", "deep", "hostile")]
SESSIONS.append(SOURCE / "examples/recorded/h200-gemm-deep")
IN_ROOT = ["chroot", str(ROOT), *(["/qemu"] if MACHINE != platform.machine() else []), "/gpufl"]


def run(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, check=False, env=ENVIRONMENT)


def inside(*words):
    return run(*IN_ROOT, *words)


class Static(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if os.geteuid() and "CI" not in os.environ:
            raise unittest.SkipTest("needs the right to change the root directory")
        ROOT.mkdir()
        (ROOT / "tmp").mkdir()
        subprocess.run([f"{MACHINE}-linux-gnu-strip", "-o", ROOT / "gpufl", PROGRAM], check=True)
        if "/qemu" in IN_ROOT:
            shutil.copy(shutil.which(f"qemu-{MACHINE}-static"), ROOT / "qemu")
        for session in SESSIONS:
            shutil.copytree(session, ROOT / session.name)

    def test_it_needs_no_loader_and_no_library(self):
        text = run("readelf", "-ld", PROGRAM).stdout.decode()
        self.assertNotIn("INTERP", text)
        self.assertNotIn("NEEDED", text)

    def test_reports_are_those_of_the_ordinary_program(self):
        for session in SESSIONS:
            for options in ([], ["--json"], ["--wide"]):
                wanted = subprocess.run([BUILD / "bin/gpufl", "report", *options, session.name], cwd=session.parent,
                                        capture_output=True, check=False, env=ENVIRONMENT)
                found = inside("report", *options, session.name)
                self.assertEqual((found.returncode, found.stdout), (wanted.returncode, wanted.stdout), (session, options))

    def test_sessions_are_verified_and_exported(self):
        self.assertEqual(inside("verify", "h200-gemm-deep").returncode, 0)
        for name in ("chrome", "perfetto", "sqlite", "pprof", "speedscope", "otlp"):
            made = inside("export", "--format", name, "-o", f"/tmp/{name}", "h200-gemm-deep")
            self.assertEqual(made.returncode, 0, made.stderr)
            self.assertGreater((ROOT / "tmp" / name).stat().st_size, 100)

    def test_sessions_are_shown_in_the_browser(self):
        with subprocess.Popen([*IN_ROOT, "view", "--no-browser", "/h200-gemm-deep"], stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.STDOUT, env=ENVIRONMENT) as viewer:
            try:
                url = next((found.group() for found in (re.search(r"http://[^/\s]+", line) for line in viewer.stdout)
                            if found), None)
                self.assertIsNotNone(url)
                with urllib.request.urlopen(url) as page:
                    self.assertIn(b"<html", page.read())
            finally:
                viewer.terminate()

    def test_what_it_cannot_do_is_refused_with_a_reason(self):
        traced = inside("trace", "--", "/gpufl")
        self.assertEqual(traced.returncode, 3, traced.stderr)
        self.assertIn(b"libgpufl_inject.so", traced.stderr)
        made = run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "9", "-subj", "/CN=x",
                   "-keyout", ROOT / "tmp/key", "-out", ROOT / "tmp/certificate")
        self.assertEqual(made.returncode, 0, made.stderr)
        served = inside("serve", "--data", "/tmp/data", "--listen", "127.0.0.1:0",
                        "--tls-cert", "/tmp/certificate", "--tls-key", "/tmp/key")
        self.assertNotEqual(served.returncode, 0)
        self.assertIn(b"no TLS", served.stderr + served.stdout)


if __name__ == "__main__":
    unittest.main()
