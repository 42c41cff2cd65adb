/* SPDX-License-Identifier: Apache-2.0 */
#include "code/sass_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME_SIZE = 128 };

static uint64_t hash(uint64_t seed, const void *data, size_t size)
{
    const uint8_t *bytes = data;
    for (size_t i = 0; i < size; i++)
        seed = (seed ^ bytes[i]) * 0x100000001b3u;
    return seed;
}

static bool name_make(const struct sass_cache_key *key, char name[NAME_SIZE])
{
    const uint64_t start = 0xcbf29ce484222325u;
    struct stat status;
    if (stat(key->tool, &status))
        return false;
    char version[96];
    snprintf(version, sizeof version, "%lld %lld %ld", (long long)status.st_size, (long long)status.st_mtim.tv_sec,
             status.st_mtim.tv_nsec);
    uint64_t tool_hash = hash(hash(start, key->tool, strlen(key->tool)), version, strlen(version));
    uint64_t image_hash = hash(start, key->image->bytes, key->image->size);
    snprintf(name, NAME_SIZE, "%016" PRIx64 "-%zx-%" PRIu32 "-%016" PRIx64 ".sass", image_hash, key->image->size,
             key->symbol_index, tool_hash);
    return true;
}

static bool directory_make(const char *path)
{
    struct stat status;
    return mkdir(path, 0700) == 0 || (errno == EEXIST && stat(path, &status) == 0 && S_ISDIR(status.st_mode));
}

bool sass_cache_directory(char path[PATH_MAX])
{
    const char *base = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    bool has_base = base && base[0] == '/';
    if (!has_base && (!home || home[0] != '/'))
        return false;
    const char *const parts[] = {has_base ? "" : "/.cache", "/gpufl", "/sass"};
    size_t size = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        int added = snprintf(path + size, PATH_MAX - size, "%s%s", i ? "" : has_base ? base : home, parts[i]);
        if (added < 0 || (size_t)added >= PATH_MAX - size)
            return false;
        size += (size_t)added;
        if (!directory_make(path))
            return false;
    }
    return true;
}

static int directory_open(const char *directory)
{
    return open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

bool sass_cache_read(const char *directory, const struct sass_cache_key *key, struct bytes *out)
{
    char name[NAME_SIZE];
    int dir_fd = directory_open(directory);
    if (dir_fd < 0)
        return false;
    int fd = name_make(key, name) ? openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1;
    close(dir_fd);
    if (fd < 0)
        return false;
    size_t before = out->size;
    struct stat status;
    /* A file of another user could contain anything. */
    bool is_good = fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
                   status.st_size > 0 && bytes_reserve(out, (size_t)status.st_size);
    while (is_good && out->size - before < (size_t)status.st_size) {
        ssize_t count = read(fd, out->data + out->size, (size_t)status.st_size - (out->size - before));
        if (count < 0 && errno == EINTR)
            continue;
        is_good = count > 0;
        out->size += is_good ? (size_t)count : 0;
    }
    close(fd);
    if (!is_good) {
        out->size = before;
        out->failed = false;
    }
    return is_good;
}

void sass_cache_write(const char *directory, const struct sass_cache_key *key, const struct bytes *text)
{
    char name[NAME_SIZE], part[NAME_SIZE + 32];
    int dir_fd = directory_open(directory);
    if (dir_fd < 0)
        return;
    int fd = -1;
    if (name_make(key, name)) {
        snprintf(part, sizeof part, "%s.%ld.part", name, (long)getpid());
        fd = openat(dir_fd, part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    }
    if (fd >= 0) {
        size_t written = 0;
        while (written < text->size) {
            ssize_t count = write(fd, text->data + written, text->size - written);
            if (count < 0 && errno == EINTR)
                continue;
            if (count <= 0)
                break;
            written += (size_t)count;
        }
        if (close(fd) || written < text->size || renameat(dir_fd, part, dir_fd, name))
            unlinkat(dir_fd, part, 0);
    }
    close(dir_fd);
}
