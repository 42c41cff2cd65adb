// SPDX-License-Identifier: Apache-2.0
// The parts of a GPU's wall time, in total and over time.
import * as format from "../format";
import type { DeviceTime } from "../session";
import type { Part } from "../ui/charts";

export interface TimeBins {
    device: number;
    [part: string]: number | number[];
}
export interface TimeUse {
    start_ns: number | null;
    end_ns: number | null;
    wall_ns: number | null;
    time: DeviceTime[];
    bin_ns: number;
    bins: TimeBins[];
}

export interface PartInfo {
    id: Exclude<keyof DeviceTime, "device" | "busy_ns" | "compute_ns">;
    title: string;
    about: string;
    kind: "work" | "copy" | "wait" | "idle";
}
export const timeParts: readonly PartInfo[] = [
    { id: "kernel_ns", title: "kernels", about: "a kernel ran", kind: "work" },
    { id: "memsets_only_ns", title: "memsets alone", about: "a memset ran and no kernel", kind: "work" },
    { id: "copies_only_ns", title: "copies alone", about: "a copy ran and nothing else", kind: "copy" },
    {
        id: "wait_launch_ns",
        title: "waiting for launches",
        about: "the GPU was faster than the program could launch",
        kind: "wait",
    },
    {
        id: "wait_sync_ns",
        title: "host in a sync",
        about: "nothing was launched while the program waited for the GPU",
        kind: "wait",
    },
    {
        id: "queued_ns",
        title: "queued",
        about: "work was launched, but not yet started: dependencies, scheduling",
        kind: "wait",
    },
    { id: "no_work_ns", title: "no work", about: "the program had asked nothing of the GPU", kind: "idle" },
    {
        id: "unknown_ns",
        title: "unknown",
        about: "kernel tracing was paused for counters, or the call that started the next work was not recorded",
        kind: "idle",
    },
];

const colours: Record<string, string> = {
    kernel_ns: "var(--data)",
    memsets_only_ns: "oklch(0.66 0.08 160)",
    copies_only_ns: "oklch(0.66 0.11 200)",
    wait_launch_ns: "oklch(0.7 0.12 60)",
    wait_sync_ns: "oklch(0.62 0.11 310)",
    queued_ns: "oklch(0.74 0.1 100)",
};
export const partColour = (id: string): string | undefined => colours[id];

export function partsOf(time: DeviceTime): Part[] {
    const whole = timeParts.reduce((sum, part) => sum + time[part.id], 0);
    return timeParts
        .filter((part) => time[part.id] > 0)
        .map((part) => {
            const colour = partColour(part.id);
            return {
                name: part.title,
                value: time[part.id],
                text: `${format.time(time[part.id])} (${format.share(time[part.id], whole)})`,
                ...(colour === undefined ? {} : { colour }),
            };
        });
}

export interface Bin {
    index: number;
    fromNs: number; // since the start of the session
    toNs: number;
    parts: { id: string; title: string; share: number }[]; // of the bin's length, bottom first
}

export function binsOf(bins: TimeBins, binNs: number, wallNs: number): Bin[] {
    const count = Math.ceil(wallNs / binNs);
    return Array.from({ length: count }, (_unused, index) => {
        const fromNs = index * binNs;
        const toNs = Math.min(wallNs, fromNs + binNs);
        const parts = timeParts.map((part) => ({
            id: part.id,
            title: part.title,
            share: toNs > fromNs ? ((bins[part.id] as number[])[index] ?? 0) / (toNs - fromNs) : 0,
        }));
        return { index, fromNs, toNs, parts };
    });
}

export const timelineRange = (fromNs: number, toNs: number): string => `${Math.round(fromNs)}~${Math.round(toNs)}`;

// The page that shows an insight's data; null: none better than this one.
export function insightPlace(rule: string): { page: string; words: string } {
    const places: Record<string, { page: string; words: string }> = {
        no_work_queued: { page: "timeline", words: "show the gaps" },
        launch_bound: { page: "timeline", words: "show the launches" },
        sync_wait: { page: "memory", words: "show the waits" },
        host_sync: { page: "memory", words: "show the waits" },
        pageable_copies: { page: "memory", words: "show the copies" },
        low_occupancy: { page: "kernels", words: "show the kernels" },
        tiny_grid: { page: "kernels", words: "show the kernels" },
        local_memory: { page: "kernels", words: "show the kernels" },
        local_traffic: { page: "code", words: "show the code" },
        uncoalesced_access: { page: "code", words: "show the code" },
        stalled_line: { page: "code", words: "show the line" },
        throttled: { page: "timeline", words: "show the clocks" },
    };
    return places[rule] ?? { page: "timeline", words: "show me" };
}
