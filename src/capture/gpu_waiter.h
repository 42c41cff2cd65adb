/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that waits for the GPU, so that whoever wants to know when it is idle
 * can give up: CUDA's own wait has no end. One asks at a time; contexts may go at
 * any time, on any thread. */
#ifndef GPUFL_CAPTURE_GPU_WAITER_H
#define GPUFL_CAPTURE_GPU_WAITER_H

#include <stdbool.h>
#include <stdint.h>

enum { GPU_WAITER_CONTEXTS_MAX = 64 };

struct gpu_waiter; /* opaque */

struct gpu_waiter *gpu_waiter_make(void); /* NULL: no memory or no thread */
/* It is in CUDA, or about to be. */
bool gpu_waiter_is_busy(struct gpu_waiter *waiter);
/* Begins to wait for what these contexts were asked to do until now; not while it is busy. */
void gpu_waiter_ask(struct gpu_waiter *waiter, void *const *contexts, uint32_t count);
/* False: it is still busy at that time, and then does not begin with a further context: nobody says any more that it may,
 * and a graph may be captured in it by then. has_refused, where it is not: CUDA did not wait for one of them. */
bool gpu_waiter_await(struct gpu_waiter *waiter, int64_t until_mono_ns, bool *has_refused);
/* The context is about to go: if its turn has not come, it is not waited for; if CUDA is just waiting for it, that ends
 * first, since the handle means nothing afterwards. On the user's thread, so for 2 s at most. */
void gpu_waiter_forget(struct gpu_waiter *waiter, const void *context);
/* Never waits for CUDA: a thread that is in it is left there, and frees itself when it comes back. NULL is a no-op. */
void gpu_waiter_free(struct gpu_waiter *waiter);

#endif
