/* SPDX-License-Identifier: Apache-2.0 */
/* Summary statistics of one hardware metric over time. Pure functions; samples that are not numbers are skipped and
 * counted. */
#ifndef GPUFL_ANALYSIS_PM_USE_H
#define GPUFL_ANALYSIS_PM_USE_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

struct pm_series {
    const char *metric; /* borrowed, like the arrays */
    uint32_t device_id;
    size_t count;
    const int64_t *times_ns; /* start of each sampled interval, in the order they were taken */
    const double *values;
};

struct pm_use {
    size_t count;         /* samples with a value */
    size_t without_value; /* NaN or infinite */
    int64_t interval_ns;  /* given, or the median distance; 0: unknown */
    int64_t covered_ns;   /* time that the samples represent, without gaps */
    double mean;          /* over that time */
    double p50, p95, max; /* of the samples, nearest-rank */
    double share_above;   /* fraction of the covered time in which the value was above the threshold */
    size_t gap_count;     /* distances of more than three intervals */
    int64_t gap_ns;       /* time in the gaps that no sample represents */
};

/* interval_ns: as configured, 0 if unknown. All results are NaN if no sample has a value. GPUFL_E_NO_MEMORY is the only
 * error. */
NODISCARD gpufl_status pm_use_of(const struct pm_series *series, int64_t interval_ns, double threshold,
                                 struct pm_use *use);

#endif
