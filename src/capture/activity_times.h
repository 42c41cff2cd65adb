/* SPDX-License-Identifier: Apache-2.0 */
/* CUPTI stamps its records with the wall clock, which may be set while the program runs. Converts those times to the
 * log's clock (base/clock.h). Collector thread only. */
#ifndef GPUFL_CAPTURE_ACTIVITY_TIMES_H
#define GPUFL_CAPTURE_ACTIVITY_TIMES_H

#include "capture/calls.h"
#include "driver/activity.h"

/* calls: to check that work starts after its call. False: the clock was set at that time, and the times may be wrong
 * by as much. */
bool activity_times_to_log(struct activity *activity, const struct calls *calls);

#endif
