/* SPDX-License-Identifier: Apache-2.0 */
/* CUPTI supports one profiler at a time. While another profiler of the program uses it, the collector detaches its
 * trace; the time until CUPTI is available again is a gap in the session that names the other profiler.
 *
 * Requested on any thread, done on the collector's. */
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
    bool is_yielded;                    /* the collector has released CUPTI */
    char profiler[PROFILER_NAME_BYTES]; /* which profiler requested it first */
    bool is_closed;                     /* the session is ending: CUPTI is not reattached */
    pthread_mutex_t round_mutex;        /* held while the collector's thread releases or reattaches CUPTI */
    /* Collector's. */
    int64_t begin_ns, retry_mono_ns;
    bool is_refused; /* CUPTI could not be reattached, which was reported */
};

void yielding_init(struct yielding *yielding);
void yielding_destroy(struct yielding *yielding);
/* Whether the collector has released CUPTI. Any thread. */
bool yielding_is_yielded(struct yielding *yielding);

/* Any thread: another profiler needs CUPTI. True: it is available, or gpufl never used it. False: not within
 * wait_ms. */
bool collector_yield(struct collector *collector, const char *profiler, int wait_ms);
/* Any thread: the other profiler has ended. Waits at most wait_ms until the collector records again, so that the
 * program's next work is recorded. */
void collector_unyield(struct collector *collector, int wait_ms);

/* For collector.c. */
struct cupti_trace_options;
struct cupti_trace_result;
/* Used in place of starting the trace when another profiler has CUPTI. granted: the expected features once it is
 * done. */
void yielding_begin_yielded(struct collector *collector, const struct cupti_trace_options *options,
                            struct cupti_trace_result *granted);
void yielding_round(struct collector *collector);  /* does what was requested */
void yielding_close(struct collector *collector);  /* before the session stops CUPTI: later rounds change nothing */
void yielding_finish(struct collector *collector); /* at the end: an open gap ends with the session */

#endif
