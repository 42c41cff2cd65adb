/* SPDX-License-Identifier: Apache-2.0 */
/* The collector's side of the range engine: converts counters to values and log lines. */
#include "capture/range_engine.h"

#include "base/demangle.h"
#include "format/counter_members.h"
#include "format/json.h"

#include <math.h>
#include <unistd.h>

struct evaluation {
    double values[METRICS_MAX]; /* by the engine's metrics; NaN: not supported by the chip or not in the counters */
    bool has_values;
};

static double value_by_wire_name(const struct range_counters *counters, const struct evaluation *evaluation,
                                 const char *member)
{
    for (size_t i = 0; evaluation->has_values && i < counters->metrics.count; i++) {
        const char *name = metric_wire_name(counters->metrics.list[i]);
        if (name && !strcmp(name, member) && isfinite(evaluation->values[i]))
            return evaluation->values[i];
    }
    return -1;
}

static void write_members(const struct range_counters *counters, const struct evaluation *evaluation, size_t count,
                          struct bytes *line)
{
    for (size_t i = 0; i < count; i++) {
        json_key(line, counter_members[i]);
        json_double(line, value_by_wire_name(counters, evaluation, counter_members[i]));
    }
}

static void write_metrics(const struct range_counters *counters, const struct evaluation *evaluation,
                          struct bytes *line)
{
    json_key(line, "metric_set");
    json_text(line, counters->metrics.name);
    json_key(line, "metrics");
    bytes_append_char(line, '{');
    for (size_t i = 0; evaluation->has_values && i < counters->metrics.count; i++) {
        json_key(line, counters->metrics.list[i]);
        json_double(line, evaluation->values[i]);
    }
    bytes_append_char(line, '}');
}

static struct bytes *line_begin(struct range_counters *counters, enum record_type type,
                                const struct range_result *result)
{
    struct bytes *line = recorder_begin(counters->recorder, type);
    json_key(line, "pid");
    json_int(line, getpid());
    json_key(line, "app");
    json_text(line, counters->recorder->app_name);
    json_key(line, "device_id");
    json_uint(line, result->gpu.device_id);
    json_key(line, "context_id");
    json_uint(line, result->gpu.id);
    return line;
}

static gpufl_status evaluate(struct range_counters *counters, const struct range_result *result, size_t index,
                             struct evaluation *evaluation, struct problem *problem)
{
    const struct metric_choice *metrics = &result->chip->metrics;
    double values[METRICS_MAX];
    pthread_mutex_lock(&counters->chips_lock);
    gpufl_status status = profiler_host_evaluate(result->chip->host, result->image, result->image_bytes, index,
                                                 metrics->list, metrics->count, values, problem);
    pthread_mutex_unlock(&counters->chips_lock);
    evaluation->has_values = status == GPUFL_OK;
    if (status == GPUFL_OK)
        metric_choice_spread(metrics, values, counters->metrics.count, evaluation->values);
    return status;
}

/* ---- scopes ---- */

static void scope_evaluate(struct range_counters *counters, struct range_result *result, struct evaluation *evaluation)
{
    size_t count = 0;
    struct problem problem = {""};
    evaluation->has_values = false;
    if (!result->image)
        return;
    gpufl_status status = range_image_count(counters->cupti, result->image, result->image_bytes, &count, &problem);
    if (status == GPUFL_OK && !count)
        status = problem_set(&problem, GPUFL_E_DAMAGED, "CUPTI dropped the counters of the scope");
    if (status == GPUFL_OK)
        status = evaluate(counters, result, 0, evaluation, &problem);
    if (status == GPUFL_OK)
        return;
    memcpy(result->reason, problem.text, sizeof result->reason);
    range_failure_note(counters, result->gpu.id, &problem);
}

static void write_scope(struct range_counters *counters, struct range_result *result)
{
    const struct range_scope *scope = &result->scope;
    struct evaluation evaluation;
    scope_evaluate(counters, result, &evaluation);
    const char *bar = strrchr(scope->path, '|');
    struct bytes *line = line_begin(counters, RECORD_PERF_METRIC_EVENT, result);
    json_key(line, "name");
    json_text(line, bar ? bar + 1 : scope->path);
    json_key(line, "start_ns");
    json_int(line, scope->start_ns);
    json_key(line, "end_ns");
    json_int(line, scope->end_ns);
    write_members(counters, &evaluation, COUNTER_MEMBERS_OF_SCOPES, line);
    json_key(line, "user_scope");
    json_text(line, scope->path);
    json_key(line, "scope_depth");
    json_uint(line, scope->depth);
    json_key(line, "scope_id");
    json_uint(line, scope->scope_key);
    json_key(line, "passes_needed");
    json_uint(line, result->chip->plan.passes);
    json_key(line, "passes_collected");
    json_uint(line, scope->passes_collected);
    json_key(line, "instances");
    json_uint(line, scope->instances);
    if (!evaluation.has_values) {
        json_key(line, "reason");
        json_text(line, result->reason);
    }
    write_metrics(counters, &evaluation, line);
    recorder_end(counters->recorder, RECORD_PERF_METRIC_EVENT);
    atomic_fetch_add(evaluation.has_values ? &counters->scope_events : &counters->short_scopes, 1);
}

/* ---- kernels ---- */

static void write_launch(struct range_counters *counters, const struct range_launch *launch, struct bytes *line)
{
    static const struct range_launch unknown = {0};
    uint64_t scope_id = 0;
    if (launch && counters->history &&
        !scope_history_find(counters->history, launch->thread_id, launch->time_ns, &scope_id))
        recorder_lose(counters->recorder, LOSS_ATTRIBUTION, 1);
    bytes_clear(&counters->text);
    if (launch && launch->symbol)
        demangle(launch->symbol, &counters->text);
    json_key(line, "kernel_name");
    json_text(line, bytes_text(&counters->text));
    json_key(line, "launch_ordinal");
    json_int(line, launch ? (int64_t)launch->ordinal : -1);
    launch = launch ? launch : &unknown;
    json_key(line, "ts_ns");
    json_int(line, launch->time_ns);
    json_key(line, "corr_id");
    json_uint(line, launch->correlation_id);
    json_key(line, "scope_id");
    json_uint(line, scope_id);
}

/* launch: NULL if not known. */
static gpufl_status write_kernel(struct range_counters *counters, const struct range_result *result, size_t index,
                                 const struct range_launch *launch, struct problem *problem)
{
    struct evaluation evaluation;
    char range_name[64];
    gpufl_status status = range_image_name(counters->cupti, result->image, result->image_bytes, index, range_name,
                                           sizeof range_name, problem);
    if (status == GPUFL_OK)
        status = evaluate(counters, result, index, &evaluation, problem);
    if (status != GPUFL_OK)
        return status;
    struct bytes *line = line_begin(counters, RECORD_KERNEL_PERF_METRIC_EVENT, result);
    json_key(line, "range_index");
    json_uint(line, index);
    json_key(line, "range_name");
    json_text(line, range_name);
    write_launch(counters, launch, line);
    write_members(counters, &evaluation, COUNTER_MEMBER_COUNT, line);
    json_key(line, "window_id");
    json_uint(line, 0);
    json_key(line, "passes");
    json_uint(line, result->chip->plan.passes);
    write_metrics(counters, &evaluation, line);
    recorder_end(counters->recorder, RECORD_KERNEL_PERF_METRIC_EVENT);
    atomic_fetch_add(&counters->kernel_events, 1);
    return GPUFL_OK;
}

static void write_kernels(struct range_counters *counters, const struct range_result *result)
{
    struct problem problem = {""};
    size_t count = 0, written = 0;
    gpufl_status status = range_image_count(counters->cupti, result->image, result->image_bytes, &count, &problem);
    if (count > counters->kernels_max)
        count = counters->kernels_max;
    bool is_known = !result->is_mixed && count == result->launch_count;
    for (size_t i = 0; status == GPUFL_OK && i < count; i++) {
        const struct range_launch *launch = is_known ? &result->launches[i] : NULL;
        status = write_kernel(counters, result, i, launch, &problem);
        written += status == GPUFL_OK;
    }
    if (status != GPUFL_OK) {
        uint64_t expected = count > result->launch_count ? count : result->launch_count;
        recorder_lose_because(counters->recorder, LOSS_RANGES_DROPPED, expected - written, problem.text);
        range_failure_note(counters, result->gpu.id, &problem);
    }
    if (!is_known && written)
        recorder_lose(counters->recorder, LOSS_RANGE_UNNAMED, written);
}

void range_counters_write(struct range_counters *counters)
{
    pthread_mutex_lock(&counters->results_lock);
    struct range_result *result = counters->results;
    counters->results = NULL;
    counters->results_end = &counters->results;
    pthread_mutex_unlock(&counters->results_lock);
    while (result) {
        struct range_result *next = result->next;
        if (counters->mode == RANGE_PER_SCOPE)
            write_scope(counters, result);
        else
            write_kernels(counters, result);
        range_result_free(counters, result);
        result = next;
    }
}
