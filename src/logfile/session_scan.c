/* SPDX-License-Identifier: Apache-2.0 */
#include "logfile/session_scan.h"

#include "logfile/recovery.h"
#include "logfile/session_dir.h"

#include <dirent.h>
#include <limits.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SESSIONS_MAX = 1 << 20 };

static gpufl_status add(struct session_scan *scan, const char *dir, const char *name, int64_t start_ns, unsigned group,
                        struct problem *problem)
{
    if (scan->count == scan->capacity) {
        size_t capacity = scan->capacity ? scan->capacity * 2 : 16;
        struct session_place *items =
            capacity > SESSIONS_MAX ? NULL : realloc(scan->items, capacity * sizeof *scan->items);
        if (!items)
            return problem_set(problem, GPUFL_E_NO_MEMORY, "too many sessions to list in '%s'", dir);
        scan->items = items;
        scan->capacity = capacity;
    }
    struct session_place *place = &scan->items[scan->count];
    *place = (struct session_place){.start_ns = start_ns, .group = group};
    size_t size = strlen(dir);
    bool is_here = strcmp(dir, ".") == 0 && *name;
    int written = snprintf(place->path, sizeof place->path, "%s%s%s", is_here ? "" : dir,
                           is_here || !*name || (size && dir[size - 1] == '/') ? "" : "/", name);
    if (written > 0 && (size_t)written < sizeof place->path)
        scan->count++;
    return GPUFL_OK;
}

static int64_t timespec_ns(const struct timespec *time)
{
    return (int64_t)time->tv_sec * 1000000000 + time->tv_nsec;
}

/* A session whose directory is not named by its id, such as a copy. It must also start like a session: a file named
 * system.log is not enough. */
static gpufl_status add_named_directory(struct session_scan *scan, const char *dir, const char *name,
                                        struct problem *problem)
{
    char path[SESSION_PATH_SIZE];
    struct session_identity identity;
    int size = snprintf(path, sizeof path, "%s%s%s", dir, *name ? "/" : "", name);
    if (size < 0 || (size_t)size >= sizeof path)
        return GPUFL_OK;
    gpufl_status status = session_identity_read(path, &identity, NULL);
    if (status == GPUFL_E_UNSUPPORTED) /* of a newer format: a session, of which no more is known */
        identity = (struct session_identity){.start_ns = 0};
    else if (status != GPUFL_OK)
        return GPUFL_OK;
    return add(scan, dir, name, identity.start_ns, scan->group_count++, problem);
}

static gpufl_status scan_directory(struct session_scan *scan, const char *dir, const char *name, int fd, unsigned depth,
                                   struct problem *problem);

/* One level down. Directories that cannot be opened are skipped. */
static gpufl_status scan_child(struct session_scan *scan, const char *dir, int dir_fd, const char *name,
                               struct problem *problem)
{
    int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
    return fd < 0 ? GPUFL_OK : scan_directory(scan, dir, name, fd, 0, problem);
}

/* dir/name; takes over fd. */
static gpufl_status scan_directory(struct session_scan *scan, const char *dir, const char *name, int fd, unsigned depth,
                                   struct problem *problem)
{
    DIR *stream = fdopendir(fd);
    if (!stream) {
        close(fd);
        return GPUFL_OK;
    }
    char path[SESSION_PATH_SIZE];
    bool is_here = strcmp(dir, ".") == 0 && *name;
    int size = snprintf(path, sizeof path, "%s%s%s", is_here ? "" : dir, is_here || !*name ? "" : "/", name);
    gpufl_status status = GPUFL_OK;
    bool has_log = false, has_session = false, is_short = size > 0 && (size_t)size < sizeof path;
    unsigned group = scan->group_count++;
    for (struct dirent *entry; is_short && !status && (entry = readdir(stream));) {
        struct timespec started;
        if (session_id_is_valid(entry->d_name)) {
            if (!session_start_read(fd, entry->d_name, &started))
                continue;
            has_session = true;
            status = add(scan, path, entry->d_name, timespec_ns(&started), group, problem);
        } else if (session_file_is_log(entry->d_name)) {
            has_log = true;
        } else if (depth && entry->d_name[0] != '.' &&
                   (entry->d_type == DT_DIR || entry->d_type == DT_LNK || entry->d_type == DT_UNKNOWN)) {
            status = scan_child(scan, path, fd, entry->d_name, problem);
        }
    }
    closedir(stream);
    return status || has_session || !has_log ? status : add_named_directory(scan, dir, name, problem);
}

static int compare_newest_first(const void *left, const void *right)
{
    const struct session_place *a = left, *b = right;
    if (a->start_ns != b->start_ns)
        return a->start_ns > b->start_ns ? -1 : 1;
    return strcmp(b->path, a->path);
}

static gpufl_status scan_below(struct session_scan *scan, const char *dir, struct problem *problem)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return problem_set(problem, errno == EACCES ? GPUFL_E_PERMISSION : GPUFL_E_NOT_FOUND, "cannot open '%s': %s",
                           dir, strerror(errno));
    return scan_directory(scan, dir, "", fd, 1, problem);
}

static gpufl_status finish(struct session_scan *scan, gpufl_status status)
{
    if (status)
        session_scan_free(scan);
    else if (scan->count)
        qsort(scan->items, scan->count, sizeof *scan->items, compare_newest_first);
    return status;
}

gpufl_status session_scan_find(struct session_scan *scan, const char *dir, struct problem *problem)
{
    *scan = (struct session_scan){0};
    return finish(scan, scan_below(scan, dir, problem));
}

gpufl_status session_scan_find_here(struct session_scan *scan, struct problem *problem)
{
    *scan = (struct session_scan){0};
    gpufl_status status = scan_below(scan, ".", problem);
    const char *dir = getenv("GPUFL_LOG_DIR");
    char here[PATH_MAX], there[PATH_MAX];
    size_t size = realpath(".", here) ? strlen(here) : 0;
    /* Sessions directly below the working directory were found already. */
    bool is_elsewhere =
        dir && *dir && realpath(dir, there) &&
        (!size || strncmp(there, here, size) != 0 || (there[size] && strchr(there + size + 1, '/') != NULL));
    if (!status && is_elsewhere && scan_below(scan, dir, NULL) == GPUFL_E_NO_MEMORY)
        status = problem_set(problem, GPUFL_E_NO_MEMORY, "too many sessions to list in '%s'", dir);
    return finish(scan, status);
}

static int compare_in_group(const void *left, const void *right)
{
    const struct session_place *a = *(struct session_place *const *)left, *b = *(struct session_place *const *)right;
    if (a->group != b->group)
        return a->group < b->group ? -1 : 1;
    return -compare_newest_first(a, b);
}

static void name_one(struct session_place *place, uint64_t *number)
{
    struct session_identity identity;
    const char *slash = strrchr(place->path, '/'), *last = slash ? slash + 1 : place->path;
    bool has_id = session_id_is_valid(last);
    if (has_id && !short_name_read(AT_FDCWD, place->path, place->name) &&
        session_identity_read(place->path, &identity, NULL) == GPUFL_OK) {
        if (short_name_number(identity.name, NULL))
            memcpy(place->name, identity.name, sizeof place->name);
        else
            short_name_make(place->name, identity.app, *number + 1);
    } else if (!has_id) {
        snprintf(place->name, sizeof place->name, "%.*s", SHORT_NAME_SIZE - 1, last);
    }
    *number = has_id && *place->name ? short_name_number(place->name, NULL) : *number + 1;
}

void session_scan_name(struct session_scan *scan)
{
    struct session_place **order = calloc(scan->count + 1, sizeof *order);
    for (size_t i = 0; order && i < scan->count; i++)
        order[i] = &scan->items[i];
    if (order && scan->count)
        qsort(order, scan->count, sizeof *order, compare_in_group);
    uint64_t number = 0;
    for (size_t i = 0; order && i < scan->count; i++) {
        if (i && order[i]->group != order[i - 1]->group)
            number = 0;
        name_one(order[i], &number);
    }
    free(order);
}

void session_scan_free(struct session_scan *scan)
{
    free(scan->items);
    *scan = (struct session_scan){0};
}
