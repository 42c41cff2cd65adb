/* SPDX-License-Identifier: Apache-2.0 */
/* The background thread that seals rotated files (segment.h). One per writer,
 * started with the first rotated file, at the lowest priority, with all signals
 * blocked. A failed or unasked-for seal leaves the plain file, which readers
 * accept just as well. With a limit it also trims the oldest segments
 * (segment_trim.h) until all rotated files are below it. The last one out (owner
 * or thread) frees. */
#ifndef GPUFL_LOGFILE_SEALER_H
#define GPUFL_LOGFILE_SEALER_H

#include "base/status.h"
#include "format/catalogue.h"

#include <stdint.h>

struct sealer; /* opaque */

struct sealer_stats {
    uint64_t segments, plain_bytes, sealed_bytes, failed;
    uint64_t rotated_bytes; /* on the disk now; with a limit only */
    uint64_t trimmed;       /* segments */
    int64_t cpu_ns;
};

struct sealer_options {
    int dir_fd;             /* duplicated */
    const char *session_id; /* copied */
    uint64_t limit_bytes;   /* of all rotated files; 0: none */
};

/* NULL when memory, descriptors or threads are short. */
struct sealer *sealer_start(const struct sealer_options *options);
/* Queues <channel>.<index>.log of so many bytes; false when the queue is full (the file stays plain). */
bool sealer_add(struct sealer *sealer, enum channel channel, uint64_t index, uint64_t bytes);
/* Waits until all rotated files take at most so many bytes, or nothing is left to be done for that; at most wait_ms. */
void sealer_wait(struct sealer *sealer, uint64_t bytes, unsigned wait_ms);
void sealer_get_stats(struct sealer *sealer, struct sealer_stats *stats);
/* Waits for the queue to empty, at most deadline_ms; then stops the thread, after the
 * deadline in the middle of a file if need be. stats (may be NULL): the final figures. */
void sealer_stop(struct sealer *sealer, unsigned deadline_ms, struct sealer_stats *stats);

#endif
