/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"
#include "logfile/writer_state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define SEALER_WAIT_MS 1000
/* On an almost full disk, short lines still fit and long ones do not: failures within this time belong to one
 * episode. */
#define EPISODE_QUIET_NS (10 * INT64_C(1000000000))

void writer_on_rotated(void *user, enum channel channel, uint64_t index, uint64_t bytes)
{
    struct log_writer *writer = user;
    if (!writer->seal)
        return;
    pthread_mutex_lock(&writer->mutex);
    if (!writer->sealer && !writer->has_sealer_failed) {
        const struct sealer_options options = {
            .dir_fd = writer->session.dir_fd,
            .session_id = writer->session_id,
            .limit_bytes = writer->max_bytes / 2, /* the other half: live files, and files waiting to be sealed */
        };
        writer->sealer = sealer_start(&options);
        writer->has_sealer_failed = !writer->sealer;
    }
    if (writer->sealer)
        sealer_add(writer->sealer, channel, index, bytes); /* if the queue is full, the file stays plain */
    pthread_mutex_unlock(&writer->mutex);
}

static const char *advice(int error)
{
    switch (error) {
    case ENOSPC:
    case EDQUOT:
        return "recording continues when space is available";
    case EFBIG:
        return "the file size limit (ulimit -f) is too small; recording continues when it is raised";
    default:
        return "retrying every second";
    }
}

/* Nothing is wrong with the disk, and the program may close a file at any moment. */
static bool is_out_of_descriptors(int error)
{
    return error == EMFILE || error == ENFILE;
}

/* Whether a line that cannot be written now stays in memory, within the memory for lines of its kind. */
static bool can_be_kept(const struct channel_output *output, const struct queued_line *line)
{
    return record_catalogue[line->type].is_kept || is_out_of_descriptors(output->error);
}

static void trouble_begin(struct log_writer *writer, struct channel_output *output, int error,
                          const struct queued_line *line, struct notice *notice)
{
    int64_t now_ns = clock_mono_ns();
    output->retry_ns = now_ns + RETRY_NS;
    pthread_mutex_lock(&writer->mutex);
    bool is_over = writer->failing_channels == 0 && now_ns - writer->last_failure_ns > EPISODE_QUIET_NS;
    bool is_new = is_over || writer->stats.last_errno != error;
    if (!output->error)
        writer->failing_channels++;
    output->error = error;
    writer->stats.last_errno = error;
    writer->last_failure_ns = now_ns;
    pthread_mutex_unlock(&writer->mutex);
    if (!is_new)
        return;
    notice->is_set = true;
    notice->level = GPUFL_LOG_ERROR;
    snprintf(notice->text, sizeof notice->text, "cannot write %s/%s.log: %s; %s; %llu records lost so far",
             writer->session.dir, channel_names[output->file.channel], strerror(error), advice(error),
             (unsigned long long)(can_be_kept(output, line) ? 0 : line->rows));
}

static void trouble_end(struct log_writer *writer, struct channel_output *output, struct notice *notice)
{
    output->error = 0;
    pthread_mutex_lock(&writer->mutex);
    bool is_last = --writer->failing_channels == 0;
    pthread_mutex_unlock(&writer->mutex);
    if (!is_last)
        return;
    notice->is_set = true;
    notice->level = GPUFL_LOG_INFO;
    snprintf(notice->text, sizeof notice->text, "%s can be written again", writer->session.dir);
}

void writer_count_loss(struct log_writer *writer, enum log_loss why, enum record_type type, uint64_t rows)
{
    struct log_writer_stats *stats = &writer->stats;
    stats->lost_lines++;
    stats->lost_rows[why][type] += rows;
    stats->lost_until_ns[why] = clock_wall_ns();
    if (!stats->lost_since_ns[why])
        stats->lost_since_ns[why] = stats->lost_until_ns[why];
}

/* Loses a line that was already counted as a line to be written. */
static void lose(struct log_writer *writer, struct queued_line *line, enum log_loss why)
{
    pthread_mutex_lock(&writer->mutex);
    line_room_release(&writer->room, line);
    writer->stats.rows[line->type] -= line->rows;
    writer_count_loss(writer, why, line->type, line->rows);
    pthread_mutex_unlock(&writer->mutex);
    free(line);
}

/* Returns 0 if the line was written and freed, or an errno. */
static int write_one(struct log_writer *writer, struct channel_output *output, struct queued_line *line,
                     struct notice *notice)
{
    uint64_t bytes = 0;
    int error = channel_file_write(&output->file, line, &bytes);
    if (error) {
        trouble_begin(writer, output, error, line, notice);
        return error;
    }
    if (output->error)
        trouble_end(writer, output, notice);
    pthread_mutex_lock(&writer->mutex);
    line_room_release(&writer->room, line);
    writer->stats.lines++;
    writer->stats.bytes += bytes;
    pthread_mutex_unlock(&writer->mutex);
    free(line);
    return 0;
}

/* Writes what must precede the next line of the channel; false: that is not possible now. */
static bool write_kept(struct log_writer *writer, struct channel_output *output, struct notice *notice)
{
    if (output->error && clock_mono_ns() < output->retry_ns)
        return false;
    while (output->kept.first) {
        struct queued_line *next = output->kept.first->next;
        if (write_one(writer, output, output->kept.first, notice))
            return false;
        output->kept.first = next;
        if (!next)
            output->kept.last = NULL;
    }
    return true;
}

/* Bytes of all files of the session. */
static uint64_t used_bytes(struct log_writer *writer)
{
    struct sealer_stats sealed = {0};
    uint64_t used = 0;
    for (int i = 0; i < CHANNEL_COUNT; i++)
        used += writer->outputs[i].file.fd >= 0 ? writer->outputs[i].file.size : 0;
    pthread_mutex_lock(&writer->mutex);
    if (writer->sealer)
        sealer_get_stats(writer->sealer, &sealed);
    pthread_mutex_unlock(&writer->mutex);
    return used + sealed.rotated_bytes;
}

/* Whether rows or code of that size would take the space that names and the session's end need below the limit. Files
 * waiting to be sealed are many times larger than when sealed, so give the sealer a moment. */
static bool is_over_limit(struct log_writer *writer, size_t bytes)
{
    const uint64_t limit = writer->max_bytes - writer->max_bytes / 16;
    if (!writer->max_bytes)
        return false;
    for (int attempt = 0;; attempt++) {
        uint64_t used = used_bytes(writer);
        if (used + bytes <= limit)
            return false;
        pthread_mutex_lock(&writer->mutex);
        bool can_wait = !attempt && writer->sealer && !writer->is_hurried;
        pthread_mutex_unlock(&writer->mutex);
        if (!can_wait)
            return true;
        sealer_wait(writer->sealer, writer->max_bytes / 2, SEALER_WAIT_MS);
    }
}

static void low_set(struct log_writer *writer, bool is_low, struct notice *notice)
{
    pthread_mutex_lock(&writer->mutex);
    bool is_change = writer->is_low != is_low;
    writer->is_low = is_low;
    pthread_mutex_unlock(&writer->mutex);
    if (!is_change)
        return;
    notice->is_set = true;
    notice->level = is_low ? GPUFL_LOG_WARNING : GPUFL_LOG_INFO;
    if (is_low)
        snprintf(notice->text, sizeof notice->text,
                 "recording is paused: %.1f MiB are free for %s, but %.1f MiB must stay free (GPUFL_MIN_FREE_BYTES); "
                 "it continues when space is available",
                 (double)writer->space.free_bytes / 1048576, writer->session.dir,
                 (double)writer->space.floor_bytes / 1048576);
    else
        snprintf(notice->text, sizeof notice->text, "recording continues in %s", writer->session.dir);
}

/* Rows and code are subject to the limits of free space and session size; the few records that explain them are always
 * written. */
static bool is_refused(struct log_writer *writer, const struct queued_line *line, enum log_loss *why,
                       struct notice *notice)
{
    /* What goes to every channel is small: a channel without its end would look damaged. */
    const struct record_info *record = &record_catalogue[line->type];
    if (record->is_kept && (line->channel != CHANNEL_SASS || record->channel == CHANNEL_COUNT))
        return false;
    bool is_low = disk_space_is_low(&writer->space, line->size);
    low_set(writer, is_low, notice);
    *why = is_low ? LOG_LOSS_PAUSE : LOG_LOSS_LIMIT;
    return is_low || is_over_limit(writer, line->size);
}

gpufl_status writer_write(struct log_writer *writer, struct queued_line *line, struct notice *notice)
{
    struct channel_output *output = &writer->outputs[line->channel];
    enum log_loss why = LOG_LOSS_DISK;
    line->seq -= output->refused;
    if (is_refused(writer, line, &why, notice)) {
        output->refused++;
        lose(writer, line, why);
        return GPUFL_E_IO;
    }
    if (write_kept(writer, output, notice) && !write_one(writer, output, line, notice))
        return GPUFL_OK;
    if (can_be_kept(output, line)) {
        line_queue_push(&output->kept, line);
        return GPUFL_OK;
    }
    lose(writer, line, LOG_LOSS_DISK);
    return GPUFL_E_IO;
}

void writer_write_kept(struct log_writer *writer, struct notice *notice)
{
    for (int i = 0; i < CHANNEL_COUNT; i++)
        (void)write_kept(writer, &writer->outputs[i], notice);
}

void writer_write_last(struct log_writer *writer)
{
    for (int i = 0; i < CHANNEL_COUNT; i++) {
        struct channel_output *output = &writer->outputs[i];
        struct queued_line *line;
        struct notice notice = {.is_set = false};
        /* Try each line, since short ones may still fit. */
        while ((line = line_queue_take(&output->kept)))
            if (write_one(writer, output, line, &notice))
                lose(writer, line, LOG_LOSS_DISK);
    }
}
