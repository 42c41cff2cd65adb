/* SPDX-License-Identifier: Apache-2.0 */
/* The worker threads that run handlers, and their bounded queue. */
#ifndef GPUFL_HTTP_HTTP_WORKERS_H
#define GPUFL_HTTP_HTTP_WORKERS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct http_exchange;

struct http_workers {
    pthread_mutex_t lock;
    pthread_cond_t work;
    struct http_exchange *first, *last; /* waiting; guarded */
    _Atomic uint64_t queued_count, refused_count;
    uint64_t queue_max;
    bool is_stopping;
    pthread_t *threads; /* owned */
    unsigned thread_count;
};

bool http_workers_start(struct http_workers *workers, unsigned thread_count, uint64_t queue_max);
/* False: the queue is full, or the threads are stopping. */
bool http_workers_push(struct http_workers *workers, struct http_exchange *exchange);
/* Finishes what is queued, then ends the threads; from then on the queue counts as full. */
void http_workers_stop(struct http_workers *workers);
void http_workers_destroy(struct http_workers *workers);

#endif
