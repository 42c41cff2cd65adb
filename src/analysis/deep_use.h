/* SPDX-License-Identifier: Apache-2.0 */
/* Hardware metrics by scope and by kernel, and what share of the run each source
 * of deep data saw. Made once, read only afterwards; borrows the model. */
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
    uint64_t invalid;          /* closed with counts that could not be right */
    bool has_unknown_launches; /* of some window */
    int64_t covered_ns;        /* overlapping windows count once */
};

struct deep_use {
    struct metric_group *groups; /* scopes, then kernels; most GPU time first where it was counted, then most results */
    size_t group_count;
    struct window_use *windows;
    size_t window_use_count;
};

NODISCARD gpufl_status deep_use_make(struct deep_use *use, const struct session_model *model);
void deep_use_free(struct deep_use *use);
/* The figures of one counter over time, with the interval that its device was configured for. */
NODISCARD gpufl_status deep_pm_use(const struct session_deep *deep, const struct pm_column *column, struct pm_use *use);

#endif
