/* SPDX-License-Identifier: Apache-2.0 */
/* Turns the threads' scope events into scope_event_batch rows and into the scope history, which attributes kernels
 * to scopes. Collector thread only. */
#ifndef GPUFL_CAPTURE_SCOPE_TRACKER_H
#define GPUFL_CAPTURE_SCOPE_TRACKER_H

#include "base/user_time.h"
#include "capture/recorder.h"
#include "capture/scope_history.h"
#include "capture/thread_log.h"

struct scope_tracker; /* opaque */

struct call_time {
    int64_t start_ns, end_ns;
    uint64_t scope_id;  /* or SCOPE_UNKNOWN */
    uint32_t thread_id; /* gettid() */
    enum call_state state;
};

struct thread_sink { /* receives the events that are not scopes */
    void *user;
    void (*on_stack)(void *user, const struct stack_event *event);
    void (*on_call)(void *user, const struct user_call *call, const struct call_time *time);
    void (*on_launch)(void *user, const struct launch_event *event, int64_t time_ns, uint32_t thread_id,
                      uint64_t scope_id);
};

/* recorder is borrowed. */
NODISCARD gpufl_status scope_tracker_make(struct scope_tracker **out, struct recorder *recorder,
                                          const struct thread_sink *sink);
void scope_tracker_free(struct scope_tracker *tracker);
/* Attribution looks threads up by gettid() (true) or by the low half of pthread_self() (old CUPTI). */
void scope_tracker_set_key(struct scope_tracker *tracker, bool by_thread_id);
/* Reads everything that is in the threads' rings now. */
void scope_tracker_drain(struct scope_tracker *tracker, const struct tick_scale *scale);
/* Discards the content of the rings, which belongs to an earlier session. */
void scope_tracker_discard(struct scope_tracker *tracker);
/* Writes an end row for each scope that is still open at the session's end. */
void scope_tracker_close_open(struct scope_tracker *tracker, int64_t now_ns);
struct scope_history *scope_tracker_history(struct scope_tracker *tracker);
size_t scope_tracker_bytes(const struct scope_tracker *tracker); /* with the history */
uint64_t scope_tracker_count(const struct scope_tracker *tracker);

#endif
