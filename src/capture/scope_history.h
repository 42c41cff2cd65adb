/* SPDX-License-Identifier: Apache-2.0 */
/* "Which scope was innermost on thread T at time t?" A step function per
 * thread, fed in time order by the collector and asked for times of API calls,
 * which arrive up to a flush period later. Bounded: the oldest steps go first, then threads that left their last
 * scope long ago, and a question about forgotten time is answered with "unknown". */
#ifndef GPUFL_CAPTURE_SCOPE_HISTORY_H
#define GPUFL_CAPTURE_SCOPE_HISTORY_H

#include "base/status.h"

#define SCOPE_UNKNOWN UINT64_MAX /* instead of a scope's id: which one is not known; 0 is none */

struct scope_history; /* opaque; collector's */

NODISCARD gpufl_status scope_history_make(struct scope_history **out);
void scope_history_free(struct scope_history *history);
/* From time_ns on, the innermost scope of the thread is scope_id (0: none). */
void scope_history_step(struct scope_history *history, uint32_t thread_id, int64_t time_ns, uint64_t scope_id);
/* Which scope_name_dict entry a scope has, told when it begins; ids count up. */
void scope_history_name(struct scope_history *history, uint64_t scope_id, uint32_t path_id);
/* 0: none, or the scope began too long ago. */
uint32_t scope_history_path(const struct scope_history *history, uint64_t scope_id);
/* False: that time was already forgotten, or there was no room for the thread. A thread never seen had no scope. */
bool scope_history_find(struct scope_history *history, uint32_t thread_id, int64_t time_ns, uint64_t *scope_id);
/* True when a thread's steps fill fast enough that API records should be fetched soon. */
bool scope_history_is_pressed(const struct scope_history *history);
void scope_history_relax(struct scope_history *history); /* after fetching */
size_t scope_history_bytes(const struct scope_history *history);

#endif
