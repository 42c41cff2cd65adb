// SPDX-License-Identifier: Apache-2.0
// The server's data about one event, its kernel's executions, and a time range.
import { getExactJson } from "../api";
import type { Exact, TimeBase, View } from "./time";
import type { TrackKind } from "./tile";

export interface Launch {
    grid: [number, number, number] | null;
    block: [number, number, number] | null;
    cluster: [number, number, number] | null;
    num_regs: number | null;
    sgprs: number | null; // AMD, whose num_regs are vector registers
    accum_vgprs: number | null;
    static_shared_bytes: number | null;
    dyn_shared_bytes: number | null;
    local_per_thread_bytes: number | null;
    occupancy_bp: number | null;
    limiter: string | null;
}

/** Members by kind; those that a kind does not have are missing, unknown ones are null. */
export interface EventText {
    start_ns: Exact;
    duration_ns: number | null;
    api_start_ns?: Exact | null;
    api_duration_ns?: number | null;
    device?: number | null;
    stream_id?: number | null;
    thread_id?: number | null;
    correlation_id?: number;
    graph_id?: number | null;
    scope?: string | null;
    stack?: string | null;
    launch?: Launch | null;
    bytes?: number;
    copy_kind?: string | null;
    src_kind?: string | null;
    dst_kind?: string | null;
    is_async?: boolean | null;
    node_count?: number | null;
    busy_ns?: number | null;
    sync_type?: string | null;
    source?: string | null;
    tag?: string | null;
    repeat?: number | null;
}

export interface EventAnswer {
    track: { id: string; kind: TrackKind };
    name: string | null;
    name_id: number;
    event: EventText;
    stack_source?: (string | null)[]; // by frame, outermost first
}

export interface InstancesAnswer {
    instances: EventText[];
    total: number;
}

export interface RangeAnswer {
    from_ns: Exact;
    to_ns: Exact;
    devices: {
        device: number | null;
        busy_ns: number;
        kernel_ns: number;
        kernels: number;
        copies: number;
        memsets: number;
        energy_uj: number | null;
        energy_covered_ns: number;
    }[];
    copies: { copy_kind: string | null; calls: number; bytes: number; total_ns: number }[];
    sync_ns: number;
}

export interface Marks {
    readonly from: number;
    readonly step: number;
    readonly counts: readonly number[];
    readonly isExact: boolean;
}

interface MarksText {
    is_exact: boolean;
    from_ns: Exact;
    step_ns: Exact;
    counts: number[];
}

const marksPixels = 1024;

export function eventLoad(
    path: string,
    base: TimeBase,
    track: string,
    start: number,
    signal: AbortSignal,
): Promise<EventAnswer> {
    return getExactJson<EventAnswer>(`${path}/timeline/event`, { track, start_ns: base.wall(start) }, signal);
}

export async function marksLoad(
    path: string,
    base: TimeBase,
    kernel: number,
    endNs: number,
    signal: AbortSignal,
): Promise<Marks> {
    const params = { kernel, from_ns: base.wall(0), to_ns: base.wall(endNs) + 1n, pixels: marksPixels };
    const text = await getExactJson<MarksText>(`${path}/timeline/marks`, params, signal);
    return { from: base.offset(text.from_ns), step: Number(text.step_ns), counts: text.counts, isExact: text.is_exact };
}

export const rangeParams = (base: TimeBase, range: View): { from_ns: bigint; to_ns: bigint } => ({
    from_ns: base.wall(range.from),
    to_ns: base.wall(Math.max(range.to, range.from + 1)),
});

/** The execution of a kernel before or after a time on any stream; null: none. */
export async function instanceNear(
    path: string,
    base: TimeBase,
    kernel: number,
    start: number,
    isNext: boolean,
    signal: AbortSignal,
): Promise<EventText | null> {
    const at = base.wall(start);
    const params = isNext
        ? { from_ns: at + 1n, limit: 1, order: "ascending" }
        : { to_ns: at, limit: 1, order: "descending" };
    const answer = await getExactJson<InstancesAnswer>(`${path}/kernels/${kernel}/instances`, params, signal);
    return answer.instances[0] ?? null;
}
