/* SPDX-License-Identifier: Apache-2.0 */
/* Values over time in steps: minimum, mean and maximum of each step, null where nothing was sampled. */
#include "server/query_call.h"

#include <math.h>
#include <stdlib.h>

enum { steps_default = 600, steps_max = 20000 };

struct metric_step {
    double min, max, sum;
    uint64_t count, bits; /* bits: of masks, all bits that were set */
};

struct metric_steps {
    int64_t from_ns, to_ns, step_ns;
    size_t count;
    struct metric_step *items; /* of the current series; owned */
    bool is_used;
    const char *metric; /* NULL: all */
    int64_t device;     /* CELL_UNKNOWN: all */
};

/* False: already answered. */
static bool steps_read(struct query_call *call, struct metric_steps *steps)
{
    const struct analysis *analysis = &call->session->analysis;
    *steps = (struct metric_steps){.from_ns = analysis->start_ns == TIME_UNKNOWN ? 0 : analysis->start_ns,
                                   .to_ns = analysis->start_ns == TIME_UNKNOWN ? 1 : analysis->end_ns + 1,
                                   .metric = query_text(call, "metric"),
                                   .device = CELL_UNKNOWN};
    if (!query_range(call, &steps->from_ns, &steps->to_ns) ||
        !query_int(call, "device", 0, DEVICE_UNKNOWN - 1, &steps->device))
        return false;
    int64_t span_ns = steps->to_ns - steps->from_ns;
    steps->step_ns = (span_ns + steps_default - 1) / steps_default;
    if (!query_int(call, "step_ns", 1, INT64_MAX / 2, &steps->step_ns))
        return false;
    int64_t count = (span_ns - 1) / steps->step_ns + 1;
    if (count > steps_max)
        return query_fail(call, 400, "parameter_invalid", "a range has at most %d steps", steps_max);
    steps->count = (size_t)count;
    steps->items = malloc(steps->count * sizeof *steps->items);
    return steps->items || query_fail(call, 503, "no_memory", "no memory to answer");
}

static void steps_clear(struct metric_steps *steps)
{
    memset(steps->items, 0, steps->count * sizeof *steps->items);
    steps->is_used = false;
}

static void steps_add(struct metric_steps *steps, int64_t time_ns, double value, uint64_t bits)
{
    if (time_ns < steps->from_ns || time_ns >= steps->to_ns || !isfinite(value))
        return;
    struct metric_step *step = &steps->items[(time_ns - steps->from_ns) / steps->step_ns];
    step->min = !step->count || value < step->min ? value : step->min;
    step->max = !step->count || value > step->max ? value : step->max;
    step->sum += value;
    step->bits |= bits;
    step->count++;
    steps->is_used = true;
}

enum step_figure { STEP_MIN, STEP_MEAN, STEP_MAX, STEP_ANY };

static void figure_write(struct bytes *out, const struct metric_steps *steps, const char *key, enum step_figure figure)
{
    list_open(out, key);
    for (size_t i = 0; i < steps->count; i++) {
        const struct metric_step *step = &steps->items[i];
        if (i)
            bytes_append_char(out, ',');
        if (!step->count)
            json_text(out, NULL);
        else if (figure == STEP_ANY)
            json_uint(out, step->bits);
        else if (figure == STEP_MEAN)
            json_double(out, step->sum / (double)step->count);
        else
            json_double(out, figure == STEP_MIN ? step->min : step->max);
    }
    bytes_append_char(out, ']');
}

static void series_write(struct bytes *out, const struct metric_steps *steps, const char *metric, int64_t device,
                         bool is_mask)
{
    if (!steps->is_used)
        return;
    element(out, '{');
    member_text(out, "metric", metric);
    member_int(out, "device", device);
    if (is_mask) {
        figure_write(out, steps, "any", STEP_ANY);
    } else {
        figure_write(out, steps, "min", STEP_MIN);
        figure_write(out, steps, "mean", STEP_MEAN);
        figure_write(out, steps, "max", STEP_MAX);
    }
    bytes_append_char(out, '}');
}

/* device_column: 0 when the table has none. */
static void table_write(struct bytes *out, struct metric_steps *steps, const struct metric_table *table,
                        unsigned device_column, int64_t device)
{
    const struct record_info *info = &record_catalogue[table->type];
    for (unsigned column = 1; table->columns && column < info->column_count; column++) {
        const int64_t *cells = table->columns[column];
        if (!cells || column == device_column ||
            (steps->metric && strcmp(steps->metric, info->columns[column].name) != 0))
            continue;
        steps_clear(steps);
        for (size_t i = 0; i < table->count; i++)
            if (cells[i] != CELL_UNKNOWN && (!device_column || table->columns[device_column][i] == device))
                steps_add(steps, table->columns[0][i], (double)cells[i], (uint64_t)cells[i]);
        series_write(out, steps, info->columns[column].name, device_column ? device : CELL_UNKNOWN,
                     !strcmp(info->columns[column].name, "throttle_reasons"));
    }
}

static void steps_open(struct query_call *call, const struct metric_steps *steps)
{
    bytes_append_char(&call->out, '{');
    member_int(&call->out, "from_ns", steps->from_ns);
    member_int(&call->out, "to_ns", steps->to_ns);
    member_int(&call->out, "step_ns", steps->step_ns);
    member_uint(&call->out, "steps", steps->count);
    list_open(&call->out, "series");
}

void query_metrics_steps(struct query_call *call)
{
    const struct analysis *analysis = &call->session->analysis;
    const struct session_model *model = call->session->model;
    struct metric_steps steps;
    if (!steps_read(call, &steps))
        return;
    steps_open(call, &steps);
    for (size_t i = 0; model->device_metrics.count && model->device_metrics.columns[DEVICE_METRIC_DEVICE_ID] &&
                       i < analysis->system_count;
         i++)
        if (steps.device == CELL_UNKNOWN || steps.device == analysis->system[i].device)
            table_write(&call->out, &steps, &model->device_metrics, DEVICE_METRIC_DEVICE_ID,
                        analysis->system[i].device);
    if (steps.device == CELL_UNKNOWN)
        table_write(&call->out, &steps, &model->host_metrics, 0, 0);
    bytes_append_char(&call->out, ']');
    json_system(analysis, &call->out);
    bytes_append_char(&call->out, '}');
    free(steps.items);
}

void query_pm(struct query_call *call)
{
    const struct session_deep *deep = &call->session->model->deep;
    struct metric_steps steps;
    if (!steps_read(call, &steps))
        return;
    steps_open(call, &steps);
    for (size_t i = 0; i < deep->pm_count; i++) {
        const struct pm_column *column = &deep->pm[i];
        if ((steps.device != CELL_UNKNOWN && column->device != steps.device) ||
            (steps.metric && strcmp(steps.metric, column->metric) != 0))
            continue;
        steps_clear(&steps);
        for (size_t k = 0; k < column->count; k++)
            steps_add(&steps, column->times_ns[k], column->values[k], 0);
        series_write(&call->out, &steps, column->metric,
                     column->device == DEVICE_UNKNOWN ? CELL_UNKNOWN : (int64_t)column->device, false);
    }
    bytes_append_char(&call->out, ']');
    json_pm(deep, &call->out);
    bytes_append_char(&call->out, '}');
    free(steps.items);
}
