// SPDX-License-Identifier: Apache-2.0
// Colours of events as numbers for the raster, cached by name id: hashing names in every frame would be too slow.
import { copyOklch, kernelOklch, rgb, scopeOklch } from "../colour";
import { mixColour, packColour } from "./raster";
import type { Names, TrackKind } from "./tile";

const grey = (l: number, c: number): number => packColour(rgb({ l, c, h: 250 }));

/** The page's greys, as in style.css. */
export interface Chrome {
    readonly ground: number;
    readonly stripe: number;
    readonly line: number;
    readonly wait: number;
}

export function chromeOf(isDark: boolean): Chrome {
    return isDark
        ? { ground: grey(0.17, 0.008), stripe: grey(0.2, 0.008), line: grey(0.235, 0.01), wait: grey(0.56, 0.01) }
        : { ground: grey(0.985, 0.002), stripe: grey(1, 0), line: grey(0.925, 0.005), wait: grey(0.62, 0.005) };
}

export class Palette {
    private tables = new Map<TrackKind, Uint32Array>();
    readonly chrome: Chrome;

    /** isLit: true for names that stand out; the others are dimmed. Null: all are equal. */
    constructor(
        private readonly names: Names,
        readonly isDark: boolean,
        private readonly isLit: ((kind: TrackKind, name: number, text: string) => boolean) | null,
        private readonly dimming = 0.5,
    ) {
        this.chrome = chromeOf(isDark);
    }

    isDimmed(kind: TrackKind, name: number): boolean {
        return this.isLit !== null && !this.isLit(kind, name, this.names.text(kind, name));
    }

    private make(kind: TrackKind, name: number): number {
        const text = this.names.text(kind, name);
        const colour =
            kind === "syncs"
                ? this.chrome.wait
                : kind === "scopes"
                  ? packColour(rgb(scopeOklch(text, this.isDark)))
                  : kind === "copies"
                    ? packColour(rgb(copyOklch(text, this.isDark)))
                    : kind === "memsets"
                      ? packColour(rgb(copyOklch("memset", this.isDark)))
                      : packColour(rgb(kernelOklch(text, this.isDark)));
        return this.isLit && !this.isLit(kind, name, text)
            ? mixColour(colour, this.chrome.ground, this.dimming)
            : colour;
    }

    colour(kind: TrackKind, name: number): number {
        let table = this.tables.get(kind);
        if (!table || name >= table.length) {
            if (name >= 1 << 20) return this.make(kind, name);
            const grown = new Uint32Array(Math.max(64, 2 ** Math.ceil(Math.log2(name + 1))));
            if (table) grown.set(table);
            this.tables.set(kind, (table = grown));
        }
        return table[name]! || (table[name] = this.make(kind, name));
    }
}
