// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { levelOf, Pyramid, tilesOf, tileSpan, tileView, TILE_PARTS } from "./pyramid";
import { coverageOf, eachRow, hitAt } from "./segments";
import { EMPTY_TRACK, firstRow, Names, tileDecode, type TrackTile } from "./tile";
import { TimeBase } from "./time";

const start = 1794720054622423212n;

/** A tile in the server's format. */
function tileBytes(
    tracks: { id: string; isExact: boolean; columns: Record<string, (bigint | number)[]> }[],
    names: unknown[] = [],
): ArrayBuffer {
    const parts: Uint8Array[] = [];
    let offset = 0;
    const texts = tracks.map(({ id, isExact, columns }) => ({
        id,
        kind: "kernels",
        is_exact: isExact,
        rows: Object.values(columns)[0]!.length,
        columns: Object.entries(columns).map(([name, values]) => {
            const isLong = typeof values[0] === "bigint";
            const bytes = new Uint8Array(Math.ceil((values.length * (isLong ? 8 : 4)) / 8) * 8),
                view = new DataView(bytes.buffer);
            values.forEach((value, i) =>
                isLong ? view.setBigInt64(i * 8, value as bigint, true) : view.setUint32(i * 4, value as number, true),
            );
            parts.push(bytes);
            offset += bytes.length;
            return { name, type: isLong ? "i64" : "u32", offset: offset - bytes.length };
        }),
    }));
    let text = JSON.stringify({ from_ns: 0, to_ns: 1, pixels: 512, tracks: texts, names });
    while (new TextEncoder().encode(text).length % 8) text += " ";
    const encoded = new TextEncoder().encode(text),
        out = new Uint8Array(16 + encoded.length + offset);
    out.set(new TextEncoder().encode("GFLCOLS1"));
    new DataView(out.buffer).setUint32(8, encoded.length, true);
    out.set(encoded, 16);
    let at = 16 + encoded.length;
    for (const part of parts) {
        out.set(part, at);
        at += part.length;
    }
    return out.buffer;
}

function events(list: readonly (readonly [number, number])[], isExact = true): TrackTile {
    const begin = Float64Array.from(list, ([at]) => at),
        length = Float64Array.from(list, ([, size]) => size);
    let end = -Infinity;
    return {
        isExact,
        rows: list.length,
        start: begin,
        length,
        busy: isExact ? null : length,
        count: isExact ? null : new Uint32Array(list.length),
        name: Uint32Array.from(list, (_, i) => i),
        hostMemory: null,
        endMax: Float64Array.from(list, ([at, size]) => (end = Math.max(end, at + size))),
        bytes: 1000,
    };
}

describe("tiles", () => {
    it("columns are read to the nanosecond, before the start too", () => {
        const bytes = tileBytes(
            [
                {
                    id: "kernels-0-7",
                    isExact: true,
                    columns: {
                        start_ns: [start - 5n, start + 1n, start + 4294967296n * 3n + 7n],
                        duration_ns: [3n, 0n, 4294967297n],
                        name: [1, 2, 3],
                        row: [0, 1, 2],
                    },
                },
            ],
            [{ kind: "kernels", name: 2, text: "<b>\u202e" }],
        );
        const tile = tileDecode(bytes, new TimeBase(start)),
            track = tile.tracks.get("kernels-0-7")!;
        expect([...track.start]).toEqual([-5, 1, 12884901895]);
        expect([...track.length]).toEqual([3, 0, 4294967297]);
        expect([...track.name]).toEqual([1, 2, 3]);
        const names = new Names();
        names.add(tile);
        expect(names.text("kernels", 2)).toBe("<b>\u202e");
        expect(names.text("kernels", 9)).toBe("unnamed 9");
    });

    it("damaged tiles are refused, not misread", () => {
        const good = tileBytes([
            { id: "kernels-0-7", isExact: true, columns: { start_ns: [1n], duration_ns: [1n], name: [1], row: [0] } },
        ]);
        const base = new TimeBase(0n);
        expect(() => tileDecode(good.slice(0, 12), base)).toThrow();
        expect(() => tileDecode(good.slice(0, good.byteLength - 16), base)).toThrow(/does not fit/);
        expect(() => tileDecode(new ArrayBuffer(64), base)).toThrow(/not a timeline tile/);
        const lacking = tileBytes([
            { id: "kernels-0-7", isExact: false, columns: { start_ns: [1n], width_ns: [1n], name: [1] } },
        ]);
        expect(() => tileDecode(lacking, base)).toThrow(/lacks a column/);
    });

    it("the first row that reaches a time is found although ends are not in order", () => {
        const tile = events([
            [0, 100],
            [10, 5],
            [20, 5],
            [200, 1],
        ]);
        expect(firstRow(tile, 50)).toBe(0);
        expect(firstRow(tile, 101)).toBe(3);
        expect(firstRow(tile, 500)).toBe(4);
    });
});

describe("the pyramid", () => {
    const align = new TimeBase(start).align;

    it("tiles of a level cover the view without gaps, and each lies within the one above", () => {
        for (const level of [0, 3, 17, 30]) {
            const view = { from: 1e9, to: 1e9 + tileSpan(level) * 3.5 },
                keys = tilesOf(view, level, align, 1e18);
            expect(tileView(keys[0]!, align).from).toBeLessThanOrEqual(view.from);
            expect(tileView(keys.at(-1)!, align).to).toBeGreaterThan(view.to);
            for (const key of keys) {
                const own = tileView(key, align),
                    above = tileView({ level: level + 1, index: Math.floor(key.index / 2) }, align);
                expect(own.from).toBeGreaterThanOrEqual(above.from);
                expect(own.to).toBeLessThanOrEqual(above.to);
            }
        }
        expect(levelOf(0.01)).toBe(0);
        expect(levelOf(1024)).toBe(10);
        expect(levelOf(1500)).toBe(10);
        expect(TILE_PARTS * 2 ** 10).toBe(tileSpan(10));
    });

    it("an exact tile above replaces those below, a sum only until they arrive", () => {
        const pyramid = new Pyramid(1e6);
        pyramid.put("a", { level: 5, index: 10 }, events([], false));
        expect(pyramid.find("a", { level: 3, index: 40 })).toMatchObject({ isFinal: false });
        pyramid.put("a", { level: 4, index: 20 }, events([[0, 1]]));
        expect(pyramid.find("a", { level: 3, index: 41 })).toMatchObject({ isFinal: true });
        expect(pyramid.find("a", { level: 3, index: 43 })).toMatchObject({ isFinal: false });
        expect(pyramid.find("b", { level: 3, index: 40 })).toBeNull();
    });

    it("stays within its bytes and forgets what was not used for longest", () => {
        const pyramid = new Pyramid(10_000);
        for (let index = 0; index < 10; index++) pyramid.put("a", { level: 0, index }, events([[index, 1]]));
        pyramid.find("a", { level: 0, index: 0 });
        for (let index = 10; index < 14; index++) pyramid.put("a", { level: 0, index }, events([[index, 1]]));
        expect(pyramid.bytes).toBeLessThanOrEqual(10_000);
        expect(pyramid.find("a", { level: 0, index: 0 })).not.toBeNull();
        expect(pyramid.find("a", { level: 0, index: 1 })).toBeNull();
    });

    it("what reaches beyond the old end is asked for again and shown until then", () => {
        const pyramid = new Pyramid(1e6);
        pyramid.put("a", { level: 0, index: 0 }, events([[0, 1]]));
        pyramid.put("a", { level: 0, index: 1 }, events([[600, 1]]));
        pyramid.expireAfter(600, 0);
        expect(pyramid.find("a", { level: 0, index: 0 })).toMatchObject({ isFinal: true });
        expect(pyramid.find("a", { level: 0, index: 1 })).toMatchObject({ isFinal: false });
    });
});

describe("segments", () => {
    const whole = { from: 0, to: 2048 };

    function filled(): Pyramid {
        const pyramid = new Pyramid(1e6);
        /* One event crosses the border between the tiles and is in both. */
        pyramid.put(
            "a",
            { level: 0, index: 0 },
            events([
                [10, 5],
                [500, 100],
            ]),
        );
        pyramid.put(
            "a",
            { level: 0, index: 1 },
            events([
                [500, 100],
                [700, 10],
            ]),
        );
        pyramid.put("a", { level: 0, index: 2 }, EMPTY_TRACK);
        return pyramid;
    }

    it("an event that two tiles hold comes once", () => {
        const { segments, missing } = coverageOf(filled(), "a", whole, 2048, 0, 2048),
            seen: number[] = [];
        eachRow(segments, whole, (_tile, _row, from) => seen.push(from));
        expect(seen).toEqual([10, 500, 700]);
        expect(missing).toEqual([
            { level: 0, index: 3 },
            { level: 0, index: 4 },
        ]);
    });

    it("an event that began before the view is seen", () => {
        const view = { from: 550, to: 560 },
            { segments } = coverageOf(filled(), "a", view, 10, 0, 2048),
            seen: number[] = [];
        eachRow(segments, view, (_tile, _row, from) => seen.push(from));
        expect(seen).toEqual([500]);
    });

    it("the pointer finds what runs, else the nearest within reach", () => {
        const { segments } = coverageOf(filled(), "a", whole, 2048, 0, 2048);
        expect(hitAt(segments, 550, 5)).toMatchObject({ start: 500 });
        expect(hitAt(segments, 18, 5)).toMatchObject({ start: 10 });
        expect(hitAt(segments, 300, 5)).toBeNull();
    });
});
