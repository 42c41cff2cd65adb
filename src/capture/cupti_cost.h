/* SPDX-License-Identifier: Apache-2.0 */
/* The cost per kernel that CUPTI itself adds to the traced program. It cannot be measured while the program runs, so
 * it is calibrated once per host (`gpufl doctor --calibrate`) for this CPU, CUDA driver and CUPTI. Without a
 * calibration a built-in default is used, which the log marks as such. */
#ifndef GPUFL_CAPTURE_CUPTI_COST_H
#define GPUFL_CAPTURE_CUPTI_COST_H

#include "base/record_cost.h"
#include "base/status.h"

#include <limits.h>

struct cupti_cost {
    int64_t ns[RECORD_COST_COUNT];
    bool is_default;
};

/* The configuration for which a calibration is valid. */
struct cupti_cost_key {
    char cpu[128];
    int cuda_version; /* 13000 = 13.0; 0 unknown */
    uint32_t cupti_version;
};

void cupti_cost_key_fill(struct cupti_cost_key *key, int cuda_version, uint32_t cupti_version);
/* Returns the calibration of this host, or the default. */
void cupti_cost_find(struct cupti_cost *cost, const struct cupti_cost_key *key);
/* Adds the calibration to the user's file, or replaces the entry with the same key; path: the file, on success. */
NODISCARD gpufl_status cupti_cost_store(const struct cupti_cost *cost, const struct cupti_cost_key *key,
                                        char path[PATH_MAX], struct problem *problem);

#endif
