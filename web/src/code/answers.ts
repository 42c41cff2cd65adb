// SPDX-License-Identifier: Apache-2.0
// What the server answers about code.

export interface Counters {
    inst_executed: number | null;
    thread_inst: number | null;
    thread_inst_pred_on: number | null;
    branch_divergent: number | null;
    branch_uniform: number | null;
    sectors_global: number | null;
    sectors_global_ideal: number | null;
    wavefronts_shared: number | null;
    wavefronts_shared_ideal: number | null;
    sectors_local: number | null;
    coalescing: number | null;
    sectors_per_request: number | null;
    branch_efficiency: number | null;
    thread_efficiency: number | null;
    bank_conflicts: number | null;
}

export interface CodeFunctionEntry {
    name: string | null;
    function_id: number;
    cubin_crc: string | null;
    samples: number;
    counters: Counters | null;
    problem: string | null;
}

export interface CodeAnswer {
    functions: CodeFunctionEntry[];
    total: number;
}

export interface Place {
    file: string;
    line: number;
}

export interface Instruction {
    pc: number;
    sass: string | null;
    is_raw: boolean;
    word: string | null;
    is_beyond_end: boolean;
    file: string | null;
    line: number | null;
    source: string | null;
    inlined_at: Place[];
    samples: number;
    not_issued: number;
    stalls: Record<string, number>;
    counters: Counters | null;
}

export interface CodeFunction {
    name: string | null;
    function_id: number;
    symbol: string | null;
    cubin_crc: string | null;
    samples: number;
    counters: Counters | null;
    problem: string | null;
    instructions: Instruction[];
    left_out: number;
}

export interface Source {
    file: string;
    lines: string[] | null; // null: the session holds no text of it
}

export interface Ptx {
    symbol: string | null;
    cubin_crc: string | null;
    ptx: string | null;
    problem: string | null;
}

export const functionName = (name: string | null): string => name ?? "(name not recorded)";
