/* SPDX-License-Identifier: Apache-2.0 */
#include "code/dwarf_entries.h"

#include <stdlib.h>

enum { ADDRESS_BYTES = 8, DEPTH_MAX = 512, CODES_MAX = 1 << 16, UNIT_COMPILE = 1 };
enum {
    ATTRIBUTE_LINE_TABLE = 0x10,
    ATTRIBUTE_LOW = 0x11,
    ATTRIBUTE_HIGH = 0x12,
    ATTRIBUTE_RANGES = 0x55,
    ATTRIBUTE_CALL_FILE = 0x58,
    ATTRIBUTE_CALL_LINE = 0x59,
    ATTRIBUTE_ADDRESS_BASE = 0x73,
    ATTRIBUTE_RANGE_BASE = 0x74,
};
enum {
    FORM_ADDRESS = 0x01,
    FORM_STRING = 0x08,
    FORM_INDIRECT = 0x16,
    FORM_FLAG_PRESENT = 0x19,
    FORM_ADDRESS_INDEX = 0x1b,
    FORM_IMPLICIT = 0x21,
    FORM_RANGE_INDEX = 0x23,
    FORM_ADDRESS_INDEX_1 = 0x29,
    FORM_ADDRESS_INDEX_4 = 0x2c,
};

struct abbreviation {
    uint32_t tag;
    bool is_there, has_children;
    size_t attributes; /* offset in .debug_abbrev */
};

struct entry_reading {
    struct byte_reader info, abbreviations, addresses, ranges, range_lists; /* sections */
    struct abbreviation *table;                                             /* owned; by code */
    size_t table_size;
    uint64_t table_offset; /* offset of the current table */
    bool has_table;
    struct dwarf_unit unit;
    struct dwarf_budget *budget;
    dwarf_entry_fn on_entry;
    void *user;
};

static bool budget_take(struct dwarf_budget *budget, uint64_t steps)
{
    bool is_enough = budget->left >= steps;
    budget->left -= is_enough ? steps : budget->left;
    return is_enough;
}

static struct byte_reader section_reader(const struct code_image *image, const char *name)
{
    uint32_t index = image_section_find(image, name, 0);
    const struct image_section *section = &image->sections[index];
    return index ? byte_reader_over(image->bytes + section->offset, (size_t)section->size)
                 : byte_reader_over(image->bytes, 0);
}

static bool abbreviation_keep(struct entry_reading *reading, uint64_t code, const struct abbreviation *abbreviation)
{
    if (code >= CODES_MAX)
        return false;
    if (!reading->table || code >= reading->table_size) {
        size_t size = reading->table_size ? reading->table_size : 64;
        while (size <= code)
            size *= 2;
        struct abbreviation *table = realloc(reading->table, size * sizeof *table);
        if (!table)
            return false;
        memset(table + reading->table_size, 0, (size - reading->table_size) * sizeof *table);
        reading->table = table;
        reading->table_size = size;
    }
    reading->table[code] = *abbreviation;
    return true;
}

static bool abbreviations_read(struct entry_reading *reading, uint64_t offset)
{
    if (reading->has_table && reading->table_offset == offset)
        return true;
    reading->has_table = false;
    if (reading->table)
        memset(reading->table, 0, reading->table_size * sizeof *reading->table);
    struct byte_reader reader = reading->abbreviations;
    byte_reader_skip(&reader, offset);
    for (uint64_t code; (code = byte_reader_uleb(&reader)) != 0;) {
        struct abbreviation abbreviation = {.is_there = true};
        abbreviation.tag = (uint32_t)byte_reader_uleb(&reader);
        abbreviation.has_children = byte_reader_u8(&reader);
        abbreviation.attributes = reader.at;
        for (uint64_t attribute = 1, form = 1; (attribute || form) && !reader.failed;) {
            attribute = byte_reader_uleb(&reader);
            form = byte_reader_uleb(&reader);
            if (form == FORM_IMPLICIT)
                byte_reader_sleb(&reader);
        }
        if (reader.failed || !abbreviation_keep(reading, code, &abbreviation) ||
            !budget_take(reading->budget, reader.at - abbreviation.attributes + sizeof abbreviation))
            return false;
    }
    reading->table_offset = offset;
    reading->has_table = !reader.failed;
    return reading->has_table;
}

/* Sizes of fixed-size forms in bytes; 0xff: other forms. */
static uint8_t form_size(uint64_t form, unsigned offset_size)
{
    static const uint8_t sizes[] = {
        [FORM_ADDRESS] = ADDRESS_BYTES,
        [0x05] = 2,
        [0x06] = 4,
        [0x07] = 8,
        [0x0b] = 1,
        [0x0c] = 1,
        [0x11] = 1,
        [0x12] = 2,
        [0x13] = 4,
        [0x14] = 8,
        [0x1c] = 4,
        [0x1e] = 16,
        [0x20] = 8,
        [0x24] = 8,
        [0x25] = 1,
        [0x26] = 2,
        [0x27] = 3,
        [0x28] = 4,
        [FORM_ADDRESS_INDEX_1] = 1,
        [0x2a] = 2,
        [0x2b] = 3,
        [FORM_ADDRESS_INDEX_4] = 4,
    };
    bool is_offset = form == 0x0e || form == 0x10 || form == 0x17 || form == 0x1d || form == 0x1f;
    if (is_offset)
        return (uint8_t)offset_size;
    return form < sizeof sizes && sizes[form] ? sizes[form] : 0xff;
}

/* False for an unknown form: the data after it cannot be parsed. */
static bool form_read(struct byte_reader *reader, uint64_t form, unsigned offset_size, uint64_t *number)
{
    uint8_t size = form_size(form, offset_size);
    *number = 0;
    if (size <= 8) {
        *number = byte_reader_number(reader, size);
    } else if (size != 0xff) {
        byte_reader_skip(reader, size);
    } else if (form == 0x0a || form == 0x03 || form == 0x04) { /* blocks */
        byte_reader_skip(reader, byte_reader_number(reader, form == 0x0a ? 1 : form == 0x03 ? 2 : 4));
    } else if (form == 0x09 || form == 0x18) {
        byte_reader_skip(reader, byte_reader_uleb(reader));
    } else if (form == FORM_STRING) {
        (void)byte_reader_text(reader);
    } else if (form == 0x0d) {
        *number = (uint64_t)byte_reader_sleb(reader);
    } else if (form == 0x0f || form == 0x15 || form == 0x1a || form == FORM_ADDRESS_INDEX || form == 0x22 ||
               form == FORM_RANGE_INDEX) {
        *number = byte_reader_uleb(reader);
    } else if (form != FORM_FLAG_PRESENT) {
        return false;
    }
    return !reader->failed;
}

static void value_keep(struct dwarf_entry *entry, uint64_t attribute, uint64_t form, uint64_t number)
{
    bool is_address_index =
        form == FORM_ADDRESS_INDEX || (form >= FORM_ADDRESS_INDEX_1 && form <= FORM_ADDRESS_INDEX_4);
    struct dwarf_value value = {true, is_address_index || form == FORM_RANGE_INDEX, number};
    switch (attribute) {
    case ATTRIBUTE_LINE_TABLE:
        entry->line_table = value;
        break;
    case ATTRIBUTE_LOW:
        entry->low = value;
        break;
    case ATTRIBUTE_HIGH:
        entry->high = value;
        entry->is_high_size = form != FORM_ADDRESS && !is_address_index;
        break;
    case ATTRIBUTE_RANGES:
        entry->ranges = value;
        break;
    case ATTRIBUTE_CALL_FILE:
        entry->call_file = value;
        break;
    case ATTRIBUTE_CALL_LINE:
        entry->call_line = value;
        break;
    case ATTRIBUTE_ADDRESS_BASE:
        entry->address_base = value;
        break;
    case ATTRIBUTE_RANGE_BASE:
        entry->range_base = value;
        break;
    default:
        break;
    }
}

static bool entry_read(struct entry_reading *reading, struct byte_reader *info, const struct abbreviation *abbreviation,
                       struct dwarf_entry *entry)
{
    struct byte_reader attributes = reading->abbreviations;
    attributes.at = abbreviation->attributes;
    unsigned offset_size = reading->unit.is_64bit ? 8 : 4;
    for (;;) {
        uint64_t attribute = byte_reader_uleb(&attributes), form = byte_reader_uleb(&attributes), number = 0;
        if (attributes.failed || !budget_take(reading->budget, 1))
            return false;
        if (!attribute && !form)
            return true;
        if (form == FORM_IMPLICIT)
            number = (uint64_t)byte_reader_sleb(&attributes);
        if (form == FORM_INDIRECT)
            form = byte_reader_uleb(info);
        if (form != FORM_IMPLICIT && !form_read(info, form, offset_size, &number))
            return false;
        value_keep(entry, attribute, form, number);
    }
}

/* Resolves a value to an address; false: it has none. */
static bool address_of(const struct dwarf_unit *unit, const struct dwarf_value *value, uint64_t *address)
{
    *address = value->number;
    if (!value->is_there || !value->is_index)
        return value->is_there;
    struct byte_reader reader = unit->addresses;
    byte_reader_skip(&reader, unit->address_base);
    if (value->number > byte_reader_left(&reader) / ADDRESS_BYTES)
        return false;
    byte_reader_skip(&reader, value->number * ADDRESS_BYTES);
    *address = byte_reader_u64(&reader);
    return !reader.failed;
}

static bool unit_visit(struct entry_reading *reading, struct byte_reader info)
{
    uint16_t calls[DEPTH_MAX] = {0};
    for (unsigned depth = 1; byte_reader_left(&info);) {
        uint64_t code = byte_reader_uleb(&info);
        if (!code) {
            if (--depth <= 1)
                return true;
            continue;
        }
        if (code >= reading->table_size || !reading->table[code].is_there || depth >= DEPTH_MAX)
            return false;
        const struct abbreviation *abbreviation = &reading->table[code];
        struct dwarf_entry entry = {.tag = abbreviation->tag};
        calls[depth] = (uint16_t)(calls[depth - 1] + (entry.tag == DWARF_TAG_INLINED));
        entry.depth = calls[depth];
        if (!entry_read(reading, &info, abbreviation, &entry))
            return false;
        if (depth == 1) {
            reading->unit.address_base = entry.address_base.number;
            reading->unit.range_base = entry.range_base.number;
            if (!address_of(&reading->unit, &entry.low, &reading->unit.low))
                reading->unit.low = 0;
        }
        bool is_wanted = entry.tag == DWARF_TAG_INLINED || (depth == 1 && entry.tag == DWARF_TAG_UNIT);
        if (is_wanted && !reading->on_entry(reading->user, &reading->unit, &entry))
            return false;
        if (!abbreviation->has_children && depth == 1)
            return true;
        depth += abbreviation->has_children;
    }
    return !info.failed;
}

/* Visits the unit at info->at and advances past it. */
static bool next_unit_visit(struct entry_reading *reading, struct byte_reader *info)
{
    uint64_t size = byte_reader_u32(info);
    reading->unit.is_64bit = size == UINT32_MAX;
    if (reading->unit.is_64bit)
        size = byte_reader_u64(info);
    struct byte_reader content = *info;
    byte_reader_skip(info, size);
    if (info->failed)
        return false;
    content.size = info->at;
    unsigned offset_size = reading->unit.is_64bit ? 8 : 4;
    reading->unit.version = byte_reader_u16(&content);
    if (reading->unit.version != 4 && reading->unit.version != 5)
        return true; /* skip other units */
    reading->unit.range_lists = reading->unit.version == 5 ? reading->range_lists : reading->ranges;
    uint8_t kind = reading->unit.version == 5 ? byte_reader_u8(&content) : UNIT_COMPILE;
    uint64_t abbreviations = 0;
    if (reading->unit.version == 4)
        abbreviations = byte_reader_number(&content, offset_size);
    uint8_t address_bytes = byte_reader_u8(&content);
    if (reading->unit.version == 5)
        abbreviations = byte_reader_number(&content, offset_size);
    if (content.failed || kind != UNIT_COMPILE || address_bytes != ADDRESS_BYTES)
        return !content.failed;
    return budget_take(reading->budget, 64) && abbreviations_read(reading, abbreviations) &&
           unit_visit(reading, content);
}

bool dwarf_entries_visit(const struct code_image *image, struct dwarf_budget *budget, dwarf_entry_fn on_entry,
                         void *user)
{
    struct entry_reading reading = {
        .info = section_reader(image, ".debug_info"),
        .abbreviations = section_reader(image, ".debug_abbrev"),
        .addresses = section_reader(image, ".debug_addr"),
        .ranges = section_reader(image, ".debug_ranges"),
        .range_lists = section_reader(image, ".debug_rnglists"),
        .budget = budget,
        .on_entry = on_entry,
        .user = user,
    };
    bool is_done = true;
    while (is_done && byte_reader_left(&reading.info)) {
        reading.unit = (struct dwarf_unit){.addresses = reading.addresses};
        is_done = next_unit_visit(&reading, &reading.info);
    }
    free(reading.table);
    return is_done;
}

/* DWARF 4: pairs of addresses up to a pair of zeros; a pair that starts with all bits set changes the base address. */
static bool old_ranges_visit(const struct dwarf_unit *unit, struct byte_reader reader, struct dwarf_budget *budget,
                             dwarf_range_fn on_range, void *user)
{
    uint64_t base = unit->low;
    for (;;) {
        uint64_t low = byte_reader_u64(&reader), high = byte_reader_u64(&reader);
        if (reader.failed || !budget_take(budget, 1))
            return false;
        if (!low && !high)
            return true;
        if (low == UINT64_MAX)
            base = high;
        else if (!on_range(user, base + low, base + high))
            return false;
    }
}

/* DWARF 5: a kind, then one or two numbers. */
static bool new_ranges_visit(const struct dwarf_unit *unit, struct byte_reader reader, struct dwarf_budget *budget,
                             dwarf_range_fn on_range, void *user)
{
    enum { END, BASE_INDEX, INDEX_INDEX, INDEX_SIZE, OFFSETS, BASE, ADDRESSES, ADDRESS_SIZE };
    uint64_t base = unit->low;
    for (;;) {
        uint8_t kind = byte_reader_u8(&reader);
        if (reader.failed || kind > ADDRESS_SIZE || !budget_take(budget, 1))
            return false;
        if (kind == END)
            return true;
        bool is_index = kind >= BASE_INDEX && kind <= INDEX_SIZE, is_address = kind >= BASE;
        struct dwarf_value first = {.is_there = true, .is_index = is_index};
        first.number = is_address ? byte_reader_u64(&reader) : byte_reader_uleb(&reader);
        uint64_t low, high = 0;
        if (!address_of(unit, &first, &low))
            return false;
        if (kind == BASE_INDEX || kind == BASE) {
            base = low;
            continue;
        }
        struct dwarf_value second = {.is_there = true, .is_index = kind == INDEX_INDEX};
        second.number = kind == ADDRESSES ? byte_reader_u64(&reader) : byte_reader_uleb(&reader);
        if (reader.failed || !address_of(unit, &second, &high))
            return false;
        if (kind == OFFSETS)
            low += base;
        high += kind == OFFSETS ? base : kind == INDEX_SIZE || kind == ADDRESS_SIZE ? low : 0;
        if (!on_range(user, low, high))
            return false;
    }
}

bool dwarf_ranges_visit(const struct dwarf_unit *unit, const struct dwarf_entry *entry, struct dwarf_budget *budget,
                        dwarf_range_fn on_range, void *user)
{
    uint64_t low, high;
    if (address_of(unit, &entry->low, &low) && entry->high.is_there) {
        if (!address_of(unit, &entry->high, &high))
            return false;
        return on_range(user, low, entry->is_high_size ? low + high : high);
    }
    if (!entry->ranges.is_there)
        return true;
    uint64_t offset = entry->ranges.number;
    struct byte_reader reader = unit->range_lists;
    if (entry->ranges.is_index) { /* in a table of offsets at the unit's base */
        unsigned width = unit->is_64bit ? 8 : 4;
        byte_reader_skip(&reader, unit->range_base);
        if (offset > byte_reader_left(&reader) / width)
            return false;
        byte_reader_skip(&reader, offset * width);
        offset = unit->range_base + byte_reader_number(&reader, width);
        if (reader.failed)
            return false;
        reader = unit->range_lists;
    }
    byte_reader_skip(&reader, offset);
    return unit->version == 5 ? new_ranges_visit(unit, reader, budget, on_range, user)
                              : old_ranges_visit(unit, reader, budget, on_range, user);
}
