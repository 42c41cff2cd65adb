// SPDX-License-Identifier: Apache-2.0
// Copies by direction and kind of host memory.
import type { JSX } from "preact";
import { copyColour } from "../colour";
import * as format from "../format";
import { Table, type Column } from "../ui/table";

export interface CopyGroup {
    kind: string | null; // null: a kind that the log does not contain
    host_memory: string | null;
    calls: number;
    bytes: number;
    total_ns: number;
}
export interface Copies {
    copies: CopyGroup[];
    memsets: { calls: number; bytes: number; total_ns: number };
}

export const throughput = (group: { bytes: number; total_ns: number }): number | null =>
    group.total_ns > 0 ? (group.bytes / group.total_ns) * 1e9 : null;

const columns: Column<CopyGroup>[] = [
    {
        id: "kind",
        title: "direction",
        isKept: true,
        value: (row) => row.kind,
        cell: (row) => (
            <>
                <i class="swatch" style={row.kind === "memset" ? {} : { background: copyColour(row.kind ?? "") }} />
                {row.kind ?? "unknown"}
            </>
        ),
    },
    {
        id: "host_memory",
        title: "host memory",
        width: 120,
        value: (row) => row.host_memory,
        text: (row) => row.host_memory ?? "–",
    },
    { id: "calls", title: "calls", width: 80, value: (row) => row.calls, text: (row) => format.count(row.calls) },
    { id: "bytes", title: "amount", width: 88, value: (row) => row.bytes, text: (row) => format.bytes(row.bytes) },
    {
        id: "total_ns",
        title: "time",
        width: 88,
        isKept: true,
        value: (row) => row.total_ns,
        text: (row) => format.time(row.total_ns),
    },
    {
        id: "rate",
        title: "throughput",
        width: 96,
        isKept: true,
        about: "amount by time",
        value: throughput,
        text: (row) => format.rate(throughput(row)),
    },
    {
        id: "mean_bytes",
        title: "mean size",
        width: 88,
        value: (row) => (row.calls > 0 ? row.bytes / row.calls : null),
        text: (row) => format.bytes(row.calls > 0 ? row.bytes / row.calls : null),
    },
];

export function CopiesTable({ copies, isBare = false }: { copies: Copies; isBare?: boolean }): JSX.Element {
    const rows = [
        ...copies.copies,
        ...(copies.memsets.calls > 0 ? [{ kind: "memset", host_memory: null, ...copies.memsets }] : []),
    ];
    if (rows.length === 0) return <p class="dim">Nothing was copied.</p>;
    return (
        <Table
            id="c"
            label="copies"
            rows={rows}
            columns={columns}
            rowKey={(row) => `${row.kind} ${row.host_memory}`}
            sort={{ id: "total_ns", isDescending: true }}
            heightMax="none"
            isBare={isBare}
        />
    );
}
