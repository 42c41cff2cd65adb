// SPDX-License-Identifier: Apache-2.0
// Canvas input: the wheel zooms, dragging pans, dragging on the ruler or with Shift marks a range, dragging on the
// strip moves the view, a click selects. Held keys move at a constant speed, independent of the keyboard's repeat rate.
import { rowAt } from "./layout";
import type { TimelineModel } from "./model";
import type { Pointer } from "./overlay";
import { hitAt, type Hit } from "./segments";
import type { Track } from "./layout";
import { panView, spanOf, zoomView, type View } from "./time";

const wheelZoom = 0.0018,
    clickSlopPx = 4,
    reachPx = 3;

export interface Found {
    readonly track: Track;
    readonly hit: Hit;
}

export function timeAt(model: TimelineModel, x: number): number {
    const view = model.view.value;
    return view.from + (x / model.width.value) * spanOf(view);
}

/** The event drawn at a position of the rows; in a folded group, an event of any of its tracks. */
export function eventAt(model: TimelineModel, pointer: Pointer): Found | null {
    const row = rowAt(model.layout.value, pointer.y + model.scroll.value);
    const tracks = row?.type === "track" ? [row.track] : row?.type === "group" && row.isFolded ? row.group.tracks : [];
    const reach = (spanOf(model.view.value) / model.width.value) * reachPx;
    for (const track of tracks) {
        const hit = hitAt(model.coverage(track.id).segments, timeAt(model, pointer.x), reach);
        if (hit) return { track, hit };
    }
    return null;
}

type Mode = "pan" | "mark" | "strip" | "markStrip";

export interface Surfaces {
    readonly body: HTMLElement;
    readonly ruler: HTMLElement;
    readonly strip: HTMLElement;
}

export class Input {
    pointer: Pointer | null = null;
    private mode: Mode | null = null;
    private begin = { x: 0, y: 0, view: { from: 0, to: 1 } as View, scroll: 0 };
    private hasMoved = false;
    private readonly held = new Set<string>();
    private isGliding = false;
    private frame = 0;
    private readonly stops: (() => void)[] = [];
    private readonly touches = new Map<number, Pointer>();
    private pinch = { distance: 1, view: { from: 0, to: 1 } as View };

    constructor(
        private readonly model: TimelineModel,
        private readonly surfaces: Surfaces,
        private readonly onHover: () => void,
        private readonly onPick: (found: Found | null) => void,
    ) {
        const { body, ruler, strip } = surfaces;
        this.listen(body, "wheel", (event) => this.wheel(event as WheelEvent), false);
        this.listen(ruler, "wheel", (event) => this.wheel(event as WheelEvent), false);
        this.listen(body, "pointerdown", (event) =>
            this.down(event as PointerEvent, (event as PointerEvent).shiftKey ? "mark" : "pan"),
        );
        this.listen(ruler, "pointerdown", (event) => this.down(event as PointerEvent, "mark"));
        this.listen(strip, "pointerdown", (event) =>
            this.down(event as PointerEvent, (event as PointerEvent).shiftKey ? "markStrip" : "strip"),
        );
        for (const surface of [body, ruler, strip]) {
            this.listen(surface, "pointermove", (event) => this.move(event as PointerEvent));
            this.listen(surface, "pointerup", (event) => this.up(event as PointerEvent));
            this.listen(surface, "pointercancel", (event) => this.up(event as PointerEvent, true));
        }
        this.listen(body, "pointerleave", () => {
            this.pointer = null;
            this.onHover();
        });
        this.listen(window, "keyup", (event) => this.held.delete((event as KeyboardEvent).key.toLowerCase()));
        this.listen(window, "blur", () => this.held.clear());
    }

    get isDragging(): boolean {
        return this.mode !== null && this.hasMoved;
    }

    close(): void {
        for (const stop of this.stops) stop();
        cancelAnimationFrame(this.frame);
    }

    private listen(target: EventTarget, name: string, handler: (event: Event) => void, isPassive = true): void {
        target.addEventListener(name, handler, { passive: isPassive });
        this.stops.push(() => target.removeEventListener(name, handler));
    }

    private place(event: PointerEvent | WheelEvent): Pointer {
        const box = this.surfaces.body.getBoundingClientRect();
        return { x: event.clientX - box.left, y: event.clientY - box.top };
    }

    private wheel(event: WheelEvent): void {
        event.preventDefault();
        const { model } = this,
            unit = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? 400 : 1;
        const dx = event.deltaX * unit,
            dy = event.deltaY * unit,
            { x } = this.place(event);
        if (event.altKey) model.setScroll(model.scroll.value + dy);
        else if (event.shiftKey || Math.abs(dx) > Math.abs(dy))
            model.setView(
                panView(
                    model.view.value,
                    (((event.shiftKey ? dy : 0) + dx) / model.width.value) * spanOf(model.view.value),
                    model.endNs.value,
                ),
            );
        else
            model.setView(
                zoomView(
                    model.view.value,
                    timeAt(model, x),
                    Math.exp(Math.max(-600, Math.min(600, dy)) * wheelZoom),
                    model.endNs.value,
                ),
            );
    }

    private down(event: PointerEvent, mode: Mode): void {
        if (event.button !== 0) return;
        const place = this.place(event);
        this.touches.set(event.pointerId, place);
        (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
        if (this.touches.size === 2) {
            this.pinch = { distance: this.fingers(), view: this.model.view.value };
            this.mode = null;
            return;
        }
        this.mode = mode;
        this.hasMoved = false;
        this.begin = { ...place, view: this.model.view.value, scroll: this.model.scroll.value };
        if (mode === "strip") this.stripTo(place.x);
    }

    private fingers(): number {
        const [a, b] = [...this.touches.values()];
        return a && b ? Math.max(8, Math.abs(a.x - b.x)) : 1;
    }

    private stripTo(x: number): void {
        const { model } = this,
            span = spanOf(model.view.value),
            at = (x / model.width.value) * model.endNs.value;
        model.setView({ from: at - span / 2, to: at + span / 2 });
    }

    private move(event: PointerEvent): void {
        const place = this.place(event),
            { model, begin } = this;
        if (this.touches.has(event.pointerId)) this.touches.set(event.pointerId, place);
        if (this.touches.size === 2) {
            const [a, b] = [...this.touches.values()],
                { view } = this.pinch;
            const middle = view.from + ((a!.x + b!.x) / 2 / model.width.value) * spanOf(view);
            model.setView(zoomView(view, middle, this.pinch.distance / this.fingers(), model.endNs.value));
            return;
        }
        this.pointer = event.currentTarget === this.surfaces.body ? place : null;
        this.hasMoved ||= this.mode !== null && Math.hypot(place.x - begin.x, place.y - begin.y) > clickSlopPx;
        if (this.mode === "pan" && this.hasMoved) {
            model.setView(
                panView(begin.view, (-(place.x - begin.x) / model.width.value) * spanOf(begin.view), model.endNs.value),
            );
            model.setScroll(begin.scroll - (place.y - begin.y));
        } else if (this.mode === "mark" && this.hasMoved) {
            this.mark(timeAt(model, begin.x), timeAt(model, place.x));
        } else if (this.mode === "markStrip" && this.hasMoved) {
            const scale = model.endNs.value / model.width.value;
            this.mark(begin.x * scale, place.x * scale);
        } else if (this.mode === "strip") {
            this.stripTo(place.x);
        }
        this.onHover();
    }

    private mark(a: number, b: number): void {
        const { model } = this,
            from = Math.max(0, Math.min(a, b)),
            to = Math.min(model.endNs.value, Math.max(a, b));
        if (to <= from) return;
        model.isMarking.value = true;
        model.range.value = { from, to };
    }

    private up(event: PointerEvent, isCancelled = false): void {
        const { mode } = this;
        this.touches.delete(event.pointerId);
        this.mode = null;
        this.model.isMarking.value = false;
        if (isCancelled || this.hasMoved || mode === null) return;
        if (mode === "pan") this.onPick(eventAt(this.model, this.place(event)));
        else if (mode === "mark") this.model.range.value = null;
    }

    /** A held key: w and s zoom, a and d pan. A single press moves a little even if the key is released immediately. */
    hold(key: string): void {
        if (this.held.has(key)) return;
        this.held.add(key);
        this.nudge(key, 60);
        if (!this.isGliding) this.glide(performance.now());
    }

    private glide(before: number): void {
        this.isGliding = this.held.size > 0;
        if (!this.isGliding) return;
        this.frame = requestAnimationFrame((at) => {
            for (const key of this.held) this.nudge(key, Math.min(100, Math.max(0, at - before)));
            this.glide(at);
        });
    }

    private nudge(key: string, ms: number): void {
        const { model } = this,
            view = model.view.value;
        const at = this.pointer ? timeAt(model, this.pointer.x) : (view.from + view.to) / 2;
        const pan = (spanOf(view) * ms) / 1000,
            zoom = Math.exp(ms / 320);
        if (key === "a") model.setView(panView(view, -pan, model.endNs.value));
        else if (key === "d") model.setView(panView(view, pan, model.endNs.value));
        else if (key === "w") model.setView(zoomView(view, at, 1 / zoom, model.endNs.value));
        else if (key === "s") model.setView(zoomView(view, at, zoom, model.endNs.value));
    }
}
