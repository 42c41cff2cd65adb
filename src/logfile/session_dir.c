/* SPDX-License-Identifier: Apache-2.0 */
#include "logfile/session_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES_MAX ((size_t)1 << 20)

bool session_id_is_valid(const char *text)
{
    for (int i = 0; i < SESSION_ID_SIZE; i++) {
        bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;
        char c = text[i];
        bool is_hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
        if (is_dash ? c != '-' : !is_hex)
            return false;
    }
    return text[SESSION_ID_SIZE] == '\0';
}

void session_name_live(char *out, size_t size, enum channel channel)
{
    snprintf(out, size, "%s.log", channel_names[channel]);
}

void session_name_rotated(char *out, size_t size, enum channel channel, uint64_t index, const char *suffix)
{
    snprintf(out, size, "%s.%06" PRIu64 ".log%s", channel_names[channel], index, suffix);
}

int session_file_open(int dir_fd, const char *name)
{
    /* Open ".tmp" separately: O_NOFOLLOW checks only the last component of ".tmp/x.log". */
    int parent_fd = dir_fd;
    if (!strncmp(name, ".tmp/", 5)) {
        parent_fd = openat(dir_fd, ".tmp", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (parent_fd < 0)
            return -1;
        name += 5;
    }
    /* O_NONBLOCK: opening a FIFO must not block the reader. */
    int fd = openat(parent_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    int error = errno;
    if (parent_fd != dir_fd)
        close(parent_fd);
    struct stat status;
    if (fd >= 0 && (fstat(fd, &status) || !S_ISREG(status.st_mode))) {
        close(fd);
        fd = -1;
        error = EINVAL;
    }
    errno = error;
    return fd;
}

const char *session_file_error(int error)
{
    switch (error) {
    case ELOOP:
        return "symbolic links are not followed";
    case EINVAL:
        return "not a regular file";
    default:
        return strerror(error);
    }
}

bool session_lock_take(int lock_fd)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
#ifdef F_OFD_SETLK
    /* Unlike an F_SETLK lock, this lock is not released when the program opens and closes the same file. */
    if (!fcntl(lock_fd, F_OFD_SETLK, &lock))
        return true;
    if (errno != EINVAL)
        return false;
#endif
    return !fcntl(lock_fd, F_SETLK, &lock);
}

int session_lock_open(int dir_fd)
{
    int fd = openat(dir_fd, SESSION_LOCK_NAME, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0 && !session_lock_take(fd)) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

enum session_lock_state session_lock_look(int dir_fd)
{
    int fd = session_file_open(dir_fd, SESSION_LOCK_NAME);
    if (fd < 0)
        return errno == ENOENT ? SESSION_LOCK_FREE : SESSION_LOCK_UNKNOWN;
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
#ifdef F_OFD_GETLK
    int result = fcntl(fd, F_OFD_GETLK, &lock);
    if (result && errno == EINVAL)
        result = fcntl(fd, F_GETLK, &lock);
#else
    int result = fcntl(fd, F_GETLK, &lock);
#endif
    close(fd);
    if (result)
        return SESSION_LOCK_UNKNOWN;
    return lock.l_type == F_UNLCK ? SESSION_LOCK_FREE : SESSION_LOCK_HELD;
}

bool session_lock_is_held(int dir_fd)
{
    return session_lock_look(dir_fd) == SESSION_LOCK_HELD;
}

/* Reads a number without sign or leading characters; returns the end, or NULL. */
static const char *read_index(const char *at, uint64_t *index)
{
    const char *begin = at;
    *index = 0;
    while (*at >= '0' && *at <= '9' && at - begin < 18)
        *index = *index * 10 + (uint64_t)(*at++ - '0');
    return at == begin ? NULL : at;
}

static const char *read_channel(const char *at, enum channel *channel)
{
    for (int i = 0; i < CHANNEL_COUNT; i++) {
        size_t size = strlen(channel_names[i]);
        if (!strncmp(at, channel_names[i], size) && at[size] == '.') {
            *channel = (enum channel)i;
            return at + size + 1;
        }
    }
    return NULL;
}

/* <prefix><channel>.<N>.json */
static bool parse_note(const char *name, const char *prefix, struct session_file *file)
{
    size_t size = strlen(prefix);
    const char *at = strncmp(name, prefix, size) ? NULL : read_channel(name + size, &file->channel);
    at = at ? read_index(at, &file->index) : NULL;
    return at && !strcmp(at, ".json");
}

static bool parse_ours(const char *name, bool is_tmp, struct session_file *file)
{
    const char *at = read_channel(name, &file->channel);
    if (!at)
        return false;
    if (!strcmp(at, "log")) {
        file->kind = is_tmp ? SESSION_FILE_ACTIVE : SESSION_FILE_LIVE;
        return true;
    }
    at = read_index(at, &file->index);
    if (!at || !file->index)
        return false;
    if (!strcmp(at, ".log"))
        file->kind = is_tmp ? SESSION_FILE_RETIRED : SESSION_FILE_ROTATED;
    else if (!strcmp(at, ".log.zst") && !is_tmp)
        file->kind = SESSION_FILE_SEALED;
    else if (!strcmp(at, ".log.gz") && !is_tmp)
        file->kind = SESSION_FILE_WINDOW;
    else
        return false;
    return true;
}

bool session_file_is_log(const char *name)
{
    struct session_file file = {.index = 0};
    return parse_ours(name, false, &file);
}

/* <app>.<channel>.log or <app>.<channel>.log.<N>; app may contain dots. */
static bool parse_flat(const char *name, struct session_file *file)
{
    for (const char *dot = strchr(name, '.'); dot; dot = strchr(dot + 1, '.')) {
        const char *at = dot == name ? NULL : read_channel(dot + 1, &file->channel);
        if (!at || strncmp(at, "log", 3))
            continue;
        at += 3;
        if (*at == '.')
            at = read_index(at + 1, &file->index);
        if (at && !*at) {
            file->kind = SESSION_FILE_FLAT;
            file->app_size = (size_t)(dot - name);
            return true;
        }
        file->index = 0;
    }
    return false;
}

static bool parse_name(const char *name, bool is_tmp, struct session_file *file)
{
    *file = (struct session_file){.index = 0};
    if (strlen(name) + 6 > sizeof file->name)
        return false;
    snprintf(file->name, sizeof file->name, "%s%.*s", is_tmp ? ".tmp/" : "", SESSION_NAME_MAX - 6, name);
    if (parse_ours(name, is_tmp, file))
        return true;
    if (is_tmp)
        return false;
    if (parse_note(name, ".gpufl-window.", file)) {
        file->kind = SESSION_FILE_SIDECAR;
        return true;
    }
    if (parse_note(name, ".gpufl-transport-loss.", file)) {
        file->kind = SESSION_FILE_LOSS_MARKER;
        return true;
    }
    file->index = 0;
    return parse_flat(name, file);
}

static gpufl_status add_file(struct session_files *files, const struct session_file *file, struct problem *problem)
{
    if (files->count == files->capacity) {
        size_t capacity = files->capacity ? files->capacity * 2 : 16;
        if (capacity > FILES_MAX)
            return problem_set(problem, GPUFL_E_LIMIT, "the session directory contains more than %zu files", FILES_MAX);
        struct session_file *items = realloc(files->items, capacity * sizeof *items);
        if (!items)
            return problem_set(problem, GPUFL_E_NO_MEMORY, "no memory to list the session directory");
        files->items = items;
        files->capacity = capacity;
    }
    files->items[files->count++] = *file;
    return GPUFL_OK;
}

/* Takes over fd. */
static gpufl_status list_directory(struct session_files *files, int fd, bool is_tmp, struct problem *problem)
{
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        gpufl_status status =
            problem_set(problem, GPUFL_E_IO, "cannot list the session directory: %s", strerror(errno));
        if (fd >= 0)
            close(fd);
        return status;
    }
    gpufl_status status = GPUFL_OK;
    struct dirent *entry;
    while (!status && (entry = readdir(dir)) != NULL) {
        struct session_file file;
        if (parse_name(entry->d_name, is_tmp, &file))
            status = add_file(files, &file, problem);
    }
    closedir(dir);
    return status;
}

static int compare_number(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static bool is_note(const struct session_file *file)
{
    return file->kind == SESSION_FILE_SIDECAR || file->kind == SESSION_FILE_LOSS_MARKER;
}

/* Numbered files come before the one being written; the flat layout numbers backwards. */
static int compare_files(const void *left, const void *right)
{
    const struct session_file *a = left, *b = right;
    if (is_note(a) != is_note(b))
        return is_note(a) ? 1 : -1;
    if (a->channel != b->channel)
        return compare_number(a->channel, b->channel);
    bool is_flat_a = a->kind == SESSION_FILE_FLAT, is_flat_b = b->kind == SESSION_FILE_FLAT;
    if (is_flat_a != is_flat_b)
        return is_flat_a ? -1 : 1;
    if (is_flat_a) {
        int order = compare_number(a->app_size, b->app_size);
        order = order ? order : memcmp(a->name, b->name, a->app_size);
        return order ? order : -compare_number(a->index, b->index);
    }
    uint64_t index_a = a->index ? a->index : UINT64_MAX, index_b = b->index ? b->index : UINT64_MAX;
    int order = compare_number(index_a, index_b);
    return order ? order : compare_number(a->kind, b->kind);
}

/* Fills items from dir_fd. */
static gpufl_status list_items(struct session_files *files, struct problem *problem)
{
    files->count = files->log_count = 0;
    gpufl_status status =
        list_directory(files, openat(files->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), false, problem);
    int tmp_fd = openat(files->dir_fd, ".tmp", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (!status && tmp_fd >= 0)
        status = list_directory(files, tmp_fd, true, problem);
    else if (tmp_fd >= 0)
        close(tmp_fd);
    if (files->count)
        qsort(files->items, files->count, sizeof *files->items, compare_files);
    while (files->log_count < files->count && !is_note(&files->items[files->log_count]))
        files->log_count++;
    return status;
}

gpufl_status session_files_list(struct session_files *files, const char *path, struct problem *problem)
{
    *files = (struct session_files){.dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (files->dir_fd < 0) {
        gpufl_status status = errno == ENOENT || errno == ENOTDIR ? GPUFL_E_NOT_FOUND
                              : errno == EACCES                   ? GPUFL_E_PERMISSION
                                                                  : GPUFL_E_IO;
        return problem_set(problem, status, "cannot open %s: %s", path, strerror(errno));
    }
    gpufl_status status = list_items(files, problem);
    struct stat lock;
    if (!status && !files->count && fstatat(files->dir_fd, SESSION_LOCK_NAME, &lock, AT_SYMLINK_NOFOLLOW))
        status = problem_set(problem, GPUFL_E_NOT_FOUND, "there is no session in '%s'. Record one: gpufl trace -- CMD",
                             path);
    if (status)
        session_files_free(files);
    return status;
}

void session_files_free(struct session_files *files)
{
    if (files->dir_fd >= 0)
        close(files->dir_fd);
    free(files->items);
    *files = (struct session_files){.dir_fd = -1};
}
