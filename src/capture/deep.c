/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/deep_parts.h"

#include "base/clock.h"
#include "base/current_thread.h"
#include "base/log.h"
#include "capture/scope_path.h"
#include "capture/thread_log.h"
#include "driver/captures.h"
#include "driver/cuda.h"

#include <stdlib.h>
#include <unistd.h>

static bool has_engine(const struct deep *deep, gpufl_engine one, gpufl_engine other)
{
    return deep->options.settings.engine == one || deep->options.settings.engine == other;
}

struct deep_grants *deep_grants(struct deep *deep)
{
    return &deep->grants;
}

gpufl_engine deep_engine(struct deep *deep, struct problem *why)
{
    return deep_grants_engine(&deep->grants, deep->options.settings.engine, why);
}

bool deep_times_kernels(struct deep *deep)
{
    bool is_counted = deep->options.settings.engine == GPUFL_ENGINE_SASS_METRICS &&
                      !deep_grants_is_refused(&deep->grants, DEEP_SASS_METRICS);
    return !is_counted && (!deep->ranges || atomic_load(&deep->is_tracing));
}

/* The counters for which tracing was paused are unavailable. */
static void resume_tracing(struct deep *deep)
{
    struct problem problem = {""};
    if (cupti_trace_resume(deep->options.cupti, &problem) != GPUFL_OK)
        log_message(GPUFL_LOG_WARNING, "kernels are not traced: %s", problem.text);
    else
        atomic_store(&deep->is_tracing, true);
}

static void fall_back_to_trace(struct deep *deep, gpufl_status status, const struct problem *problem)
{
    for (int part = 0; part < DEEP_PART_COUNT; part++)
        deep_grants_answer(&deep->grants, (enum deep_part)part, status, problem);
    if (deep->windows)
        deep_windows_surrender(deep->windows, problem);
    else if (deep->ranges)
        resume_tracing(deep);
}

/* Nothing can be enabled on it, and it cannot be distinguished from other contexts. */
static void on_unknown_context(void *user, const struct problem *problem)
{
    struct deep *deep = user;
    bool is_first = false;
    for (int part = 0; part < DEEP_CODE; part++) {
        struct deep_grant grant;
        deep_grants_get(&deep->grants, (enum deep_part)part, &grant);
        is_first |= grant.state == DEEP_WAITING;
    }
    if (is_first)
        fall_back_to_trace(deep, GPUFL_E_UNSUPPORTED, problem);
    else
        log_message(GPUFL_LOG_WARNING, "another context is traced without counters or samples: %s", problem->text);
}

static void on_context(void *user, const struct gpu_context *context, bool is_created)
{
    struct deep *deep = user;
    struct problem problem = {""};
    if (!is_created) {
        if (deep->windows)
            deep_windows_detach(deep->windows, context->handle);
        else if (deep->sampler)
            pc_sampler_detach(deep->sampler, context->handle);
        if (deep->ranges)
            range_counters_detach(deep->ranges, context->handle);
        return;
    }
    atomic_store(&deep->has_context, true);
    if (deep->windows) {
        gpufl_status status = deep_windows_attach(deep->windows, context, &problem);
        deep_grants_answer(&deep->grants, DEEP_SASS_METRICS, status, &problem);
    } else if (deep->sampler) {
        gpufl_status status = pc_sampler_attach(deep->sampler, context, &problem);
        deep_grants_answer(&deep->grants, DEEP_PC_SAMPLING, status, &problem);
    }
    if (deep->ranges) {
        gpufl_status status = range_counters_attach(deep->ranges, context, &problem);
        deep_grants_answer(&deep->grants, DEEP_RANGE_COUNTERS, status, &problem);
        if (deep_grants_is_refused(&deep->grants, DEEP_RANGE_COUNTERS))
            resume_tracing(deep);
    }
    if (deep->pm)
        pm_sampler_want(deep->pm, context->device_id);
}

static void on_module(void *user, uint32_t module_id, const void *cubin, size_t cubin_bytes)
{
    struct deep *deep = user;
    (void)module_id;
    if (deep->keeps_code)
        code_store_add(deep->options.code, cubin, cubin_bytes);
}

static void on_capture(void *user, int change, bool is_enter)
{
    struct deep *deep = user;
    if (deep->windows)
        deep_windows_capture(deep->windows, change, is_enter);
    else if (deep->sampler)
        pc_sampler_capture(deep->sampler, is_enter);
    if (deep->ranges)
        range_counters_capture(deep->ranges, change, is_enter);
}

/* Used while kernel records are off for the whole run. */
static void log_launch(struct deep *deep, const struct launch_call *call)
{
    if (!captures_any() && call->graph_kernels)
        recorder_lose(deep->options.recorder, LOSS_GRAPH_NOT_COUNTED, call->graph_kernels);
    else if (!captures_any())
        thread_log_launch(call->symbol, call->correlation_id, call->context_id, 0);
    else if (!captures_here())
        recorder_lose(deep->options.recorder, LOSS_LAUNCH_IN_CAPTURE, 1);
}

static void on_launch(void *user, const struct launch_call *call, bool is_enter)
{
    struct deep *deep = user;
    if (deep->windows)
        deep_windows_launch(deep->windows, call, is_enter);
    else if (deep->sampler)
        pc_sampler_launch(deep->sampler, is_enter);
    if (!deep->ranges)
        return;
    if (is_enter && !atomic_load(&deep->is_tracing))
        log_launch(deep, call);
    range_counters_launch(deep->ranges, call, is_enter, current_thread_id(), is_enter ? clock_log_ns() : 0);
}

gpufl_status deep_make(struct deep **out, const struct deep_options *options)
{
    struct deep *deep = calloc(1, sizeof *deep);
    if (!deep)
        return GPUFL_E_NO_MEMORY;
    deep->options = *options;
    deep_grants_init(&deep->grants);
    deep->listener = (struct cupti_listener){.user = deep,
                                             .on_context = on_context,
                                             .on_unknown_context = on_unknown_context,
                                             .on_module = on_module,
                                             .on_launch = on_launch,
                                             .on_capture = on_capture};
    *out = deep;
    return GPUFL_OK;
}

/* Takes on contexts that were created before us: only the devices' primary ones, which the runtime API uses, can be
 * found. */
static void take_existing_contexts(struct deep *deep)
{
    struct cuda *cuda;
    if (cuda_load(&cuda, false, NULL) != GPUFL_OK)
        return;
    for (int device = 0; device < cuda_device_count(cuda); device++) {
        struct gpu_context context;
        void *handle = cuda_primary_context(cuda, device);
        if (handle && cupti_context_describe(deep->options.cupti, handle, &context))
            on_context(deep, &context, true);
    }
}

void deep_start(struct deep *deep)
{
    const struct deep_settings *settings = &deep->options.settings;
    if (settings->engine > GPUFL_ENGINE_TRACE)
        deep_keep_code(deep);
    if (has_engine(deep, GPUFL_ENGINE_PC_SAMPLING, GPUFL_ENGINE_DEEP) || settings->engine == GPUFL_ENGINE_SASS_METRICS)
        deep_make_sampler(deep);
    if (has_engine(deep, GPUFL_ENGINE_SASS_METRICS, GPUFL_ENGINE_DEEP))
        deep_make_windows(deep);
    if (settings->engine == GPUFL_ENGINE_RANGE_PROFILER)
        deep_make_ranges(deep);
    if (settings->pm_metrics[0])
        deep_make_pm(deep);
    struct problem problem = {""};
    gpufl_status status = cupti_listen(deep->options.cupti, &deep->listener, &problem);
    if (status == GPUFL_OK)
        take_existing_contexts(deep);
    else
        fall_back_to_trace(deep, status, &problem);
}

bool deep_wants_scopes(const struct deep *deep)
{
    return deep->ranges && !deep->options.settings.is_range_per_kernel;
}

void deep_scope(struct deep *deep, bool is_begin, uint32_t stack, const char *name, size_t name_size)
{
    struct cuda *cuda;
    void *context = cuda_load(&cuda, false, NULL) == GPUFL_OK ? cuda_current_context(cuda) : NULL;
    if (is_begin) {
        range_counters_scope_begin(deep->ranges, scope_path_push(stack, name, name_size), 0, context);
    } else {
        int later = scope_path_pop(stack);
        if (later >= 0)
            range_counters_scope_end(deep->ranges, (uint32_t)later);
    }
}

/* Failures on the parts' own threads after they were granted. */
static void look_for_trouble(struct deep *deep)
{
    struct problem problem = {""};
    struct pm_sampler_totals pm = deep->pm ? pm_sampler_totals(deep->pm) : (struct pm_sampler_totals){0};
    if (pm.devices > pm.devices_failed)
        deep_grants_answer(&deep->grants, DEEP_PM_SAMPLING, GPUFL_OK, &problem);
    else if (deep->pm && pm_sampler_trouble(deep->pm, &problem))
        deep_grants_answer(&deep->grants, DEEP_PM_SAMPLING, GPUFL_E_UNSUPPORTED, &problem);
    if (!deep->windows || deep->options.settings.engine != GPUFL_ENGINE_DEEP)
        return;
    if (pc_sampler_totals(deep->sampler).contexts)
        deep_grants_answer(&deep->grants, DEEP_PC_SAMPLING, GPUFL_OK, &problem);
    else if (pc_sampler_trouble(deep->sampler, &problem))
        deep_grants_answer(&deep->grants, DEEP_PC_SAMPLING, GPUFL_E_UNSUPPORTED, &problem);
}

/* For an engine that counts: kernels of graphs are timed but not counted. */
static void lose_graph_kernels(struct deep *deep, uint64_t graph_kernels)
{
    if (deep->counters && !deep_grants_is_refused(&deep->grants, DEEP_SASS_METRICS))
        recorder_lose(deep->options.recorder, LOSS_GRAPH_NOT_COUNTED, graph_kernels - deep->graph_kernels);
    deep->graph_kernels = graph_kernels;
}

void deep_round(struct deep *deep, int64_t complete_ns, uint64_t graph_kernels)
{
    if (graph_kernels != deep->graph_kernels)
        lose_graph_kernels(deep, graph_kernels);
    if (deep->sampler)
        pc_sampler_write(deep->sampler, complete_ns);
    if (deep->counters)
        sass_counters_write(deep->counters);
    if (deep->windows)
        deep_windows_write(deep->windows);
    if (deep->ranges)
        range_counters_write(deep->ranges);
    if (deep->pm)
        pm_sampler_write(deep->pm);
    look_for_trouble(deep);
}

bool deep_flush_begin(struct deep *deep)
{
    return !deep->windows || deep_windows_flush_begin(deep->windows);
}

void deep_flush_end(struct deep *deep)
{
    if (deep->windows)
        deep_windows_flush_end(deep->windows);
}

/* At the end: refuses granted parts that failed before they produced any data. */
static void revoke_empty(struct deep *deep)
{
    struct problem problem = {""};
    struct sass_totals sass = {0};
    struct range_totals range = deep->ranges ? range_counters_totals(deep->ranges) : (struct range_totals){0};
    bool is_over = false;
    if (deep->counters)
        sass_counters_totals(deep->counters, &sass);
    bool has_trouble = deep->windows && deep_windows_trouble(deep->windows, &problem, &is_over);
    if (has_trouble && !sass.counts)
        deep_grants_revoke(&deep->grants, DEEP_SASS_METRICS, GPUFL_E_UNSUPPORTED, &problem);
    if (deep->sampler && !pc_sampler_totals(deep->sampler).samples &&
        (pc_sampler_trouble(deep->sampler, &problem) || is_over))
        deep_grants_revoke(&deep->grants, DEEP_PC_SAMPLING, GPUFL_E_UNSUPPORTED, &problem);
    if (deep->ranges && !range.scope_events && !range.kernel_events && range_counters_failure(deep->ranges, &problem))
        deep_grants_revoke(&deep->grants, DEEP_RANGE_COUNTERS, GPUFL_E_UNSUPPORTED, &problem);
    gpufl_status pm = deep->pm ? pm_sampler_outcome(deep->pm, &problem) : GPUFL_OK;
    if (pm != GPUFL_OK)
        deep_grants_revoke(&deep->grants, DEEP_PM_SAMPLING, pm, &problem);
}

void deep_stop(struct deep *deep)
{
    bool is_quiet = deep->windows && deep_windows_stop(deep->windows);
    if (deep->counters && !deep_windows_are_left(deep->windows))
        sass_counters_stop(deep->counters, clock_log_ns());
    if (deep->sampler && !deep_windows_are_left(deep->windows))
        pc_sampler_stop(deep->sampler, is_quiet);
    if (pc_sampler_is_stuck(deep->sampler)) /* CUPTI's callbacks cannot be switched off */
        cupti_listen_no_more();
    if (deep->windows)
        deep_windows_release(deep->windows);
    if (deep->ranges)
        range_counters_stop(deep->ranges);
    if (deep->pm)
        pm_sampler_stop(deep->pm);
}

void deep_unblock_launches(struct deep *deep)
{
    if (deep->windows)
        deep_windows_unblock_launches(deep->windows);
    if (deep->sampler)
        pc_sampler_unblock_launches(deep->sampler);
    if (deep->ranges)
        range_counters_unblock_launches(deep->ranges);
}

void deep_finish(struct deep *deep, uint64_t graph_kernels)
{
    deep_round(deep, INT64_MAX, graph_kernels);
    revoke_empty(deep);
    if (atomic_load(&deep->has_context))
        deep_grants_close(&deep->grants);
}

bool deep_free(struct deep *deep)
{
    if (!deep)
        return true;
    if (deep_windows_are_left(deep->windows) || pc_sampler_is_stuck(deep->sampler) || pm_sampler_is_left(deep->pm))
        return false; /* CUPTI and threads may still use it */
    deep_windows_free(deep->windows);
    sass_counters_free(deep->counters);
    pc_sampler_free(deep->sampler);
    range_counters_free(deep->ranges);
    pm_sampler_free(deep->pm);
    deep_grants_destroy(&deep->grants);
    free(deep);
    return true;
}

void deep_abandon(struct deep *deep)
{
    if (!deep)
        return;
    if (deep->windows)
        deep_windows_abandon(deep->windows);
    if (deep->counters)
        sass_counters_abandon(deep->counters);
    if (deep->sampler)
        pc_sampler_abandon(deep->sampler);
    if (deep->ranges)
        range_counters_abandon(deep->ranges);
    if (deep->pm)
        pm_sampler_abandon(deep->pm);
}

size_t deep_bytes(struct deep *deep)
{
    return sizeof *deep + (deep->sampler ? pc_sampler_bytes(deep->sampler) : 0) +
           (deep->counters ? sass_counters_bytes(deep->counters) : 0) +
           (deep->ranges ? range_counters_bytes(deep->ranges) : 0) + (deep->pm ? pm_sampler_bytes(deep->pm) : 0);
}
