/* SPDX-License-Identifier: Apache-2.0 */
#include "logfile/recovery.h"

#include "base/clock.h"
#include "logfile/line.h"
#include "logfile/reader.h"
#include "logfile/segment.h"
#include "logfile/session_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct identity_search {
    struct session_identity *identity;
    bool is_found;
};

static bool take_job_start(void *user, const struct log_line *line)
{
    struct identity_search *search = user;
    if (line->type == RECORD_JOB_START && line->object) {
        search->is_found = true;
        search->identity->pid = json_get_int(line->object, "pid", -1);
        snprintf(search->identity->app, sizeof search->identity->app, "%s", json_get_text(line->object, "app", ""));
        snprintf(search->identity->session_id, sizeof search->identity->session_id, "%s",
                 json_get_text(line->object, "session_id", ""));
    }
    /* It is delivered first or not at all. */
    return false;
}

gpufl_status session_identity_read(const char *dir, struct session_identity *identity, struct problem *problem)
{
    struct identity_search search = {.identity = identity};
    struct log_summary summary;
    gpufl_status status = log_read(dir, take_job_start, NULL, &search, &summary, problem);
    if (status != GPUFL_OK)
        return status;
    if (!search.is_found)
        return problem_set(problem, GPUFL_E_NOT_FOUND, "%s: no job_start record", dir);
    return GPUFL_OK;
}

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

/* How a channel's newest file ends. */
struct channel_end {
    uint64_t last_seq;   /* of the last readable line; 0: none */
    uint64_t unreadable; /* lines after it */
    bool has_shutdown;
    bool is_torn; /* the live file's last line */
};

/* The line at [begin, end) of the file, without LF; GPUFL_E_DAMAGED when it is not a whole, undamaged one of ours. */
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
            result->has_shutdown = line_type_guess(line, size) == RECORD_SHUTDOWN;
            status = GPUFL_OK;
        }
    }
    free(line);
    return status;
}

/* Looks at the last whole line of a plain file; a few damaged ones before it are stepped over. GPUFL_E_NOT_FOUND: there
 * is no readable line, the number to go on from is in the file before. */
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
        /* Only the live file is written to, so only there a line has to be closed. */
        if (file->kind != SESSION_FILE_LIVE)
            result->is_torn = is_live_torn;
    }
    close(fd);
    return status;
}

/* GPUFL_E_NOT_FOUND: the channel has no file. */
static gpufl_status newest_end(const struct session_files *files, enum channel channel, struct channel_end *result)
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

static gpufl_status append_line(int dir_fd, enum channel channel, const struct channel_end *end,
                                const struct bytes *object)
{
    char name[SESSION_NAME_MAX], trailer[LINE_TRAILER_MAX];
    session_name_live(name, sizeof name, channel);
    struct bytes line = {0};
    if (end->is_torn)
        bytes_append_char(&line, '\n');
    bytes_append(&line, object->data, object->size);
    bytes_append(&line, trailer,
                 line_trailer(trailer, object->data, object->size, end->last_seq + end->unreadable + 1));
    gpufl_status status = GPUFL_E_IO;
    struct stat before;
    int fd = openat(dir_fd, name, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0 && !line.failed && fstat(fd, &before) == 0 && S_ISREG(before.st_mode)) {
        ssize_t written = write(fd, line.data, line.size);
        if (written == (ssize_t)line.size)
            status = GPUFL_OK;
        else if (written > 0 && ftruncate(fd, before.st_size) != 0)
            status = GPUFL_E_IO;
    }
    int saved_errno = errno;
    if (fd >= 0)
        close(fd);
    bytes_free(&line);
    errno = saved_errno;
    return status;
}

static void describe_end(struct bytes *object, const struct session_identity *identity, const struct session_end *end)
{
    bytes_append_char(object, '{');
    json_key(object, "type");
    json_text(object, "shutdown");
    json_key(object, "pid");
    json_int(object, identity->pid);
    json_key(object, "app");
    json_text(object, identity->app);
    json_key(object, "session_id");
    json_text(object, identity->session_id);
    json_key(object, "ts_ns");
    json_int(object, clock_wall_ns());
    json_key(object, "synthetic");
    json_bool(object, true);
    if (!end->is_known)
        return;
    json_key(object, "exit_code");
    json_int(object, end->exit_code);
    json_key(object, "signaled");
    json_bool(object, end->signal != 0);
    json_key(object, "signal");
    json_int(object, end->signal);
    json_key(object, "crashed");
    json_bool(object, end->signal == SIGSEGV || end->signal == SIGABRT || end->signal == SIGBUS ||
                          end->signal == SIGFPE || end->signal == SIGILL || end->signal == SIGTRAP ||
                          end->signal == SIGSYS);
}

/* The writer's lock for as long as we append, so that two launchers do not do it at once; -1: somebody has it. */
static int lock_session(int dir_fd)
{
    int fd = openat(dir_fd, SESSION_LOCK_NAME, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0 && !session_lock_take(fd)) {
        close(fd);
        return -1;
    }
    return fd;
}

gpufl_status session_append_shutdown(const char *dir, const struct session_end *end, unsigned *appended,
                                     struct problem *problem)
{
    struct session_identity identity;
    gpufl_status status = session_identity_read(dir, &identity, problem);
    if (status != GPUFL_OK)
        return status;
    struct session_files files;
    status = session_files_list(&files, dir, problem);
    if (status != GPUFL_OK)
        return status;
    *appended = 0;
    struct bytes object = {0};
    int lock_fd = lock_session(files.dir_fd);
    if (lock_fd < 0) {
        status = problem_set(problem, GPUFL_E_BUSY, "%s: the session is still being written", dir);
        goto done;
    }
    describe_end(&object, &identity, end);
    if (object.failed) {
        status = problem_set(problem, GPUFL_E_NO_MEMORY, "out of memory");
        goto done;
    }
    for (int channel = 0; channel < CHANNEL_COUNT; channel++) {
        struct channel_end channel_end;
        gpufl_status found = newest_end(&files, (enum channel)channel, &channel_end);
        if (found == GPUFL_E_NOT_FOUND || (found == GPUFL_OK && channel_end.has_shutdown))
            continue;
        if (found == GPUFL_OK)
            found = append_line(files.dir_fd, (enum channel)channel, &channel_end, &object);
        if (found == GPUFL_OK)
            (*appended)++;
        else
            status = problem_set(problem, found, "%s: the end of the %s channel could not be marked: %s", dir,
                                 channel_names[channel],
                                 found == GPUFL_E_IO ? strerror(errno) : "its last lines are damaged");
    }
done:
    if (lock_fd >= 0)
        close(lock_fd);
    bytes_free(&object);
    session_files_free(&files);
    return status;
}
