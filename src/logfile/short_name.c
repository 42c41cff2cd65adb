/* SPDX-License-Identifier: Apache-2.0 */
#include "logfile/short_name.h"

#include "base/clock.h"
#include "logfile/session_dir.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Only the newest sessions are searched for the largest number: a program's start must not become slow with a hundred
 * thousand sessions. */
enum { NEWEST_MAX = 64, LOCK_WAIT_MS = 250, DIGITS_MAX = 15 };

static bool is_plain(char c)
{
    return isalnum((unsigned char)c) || (c && strchr("._+-", c));
}

void short_name_make(char out[SHORT_NAME_SIZE], const char *app, uint64_t number)
{
    char base[SHORT_NAME_SIZE - DIGITS_MAX - 2];
    const char *slash = strrchr(app, '/');
    if (slash && slash[1])
        app = slash + 1;
    size_t size = strlen(app);
    if (size > 3 && strcmp(app + size - 3, ".py") == 0)
        size -= 3;
    if (size >= sizeof base)
        size = sizeof base - 1;
    for (size_t i = 0; i < size; i++) /* a leading dash would look like an option */
        base[i] = is_plain(app[i]) && (i || app[i] != '-') ? app[i] : '_';
    base[size] = '\0';
    snprintf(out, SHORT_NAME_SIZE, "%s-%" PRIu64, size ? base : "session", number % UINT64_C(1000000000000000));
}

uint64_t short_name_number(const char *name, size_t *base_size)
{
    size_t size = strlen(name), base = size;
    while (base && isdigit((unsigned char)name[base - 1]))
        base--;
    if (size >= SHORT_NAME_SIZE || size - base > DIGITS_MAX || base == size || base < 2 || name[base - 1] != '-' ||
        name[base] == '0' || *name == '-')
        return 0;
    uint64_t number = 0;
    for (size_t i = 0; i < size; i++) {
        if (!is_plain(name[i]))
            return 0;
        number = i < base ? 0 : number * 10 + (uint64_t)(name[i] - '0');
    }
    if (base_size)
        *base_size = base - 1;
    return number;
}

void short_name_lock(int base_fd)
{
    int64_t until_ns = clock_mono_ns() + LOCK_WAIT_MS * INT64_C(1000000);
    while (flock(base_fd, LOCK_EX | LOCK_NB) && (errno == EWOULDBLOCK || errno == EINTR) && clock_mono_ns() < until_ns)
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

bool short_name_write(int lock_fd, const char *name)
{
    size_t size = strlen(name);
    return pwrite(lock_fd, name, size, 0) == (ssize_t)size;
}

bool short_name_read(int base_fd, const char *session_id, char out[SHORT_NAME_SIZE])
{
    int dir_fd = openat(base_fd, session_id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int fd = dir_fd < 0 ? -1 : session_file_open(dir_fd, SESSION_LOCK_NAME);
    char text[SHORT_NAME_SIZE];
    ssize_t size = fd < 0 ? -1 : pread(fd, text, sizeof text - 1, 0);
    if (fd >= 0)
        close(fd);
    if (dir_fd >= 0)
        close(dir_fd);
    if (size <= 0)
        return false;
    text[size] = '\0';
    if (!short_name_number(text, NULL))
        return false;
    memcpy(out, text, sizeof text);
    return true;
}

struct newest_ids {
    char ids[NEWEST_MAX][SESSION_ID_SIZE + 1]; /* newest first: ids sort by time */
    size_t count;
};

static void newest_add(struct newest_ids *newest, const char *id)
{
    size_t at = newest->count;
    while (at && strcmp(newest->ids[at - 1], id) < 0)
        at--;
    if (at == NEWEST_MAX)
        return;
    size_t kept = newest->count < NEWEST_MAX ? newest->count++ : NEWEST_MAX - 1;
    memmove(newest->ids[at + 1], newest->ids[at], (kept - at) * sizeof *newest->ids);
    memcpy(newest->ids[at], id, sizeof *newest->ids);
}

bool short_name_next(int base_fd, const char *app, const char *session_id, char out[SHORT_NAME_SIZE])
{
    struct newest_ids newest = {.count = 0};
    uint64_t sessions = 0, largest = 0, unnamed = 0;
    int fd = openat(base_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (!session_id_is_valid(entry->d_name) || strcmp(entry->d_name, session_id) == 0)
            continue;
        sessions++;
        newest_add(&newest, entry->d_name);
    }
    closedir(dir);
    for (size_t i = 0; i < newest.count; i++) {
        char name[SHORT_NAME_SIZE];
        bool has_name = short_name_read(base_fd, newest.ids[i], name);
        uint64_t number = has_name ? short_name_number(name, NULL) : 0;
        largest = number > largest ? number : largest;
        unnamed += !has_name;
    }
    /* A session without a name gets the number after the previous session's (session_scan.h). */
    largest += unnamed;
    short_name_make(out, app, (sessions > largest ? sessions : largest) + 1);
    return true;
}
