/* SPDX-License-Identifier: Apache-2.0 */
#include "http/http_workers.h"

#include "http/http_core.h"

#include <stdlib.h>

static void *worker_run(void *argument)
{
    struct http_workers *workers = argument;
    pthread_mutex_lock(&workers->lock);
    for (;;) {
        while (!workers->first && !workers->is_stopping)
            pthread_cond_wait(&workers->work, &workers->lock);
        struct http_exchange *exchange = workers->first;
        if (!exchange)
            break;
        workers->first = exchange->queue_next;
        if (!workers->first)
            workers->last = NULL;
        atomic_fetch_sub_explicit(&workers->queued_count, 1, memory_order_relaxed);
        pthread_mutex_unlock(&workers->lock);
        http_exchange_work(exchange);
        pthread_mutex_lock(&workers->lock);
    }
    pthread_mutex_unlock(&workers->lock);
    return NULL;
}

bool http_workers_start(struct http_workers *workers, unsigned thread_count, uint64_t queue_max)
{
    workers->queue_max = queue_max;
    workers->threads = calloc(thread_count, sizeof *workers->threads);
    if (!workers->threads)
        return false;
    pthread_mutex_init(&workers->lock, NULL);
    pthread_cond_init(&workers->work, NULL);
    while (workers->thread_count < thread_count &&
           !pthread_create(&workers->threads[workers->thread_count], NULL, worker_run, workers))
        workers->thread_count++;
    if (workers->thread_count == thread_count)
        return true;
    http_workers_destroy(workers);
    return false;
}

bool http_workers_push(struct http_workers *workers, struct http_exchange *exchange)
{
    pthread_mutex_lock(&workers->lock);
    bool has_room = !workers->is_stopping &&
                    atomic_load_explicit(&workers->queued_count, memory_order_relaxed) < workers->queue_max;
    if (has_room) {
        exchange->queue_next = NULL;
        if (workers->last)
            workers->last->queue_next = exchange;
        else
            workers->first = exchange;
        workers->last = exchange;
        atomic_fetch_add_explicit(&workers->queued_count, 1, memory_order_relaxed);
        pthread_cond_signal(&workers->work);
    } else {
        atomic_fetch_add_explicit(&workers->refused_count, 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&workers->lock);
    return has_room;
}

void http_workers_stop(struct http_workers *workers)
{
    if (!workers->threads)
        return;
    pthread_mutex_lock(&workers->lock);
    workers->is_stopping = true;
    pthread_cond_broadcast(&workers->work);
    pthread_mutex_unlock(&workers->lock);
    while (workers->thread_count)
        pthread_join(workers->threads[--workers->thread_count], NULL);
}

void http_workers_destroy(struct http_workers *workers)
{
    if (!workers->threads)
        return;
    http_workers_stop(workers);
    pthread_cond_destroy(&workers->work);
    pthread_mutex_destroy(&workers->lock);
    free(workers->threads);
    workers->threads = NULL;
}
