/* SPDX-License-Identifier: Apache-2.0 */
/* The RangeProfiler engine: exact counters per scope or per kernel, on every context of the process.
 *
 * Per scope, each run of a scope collects one pass; after all passes one perf_metric_event is written and the next
 * round begins. Per kernel, CUPTI replays each launch until all passes are collected; each launch gets one
 * kernel_perf_metric_event.
 *
 * CUPTI is started and stopped on the user's threads, at scope edges and on entry to launches, while the gate is
 * closed for all launches (launch_gate.h). The collector evaluates and writes. Graphs are not counted: before one is
 * captured or launched, the measurement of the open scope is dropped and per-kernel counting pauses until the next
 * launch. Kernel tracing adds instructions to the counts of a scope, so it must be off in that mode; per kernel it
 * may stay on. */
#ifndef GPUFL_CAPTURE_RANGE_COUNTERS_H
#define GPUFL_CAPTURE_RANGE_COUNTERS_H

#include "capture/recorder.h"
#include "capture/scope_history.h"
#include "driver/cupti_events.h"
#include "driver/metric_sets.h"

struct range_counters; /* opaque */

enum range_mode { RANGE_PER_SCOPE, RANGE_PER_KERNEL };
enum { RANGE_KERNELS_DEFAULT = 32 }; /* CUPTI needs half a megabyte or more for each */

struct range_counters_options {
    struct cupti *cupti; /* borrowed, as are the next two */
    struct recorder *recorder;
    struct scope_history *history;       /* scopes of kernels; NULL: scope_id is 0 */
    const struct metric_choice *metrics; /* copied */
    enum range_mode mode;
    uint32_t kernels_max; /* launches between two readings of the counters; 0: RANGE_KERNELS_DEFAULT */
    uint32_t wait_ms;     /* how long a launch may keep CUPTI or another launch waiting; 0: 30 s */
    const char *scopes;   /* names of scopes, separated by commas; NULL or "": the outermost ones of each thread */
};

NODISCARD gpufl_status range_counters_make(struct range_counters **out, const struct range_counters_options *options,
                                           struct problem *problem);

/* Starts to profile the context; on failure the problem has the reason. Launches must already be reported. */
NODISCARD gpufl_status range_counters_attach(struct range_counters *counters, const struct gpu_context *context,
                                             struct problem *problem);
/* The context is about to be destroyed: reads its counters. Unknown contexts are ignored. */
void range_counters_detach(struct range_counters *counters, void *context);

/* Call for every edge of every scope, on its thread. path: names from the outside in, separated by '|'; scope_key:
 * the id of this instance in the log, 0 when not known; context: the thread's current one or NULL. */
void range_counters_scope_begin(struct range_counters *counters, const char *path, uint64_t scope_key, void *context);
/* later: how many scopes of the thread that began after this one are still open. */
void range_counters_scope_end(struct range_counters *counters, uint32_t later);
/* Call on entry to and exit from each launch of the process, on its thread, in both modes. */
void range_counters_launch(struct range_counters *counters, const struct launch_call *call, bool is_enter,
                           uint32_t thread_id, int64_t now_ns);

/* Call on entry to and exit from each call that begins or ends a capture, as in struct cupti_listener. From the
 * entry to the first begin until the last end, no counter is switched or read, since that would invalidate the
 * capture. */
void range_counters_capture(struct range_counters *counters, int change, bool is_enter);

/* Collector thread: evaluates the collected counters and writes them. */
void range_counters_write(struct range_counters *counters);
/* Ends all contexts; then write once more, then free. No other function may run at the same time or later. */
void range_counters_stop(struct range_counters *counters);
void range_counters_unblock_launches(struct range_counters *counters); /* lets blocked launches pass; any thread */
void range_counters_free(struct range_counters *counters);
/* In a forked child: the engine must not be used again. */
void range_counters_abandon(struct range_counters *counters);

size_t range_counters_bytes(struct range_counters *counters);
struct range_totals {
    uint64_t passes;        /* collected over scopes */
    uint64_t scope_events;  /* with values */
    uint64_t kernel_events; /* with values */
    uint64_t short_scopes;  /* written without values, with a reason */
};
struct range_totals range_counters_totals(const struct range_counters *counters);
/* The first failure after a successful attach, which ended the profiling of its context; false: there was none. */
bool range_counters_failure(struct range_counters *counters, struct problem *problem);

#endif
