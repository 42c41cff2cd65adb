/* SPDX-License-Identifier: Apache-2.0 */
/* How cold the CPU's caches were for CUPTI at a launch, from 0 (launches in a loop) to 1 (as cold as in the
 * calibration; base/record_cost.h). Depends on the time since the thread's last launch and, if calibrated, on the
 * duration of the call. */
#ifndef GPUFL_ANALYSIS_LAUNCH_HEAT_H
#define GPUFL_ANALYSIS_LAUNCH_HEAT_H

#include "analysis/session.h"

struct launch_heat; /* opaque */

/* NULL: no memory. */
struct launch_heat *launch_heat_make(const struct session_model *model);
void launch_heat_free(struct launch_heat *heat);
/* Launches of a thread in order; one that is out of order counts as part of a loop. duration_ns < 0: unknown. */
double launch_heat_coldness(struct launch_heat *heat, uint32_t thread_id, int64_t start_ns, int64_t duration_ns);

#endif
