/* SPDX-License-Identifier: Apache-2.0 */
/* The process's streams that are capturing a graph, tracked by CUPTI's reports of calls that begin and end a
 * capture, and of destroyed streams and contexts. While a stream is capturing, nothing may wait for its context or
 * switch counters there: CUDA would invalidate the capture. Lock-free, any thread, also in CUPTI's callbacks. */
#ifndef GPUFL_DRIVER_CAPTURES_H
#define GPUFL_DRIVER_CAPTURES_H

#include <stdbool.h>
#include <stdint.h>

/* Both return by how much the number of captures in progress changes. stream: the handle passed to the call;
 * is_per_thread: for that call the default stream is the thread's. */
int captures_begin(const void *context, const void *stream, bool is_per_thread);
int captures_end(const void *stream, bool is_per_thread); /* 0: its begin was not reported */
int captures_forget_stream(const void *stream);
int captures_forget_context(const void *context);
bool captures_any(void);
/* A capture that this thread began: what it launches is recorded in the graph and does not run. */
bool captures_here(void);
void captures_clear(void); /* for a new session: captures that ended between two sessions were not reported */

#endif
