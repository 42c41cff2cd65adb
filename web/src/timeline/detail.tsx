// SPDX-License-Identifier: Apache-2.0
// The panel beside the rows: the selected event, or the marked range.
import type { ComponentChildren, JSX } from "preact";
import { kernelColour } from "../colour";
import * as format from "../format";
import { useSession } from "../query";
import { href } from "../route";
import { Bar } from "../ui/charts";
import { CopyButton, Failed, Loading } from "../ui/states";
import { Facts } from "../ui/tooltip";
import { rangeParams, type EventAnswer, type EventText, type Launch, type RangeAnswer } from "./event";
import { plainText, shownName } from "./labels";
import type { TimelineModel } from "./model";
import type { TrackKind } from "./tile";
import { spanOf, tickLabel, type View } from "./time";

type Fact = readonly [string, ComponentChildren];

const NOT_RECORDED = "not recorded";
const known = (value: number | string | null | undefined, text: (value: number) => string): string =>
    typeof value === "number" ? text(value) : NOT_RECORDED;
const dimensions = (size: readonly number[] | null): string => (size ? size.join(" × ") : NOT_RECORDED);

function launchFacts(launch: Launch | null | undefined): Fact[] {
    if (!launch) return [["launch", NOT_RECORDED]];
    const shared =
        launch.static_shared_bytes === null && launch.dyn_shared_bytes === null
            ? null
            : (launch.static_shared_bytes ?? 0) + (launch.dyn_shared_bytes ?? 0);
    return [
        ["grid", dimensions(launch.grid)],
        ["block", dimensions(launch.block)],
        ...(launch.cluster ? [["cluster", dimensions(launch.cluster)] as const] : []),
        ...(launch.sgprs === null
            ? [["registers", known(launch.num_regs, (value) => `${format.count(value)} a thread`)] as const]
            : [
                  ["VGPRs", known(launch.num_regs, (value) => `${format.count(value)} a work-item`)] as const,
                  ["SGPRs", `${format.count(launch.sgprs)} a wave`] as const,
              ]),
        ["shared memory", known(shared, (value) => `${format.bytes(value)} a block`)],
        [
            "occupancy",
            known(launch.occupancy_bp, (value) => format.percent(value / 10000)) +
                (launch.limiter ? ` (${launch.limiter})` : ""),
        ],
    ];
}

/** From the end of the API call to the start on the GPU; work may start before the call returns. */
export function queueDelay(event: EventText, offset: (wall: number | bigint) => number): number | null {
    if (event.api_start_ns == null || event.api_duration_ns == null) return null;
    return offset(event.start_ns) - offset(event.api_start_ns) - event.api_duration_ns;
}

function hostFacts(model: TimelineModel, event: EventText): Fact[] {
    const facts: Fact[] = [];
    if (event.api_start_ns !== undefined) {
        const delay = queueDelay(event, (wall) => model.base.offset(wall));
        facts.push(
            [
                "API call",
                event.api_start_ns === null ? NOT_RECORDED : tickLabel(model.base.offset(event.api_start_ns), 1),
            ],
            ["call took", known(event.api_duration_ns, format.time)],
            [
                "queue delay",
                delay === null
                    ? NOT_RECORDED
                    : delay >= 0
                      ? format.time(delay)
                      : `started ${format.time(-delay)} before the call returned`,
            ],
        );
    }
    if (event.thread_id !== undefined) facts.push(["thread", event.thread_id ?? NOT_RECORDED]);
    if (event.correlation_id !== undefined) facts.push(["correlation", event.correlation_id]);
    return facts;
}

function otherFacts(event: EventText): Fact[] {
    const facts: Fact[] = [];
    if (event.bytes !== undefined) {
        facts.push(["bytes", `${format.bytes(event.bytes)} (${format.count(event.bytes)})`]);
        if (event.duration_ns) facts.push(["throughput", format.rate((event.bytes / event.duration_ns) * 1e9)]);
    }
    if (event.copy_kind !== undefined)
        facts.push(
            ["from, to", `${event.src_kind ?? NOT_RECORDED}, ${event.dst_kind ?? NOT_RECORDED}`],
            ["asynchronous", event.is_async == null ? NOT_RECORDED : event.is_async ? "yes" : "no"],
        );
    if (event.node_count !== undefined) facts.push(["nodes", event.node_count ?? NOT_RECORDED]);
    if (event.busy_ns !== undefined) facts.push(["busy", format.time(event.busy_ns, NOT_RECORDED)]);
    if (event.graph_id != null) facts.push(["graph", event.graph_id]);
    if (event.source) facts.push(["source", event.source]);
    if (event.tag) facts.push(["tag", plainText(event.tag)]);
    if (event.repeat != null) facts.push(["iterations", format.count(event.repeat)]);
    return facts;
}

/** Outermost first; below each frame its source line. */
function Stack({ frames, source }: { frames: string[]; source: readonly (string | null)[] }): JSX.Element {
    return (
        <ol class="stack">
            {frames.map((frame, index) => {
                const line = source[index]?.trim();
                return (
                    <li key={index}>
                        <code>{plainText(frame)}</code>
                        {line ? <code class="dim">{plainText(line)}</code> : null}
                    </li>
                );
            })}
        </ol>
    );
}

function EventFacts({ model, answer }: { model: TimelineModel; answer: EventAnswer }): JSX.Element {
    const { event, track } = answer,
        isKernel = track.kind === "kernels" || track.kind === "launches";
    const times: Fact[] = [
        ["start", tickLabel(model.base.offset(event.start_ns), 1)],
        [
            "duration",
            event.duration_ns === null
                ? "never closed"
                : `${format.time(event.duration_ns)} (${format.count(event.duration_ns)} ns)`,
        ],
    ];
    if (event.device !== undefined)
        times.push(["GPU, stream", `${event.device ?? "unknown"}, ${event.stream_id ?? "unknown"}`]);
    return (
        <>
            <Facts
                facts={[
                    ...times,
                    ...hostFacts(model, event),
                    ...(isKernel ? launchFacts(event.launch) : []),
                    ...otherFacts(event),
                ]}
            />
            {event.scope === undefined || track.kind === "scopes" ? null : (
                <section>
                    <h3>Scope</h3>
                    {event.scope ? (
                        <a href={href("scopes", { scope: shownName("scopes", event.scope) }, model.session)}>
                            {shownName("scopes", event.scope)}
                        </a>
                    ) : (
                        <span class="dim">
                            {model.isExact.value ? "outside all scopes" : "known once the whole session is loaded"}
                        </span>
                    )}
                </section>
            )}
            {event.stack === undefined ? null : (
                <section>
                    <h3>Stack</h3>
                    {event.stack ? (
                        <Stack frames={event.stack.split("|")} source={answer.stack_source ?? []} />
                    ) : (
                        <span class="dim">{NOT_RECORDED}; enable_stack_trace records it</span>
                    )}
                </section>
            )}
        </>
    );
}

const titles: Readonly<Record<TrackKind, string>> = {
    kernels: "Kernel",
    copies: "Copy",
    memsets: "Memset",
    graphs: "Graph launch",
    scopes: "Scope",
    syncs: "Wait",
    launches: "Launch call",
};

export function EventPanel({ model }: { model: TimelineModel }): JSX.Element | null {
    const selection = model.selection.value,
        answer = model.detail.value,
        problem = model.detailProblem.value;
    if (!selection) return null;
    const name = answer?.name ?? (answer ? model.names.text(selection.kind, selection.name) : "");
    const isKernel = selection.kind === "kernels" || selection.kind === "launches";
    return (
        <aside class="tl-panel" aria-label="selected event">
            <div class="tl-panel-head">
                <h2 class="grow">{titles[selection.kind]}</h2>
                {selection.kind === "kernels" ? (
                    <>
                        <button
                            type="button"
                            title="previous execution ([)"
                            aria-label="previous execution"
                            disabled={model.isStepping.value}
                            onClick={() => void model.step(false)}
                        >
                            [
                        </button>
                        <button
                            type="button"
                            title="next execution (])"
                            aria-label="next execution"
                            disabled={model.isStepping.value}
                            onClick={() => void model.step(true)}
                        >
                            ]
                        </button>
                    </>
                ) : null}
                <button type="button" title="unselect (Esc)" onClick={() => model.select(null)}>
                    close
                </button>
            </div>
            {problem ? <Failed problem={problem} /> : null}
            {answer && answer.track.id === selection.track ? (
                <>
                    <div class="tl-name" tabIndex={0}>
                        {isKernel ? <i class="swatch" style={{ background: kernelColour(name) }} /> : null}
                        {shownName(selection.kind, name)}
                    </div>
                    <div class="row">
                        <CopyButton text={name} label="copy name" />
                        {isKernel ? (
                            <a href={href("kernel", { id: selection.name }, model.session)}>all executions</a>
                        ) : null}
                    </div>
                    <EventFacts model={model} answer={answer} />
                </>
            ) : problem ? null : (
                <Loading />
            )}
        </aside>
    );
}

interface KernelsAnswer {
    count: number;
    total_ns: number;
    kernels: { name: string | null; kernel_id: number; count: number; total_ns: number }[];
}

export function energyText(microjoules: number | null, coveredNs: number, rangeNs: number): string {
    if (microjoules === null) return `${NOT_RECORDED} (no power sample)`;
    const joules = microjoules / 1e6;
    const text =
        joules >= 1000
            ? `${format.digits(joules / 1000)} kJ`
            : joules >= 1
              ? `${format.digits(joules)} J`
              : `${format.digits(joules * 1000)} mJ`;
    return coveredNs < rangeNs * 0.99 ? `${text} in the ${format.percent(coveredNs / rangeNs)} between samples` : text;
}

export function RangePanel({ model, range }: { model: TimelineModel; range: View }): JSX.Element {
    const params = rangeParams(model.base, range),
        length = spanOf(range);
    const sums = useSession<RangeAnswer>(model.session, "timeline/range", params);
    const kernels = useSession<KernelsAnswer>(model.session, "kernels", { ...params, limit: 8 });
    const problem = sums.problem ?? kernels.problem;
    return (
        <aside class="tl-panel" aria-label="marked range">
            <div class="tl-panel-head">
                <h2 class="grow">Range of {format.time(length)}</h2>
                <button type="button" title="zoom to the range (f)" onClick={() => model.fit()}>
                    fit
                </button>
                <button type="button" title="remove the mark (Esc)" onClick={() => (model.range.value = null)}>
                    close
                </button>
            </div>
            <Facts
                facts={[
                    ["from", tickLabel(range.from, 1)],
                    ["to", tickLabel(range.to, 1)],
                ]}
            />
            {problem ? <Failed problem={problem} reload={() => (sums.reload(), kernels.reload())} /> : null}
            {sums.data ? (
                <RangeFacts answer={sums.data} length={length} />
            ) : sums.isLoading ? (
                <Loading what="sums" />
            ) : null}
            {kernels.data ? (
                <section class="section">
                    <h3>Kernels that start here</h3>
                    <div class="dim small">
                        {format.count(kernels.data.count)} executions, {format.time(kernels.data.total_ns)}
                    </div>
                    {kernels.data.kernels.map((kernel) => (
                        <div class="tl-bar-row" key={kernel.kernel_id}>
                            <a
                                class="cut"
                                href={href("kernel", { id: kernel.kernel_id }, model.session)}
                                title={plainText(kernel.name ?? "")}
                            >
                                <i class="swatch" style={{ background: kernelColour(kernel.name ?? "") }} />
                                {format.middleCut(plainText(format.shortName(kernel.name ?? "name not recorded")), 40)}
                            </a>
                            <span>
                                {format.time(kernel.total_ns)} · {format.countShort(kernel.count)}×
                            </span>
                            <Bar
                                value={kernels.data!.total_ns > 0 ? kernel.total_ns / kernels.data!.total_ns : null}
                                label="share of kernel time"
                                colour={kernelColour(kernel.name ?? "")}
                            />
                        </div>
                    ))}
                </section>
            ) : null}
        </aside>
    );
}

function RangeFacts({ answer, length }: { answer: RangeAnswer; length: number }): JSX.Element {
    return (
        <>
            {answer.devices.map((device) => (
                <section key={device.device ?? -1} class="section">
                    <h3>GPU {device.device ?? "unknown"}</h3>
                    <Facts
                        facts={[
                            ["busy", `${format.share(device.busy_ns, length)} (${format.time(device.busy_ns)})`],
                            ["kernels", format.count(device.kernels)],
                            ["copies, memsets", `${format.count(device.copies)}, ${format.count(device.memsets)}`],
                            ["energy", energyText(device.energy_uj, device.energy_covered_ns, length)],
                        ]}
                    />
                </section>
            ))}
            <Facts
                facts={[
                    ["host waited", format.time(answer.sync_ns)],
                    ...answer.copies.map((copy): Fact => [
                        `${copy.copy_kind ?? "other"} copies`,
                        `${format.bytes(copy.bytes)} in ${format.time(copy.total_ns)}, ${format.count(copy.calls)}×`,
                    ]),
                ]}
            />
        </>
    );
}
