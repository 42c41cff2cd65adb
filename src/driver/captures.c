/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/captures.h"

#include <stdatomic.h>
#include <stddef.h>

enum { streams_max = 256 }; /* at the same time */

static struct capture {
    _Atomic(const void *) stream; /* NULL: free */
    _Atomic(const void *) context, thread;
} captures[streams_max];
static atomic_uint capture_count;
static _Thread_local char own_thread; /* its address identifies the thread */

/* The per-thread default stream has the same handle in all threads. */
static const void *key_of(const void *stream, bool is_per_thread)
{
    const uintptr_t per_thread = 2; /* cudaStreamPerThread, CU_STREAM_PER_THREAD */
    return (uintptr_t)stream == per_thread || (!stream && is_per_thread) ? &own_thread : stream;
}

static struct capture *capture_find(const void *key)
{
    for (size_t i = 0; i < streams_max; i++)
        if (atomic_load(&captures[i].stream) == key)
            return &captures[i];
    return NULL;
}

static int capture_remove(struct capture *capture, const void *key)
{
    if (!capture || !atomic_compare_exchange_strong(&capture->stream, &key, NULL))
        return 0;
    atomic_fetch_sub(&capture_count, 1);
    return -1;
}

int captures_begin(const void *context, const void *stream, bool is_per_thread)
{
    const void *key = key_of(stream, is_per_thread);
    if (!key || capture_find(key))
        return 0;
    for (size_t i = 0; i < streams_max; i++) {
        const void *free_slot = NULL;
        if (!atomic_compare_exchange_strong(&captures[i].stream, &free_slot, key))
            continue;
        atomic_store(&captures[i].context, context);
        atomic_store(&captures[i].thread, &own_thread);
        atomic_fetch_add(&capture_count, 1);
        return 1;
    }
    return 0;
}

int captures_end(const void *stream, bool is_per_thread)
{
    const void *key = key_of(stream, is_per_thread);
    return key ? capture_remove(capture_find(key), key) : 0;
}

int captures_forget_stream(const void *stream)
{
    return stream && captures_any() ? capture_remove(capture_find(stream), stream) : 0;
}

int captures_forget_context(const void *context)
{
    int change = 0;
    for (size_t i = 0; captures_any() && i < streams_max; i++) {
        const void *key = atomic_load(&captures[i].stream);
        if (key && atomic_load(&captures[i].context) == context)
            change += capture_remove(&captures[i], key);
    }
    return change;
}

bool captures_any(void)
{
    return atomic_load(&capture_count) > 0;
}

bool captures_here(void)
{
    for (size_t i = 0; captures_any() && i < streams_max; i++)
        if (atomic_load(&captures[i].stream) && atomic_load(&captures[i].thread) == &own_thread)
            return true;
    return false;
}

void captures_clear(void)
{
    for (size_t i = 0; i < streams_max; i++)
        atomic_store(&captures[i].stream, NULL);
    atomic_store(&capture_count, 0);
}
