// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from "vitest";
import { diffBlocks, diffPairs, listingDiff, sassKey, shownRows } from "./diff";

// Every script must turn one listing into the other.
function check(base: string[], fresh: string[]): number {
    const rows = listingDiff(base, fresh);
    expect(rows.filter((row) => row.base !== null).map((row) => row.base)).toEqual(base.map((_, i) => i));
    expect(rows.filter((row) => row.fresh !== null).map((row) => row.fresh)).toEqual(fresh.map((_, i) => i));
    for (const row of rows)
        if (row.base !== null && row.fresh !== null)
            expect(sassKey(base[row.base] as string)).toBe(sassKey(fresh[row.fresh] as string));
    return rows.filter((row) => row.base === null || row.fresh === null).length;
}

// The length of the longest common subsequence, by the slow and obvious algorithm.
function commonLength(a: string[], b: string[]): number {
    const table = Array.from({ length: a.length + 1 }, () => new Array<number>(b.length + 1).fill(0));
    for (let i = 1; i <= a.length; i++)
        for (let j = 1; j <= b.length; j++)
            (table[i] as number[])[j] =
                a[i - 1] === b[j - 1]
                    ? ((table[i - 1] as number[])[j - 1] as number) + 1
                    : Math.max((table[i - 1] as number[])[j] as number, (table[i] as number[])[j - 1] as number);
    return (table[a.length] as number[])[b.length] as number;
}

describe("a diff of listings", () => {
    test("is as short as can be, whatever the listings", () => {
        let seed = 12345;
        const random = (below: number): number => {
            seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
            return Math.floor((seed / 2 ** 32) * below);
        };
        for (let round = 0; round < 200; round++) {
            const make = (): string[] => Array.from({ length: random(25) }, () => `OP${random(5)}`);
            const base = make();
            const fresh = make();
            expect(check(base, fresh)).toBe(base.length + fresh.length - 2 * commonLength(base, fresh));
        }
    });

    test("finds one changed instruction in many", () => {
        const base = Array.from({ length: 3000 }, (_, i) => `FADD R${i % 200}, R1, R2`);
        const fresh = [...base];
        fresh[1500] = "FMUL R9, R1, R2";
        expect(check(base, fresh)).toBe(2);
    });

    test("listings with nothing in common are shown whole", () => {
        expect(check(["A", "B"], ["C"])).toBe(3);
        expect(check([], [])).toBe(0);
        expect(check([], ["A"])).toBe(1);
    });

    test("moved targets are no change, other numbers are", () => {
        expect(sassKey("@P0 BRA 0x120 ;")).toBe(sassKey("@P0 BRA 0x130"));
        expect(sassKey("BRA `(.L_x_1)")).toBe(sassKey("BRA `(.L_x_7)"));
        expect(sassKey("MOV R1, 0x120")).not.toBe(sassKey("MOV R1, 0x130"));
    });

    test("removed and added rows of a block stand side by side", () => {
        const blocks = diffBlocks(listingDiff(["A", "B", "C", "D"], ["A", "X", "D"]));
        expect(blocks.map((block) => block.isEqual)).toEqual([true, false, true]);
        expect(diffPairs(blocks[1] as (typeof blocks)[0])).toEqual([
            [1, 1],
            [2, null],
        ]);
    });

    test("equal stretches fold to their ends, and open", () => {
        const base = Array.from({ length: 40 }, (_, i) => `OP${i}`);
        const fresh = base.map((line, i) => (i === 20 ? "CHANGED" : line));
        const blocks = diffBlocks(listingDiff(base, fresh));
        const folded = shownRows(blocks, new Set());
        expect(folded.map((row) => ("hidden" in row ? row.hidden : (row.base ?? row.fresh)))).toEqual([
            17, 17, 18, 19, 20, 21, 22, 23, 16,
        ]);
        expect(shownRows(blocks, new Set([0]))).toHaveLength(20 + 1 + 3 + 1);
        expect(shownRows(diffBlocks(listingDiff(["A", "B"], ["A", "B"])), new Set())).toHaveLength(2);
    });
});
