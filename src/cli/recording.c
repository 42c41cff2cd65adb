/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/recording.h"

#include "cli/command.h"
#include "logfile/recovery.h"
#include "logfile/session_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* mkdir -p with mode 0700; errno on failure. */
static bool make_directories(const char *path)
{
    char part[PATH_MAX];
    size_t size = strlen(path);
    if (size == 0 || size >= sizeof part) {
        errno = size ? ENAMETOOLONG : ENOENT;
        return false;
    }
    for (size_t at = 1; at <= size; at++) {
        if (path[at] != '/' && path[at] != '\0')
            continue;
        memcpy(part, path, at);
        part[at] = '\0';
        if (mkdir(part, 0700) != 0 && errno != EEXIST && errno != EISDIR) {
            /* EROFS and EACCES are reported for directories that exist as well. */
            int error = errno;
            struct stat state;
            if (stat(part, &state) != 0 || !S_ISDIR(state.st_mode)) {
                errno = error;
                return false;
            }
        }
    }
    struct stat state;
    if (stat(path, &state) != 0)
        return false;
    errno = ENOTDIR;
    return S_ISDIR(state.st_mode);
}

gpufl_status recording_prepare(struct recording *recording, const char *dir, struct problem *problem)
{
    memset(recording, 0, sizeof *recording);
    recording->dir = dir;
    recording->is_dir_new = access(dir, F_OK) != 0;
    if (!make_directories(dir) || access(dir, R_OK | W_OK | X_OK) != 0)
        return problem_set(problem, GPUFL_E_IO, "cannot record into '%s': %s", dir, strerror(errno));
    /* An empty directory holds no sessions: that is no failure here. */
    if (session_list_find(&recording->before, dir, NULL) != GPUFL_OK)
        memset(&recording->before, 0, sizeof recording->before);
    return GPUFL_OK;
}

static bool list_has(const struct session_list *list, const char *path)
{
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->paths[i], path) == 0)
            return true;
    }
    return false;
}

static void swap_paths(struct session_list *list, size_t a, size_t b)
{
    char path[sizeof list->paths[0]];
    memcpy(path, list->paths[a], sizeof path);
    memcpy(list->paths[a], list->paths[b], sizeof path);
    memcpy(list->paths[b], path, sizeof path);
}

/* Its process goes on: one that the program started and did not wait for. */
bool recording_is_written(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool is_held = fd >= 0 && session_lock_is_held(fd);
    if (fd >= 0)
        close(fd);
    return is_held;
}

void recording_collect(struct recording *recording, const struct child_result *child)
{
    struct session_list *found = &recording->found;
    if (session_list_find(found, recording->dir, NULL) != GPUFL_OK) {
        memset(found, 0, sizeof *found);
        return;
    }
    size_t kept = 0, own = 0;
    for (size_t i = 0; i < found->count; i++) {
        struct session_identity identity;
        /* Without a job_start nothing was recorded yet: an empty directory of a process that died at once. */
        if (list_has(&recording->before, found->paths[i]))
            continue;
        if (session_identity_read(found->paths[i], &identity, NULL) != GPUFL_OK) {
            if (recording_is_written(found->paths[i]))
                snprintf(recording->begun, sizeof recording->begun, "%s", found->paths[i]);
            continue;
        }
        bool is_own = identity.pid == child->pid;
        bool may_live = !is_own && identity.pid > 0 && kill((pid_t)identity.pid, 0) == 0;
        struct session_end end = {.is_known = is_own, .exit_code = child->exit_code, .signal = child->signal};
        struct problem problem = {""};
        unsigned appended = 0;
        gpufl_status status =
            may_live ? GPUFL_E_BUSY : session_append_shutdown(found->paths[i], &end, &appended, &problem);
        if (status != GPUFL_OK && status != GPUFL_E_BUSY)
            command_error("trace", "%s", problem.text);
        swap_paths(found, kept, i);
        if (is_own)
            swap_paths(found, own++, kept);
        kept++;
    }
    found->count = kept;
    recording->own_count = own;
}

void recording_free(struct recording *recording)
{
    /* Fails when it is not empty, which is meant. */
    if (recording->is_dir_new && !recording->found.count)
        rmdir(recording->dir);
    session_list_free(&recording->before);
    session_list_free(&recording->found);
}
