// SPDX-License-Identifier: Apache-2.0
// The server's answers about two sessions.
import * as format from "../format";

export interface Side {
    count: number;
    total_ns: number;
    mean_ns: number | null;
    median_ns: number;
    p25_ns: number;
    p75_ns: number;
    p90_ns: number;
    p99_ns: number;
    min_ns: number;
    max_ns: number;
    gpu_ns?: number | null;
}

export type Verdict = "same" | "faster" | "slower" | "new" | "vanished";

export interface ComparedRow {
    name?: string | null;
    path?: string | null;
    verdict: Verdict;
    is_regression: boolean;
    change_ns: number;
    share_of_change: number | null;
    median_ratio: number | null;
    base: Side | null;
    new: Side | null;
}

export interface ComparedSession {
    session_id: string;
    app: string | null;
    host: string | null;
    start_ns: number | null;
    wall_ns: number | null;
    kernels: number | null;
    kernel_ns: number | null;
    busy_ns: number | null;
    kernel_times_missing: string | null; // why the three above are null
    lost: number;
    lost_is_exact: boolean;
    is_complete: boolean;
    common_share: number | null; // fraction of its kernel time in kernels that both sessions have
}

export interface Comparison {
    base: ComparedSession;
    new: ComparedSession;
    threshold: number;
    no_verdict: "times missing" | "not comparable" | "incomplete" | null;
    regressions: number | null; // null: no verdict
    is_total_regression: boolean | null;
    kernels: ComparedRow[];
    scopes: ComparedRow[];
}

export const rowName = (row: ComparedRow): string => row.path ?? row.name ?? "(name not recorded)";

// null: a session has no kernel times. fraction null: nothing to divide by.
export function kernelChange(
    before: ComparedSession,
    after: ComparedSession,
): { ns: number; fraction: number | null } | null {
    if (before.kernel_ns === null || after.kernel_ns === null) return null;
    const ns = after.kernel_ns - before.kernel_ns;
    return { ns, fraction: before.kernel_ns > 0 ? ns / before.kernel_ns : null };
}

const missingTime = (session: ComparedSession): string | null =>
    session.kernel_times_missing ?? (session.kernels === 0 ? "no kernel ran" : null);

// "": both have kernels with times.
export function missingTimes(before: ComparedSession, after: ComparedSession): string {
    return [["before", missingTime(before)] as const, ["after", missingTime(after)] as const]
        .filter(([, why]) => why !== null)
        .map(([title, why]) => `${title}: ${why}`)
        .join(", ");
}

// Why there is no verdict; "" if there is one.
export function refusalOf({ no_verdict, base, new: after }: Comparison): string {
    const share = (session: ComparedSession): string => format.percent(session.common_share);
    if (no_verdict === "times missing") return `without kernel times; ${missingTimes(base, after)}`;
    if (no_verdict === "not comparable")
        return `the sessions are not comparable: the kernels in both take ${share(base)} of the kernel time before and ${share(after)} after`;
    if (no_verdict === "incomplete")
        return `not complete: ${[...(base.is_complete ? [] : ["before"]), ...(after.is_complete ? [] : ["after"])].join(", ")}`;
    return "";
}

// Interquartile range divided by the median: the spread of the middle half of the executions. null: nothing to divide
// by.
export function spreadOf(side: Side | null): number | null {
    return side && side.median_ns > 0 ? (side.p75_ns - side.p25_ns) / side.median_ns : null;
}

export function changeOf(row: ComparedRow): number | null {
    return row.median_ratio === null ? null : row.median_ratio - 1;
}

export function countByVerdict(rows: readonly ComparedRow[]): Record<Verdict, number> {
    const counts: Record<Verdict, number> = { same: 0, faster: 0, slower: 0, new: 0, vanished: 0 };
    for (const row of rows) counts[row.verdict] = (counts[row.verdict] ?? 0) + 1;
    return counts;
}
