// SPDX-License-Identifier: Apache-2.0
// Hotspots: every kernel of a session by name, with its time and its launch configurations.
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import "./kernels.css";
import { getJson } from "../api";
import { kernelColour } from "../colour";
import { traceCommand } from "../commands";
import * as format from "../format";
import { useSession } from "../query";
import { href, type Params, route, sessionId, setParams } from "../route";
import { isLoaded, revisionOf, useSummary } from "../session";
import { Bar, Histogram } from "../ui/charts";
import { Answered, Empty, Partial } from "../ui/states";
import { type Column, Table } from "../ui/table";
import { Facts, tip } from "../ui/tooltip";
import { LaunchedTable, launchesWords, useLaunches } from "./launched";
import { NameCell } from "./name-cell";
import { distinctNames } from "./names";
import {
    dimensionsShort,
    type Kernel,
    type KernelHistogram,
    kernelName,
    type Kernels,
    occupancyText,
    type Ranges,
} from "./answers";

const PAGE = 1000;
const PAGES_MAX = 50;
const BINS = 20;

// Every page of the list.
async function allKernels(path: string, params: Params, signal: AbortSignal): Promise<Kernels> {
    const whole = await getJson<Kernels>(path, params, signal);
    let cursor = whole.next_cursor;
    for (let page = 1; cursor !== null && page < PAGES_MAX; page++) {
        const next = await getJson<Kernels>(path, { ...params, cursor }, signal);
        whole.kernels.push(...next.kernels);
        whole.histograms?.push(...(next.histograms ?? []));
        cursor = next.next_cursor;
    }
    return whole;
}

export function histogramWords(histogram: KernelHistogram | undefined, kernel: Kernel): string {
    if (!histogram) return "durations unavailable";
    const range = `from ${format.time(kernel.min_ns)} to ${format.time(kernel.max_ns)}`;
    return `durations ${range}, median ${format.time(kernel.median_ns)}`;
}

interface Row {
    kernel: Kernel;
    name: string;
    short: string;
    mark: string;
    histogram: KernelHistogram | undefined;
}

function DurationCell({ row }: { row: Row }): JSX.Element {
    const { kernel, histogram } = row;
    const facts = (
        <Facts
            facts={[
                ["least", format.time(kernel.min_ns)],
                ["median", format.time(kernel.median_ns)],
                ["p90", format.time(kernel.p90_ns)],
                ["p99", format.time(kernel.p99_ns)],
                ["largest", format.time(kernel.max_ns)],
                ["scale", histogram?.scale ?? "unavailable"],
            ]}
        />
    );
    return (
        <span {...tip(facts, false)}>
            <Histogram counts={histogram?.counts ?? []} label={histogramWords(histogram, kernel)} />
        </span>
    );
}

function launchText(kernel: Kernel): string {
    if (!kernel.launch) return format.UNAVAILABLE;
    const more = kernel.launch_variants > 1 ? ` +${kernel.launch_variants - 1}` : "";
    return `${dimensionsShort(kernel.launch.grid)} by ${dimensionsShort(kernel.launch.block)}${more}`;
}

function columnsOf(session: string): Column<Row>[] {
    return [
        {
            id: "name",
            title: "kernel",
            value: (row) => row.name,
            isKept: true,
            cell: (row) => (
                <NameCell
                    name={row.name}
                    shown={row.short}
                    mark={row.mark}
                    address={href("kernel", { id: row.kernel.kernel_id }, session)}
                />
            ),
        },
        {
            id: "total",
            title: "total",
            width: 76,
            isKept: true,
            value: (row) => row.kernel.total_ns,
            text: (row) => format.time(row.kernel.total_ns),
        },
        {
            id: "share",
            title: "share",
            about: "of all kernel time",
            width: 108,
            value: (row) => row.kernel.share,
            text: (row) => format.percent(row.kernel.share),
            cell: (row) => (
                <span class="share-cell">
                    <Bar
                        value={row.kernel.share}
                        label={`${format.percent(row.kernel.share)} of kernel time`}
                        colour={kernelColour(row.name)}
                    />
                    <span>{format.percent(row.kernel.share)}</span>
                </span>
            ),
        },
        {
            id: "count",
            title: "calls",
            width: 72,
            isKept: true,
            value: (row) => row.kernel.count,
            text: (row) => format.count(row.kernel.count),
        },
        {
            id: "median",
            title: "median",
            width: 76,
            value: (row) => row.kernel.median_ns,
            text: (row) => format.time(row.kernel.median_ns),
        },
        {
            id: "p99",
            title: "p99",
            width: 76,
            value: (row) => row.kernel.p99_ns,
            text: (row) => format.time(row.kernel.p99_ns),
        },
        {
            id: "histogram",
            title: "durations",
            about: "how many executions took how long; logarithmic where they differ by 16 times and more",
            width: 80,
            isUnsorted: true,
            value: (row) => row.histogram?.counts.join(" ") ?? null,
            isRight: false,
            cell: (row) => <DurationCell row={row} />,
        },
        {
            id: "occupancy",
            title: "occupancy (limit)",
            about: "theoretical, of the launch configuration with most time, and what limits it",
            width: 136,
            value: (row) => row.kernel.launch?.occupancy_bp ?? null,
            text: (row) => occupancyText(row.kernel.launch),
        },
        {
            id: "registers",
            title: "regs",
            about: "registers per thread; of AMD GPUs the vector registers",
            width: 56,
            value: (row) => row.kernel.launch?.num_regs ?? null,
        },
        {
            id: "launch",
            title: "grid by block",
            about: "the launch configuration with most time, and how many others there are",
            width: 152,
            value: (row) => launchText(row.kernel),
        },
    ];
}

// The filter of the list, from the URL.
function Filters(): JSX.Element | null {
    const params = route.value.params;
    const chips: [string[], string][] = [];
    if (params.from_ns || params.to_ns) chips.push([["from_ns", "to_ns"], "a part of the timeline"]);
    if (params.scope) chips.push([["scope"], `scope ${format.middleCut(params.scope, 60)}`]);
    if (params.device) chips.push([["device"], `GPU ${params.device}`]);
    if (params.stream) chips.push([["stream"], `stream ${params.stream}`]);
    if (!chips.length) return null;
    return (
        <div class="row">
            <span class="dim">only</span>
            {chips.map(([names, words]) => (
                <button
                    type="button"
                    key={words}
                    title="remove this filter"
                    onClick={() => setParams(Object.fromEntries(names.map((name) => [name, null])))}
                >
                    {words} ✕
                </button>
            ))}
        </div>
    );
}

export default function KernelsPage(): JSX.Element {
    const session = sessionId.value ?? "";
    const summary = useSummary();
    const { from_ns, to_ns, scope, device, stream, exact } = route.value.params;
    const kernels = useSession<Kernels>(
        session,
        "kernels",
        { from_ns, to_ns, scope, device, stream, exact, limit: PAGE, bins: BINS },
        { fetch: allKernels, version: revisionOf(summary.data) },
    );
    // A launch without a time has no GPU and no stream.
    const launches = useLaunches(
        isLoaded(summary.data) && !device && !stream ? session : null,
        revisionOf(summary.data),
        { from_ns, to_ns, scope, limit: PAGE },
    );
    const untimed = launches.data?.count ? launches.data : null;
    const ranges = useSession<Ranges>(untimed ? session : null, "ranges", {}, { version: revisionOf(summary.data) });
    const columns = useMemo(() => columnsOf(session), [session]);
    const rows = useMemo(() => {
        const histograms = new Map(kernels.data?.histograms?.map((histogram) => [histogram.kernel_id, histogram]));
        const list = kernels.data?.kernels ?? [];
        const short = distinctNames(list.map((kernel) => kernelName(kernel.name)));
        return list.map((kernel) => {
            const name = kernelName(kernel.name);
            return {
                kernel,
                name,
                ...(short.get(name) ?? { short: name, mark: "" }),
                histogram: histograms.get(kernel.kernel_id),
            };
        });
    }, [kernels.data]);
    const engine = summary.data?.session.engine;
    return (
        <div class="page">
            <div class="page-head">
                <h1>Kernels</h1>
                {kernels.data && (kernels.data.count > 0 || !untimed) ? (
                    <span class="dim">
                        {format.count(kernels.data.count)} executions of {format.count(kernels.data.total)} kernels,{" "}
                        {format.time(kernels.data.total_ns)} added up
                    </span>
                ) : null}
                {untimed ? <span class="dim">{launchesWords(untimed)}</span> : null}
            </div>
            <Partial completeness={summary.data?.completeness} />
            <Filters />
            {kernels.data && !kernels.data.is_exact ? (
                <div class="notice is-calm">
                    The session is large: percentiles are estimates from sums, and launches are not shown.{" "}
                    <button type="button" onClick={() => setParams({ exact: "true" })}>
                        load all of it
                    </button>
                </div>
            ) : null}
            <Answered
                answer={kernels}
                what="kernels"
                isEmpty={(data) => data.kernels.length === 0}
                empty={
                    untimed ? null : (
                        <Empty
                            title={
                                from_ns || to_ns || scope || device || stream
                                    ? "No kernel started in this time range."
                                    : `No kernel times were recorded${engine ? ` (engine ${engine})` : ""}.`
                            }
                            command={traceCommand()}
                        />
                    )
                }
            >
                {() => (
                    <Table
                        id="kernels"
                        label="kernels"
                        rows={rows}
                        columns={columns}
                        rowKey={(row) => row.kernel.kernel_id}
                        sort={{ id: "total", isDescending: true }}
                        href={(row) => href("kernel", { id: row.kernel.kernel_id }, session)}
                        heightMax="calc(100dvh - 180px)"
                    />
                )}
            </Answered>
            {untimed ? (
                <section class="section" aria-label="counted, not timed">
                    {kernels.data?.count ? <h2>Counted, not timed</h2> : null}
                    <LaunchedTable
                        session={session}
                        launches={untimed}
                        ranges={ranges.data}
                        heightMax="calc(100dvh - 180px)"
                    />
                </section>
            ) : null}
        </div>
    );
}
