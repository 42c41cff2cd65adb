// SPDX-License-Identifier: Apache-2.0
// Compares two sessions: kernels and scopes that became slower or faster, appeared or disappeared, with their share of
// the change.
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import "../kernels/kernels.css";
import "./compare.css";
import { diffCommand } from "../commands";
import * as format from "../format";
import { NameCell } from "../kernels/name-cell";
import { useAnswer } from "../query";
import { href, route, setParams, useParam } from "../route";
import type { SessionEntry } from "../session";
import { Answered, Empty } from "../ui/states";
import { type Column, Table } from "../ui/table";
import {
    type ComparedRow,
    type ComparedSession,
    type Comparison,
    changeOf,
    countByVerdict,
    kernelChange,
    missingTimes,
    refusalOf,
    rowName,
    spreadOf,
    type Verdict,
} from "./answers";
import { RowDetail } from "./detail";
import { signedTime } from "./text";

const verdicts: readonly Verdict[] = ["slower", "faster", "new", "vanished", "same"];

function verdictClass(row: ComparedRow): string {
    return row.is_regression ? "red" : row.verdict === "slower" ? "amber" : row.verdict === "same" ? "dim" : "";
}

// To the right: slower. Its length is the row's share of all changes.
function ChangeBar({ share, isRegression }: { share: number | null; isRegression: boolean }): JSX.Element {
    const size = Math.min(1, Math.abs(share ?? 0)) * 50;
    const style = (share ?? 0) < 0 ? { right: "50%", width: `${size}%` } : { left: "50%", width: `${size}%` };
    return (
        <span class="change-bar" aria-hidden="true">
            <i class={isRegression ? "is-regression" : ""} style={style} />
        </span>
    );
}

function columnsOf(isScope: boolean): Column<ComparedRow>[] {
    return [
        {
            id: "name",
            title: isScope ? "scope" : "kernel",
            value: rowName,
            isKept: true,
            cell: (row) =>
                isScope ? (
                    <span title={rowName(row)}>{format.middleCut(rowName(row), 80)}</span>
                ) : (
                    <NameCell name={rowName(row)} shown={rowName(row).replace(/^void\s+/, "")} />
                ),
        },
        {
            id: "verdict",
            title: "verdict",
            width: 88,
            isKept: true,
            value: (row) => row.verdict,
            cell: (row) => (
                <span class={verdictClass(row)}>{row.is_regression ? `${row.verdict} !` : row.verdict}</span>
            ),
        },
        {
            id: "change",
            title: "median",
            about: "how the median changed",
            width: 88,
            isKept: true,
            value: changeOf,
            text: (row) => (changeOf(row) === null ? "–" : format.signedPercent(changeOf(row))),
            isRight: true,
        },
        {
            id: "base",
            title: "before",
            about: "median of the first session",
            width: 80,
            value: (row) => row.base?.median_ns ?? null,
            text: (row) => format.time(row.base?.median_ns, "–"),
            isRight: true,
        },
        {
            id: "new",
            title: "after",
            about: "median of the second session",
            width: 80,
            value: (row) => row.new?.median_ns ?? null,
            text: (row) => format.time(row.new?.median_ns, "–"),
            isRight: true,
        },
        {
            id: "spread",
            title: "spread",
            about: "interquartile range by the median, before and after",
            width: 148,
            value: (row) => spreadOf(row.new) ?? spreadOf(row.base),
            text: (row) => `${format.percent(spreadOf(row.base), "–")} → ${format.percent(spreadOf(row.new), "–")}`,
            isRight: true,
        },
        {
            id: "count",
            title: "calls",
            width: 136,
            value: (row) => row.new?.count ?? 0,
            text: (row) => {
                const [before, after] = [row.base?.count ?? 0, row.new?.count ?? 0];
                return before === after ? format.count(before) : `${format.count(before)} → ${format.count(after)}`;
            },
        },
        {
            id: "total",
            title: "total",
            about: "how the total time changed",
            width: 96,
            value: (row) => row.change_ns,
            text: (row) => signedTime(row.change_ns),
        },
        {
            id: "share",
            title: "share of change",
            about: "of the sum of all changes without their signs",
            width: 152,
            value: (row) => row.share_of_change,
            text: (row) => format.percent(row.share_of_change),
            cell: (row) => (
                <span class="share-cell">
                    <ChangeBar share={row.share_of_change} isRegression={row.is_regression} />
                    {format.percent(row.share_of_change === null ? null : Math.abs(row.share_of_change))}
                </span>
            ),
        },
    ];
}

const kernelColumns = columnsOf(false);
const scopeColumns = columnsOf(true);

function Rows(props: {
    id: string;
    title: string;
    rows: readonly ComparedRow[];
    isScope: boolean;
    missing: string; // why they are not compared; "": they are
    chosen: string;
    onChoose: (name: string) => void;
}): JSX.Element {
    const [verdict, setVerdict] = useParam(`${props.id}.verdict`);
    const counts = useMemo(() => countByVerdict(props.rows), [props.rows]);
    const rows = useMemo(
        () => (verdict === "" ? props.rows : props.rows.filter((row) => row.verdict === verdict)),
        [props.rows, verdict],
    );
    return (
        <section class="section" aria-label={props.title}>
            <div class="section-head">
                <h2>{props.title}</h2>
                <span class="row">
                    {verdicts
                        .filter((each) => counts[each] > 0)
                        .map((each) => (
                            <button
                                type="button"
                                key={each}
                                class={verdict === each ? "is-on" : ""}
                                aria-pressed={verdict === each}
                                onClick={() => setVerdict(verdict === each ? "" : each)}
                            >
                                {format.count(counts[each])} {each}
                            </button>
                        ))}
                </span>
            </div>
            <Table
                id={props.id}
                label={`compared ${props.title.toLowerCase()}`}
                rows={rows}
                columns={props.isScope ? scopeColumns : kernelColumns}
                rowKey={rowName}
                heightMax={400}
                onRow={(row) => props.onChoose(rowName(row))}
                isOn={(row) => rowName(row) === props.chosen}
                empty={props.missing === "" ? "none recorded in either session" : `not compared; ${props.missing}`}
            />
        </section>
    );
}

function SessionFacts({
    session,
    other,
    title,
}: {
    session: ComparedSession;
    other: ComparedSession | null;
    title: string;
}): JSX.Element {
    const figure = (name: string, value: number | null, before: number | null | undefined): JSX.Element => (
        <div key={name}>
            <dt>{name}</dt>
            <dd>
                {format.time(value)}
                {other && value !== null && before ? (
                    <span class="dim small"> {format.signedPercent(value / before - 1)}</span>
                ) : null}
            </dd>
        </div>
    );
    return (
        <div class="side-facts">
            <p>
                <span class="dim">{title}</span>{" "}
                <a href={href("overview", {}, session.session_id)}>
                    {format.middleCut(session.app ?? session.session_id, 40)} of {format.instant(session.start_ns)}
                </a>
                <span class="dim"> on {session.host ?? "an unknown host"}</span>
            </p>
            <dl class="figures">
                {figure("wall time", session.wall_ns, other?.wall_ns)}
                {figure("GPU busy", session.busy_ns, other?.busy_ns)}
                {figure("kernel time", session.kernel_ns, other?.kernel_ns)}
                <div>
                    <dt>kernels</dt>
                    <dd>{format.count(session.kernels)}</dd>
                </div>
            </dl>
            {session.is_complete ? null : (
                <p class="amber small">
                    not complete
                    {session.lost
                        ? `: ${session.lost_is_exact ? "" : "at least "}${format.count(session.lost)} events were not recorded`
                        : ""}
                </p>
            )}
        </div>
    );
}

function Judgement({ data }: { data: Comparison }): JSX.Element {
    const threshold = format.percent(data.threshold);
    const change = kernelChange(data.base, data.new);
    if (data.regressions === null)
        return (
            <p data-testid="judgement">
                <b class="amber">No verdict</b>{" "}
                <span class="dim">{refusalOf(data)}</span>
            </p>
        );
    return (
        <p data-testid="judgement">
            {data.regressions > 0 ? (
                <b class="red">
                    {format.count(data.regressions)} {data.regressions === 1 ? "regression" : "regressions"}
                </b>
            ) : (
                <b>No regression</b>
            )}{" "}
            <span class="dim">
                beyond {threshold} and beyond the noise;{" "}
                {change === null
                    ? `scopes alone were judged; ${missingTimes(data.base, data.new)}`
                    : `kernel time changed by ${signedTime(change.ns)} (${format.signedPercent(change.fraction)})`}
                {data.is_total_regression ? ", which is one of them" : ""}
            </span>
        </p>
    );
}

function sessionLabel(session: SessionEntry): string {
    const parts = [session.app ?? session.id, format.instant(session.start_ns), session.host ?? "unknown host"];
    return [...parts, `${format.count(session.kernels)} kernels`].join(" · ");
}

function Chooser({
    name,
    title,
    sessions,
}: {
    name: "a" | "b";
    title: string;
    sessions: readonly SessionEntry[];
}): JSX.Element {
    const value = route.value.params[name] ?? "";
    const isListed = sessions.some((session) => session.id === value);
    return (
        <label class="chooser">
            <span class="dim">{title}</span>
            <select
                value={value}
                onChange={(event) => setParams({ [name]: event.currentTarget.value, kernel: null, scope: null })}
            >
                <option value="">choose a session</option>
                {value !== "" && !isListed ? <option value={value}>{value}</option> : null}
                {sessions.map((session) => (
                    <option key={session.id} value={session.id}>
                        {format.middleCut(sessionLabel(session), 110)}
                    </option>
                ))}
            </select>
        </label>
    );
}

export default function ComparePage(): JSX.Element {
    const { a = "", b = "", kernel = "", scope = "" } = route.value.params;
    const [threshold, setThreshold] = useParam("threshold", "5");
    const sessions = useAnswer<{ sessions: SessionEntry[] }>("sessions", { limit: 200 });
    const hasBoth = a !== "" && b !== "";
    const comparison = useAnswer<Comparison>(hasBoth ? "compare" : null, {
        base: a,
        new: b,
        threshold_percent: threshold,
    });
    const list = sessions.data?.sessions ?? [];
    const chosenRow =
        kernel !== ""
            ? comparison.data?.kernels.find((row) => rowName(row) === kernel)
            : comparison.data?.scopes.find((row) => rowName(row) === scope);
    return (
        <div class="page">
            <div class="page-head">
                <h1>Compare</h1>
            </div>
            <div class="choosers">
                <Chooser name="a" title="before" sessions={list} />
                <Chooser name="b" title="after" sessions={list} />
                <button type="button" disabled={!hasBoth} onClick={() => setParams({ a: b, b: a })}>
                    swap
                </button>
                <label class="row">
                    <span class="dim">ignore changes below</span>
                    <input
                        class="threshold"
                        type="number"
                        min={0}
                        max={1000}
                        value={threshold}
                        onChange={(event) =>
                            setThreshold(
                                String(
                                    Math.max(0, Math.min(10000, Math.round(event.currentTarget.valueAsNumber || 0))),
                                ),
                            )
                        }
                    />
                    <span class="dim">%</span>
                </label>
            </div>
            {hasBoth ? (
                <Answered answer={comparison} what="the comparison">
                    {(data) => (
                        <>
                            <div class="sides">
                                <SessionFacts session={data.base} other={null} title="before" />
                                <SessionFacts session={data.new} other={data.base} title="after" />
                            </div>
                            <Judgement data={data} />
                            <Rows
                                id="kernels"
                                title="Kernels"
                                rows={data.kernels}
                                isScope={false}
                                missing={missingTimes(data.base, data.new)}
                                chosen={kernel}
                                onChoose={(name) => setParams({ kernel: name === kernel ? null : name, scope: null })}
                            />
                            {kernel !== "" && chosenRow ? (
                                <RowDetail row={chosenRow} a={a} b={b} app={data.new.app} isScope={false} />
                            ) : null}
                            <Rows
                                id="scopes"
                                title="Scopes"
                                rows={data.scopes}
                                isScope={true}
                                missing=""
                                chosen={scope}
                                onChoose={(path) => setParams({ scope: path === scope ? null : path, kernel: null })}
                            />
                            {scope !== "" && chosenRow ? (
                                <RowDetail row={chosenRow} a={a} b={b} app={data.new.app} isScope={true} />
                            ) : null}
                        </>
                    )}
                </Answered>
            ) : (
                <Empty
                    title="Choose two sessions, or tick two in the list of sessions."
                    command={diffCommand()}
                >
                    <a href={href("sessions")}>sessions</a>
                </Empty>
            )}
        </div>
    );
}
