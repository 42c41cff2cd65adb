// SPDX-License-Identifier: Apache-2.0
// Compares two listings: the shortest edit script (Myers, linear space). Lines are equal if they differ only in
// addresses.

export interface DiffRow {
    base: number | null; // index into the base listing; null: added
    fresh: number | null; // index into the new one; null: removed
}

// Addresses move when earlier code changes: branch targets and constant-bank offsets are therefore ignored.
export function sassKey(text: string): string {
    return text
        .replace(/\s*;?\s*$/, "")
        .replace(/`\(\.L_[^)]*\)/g, "`(label)")
        .replace(/^((?:@!?U?P\w\s+)?(?:BRA|BSSY|BSYNC|CALL|JMP|RET|BRX|WARPSYNC)[^ ]*\s.*?)0x[0-9a-f]+$/i, "$1target")
        .replace(/\s+/g, " ")
        .trim();
}

interface Snake {
    x: number;
    y: number;
    u: number;
    v: number;
    edits: number;
}

const editsMax = 4000; // beyond it the rest is shown as replaced: such listings have nothing in common

// The middle snake of a[aLow..aHigh) and b[bLow..bHigh); null: too far apart.
function middleSnake(a: number[], aLow: number, aHigh: number, b: number[], bLow: number, bHigh: number): Snake | null {
    const n = aHigh - aLow;
    const m = bHigh - bLow;
    const delta = n - m;
    const isOdd = (delta & 1) !== 0;
    const half = Math.min(Math.ceil((n + m) / 2), editsMax);
    const offset = half + 1;
    const forward = new Int32Array(2 * offset + 1);
    const backward = new Int32Array(2 * offset + 1);
    for (let d = 0; d <= half; d++) {
        for (let k = -d; k <= d; k += 2) {
            const isDown = k === -d || (k !== d && (forward[offset + k - 1] ?? 0) < (forward[offset + k + 1] ?? 0));
            let x = isDown ? (forward[offset + k + 1] ?? 0) : (forward[offset + k - 1] ?? 0) + 1;
            let y = x - k;
            const x0 = x;
            const y0 = y;
            while (x < n && y < m && a[aLow + x] === b[bLow + y]) {
                x++;
                y++;
            }
            forward[offset + k] = x;
            const c = delta - k;
            if (isOdd && c >= -(d - 1) && c <= d - 1 && x + (backward[offset + c] ?? 0) >= n)
                return { x: aLow + x0, y: bLow + y0, u: aLow + x, v: bLow + y, edits: 2 * d - 1 };
        }
        for (let k = -d; k <= d; k += 2) {
            const isDown = k === -d || (k !== d && (backward[offset + k - 1] ?? 0) < (backward[offset + k + 1] ?? 0));
            let x = isDown ? (backward[offset + k + 1] ?? 0) : (backward[offset + k - 1] ?? 0) + 1;
            let y = x - k;
            const x0 = x;
            const y0 = y;
            while (x < n && y < m && a[aHigh - 1 - x] === b[bHigh - 1 - y]) {
                x++;
                y++;
            }
            backward[offset + k] = x;
            const c = delta - k;
            if (!isOdd && c >= -d && c <= d && x + (forward[offset + c] ?? 0) >= n)
                return { x: aHigh - x, y: bHigh - y, u: aHigh - x0, v: bHigh - y0, edits: 2 * d };
        }
    }
    return null;
}

function replaceAll(rows: DiffRow[], aLow: number, aHigh: number, bLow: number, bHigh: number): void {
    for (let i = aLow; i < aHigh; i++) rows.push({ base: i, fresh: null });
    for (let i = bLow; i < bHigh; i++) rows.push({ base: null, fresh: i });
}

function compareRange(
    a: number[],
    aLow: number,
    aHigh: number,
    b: number[],
    bLow: number,
    bHigh: number,
    rows: DiffRow[],
): void {
    while (aLow < aHigh && bLow < bHigh && a[aLow] === b[bLow]) rows.push({ base: aLow++, fresh: bLow++ });
    let tail = 0;
    while (aLow < aHigh - tail && bLow < bHigh - tail && a[aHigh - 1 - tail] === b[bHigh - 1 - tail]) tail++;
    const aEnd = aHigh - tail;
    const bEnd = bHigh - tail;
    if (aLow === aEnd || bLow === bEnd) {
        replaceAll(rows, aLow, aEnd, bLow, bEnd);
    } else {
        const snake = middleSnake(a, aLow, aEnd, b, bLow, bEnd);
        if (!snake || snake.edits < 2) {
            replaceAll(rows, aLow, aEnd, bLow, bEnd);
        } else {
            compareRange(a, aLow, snake.x, b, bLow, snake.y, rows);
            for (let i = 0; i < snake.u - snake.x; i++) rows.push({ base: snake.x + i, fresh: snake.y + i });
            compareRange(a, snake.u, aEnd, b, snake.v, bEnd, rows);
        }
    }
    for (let i = 0; i < tail; i++) rows.push({ base: aEnd + i, fresh: bEnd + i });
}

export function listingDiff(base: readonly string[], fresh: readonly string[]): DiffRow[] {
    const ids = new Map<string, number>();
    const idOf = (text: string): number => {
        const key = sassKey(text);
        let id = ids.get(key);
        if (id === undefined) ids.set(key, (id = ids.size));
        return id;
    };
    const a = base.map(idOf);
    const b = fresh.map(idOf);
    const rows: DiffRow[] = [];
    compareRange(a, 0, a.length, b, 0, b.length, rows);
    return rows;
}

export type DiffBlock = { isEqual: boolean; rows: DiffRow[] };

// Runs of equal and of changed rows; the caller shortens equal runs that exceed the context.
export function diffBlocks(rows: readonly DiffRow[]): DiffBlock[] {
    const blocks: DiffBlock[] = [];
    for (const row of rows) {
        const isEqual = row.base !== null && row.fresh !== null;
        const last = blocks[blocks.length - 1];
        if (last && last.isEqual === isEqual) last.rows.push(row);
        else blocks.push({ isEqual, rows: [row] });
    }
    return blocks;
}

// Pairs the removed and added rows of a changed block.
export function diffPairs(block: DiffBlock): [number | null, number | null][] {
    if (block.isEqual) return block.rows.map((row) => [row.base, row.fresh]);
    const removed = block.rows.filter((row) => row.base !== null).map((row) => row.base);
    const added = block.rows.filter((row) => row.fresh !== null).map((row) => row.fresh);
    return Array.from({ length: Math.max(removed.length, added.length) }, (_, i) => [
        removed[i] ?? null,
        added[i] ?? null,
    ]);
}

const CONTEXT = 3;

export interface ShownRow {
    base: number | null;
    fresh: number | null;
    isEqual: boolean;
}
export type Shown = ShownRow | { hidden: number; block: number };

// Equal runs keep a few rows at their ends; the others can be expanded.
export function shownRows(blocks: readonly DiffBlock[], opened: ReadonlySet<number>): Shown[] {
    const shown: Shown[] = [];
    blocks.forEach((block, index) => {
        const rows = diffPairs(block).map(([base, fresh]) => ({ base, fresh, isEqual: block.isEqual }));
        const before = index === 0 ? 0 : CONTEXT;
        const after = index === blocks.length - 1 ? 0 : CONTEXT;
        if (!block.isEqual || opened.has(index) || rows.length <= before + after + 2) {
            shown.push(...rows);
            return;
        }
        shown.push(
            ...rows.slice(0, before),
            { hidden: rows.length - before - after, block: index },
            ...rows.slice(rows.length - after),
        );
    });
    return shown;
}
