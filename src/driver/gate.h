/* SPDX-License-Identifier: Apache-2.0 */
/* A gate around functions that CUPTI may still call while or after their owner stops: threads inside are counted,
 * and closing the gate waits until there are none. */
#ifndef GPUFL_DRIVER_GATE_H
#define GPUFL_DRIVER_GATE_H

#include "base/clock.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

struct gate {
    atomic_bool is_open;
    atomic_uint inside;
};

static inline bool gate_enter(struct gate *gate)
{
    atomic_fetch_add(&gate->inside, 1);
    if (atomic_load(&gate->is_open))
        return true;
    atomic_fetch_sub(&gate->inside, 1);
    return false;
}

static inline void gate_leave(struct gate *gate)
{
    atomic_fetch_sub(&gate->inside, 1);
}

static inline void gate_open(struct gate *gate)
{
    atomic_store(&gate->is_open, true);
}

/* Functions inside the gate neither block nor call CUPTI, so the wait is short. */
static inline void gate_close(struct gate *gate)
{
    atomic_store(&gate->is_open, false);
    while (atomic_load(&gate->inside))
        sched_yield();
}

/* The same with a deadline (CLOCK_MONOTONIC); false: a thread is still inside, and what it uses must stay valid. For
 * functions that call a vendor's library, which may hang. */
static inline bool gate_close_until(struct gate *gate, int64_t until_ns)
{
    atomic_store(&gate->is_open, false);
    while (atomic_load(&gate->inside)) {
        if (clock_mono_ns() >= until_ns)
            return false;
        sched_yield();
    }
    return true;
}

/* In a forked child: threads inside belonged to the parent. */
static inline void gate_abandon(struct gate *gate)
{
    atomic_store(&gate->is_open, false);
    atomic_store(&gate->inside, 0);
}

#endif
