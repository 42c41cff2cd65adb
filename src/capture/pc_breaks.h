/* SPDX-License-Identifier: Apache-2.0 */
/* PC sampling with breaks. What it costs a program that launches a lot is there
 * while CUPTI has it enabled; so it is switched off for a part of each cycle, in
 * quiet moments. The stretches in which samples are taken are windows in the log.
 * Each, and each break, lasts from its first launch on. Cycles become longer. Of
 * the sampler's thread, where nothing else is said. */
#ifndef GPUFL_CAPTURE_PC_BREAKS_H
#define GPUFL_CAPTURE_PC_BREAKS_H

#include "base/status.h"
#include "capture/ended_windows.h"
#include "capture/quiet_moment.h"

struct pc_sampler;

struct pc_breaks {
    bool has_breaks; /* unchanged from the start on: any thread */
    uint32_t share_percent, cycle_max_ms;
    uint32_t cycle_ms, sampling_ms, break_ms; /* of this cycle */
    struct quiet_moment quiet;
    struct ended_windows ended;
    pthread_mutex_t mutex;   /* of `open`: the thread may come back from CUPTI after the stop */
    struct deep_window open; /* SOURCE_NONE: in a break, nothing was launched yet, or no context is sampled */
    _Atomic uint64_t launches;
    bool is_break;
    bool is_over;    /* a change failed: what can be sampled is so from now on */
    bool is_stopped; /* with the mutex */
};

/* share_percent: 100: none are taken; 0: the default. cycle_ms: the longest; 0: the default. */
void pc_breaks_init(struct pc_breaks *breaks, uint32_t share_percent, uint32_t cycle_ms);
void pc_breaks_next_cycle(struct pc_breaks *breaks); /* its stretches */
/* A break begins: where cycles are long it lasts until a multiple of them by the clock on the wall. The programs of one
 * job wait for each other, so that each one's windows would hold up all, if they were not the same. */
void pc_breaks_align(struct pc_breaks *breaks, int64_t wall_ns);
void pc_breaks_destroy(struct pc_breaks *breaks);
/* Before the thread is started: launches are told from now on, without which there are no breaks. */
void pc_breaks_start(struct pc_sampler *sampler);
/* How often the thread must look so that windows end in time; beat_ms where that is often enough. */
uint32_t pc_breaks_beat_ms(const struct pc_breaks *breaks, uint32_t beat_ms);
/* When the next one begins or ends, by clock_mono_ns; INT64_MAX: not known yet. */
int64_t pc_breaks_due_ns(struct pc_breaks *breaks);
void pc_breaks_launch(struct pc_breaks *breaks, bool is_enter); /* any thread */
void pc_breaks_turn(struct pc_sampler *sampler);                /* begins or ends one that is due */
void pc_breaks_stop(struct pc_sampler *sampler); /* after the thread, also one that is stuck: the open window ends */

#endif
