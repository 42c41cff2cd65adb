// SPDX-License-Identifier: Apache-2.0
// The data of a track in a view: parts of tiles, each with the time range it is valid for.
import { firstRow, type TrackTile } from "./tile";
import { levelOf, tilesOf, tileView, type Pyramid, type TileKey } from "./pyramid";
import { spanOf, type View } from "./time";

export interface Segment {
    readonly tile: TrackTile;
    readonly from: number;
    to: number;
    /** The previous segment has every event up to here: events that began earlier belong to it. */
    readonly isContinued: boolean;
}

export interface Coverage {
    readonly segments: readonly Segment[];
    /** Tiles that would show more detail than the loaded ones. */
    readonly missing: readonly TileKey[];
}

export function coverageOf(
    pyramid: Pyramid,
    track: string,
    view: View,
    pixels: number,
    align: number,
    endNs: number,
): Coverage {
    const level = levelOf(spanOf(view) / Math.max(pixels, 1));
    const segments: Segment[] = [],
        missing: TileKey[] = [];
    for (const key of tilesOf(view, level, align, endNs)) {
        const found = pyramid.find(track, key);
        if (!found?.isFinal) missing.push(key);
        if (!found) continue;
        const { from, to } = tileView(key, align),
            before = segments.at(-1);
        if (before && before.tile === found.tile && before.to === from) before.to = to;
        else
            segments.push({
                tile: found.tile,
                from,
                to,
                isContinued: before !== undefined && before.to === from && before.tile.isExact && found.tile.isExact,
            });
    }
    return { segments, missing };
}

/** Rows of the segments that overlap the view. An event is visited once, in full; a part of a sum may be truncated. */
export function eachRow(
    segments: readonly Segment[],
    view: View,
    take: (tile: TrackTile, row: number, start: number, end: number) => void,
): void {
    for (const segment of segments) {
        const { tile } = segment;
        const from = Math.max(segment.from, view.from),
            to = Math.min(segment.to, view.to);
        for (let row = firstRow(tile, from); row < tile.rows; row++) {
            const start = tile.start[row]!;
            if (start >= to) break;
            const end = start + tile.length[row]!;
            if (end < from || (segment.isContinued && start < segment.from)) continue;
            if (tile.isExact) take(tile, row, start, end);
            else if (end > from) take(tile, row, Math.max(start, segment.from), Math.min(end, segment.to));
        }
    }
}

export interface Hit {
    readonly tile: TrackTile;
    readonly row: number;
    readonly start: number;
    readonly length: number;
    readonly name: number;
    readonly isExact: boolean;
}

/** The event at a time: of those running, the one that began last; otherwise the nearest one within reach. */
export function hitAt(segments: readonly Segment[], time: number, reachNs: number): Hit | null {
    let best: Hit | null = null,
        bestDistance = Infinity;
    eachRow(segments, { from: time - reachNs, to: time + reachNs }, (tile, row) => {
        const start = tile.start[row]!,
            end = start + tile.length[row]!;
        const distance = time < start ? start - time : time > end ? time - end : 0;
        if (distance > reachNs || distance > bestDistance) return;
        bestDistance = distance;
        best = { tile, row, start, length: tile.length[row]!, name: tile.name[row]!, isExact: tile.isExact };
    });
    return best;
}
