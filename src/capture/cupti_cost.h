/* SPDX-License-Identifier: Apache-2.0 */
/* What CUPTI itself costs the traced program for each kernel. It cannot be measured beside the program, so it is
 * calibrated once per host (`gpufl doctor --calibrate`) for this CPU, CUDA driver and CUPTI; without that a shipped
 * default is used, which the log marks as such. */
#ifndef GPUFL_CAPTURE_CUPTI_COST_H
#define GPUFL_CAPTURE_CUPTI_COST_H

#include "base/record_cost.h"
#include "base/status.h"

#include <limits.h>

struct cupti_cost {
    int64_t ns[RECORD_COST_COUNT];
    bool is_default;
};

/* What a calibration is valid for. */
struct cupti_cost_key {
    char cpu[128];
    int cuda_version; /* 13000 = 13.0; 0 unknown */
    uint32_t cupti_version;
};

void cupti_cost_key_fill(struct cupti_cost_key *key, int cuda_version, uint32_t cupti_version);
/* The calibration of this host, else the default. */
void cupti_cost_find(struct cupti_cost *cost, const struct cupti_cost_key *key);
/* Adds it to the user's file, or replaces what was there for the same key; path: the file, on success. */
NODISCARD gpufl_status cupti_cost_store(const struct cupti_cost *cost, const struct cupti_cost_key *key,
                                        char path[PATH_MAX], struct problem *problem);

#endif
