// SPDX-License-Identifier: Apache-2.0
// Finds the earlier instruction that a stalled one waits for. There are two sources: preferably the scoreboards in the
// encoding, otherwise registers in the text, searched backwards along the paths that lead to the instruction. If
// neither is certain, there is no result.
import { branchTarget, sassParse, type SassInstruction } from "./sass";

export interface CodeWord {
    low: bigint;
    high: bigint;
}

// Scheduling bits of a 128-bit instruction (compute capability 7.0 and later).
export interface ControlBits {
    sets: number | null; // scoreboard that its result clears
    setsOnRead: number | null; // scoreboard that is cleared when its sources have been read
    waits: number[]; // scoreboards that it waits for
}

const noScoreboard = 7;
const scoreboards = 6;

export function controlBits(word: CodeWord): ControlBits {
    const bits = Number((word.high >> 41n) & 0x1fffffn);
    const sets = (bits >> 5) & 7;
    const setsOnRead = (bits >> 8) & 7;
    const mask = (bits >> 11) & 0x3f;
    return {
        sets: sets === noScoreboard ? null : sets,
        setsOnRead: setsOnRead === noScoreboard ? null : setsOnRead,
        waits: Array.from({ length: scoreboards }, (_, i) => i).filter((i) => mask & (1 << i)),
    };
}

// "0xHIGH 0xLOW", as in listings without a disassembler.
export function wordParse(text: string): CodeWord | null {
    const match = /^0x([0-9a-f]{16}) 0x([0-9a-f]{16})$/i.exec(text.trim());
    return match ? { high: BigInt(`0x${match[1]}`), low: BigInt(`0x${match[2]}`) } : null;
}

// Operations whose code is the same in every architecture since 7.0, by the low 12 bits of the word.
const opcodes: Readonly<Record<number, string>> = {
    0x947: "BRA",
    0x949: "BRX",
    0x94d: "EXIT",
    0x950: "RET",
    0x918: "NOP",
    0x919: "S2R",
    0x9c3: "S2UR",
    0xb82: "LDC",
    0xab9: "ULDC",
    0x980: "LD",
    0x981: "LDG",
    0x983: "LDL",
    0x984: "LDS",
    0x985: "ST",
    0x986: "STG",
    0x987: "STL",
    0x988: "STS",
    0x308: "MUFU",
    0x220: "FMUL",
    0x221: "FADD",
    0x223: "FFMA",
    0x224: "IMAD",
    0x225: "IMAD.WIDE",
    0x825: "IMAD.WIDE",
    0xc24: "IMAD",
    0x20c: "ISETP",
    0x80c: "ISETP",
    0xc0c: "ISETP",
};

// The operation of a raw word; "" if its code is unknown.
export function opcodeOf(word: CodeWord): string {
    return opcodes[Number(word.low & 0xfffn)] ?? "";
}

// A guard that is always true: such a jump never falls through.
function isEndOfPath(word: CodeWord): boolean {
    return /^(BRA|BRX|EXIT|RET)$/.test(opcodeOf(word)) && ((word.low >> 12n) & 0xfn) === 7n;
}

export interface CodeInstruction {
    pc: number;
    sass: string | null;
    is_raw: boolean;
    word?: string | null;
}

export interface Dependency {
    from: number; // index of the waiting instruction
    to: number; // index of the instruction it waits for
    through: string; // "R4" or "scoreboard 2"
}

const longProducers = /^(LD|LDG|LDL|ATOM|ATOMG|TEX|TLD|TLD4|TXQ|TMML|TXD|SULD|SUATOM|SUQ|CCTL|QSPC)$/;
const shortProducers =
    /^(LDSM?|ATOMS|SHFL|MUFU|S2R|S2UR|I2F|F2I|F2F|FRND|POPC|FLO|BREV|R2UR|REDUX|LDC|MOVM|MATCH|D(FMA|ADD|MUL|SETP))$/;

// Stall reasons caused by an earlier instruction, and which instructions can cause them.
export function producersOf(stall: string): RegExp | null {
    if (/long_scoreboard|memory_dependency|lg_scoreboard/.test(stall)) return longProducers;
    if (/short_scoreboard/.test(stall)) return shortProducers;
    return null;
}

export class DependencyFinder {
    private readonly parsed: SassInstruction[];
    private readonly words: (CodeWord | null)[];
    private readonly predecessors: (number[] | null)[];

    constructor(private readonly code: readonly CodeInstruction[]) {
        this.parsed = code.map((step) => sassParse(step.is_raw ? "" : (step.sass ?? "")));
        this.words = code.map((step) => wordParse(step.word ?? (step.is_raw ? (step.sass ?? "") : "")));
        this.predecessors = this.predecessorsMake();
    }

    // Possible predecessors; null: the text does not determine them.
    private predecessorsMake(): (number[] | null)[] {
        const byPc = new Map(this.code.map((step, index) => [step.pc, index]));
        const result: (number[] | null)[] = this.code.map(() => []);
        let hasUnknownTarget = false;
        this.parsed.forEach((instruction, index) => {
            const falls = instruction.flow !== "jump" && instruction.flow !== "end";
            if (falls && index + 1 < result.length) result[index + 1]?.push(index);
            if (instruction.flow !== "jump" && instruction.flow !== "branch") return;
            if (/^(EXIT|RET|KILL|BPT)$/.test(instruction.opcode)) return;
            const target = branchTarget(instruction);
            const at = target === null ? undefined : byPc.get(target);
            if (at === undefined) hasUnknownTarget = true;
            else result[at]?.push(index);
        });
        // An unknown jump target could be anywhere after a jump; only the fall-through path can be followed.
        return hasUnknownTarget ? result.map((list) => (list && list.length ? list : null)) : result;
    }

    private defines(index: number, register: string): boolean {
        return (this.parsed[index]?.writes ?? []).includes(register);
    }

    // Nearest definitions of a register before an instruction, on every path.
    private definitionsOf(register: string, before: number): number[] {
        const found = new Set<number>();
        const seen = new Set<number>();
        const open = [...(this.predecessors[before] ?? [])];
        while (open.length) {
            const at = open.pop() as number;
            if (seen.has(at)) continue;
            seen.add(at);
            if (this.defines(at, register)) {
                found.add(at);
                if (!this.parsed[at]?.guard) continue;
            }
            open.push(...(this.predecessors[at] ?? []));
        }
        return [...found];
    }

    private byRegisters(index: number, producers: RegExp): Dependency[] {
        const instruction = this.parsed[index];
        if (!instruction?.opcode) return [];
        const found = new Map<number, string>();
        for (const register of new Set([...instruction.reads, ...instruction.writes]))
            for (const at of this.definitionsOf(register, index))
                if (producers.test(this.parsed[at]?.opcode ?? "") && !found.has(at)) found.set(at, register);
        return [...found].map(([to, through]) => ({ from: index, to, through }));
    }

    // Searches backwards for the instructions that set a scoreboard this one waits for; it was cleared where another
    // instruction waited for it.
    private byScoreboards(index: number, producers: RegExp): Dependency[] | null {
        const word = this.words[index];
        if (!word) return null;
        const result: Dependency[] = [];
        for (const scoreboard of controlBits(word).waits) {
            for (let at = index - 1; at >= 0; at--) {
                const other = this.words[at];
                if (!other || isEndOfPath(other)) break;
                const control = controlBits(other);
                if (control.sets === scoreboard || control.setsOnRead === scoreboard) {
                    const opcode = this.parsed[at]?.opcode || opcodeOf(other);
                    if (!opcode || producers.test(opcode))
                        result.push({ from: index, to: at, through: `scoreboard ${scoreboard}` });
                }
                if (control.waits.includes(scoreboard)) break;
            }
        }
        return result;
    }

    // The instructions that this one waits for when it stalls for that reason; empty: unknown, or not applicable.
    find(index: number, stall: string): Dependency[] {
        const producers = producersOf(stall);
        if (!producers || !this.code[index]) return [];
        const bySets = this.byScoreboards(index, producers);
        const found = bySets?.length ? bySets : this.byRegisters(index, producers);
        return found.sort((a, b) => Math.abs(index - a.to) - Math.abs(index - b.to)).slice(0, 4);
    }
}
