// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from "vitest";
import { branchTarget, operandsSplit, sassParse, sassTokens } from "./sass";

describe("an instruction's text", () => {
    test.each([
        ["FADD R9, R2, R5", ["R9"], ["R2", "R5"]],
        ["LDG.E R2, desc[UR4][R2.64]", ["R2"], ["UR4", "R2", "R3"]],
        ["LDG.E.128.CONSTANT R4, desc[UR6][R2.64+0x10]", ["R4", "R5", "R6", "R7"], ["UR6", "R2", "R3"]],
        ["STG.E.64 desc[UR4][R2.64], R8", [], ["UR4", "R2", "R3", "R8", "R9"]],
        ["STS [R4], R0", [], ["R4", "R0"]],
        ["IMAD.WIDE R4, R9, 0x4, R6", ["R4", "R5"], ["R9", "R6", "R7"]],
        ["ISETP.GE.AND P0, PT, R0, c[0x0][0x170], PT", ["P0"], ["R0"]],
        ["@!P1 IADD3 R2, P0, R2, R5, RZ", ["R2", "P0"], ["R2", "R5", "P1"]],
        ["IADD3.X R3, R3, RZ, RZ, P0, !PT", ["R3"], ["R3", "P0"]],
        ["SHFL.DOWN PT, R5, R2, 0x10, 0x1f", ["R5"], ["R2"]],
        [
            "HMMA.16816.F32 R4, R8, R12, R4",
            ["R4", "R5", "R6", "R7"],
            ["R8", "R9", "R10", "R11", "R12", "R13", "R4", "R5", "R6", "R7"],
        ],
        ["DFMA R2, R4, R6, R8", ["R2", "R3"], ["R4", "R5", "R6", "R7", "R8", "R9"]],
        ["S2R R0, SR_TID.X", ["R0"], []],
        ["LDSM.16.M88.4 R4, [R20]", ["R4", "R5", "R6", "R7"], ["R20"]],
        ["BAR.SYNC.DEFER_BLOCKING 0x0", [], []],
        ["MOV R1, R2 ;", ["R1"], ["R2"]],
    ])("%s names its registers", (text, writes, reads) => {
        const parsed = sassParse(text);
        expect(parsed.writes).toEqual(writes);
        expect(parsed.reads).toEqual(reads);
    });

    test("text that is not an instruction has no registers", () => {
        for (const text of ["", "0x000ee2000c1e1900 0x0000000402037981", "\u001b[2J", "<b>R1</b>", "x"])
            expect(sassParse(text)).toMatchObject({ opcode: "", writes: [], reads: [] });
    });

    test("where control goes on", () => {
        expect(sassParse("BRA 0x120").flow).toBe("jump");
        expect(sassParse("@P0 BRA 0x120").flow).toBe("branch");
        expect(sassParse("EXIT").flow).toBe("end");
        expect(sassParse("@!P0 EXIT").flow).toBe("branch");
        expect(sassParse("FADD R1, R2, R3").flow).toBe("next");
        expect(branchTarget(sassParse("@P0 BRA 0x120"))).toBe(0x120);
        expect(branchTarget(sassParse("@!P0 BRA `(.L_x_0)"))).toBeNull();
        expect(branchTarget(sassParse("MOV R1, 0x120"))).toBeNull();
    });

    test("commas inside of brackets do not split operands", () => {
        expect(operandsSplit("R2, desc[UR4, 1][R2.64], {R3, R4}")).toEqual(["R2", "desc[UR4, 1][R2.64]", "{R3, R4}"]);
    });

    test("tokens are the text, whole and in order", () => {
        for (const text of ["@!P0 LDG.E R2, desc[UR4][R2.64+0x10]", "<script>alert(1)</script>", "BRA `(.L_x_1)", ""])
            expect(
                sassTokens(text)
                    .map((token) => token.text)
                    .join(""),
            ).toBe(text);
        expect(sassTokens("@!P0 FADD R9, R2, 1.5").map((token) => token.kind)).toEqual([
            "register",
            "plain",
            "opcode",
            "plain",
            "register",
            "plain",
            "register",
            "plain",
            "number",
        ]);
    });
});
