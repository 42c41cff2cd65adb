/* SPDX-License-Identifier: Apache-2.0 */
#include "base/user_time.h"

#include <stdatomic.h>

static _Atomic uint64_t totals[USER_TIME_COUNT];
static _Thread_local uint64_t slow_ticks;
static atomic_int call_state;

void user_time_add(enum user_time purpose, uint64_t ticks)
{
    atomic_fetch_add_explicit(&totals[purpose], ticks, memory_order_relaxed);
    if (purpose != USER_TIME_CALLBACKS)
        slow_ticks += ticks;
}

uint64_t user_time_slow_ticks(void)
{
    return slow_ticks;
}

uint64_t user_time_ticks(enum user_time purpose)
{
    return atomic_load_explicit(&totals[purpose], memory_order_relaxed);
}

const char *user_time_name(enum user_time purpose)
{
    static const char *const names[USER_TIME_COUNT] = {"callbacks", "stacks", "gate", "replay", "switches", "start"};
    return names[purpose];
}

void call_state_set(enum call_state state)
{
    atomic_store_explicit(&call_state, (int)state, memory_order_relaxed);
}

enum call_state call_state_now(void)
{
    return (enum call_state)atomic_load_explicit(&call_state, memory_order_relaxed);
}

const char *call_state_name(enum call_state state)
{
    static const char *const names[CALL_STATE_COUNT] = {"plain", "sampled", "counted"};
    return names[state];
}
