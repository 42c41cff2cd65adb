// SPDX-License-Identifier: Apache-2.0
// Axis ticks: few, round numbers.

export function linearTicks(least: number, most: number, count: number): number[] {
    if (!(most > least) || count < 1) return [least];
    const raw = (most - least) / count;
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= raw) ?? raw;
    const ticks: number[] = [];
    for (let i = Math.ceil(least / step - 1e-9); i * step <= most * (1 + 1e-12) && ticks.length < 100; i++)
        ticks.push(Number((i * step).toPrecision(12)) || 0);
    return ticks;
}

// Powers of ten, with 2 and 5 in between if there is room.
export function logTicks(least: number, most: number, count: number): number[] {
    if (!(least > 0) || !(most > least)) return [least];
    const decades = Math.log10(most / least);
    const factors = decades * 3 <= count ? [1, 2, 5] : [1];
    const every = Math.max(1, Math.ceil(decades / count));
    const ticks: number[] = [];
    for (let power = Math.floor(Math.log10(least)); 10 ** power <= most; power++) {
        if (power % every) continue;
        for (const factor of factors) {
            const value = factor * 10 ** power;
            if (value >= least * (1 - 1e-12) && value <= most * (1 + 1e-12)) ticks.push(value);
        }
    }
    return ticks.length ? ticks : linearTicks(least, most, count);
}

export interface Scale {
    (value: number): number;
    ticks: number[];
}

export function scaleOf(least: number, most: number, from: number, to: number, isLog: boolean, count: number): Scale {
    const place = isLog
        ? (value: number): number =>
              from + ((to - from) * Math.log(Math.max(value, least) / least)) / Math.log(most / least || 1)
        : (value: number): number => from + ((to - from) * (value - least)) / (most - least || 1);
    const scale = ((value: number) => {
        const at = place(value);
        return Number.isFinite(at) ? at : from;
    }) as Scale;
    scale.ticks = isLog ? logTicks(least, most, count) : linearTicks(least, most, count);
    return scale;
}
