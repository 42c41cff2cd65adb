/* SPDX-License-Identifier: Apache-2.0 */
/* Ends instruction counting before the program's first CUDA graph: the thread that is about to capture or launch it
 * sends a request and waits until the thread that may switch CUPTI has stopped counting (H200: a graph launched
 * while its context is counted beside a tracer never returns). The wait is bounded and happens once, since a program
 * whose kernels wait for the graph must go on. Meanwhile the thread has not entered the launch gate and holds none
 * of our locks. */
#ifndef GPUFL_CAPTURE_COUNTING_HALT_H
#define GPUFL_CAPTURE_COUNTING_HALT_H

#include "base/status.h"
#include "capture/turn_thread.h"

#include <stdatomic.h>

struct counting_halt {
    _Atomic int state; /* enum halt_state */
    uint32_t wait_ms;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
};
enum halt_state {
    HALT_UNASKED,
    HALT_ASKED,
    HALT_OVERDUE, /* requested, but the waiting thread timed out */
    HALT_DONE
};

void counting_halt_explain(struct problem *problem); /* why instructions are no longer counted; also logs it */

void counting_halt_init(struct counting_halt *halt);
void counting_halt_destroy(struct counting_halt *halt);
/* Called on the user's thread; takes_turns: the thread whose next turn ends counting. */
void counting_halt_await(struct counting_halt *halt, struct turn_thread *takes_turns);
bool counting_halt_is_asked(const struct counting_halt *halt);   /* requested and not done */
bool counting_halt_is_awaited(const struct counting_halt *halt); /* every requesting thread still waits, so none of
                                                                  * them captures a graph yet */
void counting_halt_done(struct counting_halt *halt);

#endif
