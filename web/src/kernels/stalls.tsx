// SPDX-License-Identifier: Apache-2.0
// Stall reasons of a function's sampled warps.
import type { JSX } from "preact";
import { stallColour } from "../colour";
import * as format from "../format";
import { Bar } from "../ui/charts";
import { tip } from "../ui/tooltip";
import type { StallKind } from "./answers";

export function StallList({
    kinds,
    samples,
    known,
}: {
    kinds: Record<string, number>;
    samples: number;
    known: readonly StallKind[];
}): JSX.Element {
    const words = new Map(known.map((kind) => [kind.name, kind.words]));
    const entries = Object.entries(kinds).sort((a, b) => b[1] - a[1]);
    return (
        <div class="stall-list">
            {entries.map(([name, count]) => [
                <span key={`${name}.name`} {...tip(words.get(name) ?? "a reason without a description")}>
                    <i class="swatch" style={{ background: stallColour(name) }} />
                    {name}
                </span>,
                <Bar
                    key={`${name}.bar`}
                    value={samples > 0 ? count / samples : 0}
                    label={`${name} ${format.share(count, samples)}`}
                    colour={stallColour(name)}
                />,
                <span key={`${name}.count`} class="right">
                    {format.share(count, samples)}
                </span>,
            ])}
        </div>
    );
}

// The functions with a kernel's name; names come from different tables, so spaces may differ.
export function functionsOf<T extends { name: string | null }>(name: string | null, functions: readonly T[]): T[] {
    if (name === null) return [];
    const plain = (text: string): string => text.replace(/^void\s+/, "").replace(/\s+/g, "");
    const wanted = plain(name);
    return functions.filter((entry) => entry.name !== null && plain(entry.name) === wanted);
}
