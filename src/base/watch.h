/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that may never return: into a vendor's library, or to the disk. A thread publishes its current call, so that a
 * thread waiting for it can name the call and abandon the thread. An abandoned thread never runs our code again: if its
 * call does return, the thread sleeps until the process ends. Everything the call itself uses (its arguments, the locks
 * that the thread holds) must therefore remain; everything else may be freed. Only gpufl's threads are abandoned; a
 * user's thread publishes its calls only so that they can be named. */
#ifndef GPUFL_BASE_WATCH_H
#define GPUFL_BASE_WATCH_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Any thread; lock-free, no allocation, no system call. `call` is a string literal: the function's name. Calls may nest
 * (a library calls back); the innermost one is reported. */
void watch_enter(const char *call);
int watch_leave(int result); /* returns its argument; does not return on an abandoned thread */
#define WATCHED(call, invocation) (watch_enter(call), watch_leave(invocation))

enum watch_end {
    WATCH_ENDED, /* the thread was joined */
    WATCH_HUNG,  /* abandoned inside a call: it never runs our code again */
    WATCH_BUSY,  /* in our code at the deadline: it may continue, so everything that it uses must remain */
};
/* Waits for the end of one of our threads (CLOCK_MONOTONIC): until hung_ns while it is in a call, until busy_ns
 * otherwise. Detaches the thread if it did not end. `call`: set only for WATCH_HUNG. */
enum watch_end watch_join(pthread_t thread, int64_t hung_ns, int64_t busy_ns, const char **call);
/* Abandons and detaches one of our threads if its current call began before since_ns (CLOCK_MONOTONIC); false: it did
 * not. */
bool watch_abandon(pthread_t thread, int64_t since_ns, const char **call);

/* The first call of any abandoned thread so far whose name begins with the prefix; NULL: none. The library with this
 * prefix ("nvml") must not be called again in this process. Any thread. */
const char *watch_hung(const char *prefix);
/* The number of abandoned threads, and the call of each (the first 16). */
uint32_t watch_hung_count(void);
const char *watch_hung_call(uint32_t index);
/* The longest running call of any other thread that began before since_ns (CLOCK_MONOTONIC); NULL: none. */
const char *watch_longest(int64_t since_ns);

void watch_after_fork_in_child(void); /* the other threads and their calls exist only in the parent */

#endif
