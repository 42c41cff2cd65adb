/* SPDX-License-Identifier: Apache-2.0 */
/* CUPTI's SASS metrics: exact counts per instruction, from code that CUPTI
 * patches into the program's kernels. Order: acquire the profiler
 * (profiler_target.h), configure the device once, then for each window and
 * context enable, ..., flush, disable. While a context is enabled its kernels run
 * one after the other and slowly.
 *
 * What CUPTI 13.0 does on an H200, without an error, and the caller must prevent:
 * beside kernel activity all counts are zero; without PC sampling enabled on the
 * same context (which then takes no samples) only the first function is counted,
 * and only up to the first flush.
 *
 * Not thread-safe per context; not from a CUPTI callback, except flush and
 * disable of a context that is about to go. */
#ifndef GPUFL_DRIVER_SASS_METRICS_H
#define GPUFL_DRIVER_SASS_METRICS_H

#include "driver/cupti.h"
#include "driver/sass_metrics_abi.h"

enum { SASS_METRICS_MAX = 96 }; /* metrics of one chip; 63 is the most so far */

/* Executed warp instructions: always measured, because it tells "not executed" from "not measured". */
#define SASS_METRIC_EXECUTED "smsp__sass_inst_executed"

struct sass_metric {
    uint64_t id;
    const char *name, *description;
};
struct sass_metric_list { /* one allocation; the texts lie behind the metrics */
    struct sass_metric *metrics;
    size_t count;
};
void sass_metric_list_free(struct sass_metric_list *list);

/* Which metrics a text chooses: names of sets (`default`, `all-memory`) and of metrics, separated by commas; NULL or
 * "" is `default`. */
struct sass_choice {
    uint16_t chosen[SASS_METRICS_MAX]; /* indexes into the chip's list, ascending; SASS_METRIC_EXECUTED is one */
    size_t count;
    const char *skipped[16]; /* metrics of a set that this chip lacks; constant strings */
    size_t skipped_count;
};
/* As far as that can be told without a chip: each word is a set or looks like a metric. GPUFL_E_INVALID names the word
 * and the nearest set. */
NODISCARD gpufl_status sass_choice_check(const char *text, struct problem *problem);
/* GPUFL_E_INVALID: a metric that was named is not one of this chip's; the problem names the nearest. */
NODISCARD gpufl_status sass_choice_make(struct sass_choice *choice, const struct sass_metric_list *available,
                                        const char *chip, const char *text, struct problem *problem);

struct sass_metrics { /* functions of one CUPTI; by value, owns nothing */
    struct cupti *cupti;
#define SASS_MEMBER(member, symbol, parameter) int (*member)(struct parameter *);
    SASS_ABI_FUNCTIONS(SASS_MEMBER)
#undef SASS_MEMBER
};

/* GPUFL_E_UNSUPPORTED names the function that this CUPTI lacks. */
NODISCARD gpufl_status sass_metrics_bind(struct sass_metrics *metrics, struct cupti *cupti, struct problem *problem);
/* All metrics of a chip; needs no GPU. GPUFL_E_INVALID: CUPTI does not know the chip. */
NODISCARD gpufl_status sass_metrics_list(const struct sass_metrics *metrics, const char *chip,
                                         struct sass_metric_list *list, struct problem *problem);
/* For the life of the process, and so the profiler must stay acquired: CUPTI can be configured once for a device. The
 * same choice again is GPUFL_OK, another one GPUFL_E_BUSY. Any thread. */
NODISCARD gpufl_status sass_metrics_configure(const struct sass_metrics *metrics, uint32_t device,
                                              const struct sass_metric_list *list, const struct sass_choice *choice,
                                              struct problem *problem);
void sass_metrics_abandon(void); /* in a forked child */
/* is_lazy: a kernel is patched when it is first launched, else all loaded ones now. */
NODISCARD gpufl_status sass_metrics_enable(const struct sass_metrics *metrics, void *context, bool is_lazy,
                                           struct problem *problem);
/* dropped: values that CUPTI held and nobody flushed. */
NODISCARD gpufl_status sass_metrics_disable(const struct sass_metrics *metrics, void *context, uint64_t *dropped,
                                            struct problem *problem);

struct sass_count {
    const char *symbol; /* mangled; valid during the call; "" when CUPTI has none */
    uint32_t cubin_crc, function_index, pc_offset;
    uint64_t metric_id, value; /* of one instance: the same pc and metric can come more than once */
};
struct sass_flush {
    size_t bytes_max; /* for CUPTI's records; GPUFL_E_LIMIT above it */
    void (*on_count)(void *user, const struct sass_count *count);
    void *user;
    uint64_t values; /* out: how many CUPTI held, also when they could not be had */
};
/* Hands over and forgets what was counted so far; the GPU must be done with the kernels. */
NODISCARD gpufl_status sass_metrics_flush(const struct sass_metrics *metrics, void *context, struct sass_flush *flush,
                                          struct problem *problem);

#endif
