/* SPDX-License-Identifier: Apache-2.0 */
/* The one thread that turns what user threads, CUPTI and rocprofiler leave behind into log
 * lines, and the Trace engine it drives. Started and stopped by the session;
 * nothing here runs on a user's thread except buffer hand-over and stack capture. */
#ifndef GPUFL_CAPTURE_COLLECTOR_H
#define GPUFL_CAPTURE_COLLECTOR_H

#include "base/watch.h"
#include "capture/amd_trace.h"
#include "capture/deep.h"
#include "driver/cupti.h"

struct collector; /* opaque */

struct collector_options {
    struct log_writer *writer; /* borrowed, as are the strings */
    const char *session_id, *app_name;
    unsigned trace_features; /* CUPTI_TRACE_* */
    bool with_trace;         /* Trace engine: start CUPTI */
    struct amd_settings amd; /* and rocprofiler */
    bool is_before_cuda;     /* the program has not initialized CUDA yet */
    /* Another profiler of the program uses CUPTI right now; NULL: none does. The trace starts when it is done. */
    const char *other_profiler;
    bool (*are_others_over)(void); /* asked while CUPTI is another profiler's; NULL: it says so itself */
    bool with_stacks;
    bool with_graphs;          /* write a row per graph launch */
    struct deep_settings deep; /* engines above Trace */
    /* Called on the collector's thread when a grant of a deep engine or AMD's changed. */
    void (*on_round)(void); /* on the collector's thread, at least ten times a second; NULL: nothing */
    void (*on_news)(void *user);
    void *news_user;
    int64_t (*sampler_cpu_ns)(void *user); /* for overhead records; may be NULL */
    void *sampler_user;
};

/* Makes the recorder; no thread yet, so that the session can write its first lines. */
NODISCARD gpufl_status collector_make(struct collector **out, const struct collector_options *options);
struct recorder *collector_recorder(struct collector *collector);

struct trace_grant {
    gpufl_status status; /* of starting CUPTI; GPUFL_OK: tracing */
    struct cupti_trace_result cupti;
    uint32_t cupti_version;
    struct problem problem; /* why not, and what to do */
    struct amd_grant amd;
};
/* Starts CUPTI when the options say so; failure is no failure of the session: see grant. */
void collector_trace(struct collector *collector, struct trace_grant *grant);
/* Where collector_trace, or collector_trace_amd at the start, was abandoned: the session goes on without. */
void collector_drop_cupti(struct collector *collector);
void collector_drop_amd(struct collector *collector);
/* HIP starts while the session runs: AMD's part joins it. Any thread, one at a time. */
void collector_trace_amd(struct collector *collector, struct amd_grant *grant);
/* Has on_news called soon, on the collector's thread. */
void collector_tell_news(struct collector *collector);
/* The engines above Trace, NULL when none is wanted or the trace did not start. Owned by the collector. */
struct deep *collector_deep(struct collector *collector);
/* Starts the thread. Afterwards only it writes through the recorder until collector_stop returned. */
NODISCARD gpufl_status collector_start(struct collector *collector);
/* The end, one after the other: stops the engines above Trace, rocprofiler, CUPTI; then joins the thread, reads and writes
 * everything. Each may hang in a vendor's library, except where base/stages.h bounds it. */
void collector_stop_deep(struct collector *collector);
void collector_stop_amd(struct collector *collector);
void collector_stop_cupti(struct collector *collector);
/* Where one of those three was given up: nothing of them is called or freed any more. Any thread. */
void collector_leave_engines(struct collector *collector);
/* WATCH_HUNG: the thread was abandoned in a call, and what it held is lost. Never WATCH_BUSY: it waits. */
enum watch_end collector_finish(struct collector *collector);
void collector_free_engines(struct collector *collector); /* after collector_finish; calls CUPTI, too */
void collector_free(struct collector *collector);         /* keeps what threads that were left may still use */
/* In a forked child: nothing of it may be touched again. */
void collector_abandon(struct collector *collector);

#endif
