/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/deep_windows.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/user_time.h"
#include "capture/counting_halt.h"
#include "capture/ended_windows.h"
#include "capture/quiet_moment.h"
#include "capture/thread_log.h"
#include "capture/turn_thread.h"

#include <stdlib.h>

enum {
    default_counting_ms = 500,
    default_sampling_ms = 2000,
    turn_wait_ms = 2 * QUIET_WAIT_MS + 5000 /* the waits of one turn, plus time for CUPTI */
};

struct deep_windows {
    struct deep_windows_options options;
    struct quiet_moment quiet;    /* for every change */
    _Atomic bool is_tracing;      /* kernel records are on; otherwise launches are recorded */
    _Atomic uint32_t counting_id; /* id of the counting window, 0: none is open */
    _Atomic uint64_t launches;    /* covered by the open window */
    pthread_mutex_t mutex;        /* held while CUPTI is switched: never waited for in a callback */
    struct deep_window open;
    bool is_dead;           /* counting failed: kernels are traced until the end */
    bool is_over;           /* sampling has ended too */
    struct problem trouble; /* first counting failure; "" none */
    uint32_t last_id;
    struct ended_windows ended;
    struct turn_thread thread;
    struct counting_halt halt; /* by a graph, permanently */
    bool is_left, is_stuck;    /* is_left: CUPTI is still counting; is_stuck: the thread did not return from CUPTI */
};

static void turn(void *user);

gpufl_status deep_windows_make(struct deep_windows **out, const struct deep_windows_options *options)
{
    struct deep_windows *windows = calloc(1, sizeof *windows);
    if (!windows)
        return GPUFL_E_NO_MEMORY;
    windows->options = *options;
    if (!windows->options.counting_ms)
        windows->options.counting_ms = default_counting_ms;
    if (!windows->options.sampling_ms)
        windows->options.sampling_ms = default_sampling_ms;
    quiet_moment_init(&windows->quiet, QUIET_WAIT_MS);
    pthread_mutex_init(&windows->mutex, NULL);
    ended_windows_init(&windows->ended);
    counting_halt_init(&windows->halt);
    uint32_t shortest_ms = windows->options.counting_ms < windows->options.sampling_ms ? windows->options.counting_ms
                                                                                       : windows->options.sampling_ms;
    windows->thread.turn = turn;
    windows->thread.user = windows;
    windows->thread.step_ns = (shortest_ms >= 40 ? shortest_ms / 4 : 10) * INT64_C(1000000);
    turn_thread_init(&windows->thread);
    *out = windows;
    return GPUFL_OK;
}

static void window_begin(struct deep_windows *windows, enum deep_source source, uint32_t requested_ms)
{
    quiet_moment_reset(&windows->quiet);
    windows->open = (struct deep_window){
        .id = ++windows->last_id, .source = source, .start_ns = clock_log_ns(), .requested_ms = requested_ms};
    atomic_store(&windows->launches, 0);
    pc_sampler_rest(windows->options.sampler, source == SOURCE_SASS);
    atomic_store(&windows->counting_id, source == SOURCE_SASS ? windows->last_id : 0);
    call_state_set(source == SOURCE_SASS ? CALLS_COUNTED : CALLS_SAMPLED);
}

static void window_end(struct deep_windows *windows, const char *close_reason)
{
    struct deep_window *open = &windows->open;
    if (open->source == SOURCE_NONE)
        return;
    open->end_ns = clock_log_ns();
    open->launches = atomic_load(&windows->launches);
    open->close_reason = close_reason;
    ended_windows_add(&windows->ended, open);
    call_state_set(CALLS_PLAIN);
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

/* With the gate closed or before the first launch: resumes sampling. */
static gpufl_status sampling_begin(struct deep_windows *windows, uint32_t requested_ms, struct problem *problem)
{
    window_begin(windows, SOURCE_PC, requested_ms);
    return pc_sampler_resume(windows->options.sampler, windows->open.id, problem);
}

/* reason is ignored if sampling failed. */
static void sampling_end(struct deep_windows *windows, const char *reason)
{
    if (windows->open.source == SOURCE_PC)
        window_end(windows, pc_sampler_has_failed(windows->options.sampler) ? "sampling_failed" : reason);
}

/* Switches permanently to plain tracing; PC sampling is resumed in Deep, where it is a separate source. */
static void stop_counting(struct deep_windows *windows, const struct problem *why)
{
    struct problem problem = {""};
    note_trouble(windows, why->text);
    windows->is_dead = true;
    atomic_store(&windows->counting_id, 0);
    gpufl_status status = pc_sampler_pause(windows->options.sampler, &problem);
    if (status == GPUFL_OK)
        status = trace_resume(windows, &problem);
    if (status == GPUFL_OK && windows->options.is_alternating)
        status = sampling_begin(windows, 0, &problem);
    windows->is_over = status != GPUFL_OK;
    if (status != GPUFL_OK)
        log_message(GPUFL_LOG_WARNING, "%s: %s",
                    atomic_load(&windows->is_tracing) ? "sampling has stopped" : "kernel tracing has stopped",
                    problem.text);
}

/* Call with the mutex held, after counting has ended. */
static gpufl_status take_on_to_sample(struct deep_windows *windows, const struct gpu_context *context,
                                      struct problem *problem)
{
    if (windows->options.is_alternating && !windows->is_over) {
        if (windows->open.source == SOURCE_NONE) {
            window_begin(windows, SOURCE_PC, 0);
            pc_sampler_set_window(windows->options.sampler, windows->open.id);
        }
        if (pc_sampler_attach(windows->options.sampler, context, problem) != GPUFL_OK)
            log_message(GPUFL_LOG_WARNING, "context %u is not sampled: %s", context->id, problem->text);
    }
    return problem_set(problem, GPUFL_E_UNSUPPORTED, "%s", windows->trouble.text);
}

/* Call with the mutex held. The context's PC sampling is enabled first, because counting needs it. */
static gpufl_status take_on(struct deep_windows *windows, const struct gpu_context *context, struct problem *problem)
{
    if (windows->is_dead)
        return take_on_to_sample(windows, context, problem);
    gpufl_status status = pc_sampler_attach(windows->options.sampler, context, problem);
    if (status == GPUFL_OK)
        status = sass_counters_attach(windows->options.counters, context, problem);
    if (windows->open.source == SOURCE_PC)
        return status;
    if (status != GPUFL_OK) {
        if (windows->open.source == SOURCE_NONE)
            stop_counting(windows, problem);
        return status;
    }
    if (windows->open.source == SOURCE_SASS)
        return sass_counters_join(windows->options.counters, clock_log_ns(), problem);
    window_begin(windows, SOURCE_SASS, windows->options.is_alternating ? windows->options.counting_ms : 0);
    status = sass_counters_open(windows->options.counters, windows->open.id, windows->open.start_ns, problem);
    if (status != GPUFL_OK) {
        windows->open.source = SOURCE_NONE;
        stop_counting(windows, problem);
    }
    return status;
}

/* The window that counts a launch into the context; 0: none, or not yet. */
static uint32_t window_of_launch(struct deep_windows *windows, const void *context)
{
    uint32_t id = atomic_load(&windows->counting_id);
    return id && !deep_contexts_is_waiting(&windows->quiet.contexts, context) ? id : 0;
}

static void take_on_waiting(struct deep_windows *windows)
{
    struct gpu_context context;
    while (deep_contexts_next(&windows->quiet.contexts, &context)) {
        struct problem problem = {""};
        if (take_on(windows, &context, &problem) != GPUFL_OK)
            log_message(GPUFL_LOG_WARNING, "context %u is not counted: %s", context.id, problem.text);
        deep_contexts_taken(&windows->quiet.contexts, context.handle);
    }
}

gpufl_status deep_windows_attach(struct deep_windows *windows, const struct gpu_context *context,
                                 struct problem *problem)
{
    gpufl_status status = GPUFL_OK;
    deep_contexts_add(&windows->quiet.contexts, context->handle);
    if (pthread_mutex_trylock(&windows->mutex) == 0) {
        status = take_on(windows, context, problem);
        pthread_mutex_unlock(&windows->mutex);
        return status;
    }
    if (!deep_contexts_wait(&windows->quiet.contexts, context))
        status = problem_set(problem, GPUFL_E_LIMIT, "more than %d contexts were created at a time", DEEP_CONTEXTS_MAX);
    return status;
}

void deep_windows_detach(struct deep_windows *windows, void *handle)
{
    deep_contexts_remove(&windows->quiet.contexts, handle);
    sass_counters_detach(windows->options.counters, handle);
    pc_sampler_detach(windows->options.sampler, handle);
}

void deep_windows_launch(struct deep_windows *windows, const struct launch_call *call, bool is_enter)
{
    if (is_enter && call->is_graph)
        counting_halt_await(&windows->halt, &windows->thread);
    quiet_moment_launch(&windows->quiet, is_enter);
    if (!is_enter)
        return;
    bool is_tracing = atomic_load(&windows->is_tracing);
    uint32_t window_id = is_tracing ? 0 : window_of_launch(windows, call->context);
    if (is_tracing || window_id)
        atomic_fetch_add(&windows->launches, 1);
    if (!is_tracing)
        thread_log_launch(call->symbol, call->correlation_id, call->context_id, window_id);
}

void deep_windows_capture(struct deep_windows *windows, int change, bool is_enter)
{
    if (is_enter && change > 0)
        counting_halt_await(&windows->halt, &windows->thread);
    quiet_moment_capture(&windows->quiet, is_enter);
}

/* Mutex held: moves the counts to the list of ended windows. */
static void counting_end(struct deep_windows *windows, const char *close_reason)
{
    struct sass_window_summary summary = {0};
    sass_counters_close(windows->options.counters, clock_log_ns(), atomic_load(&windows->launches), &summary);
    window_end(windows, summary.close_reason ? summary.close_reason : close_reason);
    if (summary.close_reason)
        note_trouble(windows, "all instruction counts were zero although kernels ran");
    if (!summary.problem.text[0])
        return;
    note_trouble(windows, summary.problem.text);
    log_message(GPUFL_LOG_WARNING, "SASS counters of window %u: %s", summary.window_id, summary.problem.text);
}

/* Gate closed, mutex held, GPU idle: ends the window and switches kernel records and PC sampling back on. */
static void count_to_sample(struct deep_windows *windows, const char *close_reason)
{
    struct problem problem = {""};
    counting_end(windows, close_reason);
    gpufl_status status = pc_sampler_pause(windows->options.sampler, &problem);
    if (status == GPUFL_OK)
        status = trace_resume(windows, &problem);
    if (status == GPUFL_OK)
        status = sampling_begin(windows, windows->options.sampling_ms, &problem);
    if (status != GPUFL_OK) {
        windows->is_dead = windows->is_over = true;
        sampling_end(windows, "sampling_failed");
        note_trouble(windows, problem.text);
        log_message(GPUFL_LOG_WARNING, "going back from counting to sampling failed: %s", problem.text);
    }
}

/* Gate closed, mutex held, GPU idle. */
static void sample_to_count(struct deep_windows *windows)
{
    struct problem problem = {""};
    gpufl_status status = pc_sampler_pause(windows->options.sampler, &problem);
    sampling_end(windows, status == GPUFL_OK ? "deadline" : "sampling_failed");
    if (status == GPUFL_OK)
        status = trace_pause(windows, &problem);
    if (status == GPUFL_OK) {
        cupti_flush(windows->options.cupti, true);
        window_begin(windows, SOURCE_SASS, windows->options.counting_ms);
        status = pc_sampler_resume(windows->options.sampler, windows->open.id, &problem);
    }
    if (status == GPUFL_OK)
        status = sass_counters_open(windows->options.counters, windows->open.id, windows->open.start_ns, &problem);
    if (status != GPUFL_OK) {
        log_message(GPUFL_LOG_WARNING, "no more SASS counters: %s", problem.text);
        window_end(windows, "counting_failed");
        stop_counting(windows, &problem);
    }
}

static bool is_due(struct deep_windows *windows) /* mutex held */
{
    return windows->options.is_alternating && !windows->is_dead && windows->open.source != SOURCE_NONE &&
           quiet_moment_is_due(&windows->quiet, windows->open.requested_ms);
}

/* Mutex held. Without a quiet moment the window stays open, and a later turn tries again. CUPTI's worker must have
 * finished with earlier kernels: a counted launch would hold the driver lock that it needs, and both would deadlock. */
static void change(struct deep_windows *windows)
{
    if (!quiet_moment_begin(&windows->quiet, windows->open.requested_ms))
        return;
    if (windows->open.source == SOURCE_SASS)
        count_to_sample(windows, "deadline");
    else
        sample_to_count(windows);
    quiet_moment_end(&windows->quiet);
}

/* Mutex held: the program uses graphs, whose kernels are not counted; see counting_halt.h. */
static void halt_counting(struct deep_windows *windows)
{
    struct problem problem;
    bool is_counting = windows->open.source == SOURCE_SASS;
    if (is_counting && !quiet_moment_begin_again(&windows->quiet, counting_halt_is_awaited(&windows->halt)))
        return; /* a later turn tries again */
    counting_halt_explain(&problem);
    if (is_counting) {
        counting_end(windows, "graph_used");
        stop_counting(windows, &problem);
        quiet_moment_end(&windows->quiet);
    }
    note_trouble(windows, problem.text);
    windows->is_dead = true;
    counting_halt_done(&windows->halt);
}

static void turn(void *user)
{
    struct deep_windows *windows = user;
    pthread_mutex_lock(&windows->mutex);
    if (counting_halt_is_asked(&windows->halt))
        halt_counting(windows);
    take_on_waiting(windows);
    if (windows->is_dead && pc_sampler_has_failed(windows->options.sampler))
        sampling_end(windows, "sampling_failed");
    if (is_due(windows))
        change(windows);
    pthread_mutex_unlock(&windows->mutex);
}

void deep_windows_surrender(struct deep_windows *windows, const struct problem *why)
{
    struct problem problem = {""};
    if (pthread_mutex_trylock(&windows->mutex) == 0) { /* otherwise a context is being taken on */
        windows->is_dead = windows->is_over = true;
        note_trouble(windows, why->text);
        pthread_mutex_unlock(&windows->mutex);
    }
    if (trace_resume(windows, &problem) != GPUFL_OK)
        log_message(GPUFL_LOG_WARNING, "kernel tracing could not be resumed: %s", problem.text);
}

gpufl_status deep_windows_start(struct deep_windows *windows, struct problem *problem)
{
    if (!cupti_listen_launches(windows->options.cupti, true))
        return problem_set(problem, GPUFL_E_UNSUPPORTED,
                           "CUPTI does not report launches, without which SASS counters "
                           "cannot be attributed");
    gpufl_status status = trace_pause(windows, problem);
    if (status != GPUFL_OK)
        return status;
    if (turn_thread_start(&windows->thread))
        return GPUFL_OK;
    status = problem_set(problem, GPUFL_E_NO_MEMORY, "no thread for counting windows");
    deep_windows_surrender(windows, problem);
    return status;
}

bool deep_windows_flush_begin(struct deep_windows *windows)
{
    if (pthread_mutex_trylock(&windows->mutex))
        return false;
    bool is_counting = windows->is_left || windows->open.source == SOURCE_SASS ||
                       (windows->open.source == SOURCE_NONE && !windows->is_dead);
    if (is_counting)
        pthread_mutex_unlock(&windows->mutex);
    return !is_counting;
}

void deep_windows_flush_end(struct deep_windows *windows)
{
    pthread_mutex_unlock(&windows->mutex);
}

bool deep_windows_trouble(struct deep_windows *windows, struct problem *problem, bool *is_over)
{
    if (!windows->is_stuck) /* otherwise its thread may hold it forever */
        pthread_mutex_lock(&windows->mutex);
    bool has_trouble = windows->trouble.text[0] != '\0';
    *is_over = windows->is_over;
    if (has_trouble)
        *problem = windows->trouble;
    if (!windows->is_stuck)
        pthread_mutex_unlock(&windows->mutex);
    return has_trouble;
}

void deep_windows_write(struct deep_windows *windows)
{
    ended_windows_write(&windows->ended, windows->options.recorder);
}

/* CUPTI keeps counting, since ending it requires an idle GPU. It is not called again in this process: a flush of its
 * records may hang while it counts. */
static void leave_counting(struct deep_windows *windows, const struct problem *why)
{
    struct recorder *recorder = windows->options.recorder;
    windows->is_left = true;
    note_trouble(windows, why->text);
    if (windows->is_stuck || atomic_load(&windows->launches)) /* an unknown number of counts, at least one */
        recorder_lose_because(recorder, LOSS_SASS_DROPPED, 1, why->text);
    if (windows->is_stuck && windows->last_id > 1) /* samples since the last read of the window before */
        recorder_lose_because(recorder, LOSS_PC_FAILED, 1, why->text);
    log_message(GPUFL_LOG_WARNING, "SASS counters: %s", why->text);
    cupti_trace_damaged(CUPTI_STUCK);
    cupti_listen_no_more();
}

static void leave_thread(struct deep_windows *windows)
{
    struct problem problem;
    windows->is_stuck = true;
    (void)problem_set(
        &problem, GPUFL_E_UNSUPPORTED,
        "CUPTI did not return from a switch between counting and sampling and is not called again; what it "
        "still had is missing");
    leave_counting(windows, &problem);
    launch_gate_force_open(&windows->quiet.gate); /* that thread may have closed it */
}

/* Mutex held: ends the counting window; its counts cannot be read. */
static void drop_window(struct deep_windows *windows)
{
    struct problem problem;
    (void)problem_set(&problem, GPUFL_E_UNSUPPORTED, "%s, so the counts of window %u were not read",
                      quiet_moment_last_refusal(&windows->quiet), windows->open.id);
    leave_counting(windows, &problem);
    window_end(windows, "counts_unread");
    deep_contexts_leave(&windows->quiet.contexts);
}

bool deep_windows_stop(struct deep_windows *windows)
{
    if (!turn_thread_end(&windows->thread, turn_wait_ms)) {
        leave_thread(windows);
        return false;
    }
    pthread_mutex_lock(&windows->mutex);
    bool is_quiet = quiet_moment_begin_last(&windows->quiet);
    if (windows->open.source != SOURCE_SASS)
        sampling_end(windows, "session_stop");
    else if (is_quiet)
        counting_end(windows, "session_stop");
    else
        drop_window(windows);
    atomic_store(&windows->counting_id, 0);
    if (!is_quiet)
        deep_windows_release(windows);
    pthread_mutex_unlock(&windows->mutex);
    return is_quiet;
}

bool deep_windows_are_left(const struct deep_windows *windows)
{
    return windows && windows->is_left;
}

void deep_windows_unblock_launches(struct deep_windows *windows)
{
    launch_gate_force_open(&windows->quiet.gate);
}

void deep_windows_release(struct deep_windows *windows)
{
    quiet_moment_end(&windows->quiet);
}

void deep_windows_free(struct deep_windows *windows)
{
    if (!windows || windows->is_stuck) /* its thread may still use it */
        return;
    quiet_moment_destroy(&windows->quiet);
    counting_halt_destroy(&windows->halt);
    turn_thread_destroy(&windows->thread);
    free(windows);
}

void deep_windows_abandon(struct deep_windows *windows)
{
    free(windows);
}
