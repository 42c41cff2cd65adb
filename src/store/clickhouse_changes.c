/* SPDX-License-Identifier: Apache-2.0 */
/* Changes that people make to sessions, retention, and statistics of the store. */
#include "store/clickhouse_store.h"

#include <inttypes.h>
#include <stdlib.h>

/* Sessions whose commit rows one call deletes: a statement has a size limit, and the next call deletes the next
 * ones. */
enum { ENDED_SESSIONS_MAX = 10000, FORGOTTEN_BYTES = 256 * 1024, LEFTOVERS_MAX = 1000 };
#define LEFTOVER_AGE_NS (INT64_C(86400) * 1000000000)
#define LEFTOVERS_EVERY_NS (LEFTOVER_AGE_NS / 4) /* the search reads every segment's name */
/* How much longer than the maximum age commit rows are kept, because clocks differ. */
#define COMMIT_MARGIN_NS (INT64_C(86400) * 1000000000)

static void change_put(struct bytes *rows, const char *session_id, uint32_t generation, enum ch_change what,
                       int64_t at_ns, const char *const *tags, size_t tag_count, int64_t retention_ns)
{
    ch_put_text(rows, session_id);
    ch_put_u32(rows, generation);
    ch_put_u8(rows, (uint8_t)what);
    ch_put_i64(rows, at_ns);
    varint_append(rows, tag_count);
    for (size_t i = 0; i < tag_count; i++)
        ch_put_text(rows, tags[i]);
    ch_put_i64(rows, retention_ns);
}

static gpufl_status changes_insert(struct ch_store *store, struct bytes *rows, struct problem *problem)
{
    return ch_insert(store->client, "change (session_id,generation,what,at_ns,tags,retention_ns)", rows, problem);
}

static gpufl_status session_change(struct store *base, const char *session_id, enum ch_change what,
                                   const char *const *tags, size_t tag_count, int64_t retention_ns,
                                   struct problem *problem)
{
    struct ch_store *store = ch_store_of(base);
    struct bytes rows = {0};
    uint32_t generation;
    if (base->is_read_only)
        return problem_set(problem, GPUFL_E_PERMISSION, "the store was opened for reading only");
    gpufl_status status = ch_session_find(store, session_id, &generation, problem);
    if (status)
        return status;
    change_put(&rows, session_id, generation + (what == CHANGE_DELETE), what, ch_unique_ns(store), tags, tag_count,
               retention_ns);
    status = changes_insert(store, &rows, problem);
    bytes_free(&rows);
    return status;
}

static int text_compare(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

gpufl_status ch_session_tag(struct store *base, const char *session_id, const char *const *tags, size_t tag_count,
                            struct problem *problem)
{
    const char **sorted = calloc(tag_count + 1, sizeof *sorted);
    size_t kept = 0;
    if (!sorted)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "no memory for tags");
    for (size_t i = 0; i < tag_count; i++)
        sorted[i] = tags[i];
    if (tag_count)
        qsort(sorted, tag_count, sizeof *sorted, text_compare);
    for (size_t i = 0; i < tag_count; i++)
        if (!kept || strcmp(sorted[kept - 1], sorted[i]) != 0)
            sorted[kept++] = sorted[i];
    gpufl_status status = session_change(base, session_id, CHANGE_TAGS, sorted, kept, CELL_UNKNOWN, problem);
    free(sorted);
    return status;
}

gpufl_status ch_session_keep(struct store *base, const char *session_id, int64_t retention_ns, struct problem *problem)
{
    return session_change(base, session_id, CHANGE_KEEP, NULL, 0, retention_ns, problem);
}

gpufl_status ch_session_end(struct store *base, const char *session_id, struct problem *problem)
{
    return session_change(base, session_id, CHANGE_END, NULL, 0, CELL_UNKNOWN, problem);
}

/* A deletion takes effect at once; the space is freed when ClickHouse rewrites its parts. The commit rows stay as long
 * as the sums of metrics, which outlive the session (sums_forget). */
static void sessions_forget(struct ch_store *store, const struct bytes *list, int64_t until_ns)
{
    struct bytes condition = {0};
    bytes_append_text(&condition, "session_id IN (");
    bytes_append(&condition, list->data, list->size);
    /* A new generation of the session may have begun. */
    bytes_append_format(&condition, ") AND received_ns <= %" PRId64, until_ns);
    if (list->size) {
        ch_forget(store, "segment", false, bytes_text(&condition));
        ch_forget(store, "kernel", false, bytes_text(&condition));
    }
    bytes_free(&condition);
}

gpufl_status ch_session_delete(struct store *base, const char *session_id, struct problem *problem)
{
    struct bytes list = {0};
    gpufl_status status = session_change(base, session_id, CHANGE_DELETE, NULL, 0, CELL_UNKNOWN, problem);
    if (!status) {
        ch_quote_text(&list, session_id);
        sessions_forget(ch_store_of(base), &list, ch_unique_ns(ch_store_of(base)));
    }
    bytes_free(&list);
    return status;
}

/* ---- retention ---- */

struct doomed {
    struct bytes changes; /* rows of the deleted sessions */
    uint64_t count, bytes;
};

struct session_age {
    const char *session_id;
    uint32_t generation;
    int64_t bytes, received_ns, own_ns;
    bool is_live, is_doomed;
};

static void doomed_add(struct ch_store *store, struct doomed *doomed, struct session_age *session)
{
    change_put(&doomed->changes, session->session_id, session->generation + 1, CHANGE_DELETE, ch_unique_ns(store), NULL,
               0, CELL_UNKNOWN);
    session->is_doomed = true;
    doomed->count++;
    doomed->bytes += (uint64_t)session->bytes;
}

static bool is_over_age(const struct session_age *session, const struct store_retention *policy)
{
    int64_t limit_ns = session->own_ns != CELL_UNKNOWN ? session->own_ns
                       : policy->age_ns                ? policy->age_ns
                                                       : STORE_KEEP_FOREVER;
    return limit_ns != STORE_KEEP_FOREVER && policy->now_ns - session->received_ns > limit_ns;
}

/* In order of age: sessions over their maximum age are always deleted; then complete sessions without their own
 * retention are deleted until the rest fits the size limit. */
static void doomed_find(struct ch_store *store, struct session_age *sessions, size_t count,
                        const struct store_retention *policy, struct doomed *doomed)
{
    uint64_t total = 0;
    for (size_t i = 0; i < count; i++) {
        total += (uint64_t)sessions[i].bytes;
        if (is_over_age(&sessions[i], policy))
            doomed_add(store, doomed, &sessions[i]);
    }
    for (size_t i = 0; policy->bytes_max && i < count; i++)
        if (!is_over_age(&sessions[i], policy) && sessions[i].own_ns == CELL_UNKNOWN && !sessions[i].is_live &&
            total - doomed->bytes > policy->bytes_max)
            doomed_add(store, doomed, &sessions[i]);
}

/* Deletes in batches: every host, and ZooKeeper in between, accepts a list of this size. */
static void doomed_forget(struct ch_store *store, const struct session_age *sessions, size_t count, int64_t until_ns)
{
    struct bytes list = {0};
    for (size_t i = 0; i < count; i++) {
        if (!sessions[i].is_doomed)
            continue;
        if (list.size)
            bytes_append_char(&list, ',');
        ch_quote_text(&list, sessions[i].session_id);
        if (list.size > FORGOTTEN_BYTES) {
            sessions_forget(store, &list, until_ns);
            bytes_clear(&list);
        }
    }
    sessions_forget(store, &list, until_ns);
    bytes_free(&list);
}

/* Deletes remaining rows of sessions that were deleted at least a day ago, for example because no host answered then.
 * At most LEFTOVERS_MAX sessions per call, and never a session that was sent again, however far the servers' clocks
 * differ. */
static gpufl_status leftovers_forget_in(struct ch_store *store, const char *table, int64_t now_ns,
                                        struct problem *problem)
{
    struct bytes sql = {0}, gone = {0};
    struct ch_rows rows = {0};
    bytes_append_format(
        &sql,
        "SELECT session_id, gone_ns FROM (SELECT session_id, min(received_ns) AS first_ns FROM %s GROUP BY session_id)"
        " AS kept ANY INNER JOIN (SELECT session_id, max(at_ns) AS gone_ns FROM change WHERE what = %d GROUP BY session_id)"
        " AS deleted USING (session_id) WHERE first_ns <= gone_ns AND gone_ns < %" PRId64
        " AND session_id NOT IN (SELECT session_id FROM (SELECT session_id, max(generation) AS written FROM write WHERE"
        " state = 1 GROUP BY session_id) AS writes ANY LEFT JOIN (SELECT session_id, max(generation) AS current FROM change"
        " GROUP BY session_id) AS changes USING (session_id) WHERE written >= current) ORDER BY gone_ns LIMIT %d",
        table, CHANGE_DELETE, now_ns - LEFTOVER_AGE_NS, LEFTOVERS_MAX);
    gpufl_status status = ch_select(store->client, &sql, &rows, problem);
    while (!status && ch_rows_next(&rows)) {
        bytes_append_text(&gone, gone.size ? " OR (session_id = " : "(session_id = ");
        ch_quote_text(&gone, ch_text(&rows, NULL));
        bytes_append_format(&gone, " AND received_ns <= %" PRId64 ")", ch_i64(&rows));
    }
    if (!status)
        status = ch_rows_end(&rows, problem);
    if (!status && gone.size)
        ch_forget(store, table, false, bytes_text(&gone));
    ch_rows_free(&rows);
    bytes_free(&sql);
    bytes_free(&gone);
    return status;
}

static gpufl_status leftovers_forget(struct ch_store *store, int64_t now_ns, struct problem *problem)
{
    if (now_ns - store->leftovers_ns < LEFTOVERS_EVERY_NS)
        return GPUFL_OK;
    store->leftovers_ns = now_ns; /* set even if a shard is down */
    gpufl_status status = leftovers_forget_in(store, "segment", now_ns, problem);
    if (!status)
        status = leftovers_forget_in(store, "kernel", now_ns, problem);
    return status;
}

static gpufl_status ages_read(struct ch_store *store, struct ch_rows *rows, struct session_age **sessions,
                              size_t *count, struct problem *problem)
{
    struct bytes sql = {0};
    size_t capacity = 0;
    bytes_append_text(&sql, "SELECT session_id, generation, bytes, received_ns, retention_ns, state FROM ");
    ch_session_table(&sql, "");
    bytes_append_text(&sql, " ORDER BY received_ns, session_id");
    gpufl_status status = ch_select(store->client, &sql, rows, problem);
    while (!status && ch_rows_next(rows)) {
        if (*count == capacity) {
            capacity = capacity ? capacity * 2 : 256;
            struct session_age *grown = realloc(*sessions, capacity * sizeof *grown);
            if (!grown) {
                status = problem_set(problem, GPUFL_E_NO_MEMORY, "no memory for retention");
                break;
            }
            *sessions = grown;
        }
        struct session_age *session = &(*sessions)[(*count)++];
        session->session_id = ch_text(rows, NULL);
        session->generation = ch_u32(rows);
        session->bytes = ch_i64(rows);
        session->received_ns = ch_i64(rows);
        session->own_ns = ch_i64(rows);
        session->is_live = ch_u8(rows) == STORE_SESSION_LIVE;
        session->is_doomed = false;
    }
    if (!status)
        status = ch_rows_end(rows, problem);
    bytes_free(&sql);
    return status;
}

/* Lists sessions and generations, quoted, whose commit rows from before oldest_ns are unused because the session was
 * deleted. */
static gpufl_status ended_list(struct ch_store *store, int64_t oldest_ns, struct bytes *list, struct problem *problem)
{
    struct bytes sql = {0};
    struct ch_rows rows = {0};
    bytes_append_format(
        &sql,
        "SELECT session_id, generation FROM (SELECT DISTINCT session_id, generation FROM write WHERE"
        " state = 1 AND received_ns < %" PRId64 ") AS writes ANY LEFT JOIN (SELECT session_id,"
        " max(generation) AS current FROM change GROUP BY session_id) AS changes USING (session_id) WHERE generation < current"
        " LIMIT %d",
        oldest_ns, ENDED_SESSIONS_MAX);
    gpufl_status status = ch_select(store->client, &sql, &rows, problem);
    while (!status && ch_rows_next(&rows)) {
        bytes_append_text(list, list->size ? ",(" : "(");
        ch_quote_text(list, ch_text(&rows, NULL));
        bytes_append_format(list, ",%u)", ch_u32(&rows));
    }
    if (!status)
        status = ch_rows_end(&rows, problem);
    ch_rows_free(&rows);
    bytes_free(&sql);
    return status;
}

/* Deletes sums of metrics that are older than the maximum age, and then the commit rows that made them count. Commit
 * rows cannot stay: every list of sessions adds up all of them. */
static gpufl_status sums_forget(struct ch_store *store, int64_t oldest_ns, struct problem *problem)
{
    struct bytes gone = {0}, ended = {0};
    int64_t commits_ns = oldest_ns - COMMIT_MARGIN_NS;
    /* Minutes come from the sender's clock, which may be ahead by any amount. */
    bytes_append_format(&gone, "minute < %" PRId64 " OR received_ns < %" PRId64, oldest_ns / MINUTE_NS, commits_ns);
    ch_forget(store, "metric", false, bytes_text(&gone));
    gpufl_status status = ended_list(store, commits_ns, &ended, problem);
    if (!status && ended.size && !ended.failed) {
        bytes_clear(&gone);
        bytes_append_format(&gone, "state = 1 AND received_ns < %" PRId64 " AND (session_id, generation) IN (",
                            commits_ns);
        bytes_append(&gone, ended.data, ended.size);
        bytes_append_char(&gone, ')');
        ch_forget(store, "write", true, bytes_text(&gone));
    }
    bytes_free(&ended);
    bytes_free(&gone);
    return status;
}

gpufl_status ch_retain(struct store *base, const struct store_retention *policy, struct store_retained *result,
                       struct problem *problem)
{
    struct ch_store *store = ch_store_of(base);
    struct ch_rows rows = {0};
    struct session_age *sessions = NULL;
    struct doomed doomed = {0};
    size_t count = 0;
    int64_t until_ns = 0;
    *result = (struct store_retained){0};
    gpufl_status status = ages_read(store, &rows, &sessions, &count, problem);
    if (!status) {
        doomed_find(store, sessions, count, policy, &doomed);
        until_ns = ch_unique_ns(store); /* deliveries that arrive after this moment are kept */
        status = changes_insert(store, &doomed.changes, problem);
    }
    if (!status) {
        *result = (struct store_retained){.sessions_deleted = doomed.count, .bytes_deleted = doomed.bytes};
        doomed_forget(store, sessions, count, until_ns);
    }
    if (!status && policy->age_ns)
        status = sums_forget(store, policy->now_ns - policy->age_ns, problem);
    if (!status)
        status = leftovers_forget(store, policy->now_ns, problem);
    free(sessions);
    ch_rows_free(&rows);
    bytes_free(&doomed.changes);
    return status;
}

/* Claims older than two days are deleted by dropping partitions. */
gpufl_status ch_maintain(struct store *base, struct problem *problem)
{
    struct ch_store *store = ch_store_of(base);
    struct bytes sql = {0};
    struct ch_rows rows = {0};
    bytes_append_format(
        &sql,
        "SELECT DISTINCT partition FROM system.parts WHERE database = '%s' AND table = 'write' AND active"
        " AND substring(partition, 2, 1) != '1' AND toUInt32OrZero(substring(partition, 4, 8)) <"
        " toYYYYMMDD(today() - 1)",
        store->database);
    gpufl_status status = ch_select(store->client, &sql, &rows, problem);
    while (!status && ch_rows_next(&rows)) {
        bytes_clear(&sql);
        bytes_append_format(&sql, "ALTER TABLE %s.write DROP PARTITION %s", store->database, ch_text(&rows, NULL));
        status = ch_run(store->client, bytes_text(&sql), "", problem);
    }
    if (!status)
        status = ch_rows_end(&rows, problem);
    ch_rows_free(&rows);
    bytes_free(&sql);
    return status;
}

gpufl_status ch_backup(struct store *base, const char *path, struct problem *problem)
{
    (void)base;
    (void)path;
    return problem_set(problem, GPUFL_E_UNSUPPORTED,
                       "a ClickHouse store is backed up with ClickHouse itself (BACKUP, or ALTER TABLE ... FREEZE);"
                       " see docs/fleet.md");
}

gpufl_status ch_stats(struct store *base, struct store_stats *stats, struct problem *problem)
{
    struct ch_store *store = ch_store_of(base);
    struct bytes sql = {0};
    struct ch_rows rows = {0};
    *stats = (struct store_stats){.engine = "clickhouse"};
    bytes_append_text(
        &sql,
        "SELECT toUInt64(count()), toUInt64(sum(segment_count)), toUInt64(sum(row_count)),"
        " toUInt64(sum(byte_count)) FROM (SELECT session_id, generation, sum(segments) AS segment_count,"
        " sum(segment_rows) AS row_count, sum(bytes) AS byte_count FROM write WHERE state = 1 GROUP BY session_id,"
        " generation) AS writes ANY LEFT JOIN (SELECT session_id, max(generation) AS current FROM change GROUP"
        " BY session_id) AS changes USING (session_id) WHERE generation = current");
    gpufl_status status = ch_schema_version(store, &stats->schema_version, problem);
    if (!status)
        status = ch_select(store->client, &sql, &rows, problem);
    if (!status && ch_rows_next(&rows)) {
        stats->sessions = ch_u64(&rows);
        stats->segments = ch_u64(&rows);
        stats->rows = ch_u64(&rows);
        stats->segment_bytes = ch_u64(&rows);
        stats->bytes = stats->segment_bytes;
    }
    if (!status)
        status = ch_rows_end(&rows, problem);
    pthread_mutex_lock(&store->mutex);
    stats->commits = store->commits;
    stats->commit_groups = store->commit_groups;
    stats->failed_commits = store->failed_commits;
    stats->queue_writes = store->queue_count;
    stats->queue_bytes = store->queue_bytes;
    stats->last_commit_ns = store->last_commit_ns;
    pthread_mutex_unlock(&store->mutex);
    ch_rows_free(&rows);
    bytes_free(&sql);
    return status;
}

gpufl_status ch_commit_state(struct store *base, struct problem *problem)
{
    struct ch_store *store = ch_store_of(base);
    pthread_mutex_lock(&store->mutex);
    gpufl_status status = store->commit_status;
    *problem = store->commit_problem;
    pthread_mutex_unlock(&store->mutex);
    return status;
}
