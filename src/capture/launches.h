/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel names and launch configurations, interned: a kernel row holds two
 * small numbers. New ones are written to the log as they appear, configurations
 * with their theoretical occupancy. Collector thread only. */
#ifndef GPUFL_CAPTURE_LAUNCHES_H
#define GPUFL_CAPTURE_LAUNCHES_H

#include "capture/recorder.h"
#include "driver/cuda.h"
#include "driver/activity.h"

struct launches; /* opaque */

/* recorder is borrowed. */
NODISCARD gpufl_status launches_make(struct launches **out, struct recorder *recorder);
void launches_free(struct launches *launches);
/* Ids of the kernel's name and configuration; 0 = could not be kept (counted). */
void launches_identify(struct launches *launches, enum activity_source source, const struct kernel_activity *kernel,
                       uint32_t *kernel_id, uint32_t *launch_id);
/* Id of a name alone; 0 = could not be kept (counted). */
uint32_t launches_name(struct launches *launches, const char *symbol);
const char *launches_symbol(const struct launches *launches, uint32_t kernel_id); /* mangled; "" unknown */
/* Reads the limits of all devices as soon as the driver is initialized; true once it did. */
bool launches_have_limits(struct launches *launches);
size_t launches_bytes(const struct launches *launches);

#endif
