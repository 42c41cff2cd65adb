/* SPDX-License-Identifier: Apache-2.0 */
#include "logfile/session_ends.h"

#include "logfile/line.h"
#include "logfile/line_source.h"
#include "logfile/session_dir.h"
#include "logfile/session_source.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* job_start is the first line of a channel and shutdown the last, except that GPUFlight writes a few lines around
 * them. */
enum { FIRST_LINES = 16, TAIL_BYTES = 1 << 17 };

/* Returns the record as an object if the line is complete and of that type. */
static bool take_line(struct json_document *document, enum record_type type, const char *text, size_t size)
{
    if (line_type_guess(text, size) != type || line_end_read(text, size).crc == LINE_CRC_BAD)
        return false;
    json_free(document);
    return json_parse(document, text, size, NULL) == GPUFL_OK;
}

static void read_start(struct session_ends *ends, int fd, const struct session_file *file)
{
    struct line_source source;
    if (line_source_open(&source, fd, session_file_coding(file), UINT64_MAX) != GPUFL_OK)
        return;
    const char *text;
    size_t size;
    for (int i = 0; i < FIRST_LINES && line_source_next(&source, &text, &size) == LINE_WHOLE; i++)
        if (take_line(&ends->start, RECORD_JOB_START, text, size))
            break;
    line_source_close(&source);
}

/* Reads only the end of a plain file; compressed files are read completely. */
static void read_shutdown(struct session_ends *ends, int fd, const struct session_file *file, off_t file_size)
{
    struct line_source source;
    enum line_coding coding = session_file_coding(file);
    bool is_tail = coding == LINE_CODING_PLAIN && file_size > TAIL_BYTES;
    if (lseek(fd, is_tail ? file_size - TAIL_BYTES : 0, SEEK_SET) < 0 ||
        line_source_open(&source, fd, coding, UINT64_MAX) != GPUFL_OK)
        return;
    const char *text;
    size_t size;
    enum line_result result;
    while ((result = line_source_next(&source, &text, &size)) == LINE_WHOLE || result == LINE_TOO_LONG)
        if (result == LINE_WHOLE)
            (void)take_line(&ends->shutdown, RECORD_SHUTDOWN, text, size);
    line_source_close(&source);
}

static uint64_t bytes_in(int dir_fd)
{
    uint64_t total = 0;
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir && fd >= 0)
        close(fd);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        struct stat status;
        if (fstatat(fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode))
            total += (uint64_t)status.st_size;
    }
    if (dir)
        closedir(dir);
    return total;
}

/* Every channel has job_start and shutdown, so the smallest of the channels' first and last files is read. */
static void read_ends(struct session_ends *ends, const struct session_files *files, const bool *is_shadowed)
{
    const struct session_file *last = NULL;
    off_t last_size = 0;
    for (size_t i = 0; i < files->log_count; i++) {
        const struct session_file *file = &files->items[i];
        bool is_first = !i || files->items[i - 1].channel != file->channel;
        size_t next = i + 1;
        while (next < files->log_count && is_shadowed[next])
            next++;
        bool is_last = next == files->log_count || files->items[next].channel != file->channel;
        /* In the sass channel, records added to an ended session follow its shutdown. */
        is_last = is_last && file->channel != CHANNEL_SASS;
        if (is_shadowed[i] || !(is_last || (is_first && !ends->start.root)))
            continue;
        struct stat status;
        int fd = session_file_open(files->dir_fd, file->name);
        if (fd >= 0 && is_first && !ends->start.root)
            read_start(ends, fd, file);
        if (fd >= 0 && is_last && fstat(fd, &status) == 0 && (!last || status.st_size < last_size)) {
            last = file;
            last_size = status.st_size;
        }
        if (fd >= 0)
            close(fd);
    }
    int fd = last ? session_file_open(files->dir_fd, last->name) : -1;
    if (fd < 0)
        return;
    read_shutdown(ends, fd, last, last_size);
    close(fd);
}

gpufl_status session_ends_read(struct session_ends *ends, const char *path, struct problem *problem)
{
    *ends = (struct session_ends){.bytes = 0};
    struct session_files files;
    gpufl_status status = session_files_list(&files, path, problem);
    if (status)
        return status;
    ends->is_live = session_lock_is_held(files.dir_fd);
    ends->bytes = bytes_in(files.dir_fd);
    bool *is_shadowed = calloc(files.count + 1, sizeof *is_shadowed);
    if (is_shadowed) {
        session_files_mark_shadowed(&files, is_shadowed);
        read_ends(ends, &files, is_shadowed);
    } else {
        status = problem_set(problem, GPUFL_E_NO_MEMORY, "no memory to read %s", path);
    }
    free(is_shadowed);
    session_files_free(&files);
    return status;
}

void session_ends_free(struct session_ends *ends)
{
    json_free(&ends->start);
    json_free(&ends->shutdown);
}
