/* SPDX-License-Identifier: Apache-2.0 */
/* AMD's part of a session: passes rocprofiler's activities to the collector's buffers, code objects to the code
 * store and counters to records, and reports what was granted. Made and started by the session's thread or the
 * thread on which HIP starts; accept, settle, tick and finish run on the collector's thread. */
#ifndef GPUFL_CAPTURE_AMD_TRACE_H
#define GPUFL_CAPTURE_AMD_TRACE_H

#include "capture/activity_joiner.h"
#include "capture/code_store.h"
#include "driver/rocprofiler.h"

struct amd_trace; /* opaque */

struct amd_settings {
    bool is_wanted; /* the backend allows it */
    bool is_asked;  /* requested by name: then also traced in a program that has not loaded HIP yet */
    gpufl_engine engine;
    bool with_sync, with_memory, with_source;
    uint64_t code_bytes_max;
    const char *counters; /* borrowed; "": the default set */
    void (*on_range)(enum rocprofiler_range range, const char *text, uint64_t range_id);
    uint32_t (*device_of)(void *user, const struct rocprofiler_agent *agent, uint32_t ordinal);
    void *device_user;
};

struct amd_grant {
    bool is_tried;       /* false: there was no reason to start */
    gpufl_status status; /* GPUFL_OK: tracing */
    uint32_t version;    /* of rocprofiler-sdk; 0: not loaded */
    struct rocprofiler_trace_result trace;
    bool has_code;
    struct problem problem; /* why not, and what to do */
};

/* Whether there is a reason to start: the backend was requested, or the process uses HIP. */
bool amd_trace_is_due(const struct amd_settings *settings);
/* Loads rocprofiler; grant has the reason if that fails. code: receives code objects; NULL: a separate store is made
 * if the engine is above Trace. */
NODISCARD gpufl_status amd_trace_make(struct amd_trace **out, const struct amd_settings *settings,
                                      struct recorder *recorder, struct code_store *code, struct amd_grant *grant);
/* Starts tracing, or tries again; the result is in grant. */
void amd_trace_start(struct amd_trace *trace, struct amd_grant *grant);
void amd_trace_flush(struct amd_trace *trace);
/* One buffer of decoded activities. */
void amd_trace_accept(struct amd_trace *trace, struct activity_joiner *joiner, const struct activity *activities,
                      size_t count);
/* After a round of buffers; after a flush period. */
void amd_trace_settle(struct amd_trace *trace, const struct activity_joiner *joiner);
void amd_trace_tick(struct amd_trace *trace, const struct activity_joiner *joiner);
void amd_trace_stop(struct amd_trace *trace); /* no activity arrives after it returned */
/* After the last activity was read. */
void amd_trace_finish(struct amd_trace *trace, const struct activity_joiner *joiner);
int64_t amd_trace_now_ns(const struct amd_trace *trace); /* rocprofiler's clock; 0: it was never started */
size_t amd_trace_bytes(const struct amd_trace *trace);
void amd_trace_free(struct amd_trace *trace);
void amd_trace_abandon(struct amd_trace *trace); /* in a forked child */

#endif
