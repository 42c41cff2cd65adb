// SPDX-License-Identifier: Apache-2.0
// The smaller parts of a session's overview: identity, losses, insights, system metrics.
import type { JSX } from "preact";
import * as format from "../format";
import { useSession } from "../query";
import { href } from "../route";
import { revisionOf, type SessionSummary } from "../session";
import { held, Sparkline } from "../ui/charts";
import { Answered, completenessText, CopyButton } from "../ui/states";
import { Facts } from "../ui/tooltip";
import { insightPlace } from "./time-use";

export function Identity({ summary }: { summary: SessionSummary }): JSX.Element {
    const { session, catalog, gpus } = summary;
    return (
        <Facts
            facts={[
                ["command", session.command ? <code>{session.command}</code> : format.UNAVAILABLE],
                [
                    "host",
                    catalog.host ? (
                        <a href={href("sessions", { host: catalog.host })}>{catalog.host}</a>
                    ) : (
                        format.UNAVAILABLE
                    ),
                ],
                ["process", session.pid === null ? format.UNAVAILABLE : String(session.pid)],
                [
                    "GPUs",
                    gpus.length === 0
                        ? format.UNAVAILABLE
                        : gpus
                              .map(
                                  (gpu) =>
                                      `${gpu.device}: ${gpu.name ?? "GPU"} (${gpu.multiprocessors ?? "?"} SMs, ${gpu.compute_capability ?? "?"})`,
                              )
                              .join("; "),
                ],
                ["started", format.instant(catalog.start_ns)],
                ["wall time", format.time(catalog.wall_ns)],
                [
                    "engine",
                    session.engine === session.requested_engine || !session.requested_engine
                        ? (session.engine ?? format.UNAVAILABLE)
                        : `${session.engine ?? "none"} (asked for ${session.requested_engine})`,
                ],
                [
                    "driver, CUDA",
                    `${session.driver_version ?? format.UNAVAILABLE}, ${session.cuda_version ?? format.UNAVAILABLE}`,
                ],
                ["recorded by", `gpufl ${session.gpufl_version ?? format.UNAVAILABLE}`],
                [
                    "id",
                    <span class="row">
                        <code>{session.id}</code>
                        <CopyButton text={session.id} title="copy the session's id" />
                    </span>,
                ],
                ["tags", catalog.tags.length > 0 ? catalog.tags.join(" ") : "none"],
            ]}
        />
    );
}

function recordedWords(kernels: number, untimed: number): string {
    if (untimed === 0) return `${format.count(kernels)} kernels`;
    if (kernels === 0) return `${format.plural(untimed, "kernel")} counted, not timed`;
    return `${format.count(kernels)} kernels, ${format.count(untimed)} more counted, not timed`;
}

// How much longer the program took because it was recorded.
export function slowdownText(overhead: SessionSummary["overhead"]): string {
    const slowdown = overhead?.slowdown ?? null;
    if (slowdown === null) return "the slowdown is not known";
    if (slowdown.fraction < 0.001) return "the program was slowed down by less than 0.1 %";
    const about = slowdown.is_least ? "at least" : "about";
    return slowdown.fraction < 2
        ? `the program was slowed down by ${about} ${format.percent(slowdown.fraction)}`
        : `the program was slowed down by a factor of ${about} ${(slowdown.fraction + 1).toFixed(slowdown.fraction < 9 ? 1 : 0)}`;
}

// Completeness and recording overhead: always one line.
export function Completeness({ summary, untimed }: { summary: SessionSummary; untimed: number }): JSX.Element {
    const { completeness, overhead } = summary;
    const missing = completenessText(completeness);
    const cost = slowdownText(overhead);
    return (
        <div class={missing === "" ? "notice is-calm" : completeness.lost > 0 ? "notice is-red" : "notice"}>
            {completeness.is_live ? "Still being recorded: " : missing === "" ? "Complete: " : "Not complete: "}
            {missing === "" ? `${recordedWords(completeness.kernels, untimed)}, nothing lost` : missing}; {cost}.
        </div>
    );
}

export function Losses({ summary }: { summary: SessionSummary }): JSX.Element | null {
    const { losses } = summary.completeness;
    const refused = summary.capabilities.filter(
        (capability) => capability.requested && capability.status !== "collected",
    );
    if (losses.length === 0 && refused.length === 0) return null;
    return (
        <section class="section" aria-label="losses">
            <h2>Not recorded</h2>
            <ul class="list">
                {losses.map((loss, index) => (
                    <li key={index}>
                        <span class="red">
                            {loss.count_is_exact ? "" : "at least "}
                            {format.count(loss.count)}
                        </span>{" "}
                        {loss.record_type ?? "events"}: {loss.message ?? loss.reason.replaceAll("_", " ")}
                        {loss.cause ? `; first cause: ${loss.cause}` : ""}
                    </li>
                ))}
                {refused.map((capability) => (
                    <li key={capability.feature}>
                        <b>{capability.feature.replaceAll("_", " ")}</b> <span class="dim">{capability.status}</span>
                        {capability.message ? `: ${capability.message}` : ""}
                    </li>
                ))}
            </ul>
        </section>
    );
}

interface Insight {
    rule: string;
    severity: string;
    impact_ns: number | null;
    text: string;
}

export function Insights({ session, summary }: { session: string; summary: SessionSummary }): JSX.Element {
    const answer = useSession<{ insights: Insight[] }>(session, "insights", {}, { version: revisionOf(summary) });
    return (
        <section class="section" aria-label="insights">
            <h2>What to try</h2>
            <Answered
                answer={answer}
                what="insights"
                isEmpty={(data) => data.insights.length === 0}
                empty={<p class="dim">Nothing stands out in what was recorded.</p>}
            >
                {(data) => (
                    <ol class="list">
                        {data.insights.map((insight, index) => {
                            const place = insightPlace(insight.rule);
                            return (
                                <li key={index} class={`insight is-${insight.severity}`}>
                                    <p>{insight.text}</p>
                                    <a href={href(place.page, {}, session)}>{place.words}</a>
                                </li>
                            );
                        })}
                    </ol>
                )}
            </Answered>
        </section>
    );
}

interface Series {
    metric: string;
    device: number;
    min?: (number | null)[];
    mean?: (number | null)[];
    max?: (number | null)[];
}
interface Metrics {
    from_ns: number;
    to_ns: number;
    step_ns: number;
    series: Series[];
}

interface LaneInfo {
    metric: string;
    title: string;
    text: (value: number) => string;
    max?: number;
}
export const lanes: readonly LaneInfo[] = [
    { metric: "gpu_util", title: "GPU utilization", text: (value) => `${format.digits(value)} %`, max: 100 },
    { metric: "sm_active_bp", title: "SMs active", text: (value) => format.percent(value / 1e4), max: 10_000 },
    { metric: "dram_active_bp", title: "DRAM active", text: (value) => format.percent(value / 1e4), max: 10_000 },
    { metric: "used_mib", title: "memory used", text: (value) => format.bytes(value * 2 ** 20) },
    { metric: "power_mw", title: "power", text: (value) => format.quantity(value / 1000, "W") },
    { metric: "clock_sm", title: "core clock", text: (value) => format.quantity(value, "MHz") },
    { metric: "temp_c", title: "temperature", text: (value) => format.quantity(value, "°C") },
    { metric: "cpu_pct_x100", title: "host CPU", text: (value) => `${format.digits(value / 100)} %` },
];

const STEPS = 120;
const GAP_STEPS = 3;
const known = (values: readonly (number | null)[] | undefined): number[] =>
    (values ?? []).filter((value): value is number => value !== null);

export function SystemLanes({ session, summary }: { session: string; summary: SessionSummary }): JSX.Element {
    const wallNs = summary.catalog.wall_ns;
    const step = wallNs ? Math.max(1, Math.ceil(wallNs / STEPS)) : null;
    const answer = useSession<Metrics>(
        wallNs ? session : null,
        "metrics",
        { step_ns: step },
        { version: revisionOf(summary) },
    );
    return (
        <section class="section" aria-label="system">
            <div class="section-head">
                <h2>System</h2>
                <span class="dim small">mean of each step; least and largest of the run</span>
            </div>
            <Answered
                answer={answer}
                what="metrics"
                isEmpty={(data) => data.series.length === 0}
                empty={<p class="dim">No system metrics were sampled.</p>}
            >
                {(data) => (
                    <div class="lanes">
                        {lanes.flatMap((lane) =>
                            data.series
                                .filter((series) => series.metric === lane.metric && known(series.mean).length > 0)
                                .map((series) => {
                                    const mean = known(series.mean);
                                    const average = mean.reduce((sum, value) => sum + value, 0) / mean.length;
                                    return (
                                        <div class="lane" key={`${lane.metric} ${series.device}`}>
                                            <span>
                                                {lane.title}
                                                {data.series.filter((other) => other.metric === lane.metric).length >
                                                1 ? (
                                                    <span class="dim"> GPU {series.device}</span>
                                                ) : null}
                                            </span>
                                            <Sparkline
                                                values={held(series.mean ?? [], GAP_STEPS)}
                                                min={0}
                                                {...(lane.max === undefined ? {} : { max: lane.max })}
                                                width={320}
                                                label={`${lane.title} over time, mean ${lane.text(average)}`}
                                            />
                                            <span class="dim small nowrap">
                                                {lane.text(Math.min(...known(series.min)))} …{" "}
                                                <b>{lane.text(average)}</b> …{" "}
                                                {lane.text(Math.max(...known(series.max)))}
                                            </span>
                                        </div>
                                    );
                                }),
                        )}
                    </div>
                )}
            </Answered>
        </section>
    );
}
