// SPDX-License-Identifier: Apache-2.0
// One value of an application, a scope or a kernel over its sessions.
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import * as format from "../format";
import { getJson } from "../api";
import { sessionPath, useAnswer } from "../query";
import { href, navigateTo, setParams, useParam } from "../route";
import type { SessionEntry } from "../session";
import { Points, type Point } from "../ui/points";
import { Answered } from "../ui/states";

interface Measure {
    id: string;
    title: string;
    read: (session: SessionEntry) => number | null;
    text: (value: number | null) => string;
}
const measures: readonly Measure[] = [
    { id: "wall", title: "wall time", read: (session) => session.wall_ns, text: (value) => format.time(value) },
    { id: "kernel", title: "kernel time", read: (session) => session.kernel_ns, text: (value) => format.time(value) },
    { id: "kernels", title: "kernels", read: (session) => session.kernels, text: (value) => format.count(value) },
    {
        id: "share",
        title: "kernel time by wall time",
        read: (session) => (session.wall_ns ? session.kernel_ns / session.wall_ns : null),
        text: (value) => format.percent(value),
    },
    { id: "lost", title: "lost events", read: (session) => session.lost, text: (value) => format.count(value) },
];

const SESSIONS_MAX = 60; // of a scope's or kernel's trend: each needs a request

export function pointsOf(
    sessions: readonly SessionEntry[],
    values: (session: SessionEntry) => number | null,
    text: (value: number | null) => string,
): Point[] {
    return sessions
        .filter((session) => session.start_ns !== null)
        .map((session) => ({
            key: session.id,
            x: Number(session.start_ns) / 1e6,
            y: values(session),
            label: `${format.instant(session.start_ns)}: ${text(values(session))}`,
        }))
        .sort((a, b) => a.x - b.x);
}

type ByName = Record<string, number | null>;

// GPU time per call of a scope, or median of a kernel, for each session by its id.
async function partFetch(
    sessions: readonly SessionEntry[],
    kind: string,
    name: string,
    signal: AbortSignal,
): Promise<ByName> {
    const found: ByName = {};
    for (const session of sessions.slice(0, SESSIONS_MAX)) {
        if (kind === "scope") {
            const answer = await getJson<{ scopes: { path: string; calls: number; wall_ns: number }[] }>(
                sessionPath(session.id, "scopes"),
                {},
                signal,
            );
            const scope = answer.scopes.find((candidate) => candidate.path === name);
            found[session.id] = scope && scope.calls > 0 ? scope.wall_ns / scope.calls : null;
        } else {
            const answer = await getJson<{ kernels: { name: string; median_ns: number }[] }>(
                sessionPath(session.id, "kernels"),
                { q: name, limit: 100 },
                signal,
            );
            const exact = answer.kernels.find((candidate) => candidate.name === name) ?? answer.kernels[0];
            found[session.id] = exact?.median_ns ?? null;
        }
    }
    return found;
}

function PartTrend({
    sessions,
    kind,
    name,
}: {
    sessions: readonly SessionEntry[];
    kind: string;
    name: string;
}): JSX.Element {
    const ids = sessions.map((session) => session.id).join(",");
    const answer = useAnswer<ByName>(
        `trend/${kind}`,
        { name, ids },
        { fetch: (_path, _params, signal) => partFetch(sessions, kind, name, signal) },
    );
    return (
        <Answered answer={answer} what={`the trend of ${name}`}>
            {(values) => (
                <Points
                    points={pointsOf(
                        sessions.slice(0, SESSIONS_MAX),
                        (session) => values[session.id] ?? null,
                        (value) => format.time(value, "not in this session"),
                    )}
                    text={(value) => format.time(value)}
                    label={`${kind === "scope" ? "wall time per call" : "median"} of ${name} over sessions`}
                    onPoint={(id) => navigateTo(href(kind === "scope" ? "scopes" : "kernels", {}, id))}
                />
            )}
        </Answered>
    );
}

// app "": comparing sessions of different applications is meaningless, so the user must choose one.
export function Trend({ sessions, app }: { sessions: readonly SessionEntry[]; app: string }): JSX.Element {
    const [kind] = useParam("trend", "wall");
    const [name, setName] = useParam("of");
    const mine = useMemo(() => (app === "" ? [] : sessions.filter((session) => session.app === app)), [sessions, app]);
    const measure = measures.find((candidate) => candidate.id === kind);
    const isPart = kind === "scope" || kind === "kernel-name";
    return (
        <section class="section" aria-label="trend">
            <div class="section-head">
                <h2>Trend</h2>
                <select
                    aria-label="what the trend is of"
                    value={kind}
                    onChange={(event) =>
                        setParams({ trend: event.currentTarget.value === "wall" ? null : event.currentTarget.value })
                    }
                >
                    {measures.map((each) => (
                        <option key={each.id} value={each.id}>
                            {each.title}
                        </option>
                    ))}
                    <option value="scope">a scope: wall time per call</option>
                    <option value="kernel-name">a kernel: median duration</option>
                </select>
                {isPart ? (
                    <input
                        type="search"
                        aria-label={kind === "scope" ? "path of the scope" : "name of the kernel"}
                        placeholder={kind === "scope" ? "epoch > forward" : "a part of its name"}
                        value={name}
                        onChange={(event) => setName(event.currentTarget.value)}
                    />
                ) : null}
            </div>
            {app === "" ? (
                <p class="dim">Choose an app above to see how it changes from session to session.</p>
            ) : isPart ? (
                name === "" ? (
                    <p class="dim">Say which one.</p>
                ) : (
                    <PartTrend sessions={mine} kind={kind} name={name} />
                )
            ) : measure ? (
                <Points
                    points={pointsOf(mine, measure.read, measure.text)}
                    text={measure.text}
                    label={`${measure.title} of ${app} over sessions`}
                    onPoint={(id) => navigateTo(href("overview", {}, id))}
                />
            ) : null}
        </section>
    );
}
