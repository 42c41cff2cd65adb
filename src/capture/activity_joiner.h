/* SPDX-License-Identifier: Apache-2.0 */
/* Joins the records of CUPTI's buffers and rocprofiler's decoded activities: a kernel with the API call that
 * launched it, and that call with its thread's scope, stack and external id. Then writes the rows. Records that
 * arrive before their call are kept (bounded), and written without it if the call never arrives. Collector thread
 * only. */
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
    const struct cupti *cupti;      /* may be NULL: then no CUPTI buffers arrive */
    struct kernel_history *kernels; /* receives every execution; NULL: not wanted */
    bool has_calls;                 /* CUPTI's API records were granted; otherwise no record waits for its call */
    bool has_system_thread_id;
    bool with_graphs; /* write graph_launch_batch rows */
};

NODISCARD gpufl_status activity_joiner_make(struct activity_joiner **out,
                                            const struct activity_joiner_options *options);
void activity_joiner_free(struct activity_joiner *joiner);
/* Call before the first stack is recorded; stacks is borrowed. */
NODISCARD gpufl_status activity_joiner_take_stacks(struct activity_joiner *joiner, struct stacks *stacks);
/* Call before the first activity of a source other than CUPTI. */
NODISCARD gpufl_status activity_joiner_open(struct activity_joiner *joiner, enum activity_source source);
void activity_joiner_read(struct activity_joiner *joiner, uint8_t *buffer, size_t valid_bytes); /* CUPTI's */
/* Takes one activity of a source; false: it is malformed, and the rest of its buffer cannot be read. */
bool activity_joiner_accept(struct activity_joiner *joiner, enum activity_source source,
                            const struct activity *activity);
/* The call with this id, NULL when it is not known (yet). */
const struct call *activity_joiner_call(const struct activity_joiner *joiner, enum activity_source source,
                                        uint32_t correlation_id);
/* Reads the devices' limits as soon as the driver knows them; true once they were read. */
bool activity_joiner_has_limits(struct activity_joiner *joiner);
/* Call after each round of buffers: writes the records whose call has arrived. */
void activity_joiner_settle(struct activity_joiner *joiner);
/* Call after each flush period: records that waited for three periods are written without their call. */
void activity_joiner_tick(struct activity_joiner *joiner);
/* Call at the end: writes everything that still waits, and counts launches without a kernel as lost. */
void activity_joiner_finish(struct activity_joiner *joiner);
/* Records a kernel that was launched while kernel records are paused. */
void activity_joiner_launch(struct activity_joiner *joiner, const struct launch_event *event, int64_t time_ns,
                            uint32_t thread_id, uint64_t scope_id);
/* Records a call that was observed while it was made; a wait is written at once. */
void activity_joiner_user_call(struct activity_joiner *joiner, const struct user_call *user,
                               const struct call_time *time);
void activity_joiner_stack(struct activity_joiner *joiner, uint32_t correlation_id, uint32_t stack_id);

struct activity_totals {
    uint64_t kernels, copies, memsets, syncs, calls;
    uint64_t launches;         /* without GPU time */
    uint64_t launched;         /* kernels launched by calls that were observed while they were made */
    uint64_t launched_kernels; /* kernel records caused by a call, not by a graph */
    uint64_t graph_kernels;    /* and those caused by a graph */
    uint64_t unknown_records;
    int64_t cupti_overhead_ns[16]; /* by overhead slot: see overhead_slot in the source */
    uint32_t cupti_overhead_kind[16];
};
void activity_totals_add_overhead(struct activity_totals *totals, const struct overhead_activity *overhead);
/* Kernels for which there is neither a record, nor a launch without time, nor a report by CUPTI that it dropped
 * them. */
uint64_t activity_joiner_missing(const struct activity_joiner *joiner);
/* The highest correlation id of CUPTI's calls so far. */
uint32_t activity_joiner_highest_id(const struct activity_joiner *joiner);
const struct activity_totals *activity_joiner_totals(const struct activity_joiner *joiner);
size_t activity_joiner_bytes(const struct activity_joiner *joiner);

#endif
