// SPDX-License-Identifier: Apache-2.0
// The pane of SASS or ISA: instructions with their gutter, the selected one's dependencies as arrows, and its details
// below.
import { Component, type ComponentChildren, type JSX } from "preact";
import { useMemo } from "preact/hooks";
import * as format from "../format";
import { Facts } from "../ui/tooltip";
import type { Instruction } from "./answers";
import { type Dependency, DependencyFinder, opcodeOf, wordParse } from "./dependency";
import { Heat, StallBar } from "./gutter";
import { ROW_PX, Rows } from "./rows";
import { sassTokens } from "./sass";
import { type CodeView, fileName, mainStall, placeKey, placesOf, stallsOf } from "./view";

export interface ListingProps {
    instructions: readonly Instruction[];
    language: "SASS" | "ISA";
    view: CodeView;
    samples: number; // of the function
    order: readonly number[]; // the instruction of each row
    isByAddress: boolean;
    chosen: number | null;
    lit: ReadonlySet<number>; // instructions of the line under the pointer
    onChoose: (index: number) => void;
    onPoint: (index: number | null) => void;
}

const pcText = (pc: number): string => `0x${pc.toString(16).padStart(4, "0")}`;
const pcShort = (pc: number): string => pc.toString(16).padStart(4, "0");

export function SassText({ step }: { step: Instruction }): JSX.Element {
    if (step.sass === null) return <span class="dim">unavailable</span>;
    if (step.is_raw) {
        const word = wordParse(step.sass);
        return (
            <>
                {word ? <span class="raw-opcode">{opcodeOf(word)}</span> : null}
                <span class="dim">{step.sass}</span>
            </>
        );
    }
    return (
        <>
            {sassTokens(step.sass.replace(/\s*;\s*$/, "")).map((token, index) => (
                <span key={index} class={`t-${token.kind}`}>
                    {token.text}
                </span>
            ))}
        </>
    );
}

// Average number of active threads per warp; null: not counted.
export function threadsActive(step: Instruction): number | null {
    const efficiency = step.counters?.thread_efficiency ?? null;
    return efficiency === null ? null : efficiency * 32;
}

function Arrows({
    dependencies,
    rowOf,
}: {
    dependencies: readonly Dependency[];
    rowOf: (index: number) => number;
}): JSX.Element | null {
    if (!dependencies.length) return null;
    const rows = dependencies.flatMap((dependency) => [rowOf(dependency.from), rowOf(dependency.to)]);
    const first = Math.min(...rows);
    const last = Math.max(...rows);
    const y = (index: number): number => (rowOf(index) - first) * ROW_PX + ROW_PX / 2;
    return (
        <svg
            class="arrows"
            width={20}
            height={(last - first + 1) * ROW_PX}
            style={{ top: `${first * ROW_PX}px` }}
            aria-hidden="true"
        >
            {dependencies.map((dependency, index) => {
                const x = 3 + 4 * index;
                return (
                    <g key={dependency.to}>
                        <path d={`M19 ${y(dependency.from)}H${x}V${y(dependency.to)}H15`} />
                        <path class="head" d={`M20 ${y(dependency.to)}l-6 -3v6z`} />
                    </g>
                );
            })}
        </svg>
    );
}

function InstructionFacts(props: {
    step: Instruction;
    samples: number;
    dependencies: readonly Dependency[];
    instructions: readonly Instruction[];
    onChoose: (index: number) => void;
}): JSX.Element {
    const { step, dependencies } = props;
    const stall = mainStall(step.stalls);
    const counters = step.counters;
    const facts: [string, ComponentChildren][] = [];
    if (step.samples > 0)
        facts.push([
            "samples",
            `${format.count(step.samples)} (${format.share(step.samples, props.samples)}): ${stallsOf(step.stalls)
                .slice(0, 4)
                .map(([reason, count]) => `${reason} ${format.share(count, step.samples)}`)
                .join(", ")}`,
        ]);
    if (stall && dependencies.length)
        facts.push([
            "waits for",
            <span class="row">
                {dependencies.map((dependency) => {
                    const target = props.instructions[dependency.to] as Instruction;
                    return (
                        <button
                            type="button"
                            class="plain"
                            key={dependency.to}
                            onClick={() => props.onChoose(dependency.to)}
                        >
                            {pcText(target.pc)} <code>{format.middleCut(target.sass ?? "", 48)}</code>{" "}
                            <span class="dim">through {dependency.through}</span>
                        </button>
                    );
                })}
            </span>,
        ]);
    const places = placesOf(step);
    if (places.length)
        facts.push([
            "source",
            places
                .map((place, index) => `${index ? "inlined at " : ""}${fileName(place.file)}:${place.line}`)
                .join(", "),
        ]);
    if (counters) {
        const threads = threadsActive(step);
        const parts = [
            counters.inst_executed === null ? "" : `executed by ${format.count(counters.inst_executed)} warps`,
            threads === null ? "" : `${format.digits(threads)} of 32 threads active`,
            counters.coalescing === null
                ? ""
                : `${format.percent(counters.coalescing)} of sectors needed ` +
                  `(${format.quantity(counters.sectors_per_request, "")} a request)`,
            counters.branch_efficiency === null
                ? ""
                : `${format.percent(1 - counters.branch_efficiency)} of branches diverged`,
            counters.bank_conflicts === null
                ? ""
                : `${format.digits(counters.bank_conflicts)} shared-memory passes where one would do`,
            counters.sectors_local ? `${format.count(counters.sectors_local)} sectors of local memory` : "",
        ].filter(Boolean);
        facts.push(["counted", parts.join("; ") || "nothing of this kind"]);
    }
    return (
        <div class="code-facts" aria-live="polite" data-testid="instruction-facts">
            <p class="mono">
                {pcText(step.pc)} <SassText step={step} />
            </p>
            {facts.length ? <Facts facts={facts} /> : <p class="dim">neither sampled nor counted</p>}
        </div>
    );
}

interface RowProps {
    row: number;
    step: Instruction;
    view: CodeView;
    samples: number;
    isLit: boolean;
    isOn: boolean;
    isTarget: boolean;
}

// Rendered again only if its appearance changes: scrolling and pointing affect thousands of rows.
class InstructionRow extends Component<RowProps> {
    override shouldComponentUpdate(next: RowProps): boolean {
        const now = this.props;
        return (
            next.step !== now.step ||
            next.view !== now.view ||
            next.row !== now.row ||
            next.isLit !== now.isLit ||
            next.isOn !== now.isOn ||
            next.isTarget !== now.isTarget
        );
    }

    override render(): JSX.Element {
        const { step, view, samples } = this.props;
        const threads = threadsActive(step);
        const executed = step.counters?.inst_executed ?? null;
        const sectors = step.counters?.coalescing ?? null;
        const classes = [
            "code-row",
            this.props.isLit ? "is-lit" : "",
            this.props.isOn ? "is-on" : "",
            this.props.isTarget ? "is-target" : "",
        ];
        return (
            <div class={classes.filter(Boolean).join(" ")} data-row={this.props.row} data-pc={step.pc}>
                {view.hasSamples ? (
                    <Heat value={step.samples} most={view.samplesMost} whole={samples} title="samples" />
                ) : null}
                {view.hasSamples ? (
                    <StallBar stalls={step.stalls} samples={step.samples} most={view.samplesMost} />
                ) : null}
                {view.hasCounters ? (
                    <span class="c-count">{executed === null ? "" : format.countShort(executed)}</span>
                ) : null}
                {view.hasCounters ? (
                    <span class={`c-threads${threads !== null && threads < 16 ? " amber" : ""}`}>
                        {threads === null ? "" : format.digits(threads)}
                    </span>
                ) : null}
                {view.hasMemoryCounters ? (
                    <span class={`c-sectors${sectors !== null && sectors < 0.5 ? " amber" : ""}`}>
                        {sectors === null ? "" : format.percent(sectors)}
                    </span>
                ) : null}
                <span class="c-arrow" />
                <span class="c-pc">{pcShort(step.pc)}</span>
                <span class="c-line">{step.line ?? ""}</span>
                <span class="c-text">
                    <SassText step={step} />
                </span>
            </div>
        );
    }
}

export function Listing(props: ListingProps): JSX.Element {
    const { instructions, view, order } = props;
    const finder = useMemo(() => new DependencyFinder(instructions), [instructions]);
    const rowOf = useMemo(() => {
        const rows = new Map(order.map((index, row) => [index, row]));
        return (index: number): number => rows.get(index) ?? 0;
    }, [order]);
    const chosenStep = props.chosen === null ? undefined : instructions[props.chosen];
    const dependencies = useMemo(() => {
        const stall = chosenStep ? mainStall(chosenStep.stalls) : null;
        return stall && props.chosen !== null ? finder.find(props.chosen, stall) : [];
    }, [finder, props.chosen]);
    const targets = useMemo(() => new Set(dependencies.map((dependency) => dependency.to)), [dependencies]);
    return (
        <div class="code-pane">
            <div class="code-heads" aria-hidden="true">
                {view.hasSamples ? <span class="heat">samples</span> : null}
                {view.hasSamples ? <span class="stall-bar">stall</span> : null}
                {view.hasCounters ? <span class="c-count">exec</span> : null}
                {view.hasCounters ? <span class="c-threads">threads</span> : null}
                {view.hasMemoryCounters ? <span class="c-sectors">sectors</span> : null}
                <span class="c-arrow" />
                <span class="c-pc">pc</span>
                <span class="c-line">line</span>
                <span class="grow">{props.language}</span>
            </div>
            <Rows
                count={order.length}
                label="instructions"
                at={props.chosen === null ? null : rowOf(props.chosen)}
                onPoint={(row) => props.onPoint(row === null ? null : (order[row] ?? null))}
                onChoose={(row) => props.onChoose(order[row] as number)}
                overlay={
                    props.isByAddress ? (
                        <div
                            class={[
                                "arrow-lane",
                                view.hasSamples ? "has-samples" : "",
                                view.hasCounters ? "has-counters" : "",
                                view.hasMemoryCounters ? "has-memory" : "",
                            ].join(" ")}
                        >
                            <Arrows dependencies={dependencies} rowOf={rowOf} />
                        </div>
                    ) : null
                }
            >
                {(row) => {
                    const index = order[row] as number;
                    return (
                        <InstructionRow
                            key={index}
                            row={row}
                            step={instructions[index] as Instruction}
                            view={view}
                            samples={props.samples}
                            isLit={props.lit.has(index)}
                            isOn={index === props.chosen}
                            isTarget={targets.has(index)}
                        />
                    );
                }}
            </Rows>
            {chosenStep ? (
                <InstructionFacts
                    step={chosenStep}
                    samples={props.samples}
                    dependencies={dependencies}
                    instructions={instructions}
                    onChoose={props.onChoose}
                />
            ) : null}
        </div>
    );
}

// The line of each instruction, for highlighting.
export function linesOf(step: Instruction): string[] {
    return placesOf(step).map((place) => placeKey(place.file, place.line));
}
