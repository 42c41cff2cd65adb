// SPDX-License-Identifier: Apache-2.0
// Series over time with axes (uPlot): hovering shows values, dragging selects a range.
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import * as format from "../format";
import { isDark } from "../theme";
import { useWidth } from "./points";

export interface AreaSeries {
    name: string;
    values: readonly (number | null)[];
    colour: string; // CSS
    isDashed?: boolean;
}

const tickSteps = {
    binary: Array.from({ length: 50 }, (_unused, index) => 2 ** index),
    whole: Array.from({ length: 36 }, (_unused, index) => [1, 2, 5][index % 3]! * 10 ** Math.floor(index / 3)),
};
const DAY_S = 86_400;

// Seconds since 1970 as the hour, with the day if several days are shown.
function clockText(seconds: number, spanSeconds: number): string {
    const text = format.instant(seconds * 1e9);
    return spanSeconds > DAY_S ? text.slice(5, 16) : text.slice(11, 16);
}

// The canvas cannot use CSS variables.
function resolved(name: string): string {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

export function AreaChart(props: {
    xs: readonly number[]; // seconds; with isClock since 1970, otherwise since the start
    series: readonly AreaSeries[];
    text: (value: number) => string;
    label: string;
    height?: number;
    isClock?: boolean;
    xText?: (value: number) => string;
    max?: number;
    steps?: "binary" | "whole"; // ticks at powers of two, for bytes, or at whole numbers
    onRange?: (from: number, to: number) => void;
}): JSX.Element {
    const [box, width] = useWidth();
    const plot = useRef<uPlot | null>(null);
    const onRange = useRef(props.onRange);
    onRange.current = props.onRange;
    const { height = 160 } = props;
    const dark = isDark.value;
    useEffect(() => {
        if (!box.current || width < 40) return;
        const axis = {
            stroke: resolved("--dim"),
            grid: { stroke: resolved("--line"), width: 1 },
            ticks: { stroke: resolved("--line"), width: 1 },
            font: "12px ui-sans-serif, system-ui, sans-serif",
        };
        const spanSeconds = (props.xs[props.xs.length - 1] ?? 0) - (props.xs[0] ?? 0);
        const xText = props.xText ?? (props.isClock ? (value: number) => clockText(value, spanSeconds) : undefined);
        const colourOf = (text: string): string => (text.startsWith("var(") ? resolved(text.slice(4, -1)) : text);
        const made = new uPlot(
            {
                width,
                height,
                cursor: { drag: { x: props.onRange !== undefined, y: false, setScale: false } },
                legend: { live: true },
                scales: {
                    x: { time: props.isClock ?? false },
                    y: { range: (_plot, _least, most) => [0, props.max ?? (most > 0 ? most * 1.05 : 1)] },
                },
                axes: [
                    {
                        ...axis,
                        size: 28,
                        ...(xText ? { values: (_plot: uPlot, values: number[]) => values.map(xText) } : {}),
                    },
                    {
                        ...axis,
                        size: 88,
                        values: (_plot, values) => values.map((value) => props.text(value)),
                        ...(props.steps ? { incrs: tickSteps[props.steps] } : {}),
                    },
                ],
                series: [
                    {
                        label: "time",
                        ...(xText
                            ? { value: (_plot: uPlot, value: number | null) => (value == null ? "–" : xText(value)) }
                            : {}),
                    },
                    ...props.series.map((series) => ({
                        label: series.name,
                        stroke: colourOf(series.colour),
                        width: 1,
                        spanGaps: false,
                        points: { show: false },
                        ...(series.isDashed ? { dash: [4, 4] } : {}),
                        value: (_plot: uPlot, value: number | null, _series: number, index: number | null) =>
                            index === null ? "–" : value === null ? "unavailable" : props.text(value),
                    })),
                ],
                hooks: {
                    setSelect: [
                        (self: uPlot) => {
                            if (self.select.width < 3) return;
                            onRange.current?.(
                                self.posToVal(self.select.left, "x"),
                                self.posToVal(self.select.left + self.select.width, "x"),
                            );
                            self.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
                        },
                    ],
                },
            },
            [[...props.xs], ...props.series.map((series) => [...series.values])],
            box.current,
        );
        plot.current = made;
        return () => {
            made.destroy();
            plot.current = null;
        };
    }, [width, height, dark, props.xs, props.series]);
    return <div ref={box} class="chart" role="img" aria-label={props.label} />;
}
