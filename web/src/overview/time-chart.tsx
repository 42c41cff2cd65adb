// SPDX-License-Identifier: Apache-2.0
// Use of time as a stacked bar chart over time: a hundred bins, each linked to its part of the timeline.
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import * as format from "../format";
import { href } from "../route";
import { Facts, tip } from "../ui/tooltip";
import { binsOf, partColour, timelineRange, type Bin, type TimeBins } from "./time-use";

const HEIGHT = 72;

function BinTip({ bin }: { bin: Bin }): JSX.Element {
    return (
        <>
            <b>
                {format.time(bin.fromNs)} to {format.time(bin.toNs)}
            </b>
            <Facts
                facts={bin.parts
                    .filter((part) => part.share > 0)
                    .map((part) => [part.title, format.percent(part.share)])}
            />
            <span class="dim">click opens it in the timeline</span>
        </>
    );
}

export function TimeChart({
    session,
    bins,
    binNs,
    wallNs,
}: {
    session: string;
    bins: TimeBins;
    binNs: number;
    wallNs: number;
}): JSX.Element {
    const list = useMemo(() => binsOf(bins, binNs, wallNs), [bins, binNs, wallNs]);
    return (
        <div
            class="time-bins"
            role="group"
            aria-label={`where the time of GPU ${bins.device} went, over time`}
            style={{ height: `${HEIGHT}px` }}
        >
            {list.map((bin) => (
                <a
                    key={bin.index}
                    href={href("timeline", { t: timelineRange(bin.fromNs, bin.toNs) }, session)}
                    aria-label={`${format.time(bin.fromNs)}: ${
                        bin.parts
                            .filter((part) => part.share > 0.005)
                            .map((part) => `${part.title} ${format.percent(part.share)}`)
                            .join(", ") || "nothing"
                    }`}
                    {...tip(<BinTip bin={bin} />, false)}
                >
                    {bin.parts.map((part) => {
                        const colour = partColour(part.id);
                        return part.share > 0 ? (
                            <i
                                key={part.id}
                                class={colour ? "" : part.id === "unknown_ns" ? "hatch" : "none"}
                                style={{ height: `${part.share * 100}%`, ...(colour ? { background: colour } : {}) }}
                            />
                        ) : null;
                    })}
                </a>
            ))}
        </div>
    );
}
