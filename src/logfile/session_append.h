/* SPDX-License-Identifier: Apache-2.0 */
/* Records that are made after a session has ended and travel with it. They go into a file of their own, the next of
 * their channel: whoever sent or sealed the files before it has nothing to do again. The session's lock is held from
 * open to close. Single-threaded. */
#ifndef GPUFL_LOGFILE_SESSION_APPEND_H
#define GPUFL_LOGFILE_SESSION_APPEND_H

#include "logfile/channel_end.h"

struct session_append {
    struct session_files files; /* owned; as they were before */
    int lock_fd;                /* owned */
    enum channel channel;
    struct channel_end end;
    bool has_file;           /* the next file is begun */
    bool was_sealed;         /* and is sealed again in the end */
    bool is_without_channel; /* the session has no file of ours in it */
};

/* GPUFL_E_BUSY: the session is still being written. GPUFL_E_NOT_FOUND: there is no session, or (is_without_channel)
 * no file of ours in this channel. */
NODISCARD gpufl_status session_append_open(struct session_append *append, const char *dir, enum channel channel,
                                           struct problem *problem);
/* object: one JSON object without its closing brace; seq and CRC are added. */
NODISCARD gpufl_status session_append_line(struct session_append *append, const struct bytes *object,
                                           struct problem *problem);
/* Gives the lock back; a session that was sealed is sealed again. */
NODISCARD gpufl_status session_append_close(struct session_append *append, const char *dir, struct problem *problem);

#endif
