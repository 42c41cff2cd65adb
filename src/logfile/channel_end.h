/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the end of a channel whose writer is gone, and appends lines after it. Callers that append hold the session's
 * lock (session_lock_open). Single-threaded. */
#ifndef GPUFL_LOGFILE_CHANNEL_END_H
#define GPUFL_LOGFILE_CHANNEL_END_H

#include "base/bytes.h"
#include "logfile/session_dir.h"

struct channel_end {
    uint64_t last_seq;   /* of the last readable line; 0: none */
    uint64_t unreadable; /* lines after it */
    bool has_ended;      /* by a shutdown record, or by a record that is only added to an ended session */
    bool is_torn;        /* the live file's last line is incomplete */
};

/* GPUFL_E_NOT_FOUND: the channel has no file of ours. GPUFL_E_DAMAGED: its last lines are damaged. */
NODISCARD gpufl_status channel_end_find(const struct session_files *files, enum channel channel,
                                        struct channel_end *end);
/* Appends to the live file, creating it if necessary, and updates `end`. object: without its closing brace. A torn last
 * line is terminated with LF first, so that it remains visible as damage. GPUFL_E_IO with errno. */
NODISCARD gpufl_status channel_end_append(struct channel_end *end, int dir_fd, enum channel channel,
                                          const struct bytes *object);

#endif
