/* SPDX-License-Identifier: Apache-2.0 */
#include "base/watch.h"

#include "base/clock.h"

#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

enum { slot_count = 512, nesting_max = 8, hung_max = 16, join_step_us_max = 2000 };

/* The state is the thread (pthread_t is the address of its control block) plus, in the lowest bits, what the thread
 * does. */
enum {
    slot_free = 0,
    slot_claimed = 1,
    slot_in_call = 2,
    slot_judged = 3, /* another thread decides whether to abandon it; it must wait before leaving the call */
    slot_abandoned = 4,
    slot_bits = 7
};

static struct slot {
    _Atomic uintptr_t state;
    _Atomic(const char *) call;
    _Atomic int64_t since_ns;
} slots[slot_count];

static _Thread_local struct {
    struct slot *slot; /* NULL: not in a call, or all slots are in use */
    uint32_t depth, hint;
    const char *outer[nesting_max];
} own;

static _Atomic(const char *) hung_calls[hung_max];
static _Atomic uint32_t hung_count;

static uintptr_t state_of(pthread_t thread, int what)
{
    return (uintptr_t)thread | (uintptr_t)what;
}

/* The slot that the thread used last is nearly always free. */
static struct slot *claim(void)
{
    uintptr_t claimed = state_of(pthread_self(), slot_claimed);
    for (uint32_t i = 0; i < slot_count; i++) {
        uint32_t index = (own.hint + i) % slot_count;
        uintptr_t expected = slot_free;
        if (atomic_load_explicit(&slots[index].state, memory_order_relaxed) == slot_free &&
            atomic_compare_exchange_strong(&slots[index].state, &expected, claimed)) {
            own.hint = index;
            return &slots[index];
        }
    }
    return NULL;
}

void watch_enter(const char *call)
{
    if (own.depth++) {
        if (own.depth <= nesting_max && own.slot) {
            own.outer[own.depth - 1] = atomic_load_explicit(&own.slot->call, memory_order_relaxed);
            atomic_store_explicit(&own.slot->call, call, memory_order_relaxed);
        }
        return;
    }
    own.slot = claim();
    if (!own.slot)
        return;
    atomic_store_explicit(&own.slot->call, call, memory_order_relaxed);
    atomic_store_explicit(&own.slot->since_ns, clock_read_ns(CLOCK_MONOTONIC_COARSE), memory_order_relaxed);
    atomic_store(&own.slot->state, state_of(pthread_self(), slot_in_call));
}

int watch_leave(int result)
{
    if (--own.depth) {
        if (own.depth < nesting_max && own.slot)
            atomic_store_explicit(&own.slot->call, own.outer[own.depth], memory_order_relaxed);
        return result;
    }
    if (!own.slot)
        return result;
    uintptr_t in_call = state_of(pthread_self(), slot_in_call), found = in_call;
    while (!atomic_compare_exchange_strong(&own.slot->state, &found, slot_free)) {
        while (found == state_of(pthread_self(), slot_abandoned)) /* what it would access next may be freed */
            pause();
        sched_yield();
        found = in_call;
    }
    own.slot = NULL;
    return result;
}

static void note_hung(const char *call)
{
    uint32_t index = atomic_fetch_add(&hung_count, 1);
    if (index < hung_max)
        atomic_store(&hung_calls[index], call);
}

bool watch_abandon(pthread_t thread, int64_t since_ns, const char **call)
{
    for (uint32_t i = 0; i < slot_count; i++) {
        uintptr_t expected = state_of(thread, slot_in_call);
        if (!atomic_compare_exchange_strong(&slots[i].state, &expected, state_of(thread, slot_judged)))
            continue;
        bool is_old = atomic_load(&slots[i].since_ns) <= since_ns;
        atomic_store(&slots[i].state, state_of(thread, is_old ? slot_abandoned : slot_in_call));
        if (!is_old)
            return false;
        *call = atomic_load(&slots[i].call);
        note_hung(*call);
        pthread_detach(thread);
        return true;
    }
    return false;
}

enum watch_end watch_join(pthread_t thread, int64_t hung_ns, int64_t busy_ns, const char **call)
{
    useconds_t step_us = 20;
    while (pthread_tryjoin_np(thread, NULL)) {
        int64_t now_ns = clock_mono_ns();
        if (now_ns >= hung_ns && watch_abandon(thread, INT64_MAX, call))
            return WATCH_HUNG;
        if (now_ns >= busy_ns) {
            pthread_detach(thread);
            return WATCH_BUSY;
        }
        usleep(step_us);
        step_us = step_us < join_step_us_max ? step_us * 2 : join_step_us_max;
    }
    return WATCH_ENDED;
}

uint32_t watch_hung_count(void)
{
    return atomic_load(&hung_count);
}

const char *watch_hung_call(uint32_t index)
{
    return index < hung_max ? atomic_load(&hung_calls[index]) : NULL;
}

const char *watch_hung(const char *prefix)
{
    for (uint32_t i = 0; i < hung_max; i++) {
        const char *call = atomic_load(&hung_calls[i]);
        if (call && !strncmp(call, prefix, strlen(prefix)))
            return call;
    }
    return NULL;
}

const char *watch_longest(int64_t since_ns)
{
    const char *longest = NULL;
    for (uint32_t i = 0; i < slot_count; i++) {
        uintptr_t state = atomic_load(&slots[i].state);
        int64_t began_ns = atomic_load(&slots[i].since_ns);
        const char *call = atomic_load(&slots[i].call);
        if ((state & slot_bits) != slot_in_call || &slots[i] == own.slot || began_ns > since_ns ||
            atomic_load(&slots[i].state) != state)
            continue;
        longest = call;
        since_ns = began_ns;
    }
    return longest;
}

void watch_after_fork_in_child(void)
{
    for (uint32_t i = 0; i < slot_count; i++)
        if (&slots[i] != own.slot) /* this thread itself may be in a call, of a library that forks */
            atomic_store(&slots[i].state, slot_free);
}
