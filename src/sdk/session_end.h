/* SPDX-License-Identifier: Apache-2.0 */
/* Ends a session in bounded time, even if a GPU library or the disk hangs. The caller may be in a signal handler, so
 * it only wakes a thread that was started with the session (the ending thread) and waits until the timeout. The
 * ending thread calls no library itself; the work is done in stages (base/stages.h) on threads that can be
 * abandoned. */
#ifndef GPUFL_SDK_SESSION_END_H
#define GPUFL_SDK_SESSION_END_H

#include "capture/collector.h"
#include "capture/system_sampler.h"

/* Owned by the caller of session_end. */
struct session_parts {
    struct log_writer *writer;
    struct collector *collector;
    struct system_sampler *sampler;
    const char *session_id, *app_name; /* copied */
    uint32_t timeout_ms;
};

/* Starts the ending thread; false: no thread or no memory. hung_before: watch_hung_count() when the session began to
 * start. */
bool session_end_thread_start(uint32_t hung_before);
/* Ends and frees all parts, except those that hang, and the ending thread. Waits for at most timeout_ms, and
 * slightly longer on a busy machine. */
void session_end(const struct session_parts *parts);
/* The process is exiting: the next end frees nothing, since it may run in a signal handler while malloc's lock is
 * held. */
void session_end_keeps_memory(void);
void session_end_after_fork_in_child(void);

#endif
