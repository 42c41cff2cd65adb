// SPDX-License-Identifier: Apache-2.0
// Kernels that were launched but not timed, with the counters measured for each.
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import * as format from "../format";
import { type Answer, useSession } from "../query";
import { href } from "../route";
import { type Column, Table } from "../ui/table";
import { kernelName, type Launches, type LaunchedKernel, type Ranges } from "./answers";
import { type KernelMeasures, measuresOf, metricColumns, metricText } from "./measures";
import { NameCell } from "./name-cell";
import { distinctNames } from "./names";

const METRICS_MOST = 7;
const METRICS_BARE_MOST = 5;
const SHORT = 8; // letters of a narrow column's title

// session null: no request.
export function useLaunches(
    session: string | null,
    version: number,
    params: { limit?: number; scope?: string | undefined; from_ns?: string | undefined; to_ns?: string | undefined },
): Answer<Launches> {
    return useSession<Launches>(session, "launches", params, { version });
}

export const launchesWords = (launches: Launches): string =>
    `${format.plural(launches.count, "launch", "launches")} of ${format.plural(launches.total, "kernel")}, not timed`;

interface Row extends LaunchedKernel {
    full: string;
    short: string;
    mark: string;
    measures: KernelMeasures | undefined;
}

function columnsOf(session: string, rows: readonly Row[], metricsMost: number): Column<Row>[] {
    const metrics = metricColumns(
        rows.flatMap((row) => (row.measures ? [row.measures] : [])),
        metricsMost,
    );
    return [
        {
            id: "name",
            title: "kernel",
            isKept: true,
            value: (row) => row.full,
            cell: (row) => (
                <NameCell
                    name={row.full}
                    shown={row.short}
                    mark={row.mark}
                    address={href("kernel", { id: row.kernel_id }, session)}
                />
            ),
        },
        {
            id: "count",
            title: "launches",
            width: 96,
            isKept: true,
            value: (row) => row.count,
            text: (row) => format.count(row.count),
        },
        ...(metrics.length === 0
            ? []
            : [
                  {
                      id: "measured",
                      title: "measured",
                      about: "executions that counters measured",
                      width: 88,
                      value: (row: Row) => row.measures?.executions ?? 0,
                      text: (row: Row) => format.count(row.measures?.executions ?? 0),
                  },
              ]),
        ...metrics.map((metric) => ({
            id: metric.name,
            title: metric.title,
            about: `${metric.name}, mean of the measured executions`,
            width: metric.title.length > SHORT ? 112 : 80,
            isKept: metric.isDuration,
            value: (row: Row) => row.measures?.means.get(metric.name) ?? null,
            text: (row: Row) => metricText(metric.name, row.measures?.means.get(metric.name) ?? null),
        })),
    ];
}

export function LaunchedTable(props: {
    session: string;
    launches: Launches;
    ranges: Ranges | null; // null: without measurements
    isBare?: boolean;
    heightMax?: number | string;
}): JSX.Element {
    const { session, launches, ranges } = props;
    const metricsMost = props.isBare ? METRICS_BARE_MOST : METRICS_MOST;
    const rows = useMemo(() => {
        const measures = measuresOf(ranges?.metrics ?? []);
        const short = distinctNames(launches.kernels.map((kernel) => kernelName(kernel.name)));
        return launches.kernels.map((kernel): Row => {
            const full = kernelName(kernel.name);
            return {
                ...kernel,
                full,
                ...(short.get(full) ?? { short: full, mark: "" }),
                measures: kernel.name === null ? undefined : measures.get(kernel.name),
            };
        });
    }, [launches, ranges]);
    const columns = useMemo(() => columnsOf(session, rows, metricsMost), [session, rows, metricsMost]);
    return (
        <Table
            id="launched"
            label="launched kernels"
            rows={rows}
            columns={columns}
            rowKey={(row) => row.kernel_id}
            sort={{ id: "count", isDescending: true }}
            href={(row) => href("kernel", { id: row.kernel_id }, session)}
            heightMax={props.heightMax ?? "none"}
            isBare={props.isBare ?? false}
        />
    );
}
