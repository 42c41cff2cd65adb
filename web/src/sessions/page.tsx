// SPDX-License-Identifier: Apache-2.0
// All sessions: find one, compare two, see how an application changes over weeks.
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { traceCommand } from "../commands";
import * as format from "../format";
import { liveSubscribe } from "../live";
import { useAnswer } from "../query";
import { href, route, setParams, useParam } from "../route";
import type { SessionEntry } from "../session";
import { Answered, Empty } from "../ui/states";
import { Table, type Column } from "../ui/table";
import {
    choicesOf,
    engineName,
    isUntimed,
    filterNames,
    gpuNames,
    listFetch,
    listParams,
    pickToggle,
    sinceChoices,
    type FilterName,
    type Filters,
    type SessionList,
} from "./list";
import { RunPicture } from "./picture";
import { Trend } from "./trend";

// Increments when the server reports changed sessions, at most once per second.
function useSessionChanges(): number {
    const [version, setVersion] = useState(0);
    useEffect(() => {
        let timer = 0;
        let lastMs = 0;
        const stop = liveSubscribe("session", () => {
            timer ||= window.setTimeout(
                () => {
                    timer = 0;
                    lastMs = Date.now();
                    setVersion((count) => count + 1);
                },
                Math.max(0, lastMs + 1000 - Date.now()),
            );
        });
        return () => {
            stop();
            window.clearTimeout(timer);
        };
    }, []);
    return version;
}

export function StateWord({ session }: { session: SessionEntry }): JSX.Element {
    if (session.state === "live")
        return (
            <span class="live is-live">
                <i class="dot" />
                live
            </span>
        );
    if (session.state === "complete" && (session.missing_rows ?? 0) > 0)
        return (
            <span class="red" title={`${format.count(session.missing_rows)} rows have not arrived`}>
                incomplete
            </span>
        );
    return <span class={session.state === "crashed" ? "red" : "dim"}>{session.state}</span>;
}

function columnsMake(picked: readonly string[], onPick: (id: string) => void): Column<SessionEntry>[] {
    return [
        {
            id: "pick",
            title: "",
            about: "compare two",
            width: 32,
            isUnsorted: true,
            value: () => "",
            cell: (row) => (
                <input
                    type="checkbox"
                    aria-label={`pick ${row.app ?? row.id} for comparison`}
                    checked={picked.includes(row.id)}
                    onChange={() => onPick(row.id)}
                />
            ),
        },
        {
            id: "app",
            title: "app",
            isKept: true,
            value: (row) => row.app ?? row.id,
            cell: (row) => (
                <>
                    <a href={href("overview", {}, row.id)} title={row.id}>
                        {format.middleCut(row.app ?? row.id, 60)}
                    </a>
                    {row.tags.length > 0 ? <span class="dim small"> {row.tags.join(" ")}</span> : null}
                </>
            ),
        },
        {
            id: "picture",
            title: "GPU busy",
            about: "how busy the GPUs were, from start to end",
            width: 136,
            isUnsorted: true,
            value: () => "",
            cell: (row) => <RunPicture session={row} />,
        },
        {
            id: "start_ns",
            title: "start",
            width: 160,
            value: (row) => row.start_ns,
            text: (row) => format.instant(row.start_ns),
            isRight: false,
        },
        {
            id: "wall_ns",
            title: "wall time",
            width: 80,
            isKept: true,
            value: (row) => row.wall_ns,
            text: (row) => format.time(row.wall_ns),
        },
        {
            id: "kernels",
            title: "kernels",
            width: 80,
            value: (row) => (isUntimed(row) ? null : row.kernels),
            text: (row) => (isUntimed(row) ? "not timed" : format.count(row.kernels)),
        },
        {
            id: "kernel_ns",
            title: "GPU time",
            about: "sum of the kernels' durations",
            width: 88,
            value: (row) => (isUntimed(row) ? null : row.kernel_ns),
            text: (row) => (isUntimed(row) ? "not timed" : format.time(row.kernel_ns)),
        },
        { id: "host", title: "host", width: 80, value: (row) => row.host },
        { id: "gpus", title: "GPUs", width: 112, value: (row) => gpuNames(row) || null },
        { id: "engine", title: "engine", width: 88, value: (row) => engineName(row.engine) || null },
        {
            id: "state",
            title: "state",
            width: 80,
            isKept: true,
            value: (row) => row.state,
            cell: (row) => <StateWord session={row} />,
        },
        {
            id: "lost",
            title: "lost",
            about: "events that are known not to be recorded",
            width: 64,
            value: (row) => row.lost,
            cell: (row) =>
                row.lost > 0 ? (
                    <span class="red">{`${row.lost_is_exact ? "" : "≥ "}${format.countShort(row.lost)}`}</span>
                ) : row.lost_is_exact ? (
                    "0"
                ) : (
                    "–"
                ),
        },
        { id: "bytes", title: "size", width: 76, value: (row) => row.bytes, text: (row) => format.bytes(row.bytes) },
    ];
}

function Choice({
    name,
    title,
    choices,
    value,
}: {
    name: FilterName;
    title: string;
    choices: readonly (readonly [string, string])[];
    value: string;
}): JSX.Element {
    const known = choices.some(([word]) => word === value) ? choices : [...choices, [value, value] as const];
    return (
        <select aria-label={title} value={value} onChange={(event) => setParams({ [name]: event.currentTarget.value })}>
            {known.map(([word, text]) => (
                <option key={word} value={word}>
                    {text}
                </option>
            ))}
        </select>
    );
}

function FilterBar({ filters, sessions }: { filters: Filters; sessions: readonly SessionEntry[] }): JSX.Element {
    const list = (title: string, read: (session: SessionEntry) => (string | null)[]): [string, string][] => [
        ["", title],
        ...choicesOf(sessions, read).map((word): [string, string] => [word, format.middleCut(word, 32)]),
    ];
    const hasFilter = filterNames.some((name) => filters[name] !== "");
    return (
        <div class="row" role="search" aria-label="sessions">
            <input
                type="search"
                placeholder="find a session"
                aria-label="find a session"
                value={filters.q}
                onInput={(event) => setParams({ q: event.currentTarget.value })}
            />
            <Choice
                name="app"
                title="every app"
                value={filters.app}
                choices={list("every app", (session) => [session.app])}
            />
            <Choice
                name="host"
                title="every host"
                value={filters.host}
                choices={list("every host", (session) => [session.host])}
            />
            <Choice
                name="gpu"
                title="every GPU"
                value={filters.gpu}
                choices={[
                    ["", "every GPU"],
                    ...new Map(
                        sessions.flatMap((session) =>
                            session.gpus.map(
                                (gpu) =>
                                    [
                                        gpu.uuid ?? "",
                                        `${gpu.name ?? "GPU"} ${format.middleCut(gpu.uuid ?? "", 14)}`,
                                    ] as const,
                            ),
                        ),
                    ).entries(),
                ]}
            />
            <Choice
                name="engine"
                title="every engine"
                value={filters.engine}
                choices={[
                    ["", "every engine"],
                    ...choicesOf(sessions, (session) => [session.engine]).map((word): [string, string] => [
                        word,
                        engineName(word),
                    ]),
                ]}
            />
            <Choice
                name="state"
                title="every state"
                value={filters.state}
                choices={[
                    ["", "every state"],
                    ["live", "live"],
                    ["complete", "complete"],
                    ["crashed", "crashed"],
                ]}
            />
            <Choice
                name="tag"
                title="every tag"
                value={filters.tag}
                choices={list("every tag", (session) => session.tags)}
            />
            <Choice name="since" title="time" value={filters.since} choices={sinceChoices} />
            {hasFilter ? (
                <button
                    type="button"
                    onClick={() => setParams(Object.fromEntries(filterNames.map((name) => [name, null])))}
                >
                    clear
                </button>
            ) : null}
        </div>
    );
}

function Picked({
    picked,
    sessions,
}: {
    picked: readonly string[];
    sessions: readonly SessionEntry[];
}): JSX.Element | null {
    const [base, other] = picked;
    if (base === undefined) return <span class="dim small is-wide-only">Tick two sessions to compare them.</span>;
    const name = (id: string): string => {
        const session = sessions.find((candidate) => candidate.id === id);
        return session ? `${session.app ?? id} of ${format.instant(session.start_ns)}` : id;
    };
    return (
        <span class="row small is-wide-only">
            {other === undefined ? (
                <span>{name(base)}: tick the one to compare it with.</span>
            ) : (
                <a href={href("compare", { a: base, b: other })}>
                    Compare {name(base)} with {name(other)}
                </a>
            )}
            <button type="button" onClick={() => setParams({ pick: null })}>
                clear
            </button>
        </span>
    );
}

export default function SessionsPage(): JSX.Element {
    const params = route.value.params;
    const filters = Object.fromEntries(filterNames.map((name) => [name, params[name] ?? ""])) as Filters;
    const version = useSessionChanges();
    const answer = useAnswer<SessionList>("sessions", listParams(filters, Date.now()), { fetch: listFetch, version });
    const hasFilter = filterNames.some((name) => filters[name] !== "");
    const everything = useAnswer<SessionList>(hasFilter ? "sessions" : null, {}, { fetch: listFetch });
    const [pickText] = useParam("pick");
    const picked = useMemo(() => pickText.split(",").filter((id) => id !== ""), [pickText]);
    const columns = useMemo(
        () => columnsMake(picked, (id) => setParams({ pick: pickToggle(picked, id).join(",") })),
        [picked],
    );
    const known = everything.data?.sessions ?? answer.data?.sessions ?? [];
    return (
        <div class="page">
            <div class="page-head">
                <h1>Sessions</h1>
                {answer.data ? (
                    <span class="dim">
                        {format.count(answer.data.sessions.length)}
                        {answer.data.isCut ? " newest" : ""} ·{" "}
                        {format.count(answer.data.sessions.filter((session) => session.state === "live").length)} live
                    </span>
                ) : null}
            </div>
            <FilterBar filters={filters} sessions={known} />
            <Answered
                answer={answer}
                what="sessions"
                isEmpty={(data) => data.sessions.length === 0}
                empty={
                    hasFilter ? (
                        <Empty title="No session matches." />
                    ) : (
                        <Empty
                            title="No session has been sent here yet. Record a program and send it:"
                            command={traceCommand()}
                        />
                    )
                }
            >
                {(data) => (
                    <>
                        <Table
                            id="s"
                            label="sessions"
                            rows={data.sessions}
                            columns={columns}
                            rowKey={(row) => row.id}
                            sort={{ id: "start_ns", isDescending: true }}
                            href={(row) => href("overview", {}, row.id)}
                            isOn={(row) => picked.includes(row.id)}
                            tools={<Picked picked={picked} sessions={known} />}
                        />
                        <Trend sessions={data.sessions} app={filters.app} />
                    </>
                )}
            </Answered>
        </div>
    );
}
