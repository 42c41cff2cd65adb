// SPDX-License-Identifier: Apache-2.0
// A function's instructions, grouped by source line, sorted by heat, and described in words.
import * as format from "../format";
import type { Instruction, KernelResources, Place } from "./answers";

export interface LineUse {
    line: number;
    samples: number;
    stalls: Record<string, number>;
    executed: number | null; // the maximum of its instructions
    instructions: number[]; // indexes, by address
    source: string | null;
}

export interface FileUse {
    file: string;
    samples: number;
    lines: Map<number, LineUse>;
}

export interface CodeView {
    files: FileUse[]; // most samples first, then most instructions
    samplesMost: number;
    executedMost: number;
    hasSamples: boolean;
    hasCounters: boolean;
    hasMemoryCounters: boolean;
    stalls: Record<string, number>; // of all instructions
    rawCount: number; // instructions without text
    hottest: number[]; // indexes: by samples, then by executions
}

function lineOf(files: Map<string, FileUse>, file: string, line: number): LineUse {
    let use = files.get(file);
    if (!use) files.set(file, (use = { file, samples: 0, lines: new Map() }));
    let lineUse = use.lines.get(line);
    if (!lineUse)
        use.lines.set(
            line,
            (lineUse = { line, samples: 0, stalls: {}, executed: null, instructions: [], source: null }),
        );
    return lineUse;
}

export function codeView(instructions: readonly Instruction[]): CodeView {
    const files = new Map<string, FileUse>();
    const view: CodeView = {
        files: [],
        samplesMost: 0,
        executedMost: 0,
        hasSamples: false,
        hasCounters: false,
        hasMemoryCounters: false,
        stalls: {},
        rawCount: 0,
        hottest: [],
    };
    instructions.forEach((step, index) => {
        const executed = step.counters?.inst_executed ?? null;
        view.samplesMost = Math.max(view.samplesMost, step.samples);
        view.executedMost = Math.max(view.executedMost, executed ?? 0);
        view.rawCount += step.is_raw ? 1 : 0;
        for (const [reason, count] of Object.entries(step.stalls))
            view.stalls[reason] = (view.stalls[reason] ?? 0) + count;
        view.hasSamples ||= step.samples > 0;
        view.hasCounters ||= step.counters !== null;
        view.hasMemoryCounters ||= (step.counters?.coalescing ?? null) !== null;
        if (step.file === null || step.line === null) return;
        const use = lineOf(files, step.file, step.line);
        (files.get(step.file) as FileUse).samples += step.samples;
        use.samples += step.samples;
        for (const [reason, count] of Object.entries(step.stalls))
            use.stalls[reason] = (use.stalls[reason] ?? 0) + count;
        if (executed !== null) use.executed = Math.max(use.executed ?? 0, executed);
        use.source ??= step.source;
        use.instructions.push(index);
        // The calls it was inlined through include it too, but not its samples, which count once.
        for (const place of step.inlined_at) {
            const outer = lineOf(files, place.file, place.line);
            if (outer.instructions[outer.instructions.length - 1] !== index) outer.instructions.push(index);
        }
    });
    const countOf = (file: FileUse): number =>
        [...file.lines.values()].reduce((sum, line) => sum + line.instructions.length, 0);
    view.files = [...files.values()].sort((a, b) => b.samples - a.samples || countOf(b) - countOf(a));
    view.hottest = instructions
        .map((_, index) => index)
        .filter(
            (index) =>
                (instructions[index]?.samples ?? 0) > 0 || (instructions[index]?.counters?.inst_executed ?? 0) > 0,
        )
        .sort((a, b) => {
            const [left, right] = [instructions[a] as Instruction, instructions[b] as Instruction];
            return (
                right.samples - left.samples ||
                (right.counters?.inst_executed ?? 0) - (left.counters?.inst_executed ?? 0) ||
                a - b
            );
        });
    return view;
}

// The source position of an instruction, innermost first.
export function placesOf(step: Instruction): Place[] {
    return step.file !== null && step.line !== null ? [{ file: step.file, line: step.line }, ...step.inlined_at] : [];
}

export const placeKey = (file: string, line: number): string => `${line}:${file}`;

export function fileName(path: string): string {
    return path.slice(path.lastIndexOf("/") + 1) || path;
}

// Reasons why a warp did not issue, most frequent first; without those that issued or were ready, which did not wait.
export function stallsOf(stalls: Readonly<Record<string, number>>): [string, number][] {
    return Object.entries(stalls).sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
}

export function mainStall(stalls: Readonly<Record<string, number>>): string | null {
    return stallsOf(stalls).find(([reason]) => !/^(selected|not_selected)$/.test(reason))?.[0] ?? null;
}

export interface DataStatement {
    sampling: readonly { mode: string | null; period_cycles: number | null }[];
    windows: readonly { source: string; covered_ns: number; launches: number; launches_are_exact: boolean }[];
    samples: number | null;
    kernels: number | null; // executions in the whole session
    untimed: number;
}

function periodText(cycles: number | null): string {
    if (cycles === null || cycles <= 0) return "";
    const power = Math.log2(cycles);
    return Number.isInteger(power) ? `, period 2^${power}` : `, period ${format.count(cycles)} cycles`;
}

// The data that the page is based on:
export function dataText(data: DataStatement): string {
    const parts: string[] = [];
    const sampled = data.windows.find((window) => /pc_sampling/.test(window.source));
    const counted = data.windows.find((window) => /sass/.test(window.source));
    if (data.samples) {
        const config = data.sampling[0];
        const how = config ? ` (${config.mode ?? "mode unknown"}${periodText(config.period_cycles)})` : "";
        const during = sampled && sampled.covered_ns > 0 ? ` in ${format.time(sampled.covered_ns)}` : "";
        parts.push(`${format.count(data.samples)} samples${during}${how}`);
    } else {
        parts.push("no samples");
    }
    if (counted) {
        const launches = data.kernels === null ? 0 : data.kernels + data.untimed;
        // A session without kernel times does not have their number.
        const all = launches >= counted.launches ? ` of ${format.count(launches)}` : "";
        parts.push(
            `counters from ${counted.launches_are_exact ? "" : "at least "}${format.count(counted.launches)}${all} launches`,
        );
    } else {
        parts.push("no window of counters");
    }
    return parts.join(" · ");
}

// "gfx90a · 6 VGPRs · 9 SGPRs · LDS 1 KiB · 8 of 8 waves per SIMD"
export function resourcesText(resources: KernelResources): string {
    const parts: string[] = [resources.arch];
    const add = (value: number | null, text: (value: number) => string, isShownAtZero = true): void => {
        if (value !== null && (value > 0 || isShownAtZero)) parts.push(text(value));
    };
    add(resources.vgprs, (value) => `${format.count(value)} VGPRs`);
    add(resources.agprs, (value) => `${format.count(value)} of them for accumulation`, false);
    add(resources.sgprs, (value) => `${format.count(value)} SGPRs`);
    add(resources.vgpr_spills, (value) => `${format.count(value)} VGPRs spilled`, false);
    add(resources.sgpr_spills, (value) => `${format.count(value)} SGPRs spilled`, false);
    add(resources.lds_bytes, (value) => `LDS ${format.bytes(value)}`);
    add(resources.scratch_bytes, (value) => `scratch ${format.bytes(value)}`, false);
    add(resources.wave_size, (value) => `waves of ${value}`);
    if (resources.waves_per_simd === null)
        parts.push(`occupancy unavailable: ${resources.occupancy_problem ?? "not known"}`);
    else
        parts.push(
            `${Number(resources.waves_per_simd.toFixed(2))} of ${resources.waves_per_simd_max} waves per SIMD` +
                (resources.limiter === null || resources.limiter === "none" ? "" : `, limited by ${resources.limiter}`) +
                (resources.work_group_size === null ? " (by registers alone)" : ""),
        );
    return parts.join(" · ");
}
