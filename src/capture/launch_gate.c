/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/launch_gate.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/stages.h"
#include "base/user_time.h"

#include <errno.h>
#include <time.h>

enum { ENTER_WAIT_MS = 10000 /* the waits of a quiet moment, and a switch, which takes milliseconds */ };

void launch_gate_init(struct launch_gate *gate)
{
    pthread_condattr_t attributes;
    atomic_init(&gate->inside, 0);
    atomic_init(&gate->is_closed, false);
    gate->enter_wait_ms = ENTER_WAIT_MS;
    pthread_mutex_init(&gate->closer, NULL);
    pthread_mutex_init(&gate->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&gate->changed, &attributes);
    pthread_condattr_destroy(&attributes);
}

void launch_gate_destroy(struct launch_gate *gate)
{
    pthread_cond_destroy(&gate->changed);
    pthread_mutex_destroy(&gate->lock);
    pthread_mutex_destroy(&gate->closer);
}

static void wake(struct launch_gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->lock);
}

/* Waits until the gate is open (is_entering) or empty; false: timeout. */
static bool await(struct launch_gate *gate, bool is_entering, uint32_t wait_ms)
{
    int64_t until_ns = stages_until_ns(wait_ms * INT64_C(1000000));
    const struct timespec until = {until_ns / 1000000000, until_ns % 1000000000};
    bool is_in_time = true;
    pthread_mutex_lock(&gate->lock);
    while (is_in_time && (is_entering ? atomic_load(&gate->is_closed) : atomic_load(&gate->inside) != 0))
        is_in_time = pthread_cond_timedwait(&gate->changed, &gate->lock, &until) != ETIMEDOUT;
    pthread_mutex_unlock(&gate->lock);
    return is_in_time;
}

void launch_gate_force_open(struct launch_gate *gate)
{
    atomic_store(&gate->is_closed, false);
    wake(gate);
}

void launch_gate_enter(struct launch_gate *gate)
{
    for (;;) {
        atomic_fetch_add(&gate->inside, 1);
        if (__builtin_expect(!atomic_load(&gate->is_closed), 1))
            return;
        launch_gate_leave(gate);
        uint64_t start_ticks = clock_ticks();
        bool is_open = await(gate, true, gate->enter_wait_ms);
        user_time_since(USER_TIME_GATE, start_ticks);
        if (!is_open) {
            if (atomic_exchange(&gate->is_closed, false)) /* so that other launches do not wait as long again */
                log_message(GPUFL_LOG_WARNING, "launches were held for %u ms: CUPTI did not return from a switch",
                            gate->enter_wait_ms);
            wake(gate);
            atomic_fetch_add(&gate->inside, 1);
            return;
        }
    }
}

void launch_gate_leave(struct launch_gate *gate)
{
    atomic_fetch_sub(&gate->inside, 1);
    if (__builtin_expect(atomic_load(&gate->is_closed), 0))
        wake(gate);
}

bool launch_gate_close(struct launch_gate *gate, bool is_inside, uint32_t wait_ms)
{
    if (is_inside)
        launch_gate_leave(gate);
    pthread_mutex_lock(&gate->closer);
    atomic_store(&gate->is_closed, true);
    if (await(gate, false, wait_ms))
        return true;
    launch_gate_open(gate, is_inside);
    return false;
}

void launch_gate_open(struct launch_gate *gate, bool is_inside)
{
    launch_gate_force_open(gate);
    pthread_mutex_unlock(&gate->closer);
    if (is_inside)
        launch_gate_enter(gate);
}
