/* SPDX-License-Identifier: Apache-2.0 */
/* PC sampling with breaks. Sampling slows a program that launches a lot for as long as it is enabled in CUPTI, so it
 * is switched off for a part of each cycle, in quiet moments. The periods with samples are windows in the log. Each
 * window and each break starts at its first launch. Cycles become longer. Called on the sampler's thread unless
 * noted. */
#ifndef GPUFL_CAPTURE_PC_BREAKS_H
#define GPUFL_CAPTURE_PC_BREAKS_H

#include "base/status.h"
#include "capture/ended_windows.h"
#include "capture/quiet_moment.h"

struct pc_sampler;

struct pc_breaks {
    bool has_breaks; /* does not change after the start: any thread */
    uint32_t share_percent, cycle_max_ms;
    uint32_t cycle_ms, sampling_ms, break_ms; /* of this cycle */
    struct quiet_moment quiet;
    struct ended_windows ended;
    pthread_mutex_t mutex;   /* guards `open`: the thread may return from CUPTI after the stop */
    struct deep_window open; /* SOURCE_NONE: in a break, nothing was launched yet, or no context is sampled */
    _Atomic uint64_t launches;
    bool is_break;
    bool is_over;    /* a change failed: sampling continues without breaks where possible */
    bool is_stopped; /* with the mutex */
};

/* share_percent: 100: no breaks; 0: the default. cycle_ms: the longest cycle; 0: the default. */
void pc_breaks_init(struct pc_breaks *breaks, uint32_t share_percent, uint32_t cycle_ms);
void pc_breaks_next_cycle(struct pc_breaks *breaks); /* computes its window and break */
/* Starts a break. In long cycles it ends at a multiple of the cycle on the wall clock, so that the processes of a
 * job, which wait for each other, sample at the same time and slow the job down only once. */
void pc_breaks_align(struct pc_breaks *breaks, int64_t wall_ns);
void pc_breaks_destroy(struct pc_breaks *breaks);
/* Call before the thread is started: listens for launches, without which there are no breaks. */
void pc_breaks_start(struct pc_sampler *sampler);
/* How often the thread must wake up so that windows end in time; at most tick_ms. */
uint32_t pc_breaks_tick_ms(const struct pc_breaks *breaks, uint32_t tick_ms);
/* When the next window or break begins, by clock_mono_ns; INT64_MAX: not known yet. */
int64_t pc_breaks_due_ns(struct pc_breaks *breaks);
void pc_breaks_launch(struct pc_breaks *breaks, bool is_enter); /* any thread */
void pc_breaks_turn(struct pc_sampler *sampler);                /* begins or ends the window that is due */
void pc_breaks_stop(struct pc_sampler *sampler); /* after the thread has ended or is stuck: ends the open window */

#endif
