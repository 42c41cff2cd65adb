/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/discovery.h"

#include "logfile/session_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OWNER_NONE = -2, OWNER_ROOTS = -1, OWNERS_MAX = 1 << 24 };

static const uint32_t watched_events = IN_CREATE | IN_MOVED_TO | IN_MODIFY | IN_MOVED_FROM | IN_DELETE | IN_CLOSE_WRITE;

void discovery_open(struct discovery *discovery)
{
    *discovery = (struct discovery){.fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC), .is_changed = true};
}

void discovery_close(struct discovery *discovery)
{
    if (discovery->fd >= 0)
        close(discovery->fd);
    free(discovery->owners);
    *discovery = (struct discovery){.fd = -1};
}

static bool watch(struct discovery *discovery, const char *dir, int32_t owner)
{
    int descriptor = discovery->fd < 0 ? -1 : inotify_add_watch(discovery->fd, dir, watched_events | IN_ONLYDIR);
    if (descriptor < 0 || descriptor >= OWNERS_MAX)
        return false;
    if ((size_t)descriptor >= discovery->owner_count) {
        size_t count = discovery->owner_count ? discovery->owner_count : 64;
        while (count <= (size_t)descriptor)
            count *= 2;
        int32_t *owners = realloc(discovery->owners, count * sizeof *owners);
        if (!owners)
            return false;
        for (size_t i = discovery->owner_count; i < count; i++)
            owners[i] = OWNER_NONE;
        discovery->owners = owners;
        discovery->owner_count = count;
    }
    discovery->owners[descriptor] = owner;
    return true;
}

bool discovery_watch(struct discovery *discovery, const char *dir, int32_t slot)
{
    return watch(discovery, dir, slot);
}

struct search {
    struct discovery *discovery;
    void (*on_session)(void *user, const char *dir);
    void *user;
};

static bool is_session(int parent_fd, const char *name)
{
    struct stat info;
    char lock[NAME_MAX + sizeof "/" SESSION_LOCK_NAME];
    if (session_id_is_valid(name))
        return true;
    snprintf(lock, sizeof lock, "%.255s/%s", name, SESSION_LOCK_NAME);
    return !fstatat(parent_fd, lock, &info, AT_SYMLINK_NOFOLLOW);
}

static void search_directory(const struct search *search, const char *path, int depth)
{
    DIR *dir = opendir(path);
    if (!dir) {
        search->discovery->is_incomplete |= errno != ENOENT && errno != ENOTDIR && errno != EACCES;
        return;
    }
    watch(search->discovery, path, OWNER_ROOTS);
    struct dirent *entry;
    while ((entry = readdir(dir)) != NULL) {
        char below[512];
        struct stat info;
        if (entry->d_name[0] == '.' || fstatat(dirfd(dir), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) ||
            !S_ISDIR(info.st_mode) ||
            (size_t)snprintf(below, sizeof below, "%s/%s", path, entry->d_name) >= sizeof below)
            continue;
        if (is_session(dirfd(dir), entry->d_name))
            search->on_session(search->user, below);
        else if (depth < DISCOVERY_DEPTH_MAX)
            search_directory(search, below, depth + 1);
    }
    closedir(dir);
}

gpufl_status discovery_check_root(const char *root, struct problem *problem)
{
    DIR *dir = opendir(root);
    if (dir) {
        closedir(dir);
        return GPUFL_OK;
    }
    if (errno == ENOENT)
        return problem_set(problem, GPUFL_E_NOT_FOUND, "root %.300s does not exist yet", root);
    if (errno == ENOTDIR)
        return problem_set(problem, GPUFL_E_NOT_FOUND, "root %.300s is not a directory", root);
    return problem_set(problem, GPUFL_E_IO, "root %.300s: %s", root, strerror(errno));
}

void discovery_scan(struct discovery *discovery, const char *root, void (*on_session)(void *user, const char *dir),
                    void *user)
{
    const struct search search = {discovery, on_session, user};
    struct session_files files;
    gpufl_status status = strlen(root) < 512 ? session_files_list(&files, root, NULL) : GPUFL_E_NOT_FOUND;
    if (status == GPUFL_OK) {
        session_files_free(&files);
        on_session(user, root);
    }
    discovery->is_incomplete |= status == GPUFL_E_NO_MEMORY;
    search_directory(&search, root, 1);
}

static void take_event(struct discovery *discovery, const struct inotify_event *event,
                       void (*on_change)(void *user, int32_t slot), void *user)
{
    bool is_lost = (event->mask & IN_Q_OVERFLOW) != 0;
    bool has_owner = event->wd >= 0 && (size_t)event->wd < discovery->owner_count;
    int32_t owner = has_owner ? discovery->owners[event->wd] : OWNER_NONE;
    if (is_lost) {
        discovery->is_changed = true;
        on_change(user, -1);
    } else if (owner == OWNER_ROOTS) {
        discovery->is_changed |= (event->mask & (IN_CREATE | IN_MOVED_TO)) != 0;
    } else if (owner >= 0) {
        on_change(user, owner);
    }
    if (has_owner && event->mask & IN_IGNORED)
        discovery->owners[event->wd] = OWNER_NONE;
}

void discovery_listen(struct discovery *discovery, void (*on_change)(void *user, int32_t slot), void *user)
{
    _Alignas(struct inotify_event) char buffer[16384];
    ssize_t size;
    while (discovery->fd >= 0 && (size = read(discovery->fd, buffer, sizeof buffer)) > 0) {
        for (ssize_t at = 0; at + (ssize_t)sizeof(struct inotify_event) <= size;) {
            const struct inotify_event *event = (const struct inotify_event *)(const void *)(buffer + at);
            take_event(discovery, event, on_change, user);
            at += (ssize_t)(sizeof *event + event->len);
        }
    }
}
