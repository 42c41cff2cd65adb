/* SPDX-License-Identifier: Apache-2.0 */
/* Joins what belongs together, of CUPTI's buffers and of rocprofiler's decoded
 * activities: a kernel with the API call that launched it, that call with its thread's scope, stack and
 * external id; then writes rows. What still waits for its call is kept (bounded)
 * and written without it when the call never comes. Collector thread only. */
#ifndef GPUFL_CAPTURE_ACTIVITY_JOINER_H
#define GPUFL_CAPTURE_ACTIVITY_JOINER_H

#include "capture/calls.h"
#include "capture/kernel_history.h"
#include "capture/launches.h"
#include "capture/recorder.h"
#include "capture/scope_history.h"
#include "capture/scope_tracker.h"
#include "capture/stacks.h"
#include "capture/thread_log.h"

struct activity_joiner; /* opaque */

struct activity_joiner_options {
    struct recorder *recorder; /* borrowed, as are the next two */
    struct scope_history *history;
    const struct cupti *cupti;      /* may be NULL: then there are none of its buffers */
    struct kernel_history *kernels; /* told of every execution; NULL: nobody asks */
    bool has_calls;                 /* CUPTI's API records were granted; else nothing waits for them */
    bool has_system_thread_id;
    bool with_graphs; /* write graph_launch_batch rows */
};

NODISCARD gpufl_status activity_joiner_make(struct activity_joiner **out,
                                            const struct activity_joiner_options *options);
void activity_joiner_free(struct activity_joiner *joiner);
/* Before the first stack; stacks is borrowed. */
NODISCARD gpufl_status activity_joiner_take_stacks(struct activity_joiner *joiner, struct stacks *stacks);
/* Before the first activity that is not CUPTI's. */
NODISCARD gpufl_status activity_joiner_open(struct activity_joiner *joiner, enum activity_source source);
void activity_joiner_read(struct activity_joiner *joiner, uint8_t *buffer, size_t valid_bytes); /* CUPTI's */
/* One activity of a source; false: a bad one, after which nothing of its buffer can be read. */
bool activity_joiner_accept(struct activity_joiner *joiner, enum activity_source source,
                            const struct activity *activity);
/* The call that this id stands for, NULL when it is not known (yet). */
const struct call *activity_joiner_call(const struct activity_joiner *joiner, enum activity_source source,
                                        uint32_t correlation_id);
/* Reads the devices' limits as soon as the driver knows them; true once it did. */
bool activity_joiner_has_limits(struct activity_joiner *joiner);
/* After a round of buffers: writes what has found its call by now. */
void activity_joiner_settle(struct activity_joiner *joiner);
/* A flush period is over: records that waited for three of them are written without their call. */
void activity_joiner_beat(struct activity_joiner *joiner);
/* The end: everything that waits is written as it is, and launches without a kernel are counted as lost. */
void activity_joiner_finish(struct activity_joiner *joiner);
/* A kernel launched while kernel records are paused. */
void activity_joiner_launch(struct activity_joiner *joiner, const struct launch_event *event, int64_t time_ns,
                            uint32_t thread_id, uint64_t scope_id);
/* A call that was seen while it was made; a wait is written at once. */
void activity_joiner_user_call(struct activity_joiner *joiner, const struct user_call *user,
                               const struct call_time *time);
void activity_joiner_stack(struct activity_joiner *joiner, uint32_t correlation_id, uint32_t stack_id);

struct activity_totals {
    uint64_t kernels, copies, memsets, syncs, calls;
    uint64_t launches;         /* without GPU time */
    uint64_t launched;         /* kernels by calls that were seen while they were made */
    uint64_t launched_kernels; /* records of kernels that a call launched, not a graph */
    uint64_t graph_kernels;    /* and of those that a graph launched */
    uint64_t unknown_records;
    int64_t cupti_overhead_ns[16]; /* by overhead slot: see overhead_slot in the source */
    uint32_t cupti_overhead_kind[16];
};
void activity_totals_add_overhead(struct activity_totals *totals, const struct overhead_activity *overhead);
/* Kernels of which neither a record came, nor a launch without time, nor CUPTI's word that it dropped them. */
uint64_t activity_joiner_missing(const struct activity_joiner *joiner);
/* The highest correlation id of CUPTI's calls so far. */
uint32_t activity_joiner_highest_id(const struct activity_joiner *joiner);
const struct activity_totals *activity_joiner_totals(const struct activity_joiner *joiner);
size_t activity_joiner_bytes(const struct activity_joiner *joiner);

#endif
