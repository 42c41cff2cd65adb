// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { placeParams, placeParse } from "./address";
import { energyText, queueDelay } from "./detail";
import { LabelFitter, labelTexts, plainText, shownName } from "./labels";
import { knownAround, lanesOf, valueAt, valuesOf } from "./lanes";
import { groupsOf, layoutOf, rowAt, rowOfTrack, rowsBetween, type Track } from "./layout";
import { TileRequests } from "./painter";
import { HATCHED, mixColour, packColour, Raster } from "./raster";
import { TimeBase } from "./time";

const track = (part: Partial<Track>): Track => ({
    id: "",
    kind: "kernels",
    count: 1,
    busyNs: 1,
    device: null,
    streamId: null,
    threadId: null,
    depth: 0,
    ...part,
});

const tracks = [
    track({ id: "copies-0-7", kind: "copies", device: 0, streamId: 7 }),
    track({ id: "kernels-0-13", device: 0, streamId: 13 }),
    track({ id: "kernels-0-7", device: 0, streamId: 7 }),
    track({ id: "kernels-1-7", device: 1, streamId: 7 }),
    track({ id: "scopes-9-1", kind: "scopes", threadId: 9, depth: 1 }),
    track({ id: "scopes-9-0", kind: "scopes", threadId: 9 }),
    track({ id: "syncs-9", kind: "syncs", threadId: 9 }),
];
const groups = groupsOf(
    tracks,
    lanesOf("metrics", [
        { metric: "power_mw", device: 0 },
        { metric: "gpu_util", device: 0 },
        { metric: "unheard_of", device: 0 },
    ]),
    new Map([[0, "NVIDIA H200"]]),
);

describe("layout", () => {
    it("threads come first with nested scopes, then devices by stream, then metrics", () => {
        const { rows } = layoutOf(groups, new Set());
        expect(rows.map((row) => row.label)).toEqual([
            "thread 9",
            "scopes",
            "scopes, depth 1",
            "waits",
            "GPU 0",
            "stream 7",
            "copies · stream 7",
            "stream 13",
            "GPU 1",
            "stream 7",
            "GPU 0 metrics",
            "utilization",
            "power",
        ]);
    });

    it("rows lie under each other and each height finds its row", () => {
        const layout = layoutOf(groups, new Set());
        let y = 0;
        for (const row of layout.rows) {
            expect(row.y).toBe(y);
            expect(rowAt(layout, y)).toBe(row);
            expect(rowAt(layout, y + row.height - 1)).toBe(row);
            y += row.height;
        }
        expect(layout.height).toBe(y);
        expect(rowAt(layout, y)).toBeNull();
        expect(rowsBetween(layout, 0, layout.height)).toEqual(layout.rows);
        expect(rowsBetween(layout, 25, 26).map((row) => row.label)).toEqual(["scopes"]);
    });

    it("a folded group is one row that stands for its tracks", () => {
        const layout = layoutOf(groups, new Set(["device-0"]));
        expect(layout.rows.some((row) => row.type === "track" && row.track.id === "kernels-0-7")).toBe(false);
        expect(rowOfTrack(layout, "kernels-0-7")).toMatchObject({ type: "group", label: "GPU 0" });
        expect(rowOfTrack(layout, "kernels-1-7")).toMatchObject({ type: "track" });
    });

    it("requests of many tracks for one tile are merged, the coarsest first", () => {
        const list = new TileRequests();
        list.add("a", [{ level: 3, index: 5 }]);
        list.add("b", [
            { level: 3, index: 5 },
            { level: 9, index: 0 },
        ]);
        expect(list.list()).toEqual([
            { key: { level: 9, index: 0 }, tracks: ["b"] },
            { key: { level: 3, index: 5 }, tracks: ["a", "b"] },
        ]);
    });
});

describe("labels", () => {
    const fitter = new LabelFitter((text) => Array.from(text).length * 6);

    it("fit whole, cut in the middle, or not at all", () => {
        expect(fitter.fit("kernel_name", 100)).toBe("kernel_name");
        const cut = fitter.fit("gemm_bf16_128x128x64_tn", 60);
        expect(cut).toContain("…");
        expect(cut.length * 6).toBeLessThanOrEqual(60);
        expect(cut.startsWith("gemm") && cut.endsWith("_tn")).toBe(true);
        expect(fitter.fit("gemm_bf16_128x128x64_tn", 20)).toBe("");
    });

    it("kernels lose their types first, then their namespaces; scopes show their own part", () => {
        const texts = labelTexts("kernels", "void at::native::vectorized_elementwise_kernel<4, float>(int, float*)");
        expect(texts).toEqual(["at::native::vectorized_elementwise_kernel", "vectorized_elementwise_kernel"]);
        expect(fitter.fitAny(texts, 1000)).toBe(texts[0]);
        expect(fitter.fitAny(texts, 29 * 6)).toBe(texts[1]);
        expect(labelTexts("scopes", "step|forward")).toEqual(["forward"]);
        expect(shownName("scopes", "step|forward")).toBe("step > forward");
    });

    it("hostile names become one short line without marks that turn text around", () => {
        const text = plainText(`\u202e<script>\n${"x".repeat(10_000)}\u2066\u0007`);
        expect(text.length).toBeLessThan(500);
        expect(text).not.toMatch(/[\u0000-\u001f\u202e\u2066]/);
        expect(text).toContain("<script>");
    });
});

describe("raster", () => {
    const red = packColour([255, 0, 0]),
        blue = packColour([0, 0, 255]),
        ground = packColour([0, 0, 0]);

    it("a column is as high as it was busy and has the colour of what took most of it", () => {
        const raster = new Raster(4, 10);
        raster.clear(ground);
        raster.rowBegin();
        raster.add(0, 0.5, 1, red);
        raster.add(0.5, 0.7, 1, blue);
        raster.add(2, 4, 0.5, blue);
        raster.rowDraw(0, 10);
        const height = (x: number): number =>
            Array.from({ length: 10 }, (_, y) => raster.pixels[y * 4 + x]).filter((pixel) => pixel !== ground).length;
        expect([height(0), height(1), height(2), height(3)]).toEqual([7, 0, 5, 5]);
        expect(raster.pixels[9 * 4]).toBe(red);
        expect(raster.pixels[9 * 4 + 2]).toBe(blue);
    });

    it("the least event still shows a line, and nothing beyond the edges is written", () => {
        const raster = new Raster(3, 8);
        raster.clear(ground);
        raster.rowBegin();
        raster.add(1.2, 1.2001, 1, red);
        raster.add(-50, -10, 1, blue);
        raster.add(90, 100, 1, blue);
        raster.rowDraw(0, 8);
        expect(raster.pixels[7 * 3 + 1]).toBe(red);
        expect([...raster.pixels].filter((pixel) => pixel === blue)).toEqual([]);
    });

    it("hatched columns have as much ground as ink, and only they", () => {
        const raster = new Raster(16, 8);
        raster.clear(ground);
        raster.rowBegin();
        raster.add(0, 8, 1, red, HATCHED);
        raster.add(8, 16, 1, blue);
        raster.rowDraw(0, 8);
        expect([...raster.pixels].filter((pixel) => pixel === red).length).toBe(32);
        expect([...raster.pixels].filter((pixel) => pixel === blue).length).toBe(64);
    });

    it("merged tracks show the busiest", () => {
        const raster = new Raster(1, 10);
        raster.clear(ground);
        raster.mergeBegin();
        for (const [share, colour] of [
            [0.9, red],
            [0.3, blue],
        ] as const) {
            raster.rowBegin();
            raster.add(0, 1, share, colour);
            raster.mergeRow();
        }
        raster.mergeEnd();
        raster.rowDraw(0, 10);
        expect([...raster.pixels].filter((pixel) => pixel === red).length).toBe(9);
        expect(mixColour(red, blue, 0.5)).toBe(packColour([128, 0, 128]));
    });
});

describe("the address", () => {
    const base = new TimeBase(1794720054622423212n),
        whole = { from: 0, to: 1e9 };

    it("holds view, selection, range, folds and search", () => {
        const place = {
            view: { from: 1.5, to: 20 },
            selection: { track: "kernels-0-7", start: 7970753581 },
            range: { from: 3, to: 4 },
            folded: ["device-0"],
            search: "gemm <b>",
        };
        const params = Object.fromEntries(
            Object.entries(placeParams(place, whole)).filter(([, value]) => value !== null),
        ) as Record<string, string>;
        expect(placeParse(params, base)).toEqual(place);
    });

    it("leaves out what is the default and ignores what makes no sense", () => {
        expect(
            Object.values(
                placeParams({ view: whole, selection: null, range: null, folded: [], search: "" }, whole),
            ).every((value) => value === null),
        ).toBe(true);
        expect(placeParse({ t: "9~3", sel: "x@y", range: "~" }, base)).toMatchObject({
            view: null,
            selection: null,
            range: null,
        });
        expect(placeParse({ from: "1794720054622423222", to: "1794720054622423232" }, base).view).toEqual({
            from: 10,
            to: 20,
        });
    });
});

describe("lanes and sums", () => {
    const values = valuesOf(
        {
            metric: "power_mw",
            device: 0,
            min: [1, null, 3, null, null, 5],
            mean: [1, null, 3, null, null, 5],
            max: [1, null, 3, null, null, 9],
        },
        0,
        10,
    );

    it("a gap is not a value, and a line goes on to the samples beside the view", () => {
        expect([values.low, values.high]).toEqual([1, 9]);
        expect(valueAt(values, 5)).toBe(1);
        expect(valueAt(values, 500)).toBeNull();
        const { first, last } = knownAround(values, { from: 31, to: 39 });
        expect(first).toBeLessThanOrEqual(2);
        expect(last).toBe(6);
    });

    it("energy says how much of the range it covers", () => {
        expect(energyText(null, 0, 100)).toContain("not recorded");
        expect(energyText(1_500_000, 100, 100)).toBe("1.50 J");
        expect(energyText(500, 50, 100)).toBe("0.500 mJ in the 50.0 % between samples");
    });

    it("queue delay is from the end of the call to the start, and unknown when the call is", () => {
        const event = { start_ns: 1000, duration_ns: 5, api_start_ns: 900, api_duration_ns: 30 };
        expect(queueDelay(event, Number)).toBe(70);
        expect(queueDelay({ ...event, api_duration_ns: null }, Number)).toBeNull();
    });
});
