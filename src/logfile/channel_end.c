/* SPDX-License-Identifier: Apache-2.0 */
#include "logfile/channel_end.h"

#include "logfile/line.h"
#include "logfile/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* Offset of the last LF before `end`, or -1. */
static off_t line_feed_before(int fd, off_t end)
{
    char block[65536];
    while (end > 0) {
        off_t begin = end > (off_t)sizeof block ? end - (off_t)sizeof block : 0;
        ssize_t size = pread(fd, block, (size_t)(end - begin), begin);
        if (size <= 0)
            return -1;
        const char *found = memrchr(block, '\n', (size_t)size);
        if (found)
            return begin + (found - block);
        end = begin;
    }
    return -1;
}

/* Reads the line at [begin, end) of the file, without LF; GPUFL_E_DAMAGED: it is not a complete, undamaged line of
 * ours. */
static gpufl_status read_line_end(int fd, off_t begin, off_t end, struct channel_end *result)
{
    size_t size = (size_t)(end - begin);
    if (size > LINE_SIZE_MAX)
        return GPUFL_E_DAMAGED;
    char *line = malloc(size + 1);
    if (!line)
        return GPUFL_E_NO_MEMORY;
    gpufl_status status = GPUFL_E_DAMAGED;
    if (pread(fd, line, size, begin) == (ssize_t)size) {
        struct line_end read = line_end_read(line, size);
        if (read.crc == LINE_CRC_GOOD && read.seq >= 0) {
            result->last_seq = (uint64_t)read.seq;
            enum record_type type = line_type_guess(line, size);
            result->has_ended = type == RECORD_SHUTDOWN || type == RECORD_CUBIN_DISASSEMBLY;
            status = GPUFL_OK;
        }
    }
    free(line);
    return status;
}

/* Finds the last complete line of a plain file; a few damaged lines before it are skipped. GPUFL_E_NOT_FOUND: there is
 * no readable line; the number to continue from is in the previous file. */
static gpufl_status plain_end(int fd, struct channel_end *result)
{
    struct stat file;
    if (fstat(fd, &file) != 0)
        return GPUFL_E_IO;
    off_t end = line_feed_before(fd, file.st_size);
    result->is_torn = end + 1 < file.st_size;
    result->unreadable += result->is_torn;
    for (int tries = 0; tries < 16 && end >= 0; tries++) {
        off_t before = line_feed_before(fd, end);
        gpufl_status status = read_line_end(fd, before + 1, end, result);
        if (status != GPUFL_E_DAMAGED)
            return status;
        result->unreadable++;
        end = before;
    }
    return end >= 0 ? GPUFL_E_DAMAGED : GPUFL_E_NOT_FOUND;
}

static gpufl_status file_end(int dir_fd, const struct session_file *file, struct channel_end *result)
{
    int fd = session_file_open(dir_fd, file->name);
    if (fd < 0)
        return GPUFL_E_IO;
    gpufl_status status;
    if (file->kind == SESSION_FILE_SEALED) {
        struct segment_footer footer;
        status = segment_footer_read(fd, &footer, NULL);
        if (status == GPUFL_OK)
            result->last_seq = footer.last_seq;
    } else {
        bool is_live_torn = result->is_torn;
        status = plain_end(fd, result);
        /* Only the live file is appended to, so only its last line may need terminating. */
        if (file->kind != SESSION_FILE_LIVE)
            result->is_torn = is_live_torn;
    }
    close(fd);
    return status;
}

gpufl_status channel_end_find(const struct session_files *files, enum channel channel, struct channel_end *result)
{
    bool has_file = false;
    gpufl_status status = GPUFL_E_NOT_FOUND;
    memset(result, 0, sizeof *result);
    for (size_t i = files->log_count; i-- > 0 && status == GPUFL_E_NOT_FOUND;) {
        const struct session_file *file = &files->items[i];
        if (file->channel != channel || (file->kind != SESSION_FILE_LIVE && file->kind != SESSION_FILE_ROTATED &&
                                         file->kind != SESSION_FILE_SEALED))
            continue;
        has_file = true;
        status = file_end(files->dir_fd, file, result);
    }
    return has_file && status == GPUFL_E_NOT_FOUND ? GPUFL_OK : status;
}

/* Writes the line completely or not; false with errno. */
static bool line_write(int fd, const struct bytes *line)
{
    struct stat before;
    struct rlimit limit;
    if (fstat(fd, &before) != 0)
        return false;
    if (!S_ISREG(before.st_mode)) {
        errno = EINVAL;
        return false;
    }
    /* A write beyond this limit does not only fail: SIGXFSZ would kill the program. */
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        (uint64_t)before.st_size + line->size > limit.rlim_cur) {
        errno = EFBIG;
        return false;
    }
    ssize_t written = write(fd, line->data, line->size);
    if (written == (ssize_t)line->size)
        return true;
    int error = written < 0 ? errno : ENOSPC;
    if (written > 0 && ftruncate(fd, before.st_size) != 0)
        error = errno;
    errno = error;
    return false;
}

gpufl_status channel_end_append(struct channel_end *end, int dir_fd, enum channel channel, const struct bytes *object)
{
    char name[SESSION_NAME_MAX], trailer[LINE_TRAILER_MAX];
    session_name_live(name, sizeof name, channel);
    struct bytes line = {0};
    if (end->is_torn)
        bytes_append_char(&line, '\n');
    bytes_append(&line, object->data, object->size);
    const uint64_t seq = end->last_seq + end->unreadable + 1;
    bytes_append(&line, trailer, line_trailer(trailer, object->data, object->size, seq));
    int fd = openat(dir_fd, name, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    gpufl_status status = line.failed ? GPUFL_E_NO_MEMORY : fd >= 0 && line_write(fd, &line) ? GPUFL_OK : GPUFL_E_IO;
    int saved_errno = errno;
    if (fd >= 0)
        close(fd);
    bytes_free(&line);
    if (!status)
        *end = (struct channel_end){.last_seq = seq, .has_ended = true};
    errno = saved_errno;
    return status;
}
