// SPDX-License-Identifier: Apache-2.0
// Overview of one session, in the report's order: losses, use of time, kernels, scopes, copies, system.
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { kernelColour } from "../colour";
import * as format from "../format";
import type { Launches, Ranges } from "../kernels/answers";
import { kernelSumColumns, type KernelSums } from "../kernels/columns";
import { LaunchedTable, launchesWords, useLaunches } from "../kernels/launched";
import { type Answer, useSession } from "../query";
import { href, sessionId } from "../route";
import { CopiesTable, type Copies } from "../memory/copies";
import { ScopeIcicle } from "../scopes/icicle";
import type { Scopes } from "../scopes/tree";
import { isLive, isLoaded, revisionOf, useSummary, type SessionSummary } from "../session";
import { Histogram, Legend, Stack } from "../ui/charts";
import { Answered, Loading } from "../ui/states";
import { Table, type Column } from "../ui/table";
import { Completeness, Identity, Insights, Losses, SystemLanes } from "./parts";
import { TimeChart } from "./time-chart";
import { partsOf, timeParts, type TimeUse } from "./time-use";
import "../kernels/kernels.css";
import "./overview.css";

interface Kernel extends KernelSums {
    p99_ns: number | null;
}
interface Kernels {
    count: number;
    total_ns: number;
    kernels: Kernel[];
    histograms?: { kernel_id: number; counts: number[] }[];
    total: number;
}

const KERNELS = 15;

interface PartProps {
    session: string;
    summary: SessionSummary;
    launches: Answer<Launches>; // launches that were not timed
}

function NoTime({ launches }: { launches: Answer<Launches> }): JSX.Element {
    if (launches.isLoading && !launches.data) return <Loading what="launches" />;
    return (
        <p class="dim">
            {launches.data?.count
                ? `Not known: ${launchesWords(launches.data)}; kernel tracing was paused for counters.`
                : "No GPU work was recorded."}
        </p>
    );
}

function Time({ session, summary, launches }: PartProps): JSX.Element {
    const answer = useSession<TimeUse>(session, "time", {}, { version: revisionOf(summary) });
    return (
        <section class="section" aria-label="where the time went">
            <h2>Where the time went</h2>
            <Answered
                answer={answer}
                what="times"
                isEmpty={(data) => data.time.length === 0}
                empty={<NoTime launches={launches} />}
            >
                {(data) => (
                    <>
                        {data.time.map((time, index) => (
                            <div class="section" key={time.device}>
                                {data.time.length > 1 ? <h3>GPU {time.device}</h3> : null}
                                <p>
                                    Busy <b>{format.share(time.busy_ns, data.wall_ns)}</b> of{" "}
                                    {format.time(data.wall_ns)}.
                                </p>
                                <Stack parts={partsOf(time)} label={`wall time of GPU ${time.device}`} />
                                {data.bins[index] && data.wall_ns ? (
                                    <TimeChart
                                        session={session}
                                        bins={data.bins[index]}
                                        binNs={data.bin_ns}
                                        wallNs={data.wall_ns}
                                    />
                                ) : null}
                                <Legend parts={partsOf(time)} />
                            </div>
                        ))}
                        <details class="small dim">
                            <summary>Explanation</summary>
                            <ul>
                                {timeParts.map((part) => (
                                    <li key={part.id}>
                                        <b>{part.title}</b>: {part.about}
                                    </li>
                                ))}
                            </ul>
                        </details>
                    </>
                )}
            </Answered>
        </section>
    );
}

function kernelColumns(session: string, data: Kernels): Column<Kernel>[] {
    const histograms = new Map((data.histograms ?? []).map((histogram) => [histogram.kernel_id, histogram.counts]));
    return [
        ...kernelSumColumns<Kernel>(session),
        { id: "p99_ns", title: "p99", width: 80, value: (row) => row.p99_ns, text: (row) => format.time(row.p99_ns) },
        {
            id: "durations",
            title: "durations",
            width: 88,
            isUnsorted: true,
            value: () => "",
            cell: (row) => (
                <Histogram
                    counts={histograms.get(row.kernel_id) ?? []}
                    label={`durations of ${row.count} executions`}
                />
            ),
        },
    ];
}

function NoKernels({ session, summary, launches }: PartProps): JSX.Element {
    const hasLaunches = (launches.data?.count ?? 0) > 0;
    const ranges = useSession<Ranges>(hasLaunches ? session : null, "ranges", {}, { version: revisionOf(summary) });
    return (
        <Answered
            answer={launches}
            what="launches"
            isEmpty={(data) => data.count === 0}
            empty={<p class="dim">No kernel was recorded.</p>}
        >
            {(data) => <LaunchedTable session={session} launches={data} ranges={ranges.data} isBare />}
        </Answered>
    );
}

function TopKernels({ session, summary, launches }: PartProps): JSX.Element {
    const answer = useSession<Kernels>(
        session,
        "kernels",
        { limit: KERNELS, bins: 20 },
        { version: revisionOf(summary) },
    );
    return (
        <section class="section" aria-label="kernels">
            <div class="section-head">
                <h2>Kernels</h2>
                {answer.data?.count || !launches.data?.count ? null : (
                    <span class="dim small">{launchesWords(launches.data)}</span>
                )}
                {answer.data?.count ? (
                    <span class="dim small">
                        {format.count(answer.data.count)} executions of {format.count(answer.data.total)} kernels,{" "}
                        {format.time(answer.data.total_ns)} added up
                        {launches.data?.count ? `; ${format.count(launches.data.count)} more counted, not timed` : ""}
                    </span>
                ) : null}
                <a class="small" href={href("kernels", {}, session)}>
                    all kernels
                </a>
            </div>
            <Answered
                answer={answer}
                what="kernels"
                isEmpty={(data) => data.kernels.length === 0}
                empty={<NoKernels session={session} summary={summary} launches={launches} />}
            >
                {(data) => <KernelTable session={session} data={data} />}
            </Answered>
        </section>
    );
}

function KernelTable({ session, data }: { session: string; data: Kernels }): JSX.Element {
    const columns = useMemo(() => kernelColumns(session, data), [session, data]);
    const rest = data.kernels.reduce((left, kernel) => left - kernel.total_ns, data.total_ns);
    return (
        <>
            <Stack
                label="time by kernel"
                parts={[
                    ...data.kernels.map((kernel) => ({
                        name: format.middleCut(kernel.name ?? "", 80),
                        value: kernel.total_ns,
                        colour: kernelColour(kernel.name ?? ""),
                        text: `${format.time(kernel.total_ns)} (${format.percent(kernel.share)})`,
                    })),
                    ...(rest > 0 ? [{ name: "all others", value: rest, text: format.time(rest) }] : []),
                ]}
            />
            <Table
                id="k"
                label="top kernels"
                rows={data.kernels}
                columns={columns}
                rowKey={(row) => row.kernel_id}
                href={(row) => href("kernel", { id: row.kernel_id }, session)}
                heightMax="none"
                isBare
            />
        </>
    );
}

export default function OverviewPage(): JSX.Element {
    const session = sessionId.value ?? "";
    const answer = useSummary();
    const version = revisionOf(answer.data);
    const scopes = useSession<Scopes>(session, "scopes", {}, { version });
    const copies = useSession<Copies>(session, "copies", {}, { version });
    const launches = useLaunches(isLoaded(answer.data) ? session : null, version, { limit: KERNELS });
    return (
        <div class="page">
            <Answered answer={answer} what="the session">
                {(summary) => (
                    <>
                        <div class="page-head">
                            <h1>{format.middleCut(summary.catalog.app ?? session, 80)}</h1>
                            <span class="dim">
                                {format.instant(summary.catalog.start_ns)} · {format.time(summary.catalog.wall_ns)}
                                {isLive(summary) ? " · live" : summary.catalog.state === "crashed" ? " · crashed" : ""}
                            </span>
                            <a class="small" href={href("sessions", { pick: session, app: summary.catalog.app })}>
                                compare with another
                            </a>
                        </div>
                        <Completeness summary={summary} untimed={launches.data?.count ?? 0} />
                        <div class="columns">
                            <div>
                                <Time session={session} summary={summary} launches={launches} />
                                <TopKernels session={session} summary={summary} launches={launches} />
                                <section class="section" aria-label="scopes">
                                    <div class="section-head">
                                        <h2>Scopes</h2>
                                        <a class="small" href={href("scopes", {}, session)}>
                                            all scopes
                                        </a>
                                    </div>
                                    <Answered answer={scopes} what="scopes">
                                        {(data) => <ScopeIcicle session={session} scopes={data} isLink />}
                                    </Answered>
                                </section>
                                <section class="section" aria-label="copies">
                                    <div class="section-head">
                                        <h2>Copies</h2>
                                        <a class="small" href={href("memory", {}, session)}>
                                            memory and sync
                                        </a>
                                    </div>
                                    <Answered answer={copies} what="copies">
                                        {(data) => <CopiesTable copies={data} isBare />}
                                    </Answered>
                                </section>
                                <SystemLanes session={session} summary={summary} />
                            </div>
                            <div>
                                <Insights session={session} summary={summary} />
                                <Losses summary={summary} />
                                <section class="section" aria-label="session">
                                    <h2>Session</h2>
                                    <Identity summary={summary} />
                                </section>
                            </div>
                        </div>
                    </>
                )}
            </Answered>
        </div>
    );
}
