/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/collector_state.h"

#include "base/clock.h"
#include "base/own_thread.h"
#include "base/stages.h"
#include "base/watch.h"
#include "capture/buffer_pool.h"
#include "capture/user_calls.h"

#include <stdlib.h>

enum {
    wait_ms = 100,
    first_wait_ms = 5, /* until the device's limits are read: at exit the driver may no longer answer */
    first_wait_until_ms = 2000,
    batch_age_ms = 250,
    scale_ms = 100,
    flush_ms = 1000, /* a flush costs CUPTI up to a millisecond, and a long period only delays data */
    report_ms = 5000,
    buffers_per_round = 64,
    code_deadline_ms = 5000 /* for code that waits to be stored at the end */
};

static const int64_t join_wait_ns = 10 * INT64_C(1000000000); /* without a session's limit */

static void on_stack(void *user, const struct stack_event *event)
{
    struct collector *collector = user;
    if (collector->stacks && collector->joiner)
        activity_joiner_stack(collector->joiner, event->correlation_id, stacks_identify(collector->stacks, event));
}

static void on_call(void *user, const struct user_call *call, const struct call_time *time)
{
    struct collector *collector = user;
    observed_calls_add(&collector->calls, time->state, time->start_ns, time->end_ns, call->has_kernel);
    if (collector->joiner)
        activity_joiner_user_call(collector->joiner, call, time);
}

static void on_launch(void *user, const struct launch_event *event, int64_t time_ns, uint32_t thread_id,
                      uint64_t scope_id)
{
    struct collector *collector = user;
    if (collector->joiner)
        activity_joiner_launch(collector->joiner, event, time_ns, thread_id, scope_id);
}

static bool keeps_sources_of_stacks(const struct collector_options *options)
{
    return options->with_trace && options->with_stacks && options->deep.with_source;
}

gpufl_status collector_make(struct collector **out, const struct collector_options *options)
{
    struct collector *collector = calloc(1, sizeof *collector);
    if (!collector)
        return GPUFL_E_NO_MEMORY;
    collector->options = *options;
    yielding_init(&collector->yielding);
    gpufl_status status = recorder_open(&collector->recorder, options->writer, options->session_id, options->app_name);
    names_open(&collector->names, &collector->recorder);
    if (deep_is_wanted(&options->deep) || keeps_sources_of_stacks(options))
        collector->recorder.channels |= 1u << CHANNEL_SASS;
    if (status == GPUFL_OK)
        status = thread_logs_setup(buffer_pool_wake);
    if (status == GPUFL_OK)
        status = scope_tracker_make(&collector->scopes, &collector->recorder,
                                    &(struct thread_sink){collector, on_stack, on_call, on_launch});
    if (status == GPUFL_OK)
        status = buffer_pool_setup();
    if (status != GPUFL_OK) {
        collector_free(collector);
        return status;
    }
    call_state_set(CALLS_PLAIN);
    clock_setup(NULL);
    clock_log_start();
    for (int i = 0; i < USER_TIME_COUNT; i++)
        collector->user_ticks_before[i] = user_time_ticks((enum user_time)i);
    tick_scale_start(&collector->scale);
    scope_tracker_discard(collector->scopes);
    thread_logs_start();
    collector->started_mono_ns = collector->scale_mono_ns = clock_mono_ns();
    collector->flush_mono_ns = collector->report_mono_ns = collector->started_mono_ns;
    *out = collector;
    return GPUFL_OK;
}

struct recorder *collector_recorder(struct collector *collector)
{
    return &collector->recorder;
}

static bool is_due(int64_t *last_ns, int64_t now_ns, int64_t period_ms)
{
    if (now_ns - *last_ns < period_ms * 1000000)
        return false;
    *last_ns = now_ns;
    return true;
}

static gpufl_status make_joiner(struct collector *collector, const struct cupti_trace_result *cupti)
{
    const struct activity_joiner_options options = {
        .recorder = &collector->recorder,
        .history = scope_tracker_history(collector->scopes),
        .cupti = collector->cupti,
        .kernels = collector->kernels,
        .has_calls = cupti->granted & CUPTI_GRANTED_API,
        .has_system_thread_id = cupti->has_system_thread_id,
        .with_graphs = collector->options.with_graphs,
    };
    return collector->joiner ? GPUFL_OK : activity_joiner_make(&collector->joiner, &options);
}

/* AMD's trace when it can be read into the joiner; NULL: there is none, or no memory. */
static struct amd_trace *readable_amd(struct collector *collector)
{
    static const struct cupti_trace_result no_cupti = {.has_system_thread_id = true};
    struct amd_trace *amd = atomic_load(&collector->amd);
    bool is_ready = amd && make_joiner(collector, &no_cupti) == GPUFL_OK &&
                    activity_joiner_open(collector->joiner, ACTIVITY_FROM_ROCPROFILER) == GPUFL_OK;
    return is_ready ? amd : NULL;
}

static void read_buffer(struct collector *collector, struct amd_trace *amd, const struct filled_buffer *filled)
{
    size_t count = filled->valid_bytes / sizeof(struct activity);
    if (!filled->is_decoded && collector->cupti)
        activity_joiner_read(collector->joiner, filled->data, filled->valid_bytes);
    else if (filled->is_decoded && amd)
        amd_trace_accept(amd, collector->joiner, (const struct activity *)(const void *)filled->data, count);
    else if (filled->is_decoded)
        recorder_lose(&collector->recorder, LOSS_ROCPROFILER_DROPPED, count);
}

/* Logs a step of the wall clock before any record that CUPTI stamped after it. */
static void notice_step(struct collector *collector)
{
    int64_t step_ns = clock_take_step();
    if (!step_ns)
        return;
    tick_scale_update(&collector->scale);
    collector_write_clock_sync(collector, step_ns);
}

/* Returns how many buffers it read. */
static int read_round(struct collector *collector)
{
    /* Buffers before rings: the begin of every scope that a buffer's records ran in is then in a ring. */
    struct filled_buffer filled[buffers_per_round];
    int count = 0;
    while (count < buffers_per_round && buffer_pool_take(&filled[count]))
        count++;
    notice_step(collector); /* after taking the buffers: their times are not newer */
    struct amd_trace *amd = readable_amd(collector);
    scope_tracker_drain(collector->scopes, &collector->scale);
    if (collector->stacks)
        stacks_settle(collector->stacks, false);
    for (int i = 0; i < count; i++) {
        read_buffer(collector, amd, &filled[i]);
        buffer_pool_return(filled[i].data);
    }
    if (collector->joiner)
        activity_joiner_settle(collector->joiner);
    if (amd)
        amd_trace_settle(amd, collector->joiner);
    return count;
}

static void flush(struct collector *collector)
{
    int64_t began_ns = clock_mono_ns(), flushed_ns = clock_log_ns();
    struct amd_trace *amd = atomic_load(&collector->amd);
    atomic_store(&collector->doing, COLLECTOR_FLUSHING);
    if (amd)
        amd_trace_flush(amd);
    bool is_deep = collector->deep && !collector->is_deep_over;
    if (collector->cupti && !yielding_is_yielded(&collector->yielding) &&
        (!is_deep || deep_flush_begin(collector->deep))) {
        cupti_flush(collector->cupti, false);
        if (is_deep)
            deep_flush_end(collector->deep);
        collector->complete_ns = flushed_ns;
        recorder_lose(&collector->recorder, LOSS_CUPTI_DROPPED, cupti_take_dropped(collector->cupti));
    }
    atomic_store(&collector->doing, COLLECTOR_WORKING);
    collector->flush_ns += clock_mono_ns() - began_ns;
}

void collector_read_all(struct collector *collector)
{
    while (read_round(collector)) {
    }
}

static void tell_news(struct collector *collector)
{
    bool has_news = atomic_exchange(&collector->has_news, false);
    if (collector->deep && deep_grants_take_news(deep_grants(collector->deep)))
        has_news = true;
    if (has_news && collector->options.on_news)
        collector->options.on_news(collector->options.news_user);
}

static void do_round(struct collector *collector)
{
    int64_t now_ns = clock_mono_ns();
    if (collector->options.on_round)
        collector->options.on_round();
    if (is_due(&collector->scale_mono_ns, now_ns, scale_ms))
        tick_scale_update(&collector->scale);
    struct scope_history *history = scope_tracker_history(collector->scopes);
    bool is_tick = collector->joiner && is_due(&collector->flush_mono_ns, now_ns, flush_ms);
    if (is_tick || (collector->joiner && scope_history_is_pressed(history))) {
        flush(collector);
        scope_history_relax(history);
    }
    while (read_round(collector) == buffers_per_round) {
    }
    if (is_tick)
        activity_joiner_tick(collector->joiner);
    struct amd_trace *amd = readable_amd(collector);
    if (is_tick && amd)
        amd_trace_tick(amd, collector->joiner);
    if (collector->deep && !collector->is_deep_over)
        deep_round(collector->deep, collector->complete_ns, activity_joiner_totals(collector->joiner)->graph_kernels);
    if (collector->cupti)
        yielding_round(collector);
    tell_news(collector);
    recorder_flush(&collector->recorder, batch_age_ms);
    if (is_due(&collector->report_mono_ns, now_ns, report_ms)) {
        collector_write_clock_sync(collector, 0);
        collector_write_overhead(collector);
    }
    collector->cpu_ns = clock_thread_cpu_ns();
}

static void *run(void *argument)
{
    struct collector *collector = argument;
    while (!atomic_load(&collector->is_stopping)) {
        bool is_eager = collector->cupti && collector->joiner && !activity_joiner_has_limits(collector->joiner) &&
                        clock_mono_ns() - collector->started_mono_ns < (int64_t)first_wait_until_ms * 1000000;
        buffer_pool_wait((int64_t)(is_eager ? first_wait_ms : wait_ms) * 1000000);
        do_round(collector);
    }
    return NULL;
}

struct deep *collector_deep(struct collector *collector)
{
    return collector->deep;
}

/* If memory is exhausted the session continues with Trace, which the capability record reports. */
static void start_deep(struct collector *collector)
{
    const struct deep_options options = {
        .settings = collector->options.deep,
        .cupti = collector->cupti,
        .recorder = &collector->recorder,
        .names = &collector->names,
        .kernels = collector->kernels,
        .scopes = scope_tracker_history(collector->scopes),
        .code = collector->code,
    };
    if (deep_make(&collector->deep, &options) == GPUFL_OK)
        deep_start(collector->deep);
}

static uint64_t cubin_crc(void *user, const void *cubin, size_t size)
{
    return cupti_cubin_crc(user, cubin, size);
}

/* If memory is exhausted the session continues; for an engine above Trace the capability record reports it. */
static void make_code(struct collector *collector)
{
    const struct deep_settings *deep = &collector->options.deep;
    const struct code_store_options options = {.writer = collector->recorder.writer,
                                               .recorder = &collector->recorder,
                                               .session_id = collector->recorder.session_id,
                                               .crc = cubin_crc,
                                               .crc_user = collector->cupti,
                                               .with_source = deep->with_source,
                                               .bytes_max = deep->code_bytes_max};
    struct problem problem;
    if ((deep->engine > GPUFL_ENGINE_TRACE || keeps_sources_of_stacks(&collector->options)) &&
        code_store_make(&collector->code, &options, &problem) != GPUFL_OK)
        collector->code = NULL;
}

void collector_trace_options(struct collector *collector, struct cupti_trace_options *options)
{
    *options = (struct cupti_trace_options){
        /* Graph launches are always needed: graph nodes are attributed by them. */
        .features = collector->options.trace_features | CUPTI_TRACE_GRAPHS,
        .is_before_cuda = collector->options.is_before_cuda,
        .buffer_request = buffer_pool_request,
        .buffer_complete = buffer_pool_complete,
        .on_call = collector->options.with_stacks ? user_call_note_with_stack : user_call_note,
    };
}

static gpufl_status start_cupti(struct collector *collector, struct cupti *cupti, struct trace_grant *grant)
{
    struct cupti_trace_options options;
    collector_trace_options(collector, &options);
    if (collector->options.with_stacks)
        stacks_setup();
    collector->lent_before = buffer_pool_lent();
    gpufl_status status = GPUFL_OK;
    if (collector->options.other_profiler)
        yielding_begin_yielded(collector, &options, &grant->cupti);
    else
        status = cupti_trace_start(cupti, &options, &grant->cupti, &grant->problem);
    if (status != GPUFL_OK)
        return status;
    collector->cupti = cupti;
    make_code(collector);
    gpufl_engine engine = collector->options.deep.engine;
    if (engine == GPUFL_ENGINE_PC_SAMPLING || engine == GPUFL_ENGINE_DEEP)
        status = kernel_history_make(&collector->kernels, 0);
    scope_tracker_set_key(collector->scopes, grant->cupti.has_system_thread_id);
    if (status == GPUFL_OK)
        status = make_joiner(collector, &grant->cupti);
    if (status == GPUFL_OK && collector->options.with_stacks)
        status = stacks_make(&collector->stacks, &collector->names, collector->code);
    if (collector->stacks)
        status = activity_joiner_take_stacks(collector->joiner, collector->stacks);
    if (status != GPUFL_OK) {
        problem_set(&grant->problem, status, "not enough memory for tracing");
        cupti_trace_stop(cupti);
        activity_joiner_free(collector->joiner);
        collector->joiner = NULL;
        collector->cupti = NULL;
    }
    return status;
}

void collector_trace_amd(struct collector *collector, struct amd_grant *grant)
{
    struct amd_trace *amd = atomic_load(&collector->amd); /* a trace that was refused before tries again */
    const struct amd_settings *settings = &collector->options.amd;
    if (!amd_trace_is_due(settings))
        return;
    struct code_store *code = settings->engine > GPUFL_ENGINE_TRACE ? collector->code : NULL;
    if (!amd && amd_trace_make(&amd, settings, &collector->recorder, code, grant) != GPUFL_OK)
        return;
    if (!collector->cupti)
        scope_tracker_set_key(collector->scopes, true);
    atomic_store(&collector->amd, amd);
    amd_trace_start(amd, grant);
}

void collector_tell_news(struct collector *collector)
{
    atomic_store(&collector->has_news, true);
}

void collector_trace(struct collector *collector, struct trace_grant *grant)
{
    struct cupti *cupti = NULL;
    if (collector->options.with_trace) {
        grant->status = cupti_load(&cupti, &grant->problem);
        if (grant->status == GPUFL_OK) {
            grant->cupti_version = cupti_version(cupti);
            grant->status = start_cupti(collector, cupti, grant);
        }
        if (grant->status == GPUFL_OK && deep_is_wanted(&collector->options.deep) && !collector->options.other_profiler)
            start_deep(collector);
    }
}

gpufl_status collector_start(struct collector *collector)
{
    collector->has_thread =
        own_thread_start(&collector->thread, "gpufl-collector", OWN_THREAD_STACK_LARGE, run, collector);
    return collector->has_thread ? GPUFL_OK : GPUFL_E_NO_MEMORY;
}

/* Reads and writes everything that is left, after the thread has ended. */
static void finish(struct collector *collector)
{
    struct amd_trace *amd = atomic_load(&collector->amd);
    tick_scale_update(&collector->scale);
    while (read_round(collector)) {
    }
    if (collector->cupti && !cupti_trace_is_stuck() && !yielding_is_yielded(&collector->yielding))
        recorder_lose(&collector->recorder, LOSS_CUPTI_DROPPED, cupti_take_dropped(collector->cupti));
    yielding_finish(collector);
    if (collector->stacks)
        stacks_settle(collector->stacks, true);
    if (collector->joiner)
        activity_joiner_finish(collector->joiner);
    if (amd && collector->joiner)
        amd_trace_finish(amd, collector->joiner);
    if (collector->code)
        code_store_stop(collector->code, code_deadline_ms);
    if (collector->deep && !atomic_load(&collector->are_engines_left))
        deep_finish(collector->deep, activity_joiner_totals(collector->joiner)->graph_kernels);
    tell_news(collector);
    scope_tracker_close_open(collector->scopes, clock_log_ns());
    recorder_flush(&collector->recorder, 0);
    collector_write_clock_sync(collector, 0);
    collector_write_overhead(collector);
}

enum watch_end collector_finish(struct collector *collector)
{
    enum watch_end end = WATCH_ENDED;
    if (collector->has_thread) {
        const char *call;
        atomic_store(&collector->is_stopping, 1);
        buffer_pool_wake();
        collector->has_thread = false;
        end = watch_join(collector->thread, stages_until_ns(join_wait_ns), INT64_MAX, &call);
    }
    if (end == WATCH_HUNG)
        cupti_trace_damaged(CUPTI_STUCK);
    /* A thread abandoned in a flush has left consistent data, so the caller can finish. */
    if (end == WATCH_HUNG && atomic_load(&collector->doing) == COLLECTOR_FLUSHING)
        end = WATCH_ENDED;
    if (end == WATCH_ENDED)
        finish(collector);
    return end;
}

void collector_free_engines(struct collector *collector)
{
    if (atomic_load(&collector->are_engines_left))
        return;
    if (deep_free(collector->deep))
        collector->deep = NULL;
    else
        atomic_store(&collector->are_engines_left, true);
}

void collector_free(struct collector *collector)
{
    if (!collector)
        return;
    collector_free_engines(collector);
    if (atomic_load(&collector->are_engines_left))
        return; /* threads left in CUPTI still use our recorder, names and kernels */
    amd_trace_free(atomic_load(&collector->amd));
    activity_joiner_free(collector->joiner);
    kernel_history_free(collector->kernels);
    stacks_free(collector->stacks);
    if (collector->code)
        code_store_stop(collector->code, 0); /* if the session never began */
    code_store_free(collector->code);
    scope_tracker_free(collector->scopes);
    names_close(&collector->names);
    recorder_close(&collector->recorder);
    yielding_destroy(&collector->yielding);
    free(collector);
}

void collector_abandon(struct collector *collector)
{
    /* Its thread and CUPTI are in the parent; only leaking is safe. */
    deep_abandon(collector->deep);
    if (collector->code)
        code_store_abandon(collector->code);
    amd_trace_abandon(atomic_load(&collector->amd));
    thread_logs_forget();
}
