// SPDX-License-Identifier: Apache-2.0
// A roofline from range metrics: operations per byte of DRAM traffic against operations per second. If operations were
// not counted, warp instructions are used. The roofs assume the device's highest clock.
import type { Device, MetricColumn } from "./answers";

export interface Roof {
    name: string;
    perSecond: number;
}

export interface Roofline {
    unit: "operation" | "instruction";
    work: number; // per execution
    bytes: number;
    seconds: number;
    intensity: number; // work per byte
    perSecond: number;
    parts: { name: string; work: number }[];
    roofs: Roof[];
    bytesPerSecond: number | null; // the slope; null: unknown
    missing: string[]; // what could not be drawn, and why
}

type Metrics = Readonly<Record<string, MetricColumn>>;

// Fused multiply-adds per multiprocessor and clock, by compute capability: CUDA programming guide, arithmetic
// instruction throughput; tensor: dense 16-bit inputs, from the architecture's white paper. Values not listed there are
// unknown.
const lanes: Record<string, { fp32: number; fp64: number; tensor?: number }> = {
    "7.0": { fp32: 64, fp64: 32, tensor: 512 },
    "7.5": { fp32: 64, fp64: 2, tensor: 512 },
    "8.0": { fp32: 64, fp64: 32, tensor: 1024 },
    "8.6": { fp32: 128, fp64: 2, tensor: 512 },
    "8.9": { fp32: 128, fp64: 2, tensor: 512 },
    "9.0": { fp32: 128, fp64: 64, tensor: 2048 },
    "10.0": { fp32: 128, fp64: 64 },
    "12.0": { fp32: 128, fp64: 2 },
};
const instructionsPerClock = 4; // one per sub-partition of a multiprocessor

function mean(metrics: Metrics, ...names: string[]): number | null {
    for (const name of names) {
        const value = metrics[name]?.mean;
        if (value !== null && value !== undefined) return value;
    }
    return null;
}

function opMetric(metrics: Metrics, op: string): number | null {
    return mean(
        metrics,
        `sm__sass_thread_inst_executed_op_${op}_pred_on.sum`,
        `smsp__sass_thread_inst_executed_op_${op}_pred_on.sum`,
    );
}

// Adds, multiplies, and two for a fused one; null: none of the three was counted.
function operations(metrics: Metrics, letter: string): number | null {
    const counts = [
        opMetric(metrics, `${letter}add`),
        opMetric(metrics, `${letter}mul`),
        opMetric(metrics, `${letter}fma`),
    ];
    if (counts.every((count) => count === null)) return null;
    return (counts[0] ?? 0) + (counts[1] ?? 0) + 2 * (counts[2] ?? 0);
}

// Kinds of input of the tensor cores, and their speed relative to 16-bit ones; 0: no fixed factor.
const tensorKinds: readonly (readonly [string, number, string])[] = [
    ["fp8", 2, "8 bit"],
    ["bf16_dst_fp32", 1, "16 bit"],
    ["fp16", 1, "16 bit"],
    ["fp16_dst_fp16", 1, "16 bit"],
    ["fp16_dst_fp32", 1, "16 bit"],
    ["fp16_bf16_tf32_dst_fp32", 1, "16 bit"],
    ["tf32_dst_fp32", 0.5, "TF32"],
    ["fp64", 0, "double precision"],
];

function tensorWork(metrics: Metrics, kind: string): number | null {
    return mean(metrics, `sm__ops_path_tensor_src_${kind}.sum`);
}

function workOf(metrics: Metrics): Pick<Roofline, "unit" | "work" | "parts"> | null {
    const tensor = tensorKinds.map(([kind]) => tensorWork(metrics, kind));
    const parts = [
        { name: "single precision", work: operations(metrics, "f") },
        { name: "double precision", work: operations(metrics, "d") },
        { name: "half precision", work: operations(metrics, "h") },
        {
            name: "tensor cores",
            work: tensor.every((value) => value === null)
                ? null
                : tensor.reduce<number>((sum, value) => sum + (value ?? 0), 0),
        },
    ].filter((part): part is { name: string; work: number } => part.work !== null);
    const work = parts.reduce((sum, part) => sum + part.work, 0);
    if (work > 0) return { unit: "operation", work, parts: parts.filter((part) => part.work > 0) };
    const instructions = mean(metrics, "sm__inst_executed.sum", "smsp__inst_executed.sum");
    return instructions ? { unit: "instruction", work: instructions, parts: [] } : null;
}

// The roof of the fastest kind that the kernel used; none if it used no tensor core.
function tensorRoof(metrics: Metrics, fmaPerClock: number | undefined, clocks: number, missing: string[]): Roof[] {
    const used = tensorKinds.find(([kind]) => (tensorWork(metrics, kind) ?? 0) > 0);
    if (!used) return [];
    const [, factor, words] = used;
    if (!fmaPerClock || !factor) {
        missing.push(`the roof of the tensor cores (${words}): its peak on this device is not known`);
        return [];
    }
    return [{ name: `tensor cores, ${words}`, perSecond: 2 * fmaPerClock * factor * clocks }];
}

function roofsOf(metrics: Metrics, device: Device | null, unit: Roofline["unit"], missing: string[]): Roof[] {
    if (!device || device.multiprocessors === null || !device.core_clock_khz) {
        missing.push("the compute roof: the device's clock was not recorded");
        return [];
    }
    const clocks = device.multiprocessors * device.core_clock_khz * 1000;
    if (unit === "instruction") return [{ name: "issue", perSecond: instructionsPerClock * clocks }];
    const known = lanes[`${device.compute_major}.${device.compute_minor}`];
    if (!known) {
        missing.push(
            `the compute roof: compute capability ${device.compute_major}.${device.compute_minor} is not known`,
        );
        return [];
    }
    return [
        { name: "single precision", perSecond: 2 * known.fp32 * clocks },
        { name: "double precision", perSecond: 2 * known.fp64 * clocks },
        ...tensorRoof(metrics, known.tensor, clocks, missing),
    ];
}

// Returns a text if something was not measured. medianNs: of the kernel, used if its time was not counted.
export function rooflineOf(metrics: Metrics, device: Device | null, medianNs: number | null): Roofline | string {
    const read = mean(metrics, "dram_read_bytes", "dram__bytes_read.sum");
    const written = mean(metrics, "dram_write_bytes", "dram__bytes_write.sum");
    const total = mean(metrics, "dram__bytes.sum");
    const bytes = read !== null && written !== null ? read + written : total;
    const work = workOf(metrics);
    const ns = mean(metrics, "gpu__time_duration.sum") ?? medianNs;
    if (!work) return "operations were not counted";
    if (!bytes) return bytes === 0 ? "the kernel moved no bytes to or from DRAM" : "DRAM traffic was not counted";
    if (!ns) return "the kernel's time is not known";
    const missing: string[] = [];
    const roofs = roofsOf(metrics, device, work.unit, missing);
    if (!device?.memory_bandwidth_bps) missing.push("the memory roof: the device's bandwidth was not recorded");
    return {
        ...work,
        bytes,
        seconds: ns / 1e9,
        intensity: work.work / bytes,
        perSecond: work.work / (ns / 1e9),
        roofs,
        bytesPerSecond: device?.memory_bandwidth_bps || null,
        missing,
    };
}

// The limit for a kernel of that intensity, and how much of it was reached.
export function roofAt(roofline: Roofline): { name: string; perSecond: number; reached: number } | null {
    const slope = roofline.bytesPerSecond;
    const compute = roofline.roofs.reduce<Roof | null>(
        (best, roof) => (best && best.perSecond > roof.perSecond ? best : roof),
        null,
    );
    const memory = slope === null ? null : { name: "memory", perSecond: slope * roofline.intensity };
    const lowest = [memory, compute].reduce<Roof | null>(
        (least, roof) => (roof && (!least || roof.perSecond < least.perSecond) ? roof : least),
        null,
    );
    return lowest && { ...lowest, reached: roofline.perSecond / lowest.perSecond };
}
