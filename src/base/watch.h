/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that may never return: into a vendor's library, and to the disk. A
 * thread publishes the call it is in, so that whoever waits for the thread can
 * name the call and abandon the thread. An abandoned thread never runs our code
 * again: if its call returns after all, the thread sleeps for the rest of the
 * process. What the call itself uses (its arguments, the locks that the thread
 * holds) must therefore stay as it is; everything else may be freed. Only
 * gpufl's own threads are abandoned; a user's thread publishes its calls to
 * have them named. */
#ifndef GPUFL_BASE_WATCH_H
#define GPUFL_BASE_WATCH_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Any thread; lock-free, no allocation, no system call. `call` is a string literal: the name of the function. Calls may
 * nest (a library calls back); the innermost is named. */
void watch_enter(const char *call);
int watch_leave(int result); /* returns its argument; does not return on an abandoned thread */
#define WATCHED(call, invocation) (watch_enter(call), watch_leave(invocation))

enum watch_end {
    WATCH_ENDED, /* the thread was joined */
    WATCH_HUNG,  /* abandoned inside of a call: it never runs our code again */
    WATCH_BUSY,  /* at the deadline in our own code: everything that it uses must stay, and it may go on */
};
/* Waits for the end of a thread of ours (CLOCK_MONOTONIC): until hung_ns while it is in a call, until busy_ns while it is
 * elsewhere. Detaches it if it did not end. `call`, only where hung: the call. */
enum watch_end watch_join(pthread_t thread, int64_t hung_ns, int64_t busy_ns, const char **call);
/* Abandons and detaches a thread of ours that has been in a call since then (CLOCK_MONOTONIC); false: it is in none. */
bool watch_abandon(pthread_t thread, int64_t since_ns, const char **call);

/* The first call of an abandoned thread, ever, whose name begins with the prefix; NULL: none. What the prefix stands for
 * ("nvml") must not be called again in this process. Any thread. */
const char *watch_hung(const char *prefix);
/* How many threads were abandoned, and the call of each (the first 16). */
uint32_t watch_hung_count(void);
const char *watch_hung_call(uint32_t index);
/* The call, of any thread but this, that has been going on for longest, at least since then (CLOCK_MONOTONIC); NULL: none. */
const char *watch_longest(int64_t since_ns);

void watch_after_fork_in_child(void); /* the other threads and their calls are the parent's */

#endif
