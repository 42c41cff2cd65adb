// SPDX-License-Identifier: Apache-2.0
// Draws the rows of the view into the raster, then names and metrics over it. Processes only what is visible.
import { LabelFitter, labelTexts } from "./labels";
import { knownAround, laneText, valueAt, type LaneValues } from "./lanes";
import { rowsBetween, type Lane, type Row, type Track } from "./layout";
import type { TileRequest } from "./loader";
import type { TimelineModel } from "./model";
import type { Palette } from "./palette";
import { tileSpan, type TileKey } from "./pyramid";
import { HATCHED, Raster } from "./raster";
import { eachRow } from "./segments";
import { spanOf, type View } from "./time";

export const FONT = "ui-sans-serif, system-ui, sans-serif";
const labelWidthMin = 28,
    labelPadding = 4,
    overviewTracksMax = 64;

/** The log's memory kind that the driver must copy an additional time: drawn hatched. */
const pageable = 1;

export interface Ink {
    readonly text: string;
    readonly dim: string;
    readonly line: string;
    readonly onColour: string;
    readonly accent: string;
}

export const inkOf = (isDark: boolean): Ink =>
    isDark
        ? {
              text: "oklch(0.92 0 0)",
              dim: "oklch(0.68 0 0)",
              line: "oklch(0.28 0 0)",
              onColour: "oklch(0.16 0 0)",
              accent: "oklch(0.72 0.14 250)",
          }
        : {
              text: "oklch(0.22 0 0)",
              dim: "oklch(0.48 0 0)",
              line: "oklch(0.9 0 0)",
              onColour: "oklch(0.14 0 0)",
              accent: "oklch(0.52 0.16 250)",
          };

interface Label {
    readonly x: number;
    readonly width: number;
    readonly y: number;
    readonly text: string;
    readonly isDimmed: boolean;
}

/** Requests of many tracks for the same tiles, merged, in the order of first appearance. */
export class TileRequests {
    private readonly requests = new Map<string, { key: TileKey; tracks: string[] }>();

    add(track: string, keys: readonly TileKey[]): void {
        for (const key of keys) {
            const id = `${key.level}/${key.index}`,
                request = this.requests.get(id);
            if (request) request.tracks.push(track);
            else this.requests.set(id, { key, tracks: [track] });
        }
    }

    /** Coarse tiles first: they show something for the whole view. */
    list(): TileRequest[] {
        return [...this.requests.values()].sort((a, b) => tileSpan(b.key.level) - tileSpan(a.key.level));
    }
}

export class Painter {
    private raster = new Raster(1, 1);
    private strip = new Raster(1, 1);
    private stripState: readonly unknown[] = [];
    private stripMissing: { track: string; missing: readonly TileKey[] }[] = [];
    private labels: Label[] = [];
    private readonly fitter: LabelFitter;
    private readonly texts = new Map<string, readonly string[]>();

    constructor(
        private readonly context: CanvasRenderingContext2D,
        private readonly model: TimelineModel,
    ) {
        this.fitter = new LabelFitter((text) => {
            context.font = `12px ${FONT}`;
            return context.measureText(text).width;
        });
    }

    /** Sizes in CSS pixels; ratio: device pixels per CSS pixel. */
    body(width: number, height: number, ratio: number, requests: TileRequests): void {
        const { model, context } = this;
        const columns = Math.round(width * ratio),
            lines = Math.round(height * ratio);
        if (this.raster.width !== columns || this.raster.height !== lines) this.raster = new Raster(columns, lines);
        const palette = model.palette.value,
            scroll = model.scroll.value;
        const rows = rowsBetween(model.layout.value, scroll, scroll + height);
        this.labels = [];
        this.raster.clear(palette.chrome.ground);
        for (const row of rows) this.row(row, row.y - scroll, width, ratio, palette, requests);
        context.setTransform(1, 0, 0, 1, 0, 0);
        context.putImageData(this.raster.image(), 0, 0);
        context.setTransform(ratio, 0, 0, ratio, 0, 0);
        this.labelsDraw(palette.isDark);
        for (const row of rows)
            if (row.type === "lane") this.lane(row.lane, row.y - scroll, row.height, width, palette.isDark);
    }

    private row(row: Row, y: number, width: number, ratio: number, palette: Palette, requests: TileRequests): void {
        const top = Math.round(y * ratio),
            bottom = Math.round((y + row.height) * ratio);
        const { raster, model } = this;
        if (row.type === "group") {
            raster.fillRows(top, bottom, palette.chrome.stripe);
            if (row.isFolded) {
                raster.mergeBegin();
                for (const track of row.group.tracks) {
                    requests.add(track.id, this.track(raster, track, model.view.value, width, ratio, null, palette));
                    raster.mergeRow();
                }
                raster.mergeEnd();
                raster.rowDraw(top + Math.round(4 * ratio), bottom - Math.round(2 * ratio));
            }
        } else if (row.type === "track") {
            requests.add(
                row.track.id,
                this.track(raster, row.track, model.view.value, width, ratio, y + row.height / 2, palette),
            );
            raster.rowDraw(top + Math.round(2 * ratio), bottom - 1);
        }
        raster.fillRows(bottom - 1, bottom, palette.chrome.line);
    }

    /** Sums the track's columns into the raster and collects labels; labelY null: no labels. Returns the tiles that
     * would show more. */
    private track(
        raster: Raster,
        track: Track,
        view: View,
        width: number,
        ratio: number,
        labelY: number | null,
        palette: Palette,
    ): readonly TileKey[] {
        const { model } = this;
        const coverage = model.coverage(track.id, view);
        const scale = (width * ratio) / spanOf(view),
            widthMin = labelWidthMin * ratio;
        raster.rowBegin();
        eachRow(coverage.segments, view, (tile, row, start, end) => {
            let left = (start - view.from) * scale,
                right = (end - view.from) * scale;
            const name = tile.name[row]!,
                colour = palette.colour(track.kind, name);
            const hatch = track.kind === "syncs" || tile.hostMemory?.[row] === pageable ? HATCHED : 0;
            if (!tile.isExact) {
                raster.add(left, right, Math.min(1, tile.busy![row]! / Math.max(tile.length[row]!, 1)), colour, hatch);
                return;
            }
            if (right - left < 1) {
                raster.add(
                    left,
                    Math.max(right, left + 1e-4),
                    1,
                    colour,
                    hatch,
                ); /* an event without a duration is still drawn as a line */
                return;
            }
            left = Math.round(left);
            right = Math.max(left + 1, Math.round(right) - (right - left >= 4 ? 1 : 0));
            raster.add(left, right, 1, colour, hatch);
            if (labelY !== null && right - left >= widthMin)
                this.label(track, name, left / ratio, right / ratio, width, labelY, palette);
        });
        return coverage.missing;
    }

    private label(
        track: Track,
        name: number,
        left: number,
        right: number,
        width: number,
        y: number,
        palette: Palette,
    ): void {
        const x = Math.max(0, left),
            room = Math.min(width, right) - x - 2 * labelPadding;
        if (room < labelWidthMin - 2 * labelPadding) return;
        const text = this.fitter.fitAny(this.textsOf(track, name), room);
        if (text !== "")
            this.labels.push({
                x: x + labelPadding,
                width: room,
                y,
                text,
                isDimmed: palette.isDimmed(track.kind, name),
            });
    }

    private textsOf(track: Track, name: number): readonly string[] {
        const key = `${track.kind} ${name}`;
        let texts = this.texts.get(key);
        if (texts === undefined)
            this.texts.set(key, (texts = labelTexts(track.kind, this.model.names.text(track.kind, name))));
        return texts;
    }

    private labelsDraw(isDark: boolean): void {
        const ink = inkOf(isDark),
            { context } = this;
        context.font = `12px ${FONT}`;
        context.textBaseline = "middle";
        context.textAlign = "left";
        for (const isDimmed of [false, true]) {
            context.fillStyle = isDimmed ? ink.dim : ink.onColour;
            for (const label of this.labels)
                if (label.isDimmed === isDimmed) context.fillText(label.text, label.x, label.y + 0.5);
        }
    }

    private lane(lane: Lane, y: number, height: number, width: number, isDark: boolean): void {
        const values = this.model.lanes?.get(lane.id),
            ink = inkOf(isDark),
            { context } = this;
        context.font = `12px ${FONT}`;
        context.textBaseline = "top";
        if (!values || !Number.isFinite(values.high)) {
            context.fillStyle = ink.dim;
            context.fillText("no sample in this range", 8, y + 12);
            return;
        }
        this.laneBand(
            values,
            y + 4,
            height - 7,
            width,
            Math.min(0, values.low),
            values.high > 0 ? values.high * 1.08 : 1,
            ink,
        );
    }

    /** Minimum to maximum as a band, the mean as a line; gaps are not connected. */
    private laneBand(
        values: LaneValues,
        y: number,
        height: number,
        width: number,
        low: number,
        high: number,
        ink: Ink,
    ): void {
        const { context } = this,
            view = this.model.view.value,
            scale = width / spanOf(view);
        const yOf = (value: number): number => y + height * (1 - (value - low) / (high - low || 1));
        const stepWidth = Math.max(values.step * scale, 1);
        const { first, last } = knownAround(values, view);
        context.strokeStyle = context.fillStyle = ink.accent;
        context.globalAlpha = 0.25;
        for (let i = first; i < last; i++) {
            const min = values.min[i],
                max = values.max[i];
            if (min == null || max == null) continue;
            const x = (values.from + i * values.step - view.from) * scale;
            context.fillRect(x, yOf(max), stepWidth, Math.max(1, yOf(min) - yOf(max)));
        }
        context.globalAlpha = 1;
        context.beginPath();
        let lastX = -Infinity;
        for (let i = first; i < last; i++) {
            const mean = values.mean[i];
            if (mean == null) continue;
            const x = (values.from + (i + 0.5) * values.step - view.from) * scale;
            if (x - lastX > values.pause * scale) context.moveTo(x, yOf(mean));
            else context.lineTo(x, yOf(mean));
            lastX = x;
        }
        context.lineWidth = 1;
        context.stroke();
    }

    /** All work of the devices over the whole session; cached, because it does not depend on the view. */
    overview(context: CanvasRenderingContext2D, width: number, height: number, ratio: number, requests: TileRequests): void {
        const { model } = this;
        const state = [
            model.palette.value,
            model.tracks.value,
            model.endNs.value,
            width,
            height,
            ratio,
            this.stripMissing.length > 0 ? model.arrivals.value : -1,
        ];
        if (state.some((part, index) => part !== this.stripState[index])) {
            this.stripState = state;
            this.stripDraw(width, height, ratio);
        }
        for (const { track, missing } of this.stripMissing) requests.add(track, missing);
        context.setTransform(1, 0, 0, 1, 0, 0);
        context.putImageData(this.strip.image(), 0, 0);
    }

    private stripDraw(width: number, height: number, ratio: number): void {
        const { model } = this,
            palette = model.palette.value,
            whole = { from: 0, to: model.endNs.value };
        const columns = Math.round(width * ratio),
            lines = Math.round(height * ratio);
        if (this.strip.width !== columns || this.strip.height !== lines) this.strip = new Raster(columns, lines);
        const raster = this.strip;
        this.stripMissing = [];
        raster.clear(palette.chrome.ground);
        raster.mergeBegin();
        const tracks = model.tracks.value.filter((track) => track.device !== null).sort((a, b) => b.busyNs - a.busyNs);
        for (const track of tracks.slice(0, overviewTracksMax)) {
            const missing = this.track(raster, track, whole, width, ratio, null, palette);
            if (missing.length > 0) this.stripMissing.push({ track: track.id, missing });
            raster.mergeRow();
        }
        raster.mergeEnd();
        raster.rowDraw(Math.round(3 * ratio), raster.height - 1);
    }

    laneValue(lane: Lane, time: number): string | null {
        const values = this.model.lanes?.get(lane.id),
            value = values ? valueAt(values, time) : null;
        return value === null ? null : laneText(lane, value);
    }
}
