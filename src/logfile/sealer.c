/* SPDX-License-Identifier: Apache-2.0 */
#include "logfile/sealer.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/own_thread.h"
#include "logfile/segment.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

enum { QUEUE_SIZE = 64, STOP_GRACE_MS = 100 };

struct sealer_job {
    enum channel channel;
    uint64_t index;
};

struct sealer {
    pthread_mutex_t mutex; /* guards everything but cancel */
    pthread_cond_t changed;
    pthread_t thread;
    int dir_fd;
    struct sealer_job queue[QUEUE_SIZE];
    unsigned head, count;
    bool is_stopping, has_thread_ended, is_orphaned;
    atomic_bool cancel;
    struct sealer_stats stats;
};

static void sealer_free(struct sealer *sealer)
{
    close(sealer->dir_fd);
    pthread_cond_destroy(&sealer->changed);
    pthread_mutex_destroy(&sealer->mutex);
    free(sealer);
}

/* Sealing may take the CPU's idle time, not the user's. */
static void lower_priority(void)
{
    struct sched_param param = {0};
    pthread_setschedparam(pthread_self(), SCHED_BATCH, &param);
    setpriority(PRIO_PROCESS, (id_t)gettid(), 19);
}

static void seal_one(struct sealer *sealer, struct sealer_job job)
{
    struct problem problem = {""};
    struct segment_footer footer = {0};
    uint64_t sealed_bytes = 0;
    int64_t started_ns = clock_thread_cpu_ns();
    gpufl_status status =
        segment_seal(sealer->dir_fd, job.channel, job.index, &sealer->cancel, &footer, &sealed_bytes, &problem);
    int64_t cpu_ns = clock_thread_cpu_ns() - started_ns;
    bool is_first_failure = false;
    pthread_mutex_lock(&sealer->mutex);
    sealer->stats.cpu_ns += cpu_ns;
    if (!status) {
        sealer->stats.segments++;
        sealer->stats.plain_bytes += footer.plain_bytes;
        sealer->stats.sealed_bytes += sealed_bytes;
    } else if (status != GPUFL_E_NOT_RUNNING) {
        is_first_failure = sealer->stats.failed++ == 0;
    }
    pthread_mutex_unlock(&sealer->mutex);
    if (is_first_failure)
        log_message(GPUFL_LOG_WARNING, "%s; the file stays uncompressed, nothing is lost", problem.text);
}

static void *sealer_main(void *user)
{
    struct sealer *sealer = user;
    lower_priority();
    pthread_mutex_lock(&sealer->mutex);
    for (;;) {
        while (!sealer->count && !sealer->is_stopping)
            pthread_cond_wait(&sealer->changed, &sealer->mutex);
        if (!sealer->count || atomic_load(&sealer->cancel))
            break;
        struct sealer_job job = sealer->queue[sealer->head];
        sealer->head = (sealer->head + 1) % QUEUE_SIZE;
        sealer->count--;
        pthread_mutex_unlock(&sealer->mutex);
        seal_one(sealer, job);
        pthread_mutex_lock(&sealer->mutex);
    }
    sealer->has_thread_ended = true;
    bool is_orphaned = sealer->is_orphaned;
    pthread_cond_broadcast(&sealer->changed);
    pthread_mutex_unlock(&sealer->mutex);
    if (is_orphaned)
        sealer_free(sealer);
    return NULL;
}

struct sealer *sealer_start(int dir_fd)
{
    struct sealer *sealer = calloc(1, sizeof *sealer);
    if (!sealer)
        return NULL;
    sealer->dir_fd = fcntl(dir_fd, F_DUPFD_CLOEXEC, 0);
    if (sealer->dir_fd < 0) {
        free(sealer);
        return NULL;
    }
    pthread_mutex_init(&sealer->mutex, NULL);
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&sealer->changed, &clock);
    pthread_condattr_destroy(&clock);
    if (own_thread_start(&sealer->thread, "gpufl-seal", OWN_THREAD_STACK_SMALL, sealer_main, sealer))
        return sealer;
    sealer_free(sealer);
    return NULL;
}

bool sealer_add(struct sealer *sealer, enum channel channel, uint64_t index)
{
    pthread_mutex_lock(&sealer->mutex);
    bool has_room = sealer->count < QUEUE_SIZE;
    if (has_room) {
        sealer->queue[(sealer->head + sealer->count) % QUEUE_SIZE] = (struct sealer_job){channel, index};
        sealer->count++;
        pthread_cond_signal(&sealer->changed);
    }
    pthread_mutex_unlock(&sealer->mutex);
    return has_room;
}

void sealer_get_stats(struct sealer *sealer, struct sealer_stats *stats)
{
    pthread_mutex_lock(&sealer->mutex);
    *stats = sealer->stats;
    pthread_mutex_unlock(&sealer->mutex);
}

/* With the mutex held: waits for the thread's end, at most wait_ms. */
static void wait_for_end(struct sealer *sealer, unsigned wait_ms)
{
    struct timespec until = clock_timespec(clock_mono_ns() + (int64_t)wait_ms * 1000000);
    while (!sealer->has_thread_ended)
        if (pthread_cond_timedwait(&sealer->changed, &sealer->mutex, &until))
            break;
}

void sealer_stop(struct sealer *sealer, unsigned deadline_ms, struct sealer_stats *stats)
{
    pthread_mutex_lock(&sealer->mutex);
    sealer->is_stopping = true;
    pthread_cond_broadcast(&sealer->changed);
    wait_for_end(sealer, deadline_ms);
    if (!sealer->has_thread_ended) {
        atomic_store(&sealer->cancel, true);
        wait_for_end(sealer, STOP_GRACE_MS);
    }
    if (stats)
        *stats = sealer->stats;
    pthread_t thread = sealer->thread;
    bool has_ended = sealer->has_thread_ended;
    sealer->is_orphaned = !has_ended;
    pthread_mutex_unlock(&sealer->mutex);
    if (has_ended) {
        pthread_join(thread, NULL);
        sealer_free(sealer);
    } else {
        /* Stuck in a system call on a dead disk: it frees itself when it comes back. */
        pthread_detach(thread);
    }
}
