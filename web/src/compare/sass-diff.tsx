// SPDX-License-Identifier: Apache-2.0
// The changes of a kernel's instructions, if both sessions contain its code.
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import * as format from "../format";
import {
    type CodeAnswer,
    type CodeFunction,
    type CodeFunctionEntry,
    functionKey,
    functionPath,
    type Instruction,
} from "../code/answers";
import { SassText } from "../code/listing";
import { functionsOf } from "../kernels/stalls";
import { type Answer, useSession } from "../query";
import { href } from "../route";
import { Answered } from "../ui/states";
import { diffBlocks, listingDiff, shownRows } from "./diff";

const ROWS_MAX = 2000; // shown at once

const textOf = (step: Instruction): string => step.sass ?? step.word ?? `unavailable at ${step.pc}`;

function Half({
    code,
    index,
    isEqual,
    sign,
}: {
    code: CodeFunction;
    index: number | null;
    isEqual: boolean;
    sign: string;
}): JSX.Element {
    const step = index === null ? undefined : code.instructions[index];
    if (!step) return <div class={`diff-half${isEqual ? "" : " is-none"}`} />;
    return (
        <div class={`diff-half${isEqual ? "" : ` is-${sign === "-" ? "removed" : "added"}`}`}>
            <span class="diff-sign">{isEqual ? "" : sign}</span>
            <span class="diff-samples">{step.samples ? format.share(step.samples, code.samples) : ""}</span>
            <span class="diff-pc">{`0x${step.pc.toString(16).padStart(4, "0")} `}</span>
            <SassText step={step} />
        </div>
    );
}

function DiffView({ base, fresh }: { base: CodeFunction; fresh: CodeFunction }): JSX.Element {
    const blocks = useMemo(
        () => diffBlocks(listingDiff(base.instructions.map(textOf), fresh.instructions.map(textOf))),
        [base, fresh],
    );
    const [opened, setOpened] = useState<ReadonlySet<number>>(new Set());
    const shown = useMemo(() => shownRows(blocks, opened), [blocks, opened]);
    const removed = blocks
        .filter((block) => !block.isEqual)
        .flatMap((block) => block.rows)
        .filter((row) => row.base !== null).length;
    const added = blocks
        .filter((block) => !block.isEqual)
        .flatMap((block) => block.rows)
        .filter((row) => row.fresh !== null).length;
    return (
        <>
            <p class="dim small" data-testid="diff-summary">
                {removed || added
                    ? `${format.count(removed)} instructions removed, ${format.count(added)} added; ` +
                      `${format.count(base.instructions.length)} before, ${format.count(fresh.instructions.length)} after`
                    : `the code differs, the ${format.count(base.instructions.length)} instructions of this kernel do not`}
                {base.instructions.some((step) => step.is_raw) !== fresh.instructions.some((step) => step.is_raw)
                    ? "; one side has text, the other raw words: they cannot match"
                    : ""}
            </p>
            <div class="diff" tabIndex={0} role="region" aria-label="instructions before and after">
                {shown.slice(0, ROWS_MAX).map((row, index) =>
                    "hidden" in row ? (
                        <button
                            type="button"
                            class="diff-hidden"
                            key={index}
                            onClick={() => setOpened(new Set([...opened, row.block]))}
                        >
                            {format.count(row.hidden)} equal instructions
                        </button>
                    ) : (
                        <div class="diff-row" key={index}>
                            <Half code={base} index={row.base} isEqual={row.isEqual} sign="-" />
                            <Half code={fresh} index={row.fresh} isEqual={row.isEqual} sign="+" />
                        </div>
                    ),
                )}
            </div>
            {shown.length > ROWS_MAX ? (
                <p class="dim small">{format.count(shown.length - ROWS_MAX)} more rows are not shown.</p>
            ) : null}
        </>
    );
}

function useFunction(
    session: string,
    name: string | null,
): { list: Answer<CodeAnswer>; entry: CodeFunctionEntry | null } {
    const list = useSession<CodeAnswer>(session, "code", { limit: 1 });
    return { list, entry: functionsOf(name, list.data?.functions ?? [])[0] ?? null };
}

export function SassDiff({ name, a, b }: { name: string | null; a: string; b: string }): JSX.Element {
    const base = useFunction(a, name);
    const fresh = useFunction(b, name);
    const hasBoth = base.entry !== null && fresh.entry !== null;
    const isSame = hasBoth && base.entry?.cubin_crc !== null && base.entry?.cubin_crc === fresh.entry?.cubin_crc;
    const isAsked = hasBoth && !isSame;
    const baseCode = useSession<CodeFunction>(isAsked ? a : null, base.entry ? functionPath(base.entry) : "code", {
        cubin_crc: base.entry?.cubin_crc,
    });
    const freshCode = useSession<CodeFunction>(isAsked ? b : null, fresh.entry ? functionPath(fresh.entry) : "code", {
        cubin_crc: fresh.entry?.cubin_crc,
    });
    const missing = [base.entry ? "" : "before", fresh.entry ? "" : "after"].filter(Boolean).join(" and ");
    return (
        <section class="section" aria-label="code">
            <div class="section-head">
                <h2>Code</h2>
                {base.entry ? (
                    <a href={href("code", { function: functionKey(base.entry), crc: base.entry.cubin_crc }, a)}>
                        before
                    </a>
                ) : null}
                {fresh.entry ? (
                    <a href={href("code", { function: functionKey(fresh.entry), crc: fresh.entry.cubin_crc }, b)}>
                        after
                    </a>
                ) : null}
            </div>
            <Answered answer={base.list} what="code">
                {() => (
                    <Answered answer={fresh.list} what="code">
                        {() =>
                            !hasBoth ? (
                                <p class="dim">
                                    not compared: no engine kept the code of this kernel {missing} (Deep, PcSampling and
                                    SassMetrics do)
                                </p>
                            ) : isSame ? (
                                <p class="dim" data-testid="diff-summary">
                                    the same code in both sessions (CRC {base.entry?.cubin_crc})
                                </p>
                            ) : (
                                <Answered answer={baseCode} what="the code before">
                                    {(before) => (
                                        <Answered answer={freshCode} what="the code after">
                                            {(after) => <DiffView base={before} fresh={after} />}
                                        </Answered>
                                    )}
                                </Answered>
                            )
                        }
                    </Answered>
                )}
            </Answered>
        </section>
    );
}
