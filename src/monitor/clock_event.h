/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the bits of NVML's clocks-event mask. */
#ifndef GPUFL_MONITOR_CLOCK_EVENT_H
#define GPUFL_MONITOR_CLOCK_EVENT_H

#include <stdint.h>

enum { CLOCK_EVENT_COUNT = 9 };
struct clock_event {
    uint64_t bit;
    const char *name;
};
extern const struct clock_event clock_events[CLOCK_EVENT_COUNT];

#endif
