/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/code_lookup.h"

#include "code/cubin.h"
#include "code/disassembler.h"
#include "logfile/packed_bytes.h"

#include <stdio.h>
#include <stdlib.h>

/* The recorder stores no image larger than this. */
#define IMAGE_BYTES_MAX ((uint64_t)512 << 20)

struct opened_object {
    bool is_tried, has_lines;
    struct bytes bytes;
    struct code_image image;
    struct line_table lines;
    const char *problem; /* NULL: the image is open */
    const char *line_problem;
};

gpufl_status code_lookup_open(struct code_lookup *lookup, const struct session_model *model, enum code_effort effort)
{
    *lookup = (struct code_lookup){.model = model, .effort = effort};
    lookup->objects = calloc(model->deep.object_count + 1, sizeof *lookup->objects);
    return lookup->objects ? GPUFL_OK : GPUFL_E_NO_MEMORY;
}

static void opened_close(struct opened_object *opened)
{
    if (opened->has_lines)
        line_table_close(&opened->lines);
    if (opened->is_tried && !opened->problem)
        image_close(&opened->image);
    bytes_free(&opened->bytes);
}

void code_lookup_close(struct code_lookup *lookup)
{
    for (size_t i = 0; lookup->objects && i < lookup->model->deep.object_count; i++)
        opened_close(&lookup->objects[i]);
    free(lookup->objects);
    intern_free(&lookup->texts);
    *lookup = (struct code_lookup){0};
}

static const char *kept(struct code_lookup *lookup, const char *text)
{
    uint32_t id = intern_id(&lookup->texts, text, strlen(text), NULL);
    lookup->has_failed = lookup->has_failed || (!id && *text);
    return intern_text(&lookup->texts, id);
}

static void object_open(struct code_lookup *lookup, const struct code_object *object, struct opened_object *opened)
{
    struct problem problem = {""};
    char text[sizeof problem.text + 64];
    opened->is_tried = true;
    if (!object->data) {
        snprintf(text, sizeof text, "its code was not stored: %.200s",
                 *object->skipped ? object->skipped : "the log does not say why");
        opened->problem = kept(lookup, text);
        return;
    }
    if (packed_bytes_read(&opened->bytes, object->data, object->data_size, object->bytes, IMAGE_BYTES_MAX, &problem) !=
            GPUFL_OK ||
        image_open(&opened->image, opened->bytes.data, opened->bytes.size, &problem) != GPUFL_OK) {
        snprintf(text, sizeof text, "its code is damaged: %s", problem.text);
        opened->problem = kept(lookup, text);
        bytes_free(&opened->bytes);
        return;
    }
    gpufl_status status = line_table_open(&opened->lines, &opened->image, LINE_TABLE_SOURCE, &problem);
    opened->has_lines = status == GPUFL_OK;
    if (status == GPUFL_E_NOT_FOUND) {
        opened->line_problem = opened->image.vendor == IMAGE_AMD
                                   ? "it was built without line information (hipcc -gline-tables-only)"
                                   : "it was built without line information (nvcc -lineinfo)";
    } else if (status == GPUFL_E_UNSUPPORTED) {
        opened->line_problem = kept(lookup, problem.text);
    } else if (status != GPUFL_OK) {
        snprintf(text, sizeof text, "its line table is damaged: %s", problem.text);
        opened->line_problem = kept(lookup, text);
    }
}

/* The tool takes a fraction of a second per function: it runs for the hottest ones only, and not again after a
 * failure. */
static void function_disassemble(struct code_lookup *lookup, struct code_function *function)
{
    enum { tool_runs_max = 32 };
    struct problem problem = {""};
    enum image_vendor vendor = function->vendor;
    bool may_run =
        lookup->effort == CODE_TOOLS || (lookup->effort == CODE_NAMED_TOOLS && disassembler_is_named(vendor));
    if (!may_run || lookup->is_without_tool[vendor] || lookup->tool_runs >= tool_runs_max)
        return;
    lookup->tool_runs++;
    gpufl_status status =
        disassembly_read(&function->disassembly, &function->object->image, function->function, NULL, &problem);
    lookup->is_without_tool[vendor] = status != GPUFL_OK || !function->disassembly.text_count;
}

void code_function_close(struct code_function *function)
{
    disassembly_free(&function->disassembly);
}

static const struct code_listing *listing_find(const struct session_deep *deep, uint64_t crc, const char *symbol)
{
    for (size_t i = 0; symbol && i < deep->listing_count; i++) {
        const struct code_listing *listing = &deep->listings[i];
        if ((listing->cubin_crc == crc || !listing->cubin_crc || !crc) && !strcmp(listing->function, symbol))
            return listing;
    }
    return NULL;
}

static bool listing_has_lines(const struct session_deep *deep, const struct code_listing *listing)
{
    bool has_lines = false;
    for (size_t i = 0; listing && !has_lines && i < listing->entry_count; i++)
        has_lines = *deep->listing_entries[listing->entry_first + i].file != '\0';
    return has_lines;
}

static enum image_vendor listing_vendor(const struct code_listing *listing)
{
    return listing && !strcmp(listing->tool, disassembler_name(IMAGE_AMD)) ? IMAGE_AMD : IMAGE_NVIDIA;
}

struct code_function code_lookup_function(struct code_lookup *lookup, uint64_t cubin_crc, const char *symbol)
{
    const struct session_deep *deep = &lookup->model->deep;
    struct code_function function = {
        .model = lookup->model, .listing = listing_find(deep, cubin_crc, symbol), .problem = ""};
    function.vendor = listing_vendor(function.listing);
    if (lookup->effort == CODE_UNREAD)
        return function;
    size_t at = 0;
    while (at < deep->object_count && (!cubin_crc || deep->objects[at].crc != cubin_crc))
        at++;
    if (at == deep->object_count) {
        function.problem = function.listing ? "" : "the log holds no code of it";
        return function;
    }
    struct opened_object *opened = &lookup->objects[at];
    if (!opened->is_tried)
        object_open(lookup, &deep->objects[at], opened);
    if (opened->problem) {
        function.problem = opened->problem;
        return function;
    }
    function.object = opened;
    function.vendor = opened->image.vendor;
    function.function = symbol ? image_function_find(&opened->image, symbol) : NULL;
    if (!function.function) {
        function.problem = "the stored code has no function of this name";
        return function;
    }
    if (!opened->has_lines && !listing_has_lines(deep, function.listing))
        function.problem = opened->line_problem;
    if (!function.listing)
        function_disassemble(lookup, &function);
    return function;
}

static uint32_t entry_bytes(const struct code_function *function, const struct listing_entry *entry)
{
    unsigned unit = image_instruction_unit(function->vendor);
    if (entry->bytes)
        return entry->bytes;
    if (function->vendor == IMAGE_NVIDIA)
        return unit;
    const struct code_listing *listing = function->listing;
    const struct listing_entry *last =
        &function->model->deep.listing_entries[listing->entry_first + listing->entry_count - 1];
    uint32_t distance = entry < last ? entry[1].pc_offset - entry->pc_offset : 0;
    return distance && distance <= IMAGE_INSTRUCTION_MAX ? distance : unit;
}

/* The last entry that begins no later; NULL: none. */
static const struct listing_entry *entry_before(const struct code_function *function, uint64_t pc_offset)
{
    const struct code_listing *listing = function->listing;
    const struct listing_entry *entries = function->model->deep.listing_entries;
    size_t low = 0, high = listing ? listing->entry_count : 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (entries[listing->entry_first + middle].pc_offset <= pc_offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? &entries[listing->entry_first + low - 1] : NULL;
}

/* Returns the entry if it covers the instruction. */
static const struct listing_entry *entry_find(const struct code_function *function, uint32_t pc_offset)
{
    const struct listing_entry *entry = entry_before(function, pc_offset);
    if (!entry)
        return NULL;
    uint32_t distance = pc_offset - entry->pc_offset, bytes = entry_bytes(function, entry);
    return distance % bytes == 0 && distance / bytes < entry->count ? entry : NULL;
}

uint64_t code_function_next(const struct code_function *function, uint64_t pc_offset)
{
    unsigned unit = image_instruction_unit(function->vendor);
    uint64_t aligned = pc_offset - pc_offset % unit + unit;
    if (function->vendor == IMAGE_NVIDIA)
        return aligned;
    const struct listing_entry *entry = entry_before(function, pc_offset);
    if (entry) {
        uint32_t bytes = entry_bytes(function, entry);
        uint64_t number = (pc_offset - entry->pc_offset) / bytes;
        if (number < entry->count)
            return entry->pc_offset + (number + 1) * bytes;
    }
    const struct instruction *found = disassembly_at(&function->disassembly, pc_offset);
    return found ? found->pc + found->size : aligned;
}

static void instruction_find(struct code_lookup *lookup, const struct code_function *function, uint32_t pc_offset,
                             struct code_text *text)
{
    const struct instruction *found = disassembly_at(&function->disassembly, pc_offset);
    text->is_raw = (!found || !found->text) && text->words[0];
    if (found && found->text)
        text->sass = kept(lookup, found->text);
    else if (text->is_raw)
        text->sass = kept(lookup, text->words);
}

void code_lookup_at(struct code_lookup *lookup, const struct code_function *function, uint32_t pc_offset,
                    struct code_text *text)
{
    text->sass = text->file = "";
    text->line = 0;
    text->is_raw = false;
    text->frame_count = 0;
    const struct listing_entry *entry = entry_find(function, pc_offset);
    if (entry) {
        text->sass = entry->sass;
        text->file = entry->file;
        text->line = *entry->file ? entry->line : 0;
    }
    text->words[0] = '\0';
    if (!function->function)
        return;
    uint64_t size = code_function_next(function, pc_offset) - pc_offset;
    if (function->vendor == IMAGE_NVIDIA)
        size = image_instruction_unit(function->vendor); /* also for a sample between two instructions */
    (void)image_words_print(&function->object->image, function->function, pc_offset, (unsigned)size, text->words);
    if (!*text->sass)
        instruction_find(lookup, function, pc_offset, text);
    if (function->object->has_lines) {
        text->frame_count = line_table_find(&function->object->lines, function->function->section,
                                            function->function->offset + pc_offset, text->frames, LINE_FRAMES_MAX);
        if (text->frame_count && text->frames[0].line) {
            text->file = text->frames[0].path;
            text->line = text->frames[0].line;
        }
    }
}

uint64_t code_function_size(const struct code_function *function)
{
    /* A listing has its own offsets: limit them to the size that a function can have. */
    const uint64_t listed_max = 1 << 24;
    uint64_t size = function->function ? function->function->size : 0;
    const struct code_listing *listing = function->listing;
    if (listing) {
        const struct listing_entry *last =
            &function->model->deep.listing_entries[listing->entry_first + listing->entry_count - 1];
        uint64_t end = last->pc_offset + (uint64_t)last->count * entry_bytes(function, last);
        end = end < listed_max ? end : listed_max;
        size = end > size ? end : size;
    }
    return size;
}

const struct code_image *code_function_image(const struct code_function *function)
{
    return function->object ? &function->object->image : NULL;
}

const char *code_function_line_problem(const struct code_function *function)
{
    return function->object && !function->object->has_lines ? function->object->line_problem : "";
}

bool code_function_ptx(const struct code_function *function, struct bytes *out)
{
    if (!function->object || !cubin_has_ptx(&function->object->image))
        return false;
    cubin_ptx(&function->object->image, out);
    return true;
}

const struct source_content *code_source(const struct session_model *model, const char *file, uint32_t source_file_id)
{
    const struct session_deep *deep = &model->deep;
    for (size_t i = 0; i < deep->source_count; i++) {
        const struct source_content *source = &deep->sources[i];
        const char *path =
            *source->path ? source->path : session_text(model, DICTIONARY_SOURCE_FILE, source->source_file_id);
        if ((source_file_id && source->source_file_id == source_file_id) || (*file && path && !strcmp(path, file)))
            return source;
    }
    return NULL;
}

const char *code_source_line(const struct session_model *model, const char *file, uint32_t source_file_id,
                             uint32_t line)
{
    const struct source_content *source = line ? code_source(model, file, source_file_id) : NULL;
    return source && line <= source->line_count ? model->deep.source_lines[source->line_first + line - 1] : NULL;
}
