/* SPDX-License-Identifier: Apache-2.0 */
/* Hardware metrics by scope and by kernel, and the share of the run that each source of deep data covered. Made once,
 * then read-only; borrows the model. */
#ifndef GPUFL_ANALYSIS_DEEP_USE_H
#define GPUFL_ANALYSIS_DEEP_USE_H

#include "analysis/pm_use.h"
#include "analysis/session.h"

struct metric_column {
    const char *name;
    uint64_t count;
    double mean, min, max; /* over the group's results */
};

/* Results of one scope, or of all executions of one kernel, on one GPU. */
struct metric_group {
    const char *name, *metric_set, *reason; /* reason: of the last result without values, else "" */
    uint16_t device;
    bool is_kernel;
    uint64_t results, incomplete;                       /* incomplete: results without values */
    int64_t passes_needed, passes_collected, instances; /* of the last result; CELL_UNKNOWN */
    struct metric_column *columns;                      /* owned */
    size_t column_count, column_capacity;
};

struct window_use {
    const char *source;
    uint64_t windows, launches;
    uint64_t invalid;          /* closed with counts that cannot be correct */
    bool has_unknown_launches; /* of some window */
    int64_t covered_ns;        /* overlapping windows count once */
};

struct deep_use {
    struct metric_group
        *groups; /* scopes, then kernels; sorted by GPU time where it was counted, then by number of results */
    size_t group_count;
    struct window_use *windows;
    size_t window_use_count;
};

NODISCARD gpufl_status deep_use_make(struct deep_use *use, const struct session_model *model);
void deep_use_free(struct deep_use *use);
/* Statistics of one counter over time, with the interval configured for its device. */
NODISCARD gpufl_status deep_pm_use(const struct session_deep *deep, const struct pm_column *column, struct pm_use *use);

#endif
