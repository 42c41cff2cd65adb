# SPDX-License-Identifier: Apache-2.0
"""The archive of the portable build: install.sh installs it anywhere, it records and reports there, and it is removed."""
import json
import os
import re
import shutil
import subprocess
import sys
import unittest

from packages import BUILD, DIRECTORY, SOURCE

sys.path.insert(0, str(SOURCE / "tests/e2e"))
from harness import FAKE_APP, environment, run, sessions  # noqa: E402

TRIPLET = "x86_64-linux-gnu"


def packed(directory):
    result = subprocess.run([SOURCE / "tools/build_tarball.sh", TRIPLET, directory], capture_output=True, text=True, check=False)
    if result.returncode:
        raise AssertionError(result.stdout + result.stderr)
    return result.stdout.split()


class Tarball(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.files = packed(DIRECTORY / "dist")
        for file in cls.files:
            subprocess.run(["tar", "-C", DIRECTORY, "-xf", file], check=True)
        cls.archive, = (path for path in DIRECTORY.glob("gpufl-*-linux-x86_64") if path.is_dir())
        cls.symbols, = DIRECTORY.glob("gpufl-*-linux-x86_64-debug")
        cls.prefix = DIRECTORY / "some where/prefix"
        cls.install = cls.archive / "install.sh"

    def setUp(self):
        shutil.rmtree(self.prefix, ignore_errors=True)

    def test_it_is_installed_records_and_is_removed(self):
        self.prefix.mkdir(parents=True)
        (self.prefix / "bin").mkdir()
        (self.prefix / "bin/other").write_text("not ours")
        for _ in range(2):  # the second time over the first
            installed = run(self.install, "--prefix", self.prefix)
            self.assertEqual(installed.returncode, 0, installed.stderr)
        for name in ("share/man/man1/gpufl.1", "share/bash-completion/completions/gpufl", "share/zsh/site-functions/_gpufl",
                     "lib/libgpufl-server.so.1", "include/gpufl/gpufl.h"):
            self.assertTrue((self.prefix / name).exists(), name)
        log = DIRECTORY / "traced"
        traced = run(self.prefix / "bin/gpufl", "trace", "-q", "-o", log, "--", FAKE_APP, "--launches", "5", env=environment())
        self.assertEqual(traced.returncode, 0, traced.stderr)
        session, = sessions(log)
        self.assertEqual(run(self.prefix / "bin/gpufl", "verify", session).returncode, 0)
        removed = run(self.install, "--uninstall", "--prefix", self.prefix)
        self.assertEqual(removed.returncode, 0, removed.stderr)
        self.assertEqual([path for path in self.prefix.rglob("*") if path.is_file() or path.is_symlink()],
                         [self.prefix / "bin/other"])

    def test_what_was_not_installed_is_not_removed(self):
        result = run(self.install, "--uninstall", "--prefix", self.prefix)
        self.assertEqual(result.returncode, 3)
        self.assertIn("nothing is installed", result.stderr)

    def test_symbols_belong_to_the_programs(self):
        program = self.archive / "prefix/bin/gpufl"
        found = re.search(r"Build ID: (\w\w)(\w+)", run("readelf", "-n", program).stdout)
        symbols = self.symbols / ".build-id" / found.group(1) / f"{found.group(2)}.debug"
        self.assertIn(".debug_info", run("readelf", "-SW", symbols).stdout)
        self.assertNotIn(".debug_info", run("readelf", "-SW", program).stdout)

    def test_the_same_build_gives_the_same_archives(self):
        again = packed(DIRECTORY / "again")
        for first, second in zip(self.files, again):
            with open(first, "rb") as one, open(second, "rb") as other:
                self.assertEqual(one.read(), other.read(), os.path.basename(first))

    def test_the_bill_of_materials_lists_what_is_inside(self):
        document = json.loads((self.archive / "prefix/share/doc/gpufl/gpufl.cdx.json").read_text())
        inside = {component["name"]: component.get("version") for component in document["components"]
                  if {"name": "gpufl:linkage", "value": "static"} in component.get("properties", [])}
        for name in ("zlib", "libzstd", "sqlite3", "libmicrohttpd", "curl", "mbedtls"):
            wanted = (BUILD / "portable" / TRIPLET / f"bundled/share/{name}.version").read_text().strip()
            self.assertEqual(inside.get(name), wanted, name)
        texts = (self.archive / "prefix/share/doc/gpufl/third-party-licenses.txt").read_text()
        self.assertIn("\nmbedtls ", texts)


if __name__ == "__main__":
    unittest.main()
