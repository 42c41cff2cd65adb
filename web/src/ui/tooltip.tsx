// SPDX-License-Identifier: Apache-2.0
// One tooltip for the page: hover or focus shows it, a click pins it, Escape unpins it. It is placed next to the
// element it describes.
import { signal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

export interface Anchor {
    left: number;
    top: number;
    right: number;
    bottom: number;
}
interface Shown {
    anchor: Anchor;
    content: ComponentChildren;
    isPinned: boolean;
}
const shown = signal<Shown | null>(null);

// For canvases; elements use tip().
export function tipShow(anchor: Anchor, content: ComponentChildren, isPinned = false): void {
    if (shown.peek()?.isPinned && !isPinned) return;
    shown.value = { anchor, content, isPinned };
}
export function tipHide(isPinnedToo = false): void {
    if (isPinnedToo || !shown.peek()?.isPinned) shown.value = null;
}
export function tipIsPinned(): boolean {
    return shown.peek()?.isPinned ?? false;
}

type Content = ComponentChildren | (() => ComponentChildren);
const made = (content: Content): ComponentChildren =>
    typeof content === "function" ? (content as () => ComponentChildren)() : content;

type Handler = (event: { currentTarget: EventTarget | null }) => void;
export interface TipHandlers {
    onPointerEnter: Handler;
    onPointerLeave: Handler;
    onFocus: Handler;
    onBlur: Handler;
    onClick?: Handler;
}

// Properties for an element: <span {...tip("why")}>
export function tip(content: Content, isClickPinning = true): TipHandlers {
    const rectOf = (event: { currentTarget: EventTarget | null }): Anchor =>
        (event.currentTarget as Element).getBoundingClientRect();
    return {
        onPointerEnter: (event) => tipShow(rectOf(event), made(content)),
        onPointerLeave: () => tipHide(),
        onFocus: (event) => tipShow(rectOf(event), made(content)),
        onBlur: () => tipHide(),
        ...(isClickPinning
            ? { onClick: (event: { currentTarget: EventTarget | null }) => tipShow(rectOf(event), made(content), true) }
            : {}),
    };
}

export function place(
    anchor: Anchor,
    width: number,
    height: number,
    screen: { width: number; height: number },
): [number, number] {
    const gap = 6;
    const left = Math.max(gap, Math.min(anchor.left, screen.width - width - gap));
    if (anchor.bottom + gap + height <= screen.height) return [left, anchor.bottom + gap];
    if (anchor.top - gap - height >= 0) return [left, anchor.top - gap - height];
    const top = Math.max(gap, Math.min(anchor.top, screen.height - height - gap));
    return anchor.right + gap + width <= screen.width
        ? [anchor.right + gap, top]
        : [Math.max(gap, anchor.left - gap - width), top];
}

export function TooltipLayer(): JSX.Element | null {
    const box = useRef<HTMLDivElement>(null);
    const now = shown.value;
    useLayoutEffect(() => {
        if (!box.current || !now) return;
        const size = box.current.getBoundingClientRect();
        const [left, top] = place(now.anchor, size.width, size.height, {
            width: window.innerWidth,
            height: window.innerHeight,
        });
        box.current.style.left = `${left}px`;
        box.current.style.top = `${top}px`;
    });
    if (!now) return null;
    return (
        <div ref={box} class={now.isPinned ? "tip is-pinned" : "tip"} role="tooltip">
            {now.content}
        </div>
    );
}

// Names and values, one per line.
export function Facts({ facts }: { facts: readonly (readonly [string, ComponentChildren])[] }): JSX.Element {
    return (
        <dl class="facts">
            {facts.map(([name, value]) => [<dt key={`${name}.`}>{name}</dt>, <dd key={name}>{value}</dd>])}
        </dl>
    );
}
