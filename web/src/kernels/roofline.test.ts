// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from "vitest";
import type { Device, MetricColumn } from "./answers";
import { roofAt, rooflineOf } from "./roofline";

const h200: Device = {
    device: 0,
    name: "NVIDIA H200",
    compute_major: 9,
    compute_minor: 0,
    multiprocessors: 132,
    warp_size: 32,
    warps_per_sm_max: 64,
    blocks_per_sm_max: 32,
    regs_per_sm: 65536,
    regs_per_block_max: 65536,
    shared_per_sm: 233472,
    shared_reserved_per_block: 1024,
    core_clock_khz: 1_980_000,
    memory_bandwidth_bps: 4.8e12,
};
const of = (values: Record<string, number>): Record<string, MetricColumn> =>
    Object.fromEntries(Object.entries(values).map(([name, mean]) => [name, { mean, min: mean, max: mean, count: 1 }]));
const op = (name: string): string => `sm__sass_thread_inst_executed_op_${name}_pred_on.sum`;

describe("a roofline", () => {
    test("counts a fused operation twice and adds both directions of DRAM", () => {
        const result = rooflineOf(
            of({
                [op("fadd")]: 100,
                [op("ffma")]: 450,
                dram_read_bytes: 400,
                dram_write_bytes: 100,
                "gpu__time_duration.sum": 1000,
            }),
            h200,
            null,
        );
        if (typeof result === "string") throw new Error(result);
        expect(result).toMatchObject({ unit: "operation", work: 1000, bytes: 500, intensity: 2, perSecond: 1e9 });
        expect(result.parts).toEqual([{ name: "single precision", work: 1000 }]);
        expect(result.roofs[0]?.perSecond).toBeCloseTo(2 * 128 * 132 * 1.98e9, -6);
        expect(roofAt(result)).toMatchObject({ name: "memory", perSecond: 9.6e12 });
    });

    test("takes instructions where operations were not counted", () => {
        const result = rooflineOf(
            of({ "sm__inst_executed.sum": 5000, "dram__bytes_read.sum": 100, "dram__bytes_write.sum": 0 }),
            h200,
            2000,
        );
        expect(result).toMatchObject({ unit: "instruction", intensity: 50, perSecond: 2.5e9, seconds: 2e-6 });
    });

    test("says what was not measured", () => {
        expect(rooflineOf(of({ dram_read_bytes: 1, dram_write_bytes: 1 }), h200, 1)).toMatch(/operations/);
        expect(rooflineOf(of({ [op("ffma")]: 1, dram_read_bytes: 1 }), h200, 1)).toMatch(/DRAM traffic was not/);
        expect(rooflineOf(of({ [op("ffma")]: 1, dram_read_bytes: 0, dram_write_bytes: 0 }), h200, 1)).toMatch(
            /no bytes/,
        );
        expect(rooflineOf(of({ [op("ffma")]: 1, dram_read_bytes: 1, dram_write_bytes: 1 }), h200, null)).toMatch(
            /time/,
        );
    });

    test("has the roof of the tensor cores for the fastest kind of input that was used", () => {
        const tensor = (kind: string): string => `sm__ops_path_tensor_src_${kind}.sum`;
        const names = (values: Record<string, number>, device = h200): [string[], string[]] => {
            const result = rooflineOf(of({ dram_read_bytes: 1, dram_write_bytes: 1, ...values }), device, 1000);
            if (typeof result === "string") throw new Error(result);
            return [result.roofs.map((roof) => `${roof.name} ${(roof.perSecond / 1e12).toFixed(0)}`), result.missing];
        };
        const plain = ["single precision 67", "double precision 33"];
        expect(names({ [op("ffma")]: 1, [tensor("fp8")]: 0 })).toEqual([plain, []]);
        const bf16 = tensor("bf16_dst_fp32");
        expect(names({ [bf16]: 9, [tensor("fp8")]: 0 })[0]).toEqual([...plain, "tensor cores, 16 bit 1071"]);
        expect(names({ [bf16]: 9, [tensor("fp8")]: 1 })[0]).toEqual([...plain, "tensor cores, 8 bit 2141"]);
        expect(names({ [tensor("tf32_dst_fp32")]: 9 })[0]).toEqual([...plain, "tensor cores, TF32 535"]);
        expect(names({ [tensor("fp64")]: 9 })[1]).toHaveLength(1);
        expect(names({ [tensor("fp16")]: 9 }, { ...h200, compute_major: 10 })[1]).toHaveLength(1);
    });

    test("draws no roof of a device that it does not know", () => {
        const metrics = of({ [op("ffma")]: 10, dram_read_bytes: 1, dram_write_bytes: 1 });
        const result = rooflineOf(metrics, { ...h200, compute_minor: 3, memory_bandwidth_bps: null }, 1000);
        if (typeof result === "string") throw new Error(result);
        expect(result.roofs).toEqual([]);
        expect(result.missing).toHaveLength(2);
        expect(roofAt(result)).toBeNull();
    });
});
