/* SPDX-License-Identifier: Apache-2.0 */
/* Time that the program spends in CUDA calls, by what CUPTI does beside them (base/user_time.h). The calls while CUPTI
 * only records kernels are what the others are compared with (analysis/slowdown.h). Time that the program spends outside
 * of calls does not matter, however long it pauses. Collector thread only. */
#ifndef GPUFL_CAPTURE_OBSERVED_CALLS_H
#define GPUFL_CAPTURE_OBSERVED_CALLS_H

#include "base/user_time.h"

#include <stdbool.h>

enum {
    OBSERVED_SLICE_NS = 250000000, /* long enough for a step of most programs */
    OBSERVED_BUCKETS = 512         /* eight for each doubling */
};

/* A stretch of calls in one state, of at least OBSERVED_SLICE_NS. */
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
/* Time in calls per launch of the median slice: of launches as many are in slices with less as with more. A slice after
 * a switch, whose launches load modules anew, does not move it. -1: there is no whole slice. */
int64_t observed_calls_typical_ns(const struct observed_calls *calls, enum call_state state);

#endif
