/* SPDX-License-Identifier: Apache-2.0 */
/* The RangeProfiler engine: exact counters per scope or per kernel, on every
 * context of the process.
 *
 * Per scope, each run of a scope collects one pass; when all passes are there,
 * one perf_metric_event is written and it begins again. Per kernel, CUPTI
 * replays each launch until all passes are there; one kernel_perf_metric_event
 * per launch.
 *
 * CUPTI is started and stopped on the user's threads, at scope edges and on
 * entry to launches, with a gate closed for all launches (launch_gate.h). The
 * collector evaluates and writes. Graphs run uncounted: before one is captured
 * or launched, a measured scope is given up and counting of kernels pauses until
 * the next launch. Kernel tracing adds instructions to what is
 * counted per scope and must be off meanwhile; per kernel it may stay on. */
#ifndef GPUFL_CAPTURE_RANGE_COUNTERS_H
#define GPUFL_CAPTURE_RANGE_COUNTERS_H

#include "capture/recorder.h"
#include "capture/scope_history.h"
#include "driver/cupti_events.h"
#include "driver/metric_sets.h"

struct range_counters; /* opaque */

enum range_mode { RANGE_PER_SCOPE, RANGE_PER_KERNEL };
enum { RANGE_KERNELS_DEFAULT = 32 }; /* CUPTI takes half a megabyte and more for each */

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

/* Begins to profile the context; the problem names the reason why not. Launches must be told from before. */
NODISCARD gpufl_status range_counters_attach(struct range_counters *counters, const struct gpu_context *context,
                                             struct problem *problem);
/* The context is about to go: reads what it has counted. Unknown contexts are ignored. */
void range_counters_detach(struct range_counters *counters, void *context);

/* Every edge of every scope, on its thread. path: names from the outside in, separated by '|'; scope_key: what the log
 * calls this instance, 0 when not known; context: the thread's current one or NULL. */
void range_counters_scope_begin(struct range_counters *counters, const char *path, uint64_t scope_key, void *context);
/* later: how many scopes of the thread that began after this one are still open. */
void range_counters_scope_end(struct range_counters *counters, uint32_t later);
/* Entry to and exit from each launch of the process, on its thread, in both modes. */
void range_counters_launch(struct range_counters *counters, const struct launch_call *call, bool is_enter,
                           uint32_t thread_id, int64_t now_ns);

/* Entry to and exit from each call that begins or ends a capture, as in struct cupti_listener. No counter is switched or
 * read from the entry to the first beginning until the last end, since that would invalidate the capture. */
void range_counters_capture(struct range_counters *counters, int change, bool is_enter);

/* Collector thread: evaluates what has been counted and writes it. */
void range_counters_write(struct range_counters *counters);
/* Ends all contexts; afterwards write once more, then free. No other function may be running or follow. */
void range_counters_stop(struct range_counters *counters);
void range_counters_give_up(struct range_counters *counters); /* launches that wait pass; any thread */
void range_counters_free(struct range_counters *counters);
/* In a forked child: nothing of it may be touched again. */
void range_counters_abandon(struct range_counters *counters);

size_t range_counters_bytes(struct range_counters *counters);
struct range_totals {
    uint64_t passes;        /* collected over scopes */
    uint64_t scope_events;  /* with values */
    uint64_t kernel_events; /* with values */
    uint64_t short_scopes;  /* written without values, with the reason */
};
struct range_totals range_counters_totals(const struct range_counters *counters);
/* The first failure after a good attach, which ended the profiling of its context; false: none. */
bool range_counters_failure(struct range_counters *counters, struct problem *problem);

#endif
