/* SPDX-License-Identifier: Apache-2.0 */
/* One SQLite connection with its prepared statements, which are cached by the address of their SQL (a constant); values
 * are always bound. One thread at a time. Private to the SQLite engine. */
#ifndef GPUFL_STORE_SQLITE_CONNECTION_H
#define GPUFL_STORE_SQLITE_CONNECTION_H

#include "base/status.h"

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

enum { STATEMENTS_MAX = 128 };

struct connection {
    sqlite3 *db;
    struct {
        const char *sql;
        sqlite3_stmt *statement;
    } cache[STATEMENTS_MAX];
    unsigned cached;
    bool has_size_limit;     /* the limit is the store's, not the disk's */
    bool was_full;           /* a statement failed because the disk was full; set until cleared */
    struct connection *next; /* in the pool */
};

/* flags: those of sqlite3_open_v2. */
NODISCARD gpufl_status connection_open(struct connection *connection, const char *path, int flags,
                                       struct problem *problem);
void connection_close(struct connection *connection);
/* Checkpoints: moves commits into the database and truncates the write-ahead log, as far as readers and the disk
 * allow. */
void connection_checkpoint(struct connection *connection);
/* Our status for SQLite's code, with a message that starts with `what`. */
gpufl_status connection_fail(struct connection *connection, int code, const char *what, struct problem *problem);

/* Binds by format: i int64_t (CELL_UNKNOWN: null), t text (NULL: null), b pointer and size_t, d double. */
NODISCARD gpufl_status statement_open(struct connection *connection, sqlite3_stmt **out, struct problem *problem,
                                      const char *sql, const char *format, ...);
/* GPUFL_OK sets *has_row. The statement is reset at the end and on failure. */
NODISCARD gpufl_status statement_next(struct connection *connection, sqlite3_stmt *statement, bool *has_row,
                                      struct problem *problem);
/* Runs a statement without rows. */
NODISCARD gpufl_status statement_run(struct connection *connection, struct problem *problem, const char *sql,
                                     const char *format, ...);
/* Reads the first column of the first row; CELL_UNKNOWN when it is null or there is no row, in which case *found is
 * false. */
NODISCARD gpufl_status statement_integer(struct connection *connection, int64_t *value, bool *found,
                                         struct problem *problem, const char *sql, const char *format, ...);
/* "" for null; valid until the statement's next step. */
const char *row_text(sqlite3_stmt *statement, int column);
int64_t row_integer(sqlite3_stmt *statement, int column); /* CELL_UNKNOWN for null */

#endif
