/* SPDX-License-Identifier: Apache-2.0 */
/* Code in the log: cubins (compressed until used), instruction listings and source text. */
#include "analysis/session_loader.h"

#include <errno.h>
#include <stdlib.h>

enum {
    objects_max = 65536,
    listings_max = 65536,
    listing_entries_max = 16 * 1024 * 1024,
    sources_max = 65536,
    source_lines_max = 16 * 1024 * 1024
};
enum { INSTRUCTION_BYTES_MAX = 64 };
#define OBJECT_BYTES_MAX ((size_t)1 << 30)

bool object_u64(const struct json_value *object, const char *key, uint64_t *value)
{
    const struct json_value *member = json_member(object, key);
    if (member && member->kind == JSON_INT && (member->integer >= 0 || member->is_unsigned)) {
        *value = (uint64_t)member->integer;
        return true;
    }
    if (!member || member->kind != JSON_STRING || member->text[0] < '0' || member->text[0] > '9')
        return false;
    char *end;
    errno = 0;
    unsigned long long number = strtoull(member->text, &end, 10);
    if (*end || errno)
        return false;
    *value = number;
    return true;
}

static void object_record(struct session_loader *loader, const struct json_value *object)
{
    struct session_deep *deep = &loader->model->deep;
    struct code_object code = {.arch = loader_member_text(loader, object, "arch")};
    if (!object_u64(object, "cubin_crc", &code.crc))
        return;
    object_u64(object, "bytes", &code.bytes);
    const struct json_value *skipped = json_member(object, "skipped");
    code.skipped = loader_member_text(loader, skipped && skipped->kind == JSON_OBJECT ? skipped : object,
                                      skipped && skipped->kind == JSON_OBJECT ? "reason" : "skipped");
    const struct json_value *data = json_member(object, "data");
    bool has_data = data && data->kind == JSON_STRING && data->text_size;
    if (deep->object_count >= objects_max ||
        (has_data && data->text_size > OBJECT_BYTES_MAX - loader->deep.object_bytes)) {
        deep->left_out++;
        return;
    }
    if (!loader_grow(loader, &deep->objects, &loader->deep.object_capacity, deep->object_count, sizeof code))
        return;
    if (has_data) {
        code.data = malloc(data->text_size);
        if (!code.data) {
            loader->status = GPUFL_E_NO_MEMORY;
            return;
        }
        memcpy(code.data, data->text, data->text_size);
        code.data_size = data->text_size;
        loader->deep.object_bytes += data->text_size;
    }
    deep->objects[deep->object_count++] = code;
}

/* v1 merges adjacent instructions that differ in numbers only: `count` instructions share the first one's text. */
static bool entry_add(struct session_loader *loader, const struct json_value *entry)
{
    struct session_deep *deep = &loader->model->deep;
    int64_t pc = json_get_int(entry, "pc", -1), count = json_get_int(entry, "count", 1);
    int64_t bytes = json_get_int(entry, "bytes", 0);
    uint32_t line = object_u32(entry, "line");
    if (pc < 0 || pc > UINT32_MAX || count < 1)
        return true;
    if (deep->listing_entry_count >= listing_entries_max) {
        deep->left_out++;
        return false;
    }
    if (!loader_grow(loader, &deep->listing_entries, &loader->deep.listing_entry_capacity, deep->listing_entry_count,
                     sizeof *deep->listing_entries))
        return false;
    deep->listing_entries[deep->listing_entry_count++] = (struct listing_entry){
        .pc_offset = (uint32_t)pc,
        .count = count < UINT32_MAX ? (uint32_t)count : UINT32_MAX,
        .line = line == ID_UNKNOWN ? 0 : line,
        .bytes = bytes > 0 && bytes <= INSTRUCTION_BYTES_MAX && bytes % 4 == 0 ? (uint32_t)bytes : 0,
        .sass = loader_member_text(loader, entry, "sass"),
        .file = loader_member_text(loader, entry, "file"),
    };
    return true;
}

static int entry_compare(const void *left, const void *right)
{
    const struct listing_entry *a = left, *b = right;
    return a->pc_offset < b->pc_offset ? -1 : a->pc_offset > b->pc_offset;
}

static void listing_record(struct session_loader *loader, const struct json_value *object)
{
    struct session_deep *deep = &loader->model->deep;
    struct code_listing listing = {.function = loader_member_text(loader, object, "function_name"),
                                   .tool = loader_member_text(loader, object, "tool"),
                                   .entry_first = deep->listing_entry_count};
    object_u64(object, "cubin_crc", &listing.cubin_crc);
    if (deep->listing_count >= listings_max) {
        deep->left_out++;
        return;
    }
    const struct json_value *entries = json_member(object, "entries");
    for (const struct json_value *entry = entries && entries->kind == JSON_ARRAY ? entries->child : NULL; entry;
         entry = entry->next)
        if (!entry_add(loader, entry))
            break;
    listing.entry_count = deep->listing_entry_count - listing.entry_first;
    if (!listing.entry_count ||
        !loader_grow(loader, &deep->listings, &loader->deep.listing_capacity, deep->listing_count, sizeof listing))
        return;
    qsort(deep->listing_entries + listing.entry_first, listing.entry_count, sizeof *deep->listing_entries,
          entry_compare);
    deep->listings[deep->listing_count++] = listing;
}

static void source_record(struct session_loader *loader, const struct json_value *object)
{
    struct session_deep *deep = &loader->model->deep;
    uint32_t id = object_u32(object, "source_file_id");
    struct source_content source = {.path = loader_member_text(loader, object, "path"),
                                    .source_file_id = id == ID_UNKNOWN ? 0 : id,
                                    .line_first = deep->source_line_count};
    const struct json_value *lines = json_member(object, "lines");
    if (deep->source_count >= sources_max ||
        !loader_grow(loader, &deep->sources, &loader->deep.source_capacity, deep->source_count, sizeof source)) {
        deep->left_out++;
        return;
    }
    for (const struct json_value *line = lines && lines->kind == JSON_ARRAY ? lines->child : NULL; line;
         line = line->next) {
        if (deep->source_line_count >= source_lines_max ||
            !loader_grow(loader, &deep->source_lines, &loader->deep.source_line_capacity, deep->source_line_count,
                         sizeof *deep->source_lines)) {
            deep->left_out++;
            break;
        }
        deep->source_lines[deep->source_line_count++] =
            line->kind == JSON_STRING ? loader_text(loader, line->text, line->text_size) : "";
    }
    source.line_count = deep->source_line_count - source.line_first;
    deep->sources[deep->source_count++] = source;
}

bool loader_code_record(struct session_loader *loader, enum record_type type, const struct json_value *object)
{
    if (type == RECORD_CODE_OBJECT)
        object_record(loader, object);
    else if (type == RECORD_CUBIN_DISASSEMBLY)
        listing_record(loader, object);
    else if (type == RECORD_SOURCE_FILE_CONTENT)
        source_record(loader, object);
    else
        return false;
    return true;
}
