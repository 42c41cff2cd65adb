/* SPDX-License-Identifier: Apache-2.0 */
#include "sdk/session_end.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/own_thread.h"
#include "base/stages.h"
#include "capture/session_frame.h"
#include "sdk/scope_listeners.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { channels_usual = 1u << CHANNEL_DEVICE | 1u << CHANNEL_SCOPE | 1u << CHANNEL_SYSTEM };

enum end_state { END_WAITING, END_REQUESTED, END_DONE };

/* One per session; leaked if a stage was abandoned. */
struct session_end {
    pthread_t thread;
    _Atomic uint32_t state; /* enum end_state; futex word */
    struct session_parts parts;
    char session_id[37], app_name[256];
    uint32_t hung_before;  /* calls hung in earlier sessions */
    const char *busy_call; /* a call of the program that a stage waited for; NULL: none, or not known */
    /* A thread of that part may still run our code. */
    _Atomic bool is_collector_left, is_sampler_left, is_anything_left;
    _Atomic bool is_collector_done;
    int64_t deadline_ns;
};

static atomic_bool is_memory_kept;
static struct session_end *current; /* of the running session */

static void futex_wait(_Atomic uint32_t *word, uint32_t seen, int64_t deadline_ns)
{
    const struct timespec deadline = {deadline_ns / 1000000000, deadline_ns % 1000000000};
    syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, seen, deadline_ns < INT64_MAX ? &deadline : NULL, NULL,
            FUTEX_BITSET_MATCH_ANY);
}

static void state_set(struct session_end *own, enum end_state state)
{
    atomic_store(&own->state, (uint32_t)state);
    syscall(SYS_futex, &own->state, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

/* ---- the stages, each on a thread that may be abandoned ---- */

static void stop_scopes(void *user)
{
    (void)user;
    scope_listeners_remove();
}

static void stop_deep(void *user)
{
    const struct session_end *own = user;
    collector_stop_deep(own->parts.collector);
}

static void stop_amd(void *user)
{
    const struct session_end *own = user;
    collector_stop_amd(own->parts.collector);
}

static void stop_cupti(void *user)
{
    const struct session_end *own = user;
    collector_stop_cupti(own->parts.collector);
}

static void finish_collector(void *user)
{
    struct session_end *own = user;
    atomic_store(&own->is_collector_done, collector_finish(own->parts.collector) == WATCH_ENDED);
}

static void free_engines(void *user)
{
    const struct session_end *own = user;
    if (atomic_load(&own->is_collector_done))
        collector_free_engines(own->parts.collector);
}

static void stop_sampler(void *user)
{
    struct session_end *own = user;
    if (system_sampler_stop(own->parts.sampler) == WATCH_BUSY)
        atomic_store(&own->is_sampler_left, true);
}

/* A call that takes this long is probably hung. */
static const char *longest_call(const struct session_end *own)
{
    return watch_longest(clock_mono_ns() - own->parts.timeout_ms * INT64_C(100000));
}

/* "cuptiUnsubscribe, nvmlShutdown"; false: all calls have returned. */
static bool hung_calls(const struct session_end *own, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t i = own->hung_before; i < watch_hung_count() && used < size; i++)
        if (watch_hung_call(i))
            used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "", watch_hung_call(i));
    /* The program's own threads are not abandoned, and the session does not wait for them if it can avoid it. */
    const char *busy_call = own->busy_call ? own->busy_call : longest_call(own);
    if (busy_call && used < size)
        used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "", busy_call);
    return used > 0 || atomic_load(&own->is_anything_left);
}

static void write_end(void *user)
{
    struct session_end *own = user;
    const struct session_parts *parts = &own->parts;
    struct recorder plain, *recorder = collector_recorder(parts->collector);
    char calls[512];
    if (!atomic_load(&own->is_collector_done)) {
        recorder_open_plain(&plain, parts->writer, parts->session_id, parts->app_name, channels_usual);
        recorder_take_losses(&plain, recorder);
        recorder = &plain;
    }
    if (hung_calls(own, calls, sizeof calls)) {
        struct problem cause;
        (void)problem_set(&cause, GPUFL_E_UNSUPPORTED, "%s did not return; the session was given %u ms to end",
                          calls[0] ? calls : "an unknown call", parts->timeout_ms);
        recorder_lose_because(recorder, LOSS_HUNG_CALL, 1, cause.text);
        recorder_flush(recorder, 0);
    }
    session_frame_end(recorder, clock_log_ns());
    if (recorder_lost_total(recorder))
        log_message(GPUFL_LOG_WARNING, "session %s has losses; run 'gpufl verify %s'", parts->session_id,
                    log_writer_dir(parts->writer));
    if (recorder == &plain)
        recorder_close(&plain);
}

static void close_writer(void *user)
{
    struct session_end *own = user;
    int64_t spare_ns = own->parts.timeout_ms * INT64_C(50000); /* to abandon a stage that does not end in time */
    int64_t left_ns = own->deadline_ns - spare_ns - clock_mono_ns();
    if (atomic_load(&own->is_collector_left) || atomic_load(&own->is_sampler_left))
        return; /* a thread may still write */
    if (atomic_load(&own->is_collector_done))
        collector_free(own->parts.collector);
    log_writer_close(own->parts.writer, left_ns > 0 ? (unsigned)(left_ns / 1000000) : 0);
}

enum { AT_SCOPES, AT_DEEP, AT_AMD, AT_CUPTI, AT_COLLECTOR, AT_FREE, AT_SAMPLER, AT_END, AT_CLOSE, STAGE_COUNT };

/* Most of the time goes to the engine: PC sampling waits for the GPU's last samples. */
static const struct stage stages[STAGE_COUNT] = {
    [AT_SCOPES] = {stop_scopes, 15, 15},
    [AT_DEEP] = {stop_deep, 50, 55},
    [AT_AMD] = {stop_amd, 60, 64},
    [AT_CUPTI] = {stop_cupti, 68, 72},
    [AT_COLLECTOR] = {finish_collector, 74, 80},
    [AT_FREE] = {free_engines, 78, 82},
    [AT_SAMPLER] = {stop_sampler, 82, 85},
    [AT_END] = {write_end, 93, 96},
    [AT_CLOSE] = {close_writer, 100, 100},
};

/* ---- on the ending thread ---- */

static void on_failure(void *user, size_t index, enum stage_end end, const char *call)
{
    static const char *const names[STAGE_COUNT] = {
        [AT_SCOPES] = "ending scopes",      [AT_DEEP] = "stopping the engine",      [AT_AMD] = "stopping rocprofiler",
        [AT_CUPTI] = "stopping CUPTI",      [AT_COLLECTOR] = "writing the records", [AT_FREE] = "freeing the engine",
        [AT_SAMPLER] = "stopping sampling", [AT_END] = "writing the end",           [AT_CLOSE] = "closing the files",
    };
    struct session_end *own = user;
    if (end == STAGE_BUSY) {
        atomic_store(&own->is_anything_left, true);
        if (!own->busy_call)
            own->busy_call = call = longest_call(own);
    }
    log_message(GPUFL_LOG_WARNING, "%s took too long (%s); the session ends without it", names[index],
                call ? call : "call unknown");
    if (index <= AT_CUPTI || index == AT_FREE)
        collector_leave_engines(own->parts.collector);
    else if (index == AT_COLLECTOR && end == STAGE_BUSY)
        atomic_store(&own->is_collector_left, true);
    else if (index == AT_SAMPLER && end == STAGE_BUSY)
        atomic_store(&own->is_sampler_left, true);
}

static void *end_main(void *argument)
{
    static const struct stage_plan plan = {stages, STAGE_COUNT, "gpufl-end", 0, on_failure};
    struct session_end *own = argument;
    while (atomic_load(&own->state) == END_WAITING)
        futex_wait(&own->state, END_WAITING, INT64_MAX);
    stages_run(&plan, own, own->parts.timeout_ms * INT64_C(1000000));
    state_set(own, END_DONE);
    return NULL;
}

/* ---- on the thread that starts or ends the session ---- */

bool session_end_thread_start(uint32_t hung_before)
{
    current = calloc(1, sizeof *current);
    if (!current)
        return false;
    current->hung_before = hung_before;
    if (own_thread_start(&current->thread, "gpufl-end-main", OWN_THREAD_STACK_SMALL, end_main, current))
        return true;
    free(current);
    current = NULL;
    return false;
}

void session_end_keeps_memory(void)
{
    atomic_store(&is_memory_kept, true);
}

void session_end(const struct session_parts *parts)
{
    struct session_end *own = current;
    int64_t timeout_ns = parts->timeout_ms * INT64_C(1000000);
    current = NULL;
    own->parts = *parts;
    snprintf(own->session_id, sizeof own->session_id, "%s", parts->session_id);
    snprintf(own->app_name, sizeof own->app_name, "%s", parts->app_name);
    own->parts.session_id = own->session_id;
    own->parts.app_name = own->app_name;
    own->deadline_ns = clock_mono_ns() + timeout_ns;
    int64_t wait_until_ns = own->deadline_ns + timeout_ns / 4; /* for an ending thread that got no CPU time on a busy
                                                             * machine */
    state_set(own, END_REQUESTED);
    while (atomic_load(&own->state) == END_REQUESTED && clock_mono_ns() < wait_until_ns)
        futex_wait(&own->state, END_REQUESTED, wait_until_ns);
    if (atomic_load(&own->state) != END_DONE) {
        pthread_detach(own->thread);
        return; /* leaks everything */
    }
    if (atomic_load(&is_memory_kept))
        return;
    pthread_join(own->thread, NULL);
    if (!atomic_load(&own->is_anything_left))
        free(own);
}

void session_end_after_fork_in_child(void)
{
    current = NULL; /* its thread is in the parent */
}
