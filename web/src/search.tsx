// SPDX-License-Identifier: Apache-2.0
// The search in the top bar: sessions by any text, kernels of all sessions by part of their name.
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { kernelColour } from "./colour";
import * as format from "./format";
import { useKeys } from "./keys";
import { useAnswer } from "./query";
import { href, navigateTo } from "./route";
import type { SessionEntry } from "./session";

interface FoundKernel {
    name: string;
    session_id: string;
    kernel_id: number;
    count: number;
    total_ns: number;
}
interface Hit {
    key: string;
    group: string;
    address: string;
    name: string;
    note: string;
    colour: string | null;
}

const WAIT_MS = 150;

function useSettled(text: string): string {
    const [settled, setSettled] = useState(text);
    useEffect(() => {
        const timer = window.setTimeout(() => setSettled(text), WAIT_MS);
        return () => window.clearTimeout(timer);
    }, [text]);
    return settled;
}

export function Search(): JSX.Element {
    const [text, setText] = useState("");
    const [isOpen, setOpen] = useState(false);
    const [at, setAt] = useState(0);
    const input = useRef<HTMLInputElement>(null);
    const asked = useSettled(text.trim());
    const isAsking = isOpen && asked.length >= 2;
    const sessions = useAnswer<{ sessions: SessionEntry[] }>(isAsking ? "sessions" : null, { q: asked, limit: 8 });
    const kernels = useAnswer<{ kernels: FoundKernel[] }>(isAsking ? "search/kernels" : null, { q: asked, limit: 12 });
    useKeys([
        { keys: "/", about: "search sessions and kernels", group: "Everywhere", run: () => input.current?.focus() },
    ]);

    const hits: Hit[] = [
        ...(sessions.data?.sessions ?? []).map((session) => ({
            key: session.id,
            group: "Sessions",
            address: href("overview", {}, session.id),
            name: session.app ?? session.id,
            note: `${session.host ?? ""} ${format.instant(session.start_ns)}`,
            colour: null,
        })),
        ...(kernels.data?.kernels ?? []).map((kernel) => ({
            key: `${kernel.session_id} ${kernel.kernel_id}`,
            group: "Kernels",
            address: href("kernel", { id: kernel.kernel_id }, kernel.session_id),
            name: format.middleCut(kernel.name, 60),
            note: `${format.count(kernel.count)} × in ${format.time(kernel.total_ns)}`,
            colour: kernelColour(kernel.name),
        })),
    ];
    const go = (hit: Hit | undefined): void => {
        if (!hit) return;
        setOpen(false);
        input.current?.blur();
        navigateTo(hit.address);
    };
    const onKeyDown = (event: KeyboardEvent): void => {
        if (event.key === "Escape") {
            setOpen(false);
            input.current?.blur();
        } else if (event.key === "Enter") go(hits[at]);
        else if (event.key === "ArrowDown") setAt(Math.min(at + 1, hits.length - 1));
        else if (event.key === "ArrowUp") setAt(Math.max(at - 1, 0));
        else return;
        event.preventDefault();
    };
    const problem = sessions.problem ?? kernels.problem;
    const isLoading = sessions.isLoading || kernels.isLoading || asked !== text.trim();
    const words = problem
        ? problem.message
        : isLoading
          ? "Searching…"
          : hits.length === 0
            ? "Nothing has this in its name."
            : "";
    return (
        <div
            class="search"
            onFocusOut={(event) =>
                !(event.currentTarget as Element).contains(event.relatedTarget as Node | null) && setOpen(false)
            }
        >
            <input
                ref={input}
                type="search"
                role="combobox"
                aria-expanded={isAsking}
                aria-controls="search-list"
                aria-label="search sessions and kernels"
                placeholder="search  /"
                value={text}
                onFocus={() => setOpen(true)}
                onInput={(event) => {
                    setText(event.currentTarget.value);
                    setOpen(true);
                    setAt(0);
                }}
                onKeyDown={onKeyDown}
            />
            {isAsking ? (
                <div class="search-list" id="search-list" role="listbox" aria-label="found">
                    {hits.map((hit, index) => [
                        hits[index - 1]?.group === hit.group ? null : (
                            <div class="group" role="presentation" key={hit.group}>
                                {hit.group}
                            </div>
                        ),
                        <a
                            key={hit.key}
                            href={hit.address}
                            role="option"
                            aria-selected={index === at}
                            class={index === at ? "is-on" : ""}
                            onClick={() => setOpen(false)}
                        >
                            {hit.colour ? <i class="swatch" style={{ background: hit.colour }} /> : null}
                            <span class="grow cut">{hit.name}</span>
                            <span class="dim small nowrap">{hit.note}</span>
                        </a>,
                    ])}
                    {words === "" ? null : (
                        <div class="group" role="option" aria-selected={false} aria-disabled="true">
                            {words}
                        </div>
                    )}
                </div>
            ) : null}
        </div>
    );
}
