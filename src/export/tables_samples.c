/* SPDX-License-Identifier: Apache-2.0 */
/* Samples: GPUs, host and processes over time, hardware counters, instructions. */
#include "export/tables.h"

#include <inttypes.h>
#include <stdio.h>

static bool metric_row(struct table_source *source, const struct metric_table *table, size_t row,
                       struct table_value *values)
{
    if (!filter_takes_time(source->filter, table->columns[0][row], 0))
        return false;
    unsigned count = record_catalogue[table->type].column_count;
    for (unsigned i = 0; i < count; i++)
        if (table->columns[i])
            value_time(&values[i], table->columns[i][row]);
    return true;
}

static size_t device_metrics_count(const struct session_model *model)
{
    return model->device_metrics.count;
}
static bool device_metrics_row(struct table_source *source, size_t row, struct table_value *values)
{
    return metric_row(source, &source->model->device_metrics, row, values);
}
const struct export_table table_of_device_metrics = {.name = "device_metrics",
                                                     .record = RECORD_DEVICE_METRIC_BATCH,
                                                     .count = device_metrics_count,
                                                     .row = device_metrics_row};

static size_t host_metrics_count(const struct session_model *model)
{
    return model->host_metrics.count;
}
static bool host_metrics_row(struct table_source *source, size_t row, struct table_value *values)
{
    return metric_row(source, &source->model->host_metrics, row, values);
}
const struct export_table table_of_host_metrics = {
    .name = "host_metrics", .record = RECORD_HOST_METRIC_BATCH, .count = host_metrics_count, .row = host_metrics_row};

static size_t process_metrics_count(const struct session_model *model)
{
    return model->process_metrics.count;
}
static bool process_metrics_row(struct table_source *source, size_t row, struct table_value *values)
{
    return metric_row(source, &source->model->process_metrics, row, values);
}
const struct export_table table_of_process_metrics = {.name = "process_metrics",
                                                      .record = RECORD_PROCESS_METRIC_BATCH,
                                                      .count = process_metrics_count,
                                                      .row = process_metrics_row};

static const struct table_column pm_columns[] = {INTEGER("time_ns"), INTEGER("device_id"), TEXT("metric"),
                                                 REAL("value")};
static size_t pm_count(const struct session_model *model)
{
    size_t count = 0;
    for (size_t i = 0; i < model->deep.pm_count; i++)
        count += model->deep.pm[i].count;
    return count;
}
static bool pm_row(struct table_source *source, size_t row, struct table_value *values)
{
    const struct pm_column *series = source->model->deep.pm;
    while (row - source->group_first >= series[source->group].count)
        source->group_first += series[source->group++].count;
    const struct pm_column *at = &series[source->group];
    size_t index = row - source->group_first;
    if (!filter_takes_time(source->filter, at->times_ns[index], 0))
        return false;
    value_time(&values[0], at->times_ns[index]);
    value_device(&values[1], at->device);
    value_text(&values[2], at->metric);
    value_real(&values[3], at->values[index]);
    return true;
}
const struct export_table table_of_pm_samples = {
    .name = "pm_samples", COLUMNS(pm_columns), .count = pm_count, .row = pm_row};

static const struct table_column range_columns[] = {
    TEXT("range"),      TEXT("kind"),   INTEGER("device_id"), INTEGER("start_ns"),      INTEGER("end_ns"),
    TEXT("metric_set"), TEXT("metric"), REAL("value"),        INTEGER("passes_needed"), INTEGER("passes_collected")};
static size_t range_count(const struct session_model *model)
{
    size_t count = 0;
    for (size_t i = 0; i < model->deep.metric_event_count; i++)
        count += model->deep.metric_events[i].value_count;
    return count;
}
static bool range_row(struct table_source *source, size_t row, struct table_value *values)
{
    const struct metric_event *events = source->model->deep.metric_events;
    while (row - source->group_first >= events[source->group].value_count)
        source->group_first += events[source->group++].value_count;
    const struct metric_event *event = &events[source->group];
    const struct metric_value *value =
        &source->model->deep.metric_values[event->value_first + (row - source->group_first)];
    if (event->start_ns != TIME_UNKNOWN && event->end_ns != TIME_UNKNOWN &&
        !filter_takes_time(source->filter, event->start_ns, event->end_ns - event->start_ns))
        return false;
    value_text(&values[0], event->name);
    value_text(&values[1], event->is_kernel ? "kernel" : "scope");
    value_device(&values[2], event->device);
    value_time(&values[3], event->start_ns);
    value_time(&values[4], event->end_ns);
    value_text(&values[5], event->metric_set);
    value_text(&values[6], value->name);
    value_real(&values[7], value->value);
    value_time(&values[8], event->passes_needed);
    value_time(&values[9], event->passes_collected);
    return true;
}
const struct export_table table_of_range_metrics = {
    .name = "range_metrics", COLUMNS(range_columns), .count = range_count, .row = range_row};

static const struct table_column stall_columns[] = {
    NAME("scope", DICTIONARY_SCOPE_NAME), NAME("function", DICTIONARY_FUNCTION),
    NAME("reason", DICTIONARY_METRIC),    INTEGER("samples"),
    INTEGER("certain_samples"),           INTEGER("undecided_samples")};
static size_t stalls_count(const struct session_model *model)
{
    return model->deep.scope_sample_count;
}
static bool stalls_row(struct table_source *source, size_t row, struct table_value *values)
{
    const struct scope_sample *sample = &source->model->deep.scope_samples[row];
    const struct export_filter *filter = source->filter;
    if (filter->is_path_in && !(sample->path_id < filter->path_count && filter->is_path_in[sample->path_id]))
        return false;
    value_name(&values[0], source->model, DICTIONARY_SCOPE_NAME, sample->path_id);
    value_name(&values[1], source->model, DICTIONARY_FUNCTION, sample->function_id);
    value_name(&values[2], source->model, DICTIONARY_METRIC, sample->metric_id);
    value_unsigned(&values[3], sample->value);
    value_unsigned(&values[4], sample->certain);
    value_unsigned(&values[5], sample->undecided);
    return true;
}
const struct export_table table_of_stalls = {
    .name = "stalls", COLUMNS(stall_columns), .count = stalls_count, .row = stalls_row};

static const struct table_column code_columns[] = {TEXT("kind"),
                                                   TEXT("cubin_crc"),
                                                   NAME("function", DICTIONARY_FUNCTION),
                                                   INTEGER("pc_offset"),
                                                   NAME("metric", DICTIONARY_METRIC),
                                                   INTEGER("value"),
                                                   NAME("source_file", DICTIONARY_SOURCE_FILE),
                                                   INTEGER("source_line")};
static size_t code_count(const struct session_model *model)
{
    return model->deep.sample_count;
}
static bool code_row(struct table_source *source, size_t row, struct table_value *values)
{
    const struct code_sample *sample = &source->model->deep.samples[row];
    value_text(&values[0], schema_word("sample_kind", sample->kind));
    snprintf(source->text, sizeof source->text, "%016" PRIx64, sample->cubin_crc);
    value_text(&values[1], sample->cubin_crc ? source->text : NULL);
    value_name(&values[2], source->model, DICTIONARY_FUNCTION, sample->function_id);
    value_integer(&values[3], sample->pc_offset);
    value_name(&values[4], source->model, DICTIONARY_METRIC, sample->metric_id);
    value_unsigned(&values[5], sample->value);
    value_name(&values[6], source->model, DICTIONARY_SOURCE_FILE, sample->source_file_id);
    if (sample->source_line)
        value_integer(&values[7], sample->source_line);
    return true;
}
const struct export_table table_of_code_samples = {
    .name = "code_samples", COLUMNS(code_columns), .count = code_count, .row = code_row};
