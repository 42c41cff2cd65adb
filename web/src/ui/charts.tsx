// SPDX-License-Identifier: Apache-2.0
// Small charts. Each also has its numbers as text: in the label, the tooltip or the adjacent table.
import type { JSX } from "preact";
import { tip } from "./tooltip";

export interface Part {
    name: string;
    value: number;
    colour?: string; // default: a grey hatch (waiting, idle)
    text?: string; // the value for display
}

// One value of 0 to 1.
export function Bar({
    value,
    label,
    colour,
}: {
    value: number | null | undefined;
    label: string;
    colour?: string;
}): JSX.Element {
    const width = `${Math.max(0, Math.min(1, value ?? 0)) * 100}%`;
    return (
        <span class="bar" role="img" aria-label={label}>
            <i style={colour ? { width, background: colour } : { width }} />
        </span>
    );
}

// Parts of a whole, next to each other.
export function Stack({ parts, label }: { parts: readonly Part[]; label: string }): JSX.Element {
    const whole = parts.reduce((sum, part) => sum + part.value, 0);
    return (
        <div
            class="stack"
            role="img"
            aria-label={`${label}: ${parts.map((part) => `${part.name} ${part.text ?? part.value}`).join(", ")}`}
        >
            {parts.map((part) =>
                part.value > 0 && whole > 0 ? (
                    <span
                        key={part.name}
                        class={part.colour ? "" : "hatch"}
                        style={{
                            width: `${(part.value / whole) * 100}%`,
                            ...(part.colour ? { background: part.colour } : {}),
                        }}
                        {...tip(`${part.name}: ${part.text ?? part.value}`)}
                    />
                ) : null,
            )}
        </div>
    );
}

export function Legend({ parts }: { parts: readonly Part[] }): JSX.Element {
    return (
        <div class="legend">
            {parts.map((part) => (
                <span key={part.name}>
                    <i
                        class={`swatch${part.colour ? "" : " hatch"}`}
                        style={part.colour ? { background: part.colour } : {}}
                    />
                    {part.name}&nbsp;<b>{part.text ?? part.value}</b>
                </span>
            ))}
        </div>
    );
}

// Counts, evenly spaced; the tallest fills the height. Every count above 0 is visible.
export function Histogram({
    counts,
    width = 60,
    height = 16,
    label,
}: {
    counts: readonly number[];
    width?: number;
    height?: number;
    label: string;
}): JSX.Element {
    const most = Math.max(1, ...counts);
    const step = width / Math.max(1, counts.length);
    return (
        <svg
            class="histogram"
            width={width}
            height={height}
            viewBox={`0 0 ${width} ${height}`}
            role="img"
            aria-label={label}
        >
            {counts.map((value, index) => {
                const size = value > 0 ? Math.max(1, (value / most) * height) : 0;
                return (
                    <rect
                        key={index}
                        x={index * step}
                        y={height - size}
                        width={Math.max(0.5, step - (step > 3 ? 1 : 0))}
                        height={size}
                    />
                );
            })}
        </svg>
    );
}

export interface SparkPath {
    line: string;
    area: string;
}

// Unknown values become gaps.
export function sparkPath(
    values: readonly (number | null)[],
    width: number,
    height: number,
    least: number,
    most: number,
): SparkPath {
    const step = values.length > 1 ? width / (values.length - 1) : width;
    const range = most > least ? most - least : 1;
    let line = "";
    let area = "";
    let start = -1;
    const close = (end: number): void => {
        if (start >= 0 && start === end) line += "h1.5"; // make a single point visible
        if (start >= 0) area += `L${(end * step).toFixed(1)} ${height}L${(start * step).toFixed(1)} ${height}Z`;
        start = -1;
    };
    values.forEach((value, index) => {
        if (value === null || !Number.isFinite(value)) {
            close(index - 1);
            return;
        }
        const clipped = Math.max(0, Math.min(1, (value - least) / range));
        const point = `${(index * step).toFixed(1)} ${(height - 0.5 - clipped * (height - 1)).toFixed(1)}`;
        const word = start < 0 ? "M" : "L";
        if (start < 0) start = index;
        line += word + point;
        area += word + point;
    });
    close(values.length - 1);
    return { line, area };
}

// A sample is valid until the next one: gaps of up to `most` steps are filled, longer ones are not.
export function held(values: readonly (number | null)[], most: number): (number | null)[] {
    const out = [...values];
    let last = -1;
    values.forEach((value, index) => {
        if (value === null) return;
        if (last >= 0 && index - last - 1 <= most) out.fill(values[last] ?? null, last + 1, index);
        last = index;
    });
    return out;
}

export function Sparkline(props: {
    values: readonly (number | null)[];
    width?: number;
    height?: number;
    min?: number;
    max?: number;
    label: string;
}): JSX.Element {
    const { width = 120, height = 24 } = props;
    const known = props.values.filter((value): value is number => value !== null && Number.isFinite(value));
    const least = props.min ?? Math.min(0, ...known);
    const most = props.max ?? Math.max(least + 1e-9, ...known);
    const path = sparkPath(props.values, width, height, least, most);
    return (
        <svg
            class="spark"
            width={width}
            height={height}
            viewBox={`0 0 ${width} ${height}`}
            preserveAspectRatio="none"
            role="img"
            aria-label={props.label}
        >
            <path class="area" d={path.area} />
            <path class="line" d={path.line} />
        </svg>
    );
}
