/* SPDX-License-Identifier: Apache-2.0 */
/* The background thread that seals rotated files (segment.h). One per writer,
 * started with the first rotated file, at the lowest priority, with all signals
 * blocked. A failed or unasked-for seal leaves the plain file, which readers
 * accept just as well. The last one out (owner or thread) frees. */
#ifndef GPUFL_LOGFILE_SEALER_H
#define GPUFL_LOGFILE_SEALER_H

#include "base/status.h"
#include "format/catalogue.h"

#include <stdint.h>

struct sealer; /* opaque */

struct sealer_stats {
    uint64_t segments, plain_bytes, sealed_bytes, failed;
    int64_t cpu_ns;
};

/* dir_fd is duplicated. NULL when memory, descriptors or threads are short. */
struct sealer *sealer_start(int dir_fd);
/* Queues <channel>.<index>.log; false when the queue is full (the file stays plain). */
bool sealer_add(struct sealer *sealer, enum channel channel, uint64_t index);
void sealer_get_stats(struct sealer *sealer, struct sealer_stats *stats);
/* Waits for the queue to empty, at most deadline_ms; then stops the thread, after the
 * deadline in the middle of a file if need be. stats (may be NULL): the final figures. */
void sealer_stop(struct sealer *sealer, unsigned deadline_ms, struct sealer_stats *stats);

#endif
