/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/turn_thread.h"

#include "base/clock.h"
#include "base/own_thread.h"
#include "base/stages.h"
#include "base/watch.h"

#include <errno.h>
#include <time.h>

void turn_thread_init(struct turn_thread *thread)
{
    pthread_mutex_init(&thread->mutex, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&thread->wake, &attributes);
    pthread_condattr_destroy(&attributes);
}

static void *run(void *argument)
{
    struct turn_thread *thread = argument;
    pthread_mutex_lock(&thread->mutex);
    while (!thread->is_ending) {
        int64_t until_ns = clock_mono_ns() + thread->step_ns;
        const struct timespec until = {until_ns / 1000000000, until_ns % 1000000000};
        if (!thread->is_hurried && pthread_cond_timedwait(&thread->wake, &thread->mutex, &until) != ETIMEDOUT)
            continue;
        thread->is_hurried = false;
        pthread_mutex_unlock(&thread->mutex);
        thread->turn(thread->user);
        pthread_mutex_lock(&thread->mutex);
    }
    pthread_mutex_unlock(&thread->mutex);
    return NULL;
}

void turn_thread_hurry(struct turn_thread *thread)
{
    pthread_mutex_lock(&thread->mutex);
    thread->is_hurried = true;
    pthread_cond_signal(&thread->wake);
    pthread_mutex_unlock(&thread->mutex);
}

bool turn_thread_start(struct turn_thread *thread)
{
    thread->has_thread = own_thread_start(&thread->thread, "gpufl-windows", OWN_THREAD_STACK_LARGE, run, thread);
    return thread->has_thread;
}

bool turn_thread_end(struct turn_thread *thread, uint32_t wait_ms)
{
    const char *call;
    if (!thread->has_thread)
        return true;
    pthread_mutex_lock(&thread->mutex);
    thread->is_ending = true;
    pthread_cond_signal(&thread->wake);
    pthread_mutex_unlock(&thread->mutex);
    thread->has_thread = false;
    int64_t until_ns = stages_until_ns(wait_ms * INT64_C(1000000));
    return watch_join(thread->thread, until_ns, until_ns, &call) == WATCH_ENDED;
}

void turn_thread_destroy(struct turn_thread *thread)
{
    pthread_cond_destroy(&thread->wake);
    pthread_mutex_destroy(&thread->mutex);
}
