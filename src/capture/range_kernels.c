/* SPDX-License-Identifier: Apache-2.0 */
/* Counters per kernel. CUPTI replays each launch inside the launch call and stores the ranges in order. Launches
 * into one context are therefore serialized from entry to exit: CUPTI serializes them anyway, and only then is the
 * nth range known to be the nth launch. The counters are read on entry to a launch, as in CUPTI's own injection
 * sample. A program that cannot be serialized (a launch that waits for another thread's) continues after a timeout,
 * and the kernels of that reading have no names.
 *
 * A graph is neither captured nor launched while CUPTI counts: the number of ranges of its launch depends on what
 * was enabled when it was captured, and reading counters invalidates a capture (H200, tests/device/graph_probe.cu). */
#include "capture/range_engine.h"

#include "base/user_time.h"
#include "driver/captures.h"

#include <errno.h>

size_t range_launches_bytes(const struct range_counters *counters)
{
    return counters->kernels_max * sizeof(struct range_launch);
}

static gpufl_status window_begin(struct range_context *context, struct problem *problem)
{
    context->launch_count = 0;
    context->is_mixed = false;
    gpufl_status status = range_profiler_image_reset(context->profiler, context->image, context->image_bytes, problem);
    const struct range_config config = {.kind = RANGE_KERNELS,
                                        .plan = &context->chip->plan,
                                        .image = context->image,
                                        .image_bytes = context->image_bytes,
                                        .ranges_max = context->kernels_max,
                                        .place = {0, 1}};
    if (status == GPUFL_OK)
        status = range_profiler_configure(context->profiler, &config, problem);
    if (status == GPUFL_OK)
        status = range_profiler_start(context->profiler, problem);
    return status;
}

gpufl_status range_kernels_begin(struct range_context *context, struct problem *problem)
{
    struct range_counters *counters = context->counters;
    const struct metric_choice *metrics = &context->chip->metrics;
    gpufl_status status = GPUFL_OK;
    /* One image is filled while others wait for the collector. */
    for (context->kernels_max = counters->kernels_max;; context->kernels_max /= 2) {
        status = range_profiler_image_bytes(context->profiler, metrics->list, metrics->count, context->kernels_max,
                                            &context->image_bytes, problem);
        if (status != GPUFL_OK)
            return status;
        if (context->kernels_max == 1 || context->image_bytes <= RANGE_BYTES_MAX / 4)
            break;
    }
    context->image = range_memory_take(counters, context->image_bytes);
    context->launches = range_memory_take(counters, range_launches_bytes(counters));
    if (!context->image || !context->launches)
        return problem_set(problem, GPUFL_E_NO_MEMORY,
                           "the counters of %u kernels take %zu bytes; choose fewer metrics", context->kernels_max,
                           context->image_bytes);
    return window_begin(context, problem);
}

/* Passes the filled image and launches to the collector and takes empty ones. */
static void window_send(struct range_context *context)
{
    struct range_counters *counters = context->counters;
    struct range_result *result = range_result_make(context);
    uint8_t *image = range_memory_take(counters, context->image_bytes);
    struct range_launch *launches = range_memory_take(counters, range_launches_bytes(counters));
    if (!result || !image || !launches) {
        range_memory_give(counters, result, sizeof *result);
        range_memory_give(counters, image, context->image_bytes);
        range_memory_give(counters, launches, range_launches_bytes(counters));
        recorder_lose(counters->recorder, LOSS_RANGE_MEMORY, context->launch_count);
        return;
    }
    result->image = context->image;
    result->launches = context->launches;
    result->launch_count = context->launch_count;
    result->is_mixed = context->is_mixed;
    context->image = image;
    context->launches = launches;
    range_result_send(counters, result);
}

/* Reads the counters of the launches so far. */
static gpufl_status window_end(struct range_context *context, struct problem *problem)
{
    struct range_pass pass;
    size_t dropped = 0;
    gpufl_status status = range_profiler_stop(context->profiler, &pass, problem);
    if (status == GPUFL_OK)
        status = range_profiler_decode(context->profiler, &dropped, problem);
    if (status != GPUFL_OK)
        return status;
    if (dropped)
        recorder_lose(context->counters->recorder, LOSS_RANGES_DROPPED, dropped);
    if (context->launch_count)
        window_send(context);
    context->launch_count = 0;
    return GPUFL_OK;
}

/* Call with the context's lock held and no launch into it in progress. If other threads do not become quiet, the
 * next launch tries again. */
static void window_turn(struct range_context *context)
{
    struct problem problem = {""};
    if (context->has_failed || !context->launch_count || !range_quiet_begin(context->counters))
        return;
    if (window_end(context, &problem) != GPUFL_OK || window_begin(context, &problem) != GPUFL_OK)
        range_context_fail(context, &problem);
    range_quiet_end(context->counters);
}

/* False: a launch is still in progress after the longest wait. */
static bool turn_await(struct range_context *context)
{
    struct range_counters *counters = context->counters;
    int64_t until_ns = clock_mono_ns() + atomic_load(&counters->wait_ms) * INT64_C(1000000);
    const struct timespec until = {until_ns / 1000000000, until_ns % 1000000000};
    while (context->in_flight)
        if (pthread_cond_timedwait(&context->idle, &context->lock, &until) == ETIMEDOUT && context->in_flight) {
            atomic_store(&counters->wait_ms, RANGE_WAIT_SHORT_MS);
            return false;
        }
    return true;
}

void range_kernels_pause(struct range_context *context)
{
    struct problem problem = {""};
    if (context->has_failed || context->is_paused)
        return;
    if (!turn_await(context) || !range_quiet_begin(context->counters)) {
        context->is_stuck = true;
        (void)problem_set(&problem, GPUFL_E_BUSY, "a launch did not end in time before a graph");
        range_context_fail(context, &problem);
        return;
    }
    context->is_paused = true;
    if (window_end(context, &problem) != GPUFL_OK)
        range_context_fail(context, &problem);
    range_quiet_end(context->counters);
}

/* Resumes counting at the first launch after graphs, when no launch into the context is in progress. */
static void resume(struct range_context *context)
{
    struct problem problem = {""};
    if (context->has_failed || captures_any() || !range_quiet_begin(context->counters))
        return;
    context->is_paused = false;
    if (window_begin(context, &problem) != GPUFL_OK)
        range_context_fail(context, &problem);
    range_quiet_end(context->counters);
}

void range_kernels_end(struct range_context *context)
{
    struct problem problem = {""};
    if (context->has_failed || context->is_paused)
        return;
    if (context->is_stuck)
        recorder_lose(context->counters->recorder, LOSS_RANGES_DROPPED, context->launch_count);
    else if (window_end(context, &problem) != GPUFL_OK)
        range_context_fail(context, &problem);
}

static const char *symbol_keep(struct range_counters *counters, const char *symbol)
{
    if (!symbol)
        return NULL;
    pthread_mutex_lock(&counters->results_lock);
    uint32_t id = intern_id(&counters->symbols, symbol, strlen(symbol), NULL);
    const char *text = id ? intern_text(&counters->symbols, id) : NULL;
    pthread_mutex_unlock(&counters->results_lock);
    if (!id)
        recorder_lose(counters->recorder, LOSS_FUNCTION_NAMES, 1);
    return text;
}

static void launch_keep(struct range_context *context, const struct launch_call *call, uint32_t thread_id,
                        int64_t now_ns)
{
    struct range_counters *counters = context->counters;
    if (context->has_failed || context->launch_count >= context->kernels_max)
        return;
    context->launches[context->launch_count++] =
        (struct range_launch){.symbol = symbol_keep(counters, call->symbol),
                              .time_ns = now_ns,
                              .ordinal = atomic_fetch_add(&counters->launch_ordinal, 1),
                              .correlation_id = call->correlation_id,
                              .thread_id = thread_id};
}

static void launch_enter(struct range_context *context, const struct launch_call *call, uint32_t thread_id,
                         int64_t now_ns)
{
    pthread_mutex_lock(&context->lock);
    bool has_turn = context->has_failed || turn_await(context);
    if (has_turn && call->is_graph)
        range_kernels_pause(context);
    else if (has_turn && context->is_paused)
        resume(context);
    else if (has_turn && context->launch_count >= context->kernels_max)
        window_turn(context);
    context->is_mixed |= !has_turn;
    context->in_flight++;
    if (!context->is_paused)
        launch_keep(context, call, thread_id, now_ns);
    pthread_mutex_unlock(&context->lock);
}

static void launch_exit(struct range_context *context)
{
    pthread_mutex_lock(&context->lock);
    if (!--context->in_flight)
        pthread_cond_broadcast(&context->idle);
    pthread_mutex_unlock(&context->lock);
}

/* A launch that created its context, which was then attached before the kernel ran: the launch is counted, but not
 * known yet. */
static void launch_first(struct range_counters *counters, const struct launch_call *call, uint32_t thread_id,
                         int64_t now_ns)
{
    struct range_context *context = call->context ? range_context_take(counters, call->context) : NULL;
    if (!context)
        return;
    pthread_mutex_lock(&context->lock);
    context->is_mixed |= context->in_flight != 0;
    if (!context->is_paused)
        launch_keep(context, call, thread_id, now_ns);
    pthread_mutex_unlock(&context->lock);
    range_context_give(context);
}

static void graph_in_scope(struct range_counters *counters, void *handle)
{
    struct range_context *context = handle ? range_context_take(counters, handle) : NULL;
    if (!context)
        return;
    pthread_mutex_lock(&context->lock);
    range_scopes_drop_open(context);
    pthread_mutex_unlock(&context->lock);
    range_context_give(context);
}

void range_counters_launch(struct range_counters *counters, const struct launch_call *call, bool is_enter,
                           uint32_t thread_id, int64_t now_ns)
{
    struct range_thread *thread = range_thread_state(counters);
    bool is_counted = counters->mode == RANGE_PER_KERNEL;
    if (is_enter == thread->is_launching)
        return; /* a launch that calls another launch (runtime and driver) counts once */
    if (is_enter) {
        thread->entered_ticks = clock_ticks();
        thread->is_uncounted = captures_any();
        if (!is_counted && call->is_graph && !thread->is_uncounted)
            graph_in_scope(counters, call->context);
        if (is_counted && !thread->is_uncounted && call->context &&
            (thread->launch_context = range_context_take(counters, call->context)))
            launch_enter(thread->launch_context, call, thread_id, now_ns);
        launch_gate_enter(&counters->gate);
        thread->is_launching = true;
        return;
    }
    thread->is_launching = false;
    launch_gate_leave(&counters->gate);
    if (thread->launch_context) {
        launch_exit(thread->launch_context);
        range_context_give(thread->launch_context);
        thread->launch_context = NULL;
        user_time_since(USER_TIME_REPLAY, thread->entered_ticks);
    } else if (is_counted && !thread->is_uncounted) {
        launch_first(counters, call, thread_id, now_ns);
    }
}
