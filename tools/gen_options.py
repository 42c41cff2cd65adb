#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The tables of options in docs/configuration.md, from the table in src/sdk/options.c and the words in
schema/options.json.

usage: gen_options.py [--check]    --check: an error when the page is not what would be written

Names, variables, values, ranges and the defaults of switches are the code's. Meanings, and defaults that code computes,
are in the JSON. An option without words, and words without an option, are errors.
"""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE, WORDS, PAGE = "src/sdk/options.c", "schema/options.json", "docs/configuration.md"
ENTRY = re.compile(r'\{"(\w+)",\s*(NULL|"\w+"),\s*OPTION_(\w+),\s*FIELD\(\w+\),\s*(GIVEN\(\w+\)|-1),\s*'
                   r"(\w+),\s*(\w+)\}")
LISTS = {"ENGINE": "engine_names", "BACKEND": "backend_names", "PC_MODE": "pc_mode_names",
         "RANGE_MODE": "range_mode_names"}
HEAD = ["| option | values | default | environment | `gpufl trace` | meaning |",
        "| --- | --- | --- | --- | --- | --- |"]


def fail(text):
    raise SystemExit(f"gen_options: {text}")


def options_read(source):
    """Entries of option_table: name, environment, kind, whether gpufl_options has it, least, most."""
    table = re.search(r"option_table\[\] = \{\n(.*?)\n\};", source, re.S)
    if not table:
        fail(f"{SOURCE} has no option_table")
    entries = ENTRY.findall(table.group(1))
    if len(entries) != table.group(1).count("FIELD("):
        fail(f"{SOURCE}: an entry of option_table is not understood")
    return entries


def values_of(kind, least, most, source):
    """What an option accepts."""
    if kind in LISTS:
        names = re.search(rf"{LISTS[kind]}\[\] = \{{(.*?)NULL\}}", source, re.S).group(1)
        return ", ".join(re.findall(r'"(\w+)"', names))
    if kind == "SWITCH":
        return "switch"
    if kind == "TEXT":
        return "text"
    return f"at least {int(least):,}" if most == "INT64_MAX" else f"{int(least):,} to {int(most):,}"


def default_of(name, kind, words, source):
    body = re.search(r"void options_set_defaults\(.*?\n\}\n", source, re.S).group()
    if kind == "SWITCH":
        return "on" if f".{name} = true" in body else "off"
    if kind == "ENGINE":
        names = values_of(kind, 0, 0, source).split(", ")
        constant = re.search(rf"\.{name} = GPUFL_ENGINE_(\w+)", body).group(1)
        return next(one for one in names if one.upper() == constant)
    return words["default"]


def tables_make(source, words):
    entries = options_read(source)
    names = [entry[0] for entry in entries]
    for name in sorted(set(names) ^ set(words)):
        fail(f"'{name}' is only in one of {SOURCE} and {WORDS}")
    result = {}
    for marker, is_in_code in (("of the API", True), ("of environment and file", False)):
        lines = list(HEAD)
        for name in [one for one in words if one in names]:
            _, environment, kind, given, least, most = entries[names.index(name)]
            if (given != "-1") != is_in_code:
                continue
            variable = environment.strip('"') if environment != "NULL" else None
            if name == "enabled":
                variable = "GPUFL_DISABLED"  # inverted, and read before anything else
            option = words[name].get("trace")
            cells = (f"`{name}`", values_of(kind, least, most, source), default_of(name, kind, words[name], source),
                     f"`{variable}`" if variable else "–", f"`{option}`" if option else "–", words[name]["meaning"])
            lines.append(f"| {' | '.join(cells)} |")
        result[marker] = "\n".join(lines) + "\n"
    return result


def page_make(page, tables):
    for marker, table in tables.items():
        pattern = re.compile(rf"(<!-- options {marker} -->\n)(.*?)(<!-- end of options -->)", re.S)
        if not pattern.search(page):
            fail(f"{PAGE} has no place for the options {marker}")
        page = pattern.sub(lambda match, text=table: match.group(1) + text + match.group(3), page)
    return page


def main():
    tables = tables_make((ROOT / SOURCE).read_text(), json.loads((ROOT / WORDS).read_text()))
    path = ROOT / PAGE
    page = page_make(path.read_text(), tables)
    if "--check" not in sys.argv[1:]:
        path.write_text(page)
    elif page != path.read_text():
        fail(f"{PAGE} is not fresh: run make schema")


if __name__ == "__main__":
    main()
