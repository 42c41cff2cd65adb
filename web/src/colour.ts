// SPDX-License-Identifier: Apache-2.0
// Colours with a meaning. Kernels: hue from a hash of the name, with equal lightness and chroma, so that no kernel
// stands out and each looks the same on every page. The canvas needs numbers, CSS needs text: both are here.
import { isDark } from "./theme";

export interface Oklch {
    l: number;
    c: number;
    h: number;
}

// FNV-1a over UTF-16 units; the same in every session and on every page.
export function hash(text: string): number {
    let value = 0x811c9dc5;
    for (let i = 0; i < text.length; i++) {
        value ^= text.charCodeAt(i);
        value = Math.imul(value, 0x01000193);
    }
    // The last bytes of similar names differ little: mix them into the others.
    value ^= value >>> 15;
    value = Math.imul(value, 0x2c1b3c6d);
    value ^= value >>> 12;
    return value >>> 0;
}

export function hueOf(name: string): number {
    return hash(name) % 360;
}

export function css(colour: Oklch): string {
    return `oklch(${colour.l} ${colour.c} ${colour.h})`;
}

export function kernelOklch(name: string, dark = isDark.value): Oklch {
    return { l: dark ? 0.72 : 0.62, c: 0.11, h: hueOf(name) };
}
export function scopeOklch(name: string, dark = isDark.value): Oklch {
    return { l: dark ? 0.72 : 0.62, c: 0.055, h: hueOf(name) };
}

const copyHues: Record<string, number> = { h2d: 200, d2h: 320, d2d: 160, p2p: 160 };
// direction: as in the log, "HtoD", "DtoH", "DtoD", "PtoP" and so on.
export function copyOklch(direction: string, dark = isDark.value): Oklch {
    const word = direction
        .toLowerCase()
        .replace("to", "2")
        .replace(/[^a-z0-9]/g, "");
    const hue = copyHues[word];
    return hue === undefined ? { l: dark ? 0.68 : 0.55, c: 0.01, h: 250 } : { l: dark ? 0.72 : 0.62, c: 0.11, h: hue };
}

export const kernelColour = (name: string): string => css(kernelOklch(name));
export const scopeColour = (name: string): string => css(scopeOklch(name));
export const copyColour = (direction: string): string => css(copyOklch(direction));

export type StallFamily = "memory" | "execution" | "synchronization" | "control" | "issued" | "other";

// Matched by words in CUPTI's names, so that reasons of future GPUs also get a family.
const families: readonly (readonly [RegExp, StallFamily])[] = [
    [/selected|issued|^active$/, "issued"],
    [/barrier|membar|sync|sleep/, "synchronization"],
    [/scoreboard|lg_?throttle|drain|tex|memory|imc|constant|mio_?memory|lsu/, "memory"],
    [/math|pipe|mio|dispatch|wait|exec|gmma|tensor/, "execution"],
    [/no_?inst|branch|fetch|control|misc/, "control"],
];
export function stallFamily(reason: string): StallFamily {
    const word = reason
        .toLowerCase()
        .replace(/^stall_?/, "")
        .replaceAll(" ", "_");
    return families.find(([pattern]) => pattern.test(word))?.[1] ?? "other";
}
const familyHues: Record<StallFamily, number> = {
    memory: 250,
    execution: 60,
    synchronization: 310,
    control: 150,
    issued: 250,
    other: 20,
};
// Members of a family differ in lightness, which everybody can see.
export function stallOklch(reason: string, dark = isDark.value): Oklch {
    const family = stallFamily(reason);
    const step = (hash(reason) % 5) * 0.045;
    return {
        l: (dark ? 0.62 : 0.5) + step,
        c: family === "issued" || family === "other" ? 0.01 : 0.12,
        h: familyHues[family],
    };
}
export const stallColour = (reason: string): string => css(stallOklch(reason));

// sRGB, 0 to 255 each, for ImageData; colours out of gamut are clipped.
export function rgb(colour: Oklch): [number, number, number] {
    const angle = (colour.h * Math.PI) / 180;
    const a = colour.c * Math.cos(angle);
    const b = colour.c * Math.sin(angle);
    const l = (colour.l + 0.3963377774 * a + 0.2158037573 * b) ** 3;
    const m = (colour.l - 0.1055613458 * a - 0.0638541728 * b) ** 3;
    const s = (colour.l - 0.0894841775 * a - 1.291485548 * b) ** 3;
    const linear = [
        4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
        -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
        -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
    ];
    const [red, green, blue] = linear.map((value) => {
        const clipped = Math.min(1, Math.max(0, value));
        return Math.round(255 * (clipped <= 0.0031308 ? 12.92 * clipped : 1.055 * clipped ** (1 / 2.4) - 0.055));
    });
    return [red ?? 0, green ?? 0, blue ?? 0];
}
