/* SPDX-License-Identifier: Apache-2.0 */
/* A disk that fills up, for LD_PRELOAD: after GPUFL_TEST_DISK_BYTES bytes have been written to regular files below
 * GPUFL_TEST_DISK_DIR, writing fails with ENOSPC; the last write is a short one, as on a real disk. With
 * GPUFL_TEST_DISK_RECOVER_MS space is available again that long after the first failure.
 *
 * With GPUFL_TEST_DISK_CAPACITY instead, the files directly in GPUFL_TEST_DISK_DIR may together have this size:
 * deleting and truncating frees space, and overwriting needs none. All other calls are passed through. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static atomic_llong bytes_written;
static atomic_llong failed_since_ms; /* 0: not yet */

static long long now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static bool is_on_the_disk(int fd)
{
    const char *dir = getenv("GPUFL_TEST_DISK_DIR");
    struct stat status;
    if (!dir || fstat(fd, &status) || !S_ISREG(status.st_mode))
        return false;
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, sizeof path - 1);
    size_t dir_size = strlen(dir);
    return size > (ssize_t)dir_size && !strncmp(path, dir, dir_size) && path[dir_size] == '/';
}

/* Returns how many of `wanted` bytes still fit; -1: none, and errno is set. */
static ssize_t take_space(int fd, size_t wanted)
{
    const char *limit = getenv("GPUFL_TEST_DISK_BYTES");
    if (!wanted || !limit || !is_on_the_disk(fd))
        return (ssize_t)wanted;
    const char *recover = getenv("GPUFL_TEST_DISK_RECOVER_MS");
    long long since = atomic_load(&failed_since_ms);
    if (recover && since && now_ms() - since >= atoll(recover))
        return (ssize_t)wanted;
    long long before = atomic_fetch_add(&bytes_written, (long long)wanted);
    long long room = atoll(limit) - before;
    if (room >= (long long)wanted)
        return (ssize_t)wanted;
    atomic_fetch_sub(&bytes_written, (long long)wanted - (room > 0 ? room : 0));
    if (room > 0)
        return (ssize_t)room;
    long long expected = 0;
    atomic_compare_exchange_strong(&failed_since_ms, &expected, now_ms());
    errno = ENOSPC;
    return -1;
}

/* The total size of the files on the disk. */
static long long bytes_used(void)
{
    DIR *dir = opendir(getenv("GPUFL_TEST_DISK_DIR"));
    long long bytes = 0;
    struct dirent *entry;
    struct stat status;
    while (dir && (entry = readdir(dir)) != NULL)
        if (!fstatat(dirfd(dir), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) && S_ISREG(status.st_mode))
            bytes += status.st_size;
    if (dir)
        closedir(dir);
    return bytes;
}

/* Whether the file can grow to `end`. */
static bool can_grow(int fd, off_t end)
{
    const char *capacity = getenv("GPUFL_TEST_DISK_CAPACITY");
    struct stat status;
    if (!capacity || !is_on_the_disk(fd) || fstat(fd, &status) || end <= status.st_size ||
        bytes_used() + (end - status.st_size) <= atoll(capacity))
        return true;
    errno = ENOSPC;
    return false;
}

EXPORT int posix_fallocate(int fd, off_t offset, off_t size)
{
    return can_grow(fd, offset + size) ? syscall(SYS_fallocate, fd, 0, offset, size) ? errno : 0 : ENOSPC;
}

EXPORT int posix_fallocate64(int fd, off_t offset, off_t size)
{
    return posix_fallocate(fd, offset, size);
}

EXPORT ssize_t write(int fd, const void *data, size_t size)
{
    ssize_t room = take_space(fd, size);
    return room < 0 ? -1 : (ssize_t)syscall(SYS_write, fd, data, (size_t)room);
}

EXPORT ssize_t pwrite(int fd, const void *data, size_t size, off_t offset)
{
    ssize_t room = can_grow(fd, offset + (off_t)size) ? take_space(fd, size) : -1;
    return room < 0 ? -1 : (ssize_t)syscall(SYS_pwrite64, fd, data, (size_t)room, offset);
}

EXPORT ssize_t pwrite64(int fd, const void *data, size_t size, off_t offset)
{
    return pwrite(fd, data, size, offset);
}

EXPORT ssize_t writev(int fd, const struct iovec *parts, int count)
{
    size_t wanted = 0;
    for (int i = 0; i < count; i++)
        wanted += parts[i].iov_len;
    ssize_t room = take_space(fd, wanted);
    if (room < 0)
        return -1;
    if ((size_t)room == wanted)
        return (ssize_t)syscall(SYS_writev, fd, parts, count);
    /* The short write: as many bytes of the first parts as fit. */
    ssize_t done = 0;
    for (int i = 0; i < count && room > 0; i++) {
        size_t size = parts[i].iov_len < (size_t)room ? parts[i].iov_len : (size_t)room;
        ssize_t written = size ? (ssize_t)syscall(SYS_write, fd, parts[i].iov_base, size) : 0;
        if (written < 0)
            return done ? done : -1;
        done += written;
        room -= written;
    }
    return done;
}
