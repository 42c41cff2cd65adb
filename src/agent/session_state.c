/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/session_state.h"

#include "base/directory.h"
#include "format/json.h"
#include "logfile/session_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { STATE_BYTES_MAX = 64 << 10 };

gpufl_status state_dir_open(struct state_dir *dir, const char *path, const char *server, struct problem *problem)
{
    *dir = (struct state_dir){.fd = -1, .lock_fd = -1, .server = server};
    gpufl_status status = directory_make(path, problem);
    if (status)
        return status;
    snprintf(dir->path, sizeof dir->path, "%s", path);
    dir->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir->fd >= 0)
        dir->lock_fd = openat(dir->fd, ".lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (dir->lock_fd < 0) {
        status = problem_set(problem, errno == EACCES || errno == EROFS ? GPUFL_E_PERMISSION : GPUFL_E_IO,
                             "cannot use the state directory %.300s: %s", path, strerror(errno));
    } else if (!session_lock_take(dir->lock_fd)) {
        status = problem_set(problem, GPUFL_E_BUSY, "another agent uses the state directory %.300s", path);
    }
    if (status)
        state_dir_close(dir);
    return status;
}

void state_dir_close(struct state_dir *dir)
{
    if (dir->lock_fd >= 0)
        close(dir->lock_fd);
    if (dir->fd >= 0)
        close(dir->fd);
    dir->fd = dir->lock_fd = -1;
}

void session_state_init(struct session_state *state, const char *session_id)
{
    *state = (struct session_state){.is_acknowledged = true};
    snprintf(state->session_id, sizeof state->session_id, "%s", session_id);
    for (int i = 0; i < CHANNEL_COUNT; i++)
        state->channels[i].next_line = state->channels[i].next_window = 1;
}

static void file_name(char out[80], const char *session_id)
{
    snprintf(out, 80, "%.64s.json", session_id);
}

static bool read_number(const struct json_value *object, const char *key, uint64_t *out)
{
    int64_t value = json_get_int(object, key, -1);
    if (value < 0)
        return false;
    *out = (uint64_t)value;
    return true;
}

static bool pending_read(struct pending_window *pending, const struct json_value *value)
{
    uint64_t crc32;
    const char *coding = json_get_text(value, "coding", "");
    pending->is_set = true;
    pending->is_published = json_get_bool(value, "is_published", false);
    pending->coding = !strcmp(coding, body_coding_names[BODY_ZSTD]) ? BODY_ZSTD : BODY_GZIP;
    if (!read_number(value, "first", &pending->first) || !read_number(value, "last", &pending->last) ||
        !read_number(value, "crc32", &crc32) || pending->last < pending->first || crc32 > UINT32_MAX)
        return false;
    pending->crc32 = (uint32_t)crc32;
    return true;
}

static bool channel_read(struct channel_state *channel, const struct json_value *value)
{
    const struct json_value *pending = json_member(value, "pending");
    channel->has_shutdown = json_get_bool(value, "has_shutdown", false);
    return read_number(value, "next_line", &channel->next_line) &&
           read_number(value, "next_window", &channel->next_window) && channel->next_line && channel->next_window &&
           (!pending || pending->kind != JSON_OBJECT || pending_read(&channel->pending, pending));
}

static gpufl_status state_read(const struct state_dir *dir, const struct json_value *root, struct session_state *state)
{
    const struct json_value *channels = json_member(root, "channels");
    if (json_get_int(root, "schema_version", 0) != 1 || !channels || channels->kind != JSON_OBJECT)
        return GPUFL_E_DAMAGED;
    if (strcmp(json_get_text(root, "server", ""), dir->server) != 0)
        return GPUFL_E_NOT_FOUND;
    state->is_complete = json_get_bool(root, "is_complete", false);
    state->is_acknowledged = json_get_bool(root, "is_acknowledged", false);
    (void)!read_number(root, "refused_lines", &state->refused_lines);
    for (int i = 0; i < CHANNEL_COUNT; i++) {
        const struct json_value *channel = json_member(channels, channel_names[i]);
        if (channel && !channel_read(&state->channels[i], channel))
            return GPUFL_E_DAMAGED;
    }
    return GPUFL_OK;
}

gpufl_status session_state_load(const struct state_dir *dir, const char *session_id, struct session_state *state,
                                struct problem *problem)
{
    char name[80], text[STATE_BYTES_MAX];
    session_state_init(state, session_id);
    file_name(name, session_id);
    int fd = session_file_open(dir->fd, name);
    if (fd < 0 && errno == ENOENT)
        return GPUFL_E_NOT_FOUND;
    ssize_t size = fd < 0 ? -1 : read(fd, text, sizeof text);
    if (fd >= 0)
        close(fd);
    struct json_document document = {0};
    gpufl_status status = GPUFL_E_DAMAGED;
    if (size > 0 && !json_parse(&document, text, (size_t)size, NULL)) {
        status = state_read(dir, document.root, state);
        json_free(&document);
    }
    if (status)
        session_state_init(state, session_id);
    if (status == GPUFL_E_DAMAGED)
        problem_set(problem, status, "%.300s/%s is damaged; sending the session from its beginning", dir->path, name);
    return status;
}

static void channel_write(struct bytes *out, const struct channel_state *channel)
{
    bytes_append_char(out, '{');
    json_key(out, "next_line");
    json_uint(out, channel->next_line);
    json_key(out, "next_window");
    json_uint(out, channel->next_window);
    json_key(out, "has_shutdown");
    json_bool(out, channel->has_shutdown);
    if (channel->pending.is_set) {
        json_key(out, "pending");
        bytes_append_char(out, '{');
        json_key(out, "is_published");
        json_bool(out, channel->pending.is_published);
        json_key(out, "first");
        json_uint(out, channel->pending.first);
        json_key(out, "last");
        json_uint(out, channel->pending.last);
        json_key(out, "coding");
        json_text(out, body_coding_names[channel->pending.coding]);
        json_key(out, "crc32");
        json_uint(out, channel->pending.crc32);
        bytes_append_char(out, '}');
    }
    bytes_append_char(out, '}');
}

gpufl_status session_state_save(const struct state_dir *dir, const struct session_state *state, struct problem *problem)
{
    char name[80];
    struct bytes text = {0};
    bytes_append_char(&text, '{');
    json_key(&text, "schema_version");
    json_int(&text, 1);
    json_key(&text, "type");
    json_text(&text, "agent_state");
    json_key(&text, "session_id");
    json_text(&text, state->session_id);
    json_key(&text, "server");
    json_text(&text, dir->server);
    json_key(&text, "is_complete");
    json_bool(&text, state->is_complete);
    json_key(&text, "is_acknowledged");
    json_bool(&text, state->is_acknowledged);
    json_key(&text, "refused_lines");
    json_uint(&text, state->refused_lines);
    json_key(&text, "channels");
    bytes_append_char(&text, '{');
    for (int i = 0; i < CHANNEL_COUNT; i++) {
        json_key(&text, channel_names[i]);
        channel_write(&text, &state->channels[i]);
    }
    bytes_append_text(&text, "}}\n");
    file_name(name, state->session_id);
    gpufl_status status = text.failed ? GPUFL_E_NO_MEMORY : file_replace(dir->fd, name, text.data, text.size);
    if (status)
        problem_set(problem, status, "cannot write %.300s/%s: %s", dir->path, name,
                    status == GPUFL_E_IO ? strerror(errno) : "no memory");
    bytes_free(&text);
    return status;
}

void session_state_remove(const struct state_dir *dir, const char *session_id)
{
    char name[80];
    file_name(name, session_id);
    unlinkat(dir->fd, name, 0);
}

void session_state_prune(const struct state_dir *dir, int64_t age_s,
                         bool (*is_known)(void *user, const char *session_id), void *user)
{
    const time_t oldest = time(NULL) - (time_t)age_s;
    int fd = openat(dir->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = fd < 0 ? NULL : fdopendir(fd);
    if (!list) {
        if (fd >= 0)
            close(fd);
        return;
    }
    struct dirent *entry;
    while ((entry = readdir(list)) != NULL) {
        char session_id[65];
        struct stat info;
        const char *dot = strrchr(entry->d_name, '.');
        if (!dot || strcmp(dot, ".json") != 0 || (size_t)(dot - entry->d_name) >= sizeof session_id ||
            fstatat(dir->fd, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) || info.st_mtime > oldest)
            continue;
        snprintf(session_id, sizeof session_id, "%.*s", (int)(dot - entry->d_name), entry->d_name);
        if (!is_known(user, session_id))
            unlinkat(dir->fd, entry->d_name, 0);
    }
    closedir(list);
}
