/* SPDX-License-Identifier: Apache-2.0 */
/* Keys, named configurations and the audit log. */
#include "store/clickhouse_store.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/random.h>

enum { CONFIG_PUT = 0, CONFIG_DELETED = 1, CONFIG_VOID = 2 };

static gpufl_status writable(const struct store *base, struct problem *problem)
{
    return base->is_read_only ? problem_set(problem, GPUFL_E_PERMISSION, "the store was opened for reading only")
                              : GPUFL_OK;
}

/* ---- keys ---- */

/* The newest row of each key counts. Several servers may write at the same time, each from data that it read earlier,
 * so a row alone decides two cases: a revoked key's version is larger than any other version, and times of use are in
 * separate rows whose key_id is negative and whose other columns are empty. */
#define VERSION_REVOKED (UINT64_C(1) << 63)

static const char key_columns[] =
    "SELECT toInt64(abs(key_id)) AS id, argMaxIf(hash, version, key_id > 0) AS hash,"
    " argMaxIf(prefix, version, key_id > 0), argMaxIf(name, version, key_id > 0), argMaxIf(scope, version, key_id > 0),"
    " argMaxIf(created_ns, version, key_id > 0), argMaxIf(expires_ns, version, key_id > 0),"
    " argMaxIf(revoked_ns, version, key_id > 0), max(last_used_ns), argMaxIf(rate_per_s, version, key_id > 0),"
    " argMaxIf(quota_bytes_per_day, version, key_id > 0) FROM api_key GROUP BY id HAVING hash != ''";

static void key_take(struct ch_rows *rows, struct store_key *key)
{
    size_t size;
    *key = (struct store_key){.key_id = ch_i64(rows)};
    const char *hash = ch_text(rows, &size);
    if (size == STORE_KEY_HASH_SIZE)
        memcpy(key->hash, hash, STORE_KEY_HASH_SIZE);
    snprintf(key->prefix, sizeof key->prefix, "%s", ch_text(rows, NULL));
    snprintf(key->name, sizeof key->name, "%s", ch_text(rows, NULL));
    int64_t *const numbers[] = {&key->scope,        &key->created_ns, &key->expires_ns,         &key->revoked_ns,
                                &key->last_used_ns, &key->rate_per_s, &key->quota_bytes_per_day};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        *numbers[i] = ch_i64(rows);
}

static void hash_append(struct bytes *sql, const uint8_t hash[STORE_KEY_HASH_SIZE])
{
    bytes_append_text(sql, " AND hash = unhex('");
    for (unsigned i = 0; i < STORE_KEY_HASH_SIZE; i++)
        bytes_append_format(sql, "%02X", hash[i]);
    bytes_append_text(sql, "')");
}

gpufl_status ch_key_find(struct store *base, const uint8_t hash[STORE_KEY_HASH_SIZE], struct store_key *key,
                         struct problem *problem)
{
    struct bytes sql = {0};
    struct ch_rows rows = {0};
    struct store_key found = {0};
    bytes_append_text(&sql, key_columns);
    hash_append(&sql, hash);
    gpufl_status status = ch_select(ch_store_of(base)->client, &sql, &rows, problem);
    bool is_there = !status && ch_rows_next(&rows);
    if (is_there)
        key_take(&rows, &found);
    if (!status)
        status = ch_rows_end(&rows, problem);
    if (!status && !is_there)
        status = problem_set(problem, GPUFL_E_NOT_FOUND, "no such key");
    if (!status)
        *key = found;
    ch_rows_free(&rows);
    bytes_free(&sql);
    return status;
}

static gpufl_status key_row(struct ch_store *store, const struct store_key *key, uint64_t version, size_t hash_size,
                            struct problem *problem)
{
    struct bytes row = {0};
    ch_put_i64(&row, key->key_id);
    ch_put_u64(&row, version);
    ch_put_blob(&row, key->hash, hash_size);
    ch_put_text(&row, key->prefix);
    ch_put_text(&row, key->name);
    const int64_t numbers[] = {key->scope,        key->created_ns, key->expires_ns,         key->revoked_ns,
                               key->last_used_ns, key->rate_per_s, key->quota_bytes_per_day};
    ch_put(&row, numbers, sizeof numbers);
    gpufl_status status =
        ch_insert(store->client,
                  "api_key (key_id,version,hash,prefix,name,scope,created_ns,expires_ns,revoked_ns,last_used_ns,"
                  "rate_per_s,quota_bytes_per_day)",
                  &row, problem);
    bytes_free(&row);
    return status;
}

gpufl_status ch_key_put(struct store *base, struct store_key *key, struct problem *problem)
{
    struct ch_store *store = ch_store_of(base);
    struct store_key other, made = *key; /* the caller's key_id is set only after the row is written */
    gpufl_status status = writable(base, problem);
    if (status)
        return status;
    status = ch_key_find(base, key->hash, &other, problem);
    if (!status && other.key_id != key->key_id)
        return problem_set(problem, GPUFL_E_INVALID, "this key exists already");
    if (status && status != GPUFL_E_NOT_FOUND)
        return status;
    uint64_t version = (uint64_t)ch_unique_ns(store);
    if (key->revoked_ns != CELL_UNKNOWN)
        version |= VERSION_REVOKED;
    made.key_id = key->key_id ? key->key_id : ch_unique_us(store);
    status = key_row(store, &made, version, STORE_KEY_HASH_SIZE, problem);
    if (!status)
        *key = made;
    return status;
}

gpufl_status ch_key_use(struct store *base, const uint8_t hash[STORE_KEY_HASH_SIZE], int64_t used_ns,
                        struct problem *problem)
{
    struct store_key key;
    gpufl_status status = writable(base, problem);
    if (!status)
        status = ch_key_find(base, hash, &key, problem);
    if (status)
        return status;
    const struct store_key use = {.key_id = -key.key_id, .last_used_ns = used_ns};
    return key_row(ch_store_of(base), &use, (uint64_t)used_ns, 0, problem);
}

gpufl_status ch_keys(struct store *base, store_key_fn on_key, void *user, struct problem *problem)
{
    struct bytes sql = {0};
    struct ch_rows rows = {0};
    bool goes_on = true;
    bytes_append_text(&sql, key_columns);
    bytes_append_text(&sql, " ORDER BY id");
    gpufl_status status = ch_select(ch_store_of(base)->client, &sql, &rows, problem);
    while (!status && goes_on && ch_rows_next(&rows)) {
        struct store_key key;
        key_take(&rows, &key);
        status = ch_rows_end(&rows, problem);
        goes_on = !status && on_key(user, &key);
    }
    ch_rows_free(&rows);
    bytes_free(&sql);
    return status;
}

/* ---- configurations ---- */

/* The newest revision of each name that is not void counts. When two writers made the same revision, the first one
 * counts. */
#define CONFIG_TABLE                                                                          \
    "(SELECT name, revision, argMin(state, changed_ns) AS state, min(changed_ns) AS changed," \
    " argMin(text, changed_ns) AS text FROM config WHERE (name, revision, writer) NOT IN"     \
    " (SELECT name, revision, writer FROM config WHERE state = 2) GROUP BY name, revision"    \
    " ORDER BY name, revision DESC LIMIT 1 BY name)"

struct config_state {
    int64_t revision; /* 0: never existed */
    bool is_there;
};

static gpufl_status config_read(struct ch_store *store, const char *name, struct config_state *state,
                                struct problem *problem)
{
    struct bytes sql = {0};
    struct ch_rows rows = {0};
    *state = (struct config_state){0};
    bytes_append_text(&sql, "SELECT revision, state FROM " CONFIG_TABLE " WHERE name = ");
    ch_quote_text(&sql, name);
    gpufl_status status = ch_select_latest(store->client, "config", &sql, &rows, problem);
    if (!status && ch_rows_next(&rows)) {
        state->revision = ch_i64(&rows);
        state->is_there = ch_u8(&rows) == CONFIG_PUT;
    }
    if (!status)
        status = ch_rows_end(&rows, problem);
    ch_rows_free(&rows);
    bytes_free(&sql);
    return status;
}

static gpufl_status config_row(struct ch_store *store, const char *name, int64_t revision, uint64_t writer,
                               uint8_t state, const char *text, size_t size, struct problem *problem)
{
    struct bytes row = {0};
    ch_put_text(&row, name);
    ch_put_i64(&row, revision);
    ch_put_u64(&row, writer);
    ch_put_u8(&row, state);
    ch_put_i64(&row, ch_unique_ns(store));
    ch_put_blob(&row, text, size);
    gpufl_status status =
        ch_insert(store->client, "config (name,revision,writer,state,changed_ns,text)", &row, problem);
    bytes_free(&row);
    return status;
}

/* Whether another writer made the same revision. */
static gpufl_status config_is_alone(struct ch_store *store, const char *name, int64_t revision, uint64_t writer,
                                    bool *is_alone, struct problem *problem)
{
    struct bytes sql = {0};
    struct ch_rows rows = {0};
    bytes_append_text(&sql, "SELECT writer, max(state) FROM config WHERE name = ");
    ch_quote_text(&sql, name);
    bytes_append_format(&sql, " AND revision = %" PRId64 " GROUP BY writer", revision);
    gpufl_status status = ch_select_latest(store->client, "config", &sql, &rows, problem);
    *is_alone = true;
    while (!status && ch_rows_next(&rows)) {
        uint64_t other = ch_u64(&rows);
        *is_alone &= (ch_u8(&rows) == CONFIG_VOID) | (other == writer);
    }
    if (!status)
        status = ch_rows_end(&rows, problem);
    ch_rows_free(&rows);
    bytes_free(&sql);
    return status;
}

/* text NULL: delete. A writer that finds another writer's row of the same revision withdraws its own, so at most one of
 * them stays. */
static gpufl_status config_change(struct store *base, const char *name, const char *text, size_t size,
                                  int64_t expected_revision, int64_t *revision, struct problem *problem)
{
    struct ch_store *store = ch_store_of(base);
    struct config_state there;
    uint64_t writer;
    bool is_alone = true;
    gpufl_status status = writable(base, problem);
    if (!status)
        status = config_read(store, name, &there, problem);
    if (status)
        return status;
    if (!there.is_there && !text)
        return problem_set(problem, GPUFL_E_NOT_FOUND, "there is no configuration %s", name);
    if (expected_revision >= 0 && expected_revision != (there.is_there ? there.revision : 0))
        return problem_set(problem, GPUFL_E_BUSY, "the configuration %s was changed meanwhile", name);
    if (getrandom(&writer, sizeof writer, 0) != (ssize_t)sizeof writer)
        return problem_set(problem, GPUFL_E_IO, "no random number for a configuration");
    *revision = there.revision + 1;
    status =
        config_row(store, name, *revision, writer, text ? CONFIG_PUT : CONFIG_DELETED, text ? text : "", size, problem);
    if (!status)
        status = config_is_alone(store, name, *revision, writer, &is_alone, problem);
    if (!status && !is_alone) {
        (void)!config_row(store, name, *revision, writer, CONFIG_VOID, "", 0, NULL);
        status = problem_set(problem, GPUFL_E_BUSY, "the configuration %s was changed meanwhile", name);
    }
    return status;
}

gpufl_status ch_config_put(struct store *base, const char *name, const char *text, size_t size,
                           int64_t expected_revision, int64_t *revision, struct problem *problem)
{
    int64_t made = 0;
    gpufl_status status = config_change(base, name, text, size, expected_revision, &made, problem);
    if (!status)
        *revision = made;
    return status;
}

gpufl_status ch_config_delete(struct store *base, const char *name, int64_t expected_revision, struct problem *problem)
{
    int64_t made;
    return config_change(base, name, NULL, 0, expected_revision, &made, problem);
}

gpufl_status ch_configs(struct store *base, const char *name, store_config_fn on_config, void *user,
                        struct problem *problem)
{
    struct bytes sql = {0};
    struct ch_rows rows = {0};
    bool goes_on = true, is_found = false;
    bytes_append_text(&sql, "SELECT name, text, revision, changed FROM " CONFIG_TABLE " WHERE state = 0");
    if (name) {
        bytes_append_text(&sql, " AND name = ");
        ch_quote_text(&sql, name);
    }
    bytes_append_text(&sql, " ORDER BY name");
    gpufl_status status = ch_select(ch_store_of(base)->client, &sql, &rows, problem);
    while (!status && goes_on && ch_rows_next(&rows)) {
        struct store_config config = {.name = ch_text(&rows, NULL)};
        config.text = ch_text(&rows, &config.size);
        config.revision = ch_i64(&rows);
        config.changed_ns = ch_i64(&rows);
        status = ch_rows_end(&rows, problem);
        is_found = true;
        goes_on = !status && on_config(user, &config);
    }
    if (!status && name && !is_found)
        status = problem_set(problem, GPUFL_E_NOT_FOUND, "there is no configuration %s", name);
    ch_rows_free(&rows);
    bytes_free(&sql);
    return status;
}

/* ---- audit log ---- */

gpufl_status ch_audit_add(struct store *base, const struct store_audit *entry, struct problem *problem)
{
    struct ch_store *store = ch_store_of(base);
    struct bytes row = {0};
    gpufl_status status = writable(base, problem);
    if (status)
        return status;
    ch_put_i64(&row, ch_unique_us(store));
    ch_put_i64(&row, entry->ts_ns);
    const char *const texts[] = {entry->actor, entry->action, entry->subject, entry->detail};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        ch_put_text(&row, texts[i] ? texts[i] : "");
    status = ch_insert(store->client, "audit (audit_id,ts_ns,actor,action,subject,detail)", &row, problem);
    bytes_free(&row);
    return status;
}

gpufl_status ch_audits(struct store *base, int64_t before_id, unsigned limit, store_audit_fn on_entry, void *user,
                       struct problem *problem)
{
    struct bytes sql = {0};
    struct ch_rows rows = {0};
    bool goes_on = true;
    bytes_append_format(&sql,
                        "SELECT audit_id, ts_ns, actor, action, subject, detail FROM audit WHERE audit_id < %" PRId64
                        " ORDER BY audit_id DESC LIMIT %u",
                        before_id > 0 ? before_id : INT64_MAX, limit);
    gpufl_status status = ch_select(ch_store_of(base)->client, &sql, &rows, problem);
    while (!status && goes_on && ch_rows_next(&rows)) {
        struct store_audit entry = {.audit_id = ch_i64(&rows)};
        entry.ts_ns = ch_i64(&rows);
        entry.actor = ch_text(&rows, NULL);
        entry.action = ch_text(&rows, NULL);
        entry.subject = ch_text(&rows, NULL);
        entry.detail = ch_text(&rows, NULL);
        status = ch_rows_end(&rows, problem);
        goes_on = !status && on_entry(user, &entry);
    }
    ch_rows_free(&rows);
    bytes_free(&sql);
    return status;
}
