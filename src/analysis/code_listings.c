/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/code_listings.h"

#include "analysis/code_lookup.h"
#include "analysis/listing_pool.h"
#include "analysis/ran_kernels.h"
#include "analysis/stalls.h"
#include "base/clock.h"
#include "code/disassembler.h"
#include "logfile/recovery.h"
#include "logfile/session_append.h"

#include <stdlib.h>

enum { functions_max = 1 << 20 };

/* A function to disassemble. */
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
        struct problem problem; /* why the tool is unavailable */
    } tools[2];                 /* by vendor */
    bool has_failed;            /* out of memory */
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

/* Each function once, in the order in which readers look at them. */
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

/* A few functions may have very many rows: room is needed only for merged ones. */
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

static void note(struct listing_run *run, size_t *count, const char *reason)
{
    (*count)++;
    if (!run->result->reason.text[0])
        problem_set(&run->result->reason, GPUFL_OK, "%s", reason);
}

/* NULL: unavailable; the run has the reason. */
static const char *tool_get(struct listing_run *run, enum image_vendor vendor)
{
    if (!run->tools[vendor].is_tried &&
        disassembler_find(vendor, run->tools[vendor].path, &run->tools[vendor].problem) != GPUFL_OK)
        run->tools[vendor].path[0] = '\0';
    run->tools[vendor].is_tried = true;
    return run->tools[vendor].path[0] ? run->tools[vendor].path : NULL;
}

/* Collects the functions to disassemble, and counts the others. NULL: no memory. */
static struct listing_request *requests_make(struct listing_run *run, size_t *count)
{
    struct listing_request *requests = calloc(run->wanted_count + 1, sizeof *requests);
    *count = 0;
    for (size_t i = 0; requests && i < run->wanted_count; i++) {
        const struct wanted *wanted = &run->wanted[i];
        struct code_function function = code_lookup_function(&run->lookup, wanted->cubin_crc, wanted->symbol);
        if (function.listing) {
            run->result->present++;
        } else if (!function.function) {
            run->result->without_code++;
        } else {
            struct listing_request *request = &requests[(*count)++];
            *request = (struct listing_request){.image = code_function_image(&function),
                                                .function = function.function,
                                                .tool = tool_get(run, function.vendor),
                                                .symbol = wanted->symbol,
                                                .cubin_crc = wanted->cubin_crc};
            if (!request->tool)
                request->outcome = (struct listing_outcome){.state = LISTING_WITHOUT_TOOL,
                                                            .reason = run->tools[function.vendor].problem.text};
        }
        code_function_close(&function);
    }
    return requests;
}

/* Fails only for errors that would also affect the other functions. */
static gpufl_status outcome_keep(struct listing_run *run, struct listing_outcome *outcome, struct problem *problem)
{
    struct code_listings *result = run->result;
    gpufl_status status = GPUFL_OK;
    switch (outcome->state) {
    case LISTING_MADE:
        status = session_append_line(&run->append, &outcome->text, problem);
        result->added += !status;
        result->bytes += status ? 0 : outcome->text.size;
        break;
    case LISTING_FAILED:
        note(run, &result->failed, outcome->reason);
        break;
    case LISTING_WITHOUT_TOOL:
        note(run, &result->without_tool, outcome->reason);
        break;
    case LISTING_WANTED:
    case LISTING_LEFT:
        note(run, &result->left, outcome->reason);
        break;
    }
    bytes_free(&outcome->text);
    return status;
}

static gpufl_status functions_add(struct listing_run *run, const struct code_listings_options *options,
                                  struct problem *problem)
{
    size_t count;
    struct listing_request *requests = requests_make(run, &count);
    if (!requests)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "no memory for %zu functions", run->wanted_count);
    const struct listing_pool_options pool_options = {
        .session_id = run->model->job.session_id,
        .deadline_ns = run->deadline_ns,
        .threads = options->threads,
        .stop_fd = options->stop_fd,
        .on_progress = options->on_progress,
        .user = options->user,
    };
    struct listing_pool *pool = NULL;
    gpufl_status status = listing_pool_start(&pool, requests, count, &pool_options, problem);
    for (size_t i = 0; !status && i < count; i++)
        status = outcome_keep(run, listing_pool_take(pool, i), problem);
    listing_pool_end(pool);
    free(requests);
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
    if (status == GPUFL_E_NOT_FOUND && run.append.is_without_channel) {
        /* A log of a newer format may hold code in files that this version does not know. */
        struct session_identity identity;
        return session_identity_read(dir, &identity, problem) == GPUFL_E_UNSUPPORTED ? GPUFL_E_UNSUPPORTED : GPUFL_OK;
    }
    if (status)
        return status;
    status = session_load(&run.model, dir, problem);
    if (!status) {
        bool fits =
            code_lookup_open(&run.lookup, run.model, CODE_STORED) == GPUFL_OK && wanted_make(&run, options->is_all);
        status = fits ? functions_add(&run, options, problem)
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
