/* SPDX-License-Identifier: Apache-2.0 */
/* A single-producer, single-consumer ring of variable-size records. The producer never blocks, allocates or makes a
 * system call; when the ring is full, writing fails and the caller counts the loss. Records are 8-byte aligned and
 * contiguous, and start with their size. */
#ifndef GPUFL_BASE_RING_H
#define GPUFL_BASE_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ring_record {
    uint32_t size; /* including this header, a multiple of 8; the top bit marks padding at the wrap */
    uint32_t kind; /* defined by the owner */
};

struct ring {
    uint8_t *data;     /* owned by whoever set the ring up */
    uint64_t capacity; /* power of two */
    /* Producer's line */
    _Alignas(64) _Atomic uint64_t head;
    uint64_t seen_tail; /* the producer's copy of tail: most writes need no shared read */
    /* Consumer's line */
    _Alignas(64) _Atomic uint64_t tail;
};

#define RING_PADDING 0x80000000u

/* Returns space for a record of `size` bytes if `spare` bytes remain free after it; otherwise NULL. */
static inline struct ring_record *ring_reserve(struct ring *ring, size_t size, size_t spare)
{
    size = (size + 7) & ~(size_t)7;
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    uint64_t offset = head & (ring->capacity - 1);
    uint64_t until_wrap = ring->capacity - offset;
    uint64_t needed = size + (until_wrap < size ? until_wrap : 0);
    if (ring->capacity - (head - ring->seen_tail) < needed + spare) {
        ring->seen_tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
        if (ring->capacity - (head - ring->seen_tail) < needed + spare)
            return NULL;
    }
    if (until_wrap < size) {
        struct ring_record *padding = (struct ring_record *)(void *)(ring->data + offset);
        padding->size = (uint32_t)until_wrap | RING_PADDING;
        padding->kind = 0;
        atomic_store_explicit(&ring->head, head + until_wrap, memory_order_release);
        offset = 0;
    }
    struct ring_record *record = (struct ring_record *)(void *)(ring->data + offset);
    record->size = (uint32_t)size;
    return record;
}

static inline void ring_commit(struct ring *ring, const struct ring_record *record)
{
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    atomic_store_explicit(&ring->head, head + record->size, memory_order_release);
}

/* The oldest record; NULL: empty. Valid until ring_release. */
static inline const struct ring_record *ring_peek(struct ring *ring)
{
    for (;;) {
        uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
        if (tail == atomic_load_explicit(&ring->head, memory_order_acquire))
            return NULL;
        const struct ring_record *record =
            (const struct ring_record *)(const void *)(ring->data + (tail & (ring->capacity - 1)));
        if (!(record->size & RING_PADDING))
            return record;
        atomic_store_explicit(&ring->tail, tail + (record->size & ~RING_PADDING), memory_order_release);
    }
}

static inline void ring_release(struct ring *ring, const struct ring_record *record)
{
    uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    atomic_store_explicit(&ring->tail, tail + record->size, memory_order_release);
}

/* Consumer, while the ring is empty and the caller keeps the producer out: lets the next record start at the beginning,
 * so that only as much memory is touched as was in use at once. */
static inline void ring_rewind(struct ring *ring)
{
    atomic_store_explicit(&ring->head, 0, memory_order_relaxed);
    atomic_store_explicit(&ring->tail, 0, memory_order_relaxed);
    ring->seen_tail = 0;
}

#endif
