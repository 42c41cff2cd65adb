/* SPDX-License-Identifier: Apache-2.0 */
/* The tables, as steps: step N takes a database of schema N - 1 to schema N. Steps never change once released; new ones
 * are added at the end. */
#include "format/batch.h"
#include "store/sqlite_store.h"

#include <stdio.h>
#include <stdlib.h>

#define APPLICATION_ID "1735419500" /* "gpfl" */

static const char step_1[] =
    "CREATE TABLE session(session INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL UNIQUE,"
    " app TEXT NOT NULL DEFAULT '', host TEXT NOT NULL DEFAULT '', kind TEXT NOT NULL DEFAULT '',"
    " engine TEXT NOT NULL DEFAULT '', state INTEGER NOT NULL DEFAULT 0, start_ns INTEGER, end_ns INTEGER,"
    " created_ns INTEGER NOT NULL, received_ns INTEGER NOT NULL, kernels INTEGER NOT NULL DEFAULT 0,"
    " kernel_ns INTEGER NOT NULL DEFAULT 0, rows INTEGER NOT NULL DEFAULT 0, lines INTEGER NOT NULL DEFAULT 0,"
    " bytes INTEGER NOT NULL DEFAULT 0, lost INTEGER NOT NULL DEFAULT 0, has_unknown_loss INTEGER NOT NULL DEFAULT 0,"
    " retention_ns INTEGER, revision INTEGER NOT NULL DEFAULT 0);"
    "CREATE INDEX session_start ON session(IFNULL(start_ns, 0), session);"
    "CREATE INDEX session_received ON session(IFNULL(received_ns, 0), session);"
    "CREATE INDEX session_host ON session(host);"
    "CREATE TABLE tag(session INTEGER NOT NULL, tag TEXT NOT NULL, PRIMARY KEY(session, tag)) WITHOUT ROWID;"
    "CREATE INDEX tag_session ON tag(tag, session);"
    "CREATE TABLE loss(session INTEGER NOT NULL, reason TEXT NOT NULL, is_total INTEGER NOT NULL,"
    " count INTEGER NOT NULL, has_unknown INTEGER NOT NULL, PRIMARY KEY(session, reason, is_total)) WITHOUT ROWID;"
    "CREATE TABLE record_type(type INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);"
    "CREATE TABLE layout(layout INTEGER PRIMARY KEY, type INTEGER NOT NULL, columns TEXT NOT NULL,"
    " UNIQUE(type, columns));"
    "CREATE TABLE segment(segment INTEGER PRIMARY KEY AUTOINCREMENT, session INTEGER NOT NULL, type INTEGER NOT NULL,"
    " channel TEXT NOT NULL, position INTEGER NOT NULL, layout INTEGER NOT NULL, rows INTEGER NOT NULL,"
    " min_ns INTEGER, max_ns INTEGER, bytes INTEGER NOT NULL, data BLOB NOT NULL);"
    "CREATE INDEX segment_place ON segment(session, type, channel, position, rows, min_ns, max_ns, bytes, layout);"
    /* tile = segment * 64 + shift */
    "CREATE TABLE tile(tile INTEGER PRIMARY KEY, data BLOB NOT NULL);"
    "CREATE TABLE received(session INTEGER NOT NULL, kind TEXT NOT NULL, ranges BLOB NOT NULL,"
    " PRIMARY KEY(session, kind)) WITHOUT ROWID;"
    "CREATE TABLE delivery(session INTEGER NOT NULL, channel TEXT NOT NULL, window_id TEXT NOT NULL,"
    " crc INTEGER NOT NULL, PRIMARY KEY(session, channel, window_id)) WITHOUT ROWID;"
    "CREATE TABLE kernel_name(name INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);"
    "CREATE TABLE kernel(session INTEGER NOT NULL, kernel_id INTEGER NOT NULL, name INTEGER,"
    " count INTEGER NOT NULL DEFAULT 0, total_ns INTEGER NOT NULL DEFAULT 0, min_ns INTEGER, max_ns INTEGER,"
    " sum_squares REAL NOT NULL DEFAULT 0, histogram BLOB, PRIMARY KEY(session, kernel_id)) WITHOUT ROWID;"
    "CREATE INDEX kernel_by_name ON kernel(name, session);"
    "CREATE TABLE gpu(gpu INTEGER PRIMARY KEY, host TEXT NOT NULL, uuid TEXT NOT NULL, name TEXT NOT NULL DEFAULT '',"
    " device_id INTEGER, first_seen_ns INTEGER NOT NULL, last_seen_ns INTEGER NOT NULL, sample_ns INTEGER,"
    " layout INTEGER, sample BLOB, session_id TEXT NOT NULL DEFAULT '', UNIQUE(host, uuid));"
    "CREATE TABLE session_gpu(session INTEGER NOT NULL, device_id INTEGER NOT NULL, gpu INTEGER NOT NULL,"
    " PRIMARY KEY(session, device_id)) WITHOUT ROWID;"
    "CREATE INDEX session_gpu_gpu ON session_gpu(gpu);"
    "CREATE TABLE metric(gpu INTEGER NOT NULL, minute INTEGER NOT NULL, layout INTEGER NOT NULL, data BLOB NOT NULL,"
    " PRIMARY KEY(gpu, minute, layout)) WITHOUT ROWID;"
    "CREATE TABLE api_key(key INTEGER PRIMARY KEY AUTOINCREMENT, hash BLOB NOT NULL UNIQUE, prefix TEXT NOT NULL,"
    " name TEXT NOT NULL, scope INTEGER NOT NULL, created_ns INTEGER, expires_ns INTEGER, revoked_ns INTEGER,"
    " last_used_ns INTEGER);"
    "CREATE TABLE config(name TEXT PRIMARY KEY, text BLOB NOT NULL, revision INTEGER NOT NULL,"
    " changed_ns INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE audit(audit INTEGER PRIMARY KEY AUTOINCREMENT, ts_ns INTEGER NOT NULL, actor TEXT NOT NULL,"
    " action TEXT NOT NULL, subject TEXT NOT NULL, detail TEXT NOT NULL);";

/* Sums per scope path (computed for one revision of the session), and limits per key. */
static const char step_2[] =
    "CREATE TABLE scope(session INTEGER NOT NULL, path_id INTEGER NOT NULL, path TEXT NOT NULL,"
    " calls INTEGER NOT NULL, open_calls INTEGER NOT NULL, wall_ns INTEGER NOT NULL, kernels INTEGER NOT NULL,"
    " kernel_ns INTEGER NOT NULL, PRIMARY KEY(session, path_id)) WITHOUT ROWID;"
    "ALTER TABLE session ADD COLUMN scope_revision INTEGER NOT NULL DEFAULT -1;"
    "ALTER TABLE api_key ADD COLUMN rate_per_s INTEGER;"
    "ALTER TABLE api_key ADD COLUMN quota_bytes_per_day INTEGER;";

/* The current minute of each GPU: one row per GPU, next to those of the same host. Otherwise every sample would rewrite
 * a page that holds only that GPU's history. */
static const char step_3[] =
    "CREATE TABLE metric_now(gpu INTEGER PRIMARY KEY, minute INTEGER NOT NULL, layout INTEGER NOT NULL,"
    " data BLOB NOT NULL);";

/* When a delivery arrived whose lines all have numbers: such lines are deduplicated without the delivery's row, which
 * is deleted after a while. NULL: the row stays as long as the session. */
static const char step_4[] = "ALTER TABLE delivery ADD COLUMN numbered_ns INTEGER;";

/* The number of rows according to the session's shutdown record. NULL: the record had no count or was stored before
 * this column existed. */
static const char step_5[] = "ALTER TABLE session ADD COLUMN rows_told INTEGER;";

static const char *const steps[] = {step_1, step_2, step_3, step_4, step_5};
_Static_assert(sizeof steps / sizeof *steps == SCHEMA_VERSION, "one step per version");

static gpufl_status script_run(struct connection *connection, const char *sql, struct problem *problem)
{
    int code = sqlite3_exec(connection->db, sql, NULL, NULL, NULL);
    return code == SQLITE_OK ? GPUFL_OK : connection_fail(connection, code, "preparing the store", problem);
}

gpufl_status schema_version(struct connection *connection, int *version, struct problem *problem)
{
    int64_t value, application;
    gpufl_status status = statement_integer(connection, &value, NULL, problem, "PRAGMA user_version", "");
    if (!status)
        status = statement_integer(connection, &application, NULL, problem, "PRAGMA application_id", "");
    if (status)
        return status;
    if (value && application != strtoll(APPLICATION_ID, NULL, 10))
        return problem_set(problem, GPUFL_E_DAMAGED, "the database is not a gpufl store");
    if (value > SCHEMA_VERSION)
        return problem_set(problem, GPUFL_E_VERSION,
                           "the store was written by a newer gpufl (schema %d, this one knows %d); update gpufl",
                           (int)value, SCHEMA_VERSION);
    *version = (int)value;
    return GPUFL_OK;
}

gpufl_status schema_prepare(struct connection *connection, struct problem *problem)
{
    int version = 0;
    gpufl_status status = schema_version(connection, &version, problem);
    /* Page size and vacuum mode take effect only before the first table exists. Setting them later would write, even on
     * a full disk. */
    if (!status && !version)
        status = script_run(connection, "PRAGMA page_size=4096; PRAGMA auto_vacuum=INCREMENTAL;", problem);
    if (!status)
        status = script_run(connection,
                            "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=OFF;"
                            "PRAGMA journal_size_limit=67108864;"
                            "PRAGMA cache_size=-32768; PRAGMA temp_store=MEMORY;",
                            problem);
    for (; !status && version < SCHEMA_VERSION; version++) {
        char finish[96];
        snprintf(finish, sizeof finish, "PRAGMA application_id=" APPLICATION_ID "; PRAGMA user_version=%d; COMMIT;",
                 version + 1);
        status = script_run(connection, "BEGIN IMMEDIATE;", problem);
        if (!status)
            status = script_run(connection, steps[version], problem);
        if (!status)
            status = script_run(connection, finish, problem);
        if (status)
            sqlite3_exec(connection->db, "ROLLBACK", NULL, NULL, NULL);
    }
    return status;
}
