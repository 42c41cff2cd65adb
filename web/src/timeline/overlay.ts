// SPDX-License-Identifier: Apache-2.0
// Drawn over the rows and updated with the pointer: ruler, viewport box, selection, launch arrow, marked range.
import { rowOfTrack, type Layout } from "./layout";
import type { TimelineModel } from "./model";
import { FONT, inkOf, type Ink } from "./painter";
import { spanOf, tickLabel, ticksOf, type View } from "./time";

export interface Pointer {
    readonly x: number;
    readonly y: number;
}

/** The API call that launched the selected work. */
export interface LaunchCall {
    readonly threadId: number | null;
    readonly start: number;
    readonly length: number;
}

export function rulerDraw(
    context: CanvasRenderingContext2D,
    model: TimelineModel,
    width: number,
    height: number,
    ratio: number,
    isDark: boolean,
): void {
    const view = model.view.value,
        ink = inkOf(isDark);
    const { step, ticks } = ticksOf(view, width / 110);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    context.font = `12px ${FONT}`;
    context.textBaseline = "middle";
    context.textAlign = "left";
    for (const tick of ticks) {
        const x = Math.round(((tick - view.from) / spanOf(view)) * width) + 0.5;
        context.fillStyle = ink.line;
        context.fillRect(x - 0.5, height - 8, 1, 8);
        context.fillStyle = ink.dim;
        context.fillText(tickLabel(tick, step), x + 4, height / 2 + 1);
    }
    const range = model.range.value;
    if (range) bandDraw(context, range, view, width, 0, height, ink, 0.25);
}

function bandDraw(
    context: CanvasRenderingContext2D,
    band: View,
    view: View,
    width: number,
    top: number,
    height: number,
    ink: Ink,
    alpha: number,
): void {
    const scale = width / spanOf(view);
    const left = Math.max(-2, (band.from - view.from) * scale),
        right = Math.min(width + 2, (band.to - view.from) * scale);
    if (right <= 0 || left >= width) return;
    context.fillStyle = ink.accent;
    context.globalAlpha = alpha;
    context.fillRect(left, top, Math.max(1, right - left), height);
    context.globalAlpha = 1;
    context.fillRect(left, top, 1, height);
    context.fillRect(right - 1, top, 1, height);
}

/** Over the strip: executions of the selected kernel, the marked range, and the box of the view. */
export function stripDraw(
    context: CanvasRenderingContext2D,
    model: TimelineModel,
    width: number,
    height: number,
    ratio: number,
    isDark: boolean,
): void {
    const ink = inkOf(isDark),
        whole = { from: 0, to: model.endNs.value },
        view = model.view.value;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const marks = model.marks.value;
    if (marks) {
        const most = Math.max(1, ...marks.counts),
            widthOf = Math.max(1, (marks.step / spanOf(whole)) * width);
        context.fillStyle = ink.accent;
        marks.counts.forEach((count, index) => {
            if (count === 0) return;
            context.globalAlpha = 0.45 + 0.55 * (count / most);
            context.fillRect(((marks.from + index * marks.step) / spanOf(whole)) * width, 0, widthOf, 3);
        });
        context.globalAlpha = 1;
    }
    if (model.range.value) bandDraw(context, model.range.value, whole, width, 0, height, ink, 0.2);
    const left = (view.from / spanOf(whole)) * width,
        right = (view.to / spanOf(whole)) * width;
    context.fillStyle = isDark ? "oklch(0.17 0.008 250 / 0.45)" : "oklch(0.985 0.002 250 / 0.5)";
    context.fillRect(0, 0, Math.max(0, left), height);
    context.fillRect(Math.min(width, right), 0, width, height);
    context.strokeStyle = ink.dim;
    context.lineWidth = 1;
    context.strokeRect(
        Math.max(0.5, Math.round(left) + 0.5),
        0.5,
        Math.max(2, Math.round(Math.min(width, right) - Math.max(0, left)) - 1),
        height - 1,
    );
}

export class Overlay {
    constructor(
        private readonly context: CanvasRenderingContext2D,
        private readonly model: TimelineModel,
    ) {}

    draw(
        width: number,
        height: number,
        ratio: number,
        isDark: boolean,
        pointer: Pointer | null,
        call: LaunchCall | null,
    ): void {
        const { context, model } = this,
            ink = inkOf(isDark),
            view = model.view.value,
            layout = model.layout.value;
        context.setTransform(ratio, 0, 0, ratio, 0, 0);
        context.clearRect(0, 0, width, height);
        if (model.range.value) bandDraw(context, model.range.value, view, width, 0, height, ink, 0.12);
        this.selected(layout, view, width, ink, call);
        if (pointer) {
            context.fillStyle = ink.dim;
            context.globalAlpha = 0.5;
            context.fillRect(Math.round(pointer.x), 0, 1, height);
            context.globalAlpha = 1;
        }
    }

    private box(
        track: string,
        layout: Layout,
        start: number,
        length: number,
        view: View,
        width: number,
    ): { x: number; y: number; width: number; height: number } | null {
        const row = rowOfTrack(layout, track);
        if (!row) return null;
        const scale = width / spanOf(view),
            x = (start - view.from) * scale,
            end = x + Math.max(length * scale, 2);
        const left = Math.max(-4, Math.round(x)),
            right = Math.min(width + 4, Math.round(end));
        return { x: left, y: row.y - this.model.scroll.value + 1, width: right - left, height: row.height - 1 };
    }

    private selected(layout: Layout, view: View, width: number, ink: Ink, call: LaunchCall | null): void {
        const { context, model } = this,
            selection = model.selection.value;
        const box = selection && this.box(selection.track, layout, selection.start, selection.length, view, width);
        if (!selection || !box) return;
        context.strokeStyle = ink.text;
        context.lineWidth = 2;
        if (box.width > 0) context.strokeRect(box.x, box.y, box.width, box.height);
        const from = call && callTrack(model, call);
        const origin = call && from && this.box(from, layout, call.start, call.length, view, width);
        if (!origin) return;
        context.lineWidth = 1;
        if (origin.width > 0)
            context.strokeRect(origin.x + 0.5, origin.y + 0.5, Math.max(2, origin.width - 1), origin.height - 1);
        this.arrow(origin.x + origin.width, origin.y + origin.height / 2, box.x, box.y + box.height / 2, ink);
    }

    private arrow(x0: number, y0: number, x1: number, y1: number, ink: Ink): void {
        const { context } = this,
            bend = Math.min(80, Math.max(16, Math.abs(x1 - x0) / 2));
        context.strokeStyle = context.fillStyle = ink.text;
        context.lineWidth = 1.5;
        context.beginPath();
        context.moveTo(x0, y0);
        context.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1 - 6, y1);
        context.stroke();
        context.beginPath();
        context.moveTo(x1, y1);
        context.lineTo(x1 - 7, y1 - 4);
        context.lineTo(x1 - 7, y1 + 4);
        context.fill();
    }
}

/** The row that contains the call: the thread's launches, or otherwise its outermost scopes or waits. */
function callTrack(model: TimelineModel, call: LaunchCall): string | null {
    for (const kind of ["launches", "scopes", "syncs"]) {
        const track = model.tracks.value.find(
            (one) => one.kind === kind && one.threadId === call.threadId && one.depth === 0,
        );
        if (track) return track.id;
    }
    return null;
}
