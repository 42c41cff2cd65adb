/* SPDX-License-Identifier: Apache-2.0 */
#include "base/rename_new.h"
#include "logfile/line.h"
#include "logfile/line_source.h"
#include "logfile/segment.h"
#include "logfile/session_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Never replaces a file: that would lose a part of the log. */
static int rename_to_new(int dir_fd, const char *from, const char *to)
{
    if (!rename_new(dir_fd, from, dir_fd, to))
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -1;
    struct stat found; /* for file systems without it */
    if (!fstatat(dir_fd, to, &found, AT_SYMLINK_NOFOLLOW)) {
        errno = EEXIST;
        return -1;
    }
    return renameat(dir_fd, from, dir_fd, to);
}

gpufl_status session_live_retire(const struct session_files *files, struct session_file *live, struct problem *problem)
{
    uint64_t last = 0;
    for (size_t i = 0; i < files->log_count; i++)
        if (files->items[i].channel == live->channel && files->items[i].index > last)
            last = files->items[i].index;
    char name[64];
    session_name_rotated(name, sizeof name, live->channel, last + 1, "");
    if (rename_to_new(files->dir_fd, live->name, name))
        return problem_set(problem, GPUFL_E_IO, "cannot rename %s: %s", live->name, strerror(errno));
    live->kind = SESSION_FILE_ROTATED;
    live->index = last + 1;
    return GPUFL_OK;
}

/* Whether the footer matches the plain file's lines, all of which are complete. */
static bool is_sealed_from(const struct segment_footer *footer, int plain_fd)
{
    struct stat info;
    struct line_source lines;
    if (fstat(plain_fd, &info) || (uint64_t)info.st_size != footer->plain_bytes ||
        line_source_open(&lines, plain_fd, LINE_CODING_PLAIN, footer->plain_bytes))
        return false;
    const char *text;
    size_t size;
    uint64_t count = 0, last_seq = 0;
    bool is_same = true;
    enum line_result result;
    while (is_same && (result = line_source_next(&lines, &text, &size)) != LINE_NO_MORE) {
        struct line_end end = result == LINE_WHOLE ? line_end_read(text, size) : (struct line_end){.seq = -1};
        is_same = end.crc == LINE_CRC_GOOD && end.seq >= 0;
        last_seq = is_same ? (uint64_t)end.seq : last_seq;
        is_same &= count++ || last_seq == footer->first_seq;
    }
    is_same &= count == footer->lines && last_seq == footer->last_seq;
    line_source_close(&lines);
    return is_same;
}

/* Handles a sealed file next to its plain file: sealing was interrupted before the unlink. A plain file with other
 * lines stays. */
static bool finish_interrupted(const struct session_files *files, const struct session_file *plain)
{
    char name[64];
    session_name_rotated(name, sizeof name, plain->channel, plain->index, ".zst");
    int fd = session_file_open(files->dir_fd, name);
    if (fd < 0)
        return false;
    struct segment_footer footer;
    bool is_whole = !segment_footer_read(fd, &footer, NULL);
    close(fd);
    int plain_fd = is_whole ? session_file_open(files->dir_fd, plain->name) : -1;
    if (plain_fd >= 0) {
        if (is_sealed_from(&footer, plain_fd))
            unlinkat(files->dir_fd, plain->name, 0);
        close(plain_fd);
    }
    return is_whole;
}

static gpufl_status seal_files(struct session_files *files, struct problem *problem)
{
    struct problem reason = {""};
    size_t kept = 0;
    for (size_t i = 0; i < files->log_count; i++) {
        struct session_file *file = &files->items[i];
        if (file->kind != SESSION_FILE_LIVE && file->kind != SESSION_FILE_ROTATED)
            continue;
        gpufl_status status = GPUFL_OK;
        bool was_live = file->kind == SESSION_FILE_LIVE;
        if (was_live)
            status = session_live_retire(files, file, problem);
        else if (finish_interrupted(files, file))
            continue;
        struct segment_footer footer;
        uint64_t sealed_bytes;
        if (!status)
            status = segment_seal(files->dir_fd, file->channel, file->index, NULL, &footer, &sealed_bytes, problem);
        if (status && was_live && file->kind == SESSION_FILE_ROTATED) {
            /* Rename it back: in a live file a torn tail is not damage. */
            char rotated[64];
            session_name_rotated(rotated, sizeof rotated, file->channel, file->index, "");
            if (renameat(files->dir_fd, rotated, files->dir_fd, file->name))
                return problem_set(problem, GPUFL_E_IO, "cannot rename %s: %s", rotated, strerror(errno));
        }
        if (status == GPUFL_E_DAMAGED && !kept++ && problem)
            reason = *problem;
        else if (status && status != GPUFL_E_DAMAGED && status != GPUFL_E_NOT_FOUND)
            return status;
    }
    if (kept)
        return problem_set(problem, GPUFL_E_DAMAGED, "%zu damaged files were not sealed: %.300s", kept, reason.text);
    return GPUFL_OK;
}

gpufl_status seal_session(const char *dir, struct problem *problem)
{
    struct session_files files;
    gpufl_status status = session_files_list(&files, dir, problem);
    if (status)
        return status;
    int lock_fd = openat(files.dir_fd, SESSION_LOCK_NAME, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (lock_fd < 0 && errno != ENOENT) {
        status = problem_set(problem, GPUFL_E_IO, "cannot open the lock of %s: %s", dir, strerror(errno));
    } else if (lock_fd >= 0 && !session_lock_take(lock_fd)) {
        status =
            problem_set(problem, GPUFL_E_BUSY, "%s is still being written; seal it after its program has ended", dir);
    } else {
        /* List again with the lock held: until now another process may have appended. */
        session_files_free(&files);
        status = session_files_list(&files, dir, problem);
        if (!status)
            status = seal_files(&files, problem);
    }
    if (lock_fd >= 0)
        close(lock_fd);
    session_files_free(&files);
    return status;
}
