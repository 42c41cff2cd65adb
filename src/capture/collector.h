/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that turns the data from user threads, CUPTI and rocprofiler into log lines, and the Trace engine that
 * it drives. Started and stopped by the session; only buffer hand-over and stack capture run on a user's thread. */
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
    /* The program's other profiler that uses CUPTI right now; NULL: there is none. The trace starts when it is done. */
    const char *other_profiler;
    bool (*are_others_over)(void); /* polled while another profiler has CUPTI; NULL: the other profiler reports its
                                    * end itself */
    bool with_stacks;
    bool with_graphs;          /* write a row per graph launch */
    struct deep_settings deep; /* engines above Trace */
    /* Called on the collector's thread when a grant of a deep engine or of AMD changed. */
    void (*on_round)(void); /* called on the collector's thread at least ten times a second; may be NULL */
    void (*on_news)(void *user);
    void *news_user;
    int64_t (*sampler_cpu_ns)(void *user); /* for overhead records; may be NULL */
    void *sampler_user;
};

/* Makes the recorder but no thread, so that the session can write its first lines. */
NODISCARD gpufl_status collector_make(struct collector **out, const struct collector_options *options);
struct recorder *collector_recorder(struct collector *collector);

struct trace_grant {
    gpufl_status status; /* of starting CUPTI; GPUFL_OK: tracing */
    struct cupti_trace_result cupti;
    uint32_t cupti_version;
    struct problem problem; /* why not, and what to do */
    struct amd_grant amd;
};
/* Starts CUPTI if the options request it; the session continues if that fails, and grant has the reason. */
void collector_trace(struct collector *collector, struct trace_grant *grant);
/* Call when collector_trace, or collector_trace_amd at the start, was abandoned: the session continues without
 * CUPTI. */
void collector_drop_cupti(struct collector *collector);
void collector_drop_amd(struct collector *collector);
/* Adds AMD's part when HIP starts during the session. Any thread, one at a time. */
void collector_trace_amd(struct collector *collector, struct amd_grant *grant);
/* Has on_news called soon on the collector's thread. */
void collector_tell_news(struct collector *collector);
/* The engines above Trace; NULL when none is wanted or the trace did not start. Owned by the collector. */
struct deep *collector_deep(struct collector *collector);
/* Starts the thread. Until collector_stop has returned, only that thread writes through the recorder. */
NODISCARD gpufl_status collector_start(struct collector *collector);
/* Ends the session in order: stops the engines above Trace, rocprofiler and CUPTI, then joins the thread, reads and
 * writes everything. Each call may hang in a vendor's library unless base/stages.h bounds it. */
void collector_stop_deep(struct collector *collector);
void collector_stop_amd(struct collector *collector);
void collector_stop_cupti(struct collector *collector);
/* Call when one of those three was abandoned: none of their functions is called, and none of their memory freed, any
 * more. Any thread. */
void collector_leave_engines(struct collector *collector);
/* WATCH_HUNG: the thread was abandoned in a call, and what it held is lost. Never returns WATCH_BUSY: it waits
 * instead. */
enum watch_end collector_finish(struct collector *collector);
void collector_free_engines(struct collector *collector); /* after collector_finish; also calls CUPTI */
void collector_free(struct collector *collector);         /* keeps what abandoned threads may still use */
/* In a forked child: the collector must not be used again. */
void collector_abandon(struct collector *collector);

#endif
