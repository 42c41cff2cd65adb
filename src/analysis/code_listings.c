/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/code_listings.h"

#include "analysis/code_lookup.h"
#include "analysis/ran_kernels.h"
#include "analysis/stalls.h"
#include "base/clock.h"
#include "code/disassembler.h"
#include "format/json.h"
#include "logfile/session_append.h"

#include <stdlib.h>

enum { tool_limit_ms = 20000, functions_max = 1 << 20 };
#define LISTING_BYTES_MAX ((size_t)8 << 20)
#define SESSION_BYTES_MAX ((uint64_t)64 << 20)

/* A function whose text is asked for. */
struct wanted {
    uint64_t cubin_crc, samples;
    const char *symbol; /* borrowed from the model or the lookup */
};

struct listing_run {
    struct session_model *model;
    struct code_lookup lookup;
    struct wanted *wanted; /* owned; most samples first */
    size_t wanted_count, wanted_capacity;
    struct session_append append;
    struct {
        char path[PATH_MAX];
        bool is_tried;
        struct problem problem; /* why it is not there */
    } tools[2];                 /* by vendor */
    bool has_failed;            /* memory */
    int64_t deadline_ns;
    struct code_listings *result;
};

static int name_compare(const void *left, const void *right)
{
    const struct wanted *a = left, *b = right;
    if (a->cubin_crc != b->cubin_crc)
        return a->cubin_crc < b->cubin_crc ? -1 : 1;
    return strcmp(a->symbol, b->symbol);
}

static int samples_compare(const void *left, const void *right)
{
    const struct wanted *a = left, *b = right;
    if (a->samples != b->samples)
        return a->samples > b->samples ? -1 : 1;
    return name_compare(left, right);
}

/* Each function once, and those first that a reader will look at first. */
static void wanted_sort(struct listing_run *run)
{
    if (!run->wanted || !run->wanted_count)
        return;
    qsort(run->wanted, run->wanted_count, sizeof *run->wanted, name_compare);
    size_t kept = 0;
    for (size_t i = 1; i < run->wanted_count; i++) {
        if (name_compare(&run->wanted[kept], &run->wanted[i]))
            run->wanted[++kept] = run->wanted[i];
        else
            run->wanted[kept].samples += run->wanted[i].samples;
    }
    run->wanted_count = kept + 1;
    qsort(run->wanted, run->wanted_count, sizeof *run->wanted, samples_compare);
}

/* Few functions may have very many rows: only what is left after merging takes room. */
static bool wanted_grow(struct listing_run *run)
{
    wanted_sort(run);
    if (run->wanted && run->wanted_count < run->wanted_capacity / 2)
        return true;
    size_t capacity = run->wanted_capacity ? run->wanted_capacity * 2 : 64;
    struct wanted *wanted = capacity > functions_max ? NULL : realloc(run->wanted, capacity * sizeof *wanted);
    if (!wanted)
        return false;
    run->wanted = wanted;
    run->wanted_capacity = capacity;
    return true;
}

static bool wanted_add(struct listing_run *run, uint64_t crc, const char *symbol, uint64_t samples)
{
    struct wanted *last = run->wanted_count ? &run->wanted[run->wanted_count - 1] : NULL;
    /* Rows of one function mostly follow each other. */
    if (last && last->cubin_crc == crc && !strcmp(last->symbol, symbol)) {
        last->samples += samples;
        return true;
    }
    if ((!run->wanted || run->wanted_count == run->wanted_capacity) && !wanted_grow(run))
        return false;
    run->wanted[run->wanted_count++] = (struct wanted){.cubin_crc = crc, .symbol = symbol, .samples = samples};
    return true;
}

static void kernel_want(void *user, const struct ran_kernel *kernel)
{
    struct listing_run *run = user;
    run->has_failed = !wanted_add(run, kernel->cubin_crc, kernel->symbol, 0) || run->has_failed;
}

static bool wanted_make(struct listing_run *run, bool is_all)
{
    const struct session_deep *deep = &run->model->deep;
    bool fits = true;
    for (size_t i = 0; fits && i < deep->sample_count; i++) {
        const struct code_sample *sample = &deep->samples[i];
        const char *symbol = function_symbol(run->model, sample->function_id);
        if (sample->kind != SAMPLE_LINE && symbol)
            fits = wanted_add(run, sample->cubin_crc, symbol, sample->kind == SAMPLE_PC ? sample->value : 0);
    }
    fits = fits && ran_kernels_visit(&run->lookup, kernel_want, run) == GPUFL_OK && !run->has_failed;
    for (size_t i = 0; is_all && fits && i < deep->object_count; i++) {
        struct code_function any = code_lookup_function(&run->lookup, deep->objects[i].crc, NULL);
        const struct code_image *image = code_function_image(&any);
        for (uint32_t f = 0; image && fits && f < image->function_count; f++)
            fits = wanted_add(run, deep->objects[i].crc, image->functions[f].name, 0);
        code_function_close(&any);
    }
    wanted_sort(run);
    return fits;
}

static void listing_write(struct bytes *line, const char *session_id, const struct wanted *wanted,
                          enum image_vendor vendor, const struct disassembly *disassembly)
{
    bytes_append_text(line, "{\"version\":1,\"type\":\"cubin_disassembly\"");
    json_key(line, "session_id");
    json_text(line, session_id);
    json_key(line, "cubin_crc");
    json_uint(line, wanted->cubin_crc);
    json_key(line, "function_name");
    json_text(line, wanted->symbol);
    json_key(line, "tool");
    json_text(line, disassembler_name(vendor));
    json_key(line, "entries");
    bytes_append_char(line, '[');
    bool is_first = true;
    for (size_t i = 0; i < disassembly->count; i++) {
        const struct instruction *instruction = &disassembly->instructions[i];
        if (!instruction->text)
            continue;
        if (!is_first)
            bytes_append_char(line, ',');
        is_first = false;
        bytes_append_char(line, '{');
        json_key(line, "pc");
        json_uint(line, instruction->pc);
        json_key(line, "sass");
        json_text(line, instruction->text);
        if (vendor == IMAGE_AMD) {
            json_key(line, "bytes");
            json_uint(line, instruction->size);
        }
        bytes_append_char(line, '}');
    }
    bytes_append_char(line, ']');
}

static void note(struct listing_run *run, size_t *count, const char *reason)
{
    (*count)++;
    if (!run->result->reason.text[0])
        problem_set(&run->result->reason, GPUFL_OK, "%s", reason);
}

/* NULL: there is none, and the run knows why. */
static const char *tool_get(struct listing_run *run, enum image_vendor vendor)
{
    if (!run->tools[vendor].is_tried &&
        disassembler_find(vendor, run->tools[vendor].path, &run->tools[vendor].problem) != GPUFL_OK)
        run->tools[vendor].path[0] = '\0';
    run->tools[vendor].is_tried = true;
    return run->tools[vendor].path[0] ? run->tools[vendor].path : NULL;
}

/* Fails only where no other function would fare better. */
static gpufl_status function_add(struct listing_run *run, const struct wanted *wanted,
                                 const struct code_function *function, struct problem *problem)
{
    struct code_listings *result = run->result;
    int64_t left_ms = (run->deadline_ns - clock_mono_ns()) / 1000000;
    if (left_ms <= 0 || result->bytes >= SESSION_BYTES_MAX) {
        note(run, &result->left, left_ms <= 0 ? "the time was over" : "the session has 64 MiB of it");
        return GPUFL_OK;
    }
    enum image_vendor vendor = function->vendor;
    const char *tool = tool_get(run, vendor);
    if (!tool) {
        note(run, &result->without_tool, run->tools[vendor].problem.text);
        return GPUFL_OK;
    }
    struct disassembly_options options = {.tool = tool,
                                          .time_limit_ms = left_ms < tool_limit_ms ? (unsigned)left_ms : tool_limit_ms};
    struct disassembly disassembly;
    struct problem why = {""};
    gpufl_status status =
        disassembly_read(&disassembly, code_function_image(function), function->function, &options, &why);
    if (status || !disassembly.text_count) {
        note(run, &result->failed, why.text);
        if (!status)
            disassembly_free(&disassembly);
        return GPUFL_OK;
    }
    struct bytes line = {.limit = LISTING_BYTES_MAX};
    listing_write(&line, run->model->job.session_id, wanted, vendor, &disassembly);
    disassembly_free(&disassembly);
    if (line.failed) {
        note(run, &result->left, "a function of more than 8 MiB of text");
    } else {
        status = session_append_line(&run->append, &line, problem);
        result->added += !status;
        result->bytes += status ? 0 : line.size;
    }
    bytes_free(&line);
    return status;
}

static gpufl_status functions_add(struct listing_run *run, struct problem *problem)
{
    gpufl_status status = GPUFL_OK;
    for (size_t i = 0; !status && i < run->wanted_count; i++) {
        const struct wanted *wanted = &run->wanted[i];
        struct code_function function = code_lookup_function(&run->lookup, wanted->cubin_crc, wanted->symbol);
        if (function.listing)
            run->result->present++;
        else if (!function.function)
            run->result->without_code++;
        else
            status = function_add(run, wanted, &function, problem);
        code_function_close(&function);
    }
    const struct code_listings *result = run->result;
    if (!status && result->without_tool && !result->added && !result->failed && !result->left)
        status = problem_set(problem, GPUFL_E_NOT_FOUND, "%s", result->reason.text);
    return status;
}

gpufl_status code_listings_add(const char *dir, const struct code_listings_options *options,
                               struct code_listings *result, struct problem *problem)
{
    *result = (struct code_listings){0};
    struct listing_run run = {.result = result,
                              .deadline_ns = clock_mono_ns() + (int64_t)options->time_limit_ms * 1000000};
    gpufl_status status = session_append_open(&run.append, dir, CHANNEL_SASS, problem);
    if (status == GPUFL_E_NOT_FOUND && run.append.is_without_channel)
        return GPUFL_OK;
    if (status)
        return status;
    status = session_load(&run.model, dir, problem);
    if (!status) {
        bool fits =
            code_lookup_open(&run.lookup, run.model, CODE_STORED) == GPUFL_OK && wanted_make(&run, options->is_all);
        status = fits ? functions_add(&run, problem)
                      : problem_set(problem, GPUFL_E_NO_MEMORY,
                                    "no memory for the functions of %s, or more than a million of them", dir);
        code_lookup_close(&run.lookup);
        free(run.wanted);
        session_free(run.model);
    }
    struct problem close_problem = {""};
    gpufl_status closed = session_append_close(&run.append, dir, &close_problem);
    if (!status && closed)
        status = problem_set(problem, closed, "%s", close_problem.text);
    return status;
}
