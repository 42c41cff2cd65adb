// SPDX-License-Identifier: Apache-2.0
// Occupancy of a launch by resource, and a calculator for other values.
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import * as format from "../format";
import { setParams, useParam } from "../route";
import { Bar } from "../ui/charts";
import { type Device, type LaunchUse, occupancyText, sharedBytes, threadsOf } from "./answers";
import { SweepChart } from "./charts";
import { occupancyOf, occupancySweep, regsPerThreadMax, threadsPerBlockMax, type OccupancyInput } from "./occupancy";

const words: Record<string, string> = {
    warps: "warps",
    blocks: "blocks",
    registers: "registers",
    "shared memory": "shared memory",
};

const range = (from: number, to: number, step: number): number[] =>
    Array.from({ length: Math.floor((to - from) / step) + 1 }, (_, i) => from + i * step);

function NumberField(props: {
    id: string;
    name: string;
    value: number;
    recorded: number | null;
    min: number;
    max: number;
    step: number;
    onValue: (value: number) => void;
}): JSX.Element {
    const onInput = (event: JSX.TargetedEvent<HTMLInputElement>): void => {
        const value = event.currentTarget.valueAsNumber;
        if (Number.isFinite(value)) props.onValue(Math.round(value));
    };
    return (
        <div class="field">
            <label for={props.id}>{props.name}</label>
            <input
                id={props.id}
                type="number"
                min={props.min}
                max={props.max}
                step={props.step}
                value={props.value}
                onInput={onInput}
            />
            <input
                type="range"
                aria-label={`${props.name}, by sliding`}
                min={props.min}
                max={props.max}
                step={props.step}
                value={props.value}
                onInput={onInput}
            />
            <span class="dim small">
                {props.recorded === null
                    ? "not recorded"
                    : props.recorded === props.value
                      ? "as recorded"
                      : `recorded ${format.count(props.recorded)}`}
            </span>
        </div>
    );
}

// The number in the URL parameter, otherwise the recorded one.
function useNumber(name: string, recorded: number | null, fallback: number): [number, (value: number) => void] {
    const [text, setText] = useParam(name, String(recorded ?? fallback));
    const value = Number(text);
    return [Number.isInteger(value) && value >= 0 ? value : (recorded ?? fallback), (next) => setText(String(next))];
}

export function Calculator({ use, device }: { use: LaunchUse; device: Device | null }): JSX.Element {
    const launch = use.launch;
    const recorded = {
        threads: launch ? threadsOf(launch) : null,
        regs: launch?.num_regs ?? null,
        shared: launch ? sharedBytes(launch) : null,
    };
    const [threads, setThreads] = useNumber("threads", recorded.threads, 256);
    const [regs, setRegs] = useNumber("regs", recorded.regs, 32);
    const [shared, setShared] = useNumber("shared", recorded.shared, 0);
    const input: OccupancyInput = { threads_per_block: threads, regs_per_thread: regs, shared_bytes: shared };
    const limits = device;
    const sharedMax = (device?.shared_per_sm ?? 0) - (device?.shared_reserved_per_block ?? 0);
    const sweeps = useMemo(
        () =>
            limits && {
                threads: occupancySweep(limits, input, "threads_per_block", range(32, threadsPerBlockMax, 32)),
                regs: occupancySweep(limits, input, "regs_per_thread", range(16, 255, 1)),
                shared: occupancySweep(limits, input, "shared_bytes", range(0, Math.max(1024, sharedMax), 1024)),
            },
        [limits, threads, regs, shared],
    );
    if (!limits) return <p class="dim">unavailable: the device of this launch was not recorded</p>;
    const result = occupancyOf(limits, input);
    const isChanged = threads !== recorded.threads || regs !== recorded.regs || shared !== recorded.shared;
    return (
        <div class="calculator">
            <div class="row">
                <span
                    class="figure"
                    data-testid="occupancy"
                    data-bp={typeof result === "string" ? "" : result.total_bp}
                >
                    {typeof result === "string"
                        ? "unavailable"
                        : `${(result.total_bp / 100).toFixed(result.total_bp % 100 ? 1 : 0)} %`}
                </span>
                <span class="dim">
                    {typeof result === "string"
                        ? result
                        : `${result.active_blocks} blocks, ${result.active_warps} of ${result.warps_max} warps; ` +
                          `limited by ${words[result.limiter]}`}
                </span>
                {isChanged ? (
                    <button type="button" onClick={() => setParams({ threads: null, regs: null, shared: null })}>
                        as recorded: {occupancyText(launch)}
                    </button>
                ) : null}
            </div>
            <table class="bounds">
                <caption class="visually-hidden">what each resource would allow by itself</caption>
                <tbody>
                    {typeof result === "string"
                        ? null
                        : result.bounds.map((bound) => (
                              <tr key={bound.limiter} class={bound.limiter === result.limiter ? "is-limit" : ""}>
                                  <th scope="row">{words[bound.limiter]}</th>
                                  <td>
                                      <Bar
                                          value={bound.occupancy_bp / 10000}
                                          label={`${words[bound.limiter]} ${bound.occupancy_bp / 100} %`}
                                          {...(bound.limiter === result.limiter ? { colour: "var(--amber)" } : {})}
                                      />
                                  </td>
                                  <td class="right">
                                      {(bound.occupancy_bp / 100).toFixed(bound.occupancy_bp % 100 ? 1 : 0)} %
                                  </td>
                                  <td class="right dim">
                                      {Number.isFinite(bound.blocks) ? `${bound.blocks} blocks` : "no limit"}
                                  </td>
                                  <td class="small">{bound.limiter === result.limiter ? "limit" : ""}</td>
                              </tr>
                          ))}
                </tbody>
            </table>
            <NumberField
                id="calc-threads"
                name="threads per block"
                value={threads}
                recorded={recorded.threads}
                min={1}
                max={threadsPerBlockMax}
                step={1}
                onValue={setThreads}
            />
            {sweeps ? (
                <SweepChart
                    points={sweeps.threads}
                    value={threads}
                    name="threads per block"
                    text={(value) => format.count(value)}
                    onValue={setThreads}
                />
            ) : null}
            <NumberField
                id="calc-regs"
                name="registers per thread"
                value={regs}
                recorded={recorded.regs}
                min={0}
                max={regsPerThreadMax}
                step={1}
                onValue={setRegs}
            />
            {sweeps ? (
                <SweepChart
                    points={sweeps.regs}
                    value={regs}
                    name="registers per thread"
                    text={(value) => format.count(value)}
                    onValue={setRegs}
                />
            ) : null}
            <NumberField
                id="calc-shared"
                name="shared memory, bytes"
                value={shared}
                recorded={recorded.shared}
                min={0}
                max={Math.max(1024, sharedMax)}
                step={1}
                onValue={setShared}
            />
            {sweeps ? (
                <SweepChart
                    points={sweeps.shared}
                    value={shared}
                    name="shared memory"
                    ticks={range(0, sharedMax, 65536)}
                    text={(value) => format.bytes(value)}
                    onValue={setShared}
                />
            ) : null}
        </div>
    );
}
