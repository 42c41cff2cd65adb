#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The table of platforms in docs/install.md, from docs/platforms.json.

usage: gen_platforms.py [--check] [--take FILE...] [--agree FILE...]

FILE: a result of tools/try_platform.sh. --take puts it into platforms.json; --agree fails if platforms.json promises
more or less than what ran. --check fails if the page does not have the table."""
import argparse
import json
import pathlib
import re
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[1]
DATA = SOURCE / "docs" / "platforms.json"
PAGE = SOURCE / "docs" / "install.md"
BEGIN, END = "<!-- platforms, made by tools/gen_platforms.py -->\n", "<!-- end of platforms -->\n"
STEPS = ("builds", "unit-tests", "record", "report", "view", "install-and-remove")
HEAD = ("distribution", "builds", "unit tests", "record", "report", "view", "install, remove", "tried with", "by")
LIBRARIES = (("libc6", "glibc"), ("compiler", ""), ("libcurl4-gnutls-dev", "curl"),
             ("libmicrohttpd-dev", "libmicrohttpd"), ("libsqlite3-dev", "SQLite"))


def result(path):
    """What try_platform.sh wrote: a value by name."""
    return dict(line.split(" ", 1) for line in pathlib.Path(path).read_text().splitlines())


def row_of(path, by):
    found = result(path)
    libraries = ", ".join(f"{label} {found[name]}".strip() for name, label in LIBRARIES if name in found)
    where = found.get("distribution", "").replace("GNU/Linux ", "")
    architecture = found.get("architecture", "").replace("_", "-")
    return {"name": pathlib.Path(path).stem, "distribution": f"{where}, {architecture}", "by": by, "libraries": libraries,
            "cells": [found.get(step, "no") for step in STEPS]}


def table(rows):
    lines = [HEAD, ["---"] * len(HEAD)]
    lines += [(row["distribution"], *row["cells"], row["libraries"], row["by"]) for row in rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def problems_of(rows, paths):
    """How results differ from what the table says."""
    by_name = {row["name"]: row for row in rows}
    for path in paths:
        fresh, promised = row_of(path, ""), by_name.get(pathlib.Path(path).stem)
        if not promised:
            yield f"{path}: docs/platforms.json has no such row"
            continue
        for step, now, then in zip(STEPS, fresh["cells"], promised["cells"]):
            if now != then:
                yield f"{promised['distribution']}: {step} is {now!r} now, and {then!r} in docs/platforms.json"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--take", nargs="+", default=[])
    parser.add_argument("--by", default="CI", help="who ran what is taken: CI or hand")
    parser.add_argument("--agree", nargs="+", default=[])
    options = parser.parse_args()
    rows = json.loads(DATA.read_text())
    for path in options.take:
        fresh = row_of(path, options.by)
        at = next((i for i, row in enumerate(rows) if row["name"] == fresh["name"]), len(rows))
        rows[at:at + 1] = [fresh]
    if options.take:
        DATA.write_text(json.dumps(rows, indent=2) + "\n")
    problems = list(problems_of(rows, options.agree))
    problems += [f"{row['distribution']}: an empty cell" for row in rows if not all(row["cells"]) or len(row["cells"]) != len(STEPS)]
    page = PAGE.read_text()
    fresh_page = re.sub(re.escape(BEGIN) + ".*?" + re.escape(END), lambda _: BEGIN + table(rows) + END, page, flags=re.S)
    if BEGIN not in page:
        problems.append("docs/install.md has no place for the table")
    elif options.check and fresh_page != page:
        problems.append("docs/install.md: the table of platforms is stale: run tools/gen_platforms.py")
    elif not options.check and not options.agree:
        PAGE.write_text(fresh_page)
    print("\n".join(problems), file=sys.stderr, end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
