/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the entries of .debug_info (DWARF 4 and 5) in linked code that describe inlined calls. The input is untrusted:
 * reads stay inside the bytes, there is no recursion, and a budget limits the time to what compilers' output needs. */
#ifndef GPUFL_CODE_DWARF_ENTRIES_H
#define GPUFL_CODE_DWARF_ENTRIES_H

#include "code/byte_reader.h"
#include "code/image.h"

enum { DWARF_TAG_UNIT = 0x11, DWARF_TAG_INLINED = 0x1d };

/* A number of an entry; it may have to be resolved after the whole entry is read. */
struct dwarf_value {
    bool is_there, is_index; /* is_index: index of an address or a list */
    uint64_t number;
};

struct dwarf_entry {
    uint32_t tag;
    unsigned depth; /* number of nested inlined calls, including this one */
    struct dwarf_value low, high, ranges, call_file, call_line, line_table, address_base, range_base;
    bool is_high_size; /* high is relative to low */
};

struct dwarf_unit {
    uint16_t version;
    bool is_64bit;
    uint64_t low;                              /* base of the offsets in range lists */
    uint64_t address_base, range_base;         /* the unit's part of .debug_addr and .debug_rnglists */
    struct byte_reader addresses, range_lists; /* the whole sections */
};

/* Called for each unit and for each entry that describes inlined code; false stops. */
typedef bool (*dwarf_entry_fn)(void *user, const struct dwarf_unit *unit, const struct dwarf_entry *entry);
typedef bool (*dwarf_range_fn)(void *user, uint64_t low, uint64_t high);

/* Remaining steps of parsing: bytes of tables, attributes, ranges. */
struct dwarf_budget {
    uint64_t left;
};

/* False: damaged, stopped, or over budget; entries reported before that are valid. */
bool dwarf_entries_visit(const struct code_image *image, struct dwarf_budget *budget, dwarf_entry_fn on_entry,
                         void *user);
/* Visits the address ranges of an entry. False: damaged or stopped. */
bool dwarf_ranges_visit(const struct dwarf_unit *unit, const struct dwarf_entry *entry, struct dwarf_budget *budget,
                        dwarf_range_fn on_range, void *user);

#endif
