/* SPDX-License-Identifier: Apache-2.0 */
/* CUPTI's SASS metrics: exact counts per instruction, from code that CUPTI patches into the program's kernels.
 * Order: acquire the profiler (profiler_target.h), configure the device once, then for each window and context
 * enable, ..., flush, disable. While a context is enabled its kernels are serialized and slow.
 *
 * Silent errors of CUPTI 13.0 on an H200 that the caller must prevent: beside kernel activity all counts are zero;
 * without PC sampling enabled on the same context (which then takes no samples) only the first function is counted,
 * and only up to the first flush.
 *
 * Not thread-safe per context; not from a CUPTI callback, except flush and disable of a context that is about to be
 * destroyed. */
#ifndef GPUFL_DRIVER_SASS_METRICS_H
#define GPUFL_DRIVER_SASS_METRICS_H

#include "driver/cupti.h"
#include "driver/sass_metrics_abi.h"

enum { SASS_METRICS_MAX = 96 }; /* metrics of one chip; the maximum so far is 63 */

/* Executed warp instructions: always measured, because this metric distinguishes "not executed" from "not measured". */
#define SASS_METRIC_EXECUTED "smsp__sass_inst_executed"

struct sass_metric {
    uint64_t id;
    const char *name, *description;
};
struct sass_metric_list { /* one allocation; the texts follow the metrics */
    struct sass_metric *metrics;
    size_t count;
};
void sass_metric_list_free(struct sass_metric_list *list);

/* The metrics chosen by a text: names of sets (`default`, `all-memory`) and of metrics, separated by commas; NULL or
 * "" is `default`. */
struct sass_choice {
    uint16_t chosen[SASS_METRICS_MAX]; /* indexes into the chip's list, ascending; SASS_METRIC_EXECUTED is one */
    size_t count;
    const char *skipped[16]; /* metrics of a set that this chip lacks; constant strings */
    size_t skipped_count;
};
/* Checks the text without a chip: each word must be a set or look like a metric. GPUFL_E_INVALID names the word and
 * the nearest set. */
NODISCARD gpufl_status sass_choice_check(const char *text, struct problem *problem);
/* GPUFL_E_INVALID: a metric requested by name does not exist on this chip; the problem names the nearest. */
NODISCARD gpufl_status sass_choice_make(struct sass_choice *choice, const struct sass_metric_list *available,
                                        const char *chip, const char *text, struct problem *problem);

struct sass_metrics { /* functions of one CUPTI; by value, owns nothing */
    struct cupti *cupti;
#define SASS_MEMBER(member, symbol, parameter) int (*member)(struct parameter *);
    SASS_ABI_FUNCTIONS(SASS_MEMBER)
#undef SASS_MEMBER
};

/* GPUFL_E_UNSUPPORTED names the function that is missing in this CUPTI. */
NODISCARD gpufl_status sass_metrics_bind(struct sass_metrics *metrics, struct cupti *cupti, struct problem *problem);
/* All metrics of a chip; needs no GPU. GPUFL_E_INVALID: CUPTI does not know the chip. */
NODISCARD gpufl_status sass_metrics_list(const struct sass_metrics *metrics, const char *chip,
                                         struct sass_metric_list *list, struct problem *problem);
/* Lasts for the life of the process, so the profiler must stay acquired: CUPTI can be configured once per device.
 * Repeating the same choice is GPUFL_OK, another one GPUFL_E_BUSY. Any thread. */
NODISCARD gpufl_status sass_metrics_configure(const struct sass_metrics *metrics, uint32_t device,
                                              const struct sass_metric_list *list, const struct sass_choice *choice,
                                              struct problem *problem);
void sass_metrics_abandon(void); /* in a forked child */
/* is_lazy: a kernel is patched when it is first launched; otherwise all loaded kernels are patched now. */
NODISCARD gpufl_status sass_metrics_enable(const struct sass_metrics *metrics, void *context, bool is_lazy,
                                           struct problem *problem);
/* dropped: values in CUPTI that were not flushed. */
NODISCARD gpufl_status sass_metrics_disable(const struct sass_metrics *metrics, void *context, uint64_t *dropped,
                                            struct problem *problem);

struct sass_count {
    const char *symbol; /* mangled; valid during the call; "" when CUPTI has none */
    uint32_t cubin_crc, function_index, pc_offset;
    uint64_t metric_id, value; /* of one instance: the same pc and metric may occur more than once */
};
struct sass_flush {
    size_t bytes_max; /* limit for CUPTI's records; GPUFL_E_LIMIT above it */
    void (*on_count)(void *user, const struct sass_count *count);
    void *user;
    uint64_t values; /* out: the number of values in CUPTI, also if they could not be read */
};
/* Delivers and clears the counts so far; the GPU must have finished the kernels. */
NODISCARD gpufl_status sass_metrics_flush(const struct sass_metrics *metrics, void *context, struct sass_flush *flush,
                                          struct problem *problem);

#endif
