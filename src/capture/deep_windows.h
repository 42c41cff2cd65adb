/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which data source may use the GPU's counters at a time. SASS counters exclude both kernel records and PC
 * samples, so a window belongs to one source and is logged as such. SassMetrics is one window for the whole run;
 * Deep alternates between counting and sampling by time.
 *
 * Counting needs kernel records off and PC sampling enabled, whose samples then show patched code (without it CUPTI
 * counts only the first function). For sampling, kernel records must be enabled before PC sampling. A switch waits
 * until no launch is in progress (launch_gate.h) and the GPU is idle (gpu_waiter.h), because CUPTI hangs otherwise.
 * All waits are bounded; a switch that cannot be made in time is postponed. */
#ifndef GPUFL_CAPTURE_DEEP_WINDOWS_H
#define GPUFL_CAPTURE_DEEP_WINDOWS_H

#include "capture/pc_sampler.h"
#include "capture/sass_counters.h"

struct deep_windows; /* opaque */

struct deep_windows_options {
    struct cupti *cupti; /* borrowed, as the next three */
    struct recorder *recorder;
    struct pc_sampler *sampler;
    struct sass_counters *counters;
    bool is_alternating;               /* Deep; else SassMetrics */
    uint32_t counting_ms, sampling_ms; /* lengths of Deep's windows; both 0: the default, which then grows */
};

NODISCARD gpufl_status deep_windows_make(struct deep_windows **out, const struct deep_windows_options *options);
/* Turns kernel records off, listens for launches, starts the thread. */
NODISCARD gpufl_status deep_windows_start(struct deep_windows *windows, struct problem *problem);
/* Counting is impossible: traces kernels instead. Also allowed in a callback. */
void deep_windows_surrender(struct deep_windows *windows, const struct problem *problem);
/* The reason for the first counting failure; false: there was none. is_over: sampling has ended too. */
bool deep_windows_trouble(struct deep_windows *windows, struct problem *problem, bool *is_over);
/* Takes on a new context, which is counted from its first launch on. Call in CUPTI's callback. */
NODISCARD gpufl_status deep_windows_attach(struct deep_windows *windows, const struct gpu_context *context,
                                           struct problem *problem);
void deep_windows_detach(struct deep_windows *windows, void *handle);
void deep_windows_launch(struct deep_windows *windows, const struct launch_call *call, bool is_enter);
void deep_windows_capture(struct deep_windows *windows, int change, bool is_enter); /* as in struct cupti_listener */
/* Call around a flush of CUPTI's records, which hangs beside counting. False: a counting window is open or about to
 * open; do not flush, and do not call deep_windows_flush_end. */
bool deep_windows_flush_begin(struct deep_windows *windows);
void deep_windows_flush_end(struct deep_windows *windows);
/* Collector thread: writes the windows that have ended. */
void deep_windows_write(struct deep_windows *windows);
/* Ends the open window. True: the GPU is idle and no launch is in progress until deep_windows_release, which must be
 * called before the trace stops. False: the GPU or a launch did not finish in time. */
bool deep_windows_stop(struct deep_windows *windows);
void deep_windows_release(struct deep_windows *windows);
void deep_windows_unblock_launches(struct deep_windows *windows); /* lets blocked launches pass; any thread */
/* After such a stop: CUPTI was left counting. Then neither counters nor sampler may be stopped or freed. */
bool deep_windows_are_left(const struct deep_windows *windows); /* NULL: no */
void deep_windows_free(struct deep_windows *windows);           /* after stop; NULL is a no-op */
void deep_windows_abandon(struct deep_windows *windows);

#endif
