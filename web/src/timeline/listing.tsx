// SPDX-License-Identifier: Apache-2.0
// A table of what is in view, as a text alternative to the canvas.
import type { JSX } from "preact";
import * as format from "../format";
import { Table, type Column } from "../ui/table";
import { shownName } from "./labels";
import { rowsBetween, type Track } from "./layout";
import type { TimelineModel } from "./model";
import { eachRow } from "./segments";
import { tickLabel, type View } from "./time";

export interface Listed {
    readonly key: string;
    readonly track: Track;
    readonly place: string;
    readonly name: string;
    readonly nameId: number;
    readonly start: number;
    readonly length: number;
    readonly busy: number;
    readonly events: number;
    readonly isExact: boolean;
}

const rowsMax = 2000;

/** Events of the view, or sums if there are too many; at most rowsMax rows. */
export function listView(model: TimelineModel, view: View): { rows: Listed[]; isCut: boolean } {
    const rows: Listed[] = [];
    let isCut = false;
    const scroll = model.scroll.value;
    for (const row of rowsBetween(model.layout.value, scroll, scroll + model.height.value)) {
        if (row.type !== "track") continue;
        eachRow(model.coverage(row.track.id, view).segments, view, (tile, at) => {
            if (rows.length >= rowsMax) {
                isCut = true;
                return;
            }
            const start = tile.start[at]!,
                length = tile.length[at]!,
                nameId = tile.name[at]!;
            rows.push({
                key: `${row.track.id} ${rows.length}`,
                track: row.track,
                place: `${row.group.label}, ${row.label}`,
                nameId,
                start,
                length,
                name: shownName(row.track.kind, model.names.text(row.track.kind, nameId)),
                busy: tile.busy ? tile.busy[at]! : length,
                events: tile.count ? tile.count[at]! : 1,
                isExact: tile.isExact,
            });
        });
    }
    return { rows, isCut };
}

const columns: readonly Column<Listed>[] = [
    {
        id: "name",
        title: "name",
        value: (row) => row.name,
        cell: (row) => (row.isExact ? row.name : `mostly ${row.name}`),
        isKept: true,
    },
    { id: "place", title: "where", value: (row) => row.place, width: 200 },
    {
        id: "start",
        title: "start",
        value: (row) => row.start,
        text: (row) => tickLabel(row.start, 1),
        width: 150,
        isKept: true,
    },
    {
        id: "length",
        title: "length",
        value: (row) => row.length,
        text: (row) => format.time(row.length),
        width: 96,
        isKept: true,
    },
    { id: "busy", title: "busy", value: (row) => row.busy, text: (row) => format.time(row.busy), width: 96 },
    { id: "events", title: "events", value: (row) => row.events, width: 80 },
];

export function Listing({ model }: { model: TimelineModel }): JSX.Element {
    void model.arrivals.value;
    const { rows, isCut } = listView(model, model.view.value);
    return (
        <div class="tl-table">
            {isCut ? (
                <div class="notice is-calm">
                    The first {format.count(rowsMax)} of what is in view; zoom in for the rest.
                </div>
            ) : null}
            <Table
                id="view"
                label="what is in view"
                rows={rows}
                columns={columns}
                rowKey={(row) => row.key}
                heightMax="34vh"
                onRow={(row) =>
                    row.isExact &&
                    model.select(
                        {
                            track: row.track.id,
                            kind: row.track.kind,
                            start: row.start,
                            length: row.length,
                            name: row.nameId,
                        },
                        true,
                    )
                }
            />
        </div>
    );
}
