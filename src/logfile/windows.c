/* SPDX-License-Identifier: Apache-2.0 */
#include "logfile/windows.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { NOTE_BYTES_MAX = 64 << 10, COPY_BYTES = 128 << 10 };

/* Parses a sidecar or loss marker. */
static gpufl_status read_note(int dir_fd, const char *name, struct json_document *document, struct problem *problem)
{
    int fd = session_file_open(dir_fd, name);
    if (fd < 0)
        return problem_set(problem, errno == ENOENT ? GPUFL_E_NOT_FOUND : GPUFL_E_IO, "%s: %s", name,
                           session_file_error(errno));
    gpufl_status status = GPUFL_E_NO_MEMORY;
    char *text = malloc(NOTE_BYTES_MAX);
    ssize_t size = text ? read(fd, text, NOTE_BYTES_MAX) : -1;
    struct json_error error = {0};
    if (size >= 0)
        status = json_parse(document, text, (size_t)size, &error);
    if (status)
        problem_set(problem, status, "%s: %s", name, error.text[0] ? error.text : "cannot be read");
    free(text);
    close(fd);
    return status;
}

static bool payload_crc32(int fd, uint32_t *crc)
{
    unsigned char *block = malloc(COPY_BYTES);
    if (!block)
        return false;
    uLong sum = crc32(0, NULL, 0);
    ssize_t got;
    off_t at = 0;
    while ((got = pread(fd, block, COPY_BYTES, at)) > 0) {
        sum = crc32(sum, block, (uInt)got);
        at += got;
    }
    free(block);
    *crc = (uint32_t)sum;
    return got == 0;
}

static gpufl_status read_sidecar(const struct session_files *files, const struct session_file *window,
                                 struct json_document *sidecar, struct problem *problem)
{
    char name[SESSION_NAME_MAX];
    snprintf(name, sizeof name, ".gpufl-window.%s.%" PRIu64 ".json", channel_names[window->channel], window->index);
    return read_note(files->dir_fd, name, sidecar, problem);
}

bool window_sidecar_id(const struct session_files *files, const struct session_file *window,
                       char id[SESSION_ID_SIZE + 1])
{
    struct json_document sidecar;
    if (read_sidecar(files, window, &sidecar, NULL))
        return false;
    const char *text = json_get_text(sidecar.root, "window_id", "");
    bool is_good = session_id_is_valid(text);
    if (is_good)
        memcpy(id, text, SESSION_ID_SIZE + 1);
    json_free(&sidecar);
    return is_good;
}

bool window_matches_sidecar(const struct session_files *files, const struct session_file *window, int fd,
                            struct problem *problem)
{
    struct json_document sidecar;
    gpufl_status status = read_sidecar(files, window, &sidecar, problem);
    if (status)
        return status == GPUFL_E_NOT_FOUND;
    struct stat file;
    uint32_t crc = 0;
    int64_t declared_bytes = json_get_int(sidecar.root, "payload_bytes", -1);
    int64_t declared_crc = json_get_int(sidecar.root, "payload_crc32", -1);
    json_free(&sidecar);
    if (fstat(fd, &file) || !payload_crc32(fd, &crc)) {
        problem_set(problem, GPUFL_E_IO, "cannot be read: %s", strerror(errno));
        return false;
    }
    if (declared_bytes >= 0 && declared_bytes != (int64_t)file.st_size) {
        problem_set(problem, GPUFL_E_DAMAGED, "the size is %" PRId64 " bytes, but the sidecar declares %" PRId64,
                    (int64_t)file.st_size, declared_bytes);
        return false;
    }
    if (declared_crc >= 0 && declared_crc != (int64_t)crc) {
        problem_set(problem, GPUFL_E_DAMAGED, "the CRC does not match the sidecar");
        return false;
    }
    return true;
}

static void report(log_issue_fn on_issue, void *user, enum log_issue_kind kind, const char *file, const char *text)
{
    struct log_issue issue = {.kind = kind};
    snprintf(issue.file, sizeof issue.file, "%.127s", file);
    snprintf(issue.text, sizeof issue.text, "%s", text);
    on_issue(user, &issue);
}

static bool is_window(const struct session_file *file)
{
    return file->kind == SESSION_FILE_WINDOW || file->kind == SESSION_FILE_RETIRED;
}

static void report_gap(enum channel channel, uint64_t first, uint64_t last, log_issue_fn on_issue, void *user)
{
    char text[160], name[64];
    if (first == last)
        snprintf(text, sizeof text, "window %" PRIu64 " is missing", first);
    else
        snprintf(text, sizeof text, "windows %" PRIu64 " to %" PRIu64 " are missing", first, last);
    snprintf(name, sizeof name, "%s.%" PRIu64 ".log.gz", channel_names[channel], first);
    report(on_issue, user, LOG_ISSUE_MISSING_LINES, name, text);
}

/* Windows are numbered from 1; a number with neither a window nor a loss marker is a gap of unknown size. Files and
 * notes are both sorted by index, so one pass over both finds the gaps. */
static void report_gaps(const struct session_files *files, enum channel channel, log_issue_fn on_issue, void *user)
{
    size_t log = 0, note = files->log_count;
    uint64_t last = 0, announced = 0;
    for (;;) {
        while (log < files->log_count && (files->items[log].channel != channel || !is_window(&files->items[log])))
            log++;
        while (note < files->count && files->items[note].channel != channel)
            note++;
        if (log == files->log_count && note == files->count)
            break;
        bool is_log =
            note == files->count || (log < files->log_count && files->items[log].index <= files->items[note].index);
        const struct session_file *file = &files->items[is_log ? log++ : note++];
        if (file->kind == SESSION_FILE_SIDECAR) {
            announced = file->index;
            continue;
        }
        if (file->index > last + 1)
            report_gap(channel, last + 1, file->index - 1, on_issue, user);
        last = file->index > last ? file->index : last;
    }
    if (announced > last)
        report_gap(channel, last + 1, announced, on_issue, user);
}

void windows_report_missing(const struct session_files *files, log_issue_fn on_issue, void *user)
{
    for (size_t i = files->log_count; i < files->count; i++) {
        const struct session_file *file = &files->items[i];
        if (file->kind != SESSION_FILE_LOSS_MARKER)
            continue;
        struct json_document marker = {0};
        struct problem problem = {""};
        char text[256];
        gpufl_status status = read_note(files->dir_fd, file->name, &marker, &problem);
        snprintf(text, sizeof text, "window %" PRIu64 " was lost: %.180s", file->index,
                 status ? problem.text : json_get_text(marker.root, "reason", "no reason given"));
        report(on_issue, user, LOG_ISSUE_LOSS, file->name, text);
        if (!status)
            json_free(&marker);
    }
    for (int channel = 0; channel < CHANNEL_COUNT; channel++)
        report_gaps(files, (enum channel)channel, on_issue, user);
}
