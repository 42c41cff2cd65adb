/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/deep_windows.h"

#include "base/clock.h"
#include "base/log.h"
#include "capture/deep_contexts.h"
#include "capture/launch_gate.h"
#include "capture/thread_log.h"
#include "format/json.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    default_counting_ms = 500,
    default_sampling_ms = 2000,
    gate_wait_ms = 2000,
    stop_wait_ms = 5000,
    ended_max = 256
};

enum source { SOURCE_NONE, SOURCE_SASS, SOURCE_PC };

struct window {
    uint32_t id;
    enum source source;
    int64_t start_ns, end_ns;
    uint64_t launches;
    uint32_t requested_ms;
    const char *close_reason;
};

struct deep_windows {
    struct deep_windows_options options;
    uint32_t number; /* from 1, in the process */
    struct launch_gate gate;
    _Atomic bool is_tracing;      /* kernel records are on; else launches are recorded */
    _Atomic uint32_t counting_id; /* of the counting window, 0: none is open */
    _Atomic uint64_t launches;    /* in the window that is open */
    _Atomic int64_t first_ns;     /* when the first of them was: an idle program does not use its window up */
    pthread_mutex_t mutex;        /* held while CUPTI is switched: never waited for in a callback */
    struct window open;
    bool is_dead;           /* counting failed: kernels are traced to the end */
    struct problem trouble; /* the first that counting had; "" none */
    uint32_t last_id;
    struct deep_contexts contexts;
    /* Windows that have ended, for the collector. */
    pthread_mutex_t ended_mutex;
    struct window ended[ended_max];
    uint32_t ended_count;
    pthread_t thread;
    bool has_thread, is_gate_closed;
    pthread_mutex_t thread_mutex;
    pthread_cond_t wake;
    bool is_stopping;
};

/* This thread has passed the gate of that many-th deep_windows. */
static _Thread_local uint32_t launching_in;
static _Atomic uint32_t windows_made;

gpufl_status deep_windows_make(struct deep_windows **out, const struct deep_windows_options *options)
{
    struct deep_windows *windows = calloc(1, sizeof *windows);
    if (!windows)
        return GPUFL_E_NO_MEMORY;
    windows->options = *options;
    windows->number = atomic_fetch_add(&windows_made, 1) + 1;
    if (!windows->options.counting_ms)
        windows->options.counting_ms = default_counting_ms;
    if (!windows->options.sampling_ms)
        windows->options.sampling_ms = default_sampling_ms;
    launch_gate_init(&windows->gate);
    pthread_mutex_init(&windows->mutex, NULL);
    deep_contexts_init(&windows->contexts);
    pthread_mutex_init(&windows->ended_mutex, NULL);
    pthread_mutex_init(&windows->thread_mutex, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&windows->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    *out = windows;
    return GPUFL_OK;
}

static void window_begin(struct deep_windows *windows, enum source source, uint32_t requested_ms)
{
    windows->open = (struct window){
        .id = ++windows->last_id, .source = source, .start_ns = clock_wall_ns(), .requested_ms = requested_ms};
    atomic_store(&windows->launches, 0);
    atomic_store(&windows->first_ns, 0);
    pc_sampler_rest(windows->options.sampler, source == SOURCE_SASS);
    atomic_store(&windows->counting_id, source == SOURCE_SASS ? windows->last_id : 0);
}

static void window_end(struct deep_windows *windows, const char *close_reason)
{
    struct window *open = &windows->open;
    if (open->source == SOURCE_NONE)
        return;
    open->end_ns = clock_wall_ns();
    open->launches = atomic_load(&windows->launches);
    open->close_reason = close_reason;
    pthread_mutex_lock(&windows->ended_mutex);
    if (windows->ended_count < ended_max)
        windows->ended[windows->ended_count++] = *open;
    pthread_mutex_unlock(&windows->ended_mutex);
    open->source = SOURCE_NONE;
}

static gpufl_status trace_resume(struct deep_windows *windows, struct problem *problem)
{
    gpufl_status status = cupti_trace_resume(windows->options.cupti, problem);
    atomic_store(&windows->is_tracing, status == GPUFL_OK);
    return status;
}

static gpufl_status trace_pause(struct deep_windows *windows, struct problem *problem)
{
    gpufl_status status = cupti_trace_pause(windows->options.cupti, problem);
    atomic_store(&windows->is_tracing, status != GPUFL_OK);
    return status;
}

static void note_trouble(struct deep_windows *windows, const char *text)
{
    if (!windows->trouble.text[0])
        (void)problem_set(&windows->trouble, GPUFL_E_UNSUPPORTED, "%s", text);
}

/* Everything to plain tracing, for good; PC sampling is resumed where it is an engine of its own. */
static void give_up_counting(struct deep_windows *windows, const struct problem *why)
{
    struct problem problem = {""};
    note_trouble(windows, why->text);
    windows->is_dead = true;
    atomic_store(&windows->counting_id, 0);
    gpufl_status status = pc_sampler_pause(windows->options.sampler, &problem);
    if (status == GPUFL_OK)
        status = trace_resume(windows, &problem);
    if (status == GPUFL_OK && windows->options.is_alternating) {
        window_begin(windows, SOURCE_PC, 0);
        status = pc_sampler_resume(windows->options.sampler, windows->open.id, &problem);
    }
    if (status != GPUFL_OK)
        log_message(GPUFL_LOG_WARNING, "kernels are not traced any more: %s", problem.text);
}

/* Under the mutex. The context's PC sampling comes first: counting needs it beside itself. */
static gpufl_status take_on(struct deep_windows *windows, const struct gpu_context *context, struct problem *problem)
{
    gpufl_status status = GPUFL_OK;
    if (!windows->is_dead || windows->options.is_alternating)
        status = pc_sampler_attach(windows->options.sampler, context, problem);
    if (windows->is_dead)
        return problem_set(problem, GPUFL_E_UNSUPPORTED, "%s", windows->trouble.text);
    if (status == GPUFL_OK)
        status = sass_counters_attach(windows->options.counters, context, problem);
    if (windows->open.source == SOURCE_PC)
        return status;
    if (status != GPUFL_OK) {
        if (windows->open.source == SOURCE_NONE)
            give_up_counting(windows, problem);
        return status;
    }
    if (windows->open.source == SOURCE_SASS)
        return sass_counters_join(windows->options.counters, clock_wall_ns(), problem);
    window_begin(windows, SOURCE_SASS, windows->options.is_alternating ? windows->options.counting_ms : 0);
    status = sass_counters_open(windows->options.counters, windows->open.id, windows->open.start_ns, problem);
    if (status != GPUFL_OK) {
        windows->open.source = SOURCE_NONE;
        give_up_counting(windows, problem);
    }
    return status;
}

/* The window that counts a launch into the context; 0: none does, or not yet. */
static uint32_t window_of_launch(struct deep_windows *windows, const void *context)
{
    uint32_t id = atomic_load(&windows->counting_id);
    return id && !deep_contexts_is_waiting(&windows->contexts, context) ? id : 0;
}

static void take_on_waiting(struct deep_windows *windows)
{
    struct gpu_context context;
    while (deep_contexts_next(&windows->contexts, &context)) {
        struct problem problem = {""};
        if (take_on(windows, &context, &problem) != GPUFL_OK)
            log_message(GPUFL_LOG_WARNING, "context %u is not counted: %s", context.id, problem.text);
        deep_contexts_taken(&windows->contexts, context.handle);
    }
}

gpufl_status deep_windows_attach(struct deep_windows *windows, const struct gpu_context *context,
                                 struct problem *problem)
{
    gpufl_status status = GPUFL_OK;
    deep_contexts_add(&windows->contexts, context->handle);
    if (pthread_mutex_trylock(&windows->mutex) == 0) {
        status = take_on(windows, context, problem);
        pthread_mutex_unlock(&windows->mutex);
        return status;
    }
    if (!deep_contexts_wait(&windows->contexts, context))
        status = problem_set(problem, GPUFL_E_LIMIT, "more than %d contexts came at a time", DEEP_CONTEXTS_MAX);
    return status;
}

void deep_windows_detach(struct deep_windows *windows, void *handle)
{
    deep_contexts_remove(&windows->contexts, handle);
    sass_counters_detach(windows->options.counters, handle);
    pc_sampler_detach(windows->options.sampler, handle);
}

void deep_windows_launch(struct deep_windows *windows, const struct launch_call *call, bool is_enter)
{
    if (!is_enter) {
        if (launching_in == windows->number)
            launch_gate_leave(&windows->gate);
        launching_in = 0;
        return;
    }
    launch_gate_enter(&windows->gate);
    launching_in = windows->number;
    if (atomic_fetch_add(&windows->launches, 1) == 0)
        atomic_store(&windows->first_ns, clock_mono_ns());
    if (!atomic_load(&windows->is_tracing))
        thread_log_launch(call->symbol, call->correlation_id, call->context_id,
                          window_of_launch(windows, call->context));
}

/* Mutex held: counts to the list. */
static void counting_end(struct deep_windows *windows, const char *close_reason)
{
    struct sass_window_summary summary = {0};
    sass_counters_close(windows->options.counters, clock_wall_ns(), atomic_load(&windows->launches), &summary);
    window_end(windows, summary.close_reason ? summary.close_reason : close_reason);
    if (summary.close_reason)
        note_trouble(windows, "all instruction counts were zero although kernels ran");
    if (!summary.problem.text[0])
        return;
    note_trouble(windows, summary.problem.text);
    log_message(GPUFL_LOG_WARNING, "SASS counters of window %u: %s", summary.window_id, summary.problem.text);
}

/* Gate closed, mutex held: the window ends, kernel records and PC sampling back on. */
static void count_to_sample(struct deep_windows *windows, const char *close_reason)
{
    struct problem problem = {""};
    /* CUPTI's worker must have nothing left to do for kernels of the past: what it then takes from the driver, a launch
     * that is counted holds, and both wait for ever. */
    deep_contexts_synchronize(&windows->contexts);
    counting_end(windows, close_reason);
    gpufl_status status = pc_sampler_pause(windows->options.sampler, &problem);
    if (status == GPUFL_OK)
        status = trace_resume(windows, &problem);
    window_begin(windows, SOURCE_PC, windows->options.sampling_ms);
    if (status == GPUFL_OK)
        status = pc_sampler_resume(windows->options.sampler, windows->open.id, &problem);
    if (status != GPUFL_OK) {
        windows->is_dead = true;
        note_trouble(windows, problem.text);
        log_message(GPUFL_LOG_WARNING, "going back from counting to sampling failed: %s", problem.text);
    }
}

/* Gate closed, mutex held. */
static void sample_to_count(struct deep_windows *windows)
{
    struct problem problem = {""};
    window_end(windows, "deadline");
    deep_contexts_synchronize(&windows->contexts);
    gpufl_status status = trace_pause(windows, &problem);
    if (status == GPUFL_OK) {
        cupti_flush(windows->options.cupti, true);
        window_begin(windows, SOURCE_SASS, windows->options.counting_ms);
        status = sass_counters_open(windows->options.counters, windows->open.id, windows->open.start_ns, &problem);
    }
    if (status != GPUFL_OK) {
        log_message(GPUFL_LOG_WARNING, "no more SASS counters: %s", problem.text);
        windows->open.source = SOURCE_NONE;
        give_up_counting(windows, &problem);
    }
}

static void turn(struct deep_windows *windows)
{
    pthread_mutex_lock(&windows->mutex);
    take_on_waiting(windows);
    bool is_due = windows->options.is_alternating && !windows->is_dead && windows->open.source != SOURCE_NONE &&
                  atomic_load(&windows->first_ns) &&
                  clock_mono_ns() - atomic_load(&windows->first_ns) >= windows->open.requested_ms * INT64_C(1000000);
    /* A launch that does not return within the wait keeps the window open; the next turn tries again. */
    if (is_due && launch_gate_close(&windows->gate, false, gate_wait_ms)) {
        if (windows->open.source == SOURCE_SASS)
            count_to_sample(windows, "deadline");
        else
            sample_to_count(windows);
        launch_gate_open(&windows->gate, false);
    }
    pthread_mutex_unlock(&windows->mutex);
}

static void *run(void *argument)
{
    struct deep_windows *windows = argument;
    pthread_setname_np(pthread_self(), "gpufl-windows");
    uint32_t shortest_ms = windows->options.counting_ms < windows->options.sampling_ms ? windows->options.counting_ms
                                                                                       : windows->options.sampling_ms;
    int64_t step_ns = (shortest_ms >= 40 ? shortest_ms / 4 : 10) * INT64_C(1000000);
    pthread_mutex_lock(&windows->thread_mutex);
    while (!windows->is_stopping) {
        int64_t until_ns = clock_mono_ns() + step_ns;
        const struct timespec until = {until_ns / 1000000000, until_ns % 1000000000};
        if (pthread_cond_timedwait(&windows->wake, &windows->thread_mutex, &until) != ETIMEDOUT)
            continue;
        pthread_mutex_unlock(&windows->thread_mutex);
        turn(windows);
        pthread_mutex_lock(&windows->thread_mutex);
    }
    pthread_mutex_unlock(&windows->thread_mutex);
    return NULL;
}

void deep_windows_surrender(struct deep_windows *windows, const struct problem *why)
{
    struct problem problem = {""};
    if (pthread_mutex_trylock(&windows->mutex) == 0) { /* else a context is just taken on, and it is not over */
        windows->is_dead = true;
        note_trouble(windows, why->text);
        pthread_mutex_unlock(&windows->mutex);
    }
    if (trace_resume(windows, &problem) != GPUFL_OK)
        log_message(GPUFL_LOG_WARNING, "kernels are not traced: %s", problem.text);
}

gpufl_status deep_windows_start(struct deep_windows *windows, struct problem *problem)
{
    if (!cupti_listen_launches(windows->options.cupti, true))
        return problem_set(problem, GPUFL_E_UNSUPPORTED,
                           "CUPTI does not tell of launches, without which SASS counters "
                           "cannot be told from other work");
    gpufl_status status = trace_pause(windows, problem);
    if (status != GPUFL_OK)
        return status;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    windows->has_thread = pthread_create(&windows->thread, NULL, run, windows) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (windows->has_thread)
        return GPUFL_OK;
    status = problem_set(problem, GPUFL_E_NO_MEMORY, "no thread for counting windows");
    deep_windows_surrender(windows, problem);
    return status;
}

bool deep_windows_hold(struct deep_windows *windows)
{
    if (pthread_mutex_trylock(&windows->mutex))
        return false;
    bool is_counting =
        windows->open.source == SOURCE_SASS || (windows->open.source == SOURCE_NONE && !windows->is_dead);
    if (is_counting)
        pthread_mutex_unlock(&windows->mutex);
    return !is_counting;
}

void deep_windows_let_go(struct deep_windows *windows)
{
    pthread_mutex_unlock(&windows->mutex);
}

bool deep_windows_trouble(struct deep_windows *windows, struct problem *problem, bool *is_over)
{
    pthread_mutex_lock(&windows->mutex);
    bool has_trouble = windows->trouble.text[0] != '\0';
    *is_over = windows->is_dead;
    if (has_trouble)
        *problem = windows->trouble;
    pthread_mutex_unlock(&windows->mutex);
    return has_trouble;
}

void deep_windows_write(struct deep_windows *windows)
{
    struct window ended[ended_max];
    pthread_mutex_lock(&windows->ended_mutex);
    uint32_t count = windows->ended_count;
    for (uint32_t i = 0; i < count; i++)
        ended[i] = windows->ended[i];
    windows->ended_count = 0;
    pthread_mutex_unlock(&windows->ended_mutex);
    for (uint32_t i = 0; i < count; i++) {
        const struct window *window = &ended[i];
        const char *source = window->source == SOURCE_SASS ? "sass_metrics" : "pc_sampling";
        struct bytes *line = recorder_begin(windows->options.recorder, RECORD_DEEP_WINDOW_EVENT);
        json_key(line, "pid");
        json_int(line, getpid());
        json_key(line, "app");
        json_text(line, windows->options.recorder->app_name);
        bytes_append_format(
            line,
            ",\"name\":\"window_%u\",\"close_reason\":\"%s\",\"engines\":[\"nvidia.%s\"],\"start_ns\":%lld,"
            "\"end_ns\":%lld,\"duration_ns\":%lld,\"launches_covered\":%llu,"
            "\"requested_duration_ms\":%u,\"requested_max_launches\":0,\"window_id\":%u,"
            "\"source\":\"%s\",\"scope_id\":0",
            window->id, window->close_reason, source, (long long)window->start_ns, (long long)window->end_ns,
            (long long)(window->end_ns - window->start_ns), (unsigned long long)window->launches, window->requested_ms,
            window->id, source);
        recorder_end(windows->options.recorder, RECORD_DEEP_WINDOW_EVENT);
    }
}

bool deep_windows_stop(struct deep_windows *windows)
{
    if (windows->has_thread) {
        pthread_mutex_lock(&windows->thread_mutex);
        windows->is_stopping = true;
        pthread_cond_signal(&windows->wake);
        pthread_mutex_unlock(&windows->thread_mutex);
        pthread_join(windows->thread, NULL);
        windows->has_thread = false;
    }
    pthread_mutex_lock(&windows->mutex);
    windows->is_gate_closed = launch_gate_close(&windows->gate, false, stop_wait_ms);
    if (windows->open.source == SOURCE_SASS) {
        if (windows->is_gate_closed)
            deep_contexts_synchronize(&windows->contexts);
        counting_end(windows, "session_stop");
    } else {
        window_end(windows, "session_stop");
    }
    atomic_store(&windows->counting_id, 0);
    pthread_mutex_unlock(&windows->mutex);
    return windows->is_gate_closed;
}

void deep_windows_release(struct deep_windows *windows)
{
    if (windows->is_gate_closed)
        launch_gate_open(&windows->gate, false);
    windows->is_gate_closed = false;
}

void deep_windows_free(struct deep_windows *windows)
{
    if (!windows)
        return;
    launch_gate_destroy(&windows->gate);
    pthread_cond_destroy(&windows->wake);
    free(windows);
}

void deep_windows_abandon(struct deep_windows *windows)
{
    free(windows);
}
