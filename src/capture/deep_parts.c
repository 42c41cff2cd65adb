/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/deep_parts.h"

#include "base/clock.h"

#include <stdlib.h>

void deep_keep_code(struct deep *deep)
{
    struct problem problem = {""};
    deep->keeps_code = deep->options.code != NULL;
    deep_grants_request(&deep->grants, DEEP_CODE);
    deep_grants_answer(
        &deep->grants, DEEP_CODE,
        deep->keeps_code ? GPUFL_OK : problem_set(&problem, GPUFL_E_NO_MEMORY, "no memory or no thread to store code"),
        &problem);
}

/* Breaks only make sense for PcSampling. Deep has its own windows, SassMetrics needs sampling while it counts, and
 * users of one kernel at a time accept the cost. */
static bool is_cheap(const struct deep_settings *settings)
{
    return settings->engine == GPUFL_ENGINE_PC_SAMPLING && !settings->is_pc_serialized;
}

static uint32_t share_percent(const struct deep_settings *settings)
{
    enum { all = 100 };
    bool has_breaks =
        is_cheap(settings) || (settings->engine == GPUFL_ENGINE_PC_SAMPLING && settings->pc_share_percent);
    return has_breaks ? settings->pc_share_percent : all;
}

static uint32_t rate_hz(const struct deep_settings *settings)
{
    enum { high_hz = 16000 };
    return settings->pc_rate_hz || is_cheap(settings) ? settings->pc_rate_hz : high_hz;
}

void deep_make_sampler(struct deep *deep)
{
    const struct deep_settings *settings = &deep->options.settings;
    bool is_companion = settings->engine == GPUFL_ENGINE_SASS_METRICS;
    const struct pc_sampler_options options = {
        .cupti = deep->options.cupti,
        .attribution = {.recorder = deep->options.recorder,
                        .names = deep->options.names,
                        .history = deep->options.kernels},
        .is_serialized = settings->is_pc_serialized && !is_companion,
        .rate_hz = rate_hz(settings),
        .drain_ms = settings->pc_drain_ms,
        .share_percent = share_percent(settings),
        .cycle_ms = settings->pc_cycle_ms,
        .period_exponent = settings->pc_period_exponent,
    };
    struct problem problem = {""};
    enum deep_part part = is_companion ? DEEP_SASS_METRICS : DEEP_PC_SAMPLING;
    deep_grants_request(&deep->grants, part);
    gpufl_status status = pc_sampler_make(&deep->sampler, &options, &problem);
    if (status == GPUFL_OK && settings->engine != GPUFL_ENGINE_PC_SAMPLING)
        pc_sampler_rest(deep->sampler, true); /* until the first window in which samples are wanted */
    if (status == GPUFL_OK && (status = pc_sampler_start(deep->sampler)) != GPUFL_OK)
        problem_set(&problem, status, "no thread for PC sampling");
    if (status == GPUFL_OK)
        return;
    pc_sampler_free(deep->sampler);
    deep->sampler = NULL;
    deep_grants_answer(&deep->grants, part, status, &problem);
}

void deep_make_windows(struct deep *deep)
{
    const struct deep_settings *settings = &deep->options.settings;
    const struct sass_counters_options counters = {
        .cupti = deep->options.cupti,
        .recorder = deep->options.recorder,
        .names = deep->options.names,
        .metrics = settings->sass_metrics[0] ? settings->sass_metrics : NULL,
        .mode = settings->engine == GPUFL_ENGINE_DEEP ? "alternating" : "whole_run",
    };
    struct problem problem = {""};
    deep_grants_request(&deep->grants, DEEP_SASS_METRICS);
    gpufl_status status = deep->sampler ? sass_counters_make(&deep->counters, &counters, &problem)
                                        : problem_set(&problem, GPUFL_E_UNSUPPORTED, "they need PC sampling");
    if (status == GPUFL_OK) {
        const struct deep_windows_options options = {
            .cupti = deep->options.cupti,
            .recorder = deep->options.recorder,
            .sampler = deep->sampler,
            .counters = deep->counters,
            .is_alternating = settings->engine == GPUFL_ENGINE_DEEP,
            .counting_ms = settings->counting_ms,
            .sampling_ms = settings->sampling_ms,
        };
        status = deep_windows_make(&deep->windows, &options);
        if (status == GPUFL_OK)
            status = deep_windows_start(deep->windows, &problem);
    }
    if (status == GPUFL_OK)
        return;
    deep_windows_free(deep->windows);
    deep->windows = NULL;
    if (deep->counters)
        sass_counters_stop(deep->counters, clock_log_ns());
    sass_counters_free(deep->counters);
    deep->counters = NULL;
    if (deep->sampler)
        pc_sampler_rest(deep->sampler, false);
    if (settings->engine == GPUFL_ENGINE_SASS_METRICS) { /* it was only needed for them */
        pc_sampler_free(deep->sampler);
        deep->sampler = NULL;
    }
    deep_grants_answer(&deep->grants, DEEP_SASS_METRICS, status, &problem);
}

void deep_make_ranges(struct deep *deep)
{
    const struct deep_settings *settings = &deep->options.settings;
    struct problem problem = {""};
    struct metric_choice *choice = calloc(1, sizeof *choice);
    deep_grants_request(&deep->grants, DEEP_RANGE_COUNTERS);
    gpufl_status status =
        choice ? metric_choice_parse(choice, PROFILER_RANGE,
                                     settings->range_metrics[0] ? settings->range_metrics : "overview", &problem)
               : problem_set(&problem, GPUFL_E_NO_MEMORY, "not enough memory");
    if (status == GPUFL_OK) {
        const struct range_counters_options options = {
            .cupti = deep->options.cupti,
            .recorder = deep->options.recorder,
            .history = deep->options.scopes,
            .metrics = choice,
            .mode = settings->is_range_per_kernel ? RANGE_PER_KERNEL : RANGE_PER_SCOPE,
            .scopes = settings->range_scopes,
        };
        status = range_counters_make(&deep->ranges, &options, &problem);
    }
    free(choice);
    if (status == GPUFL_OK && !cupti_listen_launches(deep->options.cupti, true))
        status = problem_set(&problem, GPUFL_E_UNSUPPORTED, "CUPTI does not report launches");
    /* Tracing adds its own instructions to the counts of a scope, and crashes CUPTI while it replays kernels. */
    if (status == GPUFL_OK)
        status = cupti_trace_pause(deep->options.cupti, &problem);
    if (status == GPUFL_OK)
        return;
    range_counters_free(deep->ranges);
    deep->ranges = NULL;
    deep_grants_answer(&deep->grants, DEEP_RANGE_COUNTERS, status, &problem);
}

void deep_make_pm(struct deep *deep)
{
    const struct deep_settings *settings = &deep->options.settings;
    struct problem problem = {""};
    struct metric_choice *choice = calloc(1, sizeof *choice);
    deep_grants_request(&deep->grants, DEEP_PM_SAMPLING);
    gpufl_status status = GPUFL_OK;
    if (settings->engine > GPUFL_ENGINE_TRACE)
        status = problem_set(&problem, GPUFL_E_UNSUPPORTED,
                             "the engine uses the GPU's counters; PM sampling works with engine Trace only");
    else if (!choice)
        status = problem_set(&problem, GPUFL_E_NO_MEMORY, "not enough memory");
    else
        status = metric_choice_parse(choice, PROFILER_PM_SAMPLING, settings->pm_metrics, &problem);
    if (status == GPUFL_OK) {
        const struct pm_sampler_options options = {.cupti = deep->options.cupti,
                                                   .recorder = deep->options.recorder,
                                                   .names = deep->options.names,
                                                   .choice = choice,
                                                   .interval_us = settings->pm_interval_us,
                                                   .keeps_oldest = true};
        status = pm_sampler_make(&deep->pm, &options, &problem);
    }
    if (status == GPUFL_OK)
        status = pm_sampler_start(deep->pm, &problem);
    free(choice);
    if (status == GPUFL_OK)
        return;
    pm_sampler_free(deep->pm);
    deep->pm = NULL;
    deep_grants_answer(&deep->grants, DEEP_PM_SAMPLING, status, &problem);
}
