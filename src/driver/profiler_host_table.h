/* SPDX-License-Identifier: Apache-2.0 */
/* struct profiler_host, shared by its two files. */
#ifndef GPUFL_DRIVER_PROFILER_HOST_TABLE_H
#define GPUFL_DRIVER_PROFILER_HOST_TABLE_H

#include "driver/profiler_host.h"
#include "driver/profiler_host_abi.h"
#include "driver/profiler_target.h"

struct host_table { /* NULL where the library lacks a function */
#define HOST_MEMBER(member, symbol, parameter) int (*member)(struct parameter *);
    PROFILER_HOST_ABI_FUNCTIONS(HOST_MEMBER)
#undef HOST_MEMBER
};

struct profiler_host {
    struct cupti *cupti;
    struct host_table call;
    void *object; /* CUPTI's; NULL after it could not be recreated */
    enum profiler_kind kind;
    char chip[PROFILER_CHIP_NAME_BYTES];
    uint8_t *availability; /* owned; NULL: everything the chip can have */
    bool has_metrics;      /* the object was given metrics: CUPTI adds up those of several plans */
};

/* Loads libnvperf_host and binds; GPUFL_E_NOT_FOUND or GPUFL_E_UNSUPPORTED. */
NODISCARD gpufl_status host_table_bind(struct host_table *table, struct cupti *cupti, struct problem *problem);
/* The meaning of a failed call of the host. */
gpufl_status host_problem(const struct cupti *cupti, const char *function, int result, struct problem *problem);
/* Copies CUPTI's names; NULL names are rejected as damaged. */
NODISCARD gpufl_status name_list_copy(struct name_list *list, const char *const *names, size_t count,
                                      struct problem *problem);
/* GPUFL_E_INVALID with the nearest chip. */
gpufl_status host_refuse_chip(struct cupti *cupti, const char *chip, struct problem *problem);
/* The suffixes of a metric, with CUPTI's error text on failure. */
NODISCARD gpufl_status host_sub_metrics(struct profiler_host *host, const char *metric, enum metric_type type,
                                        struct name_list *metrics, struct problem *problem);
/* Why CUPTI refuses the metric: it does not exist, or its suffix is missing or wrong. GPUFL_OK: no reason was found. */
NODISCARD gpufl_status metric_check(struct profiler_host *host, const char *metric, bool may_lack_suffix,
                                    struct problem *problem);

#endif
