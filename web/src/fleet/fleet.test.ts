// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";

import { engineName, isUntimed } from "../sessions/list";
import { gpuProblems, type Gpu } from "./fleet";

const gpu = (metrics: Record<string, number | null>): Gpu => ({
    uuid: "GPU-1",
    name: "a GPU",
    device: 0,
    first_seen_ns: 0,
    last_seen_ns: 0,
    session_id: "s",
    metrics: { sample_ns: 1, ...metrics },
});
const texts = (metrics: Record<string, number | null>): string[] =>
    gpuProblems("h", gpu(metrics)).map((problem) => problem.text);

describe("problems of a GPU", () => {
    it("a junction may be hotter than the other sensors", () => {
        expect(texts({ temp_c: 92 })).toEqual(["92 °C"]);
        expect(texts({ temp_c: 92, temp_junction_c: 92, temp_edge_c: null })).toEqual([]);
        expect(texts({ temp_c: 92, temp_junction_c: 99, temp_edge_c: 92 })).toEqual(["92 °C"]);
        expect(texts({ temp_c: 101, temp_junction_c: 101 })).toEqual(["101 °C"]);
    });
    it("limits of both vendors have their words", () => {
        expect(texts({ throttle_reasons: 0x204 })).toEqual(["slowed by power", "slowed by a current limit"]);
        expect(texts({ throttle_reasons: 0x1 })).toEqual([]);
    });
});

describe("names of engines", () => {
    it("the vendor is not part of the name", () => {
        expect(engineName("nvidia.pc_sampling")).toBe("pc sampling");
        expect(engineName("amd.none")).toBe("none");
    });

    it("calls kernels untimed only where counters were asked for and none has a time", () => {
        expect(isUntimed({ kernels: 0, engine: "nvidia.range_profiler" })).toBe(true);
        expect(isUntimed({ kernels: 0, engine: "nvidia.trace" })).toBe(false);
        expect(isUntimed({ kernels: 3, engine: "nvidia.sass_metrics" })).toBe(false);
        expect(isUntimed({ kernels: 0, engine: null })).toBe(false);
    });
});
