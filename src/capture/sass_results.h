/* SPDX-License-Identifier: Apache-2.0 */
/* Instruction counts of one context in one window: collected from CUPTI, sorted, written as rows. One owner at a
 * time: the thread that closes the context, then the collector. If a context's counts exceed the memory limit all of
 * them are dropped, because a ratio of two counts must not depend on which of them fit. */
#ifndef GPUFL_CAPTURE_SASS_RESULTS_H
#define GPUFL_CAPTURE_SASS_RESULTS_H

#include "capture/names.h"
#include "driver/cupti_events.h"
#include "driver/sass_metrics.h"

#include <stdatomic.h>

/* Memory used by all existing results. */
struct sass_budget {
    atomic_size_t used;
    size_t max;
};

struct sass_device { /* one GPU: which metrics it counts; fixed once is_ready */
    uint32_t id;
    char chip[32];
    struct sass_metric_list list;
    struct sass_choice choice;
    bool is_ready, is_configured; /* is_configured: in CUPTI, which cannot change it again */
    atomic_bool has_news;         /* the choice is not in the log yet */
};

struct sass_cell {
    uint32_t symbol; /* in symbols */
    uint32_t cubin_crc, function_index, pc_offset;
    uint16_t metric; /* index into the device's list */
    uint64_t value;
};

struct sass_results {
    struct sass_results *next;
    struct sass_budget *budget;
    size_t taken_bytes; /* from the budget */
    const struct sass_device *device;
    struct gpu_context context;
    uint32_t window_id;
    int64_t start_ns, end_ns;
    struct sass_cell *cells;
    size_t count, capacity;
    struct intern symbols;
    uint64_t refused;      /* counts that did not fit or have an unrequested metric */
    uint64_t executed;     /* warp instructions in total; set by settle */
    uint64_t not_executed; /* instructions omitted by settle: measured, and never executed */
};

/* The sass_config record. Collector thread. */
void sass_device_write(const struct sass_device *device, struct recorder *recorder, bool is_lazy, const char *mode);

/* NULL: out of memory or over the budget. */
struct sass_results *sass_results_make(struct sass_budget *budget, const struct sass_device *device,
                                       const struct gpu_context *context);
void sass_results_free(struct sass_results *results);
/* Adds one count from CUPTI; counts with the same pc and metric are added up. */
void sass_results_add(struct sass_results *results, const struct sass_count *count);
/* Sorts, adds up, and frees unused memory. Omits instructions whose counts are all zero and that are known not to
 * have been executed, because executions were counted too. */
void sass_results_settle(struct sass_results *results);
/* One profile_sample_batch row per count. Collector thread. */
void sass_results_write(const struct sass_results *results, struct recorder *recorder, struct names *names);

#endif
