#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""AMD GPUs read from /sys-like trees, alone and together with the look-alike NVIDIA GPUs."""
import json
import shutil
import signal
import subprocess

import harness
from serve_process import Serve
from test_monitor import MonitorCase

MI300X, RX7900, APU = "0000:c1:00.0", "0000:03:00.0", "0000:e5:00.0"
HAS_SERVER = (harness.BUILD / "lib" / "libgpufl-server.so").exists()


class AmdCase(MonitorCase):
    def setUp(self):
        super().setUp()
        self.root = self.directory / "root"
        self.make_tree(f"rx7900@{RX7900}", f"mi300x@{MI300X}")

    def make_tree(self, *gpus):
        shutil.rmtree(self.root, ignore_errors=True)
        subprocess.run([harness.FAKES / "fake_amd_tree", self.root, *gpus], check=True)

    def environment(self, has_nvidia=False, **variables):
        """A machine with AMD GPUs; without has_nvidia, NVIDIA's libraries are missing too."""
        missing = {} if has_nvidia else {name: "/nonexistent" for name in
                                         ("GPUFL_CUDA_PATH", "GPUFL_CUPTI_PATH", "GPUFL_NVML_PATH", "LD_LIBRARY_PATH")}
        return harness.environment(**{**missing, "GPUFL_SYSFS_ROOT": self.root,
                                      "GPUFL_ROCPROFILER_PATH": harness.FAKES / "rocm", **variables})

    def device(self, name):
        return self.root / "sys/class/drm" / name / "device"


class Commands(AmdCase):
    def once(self, *options, **variables):
        result = harness.gpufl("monitor", "--once", "--json", *options, env=self.environment(**variables))
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def test_one_sample_shows_the_values_of_the_driver(self):
        sample = self.once()
        self.assertIsNone(sample["gpu_problem"])
        self.assertEqual(sample["driver_version"], "6.12.12")
        radeon, instinct = sample["gpus"]
        self.assertEqual((radeon["device_id"], radeon["vendor"], radeon["name"]), (0, "AMD", "AMD Radeon RX 7900 XTX"))
        expected = {"gpu_util": 12, "temp_c": 48, "temp_edge_c": 48, "temp_junction_c": 59, "temp_mem_c": 70,
                    "fan_rpm": 1234, "fan_speed_pct": 40, "voltage_mv": 893, "power_mw": 98000,
                    "power_limit_mw": 303000, "energy_uj": 3000000, "clock_gfx": 2371, "clock_mem": 1249,
                    "sm_active_bp": None, "nvlink_rx_bps": None, "ecc_corrected": None}
        self.assertEqual({name: radeon[name] for name in expected}, expected)
        self.assertEqual([(p["pid"], p["used_mib"]) for p in instinct["processes"]], [(4001, 3072)])
        self.assertEqual((instinct["ecc_corrected"], instinct["ecc_uncorrected"]), (8, 1))
        self.assertEqual((instinct["pcie_bw_bps"], instinct["xgmi_read_bps"]), (100000000, 0))
        text = harness.gpufl("monitor", "--once", env=self.environment()).stdout
        self.assertIn("AMD Instinct MI300X OAM", text)
        self.assertNotIn("SM ", text)

    def test_the_gpus_of_each_vendor_are_numbered_separately(self):
        gpus = self.once(has_nvidia=True, FAKE_GPU_COUNT=2)["gpus"]
        self.assertEqual([(g["device_id"], g["vendor"]) for g in gpus],
                         [(0, "NVIDIA"), (1, "NVIDIA"), (2, "AMD"), (3, "AMD")])
        for backend, vendors in (("Nvidia", ["NVIDIA"]), ("Amd", ["AMD", "AMD"]), ("None", [])):
            by_option = self.once("--backend", backend, has_nvidia=True, FAKE_GPU_COUNT=1)
            by_variable = self.once(has_nvidia=True, FAKE_GPU_COUNT=1, GPUFL_BACKEND=backend)
            for sample in (by_option, by_variable):
                self.assertEqual([g["vendor"] for g in sample["gpus"]], vendors)
        wrong = harness.gpufl("monitor", "--once", env=self.environment(GPUFL_BACKEND="Voodoo"))
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("GPUFL_BACKEND", wrong.stderr)

    def test_without_any_gpu_both_reasons_are_reported(self):
        shutil.rmtree(self.root)
        problem = self.once()["gpu_problem"]
        self.assertIn("NVIDIA", problem)
        self.assertIn("no AMD GPU", problem)

    def test_a_broken_tree_is_survived(self):
        self.make_tree(f"broken@{APU}", f"mi300x@{MI300X}")
        instinct, broken = self.once()["gpus"]
        self.assertEqual(instinct["gpu_util"], 87)
        self.assertIsNone(broken["gpu_util"])
        self.assertIsNone(broken["name"])

    def test_rocm_smi_fills_in_what_the_files_lack(self):
        self.make_tree(f"apu@{APU}")
        self.assertIsNone(self.once()["gpus"][0]["energy_uj"])
        more = {"GPUFL_ROCM_SMI_PATH": harness.FAKES / "librocm_smi64.so.7", "FAKE_ROCM_SMI_SLOT": APU}
        gpu = self.once(**more)["gpus"][0]
        self.assertEqual((gpu["energy_uj"], gpu["ecc_corrected"], gpu["ecc_uncorrected"]), (15250000, 11, 2))

    def test_info_and_doctor_know_the_vendors(self):
        info = harness.gpufl("info", env=self.environment())
        self.assertEqual(info.returncode, 0, info.stdout)
        self.assertIn("AMD Instinct MI300X OAM (gfx942) · 192.0 GiB · 304 CUs", info.stdout)
        self.assertNotIn("CUDA", info.stdout)
        mixed = self.info(has_nvidia=True, FAKE_GPU_COUNT=1)
        self.assertEqual([g["vendor"] for g in mixed["gpus"]], ["NVIDIA", "AMD", "AMD"])
        checks = self.checks(GPUFL_ROCPROFILER_PATH="/nonexistent")
        self.assertEqual(checks["rocprofiler"]["level"], "problem")
        self.assertEqual(self.checks()["rocprofiler"]["level"], "ok")
        engines = {engine["name"]: engine for engine in self.info()["engines"]}
        self.assertTrue(engines["Trace"]["is_available"])
        self.assertIn("NVIDIA", engines["PcSampling"]["reason"])
        self.assertEqual(checks["CUDA driver"]["level"], "ok")
        self.assertEqual(checks["CUPTI"]["level"], "ok")
        self.assertEqual(checks["AMD driver"], {"level": "ok", "text": "amdgpu 6.12.12, 2 GPUs"})
        self.assertEqual(checks["variables"]["level"], "ok", checks["variables"]["text"])
        self.device("card1").joinpath("current_link_width").write_text("8\n")
        self.assertIn("uses 8 of 16 PCIe lanes", self.checks()["AMD driver"]["text"])
        self.device("card1").joinpath("gpu_metrics").write_bytes(b"\x78\x00\x01\x2a")
        self.assertEqual(self.checks()["AMD driver"]["level"], "warning")
        self.assertIn("version 1.42", self.checks()["AMD driver"]["text"])
        shutil.rmtree(self.root)
        self.assertIn("not needed", self.checks()["AMD driver"]["text"])

    def info(self, **variables):
        return json.loads(harness.gpufl("info", "--json", env=self.environment(**variables)).stdout)

    def checks(self, **variables):
        result = json.loads(harness.gpufl("doctor", "--json", env=self.environment(**variables)).stdout)
        return {c["name"]: {"level": c["level"], "text": c["text"]} for c in result["checks"]}


class Daemon(AmdCase):
    def amd_monitor(self, *options, **variables):
        return self.monitor(*options, env=self.environment(**variables))

    def test_the_session_holds_both_vendors(self):
        with self.amd_monitor(has_nvidia=True, FAKE_GPU_COUNT=1) as monitor:
            page = monitor.wait_for_samples(3)
            self.assertEqual(len(page["gpufl_gpu_up"]), 3)
            self.assertEqual(monitor.stop(), 0)
        session, = harness.sessions(self.log)
        self.assert_verified(session)
        lines = self.lines(session)
        start = lines[0]
        self.assertEqual([d["vendor"] for d in start["devices"]], ["NVIDIA", "AMD", "AMD"])
        self.assertEqual([d["id"] for d in start["gpu_static_devices"]], [0, 1, 2])
        self.assertEqual([d["id"] for d in start["cuda_static_devices"]], [0])
        self.assertEqual([(d["id"], d["architecture"]) for d in start["rocm_static_devices"]],
                         [(1, "gfx1100"), (2, "gfx942")])
        batches = [line for line in lines if line["type"] == "device_metric_batch"]
        self.assertTrue(batches)
        self.assertEqual([e for e in lines if e["type"] in ("gpu_event", "loss")], [])
        report = harness.gpufl("report", session)
        self.assertEqual(report.returncode, 0)
        nvidia, radeon = (report.stdout.index(f"GPU {i}  ") for i in (0, 1))
        self.assertIn("SM clock", report.stdout[nvidia:radeon])
        self.assertIn("junction 59 °C", report.stdout[radeon:])
        self.assertNotIn("SM clock", report.stdout[radeon:])

    def test_a_gpu_that_vanishes_is_lost_and_comes_back(self):
        card, away = self.device("card1").parent, self.directory / "away"
        with self.amd_monitor() as monitor:
            monitor.wait_for_samples(2)
            card.rename(away)
            monitor.process.send_signal(signal.SIGHUP)  # also checks the rarely checked state now
            up = lambda page: {dict(key)["gpu"]: value for key, value in page["gpufl_gpu_up"].items()}
            page = monitor.wait_until(lambda page: up(page) == {"0": 1, "1": 0})
            self.assertEqual(page["gpufl_monitor_driver_up"][()], 1)
            away.rename(card)
            monitor.wait_until(lambda page: up(page) == {"0": 1, "1": 1})
            self.assertEqual(monitor.stop(), 0)
        sessions = harness.sessions(self.log)
        self.assertEqual(len(sessions), 2)  # SIGHUP began the second; the GPUs stayed the same ones
        events = [e for session in sessions for e in self.events(session)]
        self.assertEqual([(e["kind"], e["device_id"]) for e in events], [("gpu_lost", 1), ("gpu_back", 1)])
        losses = [l for session in sessions for l in self.lines(session) if l["type"] == "loss"]
        self.assertEqual([l["reason"] for l in losses], ["gpu_lost"])

    def test_the_driver_of_one_vendor_goes_and_the_other_stays(self):
        gone = self.directory / "gone"
        faults = f"driver_gone_while={gone}"
        with self.amd_monitor(has_nvidia=True, FAKE_GPU_COUNT=1, FAKE_FAULTS=faults) as monitor:
            monitor.wait_for_samples(1)
            gone.touch()
            monitor.wait_for("the driver is gone")
            page = monitor.wait_until(lambda page: page["gpufl_monitor_driver_up"][()] == 0)
            self.assertEqual(sorted(page["gpufl_gpu_up"].values()), [0, 1, 1])
            gone.unlink()
            monitor.wait_for("the driver is back: NVIDIA")
            monitor.wait_until(lambda page: sum(page["gpufl_gpu_up"].values()) == 3)
            self.assertEqual(monitor.stop(), 0)
        session, = harness.sessions(self.log)
        self.assertEqual([e["kind"] for e in self.events(session)], ["driver_lost", "driver_back"])


class Recorder(AmdCase):
    def test_a_traced_program_records_amd_telemetry(self):
        backends = {"Auto": ["NVIDIA", "AMD", "AMD"], "Nvidia": ["NVIDIA"], "Amd": ["AMD", "AMD"], "None": []}
        for backend, expected in backends.items():
            env = self.environment(has_nvidia=True, FAKE_GPU_COUNT=1, GPUFL_BACKEND=backend)
            traced = self.trace("--launches", 10, env=env, directory=self.directory / backend)
            start = traced.session.first("job_start")
            self.assertEqual([d["vendor"] for d in start["devices"]], expected, backend)


@harness.needs(HAS_SERVER, "the server")
class Server(AmdCase):
    def test_the_server_shows_both_vendors(self):
        with self.monitor(env=self.environment(has_nvidia=True, FAKE_GPU_COUNT=1)) as monitor:
            monitor.wait_for_samples(3)
            self.assertEqual(monitor.stop(), 0)
        session, = harness.sessions(self.log)
        with Serve(self.directory / "store") as server:
            upload = harness.gpufl("upload", session, "--server", server.url)
            self.assertEqual(upload.returncode, 0, upload.stdout + upload.stderr)
            hosts = server.get("/api/v1/hosts")["hosts"]
        gpus = {gpu["device"]: gpu for host in hosts for gpu in host["gpus"]}
        self.assertEqual([gpus[i]["name"] for i in sorted(gpus)],
                         ["NVIDIA H200", "AMD Radeon RX 7900 XTX", "AMD Instinct MI300X OAM"])
        self.assertEqual(gpus[1]["metrics"]["fan_rpm"], 1234)
        self.assertEqual(gpus[2]["metrics"]["temp_junction_c"], 61)


if __name__ == "__main__":
    harness.main()
