// SPDX-License-Identifier: Apache-2.0
// The history of one GPU: dragging over a chart selects a time range.
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import * as format from "../format";
import { useAnswer } from "../query";
import { href, route, setParams } from "../route";
import { AreaChart } from "../ui/area";
import { Answered } from "../ui/states";
import { metricsPath, rangeSeconds, stepsOf, stretchOf, type Gpu, type HostMetrics } from "./fleet";

interface Chart {
    title: string;
    metric: string;
    scale: number;
    text: (value: number) => string;
    max?: number;
    steps?: "binary" | "whole";
}
const charts: readonly Chart[] = [
    { title: "GPU utilization", metric: "gpu_util", scale: 1, text: (value) => `${format.digits(value)} %`, max: 100 },
    { title: "memory used", metric: "used_mib", scale: 2 ** 20, text: (value) => format.bytes(value), steps: "binary" },
    { title: "power", metric: "power_mw", scale: 1e-3, text: (value) => format.quantity(value, "W") },
    { title: "temperature", metric: "temp_c", scale: 1, text: (value) => format.quantity(value, "°C") },
    {
        title: "junction temperature",
        metric: "temp_junction_c",
        scale: 1,
        text: (value) => format.quantity(value, "°C"),
    },
    { title: "memory temperature", metric: "temp_mem_c", scale: 1, text: (value) => format.quantity(value, "°C") },
    { title: "fan", metric: "fan_rpm", scale: 1, text: (value) => format.quantity(value, "rpm") },
    { title: "core clock", metric: "clock_sm", scale: 1, text: (value) => format.quantity(value, "MHz") },
    {
        title: "SMs active",
        metric: "sm_active_bp",
        scale: 1e-2,
        text: (value) => `${format.digits(value)} %`,
        max: 100,
    },
    {
        title: "DRAM active",
        metric: "dram_active_bp",
        scale: 1e-2,
        text: (value) => `${format.digits(value)} %`,
        max: 100,
    },
    {
        title: "corrected ECC errors",
        metric: "ecc_corrected",
        scale: 1,
        text: (value) => format.count(Math.round(value)),
        steps: "whole",
    },
    {
        title: "uncorrectable ECC errors",
        metric: "ecc_uncorrected",
        scale: 1,
        text: (value) => format.count(Math.round(value)),
        steps: "whole",
    },
];
const STEPS_MAX = 600;

function OneChart({ chart, data }: { chart: Chart; data: HostMetrics }): JSX.Element | null {
    const points = data.series.find((series) => series.metric === chart.metric)?.points;
    const made = useMemo(() => {
        if (!points) return null;
        const stepNs = Math.max(
            data.step_ns,
            Math.ceil((data.to_ns - data.from_ns) / STEPS_MAX / data.step_ns) * data.step_ns,
        );
        const scaled = (figure: 1 | 2 | 3): (number | null)[] =>
            stepsOf(points, data.from_ns, data.to_ns, stepNs, figure).map((value) =>
                value === null ? null : value * chart.scale,
            );
        const mean = scaled(2);
        return {
            xs: mean.map((_value, index) => (data.from_ns + index * stepNs) / 1e9),
            series: [
                { name: "mean", values: mean, colour: "var(--data)" },
                { name: "least", values: scaled(1), colour: "var(--dim)", isDashed: true },
                { name: "largest", values: scaled(3), colour: "var(--dim)", isDashed: true },
            ],
        };
    }, [points, data, chart]);
    if (!made || !made.series[0]?.values.some((value) => value !== null)) return null;
    return (
        <figure>
            <figcaption>{chart.title}</figcaption>
            <AreaChart
                xs={made.xs}
                series={made.series}
                text={chart.text}
                isClock
                height={140}
                label={`${chart.title} over time`}
                {...(chart.max === undefined ? {} : { max: chart.max })}
                {...(chart.steps ? { steps: chart.steps } : {})}
                onRange={(from, to) => setParams({ from: Math.floor(from), to: Math.ceil(to) }, false)}
            />
        </figure>
    );
}

export function History({ host, gpu }: { host: string; gpu: Gpu }): JSX.Element {
    const { range = "1h", from, to } = route.value.params;
    const chosen =
        from !== undefined && to !== undefined && /^\d+$/.test(from) && /^\d+$/.test(to)
            ? { fromNs: BigInt(from) * 1_000_000_000n, toNs: BigInt(to) * 1_000_000_000n }
            : null;
    const stretch = chosen ?? stretchOf(gpu.metrics, rangeSeconds(range), Date.now());
    const answer = useAnswer<HostMetrics>(
        metricsPath(host),
        { gpu: gpu.uuid, from_ns: stretch.fromNs, to_ns: stretch.toNs },
        { everyMs: chosen ? 0 : 30_000 },
    );
    return (
        <section class="section" aria-label="history">
            <div class="section-head">
                <h2>
                    {host} GPU {gpu.device}
                </h2>
                <span class="dim small">
                    {gpu.name} · {format.instant(Number(stretch.fromNs))} to {format.instant(Number(stretch.toNs))} ·
                    drag over a chart to zoom
                </span>
                {chosen ? (
                    <button type="button" onClick={() => setParams({ from: null, to: null }, false)}>
                        zoom out
                    </button>
                ) : null}
                <a class="small" href={href("sessions", { gpu: gpu.uuid })}>
                    its sessions
                </a>
                <button type="button" onClick={() => setParams({ host: null, gpu: null, from: null, to: null }, false)}>
                    close
                </button>
            </div>
            <Answered
                answer={answer}
                what="history"
                isEmpty={(data) => data.series.length === 0}
                empty={<p class="dim">No samples in this time range.</p>}
            >
                {(data) => (
                    <div class="history">
                        {charts.map((chart) => (
                            <OneChart key={chart.metric} chart={chart} data={data} />
                        ))}
                    </div>
                )}
            </Answered>
        </section>
    );
}
