/* SPDX-License-Identifier: Apache-2.0 */
/* The tables, in steps: step N takes a database of schema N - 1 to schema N. Steps never change once released. A server
 * that finds its own version does nothing, so it can start while a replica is down. */
#include "store/clickhouse_store.h"

#include <stdio.h>

/* Small tables are on every host, so catalog queries need no other host. Large tables are sharded: NAME_local on each
 * host and NAME as the distributed table over them; without a cluster NAME is the table itself. */
enum spread { EVERYWHERE, SHARDED };
struct table {
    const char *name;
    enum spread spread;
    const char *engine;  /* prefix of MergeTree */
    const char *version; /* of the rows of a ReplacingMergeTree */
    const char *columns, *order, *shard_key;
};

static const struct table step_1[] = {
    {"write", EVERYWHERE, "", "",
     "session_id String, write_id UInt64, state UInt8, generation UInt32, at DateTime DEFAULT now(), received_ns Int64,"
     " channel String, window_id String, crc UInt32, ranges String, known String, segments UInt32,"
     " segment_rows Int64, kernel_rows UInt32, lines Int64,"
     " rows Int64, bytes Int64, kernels Int64, kernel_ns Int64, app String, host String, kind String, engine String,"
     " session_state UInt8, has_start UInt8, start_ns Int64, end_ns Int64, loss_reason Array(String),"
     " loss_is_total Array(UInt8), loss_count Array(Int64), loss_is_unknown Array(UInt8), gpu_device Array(Int64),"
     " gpu_uuid Array(String), gpu_name Array(String)",
     /* Claims are useless after minutes and are deleted by the day. */
     "PARTITION BY (state, if(state = 1, toYYYYMM(at), toYYYYMMDD(at))) ORDER BY (session_id, write_id)", ""},
    {"change", EVERYWHERE, "", "",
     "session_id String, generation UInt32, what UInt8, at_ns Int64, tags Array(String), retention_ns Int64",
     "ORDER BY (session_id, at_ns)", ""},
    {"gpu", EVERYWHERE, "Replacing", "version",
     "host String, uuid String, aspect UInt8, version UInt64, device_id Int64, name String, type String,"
     " columns String, sample String, session_id String",
     "ORDER BY (host, uuid, aspect)", ""},
    {"api_key", EVERYWHERE, "Replacing", "version",
     "key_id Int64, version UInt64, hash String, prefix String, name String, scope Int64, created_ns Int64,"
     " expires_ns Int64, revoked_ns Int64, last_used_ns Int64, rate_per_s Int64, quota_bytes_per_day Int64",
     "ORDER BY key_id", ""},
    {"config", EVERYWHERE, "", "",
     "name String, revision Int64, writer UInt64, state UInt8, changed_ns Int64, text String",
     "ORDER BY (name, revision, writer)", ""},
    {"audit", EVERYWHERE, "", "",
     "audit_id Int64, ts_ns Int64, actor String, action String, subject String, detail String", "ORDER BY audit_id",
     ""},
    {"segment", SHARDED, "", "",
     "session_id String, write_id UInt64, received_ns Int64, number UInt32, type String, channel String,"
     " columns String, rows UInt32, min_ns Int64, max_ns Int64, bytes UInt64, data String, shifts Array(UInt8),"
     " levels Array(String)",
     /* Rows are large: few of them are read at once. */
     "PARTITION BY toYYYYMM(toDateTime(intDiv(received_ns, 1000000000))) ORDER BY (session_id, type, write_id, number)"
     " SETTINGS index_granularity = 32",
     "cityHash64(session_id, write_id)"},
    {"kernel", SHARDED, "", "",
     "session_id String, write_id UInt64, received_ns Int64, number UInt32, kernel_id UInt32, is_name UInt8,"
     " name String, count UInt64, total_ns Int64, min_ns Int64, max_ns Int64, sum_squares Float64,"
     " histogram Array(UInt64)",
     "PARTITION BY toYYYYMM(toDateTime(intDiv(received_ns, 1000000000))) ORDER BY (session_id, kernel_id, write_id)",
     "cityHash64(session_id, write_id)"},
    {"metric", SHARDED, "", "",
     "host String, uuid String, minute Int64, session_id String, write_id UInt64, received_ns Int64, type String,"
     " columns String, data String",
     "PARTITION BY toYYYYMM(toDateTime(intDiv(received_ns, 1000000000))) ORDER BY (host, uuid, minute, write_id)",
     "cityHash64(host, uuid)"},
    /* Created last: if it exists, the other tables do. */
    {"schema", EVERYWHERE, "", "", "version UInt32, at DateTime DEFAULT now()", "ORDER BY version", ""},
};

/* A column added later to a table that is on every host. Servers that do not know the column can share the table with
 * servers that do, so the schema version stays the same. Unknown: the shutdown record had no counts, or an older server
 * wrote the row. */
static const char expected_rows_column[] = "rows_told Int64 DEFAULT toInt64(-9223372036854775808)";

static gpufl_status statement_run(struct ch_store *store, struct bytes *sql, struct problem *problem)
{
    bytes_append_char(sql, '\0');
    gpufl_status status = sql->failed ? problem_set(problem, GPUFL_E_NO_MEMORY, "no memory for the store's tables")
                                      : ch_run(store->client, sql->data, "distributed_ddl_task_timeout=60", problem);
    bytes_clear(sql);
    return status;
}

static void cluster_append(const struct ch_store *store, struct bytes *sql)
{
    if (store->cluster[0])
        bytes_append_format(sql, " ON CLUSTER %s", store->cluster);
}

static void engine_append(const struct ch_store *store, const struct table *table, struct bytes *sql)
{
    const char *comma = "";
    bytes_append_format(sql, " ENGINE = %s%sMergeTree(", store->cluster[0] ? "Replicated" : "", table->engine);
    if (store->cluster[0] && table->spread == SHARDED)
        bytes_append_format(sql, "'/gpufl/%s/{shard}/%s', '{replica}'", store->database, table->name);
    else if (store->cluster[0])
        bytes_append_format(sql, "'/gpufl/%s/all/%s', '{shard}-{replica}'", store->database, table->name);
    if (table->version[0]) {
        comma = store->cluster[0] ? ", " : "";
        bytes_append_format(sql, "%s%s", comma, table->version);
    }
    bytes_append_format(sql, ") %s", table->order);
}

static gpufl_status table_make(struct ch_store *store, const struct table *table, struct problem *problem)
{
    struct bytes sql = {0};
    bool is_split = store->cluster[0] && table->spread == SHARDED;
    bytes_append_format(&sql, "CREATE TABLE IF NOT EXISTS %s.%s%s", store->database, table->name,
                        is_split ? "_local" : "");
    cluster_append(store, &sql);
    bytes_append_format(&sql, " (%s)", table->columns);
    engine_append(store, table, &sql);
    gpufl_status status = statement_run(store, &sql, problem);
    if (!status && is_split) {
        bytes_append_format(&sql, "CREATE TABLE IF NOT EXISTS %s.%s", store->database, table->name);
        cluster_append(store, &sql);
        bytes_append_format(&sql, " (%s) ENGINE = Distributed(%s, %s, %s_local, %s)", table->columns, store->cluster,
                            store->database, table->name, table->shard_key);
        status = statement_run(store, &sql, problem);
    }
    bytes_free(&sql);
    return status;
}

gpufl_status ch_schema_version(struct ch_store *store, int *version, struct problem *problem)
{
    struct bytes sql = {0};
    struct ch_rows rows = {0};
    *version = 0;
    bytes_append_text(&sql, "SELECT toUInt32(max(version)) FROM schema");
    gpufl_status status = ch_select(store->client, &sql, &rows, problem);
    if (!status && ch_rows_next(&rows))
        *version = (int)ch_u32(&rows);
    if (!status)
        status = ch_rows_end(&rows, problem);
    if (!status && *version > CH_SCHEMA_VERSION)
        status = problem_set(problem, GPUFL_E_VERSION,
                             "the store was written by a newer gpufl (schema %d, this one knows %d); update gpufl",
                             *version, CH_SCHEMA_VERSION);
    ch_rows_free(&rows);
    bytes_free(&sql);
    return status;
}

/* True when system.TABLE has such a row for our database. The query names no database, because ours may not exist
 * yet. */
static gpufl_status is_listed(struct ch_store *store, const char *table, const char *where, bool *is_there,
                              struct problem *problem)
{
    struct bytes sql = {0};
    struct ch_rows rows = {0};
    bytes_append_format(&sql, "SELECT toUInt8(count() > 0) FROM system.%s WHERE database = '%s' AND %s", table,
                        store->database, where);
    gpufl_status status = ch_select_outside(store->client, &sql, &rows, problem);
    *is_there = !status && ch_rows_next(&rows) && ch_u8(&rows);
    if (!status)
        status = ch_rows_end(&rows, problem);
    ch_rows_free(&rows);
    bytes_free(&sql);
    return status;
}

static gpufl_status has_expected_rows(struct ch_store *store, bool *is_there, struct problem *problem)
{
    return is_listed(store, "columns", "table = 'write' AND name = 'rows_told'", is_there, problem);
}

/* Runs on one host: the others follow, also those that are down now. Another server may do the same at this moment. */
static gpufl_status expected_rows_add(struct ch_store *store, struct problem *problem)
{
    struct bytes sql = {0};
    bool is_there;
    gpufl_status status = has_expected_rows(store, &is_there, problem);
    if (status || is_there)
        return status;
    bytes_append_format(&sql, "ALTER TABLE %s.write ADD COLUMN %s AFTER rows", store->database, expected_rows_column);
    status = statement_run(store, &sql, problem);
    bytes_free(&sql);
    struct problem ignored;
    return status && has_expected_rows(store, &is_there, &ignored) == GPUFL_OK && is_there ? GPUFL_OK : status;
}

static gpufl_status tables_make(struct ch_store *store, struct problem *problem)
{
    struct bytes sql = {0};
    bytes_append_format(&sql, "CREATE DATABASE IF NOT EXISTS %s", store->database);
    cluster_append(store, &sql);
    gpufl_status status = statement_run(store, &sql, problem);
    for (size_t i = 0; i < sizeof step_1 / sizeof *step_1 && !status; i++)
        status = table_make(store, &step_1[i], problem);
    bytes_free(&sql);
    return status;
}

gpufl_status ch_schema_prepare(struct ch_store *store, struct problem *problem)
{
    struct bytes row = {0};
    bool is_there = false, is_whole = false;
    int version = 0;
    gpufl_status status = is_listed(store, "tables", "name = 'schema'", &is_there, problem);
    if (!status && is_there)
        status = ch_schema_version(store, &version, problem);
    if (!status && version == CH_SCHEMA_VERSION)
        status = has_expected_rows(store, &is_whole, problem);
    if (status || is_whole)
        return status;
    if (store->base.is_read_only)
        return problem_set(problem, GPUFL_E_NOT_FOUND,
                           "ClickHouse's database %s has no store or an older one; run gpufl serve on it once",
                           store->database);
    if (version == CH_SCHEMA_VERSION)
        return expected_rows_add(store, problem);
    status = tables_make(store, problem);
    if (!status)
        status = expected_rows_add(store, problem);
    ch_put_u32(&row, CH_SCHEMA_VERSION);
    if (!status)
        status = ch_insert(store->client, "schema (version)", &row, problem);
    bytes_free(&row);
    return status;
}
