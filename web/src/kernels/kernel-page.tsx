// SPDX-License-Identifier: Apache-2.0
// One kernel: durations, launch configurations, and what limits it.
import type { ComponentChildren, JSX } from "preact";
import { useMemo } from "preact/hooks";
import "./kernels.css";
import { kernelColour } from "../colour";
import { traceCommand } from "../commands";
import * as format from "../format";
import { useKeys } from "../keys";
import { type Answer, useSession } from "../query";
import { href, navigate, route, sessionId, useParam } from "../route";
import { isLoaded, revisionOf, useSummary } from "../session";
import { Answered, Command, CopyButton, Empty, Partial } from "../ui/states";
import { type Column, Table } from "../ui/table";
import {
    dimensions,
    type Durations,
    type Histogram,
    type Kernel,
    kernelName,
    type Kernels,
    type LaunchUse,
    type OccupancyAnswer,
    occupancyText,
    type LaunchedKernel,
    type MetricGroup,
    type Ranges,
    sharedBytes,
    type StallsAnswer,
} from "./answers";
import { Calculator } from "./calculator";
import { DurationHistogram, DurationsOverTime } from "./charts";
import { useLaunches } from "./launched";
import { RangeMetrics, RooflinePart } from "./measured";
import { measuresOf, metricColumns, metricText } from "./measures";
import { functionsOf, StallList } from "./stalls";

const launchColumns: Column<LaunchUse>[] = [
    {
        id: "grid",
        title: "grid",
        width: 144,
        value: (use) => use.launch?.grid?.join("x") ?? null,
        text: (use) => dimensions(use.launch?.grid ?? null),
        isKept: true,
    },
    {
        id: "block",
        title: "block",
        width: 112,
        value: (use) => use.launch?.block?.join("x") ?? null,
        text: (use) => dimensions(use.launch?.block ?? null),
        isKept: true,
    },
    { id: "registers", title: "regs", width: 48, value: (use) => use.launch?.num_regs ?? null },
    {
        id: "shared",
        title: "shared",
        width: 72,
        value: (use) => (use.launch ? sharedBytes(use.launch) : null),
        text: (use) => format.bytes(use.launch ? sharedBytes(use.launch) : null),
    },
    {
        id: "occupancy",
        title: "occupancy (limit)",
        width: 140,
        value: (use) => use.launch?.occupancy_bp ?? null,
        text: (use) => occupancyText(use.launch),
    },
    { id: "count", title: "calls", width: 64, value: (use) => use.count, text: (use) => format.count(use.count) },
    {
        id: "mean",
        title: "mean",
        width: 72,
        value: (use) => (use.count ? use.total_ns / use.count : null),
        text: (use) => format.time(use.count ? use.total_ns / use.count : null),
    },
    {
        id: "total",
        title: "total",
        width: 76,
        value: (use) => use.total_ns,
        text: (use) => format.time(use.total_ns),
        isKept: true,
    },
    { id: "share", title: "share", width: 68, value: (use) => use.share, text: (use) => format.percent(use.share) },
];

function Section({
    title,
    about,
    children,
}: {
    title: string;
    about?: ComponentChildren;
    children: ComponentChildren;
}): JSX.Element {
    return (
        <section class="section" aria-label={title}>
            <div class="section-head">
                <h2>{title}</h2>
                {about ? <span class="dim small">{about}</span> : null}
            </div>
            {children}
        </section>
    );
}

function Launches({ answer }: { answer: OccupancyAnswer }): JSX.Element {
    const [chosen, setChosen] = useParam("launch", "0");
    const rows = useMemo(() => answer.launches.map((use, index) => ({ ...use, index })), [answer]);
    return (
        <Section
            title="Launch configurations"
            about={`${format.count(answer.launch_variants)}, most time first; choose one for the calculator`}
        >
            <Table
                id="launches"
                label="launch configurations"
                rows={rows}
                columns={launchColumns}
                rowKey={(row) => row.index}
                heightMax={216}
                isBare={rows.length < 6}
                onRow={(row) => setChosen(String(row.index))}
                isOn={(row) => String(row.index) === chosen}
            />
        </Section>
    );
}

function OccupancySection({ answer }: { answer: OccupancyAnswer }): JSX.Element {
    const [chosen] = useParam("launch", "0");
    const use = answer.launches[Number(chosen)] ?? answer.launches[0];
    const device = answer.devices.find((candidate) => candidate.device === use?.device) ?? null;
    return (
        <Section title="Occupancy" about={device?.name ? `theoretical, on ${device.name}` : "theoretical"}>
            {use ? (
                <Calculator use={use} device={device} />
            ) : (
                <p class="dim">unavailable: no launch configuration was recorded</p>
            )}
        </Section>
    );
}

function StallsSection({
    stalls,
    name,
    session,
}: {
    stalls: Answer<StallsAnswer>;
    name: string | null;
    session: string;
}): JSX.Element {
    const all = stalls.data?.stalls ?? null;
    const found = functionsOf(name, all?.functions ?? []);
    const samples = found.reduce((sum, entry) => sum + entry.samples, 0);
    const kinds: Record<string, number> = {};
    for (const entry of found)
        for (const [kind, count] of Object.entries(entry.kinds)) kinds[kind] = (kinds[kind] ?? 0) + count;
    const first = found[0];
    return (
        <Section title="Stalls" about={samples ? `${format.count(samples)} samples` : undefined}>
            <Answered answer={stalls} what="stalls">
                {() =>
                    first ? (
                        <>
                            <StallList kinds={kinds} samples={samples} known={all?.kinds ?? []} />
                            <a href={href("code", { function: first.function_id, crc: first.cubin_crc }, session)}>
                                by instruction and line
                            </a>
                        </>
                    ) : (
                        <>
                            <p class="dim">
                                {all ? "no sample fell into this kernel" : "not recorded: no engine took PC samples"}
                            </p>
                            <Command text={traceCommand("--engine PcSampling")} />
                        </>
                    )
                }
            </Answered>
        </Section>
    );
}

function Figures({ figures }: { figures: readonly (readonly [string, string])[] }): JSX.Element {
    return (
        <dl class="figures">
            {figures.map(([name, text]) => (
                <div key={name}>
                    <dt>{name}</dt>
                    <dd>{text}</dd>
                </div>
            ))}
        </dl>
    );
}

const FIGURES_MOST = 7;

// Data of a kernel that was launched but not timed.
function launchedFigures(launched: LaunchedKernel, groups: readonly MetricGroup[]): [string, string][] {
    const measures = [...measuresOf(groups).values()];
    const [first] = measures;
    return [
        ["launches, not timed", format.count(launched.count)],
        ["measured", format.count(first?.executions ?? 0)],
        ...metricColumns(measures, FIGURES_MOST).map((metric): [string, string] => [
            metric.title,
            metricText(metric.name, first?.means.get(metric.name) ?? null),
        ]),
    ];
}

function timedFigures(kernel: Kernel, launched: LaunchedKernel | undefined): [string, string][] {
    return [
        ["total", format.time(kernel.total_ns)],
        ["of kernel time", format.percent(kernel.share)],
        ["calls", format.count(kernel.count)],
        ["mean", format.time(kernel.mean_ns)],
        ["median", format.time(kernel.median_ns)],
        ["p90", format.time(kernel.p90_ns)],
        ["p99", format.time(kernel.p99_ns)],
        ["least", format.time(kernel.min_ns)],
        ["largest", format.time(kernel.max_ns)],
        ...(launched ? [["more launches, not timed", format.count(launched.count)] as [string, string]] : []),
    ];
}

function DurationSections(props: {
    histogram: Answer<Histogram>;
    durations: Answer<Durations>;
    startNs: number;
    name: string;
}): JSX.Element {
    const { histogram, durations, startNs, name } = props;
    const colour = kernelColour(name);
    return (
        <>
            <Section
                title="Durations"
                about={
                    histogram.data
                        ? `${format.count(histogram.data.count)} executions${histogram.data.scale === "logarithmic" ? ", logarithmic" : ""}`
                        : undefined
                }
            >
                <Answered answer={histogram} what="durations">
                    {(data) => <DurationHistogram histogram={data} colour={colour} />}
                </Answered>
            </Section>
            <Section title="Over time" about="least to largest, median; a click opens the timeline there">
                <Answered answer={durations} what="durations over time">
                    {(data) => (
                        <DurationsOverTime
                            durations={data}
                            colour={colour}
                            startNs={startNs}
                            onStep={(from, to) =>
                                navigate("timeline", { t: `${from - startNs}~${to - startNs}`, find: name })
                            }
                        />
                    )}
                </Answered>
            </Section>
        </>
    );
}

export default function KernelPage(): JSX.Element {
    const session = sessionId.value ?? "";
    const id = route.value.params.id ?? "";
    const isId = /^\d{1,10}$/.test(id);
    const summary = useSummary();
    const options = { version: revisionOf(summary.data) };
    const path = `kernels/${id}`;
    const about = isId ? session : null;
    const kernels = useSession<Kernels>(about, "kernels", { limit: 1000 }, options);
    const durations = useSession<Durations>(about, `${path}/durations`, { steps: 150 }, options);
    const occupancy = useSession<OccupancyAnswer>(about, `${path}/occupancy`, {}, options);
    const ranges = useSession<Ranges>(about, "ranges", {}, options);
    const stalls = useSession<StallsAnswer>(about, "stalls", {}, options);
    const launches = useLaunches(isLoaded(summary.data) ? about : null, revisionOf(summary.data), { limit: 1000 });
    const launched = launches.data?.kernels.find((candidate) => String(candidate.kernel_id) === id);
    const list = kernels.data?.kernels.length ? kernels.data.kernels : (launches.data?.kernels ?? []);
    const at = list.findIndex((candidate) => String(candidate.kernel_id) === id);
    const kernel = kernels.data?.kernels.find((candidate) => String(candidate.kernel_id) === id);
    const bins = Math.max(12, Math.min(60, Math.round(Math.sqrt(kernel?.count ?? 1600) * 1.5)));
    const histogram = useSession<Histogram>(
        kernels.data || kernels.problem ? about : null,
        `${path}/histogram`,
        { bins },
        options,
    );
    const isUntimed = !kernel && launched !== undefined && histogram.data?.count === 0;
    const rawName = kernel?.name ?? launched?.name ?? histogram.data?.name ?? null;
    const name = kernelName(rawName);
    const colour = kernelColour(name);
    const go = (by: number): void => {
        const next = list[(at + by + list.length) % list.length];
        if (next && at >= 0) navigate("kernel", { id: next.kernel_id });
    };
    useKeys([
        { keys: "]", about: "next kernel by time", group: "Kernel", run: () => go(1) },
        { keys: "[", about: "previous kernel by time", group: "Kernel", run: () => go(-1) },
    ]);
    if (!isId)
        return (
            <div class="page">
                <Empty title="No kernel is chosen.">
                    <a href={href("kernels", {}, session)}>choose one from the list</a>
                </Empty>
            </div>
        );
    const groups = (ranges.data?.metrics ?? []).filter(
        (group) => group.kernel !== undefined && group.kernel !== null && group.kernel === rawName,
    );
    const startNs = summary.data?.session.start_ns ?? durations.data?.from_ns ?? 0;
    return (
        <div class="page">
            <div class="page-head">
                <h1>
                    <i class="swatch" style={{ background: colour }} />
                    {format.middleCut(format.shortName(name), 160)}
                </h1>
                <span class="row">
                    <CopyButton text={name} label="copy name" />
                    <a href={href("kernels", {}, session)}>all kernels</a>
                    <a href={href("timeline", { find: name }, session)}>in the timeline</a>
                </span>
            </div>
            <Partial completeness={summary.data?.completeness} />
            <p class="full-name" tabIndex={0}>
                {name}
            </p>
            {kernel ? <Figures figures={timedFigures(kernel, launched)} /> : null}
            {launched && isUntimed ? <Figures figures={launchedFigures(launched, groups)} /> : null}
            <div class="kernel-columns">
                <div>
                    {isUntimed ? (
                        <Section title="Durations">
                            <p class="dim">not recorded: its launches were not timed</p>
                            <Command text={traceCommand()} />
                        </Section>
                    ) : (
                        <DurationSections
                            histogram={histogram}
                            durations={durations}
                            startNs={startNs}
                            name={name}
                        />
                    )}
                    <Answered answer={occupancy} what="launch configurations">
                        {(data) => (data.launches.length === 0 ? null : <Launches answer={data} />)}
                    </Answered>
                    <Section title="Range metrics">
                        <Answered answer={ranges} what="range metrics">
                            {() => <RangeMetrics groups={groups} />}
                        </Answered>
                    </Section>
                    <Section title="Roofline">
                        <Answered answer={ranges} what="range metrics">
                            {() => (
                                <RooflinePart
                                    groups={groups}
                                    devices={occupancy.data?.devices ?? []}
                                    medianNs={kernel?.median_ns ?? null}
                                    colour={colour}
                                />
                            )}
                        </Answered>
                    </Section>
                </div>
                <div>
                    <Answered answer={occupancy} what="occupancy">
                        {(data) => <OccupancySection answer={data} />}
                    </Answered>
                    <StallsSection stalls={stalls} name={rawName} session={session} />
                </div>
            </div>
        </div>
    );
}
