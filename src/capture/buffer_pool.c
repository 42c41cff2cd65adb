/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/buffer_pool.h"

#include "base/queue.h"

#include <linux/futex.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { queue_slots = 1024 }; /* more than all buffers together, so a push cannot fail */

/* Precedes every buffer; CUPTI only sees what follows. 64 bytes keep the alignment. */
struct buffer_head {
    size_t valid_bytes;
    bool is_reserve, is_decoded;
    _Atomic bool is_lent;
    char pad[64 - sizeof(size_t) - 3 * sizeof(bool)];
};

static struct {
    pthread_mutex_t mutex;
    bool is_set_up;
    struct queue free_buffers, free_reserve, completed;
    struct queue_slot free_slots[queue_slots], reserve_slots[queue_slots], completed_slots[queue_slots];
    _Atomic uint32_t pool_made, reserve_made, lent;
    struct buffer_head *_Atomic reserves[RESERVE_BUFFER_COUNT];
    uint8_t *memory;         /* reserved address space; pages are allocated on first use */
    _Atomic uint32_t events; /* futex word: bumped by every completion */
    _Atomic uint32_t sleepers;
} pool = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static const size_t stride = POOL_BUFFER_BYTES + sizeof(struct buffer_head);

gpufl_status buffer_pool_setup(void)
{
    gpufl_status status = GPUFL_OK;
    pthread_mutex_lock(&pool.mutex);
    if (!pool.is_set_up) {
        pool.memory = mmap(NULL, stride * POOL_BUFFER_COUNT, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (pool.memory == MAP_FAILED) {
            status = GPUFL_E_NO_MEMORY;
        } else {
            queue_init(&pool.free_buffers, pool.free_slots, queue_slots);
            queue_init(&pool.free_reserve, pool.reserve_slots, queue_slots);
            queue_init(&pool.completed, pool.completed_slots, queue_slots);
            pool.is_set_up = true;
        }
    }
    pthread_mutex_unlock(&pool.mutex);
    return status;
}

void buffer_pool_abandon(void)
{
    pthread_mutex_init(&pool.mutex, NULL);
    if (!pool.is_set_up)
        return;
    queue_init(&pool.free_buffers, pool.free_slots, queue_slots);
    queue_init(&pool.free_reserve, pool.reserve_slots, queue_slots);
    queue_init(&pool.completed, pool.completed_slots, queue_slots);
    atomic_store(&pool.pool_made, 0);
    atomic_store(&pool.reserve_made, 0);
    atomic_store(&pool.lent, 0);
    atomic_store(&pool.sleepers, 0);
}

static struct buffer_head *fresh_buffer(void)
{
    /* Recycled buffers are used first, so memory grows only with the number in use at once. */
    uint32_t index = atomic_fetch_add(&pool.pool_made, 1);
    if (index < POOL_BUFFER_COUNT)
        return (struct buffer_head *)(void *)(pool.memory + (size_t)index * stride);
    atomic_fetch_sub(&pool.pool_made, 1);
    return NULL;
}

static struct buffer_head *reserve_buffer(void)
{
    struct buffer_head *head = queue_pop(&pool.free_reserve);
    if (head)
        return head;
    uint32_t index = atomic_fetch_add(&pool.reserve_made, 1);
    if (index < RESERVE_BUFFER_COUNT) {
        head = aligned_alloc(64, RESERVE_BUFFER_BYTES + sizeof *head);
        if (head) {
            head->is_reserve = true;
            atomic_store(&pool.reserves[index], head);
            return head;
        }
    }
    atomic_fetch_sub(&pool.reserve_made, 1);
    return NULL;
}

uint8_t *buffer_pool_request(size_t *size)
{
    struct buffer_head *head = queue_pop(&pool.free_buffers);
    if (!head)
        head = fresh_buffer();
    if (!head)
        head = reserve_buffer();
    if (!head) {
        *size = 0;
        return NULL;
    }
    atomic_fetch_add_explicit(&pool.lent, 1, memory_order_relaxed);
    atomic_store_explicit(&head->is_lent, true, memory_order_relaxed);
    *size = head->is_reserve ? RESERVE_BUFFER_BYTES : POOL_BUFFER_BYTES;
    return (uint8_t *)(head + 1);
}

void buffer_pool_wake(void)
{
    atomic_fetch_add(&pool.events, 1);
    if (atomic_load(&pool.sleepers))
        syscall(SYS_futex, &pool.events, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void complete(uint8_t *buffer, size_t valid, bool is_decoded)
{
    atomic_fetch_sub_explicit(&pool.lent, 1, memory_order_relaxed);
    struct buffer_head *head = (struct buffer_head *)(void *)buffer - 1;
    atomic_store_explicit(&head->is_lent, false, memory_order_relaxed);
    if (!valid) {
        buffer_pool_return(buffer);
        return;
    }
    head->valid_bytes = valid;
    head->is_decoded = is_decoded;
    queue_push(&pool.completed, head);
    buffer_pool_wake();
}

/* CUPTI passes buffers to whoever registered last, also those of another profiler. */
static bool is_own(const uint8_t *buffer)
{
    if (buffer > pool.memory && buffer < pool.memory + stride * POOL_BUFFER_COUNT)
        return true;
    for (uint32_t i = 0; i < RESERVE_BUFFER_COUNT; i++)
        if (buffer == (uint8_t *)(atomic_load_explicit(&pool.reserves[i], memory_order_relaxed) + 1))
            return true;
    return false;
}

void buffer_pool_complete(uint8_t *buffer, size_t size, size_t valid)
{
    (void)size;
    if (buffer && is_own(buffer))
        complete(buffer, valid, false);
}

void buffer_pool_complete_decoded(uint8_t *buffer, size_t valid)
{
    complete(buffer, valid, true);
}

bool buffer_pool_take(struct filled_buffer *filled)
{
    struct buffer_head *head = queue_pop(&pool.completed);
    if (!head)
        return false;
    filled->data = (uint8_t *)(head + 1);
    filled->valid_bytes = head->valid_bytes;
    filled->is_decoded = head->is_decoded;
    return true;
}

void buffer_pool_return(uint8_t *buffer)
{
    struct buffer_head *head = (struct buffer_head *)(void *)buffer - 1;
    queue_push(head->is_reserve ? &pool.free_reserve : &pool.free_buffers, head);
}

static void take_back(struct buffer_head *head)
{
    if (!head || !atomic_exchange(&head->is_lent, false))
        return;
    atomic_fetch_sub_explicit(&pool.lent, 1, memory_order_relaxed);
    buffer_pool_return((uint8_t *)(head + 1));
}

void buffer_pool_take_back(void)
{
    uint32_t made = atomic_load(&pool.pool_made);
    for (uint32_t i = 0; i < made && i < POOL_BUFFER_COUNT; i++)
        take_back((struct buffer_head *)(void *)(pool.memory + (size_t)i * stride));
    for (uint32_t i = 0; i < RESERVE_BUFFER_COUNT; i++)
        take_back(atomic_load(&pool.reserves[i]));
}

void buffer_pool_wait(int64_t timeout_ns)
{
    uint32_t events = atomic_load(&pool.events);
    static _Atomic uint32_t seen; /* used by the one collector: events that were already handled end the wait at once */
    if (atomic_exchange(&seen, events) != events)
        return;
    struct timespec timeout = {timeout_ns / 1000000000, timeout_ns % 1000000000};
    atomic_fetch_add(&pool.sleepers, 1);
    syscall(SYS_futex, &pool.events, FUTEX_WAIT_PRIVATE, events, &timeout, NULL, 0);
    atomic_fetch_sub(&pool.sleepers, 1);
}

uint32_t buffer_pool_lent(void)
{
    return atomic_load(&pool.lent);
}

size_t buffer_pool_bytes(void)
{
    uint32_t made = atomic_load(&pool.pool_made), reserve = atomic_load(&pool.reserve_made);
    return (made < POOL_BUFFER_COUNT ? made : POOL_BUFFER_COUNT) * stride +
           (size_t)(reserve < RESERVE_BUFFER_COUNT ? reserve : RESERVE_BUFFER_COUNT) * RESERVE_BUFFER_BYTES;
}
