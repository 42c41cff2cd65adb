/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/deep_contexts.h"

#include "base/log.h"
#include "capture/own_waits.h"
#include "driver/cuda.h"

#include <string.h>

void deep_contexts_init(struct deep_contexts *contexts)
{
    pthread_mutex_init(&contexts->mutex, NULL);
}

void deep_contexts_add(struct deep_contexts *contexts, void *handle)
{
    pthread_mutex_lock(&contexts->mutex);
    if (contexts->known_count < DEEP_CONTEXTS_MAX)
        contexts->known[contexts->known_count++] = handle;
    pthread_mutex_unlock(&contexts->mutex);
}

/* Under the lock. */
static void waiting_remove(struct deep_contexts *contexts, const void *handle)
{
    for (uint32_t i = 0; i < contexts->waiting_count; i++)
        if (contexts->waiting[i].handle == handle)
            contexts->waiting[i--] = contexts->waiting[--contexts->waiting_count];
}

void deep_contexts_remove(struct deep_contexts *contexts, void *handle)
{
    pthread_mutex_lock(&contexts->mutex);
    waiting_remove(contexts, handle);
    for (uint32_t i = 0; i < contexts->known_count; i++)
        if (contexts->known[i] == handle)
            contexts->known[i--] = contexts->known[--contexts->known_count];
    pthread_mutex_unlock(&contexts->mutex);
}

bool deep_contexts_wait(struct deep_contexts *contexts, const struct gpu_context *context)
{
    pthread_mutex_lock(&contexts->mutex);
    bool has_room = contexts->waiting_count < DEEP_CONTEXTS_MAX;
    if (has_room)
        contexts->waiting[contexts->waiting_count++] = *context;
    pthread_mutex_unlock(&contexts->mutex);
    return has_room;
}

bool deep_contexts_is_waiting(struct deep_contexts *contexts, const void *handle)
{
    bool is_waiting = false;
    if (!atomic_load(&contexts->waiting_count)) /* nearly always: asked at each launch */
        return false;
    pthread_mutex_lock(&contexts->mutex);
    for (uint32_t i = 0; i < contexts->waiting_count; i++)
        is_waiting |= contexts->waiting[i].handle == handle;
    pthread_mutex_unlock(&contexts->mutex);
    return is_waiting;
}

bool deep_contexts_next(struct deep_contexts *contexts, struct gpu_context *context)
{
    pthread_mutex_lock(&contexts->mutex);
    bool has_one = contexts->waiting_count > 0;
    if (has_one)
        *context = contexts->waiting[contexts->waiting_count - 1];
    pthread_mutex_unlock(&contexts->mutex);
    return has_one;
}

void deep_contexts_taken(struct deep_contexts *contexts, void *handle)
{
    pthread_mutex_lock(&contexts->mutex);
    waiting_remove(contexts, handle);
    pthread_mutex_unlock(&contexts->mutex);
}

void deep_contexts_synchronize(struct deep_contexts *contexts)
{
    void *known[DEEP_CONTEXTS_MAX];
    struct cuda *cuda;
    pthread_mutex_lock(&contexts->mutex);
    uint32_t count = contexts->known_count;
    memcpy(known, contexts->known, count * sizeof *known);
    pthread_mutex_unlock(&contexts->mutex);
    own_wait_begin();
    for (uint32_t i = 0; i < count && cuda_load(&cuda, false, NULL) == GPUFL_OK; i++)
        if (!cuda_synchronize(cuda, known[i]))
            log_message(GPUFL_LOG_WARNING, "a context could not be waited for before counting");
    own_wait_end();
}
