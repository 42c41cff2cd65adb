/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/hot_code.h"

#include "analysis/ran_kernels.h"
#include "analysis/statistics.h"

#include <stdio.h>
#include <stdlib.h>

enum { functions_max = 256 };

static bool is_less(uint64_t crc_a, uint32_t function_a, uint32_t pc_a, uint64_t crc_b, uint32_t function_b,
                    uint32_t pc_b)
{
    if (crc_a != crc_b)
        return crc_a < crc_b;
    return function_a != function_b ? function_a < function_b : pc_a < pc_b;
}

static int counter_compare(const void *left, const void *right)
{
    const struct code_sample *a = left, *b = right;
    if (is_less(a->cubin_crc, a->function_id, a->pc_offset, b->cubin_crc, b->function_id, b->pc_offset))
        return -1;
    return is_less(b->cubin_crc, b->function_id, b->pc_offset, a->cubin_crc, a->function_id, a->pc_offset);
}

/* Counter rows sorted by place; the caller frees. */
static struct code_sample *counters_sorted(const struct session_deep *deep, size_t *count)
{
    struct code_sample *rows = malloc((deep->sample_count + 1) * sizeof *rows);
    *count = 0;
    for (size_t i = 0; rows && i < deep->sample_count; i++)
        if (deep->samples[i].kind == SAMPLE_COUNTER)
            rows[(*count)++] = deep->samples[i];
    if (rows)
        qsort(rows, *count, sizeof *rows, counter_compare);
    return rows;
}

static struct hot_function *function_find(struct hot_code *code, uint64_t crc, uint32_t function_id)
{
    for (size_t i = 0; i < code->function_count; i++)
        if (code->functions[i].cubin_crc == crc && code->functions[i].function_id == function_id)
            return &code->functions[i];
    return NULL;
}

static void function_add(struct hot_code *code, const struct session_model *model, uint64_t crc, uint32_t function_id,
                         uint64_t samples)
{
    if (code->function_count >= functions_max || function_find(code, crc, function_id))
        return;
    struct hot_function *function = &code->functions[code->function_count++];
    *function = (struct hot_function){.cubin_crc = crc,
                                      .function_id = function_id,
                                      .samples = samples,
                                      .name = function_name(model, function_id),
                                      .symbol = function_symbol(model, function_id),
                                      .problem = "",
                                      .counts = instruction_counts_none()};
}

static bool functions_make(struct hot_code *code, const struct session_model *model, const struct stalls *stalls,
                           const struct code_sample *counters, size_t counter_count)
{
    code->functions = calloc(functions_max, sizeof *code->functions);
    if (!code->functions)
        return false;
    for (size_t i = 0; i < stalls->function_count && i < functions_max / 2; i++)
        function_add(code, model, stalls->functions[i].cubin_crc, stalls->functions[i].function_id,
                     stalls->functions[i].profile.samples);
    for (size_t i = 0; i < counter_count; i++)
        if (!i || counters[i].function_id != counters[i - 1].function_id ||
            counters[i].cubin_crc != counters[i - 1].cubin_crc)
            function_add(code, model, counters[i].cubin_crc, counters[i].function_id, 0);
    return true;
}

static void kernel_add(void *user, const struct ran_kernel *kernel)
{
    struct hot_code *code = user;
    if (code->function_count >= functions_max)
        return;
    struct hot_function *function = &code->functions[code->function_count++];
    *function = (struct hot_function){.cubin_crc = kernel->cubin_crc,
                                      .function_id = ID_UNKNOWN,
                                      .name = kernel->name,
                                      .symbol = kernel->symbol,
                                      .vendor = IMAGE_AMD,
                                      .problem = kernel->problem,
                                      .counts = instruction_counts_none()};
}

/* Key of a place: both lists are scanned in the order of (function, pc). */
static int place_key_compare(const void *left, const void *right)
{
    const struct code_place *a = left, *b = right;
    if (a->function != b->function)
        return a->function < b->function ? -1 : 1;
    return a->pc_offset < b->pc_offset ? -1 : a->pc_offset > b->pc_offset;
}

static void places_from_samples(struct hot_code *code, const struct stalls *stalls)
{
    for (size_t i = 0; i < stalls->pc_count; i++) {
        const struct hot_pc *pc = &stalls->pcs[i];
        const struct hot_function *function = function_find(code, pc->cubin_crc, pc->function_id);
        if (!function)
            continue;
        code->places[code->place_count++] = (struct code_place){
            .function = (uint32_t)(function - code->functions),
            .pc_offset = pc->pc_offset,
            .line = pc->source_line,
            .sass = "",
            .file = "",
            .called_from = "",
            .samples = pc->samples,
            .not_issued = pc->not_issued,
            .stall_samples = pc->stall_samples,
            .counts = instruction_counts_none(),
            .row_first = pc->row_first,
            .row_count = pc->row_count,
            .source_file_id = pc->source_file_id,
            .stall = pc->stall,
        };
    }
}

static void places_from_counters(struct hot_code *code, const struct session_model *model,
                                 const struct code_sample *counters, size_t counter_count)
{
    size_t sampled = code->place_count;
    for (size_t i = 0; i < counter_count; i++) {
        const struct code_sample *row = &counters[i];
        struct hot_function *function = function_find(code, row->cubin_crc, row->function_id);
        const char *metric = session_text(model, DICTIONARY_METRIC, row->metric_id);
        if (!function || !metric)
            continue;
        struct code_place key = {.function = (uint32_t)(function - code->functions), .pc_offset = row->pc_offset};
        struct code_place *place = bsearch(&key, code->places, sampled, sizeof *code->places, place_key_compare);
        struct code_place *last = code->place_count > sampled ? &code->places[code->place_count - 1] : NULL;
        if (!place && last && !place_key_compare(&key, last))
            place = last;
        if (!place) {
            place = &code->places[code->place_count++];
            *place = (struct code_place){.function = key.function,
                                         .pc_offset = key.pc_offset,
                                         .line = row->source_line,
                                         .sass = "",
                                         .file = "",
                                         .called_from = "",
                                         .counts = instruction_counts_none(),
                                         .source_file_id = row->source_file_id};
        }
        if (instruction_counts_set(&place->counts, metric, row->value))
            place->has_counts = function->has_counts = true;
    }
}

/* v1 stores the line of an instruction in separate rows. */
static void places_v1_lines(struct hot_code *code, const struct session_deep *deep)
{
    for (size_t i = 0; i < deep->sample_count; i++) {
        const struct code_sample *row = &deep->samples[i];
        struct hot_function *function =
            row->kind == SAMPLE_LINE ? function_find(code, row->cubin_crc, row->function_id) : NULL;
        if (!function)
            continue;
        struct code_place key = {.function = (uint32_t)(function - code->functions), .pc_offset = row->pc_offset};
        struct code_place *place =
            bsearch(&key, code->places, code->place_count, sizeof *code->places, place_key_compare);
        if (place && !place->line) {
            place->line = row->source_line;
            place->source_file_id = row->source_file_id;
        }
    }
}

static const char *callers_text(struct code_lookup *lookup, const struct code_text *text)
{
    struct bytes chain = {0};
    for (size_t i = 1; i < text->frame_count; i++) {
        const char *slash = strrchr(text->frames[i].path, '/');
        bytes_append_format(&chain, "%s%s:%u", i > 1 ? " < " : "", slash ? slash + 1 : text->frames[i].path,
                            text->frames[i].line);
    }
    uint32_t id = chain.size ? intern_id(&lookup->texts, chain.data, chain.size, NULL) : 0;
    lookup->has_failed = lookup->has_failed || (chain.size && !id) || chain.failed;
    bytes_free(&chain);
    return intern_text(&lookup->texts, id);
}

static void places_read(struct hot_code *code, const struct session_model *model)
{
    struct code_function function = {0};
    struct code_text text;
    for (size_t i = 0; i < code->place_count; i++) {
        struct code_place *place = &code->places[i];
        struct hot_function *owner = &code->functions[place->function];
        if (!i || place->function != code->places[i - 1].function) {
            code_function_close(&function);
            function = code_lookup_function(&code->lookup, owner->cubin_crc, owner->symbol);
            owner->problem = function.problem;
            owner->vendor = function.vendor;
        }
        code_lookup_at(&code->lookup, &function, place->pc_offset, &text);
        if (place->has_counts)
            instruction_counts_add(&owner->counts, &place->counts);
        place->sass = text.sass;
        place->is_raw = text.is_raw;
        place->called_from = callers_text(&code->lookup, &text);
        const char *v1_file = session_text(model, DICTIONARY_SOURCE_FILE, place->source_file_id);
        if (text.line) {
            place->file = text.file;
            place->line = text.line;
        } else if (v1_file && place->line) {
            place->file = v1_file;
        } else {
            place->line = 0;
        }
    }
    code_function_close(&function);
}

static int place_line_compare(const void *left, const void *right)
{
    const struct code_place *a = left, *b = right;
    if (a->function != b->function)
        return a->function < b->function ? -1 : 1;
    int order = a->file == b->file ? 0 : strcmp(a->file, b->file);
    if (!order && a->line != b->line)
        order = a->line < b->line ? -1 : 1;
    return order ? order : place_key_compare(a, b);
}

static void line_close(struct hot_line *line, const struct stalls *stalls, struct stall_profile *profile)
{
    line->samples = profile->samples;
    line->not_issued = profile->not_issued;
    while (line->stall_count < LINE_STALLS_MAX) {
        uint64_t samples;
        unsigned kind = stall_profile_top(stalls, profile, &samples);
        enum stall_family family = stalls->kinds[kind].family;
        if (!samples || family == STALL_ISSUED || family == STALL_READY)
            break;
        line->stalls[line->stall_count].kind = (uint8_t)kind;
        line->stalls[line->stall_count++].samples = samples;
        profile->by_kind[kind] = 0;
    }
    memset(profile, 0, sizeof *profile);
}

static int line_compare(const void *left, const void *right)
{
    const struct hot_line *a = left, *b = right;
    if (a->samples != b->samples)
        return a->samples > b->samples ? -1 : 1;
    double executed_a = a->has_counts ? a->counts.inst_executed : 0,
           executed_b = b->has_counts ? b->counts.inst_executed : 0;
    if (executed_a > executed_b || executed_a < executed_b)
        return executed_a > executed_b ? -1 : 1;
    return a->place_first < b->place_first ? -1 : a->place_first > b->place_first;
}

static bool lines_make(struct hot_code *code, const struct session_model *model, const struct stalls *stalls)
{
    code->lines = calloc(code->place_count + 1, sizeof *code->lines);
    if (!code->lines)
        return false;
    struct stall_profile profile = {0};
    for (size_t i = 0; i < code->place_count; i++) {
        const struct code_place *place = &code->places[i];
        bool is_same = i && place->line && place->function == place[-1].function && place->line == place[-1].line &&
                       !strcmp(place->file, place[-1].file);
        if (!is_same) {
            if (code->line_count)
                line_close(&code->lines[code->line_count - 1], stalls, &profile);
            code->lines[code->line_count++] = (struct hot_line){
                .function = place->function,
                .file = place->file,
                .line = place->line,
                .source = code_source_line(model, place->file, place->source_file_id, place->line),
                .counts = instruction_counts_none(),
                .place_first = i,
            };
        }
        struct hot_line *line = &code->lines[code->line_count - 1];
        line->place_count++;
        for (uint32_t k = 0; k < place->row_count; k++)
            stall_profile_add(stalls, &profile, stalls->rows[place->row_first + k].metric_id,
                              stalls->rows[place->row_first + k].value);
        if (place->has_counts) {
            instruction_counts_add(&line->counts, &place->counts);
            line->has_counts = true;
        }
    }
    if (code->line_count)
        line_close(&code->lines[code->line_count - 1], stalls, &profile);
    qsort(code->lines, code->line_count, sizeof *code->lines, line_compare);
    return true;
}

/* The maximum number of places. */
static size_t places_count(struct hot_code *code, const struct stalls *stalls, const struct code_sample *counters,
                           size_t counter_count)
{
    size_t count = 0;
    for (size_t i = 0; i < stalls->pc_count; i++)
        count += function_find(code, stalls->pcs[i].cubin_crc, stalls->pcs[i].function_id) != NULL;
    for (size_t i = 0; i < counter_count; i++)
        count += !i || counter_compare(&counters[i], &counters[i - 1]) != 0;
    return count;
}

gpufl_status hot_code_make(struct hot_code *code, const struct session_model *model, const struct stalls *stalls,
                           enum code_effort effort)
{
    memset(code, 0, sizeof *code);
    size_t counter_count;
    struct code_sample *counters = counters_sorted(&model->deep, &counter_count);
    gpufl_status status = code_lookup_open(&code->lookup, model, effort);
    bool is_done = counters && status == GPUFL_OK && functions_make(code, model, stalls, counters, counter_count) &&
                   ran_kernels_visit(&code->lookup, kernel_add, code) == GPUFL_OK;
    if (is_done)
        code->places = malloc((places_count(code, stalls, counters, counter_count) + 1) * sizeof *code->places);
    if (is_done && code->places) {
        places_from_samples(code, stalls);
        qsort(code->places, code->place_count, sizeof *code->places, place_key_compare);
        places_from_counters(code, model, counters, counter_count);
        qsort(code->places, code->place_count, sizeof *code->places, place_key_compare);
        places_v1_lines(code, &model->deep);
        places_read(code, model);
        qsort(code->places, code->place_count, sizeof *code->places, place_line_compare);
    }
    is_done = is_done && code->places && lines_make(code, model, stalls) && !code->lookup.has_failed;
    free(counters);
    if (!is_done) {
        hot_code_free(code);
        return GPUFL_E_NO_MEMORY;
    }
    return GPUFL_OK;
}

void hot_code_free(struct hot_code *code)
{
    free(code->functions);
    free(code->places);
    free(code->lines);
    code_lookup_close(&code->lookup);
    memset(code, 0, sizeof *code);
}
