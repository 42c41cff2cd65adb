# SPDX-License-Identifier: Apache-2.0
"""Runs a real Prometheus that scrapes the server under test."""
import contextlib
import json
import shutil
import socket
import subprocess
import time
import urllib.parse
import urllib.request

PROMTOOL, PROMETHEUS = shutil.which("promtool"), shutil.which("prometheus")
DEADLINE_S = 600


class Prometheus:
    """Use as a context manager. targets: job name to "host:port"; key: for a server that requires one."""

    def __init__(self, directory, targets, key=None):
        self.directory, self.targets, self.key = directory, targets, key

    def __enter__(self):
        authorization = ""
        if self.key:
            (self.directory / "scrape.key").write_text(self.key)
            authorization = f"  authorization: {{credentials_file: '{self.directory}/scrape.key'}}\n"
        (self.directory / "prometheus.yml").write_text("scrape_configs:\n" + "".join(
            f"- job_name: {name}\n  scrape_interval: 500ms\n  scrape_timeout: 500ms\n{authorization}"
            f"  static_configs: [{{targets: ['{target}']}}]\n" for name, target in self.targets.items()))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.listen = "127.0.0.1:%d" % free.getsockname()[1]
        self.process = subprocess.Popen(
            [PROMETHEUS, f"--config.file={self.directory}/prometheus.yml", f"--web.listen-address={self.listen}",
             f"--storage.tsdb.path={self.directory}/tsdb"], stderr=subprocess.DEVNULL)
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def ask(self, query, is_good=bool):
        """Waits until the first series has a value for which is_good is true, and returns it; None on timeout."""
        end = time.monotonic() + DEADLINE_S
        url = f"http://{self.listen}/api/v1/query?query={urllib.parse.quote(query)}"
        while time.monotonic() < end:
            with contextlib.suppress(OSError):
                with urllib.request.urlopen(url, timeout=5) as answer:
                    result = json.load(answer)["data"]["result"]
                if result and is_good(result[0]["value"][1]):
                    return result[0]["value"][1]
            time.sleep(0.1)
        return None


def check_page(page):
    """promtool's complaints about a metrics page; "" if it is valid."""
    checked = subprocess.run([PROMTOOL, "check", "metrics"], input=page, capture_output=True, timeout=DEADLINE_S, check=False)
    said = (checked.stdout + checked.stderr).decode()
    return said or (f"status {checked.returncode}" if checked.returncode else "")
