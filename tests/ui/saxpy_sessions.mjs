// SPDX-License-Identifier: Apache-2.0
// Two sessions of one program with known numbers, before and after a change of its kernel: durations, launches, samples,
// counters, range metrics, SASS with text, and names that want to break a page.

const T0 = 1789000000000000000n;
const US = 1000;
const saxpy = "void saxpy<float>(int, float, float const*, float*)";
const symbol = "_Z5saxpyIfEviT_PKS0_PS0_";
const file = "/home/kai/saxpy.cu";
export const hostileName = `<img src=x onerror=alert(1)> \u202eobrac\u202c 🚀 ${"templated<".repeat(990)}`;

const source = [
    "template <typename T> __device__ T scaled(T a, T x)",
    "{",
    "    return a * x; // <b>not bold</b>",
    "}",
    "",
    "template <typename T> __global__ void saxpy(int n, T a, const T *x, T *y)",
    "{",
    "    int i = blockIdx.x * blockDim.x + threadIdx.x;",
    "    if (i < n)",
    "        y[i] = scaled(a, x[i]) + y[i];",
    "}",
];
// [text, line]; the offset is its place.
const before = [
    ["LDC R1, c[0x0][0x28]", 6],
    ["S2R R0, SR_TID.X", 8],
    ["S2UR UR4, SR_CTAID.X", 8],
    ["IMAD R9, R9, UR4, R0", 8],
    ["ISETP.GE.AND P0, PT, R9, UR6, PT", 9],
    ["@P0 EXIT", 9],
    ["IMAD.WIDE R2, R9, 0x4, R2", 10],
    ["LDG.E R3, desc[UR4][R2.64]", 10],
    ["IMAD.WIDE R4, R9, 0x4, R4", 10],
    ["LDG.E R6, desc[UR4][R4.64]", 10],
    ["FMUL R3, R3, UR7", 3],
    ["FADD R7, R3, R6", 10],
    ["STG.E desc[UR4][R4.64], R7", 10],
    ["EXIT", 11],
];
// Fused: one instruction instead of two.
const after = [...before.slice(0, 10), ["FFMA R7, R3, UR7, R6", 10], ...before.slice(12)];

const listing = (lines) => lines.map(([sass, line], index) => ({ pc: index * 16, sass, file, line }));

const stallWords = ["long_scoreboard", "wait", "selected", "not_selected"];
const counterWords = [
    "inst_executed",
    "thread_inst_executed_pred_on",
    "branch_targets_threads_divergent",
    "branch_targets_threads_uniform",
    "sectors_mem_global",
    "sectors_mem_global_ideal",
];
const metricDict = Object.fromEntries([
    ...stallWords.map((word, index) => [1 + index, `smsp__pcsamp_warps_issue_stalled_${word}`]),
    ...counterWords.map((word, index) => [101 + index, `smsp__sass_${word}`]),
]);

function batch(type, version, columns, rows) {
    return { version, type, batch_id: 1, base_time_ns: Number(T0), columns: columns.split(" "), rows };
}

const kernelColumns =
    "dt_ns kernel_id stream_id duration_ns corr_id dyn_shared num_regs has_details external_kind external_id " +
    "device_id context_id launch_id api_lead_ns api_duration_ns thread_id scope_id";
const launchColumns =
    "launch_id kernel_id device_id grid_x grid_y grid_z block_x block_y block_z cluster_x cluster_y cluster_z num_regs " +
    "static_shared dyn_shared shared_executed local_per_thread local_total cache_config occupancy_bp occupancy_regs_bp " +
    "occupancy_shared_bp occupancy_warps_bp occupancy_blocks_bp active_blocks_max limiter";
const sampleColumns =
    "dt_ns corr_id device_id function_id pc_offset metric_id metric_value stall_reason sample_kind scope_name_id " +
    "source_file_id source_line cubin_crc context_id interval_ns instances confidence_bp scope_id window_id";
const scopeColumns =
    "dt_ns scope_instance_id name_id event_type depth repeat warmup original_start_ns thread_id parent_id tag_id source";

function sample(pc, metric, value, kind, crc) {
    return [
        20000 * US,
        0,
        0,
        1,
        pc,
        metric,
        value,
        kind === 0 ? metric : 0,
        kind,
        1,
        0,
        0,
        crc,
        1,
        20000 * US,
        1,
        10000,
        1,
        0,
    ];
}

// 60 executions around the median, which is the 31st smallest: 60 values of step apart.
function executions(kernelId, launchId, medianNs, firstCorr, count = 60) {
    return Array.from({ length: count }, (_, index) => {
        const durationNs = medianNs + (((index * 37) % count) - Math.floor((count - 1) / 2)) * 100;
        return [
            (1000 + index * 1000) * US,
            kernelId,
            7,
            durationNs,
            firstCorr + index,
            0,
            128,
            0,
            0,
            0,
            0,
            1,
            launchId,
            5000,
            4000,
            100,
            1,
        ];
    });
}

function samplesOf(variant) {
    const crc = variant.crc;
    const fused = variant.lines === after;
    const rows = fused
        ? [sample(160, 1, 500, 0, crc), sample(160, 3, 100, 0, crc), sample(176, 2, 100, 0, crc)]
        : [
              sample(160, 1, 700, 0, crc),
              sample(160, 3, 100, 0, crc),
              sample(176, 1, 150, 0, crc),
              sample(176, 2, 50, 0, crc),
          ];
    for (let index = 0; index < variant.lines.length; index++) {
        rows.push(sample(index * 16, 101, 8192, 1, crc), sample(index * 16, 102, 8192 * (index < 6 ? 32 : 8), 1, crc));
        if (/LDG|STG/.test(variant.lines[index][0]))
            rows.push(sample(index * 16, 105, 65536, 1, crc), sample(index * 16, 106, 16384, 1, crc));
    }
    return rows;
}

function records(variant) {
    const endNs = 100000 * US;
    const otherId = variant.lines === after ? 3 : 2;
    return [
        {
            version: 1,
            type: "job_start",
            pid: 4711,
            app: "saxpy",
            log_path: "logs",
            ts_ns: Number(T0),
            hostname: "node17",
            ip_addr: "10.0.0.17",
            devices: [{ id: 0, name: "NVIDIA H200", uuid: "GPU-0", vendor: "NVIDIA" }],
            session_kind: "trace",
            profiling_engine: "nvidia.deep",
        },
        {
            version: 1,
            type: "dictionary_update",
            kernel_dict: { 1: saxpy, 2: "zero_fill(float*, int)", 3: hostileName },
        },
        {
            version: 1,
            type: "dictionary_update",
            scope_name_dict: { 1: "step" },
            function_dict: { 1: saxpy },
            func_symbol_dict: { 1: symbol },
            metric_dict: metricDict,
        },
        {
            version: 1,
            type: "device_limits",
            device_id: 0,
            name: "NVIDIA H200",
            uuid: "GPU-0",
            compute_major: 9,
            compute_minor: 0,
            multiprocessors: 132,
            warp_size: 32,
            warps_per_sm_max: 64,
            blocks_per_sm_max: 32,
            regs_per_sm: 65536,
            regs_per_block_max: 65536,
            shared_per_sm: 233472,
            shared_per_block_max: 232448,
            shared_reserved_per_block: 1024,
            memory_bandwidth_bps: 4800000000000,
            core_clock_khz: 1980000,
        },
        batch("launch_config_batch", 1, launchColumns, [
            [1, 1, 0, 1024, 1, 1, 256, 1, 1, 0, 0, 0, 128, 0, 0, 0, 0, 0, 0, 2500, 2500, 10000, 10000, 10000, 2, 1],
            [2, otherId, 0, 64, 1, 1, 32, 1, 1, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 5000, 10000, 10000, 10000, 5000, 32, 4],
        ]),
        batch("kernel_event_batch", 1, kernelColumns, [
            ...executions(1, 1, variant.medianNs, 100),
            ...executions(otherId, 2, 20 * US, 500, 10).map((row) => [row[0] + 500 * US, ...row.slice(1)]),
        ]),
        {
            version: 1,
            type: "kernel_perf_metric_event",
            pid: 4711,
            app: "saxpy",
            device_id: 0,
            range_index: 0,
            range_name: "0",
            kernel_name: saxpy,
            launch_ordinal: 0,
            metric_set: "roofline",
            metrics: {
                "gpu__time_duration.sum": 100000,
                "dram__bytes_read.sum": 8388608,
                "dram__bytes_write.sum": 4194304,
                "sm__sass_thread_inst_executed_op_fadd_pred_on.sum": 1048576,
                "sm__sass_thread_inst_executed_op_fmul_pred_on.sum": 1048576,
                "sm__sass_thread_inst_executed_op_ffma_pred_on.sum": 0,
            },
        },
        batch("scope_event_batch", 3, scopeColumns, [
            [500 * US, 1, 1, 0, 0, 0, 0, Number(T0) + 500 * US, 100, 0, 0, 0],
            [variant.scopeEndNs, 1, 1, 1, 0, 0, 0, Number(T0) + 500 * US, 100, 0, 0, 0],
        ]),
        {
            version: 1,
            type: "pc_sampling_config",
            ts_ns: Number(T0),
            device_id: 0,
            context_id: 1,
            mode: "continuous",
            period_cycles: 262144,
            target_rate_hz: 2000,
            hardware_buffer_bytes: 33554432,
            stall_reasons: Object.fromEntries(
                stallWords.map((word, index) => [1 + index, `smsp__pcsamp_warps_issue_stalled_${word}`]),
            ),
        },
        {
            version: 1,
            type: "deep_window_event",
            pid: 4711,
            app: "saxpy",
            name: "",
            close_reason: "deadline",
            engines: ["pc_sampling"],
            start_ns: Number(T0),
            end_ns: Number(T0) + 50000 * US,
            duration_ns: 50000 * US,
            launches_covered: 60,
            window_id: 1,
            source: "pc_sampling",
            scope_id: 0,
        },
        {
            version: 1,
            type: "deep_window_event",
            pid: 4711,
            app: "saxpy",
            name: "",
            close_reason: "deadline",
            engines: ["sass_metrics"],
            start_ns: Number(T0) + 50000 * US,
            end_ns: Number(T0) + 60000 * US,
            duration_ns: 10000 * US,
            launches_covered: 4,
            window_id: 2,
            source: "sass_metrics",
            scope_id: 0,
        },
        batch("profile_sample_batch", 1, sampleColumns, samplesOf(variant)),
        {
            version: 1,
            type: "cubin_disassembly",
            cubin_crc: String(variant.crc),
            function_name: symbol,
            entries: listing(variant.lines),
        },
        { version: 1, type: "source_file_content", source_file_id: 0, path: file, lines: source },
        { version: 1, type: "shutdown", pid: 4711, app: "saxpy", ts_ns: Number(T0) + endNs },
    ];
}

export const saxpySessions = {
    kernel: saxpy,
    file,
    before: {
        id: "0192f300-0000-7000-8000-0000005a0001",
        crc: 1001,
        lines: before,
        medianNs: 100 * US,
        scopeEndNs: 80000 * US,
    },
    after: {
        id: "0192f300-0000-7000-8000-0000005a0002",
        crc: 1002,
        lines: after,
        medianNs: 150 * US,
        scopeEndNs: 90000 * US,
    },
};

// server: of the harness.
export async function saxpyUpload(server) {
    for (const variant of [saxpySessions.before, saxpySessions.after]) await server.send(variant.id, records(variant));
}
