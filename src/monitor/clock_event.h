/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the reasons for reduced clocks, and the vendors whose GPUs report them. */
#ifndef GPUFL_MONITOR_CLOCK_EVENT_H
#define GPUFL_MONITOR_CLOCK_EVENT_H

#include "driver/gpu_sample.h"

enum { CLOCK_EVENT_COUNT = 10 };
struct clock_event {
    uint64_t bit;
    const char *name;
    unsigned vendors; /* bit per enum gpu_vendor */
};
extern const struct clock_event clock_events[CLOCK_EVENT_COUNT];

#endif
