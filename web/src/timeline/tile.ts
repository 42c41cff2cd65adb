// SPDX-License-Identifier: Apache-2.0
// Parses a tile from the server (docs/http-api.md, "The timeline"): a JSON description followed by little-endian
// columns. Times become doubles relative to the session's start, without a bigint per cell.
import type { TimeBase } from "./time";

export type TrackKind = "kernels" | "copies" | "memsets" | "graphs" | "scopes" | "syncs" | "launches";

/** One track's data in one tile. Exact: every event that overlaps it; otherwise sums of parts. By start. */
export interface TrackTile {
    readonly isExact: boolean;
    readonly rows: number;
    readonly start: Float64Array;
    /** Of the event or of the part. */
    readonly length: Float64Array;
    /** Of a part; an event is busy for its whole duration. */
    readonly busy: Float64Array | null;
    /** Events that start in a part. */
    readonly count: Uint32Array | null;
    readonly name: Uint32Array;
    /** Of copies: the kind of the host's memory; null if unknown. */
    readonly hostMemory: Uint32Array | null;
    /** The latest end of all rows up to each one, because ends are not in order where events overlap. */
    readonly endMax: Float64Array;
    readonly bytes: number;
}

/** Of a track that is missing in the answer. */
export const EMPTY_TRACK: TrackTile = {
    isExact: false,
    rows: 0,
    bytes: 160,
    start: new Float64Array(),
    length: new Float64Array(),
    busy: new Float64Array(),
    count: new Uint32Array(),
    name: new Uint32Array(),
    hostMemory: null,
    endMax: new Float64Array(),
};

export interface Tile {
    readonly tracks: ReadonlyMap<string, TrackTile>;
    readonly names: readonly { kind: TrackKind; name: number; text: string | null }[];
}

interface ColumnText {
    name: string;
    type: string;
    offset: number;
}
interface TrackText {
    id: string;
    is_exact: boolean;
    rows: number;
    columns: ColumnText[];
}
interface TileText {
    tracks: TrackText[];
    names: { kind: TrackKind; name: number; text: string | null }[];
}

const magic = "GFLCOLS1";
const headerBytes = 16;

class Columns {
    private readonly view: DataView;

    constructor(
        private readonly buffer: ArrayBuffer,
        private readonly begin: number,
        private readonly track: TrackText,
    ) {
        this.view = new DataView(buffer);
    }

    private find(name: string, type: string): number | null {
        const column = this.track.columns.find((one) => one.name === name);
        if (!column) return null;
        const size = this.track.rows * (type === "i64" ? 8 : 4),
            at = this.begin + column.offset;
        if (
            column.type !== type ||
            !Number.isSafeInteger(column.offset) ||
            column.offset < 0 ||
            column.offset % 8 ||
            at + size > this.buffer.byteLength
        )
            throw new Error(`tile: column ${name} of ${this.track.id} does not fit`);
        return at;
    }

    /** 64-bit cells minus the base; exact while the difference has 53 bits. */
    long(name: string, base: bigint): Float64Array | null {
        const at = this.find(name, "i64");
        if (at === null) return null;
        const low = Number(BigInt.asUintN(32, base)),
            high = Number(BigInt.asIntN(32, base >> 32n));
        const values = new Float64Array(this.track.rows);
        for (let row = 0; row < values.length; row++)
            values[row] =
                (this.view.getInt32(at + row * 8 + 4, true) - high) * 4294967296 +
                (this.view.getUint32(at + row * 8, true) - low);
        return values;
    }

    short(name: string): Uint32Array | null {
        const at = this.find(name, "u32");
        return at === null ? null : new Uint32Array(this.buffer.slice(at, at + this.track.rows * 4));
    }
}

function endsOf(start: Float64Array, length: Float64Array): Float64Array {
    const ends = new Float64Array(start.length);
    let end = -Infinity;
    for (let row = 0; row < start.length; row++) {
        end = Math.max(end, start[row]! + length[row]!);
        ends[row] = end;
    }
    return ends;
}

function trackDecode(columns: Columns, track: TrackText, base: TimeBase): TrackTile {
    const start = columns.long("start_ns", base.startNs);
    const length = columns.long(track.is_exact ? "duration_ns" : "width_ns", 0n);
    const busy = track.is_exact ? null : columns.long("busy_ns", 0n);
    const count = track.is_exact ? null : columns.short("count");
    const name = columns.short("name");
    if (!start || !length || !name || (!track.is_exact && (!busy || !count)))
        throw new Error(`tile: ${track.id} lacks a column`);
    const hostMemory = columns.short("host_memory");
    const bytes = track.rows * (track.is_exact ? 32 : 40) + 160;
    return {
        isExact: track.is_exact,
        rows: track.rows,
        start,
        length,
        busy,
        count,
        name,
        hostMemory,
        endMax: endsOf(start, length),
        bytes,
    };
}

export function tileDecode(buffer: ArrayBuffer, base: TimeBase): Tile {
    const view = new DataView(buffer);
    let found = "";
    for (let i = 0; i < magic.length && i < buffer.byteLength; i++) found += String.fromCharCode(view.getUint8(i));
    if (found !== magic || buffer.byteLength < headerBytes) throw new Error("tile: not a timeline tile");
    const size = view.getUint32(8, true);
    if (size > buffer.byteLength - headerBytes) throw new Error("tile: cut short");
    const text = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, headerBytes, size))) as TileText;
    const tracks = new Map<string, TrackTile>();
    for (const track of text.tracks) {
        if (!Number.isSafeInteger(track.rows) || track.rows < 0)
            throw new Error(`tile: ${track.id} has no number of rows`);
        tracks.set(track.id, trackDecode(new Columns(buffer, headerBytes + size, track), track, base));
    }
    return { tracks, names: text.names };
}

/** The first row that may end after the time. */
export function firstRow(tile: TrackTile, time: number): number {
    let low = 0,
        high = tile.rows;
    while (low < high) {
        const middle = (low + high) >>> 1;
        if (tile.endMax[middle]! < time) low = middle + 1;
        else high = middle;
    }
    return low;
}

/** Texts of names, by kind of track. They are untrusted: only drawn or set as text. */
export class Names {
    private readonly texts = new Map<string, string | null>();

    add(tile: Tile): void {
        for (const one of tile.names) this.texts.set(`${one.kind} ${one.name}`, one.text);
    }

    text(kind: TrackKind, name: number): string {
        if (kind === "memsets") return "memset";
        if (kind === "graphs") return `graph ${name}`;
        return this.texts.get(`${kind} ${name}`) ?? (kind === "scopes" ? "scope without a name" : `unnamed ${name}`);
    }
}
