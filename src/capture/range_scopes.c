/* SPDX-License-Identifier: Apache-2.0 */
/* Counters per scope. A target is the path of a scope; each of its instances collects the next pass. CUPTI must
 * collect all passes of one target before those of another, so one target is in focus until it is complete and the
 * others wait, those without a result first. A target that stops occurring loses the focus: its remaining passes are
 * collected empty and discarded. */
#include "capture/range_engine.h"

#include "base/user_time.h"
#include "driver/captures.h"

#include <stdio.h>
#include <stdlib.h>

/* The image of a target holds one range, so its name does not matter; CUPTI limits the length of names, paths are
 * unlimited. */
static const char range_name[] = "scope";

bool range_scopes_parse(struct range_counters *counters, const char *text)
{
    if (!text || !text[0])
        return true;
    counters->scope_text = strdup(text);
    char *rest = counters->scope_text;
    for (char *name; rest && (name = strsep(&rest, ","));) {
        if (!name[0])
            continue;
        if (counters->scope_name_count == RANGE_SCOPE_NAMES_MAX)
            return false;
        counters->scope_names[counters->scope_name_count++] = name;
    }
    return counters->scope_text != NULL;
}

static bool is_target(const struct range_counters *counters, const char *path, uint32_t depth)
{
    if (!counters->scope_name_count)
        return depth == 0;
    const char *bar = strrchr(path, '|'), *name = bar ? bar + 1 : path;
    for (uint32_t i = 0; i < counters->scope_name_count; i++)
        if (!strcmp(counters->scope_names[i], name) || !strcmp(counters->scope_names[i], path))
            return true;
    return false;
}

static void target_rewind(struct range_target *target)
{
    target->place = (struct range_place){0, 1};
    target->scope.passes_collected = 0;
    target->scope.instances = 0;
}

/* -1: it does not exist and there is no memory for it, which is counted. */
static int32_t target_find(struct range_context *context, const char *path, uint32_t depth)
{
    struct range_counters *counters = context->counters;
    for (uint32_t i = 0; i < context->target_count; i++)
        if (!strcmp(context->targets[i].scope.path, path))
            return (int32_t)i;
    struct range_target *target = &context->targets[context->target_count];
    if (context->target_count == RANGE_TARGETS_MAX)
        goto no_memory;
    *target = (struct range_target){.scope = {.path = strdup(path), .depth = depth}};
    target->image = target->scope.path ? range_memory_take(counters, context->image_bytes) : NULL;
    if (!target->image) {
        free(target->scope.path);
        goto no_memory;
    }
    target_rewind(target);
    struct problem problem = {""};
    if (!context->has_failed &&
        range_profiler_image_reset(context->profiler, target->image, context->image_bytes, &problem) != GPUFL_OK)
        range_context_fail(context, &problem);
    return (int32_t)context->target_count++;
no_memory:
    recorder_lose(counters->recorder, LOSS_RANGE_MEMORY, 1);
    return -1;
}

static gpufl_status decode(struct range_context *context, struct problem *problem)
{
    size_t dropped = 0;
    if (!context->has_undecoded)
        return GPUFL_OK;
    context->has_undecoded = false;
    gpufl_status status = range_profiler_decode(context->profiler, &dropped, problem);
    if (dropped)
        recorder_lose(context->counters->recorder, LOSS_RANGES_DROPPED, dropped);
    return status;
}

static gpufl_status target_configure(struct range_context *context, const struct range_target *target,
                                     struct problem *problem)
{
    const struct range_config config = {.kind = RANGE_NAMED,
                                        .plan = &context->chip->plan,
                                        .image = target->image,
                                        .image_bytes = context->image_bytes,
                                        .ranges_max = 1,
                                        .place = target->place};
    return range_profiler_configure(context->profiler, &config, problem);
}

/* CUPTI accepts another target only after the last pass of this one, and recreating its object before that crashed a
 * program: the missing passes are collected empty and discarded. Call it in a quiet moment. */
static gpufl_status passes_finish(struct range_context *context, struct problem *problem)
{
    struct range_pass pass = {0};
    for (size_t left = context->chip->plan.passes; left && !pass.is_last; left--) {
        gpufl_status status = range_profiler_start(context->profiler, problem);
        if (status == GPUFL_OK)
            status = range_profiler_push(context->profiler, range_name, problem);
        if (status == GPUFL_OK)
            status = range_profiler_pop(context->profiler, problem);
        if (status == GPUFL_OK)
            status = range_profiler_stop(context->profiler, &pass, problem);
        if (status != GPUFL_OK)
            return status;
    }
    context->has_undecoded = true;
    context->is_midway = false;
    return decode(context, problem);
}

static gpufl_status focus_leave(struct range_context *context, struct problem *problem)
{
    struct range_target *target = &context->targets[context->focus];
    context->focus = -1;
    target_rewind(target);
    gpufl_status status = context->is_midway ? passes_finish(context, problem) : GPUFL_OK;
    if (status == GPUFL_OK)
        status = range_profiler_image_reset(context->profiler, target->image, context->image_bytes, problem);
    return status;
}

static bool has_unwritten(const struct range_context *context)
{
    for (uint32_t i = 0; i < context->target_count; i++)
        if (!context->targets[i].was_written)
            return true;
    return false;
}

/* Whether this target gets the focus. */
static bool focus_take(struct range_context *context, int32_t index, struct problem *problem, gpufl_status *status)
{
    *status = GPUFL_OK;
    if (context->focus == index) {
        context->others_begun = 0;
        return true;
    }
    /* A target that already has values yields to those without. */
    bool has_values = context->focus >= 0 && context->targets[context->focus].was_written;
    bool is_patient = context->others_begun++ < RANGE_PATIENCE && !(has_values && !context->targets[index].was_written);
    if (context->focus >= 0 && is_patient)
        return false;
    if (context->focus < 0 && context->targets[index].was_written && has_unwritten(context) && is_patient)
        return false;
    if (context->focus >= 0)
        *status = focus_leave(context, problem);
    if (*status == GPUFL_OK)
        *status = target_configure(context, &context->targets[index], problem);
    context->focus = index;
    context->others_begun = 0;
    return true;
}

/* Begins an instance of the target; false: another target has the focus, or the context has failed. Call it in a
 * quiet moment unless the context had failed before. */
static bool instance_begin(struct range_context *context, int32_t index, uint64_t scope_key)
{
    struct range_target *target = &context->targets[index];
    struct problem problem = {""};
    target->scope.instances++;
    target->scope.scope_key = scope_key;
    gpufl_status status;
    if (context->has_failed || !focus_take(context, index, &problem, &status))
        return false;
    if (status != GPUFL_OK || range_profiler_start(context->profiler, &problem) != GPUFL_OK ||
        range_profiler_push(context->profiler, range_name, &problem) != GPUFL_OK) {
        range_context_fail(context, &problem);
        return false;
    }
    context->open = index;
    context->instance++;
    target->instance_start_ns = clock_log_ns();
    return true;
}

/* True: the scope is being measured. The context's lock is held. */
static bool scope_open(struct range_context *context, const char *path, uint32_t depth, uint64_t scope_key)
{
    struct range_counters *counters = context->counters;
    if (context->open >= 0) {
        recorder_lose(counters->recorder, LOSS_RANGE_OVERLAP, 1);
        return false;
    }
    if (!context->has_failed && captures_any()) { /* a begin would invalidate the graph */
        recorder_lose(counters->recorder, LOSS_RANGE_GRAPH, 1);
        return false;
    }
    bool is_quiet = !context->has_failed && range_quiet_begin(counters);
    if (!is_quiet && !context->has_failed) {
        recorder_lose(counters->recorder, LOSS_RANGE_BUSY, 1);
        return false;
    }
    int32_t index = target_find(context, path, depth);
    bool is_open = index >= 0 && instance_begin(context, index, scope_key);
    if (is_quiet)
        range_quiet_end(counters);
    return is_open;
}

static bool path_copy(struct range_counters *counters, struct range_scope *to, const struct range_scope *from)
{
    size_t bytes = strlen(from->path) + 1;
    *to = *from;
    to->path = range_memory_take(counters, bytes);
    if (to->path)
        memcpy(to->path, from->path, bytes);
    return to->path;
}

/* reason NULL: with the counters of the target's image. */
static void target_send(struct range_context *context, struct range_target *target, const char *reason)
{
    struct range_counters *counters = context->counters;
    struct range_result *result = range_result_make(context);
    if (!result || !path_copy(counters, &result->scope, &target->scope))
        goto no_memory;
    if (reason) {
        snprintf(result->reason, sizeof result->reason, "%s", reason);
    } else {
        result->image = range_memory_take(counters, context->image_bytes);
        if (!result->image)
            goto no_memory;
        memcpy(result->image, target->image, context->image_bytes);
    }
    range_result_send(counters, result);
    target->was_written = true;
    return;
no_memory:
    if (result)
        range_result_free(counters, result);
    recorder_lose(counters->recorder, LOSS_RANGE_MEMORY, 1);
}

/* All passes are collected: passes the result on and starts over. */
static gpufl_status target_complete(struct range_context *context, struct range_target *target, struct problem *problem)
{
    gpufl_status status = decode(context, problem);
    if (status != GPUFL_OK)
        return status;
    target_send(context, target, NULL);
    target_rewind(target);
    context->focus = -1;
    context->is_midway = false;
    return range_profiler_image_reset(context->profiler, target->image, context->image_bytes, problem);
}

/* Call it in a quiet moment. */
static gpufl_status instance_end(struct range_context *context, struct range_target *target, int64_t end_ns,
                                 struct problem *problem)
{
    struct range_scope *scope = &target->scope;
    struct range_pass pass = {0};
    gpufl_status status = range_profiler_pop(context->profiler, problem);
    if (status == GPUFL_OK)
        status = range_profiler_stop(context->profiler, &pass, problem);
    if (status != GPUFL_OK)
        return status;
    if (!pass.is_last && pass.next.pass_index != target->place.pass_index + 1)
        return problem_set(problem, GPUFL_E_UNSUPPORTED,
                           "CUPTI continued with pass %zu of a scope after pass %zu; its counters cannot be merged",
                           pass.next.pass_index, target->place.pass_index);
    if (!scope->passes_collected++)
        scope->start_ns = target->instance_start_ns;
    scope->end_ns = end_ns;
    target->place = pass.next;
    context->has_undecoded = context->is_midway = true;
    atomic_fetch_add(&context->counters->passes, 1);
    return pass.is_last ? target_complete(context, target, problem) : GPUFL_OK;
}

static void scope_close(struct range_context *context)
{
    if (context->open < 0) /* the context failed or was destroyed meanwhile */
        return;
    struct range_target *target = &context->targets[context->open];
    int64_t end_ns = clock_log_ns();
    struct problem problem = {""};
    context->open = -1;
    if (!range_quiet_begin(context->counters)) {
        context->is_stuck = true;
        (void)problem_set(&problem, GPUFL_E_BUSY, "a launch did not end in time when the scope ended");
        range_context_fail(context, &problem);
        return;
    }
    if (instance_end(context, target, end_ns, &problem) != GPUFL_OK)
        range_context_fail(context, &problem);
    range_quiet_end(context->counters);
}

void range_scopes_drop_open(struct range_context *context)
{
    struct problem problem = {""};
    struct range_pass pass = {0};
    if (context->open < 0 || context->has_failed)
        return;
    recorder_lose(context->counters->recorder, LOSS_RANGE_GRAPH, 1);
    context->open = -1;
    if (!range_quiet_begin(context->counters)) {
        context->is_stuck = true;
        (void)problem_set(&problem, GPUFL_E_BUSY, "a launch did not end in time before a graph");
        range_context_fail(context, &problem);
        return;
    }
    gpufl_status status = range_profiler_pop(context->profiler, &problem);
    if (status == GPUFL_OK)
        status = range_profiler_stop(context->profiler, &pass, &problem);
    context->is_midway = !pass.is_last;
    context->has_undecoded = true;
    if (status == GPUFL_OK)
        status = pass.is_last ? decode(context, &problem) : GPUFL_OK;
    if (status == GPUFL_OK)
        status = focus_leave(context, &problem);
    if (status != GPUFL_OK)
        range_context_fail(context, &problem);
    range_quiet_end(context->counters);
}

void range_scopes_end(struct range_context *context)
{
    struct range_pass pass;
    if (context->open >= 0 && !context->is_stuck &&
        range_profiler_pop(context->profiler, &(struct problem){""}) == GPUFL_OK)
        (void)!range_profiler_stop(context->profiler, &pass, &(struct problem){""});
    context->open = -1;
    for (uint32_t i = 0; i < context->target_count; i++) {
        struct range_target *target = &context->targets[i];
        size_t needed = context->chip->plan.passes;
        char reason[RANGE_REASON_BYTES];
        if (target->was_written)
            continue;
        if (context->has_failed)
            snprintf(reason, sizeof reason, "%s", context->problem.text);
        else
            snprintf(reason, sizeof reason,
                     "the scope ran %llu time%s; %zu passes in a row are needed (use fewer metrics, fewer scopes or "
                     "run it more often)",
                     (unsigned long long)target->scope.instances, target->scope.instances == 1 ? "" : "s", needed);
        target_send(context, target, reason);
    }
}

static void scope_begin(struct range_counters *counters, struct range_thread *thread, const char *path,
                        uint64_t scope_key, void *handle)
{
    uint32_t depth = thread->depth++;
    if (thread->scope_context || !is_target(counters, path, depth))
        return;
    struct range_context *context = range_context_take(counters, handle);
    if (!context) {
        if (!atomic_load(&counters->has_refused))
            recorder_lose(counters->recorder, LOSS_RANGE_NO_CONTEXT, 1);
        return;
    }
    uint64_t start_ticks = clock_ticks();
    pthread_mutex_lock(&context->lock);
    bool is_open = scope_open(context, path, depth, scope_key);
    pthread_mutex_unlock(&context->lock);
    user_time_since(USER_TIME_SWITCHES, start_ticks);
    if (!is_open) {
        range_context_give(context);
        return;
    }
    thread->scope_context = context;
    thread->open_depth = depth;
    thread->instance = context->instance;
}

static void measured_scope_end(struct range_thread *thread)
{
    struct range_context *context = thread->scope_context;
    thread->scope_context = NULL;
    uint64_t start_ticks = clock_ticks();
    pthread_mutex_lock(&context->lock);
    if (thread->instance == context->instance) /* otherwise the instance was dropped, and another one is open */
        scope_close(context);
    pthread_mutex_unlock(&context->lock);
    user_time_since(USER_TIME_SWITCHES, start_ticks);
    range_context_give(context);
}

void range_counters_scope_begin(struct range_counters *counters, const char *path, uint64_t scope_key, void *handle)
{
    struct range_thread *thread = range_thread_state(counters);
    if (counters->mode == RANGE_PER_SCOPE)
        scope_begin(counters, thread, path ? path : "", scope_key, handle);
}

void range_counters_scope_end(struct range_counters *counters, uint32_t later)
{
    struct range_thread *thread = range_thread_state(counters);
    if (counters->mode != RANGE_PER_SCOPE || later >= thread->depth)
        return; /* or it began before this engine */
    uint32_t depth = --thread->depth - later;
    if (thread->scope_context && depth < thread->open_depth)
        thread->open_depth--;
    else if (thread->scope_context && depth == thread->open_depth)
        measured_scope_end(thread);
}
