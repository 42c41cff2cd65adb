/* SPDX-License-Identifier: Apache-2.0 */
#include "logfile/sealer.h"

#include "base/clock.h"
#include "base/current_thread.h"
#include "base/log.h"
#include "base/own_thread.h"
#include "logfile/segment.h"
#include "logfile/segment_trim.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

enum { QUEUE_SIZE = 64, STOP_GRACE_MS = 100 };

struct sealer_job {
    enum channel channel;
    uint64_t index;
};

/* A rotated file; the list is ordered oldest first. */
struct rotated_file {
    enum channel channel;
    bool is_settled; /* it is sealed, or will not be sealed */
    uint64_t index, bytes;
};

struct sealer {
    pthread_mutex_t mutex; /* guards everything except cancel and the thread's own data */
    pthread_cond_t changed;
    pthread_t thread;
    int dir_fd;
    struct sealer_job queue[QUEUE_SIZE];
    unsigned head, count;
    bool is_busy, is_stopping, has_thread_ended, is_orphaned;
    atomic_bool cancel;
    struct sealer_stats stats;
    char session_id[40];
    uint64_t limit_bytes;
    struct rotated_file *files; /* [first_file .. file_count): those that can be trimmed */
    size_t first_file, file_count, file_capacity;
    uint64_t settled_bytes; /* of settled files and heads; files waiting to be sealed will become much smaller */
    /* Used by the thread only: the trimmed segment of each channel. */
    struct rotated_file heads[CHANNEL_COUNT];
};

static void sealer_free(struct sealer *sealer)
{
    close(sealer->dir_fd);
    pthread_cond_destroy(&sealer->changed);
    pthread_mutex_destroy(&sealer->mutex);
    free(sealer->files);
    free(sealer);
}

/* Sealing may use idle CPU time, but must not compete with the user's program. */
static void lower_priority(void)
{
    struct sched_param param = {0};
    pthread_setschedparam(pthread_self(), SCHED_BATCH, &param);
    setpriority(PRIO_PROCESS, (id_t)current_thread_id(), 19);
}

/* With the mutex: stores the file's new size. */
static void file_settle(struct sealer *sealer, struct sealer_job job, bool is_sealed, uint64_t bytes)
{
    for (size_t i = sealer->first_file; i < sealer->file_count; i++) {
        struct rotated_file *file = &sealer->files[i];
        if (file->channel != job.channel || file->index != job.index)
            continue;
        file->is_settled = true;
        if (is_sealed) {
            sealer->stats.rotated_bytes -= file->bytes - bytes;
            file->bytes = bytes;
        }
        sealer->settled_bytes += file->bytes;
    }
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
    file_settle(sealer, job, !status, sealed_bytes);
    if (!status) {
        sealer->stats.segments++;
        sealer->stats.plain_bytes += footer.plain_bytes;
        sealer->stats.sealed_bytes += sealed_bytes;
    } else if (status != GPUFL_E_NOT_RUNNING) {
        is_first_failure = sealer->stats.failed++ == 0;
    }
    pthread_mutex_unlock(&sealer->mutex);
    if (is_first_failure)
        log_message(GPUFL_LOG_WARNING, "%s; the file stays uncompressed, and no data is lost", problem.text);
}

/* With the mutex: takes the oldest file that can be trimmed; false: no trimming is needed or possible. */
static bool oldest_take(struct sealer *sealer, struct rotated_file *oldest)
{
    if (!sealer->limit_bytes || sealer->settled_bytes <= sealer->limit_bytes ||
        sealer->first_file == sealer->file_count || !sealer->files[sealer->first_file].is_settled)
        return false;
    *oldest = sealer->files[sealer->first_file++];
    return true;
}

static void trim_one(struct sealer *sealer, const struct rotated_file *file)
{
    struct rotated_file *head = &sealer->heads[file->channel];
    struct problem problem = {""};
    uint64_t bytes = 0;
    int64_t started_ns = clock_thread_cpu_ns();
    gpufl_status status =
        segment_trim(sealer->dir_fd, sealer->session_id, file->channel, head->index, file->index, &bytes, &problem);
    pthread_mutex_lock(&sealer->mutex);
    sealer->stats.cpu_ns += clock_thread_cpu_ns() - started_ns;
    if (!status) {
        sealer->stats.rotated_bytes += bytes - file->bytes - head->bytes;
        sealer->settled_bytes += bytes - file->bytes - head->bytes;
        sealer->stats.trimmed++;
        *head = (struct rotated_file){.channel = file->channel, .index = file->index, .bytes = bytes};
    }
    bool is_first_failure = status && sealer->stats.failed++ == 0;
    pthread_mutex_unlock(&sealer->mutex);
    if (is_first_failure)
        log_message(GPUFL_LOG_WARNING, "%s; the segment is not trimmed", problem.text);
}

static void trim_to_limit(struct sealer *sealer)
{
    for (;;) {
        struct rotated_file file;
        pthread_mutex_lock(&sealer->mutex);
        bool is_due = oldest_take(sealer, &file) && !atomic_load(&sealer->cancel);
        pthread_mutex_unlock(&sealer->mutex);
        if (!is_due)
            return;
        trim_one(sealer, &file);
    }
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
        sealer->is_busy = true;
        pthread_mutex_unlock(&sealer->mutex);
        seal_one(sealer, job);
        trim_to_limit(sealer);
        pthread_mutex_lock(&sealer->mutex);
        sealer->is_busy = false;
        pthread_cond_broadcast(&sealer->changed);
    }
    sealer->has_thread_ended = true;
    bool is_orphaned = sealer->is_orphaned;
    pthread_cond_broadcast(&sealer->changed);
    pthread_mutex_unlock(&sealer->mutex);
    if (is_orphaned)
        sealer_free(sealer);
    return NULL;
}

struct sealer *sealer_start(const struct sealer_options *options)
{
    struct sealer *sealer = calloc(1, sizeof *sealer);
    if (!sealer)
        return NULL;
    sealer->dir_fd = fcntl(options->dir_fd, F_DUPFD_CLOEXEC, 0);
    if (sealer->dir_fd < 0) {
        free(sealer);
        return NULL;
    }
    sealer->limit_bytes = options->limit_bytes;
    snprintf(sealer->session_id, sizeof sealer->session_id, "%s", options->session_id);
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

/* With the mutex. Without memory the file is never trimmed. */
static void file_add(struct sealer *sealer, const struct rotated_file *file)
{
    if (sealer->first_file && sealer->file_count == sealer->file_capacity) {
        memmove(sealer->files, sealer->files + sealer->first_file,
                (sealer->file_count - sealer->first_file) * sizeof *sealer->files);
        sealer->file_count -= sealer->first_file;
        sealer->first_file = 0;
    }
    if (sealer->file_count == sealer->file_capacity) {
        size_t capacity = sealer->file_capacity ? sealer->file_capacity * 2 : 64;
        struct rotated_file *grown = realloc(sealer->files, capacity * sizeof *grown);
        if (!grown)
            return;
        sealer->files = grown;
        sealer->file_capacity = capacity;
    }
    sealer->files[sealer->file_count++] = *file;
    sealer->stats.rotated_bytes += file->bytes;
    sealer->settled_bytes += file->is_settled ? file->bytes : 0;
}

bool sealer_add(struct sealer *sealer, enum channel channel, uint64_t index, uint64_t bytes)
{
    pthread_mutex_lock(&sealer->mutex);
    bool has_room = sealer->count < QUEUE_SIZE;
    if (sealer->limit_bytes)
        file_add(sealer, &(struct rotated_file){channel, !has_room, index, bytes});
    if (has_room) {
        sealer->queue[(sealer->head + sealer->count) % QUEUE_SIZE] = (struct sealer_job){channel, index};
        sealer->count++;
        pthread_cond_broadcast(&sealer->changed);
    }
    pthread_mutex_unlock(&sealer->mutex);
    return has_room;
}

void sealer_wait(struct sealer *sealer, uint64_t bytes, unsigned wait_ms)
{
    struct timespec until = clock_timespec(clock_mono_ns() + (int64_t)wait_ms * 1000000);
    pthread_mutex_lock(&sealer->mutex);
    while ((sealer->count || sealer->is_busy) && !sealer->is_stopping && sealer->stats.rotated_bytes > bytes)
        if (pthread_cond_timedwait(&sealer->changed, &sealer->mutex, &until))
            break;
    pthread_mutex_unlock(&sealer->mutex);
}

void sealer_get_stats(struct sealer *sealer, struct sealer_stats *stats)
{
    pthread_mutex_lock(&sealer->mutex);
    *stats = sealer->stats;
    pthread_mutex_unlock(&sealer->mutex);
}

/* With the mutex held: waits for the thread to end, at most wait_ms. */
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
        /* The thread is stuck in a system call on a dead disk; it frees itself when the call returns. */
        pthread_detach(thread);
    }
}
