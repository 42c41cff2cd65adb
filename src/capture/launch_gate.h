/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the program's launches and CUPTI's start and stop apart: CUPTI takes its
 * lock and then the driver's when it is stopped, a launch the driver's and then
 * CUPTI's, and both threads hang. Launches pass the gate on entry and leave it on
 * exit, at the price of two atomic operations; whoever wants to start or stop
 * CUPTI closes it and waits until it is empty. All waits are bounded: a program
 * whose launches wait for each other must go on. Any thread. */
#ifndef GPUFL_CAPTURE_LAUNCH_GATE_H
#define GPUFL_CAPTURE_LAUNCH_GATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct launch_gate {
    _Atomic uint32_t inside; /* launches between entry and exit */
    _Atomic bool is_closed;
    uint32_t enter_wait_ms; /* after which a launch opens it */
    pthread_mutex_t closer; /* held while it is closed: one at a time */
    pthread_mutex_t lock;   /* of the condition */
    pthread_cond_t changed; /* opened, or a launch has left */
};

void launch_gate_init(struct launch_gate *gate);
void launch_gate_destroy(struct launch_gate *gate);

/* On entry to a launch: waits while the gate is closed, but not for ever: then whoever closed it hangs, which is logged. */
void launch_gate_enter(struct launch_gate *gate);
void launch_gate_leave(struct launch_gate *gate);
/* True: no launch is under way until launch_gate_open. False: one did not end in time; the gate is open. is_inside:
 * the calling thread is in a launch itself, which does not count (two such threads would wait for each other). */
bool launch_gate_close(struct launch_gate *gate, bool is_inside, uint32_t wait_ms);
/* Lets launches through although whoever closed it never opens it. */
void launch_gate_give_up(struct launch_gate *gate);
void launch_gate_open(struct launch_gate *gate, bool is_inside);

#endif
