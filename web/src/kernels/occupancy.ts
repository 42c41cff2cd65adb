// SPDX-License-Identifier: Apache-2.0
// Theoretical occupancy from a launch configuration and the device's limits: the same rules as in the recorder, so that
// the calculator starts with exactly the recorded value.

export interface DeviceLimits {
    compute_major: number | null;
    warp_size: number | null;
    warps_per_sm_max: number | null;
    blocks_per_sm_max: number | null;
    regs_per_sm: number | null;
    regs_per_block_max: number | null;
    shared_per_sm: number | null;
    shared_reserved_per_block: number | null;
}

export interface OccupancyInput {
    threads_per_block: number;
    regs_per_thread: number;
    shared_bytes: number; // static and dynamic
}

export type Limiter = "warps" | "blocks" | "registers" | "shared memory";

export interface OccupancyBound {
    limiter: Limiter;
    blocks: number; // per multiprocessor; Infinity: not used at all
    occupancy_bp: number;
}

export interface Occupancy {
    total_bp: number;
    active_blocks: number;
    active_warps: number;
    warps_max: number;
    limiter: Limiter;
    bounds: OccupancyBound[];
}

const computeMajorFirst = 7;
const computeMajorLast = 12;
const registerUnit = 256;
const subPartitions = 4;
export const regsPerThreadMax = 256;
export const threadsPerBlockMax = 1024;

function roundUp(value: number, unit: number): number {
    return Math.ceil(value / unit) * unit;
}

function isCount(value: number): boolean {
    return Number.isInteger(value) && value >= 0;
}

type KnownLimits = { [key in keyof DeviceLimits]: number };

function limitsKnown(limits: DeviceLimits): KnownLimits | string {
    const major = limits.compute_major;
    if (major === null) return "the device's compute capability was not recorded";
    if (major < computeMajorFirst || major > computeMajorLast)
        return `the allocation rules of compute capability ${major}.x are not known`;
    const needed = ["warp_size", "warps_per_sm_max", "blocks_per_sm_max", "regs_per_sm", "shared_per_sm"] as const;
    if (needed.some((name) => !limits[name])) return "the device's limits were not recorded";
    return {
        ...(limits as KnownLimits),
        regs_per_block_max: limits.regs_per_block_max ?? 0,
        shared_reserved_per_block: limits.shared_reserved_per_block ?? 0,
    };
}

function blocksByRegisters(limits: KnownLimits, regsPerThread: number, warps: number): number {
    const regsPerWarp = roundUp(regsPerThread * limits.warp_size, registerUnit);
    if (!regsPerWarp) return Infinity;
    if (regsPerWarp * roundUp(warps, subPartitions) > (limits.regs_per_block_max || limits.regs_per_sm)) return 0;
    const regsPerPartition = Math.floor(limits.regs_per_sm / subPartitions);
    return Math.floor((Math.floor(regsPerPartition / regsPerWarp) * subPartitions) / warps);
}

function blocksBySharedMemory(limits: KnownLimits, sharedBytes: number): number {
    const unit = limits.compute_major >= 8 ? 128 : 256;
    const bytes = sharedBytes + limits.shared_reserved_per_block;
    return bytes ? Math.floor(limits.shared_per_sm / roundUp(bytes, unit)) : Infinity;
}

function basisPoints(blocks: number, warps: number, warpsMax: number): number {
    const active = blocks * warps;
    return active >= warpsMax ? 10000 : Math.floor((active * 10000 + Math.floor(warpsMax / 2)) / warpsMax);
}

// Returns a text with the reason if there is no result.
export function occupancyOf(deviceLimits: DeviceLimits, input: OccupancyInput): Occupancy | string {
    const limits = limitsKnown(deviceLimits);
    if (typeof limits === "string") return limits;
    const { threads_per_block: threads, regs_per_thread: regs, shared_bytes: shared } = input;
    if (!isCount(threads) || threads < 1 || threads > threadsPerBlockMax)
        return `a block has 1 to ${threadsPerBlockMax} threads`;
    if (!isCount(regs) || regs > regsPerThreadMax) return `a thread has at most ${regsPerThreadMax} registers`;
    if (!isCount(shared)) return "shared memory is a number of bytes";
    const warps = Math.ceil(threads / limits.warp_size);
    // On a tie the earlier limiter is kept: if a fixed limit applies, using less of another resource gains nothing.
    const blocksBy: [Limiter, number][] = [
        ["warps", Math.floor(limits.warps_per_sm_max / warps)],
        ["blocks", limits.blocks_per_sm_max],
        ["registers", blocksByRegisters(limits, regs, warps)],
        ["shared memory", blocksBySharedMemory(limits, shared)],
    ];
    const bounds = blocksBy.map(([limiter, blocks]) => ({
        limiter,
        blocks,
        occupancy_bp: basisPoints(blocks, warps, limits.warps_per_sm_max),
    }));
    const least = bounds.reduce((best, bound) => (bound.blocks < best.blocks ? bound : best));
    if (!least.blocks) return `no block fits: not enough ${least.limiter} on a multiprocessor`;
    return {
        total_bp: least.occupancy_bp,
        active_blocks: least.blocks,
        active_warps: least.blocks * warps,
        warps_max: limits.warps_per_sm_max,
        limiter: least.limiter,
        bounds,
    };
}

export interface OccupancyPoint {
    value: number;
    occupancy_bp: number | null; // null: such a launch fails
}

// Occupancy as a function of one of the three inputs, with the others fixed.
export function occupancySweep(
    limits: DeviceLimits,
    input: OccupancyInput,
    name: keyof OccupancyInput,
    values: number[],
): OccupancyPoint[] {
    return values.map((value) => {
        const result = occupancyOf(limits, { ...input, [name]: value });
        return { value, occupancy_bp: typeof result === "string" ? null : result.total_bp };
    });
}
