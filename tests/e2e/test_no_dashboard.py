# SPDX-License-Identifier: Apache-2.0
"""Where Node.js was missing at build time there is no dashboard: server, demo and page say why, and what to do."""
import json
import os
import shutil
import subprocess
import urllib.request

from harness import BUILD, GPUFL, SOURCE, TestCase, environment, main

SWITCHED_OFF = "it was switched off (GPUFL_DASHBOARD=OFF)"
TOOLS = ("sh", "dirname", "mkdir", "cat", "rm", "tr")  # of build_dashboard.sh, up to its search for Node.js


class NoDashboard(TestCase):
    def installation(self):
        """gpufl with the server that has no dashboard beside it."""
        binaries = self.directory / "bin"
        binaries.mkdir()
        shutil.copy(GPUFL, binaries / "gpufl")
        for name in ("gpufl-agent", "gpufl-monitor"):
            (binaries / name).symlink_to("gpufl")
        (binaries / "libgpufl-server.so.1").symlink_to(BUILD / "tests" / "no_dashboard" / "libgpufl-server.so.1")
        for name in ("lib", "share"):
            (self.directory / name).symlink_to(BUILD / name)
        return binaries / "gpufl"

    def test_the_demo_says_why_and_what_to_do(self):
        result = subprocess.run([self.installation(), "demo", "--once", "--port", "0"], env=environment(), text=True,
                                capture_output=True, cwd=self.directory, check=False, timeout=300)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn(f"No dashboard there: this build has none, because {SWITCHED_OFF}.\n", result.stdout)
        self.assertIn("make dashboard", result.stdout)

    def test_the_server_says_why_in_its_log_on_its_page_and_as_json(self):
        server = subprocess.Popen([self.installation(), "serve", "--listen", "127.0.0.1:0", "--data", self.directory / "data"],
                                  env=environment(), text=True, stderr=subprocess.PIPE)
        self.addCleanup(server.stderr.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        url = server.stderr.readline().split(",")[0].split()[-1]
        line = server.stderr.readline()
        self.assertIn(f"no dashboard: this build has none, because {SWITCHED_OFF}. To get it, install Node.js", line)
        with urllib.request.urlopen(f"{url}/") as answer:
            page = answer.read().decode()
        self.assertIn(SWITCHED_OFF, page)
        self.assertIn("<pre>make dashboard</pre>", page)
        with urllib.request.urlopen(f"{url}/api/v1/server") as answer:
            self.assertEqual(json.load(answer)["dashboard_missing"], SWITCHED_OFF)

    def test_the_build_notes_that_there_was_no_node(self):
        tools = self.directory / "tools"
        tools.mkdir()
        for name in TOOLS:
            (tools / name).symlink_to(shutil.which(name))
        built = subprocess.run([SOURCE / "tools" / "build_dashboard.sh", "AUTO", self.directory / "out"], text=True,
                               env={**os.environ, "PATH": str(tools)}, capture_output=True, check=False)
        self.assertEqual(built.returncode, 0, built.stderr)
        self.assertIn("there is no node; the server is built without the dashboard", built.stderr)
        table = (self.directory / "out" / "dashboard_files.c").read_text()
        self.assertIn('const char dashboard_missing[] = "there is no node";\n', table)


if __name__ == "__main__":
    main()
