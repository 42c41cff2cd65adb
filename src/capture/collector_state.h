/* SPDX-License-Identifier: Apache-2.0 */
/* struct collector, shared by collector.c (behavior) and collector_account.c (overhead accounting). */
#ifndef GPUFL_CAPTURE_COLLECTOR_STATE_H
#define GPUFL_CAPTURE_COLLECTOR_STATE_H

#include "base/user_time.h"
#include "capture/activity_joiner.h"
#include "capture/code_store.h"
#include "capture/collector.h"
#include "capture/cupti_cost.h"
#include "capture/observed_calls.h"
#include "capture/scope_tracker.h"
#include "capture/stacks.h"
#include "capture/yielding.h"

#include <pthread.h>

struct collector {
    struct collector_options options;
    struct recorder recorder;
    struct names names;
    struct scope_tracker *scopes;
    struct activity_joiner *joiner; /* NULL: not tracing */
    struct stacks *stacks;          /* NULL: no stacks */
    struct code_store *code;        /* cubins, and source files; NULL: neither is kept */
    struct deep *deep;              /* NULL: nothing above Trace */
    struct kernel_history *kernels; /* for PC samples; NULL: not needed */
    bool is_deep_over;              /* stopped before the session's end */
    struct cupti *cupti;            /* NULL: not tracing with CUPTI */
    struct yielding yielding;       /* to other profilers that use CUPTI */
    struct amd_trace *_Atomic amd;  /* NULL: no rocprofiler; may be set while the thread runs, and then stays */
    _Atomic bool has_news;
    struct tick_scale scale;
    pthread_t thread;
    bool has_thread;
    _Atomic int is_stopping;
    /* State of the thread: while flushing it may be abandoned without losing what the collector holds. */
    _Atomic enum collector_doing { COLLECTOR_WORKING, COLLECTOR_FLUSHING } doing;
    _Atomic bool are_engines_left; /* an engine did not stop in time, and its threads may still run */
    int64_t complete_ns;           /* all kernel records until then were read */
    int64_t started_mono_ns, scale_mono_ns, flush_mono_ns, report_mono_ns;
    int64_t flush_ns, cpu_ns;
    uint32_t lent_before; /* buffers that were not returned in an earlier session */
    size_t memory_peak_bytes;
    uint64_t user_ticks_before[USER_TIME_COUNT]; /* of earlier sessions */
    struct cupti_cost cupti_cost;                /* valid if has_cost, while `cupti` is set */
    bool has_cost;
    struct observed_calls calls;
};

/* Fills in how the trace is started. */
void collector_trace_options(struct collector *collector, struct cupti_trace_options *options);
/* Reads all completed buffers. */
void collector_read_all(struct collector *collector);
/* step_ns: how far the wall clock was just moved; 0: it was not. */
void collector_write_clock_sync(struct collector *collector, int64_t step_ns);
void collector_write_overhead(struct collector *collector);

#endif
