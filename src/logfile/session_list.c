/* SPDX-License-Identifier: Apache-2.0 */
#include "logfile/reader.h"
#include "logfile/session_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SESSIONS_MAX = 1 << 20 };

struct found {
    char id[SESSION_ID_SIZE + 1];
    struct timespec started;
};

/* The first 48 bits of a version 7 id are the wall clock's milliseconds at the start. Copying preserves them, unlike
 * file times. */
static bool id_read_start(const char *id, struct timespec *started)
{
    uint64_t ms = 0;
    if (id[14] != '7')
        return false;
    for (const char *at = id; at < id + 13; at++)
        if (*at != '-')
            ms = ms << 4 | (uint64_t)(*at <= '9' ? *at - '0' : (*at | 0x20) - 'a' + 10);
    *started = (struct timespec){.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
    return true;
}

/* From the id if possible. Otherwise from the lock file, which is created at the start and not written later, or else
 * from the directory. */
bool session_start_read(int base_fd, const char *id, struct timespec *started)
{
    char lock[SESSION_ID_SIZE + sizeof "/" SESSION_LOCK_NAME];
    struct stat status;
    if (fstatat(base_fd, id, &status, AT_SYMLINK_NOFOLLOW) || !S_ISDIR(status.st_mode))
        return false;
    if (id_read_start(id, started))
        return true;
    *started = status.st_mtim;
    snprintf(lock, sizeof lock, "%.36s/%s", id, SESSION_LOCK_NAME);
    if (!fstatat(base_fd, lock, &status, AT_SYMLINK_NOFOLLOW))
        *started = status.st_mtim;
    return true;
}

static int compare_newest_first(const void *left, const void *right)
{
    const struct found *a = left, *b = right;
    if (a->started.tv_sec != b->started.tv_sec)
        return a->started.tv_sec > b->started.tv_sec ? -1 : 1;
    if (a->started.tv_nsec != b->started.tv_nsec)
        return a->started.tv_nsec > b->started.tv_nsec ? -1 : 1;
    return strcmp(b->id, a->id);
}

static gpufl_status collect(DIR *dir, struct found **out, size_t *count, struct problem *problem)
{
    size_t capacity = 0;
    struct dirent *entry;
    while ((entry = readdir(dir)) != NULL) {
        struct timespec started;
        if (!session_id_is_valid(entry->d_name) || !session_start_read(dirfd(dir), entry->d_name, &started))
            continue;
        if (*count == capacity) {
            capacity = capacity ? capacity * 2 : 16;
            struct found *grown = capacity > SESSIONS_MAX ? NULL : realloc(*out, capacity * sizeof **out);
            if (!grown)
                return problem_set(problem, GPUFL_E_NO_MEMORY, "too many sessions to list");
            *out = grown;
        }
        struct found *found = &(*out)[(*count)++];
        memcpy(found->id, entry->d_name, sizeof found->id);
        found->started = started;
    }
    if (*count)
        qsort(*out, *count, sizeof **out, compare_newest_first);
    return GPUFL_OK;
}

gpufl_status session_list_find(struct session_list *list, const char *base, struct problem *problem)
{
    *list = (struct session_list){0};
    if (strlen(base) + 1 + SESSION_ID_SIZE >= sizeof *list->paths)
        return problem_set(problem, GPUFL_E_LIMIT, "the path is longer than %zu characters", sizeof *list->paths);
    DIR *dir = opendir(base);
    if (!dir)
        return problem_set(problem, errno == EACCES ? GPUFL_E_PERMISSION : GPUFL_E_NOT_FOUND, "cannot open %s: %s",
                           base, strerror(errno));
    struct found *found = NULL;
    size_t count = 0;
    gpufl_status status = collect(dir, &found, &count, problem);
    if (!status && count) {
        list->paths = malloc(count * sizeof *list->paths);
        if (!list->paths)
            status = problem_set(problem, GPUFL_E_NO_MEMORY, "no memory to list the sessions");
    }
    size_t base_size = strlen(base);
    bool has_slash = base_size && base[base_size - 1] == '/';
    for (size_t i = 0; !status && i < count; i++)
        snprintf(list->paths[i], sizeof *list->paths, "%s%s%s", base, has_slash ? "" : "/", found[i].id);
    list->count = status ? 0 : count;
    free(found);
    closedir(dir);
    return status;
}

void session_list_free(struct session_list *list)
{
    free(list->paths);
    *list = (struct session_list){0};
}

gpufl_status session_find_newest(const char *path, struct newest_session *newest, struct problem *problem)
{
    *newest = (struct newest_session){0};
    struct problem why = {""};
    struct session_files files;
    gpufl_status status = session_files_list(&files, path, &why);
    if (status == GPUFL_OK)
        session_files_free(&files);
    struct stat directory;
    if (status != GPUFL_E_NOT_FOUND || stat(path, &directory) || !S_ISDIR(directory.st_mode))
        return status ? problem_set(problem, status, "%s", why.text) : GPUFL_OK;
    struct session_list list;
    status = session_list_find(&list, path, problem);
    if (status)
        return status;
    if (list.count && list.paths) {
        memcpy(newest->path, list.paths[0], sizeof newest->path);
        newest->count = list.count;
    } else {
        status = problem_set(problem, GPUFL_E_NOT_FOUND, "there is no session in '%s'. Record one: gpufl trace -- CMD",
                             path);
    }
    session_list_free(&list);
    return status;
}

gpufl_status session_files_find(struct session_files *files, const char *path, struct problem *problem)
{
    struct newest_session newest;
    gpufl_status status = session_find_newest(path, &newest, problem);
    return status ? status : session_files_list(files, newest.count ? newest.path : path, problem);
}
