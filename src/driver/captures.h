/* SPDX-License-Identifier: Apache-2.0 */
/* The streams of the process that capture a graph, by what CUPTI tells of the
 * calls that begin and end a capture, and of streams and contexts that go. While
 * there is one, nothing may wait for its context or switch counters there: CUDA
 * invalidates the capture. Lock-free, any thread, also in CUPTI's callbacks. */
#ifndef GPUFL_DRIVER_CAPTURES_H
#define GPUFL_DRIVER_CAPTURES_H

#include <stdbool.h>
#include <stdint.h>

/* Each answers by how much the number of captures under way changes. stream: the handle that the call was given;
 * is_per_thread: a call whose default stream is the thread's own. */
int captures_begin(const void *context, const void *stream, bool is_per_thread);
int captures_end(const void *stream, bool is_per_thread); /* 0: its beginning was not told */
int captures_forget_stream(const void *stream);
int captures_forget_context(const void *context);
bool captures_any(void);
/* One that this thread began: what it launches is noted in the graph, and does not run. */
bool captures_here(void);
void captures_clear(void); /* a new session: what ended between the two was not told */

#endif
