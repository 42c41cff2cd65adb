// SPDX-License-Identifier: Apache-2.0
// A table: sorting and filter are in the URL, only visible rows are rendered, and the rows can be copied or downloaded.
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { useParam, navigateTo } from "../route";
import { CopyButton } from "./states";
import {
    cellText,
    filterRows,
    rowsToCsv,
    rowsToJson,
    rowsToText,
    sortParse,
    sortRows,
    sortText,
    type Column,
    type Sort,
} from "./table-data";

export type { Column, Sort } from "./table-data";

const ROW_PX = 24;
const SPARE_ROWS = 8;
const FLEXIBLE_PX = 160; // minimum width of a column without a given width

export function download(name: string, type: string, text: string): void {
    const url = URL.createObjectURL(new Blob([text], { type }));
    const link = document.createElement("a");
    link.href = url;
    link.download = name;
    link.click();
    window.setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

export interface TableProps<Row> {
    id: string; // prefix of its URL parameters: {id}.sort, {id}.q
    label: string; // for screen readers, and the name of downloads
    rows: readonly Row[];
    columns: readonly Column<Row>[];
    rowKey: (row: Row) => string | number;
    sort?: Sort; // before the user chose one
    heightMax?: number | string; // scrolls inside; default: 60 % of the window
    href?: (row: Row) => string | null; // a click on the row goes there; the name's cell should be a link too
    onRow?: (row: Row) => void;
    isOn?: (row: Row) => boolean;
    tools?: ComponentChildren; // before the filter
    empty?: ComponentChildren;
    isBare?: boolean; // without tools
}

function headText<Row>(column: Column<Row>, sort: Sort | null): string {
    return sort?.id === column.id ? `${column.title} ${sort.isDescending ? "↓" : "↑"}` : column.title;
}

function isNumeric<Row>(column: Column<Row>, rows: readonly Row[]): boolean {
    if (column.isRight !== undefined) return column.isRight;
    for (let i = 0; i < rows.length && i < 50; i++) {
        const value = column.value(rows[i]!);
        if (value !== null && value !== undefined) return typeof value === "number" || typeof value === "bigint";
    }
    return false;
}

function useWindow(count: number): {
    box: { current: HTMLDivElement | null };
    first: number;
    last: number;
    onScroll: () => void;
} {
    const box = useRef<HTMLDivElement>(null);
    const [view, setView] = useState({ top: 0, height: 800 });
    const read = (): void => {
        const element = box.current;
        if (!element) return;
        const top = Math.floor(element.scrollTop / ROW_PX / 4) * 4;
        const height = element.clientHeight || 800;
        setView((now) => (now.top === top && now.height === height ? now : { top, height }));
    };
    useLayoutEffect(read, [count]);
    useEffect(() => {
        if (!box.current) return;
        const observer = new ResizeObserver(read);
        observer.observe(box.current);
        return () => observer.disconnect();
    }, []);
    const first = Math.max(0, Math.min(view.top, count) - SPARE_ROWS);
    return {
        box,
        first,
        last: Math.min(count, view.top + Math.ceil(view.height / ROW_PX) + SPARE_ROWS),
        onScroll: read,
    };
}

export function Table<Row>(props: TableProps<Row>): JSX.Element {
    const { columns, rows } = props;
    const [sortWord, setSortWord] = useParam(`${props.id}.sort`, props.sort ? sortText(props.sort) : "");
    const [filter, setFilter] = useParam(`${props.id}.q`);
    const sort = sortParse(sortWord, props.sort ?? null);
    const shown = useMemo(
        () => sortRows(filterRows(rows, columns, filter), columns, sort),
        [rows, columns, filter, sortWord],
    );
    const numeric = useMemo(() => columns.map((column) => isNumeric(column, rows)), [columns, rows]);
    const { box, first, last, onScroll } = useWindow(shown.length);
    const fileName = props.label.replace(/[^A-Za-z0-9]+/g, "-").toLowerCase();

    const sortBy = (column: Column<Row>, isNumber: boolean): void => {
        const isSame = sort?.id === column.id;
        setSortWord(sortText({ id: column.id, isDescending: isSame ? !sort.isDescending : isNumber }));
    };
    const leastPx = columns.reduce((sum, column) => sum + (column.width ?? FLEXIBLE_PX), 0);
    const keptCount = columns.filter((column) => column.isKept).length;
    const columnClass = (index: number): string => {
        const isKept = keptCount > 0 ? columns[index]?.isKept : index < 3;
        return `${numeric[index] ? "right" : ""}${isKept ? "" : " is-wide-only"}`.trim();
    };
    return (
        <div class="table">
            {props.isBare ? null : (
                <div class="table-tools">
                    {props.tools}
                    <input
                        type="search"
                        placeholder="filter"
                        aria-label={`filter ${props.label}`}
                        value={filter}
                        onInput={(event) => setFilter(event.currentTarget.value)}
                    />
                    <span class="dim small grow" aria-live="polite">
                        {shown.length === rows.length
                            ? rows.length.toLocaleString("en-US")
                            : `${shown.length.toLocaleString("en-US")} of ${rows.length.toLocaleString("en-US")}`}
                    </span>
                    <CopyButton text={() => rowsToText(shown, columns)} title={`copy ${props.label} as text`} />
                    <button
                        type="button"
                        title={`download ${props.label} as CSV`}
                        onClick={() => download(`${fileName}.csv`, "text/csv", rowsToCsv(shown, columns))}
                    >
                        CSV
                    </button>
                    <button
                        type="button"
                        title={`download ${props.label} as JSON`}
                        onClick={() => download(`${fileName}.json`, "application/json", rowsToJson(shown, columns))}
                    >
                        JSON
                    </button>
                </div>
            )}
            <div
                class="table-scroll"
                ref={box}
                onScroll={onScroll}
                tabIndex={0}
                role="region"
                aria-label={props.label}
                style={{
                    maxHeight:
                        typeof props.heightMax === "number" ? `${props.heightMax}px` : (props.heightMax ?? "60vh"),
                }}
            >
                <table aria-rowcount={shown.length + 1} style={{ "--least": `${leastPx}px` }}>
                    <colgroup>
                        {columns.map((column, index) => (
                            <col
                                key={column.id}
                                class={columnClass(index)}
                                style={column.width ? { width: `${column.width}px` } : {}}
                            />
                        ))}
                    </colgroup>
                    <thead>
                        <tr>
                            {columns.map((column, index) => (
                                <th
                                    key={column.id}
                                    scope="col"
                                    class={columnClass(index)}
                                    title={column.about}
                                    aria-sort={
                                        sort?.id === column.id
                                            ? sort.isDescending
                                                ? "descending"
                                                : "ascending"
                                            : undefined
                                    }
                                >
                                    {column.isUnsorted ? (
                                        <span>{column.title}</span>
                                    ) : (
                                        <button type="button" onClick={() => sortBy(column, numeric[index] ?? false)}>
                                            {headText(column, sort)}
                                        </button>
                                    )}
                                </th>
                            ))}
                        </tr>
                    </thead>
                    <tbody>
                        {first > 0 ? <Spacer rows={first} /> : null}
                        {shown.slice(first, last).map((row, offset) => (
                            <TableRow
                                key={props.rowKey(row)}
                                row={row}
                                index={first + offset}
                                columns={columns}
                                columnClass={columnClass}
                                href={props.href?.(row) ?? null}
                                onRow={props.onRow}
                                isOn={props.isOn?.(row) ?? false}
                            />
                        ))}
                        {last < shown.length ? <Spacer rows={shown.length - last} /> : null}
                    </tbody>
                </table>
                {shown.length === 0 ? (
                    <div class="state dim">
                        {rows.length > 0 ? "Nothing matches the filter." : (props.empty ?? "Nothing.")}
                    </div>
                ) : null}
            </div>
        </div>
    );
}

function Spacer({ rows }: { rows: number }): JSX.Element {
    return (
        <tr class="spacer" aria-hidden="true">
            <td style={{ height: `${rows * ROW_PX}px` }} />
        </tr>
    );
}

function TableRow<Row>(props: {
    row: Row;
    index: number;
    columns: readonly Column<Row>[];
    columnClass: (index: number) => string;
    href: string | null;
    onRow: ((row: Row) => void) | undefined;
    isOn: boolean;
}): JSX.Element {
    const { row, href, onRow } = props;
    const follow = (event: MouseEvent): void => {
        if ((event.target as Element).closest("a, button, input, label") || window.getSelection()?.toString()) return;
        if (href) navigateTo(href);
        else onRow?.(row);
    };
    const isLink = href !== null || onRow !== undefined;
    return (
        <tr
            class={`${props.isOn ? "is-on" : ""}${isLink ? " is-link" : ""}`.trim()}
            aria-rowindex={props.index + 2}
            {...(isLink ? { onClick: follow } : {})}
        >
            {props.columns.map((column, index) => {
                const value = column.value(row);
                const isUnknown = value === null || value === undefined;
                return (
                    <td
                        key={column.id}
                        class={`${props.columnClass(index)}${isUnknown && !column.cell ? " is-unknown" : ""}`}
                    >
                        {column.cell ? column.cell(row) : cellText(column, row)}
                    </td>
                );
            })}
        </tr>
    );
}
