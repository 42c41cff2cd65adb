/* SPDX-License-Identifier: Apache-2.0 */
/* The time that gpufl takes on the program's threads, by purpose: the cost of profiling. Sums for the process, in ticks
 * (base/clock.h); a session subtracts the values at its start. Any thread. */
#ifndef GPUFL_BASE_USER_TIME_H
#define GPUFL_BASE_USER_TIME_H

#include "base/clock.h"

enum user_time {
    USER_TIME_CALLBACKS, /* our part of CUPTI's callbacks, estimated from samples */
    USER_TIME_STACKS,    /* walking the call stack */
    USER_TIME_GATE,      /* held at the launch gate while an engine switches */
    USER_TIME_REPLAY,    /* launches that are replayed for counters, from entry to exit */
    USER_TIME_SWITCHES,  /* starting an engine on a context, and range counters at scope edges */
    USER_TIME_START,     /* loading and starting the GPU's libraries for the session */
    USER_TIME_COUNT
};
enum { USER_TIME_SAMPLED_ONE_IN = 64 }; /* timing every callback would cost a tenth of what it measures */

void user_time_add(enum user_time purpose, uint64_t ticks);
/* Time that the calling thread added for purposes other than callbacks. */
uint64_t user_time_slow_ticks(void);
uint64_t user_time_ticks(enum user_time purpose);
/* The name in the overhead record. */
const char *user_time_name(enum user_time purpose);

/* What CUPTI does while the program's threads call CUDA. PC sampling and counting slow down launches and waits inside
 * the driver, where we cannot measure time, so calls are grouped by this state (capture/observed_calls.h). */
enum call_state {
    CALLS_PLAIN,   /* it records kernels */
    CALLS_SAMPLED, /* it records kernels and takes samples */
    CALLS_COUNTED, /* it counts instructions, and records no kernels */
    CALL_STATE_COUNT
};
void call_state_set(enum call_state state); /* called by the code that switches CUPTI */
enum call_state call_state_now(void);
const char *call_state_name(enum call_state state); /* the name in the overhead record */

static inline void user_time_since(enum user_time purpose, uint64_t start_ticks)
{
    user_time_add(purpose, clock_ticks() - start_ticks);
}

#endif
