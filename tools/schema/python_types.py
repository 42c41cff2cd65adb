# SPDX-License-Identifier: Apache-2.0
"""python/gpufl/records.py: the catalogue as typed Python tables, standard library only."""

from . import NOTE, is_optional, split_type

HEAD = f'''# SPDX-License-Identifier: Apache-2.0
# {NOTE}
"""Record catalogue of the gpufl session log: see docs/format.md."""

from typing import Dict, NamedTuple, Tuple


class Column(NamedTuple):
    name: str
    type: str  # i64 i32 u64 u32 u8 f64
    is_nullable: bool  # None means unknown, never zero
    is_optional: bool  # left out of a batch when no row has a value
    about: str


class Batch(NamedTuple):
    type: str
    version: int
    channel: str
    about: str
    columns: Tuple[Column, ...]

    def column_names(self) -> Tuple[str, ...]:
        return tuple(column.name for column in self.columns)


class Event(NamedTuple):
    type: str
    channel: str  # "all": written to every channel
    about: str


class Dictionary(NamedTuple):
    name: str
    channels: Tuple[str, ...]
    about: str

'''


def constants(values):
    return [f"{value.upper()} = {value!r}" for value in values]


def generate(schema):
    out = [HEAD, f"WIRE_VERSION = {schema['wire_version']!r}", f"CHANNELS: Tuple[str, ...] = {tuple(schema['channels'])!r}", ""]
    out += constants(record["type"] for record in schema["batches"] + schema["events"])
    out += ["", "BATCHES: Dict[str, Batch] = {"]
    for batch in schema["batches"]:
        out += [f"    {batch['type'].upper()}: Batch(", f"        {batch['type'].upper()}, {batch['version']}, {batch['channel']!r},",
                f"        {batch['about']!r},", "        ("]
        for name, kind, origin, about in batch["columns"]:
            cell, is_nullable = split_type(kind)
            out += [f"            Column({name!r}, {cell!r}, {is_nullable}, {is_optional(origin)}, {about!r}),"]
        out += ["        )),"]
    out += ["}", "", "EVENTS: Dict[str, Event] = {"]
    out += [f"    {e['type'].upper()}: Event({e['type'].upper()}, {e['channel']!r}, {e['about']!r})," for e in schema["events"]]
    out += ["}", "", "DICTIONARIES: Dict[str, Dictionary] = {"]
    out += [f"    {d['name']!r}: Dictionary({d['name']!r}, {tuple(d['channels'])!r}, {d['about']!r})," for d in schema["dictionaries"]]
    out += ["}", "", "ENUMS: Dict[str, Dict[int, str]] = {"]
    for name, values in schema["enums"].items():
        out += [f"    {name!r}: {{{', '.join(f'{value}: {word!r}' for value, word in values.items())}}},"]
    return "\n".join(out + ["}", ""])
