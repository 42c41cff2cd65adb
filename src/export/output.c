/* SPDX-License-Identifier: Apache-2.0 */
#include "export/output.h"

#include "base/rename_new.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static gpufl_status exists_problem(const char *path, struct problem *problem)
{
    return problem_set(problem, GPUFL_E_BUSY, "%.400s already exists; --force replaces it", path);
}

static void temporary_report(const struct output_file *file, const char *path)
{
    if (file->on_temporary)
        file->on_temporary(path);
}

/* Signals are blocked, because a signal between creating or renaming the file and reporting it would use the wrong
 * name. */
static sigset_t signals_hold(void)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    return before;
}

static gpufl_status stream_open(struct output_file *file, const char *path, struct problem *problem)
{
    file->is_stream = true;
    file->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (file->fd >= 0)
        return GPUFL_OK;
    return problem_set(problem, GPUFL_E_IO, "cannot write to %.400s: %s", path, strerror(errno));
}

gpufl_status output_open(struct output_file *file, const char *path, bool may_replace,
                         void (*on_temporary)(const char *path), struct problem *problem)
{
    *file = (struct output_file){.fd = STDOUT_FILENO, .may_replace = may_replace, .on_temporary = on_temporary};
    if (strcmp(path, "-") == 0) {
        file->is_stream = true;
        return GPUFL_OK;
    }
    struct stat status;
    if (stat(path, &status) == 0 && S_ISDIR(status.st_mode))
        return problem_set(problem, GPUFL_E_INVALID, "%.400s is a directory", path);
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode))
        return stream_open(file, path, problem);
    bool is_there = lstat(path, &status) == 0;
    if (is_there && !may_replace)
        return exists_problem(path, problem);
    const char *slash = strrchr(path, '/');
    int directory_size = slash ? (int)(slash - path) + 1 : 0;
    int size = snprintf(file->temporary, sizeof file->temporary, "%.*s.%s.XXXXXX", directory_size, path,
                        slash ? slash + 1 : path);
    if (size < 0 || (size_t)size >= sizeof file->temporary) {
        file->temporary[0] = '\0';
        return problem_set(problem, GPUFL_E_INVALID, "the name of the output is too long");
    }
    snprintf(file->path, sizeof file->path, "%s", path);
    sigset_t before = signals_hold();
    file->fd = mkostemp(file->temporary, O_CLOEXEC);
    int error = errno;
    if (file->fd >= 0)
        temporary_report(file, file->temporary);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (file->fd < 0) {
        file->temporary[0] = '\0';
        return problem_set(problem, GPUFL_E_IO, "cannot write to %.400s: %s", path, strerror(error));
    }
    mode_t mask = umask(0); /* there is no way to read it without setting it */
    umask(mask);
    (void)fchmod(file->fd, 0666 & ~mask);
    return GPUFL_OK;
}

static int output_move(const struct output_file *file)
{
    if (file->may_replace)
        return rename(file->temporary, file->path);
    if (rename_new(AT_FDCWD, file->temporary, AT_FDCWD, file->path) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -1;
    /* Some file systems do not support a rename without replacement; a link never replaces anything. */
    return link(file->temporary, file->path) == 0 ? unlink(file->temporary) : -1;
}

gpufl_status output_commit(struct output_file *file, struct problem *problem)
{
    if (file->is_stream) {
        output_discard(file);
        return GPUFL_OK;
    }
    bool is_written = fsync(file->fd) == 0;
    is_written = close(file->fd) == 0 && is_written;
    file->fd = -1;
    int error = errno;
    sigset_t before = signals_hold();
    bool is_moved = is_written && output_move(file) == 0;
    error = is_written ? errno : error;
    if (is_moved) {
        file->temporary[0] = '\0';
        temporary_report(file, NULL);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (is_moved)
        return GPUFL_OK;
    gpufl_status status =
        error == EEXIST ? exists_problem(file->path, problem)
                        : problem_set(problem, GPUFL_E_IO, "cannot write to %.400s: %s", file->path, strerror(error));
    output_discard(file);
    return status;
}

void output_discard(struct output_file *file)
{
    if (file->fd >= 0 && file->fd != STDOUT_FILENO)
        close(file->fd);
    file->fd = -1;
    if (!file->temporary[0])
        return;
    unlink(file->temporary);
    file->temporary[0] = '\0';
    temporary_report(file, NULL);
}
