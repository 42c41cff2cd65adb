/* SPDX-License-Identifier: Apache-2.0 */
/* The program's contexts as windows see them: all that there are, and those that
 * came while somebody switched and still wait to be taken on. Any thread; its lock
 * is held for moments only, also in CUPTI's callbacks, and where a context goes
 * that is just waited for until that has ended (gpu_waiter_forget). */
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
    bool has_refused;          /* the last one; of the thread that waits */
};

void deep_contexts_init(struct deep_contexts *contexts);
void deep_contexts_add(struct deep_contexts *contexts, void *handle);
void deep_contexts_remove(struct deep_contexts *contexts, void *handle); /* about to go: also from those that wait */
/* False: too many wait. */
bool deep_contexts_wait(struct deep_contexts *contexts, const struct gpu_context *context);
bool deep_contexts_is_waiting(struct deep_contexts *contexts, const void *handle);
/* One that waits, which goes on waiting until deep_contexts_taken; false: none does. */
bool deep_contexts_next(struct deep_contexts *contexts, struct gpu_context *context);
void deep_contexts_taken(struct deep_contexts *contexts, void *handle);
/* Waits until the GPU has done all that was asked of it; false: it had not in time, and what it is at goes on being waited
 * for; or CUDA does not wait for a context. No launch may be under way, nor a capture, which this would invalidate. */
bool deep_contexts_synchronize(struct deep_contexts *contexts, uint32_t wait_ms);
bool deep_contexts_are_awaited(struct deep_contexts *contexts); /* still, by a wait that was given up */
/* Nothing is waited for any more; does not wait for the GPU itself. */
void deep_contexts_leave(struct deep_contexts *contexts);
void deep_contexts_destroy(struct deep_contexts *contexts);

#endif
