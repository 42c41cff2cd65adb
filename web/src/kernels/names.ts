// SPDX-License-Identifier: Apache-2.0
// Short names that still distinguish kernels: instances of one template differ somewhere in their arguments.
import { shortName } from "../format";

function commonStart(texts: readonly string[]): number {
    const [first = "", ...others] = texts;
    let size = first.length;
    for (const text of others) {
        let at = 0;
        while (at < size && at < text.length && text[at] === first[at]) at++;
        size = at;
    }
    return size;
}

// Moves back to the beginning of a word, so that no word is cut.
function wordStart(text: string, at: number): number {
    let start = at;
    while (start > 0 && /[\w:]/.test(text[start - 1] as string)) start--;
    return start;
}

// Without namespaces.
function plain(text: string): string {
    return text.replace(/(?:\w+::|\(anonymous namespace\)::)+/g, "").trim();
}

// For each text the fewest leading words that no other text begins with and that end in a name; all words if one text
// is the beginning of another.
function shortestMarks(texts: readonly string[]): string[] {
    const words = texts.map((text) => text.match(/\(anonymous namespace\)::|[\w:]+|[^\w:(]+|\(/gu) ?? []);
    const marks = texts.map(() => "");
    let open = texts.map((_, index) => index);
    const saysEnough = (mark: string): boolean => /\w$/.test(plain(mark));
    for (let count = 1; open.length > 0; count++) {
        const starts = new Map<string, number>();
        for (const list of words) {
            const start = list.slice(0, count).join("");
            starts.set(start, (starts.get(start) ?? 0) + 1);
        }
        for (const index of open) marks[index] = (words[index] as string[]).slice(0, count).join("");
        open = open.filter((index) => {
            const mark = marks[index] as string;
            return (starts.get(mark) !== 1 || !saysEnough(mark)) && count < (words[index] as string[]).length;
        });
    }
    return marks;
}

export interface ShownName {
    short: string;
    mark: string; // distinguishes it from others with the same short name; ""
}

// By full name.
export function distinctNames(names: readonly string[]): Map<string, ShownName> {
    const groups = new Map<string, string[]>();
    for (const name of new Set(names)) {
        const short = shortName(name);
        groups.set(short, [...(groups.get(short) ?? []), name]);
    }
    const shown = new Map<string, ShownName>();
    for (const [short, group] of groups) {
        const start = commonStart(group);
        const marks = group.length > 1 ? shortestMarks(group.map((name) => name.slice(wordStart(name, start)))) : [""];
        const stripped = marks.map(plain);
        const isDistinct = new Set(stripped).size === stripped.length;
        group.forEach((name, index) =>
            shown.set(name, { short, mark: (isDistinct ? stripped[index] : marks[index]) ?? "" }),
        );
    }
    return shown;
}
