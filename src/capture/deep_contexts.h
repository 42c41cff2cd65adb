/* SPDX-License-Identifier: Apache-2.0 */
/* The program's contexts as windows see them: all that there are, and those that
 * came while somebody switched and still wait to be taken on. Any thread; its lock
 * is held for moments only, also in CUPTI's callbacks. */
#ifndef GPUFL_CAPTURE_DEEP_CONTEXTS_H
#define GPUFL_CAPTURE_DEEP_CONTEXTS_H

#include "driver/cupti_events.h"

#include <pthread.h>
#include <stdatomic.h>

enum { DEEP_CONTEXTS_MAX = 64 };

struct deep_contexts {
    pthread_mutex_t mutex;
    void *known[DEEP_CONTEXTS_MAX];
    uint32_t known_count;
    struct gpu_context waiting[DEEP_CONTEXTS_MAX];
    _Atomic uint32_t waiting_count;
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
/* Waits until the GPU has done all that was asked of it. No launch may be under way. */
void deep_contexts_synchronize(struct deep_contexts *contexts);

#endif
