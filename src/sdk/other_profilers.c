/* SPDX-License-Identifier: Apache-2.0 */
#include "sdk/other_profilers.h"

#include "capture/collector.h"
#include "capture/yielding.h"
#include "sdk/preload.h"
#include "sdk/session.h"
#include "sdk/session_end.h"

#include <gpufl/gpufl.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { yield_wait_ms = 3000, resume_wait_ms = 3000 };

static struct {
    pthread_mutex_t mutex;
    int users;                      /* profilers that use CUPTI, or are about to */
    char name[PROFILER_NAME_BYTES]; /* of the first of them */
    char at_start[PROFILER_NAME_BYTES];
    bool is_exclusive;
    preload_poll_fn *poll; /* NULL: nothing is preloaded */
} others = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void yield(struct collector *collector, void *user)
{
    const char **name = user;
    if (collector_yield(collector, *name, yield_wait_ms))
        *name = NULL;
}

/* Another user may have appeared since. */
static void unyield(struct collector *collector, void *user)
{
    (void)user;
    pthread_mutex_lock(&others.mutex);
    bool is_free = !others.users;
    pthread_mutex_unlock(&others.mutex);
    if (is_free)
        collector_unyield(collector, resume_wait_ms);
}

gpufl_status gpufl_yield(const char *profiler)
{
    if (session_is_disabled())
        return GPUFL_E_DISABLED;
    const char *name = profiler && *profiler ? profiler : "another profiler";
    pthread_mutex_lock(&others.mutex);
    bool is_exclusive = others.is_exclusive;
    if (!is_exclusive && !others.users++)
        snprintf(others.name, sizeof others.name, "%s", name);
    pthread_mutex_unlock(&others.mutex);
    struct problem problem = {""};
    if (is_exclusive)
        return session_fail(problem_set(&problem, GPUFL_E_BUSY, "the session is exclusive and does not release CUPTI"),
                            &problem);
    if (session_with_collector(yield, &name) && name)
        return session_fail(problem_set(&problem, GPUFL_E_BUSY, "CUPTI was still in use after %d ms", yield_wait_ms),
                            &problem);
    return GPUFL_OK;
}

void gpufl_resume(void)
{
    pthread_mutex_lock(&others.mutex);
    bool is_last = others.users > 0 && !--others.users;
    pthread_mutex_unlock(&others.mutex);
    if (is_last)
        (void)session_with_collector(unyield, NULL);
}

static void on_begin(const char *profiler)
{
    (void)gpufl_yield(profiler);
}

static void on_exit_without_handlers(void)
{
    session_end_keeps_memory();
    session_end_with_process();
}

void other_profilers_attend(bool is_exclusive)
{
    static const struct preload_listener listener = {on_begin, gpufl_resume, on_exit_without_handlers};
    pthread_mutex_lock(&others.mutex);
    others.is_exclusive = is_exclusive;
    pthread_mutex_unlock(&others.mutex);
    preload_listen_fn *listen;
    void *symbol = is_exclusive ? NULL : dlsym(RTLD_DEFAULT, PRELOAD_LISTEN);
    memcpy(&listen, &symbol, sizeof symbol);
    symbol = listen ? dlsym(RTLD_DEFAULT, PRELOAD_POLL) : NULL;
    memcpy(&others.poll, &symbol, sizeof symbol);
    if (listen)
        listen(&listener);
}

bool other_profilers_are_over(void)
{
    if (!others.poll || !others.poll())
        return false;
    pthread_mutex_lock(&others.mutex);
    bool is_last = others.users > 0 && !--others.users;
    pthread_mutex_unlock(&others.mutex);
    return is_last;
}

const char *other_profilers_current(void)
{
    pthread_mutex_lock(&others.mutex);
    bool is_any = others.users > 0;
    if (is_any)
        snprintf(others.at_start, sizeof others.at_start, "%s", others.name);
    pthread_mutex_unlock(&others.mutex);
    return is_any ? others.at_start : NULL;
}

void other_profilers_abandon(void)
{
    pthread_mutex_init(&others.mutex, NULL);
    others.users = 0;
}
