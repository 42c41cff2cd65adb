// SPDX-License-Identifier: Apache-2.0
// Range metrics of a kernel, and its roofline.
import type { JSX } from "preact";
import { traceCommand } from "../commands";
import * as format from "../format";
import { Command } from "../ui/states";
import { type Column, Table } from "../ui/table";
import type { Device, MetricGroup } from "./answers";
import { scaleOf } from "./axis";
import { Plot, XAxis, YAxis } from "./charts";
import { metricText } from "./measures";
import { roofAt, type Roofline, rooflineOf } from "./roofline";

const rangeCommand = (set: string): string =>
    traceCommand(`--engine RangeProfiler --range-mode kernel --range-metrics ${set}`);

interface MetricRow {
    name: string;
    mean: number | null;
    min: number | null;
    max: number | null;
}

const WIDTH_PX = 128; // 17,179,869,184
const columns: Column<MetricRow>[] = [
    { id: "name", title: "metric", value: (row) => row.name, isKept: true },
    {
        id: "mean",
        title: "mean",
        width: WIDTH_PX,
        value: (row) => row.mean,
        text: (row) => metricText(row.name, row.mean),
        isKept: true,
    },
    {
        id: "min",
        title: "least",
        width: WIDTH_PX,
        value: (row) => row.min,
        text: (row) => metricText(row.name, row.min),
    },
    {
        id: "max",
        title: "largest",
        width: WIDTH_PX,
        value: (row) => row.max,
        text: (row) => metricText(row.name, row.max),
    },
];

export function RangeMetrics({ groups }: { groups: readonly MetricGroup[] }): JSX.Element {
    if (!groups.length)
        return (
            <>
                <p class="dim">not recorded: no range profiler saw this kernel</p>
                <Command text={rangeCommand("overview")} />
            </>
        );
    return (
        <>
            {groups.map((group) => (
                <MetricTable
                    key={`${group.device}/${group.metric_set}`}
                    group={group}
                    words={format.plural(group.results, "execution")}
                />
            ))}
        </>
    );
}

// Of one kernel or scope; words: what was measured.
export function MetricTable({ group, words }: { group: MetricGroup; words: string }): JSX.Element {
    const rows = Object.entries(group.metrics).map(([name, column]) => ({ name, ...column }));
    return (
        <div>
            <p class="dim small">
                {words}
                {group.device === null ? "" : ` on GPU ${group.device}`}
                {group.metric_set ? `, set ${group.metric_set}` : ""}
                {group.passes_needed === null ? "" : `, ${group.passes_needed} passes`}
                {group.incomplete
                    ? `; ${format.count(group.incomplete)} without values${group.reason ? `: ${group.reason}` : ""}`
                    : ""}
            </p>
            {rows.length === 0 ? null : (
                <Table
                    id="metrics"
                    label="range metrics"
                    rows={rows}
                    columns={columns}
                    rowKey={(row) => row.name}
                    heightMax={360}
                    isBare={rows.length < 8}
                />
            )}
        </div>
    );
}

const perSecond = (value: number, unit: Roofline["unit"]): string => {
    const suffix = unit === "operation" ? "FLOP/s" : "inst/s";
    for (const [scale, letter] of [
        [1e15, "P"],
        [1e12, "T"],
        [1e9, "G"],
        [1e6, "M"],
        [1e3, "k"],
    ] as const)
        if (value >= scale) return `${format.digits(value / scale)} ${letter}${suffix}`;
    return `${format.digits(value)} ${suffix}`;
};

function RooflineChart({ roofline, colour }: { roofline: Roofline; colour: string }): JSX.Element {
    const { roofs, bytesPerSecond: slope, unit } = roofline;
    const top = Math.max(roofline.perSecond, ...roofs.map((roof) => roof.perSecond)) * 2;
    const ridge = slope && roofs.length ? Math.max(...roofs.map((roof) => roof.perSecond)) / slope : roofline.intensity;
    const left = Math.min(roofline.intensity, ridge) / 20;
    const right = Math.max(roofline.intensity, ridge) * 20;
    const bottom = Math.min(roofline.perSecond, slope ? slope * left : roofline.perSecond) / 2;
    const bound = roofAt(roofline);
    const label = `roofline: ${perSecond(roofline.perSecond, unit)} at ${format.digits(roofline.intensity)} ${unit}s a byte`;
    return (
        <Plot height={240} label={label} margin={{ left: 96 }}>
            {(frame) => {
                const x = scaleOf(left, right, frame.left, frame.right, true, 5);
                const y = scaleOf(bottom, top, frame.bottom, frame.top, true, 5);
                const px = x(roofline.intensity);
                const py = y(roofline.perSecond);
                const highest = roofs.reduce((best, roof) => Math.max(best, roof.perSecond), 0) || top;
                const slopeEnd = slope ? Math.min(right, highest / slope) : left;
                return (
                    <>
                        <YAxis ticks={y.ticks} at={y} frame={frame} text={(value) => perSecond(value, unit)} />
                        {slope ? (
                            <path
                                class={`roof${bound?.name === "memory" ? " is-limit" : ""}`}
                                d={`M${x(left)} ${y(slope * left)}L${x(slopeEnd)} ${y(slope * slopeEnd)}`}
                            />
                        ) : null}
                        {slope ? (
                            <text x={x(Math.sqrt(left * slopeEnd)) + 12} y={y(slope * Math.sqrt(left * slopeEnd)) + 16}>
                                DRAM {format.rate(slope)}
                            </text>
                        ) : null}
                        {roofs.map((roof, index) => (
                            <g key={roof.name}>
                                <path
                                    class={`roof${bound?.name === roof.name ? " is-limit" : ""}`}
                                    d={`M${slope ? x(roof.perSecond / slope) : frame.left} ${y(roof.perSecond)}H${frame.right}`}
                                />
                                <text x={frame.right} y={y(roof.perSecond) + (index ? 14 : -4)} text-anchor="end">
                                    {roof.name} {perSecond(roof.perSecond, unit)}
                                </text>
                            </g>
                        ))}
                        {bound ? <path class="drop" d={`M${px} ${py}V${y(bound.perSecond)}`} /> : null}
                        <circle class="point" cx={px} cy={py} r={5} style={{ fill: colour }} />
                        <XAxis ticks={x.ticks} at={x} frame={frame} text={(value) => format.digits(value)} />
                    </>
                );
            }}
        </Plot>
    );
}

export function RooflinePart(props: {
    groups: readonly MetricGroup[];
    devices: readonly Device[];
    medianNs: number | null;
    colour: string;
}): JSX.Element {
    const results = props.groups.map((group) =>
        rooflineOf(
            group.metrics,
            props.devices.find((device) => device.device === group.device) ?? null,
            props.medianNs,
        ),
    );
    const roofline = results.find((result): result is Roofline => typeof result !== "string");
    if (!roofline)
        return (
            <>
                <p class="dim">
                    not drawn:{" "}
                    {results.find((result) => typeof result === "string") ??
                        "no range metrics of this kernel were recorded"}
                </p>
                <Command text={rangeCommand("roofline")} />
            </>
        );
    const bound = roofAt(roofline);
    return (
        <>
            <p class="dim small">
                {perSecond(roofline.perSecond, roofline.unit)} at {format.digits(roofline.intensity)} {roofline.unit}s
                per byte of DRAM traffic
                {bound
                    ? `; the ${bound.name} roof there is ${perSecond(bound.perSecond, roofline.unit)}, ` +
                      `${format.percent(bound.reached)} of it was reached`
                    : ""}
                {roofline.parts.length > 1
                    ? ` (${roofline.parts.map((part) => `${part.name} ${format.share(part.work, roofline.work)}`).join(", ")})`
                    : ""}
                {roofline.unit === "instruction" ? "; operations were not counted, so warp instructions are shown" : ""}
            </p>
            <RooflineChart roofline={roofline} colour={props.colour} />
            {roofline.missing.map((what) => (
                <p class="dim small" key={what}>
                    not drawn: {what}
                </p>
            ))}
        </>
    );
}
