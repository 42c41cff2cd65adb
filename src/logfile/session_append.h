/* SPDX-License-Identifier: Apache-2.0 */
/* Adds records to a session that has ended. They are written to the next file of their channel, so that the files
 * before it need not be sent or sealed again. The session's lock is held from open to close. Single-threaded. */
#ifndef GPUFL_LOGFILE_SESSION_APPEND_H
#define GPUFL_LOGFILE_SESSION_APPEND_H

#include "logfile/channel_end.h"

struct session_append {
    struct session_files files; /* owned; the files before the addition */
    int lock_fd;                /* owned */
    enum channel channel;
    struct channel_end end;
    bool has_file;           /* the next file was started */
    bool was_sealed;         /* and must be sealed again at the end */
    bool is_without_channel; /* this channel has no file of ours */
};

/* GPUFL_E_BUSY: the session is still being written. GPUFL_E_NOT_FOUND: there is no session, or (is_without_channel)
 * this channel has no file of ours. */
NODISCARD gpufl_status session_append_open(struct session_append *append, const char *dir, enum channel channel,
                                           struct problem *problem);
/* object: one JSON object without its closing brace; seq and CRC are added. */
NODISCARD gpufl_status session_append_line(struct session_append *append, const struct bytes *object,
                                           struct problem *problem);
/* Releases the lock; a session that was sealed is sealed again. */
NODISCARD gpufl_status session_append_close(struct session_append *append, const char *dir, struct problem *problem);

#endif
