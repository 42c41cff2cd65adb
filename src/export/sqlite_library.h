/* SPDX-License-Identifier: Apache-2.0 */
/* The few functions of libsqlite3 that an export needs, loaded when needed: the program starts without the library. Our
 * own declarations of SQLite's interface, which is stable. */
#ifndef GPUFL_EXPORT_SQLITE_LIBRARY_H
#define GPUFL_EXPORT_SQLITE_LIBRARY_H

#include "base/status.h"

#include <stdint.h>

struct sqlite3;
struct sqlite3_stmt;

enum { SQLITE_RESULT_OK = 0, SQLITE_RESULT_DONE = 101, SQLITE_OPEN_EXISTING = 2 /* read and write, never create */ };

struct sqlite_library {
    int (*open_v2)(const char *path, struct sqlite3 **out, int flags, const char *vfs);
    int (*close)(struct sqlite3 *database);
    int (*exec)(struct sqlite3 *database, const char *sql, int (*row)(void *, int, char **, char **), void *user,
                char **error);
    int (*prepare_v2)(struct sqlite3 *database, const char *sql, int size, struct sqlite3_stmt **out,
                      const char **rest);
    int (*bind_int64)(struct sqlite3_stmt *statement, int index, int64_t value);
    int (*bind_double)(struct sqlite3_stmt *statement, int index, double value);
    int (*bind_text)(struct sqlite3_stmt *statement, int index, const char *text, int size, void (*destroy)(void *));
    int (*bind_null)(struct sqlite3_stmt *statement, int index);
    int (*step)(struct sqlite3_stmt *statement);
    int (*reset)(struct sqlite3_stmt *statement);
    int (*finalize)(struct sqlite3_stmt *statement);
    const char *(*errmsg)(struct sqlite3 *database);
};

/* The library stays loaded. */
NODISCARD gpufl_status sqlite_library_load(struct sqlite_library *library, struct problem *problem);

#endif
