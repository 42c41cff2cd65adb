// SPDX-License-Identifier: Apache-2.0
// Parses an instruction's text: its opcode, and the registers that it reads and writes. Only what the text or the
// opcode implies with certainty; operands that are not understood contribute no register.

export interface SassInstruction {
    opcode: string; // without modifiers; "" if the text is not an instruction
    modifiers: string[];
    guard: string | null; // "P0" of @!P0
    operands: string[];
    writes: string[];
    reads: string[];
    flow: "next" | "jump" | "branch" | "end" | "call";
}

const withoutDestination = new RegExp(
    "^(ST[GLS]?|STAS|SUST|RED[GS]?|SURED|BAR|UCGABAR|MEMBAR|ERRBAR|CGAERRBAR|FENCE|SYNCS|DEPBAR|LDGDEPBAR|LDGSTS|" +
        "BRA|BRX|JMP|JMX|EXIT|RET|CALL|KILL|BPT|BSSY|BSYNC|BREAK|WARPSYNC|WARPGROUP|ENDCOLLECTIVE|YIELD|NANOSLEEP|" +
        "NOP|CCTL|UTMA|UBLK|PREEXIT|ACQBULK)",
);
const jumps = /^(BRA|JMP|BRX|JMX|BRXU|JMXU)$/;
const ends = /^(EXIT|RET|KILL|BPT)$/;
const wide64 = /^(DADD|DMUL|DFMA|DMNMX|DSETP)$/;

// Splits `LDG.E.64 R2, desc[UR4][R2.64+0x8]` into parts; commas inside brackets and parentheses are kept.
export function operandsSplit(text: string): string[] {
    const operands: string[] = [];
    let depth = 0;
    let begin = 0;
    for (let at = 0; at <= text.length; at++) {
        const c = text[at];
        if (c === "[" || c === "(" || c === "{") depth++;
        else if (c === "]" || c === ")" || c === "}") depth--;
        else if (c === undefined || (c === "," && depth <= 0)) {
            const operand = text.slice(begin, at).trim();
            if (operand) operands.push(operand);
            begin = at + 1;
        }
    }
    return operands;
}

function registerRun(name: string, count: number): string[] {
    const parts = /^(U?R)(\d+)$/.exec(name);
    if (!parts) return [name];
    const first = Number(parts[2]);
    return Array.from({ length: count }, (_, i) => `${parts[1]}${first + i}`);
}

const registerPattern = /\b(UR\d+|R\d+|UP\d|P\d|B\d+|SB\d)\b(\.64)?/g;

// Registers in an operand; RZ, PT and their uniform equivalents are constants, not registers.
function operandRegisters(operand: string, count: number): string[] {
    const isAddress = operand.includes("[");
    const found: string[] = [];
    for (const match of operand.matchAll(registerPattern)) {
        const name = match[1] as string;
        found.push(...registerRun(name, match[2] ? 2 : isAddress || !/^U?R/.test(name) ? 1 : count));
    }
    return found;
}

function widthOf(opcode: string, modifiers: string[]): number {
    if (modifiers.includes("128")) return 4;
    if (modifiers.includes("64") || wide64.test(opcode)) return 2;
    if (/^LDSM/.test(opcode)) return modifiers.includes("4") ? 4 : modifiers.includes("2") ? 2 : 1;
    return 1;
}

function destinationWidth(opcode: string, modifiers: string[]): number {
    if (modifiers.includes("WIDE")) return 2;
    if (/^(HMMA|QMMA|BMMA|IMMA)$/.test(opcode)) return opcode === "HMMA" && !modifiers.includes("F32") ? 2 : 4;
    if (opcode === "DMMA") return 4;
    if (/^(F2F|I2F|F2I|LDC|ULDC|MOV|UMOV)$/.test(opcode) && modifiers[0] === "F64") return 2;
    return widthOf(opcode, modifiers);
}

// Width of each source, in order.
function sourceWidth(opcode: string, modifiers: string[], source: number): number {
    if (/^(HMMA|IMMA|QMMA|BMMA)$/.test(opcode)) {
        const [a, b] = modifiers[0] === "1688" ? [2, 1] : [4, 2];
        return source === 0 ? a : source === 1 ? b : destinationWidth(opcode, modifiers);
    }
    if (modifiers.includes("WIDE")) return source === 2 ? 2 : 1;
    if (/^(ST|ATOM|RED)/.test(opcode) || wide64.test(opcode)) return widthOf(opcode, modifiers);
    return 1;
}

// Number of leading operands that are results: a register and adjacent predicates.
function destinationCount(opcode: string, operands: string[]): number {
    if (withoutDestination.test(opcode)) return 0;
    let count = 0;
    const isPredicate = (operand: string | undefined): boolean => /^U?P[0-6T]$/.test(operand ?? "");
    while (count < 2 && isPredicate(operands[count])) count++; // ISETP P0, PT, ... and SHFL PT, R5, ...
    if (/SETP|^VOTEU?$|^R2P$|^PLOP3$|^UPLOP3$|^PSETP$/.test(opcode)) {
        return opcode.startsWith("VOTE") && /^U?R/.test(operands[0] ?? "") ? (isPredicate(operands[1]) ? 2 : 1) : count;
    }
    if (/^U?R(\d+|Z)/.test(operands[count] ?? "")) {
        count++;
        // IADD3 R2, P0, P1, R2, ...: also results. A negated or last predicate is a source.
        const hasCarry = /^U?(IADD3|LEA|IMAD|ISCADD)$/.test(opcode);
        while (hasCarry && isPredicate(operands[count]) && count < operands.length - 2) count++;
    }
    return count;
}

export function sassParse(text: string): SassInstruction {
    const trimmed = text.replace(/;?\s*$/, "").trim();
    const match = /^(?:@(!?)(U?P[0-6T])\s+)?([A-Z][A-Z0-9_]*)((?:\.[A-Za-z0-9_]+)*)(?:\s+(.*))?$/s.exec(trimmed);
    if (!match) return { opcode: "", modifiers: [], guard: null, operands: [], writes: [], reads: [], flow: "next" };
    const guard = match[2] && !/T$/.test(match[2]) ? match[2] : null;
    const opcode = match[3] as string;
    const modifiers = (match[4] ?? "").split(".").filter(Boolean);
    const operands = operandsSplit(match[5] ?? "");
    const results = destinationCount(opcode, operands);
    const width = destinationWidth(opcode, modifiers);
    const writes = operands.slice(0, results).flatMap((operand) => operandRegisters(operand, width));
    let source = 0;
    const reads = operands.slice(results).flatMap((operand) => {
        const isAddress = operand.includes("[");
        return operandRegisters(operand, sourceWidth(opcode, modifiers, isAddress ? 0 : source++));
    });
    if (guard) reads.push(guard);
    const flow = jumps.test(opcode)
        ? guard || operands.some((operand) => /^!?U?P\d$/.test(operand))
            ? "branch"
            : "jump"
        : ends.test(opcode)
          ? guard
              ? "branch"
              : "end"
          : opcode === "CALL"
            ? "call"
            : "next";
    return { opcode, modifiers, guard, operands, writes, reads, flow };
}

// A branch's target as an offset in its function; null: a label or a register.
export function branchTarget(instruction: SassInstruction): number | null {
    if (!jumps.test(instruction.opcode)) return null;
    const last = instruction.operands[instruction.operands.length - 1] ?? "";
    return /^0x[0-9a-f]+$/i.test(last) ? Number.parseInt(last, 16) : null;
}

export type SassToken = { kind: "opcode" | "register" | "number" | "label" | "plain"; text: string };

// For syntax colouring: all characters of the text, in order.
export function sassTokens(text: string): SassToken[] {
    const pattern = new RegExp(
        [
            "((?:^|(?<=@!?U?P[0-6T]\\s))[A-Z][A-Z0-9_.]*)",
            "(@!?U?P[0-6T]|\\bU?R(?:\\d+|Z)\\b|\\bU?P[0-6T]\\b)",
            "(-?\\b0x[0-9a-fA-F]+\\b|\\b\\d+(?:\\.\\d+)?\\b)",
            "(`\\([^)]*\\))",
        ].join("|"),
        "g",
    );
    const tokens: SassToken[] = [];
    let at = 0;
    for (const match of text.matchAll(pattern)) {
        if (match.index > at) tokens.push({ kind: "plain", text: text.slice(at, match.index) });
        const kind = match[1] ? "opcode" : match[2] ? "register" : match[3] ? "number" : "label";
        tokens.push({ kind, text: match[0] });
        at = match.index + match[0].length;
    }
    if (at < text.length) tokens.push({ kind: "plain", text: text.slice(at) });
    return tokens;
}
