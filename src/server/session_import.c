/* SPDX-License-Identifier: Apache-2.0 */
#include "server/session_import.h"

#include "logfile/session_origin.h"
#include "logfile/session_source.h"
#include "store/store_catalog.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { PART_BYTES = 32 << 20, CANCEL_CHECK_BYTES = 1 << 20 };

/* Imports one file in parts, so that a large file does not exceed the memory of a write. */
struct file_import {
    struct session_import *import;
    struct ingest_head head;
    const char *name;
    struct ingest_body *body; /* NULL: no part is open */
    unsigned part;
    uint64_t part_bytes, unchecked_bytes;
};

static gpufl_status answer_status(const struct ingest_answer *answer, const char *name, struct problem *problem)
{
    /* 4xx: these lines are invalid, which does not affect the session's other files. */
    if (answer->status < 500)
        return GPUFL_OK;
    return problem_set(problem, GPUFL_E_IO, "%.100s: %.300s", name, answer->message);
}

static gpufl_status part_end(struct file_import *file, struct problem *problem)
{
    struct ingest_answer answer;
    if (!file->body)
        return GPUFL_OK;
    ingest_body_end(file->body, &answer);
    file->body = NULL;
    file->import->lines += answer.accepted;
    file->import->rejected_lines += answer.rejected;
    return answer_status(&answer, file->name, problem);
}

static gpufl_status line_add(struct file_import *file, const char *text, size_t size, struct problem *problem)
{
    struct ingest_answer answer;
    gpufl_status status = GPUFL_OK;
    if (file->body && file->part_bytes + size > PART_BYTES)
        status = part_end(file, problem);
    if (!status && !file->body) {
        file->part_bytes = 0;
        snprintf(file->head.window_id, sizeof file->head.window_id, "%.100s:%u", file->name, file->part++);
        if (ingest_body_open(&file->body, file->import->ingest, &file->head, &answer)) {
            file->body = NULL;
            return problem_set(problem, GPUFL_E_IO, "%.100s: %.300s", file->name, answer.message);
        }
    }
    if (status)
        return status;
    ingest_body_data(file->body, text, size);
    ingest_body_data(file->body, "\n", 1);
    file->part_bytes += size + 1;
    file->unchecked_bytes += size + 1;
    if (file->unchecked_bytes >= CANCEL_CHECK_BYTES) {
        file->unchecked_bytes = 0;
        if (file->import->is_cancelled && file->import->is_cancelled())
            return problem_set(problem, GPUFL_E_BUSY, "cancelled");
    }
    return GPUFL_OK;
}

static gpufl_status file_read(struct session_import *import, const struct session_files *files,
                              const struct session_file *item, struct ingest_head *head, struct problem *problem)
{
    struct file_import file = {.import = import, .head = *head, .name = item->name};
    file.head.channel = item->channel;
    struct line_source lines;
    int fd = session_file_open(files->dir_fd, item->name);
    if (fd < 0 || line_source_open(&lines, fd, session_file_coding(item), UINT64_MAX)) {
        import->unread_files++;
        if (fd >= 0)
            close(fd);
        return GPUFL_OK;
    }
    const char *text;
    size_t size;
    gpufl_status status = GPUFL_OK;
    enum line_result result;
    while (!status && (result = line_source_next(&lines, &text, &size)) != LINE_NO_MORE && result != LINE_FAILED)
        if (result == LINE_TOO_LONG)
            import->rejected_lines++;
        else
            status = line_add(&file, text, size, problem);
    if (!status && result == LINE_FAILED)
        import->unread_files++;
    if (!status)
        status = part_end(&file, problem);
    if (file.body)
        ingest_body_abort(file.body);
    line_source_close(&lines);
    close(fd);
    return status;
}

static gpufl_status files_read(struct session_import *import, const struct session_files *files,
                               struct ingest_head *head, struct problem *problem)
{
    bool *is_shadowed = calloc(files->log_count + 1, sizeof *is_shadowed);
    if (!is_shadowed)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "no memory to list the session");
    session_files_mark_shadowed(files, is_shadowed);
    gpufl_status status = GPUFL_OK;
    for (size_t i = 0; i < files->log_count && !status; i++)
        if (!is_shadowed[i])
            status = file_read(import, files, &files->items[i], head, problem);
    free(is_shadowed);
    return status;
}

gpufl_status session_import_run(struct session_import *import, const char *dir, struct problem *problem)
{
    struct session_files files;
    struct session_origin origin;
    struct ingest_head head = {.sender = "view", .coding = CONTENT_PLAIN};
    gpufl_status status = session_origin_read(&origin, dir, problem);
    if (!status && !ingest_id_is_valid(origin.id, STORE_SESSION_ID_MAX))
        status = problem_set(problem, GPUFL_E_DAMAGED, "%.300s: the session's id is not a valid one", dir);
    if (!status)
        status = session_files_list(&files, dir, problem);
    if (status)
        return status;
    snprintf(import->session_id, sizeof import->session_id, "%s", origin.id);
    snprintf(head.session_id, sizeof head.session_id, "%s", origin.id);
    snprintf(head.host, sizeof head.host, "%.*s", INGEST_HOST_SIZE - 1, origin.host);
    bool is_live = session_lock_is_held(files.dir_fd);
    status = files_read(import, &files, &head, problem);
    session_files_free(&files);
    if (!status && !import->lines)
        status =
            problem_set(problem, GPUFL_E_DAMAGED, "%.300s: none of its lines can be read; see `gpufl verify`", dir);
    if (!status && !is_live)
        status = store_session_end(import->ingest->store, import->session_id, problem);
    return status;
}
