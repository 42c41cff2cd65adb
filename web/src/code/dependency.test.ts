// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from "vitest";
import { controlBits, DependencyFinder, opcodeOf, wordParse, type CodeInstruction } from "./dependency";

function listing(...lines: string[]): CodeInstruction[] {
    return lines.map((sass, index) => ({ pc: index * 16, sass, is_raw: false }));
}

function targets(code: CodeInstruction[], index: number, stall = "long_scoreboard"): number[] {
    return new DependencyFinder(code).find(index, stall).map((dependency) => dependency.to);
}

describe("what a stalled instruction waits for", () => {
    test("is the load of a register that it reads", () => {
        const code = listing("LDG.E R2, desc[UR4][R2.64]", "LDG.E R4, [R4.64]", "MOV R7, R8", "FADD R9, R2, R7");
        expect(targets(code, 3)).toEqual([0]);
        expect(new DependencyFinder(code).find(3, "long_scoreboard")).toEqual([{ from: 3, to: 0, through: "R2" }]);
    });

    test("is every load that it needs, the nearest first", () => {
        const code = listing("LDG.E R2, [R2.64]", "LDG.E R4, [R4.64]", "FADD R9, R2, R4");
        expect(targets(code, 2)).toEqual([1, 0]);
    });

    test("is not a load whose result was overwritten", () => {
        const code = listing("LDG.E R2, [R4.64]", "MOV R2, 0x1", "FADD R9, R2, R2");
        expect(targets(code, 2)).toEqual([]);
    });

    test("may be the load before a move that is predicated", () => {
        const code = listing("LDG.E R2, [R4.64]", "@P0 MOV R2, 0x1", "FADD R9, R2, R2");
        expect(targets(code, 2)).toEqual([0]);
    });

    test("follows a loop's edge back to its end", () => {
        const code = listing("MOV R2, RZ", "FADD R9, R9, R2", "LDG.E R2, [R4.64]", "@P0 BRA 0x10", "EXIT");
        expect(targets(code, 1)).toEqual([2]);
    });

    test("does not pass an unconditional jump", () => {
        const code = listing("LDG.E R2, [R4.64]", "BRA 0x40", "FADD R9, R2, R2", "NOP", "EXIT");
        expect(targets(code, 2)).toEqual([]);
    });

    test("depends on the reason", () => {
        const code = listing("LDS R2, [R4]", "LDG.E R3, [R6.64]", "FADD R9, R2, R3");
        expect(targets(code, 2, "long_scoreboard")).toEqual([1]);
        expect(targets(code, 2, "short_scoreboard")).toEqual([0]);
        expect(targets(code, 2, "barrier")).toEqual([]);
        expect(targets(code, 2, "wait")).toEqual([]);
    });

    test("comes from the encoding where there is no text", () => {
        // vector_add of tests/recordings/cubins for sm_90: the second load sets a scoreboard, the add waits.
        const words = ["0x000ee2000c1e1900 0x0000000402037981", "0x002fcc00078e0204 0x0000000409047825"];
        const load = wordParse(words[0] as string);
        if (!load) throw new Error("no word");
        expect(controlBits(load)).toEqual({ sets: 3, setsOnRead: null, waits: [] });
        const code = [...words, "0x010fe40000000000 0x0000000000037221"].map((sass, index) => ({
            pc: index * 16,
            sass,
            is_raw: true,
        }));
        expect(targets(code, 1)).toEqual([]); // waits for scoreboard 1, which nothing here sets
        const add = "0x008fe40000000000 0x0000000000037221";
        const raw = (...lines: string[]): CodeInstruction[] =>
            lines.map((sass, index) => ({ pc: index * 16, sass, is_raw: true }));
        expect(targets(raw(words[0] as string, add), 1)).toEqual([0]);
        // A load of a constant also sets a scoreboard, but nothing waits long for it.
        const constant = "0x000ee200000a0000 0x00008600ff047b82";
        expect(targets(raw(constant, add), 1)).toEqual([]);
        expect(targets(raw(constant, add), 1, "short_scoreboard")).toEqual([0]);
        const exit = "0x000fea0003800000 0x000000000000794d";
        expect(targets(raw(words[0] as string, exit, add), 2)).toEqual([]);
        const exitOfSome = "0x000fea0003800000 0x000000000000094d";
        expect(targets(raw(words[0] as string, exitOfSome, add), 2)).toEqual([0]);
    });

    test("names operations of words that it knows, and no others", () => {
        const name = (text: string): string => opcodeOf(wordParse(text) ?? { low: 0n, high: 0n });
        expect(name("0x000ee2000c1e1900 0x0000000402037981")).toBe("LDG");
        expect(name("0x000fea0003800000 0x000000000000094d")).toBe("EXIT");
        expect(name("0x000fea0003800000 0x0000000000000fff")).toBe("");
        expect(wordParse("LDG.E R2, [R2]")).toBeNull();
    });

    test("is unknown where nothing is known", () => {
        expect(
            targets(
                [
                    { pc: 0, sass: null, is_raw: false },
                    { pc: 16, sass: null, is_raw: false },
                ],
                1,
            ),
        ).toEqual([]);
        expect(new DependencyFinder([]).find(3, "long_scoreboard")).toEqual([]);
    });
});
