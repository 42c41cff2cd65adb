// SPDX-License-Identifier: Apache-2.0
// Copies by direction and throughput, allocations over time with memory never freed, and waits of the host.
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { css } from "../colour";
import * as format from "../format";
import { useSession } from "../query";
import { href, sessionId } from "../route";
import { revisionOf, useSummary } from "../session";
import { isDark } from "../theme";
import { AreaChart } from "../ui/area";
import { Answered, Partial } from "../ui/states";
import { Table, type Column } from "../ui/table";
import { CopiesTable, type Copies } from "./copies";

interface MemoryGroup {
    kind: string | null;
    allocs: number;
    frees: number;
    unmatched_frees: number;
    allocated_bytes: number;
    peak_bytes: number;
    never_freed_bytes: number;
    never_freed: number;
}
interface KeptBlock {
    kind: string | null;
    bytes: number;
    time_ns: number;
    device: number | null;
    thread_id: number | null;
    scope: string | null;
}
export interface Allocations {
    memory: MemoryGroup[];
    from_ns: number;
    to_ns: number;
    step_ns: number;
    history: { kind: string | null; held_bytes: number[] }[];
    kept: KeptBlock[];
    kept_left_out: number;
}
interface SyncGroup {
    type: string | null;
    calls: number;
    total_ns: number;
    max_ns: number;
}
interface SyncPlace {
    stack: string | null;
    calls: number;
    total_ns: number;
}
interface Syncs {
    syncs: SyncGroup[];
    sync_places: SyncPlace[];
}

const groupColumns: Column<MemoryGroup>[] = [
    { id: "kind", title: "memory", isKept: true, value: (row) => row.kind ?? "unknown" },
    {
        id: "peak_bytes",
        title: "peak",
        width: 104,
        isKept: true,
        value: (row) => row.peak_bytes,
        text: (row) => format.bytes(row.peak_bytes),
    },
    {
        id: "allocated_bytes",
        title: "allocated",
        width: 104,
        about: "sum of all allocations",
        value: (row) => row.allocated_bytes,
        text: (row) => format.bytes(row.allocated_bytes),
    },
    {
        id: "allocs",
        title: "allocations",
        width: 96,
        value: (row) => row.allocs,
        text: (row) => format.count(row.allocs),
    },
    { id: "frees", title: "releases", width: 88, value: (row) => row.frees, text: (row) => format.count(row.frees) },
    {
        id: "never_freed_bytes",
        title: "never freed",
        width: 144,
        isKept: true,
        value: (row) => row.never_freed_bytes,
        cell: (row) =>
            row.never_freed > 0 ? (
                <span class="amber">{`${format.bytes(row.never_freed_bytes)} in ${format.count(row.never_freed)}`}</span>
            ) : (
                "nothing"
            ),
    },
    {
        id: "unmatched_frees",
        title: "of unknown blocks",
        width: 136,
        about: "releases of memory whose allocation was not recorded",
        value: (row) => row.unmatched_frees,
        text: (row) => format.count(row.unmatched_frees),
    },
];

function keptColumns(fromNs: number, session: string): Column<KeptBlock>[] {
    return [
        {
            id: "bytes",
            title: "size",
            width: 96,
            isKept: true,
            value: (row) => row.bytes,
            text: (row) => format.bytes(row.bytes),
        },
        {
            id: "scope",
            title: "allocated in",
            isKept: true,
            value: (row) => row.scope,
            cell: (row) =>
                row.scope === null ? (
                    <span class="dim">outside of scopes</span>
                ) : (
                    <a href={href("scopes", { scope: row.scope }, session)}>{format.middleCut(row.scope, 100)}</a>
                ),
        },
        {
            id: "time_ns",
            title: "after",
            width: 96,
            isKept: true,
            value: (row) => row.time_ns - fromNs,
            text: (row) => format.time(row.time_ns - fromNs),
        },
        { id: "kind", title: "memory", width: 96, value: (row) => row.kind ?? "unknown" },
        { id: "device", title: "GPU", width: 56, value: (row) => row.device },
        {
            id: "thread_id",
            title: "thread",
            width: 88,
            value: (row) => row.thread_id,
            text: (row) => (row.thread_id === null ? format.UNAVAILABLE : String(row.thread_id)),
        },
    ];
}

const HUES = [250, 60, 310, 150, 20, 200, 100, 340];

function MemorySection({ session, version }: { session: string; version: number }): JSX.Element {
    const answer = useSession<Allocations>(session, "allocations", {}, { version });
    return (
        <section class="section" aria-label="allocations">
            <h2>Allocations</h2>
            <Answered
                answer={answer}
                what="allocations"
                isEmpty={(data) => data.memory.length === 0}
                empty={
                    <p class="dim">
                        No allocation was recorded. Frameworks with their own memory pool allocate before recording
                        starts, or only once.
                    </p>
                }
            >
                {(data) => <Held data={data} session={session} />}
            </Answered>
        </section>
    );
}

function Held({ data, session }: { data: Allocations; session: string }): JSX.Element {
    const dark = isDark.value;
    const xs = useMemo(
        () =>
            Array.from(
                { length: data.history[0]?.held_bytes.length ?? 0 },
                (_unused, index) => (index * data.step_ns) / 1e9,
            ),
        [data],
    );
    const series = useMemo(
        () =>
            data.history.map((each, index) => ({
                name: each.kind ?? "unknown",
                values: each.held_bytes,
                colour: css({ l: dark ? 0.74 : 0.58, c: 0.12, h: HUES[index % HUES.length] ?? 250 }),
            })),
        [data, dark],
    );
    const columns = useMemo(() => keptColumns(data.from_ns, session), [data, session]);
    return (
        <>
            <AreaChart
                xs={xs}
                series={series}
                steps="binary"
                text={(value) => format.bytes(value)}
                xText={(value) => format.time(value * 1e9)}
                label="memory held over time, maximum of each step"
            />
            <Table
                id="g"
                label="memory by kind"
                rows={data.memory}
                columns={groupColumns}
                rowKey={(row) => row.kind ?? ""}
                sort={{ id: "peak_bytes", isDescending: true }}
                heightMax="none"
                isBare
            />
            <div class="section-head">
                <h3>Never freed</h3>
                {data.kept_left_out > 0 ? (
                    <span class="dim small">the largest; {format.count(data.kept_left_out)} more</span>
                ) : null}
            </div>
            {data.kept.length === 0 ? (
                <p class="dim">All allocated memory was freed.</p>
            ) : (
                <Table
                    id="l"
                    label="blocks never freed"
                    rows={data.kept}
                    columns={columns}
                    rowKey={(row) => `${row.time_ns} ${row.bytes} ${row.thread_id}`}
                    sort={{ id: "bytes", isDescending: true }}
                    heightMax={360}
                />
            )}
        </>
    );
}

const syncColumns: Column<SyncGroup>[] = [
    { id: "type", title: "call", isKept: true, value: (row) => row.type ?? "unknown" },
    { id: "calls", title: "calls", width: 88, value: (row) => row.calls, text: (row) => format.count(row.calls) },
    {
        id: "total_ns",
        title: "waited",
        width: 104,
        isKept: true,
        value: (row) => row.total_ns,
        text: (row) => format.time(row.total_ns),
    },
    {
        id: "mean_ns",
        title: "mean",
        width: 104,
        value: (row) => (row.calls > 0 ? row.total_ns / row.calls : null),
        text: (row) => format.time(row.calls > 0 ? row.total_ns / row.calls : null),
    },
    {
        id: "max_ns",
        title: "longest",
        width: 104,
        isKept: true,
        value: (row) => row.max_ns,
        text: (row) => format.time(row.max_ns),
    },
];
const placeColumns: Column<SyncPlace>[] = [
    {
        id: "stack",
        title: "place",
        isKept: true,
        value: (row) => row.stack,
        cell: (row) => (
            <code title={row.stack ?? ""}>{(row.stack ?? "place not recorded").replaceAll("|", " › ")}</code>
        ),
    },
    {
        id: "calls",
        title: "calls",
        width: 88,
        isKept: true,
        value: (row) => row.calls,
        text: (row) => format.count(row.calls),
    },
    {
        id: "total_ns",
        title: "waited",
        width: 104,
        isKept: true,
        value: (row) => row.total_ns,
        text: (row) => format.time(row.total_ns),
    },
];

function SyncSection({ session, version }: { session: string; version: number }): JSX.Element {
    const answer = useSession<Syncs>(session, "syncs", {}, { version });
    return (
        <section class="section" aria-label="where the host waited">
            <h2>Where the host waited</h2>
            <Answered
                answer={answer}
                what="waits"
                isEmpty={(data) => data.syncs.length === 0}
                empty={<p class="dim">The program never waited for the GPU in a recorded call.</p>}
            >
                {(data) => (
                    <>
                        <Table
                            id="w"
                            label="waits by call"
                            rows={data.syncs}
                            columns={syncColumns}
                            rowKey={(row) => row.type ?? ""}
                            sort={{ id: "total_ns", isDescending: true }}
                            heightMax="none"
                            isBare
                        />
                        {data.sync_places.length > 0 ? (
                            <Table
                                id="p"
                                label="waits by place"
                                rows={data.sync_places}
                                columns={placeColumns}
                                rowKey={(row) => row.stack ?? ""}
                                sort={{ id: "total_ns", isDescending: true }}
                                heightMax={360}
                            />
                        ) : (
                            <p class="dim">
                                Places in the program were not recorded; `gpufl trace --stacks` records them.
                            </p>
                        )}
                    </>
                )}
            </Answered>
        </section>
    );
}

export default function MemoryPage(): JSX.Element {
    const session = sessionId.value ?? "";
    const summary = useSummary();
    const version = revisionOf(summary.data);
    const copies = useSession<Copies>(session, "copies", {}, { version });
    return (
        <div class="page">
            <div class="page-head">
                <h1>Memory and sync</h1>
            </div>
            <Partial completeness={summary.data?.completeness} />
            <section class="section" aria-label="copies">
                <h2>Copies</h2>
                <Answered answer={copies} what="copies">
                    {(data) => <CopiesTable copies={data} />}
                </Answered>
            </section>
            <SyncSection session={session} version={version} />
            <MemorySection session={session} version={version} />
        </div>
    );
}
