# SPDX-License-Identifier: Apache-2.0
"""docs/format.md: the specification that people read."""

from . import NOTE, is_optional, split_type

MARKER = "<!-- records -->"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return lines


def batch_section(batch):
    origin = "wire v1" if batch["origin"] == "v1" else "gpufl"
    out = [f"### {batch['type']}", "",
           f"Channel {batch['channel']}, version {batch['version']}, {origin}. {sentence(batch['about'])}", ""]
    rows = []
    for name, kind, column_origin, about in batch["columns"]:
        cell, is_nullable = split_type(kind)
        notes = [about] if about else []
        if is_nullable:
            notes.append("null: unknown")
        if is_optional(column_origin):
            notes.append("column left out when no row has a value")
        rows.append([f"`{name}`", cell, column_origin.removesuffix("-optional"), "; ".join(notes)])
    return out + table(["column", "type", "origin", "meaning"], rows) + [""]


def sentence(text):
    return text[:1].upper() + text[1:] + ("" if not text or text.endswith(".") else ".")


def event_section(event):
    origin = "wire v1" if event["origin"] == "v1" else "gpufl"
    channel = {"all": "all channels", "by dictionary": "the channels of each dictionary"}.get(
        event["channel"], f"channel {event['channel']}")
    head = f"{sentence(channel)[:-1]}, {origin}."
    if event["about"]:
        head += " " + sentence(event["about"])
    members = event["fields"]
    body = "Members as in wire v1." if members == "see v1" else f"Members: {members}."
    return [f"### {event['type']}", "", head, "", body, ""]


def generate(schema, preamble):
    before, marker, after = preamble.partition(MARKER)
    if not marker:
        raise SystemExit(f"schema/format_preamble.md: the line {MARKER} is missing")
    out = [f"<!-- {NOTE} The prose is in schema/format_preamble.md. -->", "", before.rstrip(), "",
           "## Channels and dictionaries", "", "Channels: " + ", ".join(f"`{c}`" for c in schema["channels"]) + ".", ""]
    out += table(["dictionary", "channels", "origin", "meaning"],
                 [[f"`{d['name']}`", ", ".join(d["channels"]), d["origin"], d["about"]] for d in schema["dictionaries"]])
    out += ["", "## Enumerations", ""]
    out += table(["enumeration", "values"],
                 [[f"`{name}`", ", ".join(f"{value} {word}" for value, word in values.items())]
                  for name, values in schema["enums"].items()])
    out += ["", "## Batches", ""]
    for batch in schema["batches"]:
        out += batch_section(batch)
    out += ["## Single records", ""]
    for event in schema["events"]:
        out += event_section(event)
    return "\n".join(out).rstrip() + "\n" + after.rstrip() + "\n"
