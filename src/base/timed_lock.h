/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for a mutex, but not for ever, by CLOCK_MONOTONIC: pthread_mutex_timedlock's deadline is of the wall clock, and a
 * step of that makes the wait longer or cuts it off. pthread_mutex_clocklock is in newer C libraries only, and thread
 * sanitizers do not know it: so this one looks again and again, at most 2 ms apart. */
#ifndef GPUFL_BASE_TIMED_LOCK_H
#define GPUFL_BASE_TIMED_LOCK_H

#include "base/clock.h"

#include <errno.h>
#include <pthread.h>

/* False: it was not free in time. errno stays. */
static inline bool mutex_lock_in_time(pthread_mutex_t *mutex, int64_t wait_ns)
{
    enum { first_pause_ns = 50000, longest_pause_ns = 2000000 };
    int saved_errno = errno;
    bool is_locked = pthread_mutex_trylock(mutex) == 0;
    int64_t until_ns = is_locked ? 0 : clock_mono_ns() + wait_ns;
    struct timespec pause = {.tv_nsec = first_pause_ns};
    while (!is_locked && clock_mono_ns() < until_ns) {
        nanosleep(&pause, NULL);
        pause.tv_nsec = pause.tv_nsec * 2 < longest_pause_ns ? pause.tv_nsec * 2 : longest_pause_ns;
        is_locked = pthread_mutex_trylock(mutex) == 0;
    }
    errno = saved_errno;
    return is_locked;
}

#endif
