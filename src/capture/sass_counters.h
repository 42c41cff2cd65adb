/* SPDX-License-Identifier: Apache-2.0 */
/* The SassMetrics engine: exact counts per instruction, in windows. Before a window is opened the caller pauses
 * kernel tracing (beside it all counts are zero, without an error) and enables PC sampling on every context (it
 * takes no samples meanwhile, but without it CUPTI 13.0 counts only the first function); before the window is closed
 * the caller waits for the GPU. Contexts that are created while a window is open are measured from the next join or
 * window on; the counts of a context are read before it is destroyed. The metrics can be chosen once per process: an
 * engine with a different choice opens no window.
 *
 * attach and detach: any thread, also CUPTI's context callbacks. open, join, collect, close and stop: one thread at
 * a time, not from a callback. write: collector thread. is_open, bytes, totals: any thread. */
#ifndef GPUFL_CAPTURE_SASS_COUNTERS_H
#define GPUFL_CAPTURE_SASS_COUNTERS_H

#include "capture/names.h"
#include "driver/cupti_events.h"

struct sass_counters; /* opaque */

struct sass_counters_options {
    struct cupti *cupti; /* borrowed, as the next two */
    struct recorder *recorder;
    struct names *names;
    const char *metrics; /* GPUFL_SASS_METRICS; NULL: the default set. Copied. */
    const char *mode;    /* the value of "mode" in the sass_config record; constant; NULL: omitted */
    bool is_eager;       /* patch all loaded kernels when a window opens, not each at its first launch */
    size_t bytes_max;    /* memory limit for counts that wait to be written; 0: 64 MiB */
};

/* GPUFL_E_INVALID: metrics names an unknown set. GPUFL_E_UNSUPPORTED: this CUPTI has no SASS metrics. */
NODISCARD gpufl_status sass_counters_make(struct sass_counters **out, const struct sass_counters_options *options,
                                          struct problem *problem);
/* Ends an open window (the next write writes its counts). Releases CUPTI's profiler unless a device was configured,
 * which lasts as long as the process. */
void sass_counters_stop(struct sass_counters *counters, int64_t now_ns);
void sass_counters_free(struct sass_counters *counters);    /* after stop; NULL is a no-op */
void sass_counters_abandon(struct sass_counters *counters); /* in a forked child, instead of stop and free */

/* GPUFL_E_LIMIT: too many contexts. */
NODISCARD gpufl_status sass_counters_attach(struct sass_counters *counters, const struct gpu_context *context,
                                            struct problem *problem);
void sass_counters_detach(struct sass_counters *counters, void *context_handle);

/* GPUFL_OK: at least one context is measured; the problem has the reason why others are not, or is "". Otherwise no
 * context is measured, nothing stays enabled, and the problem has the reason. GPUFL_E_NOT_FOUND: there is no context
 * yet. */
NODISCARD gpufl_status sass_counters_open(struct sass_counters *counters, uint32_t window_id, int64_t now_ns,
                                          struct problem *problem);

/* Adds contexts that were attached since to the open window; GPUFL_OK when there are none, or no window. */
NODISCARD gpufl_status sass_counters_join(struct sass_counters *counters, int64_t now_ns, struct problem *problem);

/* Reads the counts so far, so that a killed process does not lose those of a long window. */
void sass_counters_collect(struct sass_counters *counters, int64_t now_ns);

struct sass_window_summary { /* for the deep_window_event */
    uint32_t window_id;
    uint32_t contexts;        /* that were measured */
    uint64_t counts;          /* that will be written */
    uint64_t executed;        /* warp instructions */
    uint64_t not_executed;    /* instructions that were measured and not executed between two collects: omitted */
    uint64_t lost;            /* counts that CUPTI had and that could not be read or kept */
    const char *close_reason; /* "counts_invalid": nothing is published; NULL: the caller has a better reason */
    struct problem problem;   /* the first call that failed, or "" */
};
/* launches_covered: kernels that the program launched in the window, to distinguish "nothing ran" from "not
 * measured". */
void sass_counters_close(struct sass_counters *counters, int64_t now_ns, uint64_t launches_covered,
                         struct sass_window_summary *summary);
bool sass_counters_is_open(const struct sass_counters *counters);

/* Writes the rows and sass_config records of the windows closed so far. */
void sass_counters_write(struct sass_counters *counters);

struct sass_totals {
    uint64_t windows, windows_invalid, counts, not_executed, lost;
};
void sass_counters_totals(struct sass_counters *counters, struct sass_totals *totals);
size_t sass_counters_bytes(const struct sass_counters *counters);

#endif
