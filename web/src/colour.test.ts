// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { copyOklch, hueOf, kernelOklch, rgb, stallFamily } from "./colour";

describe("colours", () => {
    it("of a kernel depend on its name alone and are equally loud", () => {
        expect(kernelOklch("gemm", true)).toEqual(kernelOklch("gemm", true));
        expect(kernelOklch("gemm", true)).toMatchObject({ l: 0.72, c: 0.11 });
        expect(kernelOklch("gemm", false).h).toBe(kernelOklch("gemm", true).h);
    });
    it("of similar names differ", () => {
        const hues = new Set(Array.from({ length: 40 }, (_unused, index) => Math.floor(hueOf(`kernel_${index}`) / 30)));
        expect(hues.size).toBeGreaterThan(8);
    });
    it("of copies tell directions apart, however they are written", () => {
        expect(copyOklch("H2D", true).h).toBe(200);
        expect(copyOklch("DtoH", true).h).toBe(320);
        expect(copyOklch("D2D", true).h).toBe(160);
        expect(copyOklch("other", true).c).toBeLessThan(0.05);
    });
    it("of stalls go by family", () => {
        expect(stallFamily("long_scoreboard")).toBe("memory");
        expect(stallFamily("stall_lg_throttle")).toBe("memory");
        expect(stallFamily("math_pipe_throttle")).toBe("execution");
        expect(stallFamily("barrier")).toBe("synchronization");
        expect(stallFamily("branch_resolving")).toBe("control");
        expect(stallFamily("selected")).toBe("issued");
        expect(stallFamily("something_new")).toBe("other");
    });
    it("become sRGB", () => {
        expect(rgb({ l: 1, c: 0, h: 0 })).toEqual([255, 255, 255]);
        expect(rgb({ l: 0, c: 0, h: 0 })).toEqual([0, 0, 0]);
        const [red, green, blue] = rgb({ l: 0.628, c: 0.2577, h: 29.23 });
        expect(red).toBeGreaterThan(250);
        expect(green).toBeLessThan(10);
        expect(blue).toBeLessThan(10);
    });
});
