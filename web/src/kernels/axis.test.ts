// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from "vitest";
import { linearTicks, logTicks, scaleOf } from "./axis";

describe("an axis", () => {
    test("has round ticks inside of its range", () => {
        expect(linearTicks(0, 10, 5)).toEqual([0, 2, 4, 6, 8, 10]);
        expect(linearTicks(97, 103, 3)).toEqual([98, 100, 102]);
        expect(Object.is(linearTicks(-1, 1, 2)[1], 0)).toBe(true);
        expect(logTicks(1, 1000, 4)).toEqual([1, 10, 100, 1000]);
        expect(logTicks(10, 100, 6)).toEqual([10, 20, 50, 100]);
        expect(logTicks(3, 4, 5)).toEqual([3, 3.2, 3.4, 3.6, 3.8, 4]);
    });

    test("handles empty and invalid ranges", () => {
        expect(linearTicks(5, 5, 4)).toEqual([5]);
        expect(logTicks(0, 10, 4)).toEqual([0]);
        expect(scaleOf(5, 5, 0, 100, false, 3)(5)).toBe(0);
        expect(scaleOf(1, 1, 0, 100, true, 3)(1)).toBe(0);
    });

    test("leads from values to places", () => {
        expect(scaleOf(0, 10, 0, 100, false, 3)(2.5)).toBe(25);
        expect(scaleOf(1, 100, 0, 100, true, 3)(10)).toBeCloseTo(50);
        expect(scaleOf(0, 10, 100, 0, false, 3)(10)).toBe(0);
    });
});
