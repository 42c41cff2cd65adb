/* SPDX-License-Identifier: Apache-2.0 */
/* Writes one session directory. Thread-safe; never called by the user's threads.
 *
 *   <base>/<session_id>/<channel>.log              live, one write(2) per line
 *   <base>/<session_id>/<channel>.NNNNNN.log       rotated, waiting for the sealer
 *   <base>/<session_id>/<channel>.NNNNNN.log.zst   sealed (segment.h)
 *   <base>/<session_id>/.gpufl-session.lock        fcntl write lock while the writer is running
 *
 * Directories 0700, files 0600, opened with O_NOFOLLOW|O_CLOEXEC relative to the directory's descriptor. A channel's file
 * is created with its first line.
 *
 * In the background: a line is copied into a bounded queue (line_queue.h), and a separate thread writes it, so that no
 * caller waits for the disk. Lines that do not fit into the queue are lost and counted. Without a thread the caller
 * writes.
 *
 * A failed write (ENOSPC, EIO, EDQUOT, ...) is truncated to the last complete line, counted, reported once through
 * base/log.h, and retried at most once a second. Rows are lost meanwhile. Records that later ones refer to
 * (record_info.is_kept) wait in memory and are written, in order, before anything else of their channel. */
#ifndef GPUFL_LOGFILE_WRITER_H
#define GPUFL_LOGFILE_WRITER_H

#include "base/bytes.h"
#include "base/status.h"
#include "format/catalogue.h"

struct log_writer; /* opaque */

struct log_writer_options {
    const char *base_dir;   /* created if missing (0700) */
    const char *session_id; /* 36 characters */
    const char *app_name;   /* first part of the session's short name (short_name.h); NULL: no name */
    uint64_t rotate_bytes;  /* 0: 16 MiB */
    uint64_t rotate_age_ms; /* 0: no rotation by age */
    bool fsync_always;      /* fsync after every line */
    bool seal;              /* seal rotated segments on a background thread */
    bool in_background;     /* write on a separate thread; see above */
    size_t queue_bytes;     /* for rows waiting to be written; 0: 32 MiB */
    uint64_t
        max_bytes; /* of all files, with `seal`: above it the oldest segments lose their rows; 0: no limit, else 4 MiB or more */
    int64_t min_free_bytes; /* below it no rows are written (disk_space.h); 0: no floor */
};

NODISCARD gpufl_status log_writer_open(struct log_writer **out, const struct log_writer_options *options,
                                       struct problem *problem);
/* line: one JSON object without its closing brace and LF. The writer adds ,"seq":N,"crc":"xxxxxxxx"} and LF and writes
 * it with one write(2). rows: the number of records in the line (for the counts in the shutdown record and for loss).
 * GPUFL_OK: it is written or queued; GPUFL_E_IO: it is lost, and counted. */
gpufl_status log_writer_line(struct log_writer *writer, enum channel channel, enum record_type type,
                             const struct bytes *line, uint64_t rows);
/* Writes the same line to every channel that has a file, and to `always` (bit mask of 1u << channel). */
gpufl_status log_writer_line_all(struct log_writer *writer, unsigned always, enum record_type type,
                                 const struct bytes *line);

/* Why a line was not written. */
enum log_loss {
    LOG_LOSS_DISK,  /* a write failed: see last_errno (0: the line was too long, or out of memory) */
    LOG_LOSS_QUEUE, /* the queue was full because the disk was too slow */
    LOG_LOSS_PAUSE, /* less than min_free_bytes was free */
    LOG_LOSS_LIMIT, /* max_bytes was reached, and no old segment could be trimmed in time */
    LOG_LOSS_COUNT
};

struct log_writer_stats {
    uint64_t lines, bytes;            /* written */
    uint64_t rows[RECORD_TYPE_COUNT]; /* written, or queued */
    uint64_t lost_lines, lost_rows[LOG_LOSS_COUNT][RECORD_TYPE_COUNT];
    /* Start and end of the losses of each kind since log_writer_loss_reported; CLOCK_REALTIME, 0: none. */
    int64_t lost_since_ns[LOG_LOSS_COUNT], lost_until_ns[LOG_LOSS_COUNT];
    bool is_in_trouble; /* lines are being lost: new lines may have to wait in memory */
    uint64_t sealed_segments, sealed_plain_bytes, sealed_bytes, trimmed_segments;
    int64_t write_cpu_ns, seal_cpu_ns;
    size_t queue_bytes; /* of lines in memory */
    int last_errno;
};
void log_writer_stats(struct log_writer *writer, struct log_writer_stats *stats);
uint64_t log_writer_lost(const struct log_writer_stats *stats, enum record_type type); /* for any reason */
/* Call when the losses so far are recorded in the log: the next loss starts a new time span. */
void log_writer_loss_reported(struct log_writer *writer);
/* Waits until every line so far is written or lost, at most deadline_ms; false: some are not. */
bool log_writer_settle(struct log_writer *writer, unsigned deadline_ms);
/* From now on a row that max_bytes leaves no room for is lost at once, instead of waiting for old segments to shrink. */
void log_writer_hurry(struct log_writer *writer);
const char *log_writer_dir(const struct log_writer *writer);
const char *log_writer_session_name(const struct log_writer *writer); /* train-3; "": none */
/* Writes waiting lines, finishes sealing of rotated segments, closes and frees, all within deadline_ms. A thread that
 * is stuck in a disk access is left behind: it continues when the access returns, and frees. NULL is a no-op. */
void log_writer_close(struct log_writer *writer, unsigned deadline_ms);
/* After fork, in the child: forgets the session without touching files or joining threads. */
void log_writer_abandon(struct log_writer *writer);

#endif
