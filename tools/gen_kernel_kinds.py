#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""src/analysis/kernel_kinds.inc and the tables of docs/kernel-kinds.md, from schema/kernel_kinds.json.

usage: gen_kernel_kinds.py [--check]    --check: an error when a file is not what would be written

A name is cut into lower-case words at everything that is no letter or digit, between a lower- and an upper-case letter, before
the last of several capitals that a lower-case letter follows, and between a digit and a letter. A pattern is a list of words
that follow each other; "*" at the end of a word stands for any end, and "..." for any words, also none. The first rule with a
pattern that matches decides.
"""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE, TABLE, PAGE = "schema/kernel_kinds.json", "src/analysis/kernel_kinds.inc", "docs/kernel-kinds.md"
HEAD = ["/* SPDX-License-Identifier: Apache-2.0 */",
        f"/* Written by tools/gen_kernel_kinds.py from {SOURCE}. Patterns are in the order of their first character. */"]
WORD = re.compile(r"[a-z0-9]+\*?")


def fail(text):
    raise SystemExit(f"gen_kernel_kinds: {text}")


def rules_check(data):
    names = [kind["name"] for kind in data["kinds"]]
    if names[-1] != "unknown" or len(set(names)) != len(names):
        fail("the kinds must be distinct, and 'unknown' the last one")
    seen = set()
    for rule in data["rules"]:
        if rule["kind"] not in names:
            fail(f"there is no kind '{rule['kind']}'")
        for pattern in rule["patterns"]:
            words = pattern.split()
            if not WORD.fullmatch(words[0]) or any(word != "..." and not WORD.fullmatch(word) for word in words):
                fail(f"'{pattern}' is not a list of lower-case words")
            if pattern in seen:
                fail(f"'{pattern}' is there twice")
            seen.add(pattern)
    for case in data["ambiguous"]:
        if case["kind"] not in names:
            fail(f"there is no kind '{case['kind']}'")


def table_make(data):
    lines = list(HEAD) + ["#ifdef KERNEL_KIND"]
    lines += [f'KERNEL_KIND({kind["name"].upper()}, "{kind["name"]}", "{kind["label"]}")' for kind in data["kinds"]]
    lines += ["#endif", "#ifdef KERNEL_PATTERN"]
    patterns = [(pattern, rank, rule["kind"]) for rank, rule in enumerate(data["rules"]) for pattern in rule["patterns"]]
    # Stable: of the patterns with the same first character, those of earlier rules come first.
    patterns.sort(key=lambda entry: (entry[0][0], entry[1]))
    lines += [f'KERNEL_PATTERN({rank}, {kind.upper()}, "{pattern}")' for pattern, rank, kind in patterns]
    return "\n".join(lines + ["#endif", ""])


def page_make(data, page):
    kinds = ["| kind | in JSON and tables | kernels |", "| --- | --- | --- |"]
    kinds += [f"| {kind['label']} | `{kind['name']}` | {kind['definition']} |" for kind in data["kinds"]]
    cases = ["| name | kind | why |", "| --- | --- | --- |"]
    labels = {kind["name"]: kind["label"] for kind in data["kinds"]}
    for case in data["ambiguous"]:
        names = ", ".join(f"`{name}`" for name in re.split(", (?![^<]*>)", case["name"]))
        cases.append(f"| {names} | {labels[case['kind']]} | {case['why']} |")
    for mark, lines in (("kinds", kinds), ("ambiguous", cases)):
        between = re.compile(rf"(<!-- {mark} -->\n).*?(<!-- end of {mark} -->\n)", re.S)
        page, count = between.subn(lambda marks, text="\n".join(lines): f"{marks[1]}{text}\n{marks[2]}", page)
        if count != 1:
            fail(f"{PAGE} has not one place for {mark}")
    return page


def main():
    data = json.loads((ROOT / SOURCE).read_text(encoding="utf-8"))
    rules_check(data)
    made = {TABLE: table_make(data), PAGE: page_make(data, (ROOT / PAGE).read_text(encoding="utf-8"))}
    for path, text in made.items():
        file = ROOT / path
        if sys.argv[1:] == ["--check"]:
            if not file.exists() or file.read_text(encoding="utf-8") != text:
                fail(f"{path} is not what {SOURCE} says: run tools/gen_kernel_kinds.py")
        else:
            file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
