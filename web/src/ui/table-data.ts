// SPDX-License-Identifier: Apache-2.0
// Sorting, filtering and exporting of table rows, without a DOM.
import type { ComponentChildren } from "preact";
import { UNAVAILABLE } from "../format";

export type Cell = string | number | bigint | boolean | null | undefined;

export interface Column<Row> {
    id: string;
    title: string;
    about?: string; // explanation of the column, shown at the heading
    value: (row: Row) => Cell; // for sorting, filtering, downloads; null: unknown
    text?: (row: Row) => string; // on the screen; default: the value
    cell?: (row: Row) => ComponentChildren; // instead of the text
    width?: number; // pixels; default: the remaining width
    isKept?: boolean; // stays on narrow screens: the name and two more
    isUnsorted?: boolean; // cannot be sorted by
    isRight?: boolean; // default for numbers
}

export interface Sort {
    id: string;
    isDescending: boolean;
}

export function sortParse(text: string, fallback: Sort | null): Sort | null {
    if (text === "") return fallback;
    return text.startsWith("-") ? { id: text.slice(1), isDescending: true } : { id: text, isDescending: false };
}
export function sortText(sort: Sort): string {
    return (sort.isDescending ? "-" : "") + sort.id;
}

const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

export function compareCells(a: Cell, b: Cell): number {
    if (typeof a === "string" || typeof b === "string") return collator.compare(String(a), String(b));
    const left = typeof a === "boolean" ? Number(a) : (a as number | bigint);
    const right = typeof b === "boolean" ? Number(b) : (b as number | bigint);
    return left < right ? -1 : left > right ? 1 : 0;
}

const isUnknown = (cell: Cell): boolean => cell === null || cell === undefined || Number.isNaN(cell);

// Stable; unknown values are last in both directions.
export function sortRows<Row>(rows: readonly Row[], columns: readonly Column<Row>[], sort: Sort | null): Row[] {
    const column = sort ? columns.find((candidate) => candidate.id === sort.id) : undefined;
    if (!column || !sort) return [...rows];
    const keyed = rows.map((row, index) => ({ row, index, cell: column.value(row) }));
    const direction = sort.isDescending ? -1 : 1;
    keyed.sort((a, b) => {
        const [leftUnknown, rightUnknown] = [isUnknown(a.cell), isUnknown(b.cell)];
        if (leftUnknown || rightUnknown) return Number(leftUnknown) - Number(rightUnknown) || a.index - b.index;
        return direction * compareCells(a.cell, b.cell) || a.index - b.index;
    });
    return keyed.map((entry) => entry.row);
}

export function cellText<Row>(column: Column<Row>, row: Row): string {
    const value = column.value(row);
    if (column.text) return column.text(row);
    return isUnknown(value) ? UNAVAILABLE : String(value);
}

// Every word of the filter must be in some column, case-insensitive.
export function filterRows<Row>(rows: readonly Row[], columns: readonly Column<Row>[], filter: string): Row[] {
    const words = filter
        .toLowerCase()
        .split(/\s+/)
        .filter((word) => word !== "");
    if (words.length === 0) return [...rows];
    return rows.filter((row) => {
        const text = columns
            .map((column) => cellText(column, row))
            .join("\n")
            .toLowerCase();
        return words.every((word) => text.includes(word));
    });
}

// Spreadsheets must not interpret a kernel's name as a formula.
function csvCell(cell: Cell): string {
    if (isUnknown(cell)) return "";
    if (typeof cell !== "string") return String(cell);
    const text = /^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell;
    return /[",\n\r']/.test(text) || text !== cell ? `"${text.replaceAll('"', '""')}"` : text;
}

export function rowsToCsv<Row>(rows: readonly Row[], columns: readonly Column<Row>[]): string {
    const lines = [columns.map((column) => csvCell(column.id)).join(",")];
    for (const row of rows) lines.push(columns.map((column) => csvCell(column.value(row))).join(","));
    return `${lines.join("\r\n")}\r\n`;
}

export function rowsToJson<Row>(rows: readonly Row[], columns: readonly Column<Row>[]): string {
    const plain = (cell: Cell): Cell => (isUnknown(cell) ? null : typeof cell === "bigint" ? cell.toString() : cell);
    return JSON.stringify(
        rows.map((row) => Object.fromEntries(columns.map((column) => [column.id, plain(column.value(row))]))),
        null,
        1,
    );
}

export function rowsToText<Row>(rows: readonly Row[], columns: readonly Column<Row>[]): string {
    const clean = (text: string): string => text.replace(/[\t\r\n]+/g, " ");
    const lines = [columns.map((column) => column.title).join("\t")];
    for (const row of rows) lines.push(columns.map((column) => clean(cellText(column, row))).join("\t"));
    return lines.join("\n");
}
