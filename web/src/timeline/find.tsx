// SPDX-License-Identifier: Apache-2.0
// Search within the session: matches keep their colour, everything else is dimmed; choosing a kernel in the list
// scrolls to it.
import type { JSX, RefObject } from "preact";
import { useState } from "preact/hooks";
import { getExactJson } from "../api";
import { kernelColour } from "../colour";
import * as format from "../format";
import { problemOf, useSession } from "../query";
import type { InstancesAnswer } from "./event";
import { plainText } from "./labels";
import type { TimelineModel } from "./model";

interface KernelsAnswer {
    kernels: { name: string | null; kernel_id: number; count: number; total_ns: number }[];
    total: number;
}

const listed = 12;

export function Find({ model, input }: { model: TimelineModel; input: RefObject<HTMLInputElement> }): JSX.Element {
    const [isOpen, setOpen] = useState(false);
    const [at, setAt] = useState(0);
    const text = model.search.value;
    const answer = useSession<KernelsAnswer>(isOpen && text.length > 1 ? model.session : null, "kernels", {
        q: text,
        limit: listed,
    });
    const kernels = answer.data?.kernels ?? [];
    /** Goes to its first execution in view or after it. */
    const go = async (kernel: number): Promise<void> => {
        setOpen(false);
        try {
            const path = `${model.path}/kernels/${kernel}/instances`;
            const after = await getExactJson<InstancesAnswer>(path, {
                from_ns: model.base.wall(Math.max(0, model.view.value.from)),
                limit: 1,
            });
            const found = after.instances[0] ?? (await getExactJson<InstancesAnswer>(path, { limit: 1 })).instances[0];
            if (found) model.selectInstance(kernel, found);
        } catch (error) {
            model.problem.value = problemOf(error);
        }
    };
    const onKeyDown = (event: KeyboardEvent): void => {
        if (event.key === "ArrowDown") setAt(Math.min(at + 1, kernels.length - 1));
        else if (event.key === "ArrowUp") setAt(Math.max(at - 1, 0));
        else if (event.key === "Enter" && kernels[at]) void go(kernels[at].kernel_id);
        else if (event.key === "Escape") {
            setOpen(false);
            return;
        } else return;
        event.preventDefault();
    };
    const isListShown = isOpen && text.length > 1 && answer.data !== null;
    return (
        <div class="tl-find">
            <input
                ref={input}
                type="search"
                value={text}
                placeholder="find and highlight ( / )"
                aria-label="find and highlight"
                role="combobox"
                aria-expanded={isListShown}
                aria-controls="tl-found"
                autocomplete="off"
                onInput={(event) => {
                    model.search.value = event.currentTarget.value;
                    setOpen(true);
                    setAt(0);
                }}
                onKeyDown={onKeyDown}
                onBlur={() => setTimeout(() => setOpen(false), 150)}
            />
            {isListShown ? (
                <div class="search-list" id="tl-found" role="listbox" aria-label="kernels found">
                    {kernels.length === 0 ? (
                        <div class="group">no kernel name matches; scopes are highlighted</div>
                    ) : null}
                    {kernels.map((kernel, index) => (
                        <a
                            key={kernel.kernel_id}
                            role="option"
                            aria-selected={index === at}
                            class={index === at ? "is-on" : ""}
                            href="#"
                            onMouseDown={(event) => event.preventDefault()}
                            onClick={(event) => {
                                event.preventDefault();
                                event.stopPropagation();
                                void go(kernel.kernel_id);
                            }}
                        >
                            <i class="swatch" style={{ background: kernelColour(kernel.name ?? "") }} />
                            <span class="grow cut">
                                {format.middleCut(plainText(kernel.name ?? "name not recorded"), 60)}
                            </span>
                            <span class="dim nowrap">
                                {format.countShort(kernel.count)}× {format.time(kernel.total_ns)}
                            </span>
                        </a>
                    ))}
                    {(answer.data?.total ?? 0) > listed ? (
                        <div class="group">{format.count(answer.data!.total - listed)} more match</div>
                    ) : null}
                </div>
            ) : null}
        </div>
    );
}
