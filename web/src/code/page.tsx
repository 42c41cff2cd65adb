// SPDX-License-Identifier: Apache-2.0
// Code: functions by samples, the instructions of one function, and its source.
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import "./code.css";
import { stallColour } from "../colour";
import { traceCommand } from "../commands";
import * as format from "../format";
import { useKeys } from "../keys";
import type { StallsAnswer } from "../kernels/answers";
import { useSession } from "../query";
import { route, sessionId, setParams, useParam } from "../route";
import { revisionOf, type SessionSummary, useSummary } from "../session";
import { Bar, Legend } from "../ui/charts";
import { Answered, Command, Empty, Partial } from "../ui/states";
import { type Column, Table } from "../ui/table";
import {
    type CodeAnswer,
    type CodeFunction,
    type CodeFunctionEntry,
    functionKey,
    functionName,
    functionPath,
    type Instruction,
} from "./answers";
import { linesOf, Listing } from "./listing";
import { SourcePane } from "./source";
import { codeView, dataText, type LineUse, placeKey, placesOf, resourcesText, stallsOf } from "./view";

const none: ReadonlySet<number> = new Set();
const entryKey = (entry: CodeFunctionEntry | CodeFunction): string => `${functionKey(entry)}/${entry.cubin_crc ?? ""}`;

function functionColumns(samples: number, hasCounters: boolean): Column<CodeFunctionEntry>[] {
    const columns: Column<CodeFunctionEntry>[] = [
        {
            id: "name",
            title: "function",
            value: (entry) => functionName(entry.name),
            cell: (entry) => (
                <span title={functionName(entry.name)}>
                    {format.middleCut(format.shortName(functionName(entry.name)), 60)}
                </span>
            ),
            isKept: true,
        },
    ];
    if (samples > 0)
        columns.push({
            id: "samples",
            title: "samples",
            width: 80,
            isKept: true,
            value: (entry) => entry.samples,
            cell: (entry) => (
                <span class="hot" title={`${format.count(entry.samples)} samples`}>
                    <Bar value={entry.samples / samples} label={`${format.share(entry.samples, samples)} of samples`} />
                    <span>{format.share(entry.samples, samples)}</span>
                </span>
            ),
        });
    else if (hasCounters)
        columns.push({
            id: "executed",
            title: "executed",
            about: "warp instructions",
            width: 80,
            isKept: true,
            value: (entry) => entry.counters?.inst_executed ?? null,
            text: (entry) => format.countShort(entry.counters?.inst_executed, "–"),
        });
    return columns;
}

function Functions({
    functions,
    chosen,
}: {
    functions: readonly CodeFunctionEntry[];
    chosen: CodeFunctionEntry | undefined;
}): JSX.Element {
    const samples = functions.reduce((sum, entry) => sum + entry.samples, 0);
    const hasCounters = functions.some((entry) => entry.counters !== null);
    const columns = useMemo(() => functionColumns(samples, hasCounters), [samples, hasCounters]);
    return (
        <Table
            id="functions"
            label="functions"
            rows={functions}
            columns={columns}
            rowKey={entryKey}
            isBare={functions.length < 12}
            heightMax="100%"
            onRow={(entry) =>
                setParams({ function: functionKey(entry), crc: entry.cubin_crc, pc: null, file: null }, false)
            }
            isOn={(entry) => chosen !== undefined && entryKey(entry) === entryKey(chosen)}
        />
    );
}

function Ratios({ code }: { code: CodeFunction }): JSX.Element | null {
    const counters = code.counters;
    if (!counters) return null;
    const parts: [string, number | null][] = [
        ["threads active", counters.thread_efficiency],
        ["sectors needed", counters.coalescing],
        ["branches uniform", counters.branch_efficiency],
    ];
    const known = parts.filter((part): part is [string, number] => part[1] !== null);
    return (
        <span class="dim small">
            {known.map(([name, value]) => `${name} ${format.percent(value)}`).join(" · ")}
            {counters.bank_conflicts === null
                ? ""
                : ` · shared-memory passes ${format.digits(counters.bank_conflicts)}× the ideal`}
        </span>
    );
}

// AMD kernels contain this themselves; for NVIDIA it is in the launches.
function Resources({ code }: { code: CodeFunction }): JSX.Element | null {
    return code.resources ? <span class="dim small">{resourcesText(code.resources)}</span> : null;
}

function FunctionView({ code, session }: { code: CodeFunction; session: string }): JSX.Element {
    const { instructions } = code;
    const view = useMemo(() => codeView(instructions), [instructions]);
    const [order, setOrder] = useParam("order", "address");
    const isByAddress = order !== "hot";
    const rows = useMemo(
        () => (isByAddress ? instructions.map((_, index) => index) : view.hottest),
        [view, isByAddress],
    );
    const [pointed, setPointed] = useState<{ lines: ReadonlySet<string>; instructions: ReadonlySet<number> } | null>(
        null,
    );
    const wanted = route.value.params.pc;
    const byPc = useMemo(
        () => (wanted === undefined ? -1 : instructions.findIndex((step) => step.pc === Number(wanted))),
        [instructions, wanted],
    );
    const chosen = byPc >= 0 ? byPc : (view.hottest[0] ?? (instructions.length ? 0 : null));
    const chosenStep = chosen === null ? undefined : instructions[chosen];
    const places = chosenStep ? placesOf(chosenStep) : [];
    const fileParam = route.value.params.file;
    const file =
        view.files.find((candidate) => candidate.file === fileParam) ??
        view.files.find((candidate) => candidate.file === places[0]?.file) ??
        view.files[0] ??
        null;
    const choose = (index: number): void => {
        const step = instructions[index];
        if (step) setParams({ pc: step.pc, file: null });
    };
    const pointInstruction = (index: number | null): void => {
        const step = index === null ? undefined : instructions[index];
        setPointed(step && index !== null ? { lines: new Set(linesOf(step)), instructions: new Set([index]) } : null);
    };
    const pointLine = (line: LineUse | null): void =>
        setPointed(
            line && file
                ? { lines: new Set([placeKey(file.file, line.line)]), instructions: new Set(line.instructions) }
                : null,
        );
    const chooseLine = (line: LineUse): void => {
        const hottest = line.instructions.reduce(
            (best, index) => ((instructions[index]?.samples ?? 0) > (instructions[best]?.samples ?? 0) ? index : best),
            line.instructions[0] ?? 0,
        );
        setParams({ pc: (instructions[hottest] as Instruction).pc, file: file?.file });
    };
    const litLines = useMemo(() => {
        const keys = pointed?.lines ?? new Set(chosenStep ? linesOf(chosenStep) : []);
        return new Set([...(file?.lines.keys() ?? [])].filter((line) => keys.has(placeKey(file?.file ?? "", line))));
    }, [pointed, file, chosenStep]);
    const lit = pointed?.instructions ?? none;
    const move = (by: number): void => {
        const at = chosen === null ? -1 : rows.indexOf(chosen);
        const next = rows[Math.max(0, Math.min(rows.length - 1, at + by))];
        if (next !== undefined) choose(next);
    };
    const moveHot = (by: number): void => {
        const at = chosen === null ? -1 : view.hottest.indexOf(chosen);
        const next = view.hottest[at < 0 ? 0 : (at + by + view.hottest.length) % view.hottest.length];
        if (next !== undefined) choose(next);
    };
    useKeys([
        { keys: "j", about: "next instruction", group: "Code", isRepeatable: true, run: () => move(1) },
        { keys: "k", about: "previous instruction", group: "Code", isRepeatable: true, run: () => move(-1) },
        { keys: "n", about: "next hottest instruction", group: "Code", run: () => moveHot(1) },
        { keys: "N", about: "hottest before", group: "Code", run: () => moveHot(-1) },
        {
            keys: "o",
            about: "by address, or hottest first",
            group: "Code",
            run: () => setOrder(isByAddress ? "hot" : "address"),
        },
    ]);
    const legend = stallsOf(view.stalls)
        .slice(0, 8)
        .map(([name, value]) => ({
            name: format.middleCut(name, 40),
            value,
            colour: stallColour(name),
            text: format.share(value, code.samples),
        }));
    const rawCount = view.rawCount;
    return (
        <>
            <div class="code-middle">
                <div class="section-head">
                    <h2 title={functionName(code.name)}>{format.middleCut(functionName(code.name), 90)}</h2>
                    <Ratios code={code} />
                    <Resources code={code} />
                    <span class="grow" />
                    {view.hasSamples || view.hasCounters ? (
                        <button
                            type="button"
                            aria-pressed={!isByAddress}
                            class={isByAddress ? "" : "is-on"}
                            onClick={() => setOrder(isByAddress ? "hot" : "address")}
                        >
                            hottest first
                        </button>
                    ) : null}
                </div>
                {code.problem ? <div class="notice is-calm small">{code.problem}</div> : null}
                {rawCount > 0 ? (
                    <div class="notice is-calm small">
                        {rawCount === instructions.length
                            ? "Instructions are shown"
                            : `${format.count(rawCount)} instructions are shown`}{" "}
                        as raw words{code.language === "SASS" ? ", named where the operation is known" : ""}: the log
                        holds their code but no text. A server that is started with{" "}
                        {code.language === "ISA" ? "GPUFL_LLVM_OBJDUMP" : "GPUFL_NVDISASM"} shows text.
                    </div>
                ) : null}
                {code.left_out ? (
                    <div class="notice small">{format.count(code.left_out)} more instructions are not shown.</div>
                ) : null}
                {legend.length ? <Legend parts={legend} /> : null}
                <Listing
                    instructions={instructions}
                    language={code.language}
                    view={view}
                    samples={code.samples}
                    order={rows}
                    isByAddress={isByAddress}
                    chosen={chosen}
                    lit={lit}
                    onChoose={choose}
                    onPoint={pointInstruction}
                />
            </div>
            <SourcePane
                session={session}
                code={code}
                view={view}
                lit={litLines}
                at={places.find((place) => place.file === file?.file)?.line ?? null}
                file={file}
                onFile={(path) => setParams({ file: path })}
                onPoint={pointLine}
                onChoose={chooseLine}
            />
        </>
    );
}

function NoCode({ stalls, summary }: { stalls: StallsAnswer | null; summary: SessionSummary | null }): JSX.Element {
    const refused =
        stalls?.capabilities.filter(
            (entry) => entry.requested && entry.status !== "collected" && /pc_sampling|sass/.test(entry.feature),
        ) ?? [];
    const engine = summary?.session.engine;
    return (
        <Empty
            title={`No instruction was sampled or counted${engine ? ` (engine ${engine})` : ""}.`}
            command={traceCommand("--engine Deep")}
        >
            {refused.map((entry) => (
                <p class="dim" key={entry.feature}>
                    {entry.feature}: {entry.message ?? entry.status}
                </p>
            ))}
            <p class="dim">Deep alternates between samples and counters; these engines record only one of them:</p>
            <Command text={traceCommand("--engine PcSampling")} />
            <Command text={traceCommand("--engine SassMetrics")} />
        </Empty>
    );
}

export default function CodePage(): JSX.Element {
    const session = sessionId.value ?? "";
    const summary = useSummary();
    const options = { version: revisionOf(summary.data) };
    const code = useSession<CodeAnswer>(session, "code", { limit: 1 }, options);
    const stalls = useSession<StallsAnswer>(session, "stalls", {}, options);
    const functions = code.data?.functions ?? [];
    const wanted = route.value.params.function;
    const crc = route.value.params.crc;
    const chosen =
        functions.find(
            (entry) =>
                (functionKey(entry) === wanted || entry.name === wanted) &&
                (crc === undefined || entry.cubin_crc === crc),
        ) ?? functions[0];
    const listing = useSession<CodeFunction>(
        chosen ? session : null,
        chosen ? functionPath(chosen) : "code",
        { cubin_crc: chosen?.cubin_crc },
        options,
    );
    const statement = stalls.data
        ? dataText({
              sampling: stalls.data.sampling,
              windows: stalls.data.windows,
              samples: stalls.data.stalls?.samples ?? null,
              kernels: summary.data?.completeness.kernels ?? null,
              untimed: stalls.data.untimed_launches,
          })
        : "";
    return (
        <div class="page code-page">
            <div class="page-head">
                <h1>Code</h1>
                <span class="dim" data-testid="data-statement">
                    {statement}
                </span>
            </div>
            <Partial completeness={summary.data?.completeness} />
            <Answered
                answer={code}
                what="code"
                isEmpty={(data) => data.functions.length === 0}
                empty={<NoCode stalls={stalls.data} summary={summary.data} />}
            >
                {() => (
                    <div class="code-panes">
                        <div class="code-functions">
                            <Functions functions={functions} chosen={chosen} />
                        </div>
                        <Answered answer={listing} what="instructions">
                            {(data) => <FunctionView key={entryKey(data)} code={data} session={session} />}
                        </Answered>
                    </div>
                )}
            </Answered>
        </div>
    );
}
