/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of struct collector, for collector.c (what it does) and collector_account.c (what it cost). */
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
    struct kernel_history *kernels; /* for PC samples; NULL: nobody asks */
    bool is_deep_over;              /* it has stopped before the session's end */
    struct cupti *cupti;            /* NULL: not tracing with it */
    struct yielding yielding;       /* to other profilers that use CUPTI */
    struct amd_trace *_Atomic amd;  /* NULL: no rocprofiler; may come while the thread runs, and then stays */
    _Atomic bool has_news;
    struct tick_scale scale;
    pthread_t thread;
    bool has_thread;
    _Atomic int is_stopping;
    /* Of the thread: where it may be abandoned without losing what the collector holds. */
    _Atomic enum collector_doing { COLLECTOR_WORKING, COLLECTOR_FLUSHING } doing;
    _Atomic bool are_engines_left; /* one did not stop in time, and its threads may go on */
    int64_t complete_ns;           /* kernel records until then were read */
    int64_t started_mono_ns, scale_mono_ns, flush_mono_ns, report_mono_ns;
    int64_t flush_ns, cpu_ns;
    uint32_t lent_before; /* buffers that never came back from an earlier session */
    size_t memory_peak_bytes;
    uint64_t user_ticks_before[USER_TIME_COUNT]; /* of earlier sessions */
    struct cupti_cost cupti_cost;                /* once has_cost, while `cupti` is there */
    bool has_cost;
    struct observed_calls calls;
};

/* How the trace is to be started. */
void collector_trace_options(struct collector *collector, struct cupti_trace_options *options);
/* Reads all buffers that were handed over. */
void collector_read_all(struct collector *collector);
/* step_ns: by how much the wall clock was just set; 0: it was not. */
void collector_write_clock_sync(struct collector *collector, int64_t step_ns);
void collector_write_overhead(struct collector *collector);

#endif
