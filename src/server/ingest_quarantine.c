/* SPDX-License-Identifier: Apache-2.0 */
#include "server/ingest_quarantine.h"

#include "base/clock.h"
#include "base/directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_SUFFIX ".refused"

struct refused_file {
    char name[64];
    uint64_t size;
};

gpufl_status ingest_quarantine_open(struct ingest_quarantine *quarantine, const char *dir, struct problem *problem)
{
    *quarantine = (struct ingest_quarantine){.dir_fd = -1, .bytes_max = (uint64_t)256 << 20, .files_max = 1000};
    char path[4096];
    if (snprintf(path, sizeof path, "%s/quarantine", dir) >= (int)sizeof path)
        return problem_set(problem, GPUFL_E_INVALID, "the data directory's path is too long");
    gpufl_status status = directory_make(path, problem);
    if (status)
        return status;
    quarantine->dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (quarantine->dir_fd < 0)
        return problem_set(problem, GPUFL_E_IO, "%.300s: %s", path, strerror(errno));
    pthread_mutex_init(&quarantine->lock, NULL);
    return GPUFL_OK;
}

void ingest_quarantine_close(struct ingest_quarantine *quarantine)
{
    if (quarantine->dir_fd < 0)
        return;
    close(quarantine->dir_fd);
    pthread_mutex_destroy(&quarantine->lock);
    quarantine->dir_fd = -1;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct refused_file *)a)->name, ((const struct refused_file *)b)->name);
}

/* Quarantined files, oldest first; the caller frees. */
static struct refused_file *files_list(int dir_fd, size_t *count, uint64_t *bytes)
{
    struct refused_file *files = NULL;
    size_t capacity = 0;
    *count = 0;
    *bytes = 0;
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    for (struct dirent *entry; (entry = readdir(dir));) {
        struct stat info;
        size_t size = strlen(entry->d_name), suffix = sizeof FILE_SUFFIX - 1;
        if (size <= suffix || size >= sizeof files->name || strcmp(entry->d_name + size - suffix, FILE_SUFFIX) != 0 ||
            fstatat(dir_fd, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) || !S_ISREG(info.st_mode))
            continue;
        if (*count == capacity) {
            struct refused_file *grown = realloc(files, (capacity * 2 + 64) * sizeof *files);
            if (!grown)
                break;
            files = grown;
            capacity = capacity * 2 + 64;
        }
        memcpy(files[*count].name, entry->d_name, size + 1);
        files[*count].size = (uint64_t)info.st_size;
        *bytes += files[(*count)++].size;
    }
    closedir(dir);
    if (*count)
        qsort(files, *count, sizeof *files, by_name);
    return files;
}

static void make_room(struct ingest_quarantine *quarantine, uint64_t size)
{
    size_t count;
    uint64_t bytes;
    struct refused_file *files = files_list(quarantine->dir_fd, &count, &bytes);
    for (size_t i = 0; i < count; i++) {
        if (count - i < quarantine->files_max && bytes + size <= quarantine->bytes_max)
            break;
        unlinkat(quarantine->dir_fd, files[i].name, 0);
        bytes -= files[i].size;
    }
    free(files);
}

void ingest_quarantine_add(struct ingest_quarantine *quarantine, const struct bytes *about, const void *content,
                           size_t size, char *name, size_t name_size)
{
    struct bytes file = {0};
    bytes_append(&file, about->data, about->size);
    bytes_append_char(&file, '\n');
    bytes_append(&file, content, size < QUARANTINE_FILE_BYTES_MAX ? size : QUARANTINE_FILE_BYTES_MAX);
    pthread_mutex_lock(&quarantine->lock);
    bool is_fitting = !file.failed && file.size <= quarantine->bytes_max;
    if (is_fitting)
        make_room(quarantine, file.size);
    /* Names sort by time; names of the same moment differ. */
    snprintf(name, name_size, "%020" PRId64 "-%06" PRIu64 FILE_SUFFIX, clock_wall_ns(),
             quarantine->files_added % 1000000);
    if (!is_fitting || file_replace(quarantine->dir_fd, name, file.data, file.size)) {
        name[0] = '\0';
        quarantine->files_failed++;
    } else {
        quarantine->files_added++;
    }
    pthread_mutex_unlock(&quarantine->lock);
    bytes_free(&file);
}
