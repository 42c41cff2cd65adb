// SPDX-License-Identifier: Apache-2.0
// Fits names into boxes: in full, or shortened in the middle, because names of kernels differ at their ends.
import { middleCut, shortName } from "../format";
import type { TrackKind } from "./tile";

const ellipsis = "…";
const textMax = 400;

/** One line of limited length: control characters and bidirectional marks would reorder or break adjacent text. */
export function plainText(text: string): string {
    const cut = text.length > textMax ? `${text.slice(0, textMax / 2)}${ellipsis}${text.slice(-textMax / 2)}` : text;
    return cut.replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, " ");
}

/** A scope's path with separated parts; other names are unchanged. */
export const shownName = (kind: TrackKind, text: string): string =>
    kind === "scopes" ? plainText(text).split("|").join(" > ") : plainText(text);

/** Labels for a box, longest first: a kernel without types, then without namespaces; a scope's last part. */
export function labelTexts(kind: TrackKind, text: string): readonly string[] {
    if (kind === "scopes") return [plainText(text.slice(text.lastIndexOf("|") + 1))];
    if (kind !== "kernels" && kind !== "launches") return [plainText(text)];
    const short = plainText(shortName(text)),
        tail = short.slice(short.lastIndexOf("::") + 2);
    return short.includes("::") && tail !== "" ? [short, tail] : [short];
}

/** Fits names into widths; measuring is slow, so widths are cached. */
export class LabelFitter {
    private readonly widths = new Map<string, number>();

    constructor(private readonly measure: (text: string) => number) {}

    width(text: string): number {
        let width = this.widths.get(text);
        if (width === undefined) {
            if (this.widths.size > 20000) this.widths.clear();
            this.widths.set(text, (width = this.measure(text)));
        }
        return width;
    }

    /** The first text that fits, or as much of the last one as fits. */
    fitAny(texts: readonly string[], widthMax: number): string {
        return texts.find((text) => this.width(text) <= widthMax) ?? this.fit(texts.at(-1) ?? "", widthMax);
    }

    /** "" if nothing useful fits. */
    fit(text: string, widthMax: number): string {
        const width = this.width(text);
        if (width <= widthMax) return text;
        const count = Array.from(text).length;
        for (let fitting = Math.min(count - 1, Math.floor((widthMax * count) / width)); fitting >= 5; fitting--) {
            const cut = middleCut(text, fitting);
            if (this.width(cut) <= widthMax) return cut;
        }
        return "";
    }
}
