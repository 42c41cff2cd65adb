/* SPDX-License-Identifier: Apache-2.0 */
/* The background thread that seals rotated files (segment.h). One per writer, started with the first rotated file, at
 * the lowest priority, with all signals blocked. If a file cannot be sealed, the plain file stays, which readers accept
 * just as well. With a limit the thread also trims the oldest segments (segment_trim.h) until the rotated files are
 * below it. The owner or the thread, whichever ends last, frees. */
#ifndef GPUFL_LOGFILE_SEALER_H
#define GPUFL_LOGFILE_SEALER_H

#include "base/status.h"
#include "format/catalogue.h"

#include <stdint.h>

struct sealer; /* opaque */

struct sealer_stats {
    uint64_t segments, plain_bytes, sealed_bytes, failed;
    uint64_t rotated_bytes; /* currently on the disk; only with a limit */
    uint64_t trimmed;       /* number of trimmed segments */
    int64_t cpu_ns;
};

struct sealer_options {
    int dir_fd;             /* duplicated */
    const char *session_id; /* copied */
    uint64_t limit_bytes;   /* of all rotated files; 0: none */
};

/* NULL: out of memory, descriptors or threads. */
struct sealer *sealer_start(const struct sealer_options *options);
/* Queues <channel>.<index>.log with its size; false: the queue is full, and the file stays plain. */
bool sealer_add(struct sealer *sealer, enum channel channel, uint64_t index, uint64_t bytes);
/* Waits until the rotated files take at most `bytes`, or nothing more can be done; at most wait_ms. */
void sealer_wait(struct sealer *sealer, uint64_t bytes, unsigned wait_ms);
void sealer_get_stats(struct sealer *sealer, struct sealer_stats *stats);
/* Waits for the queue to empty, at most deadline_ms, then stops the thread, if necessary in the middle of a file. stats
 * (may be NULL): the final figures. */
void sealer_stop(struct sealer *sealer, unsigned deadline_ms, struct sealer_stats *stats);

#endif
