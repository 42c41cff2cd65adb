// SPDX-License-Identifier: Apache-2.0
// The tree of scopes as listed by the server, depth first.
import type { IcicleNode } from "../ui/icicle";

export interface Scope {
    path: string;
    depth: number;
    calls: number;
    open_calls: number;
    wall_ns: number;
    gpu_ns: number | null; // null: nothing was timed
    gpu_self_ns: number | null;
    gpu_inferred_ns: number | null; // of gpu_ns: launched by threads without scopes while the scope waited
    kernels: number;
    kernels_self: number;
    untimed_launches: number; // number of launches that were not timed
    untimed_launches_self: number;
    sync_ns: number;
    repeat: number;
    warmup: number;
    per_iteration_ns: number | null;
    gpu_per_iteration_ns: number | null;
    tag: string | null;
}
export interface Scopes {
    scopes: Scope[];
    outside_scopes: { gpu_ns: number | null; kernels: number; untimed_launches: number };
}
export interface ScopeRow extends Scope {
    name: string; // the last part of the path
    self_ns: number; // wall time outside nested scopes
    index: number;
}
export type Measure = "wall" | "gpu";

export function nameOf(scope: Scope): string {
    const parts = scope.path.split(" > ");
    return parts.slice(scope.depth).join(" > ") || scope.path;
}

// Children on one thread cannot outlast their parent; if they run on several threads, self is 0.
export function rowsOf(scopes: readonly Scope[]): ScopeRow[] {
    const rows = scopes.map((scope, index) => ({ ...scope, name: nameOf(scope), self_ns: scope.wall_ns, index }));
    const open: ScopeRow[] = [];
    for (const row of rows) {
        open.length = row.depth;
        const parent = open[row.depth - 1];
        if (parent) parent.self_ns = Math.max(0, parent.self_ns - row.wall_ns);
        open.push(row);
    }
    return rows;
}

export interface ScopeNode extends IcicleNode {
    scope: ScopeRow;
}

export function nodesOf(rows: readonly ScopeRow[], measure: Measure): ScopeNode[] {
    return rows.map((row) => ({
        key: row.path,
        name: row.name,
        depth: row.depth,
        value: measure === "wall" ? row.wall_ns : (row.gpu_ns ?? 0),
        scope: row,
    }));
}

// GPU time only if it was recorded.
export const measureOf = (scopes: Scopes, wanted: string): Measure =>
    wanted === "gpu" && scopes.outside_scopes.gpu_ns !== null ? "gpu" : "wall";

// A scope's path in the log, as shown in the tree.
export const pathShown = (path: string): string => path.split("|").join(" > ");

// Visible rows when some paths are folded.
export function unfolded(rows: readonly ScopeRow[], folded: ReadonlySet<string>): ScopeRow[] {
    let hiddenBelow = Infinity;
    return rows.filter((row) => {
        if (row.depth > hiddenBelow) return false;
        hiddenBelow = folded.has(row.path) ? row.depth : Infinity;
        return true;
    });
}
