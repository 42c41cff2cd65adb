/* SPDX-License-Identifier: Apache-2.0 */
/* What a server has acknowledged of a session, saved in the session's directory as .gpufl-uploaded.json (0600), so that
 * nothing is sent twice. Losing the file costs time but no data: windows have names, and the server recognizes them. A
 * cursor owns its memory and borrows the directory. Single-threaded. */
#ifndef GPUFL_UPLOAD_CURSOR_H
#define GPUFL_UPLOAD_CURSOR_H

#include "base/status.h"
#include "format/catalogue.h"

#include <stddef.h>
#include <stdint.h>

#define CURSOR_NAME ".gpufl-uploaded.json"

struct cursor_file {
    enum channel channel;
    uint64_t number;   /* of the file in its channel */
    uint64_t windows;  /* windows in the file; 0: not known yet */
    uint64_t sent;     /* windows sent, starting with the first */
    uint64_t left_out; /* lines that could not be sent */
};

struct cursor_server {
    char *address; /* owned */
    bool is_complete;
    struct cursor_file *files; /* owned */
    size_t file_count, file_capacity;
};

struct cursor {
    int dir_fd; /* borrowed */
    struct cursor_server *servers;
    size_t server_count;
    struct cursor_server *current;
};

/* Reads the file if it is valid, and selects `address` as the current server. */
NODISCARD gpufl_status cursor_load(struct cursor *cursor, int dir_fd, const char *address);
/* The current server's entry, created if missing; NULL: no memory. Valid until the next call. */
struct cursor_file *cursor_file_get(struct cursor *cursor, enum channel channel, uint64_t number);
bool cursor_has_sent(const struct cursor *cursor); /* anything, to the current server */
void cursor_forget(struct cursor *cursor);         /* forgets what the current server was sent; cursor_save writes it */
/* Replaces the file. On GPUFL_E_IO errno is set. */
NODISCARD gpufl_status cursor_save(const struct cursor *cursor);
void cursor_free(struct cursor *cursor);

#endif
