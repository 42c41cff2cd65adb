// SPDX-License-Identifier: Apache-2.0
// Formats numbers for people: three significant digits and a unit. Unknown values are shown as such, never as 0.

export const UNAVAILABLE = "unavailable";
export type Unknown = null | undefined;
type Number_ = number | bigint | Unknown;

function isKnown(value: Number_): value is number | bigint {
    return value !== null && value !== undefined && (typeof value === "bigint" || Number.isFinite(value));
}

// 0.00123 -> "0.00123", 12.345 -> "12.3", 1234.5 -> "1,235"
export function digits(value: number, significant = 3): string {
    if (value === 0) return "0";
    const size = Math.floor(Math.log10(Math.abs(value)));
    if (size >= significant - 1) return Math.round(value).toLocaleString("en-US");
    if (size < -6) return value.toExponential(significant - 1);
    const text = value.toFixed(Math.min(20, significant - 1 - size));
    // 9.999 rounds to one more digit.
    return Math.abs(Number(text)) >= 10 ** (size + 1) ? digits(Number(text), significant) : text;
}

function scaled(value: number, units: readonly (readonly [number, string])[]): string {
    const size = Math.abs(value);
    for (let i = 0; i < units.length; i++) {
        const [scale, unit] = units[i]!;
        // A value that rounds up to the next unit uses it: 999.9 us becomes 1.00 ms.
        const above = units[i - 1];
        if (size >= scale || i === units.length - 1) {
            const text = `${digits(value / scale)} ${unit}`;
            if (above && Math.abs(Number(digits(value / scale).replaceAll(",", ""))) * scale >= above[0])
                return `${digits(value / above[0])} ${above[1]}`;
            return text;
        }
    }
    return String(value);
}

const timeUnits = [
    [1e9, "s"],
    [1e6, "ms"],
    [1e3, "µs"],
    [1, "ns"],
] as const;

// A duration in nanoseconds.
export function time(ns: Number_, unknown = UNAVAILABLE): string {
    if (!isKnown(ns)) return unknown;
    const value = Number(ns);
    const size = Math.abs(value);
    const sign = value < 0 ? "-" : "";
    if (size >= 120e9) {
        const seconds = Math.round(size / 1e9);
        const hours = Math.floor(seconds / 3600);
        const minutes = Math.floor((seconds % 3600) / 60);
        if (hours >= 48) return `${sign}${digits(hours / 24)} d`;
        if (hours > 0) return `${sign}${hours} h ${minutes} min`;
        return `${sign}${minutes} min ${seconds % 60} s`;
    }
    return value === 0 ? "0 ns" : scaled(value, timeUnits);
}

const byteUnits = [
    [2 ** 40, "TiB"],
    [2 ** 30, "GiB"],
    [2 ** 20, "MiB"],
    [2 ** 10, "KiB"],
    [1, "B"],
] as const;
export function bytes(value: Number_, unknown = UNAVAILABLE): string {
    if (!isKnown(value)) return unknown;
    return Number(value) === 0 ? "0 B" : scaled(Number(value), byteUnits);
}

export function rate(bytesPerSecond: Number_, unknown = UNAVAILABLE): string {
    if (!isKnown(bytesPerSecond)) return unknown;
    const value = Number(bytesPerSecond);
    if (value === 0) return "0 B/s";
    return scaled(value, [
        [1e12, "TB/s"],
        [1e9, "GB/s"],
        [1e6, "MB/s"],
        [1e3, "kB/s"],
        [1, "B/s"],
    ]);
}

// An integer with separators: counts are exact.
export function count(value: Number_, unknown = UNAVAILABLE): string {
    return isKnown(value) ? value.toLocaleString("en-US") : unknown;
}

// "1 kernel", "3 kernels".
export function plural(value: number, word: string, many = `${word}s`): string {
    return `${count(value)} ${value === 1 ? word : many}`;
}

// Short, for narrow places: 1.23 M.
export function countShort(value: Number_, unknown = UNAVAILABLE): string {
    if (!isKnown(value)) return unknown;
    const number = Number(value);
    if (Math.abs(number) < 10_000) return Math.round(number).toLocaleString("en-US");
    return scaled(number, [
        [1e18, "E"],
        [1e15, "P"],
        [1e12, "T"],
        [1e9, "G"],
        [1e6, "M"],
        [1e3, "k"],
    ]);
}

export function percent(fraction: Number_, unknown = UNAVAILABLE): string {
    if (!isKnown(fraction)) return unknown;
    const value = Number(fraction) * 100;
    if (value === 0) return "0 %";
    if (Math.abs(value) < 0.1) return value < 0 ? "> -0.1 %" : "< 0.1 %";
    if (Math.abs(value) >= 99.95 || Math.abs(value) >= 10)
        return `${value.toFixed(Math.abs(value) >= 99.95 ? 0 : 1)} %`;
    return `${value.toFixed(1)} %`;
}

export function signedPercent(fraction: Number_, unknown = UNAVAILABLE): string {
    if (!isKnown(fraction)) return unknown;
    return Number(fraction) > 0 ? `+${percent(fraction)}` : percent(fraction);
}

export function share(part: Number_, whole: Number_, unknown = UNAVAILABLE): string {
    if (!isKnown(part) || !isKnown(whole) || Number(whole) === 0) return unknown;
    return percent(Number(part) / Number(whole));
}

// A number with a given unit: 612 W, 1,980 MHz.
export function quantity(value: Number_, unit: string, unknown = UNAVAILABLE): string {
    return isKnown(value) ? `${digits(Number(value))}${unit === "" ? "" : ` ${unit}`}` : unknown;
}

// Local date and time to the second: "2026-11-15 10:03:22".
export function instant(ns: Number_, unknown = UNAVAILABLE): string {
    if (!isKnown(ns)) return unknown;
    const date = new Date(Number(ns) / 1e6);
    if (Number.isNaN(date.getTime())) return unknown;
    const two = (value: number): string => String(value).padStart(2, "0");
    return (
        `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ` +
        `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`
    );
}

// How long ago: "12 s ago", "3 d ago".
export function ago(ns: Number_, nowMs = Date.now(), unknown = UNAVAILABLE): string {
    if (!isKnown(ns)) return unknown;
    const seconds = Math.round(nowMs / 1000 - Number(ns) / 1e9);
    if (seconds < 0) return "now";
    if (seconds < 60) return `${seconds} s ago`;
    if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
    if (seconds < 172_800) return `${Math.floor(seconds / 3600)} h ago`;
    return `${Math.floor(seconds / 86_400)} d ago`;
}

// Shortened in the middle: both ends distinguish mangled or templated names.
export function middleCut(text: string, most: number): string {
    const letters = [...text];
    if (letters.length <= most) return text;
    if (most <= 1) return "…";
    const head = Math.ceil((most - 1) / 2);
    return `${letters.slice(0, head).join("")}…${letters.slice(letters.length - (most - 1 - head)).join("")}`;
}

// The name alone: "void at::native::foo<float, int>(float*)" -> "at::native::foo".
export function shortName(name: string): string {
    let depth = 0;
    let out = "";
    for (const letter of name.replace(/^(?:void|static|extern|inline|__global__)\s+/, "")) {
        if (letter === "<" && !/operator$/.test(out)) depth++;
        else if (letter === ">" && depth > 0) depth--;
        else if (letter === "(" && depth === 0 && !out.endsWith("::") && out !== "") break;
        else if (depth === 0) out += letter;
    }
    return out.trim() === "" ? name : out.trim();
}
