/* SPDX-License-Identifier: Apache-2.0 */
/* Answers "which scope was innermost on thread T at time t?" The collector adds a step function per thread, in time
 * order, and queries it with the times of API calls, which arrive up to a flush period later. Bounded: the oldest
 * steps are evicted first, then threads that left their last scope long ago; a query about evicted time returns
 * "unknown". Collector thread only. */
#ifndef GPUFL_CAPTURE_SCOPE_HISTORY_H
#define GPUFL_CAPTURE_SCOPE_HISTORY_H

#include "base/status.h"

#define SCOPE_UNKNOWN UINT64_MAX /* in place of a scope's id: not known which; 0: no scope */

struct scope_history; /* opaque; collector's */

NODISCARD gpufl_status scope_history_make(struct scope_history **out);
void scope_history_free(struct scope_history *history);
/* From time_ns on, the innermost scope of the thread is scope_id (0: none). */
void scope_history_step(struct scope_history *history, uint32_t thread_id, int64_t time_ns, uint64_t scope_id);
/* Sets the scope_name_dict entry of a scope when it begins; ids increase. */
void scope_history_name(struct scope_history *history, uint64_t scope_id, uint32_t path_id);
/* 0: none, or the scope began too long ago. */
uint32_t scope_history_path(const struct scope_history *history, uint64_t scope_id);
/* False: that time was evicted, or there was no room for the thread. A thread that was never seen had no scope. */
bool scope_history_find(struct scope_history *history, uint32_t thread_id, int64_t time_ns, uint64_t *scope_id);
/* True when a thread's steps fill fast enough that API records should be fetched soon. */
bool scope_history_is_pressed(const struct scope_history *history);
void scope_history_relax(struct scope_history *history); /* after fetching */
size_t scope_history_bytes(const struct scope_history *history);

#endif
