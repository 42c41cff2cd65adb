/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/yielding.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/timed_lock.h"
#include "capture/buffer_pool.h"
#include "capture/collector_state.h"
#include "format/json.h"

#include <stdio.h>
#include <time.h>

enum { records_wait_ms = 500, retry_ms = 1000, close_wait_s = 2 };

void yielding_init(struct yielding *yielding)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&yielding->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&yielding->mutex, NULL);
    pthread_mutex_init(&yielding->round_mutex, NULL);
}

void yielding_destroy(struct yielding *yielding)
{
    pthread_cond_destroy(&yielding->changed);
    pthread_mutex_destroy(&yielding->mutex);
    pthread_mutex_destroy(&yielding->round_mutex);
}

bool yielding_is_yielded(struct yielding *yielding)
{
    pthread_mutex_lock(&yielding->mutex);
    bool is_yielded = yielding->is_yielded;
    pthread_mutex_unlock(&yielding->mutex);
    return is_yielded;
}

/* With the mutex held: waits until is_yielded has that value, or it is clear that it will not in time. */
static bool wait_for(struct yielding *yielding, bool is_yielded, int wait_ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += wait_ms / 1000;
    until.tv_nsec += wait_ms % 1000 * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    int error = 0;
    while (yielding->is_yielded != is_yielded && !yielding->is_closed && !error)
        error = pthread_cond_timedwait(&yielding->changed, &yielding->mutex, &until);
    return yielding->is_yielded == is_yielded;
}

bool collector_yield(struct collector *collector, const char *profiler, int wait_ms)
{
    struct yielding *yielding = &collector->yielding;
    if (!collector->cupti)
        return true;
    pthread_mutex_lock(&yielding->mutex);
    if (!yielding->is_wanted && !yielding->is_yielded)
        snprintf(yielding->profiler, sizeof yielding->profiler, "%s", profiler);
    yielding->is_wanted = true;
    buffer_pool_wake();
    bool is_yielded = wait_for(yielding, true, wait_ms);
    pthread_mutex_unlock(&yielding->mutex);
    return is_yielded;
}

void collector_unyield(struct collector *collector, int wait_ms)
{
    struct yielding *yielding = &collector->yielding;
    if (!collector->cupti)
        return;
    pthread_mutex_lock(&yielding->mutex);
    yielding->is_wanted = false;
    buffer_pool_wake();
    (void)wait_for(yielding, false, wait_ms);
    pthread_mutex_unlock(&yielding->mutex);
}

static void set_yielded(struct yielding *yielding, bool is_yielded)
{
    pthread_mutex_lock(&yielding->mutex);
    yielding->is_yielded = is_yielded;
    pthread_cond_broadcast(&yielding->changed);
    pthread_mutex_unlock(&yielding->mutex);
}

/* The engine's counters and samples end for good: the rest of the session is Trace only. */
static void end_deep(struct collector *collector)
{
    if (!collector->deep || collector->is_deep_over)
        return;
    deep_stop(collector->deep);
    collector->is_deep_over = true;
}

/* Earlier launches may still be running, and have no times until they finish. */
static void await_records(struct collector *collector)
{
    const struct timespec pause = {.tv_nsec = 2000000};
    int64_t until_ns = clock_mono_ns() + records_wait_ms * INT64_C(1000000);
    for (;;) {
        atomic_store(&collector->doing, COLLECTOR_FLUSHING);
        cupti_flush(collector->cupti, false);
        atomic_store(&collector->doing, COLLECTOR_WORKING);
        collector_read_all(collector);
        if (!activity_joiner_missing(collector->joiner) || clock_mono_ns() > until_ns)
            return;
        nanosleep(&pause, NULL);
    }
}

static void give_away(struct collector *collector)
{
    struct yielding *yielding = &collector->yielding;
    yielding->begin_ns = clock_log_ns();
    yielding->is_refused = false;
    end_deep(collector);
    atomic_store(&collector->doing, COLLECTOR_FLUSHING); /* if it hangs, another thread can finish */
    cupti_trace_quiet(collector->cupti);
    if (!cupti_trace_is_stuck())
        await_records(collector);
    atomic_store(&collector->doing, COLLECTOR_FLUSHING);
    cupti_trace_stop(collector->cupti);
    atomic_store(&collector->doing, COLLECTOR_WORKING);
    recorder_lose(&collector->recorder, LOSS_CUPTI_DROPPED, cupti_take_dropped(collector->cupti));
    collector_read_all(collector); /* while CUPTI still has the names that its records point to */
    if (collector->is_deep_over)
        deep_round(collector->deep, INT64_MAX, activity_joiner_totals(collector->joiner)->graph_kernels);
    cupti_trace_detach(collector->cupti);
    buffer_pool_take_back();
    set_yielded(yielding, true);
}

/* The number of launches in the gap is unknown. */
static void write_gap(struct collector *collector, int64_t end_ns)
{
    const struct yielding *yielding = &collector->yielding;
    struct recorder *recorder = &collector->recorder;
    char message[192];
    snprintf(message, sizeof message, "gap of %.3f s: %s was using CUPTI", (double)(end_ns - yielding->begin_ns) / 1e9,
             yielding->profiler);
    struct bytes *line = recorder_begin(recorder, RECORD_LOSS);
    bytes_append_format(line,
                        ",\"ts_ns\":%lld,\"reason\":\"other_profiler\",\"record_type\":\"unknown\",\"count\":null",
                        (long long)end_ns);
    json_key(line, "message");
    json_text(line, message);
    bytes_append_format(line, ",\"start_ns\":%lld,\"end_ns\":%lld", (long long)yielding->begin_ns, (long long)end_ns);
    json_key(line, "profiler");
    json_text(line, yielding->profiler);
    recorder_end(recorder, RECORD_LOSS);
}

static gpufl_status start_again(struct collector *collector, struct problem *problem)
{
    struct cupti_trace_options options;
    struct cupti_trace_result result;
    collector_trace_options(collector, &options);
    options.is_before_cuda = false;
    options.id_offset = activity_joiner_highest_id(collector->joiner);
    /* It may still be subscribed although it is done (Kineto is), and CUPTI may still hold its buffers and would
     * write our records to them. */
    cupti_trace_detach(collector->cupti);
    return cupti_trace_start(collector->cupti, &options, &result, problem);
}

static void take_again(struct collector *collector)
{
    struct yielding *yielding = &collector->yielding;
    if (clock_mono_ns() < yielding->retry_mono_ns)
        return;
    struct problem problem = {""};
    if (start_again(collector, &problem) == GPUFL_OK) {
        write_gap(collector, clock_log_ns());
        set_yielded(yielding, false);
        return;
    }
    yielding->retry_mono_ns = clock_mono_ns() + retry_ms * INT64_C(1000000);
    if (!yielding->is_refused)
        log_message(GPUFL_LOG_WARNING, "recording did not resume after %s used CUPTI: %s", yielding->profiler,
                    problem.text);
    yielding->is_refused = true;
}

void yielding_begin_yielded(struct collector *collector, const struct cupti_trace_options *options,
                            struct cupti_trace_result *granted)
{
    struct yielding *yielding = &collector->yielding;
    granted->granted = options->features | CUPTI_GRANTED_KERNELS | CUPTI_GRANTED_COPIES | CUPTI_GRANTED_MEMSETS |
                       CUPTI_GRANTED_API | CUPTI_GRANTED_CALLBACKS;
    granted->has_system_thread_id = true;
    snprintf(yielding->profiler, sizeof yielding->profiler, "%s", collector->options.other_profiler);
    yielding->begin_ns = clock_log_ns();
    yielding->is_wanted = yielding->is_yielded = true;
}

void yielding_round(struct collector *collector)
{
    struct yielding *yielding = &collector->yielding;
    bool (*are_over)(void) = collector->options.are_others_over;
    bool is_over = are_over && yielding_is_yielded(yielding) && are_over();
    pthread_mutex_lock(&yielding->round_mutex);
    pthread_mutex_lock(&yielding->mutex);
    yielding->is_wanted &= !is_over;
    bool is_wanted = yielding->is_wanted, is_yielded = yielding->is_yielded, is_closed = yielding->is_closed;
    pthread_mutex_unlock(&yielding->mutex);
    if (is_wanted && !is_yielded && !is_closed)
        give_away(collector);
    else if (!is_wanted && is_yielded && !is_closed)
        take_again(collector);
    pthread_mutex_unlock(&yielding->round_mutex);
}

void yielding_close(struct collector *collector)
{
    struct yielding *yielding = &collector->yielding;
    pthread_mutex_lock(&yielding->mutex);
    yielding->is_closed = true;
    pthread_cond_broadcast(&yielding->changed);
    pthread_mutex_unlock(&yielding->mutex);
    if (mutex_lock_in_time(&yielding->round_mutex, close_wait_s * INT64_C(1000000000)))
        pthread_mutex_unlock(&yielding->round_mutex);
    else
        cupti_trace_damaged(CUPTI_STUCK); /* the collector's thread does not return from CUPTI */
}

void yielding_finish(struct collector *collector)
{
    if (yielding_is_yielded(&collector->yielding))
        write_gap(collector, clock_log_ns());
}
