/* SPDX-License-Identifier: Apache-2.0 */
/* Keys, named configurations and the audit log. */
#include "store/sqlite_store.h"

#include "base/clock.h"

#include <stdio.h>

enum { AUDITS_KEPT = 100000 };

#define KEY_COLUMNS                                                                                        \
    "SELECT key, hash, prefix, name, scope, created_ns, expires_ns, revoked_ns, last_used_ns, rate_per_s," \
    " quota_bytes_per_day FROM api_key"

static void key_read(sqlite3_stmt *statement, struct store_key *key)
{
    *key = (struct store_key){.key_id = sqlite3_column_int64(statement, 0),
                              .scope = sqlite3_column_int64(statement, 4),
                              .created_ns = row_integer(statement, 5),
                              .expires_ns = row_integer(statement, 6),
                              .revoked_ns = row_integer(statement, 7),
                              .last_used_ns = row_integer(statement, 8),
                              .rate_per_s = row_integer(statement, 9),
                              .quota_bytes_per_day = row_integer(statement, 10)};
    const void *hash = sqlite3_column_blob(statement, 1);
    if (hash && sqlite3_column_bytes(statement, 1) == STORE_KEY_HASH_SIZE)
        memcpy(key->hash, hash, STORE_KEY_HASH_SIZE);
    snprintf(key->prefix, sizeof key->prefix, "%s", row_text(statement, 2));
    snprintf(key->name, sizeof key->name, "%s", row_text(statement, 3));
}

static gpufl_status key_apply(struct sqlite_store *store, struct connection *connection, void *arg,
                              struct problem *problem)
{
    struct store_key *key = arg;
    int64_t other;
    bool is_there;
    (void)store;
    gpufl_status status =
        statement_integer(connection, &other, &is_there, problem, "SELECT key FROM api_key WHERE hash=?1 AND key<>?2",
                          "bi", key->hash, (size_t)STORE_KEY_HASH_SIZE, key->key_id);
    if (!status && is_there)
        return problem_set(problem, GPUFL_E_INVALID, "this key exists already");
    if (!status)
        status = statement_run(connection, problem,
                               "INSERT OR REPLACE INTO api_key(key, hash, prefix, name, scope, created_ns, expires_ns,"
                               " revoked_ns, last_used_ns, rate_per_s, quota_bytes_per_day)"
                               " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7,"
                               " IFNULL(?8, (SELECT revoked_ns FROM api_key WHERE key=?1)),"
                               " (SELECT max(used) FROM (SELECT ?9 AS used UNION ALL"
                               " SELECT last_used_ns FROM api_key WHERE key=?1)), ?10, ?11)",
                               "ibttiiiiiii", key->key_id ? key->key_id : CELL_UNKNOWN, key->hash,
                               (size_t)STORE_KEY_HASH_SIZE, key->prefix, key->name, key->scope, key->created_ns,
                               key->expires_ns, key->revoked_ns, key->last_used_ns, key->rate_per_s,
                               key->quota_bytes_per_day);
    if (!status)
        key->key_id = sqlite3_last_insert_rowid(connection->db);
    return status;
}

gpufl_status sqlite_key_put(struct store *base, struct store_key *key, struct problem *problem)
{
    struct store_key made = *key; /* the caller's key_id is set only after the key is on disk */
    gpufl_status status = store_change(sqlite_store_of(base), key_apply, &made, 0, problem);
    if (!status)
        *key = made;
    return status;
}

gpufl_status sqlite_key_find(struct store *base, const uint8_t hash[STORE_KEY_HASH_SIZE], struct store_key *key,
                             struct problem *problem)
{
    struct sqlite_store *store = sqlite_store_of(base);
    struct connection *reader;
    sqlite3_stmt *statement;
    bool has_row = false;
    gpufl_status status = reader_begin(store, &reader, problem);
    if (status)
        return status;
    status = statement_open(reader, &statement, problem, KEY_COLUMNS " WHERE hash=?", "b", hash,
                            (size_t)STORE_KEY_HASH_SIZE);
    if (!status)
        status = statement_next(reader, statement, &has_row, problem);
    if (!status && has_row)
        key_read(statement, key);
    else if (!status)
        status = problem_set(problem, GPUFL_E_NOT_FOUND, "no such key");
    reader_end(store, reader);
    return status;
}

struct key_use {
    const uint8_t *hash;
    int64_t used_ns;
};

static gpufl_status use_apply(struct sqlite_store *store, struct connection *connection, void *arg,
                              struct problem *problem)
{
    const struct key_use *use = arg;
    (void)store;
    gpufl_status status = statement_run(connection, problem,
                                        "UPDATE api_key SET last_used_ns=max(IFNULL(last_used_ns, ?1), ?1) WHERE"
                                        " hash=?2",
                                        "ib", use->used_ns, use->hash, (size_t)STORE_KEY_HASH_SIZE);
    if (!status && !sqlite3_changes(connection->db))
        status = problem_set(problem, GPUFL_E_NOT_FOUND, "no such key");
    return status;
}

gpufl_status sqlite_key_use(struct store *base, const uint8_t hash[STORE_KEY_HASH_SIZE], int64_t used_ns,
                            struct problem *problem)
{
    struct key_use use = {.hash = hash, .used_ns = used_ns};
    return store_change(sqlite_store_of(base), use_apply, &use, 0, problem);
}

gpufl_status sqlite_keys(struct store *base, store_key_fn on_key, void *user, struct problem *problem)
{
    struct sqlite_store *store = sqlite_store_of(base);
    struct connection *reader;
    sqlite3_stmt *statement;
    bool has_row = true, goes_on = true;
    gpufl_status status = reader_begin(store, &reader, problem);
    if (status)
        return status;
    status = statement_open(reader, &statement, problem, KEY_COLUMNS " ORDER BY key", "");
    while (!status && goes_on && !(status = statement_next(reader, statement, &has_row, problem)) && has_row) {
        struct store_key key;
        key_read(statement, &key);
        goes_on = on_key(user, &key);
    }
    reader_end(store, reader);
    return status;
}

/* ---- configurations ---- */

struct config_change {
    const char *name, *text; /* text NULL: delete */
    size_t size;
    int64_t expected_revision, revision;
};

static gpufl_status config_apply(struct sqlite_store *store, struct connection *connection, void *arg,
                                 struct problem *problem)
{
    struct config_change *change = arg;
    bool is_there;
    int64_t revision;
    (void)store;
    gpufl_status status = statement_integer(connection, &revision, &is_there, problem,
                                            "SELECT revision FROM config WHERE name=?", "t", change->name);
    if (status)
        return status;
    if (!is_there && !change->text)
        return problem_set(problem, GPUFL_E_NOT_FOUND, "there is no configuration %s", change->name);
    if (change->expected_revision >= 0 && change->expected_revision != (is_there ? revision : 0))
        return problem_set(problem, GPUFL_E_BUSY, "the configuration %s was changed meanwhile", change->name);
    if (!change->text)
        return statement_run(connection, problem, "DELETE FROM config WHERE name=?", "t", change->name);
    change->revision = is_there ? revision + 1 : 1;
    return statement_run(connection, problem,
                         "INSERT OR REPLACE INTO config(name, text, revision, changed_ns) VALUES(?1, ?2, ?3, ?4)",
                         "tbii", change->name, change->text, change->size, change->revision, clock_wall_ns());
}

gpufl_status sqlite_config_put(struct store *base, const char *name, const char *text, size_t size,
                               int64_t expected_revision, int64_t *revision, struct problem *problem)
{
    struct config_change change = {.name = name, .text = text, .size = size, .expected_revision = expected_revision};
    gpufl_status status = store_change(sqlite_store_of(base), config_apply, &change, size, problem);
    if (!status)
        *revision = change.revision;
    return status;
}

gpufl_status sqlite_config_delete(struct store *base, const char *name, int64_t expected_revision,
                                  struct problem *problem)
{
    struct config_change change = {.name = name, .expected_revision = expected_revision};
    return store_change(sqlite_store_of(base), config_apply, &change, 0, problem);
}

gpufl_status sqlite_configs(struct store *base, const char *name, store_config_fn on_config, void *user,
                            struct problem *problem)
{
    struct sqlite_store *store = sqlite_store_of(base);
    struct connection *reader;
    sqlite3_stmt *statement;
    bool has_row = true, goes_on = true, is_found = false;
    gpufl_status status = reader_begin(store, &reader, problem);
    if (status)
        return status;
    status = statement_open(reader, &statement, problem,
                            "SELECT name, text, revision, changed_ns FROM config WHERE ?1 IS NULL OR name=?1"
                            " ORDER BY name",
                            "t", name);
    while (!status && goes_on && !(status = statement_next(reader, statement, &has_row, problem)) && has_row) {
        const char *text = sqlite3_column_blob(statement, 1);
        const struct store_config config = {.name = row_text(statement, 0),
                                            .text = text ? text : "",
                                            .size = (size_t)sqlite3_column_bytes(statement, 1),
                                            .revision = sqlite3_column_int64(statement, 2),
                                            .changed_ns = sqlite3_column_int64(statement, 3)};
        is_found = true;
        goes_on = on_config(user, &config);
    }
    if (!status && name && !is_found)
        status = problem_set(problem, GPUFL_E_NOT_FOUND, "there is no configuration %s", name);
    reader_end(store, reader);
    return status;
}

/* ---- audit log ---- */

static gpufl_status audit_apply(struct sqlite_store *store, struct connection *connection, void *arg,
                                struct problem *problem)
{
    const struct store_audit *entry = arg;
    (void)store;
    gpufl_status status =
        statement_run(connection, problem,
                      "INSERT INTO audit(ts_ns, actor, action, subject, detail)"
                      " VALUES(?1, IFNULL(?2, ''), IFNULL(?3, ''), IFNULL(?4, ''), IFNULL(?5, ''))",
                      "itttt", entry->ts_ns, entry->actor, entry->action, entry->subject, entry->detail);
    return status ? status
                  : statement_run(connection, problem, "DELETE FROM audit WHERE audit<=?", "i",
                                  sqlite3_last_insert_rowid(connection->db) - AUDITS_KEPT);
}

gpufl_status sqlite_audit_add(struct store *base, const struct store_audit *entry, struct problem *problem)
{
    struct store_audit copy = *entry;
    return store_change_reserved(sqlite_store_of(base), audit_apply, &copy, problem);
}

gpufl_status sqlite_audits(struct store *base, int64_t before_id, unsigned limit, store_audit_fn on_entry, void *user,
                           struct problem *problem)
{
    struct sqlite_store *store = sqlite_store_of(base);
    struct connection *reader;
    sqlite3_stmt *statement;
    bool has_row = true, goes_on = true;
    gpufl_status status = reader_begin(store, &reader, problem);
    if (status)
        return status;
    status = statement_open(reader, &statement, problem,
                            "SELECT audit, ts_ns, actor, action, subject, detail FROM audit WHERE audit<?1"
                            " ORDER BY audit DESC LIMIT ?2",
                            "ii", before_id > 0 ? before_id : INT64_MAX, (int64_t)limit);
    while (!status && goes_on && !(status = statement_next(reader, statement, &has_row, problem)) && has_row) {
        const struct store_audit entry = {.audit_id = sqlite3_column_int64(statement, 0),
                                          .ts_ns = sqlite3_column_int64(statement, 1),
                                          .actor = row_text(statement, 2),
                                          .action = row_text(statement, 3),
                                          .subject = row_text(statement, 4),
                                          .detail = row_text(statement, 5)};
        goes_on = on_entry(user, &entry);
    }
    reader_end(store, reader);
    return status;
}
