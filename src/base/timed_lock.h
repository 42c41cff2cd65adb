/* SPDX-License-Identifier: Apache-2.0 */
/* Locks a mutex with a timeout by CLOCK_MONOTONIC. pthread_mutex_timedlock uses the wall clock, whose steps would
 * change the timeout. pthread_mutex_clocklock exists only in newer C libraries, and thread sanitizers do not support
 * it. This function therefore polls, at most every 2 ms. */
#ifndef GPUFL_BASE_TIMED_LOCK_H
#define GPUFL_BASE_TIMED_LOCK_H

#include "base/clock.h"

#include <errno.h>
#include <pthread.h>

/* False: timeout. errno is preserved. */
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
