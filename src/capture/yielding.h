/* SPDX-License-Identifier: Apache-2.0 */
/* CUPTI takes one profiler at a time. While another one of the program uses it,
 * the collector has none: the trace is detached, the time until CUPTI is ours
 * again is a gap in the session, and the gap names the other profiler.
 *
 * Asked for on any thread, done by the collector's. */
#ifndef GPUFL_CAPTURE_YIELDING_H
#define GPUFL_CAPTURE_YIELDING_H

#include "base/status.h"

#include <pthread.h>

struct collector;
struct recorder;

enum { PROFILER_NAME_BYTES = 64 };

struct yielding {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    /* Under the mutex. */
    bool is_wanted;                     /* another profiler uses CUPTI, or is about to */
    bool is_yielded;                    /* the collector has let CUPTI go */
    char profiler[PROFILER_NAME_BYTES]; /* who wanted it first */
    bool is_closed;                     /* the session ends: CUPTI is not taken again */
    pthread_mutex_t round_mutex;        /* held while the collector's thread changes who has CUPTI */
    /* Collector's. */
    int64_t begin_ns, retry_mono_ns;
    bool is_refused; /* CUPTI could not be had again, which was said */
};

void yielding_init(struct yielding *yielding);
void yielding_destroy(struct yielding *yielding);
/* Whether the collector has let CUPTI go. Any thread. */
bool yielding_is_yielded(struct yielding *yielding);

/* Any thread: another profiler wants CUPTI. True: it is free, or was never ours. False: not within wait_ms. */
bool collector_yield(struct collector *collector, const char *profiler, int wait_ms);
/* Any thread: the other profiler has ended. Waits at most wait_ms until the collector records again, so that what the
 * program does next is recorded. */
void collector_unyield(struct collector *collector, int wait_ms);

/* For collector.c. */
struct cupti_trace_options;
struct cupti_trace_result;
/* In the place of starting the trace: another profiler has CUPTI. granted: what is expected once it is done. */
void yielding_begin_yielded(struct collector *collector, const struct cupti_trace_options *options,
                            struct cupti_trace_result *granted);
void yielding_round(struct collector *collector);  /* does what is wanted */
void yielding_close(struct collector *collector);  /* before the session stops CUPTI: no round changes anything now */
void yielding_finish(struct collector *collector); /* at the end: a gap that is open ends with the session */

#endif
