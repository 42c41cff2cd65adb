// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { held, sparkPath } from "./charts";
import { placeNodes } from "./icicle";
import {
    type Column,
    filterRows,
    rowsToCsv,
    rowsToJson,
    rowsToText,
    sortParse,
    sortRows,
    sortText,
} from "./table-data";
import { place } from "./tooltip";

interface Row {
    name: string;
    size: number | null;
}
const columns: Column<Row>[] = [
    { id: "name", title: "name", value: (row) => row.name },
    {
        id: "size",
        title: "size",
        value: (row) => row.size,
        text: (row) => (row.size === null ? "unavailable" : `${row.size} B`),
    },
];
const rows: Row[] = [
    { name: "b10", size: 5 },
    { name: "b9", size: null },
    { name: "A", size: 70 },
    { name: "c", size: 5 },
];

describe("rows of a table", () => {
    it("are sorted by value with the unknown last in either direction, and stay in order where equal", () => {
        const names = (isDescending: boolean, id: string): string[] =>
            sortRows(rows, columns, { id, isDescending }).map((row) => row.name);
        expect(names(true, "size")).toEqual(["A", "b10", "c", "b9"]);
        expect(names(false, "size")).toEqual(["b10", "c", "A", "b9"]);
        expect(names(false, "name")).toEqual(["A", "b9", "b10", "c"]);
        expect(names(false, "none")).toEqual(rows.map((row) => row.name));
    });
    it("are filtered by every word", () => {
        expect(filterRows(rows, columns, "B 5").map((row) => row.name)).toEqual(["b10", "c"]);
        expect(filterRows(rows, columns, " unavail ").map((row) => row.name)).toEqual(["b9"]);
        expect(filterRows(rows, columns, "")).toHaveLength(4);
    });
    it("become CSV that no spreadsheet runs", () => {
        const csv = rowsToCsv(
            [
                { name: '=1+1,"x"', size: null },
                { name: "a\nb", size: -3 },
            ],
            columns,
        );
        expect(csv).toBe('name,size\r\n"\'=1+1,""x""",\r\n"a\nb",-3\r\n');
    });
    it("become JSON with null for the unknown, and text for people", () => {
        expect(JSON.parse(rowsToJson(rows.slice(1, 2), columns))).toEqual([{ name: "b9", size: null }]);
        expect(rowsToText(rows.slice(0, 2), columns)).toBe("name\tsize\nb10\t5 B\nb9\tunavailable");
    });
    it("keep their order in the address", () => {
        expect(sortParse(sortText({ id: "size", isDescending: true }), null)).toEqual({
            id: "size",
            isDescending: true,
        });
        expect(sortParse("", null)).toBeNull();
    });
});

describe("an icicle", () => {
    const nodes = [
        { key: "a", name: "a", depth: 0, value: 60 },
        { key: "a > b", name: "b", depth: 1, value: 30 },
        { key: "a > c", name: "c", depth: 1, value: 10 },
        { key: "d", name: "d", depth: 0, value: 40 },
    ];
    it("places children below their parents by their share", () => {
        expect(placeNodes(nodes, null).map(({ node, left, width, row }) => [node.name, left, width, row])).toEqual([
            ["a", 0, 0.6, 0],
            ["b", 0, 0.3, 1],
            ["c", 0.3, expect.closeTo(0.1), 1],
            ["d", 0.6, 0.4, 0],
        ]);
    });
    it("zooms to a node and keeps its ancestors", () => {
        expect(
            placeNodes(nodes, "a > b").map(({ node, width, row, isAncestor }) => [node.name, width, row, isAncestor]),
        ).toEqual([
            ["a", 1, 0, true],
            ["b", 1, 1, false],
        ]);
    });
    it("never lets children be wider than their parent", () => {
        const wide = placeNodes(
            [
                { key: "p", name: "p", depth: 0, value: 10 },
                { key: "x", name: "x", depth: 1, value: 15 },
                { key: "y", name: "y", depth: 1, value: 15 },
            ],
            null,
        );
        expect(wide[1]!.width + wide[2]!.width).toBeCloseTo(1);
    });
    it("shows all where the zoom is gone", () => {
        expect(placeNodes(nodes, "gone")).toHaveLength(4);
    });
});

describe("a sparkline", () => {
    it("has gaps where nothing is known", () => {
        const { line } = sparkPath([0, null, 1, 1], 30, 10, 0, 1);
        expect(line.match(/M/g)).toHaveLength(2);
        expect(sparkPath([null, null], 30, 10, 0, 1)).toEqual({ line: "", area: "" });
    });
    it("holds a sample until the next, but not for long", () => {
        expect(held([1, null, 2, null, null, null, 3, null], 2)).toEqual([1, 1, 2, null, null, null, 3, null]);
    });
});

describe("a tooltip", () => {
    const screen = { width: 1000, height: 500 };
    it("never covers what it describes and stays on the screen", () => {
        for (const anchor of [
            { left: 10, top: 10, right: 60, bottom: 30 },
            { left: 900, top: 470, right: 990, bottom: 490 },
            { left: 0, top: 0, right: 300, bottom: 500 },
        ]) {
            const [left, top] = place(anchor, 200, 100, screen);
            const isApart =
                left >= anchor.right || left + 200 <= anchor.left || top >= anchor.bottom || top + 100 <= anchor.top;
            expect(isApart).toBe(true);
            expect(left).toBeGreaterThanOrEqual(0);
            expect(left + 200).toBeLessThanOrEqual(screen.width);
        }
    });
});
