// SPDX-License-Identifier: Apache-2.0
// Range metrics as numbers: with their unit, and one mean per kernel.
import * as format from "../format";
import type { MetricGroup } from "./answers";

// A metric's value with its unit, which is part of its name.
export function metricText(name: string, value: number | null): string {
    if (value === null) return format.UNAVAILABLE;
    if (/pct/.test(name)) return `${format.digits(value)} %`;
    if (/bytes.*per_second/.test(name)) return format.rate(value);
    if (/bytes/.test(name)) return format.bytes(value);
    if (/time_duration/.test(name)) return format.time(value);
    return Number.isInteger(value) ? format.count(value) : format.digits(value);
}

export interface KernelMeasures {
    executions: number; // with values
    means: Map<string, number>;
}

// By kernel: the mean over all executions, of all devices and sets of metrics.
export function measuresOf(groups: readonly MetricGroup[]): Map<string, KernelMeasures> {
    const sums = new Map<string, { executions: number; values: Map<string, { sum: number; count: number }> }>();
    for (const group of groups) {
        if (group.kernel === undefined || group.kernel === null) continue;
        const kernel = sums.get(group.kernel) ?? { executions: 0, values: new Map() };
        sums.set(group.kernel, kernel);
        kernel.executions += group.results - group.incomplete;
        for (const [name, column] of Object.entries(group.metrics)) {
            if (column.mean === null || column.count === 0) continue;
            const value = kernel.values.get(name) ?? { sum: 0, count: 0 };
            value.sum += column.mean * column.count;
            value.count += column.count;
            kernel.values.set(name, value);
        }
    }
    return new Map(
        [...sums].map(([name, kernel]) => [
            name,
            {
                executions: kernel.executions,
                means: new Map([...kernel.values].map(([metric, value]) => [metric, value.sum / value.count])),
            },
        ]),
    );
}

export interface MetricTitle {
    name: string;
    title: string;
    isDuration: boolean;
}

const DURATION = "gpu__time_duration.sum";
// The most important metrics, with titles short enough for a column.
const known: readonly (readonly [string, string])[] = [
    [DURATION, "duration"],
    ["sm__throughput.avg.pct_of_peak_sustained_elapsed", "SM"],
    ["gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", "DRAM"],
    ["l1tex__throughput.avg.pct_of_peak_sustained_active", "L1"],
    ["lts__throughput.avg.pct_of_peak_sustained_elapsed", "L2"],
    ["sm__warps_active.avg.pct_of_peak_sustained_active", "warps active"],
    ["sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active", "tensor cores"],
];
const TITLE_MOST = 24;

// At most `most` of the metrics that any kernel has, known ones first.
export function metricColumns(kernels: readonly KernelMeasures[], most: number): MetricTitle[] {
    const present = new Set(kernels.flatMap((kernel) => [...kernel.means.keys()]));
    const first = known.filter(([name]) => present.has(name));
    const titles = new Map<string, string>(first);
    for (const name of present) if (!titles.has(name)) titles.set(name, format.middleCut(name, TITLE_MOST));
    return [...titles].slice(0, most).map(([name, title]) => ({ name, title, isDuration: name === DURATION }));
}
