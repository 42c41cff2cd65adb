#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""src/driver/watched_calls.inc: every vendor function that a table of src/driver/*_abi.h names, with its parameters, for
watched_calls.c to wrap.

usage: gen_watched_calls.py [--check]    --check: an error when the file is not what would be written

Functions that are looked up one by one, with their name as a literal, are an error: they belong in a table.

A table is a macro NAME_FUNCTIONS(X) of entries X(member, symbol, parameters), where parameters are a list in parentheses
or the name of the one struct that the function takes a pointer to.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
DRIVER = ROOT / "src/driver"
TARGET = DRIVER / "watched_calls.inc"
SINGLE = re.compile(r'library_symbol\([^,()]+,\s*"(\w+)"')
TEXT = {"nvmlErrorString", "rocprofiler_get_status_name"}  # they return text, and watched_calls.c wraps them itself
TABLE = re.compile(r"#define \w+_FUNCTIONS\(X\)(.*?)(?:\n\n|\n#endif)", re.S)
HEAD = ["/* SPDX-License-Identifier: Apache-2.0 */",
        "/* Written by tools/gen_watched_calls.py from the tables in *_abi.h: symbol, parameters, their names. */"]


def split(text):
    """Parts between commas that are in no parentheses."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def name_of(parameter):
    """A function's own name is in its first parentheses, any other's is its last word."""
    function = re.search(r"\(\s*\*\s*(\w+)\s*\)\s*\(", parameter)
    return function.group(1) if function else re.findall(r"\w+", parameter)[-1]


def entries(text):
    """(symbol, parameters, names) of the tables in a header."""
    for table in TABLE.findall(text):
        body = " ".join(table.replace("\\\n", " ").split())
        at = 0
        while (at := body.find("X(", at)) >= 0:
            end, depth = at + 1, 0
            while True:
                depth += (body[end] == "(") - (body[end] == ")")
                end += 1
                if depth == 0:
                    break
            _, symbol, parameters = split(body[at + 2:end - 1])
            at = end
            if not parameters.startswith("("):
                yield symbol, f"(struct {parameters} * params)", "(params)"
            elif parameters == "(void)":
                yield symbol, parameters, "()"
            else:
                yield symbol, parameters, "(" + ", ".join(map(name_of, split(parameters[1:-1]))) + ")"


def main():
    lines = list(HEAD)
    for header in sorted(DRIVER.glob("*_abi.h")):
        lines += [f"WATCHED_CALL({', '.join(entry)})" for entry in entries(header.read_text(encoding="utf-8"))]
    for source in sorted(DRIVER.glob("*.c")):
        for name in set(SINGLE.findall(source.read_text(encoding="utf-8"))) - TEXT:
            raise SystemExit(f"{source.relative_to(ROOT)}: {name} is in no table, so a hang in it would not be noticed")
    text = "\n".join(lines) + "\n"
    if sys.argv[1:] == ["--check"]:
        if not TARGET.exists() or TARGET.read_text(encoding="utf-8") != text:
            raise SystemExit(f"{TARGET.relative_to(ROOT)} is not what the tables say: run tools/gen_watched_calls.py")
        return
    TARGET.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
