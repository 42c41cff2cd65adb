/* SPDX-License-Identifier: Apache-2.0 */
/* The directory of a new session, with the lock that shows that its writer is running. */
#ifndef GPUFL_LOGFILE_NEW_SESSION_H
#define GPUFL_LOGFILE_NEW_SESSION_H

#include "base/status.h"
#include "logfile/short_name.h"

struct new_session {
    char *dir;                  /* owned; absolute where possible */
    char name[SHORT_NAME_SIZE]; /* "": no name could be claimed */
    int dir_fd, lock_fd;
};

/* Creates base_dir if missing, and the session's directory in it, which must not exist yet. app: the first part of its
 * short name; NULL: the session gets no name. */
NODISCARD gpufl_status session_make(struct new_session *session, const char *base_dir, const char *session_id,
                                    const char *app, struct problem *problem);
/* Releases the lock and closes; the files stay. */
void session_leave(struct new_session *session);

#endif
