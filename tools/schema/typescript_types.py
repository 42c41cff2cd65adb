# SPDX-License-Identifier: Apache-2.0
"""web/src/api/records.ts: row types, column lists and words for enumerations."""

import json

from . import NOTE, is_optional, split_type


def row_name(batch_type):
    stem = batch_type.removesuffix("_batch").removesuffix("_event")
    return "".join(part.capitalize() for part in stem.split("_")) + "Row"


def generate(schema):
    out = ["// SPDX-License-Identifier: Apache-2.0", f"// {NOTE}", "",
           "// 64-bit cells are numbers: exact up to 2^53. null means unknown, never zero; a column marked ? is left out of a",
           "// batch when no row has a value.", "",
           f"export const WIRE_VERSION = {json.dumps(schema['wire_version'])};",
           f"export const CHANNELS = {json.dumps(schema['channels'])} as const;",
           "export type Channel = (typeof CHANNELS)[number];", ""]
    for batch in schema["batches"]:
        out += [f"/** {batch['type']}: {batch['about']} */", f"export interface {row_name(batch['type'])} {{"]
        for name, kind, origin, about in batch["columns"]:
            _, is_nullable = split_type(kind)
            note = f" // {about}" if about else ""
            out += [f"  {name}{'?' if is_optional(origin) else ''}: number{' | null' if is_nullable else ''};{note}"]
        out += ["}", ""]
    out += ["export interface RowTypes {"]
    out += [f"  {batch['type']}: {row_name(batch['type'])};" for batch in schema["batches"]]
    out += ["}", "", "export type BatchType = keyof RowTypes;", "",
            "export const COLUMNS: { readonly [T in BatchType]: readonly (keyof RowTypes[T])[] } = {"]
    for batch in schema["batches"]:
        names = ", ".join(f'"{column[0]}"' for column in batch["columns"])
        out += [f"  {batch['type']}: [{names}],"]
    out += ["};", "", "export type EventType ="]
    out += [f'  | "{event["type"]}"' for event in schema["events"]]
    out[-1] += ";"
    out += ["", "export const ENUMS = {"]
    for name, values in schema["enums"].items():
        out += [f"  {name}: {{ {', '.join(f'{value}: {json.dumps(word)}' for value, word in values.items())} }},"]
    return "\n".join(out + ["} as const;", ""])
