// SPDX-License-Identifier: Apache-2.0
// One compared kernel or scope: both distributions on one axis, and the changes of its code.
import type { JSX } from "preact";
import { kernelColour } from "../colour";
import * as format from "../format";
import { scaleOf } from "../kernels/axis";
import { Plot, XAxis } from "../kernels/charts";
import { href } from "../route";
import { type ComparedRow, rowName, type Side } from "./answers";
import { SassDiff } from "./sass-diff";

// Minimum to maximum as a line, the middle half as a box, the median as a mark.
function Boxes({ row, colour }: { row: ComparedRow; colour: string }): JSX.Element {
    const sides = (
        [
            ["before", row.base],
            ["after", row.new],
        ] as const
    ).filter((side): side is ["before" | "after", Side] => side[1] !== null);
    const least = Math.min(...sides.map(([, side]) => side.min_ns));
    const most = Math.max(...sides.map(([, side]) => side.max_ns));
    const isLog = least > 0 && most / least >= 16;
    const label = sides
        .map(
            ([name, side]) =>
                `${name}: median ${format.time(side.median_ns)}, ${format.time(side.min_ns)} to ${format.time(side.max_ns)}`,
        )
        .join("; ");
    return (
        <Plot height={28 + 32 * sides.length} label={label} margin={{ left: 64, top: 4, right: 24 }}>
            {(frame) => {
                const x = scaleOf(
                    least * 0.97,
                    most * 1.03 + 1,
                    frame.left,
                    frame.right,
                    isLog,
                    Math.floor((frame.right - frame.left) / 100),
                );
                return (
                    <>
                        {sides.map(([name, side], index) => {
                            const y = frame.top + 16 + 32 * index;
                            return (
                                <g key={name} class="box">
                                    <text x={frame.left - 8} y={y + 4} text-anchor="end">
                                        {name}
                                    </text>
                                    <path d={`M${x(side.min_ns)} ${y}H${x(side.max_ns)}`} />
                                    <rect
                                        x={x(side.p25_ns)}
                                        y={y - 8}
                                        width={Math.max(2, x(side.p75_ns) - x(side.p25_ns))}
                                        height={16}
                                        style={{ fill: colour }}
                                    />
                                    <path class="median" d={`M${x(side.median_ns)} ${y - 11}v22`} />
                                    <path d={`M${x(side.p99_ns)} ${y - 5}v10`} />
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

const figures: readonly (readonly [
    string,
    (side: Side) => number | null | undefined,
    (value: number | null | undefined) => string,
])[] = [
    ["calls", (side) => side.count, (value) => format.count(value)],
    ["total", (side) => side.total_ns, (value) => format.time(value)],
    ["mean", (side) => side.mean_ns, (value) => format.time(value)],
    ["median", (side) => side.median_ns, (value) => format.time(value)],
    ["p25", (side) => side.p25_ns, (value) => format.time(value)],
    ["p75", (side) => side.p75_ns, (value) => format.time(value)],
    ["p90", (side) => side.p90_ns, (value) => format.time(value)],
    ["p99", (side) => side.p99_ns, (value) => format.time(value)],
    ["least", (side) => side.min_ns, (value) => format.time(value)],
    ["largest", (side) => side.max_ns, (value) => format.time(value)],
    ["GPU time", (side) => side.gpu_ns, (value) => format.time(value)],
];

function Numbers({ row, isScope }: { row: ComparedRow; isScope: boolean }): JSX.Element {
    const shown = figures.filter(([name]) => isScope || name !== "GPU time");
    return (
        <table class="numbers">
            <thead>
                <tr>
                    <th scope="col" />
                    {shown.map(([name]) => (
                        <th scope="col" key={name}>
                            {name}
                        </th>
                    ))}
                </tr>
            </thead>
            <tbody>
                {(
                    [
                        ["before", row.base],
                        ["after", row.new],
                    ] as const
                ).map(([title, side]) => (
                    <tr key={title}>
                        <th scope="row">{title}</th>
                        {shown.map(([name, read, text]) => (
                            <td key={name}>{side ? text(read(side)) : "–"}</td>
                        ))}
                    </tr>
                ))}
            </tbody>
        </table>
    );
}

export function RowDetail({
    row,
    a,
    b,
    app,
    isScope,
}: {
    row: ComparedRow;
    a: string;
    b: string;
    app: string | null;
    isScope: boolean;
}): JSX.Element {
    const name = rowName(row);
    const trend = { app, trend: isScope ? "scope" : "kernel-name", of: name };
    return (
        <section class="section detail" aria-label={`details of ${format.middleCut(name, 60)}`}>
            <div class="section-head">
                <h2>{format.middleCut(name.replace(/^void\s+/, ""), 110)}</h2>
                {app === null ? null : (
                    <a href={href("sessions", trend)}>over all sessions of {format.middleCut(app, 30)}</a>
                )}
            </div>
            <Boxes row={row} colour={kernelColour(name)} />
            <div class="numbers-scroll" tabIndex={0} role="region" aria-label="figures of both sessions">
                <Numbers row={row} isScope={isScope} />
            </div>
            {isScope ? null : <SassDiff name={row.name ?? null} a={a} b={b} />}
        </section>
    );
}
