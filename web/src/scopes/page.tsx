// SPDX-License-Identifier: Apache-2.0
// Scopes: icicle chart, tree with self, total and GPU time, iterations of benchmark scopes, and the kernels in one
// scope.
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { scopeColour } from "../colour";
import * as format from "../format";
import type { Ranges } from "../kernels/answers";
import { kernelSumColumns, type KernelSums } from "../kernels/columns";
import { LaunchedTable, launchesWords, useLaunches } from "../kernels/launched";
import { MetricTable } from "../kernels/measured";
import { useSession } from "../query";
import { sessionId, setParams, useParam } from "../route";
import { revisionOf, useSummary } from "../session";
import { Bar } from "../ui/charts";
import { Answered, Partial } from "../ui/states";
import { Table, type Column } from "../ui/table";
import { ScopeIcicle } from "./icicle";
import { measureOf, pathShown, rowsOf, unfolded, type ScopeRow, type Scopes } from "./tree";
import "../kernels/kernels.css";

const INDENT_PX = 16;

function foldToggle(folded: ReadonlySet<string>, path: string): string {
    const next = new Set(folded);
    if (!next.delete(path)) next.add(path);
    return [...next].map(encodeURIComponent).join(",");
}

const gpuShare = (row: ScopeRow, wholeNs: number | null): number | null =>
    row.gpu_ns !== null && wholeNs !== null && wholeNs > 0 ? row.gpu_ns / wholeNs : null;

// wholeNs null: GPU time is unknown and has no columns.
function treeColumns(
    rows: readonly ScopeRow[],
    wholeNs: number | null,
    folded: ReadonlySet<string>,
): Column<ScopeRow>[] {
    const hasChildren = new Set(
        rows.filter((row, index) => (rows[index + 1]?.depth ?? 0) > row.depth).map((row) => row.path),
    );
    const columns: Column<ScopeRow>[] = [
        {
            id: "path",
            title: "scope",
            isKept: true,
            isUnsorted: false,
            value: (row) => row.path,
            cell: (row) => (
                <span style={{ paddingLeft: `${row.depth * INDENT_PX}px` }}>
                    <button
                        type="button"
                        class="plain fold-mark"
                        aria-expanded={!folded.has(row.path)}
                        disabled={!hasChildren.has(row.path)}
                        aria-label={`fold ${row.name}`}
                        onClick={() => setParams({ fold: foldToggle(folded, row.path) })}
                    >
                        {hasChildren.has(row.path) ? (folded.has(row.path) ? "▸" : "▾") : "·"}
                    </button>
                    <i class="swatch" style={{ background: scopeColour(row.name) }} />
                    {format.middleCut(row.name, 80)}
                </span>
            ),
        },
        {
            id: "wall_ns",
            title: "wall",
            width: 88,
            isKept: true,
            about: "wall time of all calls",
            value: (row) => row.wall_ns,
            text: (row) => format.time(row.wall_ns),
        },
        {
            id: "self_ns",
            title: "self",
            width: 80,
            about: "wall time outside nested scopes",
            value: (row) => row.self_ns,
            text: (row) => format.time(row.self_ns),
        },
        {
            id: "gpu_ns",
            title: "GPU",
            width: 88,
            isKept: true,
            about: "time of the kernels launched inside",
            value: (row) => row.gpu_ns,
            text: (row) => format.time(row.gpu_ns),
        },
        {
            id: "gpu_self_ns",
            title: "GPU self",
            width: 88,
            value: (row) => row.gpu_self_ns,
            text: (row) => format.time(row.gpu_self_ns),
        },
        {
            id: "gpu_share",
            title: "share of GPU",
            width: 112,
            isUnsorted: true,
            value: (row) => gpuShare(row, wholeNs),
            cell: (row) => (
                <Bar
                    value={gpuShare(row, wholeNs)}
                    label={`${format.share(row.gpu_ns, wholeNs)} of all GPU time`}
                />
            ),
        },
        { id: "calls", title: "calls", width: 72, value: (row) => row.calls, text: (row) => format.count(row.calls) },
        {
            id: "per_call_ns",
            title: "per call",
            width: 80,
            value: (row) => (row.calls > 0 ? row.wall_ns / row.calls : null),
            text: (row) => format.time(row.calls > 0 ? row.wall_ns / row.calls : null),
        },
        {
            id: "kernels",
            title: "kernels",
            width: 80,
            isKept: wholeNs === null,
            about: "kernels that were launched inside, timed or not",
            value: (row) => row.kernels + row.untimed_launches,
            text: (row) => format.count(row.kernels + row.untimed_launches),
        },
        {
            id: "sync_ns",
            title: "waited",
            width: 80,
            about: "the program waited for the GPU inside",
            value: (row) => row.sync_ns,
            text: (row) => format.time(row.sync_ns),
        },
        {
            id: "per_iteration_ns",
            title: "per iteration",
            width: 104,
            about: "of benchmark scopes: mean wall time of the repeats, without warm-up",
            value: (row) => row.per_iteration_ns,
            text: (row) => (row.repeat > 0 ? `${format.time(row.per_iteration_ns)}` : ""),
        },
        {
            id: "gpu_per_iteration_ns",
            title: "GPU per iteration",
            width: 120,
            value: (row) => row.gpu_per_iteration_ns,
            text: (row) =>
                row.repeat > 0 ? `${format.time(row.gpu_per_iteration_ns)} of ${format.count(row.repeat)}` : "",
        },
    ];
    return wholeNs === null ? columns.filter((column) => !column.id.startsWith("gpu_")) : columns;
}

function KernelsInside({ session, scope, version }: { session: string; scope: string; version: number }): JSX.Element {
    const answer = useSession<{ kernels: KernelSums[]; total: number; total_ns: number; count: number }>(
        session,
        "kernels",
        { scope, limit: 200 },
        { version },
    );
    const launches = useLaunches(session, version, { scope, limit: 200 });
    const untimed = launches.data?.count ? launches.data : null;
    const columns = useMemo(() => kernelSumColumns(session), [session]);
    return (
        <section class="section" aria-label="kernels inside">
            <div class="section-head">
                <h2>Kernels inside {format.middleCut(scope, 60)}</h2>
                {answer.data && (answer.data.count > 0 || !untimed) ? (
                    <span class="dim small">
                        {format.plural(answer.data.count, "execution")}, {format.time(answer.data.total_ns)}
                    </span>
                ) : null}
                {untimed ? <span class="dim small">{launchesWords(untimed)}</span> : null}
                <button type="button" onClick={() => setParams({ scope: null })}>
                    all scopes
                </button>
            </div>
            <Answered
                answer={answer}
                what="kernels"
                isEmpty={(data) => data.kernels.length === 0}
                empty={
                    launches.isLoading || untimed ? null : <p class="dim">No kernel was launched in this scope.</p>
                }
            >
                {(data) => (
                    <Table
                        id="k"
                        label="kernels inside"
                        rows={data.kernels}
                        columns={columns}
                        rowKey={(row) => row.kernel_id}
                        sort={{ id: "total_ns", isDescending: true }}
                        heightMax={400}
                    />
                )}
            </Answered>
            {untimed ? (
                <LaunchedTable session={session} launches={untimed} ranges={null} heightMax={400} isBare />
            ) : null}
        </section>
    );
}

// Counters measured for a scope, or why there are none; nothing if no scope was measured.
function ScopeMetrics({ session, scope, version }: { session: string; scope: string; version: number }): JSX.Element {
    const answer = useSession<Ranges>(session, "ranges", {}, { version });
    const all = (answer.data?.metrics ?? []).filter((group) => typeof group.scope === "string");
    if (answer.data && all.length === 0) return <></>;
    const groups = all.filter((group) => pathShown(group.scope ?? "") === scope);
    return (
        <section class="section" aria-label="metrics of the scope">
            <h2>Metrics of {format.middleCut(scope, 60)}</h2>
            <Answered
                answer={answer}
                what="range metrics"
                isEmpty={() => groups.length === 0}
                empty={<p class="dim">not recorded: the range profiler did not measure this scope</p>}
            >
                {() =>
                    groups.map((group) => (
                        <MetricTable
                            key={`${group.device}/${group.metric_set}`}
                            group={group}
                            words={
                                format.plural(group.results - group.incomplete, "result") +
                                (group.instances === null ? "" : ` of ${format.plural(group.instances, "call")}`)
                            }
                        />
                    ))
                }
            </Answered>
        </section>
    );
}

function Tree({ session, data, version }: { session: string; data: Scopes; version: number }): JSX.Element {
    const [scope] = useParam("scope");
    const [foldText] = useParam("fold");
    const [wanted] = useParam("by", "wall");
    const measure = measureOf(data, wanted);
    const hasGpuTime = data.outside_scopes.gpu_ns !== null;
    const rows = useMemo(() => rowsOf(data.scopes), [data]);
    const folded = useMemo(
        () =>
            new Set(
                foldText
                    .split(",")
                    .filter((part) => part !== "")
                    .map((part) => decodeURIComponent(part)),
            ),
        [foldText],
    );
    const wholeNs = useMemo(
        () =>
            rows.reduce<number | null>(
                (sum, row) => (row.depth > 0 || sum === null || row.gpu_ns === null ? sum : sum + row.gpu_ns),
                data.outside_scopes.gpu_ns,
            ),
        [rows, data],
    );
    const hasIterations = rows.some((row) => row.repeat > 0);
    const columns = useMemo(
        () =>
            treeColumns(rows, wholeNs, folded).filter(
                (column) => hasIterations || !column.id.includes("per_iteration"),
            ),
        [rows, wholeNs, folded, hasIterations],
    );
    const seen = useMemo(() => unfolded(rows, folded), [rows, folded]);
    return (
        <>
            <div class="row" role="group" aria-label="width of the icicle">
                {(["wall", "gpu"] as const).map((word) => (
                    <button
                        type="button"
                        key={word}
                        class={measure === word ? "is-on" : ""}
                        aria-pressed={measure === word}
                        disabled={word === "gpu" && !hasGpuTime}
                        onClick={() => setParams({ by: word === "wall" ? null : word })}
                    >
                        {word === "wall" ? "wall time" : "GPU time"}
                    </button>
                ))}
                <span class="dim small">
                    outside of scopes:{" "}
                    {format.plural(data.outside_scopes.kernels + data.outside_scopes.untimed_launches, "kernel")},{" "}
                    {hasGpuTime
                        ? `${format.time(data.outside_scopes.gpu_ns)} of GPU time`
                        : "counted, not timed: GPU time is not known"}
                </span>
            </div>
            <ScopeIcicle session={session} scopes={data} />
            {rows.length === 0 ? null : (
                <Table
                    id="t"
                    label="scopes"
                    rows={seen}
                    columns={columns}
                    rowKey={(row) => row.index}
                    onRow={(row) => setParams({ scope: row.path === scope ? null : row.path })}
                    isOn={(row) => row.path === scope}
                    heightMax="50vh"
                />
            )}
            {scope === "" ? (
                <p class="dim">Click a scope to see its kernels.</p>
            ) : (
                <>
                    <ScopeMetrics session={session} scope={scope} version={version} />
                    <KernelsInside session={session} scope={scope} version={version} />
                </>
            )}
        </>
    );
}

export default function ScopesPage(): JSX.Element {
    const session = sessionId.value ?? "";
    const summary = useSummary();
    const version = revisionOf(summary.data);
    const answer = useSession<Scopes>(session, "scopes", {}, { version });
    return (
        <div class="page">
            <div class="page-head">
                <h1>Scopes</h1>
                {answer.data ? <span class="dim">{format.count(answer.data.scopes.length)}</span> : null}
            </div>
            <Partial completeness={summary.data?.completeness} />
            <Answered answer={answer} what="scopes">
                {(data) => <Tree session={session} data={data} version={version} />}
            </Answered>
        </div>
    );
}
