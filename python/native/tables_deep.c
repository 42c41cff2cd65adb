/* SPDX-License-Identifier: Apache-2.0 */
#include "tables.h"

#include <stdlib.h>

#define FIELD(array, member) ((struct rows){(array) ? (const void *)&(array)[0].member : NULL, sizeof *(array)})

/* Samples of a code location, summed over the run. */
struct column_table *table_code_samples(struct session_share *share)
{
    const struct code_sample *samples = share->model->deep.samples;
    struct column_table *table = table_make(share, share->model->deep.sample_count);
    if (!table)
        return NULL;
    table_add_words(table, "sample_kind", FIELD(samples, kind), "sample_kind");
    table_add_dictionary(table, "function", FIELD(samples, function_id), DICTIONARY_FUNCTION);
    table_add_dictionary(table, "symbol", FIELD(samples, function_id), DICTIONARY_FUNC_SYMBOL);
    table_add(table, "pc_offset", COLUMN_U32, FIELD(samples, pc_offset));
    table_add_dictionary(table, "metric", FIELD(samples, metric_id), DICTIONARY_METRIC);
    table_add(table, "value", COLUMN_U64, FIELD(samples, value));
    table_add_dictionary(table, "source_file", FIELD(samples, source_file_id), DICTIONARY_SOURCE_FILE);
    table_add_nullable(table, "source_line", COLUMN_U32, FIELD(samples, source_line), 0);
    table_add_nullable(table, "cubin_crc", COLUMN_U64, FIELD(samples, cubin_crc), 0);
    return table;
}

/* PC samples of one function in one scope. */
struct column_table *table_scope_samples(struct session_share *share)
{
    const struct scope_sample *samples = share->model->deep.scope_samples;
    struct column_table *table = table_make(share, share->model->deep.scope_sample_count);
    if (!table)
        return NULL;
    table_add_dictionary(table, "scope", FIELD(samples, path_id), DICTIONARY_SCOPE_NAME);
    table_add_dictionary(table, "function", FIELD(samples, function_id), DICTIONARY_FUNCTION);
    table_add_dictionary(table, "symbol", FIELD(samples, function_id), DICTIONARY_FUNC_SYMBOL);
    table_add_dictionary(table, "metric", FIELD(samples, metric_id), DICTIONARY_METRIC);
    table_add(table, "value", COLUMN_U64, FIELD(samples, value));
    table_add(table, "certain", COLUMN_U64, FIELD(samples, certain));
    table_add(table, "undecided", COLUMN_U64, FIELD(samples, undecided));
    return table;
}

/* The rows of perf are counter values; each points to its event. */
struct perf_row {
    const char *name, *level, *metric, *metric_set, *reason;
    double number;
    int64_t start_ns, end_ns, passes_needed, passes_collected, instances;
    uint16_t device;
};

static struct perf_row *perf_rows_make(const struct session_deep *deep, size_t *count)
{
    *count = 0;
    for (size_t i = 0; i < deep->metric_event_count; i++)
        *count += deep->metric_events[i].value_count;
    struct perf_row *rows = calloc(*count + 1, sizeof *rows), *row = rows;
    for (size_t i = 0; rows && i < deep->metric_event_count; i++) {
        const struct metric_event *event = &deep->metric_events[i];
        for (size_t j = 0; j < event->value_count; j++) {
            const struct metric_value *value = &deep->metric_values[event->value_first + j];
            *row++ = (struct perf_row){.name = event->name,
                                       .level = event->is_kernel ? "kernel" : "scope",
                                       .metric = value->name,
                                       .metric_set = event->metric_set,
                                       .reason = event->reason,
                                       .number = value->value,
                                       .start_ns = event->start_ns,
                                       .end_ns = event->end_ns,
                                       .passes_needed = event->passes_needed,
                                       .passes_collected = event->passes_collected,
                                       .instances = event->instances,
                                       .device = event->device};
        }
    }
    return rows;
}

struct column_table *table_perf(struct session_share *share)
{
    size_t count;
    struct perf_row *rows = perf_rows_make(&share->model->deep, &count);
    struct column_table *table = rows ? table_make(share, count) : NULL;
    if (table) {
        table_add_texts(table, "level", FIELD(rows, level));
        table_add_texts(table, "name", FIELD(rows, name));
        table_add_texts(table, "metric", FIELD(rows, metric));
        table_add(table, "value", COLUMN_F64, FIELD(rows, number));
        table_add_nullable(table, "start_ns", COLUMN_I64, FIELD(rows, start_ns), TIME_UNKNOWN);
        table_add_nullable(table, "end_ns", COLUMN_I64, FIELD(rows, end_ns), TIME_UNKNOWN);
        table_add_nullable(table, "device_id", COLUMN_U16, FIELD(rows, device), DEVICE_UNKNOWN);
        table_add_texts(table, "metric_set", FIELD(rows, metric_set));
        table_add_nullable(table, "passes_needed", COLUMN_I64, FIELD(rows, passes_needed), CELL_UNKNOWN);
        table_add_nullable(table, "passes_collected", COLUMN_I64, FIELD(rows, passes_collected), CELL_UNKNOWN);
        table_add_nullable(table, "instances", COLUMN_I64, FIELD(rows, instances), CELL_UNKNOWN);
        table_add_texts(table, "reason", FIELD(rows, reason));
    }
    free(rows);
    return table;
}

struct column_table *table_pm_samples(struct session_share *share)
{
    const struct session_deep *deep = &share->model->deep;
    size_t count = 0;
    for (size_t i = 0; i < deep->pm_count; i++)
        count += deep->pm[i].count;
    struct column_table *table = table_make(share, count);
    const char **names = calloc(deep->pm_count + 1, sizeof *names);
    uint32_t *series = calloc(count + 1, sizeof *series);
    if (!table || !names || !series) {
        if (table)
            table->has_failed = true;
        goto done;
    }
    int64_t *times_ns = table_add_room(table, "time_ns", COLUMN_I64);
    uint8_t *is_unknown = NULL;
    uint16_t *devices = table_add_nullable_room(table, "device_id", COLUMN_U16, &is_unknown);
    double *values = table_add_room(table, "value", COLUMN_F64);
    size_t row = 0;
    for (size_t i = 0; !table->has_failed && i < deep->pm_count; i++) {
        const struct pm_column *pm = &deep->pm[i];
        names[i] = pm->metric;
        for (size_t j = 0; j < pm->count; j++, row++) {
            times_ns[row] = pm->times_ns[j];
            values[row] = pm->values[j];
            devices[row] = pm->device;
            is_unknown[row] = pm->device == DEVICE_UNKNOWN;
            series[row] = (uint32_t)i;
        }
    }
    table_add_ids(table, "metric", (struct rows){series, sizeof *series}, names, (uint32_t)deep->pm_count);
done:
    free(names);
    free(series);
    return table;
}

/* Kernels that were launched while tracing was paused for counters. */
struct column_table *table_untimed_launches(struct session_share *share)
{
    const struct session_model *model = share->model;
    const struct untimed_launch *launches = model->deep.untimed;
    struct column_table *table = table_make(share, model->deep.untimed_count);
    if (!table)
        return NULL;
    table_add_dictionary(table, "name", FIELD(launches, kernel_id), DICTIONARY_KERNEL);
    table_add(table, "time_ns", COLUMN_I64, FIELD(launches, time_ns));
    table_add_scope(table, FIELD(launches, scope));
    table_add_nullable(table, "thread_id", COLUMN_U32, FIELD(launches, thread_id), ID_UNKNOWN);
    table_add(table, "corr_id", COLUMN_U32, FIELD(launches, corr_id));
    return table;
}
