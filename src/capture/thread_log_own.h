/* SPDX-License-Identifier: Apache-2.0 */
/* The calling thread's own log, for the files that write to it. */
#ifndef GPUFL_CAPTURE_THREAD_LOG_OWN_H
#define GPUFL_CAPTURE_THREAD_LOG_OWN_H

#include "capture/thread_log.h"

#include "base/clock.h"

#include <string.h>

/* Initial-exec: one load instead of a call per scope; one pointer fits in the static TLS reserve that glibc keeps
 * for libraries opened later. */
extern _Thread_local struct thread_log *thread_log_own __attribute__((tls_model("initial-exec")));

extern struct thread_log_state {
    _Atomic uint32_t epoch;
    _Atomic uint64_t refused[THREAD_LOSS_COUNT];
    void (*_Atomic wake)(void);
} thread_log_state;

/* Space is reserved for the end of every open scope. */
enum { SCOPE_END_BYTES = sizeof(struct scope_end_event) };

/* Allocates a ring for a thread that has none; NULL: none is left. */
struct thread_log *thread_log_register(void);

static inline uint32_t token_epoch(uint64_t token)
{
    return (uint32_t)(token >> (TOKEN_COUNT_BITS + TOKEN_NUMBER_BITS));
}
static inline uint32_t token_epoch_now(void)
{
    return atomic_load_explicit(&thread_log_state.epoch, memory_order_acquire) & 0xffff;
}

static inline struct thread_log *log_of_thread(enum thread_loss loss)
{
    struct thread_log *log = thread_log_own;
    if (__builtin_expect(!log, 0) && !(log = thread_log_register())) {
        atomic_fetch_add_explicit(&thread_log_state.refused[loss], 1, memory_order_relaxed);
        return NULL;
    }
    /* Acquire: makes everything the session set up before it began visible. */
    uint32_t epoch = atomic_load_explicit(&thread_log_state.epoch, memory_order_acquire);
    if (__builtin_expect(log->epoch != epoch, 0)) {
        log->epoch = epoch;
        log->depth = log->dropped_depth = 0;
        log->token = log->task = 0;
        memset(log->stacks_open, 0, sizeof log->stacks_open);
    }
    return log;
}

/* Publishes the record; wakes the collector if the ring is half full. */
static inline void commit(struct ring *ring, uint64_t *alarm_tail, const struct ring_record *record)
{
    ring_commit(ring, record);
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    if (__builtin_expect(head - ring->seen_tail < ring->capacity / 2, 1))
        return;
    ring->seen_tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
    if (head - ring->seen_tail >= ring->capacity / 2 && *alarm_tail != ring->seen_tail + 1) {
        *alarm_tail = ring->seen_tail + 1; /* + 1: never equal to the initial 0 */
        void (*wake)(void) = atomic_load_explicit(&thread_log_state.wake, memory_order_acquire);
        wake();
    }
}

static inline void log_commit(struct thread_log *log, const struct ring_record *record)
{
    commit(&log->ring, &log->alarm_tail, record);
}

#endif
