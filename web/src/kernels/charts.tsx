// SPDX-License-Identifier: Apache-2.0
// Charts of one kernel, as SVG: distribution of durations, durations over time, and occupancy as a function of one
// input.
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import * as format from "../format";
import { Facts, tip, tipHide, tipShow } from "../ui/tooltip";
import type { Durations, Histogram } from "./answers";
import { scaleOf } from "./axis";
import type { OccupancyPoint } from "./occupancy";

// The width of an element, updated when it changes.
export function useWidth(fallback = 640): [{ current: HTMLDivElement | null }, number] {
    const box = useRef<HTMLDivElement>(null);
    const [width, setWidth] = useState(fallback);
    useEffect(() => {
        const element = box.current;
        if (!element) return;
        const read = (): void => setWidth(Math.max(160, Math.floor(element.clientWidth)));
        read();
        const observer = new ResizeObserver(read);
        observer.observe(element);
        return () => observer.disconnect();
    }, []);
    return [box, width];
}

interface Frame {
    left: number;
    right: number;
    top: number;
    bottom: number;
}

export function Plot(props: {
    height: number;
    label: string;
    margin?: Partial<Frame>;
    children: (frame: Frame, width: number) => ComponentChildren;
}): JSX.Element {
    const [box, width] = useWidth();
    const margin = { left: 56, right: 12, top: 16, bottom: 20, ...props.margin };
    const frame = {
        left: margin.left,
        right: width - margin.right,
        top: margin.top,
        bottom: props.height - margin.bottom,
    };
    return (
        <div class="plot" ref={box}>
            <svg
                width={width}
                height={props.height}
                viewBox={`0 0 ${width} ${props.height}`}
                role="img"
                aria-label={props.label}
            >
                {props.children(frame, width)}
            </svg>
        </div>
    );
}

export function XAxis(props: {
    ticks: number[];
    at: (value: number) => number;
    frame: Frame;
    text: (value: number) => string;
}): JSX.Element {
    const { frame } = props;
    return (
        <g class="axis" aria-hidden="true">
            <path d={`M${frame.left} ${frame.bottom + 0.5}H${frame.right}`} />
            {props.ticks.map((tick) => {
                const x = props.at(tick);
                const anchor = x > frame.right - 24 ? "end" : x < frame.left + 24 ? "start" : "middle";
                return (
                    <g key={tick}>
                        <path d={`M${x.toFixed(1)} ${frame.bottom}v4`} />
                        <text x={x} y={frame.bottom + 16} text-anchor={anchor}>
                            {props.text(tick)}
                        </text>
                    </g>
                );
            })}
        </g>
    );
}

export function YAxis(props: {
    ticks: number[];
    at: (value: number) => number;
    frame: Frame;
    text: (value: number) => string;
}): JSX.Element {
    const { frame } = props;
    return (
        <g class="axis" aria-hidden="true">
            {props.ticks.map((tick) => (
                <g key={tick}>
                    <path class="grid" d={`M${frame.left} ${props.at(tick).toFixed(1)}H${frame.right}`} />
                    <text x={frame.left - 6} y={props.at(tick) + 4} text-anchor="end">
                        {props.text(tick)}
                    </text>
                </g>
            ))}
        </g>
    );
}

export function DurationHistogram({ histogram, colour }: { histogram: Histogram; colour: string }): JSX.Element {
    const { bins } = histogram;
    const first = bins[0];
    const last = bins[bins.length - 1];
    if (!first || !last) return <p class="dim">No execution in this time range.</p>;
    const isLog = histogram.scale === "logarithmic";
    const most = Math.max(...bins.map((bin) => bin.count));
    const marks = (
        [
            ["median", histogram.median_ns],
            ["p90", histogram.p90_ns],
            ["p99", histogram.p99_ns],
        ] as const
    ).filter((mark): mark is ["median" | "p90" | "p99", number] => mark[1] !== null);
    const markWords = marks.map(([name, ns]) => `${name} ${format.time(ns)}`).join(", ");
    const label = `durations of ${format.count(histogram.count)} executions, ${markWords}`;
    return (
        <Plot height={176} label={label} margin={{ top: 40 }}>
            {(frame) => {
                const x = scaleOf(
                    Math.max(first.from_ns, isLog ? 1 : 0),
                    last.to_ns,
                    frame.left,
                    frame.right,
                    isLog,
                    Math.floor((frame.right - frame.left) / 90),
                );
                const y = scaleOf(0, most, frame.bottom, frame.top, false, 3);
                return (
                    <>
                        <YAxis
                            ticks={y.ticks.filter(Number.isInteger)}
                            at={y}
                            frame={frame}
                            text={(value) => format.countShort(value)}
                        />
                        {bins.map((bin) => {
                            const left = x(bin.from_ns);
                            const size = bin.count > 0 ? Math.max(1, frame.bottom - y(bin.count)) : 0;
                            const facts = (
                                <Facts
                                    facts={[
                                        ["duration", `${format.time(bin.from_ns)} to ${format.time(bin.to_ns)}`],
                                        [
                                            "executions",
                                            `${format.count(bin.count)} (${format.share(bin.count, histogram.count)})`,
                                        ],
                                        ["time", format.time(bin.total_ns)],
                                    ]}
                                />
                            );
                            return (
                                <rect
                                    key={bin.from_ns}
                                    x={left}
                                    y={frame.bottom - size}
                                    width={Math.max(1, x(bin.to_ns) - left - 1)}
                                    height={size}
                                    style={{ fill: colour }}
                                    {...tip(facts)}
                                />
                            );
                        })}
                        {marks.map(([name, ns], index) => {
                            const at = x(ns);
                            const isLeft = at > (frame.left + frame.right) / 2;
                            return (
                                <g key={name} class="mark">
                                    <path d={`M${at.toFixed(1)} ${frame.top - 38 + index * 12}V${frame.bottom}`} />
                                    <text
                                        x={at + (isLeft ? -4 : 4)}
                                        y={frame.top - 28 + index * 12}
                                        text-anchor={isLeft ? "end" : "start"}
                                    >
                                        {name} {format.time(ns)}
                                    </text>
                                </g>
                            );
                        })}
                        <XAxis ticks={x.ticks} at={x} frame={frame} text={(value) => format.time(value)} />
                    </>
                );
            }}
        </Plot>
    );
}

export function DurationsOverTime(props: {
    durations: Durations;
    colour: string;
    startNs: number;
    onStep: (fromNs: number, toNs: number) => void;
}): JSX.Element {
    const { durations, colour, startNs } = props;
    const { steps, from_ns: fromNs, to_ns: toNs, step_ns: stepNs } = durations;
    if (!steps.length || fromNs === null || toNs === null || stepNs === null)
        return <p class="dim">No execution in this time range.</p>;
    const most = Math.max(...steps.map((step) => step.max_ns));
    const least = Math.min(...steps.map((step) => step.min_ns));
    const isLog = least > 0 && most / least >= 16;
    const range = `between ${format.time(least)} and ${format.time(most)}`;
    const label = `durations over time: ${format.count(durations.count)} executions ${range}`;
    return (
        <Plot height={168} label={label}>
            {(frame) => {
                const x = scaleOf(
                    fromNs - startNs,
                    Math.max(toNs - startNs, fromNs - startNs + 1),
                    frame.left,
                    frame.right,
                    false,
                    Math.floor((frame.right - frame.left) / 110),
                );
                const y = scaleOf(isLog ? least : 0, most, frame.bottom, frame.top, isLog, 6);
                const middle = (step: Durations["steps"][0]): number =>
                    x(step.from_ns - startNs + (step.count > 1 ? stepNs / 2 : 0));
                const width = Math.max(1, ((frame.right - frame.left) * stepNs) / Math.max(1, toNs - fromNs) - 1);
                return (
                    <>
                        <YAxis ticks={y.ticks} at={y} frame={frame} text={(value) => format.time(value)} />
                        {steps.map((step) => (
                            <g
                                key={step.from_ns}
                                class="step"
                                onClick={() => props.onStep(step.from_ns, step.from_ns + stepNs)}
                                onPointerLeave={() => tipHide()}
                                onPointerEnter={(event) =>
                                    tipShow(
                                        event.currentTarget.getBoundingClientRect(),
                                        <Facts
                                            facts={[
                                                ["from", format.time(step.from_ns - startNs)],
                                                ["executions", format.count(step.count)],
                                                ["min", format.time(step.min_ns)],
                                                ["median", format.time(step.median_ns)],
                                                ["max", format.time(step.max_ns)],
                                            ]}
                                        />,
                                    )
                                }
                            >
                                <rect
                                    class="hit"
                                    x={middle(step) - width / 2}
                                    y={frame.top}
                                    width={Math.max(3, width)}
                                    height={frame.bottom - frame.top}
                                />
                                <rect
                                    x={middle(step) - width / 2}
                                    y={y(step.max_ns)}
                                    width={width}
                                    height={Math.max(1, y(step.min_ns) - y(step.max_ns))}
                                    style={{ fill: colour, opacity: 0.35 }}
                                />
                                <rect
                                    x={middle(step) - Math.max(2, width) / 2}
                                    y={y(step.median_ns) - 1}
                                    width={Math.max(2, width)}
                                    height={2}
                                    style={{ fill: colour }}
                                />
                            </g>
                        ))}
                        <XAxis ticks={x.ticks} at={x} frame={frame} text={(value) => format.time(value)} />
                    </>
                );
            }}
        </Plot>
    );
}

// Occupancy as a step function of one input; gaps where the launch fails.
export function SweepChart(props: {
    points: OccupancyPoint[];
    value: number;
    name: string;
    text: (value: number) => string;
    ticks?: number[]; // for axes without round decimals
    onValue: (value: number) => void;
}): JSX.Element {
    const first = props.points[0]?.value ?? 0;
    const last = props.points[props.points.length - 1]?.value ?? 1;
    return (
        <Plot height={88} label={`occupancy by ${props.name}`} margin={{ left: 44, top: 8 }}>
            {(frame) => {
                const x = scaleOf(first, last, frame.left, frame.right, false, 3);
                const y = scaleOf(0, 10000, frame.bottom, frame.top, false, 2);
                const path = props.points
                    .map((point, index) => {
                        if (point.occupancy_bp === null) return "";
                        const isStart = index === 0 || props.points[index - 1]?.occupancy_bp === null;
                        const at = `${x(point.value).toFixed(1)} ${y(point.occupancy_bp).toFixed(1)}`;
                        return isStart ? `M${at}` : `H${x(point.value).toFixed(1)}V${y(point.occupancy_bp).toFixed(1)}`;
                    })
                    .join("");
                const pick = (event: JSX.TargetedPointerEvent<SVGRectElement>): void => {
                    if (event.buttons !== 1) return;
                    const box = event.currentTarget.getBoundingClientRect();
                    const part = Math.max(0, Math.min(1, (event.clientX - box.left) / box.width));
                    const wanted = first + part * (last - first);
                    const nearest = props.points.reduce((best, point) =>
                        Math.abs(point.value - wanted) < Math.abs(best.value - wanted) ? point : best,
                    );
                    props.onValue(nearest.value);
                };
                return (
                    <>
                        <YAxis ticks={[0, 5000, 10000]} at={y} frame={frame} text={(value) => `${value / 100} %`} />
                        <path class="sweep" d={path} />
                        <path class="now" d={`M${x(props.value).toFixed(1)} ${frame.top}V${frame.bottom}`} />
                        <XAxis ticks={props.ticks ?? x.ticks} at={x} frame={frame} text={props.text} />
                        <rect
                            class="hit"
                            x={frame.left}
                            y={frame.top}
                            width={frame.right - frame.left}
                            height={frame.bottom - frame.top}
                            onPointerDown={pick}
                            onPointerMove={pick}
                        />
                    </>
                );
            }}
        </Plot>
    );
}
