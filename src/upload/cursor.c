/* SPDX-License-Identifier: Apache-2.0 */
#include "upload/cursor.h"

#include "base/directory.h"
#include "format/json.h"
#include "logfile/session_dir.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CURSOR_BYTES_MAX = 16 << 20, SERVERS_MAX = 16 };

static struct cursor_server *server_add(struct cursor *cursor, const char *address)
{
    struct cursor_server *servers = realloc(cursor->servers, (cursor->server_count + 1) * sizeof *servers);
    if (!servers)
        return NULL;
    cursor->servers = servers;
    struct cursor_server *server = &servers[cursor->server_count];
    *server = (struct cursor_server){.address = strdup(address)};
    if (!server->address)
        return NULL;
    cursor->server_count++;
    return server;
}

static void server_free(struct cursor_server *server)
{
    free(server->address);
    free(server->files);
}

static struct cursor_file *file_get(struct cursor_server *server, enum channel channel, uint64_t number)
{
    for (size_t i = 0; i < server->file_count; i++)
        if (server->files[i].channel == channel && server->files[i].number == number)
            return &server->files[i];
    if (server->file_count == server->file_capacity) {
        size_t capacity = server->file_capacity ? server->file_capacity * 2 : 8;
        struct cursor_file *files = realloc(server->files, capacity * sizeof *files);
        if (!files)
            return NULL;
        server->files = files;
        server->file_capacity = capacity;
    }
    struct cursor_file *file = &server->files[server->file_count++];
    *file = (struct cursor_file){.channel = channel, .number = number};
    return file;
}

static bool channel_of(const char *name, enum channel *channel)
{
    for (int i = 0; i < CHANNEL_COUNT; i++)
        if (!strcmp(name, channel_names[i])) {
            *channel = (enum channel)i;
            return true;
        }
    return false;
}

static bool file_read(struct cursor_server *server, const struct json_value *value)
{
    enum channel channel;
    int64_t number = json_get_int(value, "file", -1), windows = json_get_int(value, "windows", -1),
            sent = json_get_int(value, "sent", -1), left_out = json_get_int(value, "left_out", -1);
    if (!channel_of(json_get_text(value, "channel", ""), &channel) || number < 0 || windows < 0 || sent < 0 ||
        left_out < 0 || (windows && sent > windows))
        return false;
    struct cursor_file *file = file_get(server, channel, (uint64_t)number);
    if (!file)
        return false;
    file->windows = (uint64_t)windows;
    file->sent = (uint64_t)sent;
    file->left_out = (uint64_t)left_out;
    return true;
}

static bool servers_read(struct cursor *cursor, const struct json_value *root)
{
    const struct json_value *servers = json_member(root, "servers");
    if (json_get_int(root, "schema_version", 0) != 1 || !servers || servers->kind != JSON_ARRAY)
        return false;
    for (const struct json_value *value = servers->child; value; value = value->next) {
        const char *address = json_get_text(value, "address", NULL);
        struct cursor_server *server =
            address && cursor->server_count < SERVERS_MAX ? server_add(cursor, address) : NULL;
        const struct json_value *files = json_member(value, "files");
        if (!server || !files || files->kind != JSON_ARRAY)
            return false;
        server->is_complete = json_get_bool(value, "is_complete", false);
        for (const struct json_value *file = files->child; file; file = file->next)
            if (!file_read(server, file))
                return false;
    }
    return true;
}

static void servers_clear(struct cursor *cursor)
{
    for (size_t i = 0; i < cursor->server_count; i++)
        server_free(&cursor->servers[i]);
    cursor->server_count = 0;
}

/* A damaged file, or one that is not a cursor, is ignored. */
static void text_read(struct cursor *cursor)
{
    int fd = session_file_open(cursor->dir_fd, CURSOR_NAME);
    struct stat state;
    if (fd < 0)
        return;
    struct bytes text = {.limit = CURSOR_BYTES_MAX};
    ssize_t got = 0;
    if (!fstat(fd, &state) && state.st_size < CURSOR_BYTES_MAX && bytes_reserve(&text, (size_t)state.st_size))
        while (text.size < text.capacity && (got = read(fd, text.data + text.size, text.capacity - text.size)) > 0)
            text.size += (size_t)got;
    close(fd);
    struct json_document document;
    if (got >= 0 && text.size && !json_parse(&document, text.data, text.size, NULL)) {
        if (!servers_read(cursor, document.root))
            servers_clear(cursor);
        json_free(&document);
    }
    bytes_free(&text);
}

gpufl_status cursor_load(struct cursor *cursor, int dir_fd, const char *address)
{
    *cursor = (struct cursor){.dir_fd = dir_fd};
    text_read(cursor);
    size_t i = 0;
    while (i < cursor->server_count && strcmp(cursor->servers[i].address, address) != 0)
        i++;
    if (i == SERVERS_MAX) {
        server_free(&cursor->servers[0]);
        memmove(cursor->servers, cursor->servers + 1, --cursor->server_count * sizeof *cursor->servers);
        i--;
    }
    if (i == cursor->server_count && !server_add(cursor, address)) {
        cursor_free(cursor);
        return GPUFL_E_NO_MEMORY;
    }
    cursor->current = &cursor->servers[i];
    return GPUFL_OK;
}

struct cursor_file *cursor_file_get(struct cursor *cursor, enum channel channel, uint64_t number)
{
    return file_get(cursor->current, channel, number);
}

bool cursor_has_sent(const struct cursor *cursor)
{
    bool has_sent = cursor->current->is_complete;
    for (size_t i = 0; i < cursor->current->file_count; i++)
        has_sent = has_sent || cursor->current->files[i].sent;
    return has_sent;
}

void cursor_forget(struct cursor *cursor)
{
    cursor->current->is_complete = false;
    cursor->current->file_count = 0;
}

static void server_write(const struct cursor_server *server, struct bytes *out)
{
    bytes_append_text(out, "\n {\"address\":");
    json_text(out, server->address);
    json_key(out, "is_complete");
    json_bool(out, server->is_complete);
    bytes_append_text(out, ",\"files\":[");
    for (size_t i = 0; i < server->file_count; i++) {
        const struct cursor_file *file = &server->files[i];
        bytes_append_text(out, i ? ",\n  {\"channel\":" : "\n  {\"channel\":");
        json_text(out, channel_names[file->channel]);
        json_key(out, "file");
        json_uint(out, file->number);
        json_key(out, "windows");
        json_uint(out, file->windows);
        json_key(out, "sent");
        json_uint(out, file->sent);
        json_key(out, "left_out");
        json_uint(out, file->left_out);
        bytes_append_char(out, '}');
    }
    bytes_append_text(out, "]}");
}

gpufl_status cursor_save(const struct cursor *cursor)
{
    struct bytes text = {.limit = CURSOR_BYTES_MAX};
    bytes_append_text(&text, "{\"schema_version\":1,\"type\":\"upload_cursor\",\"servers\":[");
    for (size_t i = 0; i < cursor->server_count; i++) {
        if (i)
            bytes_append_char(&text, ',');
        server_write(&cursor->servers[i], &text);
    }
    bytes_append_text(&text, "]}\n");
    gpufl_status status = GPUFL_E_IO;
    errno = ENOMEM;
    if (!text.failed)
        status = file_replace(cursor->dir_fd, CURSOR_NAME, text.data, text.size);
    int error = errno;
    bytes_free(&text);
    errno = error;
    return status;
}

void cursor_free(struct cursor *cursor)
{
    servers_clear(cursor);
    free(cursor->servers);
    *cursor = (struct cursor){.dir_fd = -1};
}
