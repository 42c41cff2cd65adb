/* SPDX-License-Identifier: Apache-2.0 */
#include "sdk/session_mutex.h"

#include "base/timed_lock.h"

static const int64_t wait_ns = INT64_C(2000000000); /* long enough for most starts and shutdowns */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local bool is_own, is_for_fork;

void session_mutex_lock(void)
{
    pthread_mutex_lock(&mutex);
    is_own = true;
}

bool session_mutex_lock_in_time(void)
{
    bool is_taken = mutex_lock_in_time(&mutex, wait_ns);
    is_own |= is_taken;
    return is_taken;
}

bool session_mutex_trylock(void)
{
    bool is_taken = pthread_mutex_trylock(&mutex) == 0;
    is_own |= is_taken;
    return is_taken;
}

void session_mutex_unlock(void)
{
    is_own = false;
    pthread_mutex_unlock(&mutex);
}

void session_mutex_borrow(void)
{
    is_own = true;
}

void session_mutex_give_back(void)
{
    is_own = false;
}

bool session_mutex_is_own(void)
{
    return is_own;
}

void session_mutex_before_fork(void)
{
    is_for_fork = !is_own && mutex_lock_in_time(&mutex, wait_ns);
}

bool session_mutex_after_fork_in_parent(void)
{
    if (is_for_fork)
        pthread_mutex_unlock(&mutex);
    return is_for_fork;
}

bool session_mutex_after_fork_in_child(void)
{
    pthread_mutex_init(&mutex, NULL);
    is_own = false;
    return is_for_fork;
}
