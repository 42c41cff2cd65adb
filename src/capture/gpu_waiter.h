/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that waits for the GPU, so that its caller can use a timeout, which CUDA's own wait does not have. One
 * request at a time; contexts may be destroyed at any time, on any thread. */
#ifndef GPUFL_CAPTURE_GPU_WAITER_H
#define GPUFL_CAPTURE_GPU_WAITER_H

#include <stdbool.h>
#include <stdint.h>

enum { GPU_WAITER_CONTEXTS_MAX = 64 };

struct gpu_waiter; /* opaque */

struct gpu_waiter *gpu_waiter_make(void); /* NULL: no memory or no thread */
/* The thread is in CUDA, or about to enter it. */
bool gpu_waiter_is_busy(struct gpu_waiter *waiter);
/* Starts to wait for all work that was submitted to these contexts so far; not while it is busy. */
void gpu_waiter_ask(struct gpu_waiter *waiter, void *const *contexts, uint32_t count);
/* False: still busy at the deadline. It then does not start to wait for a further context, because by that time a
 * graph may be captured in it. has_refused (when true is returned): CUDA refused to wait for one of the contexts. */
bool gpu_waiter_await(struct gpu_waiter *waiter, int64_t until_mono_ns, bool *has_refused);
/* Call when a context is about to be destroyed. A wait that has not started is cancelled; if CUDA is already waiting
 * for this context, blocks until that wait ends, since the handle becomes invalid. Runs on the user's thread, so it
 * blocks for at most 2 s. */
void gpu_waiter_forget(struct gpu_waiter *waiter, const void *context);
/* Never waits for CUDA: a thread that is in CUDA is detached and frees itself when it returns. NULL is a no-op. */
void gpu_waiter_free(struct gpu_waiter *waiter);

#endif
