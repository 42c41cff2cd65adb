// SPDX-License-Identifier: Apache-2.0
// The timeline: everything of a session on one time axis.
import { effect } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { connection } from "../api";
import { traceCommand } from "../commands";
import * as format from "../format";
import { useKeys, type Key } from "../keys";
import { liveSubscribe } from "../live";
import { route, setParams } from "../route";
import { Empty, Failed, Loading, Partial, type Completeness } from "../ui/states";
import { useSession } from "../query";
import { placeParams, placeParse } from "./address";
import { Board, type BoardHandle } from "./board";
import { EventPanel, RangePanel } from "./detail";
import { Find } from "./find";
import { Listing } from "./listing";
import { TimelineModel } from "./model";
import { tickLabel } from "./time";
import "./timeline.css";

const ADDRESS_MS = 300,
    LIVE_MS = 1000;

/** Writes the state to the URL when it settles, and applies URL changes from elsewhere. */
function useAddress(model: TimelineModel): void {
    useEffect(() => {
        let written = "",
            timer = 0;
        const textOf = (params: Record<string, string | null | undefined>): string =>
            ["t", "sel", "range", "fold", "q", "from", "to"].map((name) => params[name] ?? "").join(" ");
        const take = (): void => {
            const params = route.value.params;
            if (model.state.value !== "ready" || route.value.page !== "timeline" || textOf(params) === written) return;
            written = textOf(params);
            const place = placeParse(params, model.base);
            model.view.value = place.view ?? { from: 0, to: model.endNs.peek() };
            model.folded.value = new Set(place.folded);
            model.range.value = place.range;
            model.search.value = place.search;
            const before = model.selection.peek(),
                wanted = place.selection;
            if (!wanted) model.selection.value = null;
            else if (before?.track !== wanted.track || before.start !== wanted.start)
                model.selection.value = {
                    ...wanted,
                    kind: model.tracks.peek().find((track) => track.id === wanted.track)?.kind ?? "kernels",
                    length: 0,
                    name: 0,
                };
        };
        const stopTaking = effect(take);
        const stopWriting = effect(() => {
            const place = {
                view: model.isFollowing.value ? null : model.view.value,
                selection: model.selection.value,
                range: model.range.value,
                folded: [...model.folded.value],
                search: model.search.value,
            };
            if (model.state.value !== "ready") return;
            const params = placeParams(place, { from: 0, to: model.endNs.value });
            window.clearTimeout(timer);
            timer = window.setTimeout(() => {
                if (textOf(params) === written || route.peek().page !== "timeline") return;
                written = textOf(params);
                setParams(params);
            }, ADDRESS_MS);
        });
        return () => {
            stopTaking();
            stopWriting();
            window.clearTimeout(timer);
        };
    }, [model]);
}

/** The tracks of a growing session are requested every second: the server may answer with a slightly old state, so one
 * request per event would miss the last ones. */
function useGrowth(model: TimelineModel): void {
    useEffect(() => {
        let timer = 0;
        let isDue = false;
        const load = async (): Promise<void> => {
            isDue = false;
            await model.load();
            if (!model.isClosed && (model.isLive.peek() || isDue))
                timer = window.setTimeout(() => void load(), LIVE_MS);
            else timer = 0;
        };
        timer = window.setTimeout(() => void load(), 0);
        const stop = liveSubscribe("session", (event) => {
            if (event.session_id !== model.session || (model.state.peek() === "ready" && !model.isLive.peek())) return;
            isDue = true;
            if (timer === 0) timer = window.setTimeout(() => void load(), 0);
        });
        const stopRetry = connection.subscribe((now) => {
            if (now.state === "up" && model.problem.peek() && model.state.peek() === "loading") void model.load();
        });
        return () => {
            stop();
            stopRetry();
            window.clearTimeout(timer);
        };
    }, [model]);
}

/** Repeats the request while the first answer is missing. */
function useRetry(model: TimelineModel): void {
    const problem = model.problem.value,
        isWaiting = model.state.value === "loading" && problem !== null;
    useEffect(() => {
        if (!isWaiting || (problem && problem.status >= 400 && problem.status < 500 && problem.status !== 429)) return;
        const timer = window.setInterval(() => void model.load(), 2000);
        return () => window.clearInterval(timer);
    }, [isWaiting]);
}

function keysOf(model: TimelineModel, handle: BoardHandle, find: { current: HTMLInputElement | null }): Key[] {
    const group = "Timeline";
    const hold = (key: string, about: string): Key => ({ keys: key, about, group, run: () => handle.input?.hold(key) });
    return [
        hold("w", "zoom in"),
        hold("s", "zoom out"),
        hold("a", "earlier"),
        hold("d", "later"),
        { keys: "f", about: "fit the selection, or everything", group, run: () => model.fit() },
        {
            keys: "m",
            about: "mark the selected event's time, or what is in view",
            group,
            run: () => {
                const selected = model.selection.value,
                    view = model.view.value;
                model.range.value = selected
                    ? { from: selected.start, to: selected.start + Math.max(1, selected.length) }
                    : { from: Math.max(0, view.from), to: Math.min(model.endNs.value, view.to) };
            },
        },
        {
            keys: "[",
            about: "previous execution of the selected kernel",
            group,
            isRepeatable: true,
            run: () => void model.step(false),
        },
        {
            keys: "]",
            about: "next execution of the selected kernel",
            group,
            isRepeatable: true,
            run: () => void model.step(true),
        },
        { keys: "/", about: "find and highlight", group, run: () => find.current?.focus() },
        {
            keys: "ArrowDown",
            about: "scroll down",
            group,
            isRepeatable: true,
            run: () => model.setScroll(model.scroll.value + 40),
        },
        {
            keys: "ArrowUp",
            about: "scroll up",
            group,
            isRepeatable: true,
            run: () => model.setScroll(model.scroll.value - 40),
        },
        /* Only if there is something to close: otherwise the frame handles the key. */
        ...(model.search.value !== "" || model.range.value || model.selection.value
            ? [
                  {
                      keys: "Escape",
                      about: "unselect, remove the mark, stop searching",
                      group,
                      run: () => {
                          (document.activeElement as HTMLElement | null)?.blur();
                          if (model.search.value !== "") model.search.value = "";
                          else if (model.range.value && !model.selection.value) model.range.value = null;
                          else model.select(null);
                      },
                  },
              ]
            : []),
    ];
}

function describe(model: TimelineModel): string {
    const view = model.view.value,
        tracks = model.tracks.value;
    return (
        `Timeline from ${tickLabel(view.from, 1)} to ${tickLabel(view.to, 1)}: ${tracks.length} tracks, ` +
        `${format.count(tracks.reduce((sum, track) => sum + track.count, 0))} events. ` +
        "Keys w and s zoom, a and d pan; the button Table shows what is in view as a table."
    );
}

function Timeline({ model }: { model: TimelineModel }): JSX.Element {
    const handle = useRef<BoardHandle>({ input: null }).current,
        find = useRef<HTMLInputElement>(null);
    const [isTableShown, setTableShown] = useState(false);
    const losses = useSession<{ completeness: Completeness }>(model.session, "losses");
    useKeys(keysOf(model, handle, find));
    const selection = model.selection.value,
        range = model.range.value,
        problem = model.problem.value;
    return (
        <div class="tl">
            <h1 class="visually-hidden">Timeline</h1>
            <div class="tl-tools">
                <Find model={model} input={find} />
                <button type="button" onClick={() => model.fit()} title="fit the selection, or everything (f)">
                    Fit
                </button>
                <button
                    type="button"
                    class={isTableShown ? "is-on" : ""}
                    aria-pressed={isTableShown}
                    onClick={() => setTableShown(!isTableShown)}
                >
                    Table
                </button>
                {model.isLive.value ? (
                    <button
                        type="button"
                        class={model.isFollowing.value ? "is-on" : ""}
                        aria-pressed={model.isFollowing.value}
                        onClick={() => model.follow()}
                    >
                        Follow
                    </button>
                ) : null}
                <span class="dim small grow">{model.isLoadingTiles.value ? "loading" : ""}</span>
                <span class="dim small tl-hint">wheel zooms · drag pans · Shift+drag marks · ? shows keys</span>
                {problem ? (
                    <div class="notice is-red" role="alert">
                        {problem.message} {problem.hint}
                    </div>
                ) : null}
                {model.isExact.value || model.isEarly.value ? null : (
                    <div class="notice is-calm">
                        Large session: GPU work comes from sums until you zoom in; scopes, waits and metrics need all of
                        it in the server's memory.{" "}
                        <button type="button" onClick={() => setParams({ exact: "true" })}>
                            load all
                        </button>
                    </div>
                )}
                {model.leftOut.value > 0 ? (
                    <div class="notice">
                        {format.count(model.leftOut.value)} events have no place in time or no track, and are not shown.
                    </div>
                ) : null}
                <Partial completeness={losses.data?.completeness} />
            </div>
            <Board model={model} handle={handle} about={describe(model)} />
            {selection ? (
                <EventPanel model={model} />
            ) : range && !model.isMarking.value ? (
                <RangePanel model={model} range={range} />
            ) : null}
            {isTableShown ? <Listing model={model} /> : null}
        </div>
    );
}

export default function TimelinePage(): JSX.Element {
    const { session, params } = route.value,
        isExact = params["exact"] === "true";
    const model = useMemo(() => new TimelineModel(session ?? "", isExact), [session, isExact]);
    useEffect(() => () => model.close(), [model]);
    useGrowth(model);
    useRetry(model);
    useAddress(model);
    if (model.state.value === "ready") return <Timeline key={`${isExact}`} model={model} />;
    return (
        <div class="page">
            {model.problem.value ? (
                <Failed problem={model.problem.value} reload={() => void model.load()} />
            ) : model.state.value === "empty" ? (
                <Empty title="This session has no events on a time axis." command={traceCommand()} />
            ) : (
                <Loading what="the timeline" />
            )}
        </div>
    );
}
