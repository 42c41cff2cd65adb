// SPDX-License-Identifier: Apache-2.0
// The server's answers about code.

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

// Resources of an AMD kernel; null: unknown.
export interface KernelResources {
    arch: string;
    vgprs: number | null;
    agprs: number | null;
    sgprs: number | null;
    vgpr_spills: number | null;
    sgpr_spills: number | null;
    lds_bytes: number | null;
    scratch_bytes: number | null;
    wave_size: number | null;
    work_group_size: number | null;
    waves_per_simd: number | null;
    waves_per_simd_max: number | null;
    limiter: string | null;
    occupancy_problem: string | null;
}

export interface CodeFunctionEntry {
    name: string | null;
    function_id: number | null; // null: AMD kernels, which are requested by their symbol
    symbol: string | null;
    language: "SASS" | "ISA";
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
    function_id: number | null;
    symbol: string | null;
    language: "SASS" | "ISA";
    cubin_crc: string | null;
    samples: number;
    counters: Counters | null;
    problem: string | null;
    resources: KernelResources | null;
    instructions: Instruction[];
    left_out: number;
}

export interface Source {
    file: string;
    lines: string[] | null; // null: the session does not contain its text
}

export interface Ptx {
    symbol: string | null;
    cubin_crc: string | null;
    ptx: string | null;
    problem: string | null;
}

// The identification of a function in requests.
export const functionKey = (entry: { function_id: number | null; symbol: string | null }): string =>
    entry.function_id === null ? (entry.symbol ?? "") : String(entry.function_id);

export const functionPath = (entry: { function_id: number | null; symbol: string | null }): string =>
    `code/${encodeURIComponent(functionKey(entry))}`;

export const functionName = (name: string | null): string => name ?? "(name not recorded)";
