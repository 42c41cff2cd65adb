#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the handmade sessions of tests/golden: small logs with known numbers.

usage: make_sessions.py   (rewrites <case>/*.log beside this file)
Each case's expected report is <case>.txt, and for some <case>.json: see tests/unit/test_golden_reports.c.
"""
import json
import pathlib
import shutil

HERE = pathlib.Path(__file__).parent
T0 = 1_789_000_000_000_000_000  # 2026-09-10 00:26:40 UTC
US, MS, S = 1_000, 1_000_000, 1_000_000_000


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 & -(crc & 1))
    return crc ^ 0xFFFFFFFF


class Session:
    def __init__(self, case, app="train.py", is_v1=False):
        self.dir = HERE / case
        self.is_v1 = is_v1
        self.id = "0192f300-0000-7000-8000-%012x" % (sum(case.encode()))
        self.app = app
        self.lines = {}
        shutil.rmtree(self.dir, ignore_errors=True)

    def add(self, channel, record):
        lines = self.lines.setdefault(channel, [])
        text = json.dumps(record, separators=(",", ":"), ensure_ascii=False)
        if not self.is_v1:
            text = text[:-1] + ',"seq":%d' % (len(lines) + 1)
            text += ',"crc":"%08x"}' % crc32c(text.encode("utf-8", "surrogatepass"))
        lines.append(text + "\n")

    def event(self, channel, type_, **fields):
        self.add(channel, {"version": 1, "type": type_, "session_id": self.id, **fields})

    def batch(self, channel, type_, columns, rows, base=T0, version=1):
        self.add(channel, {"version": version, "type": type_, "session_id": self.id, "batch_id": 1,
                           "base_time_ns": base, "columns": columns.split(), "rows": rows})

    def start(self, engine="nvidia.trace", channels=("system", "scope", "device"), gpus=None, **more):
        gpus = gpus or [{"id": 0, "name": "NVIDIA H200", "uuid": "GPU-0", "vendor": "NVIDIA"}]
        for channel in channels:
            self.event(channel, "job_start", pid=4711, app=self.app, log_path="logs", ts_ns=T0, hostname="node17",
                       ip_addr="10.0.0.17", devices=gpus, session_kind="trace", profiling_engine=engine, **more)

    def end(self, at, **more):
        for channel in list(self.lines):
            self.event(channel, "shutdown", pid=4711, app=self.app, ts_ns=T0 + at, **more)

    def write(self, torn=None):
        folder = self.dir / ".tmp" if self.is_v1 else self.dir
        folder.mkdir(parents=True)
        for channel, lines in self.lines.items():
            text = "".join(lines)
            if channel == torn:
                text = text[: -len(lines[-1]) // 2]
            (folder / (channel + ".log")).write_text(text, encoding="utf-8", errors="surrogatepass", newline="")


KERNEL = ("dt_ns kernel_id stream_id duration_ns corr_id dyn_shared num_regs has_details external_kind external_id "
          "device_id context_id launch_id api_lead_ns api_duration_ns thread_id scope_id")
LAUNCH = ("launch_id kernel_id device_id grid_x grid_y grid_z block_x block_y block_z cluster_x cluster_y cluster_z "
          "num_regs static_shared dyn_shared shared_executed local_per_thread local_total cache_config occupancy_bp "
          "occupancy_regs_bp occupancy_shared_bp occupancy_warps_bp occupancy_blocks_bp active_blocks_max limiter")
COPY = ("dt_ns stream_id duration_ns bytes copy_kind corr_id device_id context_id src_kind dst_kind is_async "
        "src_device_id dst_device_id api_lead_ns api_duration_ns thread_id scope_id")
MEMSET = ("dt_ns stream_id duration_ns bytes value memory_kind corr_id device_id context_id api_lead_ns "
          "api_duration_ns thread_id scope_id")
SCOPE = ("dt_ns scope_instance_id name_id event_type depth repeat warmup original_start_ns thread_id parent_id tag_id "
         "source")
SYNC = "dt_ns duration_ns sync_type stream_id event_id context_id corr_id function_id thread_id scope_id"
ALLOC = ("dt_ns duration_ns memory_op memory_kind address bytes device_id stream_id corr_id context_id is_async "
         "thread_id scope_id")
GRAPH = ("dt_ns duration_ns graph_id node_count busy_ns corr_id device_id context_id stream_id api_lead_ns "
         "api_duration_ns thread_id scope_id")
METRIC = ("dt_ns device_id gpu_util mem_util temp_c power_mw used_mib total_mib clock_sm energy_uj throttle_reasons")
PROCESS = "dt_ns device_id pid used_mib gpu_instance_id"
HOST = "dt_ns cpu_pct_x100 ram_used_mib ram_total_mib process_cpu_pct_x100 process_rss_mib"


def kernel(at, kernel_id, duration, launch=0, stream=7, lead=5 * US, call=4 * US, scope=0, device=0, corr=1):
    return [at, kernel_id, stream, duration, corr, 0, 32, 0, 0, 0, device, 1, launch, lead, call, 100, scope]


def launch(id_, kernel_id, grid, block, regs, bp, limiter, local=0):
    return [id_, kernel_id, 0, grid, 1, 1, block, 1, 1, 0, 0, 0, regs, 0, 0, 0, local, 0, 0, bp, bp, 10000, 10000,
            10000, 4, limiter]


def limits(session, uuid="GPU-0"):
    session.event("device", "device_limits", device_id=0, name="NVIDIA H200", uuid=uuid, compute_major=9,
                  compute_minor=0, multiprocessors=132, warp_size=32)


def trace():
    s = Session("trace")
    s.start(driver_version="580.159", cuda_driver_version=13000, gpufl_version="1.0.0", command="python train.py")
    s.event("system", "capture_capabilities", ts_ns=T0, requested_engine="Trace", selected_engine="Trace",
            capabilities=[{"feature": "kernel_events", "requested": True, "status": "collected", "mode": "activity",
                           "reason_code": "", "message": ""}])
    limits(s)
    s.event("device", "dictionary_update", kernel_dict={
        "1": "void cutlass::gemm_bf16_128x128x64<float, cutlass::layout::RowMajor>(cutlass::Params)",
        "2": "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor>(int, float*)", "3": "reduce"})
    s.event("scope", "dictionary_update", scope_name_dict={"1": "epoch", "2": "epoch|forward", "3": "epoch|backward"},
            tag_dict={"1": "bf16"}, function_dict={"1": "main@train.py:10|step@train.py:88"})
    s.batch("scope", "scope_event_batch", SCOPE, [
        [10 * MS, 1, 1, 0, 0, 0, 0, T0 + 10 * MS, 100, 0, 0, 0],
        [11 * MS, 2, 2, 0, 1, 0, 0, T0 + 11 * MS, 100, 1, 1, 0],
        [40 * MS, 2, 2, 1, 1, 0, 0, T0 + 11 * MS, 100, 1, 1, 0],
        [41 * MS, 3, 3, 0, 1, 0, 0, T0 + 41 * MS, 100, 1, 0, 0],
        [80 * MS, 3, 3, 1, 1, 0, 0, T0 + 41 * MS, 100, 1, 0, 0],
        [90 * MS, 1, 1, 1, 0, 0, 0, T0 + 10 * MS, 100, 0, 0, 0]], version=3)
    s.batch("scope", "synchronization_event_batch", SYNC, [
        [70 * MS, 12 * MS, 3, 7, None, 1, 900, 1, 100, 3], [85 * MS, 50 * US, 4, None, None, 1, 901, 0, 100, 1]])
    s.batch("device", "launch_config_batch", LAUNCH, [
        launch(1, 1, 1024, 256, 168, 1250, 1, local=64), launch(2, 2, 4096, 128, 32, 10000, 3),
        launch(3, 3, 16, 256, 40, 7500, 2)])
    rows = [kernel(12 * MS + i * 2 * MS, 1, 1500 * US + i * 10 * US, 1, scope=2, corr=10 + i) for i in range(10)]
    rows += [kernel(42 * MS + i * 2 * MS, 1, 1600 * US, 1, scope=3, corr=30 + i) for i in range(10)]
    rows += [kernel(42 * MS + i * 100 * US, 2, 20 * US, 2, stream=13, scope=3, corr=50 + i) for i in range(40)]
    rows += [kernel(82 * MS, 3, 3 * MS, 3, scope=1, corr=99), kernel(95 * MS, 3, 1 * MS, 3, corr=100)]
    s.batch("device", "kernel_event_batch", KERNEL, rows)
    s.batch("device", "memcpy_event_batch", COPY, [
        [11 * MS, 7, 900 * US, 24_000_000, 1, 1, 0, 1, 2, 3, 1, None, None, 10 * US, 5 * US, 100, 2],
        [62 * MS, 7, 5 * MS, 20_000_000, 2, 2, 0, 1, 3, 1, 0, None, None, 10 * US, 5 * MS, 100, 3]])
    s.batch("device", "memset_event_batch", MEMSET,
            [[11_950 * US, 7, 10 * US, 1_000_000, 0, 3, 3, 0, 1, 5 * US, 3 * US, 100, 2]])
    s.batch("scope", "memory_alloc_event_batch", ALLOC, [
        [1 * MS, 300 * US, 1, 3, 4096, 64 << 20, 0, None, 5, 1, 0, 100, 0],
        [2 * MS, 200 * US, 1, 3, 1 << 30, 16 << 20, 0, None, 6, 1, 0, 100, 0],
        [92 * MS, 100 * US, 2, 3, 4096, 64 << 20, 0, None, 7, 1, 0, 100, 0]])
    s.batch("device", "graph_launch_batch", GRAPH,
            [[42 * MS + i * MS, 400 * US, 3, 40, 300 * US, 8, 0, 1, 13, 6 * US, 4 * US, 100, 3] for i in range(4)])
    s.batch("system", "device_metric_batch", METRIC,
            [[i * 10 * MS, 0, 50 + 5 * i, 20, 55 + i, 400_000 + i * 20_000, 90_000, 143_000, 1905, 10**9 + i * 5 * 10**6,
              4 if i > 7 else 0] for i in range(10)])
    s.batch("system", "host_metric_batch", HOST, [[i * 10 * MS, 1200, 120_000, 515_000, 10_050, 8_200]
                                                  for i in range(10)])
    s.event("system", "overhead", ts_ns=T0 + 100 * MS, wall_ns=100 * MS, collector_cpu_ns=60 * US,
            sampler_cpu_ns=20 * US, seal_cpu_ns=10 * US, flush_ns=0, cupti_ns=310 * US, cupti={"kernel": 310 * US},
            memory_bytes=9 << 20, memory_peak_bytes=12 << 20, scopes=3, launches=62)
    s.end(100 * MS, rows={"kernel_event_batch": 62}, lost={}, cupti_dropped=0)
    s.write()


def launch_bound():
    s = Session("launch_bound", app="loop")
    s.start()
    limits(s)
    s.event("device", "dictionary_update", kernel_dict={"1": "tiny_add"})
    s.event("scope", "dictionary_update", scope_name_dict={"1": "train", "2": "train|forward"})
    s.batch("scope", "scope_event_batch", SCOPE, [
        [1 * MS, 1, 1, 0, 0, 0, 0, T0 + 1 * MS, 100, 0, 0, 0], [1 * MS, 2, 2, 0, 1, 0, 0, T0 + 1 * MS, 100, 1, 0, 0],
        [9 * MS, 2, 2, 1, 1, 0, 0, T0 + 1 * MS, 100, 1, 0, 0], [9 * MS, 1, 1, 1, 0, 0, 0, T0 + 1 * MS, 100, 0, 0, 0]],
        version=3)
    # 3 us kernels every 10 us: each call starts 5 us before its kernel, 2 us after the one before ended.
    s.batch("device", "kernel_event_batch", KERNEL, [kernel(1 * MS + i * 10 * US, 1, 3 * US, scope=2, corr=i)
                                                     for i in range(800)])
    s.end(10 * MS)
    s.write()


def monitor():
    s = Session("monitor", app="gpufl-monitor")
    s.start(engine="nvidia.none", channels=("system",), driver_version="580.159")
    s.batch("system", "device_metric_batch", METRIC,
            [[i * S, 0, 80, 40, 61, 512_000, 90_214, 143_155, 1905, 5 * 10**9 + i * 512 * 10**6, 0] for i in range(60)])
    s.batch("system", "process_metric_batch", "dt_ns device_id pid used_mib",
            [row for i in range(3) for row in ([i * S, 0, 900, 2_048], [i * S, 0, 901, 80_000 + 1_000 * i], [i * S, 0, 902, None])])
    s.batch("system", "host_metric_batch", HOST.rsplit(" ", 2)[0], [[i * S, 2300, 64_000, 515_000] for i in range(60)])
    s.event("system", "overhead", ts_ns=T0 + 60 * S, wall_ns=60 * S, collector_cpu_ns=None, sampler_cpu_ns=30 * MS,
            seal_cpu_ns=0, flush_ns=None, cupti_ns=None, cupti={}, memory_bytes=None, memory_peak_bytes=None)
    s.end(60 * S)
    s.write()


def killed():
    s = Session("killed", app="a.out")
    s.start()
    s.event("device", "dictionary_update", kernel_dict={"1": "saxpy"})
    s.event("scope", "dictionary_update", scope_name_dict={"1": "solve"})
    s.batch("scope", "scope_event_batch", SCOPE, [[1 * MS, 1, 1, 0, 0, 0, 0, T0 + 1 * MS, 100, 0, 0, 0]], version=3)
    s.batch("device", "kernel_event_batch", KERNEL, [kernel(2 * MS + i * 200 * US, 1, 150 * US, scope=1)
                                                     for i in range(20)])
    s.event("system", "loss", ts_ns=T0 + 4 * MS, reason="buffer_pool_empty", record_type="kernel_event_batch",
            count=512, message="CUPTI asked for a buffer and there was none")
    s.event("system", "loss", ts_ns=T0 + 5 * MS, reason="buffer_pool_empty", record_type="kernel_event_batch",
            count=88, message="CUPTI asked for a buffer and there was none")
    s.event("system", "loss", ts_ns=T0 + 5 * MS, reason="disk_full", record_type="memcpy_event_batch", count=None,
            message="No space left on device")
    s.batch("device", "kernel_event_batch", KERNEL, [kernel(7 * MS + i * 200 * US, 1, 150 * US, scope=1)
                                                     for i in range(20)])
    s.write(torn="device")


def v1():
    s = Session("v1", app="matmul", is_v1=True)
    s.start(cuda_static_devices=[{"id": 0, "name": "NVIDIA H200", "uuid": "GPU-0", "vendor": "NVIDIA",
                                  "compute_major": 9, "compute_minor": 0, "multi_processor_count": 132}])
    s.event("device", "dictionary_update", kernel_dict={"1": "matmul(float*, float*, float*)", "2": "bias"})
    s.event("scope", "dictionary_update", scope_name_dict={"1": "step"})
    s.batch("scope", "scope_event_batch",
            "dt_ns scope_instance_id name_id event_type depth repeat warmup original_start_ns",
            [[1 * MS, 1, 1, 0, 0, 0, 0, T0 + 1 * MS], [9 * MS, 1, 1, 1, 0, 0, 0, T0 + 1 * MS]], version=3)
    s.batch("device", "kernel_event_batch", KERNEL.split(" device_id")[0],
            [[2 * MS + i * MS, 1 + i % 2, 7, 400 * US, 10 + i, 0, 40, 1, 0, 0] for i in range(6)])
    for i in range(6):
        s.event("device", "kernel_detail", pid=4711, app="matmul", corr_id=10 + i, grid="(64,64,1)", block="(16,16,1)",
                static_shared=2048, local_bytes=0, const_bytes=0, occupancy=0.75, reg_occupancy=0.75, smem_occupancy=1.0,
                warp_occupancy=1.0, block_occupancy=1.0, limiting_resource="registers", max_active_blocks=6,
                local_mem_total_bytes=0, local_mem_per_thread_bytes=0, cache_config_requested=0,
                cache_config_executed=0, shared_mem_executed_bytes=16384, user_scope="step|gemm" if i < 4 else "",
                stack_trace="")
    s.batch("device", "memcpy_event_batch", "dt_ns stream_id duration_ns bytes copy_kind corr_id",
            [[1500 * US, 7, 300 * US, 4_000_000, 1, 5]])
    s.add("device", {"type": "memset_event", "pid": 4711, "app": "matmul", "session_id": s.id, "name": "memset",
                     "platform": "cuda", "device_id": "0", "stream_id": "7", "stack_trace": "", "user_scope": "",
                     "scope_depth": 0, "start_ns": T0 + 1850 * US, "end_ns": T0 + 1900 * US, "api_start_ns": T0 + 1810 * US,
                     "api_exit_ns": T0 + 1815 * US, "corr_id": 6, "bytes": 4096})
    s.add("scope", {"type": "nvtx_marker_event", "pid": 4711, "app": "matmul", "session_id": s.id, "name": "warm-up",
                    "domain": "", "start_ns": T0 + 100 * US, "end_ns": T0 + 900 * US, "duration_ns": 800 * US,
                    "marker_id": 1})
    s.add("scope", {"type": "graph_launch_event", "pid": 4711, "app": "matmul", "session_id": s.id,
                    "start_ns": T0 + 6 * MS, "end_ns": T0 + 7 * MS, "duration_ns": MS, "graph_id": 4, "device_id": 0,
                    "stream_id": 7, "corr_id": 14})
    s.batch("scope", "synchronization_event_batch",
            "dt_ns duration_ns sync_type stream_id event_id context_id corr_id function_id",
            [[8 * MS, 500 * US, 4, 0, 0, 1, 20, 0]])
    s.batch("system", "device_metric_batch", "dt_ns device_id gpu_util mem_util temp_c power_mw used_mib total_mib clock_sm",
            [[0, 0, 10, 1, 40, 90_000, 900, 143_155, 345], [5 * MS, 0, 90, 30, 44, 300_000, 1200, 143_155, 1980]])
    for channel in s.lines:
        s.add(channel, {"type": "shutdown", "pid": 4711, "app": "matmul", "session_id": s.id, "ts_ns": T0 + 10 * MS})
    s.write()


def empty():
    s = Session("empty", app="true")
    s.start(channels=("system",))
    s.end(5 * MS)
    s.write()


def bench():
    s = Session("bench", app="bench")
    s.start()
    limits(s)
    s.event("device", "dictionary_update", kernel_dict={"1": "sort_keys", "2": "scan"})
    s.event("scope", "dictionary_update", scope_name_dict={"1": "sort 1M", "2": "scan 1M"})
    s.batch("scope", "scope_event_batch", SCOPE, [
        [10 * MS, 1, 1, 0, 0, 10, 3, T0 + 10 * MS, 100, 0, 0, 0],
        [22_300 * US, 1, 1, 1, 0, 10, 3, T0 + 10 * MS, 100, 0, 0, 0],
        [30 * MS, 2, 2, 0, 0, 20, 0, T0 + 30 * MS, 100, 0, 0, 0],
        [38 * MS, 2, 2, 1, 0, 20, 0, T0 + 30 * MS, 100, 0, 0, 0]], version=3)
    s.batch("device", "kernel_event_batch", KERNEL,
            [kernel(5 * MS + i * 1200 * US, 1, 1 * MS) for i in range(3)] +
            [kernel(10_100 * US + i * 1200 * US, 1, 1 * MS, scope=1) for i in range(10)] +
            [kernel(30_010 * US + i * 390 * US, 2, 300 * US, scope=2) for i in range(20)])
    s.end(50 * MS)
    s.write()


def degraded():
    s = Session("degraded", app="train.py")
    s.start(engine="nvidia.trace", channels=("system",))
    s.event("system", "capture_capabilities", ts_ns=T0, requested_engine="Trace", selected_engine="Monitor",
            capabilities=[{"feature": "kernel_events", "requested": True, "status": "skipped", "mode": "activity",
                           "reason_code": "another_profiler", "message": "another profiler (nsys, pid 99) owns CUPTI"}])
    s.batch("system", "device_metric_batch", METRIC, [[0, 0, None, None, 30, None, 10, 143_155, None, None, None]])
    s.event("system", "clock_sync", ts_ns=T0 + 1 * MS, mono_ns=1, ticks=1, tick_hz=1, cupti_ns=None, wall_step_ns=-2 * S)
    s.end(2 * MS, synthetic=True, exit_code=None, signaled=True, signal=9, crashed=True)
    s.write()


def refused():
    """The engine ran, two things that were asked for did not."""
    s = Session("refused", app="train.py")
    s.start()
    s.event("system", "capture_capabilities", ts_ns=T0, requested_engine="Trace", selected_engine="Trace",
            capabilities=[{"feature": feature, "requested": True, "status": status, "mode": "", "reason_code": "",
                           "message": message} for feature, status, message in (
                               ("kernel_events", "collected", ""),
                               ("memory_activity", "skipped", "cuptiActivityEnable failed: \x1b[31mno memory records"),
                               ("pm_sampling", "skipped", "the program ended before the first sample"))])
    s.event("device", "dictionary_update", kernel_dict={"1": "gemm"})
    s.batch("device", "kernel_event_batch", KERNEL, [kernel(1 * MS, 1, 500 * US)])
    s.end(2 * MS)
    s.write()


def sync_loop():
    s = Session("sync_loop", app="loop")
    s.start()
    s.event("device", "dictionary_update", kernel_dict={"1": "step"})
    s.event("scope", "dictionary_update", scope_name_dict={"1": "loop"})
    s.batch("scope", "scope_event_batch", SCOPE, [[0, 1, 1, 0, 0, 0, 0, T0, 100, 0, 0, 0],
                                                  [20 * MS, 1, 1, 1, 0, 0, 0, T0, 100, 0, 0, 0]], version=3)
    # 20 us kernels every 100 us; the wait returns 10 us after its kernel, the next call comes 15 us before the next.
    s.batch("device", "kernel_event_batch", KERNEL, [kernel(50 * US + i * 100 * US, 1, 20 * US, lead=15 * US, scope=1)
                                                     for i in range(199)])
    s.batch("scope", "synchronization_event_batch", SYNC,
            [[40 * US + i * 100 * US, 40 * US, 4, None, None, 1, i, 0, 100, 1] for i in range(199)])
    s.end(20 * MS)
    s.write()


def two_gpus():
    s = Session("two_gpus", app="ddp")
    s.start()
    for device in (0, 1):
        s.event("device", "device_limits", device_id=device, name="NVIDIA H200", uuid="GPU-%d" % device,
                compute_major=9, compute_minor=0, multiprocessors=132, warp_size=32)
    s.event("device", "dictionary_update", kernel_dict={"1": "allreduce", "2": "gemm"})
    # GPU 0 works back to back from queued launches; GPU 1 has every second call in flight only.
    s.batch("device", "kernel_event_batch", KERNEL,
            [kernel(1 * MS + i * 1 * MS, 2, 990 * US, lead=(i + 1) * 900 * US) for i in range(8)] +
            [kernel(1 * MS + i * 2 * MS, 1, 1 * MS, device=1, lead=950 * US, call=900 * US) for i in range(4)])
    s.batch("scope", "synchronization_event_batch", SYNC, [[8_500 * US, 490 * US, 3, 7, None, 1, 1, 0, 100, 0],
                                                           [1 * MS, 7 * MS, 2, 7, 3, 1, 2, 0, None, 0]])
    s.end(10 * MS)
    s.write()


def masked_gpu():
    """CUDA_VISIBLE_DEVICES=1: NVML's GPU 0 is idle, NVML's GPU 1 is CUDA's GPU 0 and works."""
    s = Session("masked_gpu", app="rank1")
    idle = {"id": 0, "name": "NVIDIA A100", "uuid": "GPU-A", "vendor": "NVIDIA"}
    busy = {"id": 1, "name": "NVIDIA H200", "uuid": "GPU-B", "vendor": "NVIDIA"}
    s.start(gpus=[idle, busy])
    limits(s, uuid="GPU-B")
    s.event("device", "dictionary_update", kernel_dict={"1": "gemm"})
    s.batch("device", "kernel_event_batch", KERNEL,
            [kernel(1 * MS + i * 1 * MS, 1, 990 * US, corr=i + 1) for i in range(8)])
    s.batch("system", "device_metric_batch", METRIC,
            [row for i in range(3) for row in
             ([i * 5 * MS, 0, 0, 0, 30, 60_000, 10, 81_920, 210, 10**9 + i * 300_000, 1],
              [i * 5 * MS, 1, 99, 50, 70, 690_000, 9_000, 143_155, 1980, 2 * 10**9 + i * 3_450_000, 0])])
    s.batch("system", "process_metric_batch", PROCESS,
            [[0, 0, 99, 5, None], [0, 1, 4711, 8_990, None]])
    s.end(10 * MS)
    s.write()


def hostile():
    s = Session("hostile", app="evil\x1b[31m\x07")
    s.start(channels=("system", "scope", "device"), driver_version="1\x9b2J")
    s.event("device", "dictionary_update", kernel_dict={
        "1": "\x1b]0;owned\x07kernel", "2": "a\nb\tc\rd", "3": "\u202egnp.exe\u202c", "4": "名前" * 40,
        "5": "x" * 5000, "6": "", "7": "%s%n%d"})
    s.event("scope", "dictionary_update", scope_name_dict={"1": "\x1b[2J|in\x00ner", "2": "|" * 20},
            tag_dict={"1": "\x1b[5m"})
    s.batch("scope", "scope_event_batch", SCOPE, [
        [1 * MS, 1, 1, 0, 1, 0, 0, T0, 100, 77, 1, 0], [2 * MS, 2, 2, 0, 0, 0, 0, T0, 100, 2, 0, 9],
        [1 * MS, 3, 9999, 0, 0, 4294967295, 0, T0, 100, 0, 0, 0], [0, 3, 9999, 1, 0, 0, 0, T0, 100, 0, 0, 0],
        [3 * MS, 0, 1, 0, 0, 0, 0, T0, 100, 0, 0, 0], [4 * MS, 4, 1, 200, 0, 0, 0, T0, 100, 0, 0, 0]], version=3)
    rows = [kernel(2 * MS + i * 100 * US, 1 + i % 9, 50 * US, launch=i * 1000, scope=i % 4) for i in range(27)]
    rows += [kernel(5 * MS, 4_000_000_000, 10 * US), kernel(6 * MS, 1, -5), kernel(-2 * T0, 1, 5),
             kernel(6 * MS, 7, 9_223_372_036_854_775_807), kernel(7 * MS, 7, 1 * US, lead=-9_223_372_036_854_775_000),
             kernel(8 * MS, 7, 1 * US, lead=9_000_000_000_000_000_000, call=9_000_000_000_000_000_000)]
    s.batch("device", "kernel_event_batch", KERNEL, rows)
    s.batch("device", "memcpy_event_batch", COPY, [[3 * MS, 7, 0, 18_446_744_073_709_551_615, 200, 1, 0, 1, 99, 99, 1,
                                                    None, None, None, None, None, 0]])
    s.event("system", "loss", ts_ns=T0, reason="\x1b[1mgone", record_type="x\ny", count=9_223_372_036_854_775_807,
            message="\u202e")
    s.event("system", "loss", ts_ns=T0, reason="\x1b[1mgone", record_type="x\ny", count=9_223_372_036_854_775_807,
            message="\u202e", cause="<b>\x1b[2J\"cuptiX\" failed\u202e\n")
    s.end(10 * MS)
    s.write()


def steps():
    """12 steps: the first two are warm-up, the eighth waits for its data; each forward has a tag."""
    s = Session("training_steps")
    s.start()
    s.event("device", "dictionary_update", kernel_dict={
        "1": "ampere_sgemm_128x64_nn", "2": "void softmax_warp_forward<float, float, float, 5, false, false>(float*)",
        "3": "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"})
    s.event("scope", "dictionary_update",
            scope_name_dict={"1": "step", "2": "step|load", "3": "step|forward", "4": "init", "5": "step|save"},
            tag_dict={str(i + 1): "batch_%d" % (i + 40) for i in range(12)} | {"20": "fp32", "21": "bf16"})
    scopes = [[0, 1, 4, 0, 0, 0, 0, 0, 100, 0, 0, 0], [5 * MS, 1, 4, 1, 0, 0, 0, 0, 100, 0, 0, 0]]
    kernels, at, scope = [], 10 * MS, 1
    for i in range(12):
        begin, load = at, 12 * MS if i == 7 else 1 * MS
        compute = 20 * MS if i < 2 else 6 * MS
        step = scope + 1
        scopes += [[begin, step, 1, 0, 0, 0, 0, 0, 100, 0, 0, 0],
                   [begin, step + 1, 2, 0, 1, 0, 0, 0, 100, step, 0, 0],
                   [begin + load, step + 1, 2, 1, 1, 0, 0, 0, 100, step, 0, 0],
                   [begin + load, step + 2, 3, 0, 1, 0, 0, 0, 100, step, i + 1, 0],
                   [begin + load + compute, step + 2, 3, 1, 1, 0, 0, 0, 100, step, i + 1, 0],
                   [begin + load + compute, step + 3, 5, 0, 1, 0, 0, 0, 100, step, 20 + i % 2, 0],
                   [begin + load + compute + 100 * US, step + 3, 5, 1, 1, 0, 0, 0, 100, step, 20 + i % 2, 0],
                   [begin + load + compute + 200 * US, step, 1, 1, 0, 0, 0, 0, 100, 0, 0, 0]]
        first = begin + load + 100 * US
        kernels += [kernel(first + k * 1400 * US, 2 if k == 2 else 3 if k == 3 else 1, 1200 * US, scope=step + 2,
                           corr=4 * i + k) for k in range(4)]
        scope += 4
        at += load + compute + 500 * US
    s.batch("scope", "scope_event_batch", SCOPE, scopes, version=3)
    s.batch("device", "kernel_event_batch", KERNEL, kernels)
    s.end(at + 10 * MS)
    s.write()


if __name__ == "__main__":
    for make in (trace, launch_bound, monitor, killed, v1, empty, bench, two_gpus, masked_gpu, degraded, refused,
                 sync_loop, hostile, steps):
        make()
