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

enum keeper_state { KEEPER_WAITS, KEEPER_ASKED, KEEPER_DONE };

/* One for each session; it stays where a stage was left. */
struct keeper {
    pthread_t thread;
    _Atomic uint32_t state; /* enum keeper_state; futex word */
    struct session_parts parts;
    char session_id[37], app_name[256];
    uint32_t hung_before;  /* calls of earlier sessions */
    const char *busy_call; /* of the program, which a stage waited for; NULL: none, or not known */
    /* A thread of the part may still run our code. */
    _Atomic bool is_collector_left, is_sampler_left, is_anything_left;
    _Atomic bool is_collector_done;
    int64_t deadline_ns;
};

static atomic_bool is_memory_kept;
static struct keeper *keeper; /* of the session that runs */

static void futex_wait(_Atomic uint32_t *word, uint32_t seen, int64_t deadline_ns)
{
    const struct timespec deadline = {deadline_ns / 1000000000, deadline_ns % 1000000000};
    syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, seen, deadline_ns < INT64_MAX ? &deadline : NULL, NULL,
            FUTEX_BITSET_MATCH_ANY);
}

static void state_set(struct keeper *own, enum keeper_state state)
{
    atomic_store(&own->state, (uint32_t)state);
    syscall(SYS_futex, &own->state, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

/* ---- the stages, each on a thread that may be abandoned in it ---- */

static void stop_scopes(void *user)
{
    (void)user;
    scope_listeners_remove();
}

static void stop_deep(void *user)
{
    const struct keeper *own = user;
    collector_stop_deep(own->parts.collector);
}

static void stop_amd(void *user)
{
    const struct keeper *own = user;
    collector_stop_amd(own->parts.collector);
}

static void stop_cupti(void *user)
{
    const struct keeper *own = user;
    collector_stop_cupti(own->parts.collector);
}

static void finish_collector(void *user)
{
    struct keeper *own = user;
    atomic_store(&own->is_collector_done, collector_finish(own->parts.collector) == WATCH_ENDED);
}

static void free_engines(void *user)
{
    const struct keeper *own = user;
    if (atomic_load(&own->is_collector_done))
        collector_free_engines(own->parts.collector);
}

static void stop_sampler(void *user)
{
    struct keeper *own = user;
    if (system_sampler_stop(own->parts.sampler) == WATCH_BUSY)
        atomic_store(&own->is_sampler_left, true);
}

/* A call that takes this long hangs, probably. */
static const char *longest_call(const struct keeper *own)
{
    return watch_longest(clock_mono_ns() - own->parts.timeout_ms * INT64_C(100000));
}

/* "cuptiUnsubscribe, nvmlShutdown"; false: all calls have returned. */
static bool hung_calls(const struct keeper *own, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t i = own->hung_before; i < watch_hung_count() && used < size; i++)
        if (watch_hung_call(i))
            used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "", watch_hung_call(i));
    /* The program's own threads are not abandoned; nor does the session wait for them, where it can do without. */
    const char *busy_call = own->busy_call ? own->busy_call : longest_call(own);
    if (busy_call && used < size)
        used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "", busy_call);
    return used > 0 || atomic_load(&own->is_anything_left);
}

static void write_end(void *user)
{
    struct keeper *own = user;
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
    struct keeper *own = user;
    int64_t spare_ns = own->parts.timeout_ms * INT64_C(50000); /* for ending what does not end in time */
    int64_t left_ns = own->deadline_ns - spare_ns - clock_mono_ns();
    if (atomic_load(&own->is_collector_left) || atomic_load(&own->is_sampler_left))
        return; /* a thread may still write */
    if (atomic_load(&own->is_collector_done))
        collector_free(own->parts.collector);
    log_writer_close(own->parts.writer, left_ns > 0 ? (unsigned)(left_ns / 1000000) : 0);
}

enum { AT_SCOPES, AT_DEEP, AT_AMD, AT_CUPTI, AT_COLLECTOR, AT_FREE, AT_SAMPLER, AT_END, AT_CLOSE, STAGE_COUNT };

/* Most of the time is for the engine: PC sampling waits for the GPU's last samples. */
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

/* ---- on the keeper's thread ---- */

static void on_failure(void *user, size_t index, enum stage_end end, const char *call)
{
    static const char *const names[STAGE_COUNT] = {
        [AT_SCOPES] = "ending scopes",      [AT_DEEP] = "stopping the engine",      [AT_AMD] = "stopping rocprofiler",
        [AT_CUPTI] = "stopping CUPTI",      [AT_COLLECTOR] = "writing the records", [AT_FREE] = "freeing the engine",
        [AT_SAMPLER] = "stopping sampling", [AT_END] = "writing the end",           [AT_CLOSE] = "closing the files",
    };
    struct keeper *own = user;
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

static void *keeper_main(void *argument)
{
    static const struct stage_plan plan = {stages, STAGE_COUNT, "gpufl-end", 0, on_failure};
    struct keeper *own = argument;
    while (atomic_load(&own->state) == KEEPER_WAITS)
        futex_wait(&own->state, KEEPER_WAITS, INT64_MAX);
    stages_run(&plan, own, own->parts.timeout_ms * INT64_C(1000000));
    state_set(own, KEEPER_DONE);
    return NULL;
}

/* ---- on the thread that starts or ends the session ---- */

bool session_keeper_start(uint32_t hung_before)
{
    keeper = calloc(1, sizeof *keeper);
    if (!keeper)
        return false;
    keeper->hung_before = hung_before;
    if (own_thread_start(&keeper->thread, "gpufl-keeper", OWN_THREAD_STACK_SMALL, keeper_main, keeper))
        return true;
    free(keeper);
    keeper = NULL;
    return false;
}

void session_end_keeps_memory(void)
{
    atomic_store(&is_memory_kept, true);
}

void session_end(const struct session_parts *parts)
{
    struct keeper *own = keeper;
    int64_t timeout_ns = parts->timeout_ms * INT64_C(1000000);
    keeper = NULL;
    own->parts = *parts;
    snprintf(own->session_id, sizeof own->session_id, "%s", parts->session_id);
    snprintf(own->app_name, sizeof own->app_name, "%s", parts->app_name);
    own->parts.session_id = own->session_id;
    own->parts.app_name = own->app_name;
    own->deadline_ns = clock_mono_ns() + timeout_ns;
    int64_t give_up_ns = own->deadline_ns + timeout_ns / 4; /* for a keeper that got no time on a busy machine */
    state_set(own, KEEPER_ASKED);
    while (atomic_load(&own->state) == KEEPER_ASKED && clock_mono_ns() < give_up_ns)
        futex_wait(&own->state, KEEPER_ASKED, give_up_ns);
    if (atomic_load(&own->state) != KEEPER_DONE) {
        pthread_detach(own->thread);
        return; /* with everything */
    }
    if (atomic_load(&is_memory_kept))
        return;
    pthread_join(own->thread, NULL);
    if (!atomic_load(&own->is_anything_left))
        free(own);
}

void session_end_after_fork_in_child(void)
{
    keeper = NULL; /* its thread is the parent's */
}
