/* SPDX-License-Identifier: Apache-2.0 */
/* The entries of .debug_info (DWARF 4 and 5) in linked code, as far as inlined calls need them. Untrusted: stays within
 * the bytes, never recurses, and gives up on what would take longer than any compiler's output. */
#ifndef GPUFL_CODE_DWARF_ENTRIES_H
#define GPUFL_CODE_DWARF_ENTRIES_H

#include "code/byte_reader.h"
#include "code/image.h"

enum { DWARF_TAG_UNIT = 0x11, DWARF_TAG_INLINED = 0x1d };

/* A number of an entry; what it means may have to be looked up once the whole entry is read. */
struct dwarf_value {
    bool is_there, is_index; /* is_index: of an address or a list */
    uint64_t number;
};

struct dwarf_entry {
    uint32_t tag;
    unsigned depth; /* of inlined calls around it, itself included */
    struct dwarf_value low, high, ranges, call_file, call_line, line_table, address_base, range_base;
    bool is_high_size; /* high counts from low */
};

struct dwarf_unit {
    uint16_t version;
    bool is_64bit;
    uint64_t low;                              /* what offsets in range lists count from */
    uint64_t address_base, range_base;         /* of the unit's part of .debug_addr and .debug_rnglists */
    struct byte_reader addresses, range_lists; /* the whole sections */
};

/* Each entry that says where inlined code lies, after each unit's own; false stops. */
typedef bool (*dwarf_entry_fn)(void *user, const struct dwarf_unit *unit, const struct dwarf_entry *entry);
typedef bool (*dwarf_range_fn)(void *user, uint64_t low, uint64_t high);

/* Steps that reading may still take: bytes of tables, attributes, ranges. */
struct dwarf_budget {
    uint64_t left;
};

/* False when it is damaged, was stopped, or is too much; what was told until then is good. */
bool dwarf_entries_visit(const struct code_image *image, struct dwarf_budget *budget, dwarf_entry_fn on_entry,
                         void *user);
/* The stretches of code of an entry. False: damaged or stopped. */
bool dwarf_ranges_visit(const struct dwarf_unit *unit, const struct dwarf_entry *entry, struct dwarf_budget *budget,
                        dwarf_range_fn on_range, void *user);

#endif
