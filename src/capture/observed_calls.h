/* SPDX-License-Identifier: Apache-2.0 */
/* Time that the program spends in CUDA calls, by what CUPTI is doing meanwhile (base/user_time.h). Calls made while
 * CUPTI only records kernels are the baseline for the others (analysis/slowdown.h). Time outside of calls does not
 * matter, so the program may pause for any length of time. Collector thread only. */
#ifndef GPUFL_CAPTURE_OBSERVED_CALLS_H
#define GPUFL_CAPTURE_OBSERVED_CALLS_H

#include "base/user_time.h"

#include <stdbool.h>

enum {
    OBSERVED_SLICE_NS = 250000000, /* long enough for a step of most programs */
    OBSERVED_BUCKETS = 512         /* eight for each doubling */
};

/* Consecutive calls in one state, lasting at least OBSERVED_SLICE_NS. */
struct call_slice {
    int64_t start_ns, calls_ns;
    uint64_t launches;
};

struct observed_state {
    uint64_t launches;
    int64_t calls_ns; /* in all calls, of all threads */
    struct call_slice slice;
    uint64_t launches_by_mean[OBSERVED_BUCKETS]; /* launches of slices, by time in calls per launch */
};

struct observed_calls {
    struct observed_state states[CALL_STATE_COUNT];
};

void observed_calls_add(struct observed_calls *calls, enum call_state state, int64_t start_ns, int64_t end_ns,
                        bool is_launch);
/* Time in calls per launch in the median slice, weighted by launches. A slice right after a switch, whose launches
 * reload modules, does not affect it. -1: there is no complete slice. */
int64_t observed_calls_typical_ns(const struct observed_calls *calls, enum call_state state);

#endif
