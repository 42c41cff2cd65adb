// SPDX-License-Identifier: Apache-2.0
// A tree as rows of boxes: children below their parents. A click zooms in, a click on an ancestor zooms out.
import type { ComponentChildren, JSX } from "preact";
import { tip } from "./tooltip";

export interface IcicleNode {
    key: string;
    name: string;
    depth: number; // the list is depth first: a node is followed by its descendants
    value: number; // its width
}
export interface Placed<Node extends IcicleNode> {
    node: Node;
    left: number; // 0 to 1 of the width
    width: number;
    row: number;
    isAncestor: boolean;
}

const ROW_PX = 20;
const WIDTH_MIN = 0.0008; // narrower boxes are not drawn
const NODES_MAX = 2000;

// Positions the nodes below `zoom` (null: all) and its ancestors. If children together are wider than their parent
// (they overlap on several threads), they share its width.
export function placeNodes<Node extends IcicleNode>(nodes: readonly Node[], zoom: string | null): Placed<Node>[] {
    const children = new Map<number, number[]>();
    const parents: number[] = [];
    const open: number[] = [];
    nodes.forEach((node, index) => {
        while (open.length > node.depth) open.pop();
        const parent = open[open.length - 1] ?? -1;
        parents.push(parent);
        const siblings = children.get(parent);
        if (siblings) siblings.push(index);
        else children.set(parent, [index]);
        open[node.depth] = index;
        open.length = node.depth + 1;
    });
    const placed: Placed<Node>[] = [];
    const add = (index: number, left: number, width: number, row: number): void => {
        const node = nodes[index];
        if (!node || width < WIDTH_MIN || placed.length >= NODES_MAX) return;
        placed.push({ node, left, width, row, isAncestor: false });
        spread(index, node.value, left, width, row + 1);
    };
    const spread = (parent: number, whole: number, left: number, width: number, row: number): void => {
        const below = children.get(parent) ?? [];
        const sum = below.reduce((total, index) => total + (nodes[index]?.value ?? 0), 0);
        const scale = width / Math.max(whole, sum, Number.MIN_VALUE);
        let at = left;
        for (const index of below) {
            const size = (nodes[index]?.value ?? 0) * scale;
            add(index, at, size, row);
            at += size;
        }
    };
    const focus = zoom === null ? -1 : nodes.findIndex((node) => node.key === zoom);
    if (focus < 0) {
        spread(-1, 0, 0, 1, 0);
        return placed;
    }
    const chain: number[] = [];
    for (let index = parents[focus] ?? -1; index >= 0; index = parents[index] ?? -1) chain.unshift(index);
    chain.forEach((index, row) => placed.push({ node: nodes[index]!, left: 0, width: 1, row, isAncestor: true }));
    add(focus, 0, 1, chain.length);
    return placed;
}

export function Icicle<Node extends IcicleNode>(props: {
    nodes: readonly Node[];
    zoom: string | null;
    onZoom: (key: string | null) => void;
    colour: (node: Node) => string;
    tooltip: (node: Node) => ComponentChildren;
    label: string;
}): JSX.Element {
    const placed = placeNodes(props.nodes, props.zoom);
    const rows = placed.reduce((most, place) => Math.max(most, place.row + 1), 0);
    return (
        <div class="icicle" role="group" aria-label={props.label} style={{ height: `${rows * ROW_PX}px` }}>
            {placed.map(({ node, left, width, row, isAncestor }) => (
                <button
                    key={node.key}
                    type="button"
                    class={node.key === props.zoom ? "is-on" : ""}
                    style={{
                        left: `${left * 100}%`,
                        width: `${width * 100}%`,
                        top: `${row * ROW_PX}px`,
                        background: props.colour(node),
                        ...(isAncestor ? { opacity: "0.75" } : {}),
                    }}
                    {...tip(() => props.tooltip(node), false)}
                    onClick={() => props.onZoom(node.key === props.zoom ? null : node.key)}
                >
                    {node.name}
                </button>
            ))}
        </div>
    );
}
