#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the handmade sessions of the deep engines: stalls, counters, metrics and code with known numbers.

usage: make_deep_sessions.py   (rewrites <case>/*.log beside this file; see make_sessions.py)
The code is that of tests/recordings/cubins and tests/recordings/code_objects.
"""
import base64
import pathlib

from make_sessions import KERNEL, LAUNCH, MS, SCOPE, T0, US, Session, kernel, launch, limits

RECORDINGS = pathlib.Path(__file__).parent.parent / "recordings"
CUBINS, CODE_OBJECTS = RECORDINGS / "cubins", RECORDINGS / "code_objects"
VECTOR_ADD, REDUCTION, INLINED = 0x1F00AA01, 0xFFFFFFFF00000002, 303  # the second does not fit an i64
PATH = "/tmp/gpufl-cubins/"  # as the line tables say
ADD, REDUCE, DISTANCES = 1, 2, 3  # function_dict

SAMPLE = ("dt_ns corr_id device_id function_id pc_offset metric_id metric_value stall_reason sample_kind scope_name_id "
          "source_file_id source_line cubin_crc context_id interval_ns instances confidence_bp scope_id window_id")
LAUNCHED = "dt_ns kernel_id corr_id context_id thread_id scope_id window_id"
PM = "sample_index dt_ns device_id metric_id value scope_name_id"
STALLS = ("long_scoreboard wait selected not_selected barrier short_scoreboard math_pipe_throttle lg_throttle "
          "branch_resolving fresh_reason").split()
COUNTERS = ["smsp__sass_" + name for name in (
    "inst_executed thread_inst_executed_pred_on branch_targets_threads_divergent branch_targets_threads_uniform "
    "sectors_mem_global sectors_mem_global_ideal l1tex_pipe_lsu_wavefronts_mem_shared "
    "l1tex_pipe_lsu_wavefronts_mem_shared_ideal sectors_mem_local inst_executed_op_texture").split()]
EXECUTED, THREADS, DIVERGENT, UNIFORM, SECTORS, IDEAL, PASSES, PASSES_IDEAL, LOCAL, TEXTURE = range(101, 111)


def packed(data):
    """zstd with one raw block, in base64: no compressor is needed to write the golden files."""
    assert len(data) < 1 << 17
    frame = bytes.fromhex("28b52ffda0") + len(data).to_bytes(4, "little")
    frame += (len(data) << 3 | 1).to_bytes(3, "little") + data
    return base64.b64encode(frame).decode()


def code_object(s, crc, name, data=None, size=None, folder=CUBINS, source="cupti", arch="sm_90"):
    content = (folder / name).read_bytes()
    s.event("sass", "code_object", ts_ns=T0, cubin_crc=str(crc), crc_source=source, arch=arch,
            bytes=len(content) if size is None else size, function_count=1, encoding="zstd+base64",
            data=packed(content) if data is None else data)


def source(s, name, folder=CUBINS, path=PATH):
    s.event("sass", "source_file_content", source_file_id=0, path=path + name,
            lines=(folder / name).read_text().splitlines())


def names(s):
    s.event("device", "dictionary_update", kernel_dict={
        "1": "vector_add", "2": "void reduce<256>(float const*, float*, int)",
        "3": "distances(float const*, float const*, float*, int)"})
    metrics = {str(1 + i): "smsp__pcsamp_warps_issue_stalled_" + name for i, name in enumerate(STALLS)}
    metrics.update({str(51 + i): "smsp__pcsamp_warps_issue_stalled_" + name + "_not_issued"
                    for i, name in enumerate(STALLS)})
    metrics.update({str(101 + i): name for i, name in enumerate(COUNTERS)})
    s.event("scope", "dictionary_update", scope_name_dict={"1": "step", "2": "step|add", "3": "step|reduce"},
            function_dict={"1": "vector_add", "2": "void reduce<256>(float const*, float*, int)",
                           "3": "distances(float const*, float const*, float*, int)"},
            func_symbol_dict={"1": "vector_add", "2": "_Z6reduceILi256EEvPKfPfi", "3": "_Z9distancesPKfS0_Pfi"},
            metric_dict=metrics)


def sample(function, pc, stall, count, crc, scope=0, confidence=10000, at=20 * MS, window=0, name=0):
    metric = 1 + STALLS.index(stall.removesuffix("_not_issued")) + (50 if stall.endswith("_not_issued") else 0)
    return [at, 0, 0, function, pc, metric, count, metric, 0, name, 0, 0, crc, 1, 20 * MS,
            None if confidence is None else 1 if confidence == 10000 else 3, confidence, scope, window]


def counts(function, crc, table, window=1):
    """table: {pc: {metric: value}}"""
    return [[30 * MS, 0, 0, function, pc, metric, value, 0, 1, 0, 0, 0, crc, 1, 5 * MS, None, None, 0, window]
            for pc, row in table.items() for metric, value in row.items()]


def scopes(s):
    s.batch("scope", "scope_event_batch", SCOPE, [
        [1 * MS, 1, 1, 0, 0, 0, 0, T0 + 1 * MS, 100, 0, 0, 0],
        [2 * MS, 2, 2, 0, 1, 0, 0, T0 + 2 * MS, 100, 1, 0, 0],
        [50 * MS, 2, 2, 1, 1, 0, 0, T0 + 2 * MS, 100, 1, 0, 0],
        [51 * MS, 3, 3, 0, 1, 0, 0, T0 + 51 * MS, 100, 1, 0, 0],
        [98 * MS, 3, 3, 1, 1, 0, 0, T0 + 51 * MS, 100, 1, 0, 0],
        [99 * MS, 1, 1, 1, 0, 0, 0, T0 + 1 * MS, 100, 0, 0, 0]], version=3)


def kernels(s):
    limits(s)
    s.batch("device", "launch_config_batch", LAUNCH, [launch(1, 1, 4096, 256, 16, 10000, 3),
                                                      launch(2, 2, 264, 256, 24, 10000, 3)])
    s.batch("device", "kernel_event_batch", KERNEL,
            [kernel((3 + i * 2) * MS, 1, 1500 * US, 1, scope=2, corr=10 + i) for i in range(20)] +
            [kernel((52 + i * 4) * MS, 2, 3 * MS, 2, scope=3, corr=40 + i) for i in range(10)])


def capabilities(s, requested, selected, **features):
    s.event("system", "capture_capabilities", ts_ns=T0, requested_engine=requested, selected_engine=selected,
            capabilities=[{"feature": name, "requested": True, "status": status, "mode": "", "reason_code": "",
                           "message": message} for name, (status, message) in features.items()])


def add_samples(window=0):
    return [
        sample(ADD, 0xE0, "long_scoreboard", 30_000, VECTOR_ADD, scope=2, window=window),
        sample(ADD, 0xE0, "long_scoreboard", 12_000, VECTOR_ADD, scope=2, at=40 * MS, window=window),
        sample(ADD, 0xE0, "long_scoreboard_not_issued", 39_000, VECTOR_ADD, scope=2, window=window),
        sample(ADD, 0xE0, "selected", 900, VECTOR_ADD, scope=2, window=window),
        sample(ADD, 0x80, "wait", 1_500, VECTOR_ADD, scope=2, window=window),
        sample(ADD, 0x80, "not_selected", 300, VECTOR_ADD, scope=2, window=window),
        sample(ADD, 0x20, "wait", 700, VECTOR_ADD, scope=2, confidence=9000, window=window),
        sample(ADD, 0x20, "wait_not_issued", 650, VECTOR_ADD, scope=2, confidence=9000, window=window),
        sample(ADD, 0x60, "branch_resolving", 400, VECTOR_ADD, confidence=None, window=window),
    ]


def reduce_samples(window=0):
    return [
        sample(REDUCE, 0x110, "long_scoreboard", 6_000, REDUCTION, scope=3, confidence=6000, window=window),
        sample(REDUCE, 0x160, "barrier", 9_000, REDUCTION, name=3, confidence=6000, window=window),
        sample(REDUCE, 0x210, "barrier", 5_000, REDUCTION, name=3, confidence=6000, window=window),
        sample(REDUCE, 0x1F0, "short_scoreboard", 2_100, REDUCTION, name=3, window=window),
        sample(REDUCE, 0x1F0, "short_scoreboard_not_issued", 2_000, REDUCTION, name=3, window=window),
        sample(REDUCE, 0x1F0, "selected", 1_100, REDUCTION, name=3, window=window),
        sample(REDUCE, 0x200, "fresh_reason", 50, REDUCTION, name=3, window=window),
    ]


def reduce_listing(s):
    s.event("sass", "cubin_disassembly", cubin_crc=str(REDUCTION), function_name="_Z6reduceILi256EEvPKfPfi",
            tool="nvdisasm",
            entries=[{"pc": 0x110, "sass": "FADD R5, R2, R5"}, {"pc": 0x160, "sass": "BAR.SYNC.DEFER_BLOCKING 0x0"},
                     {"pc": 0x1F0, "sass": "FADD R0, R0, R3"}, {"pc": 0x200, "sass": "STS [R4], R0"},
                     {"pc": 0x210, "sass": "BAR.SYNC.DEFER_BLOCKING 0x0"}])


def sampling_config(s):
    s.event("scope", "pc_sampling_config", ts_ns=T0, device_id=0, context_id=1, mode="continuous",
            period_cycles=262_144, target_rate_hz=2000, hardware_buffer_bytes=32 << 20, stall_reasons={
                str(1 + i): "smsp__pcsamp_warps_issue_stalled_" + name for i, name in enumerate(STALLS)})


def pc_sampling():
    s = Session("pc_sampling", app="reduce")
    s.start(engine="nvidia.pc_sampling", channels=("system", "scope", "device", "sass"))
    capabilities(s, "PcSampling", "PcSampling", kernel_events=("collected", ""), pc_sampling=("collected", ""))
    names(s)
    scopes(s)
    kernels(s)
    sampling_config(s)
    s.batch("scope", "profile_sample_batch", SAMPLE, add_samples() + reduce_samples())
    code_object(s, VECTOR_ADD, "vector_add.sm_90.cubin")
    code_object(s, REDUCTION, "reduction.sm_90.cubin")
    reduce_listing(s)
    source(s, "vector_add.cu")
    source(s, "reduction.cu")
    s.event("system", "loss", ts_ns=T0 + 5 * MS, reason="pc_samples_dropped", record_type="profile_sample_batch",
            count=12, message="CUPTI dropped samples")
    s.end(100 * MS)
    s.write()


def add_counts():
    return counts(ADD, VECTOR_ADD, {
        0x20: {EXECUTED: 32_768, THREADS: 32_768 * 32, SECTORS: 0, IDEAL: 0},
        0x60: {EXECUTED: 32_768, THREADS: 32_768 * 32, DIVERGENT: 20_000, UNIFORM: 12_768},
        0xC0: {EXECUTED: 32_768, THREADS: 32_768 * 8, SECTORS: 524_288, IDEAL: 131_072},
        0xD0: {EXECUTED: 32_768, THREADS: 32_768 * 8, SECTORS: 524_288, IDEAL: 131_072},
        0xE0: {EXECUTED: 32_768, THREADS: 32_768 * 8, TEXTURE: 7}})


def reduce_counts():
    return counts(REDUCE, REDUCTION, {
        0x110: {EXECUTED: 40_000, THREADS: 40_000 * 32, SECTORS: 160_000, IDEAL: 160_000},
        0x1F0: {EXECUTED: 8_000, THREADS: 8_000 * 16, PASSES: 64_000, PASSES_IDEAL: 8_000},
        0x200: {EXECUTED: 8_000, THREADS: 8_000 * 16, PASSES: 8_000, PASSES_IDEAL: 8_000},
        0x2A0: {EXECUTED: 8_000, THREADS: 8_000 * 4, LOCAL: 120_000}}, window=2)


def window(s, id_, source_, start, end, launches, reason="deadline", scope=0):
    s.event("scope", "deep_window_event", pid=4711, app=s.app, name="", close_reason=reason, engines=[source_],
            start_ns=T0 + start, end_ns=T0 + end, duration_ns=end - start, launches_covered=launches,
            requested_duration_ms=5, requested_max_launches=0, window_id=id_, source=source_, scope_id=scope)


def sass_metrics():
    s = Session("sass_metrics", app="reduce")
    s.start(engine="nvidia.sass_metrics", channels=("system", "scope", "device", "sass"))
    capabilities(s, "SassMetrics", "SassMetrics", sass_metrics=("collected", ""))
    names(s)
    scopes(s)
    limits(s)
    s.event("device", "sass_config", ts_ns=T0, device_id=0, configured_metrics=COUNTERS, skipped_metrics=[
        "smsp__sass_sectors_mem_dsmem"], lazy_patching=True, mode="run")
    window(s, 1, "sass_metrics", 2 * MS, 50 * MS, 20, scope=2)
    window(s, 2, "sass_metrics", 51 * MS, 98 * MS, 10, scope=3)
    window(s, 3, "sass_metrics", 98 * MS, 99 * MS, 2, reason="counts_invalid")
    s.batch("scope", "profile_sample_batch", SAMPLE, add_counts() + reduce_counts())
    s.batch("device", "launch_event_batch", LAUNCHED,
            [[(3 + i * 2) * MS, 1, 10 + i, 1, 100, 2, 1] for i in range(20)] +
            [[(52 + i * 4) * MS, 2, 40 + i, 1, 100, 3, 2] for i in range(10)])
    code_object(s, VECTOR_ADD, "vector_add.sm_90.cubin")
    code_object(s, REDUCTION, "reduction.sm_90.cubin")
    s.event("sass", "cubin_disassembly", cubin_crc=str(VECTOR_ADD), function_name="vector_add", entries=[
        {"pc": 0xC0, "sass": "LDG.E R2, desc[UR4][R2.64]"}, {"pc": 0xD0, "sass": "LDG.E R4, desc[UR4][R4.64]"},
        {"pc": 0xE0, "sass": "FADD R9, R2, R5"}])
    source(s, "vector_add.cu")
    s.end(100 * MS)
    s.write()


def range_metrics():
    s = Session("range_metrics", app="gemm")
    s.start(engine="nvidia.range_profiler", channels=("system", "scope", "device"))
    capabilities(s, "RangeProfiler", "RangeProfiler", range_counters=("collected", ""))
    names(s)
    scopes(s)
    kernels(s)
    common = {"pid": 4711, "app": "gemm", "device_id": 0}
    for i in range(3):
        s.event("scope", "perf_metric_event", **common, name="add", start_ns=T0 + (2 + i) * MS,
                end_ns=T0 + (3 + i) * MS, sm_throughput_pct=12.5, l1_hit_rate_pct=-1, l2_hit_rate_pct=-1,
                dram_read_bytes=-1, dram_write_bytes=-1, tensor_active_pct=-1, user_scope="step|add",
                scope_depth=1, context_id=1, scope_id=2,
                metric_set="overview", passes_needed=2, passes_collected=2, instances=2, reason="", metrics={
                    "sm__throughput.avg.pct_of_peak_sustained_elapsed": 12.5 + i,
                    "dram__bytes_read.sum": 8.0e9, "smsp__inst_executed.sum": 163_840, "l1tex__t_sectors.sum": None})
    s.event("scope", "perf_metric_event", **common, name="reduce", start_ns=T0 + 51 * MS, end_ns=T0 + 98 * MS,
            sm_throughput_pct=-1, user_scope="step|reduce", scope_depth=1, context_id=1, scope_id=3,
            metric_set="overview", passes_needed=8, passes_collected=1, instances=1,
            reason="the scope ran 1 time; 8 passes are needed (use fewer metrics or run it more often)", metrics={})
    for i in range(4):
        s.event("device", "kernel_perf_metric_event", **common, range_index=i, range_name=str(i),
                kernel_name="vector_add", launch_ordinal=i, sm_throughput_pct=20.0, l1_hit_rate_pct=33.3,
                l2_hit_rate_pct=50.0,
                dram_read_bytes=4096, dram_write_bytes=2048, tensor_active_pct=-1, achieved_occupancy_pct=88.5,
                shared_bank_conflict_nway=-1)
    s.event("scope", "pm_sampling_config", ts_ns=T0, device_id=0, interval_us=1000, max_samples=1024, preset="overview",
            metrics=["sm__cycles_active.avg.pct_of_peak_sustained_elapsed"], hardware_buffer_bytes=32 << 20,
            trigger="gpu_time")
    s.event("scope", "dictionary_update", metric_dict={
        "200": "sm__cycles_active.avg.pct_of_peak_sustained_elapsed",
        "201": "dram__read_throughput.avg.pct_of_peak_sustained_elapsed"})
    s.batch("scope", "pm_sample_batch", PM, [[i, (2 + i + (20 if i > 29 else 0)) * MS, 0, 200 + k, value, 0]
                                             for i in range(60) for k, value in ((0, 50.0 + i % 10), (1, 5.0))])
    s.end(100 * MS)
    s.write()


def deep():
    s = Session("deep", app="train.py")
    s.start(engine="nvidia.deep", channels=("system", "scope", "device", "sass"))
    capabilities(s, "Deep", "Deep", pc_sampling=("collected", ""), sass_metrics=("collected", ""),
                 pm_sampling=("skipped", "PM sampling cannot run beside PC sampling"))
    names(s)
    scopes(s)
    kernels(s)
    sampling_config(s)
    window(s, 1, "sass_metrics", 45 * MS, 50 * MS, 2)
    window(s, 2, "sass_metrics", 95 * MS, 100 * MS, 1)
    for i in range(9):
        window(s, 3 + i, "pc_sampling", i * 10 * MS, (i + 1) * 10 * MS, 3)
    s.batch("scope", "profile_sample_batch", SAMPLE, add_samples(window=3) + reduce_samples(window=8) + add_counts() + [
        sample(DISTANCES, 0x30, "long_scoreboard", 4_000, INLINED), sample(DISTANCES, 0x400, "wait", 3_000, INLINED),
        sample(DISTANCES, 0x200, "math_pipe_throttle", 2_500, INLINED)])
    s.batch("device", "launch_event_batch", LAUNCHED, [[46 * MS, 1, 90, 1, 100, 2, 1], [47 * MS, 1, 91, 1, 100, 2, 1],
                                                       [96 * MS, 2, 92, 1, 100, 3, 2]])
    code_object(s, VECTOR_ADD, "vector_add.sm_90.cubin")
    code_object(s, INLINED, "inlined.sm_90.cubin")
    s.event("sass", "code_object", ts_ns=T0, cubin_crc=str(REDUCTION), crc_source="cupti", arch="sm_90", bytes=9 << 28,
            function_count=0, skipped={"reason": "larger than GPUFL_CODE_BYTES_MAX"})
    source(s, "inlined.cu")
    source(s, "inlined.cuh")
    s.end(100 * MS)
    s.write()


def deep_hostile():
    s = Session("deep_hostile", app="evil")
    s.start(engine="nvidia.deep", channels=("system", "scope", "device", "sass"))
    names(s)
    s.event("scope", "dictionary_update", metric_dict={"11": "\x1b[31mred", "12": "x" * 300, "13": ""},
            function_dict={"20": "\x1b]0;owned\x07", "21": "cut", "22": "bad64"},
            func_symbol_dict={"21": "vector_add", "22": "vector_add"})
    good = (CUBINS / "vector_add.sm_90.cubin").read_bytes()
    code_object(s, 1, "vector_add.sm_90.cubin")
    code_object(s, 2, "vector_add.sm_90.cubin", data=packed(good[:1500]), size=1500)
    code_object(s, 3, "vector_add.sm_90.cubin", data="!!!!")
    code_object(s, 4, "vector_add.sm_90.cubin", size=1 << 60)
    code_object(s, 5, "vector_add.sm_90.cubin", data=packed(bytes(64)), size=64)
    s.event("sass", "code_object", cubin_crc="not a number", data="AAAA", bytes=3)
    s.event("sass", "code_object", cubin_crc="99999999999999999999999", data="AAAA", bytes=3)
    s.event("sass", "cubin_disassembly", cubin_crc=1, function_name="nowhere", entries=[
        {"pc": -1, "sass": "x"}, {"pc": 0, "count": 99_999_999_999, "sass": "\x1b[2J"}, 5, {"pc": 4_294_967_295}])
    s.event("sass", "source_file_content", source_file_id=-7, lines=[1, None, "x"])
    rows = [sample(ADD, 0xE0, "wait", 100, 1), sample(ADD, 0xFFFFFFF0, "wait", 50, 1),
            sample(ADD, 0x123457, "wait", 20, 1), sample(21, 0xE0, "wait", 90, 2),
            sample(22, 0xE0, "wait", 80, 3), sample(22, 0xE0, "wait", 70, 4),
            sample(22, 0, "wait", 60, 5), sample(20, 0, "wait", 55, 1), sample(77, 16, "wait", 54, 999),
            sample(0, 16, "wait", 53, 0), sample(REDUCE, 16, "wait", 52, 1),
            sample(ADD, 0x10, "wait", 18_446_744_073_709_551_615, 1), sample(ADD, 0x10, "wait", 2, 1),
            sample(ADD, 0x20, "wait", 10, 1, scope=12345), sample(ADD, 0x20, "wait", 10, 1, name=4_000_000),
            sample(ADD, 0x20, "wait", 10, 1, confidence=4_000_000_000)]
    for metric in (11, 12, 13, 0, 4_000_000_000):
        rows.append(sample(ADD, 0x30, "wait", 7, 1))
        rows[-1][5] = metric
    for column, value in ((8, 9), (14, -5), (0, 9_223_372_036_854_775_807)):
        rows.append(sample(ADD, 0x40, "wait", 1_000_000, 1))
        rows[-1][column] = value
    s.batch("scope", "profile_sample_batch", SAMPLE, rows)
    rows = [sample(ADD, 0x40, "wait", 1_000_000, 1)]
    rows[0][4] = None
    s.batch("scope", "profile_sample_batch", SAMPLE, rows)
    s.batch("scope", "profile_sample_batch", "dt_ns function_id", [[0, 1]])
    s.batch("scope", "pm_sample_batch", PM, [[0, 0, 0, 9_999, 1.5, 0], [1, 1 * MS, 0, 101, None, 0],
                                             [2, 2 * MS, 70_000, 101, 1e308, 0], [3, 3 * MS, 70_000, 101, 1e308, 0]])
    s.event("scope", "perf_metric_event", name="\x1b[1m", start_ns=-5, end_ns="x", device_id=99_999_999, metrics={
        "a": None, "\x1b[7m": 1e308, "b": "text", "c": -1e308}, passes_needed=-3)
    s.event("device", "kernel_perf_metric_event", kernel_name=7, metrics=[1, 2])
    s.event("scope", "deep_window_event", start_ns=5, end_ns=4)
    s.event("scope", "deep_window_event", start_ns=T0, end_ns=T0 + 1, source="\x1b[5m", launches_covered=-1,
            window_id=-1)
    s.event("scope", "pc_sampling_config", mode="\x1b[5m", period_cycles=9_223_372_036_854_775_807)
    s.event("device", "sass_config", configured_metrics="none", skipped_metrics=[{"name": "\x1b[0m"}, 4])
    s.event("scope", "pm_sampling_config", interval_us=9_223_372_036_854_775_807, metrics=None)
    s.batch("device", "launch_event_batch", LAUNCHED, [[0, 4_000_000_000, 0, 1, 0, 55, 9]])
    s.end(10 * MS)
    s.write()


def deep_v1():
    s = Session("deep_v1", app="matmul", is_v1=True)
    s.start(engine="nvidia.pc_sampling_with_sass", channels=("system", "scope", "device", "sass"))
    s.event("scope", "dictionary_update", scope_name_dict={"1": "step"}, function_dict={"1": "_Z6matmulPf"},
            metric_dict={"1": "smsp__pcsamp_warps_issue_stalled_long_scoreboard", "2": "smsp__sass_inst_executed",
                         "3": "isa_inst_present"}, source_file_dict={"1": "/home/kai/matmul.cu"})
    columns = SAMPLE.split(" cubin_crc")[0]
    s.batch("scope", "profile_sample_batch", columns, [
        [20 * MS, 7, 0, 1, 0x10, 1, 80, 12, 0, 1, 1, 9], [20 * MS, 7, 0, 1, 0x20, 1, 20, 12, 0, 1, 0, 0],
        [20 * MS, 7, 0, 1, 0x20, 2, 4096, 0, 1, 1, 0, 0]])
    s.batch("scope", "profile_sample_batch", columns, [[0, 0, 0, 1, 0x20, 3, 1, 0, 2, 0, 1, 10]], base=12345)
    s.event("sass", "cubin_disassembly", cubin_crc=77, function_name="_Z6matmulPf", entries=[
        {"pc": 0, "sass": "MOV R1, R2 ;"}, {"pc": 16, "sass": "LDG.E R2, [R2] ;", "count": 2}])
    s.event("sass", "source_file_content", source_file_id=1,
            lines=["// matmul"] * 8 + ["  sum += a[i];", "  sum += b[i];"])
    s.add("scope", {"type": "deep_window_event", "pid": 1, "app": "matmul", "session_id": s.id, "name": "w",
                    "close_reason": "manual", "engines": ["pc_sampling", "sass"], "start_ns": T0,
                                "end_ns": T0 + 50 * MS,
                    "duration_ns": 50 * MS, "launches_covered": 12})
    for channel in s.lines:
        s.add(channel, {"type": "shutdown", "pid": 4711, "app": "matmul", "session_id": s.id, "ts_ns": T0 + 100 * MS})
    s.write()


def amd_code():
    """A trace of an AMD GPU: no samples, but the code of the kernels that ran and of one that did not."""
    s = Session("amd_code", app="add_hip")
    s.start(engine="amd.trace", channels=("system", "scope", "device", "sass"),
            gpus=[{"id": 0, "name": "AMD Instinct MI250X", "uuid": "GPU-amd0", "vendor": "AMD"}])
    s.event("device", "dictionary_update", kernel_dict={"1": "vector_add", "2": "block_sum.kd"})
    s.batch("device", "launch_config_batch", LAUNCH, [launch(1, 1, 4096, 256, 6, None, 0),
                                                      launch(2, 2, 264, 256, 4, None, 0)])
    s.batch("device", "kernel_event_batch", KERNEL,
            [kernel((1 + i) * MS, 1, 300 * US, 1, corr=10 + i) for i in range(20)] +
            [kernel((30 + i * 4) * MS, 2, 2 * MS, 2, corr=40 + i) for i in range(10)])
    code_object(s, 0x90A, "kernels.gfx90a.co", folder=CODE_OBJECTS, source="crc32c", arch="gfx90a:sramecc+:xnack-")
    source(s, "kernels.cl", folder=CODE_OBJECTS, path="/kernels/")
    s.end(100 * MS)
    s.write()


if __name__ == "__main__":
    for make in (pc_sampling, sass_metrics, range_metrics, deep, deep_hostile, deep_v1, amd_code):
        make()
