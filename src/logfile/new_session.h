/* SPDX-License-Identifier: Apache-2.0 */
/* The directory of a session that begins, with the lock that says that its writer lives. */
#ifndef GPUFL_LOGFILE_NEW_SESSION_H
#define GPUFL_LOGFILE_NEW_SESSION_H

#include "base/status.h"
#include "logfile/short_name.h"

struct new_session {
    char *dir;                  /* owned; absolute where possible */
    char name[SHORT_NAME_SIZE]; /* "": none could be claimed */
    int dir_fd, lock_fd;
};

/* Makes base_dir where it is missing, and the session's directory in it, which must not be there yet. app: what its name
 * is made of; NULL: it gets none. */
NODISCARD gpufl_status session_make(struct new_session *session, const char *base_dir, const char *session_id,
                                    const char *app, struct problem *problem);
/* Gives the lock back and closes; the files stay. */
void session_leave(struct new_session *session);

#endif
