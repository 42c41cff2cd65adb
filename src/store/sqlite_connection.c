/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite_connection.h"

#include "format/batch.h"

#include <stdarg.h>

enum { BUSY_WAIT_MS = 5000, CHECKPOINT_WAIT_MS = 50 };

gpufl_status connection_fail(struct connection *connection, int code, const char *what, struct problem *problem)
{
    gpufl_status status = GPUFL_E_IO;
    const char *advice = "";
    connection->was_full |= (code & 0xff) == SQLITE_FULL || code == SQLITE_IOERR_SHMSIZE || code == SQLITE_IOERR_SHMMAP;
    switch (code & 0xff) {
    case SQLITE_NOMEM:
        status = GPUFL_E_NO_MEMORY;
        break;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        status = GPUFL_E_BUSY;
        advice = "; another process uses the database";
        break;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        status = GPUFL_E_DAMAGED;
        advice = "; restore a backup";
        break;
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
        status = GPUFL_E_PERMISSION;
        break;
    case SQLITE_TOOBIG:
        status = GPUFL_E_LIMIT;
        break;
    case SQLITE_FULL:
        status = connection->has_size_limit ? GPUFL_E_LIMIT : GPUFL_E_IO;
        advice = connection->has_size_limit ? " up to its size limit; delete sessions or raise the limit"
                                            : "; free some space: writing then resumes automatically";
        break;
    default:
        break;
    }
    return problem_set(problem, status, "%s: %s%s", what, connection->db ? sqlite3_errmsg(connection->db) : "no memory",
                       advice);
}

gpufl_status connection_open(struct connection *connection, const char *path, int flags, struct problem *problem)
{
    *connection = (struct connection){0};
    int code = sqlite3_open_v2(path, &connection->db, flags | SQLITE_OPEN_NOMUTEX, NULL);
    if (connection->db) /* SQLITE_OPEN_EXRESCODE needs SQLite 3.37 */
        sqlite3_extended_result_codes(connection->db, 1);
    if (code == SQLITE_OK) {
        sqlite3_busy_timeout(connection->db, BUSY_WAIT_MS);
        return GPUFL_OK;
    }
    gpufl_status status = connection_fail(connection, code, path, problem);
    connection_close(connection);
    return status;
}

void connection_checkpoint(struct connection *connection)
{
    sqlite3_busy_timeout(connection->db, CHECKPOINT_WAIT_MS);
    sqlite3_wal_checkpoint_v2(connection->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    sqlite3_busy_timeout(connection->db, BUSY_WAIT_MS);
}

void connection_close(struct connection *connection)
{
    for (unsigned i = 0; i < connection->cached; i++)
        sqlite3_finalize(connection->cache[i].statement);
    connection->cached = 0;
    sqlite3_close(connection->db);
    connection->db = NULL;
}

static sqlite3_stmt *statement_find(struct connection *connection, const char *sql, int *code)
{
    for (unsigned i = 0; i < connection->cached; i++)
        if (connection->cache[i].sql == sql) {
            sqlite3_reset(connection->cache[i].statement);
            return connection->cache[i].statement;
        }
    sqlite3_stmt *statement = NULL;
    *code = connection->cached == STATEMENTS_MAX
                ? SQLITE_NOMEM
                : sqlite3_prepare_v3(connection->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL);
    if (*code == SQLITE_OK && statement) {
        connection->cache[connection->cached].sql = sql;
        connection->cache[connection->cached++].statement = statement;
    }
    return statement;
}

static int values_bind(sqlite3_stmt *statement, const char *format, va_list args)
{
    int code = SQLITE_OK;
    for (int i = 1; *format && code == SQLITE_OK; format++, i++) {
        if (*format == 'i') {
            int64_t value = va_arg(args, int64_t);
            code = value == CELL_UNKNOWN ? sqlite3_bind_null(statement, i) : sqlite3_bind_int64(statement, i, value);
        } else if (*format == 't') {
            const char *text = va_arg(args, const char *);
            code = text ? sqlite3_bind_text(statement, i, text, -1, SQLITE_TRANSIENT) : sqlite3_bind_null(statement, i);
        } else if (*format == 'd') {
            code = sqlite3_bind_double(statement, i, va_arg(args, double));
        } else {
            /* Not copied: the owner keeps the bytes until the statement has run. */
            const void *data = va_arg(args, const void *);
            size_t size = va_arg(args, size_t);
            code = sqlite3_bind_blob64(statement, i, data ? data : "", size, SQLITE_STATIC);
        }
    }
    return code;
}

static gpufl_status statement_bind(struct connection *connection, sqlite3_stmt **out, struct problem *problem,
                                   const char *sql, const char *format, va_list args)
{
    int code = SQLITE_OK;
    sqlite3_stmt *statement = statement_find(connection, sql, &code);
    if (statement)
        code = values_bind(statement, format, args);
    if (code != SQLITE_OK)
        return connection_fail(connection, code, "the database rejected a statement", problem);
    *out = statement;
    return GPUFL_OK;
}

gpufl_status statement_open(struct connection *connection, sqlite3_stmt **out, struct problem *problem, const char *sql,
                            const char *format, ...)
{
    va_list args;
    va_start(args, format);
    gpufl_status status = statement_bind(connection, out, problem, sql, format, args);
    va_end(args);
    return status;
}

gpufl_status statement_next(struct connection *connection, sqlite3_stmt *statement, bool *has_row,
                            struct problem *problem)
{
    int code = sqlite3_step(statement);
    *has_row = code == SQLITE_ROW;
    if (code == SQLITE_ROW)
        return GPUFL_OK;
    gpufl_status status =
        code == SQLITE_DONE ? GPUFL_OK : connection_fail(connection, code, "the database failed", problem);
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    return status;
}

gpufl_status statement_run(struct connection *connection, struct problem *problem, const char *sql, const char *format,
                           ...)
{
    sqlite3_stmt *statement = NULL;
    va_list args;
    va_start(args, format);
    gpufl_status status = statement_bind(connection, &statement, problem, sql, format, args);
    va_end(args);
    for (bool has_row = true; !status && has_row;)
        status = statement_next(connection, statement, &has_row, problem);
    return status;
}

gpufl_status statement_integer(struct connection *connection, int64_t *value, bool *found, struct problem *problem,
                               const char *sql, const char *format, ...)
{
    sqlite3_stmt *statement = NULL;
    va_list args;
    va_start(args, format);
    gpufl_status status = statement_bind(connection, &statement, problem, sql, format, args);
    va_end(args);
    bool has_row = false;
    *value = CELL_UNKNOWN;
    if (!status)
        status = statement_next(connection, statement, &has_row, problem);
    if (!status && has_row) {
        *value = row_integer(statement, 0);
        sqlite3_reset(statement);
    }
    if (found)
        *found = has_row;
    return status;
}

const char *row_text(sqlite3_stmt *statement, int column)
{
    const char *text = (const char *)sqlite3_column_text(statement, column);
    return text ? text : "";
}

int64_t row_integer(sqlite3_stmt *statement, int column)
{
    return sqlite3_column_type(statement, column) == SQLITE_NULL ? CELL_UNKNOWN
                                                                 : sqlite3_column_int64(statement, column);
}
