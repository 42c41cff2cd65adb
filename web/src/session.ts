// SPDX-License-Identifier: Apache-2.0
// The server's data about a session, and the session of the current page.
import { useEffect, useState } from "preact/hooks";
import { liveSubscribe } from "./live";
import { type Answer, useSession } from "./query";
import { sessionId } from "./route";
import type { Completeness } from "./ui/states";

export interface SessionGpu {
    device: number;
    uuid: string | null;
    name: string | null;
}
// An entry of the catalog.
export interface SessionEntry {
    id: string;
    app: string | null;
    host: string | null;
    kind: string | null;
    engine: string | null;
    state: "live" | "complete" | "crashed" | string;
    start_ns: number | null;
    end_ns: number | null;
    wall_ns: number | null;
    created_ns: number;
    received_ns: number;
    kernels: number;
    kernel_ns: number;
    rows: number;
    lines: number;
    bytes: number;
    lost: number;
    lost_is_exact: boolean;
    missing_rows: number | null;
    revision: number;
    retention: string;
    retention_ns: number | null;
    tags: string[];
    gpus: SessionGpu[];
}
export interface DeviceTime {
    device: number;
    busy_ns: number;
    kernel_ns: number; // a kernel ran
    memsets_only_ns: number;
    compute_ns: number; // the sum of both
    copies_only_ns: number;
    wait_launch_ns: number;
    wait_sync_ns: number;
    queued_ns: number;
    no_work_ns: number;
    unknown_ns: number;
}
export interface Slowdown {
    fraction: number;
    is_least: boolean;
    is_default_cost: boolean;
}
export interface Overhead {
    wall_ns: number | null;
    memory_peak_bytes: number | null;
    slowdown: Slowdown | null;
}
export interface Capability {
    feature: string;
    requested: boolean;
    status: string;
    reason_code: string | null;
    message: string | null;
}
export interface SessionSummary {
    catalog: SessionEntry;
    is_partial: boolean;
    session: {
        id: string;
        app: string | null;
        pid: number | null;
        host: string | null;
        command: string | null;
        engine: string | null;
        requested_engine: string | null;
        driver_version: string | null;
        cuda_version: string | null;
        cupti_version: string | null;
        gpufl_version: string | null;
        start_ns: number | null;
        end_ns: number | null;
        wall_ns: number | null;
    };
    gpus: {
        device: number;
        name: string | null;
        uuid: string | null;
        compute_capability: string | null;
        multiprocessors: number | null;
    }[];
    completeness: Completeness;
    overhead: Overhead | null;
    capabilities: Capability[];
    time: DeviceTime[] | null;
}

const LIVE_MS = 3000; // events are faster; this is a fallback for lost ones

// The session in the URL; updated while it is live.
export function useSummary(): Answer<SessionSummary> {
    const session = sessionId.value;
    const [changes, setChanges] = useState(0);
    const answer = useSession<SessionSummary>(
        session,
        "",
        {},
        { everyMs: (data) => (isLive(data) ? LIVE_MS : 0), version: `${changes}` },
    );
    const isGrowing = isLive(answer.data);
    useEffect(() => {
        if (!isGrowing) return;
        return liveSubscribe("session", (event) => {
            if (event.session_id === session) setChanges((count) => count + 1);
        });
    }, [session, isGrowing]);
    return answer;
}

// False for sessions that the server loads only on request.
export const isLoaded = (summary: SessionSummary | null): boolean => summary !== null && !summary.is_partial;
export const isLive = (summary: SessionSummary | null): boolean => summary?.catalog.state === "live";
// Changes when the server has more data of the session: for useSession's `version`.
export const revisionOf = (summary: SessionSummary | null): number => summary?.catalog.revision ?? 0;
