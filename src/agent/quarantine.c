/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/quarantine.h"

#include "base/clock.h"
#include "base/directory.h"
#include "format/json.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NOTE_BYTES_MAX = 16 << 10, NAME_SIZE = 180 };

static const char window_type[] = "quarantined_window";

static void describe(struct bytes *out, const char *session_id, enum channel channel,
                     const struct stream_window *window, const char *reason, const char *body_name)
{
    bytes_append_char(out, '{');
    json_key(out, "schema_version");
    json_int(out, 1);
    json_key(out, "type");
    json_text(out, window_type);
    json_key(out, "session_id");
    json_text(out, session_id);
    json_key(out, "channel");
    json_text(out, channel_names[channel]);
    json_key(out, "window_id");
    json_text(out, window->id);
    json_key(out, "first");
    json_uint(out, window->first);
    json_key(out, "last");
    json_uint(out, window->last);
    json_key(out, "coding");
    json_text(out, body_coding_names[window->coding]);
    json_key(out, "crc32");
    json_uint(out, window->window.crc32);
    json_key(out, "body");
    json_text(out, body_name);
    json_key(out, "reason");
    json_text(out, reason);
    json_key(out, "ts_ns");
    json_int(out, clock_wall_ns());
    bytes_append_text(out, "}\n");
}

gpufl_status quarantine_add(const char *dir, const char *session_id, enum channel channel,
                            const struct stream_window *window, const char *reason, struct problem *problem)
{
    char name[160], body_name[NAME_SIZE], note_name[NAME_SIZE];
    snprintf(name, sizeof name, "%.64s.%s.%" PRIu64, session_id, channel_names[channel], window->first);
    snprintf(body_name, sizeof body_name, "%s.%s", name, window->coding == BODY_ZSTD ? "zst" : "gz");
    snprintf(note_name, sizeof note_name, "%s.json", name);
    gpufl_status status = directory_make(dir, problem);
    if (status)
        return status;
    struct bytes note = {0};
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    describe(&note, session_id, channel, window, reason, body_name);
    errno = fd < 0 ? errno : ENOMEM;
    status = fd < 0 || note.failed ? GPUFL_E_IO : GPUFL_OK;
    if (!status)
        status = file_replace(fd, body_name, window->window.body.data, window->window.body.size);
    if (!status)
        status = file_replace(fd, note_name, note.data, note.size);
    if (status)
        problem_set(problem, status, "cannot write %.300s/%s: %s", dir, name, strerror(errno));
    bytes_free(&note);
    if (fd >= 0)
        close(fd);
    return status;
}

/* A window in quarantine. */
struct held_window {
    char note[NAME_SIZE], body[NAME_SIZE];
    uint64_t bytes;
    int64_t ts_ns;
};

static uint64_t file_bytes(int dir_fd, const char *name)
{
    struct stat info;
    return fstatat(dir_fd, name, &info, AT_SYMLINK_NOFOLLOW) || !S_ISREG(info.st_mode) ? 0 : (uint64_t)info.st_size;
}

/* Whether the file is our note, with the body that it names beside it: "<name>.json" and "<name>.gz" or
 * "<name>.zst". */
static bool window_read(struct held_window *window, int dir_fd, const char *name)
{
    size_t size = strlen(name), stem = size > 5 ? size - 5 : 0;
    if (!stem || size >= NAME_SIZE || strcmp(name + stem, ".json") != 0)
        return false;
    struct bytes text = {0};
    struct json_document document = {0};
    bool is_ours = !file_load(dir_fd, name, NOTE_BYTES_MAX, &text) && text.size &&
                   !json_parse(&document, text.data, text.size, NULL);
    if (is_ours) {
        const char *body = json_get_text(document.root, "body", "");
        is_ours = !strcmp(json_get_text(document.root, "type", ""), window_type) && strlen(body) < NAME_SIZE &&
                  !strncmp(body, name, stem) && (!strcmp(body + stem, ".gz") || !strcmp(body + stem, ".zst"));
        window->ts_ns = json_get_int(document.root, "ts_ns", 0);
        snprintf(window->note, sizeof window->note, "%.*s", NAME_SIZE - 1, name);
        snprintf(window->body, sizeof window->body, "%.*s", NAME_SIZE - 1, is_ours ? body : "");
        window->bytes = file_bytes(dir_fd, window->note) + file_bytes(dir_fd, window->body);
        json_free(&document);
    }
    bytes_free(&text);
    return is_ours;
}

struct held_windows {
    struct held_window *items; /* owned */
    size_t count, capacity;
    int dir_fd; /* owned; -1: there is no quarantine directory */
};

static void windows_add(struct held_windows *windows, const struct held_window *window)
{
    if (windows->count == windows->capacity) {
        size_t capacity = windows->capacity ? windows->capacity * 2 : 16;
        struct held_window *grown = realloc(windows->items, capacity * sizeof *grown);
        if (!grown)
            return; /* counted in the next run */
        windows->items = grown;
        windows->capacity = capacity;
    }
    windows->items[windows->count++] = *window;
}

static void windows_list(struct held_windows *windows, const char *path)
{
    *windows = (struct held_windows){.dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    int fd = windows->dir_fd < 0 ? -1 : dup(windows->dir_fd);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        if (fd >= 0)
            close(fd);
        return;
    }
    struct dirent *entry;
    struct held_window window;
    while ((entry = readdir(dir)) != NULL)
        if (window_read(&window, windows->dir_fd, entry->d_name))
            windows_add(windows, &window);
    closedir(dir);
}

static void windows_free(struct held_windows *windows)
{
    free(windows->items);
    if (windows->dir_fd >= 0)
        close(windows->dir_fd);
}

uint64_t quarantine_bytes(const char *dir)
{
    struct held_windows windows;
    uint64_t bytes = 0;
    windows_list(&windows, dir);
    for (size_t i = 0; i < windows.count; i++)
        bytes += windows.items[i].bytes;
    windows_free(&windows);
    return bytes;
}

static int compare_age(const void *left, const void *right)
{
    const struct held_window *a = left, *b = right;
    return (a->ts_ns > b->ts_ns) - (a->ts_ns < b->ts_ns);
}

void quarantine_make_room(const char *dir, uint64_t wanted, struct quarantine_drop *drop)
{
    struct held_windows windows;
    *drop = (struct quarantine_drop){0};
    windows_list(&windows, dir);
    if (windows.count)
        qsort(windows.items, windows.count, sizeof *windows.items, compare_age);
    for (size_t i = 0; i < windows.count && drop->bytes < wanted; i++) {
        const struct held_window *window = &windows.items[i];
        /* Delete the body first: the note alone still documents what was there. */
        if ((unlinkat(windows.dir_fd, window->body, 0) && errno != ENOENT) || unlinkat(windows.dir_fd, window->note, 0))
            continue;
        drop->windows++;
        drop->bytes += window->bytes;
    }
    windows_free(&windows);
}
