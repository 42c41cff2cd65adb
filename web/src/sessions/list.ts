// SPDX-License-Identifier: Apache-2.0
// The list of sessions: filters, paging and summary.
import { getJson } from "../api";
import type { Params } from "../route";
import type { SessionEntry } from "../session";

export const filterNames = ["q", "app", "host", "gpu", "engine", "state", "tag", "since"] as const;
export type FilterName = (typeof filterNames)[number];
export type Filters = Record<FilterName, string>;

export interface SessionList {
    sessions: SessionEntry[];
    isCut: boolean; // the list has more sessions than requested
}

const PAGE = 500;
const PAGES_MAX = 4;
export const sinceChoices = [
    ["", "any time"],
    ["1h", "last hour"],
    ["24h", "last day"],
    ["7d", "last week"],
    ["30d", "last 30 days"],
] as const;

export function sinceMs(word: string): number | null {
    const match = /^(\d+)([hd])$/.exec(word);
    return match ? Number(match[1]) * (match[2] === "h" ? 3_600_000 : 86_400_000) : null;
}

// Rounded to a minute, so that the request can be cached.
export function listParams(filters: Filters, nowMs: number): Params {
    const { since, ...rest } = filters;
    const ms = sinceMs(since);
    return { ...rest, from_ns: ms === null ? null : BigInt(Math.floor((nowMs - ms) / 60_000) * 60_000) * 1_000_000n };
}

// Loads pages until there are no more, or enough.
export async function listFetch(path: string, params: Params, signal: AbortSignal): Promise<SessionList> {
    const sessions: SessionEntry[] = [];
    let cursor: string | null = null;
    for (let page = 0; page < PAGES_MAX; page++) {
        const answer: { sessions: SessionEntry[]; next_cursor: string | null } = await getJson(
            path,
            { ...params, limit: PAGE, cursor },
            signal,
        );
        sessions.push(...answer.sessions);
        cursor = answer.next_cursor;
        if (cursor === null) break;
    }
    return { sessions, isCut: cursor !== null };
}

export function choicesOf(
    sessions: readonly SessionEntry[],
    read: (session: SessionEntry) => (string | null)[],
): string[] {
    const found = new Set<string>();
    for (const session of sessions)
        for (const value of read(session)) if (value !== null && value !== "") found.add(value);
    return [...found].sort((a, b) => a.localeCompare(b));
}

export function gpuNames(session: SessionEntry): string {
    const counts = new Map<string, number>();
    for (const gpu of session.gpus) {
        const name = gpu.name ?? gpu.uuid ?? `GPU ${gpu.device}`;
        counts.set(name, (counts.get(name) ?? 0) + 1);
    }
    return [...counts].map(([name, count]) => (count > 1 ? `${count} × ${name}` : name)).join(", ");
}

// At most two; a third replaces the older one.
export function pickToggle(picked: readonly string[], id: string): string[] {
    return picked.includes(id) ? picked.filter((other) => other !== id) : [...picked.slice(-1), id];
}

/** Whether kernels were launched but not timed, because counters exclude kernel records: a count of 0 would then be
 * wrong. */
export function isUntimed(session: { kernels: number; engine: string | null }): boolean {
    return session.kernels === 0 && /\.(range_profiler|sass_metrics)$/.test(session.engine ?? "");
}

export function engineName(engine: string | null): string {
    return engine === null ? "" : engine.replace(/^(nvidia|amd)\./, "").replaceAll("_", " ");
}
