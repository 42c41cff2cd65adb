/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/deep_contexts.h"

#include "base/log.h"
#include "base/stages.h"

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

/* Call with the lock held. */
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
    if (contexts->waiter)
        gpu_waiter_forget(contexts->waiter, handle);
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
    if (!atomic_load(&contexts->waiting_count)) /* nearly always true; checked at each launch */
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

static bool is_any_known(struct deep_contexts *contexts)
{
    pthread_mutex_lock(&contexts->mutex);
    bool is_any = contexts->known_count > 0;
    pthread_mutex_unlock(&contexts->mutex);
    return is_any;
}

static struct gpu_waiter *waiter_of(struct deep_contexts *contexts)
{
    pthread_mutex_lock(&contexts->mutex);
    struct gpu_waiter *waiter = contexts->waiter;
    pthread_mutex_unlock(&contexts->mutex);
    return waiter;
}

static void waiter_set(struct deep_contexts *contexts, struct gpu_waiter *waiter)
{
    pthread_mutex_lock(&contexts->mutex);
    contexts->waiter = waiter;
    pthread_mutex_unlock(&contexts->mutex);
}

bool deep_contexts_synchronize(struct deep_contexts *contexts, uint32_t wait_ms)
{
    int64_t until_ns = stages_until_ns(wait_ms * INT64_C(1000000));
    struct gpu_waiter *waiter = waiter_of(contexts);
    bool has_refused = false;
    contexts->has_refused = false;
    if (!is_any_known(contexts))
        return true;
    if (!waiter)
        waiter_set(contexts, waiter = gpu_waiter_make());
    /* A wait that timed out earlier does not cover later launches. */
    if (!waiter || !gpu_waiter_await(waiter, until_ns, &has_refused))
        return false;
    pthread_mutex_lock(&contexts->mutex);
    gpu_waiter_ask(waiter, contexts->known, contexts->known_count);
    pthread_mutex_unlock(&contexts->mutex);
    bool is_done = gpu_waiter_await(waiter, until_ns, &has_refused);
    if (has_refused)
        log_message(GPUFL_LOG_WARNING, "CUDA could not wait for a context, so it may be busy");
    contexts->has_refused = has_refused;
    return is_done && !has_refused;
}

bool deep_contexts_are_awaited(struct deep_contexts *contexts)
{
    struct gpu_waiter *waiter = waiter_of(contexts);
    return waiter && gpu_waiter_is_busy(waiter);
}

void deep_contexts_leave(struct deep_contexts *contexts)
{
    struct gpu_waiter *waiter = waiter_of(contexts);
    waiter_set(contexts, NULL);
    gpu_waiter_free(waiter);
}

void deep_contexts_destroy(struct deep_contexts *contexts)
{
    deep_contexts_leave(contexts);
    pthread_mutex_destroy(&contexts->mutex);
}
