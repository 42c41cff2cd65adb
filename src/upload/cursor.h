/* SPDX-License-Identifier: Apache-2.0 */
/* What a server has acknowledged of a session, remembered in the session's directory as .gpufl-uploaded.json (0600), so
 * that nothing is sent twice. Losing it costs time, not correctness: windows have names, and the server knows them. A
 * cursor owns its memory and borrows the directory; one thread at a time. */
#ifndef GPUFL_UPLOAD_CURSOR_H
#define GPUFL_UPLOAD_CURSOR_H

#include "base/status.h"
#include "format/catalogue.h"

#include <stddef.h>
#include <stdint.h>

#define CURSOR_NAME ".gpufl-uploaded.json"

struct cursor_file {
    enum channel channel;
    uint64_t number;   /* the file's, in its channel */
    uint64_t windows;  /* that it makes; 0: not known yet */
    uint64_t sent;     /* of them, from the first on */
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

/* Reads the file, if there is a good one, and makes `address` the current server. */
NODISCARD gpufl_status cursor_load(struct cursor *cursor, int dir_fd, const char *address);
/* The current server's entry, made when there is none; NULL: no memory. Valid until the next call. */
struct cursor_file *cursor_file_get(struct cursor *cursor, enum channel channel, uint64_t number);
bool cursor_has_sent(const struct cursor *cursor); /* anything to the current server */
void cursor_forget(struct cursor *cursor);         /* what the current server was sent; the file changes when saved */
/* Replaces the file. GPUFL_E_IO with errno. */
NODISCARD gpufl_status cursor_save(const struct cursor *cursor);
void cursor_free(struct cursor *cursor);

#endif
