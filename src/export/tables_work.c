/* SPDX-License-Identifier: Apache-2.0 */
/* Work of GPU and host: kernels, copies, waits, scopes. */
#include "export/tables.h"
#include "export/work_span.h"

#include <inttypes.h>
#include <stdio.h>

void value_scope(struct table_value *path, struct table_value *instance, const struct session_model *model,
                 uint32_t scope)
{
    if (scope >= model->scope_count)
        return;
    const struct scope_instance *entry = &model->scopes[scope];
    value_name(path, model, DICTIONARY_SCOPE_NAME, entry->path_id);
    if (instance && entry->id)
        value_integer(instance, (int64_t)entry->id);
}

/* start to api_duration_ns: the columns that kernels, copies, memsets and graph launches share. */
#define SPAN_COLUMNS                                                                                               \
    INTEGER("start_ns"), INTEGER("duration_ns"), INTEGER("device_id"), INTEGER("stream_id"), INTEGER("thread_id"), \
        INTEGER("correlation_id"), INTEGER("api_start_ns"), INTEGER("api_duration_ns"),                            \
        NAME("scope", DICTIONARY_SCOPE_NAME), INTEGER("scope_instance"), INTEGER("graph_id")
enum { SPAN_COLUMN_COUNT = 11 };

static void span_fill(const struct session_model *model, const struct gpu_span *span, struct table_value *values)
{
    value_time(&values[0], span->start_ns);
    value_time(&values[1], span->duration_ns);
    value_device(&values[2], span->device);
    value_id(&values[3], span->stream_id);
    value_id(&values[4], span->thread_id);
    value_id(&values[5], span->corr_id);
    value_time(&values[6], span->api_start_ns);
    value_id(&values[7], span->api_duration_ns);
    value_scope(&values[8], &values[9], model, span->scope);
    if (span->graph_id)
        value_id(&values[10], span->graph_id);
}

static bool span_row(struct table_source *source, const struct gpu_span *span, struct table_value *values)
{
    if (!filter_takes(source->filter, span->scope, span->start_ns, span->duration_ns))
        return false;
    span_fill(source->model, span, values);
    return true;
}

static const struct table_column kernel_columns[] = {SPAN_COLUMNS, NAME("kernel", DICTIONARY_KERNEL),
                                                     INTEGER("launch_id"), NAME("stack", DICTIONARY_FUNCTION),
                                                     TEXT("kind")};
static size_t kernels_count(const struct session_model *model)
{
    return model->kernels.count;
}
static bool kernels_row(struct table_source *source, size_t row, struct table_value *values)
{
    const struct kernel_columns *kernels = &source->model->kernels;
    struct gpu_span span = kernel_span(kernels, row);
    if (!span_row(source, &span, values))
        return false;
    value_name(&values[SPAN_COLUMN_COUNT], source->model, DICTIONARY_KERNEL, kernels->kernel_id[row]);
    if (kernels->launch_id[row])
        value_integer(&values[SPAN_COLUMN_COUNT + 1], kernels->launch_id[row]);
    value_name(&values[SPAN_COLUMN_COUNT + 2], source->model, DICTIONARY_FUNCTION,
               kernels->stack_id ? kernels->stack_id[row] : 0);
    value_text(&values[SPAN_COLUMN_COUNT + 3],
               kernel_kind_name(session_kernel_kind(source->model, kernels->kernel_id[row])));
    return true;
}

static const struct table_column copy_columns[] = {SPAN_COLUMNS,   INTEGER("bytes"), TEXT("kind"),
                                                   TEXT("source"), TEXT("target"),   INTEGER("is_async")};
static size_t copies_count(const struct session_model *model)
{
    return model->copy_count;
}
static bool copies_row(struct table_source *source, size_t row, struct table_value *values)
{
    const struct gpu_copy *copy = &source->model->copies[row];
    if (!span_row(source, &copy->span, values))
        return false;
    struct table_value *own = values + SPAN_COLUMN_COUNT;
    value_unsigned(&own[0], copy->bytes);
    value_word(&own[1], "copy_kind", copy->copy_kind);
    value_word(&own[2], "memory_kind", copy->src_kind);
    value_word(&own[3], "memory_kind", copy->dst_kind);
    if (copy->is_async >= 0)
        value_integer(&own[4], copy->is_async);
    return true;
}

static const struct table_column memset_columns[] = {SPAN_COLUMNS, INTEGER("bytes"), TEXT("memory")};
static size_t memsets_count(const struct session_model *model)
{
    return model->memset_count;
}
static bool memsets_row(struct table_source *source, size_t row, struct table_value *values)
{
    const struct gpu_memset *set = &source->model->memsets[row];
    if (!span_row(source, &set->span, values))
        return false;
    value_unsigned(&values[SPAN_COLUMN_COUNT], set->bytes);
    value_word(&values[SPAN_COLUMN_COUNT + 1], "memory_kind", set->memory_kind);
    return true;
}

static const struct table_column graph_columns[] = {SPAN_COLUMNS, INTEGER("node_count"), INTEGER("busy_ns")};
static size_t graphs_count(const struct session_model *model)
{
    return model->graph_count;
}
static bool graphs_row(struct table_source *source, size_t row, struct table_value *values)
{
    const struct graph_launch *graph = &source->model->graphs[row];
    if (!span_row(source, &graph->span, values))
        return false;
    value_id(&values[SPAN_COLUMN_COUNT], graph->node_count);
    value_time(&values[SPAN_COLUMN_COUNT + 1], graph->busy_ns);
    return true;
}

static const struct table_column sync_columns[] = {INTEGER("start_ns"),
                                                   INTEGER("duration_ns"),
                                                   TEXT("kind"),
                                                   INTEGER("stream_id"),
                                                   INTEGER("event_id"),
                                                   INTEGER("context_id"),
                                                   INTEGER("thread_id"),
                                                   INTEGER("correlation_id"),
                                                   NAME("scope", DICTIONARY_SCOPE_NAME),
                                                   INTEGER("scope_instance"),
                                                   NAME("stack", DICTIONARY_FUNCTION)};
static size_t syncs_count(const struct session_model *model)
{
    return model->sync_count;
}
static bool syncs_row(struct table_source *source, size_t row, struct table_value *values)
{
    const struct sync_wait *wait = &source->model->syncs[row];
    if (!filter_takes(source->filter, wait->scope, wait->start_ns, wait->duration_ns))
        return false;
    value_time(&values[0], wait->start_ns);
    value_time(&values[1], wait->duration_ns);
    value_word(&values[2], "sync_type", wait->sync_type);
    value_id(&values[3], wait->stream_id);
    value_id(&values[4], wait->event_id);
    value_id(&values[5], wait->context_id);
    value_id(&values[6], wait->thread_id);
    value_id(&values[7], wait->corr_id);
    value_scope(&values[8], &values[9], source->model, wait->scope);
    value_name(&values[10], source->model, DICTIONARY_FUNCTION, wait->function_id);
    return true;
}

static const struct table_column allocation_columns[] = {
    INTEGER("time_ns"),       INTEGER("duration_ns"), TEXT("operation"),
    TEXT("memory"),           TEXT("address"),        INTEGER("bytes"),
    INTEGER("device_id"),     INTEGER("thread_id"),   NAME("scope", DICTIONARY_SCOPE_NAME),
    INTEGER("scope_instance")};
static size_t allocations_count(const struct session_model *model)
{
    return model->memory_event_count;
}
static bool allocations_row(struct table_source *source, size_t row, struct table_value *values)
{
    const struct memory_event *event = &source->model->memory_events[row];
    if (!filter_takes(source->filter, event->scope, event->time_ns, 0))
        return false;
    value_time(&values[0], event->time_ns);
    value_time(&values[1], event->duration_ns);
    value_word(&values[2], "memory_op", event->memory_op);
    value_word(&values[3], "memory_kind", event->memory_kind);
    /* An unsigned 64-bit number, which neither SQL nor spreadsheets support. */
    snprintf(source->text, sizeof source->text, "0x%" PRIx64, event->address);
    value_text(&values[4], event->address ? source->text : NULL);
    value_unsigned(&values[5], event->bytes);
    value_device(&values[6], event->device);
    value_id(&values[7], event->thread_id);
    value_scope(&values[8], &values[9], source->model, event->scope);
    return true;
}

static const struct table_column scope_columns[] = {INTEGER("id"),
                                                    INTEGER("parent_id"),
                                                    NAME("path", DICTIONARY_SCOPE_NAME),
                                                    INTEGER("begin_ns"),
                                                    INTEGER("end_ns"),
                                                    INTEGER("thread_id"),
                                                    INTEGER("depth"),
                                                    NAME("tag", DICTIONARY_TAG),
                                                    INTEGER("repeat"),
                                                    INTEGER("warmup"),
                                                    TEXT("source")};
static size_t scopes_count(const struct session_model *model)
{
    return model->scope_count;
}
static bool scopes_row(struct table_source *source, size_t row, struct table_value *values)
{
    const struct scope_instance *scope = &source->model->scopes[row];
    if (scope->is_attribution_only || !filter_takes_entry(source->filter, (uint32_t)row))
        return false;
    value_unsigned(&values[0], scope->id);
    if (scope->parent < source->model->scope_count)
        value_integer(&values[1], (int64_t)source->model->scopes[scope->parent].id);
    value_name(&values[2], source->model, DICTIONARY_SCOPE_NAME, scope->path_id);
    value_time(&values[3], scope->begin_ns);
    value_time(&values[4], scope->end_ns);
    value_id(&values[5], scope->thread_id);
    value_integer(&values[6], scope->depth);
    value_name(&values[7], source->model, DICTIONARY_TAG, scope->tag_id);
    if (scope->repeat) {
        value_integer(&values[8], scope->repeat);
        value_integer(&values[9], scope->warmup);
    }
    value_text(&values[10], schema_word("scope_source", scope->source));
    return true;
}

static const struct table_column untimed_columns[] = {
    INTEGER("time_ns"),   NAME("kernel", DICTIONARY_KERNEL),    INTEGER("correlation_id"),
    INTEGER("thread_id"), NAME("scope", DICTIONARY_SCOPE_NAME), INTEGER("scope_instance"),
    INTEGER("window_id")};
static size_t untimed_count(const struct session_model *model)
{
    return model->deep.untimed_count;
}
static bool untimed_row(struct table_source *source, size_t row, struct table_value *values)
{
    const struct untimed_launch *launch = &source->model->deep.untimed[row];
    if (!filter_takes(source->filter, launch->scope, launch->time_ns, 0))
        return false;
    value_time(&values[0], launch->time_ns);
    value_name(&values[1], source->model, DICTIONARY_KERNEL, launch->kernel_id);
    value_id(&values[2], launch->corr_id);
    value_id(&values[3], launch->thread_id);
    value_scope(&values[4], &values[5], source->model, launch->scope);
    if (launch->window_id)
        value_id(&values[6], launch->window_id);
    return true;
}

const struct export_table table_of_kernels = {
    .name = "kernels", COLUMNS(kernel_columns), .count = kernels_count, .row = kernels_row};
const struct export_table table_of_untimed = {
    .name = "untimed_launches", COLUMNS(untimed_columns), .count = untimed_count, .row = untimed_row};
const struct export_table table_of_copies = {
    .name = "copies", COLUMNS(copy_columns), .count = copies_count, .row = copies_row};
const struct export_table table_of_memsets = {
    .name = "memsets", COLUMNS(memset_columns), .count = memsets_count, .row = memsets_row};
const struct export_table table_of_graphs = {
    .name = "graph_launches", COLUMNS(graph_columns), .count = graphs_count, .row = graphs_row};
const struct export_table table_of_syncs = {
    .name = "syncs", COLUMNS(sync_columns), .count = syncs_count, .row = syncs_row};
const struct export_table table_of_allocations = {
    .name = "allocations", COLUMNS(allocation_columns), .count = allocations_count, .row = allocations_row};
const struct export_table table_of_scopes = {
    .name = "scopes", COLUMNS(scope_columns), .count = scopes_count, .row = scopes_row};
