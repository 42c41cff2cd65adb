// SPDX-License-Identifier: Apache-2.0
// Tiles by zoom level, in a cache limited by bytes. Level k divides time into parts of 2^k ns, and TILE_PARTS of them
// form a tile. Tiles are aligned to the wall clock, not to the session, like the store's sums.
import type { TrackTile } from "./tile";
import type { View } from "./time";

export const TILE_PARTS = 512;
const levelMax = 41;

export interface TileKey {
    readonly level: number;
    readonly index: number;
}

export const tileSpan = (level: number): number => TILE_PARTS * 2 ** level;

/** The level whose parts are at most one pixel wide. */
export function levelOf(nsPerPixel: number): number {
    return Math.min(levelMax, Math.max(0, Math.floor(Math.log2(Math.max(nsPerPixel, 1)))));
}

export function tileView(key: TileKey, align: number): View {
    const span = tileSpan(key.level),
        from = key.index * span - align;
    return { from, to: from + span };
}

/** Tiles of a level that overlap both the view and the session. */
export function tilesOf(view: View, level: number, align: number, endNs: number): TileKey[] {
    const span = tileSpan(level);
    const first = Math.floor((Math.max(view.from, 0) + align) / span);
    const last = Math.floor((Math.min(view.to, endNs) + align) / span);
    const keys: TileKey[] = [];
    for (let index = first; index <= last && keys.length < 64; index++) keys.push({ level, index });
    return keys;
}

interface Entry {
    tile: TrackTile;
    readonly key: TileKey;
    usedAt: number;
    /** The session has grown since: shown until the new tile arrives. */
    isStale: boolean;
}

/** The best available tile for a requested one. */
export interface Found {
    readonly tile: TrackTile;
    readonly key: TileKey;
    /** No better tile exists. */
    readonly isFinal: boolean;
}

/** Levels are less than 64 and indexes below 2^45, so both fit into one double. */
const numberOf = (level: number, index: number): number => level * 2 ** 45 + index;

export class Pyramid {
    private readonly tracks = new Map<string, Map<number, Entry>>();
    private clock = 0;
    bytes = 0;
    size = 0;

    constructor(private readonly bytesMax: number) {}

    put(track: string, key: TileKey, tile: TrackTile): void {
        let entries = this.tracks.get(track);
        if (!entries) this.tracks.set(track, (entries = new Map()));
        const id = numberOf(key.level, key.index),
            before = entries.get(id);
        this.bytes += tile.bytes - (before?.tile.bytes ?? 0);
        this.size += before ? 0 : 1;
        entries.set(id, { tile, key, usedAt: ++this.clock, isStale: false });
        if (this.bytes > this.bytesMax) this.shrink();
    }

    /** Removes the least recently used tiles until a tenth is free: one sort for many removals. */
    private shrink(): void {
        const all: { entries: Map<number, Entry>; id: number; entry: Entry }[] = [];
        for (const entries of this.tracks.values()) for (const [id, entry] of entries) all.push({ entries, id, entry });
        all.sort((a, b) => a.entry.usedAt - b.entry.usedAt);
        for (const { entries, id, entry } of all) {
            if (this.bytes <= this.bytesMax * 0.9 || this.size === 1) return;
            entries.delete(id);
            this.bytes -= entry.tile.bytes;
            this.size--;
        }
    }

    /** The tile itself, or an exact one above it, or otherwise the nearest one above. */
    find(track: string, wanted: TileKey): Found | null {
        const entries = this.tracks.get(track);
        let nearest: Entry | null = null;
        for (
            let level = wanted.level, index = wanted.index;
            entries && level <= levelMax;
            level++, index = Math.floor(index / 2)
        ) {
            const entry = entries.get(numberOf(level, index));
            if (!entry) continue;
            if ((entry.tile.isExact || level === wanted.level) && !entry.isStale) {
                entry.usedAt = ++this.clock;
                return { tile: entry.tile, key: entry.key, isFinal: true };
            }
            nearest ??= entry;
        }
        if (nearest) nearest.usedAt = ++this.clock;
        return nearest && { tile: nearest.tile, key: nearest.key, isFinal: false };
    }

    /** Marks tiles after the time for reloading: a growing session has more data there now. */
    expireAfter(timeNs: number, align: number): void {
        for (const entries of this.tracks.values())
            for (const entry of entries.values()) entry.isStale ||= tileView(entry.key, align).to > timeNs;
    }
}
