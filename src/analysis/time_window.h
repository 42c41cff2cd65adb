/* SPDX-License-Identifier: Apache-2.0 */
/* Where the GPUs' time went in a part of the session. */
#ifndef GPUFL_ANALYSIS_TIME_WINDOW_H
#define GPUFL_ANALYSIS_TIME_WINDOW_H

#include "analysis/analysis.h"

/* Added up over all GPUs that worked in the session. Looks only at work near the window. The time after the last work
 * in the window counts as no_work or wait_sync, whatever came next. */
NODISCARD gpufl_status time_window_make(const struct analysis *analysis, int64_t from_ns, int64_t to_ns,
                                        struct time_use *use);
/* Busy time, from the window or from what is outside of it, whichever has less work. After time_use_make. */
NODISCARD gpufl_status time_window_busy(const struct analysis *analysis, int64_t from_ns, int64_t to_ns,
                                        int64_t *busy_ns);

#endif
