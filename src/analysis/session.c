/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/session.h"

#include "analysis/session_loader.h"
#include "analysis/statistics.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { issues_kept_max = 1000 };
/* Times are wall-clock nanoseconds: times outside 1970 to 2116 are damage. */
#define TIME_MAX_NS (INT64_C(1) << 62)

bool loader_grow(struct session_loader *loader, void *array_pointer, size_t *capacity, size_t count, size_t width)
{
    if (count < *capacity)
        return true;
    size_t wanted = *capacity + *capacity / 2 + 64;
    void *old, *grown;
    memcpy(&old, array_pointer, sizeof old);
    grown = wanted < SIZE_MAX / width ? realloc(old, wanted * width) : NULL;
    if (!grown) {
        loader->status = GPUFL_E_NO_MEMORY;
        return false;
    }
    memcpy(array_pointer, &grown, sizeof grown);
    *capacity = wanted;
    return true;
}

void loader_large_pages(void *array, size_t size)
{
    /* Whole pages only, or realloc could not move the mapping as a whole. */
    enum { large_min = 8 * 1024 * 1024, page = 4096 };
    uintptr_t offset = (uintptr_t)array % page;
    if (array && size >= large_min)
        (void)madvise((char *)array - offset, (offset + size + page - 1) / page * page, MADV_HUGEPAGE);
}

const char *loader_text(struct session_loader *loader, const char *text, size_t size)
{
    if (!text || !size)
        return "";
    uint32_t id = intern_id(&loader->model->texts, text, size, NULL);
    if (!id)
        loader->status = GPUFL_E_NO_MEMORY;
    return intern_text(&loader->model->texts, id);
}

void loader_saw(struct session_loader *loader, int64_t start_ns, int64_t end_ns)
{
    struct session_model *model = loader->model;
    if (model->first_ns == TIME_UNKNOWN || start_ns < model->first_ns)
        model->first_ns = start_ns;
    if (model->last_ns == TIME_UNKNOWN || end_ns > model->last_ns)
        model->last_ns = end_ns;
}

bool loader_times_ok(struct session_loader *loader, int64_t base_ns, int64_t dt_ns, int64_t duration_ns,
                     int64_t *start_ns)
{
    if (__builtin_add_overflow(base_ns, dt_ns, start_ns) || *start_ns < 0 || *start_ns > TIME_MAX_NS ||
        duration_ns < 0 || duration_ns > TIME_MAX_NS - 1) {
        loader->model->invalid_rows++;
        return false;
    }
    loader_saw(loader, *start_ns, *start_ns + duration_ns);
    return true;
}

bool loader_define(struct session_loader *loader, enum dictionary dictionary, uint64_t id, const char *text,
                   size_t size)
{
    /* Ids are dense (or nearly so in a v1 run divided into segments): an absurd id must not cost memory. */
    enum { id_max = 4 * 1024 * 1024 };
    struct dictionary_table *table = &loader->model->dictionaries[dictionary];
    if (!id || id >= id_max)
        return false;
    if (id >= table->count) {
        uint32_t count = (uint32_t)id + 1;
        /* Powers of two, because entries arrive one by one. */
        size_t old_room = 64, room = 64;
        while (old_room < table->count)
            old_room *= 2;
        while (room < count)
            room *= 2;
        if (!table->texts || room > old_room) {
            const char **grown = realloc(table->texts, room * sizeof *grown);
            if (!grown) {
                loader->status = GPUFL_E_NO_MEMORY;
                return false;
            }
            table->texts = grown;
        }
        for (uint32_t i = table->count; i < count; i++)
            table->texts[i] = NULL;
        table->count = count;
    }
    table->texts[id] = loader_text(loader, text, size);
    return true;
}

static bool on_line(void *user, const struct log_line *line)
{
    struct session_loader *loader = user;
    if (line->batch)
        loader_batch(loader, line->batch);
    else if (line->object)
        loader_record(loader, line->type, line->object);
    return loader->status == GPUFL_OK;
}

static void on_issue(void *user, const struct log_issue *issue)
{
    struct session_loader *loader = user;
    struct session_model *model = loader->model;
    if ((unsigned)issue->kind <= LOG_ISSUE_UNFINISHED)
        model->issues_by_kind[issue->kind] += issue->count ? issue->count : 1;
    if (model->issue_count < issues_kept_max &&
        loader_grow(loader, &model->issues, &loader->issue_capacity, model->issue_count, sizeof *model->issues))
        model->issues[model->issue_count++] = *issue;
}

static void loader_free(struct session_loader *loader)
{
    free(loader->kept);
    free(loader->scope_slots);
    free(loader->details);
    intern_free(&loader->detail_contents);
    intern_free(&loader->paths);
    loader_devices_free(loader);
    loader_deep_free(loader);
}

static struct session_model *model_make(void)
{
    struct session_model *model = calloc(1, sizeof *model);
    if (!model)
        return NULL;
    model->first_ns = model->last_ns = TIME_UNKNOWN;
    struct job_info *job = &model->job;
    job->app = job->session_id = job->hostname = job->command = job->kind = job->engine = job->requested_engine = "";
    job->driver_version = job->cuda_version = job->cupti_version = job->gpufl_version = "";
    job->pid = -1;
    job->start_ns = job->shutdown_ns = TIME_UNKNOWN;
    job->exit_code = job->signal = CELL_UNKNOWN;
    model->device_metrics.type = RECORD_DEVICE_METRIC_BATCH;
    model->host_metrics.type = RECORD_HOST_METRIC_BATCH;
    model->process_metrics.type = RECORD_PROCESS_METRIC_BATCH;
    return model;
}

gpufl_status session_load_from(struct session_model **out, session_reader_fn read, void *user, size_t kernels_expected,
                               struct problem *problem)
{
    struct session_model *model = model_make();
    if (!model)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "no memory to load the session");
    struct session_loader loader = {.model = model, .kernels_expected = kernels_expected};
    gpufl_status status = read(user, on_line, on_issue, &loader, &model->summary, problem);
    if (loader.status != GPUFL_OK)
        status = problem_set(problem, loader.status, "the session cannot be loaded: %s",
                             loader.status == GPUFL_E_LIMIT ? "more than 4 billion kernels" : "out of memory");
    /* In a session that is being written, a channel may have been read before its end was written. */
    if (status == GPUFL_OK && !model->summary.is_live)
        row_counts_check(&loader.row_counts, &model->summary, on_issue, &loader);
    if (status == GPUFL_OK) {
        status = loader_finish(&loader);
        if (status != GPUFL_OK)
            problem_set(problem, status, "no memory to load the session");
    }
    loader_free(&loader);
    if (status != GPUFL_OK) {
        session_free(model);
        return status;
    }
    *out = model;
    return GPUFL_OK;
}

static gpufl_status directory_read(void *user, log_line_fn take_line, log_issue_fn take_issue, void *line_user,
                                   struct log_summary *summary, struct problem *problem)
{
    return log_read(user, take_line, take_issue, line_user, summary, problem);
}

gpufl_status session_load(struct session_model **out, const char *path, struct problem *problem)
{
    return session_load_from(out, directory_read, (void *)(uintptr_t)path, 0, problem);
}

static size_t metric_table_bytes(const struct metric_table *table)
{
    size_t columns = 0;
    for (unsigned i = 0; table->columns && i < record_catalogue[table->type].column_count; i++)
        columns += table->columns[i] != NULL;
    return columns * table->capacity * sizeof(int64_t);
}

size_t session_bytes(const struct session_model *model)
{
    const struct session_deep *deep = &model->deep;
    enum { kernel_bytes = 54, optional_bytes = 4, text_bytes = 48 };
    size_t bytes = sizeof *model;
    bytes += model->kernels.capacity * (kernel_bytes + (model->kernels.graph_id ? optional_bytes : 0) +
                                        (model->kernels.stack_id ? optional_bytes : 0));
    bytes += model->launch_count * sizeof *model->launches + model->scope_count * sizeof *model->scopes;
    bytes += model->copy_count * sizeof *model->copies + model->memset_count * sizeof *model->memsets;
    bytes += model->graph_count * sizeof *model->graphs + model->sync_count * sizeof *model->syncs;
    bytes += model->memory_event_count * sizeof *model->memory_events + model->issue_count * sizeof *model->issues;
    bytes += model->adoption_count * sizeof *model->adoptions;
    bytes += metric_table_bytes(&model->device_metrics) + metric_table_bytes(&model->host_metrics) +
             metric_table_bytes(&model->process_metrics);
    bytes += deep->sample_count * sizeof *deep->samples + deep->scope_sample_count * sizeof *deep->scope_samples;
    bytes += deep->metric_event_count * sizeof *deep->metric_events;
    bytes += deep->source_count * sizeof *deep->sources + deep->source_line_count * sizeof *deep->source_lines;
    bytes += deep->metric_value_count * sizeof *deep->metric_values + deep->untimed_count * sizeof *deep->untimed;
    bytes += deep->listing_entry_count * sizeof *deep->listing_entries;
    for (size_t i = 0; i < deep->object_count; i++)
        bytes += deep->objects[i].data_size;
    for (size_t i = 0; i < deep->pm_count; i++)
        bytes += deep->pm[i].capacity * (sizeof *deep->pm[i].times_ns + sizeof *deep->pm[i].values);
    return bytes + model->texts.text_bytes + (size_t)model->texts.count * text_bytes;
}

static void metric_table_free(struct metric_table *table)
{
    for (unsigned i = 0; table->columns && i < record_catalogue[table->type].column_count; i++)
        free(table->columns[i]);
    free(table->columns);
}

void session_free(struct session_model *model)
{
    if (!model)
        return;
    struct kernel_columns *kernels = &model->kernels;
    void *const arrays[] = {
        kernels->start_ns,  kernels->duration_ns, kernels->api_start_ns, kernels->api_duration_ns,
        kernels->kernel_id, kernels->launch_id,   kernels->stream_id,    kernels->thread_id,
        kernels->corr_id,   kernels->scope,       kernels->device,       kernels->graph_id,
        kernels->stack_id,  model->launches,      model->scopes,         model->copies,
        model->memsets,     model->graphs,        model->syncs,          model->memory_events,
        model->devices,     model->losses,        model->capabilities,   model->clock_syncs,
        model->issues,      model->adoptions,     model->kernel_kinds,   model->inferred,
        model->operations,  kernels->operation,
    };
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        free(arrays[i]);
    metric_table_free(&model->device_metrics);
    metric_table_free(&model->host_metrics);
    metric_table_free(&model->process_metrics);
    session_deep_free(&model->deep);
    for (unsigned i = 0; i < DICTIONARY_COUNT; i++)
        free(model->dictionaries[i].texts);
    intern_free(&model->texts);
    free(model);
}

const char *session_text(const struct session_model *model, enum dictionary dictionary, uint32_t id)
{
    const struct dictionary_table *table = &model->dictionaries[dictionary];
    return id < table->count ? table->texts[id] : NULL;
}

enum kernel_kind session_kernel_kind(const struct session_model *model, uint32_t kernel_id)
{
    bool is_known = model->kernel_kinds && kernel_id < model->dictionaries[DICTIONARY_KERNEL].count;
    return is_known ? (enum kernel_kind)model->kernel_kinds[kernel_id] : KIND_UNKNOWN;
}

const struct device_info *session_device(const struct session_model *model, uint16_t device)
{
    for (size_t i = 0; i < model->device_count; i++)
        if (model->devices[i].id == device)
            return &model->devices[i];
    return NULL;
}

bool session_lacks_end(const struct session_model *model)
{
    const struct log_summary *summary = &model->summary;
    return summary->has_torn_tail || (!summary->is_live && (!summary->has_shutdown || summary->is_synthetic_shutdown));
}

bool session_has_gap(const struct session_model *model)
{
    return model->summary.damaged_lines || model->summary.missing_lines ||
           model->issues_by_kind[LOG_ISSUE_MISSING_LINES] || model->issues_by_kind[LOG_ISSUE_BAD_SEGMENT] ||
           model->issues_by_kind[LOG_ISSUE_UNREADABLE] || model->issues_by_kind[LOG_ISSUE_LOSS];
}

uint64_t session_missing_rows(const struct session_model *model)
{
    return model->issues_by_kind[LOG_ISSUE_COUNT_MISMATCH];
}

bool loss_is_of_detail(const struct session_loss *loss)
{
    static const char *const details[] = {"api_time", "api_lead_ns", "scope_id", "stack_id"};
    for (size_t i = 0; i < sizeof details / sizeof *details; i++)
        if (!strcmp(loss->record_type, details[i]))
            return true;
    for (int i = 0; i < DICTIONARY_COUNT; i++)
        if (!strcmp(loss->record_type, dictionary_catalogue[i].name))
            return true;
    return false;
}

uint64_t session_lost_details(const struct session_model *model)
{
    uint64_t lost = 0;
    for (size_t i = 0; i < model->loss_count; i++)
        if (loss_is_of_detail(&model->losses[i]))
            lost = sum_saturated_u64(lost, model->losses[i].count);
    return lost;
}

uint64_t session_lost(const struct session_model *model, bool *is_exact)
{
    uint64_t lost = 0;
    *is_exact = !session_lacks_end(model) && !session_has_gap(model) && !session_missing_rows(model);
    for (size_t i = 0; i < model->loss_count; i++) {
        lost = sum_saturated_u64(lost, model->losses[i].count);
        *is_exact = *is_exact && !model->losses[i].has_unknown_count;
    }
    return lost;
}
