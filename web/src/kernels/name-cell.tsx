// SPDX-License-Identifier: Apache-2.0
// A name shortened in the middle to the available width: its end is kept, its beginning is cut.
import type { JSX } from "preact";
import { kernelColour } from "../colour";
import * as format from "../format";

const TAIL = 16;
const MARK = 32;

// mark: distinguishes it from similar names; never shortened.
export function NameCell({
    name,
    shown,
    mark = "",
    address,
}: {
    name: string;
    shown: string;
    mark?: string;
    address?: string;
}): JSX.Element {
    const letters = [...format.middleCut(shown, 400)];
    const tail = mark === "" && letters.length > 2 * TAIL ? TAIL : 0;
    const text = (
        <>
            <span class="name-head">{letters.slice(0, letters.length - tail).join("")}</span>
            {tail ? <span class="name-tail">{letters.slice(letters.length - tail).join("")}</span> : null}
            {mark === "" ? null : <span class="name-tail name-mark">{format.middleCut(mark, MARK)}</span>}
        </>
    );
    return (
        <span class="kernel-name" title={format.middleCut(name, 1000)}>
            <i class="swatch" style={{ background: kernelColour(name) }} />
            {address === undefined ? text : <a href={address}>{text}</a>}
        </span>
    );
}
