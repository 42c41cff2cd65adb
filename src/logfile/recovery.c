/* SPDX-License-Identifier: Apache-2.0 */
#include "logfile/recovery.h"

#include "base/clock.h"
#include "logfile/channel_end.h"
#include "logfile/reader.h"
#include "logfile/session_dir.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
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
        snprintf(search->identity->name, sizeof search->identity->name, "%s",
                 json_get_text(line->object, "session_name", ""));
        search->identity->start_ns = json_get_int(line->object, "ts_ns", 0);
    }
    /* It is delivered first or missing. */
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
    int lock_fd = session_lock_open(files.dir_fd);
    if (lock_fd < 0) {
        status = problem_set(problem, GPUFL_E_BUSY, "%s: the session is still being written", dir);
        goto done;
    }
    /* List again with the lock held: until now another process may have appended. */
    session_files_free(&files);
    status = session_files_list(&files, dir, problem);
    if (status != GPUFL_OK)
        goto done;
    describe_end(&object, &identity, end);
    if (object.failed) {
        status = problem_set(problem, GPUFL_E_NO_MEMORY, "out of memory");
        goto done;
    }
    for (int channel = 0; channel < CHANNEL_COUNT; channel++) {
        struct channel_end channel_end;
        gpufl_status found = channel_end_find(&files, (enum channel)channel, &channel_end);
        if (found == GPUFL_E_NOT_FOUND || (found == GPUFL_OK && channel_end.has_ended))
            continue;
        if (found == GPUFL_OK)
            found = channel_end_append(&channel_end, files.dir_fd, (enum channel)channel, &object);
        if (found == GPUFL_OK)
            (*appended)++;
        else
            status = problem_set(problem, found, "%s: cannot mark the end of the %s channel: %s", dir,
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
