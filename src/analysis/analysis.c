/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/analysis.h"

#include <stdlib.h>

/* The session's time span: from the first to the last record that belongs to it. */
static void window_make(struct analysis *analysis)
{
    const struct session_model *model = analysis->model;
    analysis->start_ns = model->job.start_ns != TIME_UNKNOWN ? model->job.start_ns : model->first_ns;
    analysis->end_ns = model->job.shutdown_ns != TIME_UNKNOWN ? model->job.shutdown_ns : model->last_ns;
    if (analysis->start_ns == TIME_UNKNOWN || analysis->end_ns < analysis->start_ns)
        analysis->end_ns = analysis->start_ns;
    analysis->wall_ns = analysis->start_ns == TIME_UNKNOWN ? 0 : analysis->end_ns - analysis->start_ns;
}

static void cost_make(struct analysis *analysis)
{
    const struct session_overhead *overhead = &analysis->model->overhead;
    analysis->cost = (struct profiling_cost){-1, -1};
    int64_t wall_ns = overhead->wall_ns > 0 ? overhead->wall_ns : analysis->wall_ns;
    if (!overhead->is_known || wall_ns <= 0)
        return;
    if (overhead->cupti_ns >= 0)
        analysis->cost.cupti = (double)overhead->cupti_ns / (double)wall_ns;
    const int64_t parts[] = {overhead->collector_cpu_ns, overhead->sampler_cpu_ns, overhead->seal_cpu_ns};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i] >= 0)
            analysis->cost.gpufl =
                (analysis->cost.gpufl < 0 ? 0 : analysis->cost.gpufl) + (double)parts[i] / (double)wall_ns;
}

static gpufl_status deep_make(struct analysis *analysis, enum code_effort effort)
{
    const struct session_model *model = analysis->model;
    const struct session_deep *deep = &model->deep;
    analysis->has_deep = deep->sample_count || deep->window_count || deep->metric_event_count || deep->pm_count ||
                         deep->untimed_count || deep->sampling_count || deep->counter_count;
    gpufl_status status = stalls_make(&analysis->stalls, model);
    if (status == GPUFL_OK)
        status = hot_code_make(&analysis->code, model, &analysis->stalls, effort);
    if (status == GPUFL_OK)
        status = deep_use_make(&analysis->deep, model);
    return status;
}

gpufl_status analysis_make(struct analysis *analysis, const struct session_model *model)
{
    return analysis_make_with(analysis, model, CODE_STORED);
}

gpufl_status analysis_make_with(struct analysis *analysis, const struct session_model *model, enum code_effort effort)
{
    static gpufl_status (*const steps[])(struct analysis *) = {
        time_use_make,        slowdown_make, hotspots_make,  kind_totals_make, scope_tree_make, scope_tags_make,
        operator_totals_make, steps_make,    transfers_make, memory_use_make,  system_use_make, insights_make,
    };
    memset(analysis, 0, sizeof *analysis);
    analysis->model = model;
    /* A v1 log may not name an engine; its kernels then show that one recorded GPU work. */
    analysis->has_kernel_engine =
        model->kernels.count || (*model->job.engine && strcmp(model->job.engine, "Monitor") != 0);
    window_make(analysis);
    cost_make(analysis);
    gpufl_status status = deep_make(analysis, effort);
    for (size_t i = 0; status == GPUFL_OK && i < sizeof steps / sizeof *steps; i++)
        status = steps[i](analysis);
    if (status != GPUFL_OK)
        analysis_free(analysis);
    return status;
}

void analysis_free(struct analysis *analysis)
{
    for (size_t i = 0; i < analysis->insight_count; i++)
        free(analysis->insights[i].text);
    free(analysis->insights);
    free(analysis->devices);
    free(analysis->time_bins);
    free(analysis->launch_bound.wait_by_path);
    free(analysis->hotspots);
    free(analysis->scopes);
    scope_kernels_free(&analysis->scope_kernels);
    scope_tags_free(&analysis->scope_tags);
    steps_free(&analysis->steps);
    free(analysis->operators);
    free(analysis->copies);
    free(analysis->sync_places);
    free(analysis->graphs);
    free(analysis->system);
    free(analysis->processes);
    deep_use_free(&analysis->deep);
    hot_code_free(&analysis->code);
    stalls_free(&analysis->stalls);
    memset(analysis, 0, sizeof *analysis);
}

int64_t analysis_busy_ns(const struct analysis *analysis)
{
    int64_t busy_ns = 0;
    for (size_t i = 0; i < analysis->device_count; i++)
        busy_ns = sum_saturated(busy_ns, analysis->devices[i].busy_ns);
    return busy_ns;
}
