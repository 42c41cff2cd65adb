// SPDX-License-Identifier: Apache-2.0
// Metrics over time: the lanes, and their values in the steps of the latest answer.
import { getExactJson } from "../api";
import { bytes, digits, rate } from "../format";
import type { Lane } from "./layout";
import type { Exact, TimeBase, View } from "./time";

interface SeriesText {
    metric: string;
    device: number | null;
    min?: (number | null)[];
    mean?: (number | null)[];
    max?: (number | null)[];
}
interface StepsText {
    from_ns: Exact;
    step_ns: Exact;
    steps: number;
    series: SeriesText[];
}

const pauseSamples = 6;

export interface LaneValues {
    readonly from: number;
    readonly step: number;
    readonly min: readonly (number | null)[];
    readonly mean: readonly (number | null)[];
    readonly max: readonly (number | null)[];
    /** Over the loaded values. */
    readonly low: number;
    readonly high: number;
    /** Samples further apart than this have a gap in between. */
    readonly pause: number;
}

/** How a metric is displayed: label, unit and scale. */
interface Look {
    readonly label: string;
    readonly unit: string;
    readonly scale: number;
}

const looks: Readonly<Record<string, Look>> = {
    gpu_util: { label: "utilization", unit: "%", scale: 1 },
    sm_active_bp: { label: "SM active", unit: "%", scale: 0.01 },
    dram_active_bp: { label: "DRAM active", unit: "%", scale: 0.01 },
    tensor_active_bp: { label: "tensor active", unit: "%", scale: 0.01 },
    mem_util: { label: "memory busy", unit: "%", scale: 1 },
    power_mw: { label: "power", unit: "W", scale: 0.001 },
    clock_sm: { label: "core clock", unit: "MHz", scale: 1 },
    temp_c: { label: "temperature", unit: "°C", scale: 1 },
    temp_junction_c: { label: "junction temperature", unit: "°C", scale: 1 },
    temp_mem_c: { label: "memory temperature", unit: "°C", scale: 1 },
    fan_rpm: { label: "fan", unit: "rpm", scale: 1 },
    voltage_mv: { label: "voltage", unit: "mV", scale: 1 },
    used_mib: { label: "memory used", unit: "MiB", scale: 1 },
    pcie_rx_bps: { label: "PCIe received", unit: "B/s", scale: 1 },
    pcie_tx_bps: { label: "PCIe sent", unit: "B/s", scale: 1 },
    cpu_pct_x100: { label: "CPU", unit: "%", scale: 0.01 },
};

const lookOf = (lane: Lane): Look =>
    (lane.source === "metrics" ? looks[lane.metric] : undefined) ?? {
        label: lane.metric,
        unit: /pct|percent|\.pct_/.test(lane.metric) ? "%" : "",
        scale: 1,
    };

/** A value for display. */
export function laneText(lane: Lane, value: number): string {
    const look = lookOf(lane);
    return look.unit === "B/s"
        ? rate(value)
        : look.unit === "MiB"
          ? bytes(value * 2 ** 20)
          : `${digits(value * look.scale)} ${look.unit}`.trim();
}

/** Minimum to maximum, with the unit once if both have the same. */
export function laneRange(lane: Lane, values: LaneValues): string {
    const low = laneText(lane, values.low),
        high = laneText(lane, values.high);
    if (low === high) return high;
    const [number, unit] = low.split(" ");
    return unit !== undefined && high.endsWith(` ${unit}`) ? `${number} – ${high}` : `${low} – ${high}`;
}

const laneOrder = Object.keys(looks);

const laneId = (source: Lane["source"], one: { metric: string; device: number | null }): string =>
    `${source}-${one.device ?? "host"}-${one.metric}`;

export function lanesOf(source: Lane["source"], series: readonly { metric: string; device: number | null }[]): Lane[] {
    const lanes = series
        .filter((one) => source === "pm" || one.metric in looks)
        .map((one): Lane => ({
            id: laneId(source, one),
            source,
            metric: one.metric,
            device: one.device,
            label: (source === "metrics" ? looks[one.metric]?.label : undefined) ?? one.metric,
        }));
    return source === "pm" ? lanes : lanes.sort((a, b) => laneOrder.indexOf(a.metric) - laneOrder.indexOf(b.metric));
}

export function valuesOf(series: SeriesText, from: number, step: number): LaneValues {
    const min = series.min ?? [],
        mean = series.mean ?? [],
        max = series.max ?? [];
    let low = Infinity,
        high = -Infinity;
    for (const value of min) if (value !== null) low = Math.min(low, value);
    for (const value of max) if (value !== null) high = Math.max(high, value);
    const first = mean.findIndex((value) => value !== null),
        last = mean.findLastIndex((value) => value !== null);
    const count = mean.reduce<number>((sum, value) => sum + (value === null ? 0 : 1), 0);
    return {
        from,
        step,
        min,
        mean,
        max,
        low,
        high,
        pause: count > 1 ? Math.max(step * 1.5, ((last - first) / (count - 1)) * step * pauseSamples) : step,
    };
}

/** Steps of the view and the nearest known ones outside it: a line continues beyond the edge. */
export function knownAround(values: LaneValues, view: View): { first: number; last: number } {
    const { mean } = values;
    let first = Math.min(mean.length - 1, Math.max(0, Math.floor((view.from - values.from) / values.step)));
    let last = Math.max(first, Math.min(mean.length, Math.ceil((view.to - values.from) / values.step) + 1));
    do first--;
    while (first > 0 && mean[first] == null);
    while (last < mean.length && mean[last] == null) last++;
    return { first: Math.max(0, first), last: Math.min(mean.length, last + 1) };
}

/** The known value nearest to a time; null in a gap. */
export function valueAt(values: LaneValues, time: number): number | null {
    const at = Math.floor((time - values.from) / values.step),
        reach = Math.ceil(values.pause / 2 / values.step);
    for (let distance = 0; distance <= reach; distance++) {
        const value = values.mean[at - distance] ?? values.mean[at + distance];
        if (value != null) return value;
    }
    return null;
}

interface Stretch {
    readonly from: number;
    readonly to: number;
    readonly values: ReadonlyMap<string, LaneValues>;
}

const knownOf = (values: LaneValues | undefined): number =>
    values?.mean.reduce<number>((sum, one) => sum + (one === null ? 0 : 1), 0) ?? 0;
const nearNs = 2e9,
    nearSteps = 1000,
    fewSamples = 40;

/** Values of both kinds, with ids from lanesOf. Samples are rare compared with kernels, so a narrow view may contain
 * none: the surroundings are then loaded, or else the whole session. */
export class LaneStore {
    lanes: readonly Lane[] = [];
    private whole: Stretch | null = null;
    private near: Stretch | null = null;
    private view: Stretch | null = null;
    private control: AbortController | null = null;
    private readonly chosen = new Map<string, LaneValues>();

    constructor(
        private readonly sessionPath: string,
        private readonly base: TimeBase,
    ) {}

    get(lane: string): LaneValues | undefined {
        let values = this.chosen.get(lane);
        if (!values) {
            const [view, near, whole] = [this.view, this.near, this.whole].map((level) => level?.values.get(lane));
            values = knownOf(view) >= fewSamples ? view : knownOf(near) >= 2 ? near : whole;
            if (values) this.chosen.set(lane, values);
        }
        return values;
    }

    private async ask(
        from: number,
        to: number,
        steps: number,
        signal: AbortSignal,
    ): Promise<{ stretch: Stretch; lanes: Lane[] }> {
        const params = {
            from_ns: this.base.wall(from),
            to_ns: this.base.wall(to),
            step_ns: Math.max(1, Math.ceil((to - from) / steps)),
        };
        const lanes: Lane[] = [],
            values = new Map<string, LaneValues>();
        for (const source of ["metrics", "pm"] as const) {
            const answer = await getExactJson<StepsText>(`${this.sessionPath}/${source}`, params, signal);
            lanes.push(...lanesOf(source, answer.series));
            for (const one of answer.series)
                values.set(
                    laneId(source, one),
                    valuesOf(one, this.base.offset(answer.from_ns), Number(answer.step_ns)),
                );
        }
        return { stretch: { from, to, values }, lanes };
    }

    /** Loads what the view needs and is missing; isGrown: the session has new data. */
    async load(view: View, endNs: number, steps: number, isGrown: boolean): Promise<void> {
        const from = Math.max(0, Math.floor(view.from)),
            to = Math.min(endNs, Math.ceil(view.to)) + 1;
        this.control?.abort();
        const { signal } = (this.control = new AbortController());
        if (!this.whole || isGrown) {
            const { stretch, lanes } = await this.ask(0, endNs + 1, steps, signal);
            this.whole = stretch;
            this.lanes = lanes;
            this.near = isGrown ? null : this.near;
        }
        if (to <= from) return;
        if (to - from < nearNs && !(this.near && this.near.from <= from && this.near.to >= Math.min(to, endNs)))
            this.near = (
                await this.ask(Math.max(0, from - nearNs), Math.min(endNs, to + nearNs) + 1, nearSteps, signal)
            ).stretch;
        const isWhole = from === 0 && to >= endNs;
        this.view = isWhole ? this.whole : (await this.ask(from, to, steps, signal)).stretch;
        this.chosen.clear();
    }

    close(): void {
        this.control?.abort();
    }
}
