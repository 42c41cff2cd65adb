// SPDX-License-Identifier: Apache-2.0
// A name cut in the middle, to whatever width there is: its end stays, its beginning gives way.
import type { JSX } from "preact";
import { kernelColour } from "../colour";
import * as format from "../format";

const TAIL = 16;
const MARK = 32;

// mark: what tells it from others that look the same, kept whole.
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
