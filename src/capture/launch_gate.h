/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the program's launches apart from CUPTI's start and stop: stopping CUPTI takes CUPTI's lock and then the
 * driver's, a launch takes the driver's and then CUPTI's, and both threads deadlock. Launches enter and leave the
 * gate at the cost of two atomic operations; a thread that starts or stops CUPTI closes the gate and waits until it
 * is empty. All waits are bounded, because a program whose launches wait for each other must go on. Any thread. */
#ifndef GPUFL_CAPTURE_LAUNCH_GATE_H
#define GPUFL_CAPTURE_LAUNCH_GATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct launch_gate {
    _Atomic uint32_t inside; /* launches between entry and exit */
    _Atomic bool is_closed;
    uint32_t enter_wait_ms; /* a launch opens the gate after this time */
    pthread_mutex_t closer; /* held while it is closed: one at a time */
    pthread_mutex_t lock;   /* of the condition */
    pthread_cond_t changed; /* opened, or a launch has left */
};

void launch_gate_init(struct launch_gate *gate);
void launch_gate_destroy(struct launch_gate *gate);

/* On entry to a launch: waits while the gate is closed. After a timeout the thread that closed it is considered
 * hung, which is logged. */
void launch_gate_enter(struct launch_gate *gate);
void launch_gate_leave(struct launch_gate *gate);
/* True: no launch is in progress until launch_gate_open. False: a launch did not end in time; the gate is open.
 * is_inside: the calling thread is itself in a launch, which is not counted (two such threads would wait for each
 * other). */
bool launch_gate_close(struct launch_gate *gate, bool is_inside, uint32_t wait_ms);
/* Lets launches through when the thread that closed the gate will never open it. */
void launch_gate_force_open(struct launch_gate *gate);
void launch_gate_open(struct launch_gate *gate, bool is_inside);

#endif
