/* SPDX-License-Identifier: Apache-2.0 */
/* A bounded lock-free queue of pointers for any number of producers and
 * consumers (ticketed slots). Push fails when full, pop when empty; neither
 * blocks, allocates or makes a system call. */
#ifndef GPUFL_BASE_QUEUE_H
#define GPUFL_BASE_QUEUE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct queue_slot {
    _Atomic uint64_t turn;
    void *item;
};
struct queue {
    struct queue_slot *slots; /* owned by whoever set the queue up */
    uint64_t capacity;        /* power of two */
    _Alignas(64) _Atomic uint64_t head;
    _Alignas(64) _Atomic uint64_t tail;
};

static inline void queue_init(struct queue *queue, struct queue_slot *slots, uint64_t capacity)
{
    queue->slots = slots;
    queue->capacity = capacity;
    for (uint64_t i = 0; i < capacity; i++)
        atomic_init(&slots[i].turn, i);
    atomic_init(&queue->head, 0);
    atomic_init(&queue->tail, 0);
}

static inline bool queue_push(struct queue *queue, void *item)
{
    uint64_t head = atomic_load_explicit(&queue->head, memory_order_relaxed);
    for (;;) {
        struct queue_slot *slot = &queue->slots[head & (queue->capacity - 1)];
        int64_t lead = (int64_t)(atomic_load_explicit(&slot->turn, memory_order_acquire) - head);
        if (lead < 0)
            return false;
        if (lead > 0) {
            head = atomic_load_explicit(&queue->head, memory_order_relaxed);
        } else if (atomic_compare_exchange_weak_explicit(&queue->head, &head, head + 1, memory_order_relaxed,
                                                         memory_order_relaxed)) {
            slot->item = item;
            atomic_store_explicit(&slot->turn, head + 1, memory_order_release);
            return true;
        }
    }
}

static inline void *queue_pop(struct queue *queue)
{
    uint64_t tail = atomic_load_explicit(&queue->tail, memory_order_relaxed);
    for (;;) {
        struct queue_slot *slot = &queue->slots[tail & (queue->capacity - 1)];
        int64_t lead = (int64_t)(atomic_load_explicit(&slot->turn, memory_order_acquire) - (tail + 1));
        if (lead < 0)
            return NULL;
        if (lead > 0) {
            tail = atomic_load_explicit(&queue->tail, memory_order_relaxed);
        } else if (atomic_compare_exchange_weak_explicit(&queue->tail, &tail, tail + 1, memory_order_relaxed,
                                                         memory_order_relaxed)) {
            void *item = slot->item;
            atomic_store_explicit(&slot->turn, tail + queue->capacity, memory_order_release);
            return item;
        }
    }
}

#endif
