/* SPDX-License-Identifier: Apache-2.0 */
/* The thread of deep_windows: takes a turn at intervals until it is ended. */
#ifndef GPUFL_CAPTURE_TURN_THREAD_H
#define GPUFL_CAPTURE_TURN_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct turn_thread {
    void (*turn)(void *user); /* not called while the thread is ending */
    void *user;
    int64_t step_ns;
    pthread_t thread;
    bool has_thread, is_ending, is_hurried;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
};

/* turn, user and step_ns are set. */
void turn_thread_init(struct turn_thread *thread);
bool turn_thread_start(struct turn_thread *thread); /* false: no thread could be created */
/* False: a turn did not return within the wait. The thread is abandoned, and the memory it uses must stay valid. */
bool turn_thread_end(struct turn_thread *thread, uint32_t wait_ms);
void turn_thread_hurry(struct turn_thread *thread);   /* the next turn is due now; any thread */
void turn_thread_destroy(struct turn_thread *thread); /* after the thread has ended */

#endif
