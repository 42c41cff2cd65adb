# SPDX-License-Identifier: Apache-2.0
"""C tables: src/format/catalogue.h and catalogue.c."""

from . import NOTE

CELL_TYPES = ["i64", "i32", "u64", "u32", "u8", "f64"]


def prefix(batch_type):
    for tail in ("_event_batch", "_batch"):
        if batch_type.endswith(tail):
            return batch_type[: -len(tail)].upper()
    raise SystemExit(f"records.json: batch type '{batch_type}' must end in _batch")


def kept(record):
    return "true" if record.get("kept") else "false"


def c_header(schema):
    out = ["/* SPDX-License-Identifier: Apache-2.0 */", f"/* {NOTE} */",
           "#ifndef GPUFL_FORMAT_CATALOGUE_H", "#define GPUFL_FORMAT_CATALOGUE_H", "",
           "#include <stdbool.h>", "#include <stddef.h>", "", f'#define WIRE_VERSION "{schema["wire_version"]}"', "",
           "enum channel {"]
    out += [f"    CHANNEL_{name.upper()}," for name in schema["channels"]]
    out += ["    CHANNEL_COUNT /* also: a record that goes to every channel */", "};", "", "enum record_type {", "    RECORD_UNKNOWN,"]
    out += [f"    RECORD_{record['type'].upper()}," for record in schema["batches"] + schema["events"]]
    out += ["    RECORD_TYPE_COUNT", "};", "", "enum dictionary {"]
    out += [f"    DICTIONARY_{d['name'].upper().removesuffix('_DICT')}," for d in schema["dictionaries"]]
    out += ["    DICTIONARY_COUNT", "};", ""]
    for batch in schema["batches"]:
        out += [f"enum /* columns of {batch['type']} */ {{"]
        out += [f"    {prefix(batch['type'])}_{column[0].upper()}," for column in batch["columns"]]
        out += [f"    {prefix(batch['type'])}_COLUMN_COUNT", "};", ""]
    out += ["enum cell_type { " + ", ".join("CELL_" + t.upper() for t in CELL_TYPES) + " };", "",
            "struct column_info {", "    const char *name;", "    enum cell_type type;",
            "    bool is_nullable; /* null = unknown */", "    bool is_optional; /* left out of a batch when no row has a value */", "};", "",
            "struct record_info {", "    const char *name;", "    enum record_type type;", "    int version;",
            "    enum channel channel; /* CHANNEL_COUNT: all */", "    bool is_batch;",
            "    bool is_kept; /* later records refer to it: it outlives the rows around it */",
            "    const struct column_info *columns;", "    unsigned column_count;", "};", "",
            "struct dictionary_info {", "    const char *name;", "    unsigned channels; /* bit mask of 1u << channel */", "};", "",
            "extern const struct record_info record_catalogue[RECORD_TYPE_COUNT];",
            "extern const struct dictionary_info dictionary_catalogue[DICTIONARY_COUNT];",
            "extern const char *const channel_names[CHANNEL_COUNT];",
            "enum record_type record_type_of(const char *name, size_t size);",
            "/* The word for an enum value of the schema (\"copy_kind\", 1 -> \"H2D\"); NULL when there is none. */",
            "const char *schema_word(const char *enumeration, long value);", "", "#endif", ""]
    return "\n".join(out)


def c_source(schema):
    out = ["/* SPDX-License-Identifier: Apache-2.0 */", f"/* {NOTE} */", '#include "format/catalogue.h"', "", "#include <string.h>", ""]
    names = ", ".join(f'"{name}"' for name in schema["channels"])
    out += [f"const char *const channel_names[CHANNEL_COUNT] = {{{names}}};", ""]
    for batch in schema["batches"]:
        out += [f"static const struct column_info {batch['type']}_columns[] = {{"]
        for name, kind, origin, _ in batch["columns"]:
            nullable = "true" if kind.endswith("?") else "false"
            optional = "true" if origin.endswith("-optional") else "false"
            out += [f'    {{"{name}", CELL_{kind.rstrip("?").upper()}, {nullable}, {optional}}},']
        out += ["};"]
    out += ["", "const struct record_info record_catalogue[RECORD_TYPE_COUNT] = {",
            '    [RECORD_UNKNOWN] = {"", RECORD_UNKNOWN, 0, CHANNEL_COUNT, false, false, NULL, 0},']
    channels = set(schema["channels"])
    for batch in schema["batches"]:
        t = batch["type"]
        out += [f'    [RECORD_{t.upper()}] = {{"{t}", RECORD_{t.upper()}, {batch["version"]}, CHANNEL_{batch["channel"].upper()}, true, {kept(batch)},',
                f"                     {t}_columns, {prefix(t)}_COLUMN_COUNT}},"]
    for event in schema["events"]:
        t = event["type"]
        channel = "CHANNEL_" + event["channel"].upper() if event["channel"] in channels else "CHANNEL_COUNT"
        out += [f'    [RECORD_{t.upper()}] = {{"{t}", RECORD_{t.upper()}, {event.get("version", 1)}, {channel}, false, {kept(event)}, NULL, 0}},']
    out += ["};", "", "const struct dictionary_info dictionary_catalogue[DICTIONARY_COUNT] = {"]
    for d in schema["dictionaries"]:
        mask = " | ".join(f"1u << CHANNEL_{c.upper()}" for c in d["channels"])
        out += [f'    {{"{d["name"]}", {mask}}},']
    out += ["};", "", "enum record_type record_type_of(const char *name, size_t size)", "{",
            "    for (int type = 1; type < RECORD_TYPE_COUNT; type++)",
            "        if (strlen(record_catalogue[type].name) == size && !memcmp(record_catalogue[type].name, name, size))",
            "            return (enum record_type)type;", "    return RECORD_UNKNOWN;", "}", "",
            "static const struct {", "    const char *enumeration;", "    long value;", "    const char *word;", "} words[] = {"]
    for enumeration, values in schema["enums"].items():
        out += [f'    {{"{enumeration}", {value}, "{word}"}},' for value, word in values.items()]
    out += ["};", "", "const char *schema_word(const char *enumeration, long value)", "{",
            "    for (size_t i = 0; i < sizeof words / sizeof *words; i++)",
            "        if (words[i].value == value && !strcmp(words[i].enumeration, enumeration))",
            "            return words[i].word;", "    return NULL;", "}", ""]
    return "\n".join(out)
