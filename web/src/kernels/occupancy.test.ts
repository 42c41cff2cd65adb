// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from "vitest";
import { occupancyOf, occupancySweep, type DeviceLimits } from "./occupancy";

const h200: DeviceLimits = {
    compute_major: 9,
    warp_size: 32,
    warps_per_sm_max: 64,
    blocks_per_sm_max: 32,
    regs_per_sm: 65536,
    regs_per_block_max: 65536,
    shared_per_sm: 228 * 1024,
    shared_reserved_per_block: 1024,
};

describe("the calculator", () => {
    // The cases of tests/unit/test_occupancy.c: threads, registers, shared memory; blocks, occupancy, then by
    // registers, shared memory, warps and blocks.
    test.each([
        [256, 32, 0, 8, 10000, 10000, 10000, 10000, 10000, "warps"],
        [256, 128, 0, 2, 2500, 2500, 10000, 10000, 10000, "registers"],
        [32, 255, 0, 8, 1250, 1250, 10000, 10000, 5000, "registers"],
        [32, 16, 0, 32, 5000, 10000, 10000, 10000, 5000, "blocks"],
        [128, 32, 232448, 1, 625, 10000, 625, 10000, 10000, "shared memory"],
        [256, 32, 49152, 4, 5000, 10000, 5000, 10000, 10000, "shared memory"],
        [33, 32, 0, 32, 10000, 10000, 10000, 10000, 10000, "warps"],
        [768, 32, 0, 2, 7500, 7500, 10000, 7500, 10000, "warps"],
        [1024, 0, 0, 2, 10000, 10000, 10000, 10000, 10000, "warps"],
        // As recorded for kernels of PyTorch, cuBLAS and cuDNN in examples/recorded/h200-training.
        [1, 16, 0, 32, 5000, 10000, 10000, 10000, 5000, "blocks"],
        [32, 16, 0, 32, 5000, 10000, 10000, 10000, 5000, "blocks"],
        [32, 26, 0, 32, 5000, 10000, 10000, 10000, 5000, "blocks"],
        [64, 16, 0, 32, 10000, 10000, 10000, 10000, 10000, "warps"],
        [128, 16, 0, 16, 10000, 10000, 10000, 10000, 10000, "warps"],
        [128, 18, 0, 16, 10000, 10000, 10000, 10000, 10000, "warps"],
        [128, 23, 0, 16, 10000, 10000, 10000, 10000, 10000, "warps"],
        [128, 26, 0, 16, 10000, 10000, 10000, 10000, 10000, "warps"],
        [128, 30, 0, 16, 10000, 10000, 10000, 10000, 10000, "warps"],
        [128, 32, 0, 16, 10000, 10000, 10000, 10000, 10000, "warps"],
        [128, 32, 16, 16, 10000, 10000, 10000, 10000, 10000, "warps"],
        [128, 39, 24, 12, 7500, 7500, 10000, 10000, 10000, "registers"],
        [128, 40, 0, 12, 7500, 7500, 10000, 10000, 10000, "registers"],
        [128, 47, 7184, 10, 6250, 6250, 10000, 10000, 10000, "registers"],
        [128, 48, 0, 10, 6250, 6250, 10000, 10000, 10000, "registers"],
        [128, 54, 2064, 9, 5625, 5625, 10000, 10000, 10000, "registers"],
        [128, 72, 8192, 7, 4375, 4375, 10000, 10000, 10000, "registers"],
        [256, 32, 0, 8, 10000, 10000, 10000, 10000, 10000, "warps"],
        [256, 32, 2048, 8, 10000, 10000, 10000, 10000, 10000, "warps"],
        [256, 32, 2336, 8, 10000, 10000, 10000, 10000, 10000, "warps"],
        [384, 80, 38912, 2, 3750, 3750, 9375, 9375, 10000, "registers"],
        [384, 168, 134144, 1, 1875, 1875, 1875, 9375, 10000, "registers"],
        [384, 168, 152576, 1, 1875, 1875, 1875, 9375, 10000, "registers"],
        [384, 168, 213188, 1, 1875, 1875, 1875, 9375, 10000, "registers"],
        [384, 168, 221420, 1, 1875, 1875, 1875, 9375, 10000, "registers"],
        [512, 24, 0, 4, 10000, 10000, 10000, 10000, 10000, "warps"],
        [512, 27, 32832, 4, 10000, 10000, 10000, 10000, 10000, "warps"],
        [512, 32, 0, 4, 10000, 10000, 10000, 10000, 10000, "warps"],
        [640, 48, 35840, 2, 6250, 6250, 10000, 9375, 10000, "registers"],
        [1024, 31, 8448, 2, 10000, 10000, 10000, 10000, 10000, "warps"],
        [1024, 36, 128, 1, 5000, 5000, 10000, 10000, 10000, "registers"],
    ])("agrees with the recorder on %i threads, %i registers, %i bytes", (...row) => {
        const [threads, regs, shared, blocks, total, byRegs, byShared, byWarps, byBlocks, limiter] = row;
        const result = occupancyOf(h200, { threads_per_block: threads, regs_per_thread: regs, shared_bytes: shared });
        if (typeof result === "string") throw new Error(result);
        expect(result.active_blocks).toBe(blocks);
        expect(result.total_bp).toBe(total);
        expect(result.limiter).toBe(limiter);
        const bound = Object.fromEntries(result.bounds.map((b) => [b.limiter, b.occupancy_bp]));
        expect(bound).toEqual({ registers: byRegs, "shared memory": byShared, warps: byWarps, blocks: byBlocks });
    });

    test("says why there is no answer", () => {
        const input = { threads_per_block: 256, regs_per_thread: 32, shared_bytes: 0 };
        expect(occupancyOf({ ...h200, regs_per_sm: null }, input)).toMatch(/limits were not recorded/);
        expect(occupancyOf({ ...h200, compute_major: 13 }, input)).toMatch(/13\.x/);
        expect(occupancyOf({ ...h200, compute_major: null }, input)).toMatch(/compute capability/);
        expect(occupancyOf(h200, { ...input, threads_per_block: 1025 })).toMatch(/1 to 1024/);
        expect(occupancyOf(h200, { ...input, threads_per_block: 1.5 })).toMatch(/1 to 1024/);
        expect(occupancyOf(h200, { ...input, regs_per_thread: 257 })).toMatch(/256 registers/);
        expect(occupancyOf(h200, { ...input, shared_bytes: -1 })).toMatch(/bytes/);
        expect(occupancyOf(h200, { ...input, shared_bytes: 228 * 1024 })).toMatch(/no block fits/);
    });

    test("an older device hands out shared memory in larger pieces", () => {
        const turing = { ...h200, compute_major: 7, shared_per_sm: 64 * 1024, shared_reserved_per_block: 0 };
        const result = occupancyOf(turing, { threads_per_block: 32, regs_per_thread: 16, shared_bytes: 2049 });
        if (typeof result === "string") throw new Error(result);
        expect(result.bounds.find((bound) => bound.limiter === "shared memory")?.blocks).toBe(28);
    });

    test("a sweep leaves out launches that fail", () => {
        const input = { threads_per_block: 1024, regs_per_thread: 32, shared_bytes: 0 };
        expect(occupancySweep(h200, input, "regs_per_thread", [32, 64, 65])).toEqual([
            { value: 32, occupancy_bp: 10000 },
            { value: 64, occupancy_bp: 5000 },
            { value: 65, occupancy_bp: null },
        ]);
    });
});
