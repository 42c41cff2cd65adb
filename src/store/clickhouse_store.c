/* SPDX-License-Identifier: Apache-2.0 */
/* Opening, closing, and functions that the parts of the engine share. */
#include "store/clickhouse_store.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>

int64_t ch_unique_ns(struct ch_store *store)
{
    int64_t now_ns = clock_wall_ns();
    pthread_mutex_lock(&store->mutex);
    store->last_ns = now_ns > store->last_ns ? now_ns : store->last_ns + 1;
    now_ns = store->last_ns;
    pthread_mutex_unlock(&store->mutex);
    return now_ns;
}

int64_t ch_unique_us(struct ch_store *store)
{
    int64_t now_us = clock_wall_ns() / 1000;
    pthread_mutex_lock(&store->mutex);
    store->last_us = now_us > store->last_us ? now_us : store->last_us + 1;
    now_us = store->last_us;
    pthread_mutex_unlock(&store->mutex);
    return now_us;
}

gpufl_status ch_rows_end(const struct ch_rows *rows, struct problem *problem)
{
    return rows->is_damaged ? problem_set(problem, GPUFL_E_DAMAGED, "ClickHouse's answer cannot be read") : GPUFL_OK;
}

static const struct layout *layout_find(struct ch_store *store, const char *key)
{
    for (size_t i = 0; i < store->layout_count; i++)
        if (!strcmp(store->layouts[i].key, key))
            return store->layouts[i].layout;
    return NULL;
}

static const struct layout *layout_add(struct ch_store *store, const char *key, const char *type_name,
                                       const char *columns)
{
    if (store->layout_count == store->layout_capacity) {
        size_t capacity = store->layout_capacity ? store->layout_capacity * 2 : 64;
        struct ch_layout *grown = realloc(store->layouts, capacity * sizeof *grown);
        if (!grown)
            return NULL;
        store->layouts = grown;
        store->layout_capacity = capacity;
    }
    struct ch_layout *added = &store->layouts[store->layout_count];
    added->key = strdup(key);
    added->layout = added->key ? layout_parse(0, type_name, columns) : NULL;
    if (!added->layout) {
        free(added->key);
        return NULL;
    }
    store->layout_count++;
    return added->layout;
}

const struct layout *ch_layout_get(struct ch_store *store, const char *type_name, const char *columns,
                                   struct problem *problem)
{
    struct bytes key = {0};
    bytes_append_format(&key, "%s\n%s", type_name, columns);
    bytes_append_char(&key, '\0');
    const struct layout *layout = NULL;
    if (!key.failed) {
        pthread_mutex_lock(&store->mutex);
        layout = layout_find(store, key.data);
        if (!layout)
            layout = layout_add(store, key.data, type_name, columns);
        pthread_mutex_unlock(&store->mutex);
    }
    bytes_free(&key);
    if (!layout)
        problem_set(problem, GPUFL_E_NO_MEMORY, "no memory for the layouts of segments");
    return layout;
}

void ch_session_where(struct bytes *sql, const char *session_id, uint32_t generation)
{
    bytes_append_text(sql, " WHERE state = 1 AND session_id = ");
    ch_quote_text(sql, session_id);
    bytes_append_format(sql, " AND generation = %u", generation);
}

gpufl_status ch_session_find(struct ch_store *store, const char *session_id, uint32_t *generation,
                             struct problem *problem)
{
    struct bytes sql = {0};
    struct ch_rows rows = {0};
    bytes_append_text(&sql, "SELECT toUInt32(max(generation)), toUInt32((SELECT max(generation) FROM change WHERE"
                            " session_id = ");
    ch_quote_text(&sql, session_id);
    bytes_append_text(&sql, ")) FROM write WHERE state = 1 AND session_id = ");
    ch_quote_text(&sql, session_id);
    bytes_append_text(&sql, " HAVING count() > 0");
    gpufl_status status = ch_select(store->client, &sql, &rows, problem);
    uint32_t written = 0, current = 1;
    if (!status && ch_rows_next(&rows)) {
        written = ch_u32(&rows);
        current = ch_u32(&rows);
    }
    if (!status)
        status = ch_rows_end(&rows, problem);
    if (!status && written != current)
        status = problem_set(problem, GPUFL_E_NOT_FOUND, "no session %s", session_id);
    *generation = current;
    ch_rows_free(&rows);
    bytes_free(&sql);
    return status;
}

void ch_forget(struct ch_store *store, const char *table, bool is_shared, const char *condition)
{
    struct bytes sql = {0};
    bytes_append_format(&sql, "ALTER TABLE %s.%s%s", store->database, table,
                        store->cluster[0] && !is_shared ? "_local" : "");
    /* A table that is on every host is changed through any of them. */
    if (store->cluster[0] && !is_shared)
        bytes_append_format(&sql, " ON CLUSTER %s", store->cluster);
    bytes_append_format(&sql, " DELETE WHERE %s", condition);
    bytes_append_char(&sql, '\0');
    if (!sql.failed)
        (void)!ch_run(store->client, sql.data, "distributed_ddl_task_timeout=0&max_query_size=67108864", NULL);
    bytes_free(&sql);
}

static void ch_close(struct store *base)
{
    struct ch_store *store = ch_store_of(base);
    pthread_mutex_lock(&store->mutex);
    store->is_closing = true;
    pthread_cond_broadcast(&store->changed);
    pthread_mutex_unlock(&store->mutex);
    if (store->has_writer)
        pthread_join(store->writer_thread, NULL);
    for (size_t i = 0; i < store->layout_count; i++) {
        free(store->layouts[i].key);
        free(store->layouts[i].layout);
    }
    free(store->layouts);
    ch_client_close(store->client);
    pthread_cond_destroy(&store->changed);
    pthread_cond_destroy(&store->done);
    pthread_mutex_destroy(&store->mutex);
    free(store);
}

static const struct store_engine ch_engine = {
    .close = ch_close,
    .write_begin = ch_write_begin,
    .write_line = ch_write_line,
    .write_name = ch_write_name,
    .write_commit = ch_write_commit,
    .write_abort = ch_write_abort,
    .read = ch_read,
    .sessions = ch_sessions,
    .session = ch_session,
    .session_delete = ch_session_delete,
    .session_tag = ch_session_tag,
    .session_keep = ch_session_keep,
    .session_end = ch_session_end,
    .gpus = ch_gpus,
    .key_put = ch_key_put,
    .key_find = ch_key_find,
    .key_use = ch_key_use,
    .keys = ch_keys,
    .config_put = ch_config_put,
    .configs = ch_configs,
    .config_delete = ch_config_delete,
    .audit_add = ch_audit_add,
    .audits = ch_audits,
    .kernels = ch_kernels,
    .kernel_search = ch_kernel_search,
    .scopes = ch_scopes,
    .metrics = ch_metrics,
    .timeline = ch_timeline,
    .retain = ch_retain,
    .maintain = ch_maintain,
    .backup = ch_backup,
    .check = ch_check,
    .stats = ch_stats,
    .commit_state = ch_commit_state,
};

gpufl_status clickhouse_store_open(struct store **out, const char *url, const struct store_options *options,
                                   struct problem *problem)
{
    struct ch_location *location = malloc(sizeof *location);
    struct ch_store *store = calloc(1, sizeof *store);
    gpufl_status status = location && store ? ch_location_parse(location, url, problem)
                                            : problem_set(problem, GPUFL_E_NO_MEMORY, "no memory for the store");
    if (status || !location || !store) {
        free(location);
        free(store);
        return status;
    }
    store->base = (struct store){.engine = &ch_engine, .is_read_only = options->is_read_only};
    store->options = *options;
    store->options.write_bytes_max = options->write_bytes_max ? options->write_bytes_max : UINT64_C(64) << 20;
    store->options.queue_bytes_max = options->queue_bytes_max ? options->queue_bytes_max : UINT64_C(256) << 20;
    store->last_commit_ns = CELL_UNKNOWN;
    memcpy(store->database, location->database, sizeof store->database);
    memcpy(store->cluster, location->cluster, sizeof store->cluster);
    pthread_mutex_init(&store->mutex, NULL);
    pthread_cond_init(&store->changed, NULL);
    pthread_cond_init(&store->done, NULL);
    status = ch_client_open(&store->client, location, problem);
    explicit_bzero(location->password, sizeof location->password);
    free(location);
    if (!status)
        status = ch_schema_prepare(store, problem);
    if (!status)
        ch_client_ready(store->client);
    if (!status && !options->is_read_only) {
        store->has_writer = !pthread_create(&store->writer_thread, NULL, ch_writer_main, store);
        if (!store->has_writer)
            status = problem_set(problem, GPUFL_E_NO_MEMORY, "no thread for the store");
    }
    if (status) {
        ch_close(&store->base);
        return status;
    }
    *out = &store->base;
    return GPUFL_OK;
}
