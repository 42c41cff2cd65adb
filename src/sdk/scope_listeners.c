/* SPDX-License-Identifier: Apache-2.0 */
#include "sdk/scope_listeners.h"

#include "capture/deep.h"
#include "capture/system_sampler.h"
#include "sdk/session.h"

#include <sched.h>
#include <stdatomic.h>

/* Scopes that use a listener are counted in `visitors`; removing a listener clears its pointer and waits until the
 * count is zero. */
static _Atomic(struct system_sampler *) sampler_of_scopes;
static _Atomic(struct deep *) engine_of_scopes;
static _Atomic int visitors;

void scope_listeners_add_sampler(struct system_sampler *sampler)
{
    atomic_store(&sampler_of_scopes, sampler);
}

void scope_listeners_add_engine(struct deep *deep)
{
    atomic_store(&engine_of_scopes, deep);
}

void scope_listeners_remove(void)
{
    atomic_store(&sampler_of_scopes, NULL);
    atomic_store(&engine_of_scopes, NULL);
    while (atomic_load(&visitors))
        sched_yield();
}

void scope_listeners_abandon(void)
{
    atomic_store(&sampler_of_scopes, NULL);
    atomic_store(&engine_of_scopes, NULL);
    atomic_store(&visitors, 0);
    nvtx_abandon();
}

void scope_listeners_hold(bool is_hold)
{
    /* Usually sampling is off or continuous, and then a scope must not pay for this. */
    if (!atomic_load_explicit(&sampler_of_scopes, memory_order_relaxed))
        return;
    atomic_fetch_add(&visitors, 1);
    struct system_sampler *sampler = atomic_load(&sampler_of_scopes);
    if (sampler && is_hold)
        system_sampler_hold(sampler);
    else if (sampler)
        system_sampler_release(sampler);
    atomic_fetch_sub(&visitors, 1);
}

void scope_listeners_tell(bool is_begin, uint32_t stack, const char *name, size_t name_size)
{
    if (!atomic_load_explicit(&engine_of_scopes, memory_order_relaxed))
        return;
    atomic_fetch_add(&visitors, 1);
    struct deep *deep = atomic_load(&engine_of_scopes);
    if (deep)
        deep_scope(deep, is_begin, stack, name, name_size);
    atomic_fetch_sub(&visitors, 1);
}
