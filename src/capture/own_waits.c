/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/own_waits.h"

#include "base/clock.h"
#include "base/current_thread.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { waits_max = 64 };

/* Lock-free, since a forked child might find a lock held. A slot that is being rewritten belongs to the 64th wait
 * before, whose record was read long ago. */
static struct wait {
    _Atomic int64_t start_ns, end_ns;
    _Atomic uint32_t thread_id, pthread_low;
} waits[waits_max];
static _Atomic uint64_t wait_count;
static _Thread_local int64_t begun_ns;

void own_wait_begin(void)
{
    begun_ns = clock_log_ns();
}

void own_wait_end(void)
{
    struct wait *wait = &waits[atomic_load(&wait_count) % waits_max];
    atomic_store(&wait->start_ns, begun_ns);
    atomic_store(&wait->end_ns, clock_log_ns());
    atomic_store(&wait->thread_id, current_thread_id());
    atomic_store(&wait->pthread_low, (uint32_t)(uintptr_t)pthread_self());
    atomic_fetch_add(&wait_count, 1);
}

bool own_waits_include(uint32_t thread_id, int64_t time_ns)
{
    uint64_t count = atomic_load(&wait_count);
    for (uint64_t i = 0; i < waits_max && i < count; i++) {
        const struct wait *wait = &waits[i];
        if ((atomic_load(&wait->thread_id) == thread_id || atomic_load(&wait->pthread_low) == thread_id) &&
            time_ns >= atomic_load(&wait->start_ns) && time_ns <= atomic_load(&wait->end_ns))
            return true;
    }
    return false;
}
