// SPDX-License-Identifier: Apache-2.0
// The server's answers about kernels.
import type { DeviceLimits } from "./occupancy";

export interface Launch {
    grid: [number, number, number] | null;
    block: [number, number, number] | null;
    cluster: [number, number, number] | null;
    num_regs: number | null;
    sgprs: number | null; // AMD, whose num_regs are vector registers
    accum_vgprs: number | null;
    static_shared_bytes: number | null;
    dyn_shared_bytes: number | null;
    local_per_thread_bytes: number | null;
    occupancy_bp: number | null;
    occupancy_regs_bp: number | null;
    occupancy_shared_bp: number | null;
    occupancy_warps_bp: number | null;
    occupancy_blocks_bp: number | null;
    active_blocks_max: number | null;
    limiter: string | null;
}

export interface Kernel {
    name: string | null;
    kernel_id: number;
    count: number;
    total_ns: number;
    mean_ns: number | null;
    median_ns: number;
    p90_ns: number;
    p99_ns: number;
    min_ns: number;
    max_ns: number;
    share: number | null;
    launch: Launch | null;
    launch_variants: number;
}

export interface KernelHistogram {
    kernel_id: number;
    scale: "linear" | "logarithmic";
    from_ns: number;
    to_ns: number;
    counts: number[];
}

export interface Kernels {
    is_exact: boolean;
    count: number;
    total_ns: number;
    kernels: Kernel[];
    histograms?: KernelHistogram[];
    total: number;
    next_cursor: string | null;
}

// Kernels that were launched but not timed.
export interface LaunchedKernel {
    name: string | null;
    kernel_id: number;
    count: number;
}

export interface Launches {
    count: number;
    kernels: LaunchedKernel[];
    total: number;
    next_cursor: string | null;
}

export interface Histogram {
    name: string | null;
    kernel_id: number;
    count: number;
    median_ns: number | null;
    p90_ns: number | null;
    p99_ns: number | null;
    scale: "linear" | "logarithmic";
    bins: { from_ns: number; to_ns: number; count: number; total_ns: number }[];
}

export interface Durations {
    name: string | null;
    kernel_id: number;
    count: number;
    from_ns: number | null;
    to_ns: number | null;
    step_ns: number | null;
    steps: { from_ns: number; count: number; min_ns: number; median_ns: number; max_ns: number; total_ns: number }[];
}

export interface Device extends DeviceLimits {
    device: number;
    name: string | null;
    compute_minor: number | null;
    multiprocessors: number | null;
    core_clock_khz: number | null;
    memory_bandwidth_bps: number | null;
}

export interface LaunchUse {
    count: number;
    total_ns: number;
    share: number | null;
    device: number | null;
    launch: Launch | null;
}

export interface OccupancyAnswer {
    name: string | null;
    kernel_id: number;
    total_ns: number | null;
    launches: LaunchUse[];
    launch_variants: number;
    devices: Device[];
}

export interface MetricColumn {
    mean: number | null;
    min: number | null;
    max: number | null;
    count: number;
}

export interface MetricGroup {
    kernel?: string | null;
    scope?: string | null;
    device: number | null;
    metric_set: string | null;
    results: number;
    incomplete: number;
    reason: string | null;
    passes_needed: number | null;
    passes_collected: number | null;
    instances: number | null;
    metrics: Record<string, MetricColumn>;
}

export interface Ranges {
    metrics: MetricGroup[];
}

export interface StallKind {
    name: string;
    family: string;
    samples: number;
    words: string | null;
}

export interface FunctionStalls {
    name: string | null;
    function_id: number;
    cubin_crc: string | null;
    samples: number;
    not_issued: number;
    kinds: Record<string, number>;
}

export interface Sampling {
    device: number | null;
    context: number | null;
    mode: string | null;
    period_cycles: number | null;
    target_rate_hz: number | null;
}

export interface DeepWindow {
    source: string;
    windows: number;
    covered_ns: number;
    share: number | null;
    launches: number;
    launches_are_exact: boolean;
    invalid: number;
}

export interface StallsAnswer {
    sampling: Sampling[];
    stalls: {
        samples: number;
        not_issued: number;
        certain: number;
        undecided: number;
        kinds: StallKind[];
        functions: FunctionStalls[];
        scopes: { path: string | null; samples: number; certain: number; kinds: Record<string, number> }[];
    } | null;
    windows: DeepWindow[];
    untimed_launches: number;
    code_objects: {
        cubin_crc: string | null;
        arch: string | null;
        bytes: number;
        is_stored: boolean;
        skipped: string | null;
    }[];
    capabilities: { feature: string; requested: boolean; status: string; message: string | null }[];
    left_out: number;
}

export const kernelName = (name: string | null): string => name ?? "(name not recorded)";

// 4 × 64 × 1 as 4×64: ones at the end are omitted.
export function dimensionsShort(size: readonly number[] | null): string {
    if (!size) return "unavailable";
    const used = size.reduce((last, part, index) => (part !== 1 ? index + 1 : last), 1);
    return size.slice(0, used).join("×");
}

export function dimensions(size: readonly number[] | null): string {
    return size ? size.map((part) => part.toLocaleString("en-US")).join(" × ") : "unavailable";
}

export const threadsOf = (launch: Launch): number | null =>
    launch.block ? launch.block[0] * launch.block[1] * launch.block[2] : null;

// Sums of known values; null if either part is unknown.
export function sharedBytes(launch: Launch): number | null {
    return launch.static_shared_bytes === null || launch.dyn_shared_bytes === null
        ? null
        : launch.static_shared_bytes + launch.dyn_shared_bytes;
}

export function occupancyText(launch: Launch | null): string {
    if (!launch || launch.occupancy_bp === null) return "unavailable";
    const limit = launch.limiter === null ? "" : ` (${launch.limiter})`;
    return `${(launch.occupancy_bp / 100).toFixed(launch.occupancy_bp % 100 ? 1 : 0)} %${limit}`;
}
