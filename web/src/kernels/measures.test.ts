// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from "vitest";
import type { MetricGroup } from "./answers";
import { measuresOf, metricColumns, metricText } from "./measures";

const group = (over: Partial<MetricGroup>): MetricGroup => ({
    device: 0,
    metric_set: "custom",
    results: 1,
    incomplete: 0,
    reason: null,
    passes_needed: 1,
    passes_collected: 1,
    instances: null,
    metrics: {},
    ...over,
});
const column = (mean: number | null, count: number) => ({ mean, min: mean, max: mean, count });

describe("measures of kernels", () => {
    test("are means over the executions of all groups", () => {
        const measures = measuresOf([
            group({ kernel: "k", results: 3, metrics: { "gpu__time_duration.sum": column(10, 3) } }),
            group({
                kernel: "k",
                device: 1,
                results: 2,
                incomplete: 1,
                metrics: { "gpu__time_duration.sum": column(30, 1) },
            }),
            group({ scope: "k", metrics: { "gpu__time_duration.sum": column(1000, 1) } }),
        ]);
        expect([...measures.keys()]).toEqual(["k"]);
        expect(measures.get("k")?.executions).toBe(4);
        expect(measures.get("k")?.means.get("gpu__time_duration.sum")).toBe(15);
    });

    test("leave out what has no value", () => {
        const measures = measuresOf([group({ kernel: "k", metrics: { a: column(null, 0), b: column(0, 1) } })]);
        expect([...(measures.get("k")?.means ?? [])]).toEqual([["b", 0]]);
    });

    test("have the known metrics first, and no more columns than asked for", () => {
        const only = group({
            kernel: "k",
            metrics: {
                my__metric_with_a_very_long_name_indeed: column(1, 1),
                "sm__throughput.avg.pct_of_peak_sustained_elapsed": column(1, 1),
                "gpu__time_duration.sum": column(1, 1),
            },
        });
        const measures = [...measuresOf([only]).values()];
        expect(metricColumns(measures, 2).map((metric) => metric.title)).toEqual(["duration", "SM"]);
        const [, , last] = metricColumns(measures, 3);
        expect(last?.name).toBe("my__metric_with_a_very_long_name_indeed");
        expect(last?.title.length).toBeLessThanOrEqual(24);
        expect(metricColumns([], 3)).toEqual([]);
    });

    test("are written in the unit that the name tells", () => {
        expect(metricText("sm__throughput.avg.pct_of_peak_sustained_elapsed", 12.34)).toBe("12.3 %");
        expect(metricText("gpu__time_duration.sum", 2_730_128)).toBe("2.73 ms");
        expect(metricText("sm__inst_executed.sum", 1234567)).toBe("1,234,567");
        expect(metricText("sm__inst_executed.sum", null)).toBe("unavailable");
    });
});
