/* SPDX-License-Identifier: Apache-2.0 */
/* How a channel of a session ends whose writer is gone, and lines behind that end. Whoever appends holds the session's
 * lock (session_lock_open). Single-threaded. */
#ifndef GPUFL_LOGFILE_CHANNEL_END_H
#define GPUFL_LOGFILE_CHANNEL_END_H

#include "base/bytes.h"
#include "logfile/session_dir.h"

struct channel_end {
    uint64_t last_seq;   /* of the last readable line; 0: none */
    uint64_t unreadable; /* lines after it */
    bool has_ended;      /* by a shutdown record, or by what is only added to an ended session */
    bool is_torn;        /* the live file's last line */
};

/* GPUFL_E_NOT_FOUND: the channel has no file of ours. GPUFL_E_DAMAGED: its last lines are. */
NODISCARD gpufl_status channel_end_find(const struct session_files *files, enum channel channel,
                                        struct channel_end *end);
/* Appends to the live file, which is made when there is none, and moves the end. object: without its closing brace. A
 * torn last line is first closed with LF, so that it stays visible as damage. GPUFL_E_IO with errno. */
NODISCARD gpufl_status channel_end_append(struct channel_end *end, int dir_fd, enum channel channel,
                                          const struct bytes *object);

#endif
