/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of struct log_writer, for writer.c (which thread writes when) and writer_output.c (how a line is written, and
 * what happens if that fails). */
#ifndef GPUFL_LOGFILE_WRITER_STATE_H
#define GPUFL_LOGFILE_WRITER_STATE_H

#include "base/clock.h"
#include "logfile/channel_file.h"
#include "logfile/disk_space.h"
#include "logfile/new_session.h"
#include "logfile/sealer.h"
#include "logfile/writer.h"

#include <pthread.h>

#define RETRY_NS INT64_C(1000000000)

/* Used by the thread that writes: the background thread, or the caller with write_mutex. */
struct channel_output {
    struct channel_file file;
    struct line_queue kept; /* could not be written, and must precede anything else */
    int error;              /* errno of the last attempt to write; 0: it succeeded */
    uint64_t refused;       /* lines that were refused: their numbers are used by the following lines */
    int64_t retry_ns;
};

struct log_writer {
    struct new_session session;
    char session_id[40];
    uint64_t max_bytes;      /* of the session's files; 0: no limit */
    struct disk_space space; /* used by the thread that writes */
    bool seal, is_background;
    struct channel_file_options file_options;
    struct channel_output outputs[CHANNEL_COUNT];
    pthread_mutex_t write_mutex; /* without a background thread: held while numbering and writing a line */
    pthread_t thread;

    pthread_mutex_t mutex; /* guards the following members; never held during disk access */
    pthread_cond_t changed;
    struct line_queue queue;
    struct line_room room;
    uint64_t seqs[CHANNEL_COUNT];
    unsigned open_channels; /* bit mask: channels with a line */
    bool is_writing, is_hurried, is_stopping, has_ended, is_orphaned, is_overflowing;
    struct sealer *sealer;
    bool has_sealer_failed;
    unsigned failing_channels;
    bool is_low;             /* the disk space is low: rows are not written */
    int64_t last_failure_ns; /* mono */
    struct log_writer_stats stats;
};

/* A message to send when no mutex is held: the log's callback is user code. */
struct notice {
    bool is_set;
    gpufl_log_level level;
    char text[512];
};

/* With the mutex. */
void writer_count_loss(struct log_writer *writer, enum log_loss why, enum record_type type, uint64_t rows);
/* A channel's file was rotated; for channel_file_options. */
void writer_on_rotated(void *user, enum channel channel, uint64_t index, uint64_t bytes);
/* Takes ownership of the line; GPUFL_OK: it is written, or kept until it can be. */
gpufl_status writer_write(struct log_writer *writer, struct queued_line *line, struct notice *notice);
/* Retries the kept lines. */
void writer_write_kept(struct log_writer *writer, struct notice *notice);
/* The last attempt to write the kept lines. */
void writer_write_last(struct log_writer *writer);

#endif
