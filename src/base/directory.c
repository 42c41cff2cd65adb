/* SPDX-License-Identifier: Apache-2.0 */
#include "base/directory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

gpufl_status directory_make(const char *path, struct problem *problem)
{
    char partial[PATH_MAX];
    size_t size = strlen(path);
    if (!size || size >= sizeof partial)
        return problem_set(problem, GPUFL_E_INVALID, "the directory's path is empty or too long");
    memcpy(partial, path, size + 1);
    for (size_t i = 1; i <= size; i++) {
        if (partial[i] != '/' && partial[i] != '\0')
            continue;
        char saved = partial[i];
        partial[i] = '\0';
        /* An existing parent on a read-only file system is fine. */
        struct stat status;
        int error = mkdir(partial, 0700) ? errno : 0;
        if (error && error != EEXIST && (stat(partial, &status) || !S_ISDIR(status.st_mode)))
            return problem_set(problem,
                               error == EACCES || error == EPERM || error == EROFS ? GPUFL_E_PERMISSION : GPUFL_E_IO,
                               "cannot create the directory %.300s: %s", partial, strerror(error));
        partial[i] = saved;
    }
    return GPUFL_OK;
}

static int write_all(int fd, const char *data, size_t size)
{
    while (size) {
        ssize_t wrote = write(fd, data, size);
        if (wrote < 0 && errno != EINTR)
            return errno;
        if (wrote > 0) {
            data += wrote;
            size -= (size_t)wrote;
        }
    }
    return 0;
}

gpufl_status file_replace(int dir_fd, const char *name, const void *data, size_t size)
{
    char part[NAME_MAX + 8];
    snprintf(part, sizeof part, "%.240s.part", name);
    unlinkat(dir_fd, part, 0);
    int fd = openat(dir_fd, part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int error = fd < 0 ? errno : write_all(fd, data, size);
    if (!error && fdatasync(fd))
        error = errno;
    if (fd >= 0 && close(fd) && !error)
        error = errno;
    if (!error && renameat(dir_fd, part, dir_fd, name))
        error = errno;
    if (!error)
        fsync(dir_fd);
    else if (fd >= 0)
        unlinkat(dir_fd, part, 0);
    errno = error;
    return error ? GPUFL_E_IO : GPUFL_OK;
}

gpufl_status file_load(int dir_fd, const char *name, size_t size_max, struct bytes *out)
{
    struct stat info;
    /* O_NONBLOCK: opening a FIFO must not block the reader. */
    int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return errno == ENOENT ? GPUFL_E_NOT_FOUND : GPUFL_E_IO;
    gpufl_status status = GPUFL_OK;
    if (fstat(fd, &info) || !S_ISREG(info.st_mode))
        status = GPUFL_E_INVALID;
    size_t begin = out->size;
    while (!status) {
        if (!bytes_reserve(out, 4096)) {
            status = GPUFL_E_NO_MEMORY;
            break;
        }
        ssize_t got = read(fd, out->data + out->size, out->capacity - out->size);
        if (got < 0 && errno != EINTR)
            status = GPUFL_E_IO;
        if (got == 0)
            break;
        out->size += got > 0 ? (size_t)got : 0;
        if (out->size - begin > size_max)
            status = GPUFL_E_LIMIT;
    }
    int error = errno;
    close(fd);
    errno = error;
    return status;
}
