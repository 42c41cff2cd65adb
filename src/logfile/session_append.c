/* SPDX-License-Identifier: Apache-2.0 */
#include "logfile/session_append.h"

#include "logfile/line.h"
#include "logfile/segment.h"

#include <errno.h>
#include <unistd.h>

static void append_free(struct session_append *append)
{
    if (append->lock_fd >= 0)
        close(append->lock_fd);
    session_files_free(&append->files);
    append->lock_fd = -1;
}

/* Lists the files with the lock held: a sealer or another appender would change the list. */
static gpufl_status files_lock(struct session_append *append, const char *dir, struct problem *problem)
{
    gpufl_status status = session_files_list(&append->files, dir, problem);
    if (status)
        return status;
    append->lock_fd = session_lock_open(append->files.dir_fd);
    if (append->lock_fd < 0)
        return errno == EAGAIN ? problem_set(problem, GPUFL_E_BUSY, "%s is still being written", dir)
                               : problem_set(problem, GPUFL_E_IO, "cannot lock %s: %s", dir, strerror(errno));
    session_files_free(&append->files);
    return session_files_list(&append->files, dir, problem);
}

gpufl_status session_append_open(struct session_append *append, const char *dir, enum channel channel,
                                 struct problem *problem)
{
    *append = (struct session_append){.files = {.dir_fd = -1}, .lock_fd = -1, .channel = channel, .was_sealed = true};
    gpufl_status status = files_lock(append, dir, problem);
    if (!status) {
        status = channel_end_find(&append->files, channel, &append->end);
        append->is_without_channel = status == GPUFL_E_NOT_FOUND;
        if (status)
            problem_set(problem, status, "%s: the %s channel %s", dir, channel_names[channel],
                        status == GPUFL_E_NOT_FOUND ? "has no file" : "cannot be read to its end");
    }
    for (size_t i = 0; !status && i < append->files.log_count; i++)
        append->was_sealed &= append->files.items[i].kind == SESSION_FILE_SEALED;
    if (status)
        append_free(append);
    return status;
}

static gpufl_status file_begin(struct session_append *append, struct problem *problem)
{
    for (size_t i = 0; i < append->files.log_count; i++) {
        struct session_file *file = &append->files.items[i];
        if (file->channel != append->channel || file->kind != SESSION_FILE_LIVE)
            continue;
        gpufl_status status = session_live_retire(&append->files, file, problem);
        if (status)
            return status;
        append->end.is_torn = false;
    }
    append->has_file = true;
    return GPUFL_OK;
}

gpufl_status session_append_line(struct session_append *append, const struct bytes *object, struct problem *problem)
{
    if (object->failed || object->size > LINE_SIZE_MAX - LINE_TRAILER_MAX)
        return problem_set(problem, GPUFL_E_LIMIT, "a line exceeds the size limit of a log");
    gpufl_status status = append->has_file ? GPUFL_OK : file_begin(append, problem);
    if (status)
        return status;
    status = channel_end_append(&append->end, append->files.dir_fd, append->channel, object);
    return status ? problem_set(problem, status, "cannot write %s.log: %s", channel_names[append->channel],
                                status == GPUFL_E_IO ? strerror(errno) : "no memory")
                  : GPUFL_OK;
}

gpufl_status session_append_close(struct session_append *append, const char *dir, struct problem *problem)
{
    bool is_to_seal = append->has_file && append->was_sealed;
    append_free(append);
    return is_to_seal ? seal_session(dir, problem) : GPUFL_OK;
}
