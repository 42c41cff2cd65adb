// SPDX-License-Identifier: Apache-2.0
// Keyboard shortcuts. Pages bind keys while they are shown; the latest binding wins.
import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

export interface Key {
    keys: string; // "g f": one after the other; "Shift+A"; "Escape"; letters as typed
    about: string;
    run: (event: KeyboardEvent) => void;
    group?: string;
    isRepeatable?: boolean; // also while held down
}

const bound: Key[][] = [];
export const keysVersion = signal(0);
let pending = "";
let pendingTimer = 0;
const SEQUENCE_MS = 1200;

export function keysBound(): Key[] {
    return bound.flat();
}

export function keyName(event: Pick<KeyboardEvent, "key" | "ctrlKey" | "metaKey" | "altKey" | "shiftKey">): string {
    const name = event.key === " " ? "Space" : event.key;
    const isLetter = name.length === 1;
    return (
        (event.ctrlKey || event.metaKey ? "Ctrl+" : "") +
        (event.altKey ? "Alt+" : "") +
        (event.shiftKey && !isLetter ? "Shift+" : "") +
        name
    );
}

function isTyping(target: EventTarget | null): boolean {
    return (
        target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
    );
}

function find(name: string): Key | undefined {
    for (let i = bound.length - 1; i >= 0; i--) {
        const key = bound[i]?.find((candidate) => candidate.keys === name);
        if (key) return key;
    }
    return undefined;
}

function onKey(event: KeyboardEvent): void {
    if (event.defaultPrevented || (isTyping(event.target) && event.key !== "Escape")) return;
    if (event.key === "Shift" || event.key === "Control" || event.key === "Alt" || event.key === "Meta") return;
    const name = keyName(event);
    const key = (pending === "" ? undefined : find(`${pending} ${name}`)) ?? find(name);
    const isPrefix = pending === "" && !key && bound.flat().some((candidate) => candidate.keys.startsWith(`${name} `));
    window.clearTimeout(pendingTimer);
    pending = isPrefix ? name : "";
    if (isPrefix) pendingTimer = window.setTimeout(() => (pending = ""), SEQUENCE_MS);
    if (!key || (event.repeat && !key.isRepeatable)) return;
    event.preventDefault();
    key.run(event);
}

export function keysStart(): void {
    window.addEventListener("keydown", onKey);
}

// Bound while the component is shown.
export function useKeys(keys: Key[]): void {
    const latest = useRef(keys);
    latest.current = keys;
    useEffect(() => {
        const mine = keys.map((key, index) => ({
            ...key,
            run: (event: KeyboardEvent) => latest.current[index]?.run(event),
        }));
        bound.push(mine);
        keysVersion.value++;
        return () => {
            bound.splice(bound.indexOf(mine), 1);
            keysVersion.value++;
        };
    }, [keys.map((key) => key.keys).join("|")]);
}
