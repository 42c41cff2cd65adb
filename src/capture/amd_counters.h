/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the counters of AMD dispatches as kernel_perf_metric_event records. A dispatch waits (bounded) for the
 * record of the call that launched it, which has its scope. Collector thread only. */
#ifndef GPUFL_CAPTURE_AMD_COUNTERS_H
#define GPUFL_CAPTURE_AMD_COUNTERS_H

#include "capture/activity_joiner.h"
#include "driver/rocprofiler.h"

struct amd_counters; /* opaque */

/* recorder and rocprofiler are borrowed. */
NODISCARD gpufl_status amd_counters_make(struct amd_counters **out, struct recorder *recorder,
                                         const struct rocprofiler *rocprofiler);
void amd_counters_add(struct amd_counters *counters, const struct counters_activity *activity);
/* Writes the dispatches whose call is known by now. */
void amd_counters_settle(struct amd_counters *counters, const struct activity_joiner *joiner);
/* Also writes those that waited for three flush periods. */
void amd_counters_tick(struct amd_counters *counters, const struct activity_joiner *joiner);
void amd_counters_finish(struct amd_counters *counters, const struct activity_joiner *joiner);
size_t amd_counters_bytes(const struct amd_counters *counters);
void amd_counters_free(struct amd_counters *counters);

#endif
