// SPDX-License-Identifier: Apache-2.0
// The timeline's state: the session's data, the view, the selection. The canvas draws it, the panels show it, the URL
// stores it.
import { batch, computed, effect, signal } from "@preact/signals";
import { getExactJson, type Problem } from "../api";
import { isDark } from "../theme";
import { problemOf, sessionPath } from "../query";
import { eventLoad, instanceNear, marksLoad, type EventAnswer, type EventText, type Marks } from "./event";
import { LaneStore } from "./lanes";
import { groupsOf, layoutOf, rowOfTrack, type Lane, type Row, type Track } from "./layout";
import { TileLoader, tileFetcher, type TileRequest } from "./loader";
import { Palette } from "./palette";
import { Pyramid } from "./pyramid";
import { coverageOf, type Coverage } from "./segments";
import { Names, type TrackKind } from "./tile";
import { clampView, fitView, revealView, TimeBase, type Exact, type View } from "./time";

const cacheBytes = 64 << 20;
const laneSteps = 700;
const lateNs = 10e9;
/** A session that the server loads more slowly than this is first shown from its sums. */
const earlyMs = 150;

interface TrackText {
    id: string;
    kind: TrackKind;
    count: number;
    busy_ns: number;
    device?: number | null;
    stream_id?: number | null;
    thread_id?: number | null;
    depth?: number;
}
interface TracksText {
    is_exact: boolean;
    start_ns: Exact | null;
    end_ns: Exact | null;
    tracks: TrackText[];
    left_out: number;
}
interface SessionText {
    catalog: { state: string | null };
    gpus?: { device: number; name: string | null }[];
}

/** One event, identified by its position and start. */
export interface Selection {
    readonly track: string;
    readonly kind: TrackKind;
    readonly start: number;
    readonly length: number;
    readonly name: number;
}

const trackOf = (text: TrackText): Track => ({
    id: text.id,
    kind: text.kind,
    count: text.count,
    busyNs: text.busy_ns,
    device: text.device ?? null,
    streamId: text.stream_id ?? null,
    threadId: text.thread_id ?? null,
    depth: text.depth ?? 0,
});

export class TimelineModel {
    readonly path: string;
    readonly names = new Names();
    readonly pyramid = new Pyramid(cacheBytes);
    base = new TimeBase(0n);
    lanes: LaneStore | null = null;
    private loader: TileLoader | null = null;
    private readonly control = new AbortController();
    private lanesEnd = 0;
    private eventCount = 0;
    /** Tiles of a session that was listed completely: they wait, otherwise its scopes would seem to disappear. */
    private isWhole = false;
    private laneTimer: ReturnType<typeof setTimeout> | undefined;
    private readonly stops: (() => void)[] = [];

    readonly state = signal<"loading" | "empty" | "ready">("loading");
    readonly problem = signal<Problem | null>(null);
    readonly isExact = signal(true);
    /** Only GPU work, until the rest is loaded. */
    readonly isEarly = signal(false);
    readonly isLive = signal(false);
    readonly isFollowing = signal(false);
    readonly endNs = signal(1);
    readonly leftOut = signal(0);
    readonly tracks = signal<readonly Track[]>([]);
    readonly laneList = signal<readonly Lane[]>([]);
    readonly deviceNames = signal<ReadonlyMap<number, string>>(new Map());
    readonly folded = signal<ReadonlySet<string>>(new Set());
    readonly view = signal<View>({ from: 0, to: 1 });
    readonly scroll = signal(0);
    readonly width = signal(800);
    readonly height = signal(400);
    readonly selection = signal<Selection | null>(null);
    readonly range = signal<View | null>(null);
    /** The range is being dragged: its panel would move what is under the pointer. */
    readonly isMarking = signal(false);
    /** The server's data about the selection, and its kernel's executions. */
    readonly detail = signal<EventAnswer | null>(null);
    readonly detailProblem = signal<Problem | null>(null);
    readonly marks = signal<Marks | null>(null);
    readonly isStepping = signal(false);
    readonly search = signal("");
    /** Increments when tiles or metrics arrive: the picture changes although no state did. */
    readonly arrivals = signal(0);
    readonly isLoadingTiles = signal(false);

    readonly groups = computed(() => groupsOf(this.tracks.value, this.laneList.value, this.deviceNames.value));
    readonly layout = computed(() => layoutOf(this.groups.value, this.folded.value));
    readonly palette = computed(() => {
        const query = this.search.value.toLowerCase(),
            selected = this.selection.value;
        if (query !== "")
            return new Palette(
                this.names,
                isDark.value,
                (_kind, _name, text) => text.toLowerCase().includes(query),
                0.75,
            );
        if (!selected) return new Palette(this.names, isDark.value, null);
        const isKernel = (kind: TrackKind): boolean => kind === "kernels" || kind === "launches";
        return new Palette(
            this.names,
            isDark.value,
            (kind, name) =>
                name === selected.name && (kind === selected.kind || (isKernel(kind) && isKernel(selected.kind))),
        );
    });

    constructor(
        readonly session: string,
        private readonly isExactAsked: boolean,
    ) {
        this.path = sessionPath(session);
        this.stops.push(
            effect(() => this.askLanes()),
            effect(() => this.askDetail()),
            effect(() => this.askMarks()),
        );
    }

    get isClosed(): boolean {
        return this.control.signal.aborted;
    }

    close(): void {
        this.control.abort();
        this.loader?.close();
        this.lanes?.close();
        clearTimeout(this.laneTimer);
        for (const stop of this.stops) stop();
    }

    /** Loads the session's tracks; again when the session has grown. */
    async load(): Promise<void> {
        const timer = this.state.value === "loading" ? setTimeout(() => void this.loadEarly(), earlyMs) : undefined;
        try {
            await Promise.all([
                this.askTracks(this.isExactAsked ? { exact: "true" } : {}).then((text) => {
                    clearTimeout(timer);
                    this.take(text, false);
                }),
                getExactJson<SessionText>(this.path, {}, this.control.signal).then((session) =>
                    this.takeSession(session),
                ),
            ]);
        } catch (error) {
            if (!this.control.signal.aborted) this.problem.value = problemOf(error);
        }
        clearTimeout(timer);
    }

    /** The request that it replaces reports errors. */
    private async loadEarly(): Promise<void> {
        const text = await this.askTracks({ exact: "false" }).catch(() => null);
        if (text && text.tracks.length > 0 && this.state.value === "loading" && !this.isClosed) this.take(text, true);
    }

    private askTracks(params: Record<string, string>): Promise<TracksText> {
        return getExactJson<TracksText>(`${this.path}/timeline/tracks`, params, this.control.signal);
    }

    private takeSession(session: SessionText): void {
        const names = new Map<number, string>();
        for (const gpu of session.gpus ?? []) names.set(gpu.device, gpu.name ?? "");
        const before = this.deviceNames.peek();
        batch(() => {
            this.isLive.value = session.catalog.state === "live";
            if (names.size !== before.size) this.deviceNames.value = names;
        });
    }

    private take(text: TracksText, isEarly: boolean): void {
        batch(() => {
            const isCompleted = this.isEarly.value && !isEarly;
            this.problem.value = null;
            this.isEarly.value = isEarly;
            this.isExact.value = text.is_exact;
            this.isWhole = text.is_exact && !isEarly;
            this.leftOut.value = text.left_out;
            if (text.start_ns === null || text.end_ns === null || text.tracks.length === 0) {
                if (this.state.value === "loading") this.state.value = "empty";
                return;
            }
            this.tracks.value = text.tracks.map(trackOf);
            const start = BigInt(text.start_ns),
                events = text.tracks.reduce((sum, track) => sum + track.count, 0);
            if (this.state.value !== "ready" || start !== this.base.startNs) this.begin(start, text.end_ns);
            else this.grow(this.base.offset(text.end_ns), events);
            if (isCompleted) this.complete();
        });
    }

    private begin(start: bigint, end: Exact): void {
        this.base = new TimeBase(start);
        this.endNs.value = Math.max(1, this.base.offset(end));
        this.openLoader();
        this.lanes = new LaneStore(this.path, this.base);
        this.view.value = { from: 0, to: this.endNs.value };
        this.state.value = "ready";
    }

    private openLoader(): void {
        const fetcher = tileFetcher(this.path, () => this.isWhole);
        this.loader?.close();
        this.loader = new TileLoader(this.base, this.pyramid, this.names, fetcher, (error) => this.arrived(error));
    }

    /** Early data is shown until the same data of the whole session arrives. */
    private complete(): void {
        this.openLoader();
        this.pyramid.expireAfter(-Infinity, this.base.align);
        this.arrivals.value++;
    }

    /** Work that arrives late may have started before the previous end: tiles of the last seconds before it are
     * requested again. */
    private grow(end: number, events: number): void {
        const before = this.endNs.value,
            view = this.view.value;
        if (end === before && events === this.eventCount) return;
        this.eventCount = events;
        this.pyramid.expireAfter(before - lateNs, this.base.align);
        this.endNs.value = end;
        if (this.isFollowing.value) {
            const span = view.to - view.from;
            this.view.value = clampView({ from: end - span * 0.95, to: end + span * 0.05 }, end);
        } else if (view.from === 0 && view.to === before) {
            this.view.value = { from: 0, to: end };
        }
        this.arrivals.value++;
    }

    private arrived(error: unknown): void {
        this.problem.value = error === null ? null : problemOf(error);
        this.isLoadingTiles.value = this.loader?.isBusy ?? false;
        this.arrivals.value++;
    }

    /** Metrics are loaded when the view stops moving. A session that is too large to load automatically is not loaded
     * for them. */
    private askLanes(): void {
        const view = this.view.value,
            end = this.endNs.value;
        if (this.state.value !== "ready" || !this.isExact.value) return;
        clearTimeout(this.laneTimer);
        const isFirst = this.laneList.peek().length === 0,
            lanes = this.lanes,
            isGrown = end !== this.lanesEnd;
        this.laneTimer = setTimeout(
            () => {
                lanes?.load(view, end, laneSteps, isGrown).then(
                    () => {
                        this.lanesEnd = end;
                        if (this.laneList.peek() !== lanes.lanes) this.laneList.value = lanes.lanes;
                        this.arrivals.value++;
                    },
                    (error: unknown) => {
                        if (!(error instanceof DOMException)) this.problem.value = problemOf(error);
                    },
                );
            },
            isFirst ? 0 : 120,
        );
    }

    private askDetail(): (() => void) | void {
        const selection = this.selection.value;
        if (this.detail.peek()?.track.id !== selection?.track) this.detail.value = null;
        this.detailProblem.value = null;
        if (!selection || this.state.value !== "ready") {
            this.detail.value = null;
            return;
        }
        const control = new AbortController();
        eventLoad(this.path, this.base, selection.track, selection.start, control.signal).then(
            (detail) => {
                this.detail.value = detail;
                this.completeSelection(selection, detail);
            },
            (error: unknown) => {
                if (!control.signal.aborted) this.detailProblem.value = problemOf(error);
            },
        );
        return () => control.abort();
    }

    /** A selection from the URL has no duration and no name until the server's answer. */
    private completeSelection(selection: Selection, detail: EventAnswer): void {
        const length = detail.event.duration_ns ?? selection.length;
        if (selection.name === detail.name_id && selection.length === length) return;
        const isLaunch = detail.track.kind === "launches";
        this.selection.value = {
            ...selection,
            kind: detail.track.kind,
            name: detail.name_id,
            length: isLaunch ? (detail.event.api_duration_ns ?? 0) : length,
        };
    }

    private askMarks(): (() => void) | void {
        const selection = this.selection.value;
        const kernel =
            selection && (selection.kind === "kernels" || selection.kind === "launches") ? selection.name : null;
        if (kernel === null || this.state.value !== "ready") {
            this.marks.value = null;
            return;
        }
        const control = new AbortController();
        marksLoad(this.path, this.base, kernel, this.endNs.peek(), control.signal).then(
            (marks) => {
                this.marks.value = marks;
            },
            (error: unknown) => {
                if (!control.signal.aborted) this.detailProblem.value = problemOf(error);
            },
        );
        return () => control.abort();
    }

    /** Goes to the execution of the selected kernel before or after this one. */
    async step(isNext: boolean): Promise<void> {
        const selection = this.selection.value;
        if (!selection || selection.kind !== "kernels" || this.isStepping.value) return;
        this.isStepping.value = true;
        try {
            const found = await instanceNear(
                this.path,
                this.base,
                selection.name,
                selection.start,
                isNext,
                this.control.signal,
            );
            if (found) this.selectInstance(selection.name, found);
        } catch (error) {
            if (!this.control.signal.aborted) this.detailProblem.value = problemOf(error);
        }
        this.isStepping.value = false;
    }

    selectInstance(name: number, found: EventText): void {
        const track = `kernels-${found.device ?? "x"}-${found.stream_id ?? "x"}`;
        this.select(
            { track, kind: "kernels", start: this.base.offset(found.start_ns), length: found.duration_ns ?? 0, name },
            true,
        );
    }

    coverage(track: string, view = this.view.value): Coverage {
        return coverageOf(this.pyramid, track, view, this.width.value, this.base.align, this.endNs.value);
    }

    want(requests: readonly TileRequest[]): void {
        this.loader?.want(requests);
        this.isLoadingTiles.value = this.loader?.isBusy ?? false;
    }

    setView(view: View): void {
        this.isFollowing.value = false;
        this.view.value = clampView(view, this.endNs.value);
    }

    /** Shows the end of a growing session, with the current width but at most half a minute. */
    follow(): void {
        const end = this.endNs.value,
            span = Math.min(this.view.value.to - this.view.value.from, 30e9);
        this.isFollowing.value = !this.isFollowing.value;
        if (this.isFollowing.value)
            this.view.value = clampView({ from: end - span * 0.95, to: end + span * 0.05 }, end);
    }

    fit(): void {
        const selected = this.selection.value,
            range = this.range.value;
        if (range) this.setView(fitView(range.from, range.to, this.endNs.value));
        else if (selected) this.setView(fitView(selected.start, selected.start + selected.length, this.endNs.value));
        else this.setView({ from: 0, to: this.endNs.value });
    }

    /** Selects an event and scrolls it into view. */
    select(selection: Selection | null, isRevealed = false): void {
        batch(() => {
            this.selection.value = selection;
            if (!selection || !isRevealed) return;
            this.setView(
                revealView(this.view.value, selection.start, selection.start + selection.length, this.endNs.value),
            );
            const row = rowOfTrack(this.layout.value, selection.track);
            if (row) this.revealRow(row);
        });
    }

    private revealRow(row: Row): void {
        const top = this.scroll.value,
            bottom = top + this.height.value;
        if (row.y < top || row.y + row.height > bottom) this.setScroll(row.y - this.height.value / 2);
    }

    setScroll(y: number): void {
        this.scroll.value = Math.round(
            Math.min(Math.max(0, y), Math.max(0, this.layout.value.height - this.height.value)),
        );
    }

    toggle(group: string): void {
        const folded = new Set(this.folded.value);
        if (!folded.delete(group)) folded.add(group);
        this.folded.value = folded;
        this.setScroll(this.scroll.value);
    }
}
