/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/pc_breaks.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/user_time.h"
#include "capture/pc_engine.h"

enum {
    ALL_PERCENT = 100,
    SHARE_DEFAULT_PERCENT = 10,
    CYCLE_FIRST_MS = 20000,   /* so that short programs get more than one window; each cycle is twice the one before */
    CYCLE_DEFAULT_MS = 60000, /* the longest cycle */
    FIRST_SHARE_PERCENT = 15, /* three seconds: programs that end by then have no switch */
    FIRST_WINDOW = 1,
    TICKS_MIN = 4, /* per window or break */
    WAIT_MS = 500, /* for a quiet moment: samples do not justify stopping the program for longer */
};

/* Computes the window and break of a cycle of that length. */
static void cycle_set(struct pc_breaks *breaks, uint32_t cycle_ms, uint32_t share_percent)
{
    breaks->cycle_ms = cycle_ms;
    breaks->sampling_ms = (uint32_t)((uint64_t)cycle_ms * share_percent / ALL_PERCENT);
    breaks->break_ms = cycle_ms - breaks->sampling_ms;
}

void pc_breaks_init(struct pc_breaks *breaks, uint32_t share_percent, uint32_t cycle_ms)
{
    quiet_moment_init(&breaks->quiet, WAIT_MS);
    ended_windows_init(&breaks->ended);
    pthread_mutex_init(&breaks->mutex, NULL);
    breaks->share_percent = share_percent ? share_percent : SHARE_DEFAULT_PERCENT;
    if (breaks->share_percent >= ALL_PERCENT) {
        breaks->share_percent = ALL_PERCENT;
        return;
    }
    breaks->has_breaks = true;
    breaks->cycle_max_ms = cycle_ms ? cycle_ms : CYCLE_DEFAULT_MS;
    cycle_set(breaks, breaks->cycle_max_ms < CYCLE_FIRST_MS ? breaks->cycle_max_ms : CYCLE_FIRST_MS,
              share_percent ? share_percent : FIRST_SHARE_PERCENT);
}

static uint32_t next_cycle_ms(const struct pc_breaks *breaks)
{
    return breaks->cycle_ms > breaks->cycle_max_ms / 2 ? breaks->cycle_max_ms : 2 * breaks->cycle_ms;
}

void pc_breaks_next_cycle(struct pc_breaks *breaks)
{
    cycle_set(breaks, next_cycle_ms(breaks), breaks->share_percent);
}

void pc_breaks_align(struct pc_breaks *breaks, int64_t wall_ns)
{
    int64_t now_ms = wall_ns / 1000000, cycle_ms = breaks->cycle_ms, usual_ms = cycle_ms - breaks->sampling_ms;
    if (cycle_ms >= CYCLE_DEFAULT_MS)
        breaks->break_ms = (uint32_t)((now_ms + usual_ms / 2 + cycle_ms - 1) / cycle_ms * cycle_ms - now_ms);
}

uint32_t pc_breaks_tick_ms(const struct pc_breaks *breaks, uint32_t tick_ms)
{
    if (!breaks->has_breaks)
        return tick_ms;
    uint32_t second_ms = (uint32_t)((uint64_t)next_cycle_ms(breaks) * breaks->share_percent / ALL_PERCENT);
    uint32_t shorter_ms = breaks->sampling_ms < breaks->break_ms ? breaks->sampling_ms : breaks->break_ms;
    shorter_ms = second_ms < shorter_ms ? second_ms : shorter_ms; /* the first window has a larger share */
    uint32_t most_ms = shorter_ms > TICKS_MIN ? shorter_ms / TICKS_MIN : 1;
    return most_ms < tick_ms ? most_ms : tick_ms;
}

int64_t pc_breaks_due_ns(struct pc_breaks *breaks)
{
    if (!breaks->has_breaks || breaks->is_over)
        return INT64_MAX;
    return quiet_moment_due_ns(&breaks->quiet, breaks->is_break ? breaks->break_ms : breaks->sampling_ms);
}

void pc_breaks_destroy(struct pc_breaks *breaks)
{
    quiet_moment_destroy(&breaks->quiet);
    pthread_mutex_destroy(&breaks->mutex);
}

void pc_breaks_start(struct pc_sampler *sampler)
{
    struct pc_breaks *breaks = &sampler->breaks;
    call_state_set(CALLS_SAMPLED);
    if (!breaks->has_breaks)
        return;
    if (!cupti_listen_launches(sampler->options.cupti, true)) {
        breaks->has_breaks = false;
        breaks->share_percent = ALL_PERCENT;
        log_message(GPUFL_LOG_WARNING, "PC sampling takes no breaks: CUPTI does not report launches");
        return;
    }
    atomic_store(&sampler->window_id, FIRST_WINDOW);
}

void pc_breaks_launch(struct pc_breaks *breaks, bool is_enter)
{
    if (!breaks->has_breaks)
        return;
    quiet_moment_launch(&breaks->quiet, is_enter);
    if (is_enter)
        atomic_fetch_add(&breaks->launches, 1);
}

static void window_begin(struct pc_breaks *breaks, uint32_t id, int64_t start_ns)
{
    pthread_mutex_lock(&breaks->mutex);
    breaks->open =
        (struct deep_window){.id = id, .source = SOURCE_PC, .start_ns = start_ns, .requested_ms = breaks->sampling_ms};
    pthread_mutex_unlock(&breaks->mutex);
}

/* The first window, also after a failure, is measured in time since the first launch. */
static void first_window_begin(struct pc_sampler *sampler)
{
    struct pc_breaks *breaks = &sampler->breaks;
    int64_t first_ns = atomic_load(&breaks->quiet.first_ns);
    if (first_ns && !breaks->is_break && breaks->open.source == SOURCE_NONE)
        window_begin(breaks, atomic_load(&sampler->window_id), clock_log_ns() - (clock_mono_ns() - first_ns));
}

static void window_end(struct pc_breaks *breaks, const char *close_reason)
{
    pthread_mutex_lock(&breaks->mutex);
    if (breaks->open.source != SOURCE_NONE) {
        breaks->open.end_ns = clock_log_ns();
        breaks->open.launches = atomic_exchange(&breaks->launches, 0);
        breaks->open.close_reason = close_reason;
        ended_windows_add(&breaks->ended, &breaks->open);
        breaks->open.source = SOURCE_NONE;
    }
    pthread_mutex_unlock(&breaks->mutex);
}

/* Nothing is sampled: if sampling failed, the window ends; a later one begins with the next launch. */
static void go_without(struct pc_sampler *sampler)
{
    struct pc_breaks *breaks = &sampler->breaks;
    if (breaks->open.source != SOURCE_NONE) {
        if (!pc_sampler_has_failed(sampler)) /* the program has no context at the moment */
            return;
        window_end(breaks, "sampling_failed");
        call_state_set(CALLS_PLAIN);
        atomic_fetch_add(&sampler->window_id, 1);
    }
    quiet_moment_reset(&breaks->quiet);
    atomic_store(&breaks->launches, 0);
}

static gpufl_status break_begin(struct pc_sampler *sampler, struct problem *problem)
{
    gpufl_status status = pc_sampler_pause(sampler, problem);
    call_state_set(CALLS_PLAIN);
    pc_breaks_align(&sampler->breaks, clock_log_ns());
    window_end(&sampler->breaks, pc_sampler_is_sampling(sampler) ? "deadline" : "sampling_failed");
    return status;
}

static gpufl_status break_end(struct pc_sampler *sampler, struct problem *problem)
{
    uint32_t id = atomic_load(&sampler->window_id) + 1;
    pc_breaks_next_cycle(&sampler->breaks);
    gpufl_status status = pc_sampler_resume(sampler, id, problem);
    call_state_set(CALLS_SAMPLED);
    atomic_store(&sampler->breaks.launches, 0);
    if (pc_sampler_is_sampling(sampler))
        window_begin(&sampler->breaks, id, clock_log_ns());
    return status;
}

void pc_breaks_turn(struct pc_sampler *sampler)
{
    struct pc_breaks *breaks = &sampler->breaks;
    struct problem problem = {""};
    if (!breaks->has_breaks)
        return;
    if (!pc_sampler_is_sampling(sampler)) {
        go_without(sampler);
        return;
    }
    first_window_begin(sampler);
    if (breaks->is_over)
        return;
    uint32_t after_ms = breaks->is_break ? breaks->break_ms : breaks->sampling_ms;
    if (!quiet_moment_is_due(&breaks->quiet, after_ms) || !quiet_moment_begin(&breaks->quiet, after_ms))
        return;
    atomic_store(&sampler->activity, "a switch between sampling and a break");
    bool was_break = breaks->is_break;
    gpufl_status status = was_break ? break_end(sampler, &problem) : break_begin(sampler, &problem);
    breaks->is_over = status != GPUFL_OK;
    if (breaks->is_over && !was_break) /* one context's failure does not end the others' samples */
        (void)break_end(sampler, NULL);
    breaks->is_break = !was_break && !breaks->is_over;
    atomic_store(&sampler->activity, PC_ACTIVITY_READING);
    quiet_moment_reset(&breaks->quiet);
    quiet_moment_end(&breaks->quiet);
    if (breaks->is_over)
        log_message(GPUFL_LOG_WARNING, "PC sampling takes no more breaks: %s", problem.text);
}

void pc_breaks_stop(struct pc_sampler *sampler)
{
    struct pc_breaks *breaks = &sampler->breaks;
    if (!breaks->has_breaks)
        return;
    pthread_mutex_lock(&breaks->mutex);
    bool was_stopped = breaks->is_stopped;
    breaks->is_stopped = true;
    pthread_mutex_unlock(&breaks->mutex);
    if (was_stopped)
        return;
    if (!pc_sampler_is_sampling(sampler))
        go_without(sampler);
    if (atomic_load(&sampler->context_count)) /* even if the program has already destroyed them */
        first_window_begin(sampler);
    window_end(breaks, "session_stop");
}
