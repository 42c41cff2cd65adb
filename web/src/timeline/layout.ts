// SPDX-License-Identifier: Apache-2.0
// The rows and their positions: foldable groups for host threads, devices and metrics.
import type { TrackKind } from "./tile";

export interface Track {
    readonly id: string;
    readonly kind: TrackKind;
    readonly count: number;
    readonly busyNs: number;
    readonly device: number | null;
    readonly streamId: number | null;
    readonly threadId: number | null;
    readonly depth: number;
}

/** A metric over time. */
export interface Lane {
    readonly id: string;
    readonly source: "metrics" | "pm";
    readonly metric: string;
    readonly device: number | null;
    readonly label: string;
}

export interface Group {
    readonly id: string;
    readonly label: string;
    readonly note: string;
    readonly tracks: readonly Track[];
    readonly lanes: readonly Lane[];
}

export type Row = { readonly y: number; readonly height: number; readonly label: string; readonly group: Group } & (
    | { readonly type: "group"; readonly isFolded: boolean }
    | { readonly type: "track"; readonly track: Track }
    | { readonly type: "lane"; readonly lane: Lane }
);

export const GROUP_HEIGHT = 24,
    TRACK_HEIGHT = 20,
    LANE_HEIGHT = 40;

const gpuOrder: readonly TrackKind[] = ["graphs", "kernels", "copies", "memsets"];
const hostOrder: readonly TrackKind[] = ["scopes", "launches", "syncs"];

function trackLabel(track: Track): string {
    const stream = track.streamId === null ? "stream unknown" : `stream ${track.streamId}`;
    switch (track.kind) {
        case "kernels":
            return stream;
        case "scopes":
            return track.depth ? `scopes, depth ${track.depth}` : "scopes";
        case "syncs":
            return "waits";
        case "launches":
            return "launches";
        default:
            return `${track.kind} · ${stream}`;
    }
}

const place = (order: readonly TrackKind[], track: Track): number => order.indexOf(track.kind);
const least = (value: number | null): number => value ?? Number.MAX_SAFE_INTEGER;

function hostGroups(tracks: readonly Track[]): Group[] {
    const threads = new Map<number | null, Track[]>();
    for (const track of tracks)
        if (hostOrder.includes(track.kind))
            threads.set(track.threadId, [...(threads.get(track.threadId) ?? []), track]);
    return [...threads]
        .sort(([a], [b]) => least(a) - least(b))
        .map(([thread, list]) => ({
            id: `thread-${thread ?? "x"}`,
            label: thread === null ? "thread unknown" : `thread ${thread}`,
            note: "host",
            tracks: list.sort((a, b) => place(hostOrder, a) - place(hostOrder, b) || a.depth - b.depth),
            lanes: [],
        }));
}

function deviceGroups(tracks: readonly Track[], names: ReadonlyMap<number, string>): Group[] {
    const devices = new Map<number | null, Track[]>();
    for (const track of tracks)
        if (gpuOrder.includes(track.kind)) devices.set(track.device, [...(devices.get(track.device) ?? []), track]);
    return [...devices]
        .sort(([a], [b]) => least(a) - least(b))
        .map(([device, list]) => ({
            id: `device-${device ?? "x"}`,
            label: device === null ? "GPU unknown" : `GPU ${device}`,
            note: device === null ? "" : (names.get(device) ?? ""),
            tracks: list.sort(
                (a, b) => least(a.streamId) - least(b.streamId) || place(gpuOrder, a) - place(gpuOrder, b),
            ),
            lanes: [],
        }));
}

function laneGroups(lanes: readonly Lane[]): Group[] {
    const devices = new Map<number | null, Lane[]>();
    for (const lane of lanes) devices.set(lane.device, [...(devices.get(lane.device) ?? []), lane]);
    return [...devices]
        .sort(([a], [b]) => least(a) - least(b))
        .map(([device, list]) => ({
            id: `metrics-${device ?? "host"}`,
            label: device === null ? "host metrics" : `GPU ${device} metrics`,
            note: "",
            tracks: [],
            lanes: list,
        }));
}

export function groupsOf(
    tracks: readonly Track[],
    lanes: readonly Lane[],
    deviceNames: ReadonlyMap<number, string>,
): Group[] {
    return [...hostGroups(tracks), ...deviceGroups(tracks, deviceNames), ...laneGroups(lanes)];
}

export interface Layout {
    readonly rows: readonly Row[];
    readonly height: number;
}

export function layoutOf(groups: readonly Group[], folded: ReadonlySet<string>): Layout {
    const rows: Row[] = [];
    let y = 0;
    for (const group of groups) {
        const isFolded = folded.has(group.id);
        rows.push({ type: "group", y, height: GROUP_HEIGHT, label: group.label, group, isFolded });
        y += GROUP_HEIGHT;
        if (isFolded) continue;
        for (const track of group.tracks) {
            rows.push({ type: "track", y, height: TRACK_HEIGHT, label: trackLabel(track), group, track });
            y += TRACK_HEIGHT;
        }
        for (const lane of group.lanes) {
            rows.push({ type: "lane", y, height: LANE_HEIGHT, label: lane.label, group, lane });
            y += LANE_HEIGHT;
        }
    }
    return { rows, height: y };
}

/** Index of the first row that ends below y: rows are in order. */
export function firstRowAt(layout: Layout, y: number): number {
    let low = 0,
        high = layout.rows.length;
    while (low < high) {
        const middle = (low + high) >>> 1,
            row = layout.rows[middle]!;
        if (row.y + row.height <= y) low = middle + 1;
        else high = middle;
    }
    return low;
}

export function rowAt(layout: Layout, y: number): Row | null {
    const row = layout.rows[firstRowAt(layout, y)];
    return row && y >= row.y ? row : null;
}

/** Rows between two heights. */
export function rowsBetween(layout: Layout, top: number, bottom: number): readonly Row[] {
    let last = firstRowAt(layout, top);
    const first = last;
    while (last < layout.rows.length && layout.rows[last]!.y < bottom) last++;
    return layout.rows.slice(first, last);
}

/** The row where a track is drawn: its own, or its group's if that is folded. */
export function rowOfTrack(layout: Layout, trackId: string): Row | null {
    return (
        layout.rows.find((row) =>
            row.type === "track"
                ? row.track.id === trackId
                : row.type === "group" && row.isFolded && row.group.tracks.some((track) => track.id === trackId),
        ) ?? null
    );
}
