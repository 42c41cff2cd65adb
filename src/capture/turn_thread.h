/* SPDX-License-Identifier: Apache-2.0 */
/* The thread of deep_windows: takes a turn every so often until it is ended. */
#ifndef GPUFL_CAPTURE_TURN_THREAD_H
#define GPUFL_CAPTURE_TURN_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct turn_thread {
    void (*turn)(void *user); /* not while it is ending */
    void *user;
    int64_t step_ns;
    pthread_t thread;
    bool has_thread, is_ending, is_hurried;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
};

/* turn, user and step_ns are set. */
void turn_thread_init(struct turn_thread *thread);
bool turn_thread_start(struct turn_thread *thread); /* false: no thread is to be had */
/* False: a turn does not come back within the wait; the thread is given up, and what it uses must stay. */
bool turn_thread_end(struct turn_thread *thread, uint32_t wait_ms);
void turn_thread_hurry(struct turn_thread *thread);   /* the next turn is due now; any thread */
void turn_thread_destroy(struct turn_thread *thread); /* of one that came back */

#endif
