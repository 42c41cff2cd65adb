/* SPDX-License-Identifier: Apache-2.0 */
/* How a program's first graph makes the counting of instructions end before it
 * goes on: the thread that is about to capture or to launch one asks, and waits
 * until whoever may switch CUPTI has done so (H200: a graph that is launched
 * while its context counts, beside a tracer, never returns). The wait is bounded
 * and made once: a program whose kernels wait for the graph must go on. The
 * thread is not past the launch gate meanwhile and holds nothing of ours. */
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
    HALT_OVERDUE, /* asked, and nobody waits any more */
    HALT_DONE
};

void counting_halt_explain(struct problem *problem); /* why nothing is counted any more; also logs it */

void counting_halt_init(struct counting_halt *halt);
void counting_halt_destroy(struct counting_halt *halt);
/* On the user's thread; takes_turns: whose turn makes it happen. */
void counting_halt_await(struct counting_halt *halt, struct turn_thread *takes_turns);
bool counting_halt_is_asked(const struct counting_halt *halt);   /* and not done */
bool counting_halt_is_awaited(const struct counting_halt *halt); /* by all who asked: none captures a graph yet */
void counting_halt_done(struct counting_halt *halt);

#endif
