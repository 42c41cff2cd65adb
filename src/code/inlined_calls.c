/* SPDX-License-Identifier: Apache-2.0 */
#include "code/inlined_calls.h"

#include "code/dwarf_entries.h"
#include "code/line_program.h"

#include <stdlib.h>

enum { CALLS_MAX = 1 << 20, STEPS_MAX = 64 << 20 };

struct call_reading {
    struct inlined_calls *calls;
    struct line_table *table;
    struct dwarf_budget budget;
    struct line_unit lines; /* of the current unit, for its file names */
    struct inlined_call call;
    bool is_without_memory;
};

static bool call_add(void *user, uint64_t low, uint64_t high)
{
    struct call_reading *reading = user;
    struct inlined_calls *calls = reading->calls;
    if (low >= high)
        return true; /* removed by the linker */
    if (calls->count == calls->capacity) {
        size_t capacity = calls->capacity ? calls->capacity * 2 : 64;
        struct inlined_call *grown =
            capacity > CALLS_MAX ? NULL : realloc(calls->calls, capacity * sizeof *calls->calls);
        if (!grown) {
            reading->is_without_memory = capacity <= CALLS_MAX;
            return false;
        }
        calls->calls = grown;
        calls->capacity = capacity;
    }
    struct inlined_call call = reading->call;
    call.low = low;
    call.high = high;
    calls->calls[calls->count++] = call;
    return true;
}

/* The file names are in the header of the unit's line program. */
static bool unit_begin(struct call_reading *reading, const struct dwarf_entry *entry)
{
    line_unit_free(&reading->lines);
    reading->lines = (struct line_unit){0};
    const struct code_image *image = reading->table->image;
    uint32_t index = image_section_find(image, ".debug_line", 0);
    if (!entry->line_table.is_there || !index || entry->line_table.number >= image->sections[index].size)
        return true;
    const struct image_section *section = &image->sections[index];
    struct byte_reader reader = byte_reader_over(image->bytes + section->offset, (size_t)section->size);
    reader.at = (size_t)entry->line_table.number;
    size_t begin = reader.at;
    gpufl_status status = line_unit_read(&reading->lines, &reader, reading->table, section->name, NULL);
    reading->is_without_memory = status == GPUFL_E_NO_MEMORY;
    if (status)
        return false;
    /* In a hostile file many units may share one header, which is then read for each of them. */
    uint64_t cost = reading->lines.program_begin - begin;
    bool is_enough = reading->budget.left >= cost;
    reading->budget.left -= is_enough ? cost : 0;
    return is_enough;
}

static bool entry_use(void *user, const struct dwarf_unit *unit, const struct dwarf_entry *entry)
{
    struct call_reading *reading = user;
    if (entry->tag == DWARF_TAG_UNIT)
        return unit_begin(reading, entry);
    uint64_t file = entry->call_file.number;
    bool has_file = entry->call_file.is_there && file < reading->lines.path_count;
    reading->call = (struct inlined_call){
        .depth = entry->depth,
        .path = has_file ? reading->lines.paths[file] : 0,
        .line = entry->call_line.number <= UINT32_MAX ? (uint32_t)entry->call_line.number : 0,
    };
    return dwarf_ranges_visit(unit, entry, &reading->budget, call_add, reading);
}

static int call_order(const void *left, const void *right)
{
    const struct inlined_call *a = left, *b = right;
    if (a->low != b->low)
        return a->low < b->low ? -1 : 1;
    return a->depth < b->depth ? -1 : a->depth > b->depth;
}

bool inlined_calls_read(struct inlined_calls *calls, struct line_table *table)
{
    struct call_reading reading = {.calls = calls, .table = table, .budget = {STEPS_MAX}};
    *calls = (struct inlined_calls){0};
    bool is_good = dwarf_entries_visit(table->image, &reading.budget, entry_use, &reading);
    line_unit_free(&reading.lines);
    if (!is_good)
        inlined_calls_free(calls);
    if (calls->count)
        qsort(calls->calls, calls->count, sizeof *calls->calls, call_order);
    uint64_t reach = 0;
    for (size_t i = 0; i < calls->count; i++) {
        reach = calls->calls[i].high > reach ? calls->calls[i].high : reach;
        calls->calls[i].reach = reach;
    }
    return !reading.is_without_memory;
}

void inlined_calls_free(struct inlined_calls *calls)
{
    free(calls->calls);
    *calls = (struct inlined_calls){0};
}

size_t inlined_calls_find(const struct inlined_calls *calls, uint64_t address, const struct inlined_call **found,
                          size_t max)
{
    enum { steps_max = 1 << 14 }; /* limits look-ups in hostile files */
    size_t low = 0, high = calls->count, count = 0, steps = 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (calls->calls[middle].low <= address)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low && calls->calls[low - 1].reach > address && steps < steps_max; low--, steps++) {
        const struct inlined_call *call = &calls->calls[low - 1];
        if (call->high <= address)
            continue;
        size_t at = count < max ? count++ : max;
        for (; at && found[at - 1]->depth < call->depth; at--)
            if (at < max)
                found[at] = found[at - 1];
        if (at < max)
            found[at] = call;
    }
    return count;
}
