/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a session, in bounded time whatever a GPU library or the disk does.
 * A thread that waits while the session runs (the keeper) sees to it: the thread
 * that ends the session may be in a signal handler, so it only wakes the keeper
 * and waits, until the time is up. The work is done in stages (base/stages.h) on
 * threads that can be abandoned; the keeper itself calls no library. */
#ifndef GPUFL_SDK_SESSION_END_H
#define GPUFL_SDK_SESSION_END_H

#include "capture/collector.h"
#include "capture/system_sampler.h"

/* Owned by whoever ends the session. */
struct session_parts {
    struct log_writer *writer;
    struct collector *collector;
    struct system_sampler *sampler;
    const char *session_id, *app_name; /* copied */
    uint32_t timeout_ms;
};

/* Starts the keeper; false: no thread or memory for it. hung_before: watch_hung_count() when the session began to start. */
bool session_keeper_start(uint32_t hung_before);
/* Ends and frees all parts, those that hang excepted, and the keeper. Waits for at most timeout_ms, and a little more where
 * the machine is busy. */
void session_end(const struct session_parts *parts);
/* The process ends at once: the next end frees nothing, since it may be in a signal handler, and malloc's lock taken. */
void session_end_keeps_memory(void);
void session_end_after_fork_in_child(void);

#endif
