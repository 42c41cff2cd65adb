/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/nvtx_handles.h"

#include "capture/thread_log.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { domains_max = SCOPE_STACK_COUNT - SCOPE_STACK_DOMAINS, bucket_count = 8192 };
/* The upper half of a handle; no address in the program looks like it. */
static const uint64_t domain_mark = 0x67706e64, string_mark = 0x67706e73;

struct name_table {
    const uint32_t names_max;
    const uint64_t mark;
    struct nvtx_name *_Atomic *names; /* [names_max] */
    uint32_t count;                   /* with the mutex */
    uint32_t *buckets;                /* [bucket_count], numbers from 1; with the mutex */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct nvtx_name *_Atomic domain_names[domains_max], *_Atomic string_names[NVTX_STRINGS_MAX];
static uint32_t domain_buckets[bucket_count], string_buckets[bucket_count];
static struct name_table domains = {domains_max, domain_mark, domain_names, 0, domain_buckets};
static struct name_table strings = {NVTX_STRINGS_MAX, string_mark, string_names, 0, string_buckets};
static size_t bytes_used;
static _Atomic uint64_t losses[NVTX_LOSS_COUNT];

static uint32_t bucket_of(const char *text, size_t size)
{
    uint64_t hash = size;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3ull;
    return (uint32_t)((hash ^ hash >> 32) % bucket_count);
}

/* The number of the name, from 1; 0: the table is full. */
static uint32_t number_of(struct name_table *table, const char *text, size_t size)
{
    uint32_t *bucket = &table->buckets[bucket_of(text, size)];
    for (uint32_t number = *bucket; number;) {
        const struct nvtx_name *name = atomic_load_explicit(&table->names[number - 1], memory_order_relaxed);
        if (name->size == size && !memcmp(name->text, text, size))
            return number;
        number = name->next;
    }
    size_t bytes = sizeof(struct nvtx_name) + size + 1;
    struct nvtx_name *name =
        table->count < table->names_max && bytes_used + bytes <= NVTX_STRING_BYTES_MAX ? malloc(bytes) : NULL;
    if (!name)
        return 0;
    bytes_used += bytes;
    name->size = (uint32_t)size;
    name->next = *bucket;
    memcpy(name->text, text, size);
    name->text[size] = '\0';
    atomic_store_explicit(&table->names[table->count], name, memory_order_release);
    return *bucket = ++table->count;
}

static void *handle_of(struct name_table *table, const char *text, size_t size)
{
    if (size > NVTX_TEXT_BYTES_MAX)
        size = NVTX_TEXT_BYTES_MAX;
    pthread_mutex_lock(&mutex);
    uint32_t number = number_of(table, text, size);
    pthread_mutex_unlock(&mutex);
    return (void *)(uintptr_t)(table->mark << 32 | number);
}

static enum nvtx_found find(const struct name_table *table, const void *handle, const struct nvtx_name **name,
                            uint32_t *index)
{
    uint64_t value = (uintptr_t)handle;
    uint32_t number = (uint32_t)value;
    if (value >> 32 != table->mark || number > table->names_max)
        return NVTX_UNKNOWN;
    if (!number)
        return NVTX_FULL;
    const struct nvtx_name *found = atomic_load_explicit(&table->names[number - 1], memory_order_acquire);
    if (!found)
        return NVTX_UNKNOWN;
    *name = found;
    *index = number - 1;
    return NVTX_FOUND;
}

void *nvtx_domain_handle(const char *name, size_t size)
{
    return handle_of(&domains, name, size);
}

void *nvtx_string_handle(const char *text, size_t size)
{
    return handle_of(&strings, text, size);
}

enum nvtx_found nvtx_domain_find(const void *handle, const struct nvtx_name **domain, uint32_t *number)
{
    return find(&domains, handle, domain, number);
}

enum nvtx_found nvtx_string_find(const void *handle, const struct nvtx_name **string)
{
    uint32_t number;
    return find(&strings, handle, string, &number);
}

void nvtx_lose(enum nvtx_loss loss)
{
    atomic_fetch_add_explicit(&losses[loss], 1, memory_order_relaxed);
}

uint64_t nvtx_lost(enum nvtx_loss loss)
{
    return atomic_load_explicit(&losses[loss], memory_order_relaxed);
}

void nvtx_handles_abandon(void)
{
    pthread_mutex_init(&mutex, NULL);
}

size_t nvtx_handles_bytes(void)
{
    pthread_mutex_lock(&mutex);
    size_t bytes = bytes_used;
    pthread_mutex_unlock(&mutex);
    return bytes;
}
