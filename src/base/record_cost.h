/* SPDX-License-Identifier: Apache-2.0 */
/* What CUPTI's record of one kernel costs the program. A launch costs more where the program did other things since the
 * last one, for the caches no longer hold CUPTI's code and data. How far that is so, is seen by how long the call takes:
 * so the calibration also notes how long a launch takes in a loop of launches, and with caches emptied before each. */
#ifndef GPUFL_BASE_RECORD_COST_H
#define GPUFL_BASE_RECORD_COST_H

#include <stdint.h>

enum record_cost {
    RECORD_COST_HOST,       /* per launch, on the launching thread, in a loop of launches */
    RECORD_COST_HOST_COLD,  /* likewise, with caches emptied before */
    RECORD_COST_CALL,       /* how long such a launch takes, traced; 0: not known */
    RECORD_COST_CALL_COLD,  /* likewise, with caches emptied before */
    RECORD_COST_GPU,        /* per kernel, on a GPU that has more work queued */
    RECORD_COST_GRAPH_NODE, /* per kernel of a CUDA graph, likewise */
    RECORD_COST_COUNT
};

enum {
    RECORD_COST_COLD_GAP_NS = 5000, /* a launch so long after the thread's last one is of no loop of launches */
    RECORD_COST_NS_MAX = 1000000    /* no cost is larger */
};

extern const struct record_cost_info {
    const char *name;   /* in the log and in the file of calibrations */
    int64_t shipped_ns; /* where this host was not calibrated */
} record_costs[RECORD_COST_COUNT];

#endif
