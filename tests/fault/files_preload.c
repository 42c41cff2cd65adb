/* SPDX-License-Identifier: Apache-2.0 */
/* A faulty file system, for LD_PRELOAD. While the file GPUFL_TEST_EIO_WHILE exists, reading files whose path contains
 * GPUFL_TEST_EIO_FILE fails with EIO. With GPUFL_TEST_NO_LOCKS, locking a session and testing its lock fail with
 * ENOLCK, as on NFS without a lock daemon. All other calls are passed through. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static bool has_in_path(int fd, const char *part)
{
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, sizeof path - 1);
    path[size > 0 ? size : 0] = '\0';
    return strstr(path, part) != NULL;
}

static bool is_unreadable(int fd)
{
    const char *file = getenv("GPUFL_TEST_EIO_FILE"), *flag = getenv("GPUFL_TEST_EIO_WHILE");
    if (!file || !flag || access(flag, F_OK) || !has_in_path(fd, file))
        return false;
    errno = EIO;
    return true;
}

EXPORT ssize_t read(int fd, void *data, size_t size)
{
    return is_unreadable(fd) ? -1 : (ssize_t)syscall(SYS_read, fd, data, size);
}

EXPORT ssize_t pread(int fd, void *data, size_t size, off_t offset)
{
    return is_unreadable(fd) ? -1 : (ssize_t)syscall(SYS_pread64, fd, data, size, offset);
}

EXPORT ssize_t pread64(int fd, void *data, size_t size, off_t offset)
{
    return pread(fd, data, size, offset);
}

static int control(int fd, int command, void *argument)
{
    bool is_lock = command == F_SETLK || command == F_GETLK || command == F_OFD_SETLK || command == F_OFD_GETLK;
    if (is_lock && getenv("GPUFL_TEST_NO_LOCKS") && has_in_path(fd, "/.gpufl-session.lock")) {
        errno = ENOLCK;
        return -1;
    }
    return (int)syscall(SYS_fcntl, fd, command, argument);
}

EXPORT int fcntl(int fd, int command, ...)
{
    va_list arguments;
    va_start(arguments, command);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    return control(fd, command, argument);
}

EXPORT int fcntl64(int fd, int command, ...)
{
    va_list arguments;
    va_start(arguments, command);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    return control(fd, command, argument);
}
