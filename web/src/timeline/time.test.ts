// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import {
    clampView,
    fitView,
    panView,
    revealView,
    SPAN_MIN_NS,
    spanOf,
    tickLabel,
    ticksOf,
    tickStep,
    TimeBase,
    zoomView,
} from "./time";

const hour = 3600e9;

describe("time", () => {
    it("wall clock times survive the way to offsets and back to the nanosecond", () => {
        const base = new TimeBase(1794720054622423212n);
        for (const wall of [1794720054622423212n, 1794720054622423213n, 1794720066933342639n, 1794806466933342639n]) {
            expect(base.wall(base.offset(wall))).toBe(wall);
        }
        expect(base.offset(1794720054622423213n)).toBe(1);
        expect((base.startNs - BigInt(base.align)) % (1n << 50n)).toBe(0n);
    });

    it("what is under the pointer stays there when zooming, from hours to nanoseconds", () => {
        let view = { from: 0, to: hour };
        const at = 1234567890123;
        for (let i = 0; i < 200 && spanOf(view) > SPAN_MIN_NS; i++) {
            const share = (at - view.from) / spanOf(view);
            view = zoomView(view, at, 0.7, hour);
            expect((at - view.from) / spanOf(view)).toBeCloseTo(share, 3);
        }
        expect(spanOf(view)).toBeCloseTo(SPAN_MIN_NS, 6);
        expect(view.from).toBeLessThanOrEqual(at);
        expect(view.to).toBeGreaterThanOrEqual(at);
    });

    it("a view never leaves the session nor becomes wider than it", () => {
        expect(panView({ from: 0, to: 1e6 }, -1e12, 1e9).to).toBeGreaterThan(0);
        expect(panView({ from: 0, to: 1e6 }, 1e12, 1e9).from).toBeLessThan(1e9);
        expect(spanOf(clampView({ from: -1e15, to: 1e15 }, 1e9))).toBeLessThan(1.2e9);
        expect(spanOf(zoomView({ from: 0, to: 1e9 }, 5e8, 1000, 1e9))).toBeLessThan(1.2e9);
    });

    it("revealing moves no more than it must", () => {
        const view = { from: 1000, to: 2000 };
        expect(revealView(view, 1200, 1300, 1e6)).toEqual(view);
        const moved = revealView(view, 5000, 5100, 1e6);
        expect(spanOf(moved)).toBeCloseTo(1000);
        expect(moved.from).toBeLessThan(5000);
        expect(moved.to).toBeGreaterThan(5100);
        expect(spanOf(revealView({ from: 0, to: 1e9 }, 5000, 5010, 1e9))).toBeLessThan(1e6);
        expect(spanOf(fitView(100, 200, 1e6))).toBeGreaterThan(100);
    });

    it("ticks are round numbers that fit and their labels tell them apart", () => {
        for (const span of [20, 1234, 5e6, 7.7e9, 90e9, 3 * hour, 400 * hour]) {
            const view = { from: 3.3e9, to: 3.3e9 + span };
            const { step, ticks } = ticksOf(view, 10);
            expect(ticks.length).toBeLessThanOrEqual(11);
            expect(ticks.length).toBeGreaterThanOrEqual(2);
            expect(step).toBe(tickStep(span, 10));
            expect(new Set(ticks.map((tick) => tickLabel(tick, step))).size).toBe(ticks.length);
        }
        expect(tickLabel(0, 1)).toBe("0");
        expect(tickLabel(1500000, 100000)).toBe("1.5 ms");
        expect(tickLabel(7970753581, 1)).toBe("7.970753581 s");
        expect(tickLabel(90e9, 30e9)).toBe("1:30");
        expect(tickLabel(3661e9, 1e9)).toBe("1:01:01");
        expect(tickLabel(-5, 1)).toBe("-5 ns");
    });
});
