/* SPDX-License-Identifier: Apache-2.0 */
#include "logfile/new_session.h"

#include "base/directory.h"
#include "logfile/session_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static gpufl_status io_problem(struct problem *problem, int error, const char *what, const char *path)
{
    gpufl_status status = error == EACCES || error == EPERM || error == EROFS ? GPUFL_E_PERMISSION : GPUFL_E_IO;
    return problem_set(problem, status, "%s %s: %s", what, path, strerror(error));
}

void session_leave(struct new_session *session)
{
    if (session->lock_fd >= 0)
        close(session->lock_fd);
    if (session->dir_fd >= 0)
        close(session->dir_fd);
    free(session->dir);
    *session = (struct new_session){.dir_fd = -1, .lock_fd = -1};
}

/* A failure is ignored: a session also works without a short name. */
static void claim_name(struct new_session *session, int base_fd, const char *session_id, const char *app)
{
    if (!app || !short_name_next(base_fd, app, session_id, session->name) ||
        !short_name_write(session->lock_fd, session->name))
        session->name[0] = '\0';
}

gpufl_status session_make(struct new_session *session, const char *base_dir, const char *session_id, const char *app,
                          struct problem *problem)
{
    *session = (struct new_session){.dir_fd = -1, .lock_fd = -1};
    gpufl_status status = directory_make(base_dir, problem);
    if (status)
        return status;
    int base_fd = open(base_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (base_fd < 0)
        return io_problem(problem, errno, "cannot open the log directory", base_dir);
    short_name_lock(base_fd);
    char *absolute = realpath(base_dir, NULL);
    if (asprintf(&session->dir, "%s/%s", absolute ? absolute : base_dir, session_id) < 0) {
        session->dir = NULL;
        status = GPUFL_E_NO_MEMORY;
    } else if (mkdirat(base_fd, session_id, 0700)) {
        status = io_problem(problem, errno, "cannot create the session directory", session->dir);
    } else if ((session->dir_fd = openat(base_fd, session_id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0) {
        status = io_problem(problem, errno, "cannot open the session directory", session->dir);
    } else if ((session->lock_fd = openat(session->dir_fd, SESSION_LOCK_NAME,
                                          O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)) < 0) {
        status = io_problem(problem, errno, "cannot create the lock file in", session->dir);
    } else if (!session_lock_take(session->lock_fd) && errno != ENOLCK && errno != ENOTSUP) {
        /* On a file system without locks, the only loss is that readers cannot tell that the session is live. */
        status = io_problem(problem, errno, "cannot lock", session->dir);
    } else {
        claim_name(session, base_fd, session_id, app);
    }
    free(absolute);
    close(base_fd);
    if (status)
        session_leave(session);
    return status;
}
