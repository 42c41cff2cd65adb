/* SPDX-License-Identifier: Apache-2.0 */
/* The program's contexts as windows see them: all contexts, and those that were created during a switch and still
 * have to be taken on. Any thread; its lock is only held briefly, also in CUPTI's callbacks. Removing a context that
 * is being waited for blocks until that wait has ended (gpu_waiter_forget). */
#ifndef GPUFL_CAPTURE_DEEP_CONTEXTS_H
#define GPUFL_CAPTURE_DEEP_CONTEXTS_H

#include "capture/gpu_waiter.h"
#include "driver/cupti_events.h"

#include <pthread.h>
#include <stdatomic.h>

enum { DEEP_CONTEXTS_MAX = GPU_WAITER_CONTEXTS_MAX };

struct deep_contexts {
    pthread_mutex_t mutex;
    void *known[DEEP_CONTEXTS_MAX];
    uint32_t known_count;
    struct gpu_context waiting[DEEP_CONTEXTS_MAX];
    _Atomic uint32_t waiting_count;
    struct gpu_waiter *waiter; /* NULL until the first wait */
    bool has_refused;          /* the last wait failed; used by the waiting thread */
};

void deep_contexts_init(struct deep_contexts *contexts);
void deep_contexts_add(struct deep_contexts *contexts, void *handle);
void deep_contexts_remove(struct deep_contexts *contexts, void *handle); /* the context is about to be destroyed */
/* Queues a context to be taken on; false: too many are queued. */
bool deep_contexts_wait(struct deep_contexts *contexts, const struct gpu_context *context);
bool deep_contexts_is_waiting(struct deep_contexts *contexts, const void *handle);
/* A queued context, which stays queued until deep_contexts_taken; false: there is none. */
bool deep_contexts_next(struct deep_contexts *contexts, struct gpu_context *context);
void deep_contexts_taken(struct deep_contexts *contexts, void *handle);
/* Waits until the GPU is idle. False: the GPU was still busy at the timeout, and the wait continues in the
 * background; or CUDA refused to wait for a context. No launch may be in progress, and no capture, which the wait
 * would invalidate. */
bool deep_contexts_synchronize(struct deep_contexts *contexts, uint32_t wait_ms);
bool deep_contexts_are_awaited(struct deep_contexts *contexts); /* a wait that timed out is still running */
/* Abandons all waits; does not wait for the GPU itself. */
void deep_contexts_leave(struct deep_contexts *contexts);
void deep_contexts_destroy(struct deep_contexts *contexts);

#endif
