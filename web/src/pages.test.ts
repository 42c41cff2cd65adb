// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import {
    gpuLabel,
    gpuProblems,
    hostsInOrder,
    metricsPath,
    problemsOf,
    stepsOf,
    stretchOf,
    sumOf,
    usersOf,
    withLive,
    type Gpu,
    type Host,
} from "./fleet/fleet";
import { keyName } from "./keys";
import type { LiveGpu } from "./live";
import { binsOf, partsOf } from "./overview/time-use";
import { rowsOf, unfolded, type Scope } from "./scopes/tree";
import type { SessionEntry } from "./session";
import { listParams, pickToggle, sinceMs } from "./sessions/list";
import { completenessText } from "./ui/states";

const NOW_MS = 1_800_000_000_000;
const gpu = (device: number, metrics: Record<string, number | null>): Gpu => ({
    uuid: `GPU-${device}`,
    name: "H200",
    device,
    first_seen_ns: 0,
    last_seen_ns: 0,
    session_id: "s1",
    metrics: { sample_ns: NOW_MS * 1e6, ...metrics },
});
const host = (name: string, ...gpus: Gpu[]): Host => ({
    host: name,
    first_seen_ns: 0,
    last_seen_ns: 0,
    metrics: null,
    gpus,
});

describe("the fleet", () => {
    it("sees what is wrong with a GPU, and nothing in what it does not know", () => {
        expect(
            gpuProblems(
                "h",
                gpu(0, { throttle_reasons: 0x4 | 0x1, ecc_uncorrected: 2, temp_c: 90, used_mib: 99, total_mib: 100 }),
            ).map((problem) => problem.text),
        ).toEqual(["slowed by power", "2 uncorrectable ECC errors", "90 °C", "memory 99.0 % full"]);
        expect(gpuProblems("h", gpu(0, { throttle_reasons: 0x1, ecc_uncorrected: null, temp_c: null }))).toEqual([]);
        expect(gpuProblems("h", { ...gpu(0, {}), metrics: null })).toEqual([]);
    });
    it("puts problems first and forgets those of long ago", () => {
        const hosts = [
            host("a", gpu(0, {})),
            host("b", gpu(0, { ecc_uncorrected: 1 })),
            host("c", gpu(0, { throttle_reasons: 4 })),
        ];
        const problems = problemsOf(hosts, NOW_MS);
        expect(problems.map((problem) => problem.host)).toEqual(["b", "c"]);
        expect(hostsInOrder(hosts, problems, NOW_MS).map((each) => each.host)).toEqual(["b", "c", "a"]);
        expect(problemsOf(hosts, NOW_MS + 3_600_000)).toEqual([]);
    });
    it("takes live samples by the UUID that the session knows, and only newer ones", () => {
        const hosts = [host("a", gpu(0, { gpu_util: 10 }))];
        const session = (id: string, uuid: string | null): SessionEntry =>
            ({ id, host: null, gpus: uuid ? [{ device: 0, uuid, name: null }] : [] }) as unknown as SessionEntry;
        const event = { host: "a", session_id: "s2", ts_ns: NOW_MS * 1e6 + 1e9, device_id: 0, gpu_util: 90 };
        const utilOf = (events: LiveGpu[], sessions: SessionEntry[], of = hosts): number | null | undefined =>
            withLive(of, events, sessions)[0]!.gpus[0]!.metrics!["gpu_util"];
        expect(withLive(hosts, [event], [session("s2", "GPU-0")])[0]!.gpus[0]).toMatchObject({
            session_id: "s2",
            metrics: { gpu_util: 90 },
        });
        expect(utilOf([{ ...event, ts_ns: 5 }], [session("s2", "GPU-0")])).toBe(10);
        expect(utilOf([{ ...event, host: "b" }], [session("s2", "GPU-0")])).toBe(10);
        // Number 0 of that session is another GPU, is unknown, or has no UUID.
        expect(utilOf([event], [session("s2", "GPU-7")])).toBe(10);
        expect(utilOf([event], [])).toBe(10);
        expect(utilOf([event], [session("s2", null)])).toBe(10);
        const nameless = [host("a", { ...gpu(0, { gpu_util: 10 }), uuid: "device-0" })];
        expect(utilOf([event], [session("s2", null)], nameless)).toBe(90);
        // Two sessions sample one GPU: the newer sample counts.
        const later = { ...event, session_id: "s3", ts_ns: event.ts_ns + 1e9, gpu_util: 95 };
        for (const events of [
            [event, later],
            [later, event],
        ])
            expect(utilOf(events, [session("s2", "GPU-0"), session("s3", "GPU-0")])).toBe(95);
    });
    it("adds up what GPUs draw now, each once, also where two have the same number", () => {
        const power = (device: number, uuid: string, mw: number, ageMs = 0): Gpu => ({
            ...gpu(device, { power_mw: mw, sample_ns: (NOW_MS - ageMs) * 1e6 }),
            uuid,
        });
        const shared = host("a", power(0, "GPU-aaaa", 400_000), power(0, "GPU-bbbb", 104_000));
        expect(sumOf(shared, "power_mw", NOW_MS)).toBe(504_000);
        expect(shared.gpus.map((each) => gpuLabel(shared, each))).toEqual(["GPU0 …aaaa", "GPU0 …bbbb"]);
        const stale = host("a", power(0, "GPU-aaaa", 400_000), power(1, "GPU-bbbb", 104_000, 3_600_000));
        expect(sumOf(stale, "power_mw", NOW_MS)).toBe(400_000);
        expect(sumOf(stale, "power_mw", NOW_MS + 3_600_000)).toBeNull();
        expect(gpuLabel(stale, stale.gpus[0]!)).toBe("GPU0");
    });
    it("says who uses a GPU: live sessions, else the latest", () => {
        const session = (id: string, state: string): SessionEntry =>
            ({ id, state, host: "a", gpus: [{ device: 0, uuid: "GPU-0", name: null }] }) as unknown as SessionEntry;
        expect(
            usersOf("a", gpu(0, {}), [session("s1", "complete"), session("s2", "live")]).map((each) => each.id),
        ).toEqual(["s2"]);
        expect(
            usersOf("a", gpu(0, {}), [session("s1", "complete"), session("s2", "complete")]).map((each) => each.id),
        ).toEqual(["s1"]);
        expect(usersOf("b", gpu(0, {}), [session("s1", "live")])).toEqual([]);
    });
    it("cuts a history into steps with null where nothing was sampled", () => {
        const points: [number, number, number, number][] = [
            [0, 1, 2, 3],
            [60, 2, 4, 6],
            [180, 5, 5, 5],
        ];
        expect(stepsOf(points, 0, 240, 120, 2)).toEqual([3, 5]);
        expect(stepsOf(points, 0, 240, 120, 1)).toEqual([1, 5]);
        expect(stepsOf(points, 0, 240, 60, 3)).toEqual([3, 6, null, 5]);
    });
    it("shows the last samples of a GPU that is gone", () => {
        const old = gpu(0, {}).metrics;
        expect(stretchOf(old, 3600, NOW_MS + 1000).isPast).toBe(false);
        const past = stretchOf(old, 3600, NOW_MS + 86_400_000);
        expect(past.isPast).toBe(true);
        expect(Number(past.toNs)).toBeGreaterThanOrEqual(NOW_MS * 1e6);
        expect(past.toNs - past.fromNs).toBe(3_600_000_000_000n);
    });
    it("asks nothing of hosts whose names no address can hold", () => {
        expect(metricsPath("node 1")).toBe("hosts/node%201/metrics");
        expect(metricsPath("a/b")).toBeNull();
        expect(metricsPath("..")).toBeNull();
    });
});

describe("the list of sessions", () => {
    it("asks for a stretch of time that stays the same for a minute", () => {
        const filters = { q: "", app: "a", host: "", gpu: "", engine: "", state: "", tag: "", since: "24h" };
        expect(listParams(filters, NOW_MS + 1)).toEqual(listParams(filters, NOW_MS + 59_000));
        expect(listParams(filters, NOW_MS).from_ns).toBe(BigInt(NOW_MS - 86_400_000) * 1_000_000n);
        expect(sinceMs("nonsense")).toBeNull();
    });
    it("picks two at most", () => {
        expect(pickToggle([], "a")).toEqual(["a"]);
        expect(pickToggle(["a", "b"], "c")).toEqual(["b", "c"]);
        expect(pickToggle(["a", "b"], "a")).toEqual(["b"]);
    });
});

describe("scopes", () => {
    const scope = (path: string, depth: number, wall_ns: number): Scope =>
        ({ path, depth, wall_ns, calls: 1 }) as Scope;
    const rows = rowsOf([
        scope("a", 0, 100),
        scope("a > b", 1, 60),
        scope("a > b > c", 2, 60),
        scope("a > d", 1, 70),
        scope("e", 0, 5),
    ]);
    it("have the time outside of those below them, never less than nothing", () => {
        expect(rows.map((row) => [row.name, row.self_ns])).toEqual([
            ["a", 0],
            ["b", 0],
            ["c", 60],
            ["d", 70],
            ["e", 5],
        ]);
    });
    it("fold with everything below", () => {
        expect(unfolded(rows, new Set(["a > b"])).map((row) => row.name)).toEqual(["a", "b", "d", "e"]);
        expect(unfolded(rows, new Set(["a"])).map((row) => row.name)).toEqual(["a", "e"]);
    });
});

describe("where the time went", () => {
    const time = {
        device: 0,
        busy_ns: 60,
        kernel_ns: 45,
        memsets_only_ns: 5,
        compute_ns: 50,
        copies_only_ns: 10,
        wait_launch_ns: 20,
        wait_sync_ns: 0,
        queued_ns: 0,
        no_work_ns: 20,
        unknown_ns: 0,
    };
    it("is divided into the parts that occurred", () => {
        expect(partsOf(time).map((part) => [part.name, part.value])).toEqual([
            ["kernels", 45],
            ["memsets alone", 5],
            ["copies alone", 10],
            ["waiting for launches", 20],
            ["no work", 20],
        ]);
        expect(partsOf(time)[0]!.text).toContain("45.0 %");
    });
    it("has a last bin that is as long as what is left", () => {
        const empty = new Array<number>(100).fill(0);
        const bins = binsOf(
            {
                device: 0,
                kernel_ns: [10, 10, 2],
                memsets_only_ns: empty,
                copies_only_ns: empty,
                wait_launch_ns: empty,
                wait_sync_ns: empty,
                queued_ns: empty,
                no_work_ns: empty,
                unknown_ns: empty,
            },
            10,
            24,
        );
        expect(bins).toHaveLength(3);
        expect(bins[2]).toMatchObject({ fromNs: 20, toNs: 24 });
        expect(bins[2]!.parts[0]!.share).toBe(0.5);
    });
});

describe("completeness", () => {
    const whole = {
        is_complete: true,
        has_shutdown: true,
        is_live: false,
        has_torn_tail: false,
        signal: null,
        damaged_lines: 0,
        missing_lines: 0,
        missing_rows: 0,
        invalid_rows: 0,
        kernels: 1,
        lost: 0,
        lost_is_exact: true,
        losses: [],
    };
    it("is silent where nothing is missing, and names everything that is", () => {
        expect(completenessText(whole)).toBe("");
        expect(completenessText({ ...whole, lost: 12, lost_is_exact: false, has_torn_tail: true })).toBe(
            "at least 12 events were not recorded; the last line is torn",
        );
        expect(completenessText({ ...whole, missing_rows: 1904 })).toBe("1,904 rows are missing");
        expect(completenessText({ ...whole, has_shutdown: false })).toBe("the recording was never closed");
        expect(completenessText({ ...whole, has_shutdown: false, is_live: true })).toBe("");
    });
});

describe("keys", () => {
    it("are named as they are typed", () => {
        const key = (name: string, more = {}) =>
            keyName({ key: name, ctrlKey: false, metaKey: false, altKey: false, shiftKey: false, ...more });
        expect(key("?", { shiftKey: true })).toBe("?");
        expect(key("Tab", { shiftKey: true })).toBe("Shift+Tab");
        expect(key(" ")).toBe("Space");
        expect(key("k", { metaKey: true })).toBe("Ctrl+k");
    });
});
