// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from "vitest";
import type { Counters, Instruction, KernelResources } from "./answers";
import { codeView, dataText, mainStall, placesOf, resourcesText } from "./view";

function step(index: number, more: Partial<Instruction> = {}): Instruction {
    return {
        pc: index * 16,
        sass: "NOP",
        is_raw: false,
        word: null,
        is_beyond_end: false,
        file: "a.cu",
        line: 1,
        source: null,
        inlined_at: [],
        samples: 0,
        not_issued: 0,
        stalls: {},
        counters: null,
        ...more,
    };
}
const counters = (executed: number): Counters => ({ inst_executed: executed, coalescing: null }) as Counters;

describe("a function by lines", () => {
    const code = [
        step(0, { samples: 5, stalls: { wait: 5 } }),
        step(1, { line: 2, samples: 20, stalls: { long_scoreboard: 15, selected: 5 }, counters: counters(7) }),
        step(2, { samples: 1, stalls: { wait: 1 }, counters: counters(9) }),
        step(3, { file: "b.cuh", line: 4, inlined_at: [{ file: "a.cu", line: 2 }] }),
        step(4, { file: null, line: null }),
    ];
    const view = codeView(code);

    test("has the samples of each line once", () => {
        const file = view.files.find((candidate) => candidate.file === "a.cu");
        expect(file?.samples).toBe(26);
        expect(file?.lines.get(1)).toMatchObject({
            samples: 6,
            stalls: { wait: 6 },
            executed: 9,
            instructions: [0, 2],
        });
        expect(file?.lines.get(2)).toMatchObject({ samples: 20, executed: 7, instructions: [1, 3] });
        expect(view.files.map((candidate) => candidate.file)).toEqual(["a.cu", "b.cuh"]);
    });

    test("knows its hottest instructions and what there is to show", () => {
        expect(view.hottest).toEqual([1, 0, 2]);
        expect(view).toMatchObject({
            samplesMost: 20,
            executedMost: 9,
            hasSamples: true,
            hasCounters: true,
            hasMemoryCounters: false,
        });
        expect(codeView([])).toMatchObject({ files: [], hottest: [], hasSamples: false, hasCounters: false });
    });

    test("leads from an instruction to every line that it stands for", () => {
        expect(placesOf(code[3] as Instruction)).toEqual([
            { file: "b.cuh", line: 4 },
            { file: "a.cu", line: 2 },
        ]);
        expect(placesOf(code[4] as Instruction)).toEqual([]);
    });

    test("an instruction that issued waited for nothing", () => {
        expect(mainStall({ selected: 90, wait: 3, barrier: 4 })).toBe("barrier");
        expect(mainStall({ selected: 90, not_selected: 3 })).toBeNull();
    });
});

describe("the data in words", () => {
    const windows = [
        { source: "pc_sampling", covered_ns: 14.9e9, launches: 27, launches_are_exact: true },
        { source: "sass_metrics", covered_ns: 1e9, launches: 40, launches_are_exact: true },
    ];
    test("names samples, time, mode, period and launches", () => {
        expect(
            dataText({
                sampling: [{ mode: "continuous", period_cycles: 2 ** 18 }],
                windows,
                samples: 412908,
                kernels: 184280,
                untimed: 40,
            }),
        ).toBe("412,908 samples in 14.9 s (continuous, period 2^18) · counters from 40 of 184,320 launches");
    });
    test("says what there is not", () => {
        expect(dataText({ sampling: [], windows: [], samples: null, kernels: null, untimed: 0 })).toBe(
            "no samples · no window of counters",
        );
    });
});

describe("what an AMD kernel takes", () => {
    const resources: KernelResources = {
        arch: "gfx90a",
        vgprs: 128,
        agprs: 0,
        sgprs: 16,
        vgpr_spills: 0,
        sgpr_spills: null,
        lds_bytes: 1024,
        scratch_bytes: 0,
        wave_size: 64,
        work_group_size: 256,
        waves_per_simd: 4,
        waves_per_simd_max: 8,
        limiter: "VGPRs",
        occupancy_problem: null,
    };
    test("is one line", () => {
        expect(resourcesText(resources)).toMatch(
            /^gfx90a · 128 VGPRs · 16 SGPRs · LDS .+ · waves of 64 · 4 of 8 waves per SIMD, limited by VGPRs$/,
        );
    });
    test("says what is not known and why", () => {
        const unknown = { ...resources, vgprs: null, waves_per_simd: null, occupancy_problem: "no rules" };
        expect(resourcesText(unknown)).not.toContain("VGPRs");
        expect(resourcesText(unknown)).toContain("occupancy unavailable: no rules");
        expect(resourcesText({ ...resources, work_group_size: null })).toContain("by registers alone");
    });
});
