# SPDX-License-Identifier: Apache-2.0
"""The monitor beside nvidia-smi on a real GPU: monitor_check.py BUILD WORK OUT

STEPS=agree,rates,cost,page. agree: each state lies within what nvidia-smi says just before and just after, while a program
keeps the GPU busy. rates: what is counted over time (PCIe, NVLink, hardware counters, energy) as means of RATE_S (12)
seconds of `gpufl monitor` and of `nvidia-smi dmon` in the same seconds. cost: CPU and memory at 1 Hz beside
`nvidia-smi dmon`, COST_S (60) seconds. page: the Prometheus page of a busy GPU, left in OUT for `promtool check metrics`."""
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import time
import urllib.request

from bench_table import BenchTable, end_all

table = BenchTable(*sys.argv[1:4])
BUILD, WORK, OUT, GPUFL = table.build, table.work, table.out, table.gpufl
ROUNDS = int(os.environ.get("AGREE_ROUNDS", "10"))

# nvidia-smi's field, ours, our unit in its unit, and how far they may be apart: part of the value, and absolute
METRICS = [
    ("utilization.gpu", "gpu_util", 1, 0, 15),
    ("utilization.memory", "mem_util", 1, 0, 15),
    ("temperature.gpu", "temp_c", 1, 0, 2),
    ("temperature.memory", "temp_mem_c", 1, 0, 2),
    ("power.draw.instant", "power_mw", 1000, 0.15, 20),
    ("power.draw.average", "power_mw", 1000, 0.15, 20),
    ("power.limit", "power_limit_mw", 1000, 0, 0.5),
    ("memory.used", "used_mib", 1, 0, 64),
    ("memory.total", "total_mib", 1, 0, 1),
    ("clocks.sm", "clock_sm", 1, 0.05, 30),
    ("clocks.mem", "clock_mem", 1, 0, 1),
    ("clocks.gr", "clock_gfx", 1, 0.05, 30),
    ("ecc.errors.corrected.volatile.total", "ecc_corrected", 1, 0, 0),
    ("ecc.errors.uncorrected.volatile.total", "ecc_uncorrected", 1, 0, 0),
    ("fan.speed", "fan_speed_pct", 1, 0, 2),
]
TEXTS = [("name", "name"), ("uuid", "uuid"), ("pci.bus_id", "pci_bus_id"), ("driver_version", "driver_version")]
# Columns of `nvidia-smi dmon`, how it is asked for them, ours, our unit in its unit, and how far the means may be apart
RATES = [
    ("rxpci", "-s t", "pcie_rx_bps", 1e6, 0.35, 20),
    ("txpci", "-s t", "pcie_tx_bps", 1e6, 0.35, 20),
    ("pcirx", "21", "pcie_rx_bps", 2**20, 0.2, 5),
    ("pcitx", "20", "pcie_tx_bps", 2**20, 0.2, 5),
    ("nvlrx", "60", "nvlink_rx_bps", 2**20, 0.2, 1),
    ("nvltx", "61", "nvlink_tx_bps", 2**20, 0.2, 1),
    ("smutil", "2", "sm_active_bp", 100, 0.05, 2),
    ("smocc", "3", "sm_occupancy_bp", 100, 0.05, 2),
    ("mmaact", "5", "tensor_active_bp", 100, 0.05, 2),
    ("dram", "10", "dram_active_bp", 100, 0.05, 2),
    ("fp64", "11", "fp64_active_bp", 100, 0.05, 2),
    ("fp32", "12", "fp32_active_bp", 100, 0.05, 2),
    ("fp16", "13", "fp16_active_bp", 100, 0.05, 2),
]


def busy(*command):
    command = [str(part) for part in command or (WORK / "launch_rate", "100000000")]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)


def nvidia_smi():
    fields = [metric[0] for metric in METRICS] + [text[0] for text in TEXTS] + ["pstate", "clocks_event_reasons.active"]
    line = table.run(["nvidia-smi", "-i", "0", "--query-gpu=" + ",".join(fields), "--format=csv,noheader,nounits"]).stdout
    return dict(zip(fields, (value.strip() for value in line.strip().split(","))))


def number(text):
    """None: nvidia-smi has no value ("[N/A]", "Not Supported")."""
    try:
        return float(text)
    except ValueError:
        return None


def processes():
    """Memory (MiB) by process, as nvidia-smi has it."""
    lines = table.run(["nvidia-smi", "-i", "0", "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits"]).stdout
    return {int(pid): int(memory) for pid, memory in (line.split(",") for line in lines.splitlines())}


def ours_now():
    answer = json.loads(table.run([GPUFL, "monitor", "--once", "--json"]).stdout)
    return {**answer["gpus"][0], "driver_version": answer["driver_version"], "ts_ns": answer["ts_ns"]}


def agree():
    load = busy()
    apart, unknown = {}, {}
    try:
        time.sleep(3)
        for _ in range(ROUNDS):
            before, programs = nvidia_smi(), processes()
            ours = ours_now()
            after = nvidia_smi()
            for theirs, name, unit, part, room in METRICS:
                low, high, value = number(before[theirs]), number(after[theirs]), ours[name]
                if low is None or high is None or value is None:
                    if (low is None) != (value is None):
                        unknown[name] = f"nvidia-smi {before[theirs]!r}, gpufl {value}"
                    continue
                low, high = min(low, high), max(low, high)
                margin = max(room, part * high)
                if not low - margin <= value / unit <= high + margin:
                    apart.setdefault(name, []).append((low, value / unit, high))
            for theirs, name in TEXTS:
                if before[theirs] != ours[name]:
                    apart.setdefault(name, []).append((before[theirs], ours[name]))
            if before["pstate"] == after["pstate"] != f"P{ours['perf_state']}":
                apart.setdefault("perf_state", []).append((before["pstate"], ours["perf_state"]))
            reasons = [int(one["clocks_event_reasons.active"], 16) for one in (before, after)]
            if reasons[0] == reasons[1] != ours["throttle_reasons"]:
                apart.setdefault("throttle_reasons", []).append((reasons[0], ours["throttle_reasons"]))
            mine = {one["pid"]: one["used_mib"] for one in ours["processes"]}
            if mine != programs:
                apart.setdefault("processes", []).append((programs, mine))
    finally:
        end_all(load)
        load.wait()
    table.say(f"{len(METRICS) + len(TEXTS) + 3} states beside nvidia-smi, {ROUNDS} times", f"{len(apart)} apart {apart or ''}"[:300],
              "all agree", not apart)
    table.say("  known to one of both only", str(unknown or "none")[:300])


def dmon(process):
    """Means of its columns; none of a column that had no number."""
    lines = process.communicate(timeout=60)[0].splitlines()
    names = lines[0].lstrip("#").split()
    rows = [dict(zip(names, line.split())) for line in lines if not line.startswith("#")]
    found = {name: [number(row[name]) for row in rows if number(row[name]) is not None] for name in names}
    return {name: statistics.mean(values) for name, values in found.items() if values}


def rates():
    seconds = int(os.environ.get("RATE_S", "12"))
    counters = ",".join(rate[1] for rate in RATES if rate[1].isdigit())
    asked = (["-s", "t"], ["-s", "p", "--gpm-metrics", counters, "--gpm-options", "d"])
    load = busy(WORK / "two_kernels", "--seconds", str(3 * seconds))
    try:
        time.sleep(3)
        running = [subprocess.Popen(["nvidia-smi", "dmon", "-i", "0", "-c", str(seconds), *options], text=True,
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for options in asked]
        ours, power = [], []
        while any(process.poll() is None for process in running[:1]) and len(ours) < 3 * seconds:
            ours.append(ours_now())
            power.append(float(nvidia_smi()["power.draw.average"]))
        theirs = {name: mean for process in running for name, mean in dmon(process).items()}
    finally:
        end_all(load)
        load.wait()
    apart, silent = {}, []
    for column, _, name, unit, part, room in RATES:
        mine = statistics.mean(one[name] / unit for one in ours)
        if column not in theirs:
            silent.append(column)
        elif abs(mine - theirs[column]) > max(room, part * theirs[column]):
            apart[name] = (theirs[column], mine)
        else:
            print(f"     {name}: nvidia-smi {theirs[column]:.2f}, gpufl {mine:.2f}", flush=True)
    span_s = (ours[-1]["ts_ns"] - ours[0]["ts_ns"]) / 1e9
    watts = (ours[-1]["energy_uj"] - ours[0]["energy_uj"]) / 1e6 / span_s
    if abs(watts - statistics.mean(power)) > 0.1 * watts:
        apart["energy_uj"] = (statistics.mean(power), watts)
    print(f"     energy_uj: nvidia-smi's mean power {statistics.mean(power):.1f} W, by our energy {watts:.1f} W", flush=True)
    table.say(f"{len(RATES) + 1 - len(silent)} rates beside nvidia-smi dmon, means of {seconds} s, {len(ours)} readings",
              f"{len(apart)} apart {apart or ''}"[:300], "all agree", not apart)
    table.say("  nvidia-smi printed no number for", ", ".join(silent) or "none")


def spent(process):
    """CPU seconds since its start, resident bytes."""
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    resident = next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmRSS"))
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), resident


def cost():
    seconds = float(os.environ.get("COST_S", "60"))
    commands = {"gpufl monitor": [GPUFL, "monitor", "-o", WORK / "m-cost", "-i", "1000", "--listen", "127.0.0.1:0"],
                "nvidia-smi dmon": ["nvidia-smi", "dmon", "-d", "1"]}
    load = busy()
    running = {name: subprocess.Popen([str(part) for part in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
               for name, command in commands.items()}
    try:
        time.sleep(5)  # what starting costs is paid once
        first = {name: spent(process) for name, process in running.items()}
        time.sleep(seconds)
        last = {name: spent(process) for name, process in running.items()}
    finally:
        for process in running.values():
            process.send_signal(signal.SIGTERM)
            process.wait()
        end_all(load)
        load.wait()
    part = {name: (last[name][0] - first[name][0]) / seconds * 100 for name in running}
    memory = {name: last[name][1] / 2**20 for name in running}
    table.say("nvidia-smi dmon, 1 Hz", f"{part['nvidia-smi dmon']:.2f} % of a core, {memory['nvidia-smi dmon']:.1f} MiB")
    table.say("gpufl monitor, 1 Hz", f"{part['gpufl monitor']:.2f} % of a core", "<= 0.3 %", part["gpufl monitor"] <= 0.3)
    table.say("  resident", f"{memory['gpufl monitor']:.1f} MiB", "<= 12 MiB", memory["gpufl monitor"] <= 12)


def page():
    load = busy()
    monitor = subprocess.Popen([str(GPUFL), "monitor", "-o", str(WORK / "m-page"), "-i", "500", "--listen",
                                "127.0.0.1:9417"], stderr=subprocess.DEVNULL)
    try:
        time.sleep(3)
        with urllib.request.urlopen("http://127.0.0.1:9417/metrics", timeout=10) as answer:
            text = answer.read().decode()
    finally:
        monitor.send_signal(signal.SIGTERM)
        monitor.wait()
        end_all(load)
        load.wait()
    (OUT / "h200_metrics.prom").write_text(text)
    table.say("Prometheus page of a busy GPU", f"{len(text.splitlines())} lines", "has the GPU", "gpufl_gpu_up{" in text)


STEPS = {"agree": agree, "rates": rates, "cost": cost, "page": page}
table.run_steps(STEPS, os.environ.get("STEPS", ",".join(STEPS)).split(","))
