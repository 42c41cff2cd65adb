// SPDX-License-Identifier: Apache-2.0
// Hosts and GPUs: their latest state, problems, and users.
import * as format from "../format";
import type { LiveGpu } from "../live";
import type { SessionEntry } from "../session";

export type Sample = { sample_ns: number | null } & Record<string, number | null>;
export interface Gpu {
    uuid: string;
    name: string | null;
    device: number;
    first_seen_ns: number;
    last_seen_ns: number;
    session_id: string | null;
    metrics: Sample | null;
}
export interface Host {
    host: string;
    first_seen_ns: number;
    last_seen_ns: number;
    metrics: Sample | null;
    gpus: Gpu[];
}
export interface Hosts {
    now_ns: number;
    hosts: Host[];
}

export interface Problem {
    host: string;
    gpu: Gpu | null;
    severity: 2 | 1; // 2: an error, 1: a warning
    text: string;
}

export const FRESH_MS = 120_000; // older samples are not current
const BUSY_PERCENT = 5;

export function isFresh(sample: Sample | null, nowMs: number): boolean {
    return sample?.sample_ns != null && nowMs - sample.sample_ns / 1e6 < FRESH_MS;
}

// When the host or one of its GPUs was last sampled; null: never.
export function lastSampleNs(host: Host): number | null {
    const times = [host.metrics, ...host.gpus.map((gpu) => gpu.metrics)]
        .map((sample) => sample?.sample_ns)
        .filter((time): time is number => time != null);
    return times.length > 0 ? Math.max(...times) : null;
}

export function hasFreshSample(host: Host, nowMs: number): boolean {
    return isFresh({ sample_ns: lastSampleNs(host) }, nowMs);
}

// The log's other reasons mean that no higher clock was requested.
const throttles: readonly (readonly [number, string, 1 | 2])[] = [
    [0x4, "power", 1],
    [0x8, "a hardware slowdown", 2],
    [0x20, "temperature", 1],
    [0x40, "temperature (hardware)", 2],
    [0x80, "the power brake", 2],
    [0x200, "a current limit", 1],
];
const HOT_C = 87;
const HOT_JUNCTION_C = 100; // the hottest spot, shown for GPUs without an edge sensor
const FULL = 0.97;

export function gpuProblems(host: string, gpu: Gpu): Problem[] {
    const now = gpu.metrics;
    if (!now) return [];
    const found: Problem[] = [];
    const add = (severity: 1 | 2, text: string): void => void found.push({ host, gpu, severity, text });
    const bits = now["throttle_reasons"] ?? 0;
    for (const [bit, words, severity] of throttles) if ((bits & bit) !== 0) add(severity, `slowed by ${words}`);
    const ecc = now["ecc_uncorrected"] ?? 0;
    if (ecc > 0) add(2, `${format.count(ecc)} uncorrectable ECC ${ecc === 1 ? "error" : "errors"}`);
    const temperature = now["temp_c"] ?? 0;
    const isJunction = now["temp_edge_c"] == null && now["temp_junction_c"] != null;
    if (temperature >= (isJunction ? HOT_JUNCTION_C : HOT_C)) add(1, `${temperature} °C`);
    const [used, total] = [now["used_mib"], now["total_mib"]];
    if (used != null && total != null && total > 0 && used / total > FULL)
        add(1, `memory ${format.share(used, total)} full`);
    return found;
}

export function problemsOf(hosts: readonly Host[], nowMs: number): Problem[] {
    const found = hosts.flatMap((host) =>
        host.gpus.filter((gpu) => isFresh(gpu.metrics, nowMs)).flatMap((gpu) => gpuProblems(host.host, gpu)),
    );
    return found.sort((a, b) => b.severity - a.severity || a.host.localeCompare(b.host));
}

export function isBusy(gpu: Gpu, nowMs: number): boolean {
    return isFresh(gpu.metrics, nowMs) && (gpu.metrics?.["gpu_util"] ?? 0) >= BUSY_PERCENT;
}

// Hosts with problems first, then the most recently sampled, then by name.
export function hostsInOrder(hosts: readonly Host[], problems: readonly Problem[], nowMs: number): Host[] {
    const rank = (host: Host): number =>
        problems.reduce((most, problem) => (problem.host === host.host ? Math.max(most, problem.severity) : most), 0);
    const fresh = (host: Host): number => Number(hasFreshSample(host, nowMs));
    return [...hosts].sort(
        (a, b) => rank(b) - rank(a) || fresh(b) - fresh(a) || a.host.localeCompare(b.host, "en", { numeric: true }),
    );
}

const gpuKey = (host: string, uuid: string): string => `${host}/${uuid}`;

// The newest event of each GPU. An event has the GPU's number in a session, and sessions may number the GPUs of a host
// differently: only the session determines which GPU it is. Events of sessions that are not loaded yet are ignored.
function liveByGpu(live: Iterable<LiveGpu>, sessions: readonly SessionEntry[]): Map<string, LiveGpu> {
    const known = new Map(sessions.map((session) => [session.id, session]));
    const newest = new Map<string, LiveGpu>();
    for (const event of live) {
        const session = known.get(event.session_id);
        if (!session) continue;
        // "device-N": the server's name of a GPU whose UUID is not in the log.
        const uuid = session.gpus.find((gpu) => gpu.device === event.device_id)?.uuid ?? `device-${event.device_id}`;
        const key = gpuKey(session.host ?? event.host, uuid);
        if ((event.ts_ns ?? 0) >= (newest.get(key)?.ts_ns ?? 0)) newest.set(key, event);
    }
    return newest;
}

// The hosts with each GPU's live sample merged in.
export function withLive(
    hosts: readonly Host[],
    live: Iterable<LiveGpu>,
    sessions: readonly SessionEntry[],
): Host[] {
    const newest = liveByGpu(live, sessions);
    return hosts.map((host) => ({
        ...host,
        gpus: host.gpus.map((gpu) => {
            const event = newest.get(gpuKey(host.host, gpu.uuid));
            if (!event || event.ts_ns === null || (gpu.metrics?.sample_ns ?? 0) >= event.ts_ns) return gpu;
            const { host: _host, session_id, ts_ns, device_id: _device, ...values } = event;
            return {
                ...gpu,
                session_id,
                metrics: { ...gpu.metrics, ...(values as Record<string, number | null>), sample_ns: ts_ns } as Sample,
            };
        }),
    }));
}

// Sums over recently sampled GPUs: old samples are not part of the host's current power. Null: none.
export function sumOf(host: Host, metric: string, nowMs: number): number | null {
    const values = host.gpus
        .filter((gpu) => isFresh(gpu.metrics, nowMs))
        .map((gpu) => gpu.metrics?.[metric])
        .filter((value): value is number => value != null);
    return values.length > 0 ? values.reduce((sum, value) => sum + value, 0) : null;
}

// "GPU0"; with the end of the UUID if several GPUs of the host have the number.
export function gpuLabel(host: Host, gpu: Gpu): string {
    const isShared = host.gpus.some((other) => other !== gpu && other.device === gpu.device);
    return isShared ? `GPU${gpu.device} …${gpu.uuid.slice(-4)}` : `GPU${gpu.device}`;
}

// Live sessions of a GPU, or the latest one that used it.
export function usersOf(host: string, gpu: Gpu, sessions: readonly SessionEntry[]): SessionEntry[] {
    const mine = sessions.filter(
        (session) => session.host === host && session.gpus.some((each) => each.uuid === gpu.uuid),
    );
    const live = mine.filter((session) => session.state === "live");
    return live.length > 0 ? live : mine.filter((session) => session.id === gpu.session_id);
}

// Null if the name cannot be part of a URL.
export function metricsPath(host: string): string | null {
    return /[/\\]|^\.{1,2}$/.test(host) ? null : `hosts/${encodeURIComponent(host)}/metrics`;
}

export interface MinuteSeries {
    metric: string;
    points: [number, number, number, number][]; // minute_ns, min, mean, max
}
export interface HostMetrics {
    from_ns: number;
    to_ns: number;
    step_ns: number;
    series: MinuteSeries[];
}

// One value per step, null if a step has none; figure: 1 minimum, 2 mean, 3 maximum.
export function stepsOf(
    points: MinuteSeries["points"],
    fromNs: number,
    toNs: number,
    stepNs: number,
    figure: 1 | 2 | 3 = 2,
): (number | null)[] {
    const count = Math.max(1, Math.ceil((toNs - fromNs) / stepNs));
    const sums = new Array<number>(count).fill(0);
    const seen = new Array<number>(count).fill(0);
    for (const point of points) {
        const step = Math.floor((point[0] - fromNs) / stepNs);
        if (step < 0 || step >= count) continue;
        const value = point[figure];
        if (figure === 2) sums[step] = (sums[step] ?? 0) + value;
        else
            sums[step] = seen[step]
                ? figure === 1
                    ? Math.min(sums[step] ?? value, value)
                    : Math.max(sums[step] ?? value, value)
                : value;
        seen[step] = (seen[step] ?? 0) + 1;
    }
    return sums.map((sum, index) => (seen[index] ? (figure === 2 ? sum / (seen[index] ?? 1) : sum) : null));
}

export const ranges = [
    ["1h", "last 1 h", 3600],
    ["6h", "last 6 h", 21_600],
    ["24h", "last 24 h", 86_400],
    ["7d", "last 7 d", 604_800],
    ["30d", "last 30 d", 2_592_000],
] as const;
export function rangeSeconds(word: string): number {
    return ranges.find(([id]) => id === word)?.[2] ?? 3600;
}

const MINUTE_NS = 60_000_000_000n;
export interface Stretch {
    fromNs: bigint;
    toNs: bigint;
    isPast: boolean; // ends with the last sample, not now
}
// The range up to now; for a GPU without current samples, up to its last one. Whole minutes, so that answers can be
// cached.
export function stretchOf(sample: Sample | null, seconds: number, nowMs: number): Stretch {
    const lastMs = sample?.sample_ns == null ? nowMs : sample.sample_ns / 1e6;
    const isPast = nowMs - lastMs > seconds * 1000;
    const toNs = ((BigInt(Math.round(isPast ? lastMs : nowMs)) * 1_000_000n) / MINUTE_NS + 1n) * MINUTE_NS;
    return { fromNs: toNs - BigInt(seconds) * 1_000_000_000n, toNs, isPast };
}
