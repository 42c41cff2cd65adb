// SPDX-License-Identifier: Apache-2.0
// Time on the page. Wall clock times in nanoseconds do not fit into doubles, so the session's start is stored as a
// bigint and everything else as a double: nanoseconds since that start, exact up to 104 days.

/** A time range in nanoseconds since the session's start. */
export interface View {
    readonly from: number;
    readonly to: number;
}

export const SPAN_MIN_NS = 20;

/** An integer from getExactJson: a bigint if a double cannot represent it. */
export type Exact = number | bigint;

export class TimeBase {
    /** The offset to a multiple of 2^50 ns: tiles are aligned to it, like the store's sums. */
    readonly align: number;

    constructor(readonly startNs: bigint) {
        this.align = Number(BigInt.asUintN(50, startNs));
    }

    offset(wallNs: Exact): number {
        return Number(BigInt(wallNs) - this.startNs);
    }

    wall(offsetNs: number): bigint {
        return this.startNs + BigInt(Math.round(offsetNs));
    }
}

export const spanOf = (view: View): number => view.to - view.from;

/** Limits the view to the session plus a small margin, and to a minimum of some nanoseconds. */
export function clampView(view: View, endNs: number): View {
    const most = endNs * 1.1 + 2 * SPAN_MIN_NS;
    const span = Math.min(Math.max(spanOf(view), SPAN_MIN_NS), most),
        air = Math.min(endNs * 0.05 + SPAN_MIN_NS, span / 2);
    const from = Math.min(Math.max(view.from, -air), Math.max(-air, endNs + air - span));
    return { from, to: from + span };
}

/** factor < 1 zooms in; the time under the pointer stays fixed. */
export function zoomView(view: View, atNs: number, factor: number, endNs: number): View {
    const span = Math.max(spanOf(view) * factor, SPAN_MIN_NS);
    const share = (atNs - view.from) / spanOf(view);
    return clampView({ from: atNs - span * share, to: atNs + span * (1 - share) }, endNs);
}

export function panView(view: View, deltaNs: number, endNs: number): View {
    return clampView({ from: view.from + deltaNs, to: view.to + deltaNs }, endNs);
}

/** A view in which the range fills most of the width. */
export function fitView(from: number, to: number, endNs: number): View {
    const air = Math.max((to - from) * 0.1, SPAN_MIN_NS / 2);
    return clampView({ from: from - air, to: to + air }, endNs);
}

/** Moves the view as little as possible to show the range; its width changes only if the range would be invisible. */
export function revealView(view: View, from: number, to: number, endNs: number): View {
    const length = to - from;
    if (length > spanOf(view) || length < spanOf(view) / 4000)
        return fitView(from - length * 20, to + length * 20, endNs);
    if (from >= view.from && to <= view.to) return view;
    const middle = (from + to) / 2;
    return clampView({ from: middle - spanOf(view) / 2, to: middle + spanOf(view) / 2 }, endNs);
}

/** Steps of 1, 2 and 5 times a power of ten below a second, of clock fractions above. */
export function tickStep(spanNs: number, ticksMax: number): number {
    const least = spanNs / Math.max(ticksMax, 1);
    const second = 1e9;
    for (const step of [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200, 86400])
        if (step * second >= least && least > second / 2) return step * second;
    if (least > second / 2) return Math.ceil(least / (86400 * second)) * 86400 * second;
    const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
    for (const factor of [1, 2, 5, 10]) if (power * factor >= least) return power * factor;
    return power * 10;
}

export function ticksOf(view: View, ticksMax: number): { step: number; ticks: number[] } {
    const step = tickStep(spanOf(view), ticksMax);
    const ticks: number[] = [];
    for (let at = Math.ceil(view.from / step) * step; at <= view.to && ticks.length < 1000; at += step) ticks.push(at);
    return { step, ticks };
}

const units: readonly [number, string][] = [
    [1e9, "s"],
    [1e6, "ms"],
    [1e3, "us"],
    [1, "ns"],
];

/** A time since the start for the ruler, with as many digits as the step requires. */
export function tickLabel(atNs: number, stepNs: number): string {
    const sign = atNs < 0 ? "-" : "";
    const at = Math.abs(Math.round(atNs));
    if (at >= 60e9 && stepNs >= 1e9) {
        const seconds = Math.round(at / 1e9),
            minutes = Math.floor(seconds / 60),
            hours = Math.floor(minutes / 60);
        const two = (value: number) => String(value).padStart(2, "0");
        return hours
            ? `${sign}${hours}:${two(minutes % 60)}:${two(seconds % 60)}`
            : `${sign}${minutes}:${two(seconds % 60)}`;
    }
    if (at === 0) return "0";
    const [size, unit] = units.find(([least]) => at >= least) ?? [1, "ns"];
    const digits = Math.max(0, Math.ceil(Math.log10(size) - Math.log10(Math.max(stepNs, 1)) - 1e-9));
    return `${sign}${(at / size).toFixed(digits)} ${unit}`;
}
