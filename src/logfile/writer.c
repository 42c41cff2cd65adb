/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"
#include "base/own_thread.h"
#include "logfile/line.h"
#include "logfile/session_dir.h"
#include "logfile/writer_state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ROTATE_BYTES_DEFAULT ((uint64_t)16 << 20)
#define QUEUE_BYTES_DEFAULT ((size_t)32 << 20)
#define MAX_BYTES_LEAST ((uint64_t)4 << 20)
#define KEPT_BYTES ((size_t)32 << 20)
#define CODE_BYTES ((size_t)32 << 20)

static void writer_free(struct log_writer *writer)
{
    for (int i = 0; i < CHANNEL_COUNT; i++) {
        channel_file_close(&writer->outputs[i].file);
        line_queue_free(&writer->outputs[i].kept);
    }
    line_queue_free(&writer->queue);
    pthread_cond_destroy(&writer->changed);
    pthread_mutex_destroy(&writer->mutex);
    pthread_mutex_destroy(&writer->write_mutex);
    session_leave(&writer->session);
    free(writer);
}

/* With the mutex: a line's number is used even if the line is not written, so that the file itself shows the gap. */
static gpufl_status put_in_queue(struct log_writer *writer, struct queued_line *line, enum channel channel,
                                 enum record_type type, uint64_t rows, bool is_valid)
{
    uint64_t seq = ++writer->seqs[channel];
    writer->open_channels |= 1u << channel;
    bool has_room = line && line_room_charge(&writer->room, line);
    if (!has_room) {
        /* No memory, or the line is too long for readers: not a disk problem. */
        writer_count_loss(writer, line ? LOG_LOSS_QUEUE : LOG_LOSS_DISK, type, rows);
        writer->is_overflowing |= is_valid && writer->is_background;
        return GPUFL_E_IO;
    }
    line->seq = seq;
    writer->stats.rows[type] += rows;
    line_queue_push(&writer->queue, line);
    pthread_cond_broadcast(&writer->changed);
    return GPUFL_OK;
}

static void notice_send(struct log_writer *writer, const struct notice *notice)
{
    pthread_mutex_lock(&writer->mutex);
    /* after the end of the session the user's callback must not be called */
    bool is_wanted = notice->is_set && !writer->is_orphaned;
    pthread_mutex_unlock(&writer->mutex);
    if (is_wanted)
        log_message(notice->level, "%s", notice->text);
}

static gpufl_status put(struct log_writer *writer, enum channel channel, enum record_type type,
                        const struct bytes *object, uint64_t rows)
{
    bool is_valid = !object->failed && object->size && object->size <= LINE_SIZE_MAX - LINE_TRAILER_MAX;
    struct queued_line *line = is_valid ? queued_line_make(channel, type, object->data, object->size, rows) : NULL;
    struct notice notice = {.is_set = false};
    if (!writer->is_background)
        pthread_mutex_lock(&writer->write_mutex);
    pthread_mutex_lock(&writer->mutex);
    gpufl_status status = put_in_queue(writer, line, channel, type, rows, is_valid);
    struct queued_line *own = status || writer->is_background ? NULL : line_queue_take(&writer->queue);
    pthread_mutex_unlock(&writer->mutex);
    if (status)
        free(line);
    if (own)
        status = writer_write(writer, own, &notice);
    if (!writer->is_background)
        pthread_mutex_unlock(&writer->write_mutex);
    notice_send(writer, &notice);
    return status;
}

gpufl_status log_writer_line(struct log_writer *writer, enum channel channel, enum record_type type,
                             const struct bytes *line, uint64_t rows)
{
    if ((unsigned)channel >= CHANNEL_COUNT || (unsigned)type >= RECORD_TYPE_COUNT)
        return GPUFL_E_INVALID;
    int saved_errno = errno;
    gpufl_status status = put(writer, channel, type, line, rows);
    errno = saved_errno;
    return status;
}

gpufl_status log_writer_line_all(struct log_writer *writer, unsigned always, enum record_type type,
                                 const struct bytes *line)
{
    if ((unsigned)type >= RECORD_TYPE_COUNT)
        return GPUFL_E_INVALID;
    int saved_errno = errno;
    pthread_mutex_lock(&writer->mutex);
    unsigned channels = writer->open_channels | always;
    pthread_mutex_unlock(&writer->mutex);
    gpufl_status status = GPUFL_OK;
    uint64_t rows = 1; /* one record, regardless of the number of channels */
    for (int i = 0; i < CHANNEL_COUNT; i++) {
        if (!(channels >> i & 1u))
            continue;
        if (put(writer, (enum channel)i, type, line, rows))
            status = GPUFL_E_IO;
        rows = 0;
    }
    errno = saved_errno;
    return status;
}

/* With the mutex: returns the next line; NULL: none came before the next retry is due, or the writer is closing. */
static struct queued_line *wait_for_line(struct log_writer *writer)
{
    struct timespec retry = clock_timespec(clock_mono_ns() + RETRY_NS);
    while (!writer->queue.first && !writer->is_stopping) {
        if (!writer->failing_channels)
            pthread_cond_wait(&writer->changed, &writer->mutex);
        else if (pthread_cond_timedwait(&writer->changed, &writer->mutex, &retry))
            break;
    }
    return line_queue_take(&writer->queue);
}

static void *writer_main(void *user)
{
    struct log_writer *writer = user;
    bool is_over = false;
    while (!is_over) {
        struct notice notice = {.is_set = false};
        pthread_mutex_lock(&writer->mutex);
        writer->is_writing = false;
        writer->is_overflowing &= writer->queue.first != NULL;
        writer->stats.write_cpu_ns = clock_thread_cpu_ns();
        pthread_cond_broadcast(&writer->changed);
        struct queued_line *line = wait_for_line(writer);
        writer->is_writing = true;
        is_over = !line && writer->is_stopping;
        pthread_mutex_unlock(&writer->mutex);
        if (line)
            (void)writer_write(writer, line, &notice);
        else if (!is_over)
            writer_write_kept(writer, &notice);
        notice_send(writer, &notice);
    }
    writer_write_last(writer);
    pthread_mutex_lock(&writer->mutex);
    writer->has_ended = true;
    bool is_orphaned = writer->is_orphaned;
    pthread_cond_broadcast(&writer->changed);
    pthread_mutex_unlock(&writer->mutex);
    if (is_orphaned) {
        if (writer->sealer)
            sealer_stop(writer->sealer, 0, NULL);
        writer_free(writer);
    }
    return NULL;
}

static uint64_t max_bytes_of(const struct log_writer_options *options)
{
    if (!options->seal || !options->max_bytes)
        return 0;
    return options->max_bytes < MAX_BYTES_LEAST ? MAX_BYTES_LEAST : options->max_bytes;
}

/* A session with a limit uses many small segments, so that the oldest can be trimmed. */
static uint64_t rotate_bytes_of(const struct log_writer_options *options)
{
    uint64_t bytes = options->rotate_bytes ? options->rotate_bytes : ROTATE_BYTES_DEFAULT;
    uint64_t max_bytes = max_bytes_of(options);
    return max_bytes && bytes > max_bytes / 16 ? max_bytes / 16 : bytes;
}

gpufl_status log_writer_open(struct log_writer **out, const struct log_writer_options *options, struct problem *problem)
{
    if (!options->base_dir || !options->session_id || !session_id_is_valid(options->session_id))
        return problem_set(problem, GPUFL_E_INVALID, "a session needs a log directory and a UUID as its id");
    struct log_writer *writer = calloc(1, sizeof *writer);
    if (!writer)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "no memory for the log writer");
    writer->seal = options->seal;
    writer->max_bytes = max_bytes_of(options);
    snprintf(writer->session_id, sizeof writer->session_id, "%s", options->session_id);
    writer->room =
        (struct line_room){.limit = {[LINE_ROWS] = options->queue_bytes ? options->queue_bytes : QUEUE_BYTES_DEFAULT,
                                     [LINE_KEPT] = KEPT_BYTES,
                                     [LINE_CODE] = CODE_BYTES}};
    pthread_mutex_init(&writer->mutex, NULL);
    pthread_mutex_init(&writer->write_mutex, NULL);
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&writer->changed, &clock);
    pthread_condattr_destroy(&clock);
    for (int i = 0; i < CHANNEL_COUNT; i++)
        channel_file_init(&writer->outputs[i].file, (enum channel)i, &writer->file_options);
    gpufl_status status =
        session_make(&writer->session, options->base_dir, options->session_id, options->app_name, problem);
    if (status) {
        writer_free(writer);
        return status;
    }
    disk_space_open(&writer->space, writer->session.dir_fd, options->min_free_bytes);
    writer->file_options = (struct channel_file_options){
        .dir_fd = writer->session.dir_fd,
        .rotate_bytes = rotate_bytes_of(options),
        .rotate_age_ms = options->rotate_age_ms,
        .fsync_always = options->fsync_always,
        .on_rotated = writer_on_rotated,
        .user = writer,
    };
    writer->is_background = options->in_background && own_thread_start(&writer->thread, "gpufl-writer",
                                                                       OWN_THREAD_STACK_SMALL, writer_main, writer);
    *out = writer;
    return GPUFL_OK;
}

void log_writer_stats(struct log_writer *writer, struct log_writer_stats *stats)
{
    struct sealer_stats sealed = {0};
    pthread_mutex_lock(&writer->mutex);
    *stats = writer->stats;
    stats->is_in_trouble = writer->failing_channels || writer->is_overflowing || writer->is_low;
    stats->queue_bytes = writer->room.used[LINE_ROWS] + writer->room.used[LINE_KEPT] + writer->room.used[LINE_CODE];
    if (writer->sealer)
        sealer_get_stats(writer->sealer, &sealed);
    pthread_mutex_unlock(&writer->mutex);
    stats->sealed_segments = sealed.segments;
    stats->sealed_plain_bytes = sealed.plain_bytes;
    stats->sealed_bytes = sealed.sealed_bytes;
    stats->seal_cpu_ns = sealed.cpu_ns;
    stats->trimmed_segments = sealed.trimmed;
}

uint64_t log_writer_lost(const struct log_writer_stats *stats, enum record_type type)
{
    uint64_t rows = 0;
    for (int why = 0; why < LOG_LOSS_COUNT; why++)
        rows += stats->lost_rows[why][type];
    return rows;
}

void log_writer_loss_reported(struct log_writer *writer)
{
    pthread_mutex_lock(&writer->mutex);
    memset(writer->stats.lost_since_ns, 0, sizeof writer->stats.lost_since_ns);
    memset(writer->stats.lost_until_ns, 0, sizeof writer->stats.lost_until_ns);
    pthread_mutex_unlock(&writer->mutex);
}

const char *log_writer_dir(const struct log_writer *writer)
{
    return writer->session.dir;
}

const char *log_writer_session_name(const struct log_writer *writer)
{
    return writer->session.name;
}

bool log_writer_settle(struct log_writer *writer, unsigned deadline_ms)
{
    struct timespec until = clock_timespec(clock_mono_ns() + (int64_t)deadline_ms * 1000000);
    pthread_mutex_lock(&writer->mutex);
    while (writer->is_background && (writer->queue.first || writer->is_writing))
        if (pthread_cond_timedwait(&writer->changed, &writer->mutex, &until))
            break;
    bool is_settled = !writer->is_background || (!writer->queue.first && !writer->is_writing);
    pthread_mutex_unlock(&writer->mutex);
    return is_settled;
}

void log_writer_hurry(struct log_writer *writer)
{
    pthread_mutex_lock(&writer->mutex);
    writer->is_hurried = true;
    pthread_mutex_unlock(&writer->mutex);
}

/* Returns false if the thread is left behind: the writer then belongs to the thread. */
static bool thread_end(struct log_writer *writer, int64_t until_ns)
{
    struct timespec until = clock_timespec(until_ns);
    pthread_mutex_lock(&writer->mutex);
    writer->is_stopping = writer->is_hurried = true;
    pthread_cond_broadcast(&writer->changed);
    while (!writer->has_ended)
        if (pthread_cond_timedwait(&writer->changed, &writer->mutex, &until))
            break;
    bool has_ended = writer->has_ended;
    writer->is_orphaned = !has_ended;
    pthread_t thread = writer->thread; /* after unlocking, an orphaned thread may free the writer */
    pthread_mutex_unlock(&writer->mutex);
    if (has_ended)
        pthread_join(thread, NULL);
    else
        pthread_detach(thread);
    return has_ended;
}

void log_writer_close(struct log_writer *writer, unsigned deadline_ms)
{
    if (!writer)
        return;
    int64_t until_ns = clock_mono_ns() + (int64_t)deadline_ms * 1000000;
    if (!writer->is_background)
        writer_write_last(writer);
    else if (!thread_end(writer, until_ns))
        return;
    int64_t left_ns = until_ns - clock_mono_ns();
    if (writer->sealer)
        sealer_stop(writer->sealer, left_ns > 0 ? (unsigned)(left_ns / 1000000) : 0, NULL);
    writer_free(writer);
}

void log_writer_abandon(struct log_writer *writer)
{
    if (!writer)
        return;
    /* The memory is leaked on purpose: a thread that does not exist in the child may have held a mutex. Closing the
     * child's descriptors does not affect the parent's files and lock. */
    for (int i = 0; i < CHANNEL_COUNT; i++)
        if (writer->outputs[i].file.fd >= 0)
            close(writer->outputs[i].file.fd);
    if (writer->session.dir_fd >= 0)
        close(writer->session.dir_fd);
    if (writer->session.lock_fd >= 0)
        close(writer->session.lock_fd);
}
