// SPDX-License-Identifier: Apache-2.0
// Values at points in time, few enough to hover each: a dot is a link.
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import * as format from "../format";
import { tip } from "./tooltip";

export interface Point {
    key: string;
    x: number; // ms since 1970
    y: number | null; // null: unknown
    label: string;
}

const HEIGHT = 120;
const LEFT = 72;
const BOTTOM = 18;

export function useWidth(): [{ current: HTMLDivElement | null }, number] {
    const box = useRef<HTMLDivElement>(null);
    const [width, setWidth] = useState(0);
    useEffect(() => {
        if (!box.current) return;
        const observer = new ResizeObserver((entries) => setWidth(Math.floor(entries[0]?.contentRect.width ?? 0)));
        observer.observe(box.current);
        return () => observer.disconnect();
    }, []);
    return [box, width];
}

export function Points(props: {
    points: readonly Point[];
    text: (value: number) => string;
    label: string;
    onPoint: (key: string) => void;
}): JSX.Element {
    const [box, width] = useWidth();
    const known = props.points.filter((point): point is Point & { y: number } => point.y !== null);
    const most = Math.max(0, ...known.map((point) => point.y));
    const first = known[0]?.x ?? 0;
    const last = known[known.length - 1]?.x ?? 1;
    const place = (point: { x: number; y: number }): [number, number] => [
        LEFT + 8 + (last > first ? (point.x - first) / (last - first) : 0.5) * Math.max(0, width - LEFT - 16),
        8 + (1 - (most > 0 ? point.y / most : 0)) * (HEIGHT - BOTTOM - 16),
    ];
    const line = known
        .map(
            (point, index) =>
                `${index === 0 ? "M" : "L"}${place(point)
                    .map((at) => at.toFixed(1))
                    .join(" ")}`,
        )
        .join("");
    return (
        <div ref={box} class="chart">
            {known.length === 0 ? (
                <p class="dim">No session has this value.</p>
            ) : width > 0 ? (
                <svg width={width} height={HEIGHT} role="group" aria-label={props.label} class="spark">
                    <text x={0} y={14}>
                        {props.text(most)}
                    </text>
                    <text x={0} y={HEIGHT - BOTTOM}>
                        {props.text(0)}
                    </text>
                    <text x={LEFT} y={HEIGHT - 2}>
                        {format.instant(first * 1e6).slice(0, 16)}
                    </text>
                    {last > first ? (
                        <text x={width} y={HEIGHT - 2} text-anchor="end">
                            {format.instant(last * 1e6).slice(0, 16)}
                        </text>
                    ) : null}
                    <path class="line" d={line} />
                    {known.map((point) => {
                        const [x, y] = place(point);
                        return (
                            <a
                                key={point.key}
                                role="button"
                                tabIndex={0}
                                aria-label={point.label}
                                onClick={() => props.onPoint(point.key)}
                                onKeyDown={(event) => event.key === "Enter" && props.onPoint(point.key)}
                            >
                                <circle cx={x} cy={y} r={4} class="point" {...(tip(point.label, false) as object)} />
                            </a>
                        );
                    })}
                </svg>
            ) : null}
        </div>
    );
}
