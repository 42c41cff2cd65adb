// SPDX-License-Identifier: Apache-2.0
// The gutter of an instruction or a line: number of samples and stall reasons.
import type { JSX } from "preact";
import { stallColour } from "../colour";
import * as format from "../format";
import { Facts, tip } from "../ui/tooltip";
import { stallsOf } from "./view";

// A cell whose background shows its share of the hottest one.
export function Heat({
    value,
    most,
    whole,
    title,
}: {
    value: number;
    most: number;
    whole: number;
    title: string;
}): JSX.Element {
    const strength = most > 0 && value > 0 ? 8 + Math.round(44 * Math.sqrt(value / most)) : 0;
    return (
        <span
            class="heat"
            style={strength ? { background: `color-mix(in oklch, var(--heat) ${strength}%, transparent)` } : {}}
            title={value > 0 ? `${title}: ${format.count(value)}, ${format.share(value, whole)}` : undefined}
        >
            {value > 0 ? format.share(value, whole).replace("< ", "<") : ""}
        </span>
    );
}

// Reasons as parts of a bar, whose length is the number of samples.
export function StallBar({
    stalls,
    samples,
    most,
}: {
    stalls: Readonly<Record<string, number>>;
    samples: number;
    most: number;
}): JSX.Element {
    if (samples <= 0 || most <= 0) return <span class="stall-bar" />;
    const parts = stallsOf(stalls);
    const facts = (): JSX.Element => (
        <Facts
            facts={parts.map(([reason, count]) => [reason, `${format.count(count)} (${format.share(count, samples)})`])}
        />
    );
    const words = parts.map(([reason, count]) => `${reason} ${format.share(count, samples)}`).join(", ");
    return (
        <span class="stall-bar" role="img" aria-label={`stalls: ${words}`} {...tip(facts, false)}>
            {parts.map(([reason, count]) => (
                <i key={reason} style={{ width: `${(100 * count) / most}%`, background: stallColour(reason) }} />
            ))}
        </span>
    );
}
