// SPDX-License-Identifier: Apache-2.0
// Rows of equal height, of which only the visible ones exist.
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

export const ROW_PX = 18;
const SPARE = 12;

export interface RowsProps {
    count: number;
    label: string;
    at: number | null; // a row to scroll into view when it changes
    overlay?: ComponentChildren; // drawn over the rows, in their coordinates
    children: (index: number) => ComponentChildren;
    onPoint?: (index: number | null) => void; // the row under the pointer; null: none
    onChoose?: (index: number) => void;
}

// Rows have their index in data-row: one listener serves all of them.
function rowOf(event: { target: EventTarget | null }): number | null {
    const row = (event.target as Element | null)?.closest<HTMLElement>("[data-row]")?.dataset.row;
    return row === undefined ? null : Number(row);
}

export function Rows(props: RowsProps): JSX.Element {
    const box = useRef<HTMLDivElement>(null);
    const [view, setView] = useState({ top: 0, height: 600 });
    const read = (): void => {
        const element = box.current;
        if (!element) return;
        const next = { top: Math.floor(element.scrollTop / ROW_PX / 4) * 4, height: element.clientHeight };
        setView((now) => (now.top === next.top && now.height === next.height ? now : next));
    };
    useEffect(() => {
        if (!box.current) return;
        const observer = new ResizeObserver(read);
        observer.observe(box.current);
        return () => observer.disconnect();
    }, []);
    useLayoutEffect(() => {
        const element = box.current;
        if (!element || props.at === null) return;
        const top = props.at * ROW_PX;
        if (top < element.scrollTop || top + ROW_PX > element.scrollTop + element.clientHeight)
            element.scrollTop = Math.max(0, top - element.clientHeight / 2);
        read();
    }, [props.at, props.count]);
    const first = Math.max(0, view.top - SPARE);
    const last = Math.min(props.count, view.top + Math.ceil(view.height / ROW_PX) + SPARE);
    return (
        <div
            class="code-rows"
            ref={box}
            onScroll={read}
            tabIndex={0}
            role="region"
            aria-label={props.label}
            onPointerOver={(event) => props.onPoint?.(rowOf(event))}
            onPointerLeave={() => props.onPoint?.(null)}
            onClick={(event) => {
                const row = rowOf(event);
                if (row !== null) props.onChoose?.(row);
            }}
        >
            <div class="code-sheet" style={{ height: `${props.count * ROW_PX}px` }}>
                <div class="code-window" style={{ transform: `translateY(${first * ROW_PX}px)` }}>
                    {Array.from({ length: Math.max(0, last - first) }, (_, i) => props.children(first + i))}
                </div>
                {props.overlay}
            </div>
        </div>
    );
}
