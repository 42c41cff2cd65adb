/* SPDX-License-Identifier: Apache-2.0 */
#include "export/timeline.h"

#include "base/intern.h"

#include <stdlib.h>

struct counters {
    const struct counter_visitor *visitor;
    struct intern keys; /* device and column -> id of the series */
    bool is_stopped, is_out_of_memory;
};

static void series_report(struct counters *counters, const struct counter_series *series)
{
    const struct counter_visitor *visitor = counters->visitor;
    if (visitor->series && !visitor->series(visitor->user, series))
        counters->is_stopped = true;
}

static void sample_report(struct counters *counters, const struct counter_series *series,
                          const struct counter_sample *sample)
{
    if (!counters->is_stopped && !counters->visitor->sample(counters->visitor->user, series, sample))
        counters->is_stopped = true;
}

static bool counters_go_on(const struct counters *counters)
{
    return !counters->is_stopped && !counters->is_out_of_memory;
}

static void cell_report(struct counters *counters, const struct metric_table *table, unsigned column, uint16_t device,
                        size_t row)
{
    const uint32_t key[] = {(uint32_t)table->type, column, device};
    bool is_new = false;
    struct counter_series series = {.device = device,
                                    .name = record_catalogue[table->type].columns[column].name,
                                    .id = intern_id(&counters->keys, key, sizeof key, &is_new)};
    if (!series.id) {
        counters->is_out_of_memory = true;
        return;
    }
    if (is_new)
        series_report(counters, &series);
    struct counter_sample sample = {.time_ns = table->columns[0][row], .integer = table->columns[column][row]};
    sample_report(counters, &series, &sample);
}

/* device_column 0: the table is the host's. */
static void table_walk(struct counters *counters, const struct export_filter *filter, const struct metric_table *table,
                       unsigned device_column)
{
    for (size_t row = 0; row < table->count; row++) {
        if (!filter_takes_time(filter, table->columns[0][row], 0))
            continue;
        int64_t device = DEVICE_UNKNOWN;
        if (device_column && table->columns[device_column])
            device = table->columns[device_column][row];
        if (device < 0 || device > DEVICE_UNKNOWN)
            continue;
        for (unsigned column = 1; column < record_catalogue[table->type].column_count; column++) {
            if (column != device_column && table->columns[column] && table->columns[column][row] != CELL_UNKNOWN)
                cell_report(counters, table, column, (uint16_t)device, row);
            if (!counters_go_on(counters))
                return;
        }
    }
}

static void pm_walk(struct counters *counters, const struct export_filter *filter)
{
    const struct session_deep *deep = &filter->model->deep;
    for (size_t i = 0; i < deep->pm_count && counters_go_on(counters); i++) {
        const struct pm_column *column = &deep->pm[i];
        struct counter_series series = {.device = column->device,
                                        .name = column->metric,
                                        .id = counters->keys.count + (uint32_t)i + 1,
                                        .is_pm = true};
        bool is_reported = false;
        for (size_t row = 0; row < column->count && counters_go_on(counters); row++) {
            if (!filter_takes_time(filter, column->times_ns[row], 0))
                continue;
            if (!is_reported)
                series_report(counters, &series);
            is_reported = true;
            struct counter_sample sample = {
                .time_ns = column->times_ns[row], .is_real = true, .real = column->values[row]};
            sample_report(counters, &series, &sample);
        }
    }
}

gpufl_status counters_walk(const struct export_filter *filter, const struct counter_visitor *visitor)
{
    struct counters counters = {.visitor = visitor};
    if (filter->model->device_metrics.count)
        table_walk(&counters, filter, &filter->model->device_metrics, DEVICE_METRIC_DEVICE_ID);
    if (filter->model->host_metrics.count && counters_go_on(&counters))
        table_walk(&counters, filter, &filter->model->host_metrics, 0);
    pm_walk(&counters, filter);
    intern_free(&counters.keys);
    return counters.is_out_of_memory ? GPUFL_E_NO_MEMORY : GPUFL_OK;
}
