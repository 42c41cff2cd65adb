// SPDX-License-Identifier: Apache-2.0
// Columns of short lists of kernels, on several pages.
import * as format from "../format";
import { href } from "../route";
import type { Column } from "../ui/table";
import { kernelName } from "./answers";
import { NameCell } from "./name-cell";

export interface KernelSums {
    name: string | null;
    kernel_id: number;
    count: number;
    total_ns: number;
    median_ns: number | null;
    share: number;
}

export function kernelSumColumns<Row extends KernelSums>(session: string): Column<Row>[] {
    return [
        {
            id: "name",
            title: "kernel",
            isKept: true,
            value: (row) => row.name,
            cell: (row) => (
                <NameCell
                    name={row.name ?? ""}
                    shown={kernelName(row.name ?? `kernel ${row.kernel_id}`)}
                    address={href("kernel", { id: row.kernel_id }, session)}
                />
            ),
        },
        {
            id: "total_ns",
            title: "total",
            width: 80,
            isKept: true,
            value: (row) => row.total_ns,
            text: (row) => format.time(row.total_ns),
        },
        {
            id: "share",
            title: "share",
            width: 64,
            isKept: true,
            about: "of the time of all kernels of the session, or of the scope",
            value: (row) => row.share,
            text: (row) => format.percent(row.share),
        },
        { id: "count", title: "calls", width: 72, value: (row) => row.count, text: (row) => format.count(row.count) },
        {
            id: "median_ns",
            title: "median",
            width: 80,
            value: (row) => row.median_ns,
            text: (row) => format.time(row.median_ns),
        },
    ];
}
