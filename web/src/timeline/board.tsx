// SPDX-License-Identifier: Apache-2.0
// The canvases and the labels beside them. Changes schedule one drawing in the next frame.
import { effect } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import * as format from "../format";
import { isDark } from "../theme";
import { Facts, tipHide, tipShow } from "../ui/tooltip";
import { eventAt, Input, timeAt, type Found } from "./input";
import { shownName } from "./labels";
import { laneRange } from "./lanes";
import { rowAt, rowsBetween, type Lane, type Row } from "./layout";
import type { TimelineModel } from "./model";
import { Overlay, rulerDraw, stripDraw, type LaunchCall } from "./overlay";
import { Painter, TileRequests } from "./painter";
import { tickLabel } from "./time";

const STRIP_PX = 32,
    RULER_PX = 24;

interface Canvases {
    strip: HTMLCanvasElement;
    ruler: HTMLCanvasElement;
    body: HTMLCanvasElement;
    over: HTMLCanvasElement;
}

function resize(canvas: HTMLCanvasElement, width: number, height: number, ratio: number): void {
    const columns = Math.max(1, Math.round(width * ratio)),
        lines = Math.max(1, Math.round(height * ratio));
    if (canvas.width !== columns) canvas.width = columns;
    if (canvas.height !== lines) canvas.height = lines;
}

export function callOf(model: TimelineModel): LaunchCall | null {
    const detail = model.detail.value,
        selection = model.selection.value;
    if (!detail || !selection || detail.track.id !== selection.track || detail.event.api_start_ns == null) return null;
    return {
        threadId: detail.event.thread_id ?? null,
        start: model.base.offset(detail.event.api_start_ns),
        length: detail.event.api_duration_ns ?? 0,
    };
}

/** Draws into four canvases: rows and strip when their contents change, the others also when the pointer moves. */
class Drawing {
    input: Input | null = null;
    private isRowsDue = true;
    private frame = 0;
    private readonly painter: Painter;
    private readonly overlay: Overlay;
    private readonly contexts: Record<keyof Canvases, CanvasRenderingContext2D>;

    constructor(
        private readonly canvases: Canvases,
        private readonly model: TimelineModel,
    ) {
        const context = (canvas: HTMLCanvasElement): CanvasRenderingContext2D =>
            canvas.getContext("2d", { alpha: canvas !== canvases.body })!;
        this.contexts = {
            strip: context(canvases.strip),
            ruler: context(canvases.ruler),
            body: context(canvases.body),
            over: context(canvases.over),
        };
        this.painter = new Painter(this.contexts.body, model);
        this.overlay = new Overlay(this.contexts.over, model);
    }

    laneValue(row: Row, time: number): string | null {
        return row.type === "lane" ? this.painter.laneValue(row.lane, time) : null;
    }

    ask(isRows: boolean): void {
        this.isRowsDue ||= isRows;
        if (this.frame === 0) this.frame = requestAnimationFrame(() => this.draw());
    }

    close(): void {
        cancelAnimationFrame(this.frame);
    }

    private draw(): void {
        this.frame = 0;
        const { model, canvases, contexts } = this,
            ratio = window.devicePixelRatio || 1,
            dark = isDark.peek();
        const width = model.width.peek(),
            height = model.height.peek();
        if (this.isRowsDue) {
            performance.mark("timeline-frame-begin");
            const requests = new TileRequests();
            resize(canvases.strip, width, STRIP_PX, ratio);
            resize(canvases.ruler, width, RULER_PX, ratio);
            resize(canvases.body, width, height, ratio);
            resize(canvases.over, width, height, ratio);
            this.painter.body(width, height, ratio, requests);
            this.painter.overview(contexts.strip, width, STRIP_PX, ratio, requests);
            stripDraw(contexts.strip, model, width, STRIP_PX, ratio, dark);
            rulerDraw(contexts.ruler, model, width, RULER_PX, ratio, dark);
            model.want(requests.list());
            this.isRowsDue = false;
            performance.measure("timeline-frame", "timeline-frame-begin");
            performance.clearMarks("timeline-frame-begin");
        }
        this.overlay.draw(width, height, ratio, dark, this.input?.pointer ?? null, callOf(model));
    }
}

function hoverShow(model: TimelineModel, drawing: Drawing, body: HTMLElement): void {
    const pointer = drawing.input?.pointer;
    if (!pointer || drawing.input?.isDragging) {
        tipHide();
        return;
    }
    const box = body.getBoundingClientRect(),
        time = timeAt(model, pointer.x);
    const row = rowAt(model.layout.value, pointer.y + model.scroll.value);
    const anchor = {
        left: box.left + pointer.x + 12,
        right: box.left + pointer.x + 12,
        top: box.top + pointer.y - 4,
        bottom: box.top + pointer.y + 14,
    };
    if (row?.type === "lane") {
        const value = drawing.laneValue(row, time);
        tipShow(
            anchor,
            <Facts
                facts={[
                    [row.lane.label, value ?? "no sample here"],
                    ["at", tickLabel(time, 1)],
                ]}
            />,
        );
        return;
    }
    const found = eventAt(model, pointer);
    if (!found) tipHide();
    else tipShow(anchor, <HoverFacts model={model} found={found} />);
}

function HoverFacts({ model, found: { track, hit } }: { model: TimelineModel; found: Found }): JSX.Element {
    const name = shownName(track.kind, model.names.text(track.kind, hit.name));
    const facts: [string, string][] = hit.isExact
        ? [
              ["duration", format.time(hit.length)],
              ["at", tickLabel(hit.start, 1)],
          ]
        : [
              ["busy", format.share(hit.tile.busy![hit.row]!, hit.length)],
              ["of", format.time(hit.length)],
              ["events", `${format.count(hit.tile.count![hit.row]!)}; zoom in to see each`],
          ];
    return (
        <>
            <div class="tl-tip-name">{hit.isExact ? name : `mostly ${name}`}</div>
            <Facts facts={facts} />
        </>
    );
}

function LaneLabel({ model, lane }: { model: TimelineModel; lane: Lane }): JSX.Element {
    void model.arrivals.value;
    const values = model.lanes?.get(lane.id);
    return (
        <span title={lane.metric}>
            {lane.label}
            <br />
            <span class="dim">{values && Number.isFinite(values.high) ? laneRange(lane, values) : ""}</span>
        </span>
    );
}

const rowId = (row: Row): string =>
    row.type === "track" ? row.track.id : row.type === "lane" ? row.lane.id : row.group.id;

function Labels({ model }: { model: TimelineModel }): JSX.Element {
    const scroll = model.scroll.value;
    const rows = rowsBetween(model.layout.value, scroll, scroll + model.height.value);
    return (
        <div class="tl-labels" onWheel={(event) => model.setScroll(model.scroll.value + event.deltaY)}>
            {rows.map((row) => (
                <div
                    key={rowId(row)}
                    class={`tl-label is-${row.type}`}
                    style={{ transform: `translateY(${row.y - scroll}px)`, height: `${row.height}px` }}
                >
                    {row.type === "group" ? (
                        <button
                            type="button"
                            class="plain"
                            aria-expanded={!row.isFolded}
                            title={row.isFolded ? "unfold" : "fold"}
                            onClick={() => model.toggle(row.group.id)}
                        >
                            <span aria-hidden="true">{row.isFolded ? "▸" : "▾"}</span> {row.label}{" "}
                            <span class="dim">{row.group.note}</span>
                        </button>
                    ) : row.type === "track" ? (
                        <span title={`${format.count(row.track.count)} events, busy ${format.time(row.track.busyNs)}`}>
                            {row.label}
                        </span>
                    ) : (
                        <LaneLabel model={model} lane={row.lane} />
                    )}
                </div>
            ))}
        </div>
    );
}

function Scrollbar({ model }: { model: TimelineModel }): JSX.Element | null {
    const height = model.height.value,
        whole = model.layout.value.height;
    if (whole <= height) return null;
    const size = Math.max(24, (height * height) / whole),
        top = (model.scroll.value / (whole - height)) * (height - size);
    const drag = (event: PointerEvent): void => {
        if (!(event.buttons & 1)) return;
        const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
        model.setScroll(((event.clientY - box.top - size / 2) / (height - size)) * (whole - height));
    };
    return (
        <div
            class="tl-scrollbar"
            aria-hidden="true"
            onPointerMove={drag}
            onPointerDown={(event) => {
                event.currentTarget.setPointerCapture(event.pointerId);
                drag(event);
            }}
        >
            <i style={{ height: `${size}px`, transform: `translateY(${top}px)` }} />
        </div>
    );
}

export interface BoardHandle {
    input: Input | null;
}

export function Board({
    model,
    handle,
    about,
}: {
    model: TimelineModel;
    handle: BoardHandle;
    about: string;
}): JSX.Element {
    const strip = useRef<HTMLCanvasElement>(null),
        ruler = useRef<HTMLCanvasElement>(null);
    const body = useRef<HTMLCanvasElement>(null),
        over = useRef<HTMLCanvasElement>(null),
        box = useRef<HTMLDivElement>(null);
    useEffect(() => {
        const surface = over.current!,
            area = box.current!;
        const drawing = new Drawing(
            { strip: strip.current!, ruler: ruler.current!, body: body.current!, over: surface },
            model,
        );
        const pick = ({ track, hit }: Found): void => {
            if (hit.isExact)
                model.select({
                    track: track.id,
                    kind: track.kind,
                    start: hit.start,
                    length: hit.length,
                    name: hit.name,
                });
            else model.setView({ from: hit.start - hit.length * 4, to: hit.start + hit.length * 5 });
        };
        const input = new Input(
            model,
            { body: surface, ruler: ruler.current!, strip: strip.current! },
            () => {
                drawing.ask(false);
                hoverShow(model, drawing, surface);
            },
            (found) => (found ? pick(found) : model.select(null)),
        );
        drawing.input = handle.input = input;
        const measure = (): void => {
            model.width.value = Math.max(1, area.clientWidth);
            model.height.value = Math.max(1, area.clientHeight);
            model.setScroll(model.scroll.peek());
        };
        const observer = new ResizeObserver(measure);
        observer.observe(area);
        measure();
        const stop = effect(() => {
            void [
                model.view.value,
                model.scroll.value,
                model.layout.value,
                model.palette.value,
                model.width.value,
                model.height.value,
                model.arrivals.value,
                model.range.value,
                model.marks.value,
                model.selection.value,
                model.detail.value,
                isDark.value,
            ];
            drawing.ask(true);
        });
        return () => {
            stop();
            observer.disconnect();
            input.close();
            drawing.close();
            handle.input = null;
            tipHide();
        };
    }, [model]);
    return (
        <div class="tl-board">
            <div class="tl-corner dim small">
                {format.time(model.view.value.to - model.view.value.from)} of {format.time(model.endNs.value)}
            </div>
            <div class="tl-head">
                <canvas ref={strip} class="tl-strip" aria-hidden="true" />
                <canvas ref={ruler} class="tl-ruler" aria-hidden="true" />
            </div>
            <Labels model={model} />
            <div ref={box} class="tl-rows">
                <canvas ref={body} aria-hidden="true" />
                <canvas ref={over} tabIndex={0} role="img" aria-label={about} class="tl-over" />
                <Scrollbar model={model} />
            </div>
        </div>
    );
}
