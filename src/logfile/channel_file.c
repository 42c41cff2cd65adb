/* SPDX-License-Identifier: Apache-2.0 */
#include "logfile/channel_file.h"

#include "base/clock.h"
#include "logfile/line.h"
#include "logfile/session_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

void channel_file_init(struct channel_file *file, enum channel channel, const struct channel_file_options *options)
{
    *file = (struct channel_file){.options = options, .channel = channel, .fd = -1};
}

void channel_file_close(struct channel_file *file)
{
    int fd = file->fd;
    file->fd = -1; /* before close: a forked child must never close a descriptor number that may have been reused */
    if (fd >= 0)
        close(fd);
}

/* The live file becomes a rotated one; the next line creates a new live file. */
static void rotate(struct channel_file *file)
{
    const struct channel_file_options *options = file->options;
    char live[64], rotated[64];
    session_name_live(live, sizeof live, file->channel);
    session_name_rotated(rotated, sizeof rotated, file->channel, file->segment + 1, "");
    if (renameat(options->dir_fd, live, options->dir_fd, rotated)) {
        file->rotate_at_bytes = file->size + options->rotate_bytes; /* continue in this file and try again later */
        file->opened_ns = clock_mono_ns();
        return;
    }
    file->segment++;
    channel_file_close(file);
    if (options->on_rotated)
        options->on_rotated(options->user, file->channel, file->segment, file->size);
}

static int open_live(struct channel_file *file)
{
    char name[64];
    session_name_live(name, sizeof name, file->channel);
    int fd = openat(file->options->dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return errno;
    file->fd = fd;
    file->is_torn = false;
    file->size = 0;
    file->rotate_at_bytes = file->options->rotate_bytes;
    file->opened_ns = file->options->rotate_age_ms ? clock_mono_ns() : 0;
    return 0;
}

static bool is_due_for_rotation(const struct channel_file *file, size_t size, uint64_t size_limit)
{
    if (file->size == 0)
        return false;
    if (file->size + size > file->rotate_at_bytes || file->size + size > size_limit)
        return true;
    uint64_t age_ms = file->options->rotate_age_ms;
    return age_ms && clock_mono_ns() - file->opened_ns >= (int64_t)age_ms * 1000000;
}

/* Makes sure that a live file with room for `size` bytes is open; returns 0 or an errno. */
static int prepare(struct channel_file *file, size_t size)
{
    /* A write beyond RLIMIT_FSIZE does not only fail: SIGXFSZ would kill the user's program. */
    struct rlimit limit = {.rlim_cur = RLIM_INFINITY};
    getrlimit(RLIMIT_FSIZE, &limit);
    uint64_t size_limit = limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur;
    if (size > size_limit)
        return EFBIG;
    if (file->fd >= 0 && file->is_torn) {
        if (ftruncate(file->fd, (off_t)file->size))
            return errno;
        file->is_torn = false;
    }
    if (file->fd >= 0 && is_due_for_rotation(file, size, size_limit))
        rotate(file);
    if (file->fd >= 0)
        return file->size + size > size_limit ? EFBIG : 0;
    return open_live(file);
}

/* Writes both parts completely. Otherwise returns an errno and truncates the file to its previous size. */
static int write_whole(struct channel_file *file, struct iovec parts[2])
{
    struct iovec *part = parts;
    int count = 2;
    while (count) {
        ssize_t written = writev(file->fd, part, count);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0) {
            int error = written < 0 ? errno : EIO;
            file->is_torn = ftruncate(file->fd, (off_t)file->size) != 0;
            return error;
        }
        size_t left = (size_t)written;
        while (count && left >= part->iov_len) {
            left -= part->iov_len;
            part++;
            count--;
        }
        if (count) {
            part->iov_base = (char *)part->iov_base + left;
            part->iov_len -= left;
        }
    }
    return 0;
}

int channel_file_write(struct channel_file *file, struct queued_line *line, uint64_t *bytes)
{
    char trailer[LINE_TRAILER_MAX];
    size_t trailer_size = line_trailer(trailer, line->data, line->size, line->seq);
    size_t size = line->size + trailer_size;
    int error = prepare(file, size);
    if (error)
        return error;
    struct iovec parts[2] = {{line->data, line->size}, {trailer, trailer_size}};
    error = write_whole(file, parts);
    if (error)
        return error;
    file->size += size;
    *bytes = size;
    if (file->options->fsync_always)
        fdatasync(file->fd);
    return 0;
}
