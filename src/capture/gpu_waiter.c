/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/gpu_waiter.h"

#include "base/clock.h"
#include "base/own_thread.h"
#include "capture/own_waits.h"
#include "driver/cuda.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { forget_wait_ms = 2000 };

struct gpu_waiter {
    pthread_mutex_t mutex; /* guards everything below; never held in CUDA */
    pthread_cond_t changed;
    pthread_t thread;
    void *contexts[GPU_WAITER_CONTEXTS_MAX]; /* not yet waited for */
    const void *current;                     /* the context CUDA is waiting for; NULL: none */
    uint32_t count;
    bool is_busy, has_refused;
    bool is_ending, is_left; /* is_left: the thread is detached */
};

static void waiter_destroy(struct gpu_waiter *waiter)
{
    pthread_cond_destroy(&waiter->changed);
    pthread_mutex_destroy(&waiter->mutex);
    free(waiter);
}

/* Each wait is recorded separately: the next may take long, and this one is logged by then. */
static bool synchronize(void *context)
{
    struct cuda *cuda;
    own_wait_begin();
    bool is_done = cuda_load(&cuda, false, NULL) == GPUFL_OK && cuda_synchronize(cuda, context);
    own_wait_end();
    return is_done;
}

/* Between two waits the thread uses only its own memory and logs nothing: its caller may be gone. */
static void *run(void *argument)
{
    struct gpu_waiter *waiter = argument;
    pthread_mutex_lock(&waiter->mutex);
    while (!waiter->is_ending) {
        if (waiter->count) {
            void *context = waiter->contexts[--waiter->count];
            waiter->current = context;
            pthread_mutex_unlock(&waiter->mutex);
            bool is_done = synchronize(context);
            pthread_mutex_lock(&waiter->mutex);
            waiter->has_refused |= !is_done;
            waiter->current = NULL;
            pthread_cond_broadcast(&waiter->changed);
        } else if (waiter->is_busy) {
            waiter->is_busy = false;
            pthread_cond_broadcast(&waiter->changed);
        } else {
            pthread_cond_wait(&waiter->changed, &waiter->mutex);
        }
    }
    bool is_left = waiter->is_left;
    pthread_mutex_unlock(&waiter->mutex);
    if (is_left)
        waiter_destroy(waiter);
    return NULL;
}

struct gpu_waiter *gpu_waiter_make(void)
{
    struct gpu_waiter *waiter = calloc(1, sizeof *waiter);
    if (!waiter)
        return NULL;
    pthread_mutex_init(&waiter->mutex, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&waiter->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    if (own_thread_start(&waiter->thread, "gpufl-idle", OWN_THREAD_STACK_LARGE, run, waiter))
        return waiter;
    waiter_destroy(waiter);
    return NULL;
}

bool gpu_waiter_is_busy(struct gpu_waiter *waiter)
{
    pthread_mutex_lock(&waiter->mutex);
    bool is_busy = waiter->is_busy;
    pthread_mutex_unlock(&waiter->mutex);
    return is_busy;
}

void gpu_waiter_ask(struct gpu_waiter *waiter, void *const *contexts, uint32_t count)
{
    pthread_mutex_lock(&waiter->mutex);
    memcpy(waiter->contexts, contexts, count * sizeof *contexts);
    waiter->count = count;
    waiter->is_busy = true;
    waiter->has_refused = false;
    pthread_cond_broadcast(&waiter->changed);
    pthread_mutex_unlock(&waiter->mutex);
}

bool gpu_waiter_await(struct gpu_waiter *waiter, int64_t until_mono_ns, bool *has_refused)
{
    const struct timespec until = {until_mono_ns / 1000000000, until_mono_ns % 1000000000};
    bool is_in_time = true;
    pthread_mutex_lock(&waiter->mutex);
    while (waiter->is_busy && is_in_time)
        is_in_time = pthread_cond_timedwait(&waiter->changed, &waiter->mutex, &until) != ETIMEDOUT;
    bool is_done = !waiter->is_busy;
    if (!is_done)
        waiter->count = 0;
    *has_refused = is_done && waiter->has_refused;
    pthread_mutex_unlock(&waiter->mutex);
    return is_done;
}

void gpu_waiter_forget(struct gpu_waiter *waiter, const void *context)
{
    int64_t until_ns = clock_mono_ns() + forget_wait_ms * INT64_C(1000000);
    const struct timespec until = {until_ns / 1000000000, until_ns % 1000000000};
    bool is_in_time = true;
    pthread_mutex_lock(&waiter->mutex);
    for (uint32_t i = 0; i < waiter->count; i++)
        if (waiter->contexts[i] == context)
            waiter->contexts[i--] = waiter->contexts[--waiter->count];
    while (waiter->current == context && is_in_time)
        is_in_time = pthread_cond_timedwait(&waiter->changed, &waiter->mutex, &until) != ETIMEDOUT;
    pthread_mutex_unlock(&waiter->mutex);
}

/* The thread returns from CUDA to this code, even after the program has unloaded the library. */
static void code_keep(void)
{
    Dl_info here;
    if (dladdr((void *)(uintptr_t)run, &here) && here.dli_fname)
        (void)dlopen(here.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

void gpu_waiter_free(struct gpu_waiter *waiter)
{
    if (!waiter)
        return;
    pthread_mutex_lock(&waiter->mutex);
    pthread_t thread = waiter->thread;
    bool is_left = waiter->is_busy;
    waiter->is_ending = true;
    waiter->is_left = is_left;
    if (is_left) {
        code_keep();
        pthread_detach(thread);
    }
    pthread_cond_broadcast(&waiter->changed);
    pthread_mutex_unlock(&waiter->mutex);
    if (is_left)
        return;
    pthread_join(thread, NULL);
    waiter_destroy(waiter);
}
