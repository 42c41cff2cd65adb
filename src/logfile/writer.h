/* SPDX-License-Identifier: Apache-2.0 */
/* Writes one session directory. Thread-safe; one mutex per channel, taken per
 * line (a line is a whole batch), never by the user's threads.
 *
 *   <base>/<session_id>/<channel>.log              live, one write(2) per line
 *   <base>/<session_id>/<channel>.NNNNNN.log       rotated, waiting for the sealer
 *   <base>/<session_id>/<channel>.NNNNNN.log.zst   sealed (segment.h)
 *   <base>/<session_id>/.gpufl-session.lock        fcntl write lock while the writer lives
 *
 * Directories 0700, files 0600, opened with O_NOFOLLOW|O_CLOEXEC relative to
 * the directory's descriptor. A channel's file is made when its first line is.
 * A failed write (ENOSPC, EIO, EDQUOT, ...) is cut back to the last whole line,
 * counted, reported once through base/log.h, and retried at most once a second;
 * the caller's data is dropped meanwhile. */
#ifndef GPUFL_LOGFILE_WRITER_H
#define GPUFL_LOGFILE_WRITER_H

#include "base/bytes.h"
#include "base/status.h"
#include "format/catalogue.h"

struct log_writer; /* opaque */

struct log_writer_options {
    const char *base_dir;   /* made when missing (0700) */
    const char *session_id; /* 36 characters */
    uint64_t rotate_bytes;  /* 0: 16 MiB */
    uint64_t rotate_age_ms; /* 0: no rotation by age */
    bool fsync_always;      /* fsync after every line */
    bool seal;              /* seal rotated segments on a background thread */
};

NODISCARD gpufl_status log_writer_open(struct log_writer **out, const struct log_writer_options *options,
                                       struct problem *problem);
/* line: one JSON object without its closing brace, without LF. The writer adds
 * ,"seq":N,"crc":"xxxxxxxx"} and LF and writes it with one write(2). rows: how many records
 * the line carries (for the counts in the shutdown record and for loss). Returns GPUFL_E_IO when it was dropped. */
gpufl_status log_writer_line(struct log_writer *writer, enum channel channel, enum record_type type,
                             const struct bytes *line, uint64_t rows);
/* Same line to every channel that has a file, and to `always` (bit mask of 1u << channel). */
gpufl_status log_writer_line_all(struct log_writer *writer, unsigned always, enum record_type type,
                                 const struct bytes *line);

struct log_writer_stats {
    uint64_t lines, bytes, rows[RECORD_TYPE_COUNT];
    uint64_t lost_lines, lost_rows[RECORD_TYPE_COUNT]; /* could not be written */
    uint64_t sealed_segments, sealed_plain_bytes, sealed_bytes;
    int64_t seal_cpu_ns;
    int last_errno;
};
void log_writer_stats(struct log_writer *writer, struct log_writer_stats *stats);
const char *log_writer_dir(const struct log_writer *writer);
/* Finishes sealing of rotated segments (bounded: deadline_ms), closes, frees. NULL is a no-op. */
void log_writer_close(struct log_writer *writer, unsigned deadline_ms);
/* After fork, in the child: forget without touching files or joining threads. */
void log_writer_abandon(struct log_writer *writer);

#endif
