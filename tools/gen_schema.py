#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Generates everything that is derived from schema/records.json.

usage: gen_schema.py [--check]    --check only tells whether the files are fresh (exit 1 if not)
"""
import json
import pathlib
import sys

sys.dont_write_bytecode = True
from schema import c_tables, format_page, python_types, typescript_types  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
CATALOGUE = "schema/records.json"


def check_catalogue(schema):
    """Catches mistakes that would otherwise become wrong tables."""
    problems = []
    types = [record["type"] for record in schema["batches"] + schema["events"]]
    problems += [f"record type '{t}' is listed twice" for t in sorted(set(types)) if types.count(t) > 1]
    for batch in schema["batches"]:
        names = [column[0] for column in batch["columns"]]
        problems += [f"{batch['type']}: column '{n}' is listed twice" for n in sorted(set(names)) if names.count(n) > 1]
        if batch["channel"] not in schema["channels"]:
            problems.append(f"{batch['type']}: no channel '{batch['channel']}'")
        for name, kind, origin, about in batch["columns"]:
            where = f"{batch['type']}.{name}"
            if kind.rstrip("?") not in c_tables.CELL_TYPES:
                problems.append(f"{where}: no type '{kind}'; known are {', '.join(c_tables.CELL_TYPES)}, each with or without ?")
            if origin.removesuffix("-optional") not in ("v1", "gpufl"):
                problems.append(f"{where}: no origin '{origin}'")
            if about.startswith("enum ") and about.removeprefix("enum ") not in schema["enums"]:
                problems.append(f"{where}: no {about}")
    for dictionary in schema["dictionaries"]:
        problems += [f"{dictionary['name']}: no channel '{c}'" for c in dictionary["channels"] if c not in schema["channels"]]
    if problems:
        raise SystemExit("\n".join(f"{CATALOGUE}: {problem}" for problem in problems))


def main():
    schema = json.loads((ROOT / CATALOGUE).read_text())
    check_catalogue(schema)
    preamble = (ROOT / "schema/format_preamble.md").read_text()
    outputs = {
        "src/format/catalogue.h": c_tables.c_header(schema),
        "src/format/catalogue.c": c_tables.c_source(schema),
        "docs/format.md": format_page.generate(schema, preamble),
        "python/gpufl/records.py": python_types.generate(schema),
        "web/src/api/records.ts": typescript_types.generate(schema),
    }
    stale = [path for path, text in outputs.items()
             if not (ROOT / path).exists() or (ROOT / path).read_text() != text]
    if "--check" in sys.argv[1:]:
        for path in stale:
            print(f"stale: {path} (run tools/gen_schema.py)", file=sys.stderr)
        sys.exit(1 if stale else 0)
    for path in stale:
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / path).write_text(outputs[path])


if __name__ == "__main__":
    main()
