/* SPDX-License-Identifier: Apache-2.0 */
/* Who has the GPU's counters when. SASS counters and kernel records cannot
 * share a moment, nor can SASS counters and PC samples: a window belongs to one
 * source and is written to the log as such. SassMetrics is one window for the
 * whole run; Deep alternates between counting and sampling by time.
 *
 * Counting needs kernel records off and PC sampling enabled beside it, whose
 * samples are of patched code (without it CUPTI counts only the first function).
 * Sampling needs kernel records enabled before PC sampling. Switching waits
 * until no launch is under way (launch_gate.h) and the GPU is idle
 * (gpu_waiter.h): CUPTI hangs otherwise. All waits are bounded; a switch that
 * cannot be made in time is put off. */
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
    uint32_t counting_ms, sampling_ms; /* lengths of Deep's windows; both 0: the default, and then ever longer */
};

NODISCARD gpufl_status deep_windows_make(struct deep_windows **out, const struct deep_windows_options *options);
/* Kernel records off, launches told, thread started. */
NODISCARD gpufl_status deep_windows_start(struct deep_windows *windows, struct problem *problem);
/* Nothing can be counted: kernels are traced after all. Also in a callback. */
void deep_windows_surrender(struct deep_windows *windows, const struct problem *problem);
/* Why counting failed the first time that it did; false: it has not. is_over: nothing is sampled any more either. */
bool deep_windows_trouble(struct deep_windows *windows, struct problem *problem, bool *is_over);
/* A context came: counted from its first launch on. In CUPTI's callback. */
NODISCARD gpufl_status deep_windows_attach(struct deep_windows *windows, const struct gpu_context *context,
                                           struct problem *problem);
void deep_windows_detach(struct deep_windows *windows, void *handle);
void deep_windows_launch(struct deep_windows *windows, const struct launch_call *call, bool is_enter);
void deep_windows_capture(struct deep_windows *windows, int change, bool is_enter); /* as in struct cupti_listener */
/* Around a flush of CUPTI's records, which hangs beside counting: false, nothing to undo, while a counting window is
 * open or about to be. */
bool deep_windows_hold(struct deep_windows *windows);
void deep_windows_let_go(struct deep_windows *windows);
/* Collector thread: writes the windows that have ended. */
void deep_windows_write(struct deep_windows *windows);
/* Ends the window that is open; true: and the GPU is idle and no launch is under way until deep_windows_release, which
 * must follow before the trace stops. False: one of both did not end in time. */
bool deep_windows_stop(struct deep_windows *windows);
void deep_windows_release(struct deep_windows *windows);
void deep_windows_give_up(struct deep_windows *windows); /* launches that wait pass; any thread */
/* After such a stop: CUPTI was left counting. Then neither counters nor sampler may be stopped, and they must stay. */
bool deep_windows_are_left(const struct deep_windows *windows); /* NULL: no */
void deep_windows_free(struct deep_windows *windows);           /* after stop; NULL is a no-op */
void deep_windows_abandon(struct deep_windows *windows);

#endif
