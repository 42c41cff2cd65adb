// SPDX-License-Identifier: Apache-2.0
// What a page shows while loading, when it is empty or incomplete, or when a request failed.
import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import { isKeyNeeded, keyWrite, type Problem } from "../api";
import * as format from "../format";
import type { Answer } from "../query";
import { Drawn, Guard } from "./guard";

export function Loading({ what = "" }: { what?: string }): JSX.Element {
    return (
        <div class="state is-loading" role="status">
            {what === "" ? "Loading…" : `Loading ${what}…`}
        </div>
    );
}

export function copyText(text: string): Promise<boolean> {
    return navigator.clipboard.writeText(text).then(
        () => true,
        () => false,
    );
}

export function CopyButton({
    text,
    label = "copy",
    title,
}: {
    text: string | (() => string);
    label?: string;
    title?: string;
}): JSX.Element {
    const [said, setSaid] = useState("");
    const copy = async (): Promise<void> => {
        setSaid(
            (await copyText(typeof text === "string" ? text : text())) ? "copied" : "not allowed by the browser",
        );
        window.setTimeout(() => setSaid(""), 1500);
    };
    return (
        <button type="button" title={title ?? "copy"} onClick={() => void copy()}>
            <span aria-live="polite">{said || label}</span>
        </button>
    );
}

export function Command({ text }: { text: string }): JSX.Element {
    return (
        <div class="command">
            <code tabIndex={0}>{text}</code>
            <CopyButton text={text} title="copy the command" />
        </div>
    );
}

// Empty, with a command that would fill the page.
export function Empty({
    title,
    command,
    children,
}: {
    title: string;
    command?: string;
    children?: ComponentChildren;
}): JSX.Element {
    return (
        <div class="state">
            <p>{title}</p>
            {children}
            {command ? <Command text={command} /> : null}
        </div>
    );
}

export function KeyForm(): JSX.Element {
    const [key, setKey] = useState("");
    const [isKept, setKept] = useState(false);
    return (
        <form
            class="row"
            onSubmit={(event) => {
                event.preventDefault();
                if (key.trim() !== "") keyWrite(key.trim(), isKept);
            }}
        >
            <input
                type="password"
                autocomplete="off"
                aria-label="API key"
                placeholder="gpfl_…"
                value={key}
                onInput={(event) => setKey(event.currentTarget.value)}
            />
            <button type="submit">use this key</button>
            <label class="row">
                <input type="checkbox" checked={isKept} onChange={(event) => setKept(event.currentTarget.checked)} />
                keep it in this browser
            </label>
        </form>
    );
}

export function Failed({ problem, reload }: { problem: Problem; reload?: () => void }): JSX.Element {
    return (
        <div class="state" role="alert">
            <p class="red">{problem.message}</p>
            {problem.hint === "" ? null : <p class="dim">{problem.hint}</p>}
            {problem.status === 401 || (problem.status === 403 && isKeyNeeded.value) ? <KeyForm /> : null}
            {reload ? (
                <button type="button" onClick={reload}>
                    try again now
                </button>
            ) : null}
        </div>
    );
}

export interface Completeness {
    is_complete: boolean;
    has_shutdown: boolean;
    is_live: boolean;
    has_torn_tail: boolean;
    signal: number | null;
    damaged_lines: number;
    missing_lines: number;
    missing_rows: number;
    invalid_rows: number;
    kernels: number;
    lost: number;
    lost_details?: number; // part of `lost`: records that lack their call, scope, stack or name
    lost_is_exact: boolean;
    losses: { reason: string; what?: string; count: number; [more: string]: unknown }[];
}

// One line that describes what is missing; "" if nothing is.
export function completenessText(state: Completeness): string {
    const parts: string[] = [];
    const details = state.lost_details ?? 0;
    if (state.lost > details)
        parts.push(
            `${state.lost_is_exact ? "" : "at least "}${format.count(state.lost - details)} events were not recorded`,
        );
    if (details > 0) parts.push(`${format.count(details)} events lack their call, scope, stack or name`);
    if (state.missing_lines > 0) parts.push(`${format.count(state.missing_lines)} lines are missing`);
    if (state.missing_rows > 0) parts.push(`${format.count(state.missing_rows)} rows are missing`);
    if (state.damaged_lines > 0) parts.push(`${format.count(state.damaged_lines)} lines are damaged`);
    if (state.invalid_rows > 0) parts.push(`${format.count(state.invalid_rows)} rows are invalid`);
    if (state.has_torn_tail) parts.push("the last line is torn");
    if (state.signal !== null) parts.push(`the program was killed by signal ${state.signal}`);
    else if (!state.has_shutdown && !state.is_live) parts.push("the recording was never closed");
    return parts.join("; ");
}

export function Partial({ completeness }: { completeness: Completeness | null | undefined }): JSX.Element | null {
    if (!completeness) return null;
    const text = completenessText(completeness);
    if (text === "")
        return completeness.is_live ? <div class="notice is-calm">This session is still being recorded.</div> : null;
    return <div class={completeness.lost > 0 ? "notice is-red" : "notice"}>Not complete: {text}.</div>;
}

// Loading, failed, empty, or the page; an outdated answer is kept, with a note.
export function Answered<T>(props: {
    answer: Answer<T>;
    what?: string;
    isEmpty?: (data: T) => boolean;
    empty?: ComponentChildren;
    children: (data: T) => ComponentChildren;
}): JSX.Element {
    const { answer } = props;
    const { data } = answer;
    if (data === null)
        return answer.problem ? (
            <Failed problem={answer.problem} reload={answer.reload} />
        ) : (
            <Loading what={props.what ?? ""} />
        );
    return (
        <>
            {answer.problem ? (
                <div class="notice" role="status">
                    This is not the newest: {answer.problem.message}
                </div>
            ) : null}
            <Guard what="this part of the page" of={data}>
                <Drawn draw={() => (props.isEmpty?.(data) ? props.empty : props.children(data))} />
            </Guard>
        </>
    );
}
