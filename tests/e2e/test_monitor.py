#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""gpufl monitor with the look-alike NVML: sessions, pages and failures."""
import contextlib
import http.server
import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import harness
from prometheus_process import PROMETHEUS, PROMTOOL, Prometheus, check_page

DEADLINE_S = 600
METRIC = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*"'
SAMPLE = re.compile(rf"^({METRIC})(?:\{{({LABEL}(?:,{LABEL})*)\}})? (NaN|[+-]Inf|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)$")


def parse_page(text, is_openmetrics=False):
    """A strict reader: {name: {labels: value}}; every line must be valid, and the lines of a family adjacent."""
    families, samples, current = {}, {}, None
    lines = text.split("\n")
    assert lines.pop() == "", "the page ends with a line feed"
    if is_openmetrics:
        assert lines.pop() == "# EOF", "the page ends with # EOF"
    for line in lines:
        if line.startswith("# HELP "):
            name = line.split(" ")[2]
            assert name not in families, f"{name} comes twice"
            assert len(line.split(" ", 3)[3]) > 5, line
            current = name
            families[name] = None
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name == current and families[name] is None and kind in ("gauge", "counter"), line
            families[name] = kind
        else:
            found = SAMPLE.match(line)
            assert found, f"malformed: {line}"
            name, labels, value = found.groups()
            is_counter = families[current] == "counter"
            expected = current + "_total" if is_openmetrics and is_counter else current
            assert name == expected, f"{name} outside of its family {current}"
            assert name.endswith("_total") == is_counter, name
            key = tuple(sorted(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels or "")))
            assert key not in samples.setdefault(name, {}), f"twice: {line}"
            samples[name][key] = float(value)
    return samples


class Monitor:
    """A running gpufl monitor."""

    def __init__(self, directory, *options, env=None, program=harness.GPUFL, faults="", gpus=1, **variables):
        self.directory = directory
        command = [str(program)] + (["monitor"] if program == harness.GPUFL else [])
        environment = env or harness.environment(FAKE_GPU_COUNT=gpus, FAKE_FAULTS=faults, **variables)
        self.process = subprocess.Popen([*command, *map(str, options)], env=environment, text=True,
                                        stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=directory.parent)
        self.messages = []
        self.news = threading.Condition()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stderr:
            with self.news:
                self.messages.append(line.rstrip("\n"))
                self.news.notify_all()
        with self.news:
            self.messages.append(None)
            self.news.notify_all()

    def wait_for(self, pattern):
        """Returns the first message that matches."""
        with self.news:
            def found():
                return next((re.search(pattern, m) for m in self.messages if m and re.search(pattern, m)), None)
            assert self.news.wait_for(lambda: found() or None in self.messages, DEADLINE_S), self.messages
            assert found(), self.messages
            return found()

    @property
    def url(self):
        return self.wait_for(r"metrics on (http://\S+)/metrics").group(1)

    def get(self, path="/metrics", **headers):
        request = urllib.request.Request(self.url + path, headers=headers)
        with urllib.request.urlopen(request, timeout=DEADLINE_S) as answer:
            return answer.read().decode(), answer.headers["Content-Type"]

    def metrics(self):
        return parse_page(self.get()[0])

    def wait_until(self, condition):
        """Reads the page until it meets the condition."""
        end = time.monotonic() + DEADLINE_S
        while True:
            page = self.metrics()
            if condition(page):
                return page
            assert time.monotonic() < end, page
            time.sleep(0.02)

    def wait_for_samples(self, count):
        return self.wait_until(lambda page: page["gpufl_monitor_samples_total"][()] >= count)

    def stop(self, number=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(DEADLINE_S)
        self.reader.join(DEADLINE_S)
        self.process.stderr.close()
        return code


class Collector(http.server.ThreadingHTTPServer):
    """Stores what is posted to it."""

    def __init__(self):
        self.posts = []
        self.news = threading.Condition()
        super().__init__(("127.0.0.1", 0), self.Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            with self.server.news:
                self.server.posts.append((self.path, self.headers, body))
                self.server.news.notify_all()
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_):
            pass


class MonitorCase(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.log = self.directory / "log"

    @contextlib.contextmanager
    def monitor(self, *options, **more):
        monitor = Monitor(self.log, "-o", self.log, "-i", 50, "--listen", "127.0.0.1:0", *options, **more)
        try:
            yield monitor
        finally:
            monitor.stop(signal.SIGKILL)

    def lines(self, session):
        """All records of a session, sealed or not."""
        result = []
        for file in sorted(session.glob("system*.log*")):
            text = subprocess.run(["zstd", "-dcq", file], capture_output=True, check=True).stdout \
                if file.suffix == ".zst" else file.read_bytes()
            result += [json.loads(line) for line in text.splitlines()]
        return result

    def events(self, session):
        return [line for line in self.lines(session) if line["type"] == "gpu_event"]

    def assert_verified(self, session):
        verified = harness.gpufl("verify", session)
        self.assertEqual(verified.returncode, 0, verified.stdout + verified.stderr)


class Sessions(MonitorCase):
    def test_it_samples_until_sigterm_and_seals_its_session(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.monitor(gpus=2) as monitor:
                monitor.wait_for_samples(3)
                self.assertEqual(monitor.stop(number), 0, monitor.messages)
        sessions = harness.sessions(self.log)
        self.assertEqual(len(sessions), 2)
        for session in sessions:
            self.assert_verified(session)
            self.assertEqual([f.suffix for f in session.glob("system*")], [".zst"])
            first, last = self.lines(session)[0], self.lines(session)[-1]
            self.assertEqual((first["type"], first["session_kind"], first["app"]), ("job_start", "monitor", "gpufl-monitor"))
            self.assertEqual(len(first["devices"]), 2)
            self.assertEqual(last["type"], "shutdown")
            self.assertEqual(harness.gpufl("report", session).returncode, 0)

    def test_environment_and_name_of_the_program(self):
        link = self.directory / "gpufl-monitor"
        link.symlink_to(harness.GPUFL)
        env = harness.environment(GPUFL_MONITOR_APP="watcher", GPUFL_MONITOR_LOG_DIR=self.log, GPUFL_MONITOR_INTERVAL_MS=60)
        monitor = Monitor(self.log, "--listen", "none", program=link, env=env)
        monitor.wait_for("every 60 ms into " + re.escape(str(self.log)))
        self.assertEqual(monitor.stop(), 0)
        self.assertFalse([m for m in monitor.messages if m and "metrics on" in m])
        self.assertEqual(self.lines(harness.sessions(self.log)[0])[0]["app"], "watcher")
        wrong = harness.gpufl("monitor", env=harness.environment(GPUFL_MONITOR_INTERVAL_MS="fast"))
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("GPUFL_MONITOR_INTERVAL_MS", wrong.stderr)

    def test_a_second_monitor_is_refused(self):
        with self.monitor() as monitor:
            monitor.wait_for_samples(1)
            other = harness.gpufl("monitor", "-o", self.log, "--listen", "none")
            self.assertEqual(other.returncode, 3)
            self.assertIn(f"process {monitor.process.pid}", other.stderr)
            # It may run with another directory; an address that was requested explicitly must be free.
            taken = harness.gpufl("monitor", "-o", self.directory / "b", "--listen", monitor.url.removeprefix("http://"))
            self.assertEqual(taken.returncode, 3)
            self.assertIn("cannot listen", taken.stderr)
            self.assertEqual(harness.sessions(self.directory / "b"), [])

    def test_an_invalid_address_is_refused_at_once(self):
        for option, address in (("--upload", "foo"), ("--otlp", "ftp://host"), ("--otlp", "foo"), ("--listen", "foo")):
            result = harness.gpufl("monitor", "-o", self.log, option, address)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn(address, result.stderr)
            self.assertEqual(harness.sessions(self.log), [])

    def test_a_killed_monitors_session_is_ended_by_the_next(self):
        with self.monitor() as monitor:
            monitor.wait_for_samples(3)
            monitor.stop(signal.SIGKILL)
        killed = harness.sessions(self.log)[0]
        self.assertTrue((killed / "system.log").exists())
        with self.monitor() as monitor:
            monitor.wait_for_samples(1)
            self.assertEqual(monitor.stop(), 0)
        self.assertEqual([f.name for f in killed.glob("system*")], ["system.000001.log.zst"])
        last = self.lines(killed)[-1]
        self.assertEqual((last["type"], last["synthetic"]), ("shutdown", True))
        self.assertEqual(len(harness.sessions(self.log)), 2)

    def test_sighup_starts_a_new_session(self):
        with self.monitor() as monitor:
            monitor.wait_for_samples(2)
            monitor.process.send_signal(signal.SIGHUP)
            monitor.wait_for("reopened: session")
            monitor.wait_for_samples(5)
            self.assertEqual(monitor.stop(), 0)
        sessions = harness.sessions(self.log)
        self.assertEqual(len(sessions), 2)
        for session in sessions:
            self.assert_verified(session)

    def test_a_driver_that_is_reloaded_leaves_a_gap_and_comes_back(self):
        gone = self.directory / "gone"
        with self.monitor(faults=f"driver_gone_while={gone}") as monitor:
            monitor.wait_for_samples(1)
            gone.touch()
            monitor.wait_for("the driver is gone")
            page = monitor.wait_until(lambda p: p["gpufl_monitor_driver_up"][()] == 0)
            self.assertNotIn("gpufl_gpu_power_watts", page)
            self.assertEqual(set(page["gpufl_gpu_up"].values()), {0})
            self.assertIn("driver absent", monitor.get("/healthz")[0])
            gone.unlink()
            monitor.wait_for("the driver is back")
            page = monitor.wait_until(lambda p: "gpufl_gpu_power_watts" in p)
            self.assertEqual(set(page["gpufl_gpu_up"].values()), {1})
            self.assertEqual(page["gpufl_monitor_driver_losses_total"][()], 1)
            self.assertEqual(monitor.stop(), 0)
        session, = harness.sessions(self.log)
        self.assertEqual([e["kind"] for e in self.events(session)], ["driver_lost", "driver_back"])
        losses = [line for line in self.lines(session) if line["type"] == "loss"]
        self.assertEqual([(l["reason"], l["count"]) for l in losses], [("driver_gone", None)])
        self.assertTrue(losses[0]["cause"])
        self.assertEqual(losses[0]["cause"], self.events(session)[0]["message"])
        verified = harness.gpufl("verify", session)
        self.assertEqual(verified.returncode, 1, verified.stdout)
        self.assertIn("driver_gone", verified.stdout)

    def test_a_gpu_that_falls_off_the_bus_is_recorded_when_it_returns(self):
        lost = self.directory / "lost"
        with self.monitor(faults=f"lost_gpu_while={lost}", gpus=2) as monitor:
            monitor.wait_for_samples(1)
            lost.touch()
            monitor.wait_until(lambda p: set(p["gpufl_gpu_up"].values()) == {0})
            lost.unlink()
            monitor.wait_until(lambda p: set(p["gpufl_gpu_up"].values()) == {1})
            self.assertEqual(monitor.stop(), 0)
        session, = harness.sessions(self.log)
        kinds = [(e["kind"], e["device_id"]) for e in self.events(session)]
        for device in (0, 1):  # in either order, since both are lost between any two questions
            self.assertEqual([kind for kind, of in kinds if of == device], ["gpu_lost", "gpu_back"])
        losses = [line["reason"] for line in self.lines(session) if line["type"] == "loss"]
        self.assertEqual(losses, ["gpu_lost", "gpu_lost"])

    def test_it_starts_without_a_driver_and_finds_it_later(self):
        gone = self.directory / "gone"
        gone.touch()
        with self.monitor(faults=f"driver_gone_while={gone}") as monitor:
            monitor.wait_for("no GPUs yet")
            self.assertNotIn("gpufl_gpu_up", monitor.metrics())
            gone.unlink()
            page = monitor.wait_until(lambda p: "gpufl_gpu_up" in p)
            self.assertEqual(page["gpufl_monitor_driver_losses_total"][()], 0)
            self.assertEqual(monitor.stop(), 0)
        without, found = harness.sessions(self.log)
        self.assertEqual(self.lines(without)[0]["devices"], [])
        self.assertEqual([e["kind"] for e in self.events(without)], ["driver_lost"])
        self.assertEqual(len(self.lines(found)[0]["devices"]), 1)
        self.assert_verified(found)

    def test_xid_errors_and_mig_instances_are_recorded(self):
        with self.monitor(faults="xid_after_ms=200;xid=63;mig=2") as monitor:
            page = monitor.wait_until(lambda p: "gpufl_gpu_xid_errors_total" in p)
            (labels, count), = page["gpufl_gpu_xid_errors_total"].items()
            self.assertEqual((dict(labels)["xid"], count), ("63", 1))
            instances = {dict(labels)["gpu_instance"] for labels in page["gpufl_mig_memory_used_bytes"]}
            self.assertEqual(instances, {"7", "8"})
            self.assertEqual(monitor.stop(), 0)
        session, = harness.sessions(self.log)
        self.assertEqual([(e["kind"], e["xid"], e["device_id"]) for e in self.events(session)], [("xid", 63, 0)])
        devices = [line for line in self.lines(session) if line["type"] == "mig_device"]
        self.assertEqual([d["gpu_instance_id"] for d in devices], [7, 8])
        self.assert_verified(session)

    def test_every_nvml_function_may_fail(self):
        text = (harness.SOURCE / "src/driver/nvml_abi.h").read_text()
        functions = re.findall(r"X\(\w+, (nvml\w+),", text)
        self.assertGreater(len(functions), 30)
        for function in functions:
            with self.subTest(function):
                result = harness.gpufl("monitor", "--once", "--json",
                                       env=harness.environment(FAKE_FAULTS=f"fail={function}@*:999;mig=1"))
                self.assertEqual(result.returncode, 0, result.stderr)
                json.loads(result.stdout)

    def test_once_prints_one_sample(self):
        env = harness.environment(FAKE_GPU_COUNT=2)
        text = harness.gpufl("monitor", "--once", env=env, cwd=self.directory)
        self.assertEqual(text.returncode, 0, text.stderr)
        self.assertIn("GPU 1  NVIDIA H200", text.stdout)
        sample = json.loads(harness.gpufl("monitor", "--once", "--json", env=env, cwd=self.directory).stdout)
        self.assertEqual(len(sample["gpus"]), 2)
        self.assertIsNone(sample["gpus"][0]["fan_speed_pct"])
        self.assertEqual(sample["gpus"][0]["total_mib"], 143771)
        self.assertEqual(sample["gpus"][0]["processes"][0]["name"], "gpufl")
        self.assertEqual(list(self.directory.iterdir()), [])
        bare = harness.gpufl("monitor", "--once", env=harness.environment(self.directory))
        self.assertEqual(bare.returncode, 0)
        self.assertIn("no GPUs: ", bare.stdout)
        self.assertEqual(harness.gpufl("monitor", "--json").returncode, 2)

    def test_control_characters_in_process_names_do_not_reach_the_terminal(self):
        program = ("import ctypes, sys; ctypes.CDLL(None).prctl(15, b'\\x1b]0;owned\\x07', 0, 0, 0);"
                   " print(flush=True); sys.stdin.read()")
        with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
            other.stdout.readline()
            text = harness.gpufl("monitor", "--once", env=harness.environment(FAKE_NVML_PID=other.pid)).stdout
            other.stdin.close()
        self.assertIn(f"process {other.pid}", text)
        self.assertIn("owned", text)
        self.assertEqual([char for char in text if char < " " and char != "\n"], [])

    def test_a_silent_server_does_not_delay_the_end(self):
        with self.monitor() as monitor:
            monitor.wait_for_samples(2)
            self.assertEqual(monitor.stop(), 0)
        with socket.create_server(("127.0.0.1", 0)) as silent:
            silent.settimeout(DEADLINE_S)
            with self.monitor("--upload", f"http://127.0.0.1:{silent.getsockname()[1]}") as monitor:
                with silent.accept()[0]:
                    self.assertEqual(monitor.stop(), 0)  # the upload itself would wait for five minutes
                monitor.wait_for("not waiting for the upload any longer")

    def test_the_service_manager_is_notified(self):
        path = self.directory / "notify"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(str(path))
            manager.settimeout(DEADLINE_S)
            with self.monitor(NOTIFY_SOCKET=path, WATCHDOG_USEC="100000") as monitor:
                heard = [manager.recv(200).decode() for _ in range(4)]
                self.assertEqual(heard, ["READY=1", "WATCHDOG=1", "WATCHDOG=1", "WATCHDOG=1"])
                self.assertEqual(monitor.stop(), 0)
                while heard[-1] != "STOPPING=1":
                    heard.append(manager.recv(200).decode())


class Pages(MonitorCase):
    def test_the_page_is_valid_in_both_formats(self):
        with self.monitor("--dcgm-names", gpus=3) as monitor:
            page = monitor.wait_for_samples(5)
            self.assertEqual(len(page["gpufl_gpu_utilization_ratio"]), 3)
            self.assertEqual(len(page["DCGM_FI_DEV_GPU_UTIL"]), 3)
            for name, values in page.items():
                if name.endswith("_ratio"):
                    self.assertTrue(all(0 <= value <= 1 for value in values.values()), name)
            names = {dict(labels)["process"] for labels in page["gpufl_gpu_process_memory_used_bytes"]}
            self.assertEqual(names, {"gpufl"})
            text, kind = monitor.get(Accept="application/openmetrics-text;version=1.0.0,text/plain;q=0.5")
            self.assertIn("application/openmetrics-text", kind)
            self.assertEqual(set(parse_page(text, is_openmetrics=True)), set(page))
            self.assertIn("text/plain; version=0.0.4", monitor.get()[1])

    def test_only_its_pages_are_served(self):
        with self.monitor() as monitor:
            self.assertTrue(monitor.get("/healthz")[0].startswith("ok: "))
            for path in ("/", "/metrics/x", "/etc/passwd", "/..%2fmetrics"):
                with self.assertRaises(urllib.error.HTTPError) as caught:
                    monitor.get(path)
                self.assertEqual(caught.exception.code, 404)
                caught.exception.close()

    @harness.needs(PROMTOOL, "promtool")
    def test_promtool_accepts_the_page(self):
        with self.monitor(gpus=2, faults="xid_after_ms=0;mig=1") as monitor:
            monitor.wait_for_samples(5)
            self.assertEqual(check_page(monitor.get()[0].encode()), "")

    @harness.needs(PROMETHEUS, "prometheus")
    def test_a_prometheus_scrapes_it(self):
        with self.monitor(gpus=2) as monitor:
            with Prometheus(self.directory, {"gpufl": monitor.url.removeprefix("http://")}) as prometheus:
                self.assertEqual(prometheus.ask("count(gpufl_gpu_power_watts)"), "2")
                self.assertEqual(prometheus.ask('up{job="gpufl"}', lambda value: value == "1"), "1")
                self.assertEqual(prometheus.ask("count(gpufl_gpu_info{name='NVIDIA H200'})"), "2")


class Shipping(MonitorCase):
    @harness.needs((harness.BUILD / "lib/libgpufl-upload.so.1").exists(), "libgpufl-upload")
    def setUp(self):
        super().setUp()

    def test_values_go_to_an_otlp_collector(self):
        collector = Collector()
        self.addCleanup(collector.server_close)
        self.addCleanup(collector.shutdown)
        with self.monitor("--otlp", "http://127.0.0.1:%d" % collector.server_address[1], gpus=2) as monitor:
            with collector.news:
                self.assertTrue(collector.news.wait_for(lambda: collector.posts, DEADLINE_S))
            self.assertEqual(monitor.stop(), 0)
        path, headers, body = collector.posts[0]
        self.assertEqual((path, headers["Content-Type"]), ("/v1/metrics", "application/json"))
        metrics = json.loads(body)["resourceMetrics"][0]["scopeMetrics"][0]["metrics"]
        by_name = {metric["name"]: metric for metric in metrics}
        self.assertLessEqual({"hw.gpu.utilization", "hw.gpu.memory.usage", "hw.power", "hw.energy"}, set(by_name))
        points = by_name["hw.gpu.utilization"]["gauge"]["dataPoints"]
        ids = {a["value"]["stringValue"] for p in points for a in p["attributes"] if a["key"] == "hw.id"}
        self.assertEqual(len(ids), 2)
        self.assertTrue(all(0 <= point["asDouble"] <= 1 for point in points))

    def test_finished_sessions_are_uploaded(self):
        collector = Collector()
        self.addCleanup(collector.server_close)
        self.addCleanup(collector.shutdown)
        with self.monitor("--upload", "http://127.0.0.1:%d" % collector.server_address[1]) as monitor:
            monitor.wait_for_samples(3)
            self.assertEqual(monitor.stop(), 0)
        paths = [path for path, _, _ in collector.posts]
        self.assertIn("/api/v1/events/stream", paths)
        self.assertEqual(paths[-1], "/api/v1/events/session-complete")

    def test_an_unreachable_server_causes_only_a_message(self):
        with self.monitor("--upload", "http://127.0.0.1:1") as monitor:
            monitor.wait_for_samples(3)
            self.assertEqual(monitor.stop(), 0, monitor.messages)
        monitor.wait_for("upload failed")
        self.assert_verified(harness.sessions(self.log)[0])


if __name__ == "__main__":
    harness.main()
