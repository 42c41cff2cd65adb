// SPDX-License-Identifier: Apache-2.0
// The fleet: the current state and the last hour of every GPU, problems first, and the sessions that use them.
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { watchCommand } from "../commands";
import * as format from "../format";
import { liveSubscribe, type LiveGpu } from "../live";
import { useAnswer } from "../query";
import { href, route, setParams, useParam } from "../route";
import type { SessionEntry } from "../session";
import { Bar, held, Sparkline } from "../ui/charts";
import { Answered, Empty } from "../ui/states";
import { Facts, tip } from "../ui/tooltip";
import {
    gpuLabel,
    gpuProblems,
    hostsInOrder,
    isBusy,
    isFresh,
    hasFreshSample,
    lastSampleNs,
    metricsPath,
    problemsOf,
    rangeSeconds,
    ranges,
    stepsOf,
    stretchOf,
    sumOf,
    usersOf,
    withLive,
    type Gpu,
    type Host,
    type HostMetrics,
    type Hosts,
    type Problem,
    type Sample,
} from "./fleet";
import { History } from "./history";
import "./fleet.css";

const EVERY_MS = 10_000;
const SPARK_STEPS = 60;

// The latest current event of each GPU of each session.
function useLiveGpus(): readonly LiveGpu[] {
    const [live, setLive] = useState<readonly LiveGpu[]>([]);
    useEffect(() => {
        const latest = new Map<string, LiveGpu>();
        let timer = 0;
        const stop = liveSubscribe("gpu", (event) => {
            latest.set(`${event.session_id}/${event.device_id}`, event);
            timer ||= window.setTimeout(() => {
                timer = 0;
                for (const [key, { ts_ns }] of latest)
                    if (!isFresh({ sample_ns: ts_ns }, Date.now())) latest.delete(key);
                setLive([...latest.values()]);
            }, 250);
        });
        return () => {
            stop();
            window.clearTimeout(timer);
        };
    }, []);
    return live;
}

function GpuTip({ gpu, problems }: { gpu: Gpu; problems: readonly Problem[] }): JSX.Element {
    const now = gpu.metrics;
    const value = (name: string): number | null => now?.[name] ?? null;
    // Metrics that only some vendors provide have a line only if they are present.
    const where = (name: string, words: string, unit: string): [string, string][] =>
        value(name) === null ? [] : [[words, format.quantity(value(name), unit)]];
    return (
        <>
            <b>{gpu.name ?? "GPU"}</b> <span class="dim">{gpu.uuid}</span>
            <Facts
                facts={[
                    ["utilization", format.quantity(value("gpu_util"), "%")],
                    [
                        "memory",
                        `${format.bytes(value("used_mib") === null ? null : (value("used_mib") ?? 0) * 2 ** 20)} of ${format.bytes(value("total_mib") === null ? null : (value("total_mib") ?? 0) * 2 ** 20)}`,
                    ],
                    [
                        "power",
                        `${format.quantity(value("power_mw") === null ? null : (value("power_mw") ?? 0) / 1000, "W")} of ${format.quantity(value("power_limit_mw") === null ? null : (value("power_limit_mw") ?? 0) / 1000, "W")}`,
                    ],
                    ["temperature", format.quantity(value("temp_c"), "°C")],
                    ...where("temp_junction_c", "junction", "°C"),
                    ...where("fan_rpm", "fan", "rpm"),
                    ["core clock", format.quantity(value("clock_sm"), "MHz")],
                    [
                        "ECC errors",
                        `${format.count(value("ecc_corrected"))} corrected, ${format.count(value("ecc_uncorrected"))} not`,
                    ],
                    ["sampled", format.ago(now?.sample_ns ?? null)],
                ]}
            />
            {problems.map((problem) => (
                <p key={problem.text} class={problem.severity === 2 ? "red" : "amber"}>
                    {problem.text}
                </p>
            ))}
        </>
    );
}

function GpuCell({
    host,
    gpu,
    seconds,
    isOn,
}: {
    host: Host;
    gpu: Gpu;
    seconds: number;
    isOn: boolean;
}): JSX.Element {
    const nowMs = Date.now();
    const stretch = stretchOf(gpu.metrics, seconds, nowMs);
    const answer = useAnswer<HostMetrics>(metricsPath(host.host), {
        gpu: gpu.uuid,
        metric: "gpu_util",
        from_ns: stretch.fromNs,
        to_ns: stretch.toNs,
    });
    const problems = gpuProblems(host.host, gpu);
    const worst = problems.reduce((most, problem) => Math.max(most, problem.severity), 0);
    const fresh = isFresh(gpu.metrics, nowMs);
    const util = gpu.metrics?.["gpu_util"] ?? null;
    const values = useMemo(() => {
        const data = answer.data;
        if (!data) return [];
        const step = Math.max(data.step_ns, (data.to_ns - data.from_ns) / SPARK_STEPS);
        return held(stepsOf(data.series[0]?.points ?? [], data.from_ns, data.to_ns, step), 2);
    }, [answer.data]);
    return (
        <button
            type="button"
            class={`gpu-cell${isOn ? " is-on" : ""}${fresh ? "" : " is-old"}`}
            {...tip(<GpuTip gpu={gpu} problems={fresh ? problems : []} />, false)}
            onClick={() =>
                setParams(isOn ? { host: null, gpu: null } : { host: host.host, gpu: gpu.uuid, from: null, to: null }, false)
            }
            aria-pressed={isOn}
        >
            <span class="dim nowrap">{gpuLabel(host, gpu)}</span>
            <Sparkline values={values} min={0} max={100} label={`utilization of GPU ${gpu.device} over the range`} />
            <span class={`nowrap ${fresh && worst === 2 ? "red" : fresh && worst === 1 ? "amber" : ""}`}>
                {util === null ? "–" : `${util} %`}
            </span>
        </button>
    );
}

// The machine's CPU and memory, if a monitor samples them.
function HostLoad({ metrics }: { metrics: Sample | null }): JSX.Element | null {
    if (!isFresh(metrics, Date.now())) return null;
    const [cpu, used, total] = ["cpu_pct_x100", "ram_used_mib", "ram_total_mib"].map((name) => metrics?.[name] ?? null);
    return (
        <span class="dim small">
            <span class="nowrap">CPU {format.quantity(cpu == null ? null : cpu / 100, "%")}</span>
            {" · "}
            <span class="nowrap">
                RAM {format.share(used, total)} of {format.bytes(total == null ? null : total * 2 ** 20)}
            </span>
        </span>
    );
}

function HostRow({
    host,
    sessions,
    seconds,
    chosen,
}: {
    host: Host;
    sessions: readonly SessionEntry[];
    seconds: number;
    chosen: string;
}): JSX.Element {
    const nowMs = Date.now();
    const [used, total, power] = (["used_mib", "total_mib", "power_mw"] as const).map((name) =>
        sumOf(host, name, nowMs),
    ) as [number | null, number | null, number | null];
    const users = [
        ...new Map(
            host.gpus.flatMap((gpu) => usersOf(host.host, gpu, sessions)).map((session) => [session.id, session]),
        ).values(),
    ];
    const isLive = hasFreshSample(host, nowMs);
    return (
        <div class="host" role="group" aria-label={host.host}>
            <div class="host-name">
                <a href={href("sessions", { host: host.host })}>{format.middleCut(host.host, 40)}</a>
                {isLive ? (
                    <HostLoad metrics={host.metrics} />
                ) : (
                    <span class="amber small">last sample {format.ago(lastSampleNs(host) ?? host.last_seen_ns)}</span>
                )}
            </div>
            <div class="host-gpus">
                {host.gpus.map((gpu) => (
                    <GpuCell key={gpu.uuid} host={host} gpu={gpu} seconds={seconds} isOn={chosen === gpu.uuid} />
                ))}
                {host.gpus.length === 0 ? <span class="dim">no GPU was seen</span> : null}
            </div>
            <div class="host-facts small" hidden={host.gpus.length === 0}>
                <span>
                    memory{" "}
                    <Bar
                        value={used !== null && total ? used / total : 0}
                        label={`GPU memory used: ${format.share(used, total)}`}
                    />{" "}
                    {format.bytes(used === null ? null : used * 2 ** 20)}
                </span>
                <span>power {format.quantity(power === null ? null : power / 1000, "W")}</span>
                <span class="cut">
                    {users.length === 0 ? <span class="dim">nobody</span> : null}
                    {users.slice(0, 3).map((session, index) => [
                        index > 0 ? ", " : "",
                        <a key={session.id} href={href("overview", {}, session.id)}>
                            {format.middleCut(session.app ?? session.id, 32)}
                        </a>,
                        session.state === "live" ? (
                            ""
                        ) : (
                            <span class="dim" key={`${session.id} state`}>
                                {" "}
                                ({session.state})
                            </span>
                        ),
                    ])}
                    {users.length > 3 ? ` and ${users.length - 3} more` : null}
                </span>
            </div>
        </div>
    );
}

function Fleet({
    data,
    live,
    sessions,
}: {
    data: Hosts;
    live: readonly LiveGpu[];
    sessions: readonly SessionEntry[];
}): JSX.Element {
    const nowMs = Date.now();
    const [range] = useParam("range", "1h");
    const { host: chosenHost, gpu: chosenGpu = "" } = route.value.params;
    const hosts = useMemo(() => withLive(data.hosts, live, sessions), [data, live, sessions]);
    const problems = problemsOf(hosts, nowMs);
    const gpus = hosts.flatMap((host) => host.gpus);
    const chosen = hosts.find((host) => host.host === chosenHost)?.gpus.find((gpu) => gpu.uuid === chosenGpu);
    return (
        <>
            <div class="row">
                <span class="grow">
                    {format.plural(hosts.length, "host")} · {format.plural(gpus.length, "GPU")} ·{" "}
                    {format.count(gpus.filter((gpu) => isBusy(gpu, nowMs)).length)} busy ·{" "}
                    {problems.length > 0 ? (
                        <span class="amber">
                            {format.count(new Set(problems.map((problem) => problem.gpu?.uuid)).size)} need a look
                        </span>
                    ) : (
                        "no problems"
                    )}
                </span>
                <select
                    aria-label="range of time"
                    value={range}
                    onChange={(event) =>
                        setParams({
                            range: event.currentTarget.value === "1h" ? null : event.currentTarget.value,
                            from: null,
                            to: null,
                        })
                    }
                >
                    {ranges.map(([id, words]) => (
                        <option key={id} value={id}>
                            {words}
                        </option>
                    ))}
                </select>
            </div>
            {problems.length > 0 ? (
                <ul class="problems" aria-label="problems">
                    {problems.slice(0, 20).map((problem) => (
                        <li
                            key={`${problem.host} ${problem.gpu?.uuid} ${problem.text}`}
                            class={problem.severity === 2 ? "red" : "amber"}
                        >
                            <a href={href("fleet", { host: problem.host, gpu: problem.gpu?.uuid ?? null, range })}>
                                ! {problem.host} GPU {problem.gpu?.device}
                            </a>{" "}
                            {problem.text}
                        </li>
                    ))}
                </ul>
            ) : null}
            <div class="hosts">
                {hostsInOrder(hosts, problems, nowMs).map((host) => [
                    <HostRow
                        key={host.host}
                        host={host}
                        sessions={sessions}
                        seconds={rangeSeconds(range)}
                        chosen={host.host === chosenHost ? chosenGpu : ""}
                    />,
                    chosen && host.host === chosenHost ? (
                        <History key={`${host.host} history`} host={chosenHost} gpu={chosen} />
                    ) : null,
                ])}
            </div>
        </>
    );
}

export default function FleetPage(): JSX.Element {
    const live = useLiveGpus();
    const answer = useAnswer<Hosts>("hosts", {}, { everyMs: EVERY_MS });
    const sessions = useAnswer<{ sessions: SessionEntry[] }>("sessions", { limit: 500 }, { everyMs: EVERY_MS });
    return (
        <div class="page">
            <div class="page-head">
                <h1>Fleet</h1>
            </div>
            <Answered
                answer={answer}
                what="hosts"
                isEmpty={(data) => data.hosts.length === 0}
                empty={
                    <Empty
                        title="No host has sent anything yet. On each machine with GPUs:"
                        command={watchCommand()}
                    />
                }
            >
                {(data) => <Fleet data={data} live={live} sessions={sessions.data?.sessions ?? []} />}
            </Answered>
        </div>
    );
}
