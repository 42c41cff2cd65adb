/* SPDX-License-Identifier: Apache-2.0 */
/* What CUPTI's record of one kernel costs the program. A launch costs more if the program did other work since the
 * previous one, because CUPTI's code and data are no longer cached. The duration of a call shows how much that applies,
 * so the calibration also measures how long a launch takes in a loop of launches, and with the caches emptied before
 * each. */
#ifndef GPUFL_BASE_RECORD_COST_H
#define GPUFL_BASE_RECORD_COST_H

#include <stdint.h>

enum record_cost {
    RECORD_COST_HOST,       /* per launch, on the launching thread, in a loop of launches */
    RECORD_COST_HOST_COLD,  /* likewise, with caches emptied before */
    RECORD_COST_CALL,       /* duration of such a launch while tracing; 0: unknown */
    RECORD_COST_CALL_COLD,  /* likewise, with caches emptied before */
    RECORD_COST_GPU,        /* per kernel, on a GPU that has more work queued */
    RECORD_COST_GRAPH_NODE, /* per kernel of a CUDA graph, likewise */
    RECORD_COST_COUNT
};

enum {
    /* a launch this long after the thread's previous one is not part of a loop of launches */
    RECORD_COST_COLD_GAP_NS = 5000,
    RECORD_COST_NS_MAX = 1000000 /* upper limit of every cost */
};

extern const struct record_cost_info {
    const char *name;   /* in the log and in the file of calibrations */
    int64_t shipped_ns; /* default for hosts without a calibration */
} record_costs[RECORD_COST_COUNT];

#endif
