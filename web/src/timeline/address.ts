// SPDX-License-Identifier: Apache-2.0
// The view in the URL: time range, selection, mark, folded groups and search.
import type { TimeBase, View } from "./time";

export interface Place {
    readonly view: View | null;
    readonly selection: { readonly track: string; readonly start: number } | null;
    readonly range: View | null;
    readonly folded: readonly string[];
    readonly search: string;
}

const number = (value: number): string => String(Math.round(value * 1000) / 1000);

function viewParse(text: string | undefined): View | null {
    const parts = /^(-?\d+(?:\.\d+)?)~(-?\d+(?:\.\d+)?)$/.exec(text ?? "");
    if (!parts) return null;
    const from = Number(parts[1]),
        to = Number(parts[2]);
    return Number.isFinite(from) && Number.isFinite(to) && to > from ? { from, to } : null;
}

const viewText = (view: View | null): string | null => view && `${number(view.from)}~${number(view.to)}`;

/** from and to: wall clock times, as on other pages. */
function wallParse(params: Readonly<Record<string, string>>, base: TimeBase): View | null {
    const [from, to] = [params["from"] ?? "", params["to"] ?? ""];
    if (!/^\d{1,19}$/.test(from) || !/^\d{1,19}$/.test(to)) return null;
    const view = { from: base.offset(BigInt(from)), to: base.offset(BigInt(to)) };
    return view.to > view.from ? view : null;
}

export function placeParse(params: Readonly<Record<string, string>>, base: TimeBase): Place {
    const selected = /^([a-z]+-[a-z0-9-]+)@(\d+)$/.exec(params["sel"] ?? "");
    return {
        view: viewParse(params["t"]) ?? wallParse(params, base),
        selection: selected ? { track: selected[1]!, start: Number(selected[2]) } : null,
        range: viewParse(params["range"]),
        folded: (params["fold"] ?? "").split(",").filter((id) => id !== ""),
        search: params["q"] ?? "",
    };
}

/** The view's URL parameters; null removes one. Without zoom the view is not written. */
export function placeParams(place: Place, whole: View): Record<string, string | null> {
    const isWhole = place.view !== null && place.view.from === whole.from && place.view.to === whole.to;
    return {
        t: isWhole ? null : viewText(place.view),
        sel: place.selection && `${place.selection.track}@${number(place.selection.start)}`,
        range: viewText(place.range),
        fold: place.folded.length > 0 ? place.folded.join(",") : null,
        q: place.search === "" ? null : place.search,
        from: null,
        to: null,
    };
}
