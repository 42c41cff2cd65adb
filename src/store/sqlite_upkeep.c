/* SPDX-License-Identifier: Apache-2.0 */
/* Retention, freeing space, backup, check and statistics. */
#include "store/sqlite_store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- retention ---- */

struct doomed {
    int64_t *sessions; /* owned */
    size_t count, capacity;
    uint64_t bytes;
};

static gpufl_status doomed_add(struct doomed *doomed, int64_t session, int64_t bytes, struct problem *problem)
{
    if (doomed->count == doomed->capacity) {
        size_t capacity = doomed->capacity ? doomed->capacity * 2 : 64;
        int64_t *grown = realloc(doomed->sessions, capacity * sizeof *grown);
        if (!grown)
            return problem_set(problem, GPUFL_E_NO_MEMORY, "no memory for retention");
        doomed->sessions = grown;
        doomed->capacity = capacity;
    }
    doomed->sessions[doomed->count++] = session;
    doomed->bytes += (uint64_t)bytes;
    return GPUFL_OK;
}

/* In order of age: sessions over their maximum age are always deleted; then complete sessions without their own
 * retention are deleted until the rest fits the size limit. */
static gpufl_status doomed_find(struct connection *reader, const struct store_retention *policy, struct doomed *doomed,
                                struct problem *problem)
{
    int64_t total = 0;
    sqlite3_stmt *statement;
    bool has_row = true;
    gpufl_status status =
        statement_integer(reader, &total, NULL, problem, "SELECT IFNULL(SUM(bytes), 0) FROM session", "");
    for (int by_size = 0; by_size < 2 && !status; by_size++) {
        if (by_size && !policy->bytes_max)
            break;
        status = statement_open(reader, &statement, problem,
                                "SELECT session, bytes, received_ns, retention_ns, state FROM session ORDER BY"
                                " IFNULL(received_ns, 0), session",
                                "");
        has_row = true;
        while (!status && !(status = statement_next(reader, statement, &has_row, problem)) && has_row) {
            int64_t bytes = sqlite3_column_int64(statement, 1), own_ns = row_integer(statement, 3);
            int64_t age_ns = policy->now_ns - sqlite3_column_int64(statement, 2);
            int64_t limit_ns = own_ns != CELL_UNKNOWN ? own_ns : policy->age_ns ? policy->age_ns : STORE_KEEP_FOREVER;
            bool is_over_age = limit_ns != STORE_KEEP_FOREVER && age_ns > limit_ns;
            bool is_over_size = by_size && !is_over_age && own_ns == CELL_UNKNOWN &&
                                sqlite3_column_int(statement, 4) != STORE_SESSION_LIVE &&
                                (uint64_t)total - doomed->bytes > policy->bytes_max;
            if (by_size ? is_over_size : is_over_age)
                status = doomed_add(doomed, sqlite3_column_int64(statement, 0), bytes, problem);
        }
    }
    return status;
}

static gpufl_status drop_apply(struct sqlite_store *store, struct connection *connection, void *arg,
                               struct problem *problem)
{
    const int64_t *session = arg;
    (void)store;
    return session_drop(connection, *session, problem);
}

static gpufl_status metrics_drop_apply(struct sqlite_store *store, struct connection *connection, void *arg,
                                       struct problem *problem)
{
    const int64_t *minute = arg;
    (void)store;
    gpufl_status status = statement_run(connection, problem, "DELETE FROM metric WHERE minute<?", "i", *minute);
    if (!status)
        status = statement_run(connection, problem, "DELETE FROM metric_now WHERE minute<?", "i", *minute);
    return status ? status
                  : statement_run(connection, problem,
                                  "DELETE FROM kernel_name WHERE NOT EXISTS (SELECT 1 FROM kernel WHERE"
                                  " kernel.name=kernel_name.name)",
                                  "");
}

gpufl_status sqlite_retain(struct store *base, const struct store_retention *policy, struct store_retained *result,
                           struct problem *problem)
{
    struct sqlite_store *store = sqlite_store_of(base);
    struct connection *reader;
    struct doomed doomed = {0};
    *result = (struct store_retained){0};
    gpufl_status status = reader_begin(store, &reader, problem);
    if (status)
        return status;
    status = doomed_find(reader, policy, &doomed, problem);
    reader_end(store, reader);
    /* One change per session: a long list must not delay deliveries. */
    for (size_t i = 0; i < doomed.count && !status; i++) {
        status = store_change_reserved(store, drop_apply, &doomed.sessions[i], problem);
        result->sessions_deleted += !status;
    }
    if (!status) {
        int64_t minute = policy->age_ns ? (policy->now_ns - policy->age_ns) / MINUTE_NS : 0;
        result->bytes_deleted = doomed.bytes;
        if (policy->age_ns || doomed.count)
            status = store_change_reserved(store, metrics_drop_apply, &minute, problem);
    }
    if (doomed.count)
        background_wake(store);
    free(doomed.sessions);
    return status;
}

/* ---- free pages back to the file system ---- */

static gpufl_status vacuum_apply(struct sqlite_store *store, struct connection *connection, void *arg,
                                 struct problem *problem)
{
    (void)store;
    (void)arg;
    return statement_run(connection, problem, "PRAGMA incremental_vacuum(1024)", "");
}

gpufl_status store_give_back(struct sqlite_store *store, unsigned kept_percent, bool *is_done, struct problem *problem)
{
    struct connection *reader;
    int64_t free_pages = 0, pages = 0, free_after;
    *is_done = true;
    gpufl_status status = reader_begin(store, &reader, problem);
    if (status)
        return status;
    status = statement_integer(reader, &free_pages, NULL, problem, "PRAGMA freelist_count", "");
    if (!status)
        status = statement_integer(reader, &pages, NULL, problem, "PRAGMA page_count", "");
    reader_end(store, reader);
    if (status || !free_pages || free_pages <= pages / 100 * kept_percent)
        return status;
    status = store_change_reserved(store, vacuum_apply, NULL, problem);
    if (!status)
        status = reader_begin(store, &reader, problem);
    if (status)
        return status;
    status = statement_integer(reader, &free_after, NULL, problem, "PRAGMA freelist_count", "");
    reader_end(store, reader);
    *is_done = status || free_after >= free_pages;
    return status;
}

/* ---- backup ---- */

static bool file_sync(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool is_done = fsync(fd) == 0;
    close(fd);
    return is_done;
}

/* Creates an empty file, which SQLite treats as a new database, readable only by its owner: the copy contains
 * everything in the store, including hashes of keys. */
static gpufl_status copy_create(const char *path, struct problem *problem)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 && errno == EEXIST)
        return problem_set(problem, GPUFL_E_INVALID, "%s already exists", path);
    if (fd < 0)
        return problem_set(problem, GPUFL_E_IO, "%s: %s", path, strerror(errno));
    close(fd);
    return GPUFL_OK;
}

gpufl_status sqlite_backup(struct store *base, const char *path, struct problem *problem)
{
    struct sqlite_store *store = sqlite_store_of(base);
    struct connection *reader;
    gpufl_status status = copy_create(path, problem);
    if (status)
        return status;
    status = reader_begin(store, &reader, problem);
    if (status) {
        unlink(path);
        return status;
    }
    /* VACUUM INTO needs a separate read transaction. */
    status = statement_run(reader, problem, "END", "");
    if (!status)
        status = statement_run(reader, problem, "PRAGMA query_only=0", "");
    if (!status)
        status = statement_run(reader, problem, "VACUUM INTO ?", "t", path);
    if (!statement_run(reader, NULL, "PRAGMA query_only=1", ""))
        (void)!statement_run(reader, NULL, "BEGIN", "");
    reader_end(store, reader);
    if (!status && !file_sync(path, O_RDONLY))
        status = problem_set(problem, GPUFL_E_IO, "%s: %s", path, strerror(errno));
    if (status)
        unlink(path);
    return status;
}

/* ---- check ---- */

struct checking {
    struct sqlite_store *store;
    struct connection *reader;
    struct column_coder coder;
    struct row_buffer rows;
    struct bytes lines;
    store_issue_fn on_issue;
    void *user;
};

static void PRINTF_LIKE(2, 3) issue(const struct checking *checking, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    checking->on_issue(checking->user, text);
}

static gpufl_status structure_check(struct checking *checking, struct problem *problem)
{
    sqlite3_stmt *statement;
    bool has_row = true;
    gpufl_status status = statement_open(checking->reader, &statement, problem, "PRAGMA integrity_check(100)", "");
    while (!status && !(status = statement_next(checking->reader, statement, &has_row, problem)) && has_row)
        if (strcmp(row_text(statement, 0), "ok") != 0)
            issue(checking, "database: %s", row_text(statement, 0));
    return status;
}

/* True when the segment can be read and has the rows that the catalog says. */
static bool segment_check(struct checking *checking, const struct stored_segment *segment, const char *session_id)
{
    const struct segment_source source = segment_source_of(checking->reader);
    bool is_good = segment_is_whole(&source, &checking->coder, segment, &checking->rows, &checking->lines);
    if (!is_good)
        issue(checking, "session %s: segment %lld (%s) is damaged", session_id, (long long)segment->segment,
              segment->layout->type == RECORD_UNKNOWN ? "unknown" : record_catalogue[segment->layout->type].name);
    return is_good;
}

static gpufl_status session_check(struct checking *checking, int64_t session, const char *session_id, int64_t rows,
                                  int64_t kernels, struct problem *problem)
{
    struct stored_segments segments = {0};
    const struct record_set all = {{0}};
    int64_t found = 0, summed = 0;
    bool is_whole = true;
    gpufl_status status = segments_list(checking->store, checking->reader, session, &all, &segments, problem);
    for (size_t i = 0; i < segments.count && !status; i++) {
        bool is_batch = record_catalogue[segments.items[i].layout->type].is_batch;
        is_whole &= segment_check(checking, &segments.items[i], session_id);
        found += is_batch ? segments.items[i].rows : 0;
    }
    if (!status)
        status = statement_integer(checking->reader, &summed, NULL, problem,
                                   "SELECT IFNULL(SUM(count), 0) FROM kernel WHERE session=?", "i", session);
    if (!status && is_whole && found != rows)
        issue(checking, "session %s: %lld rows, the catalog says %lld", session_id, (long long)found, (long long)rows);
    if (!status && summed != kernels)
        issue(checking, "session %s: sums of %lld kernels, the catalog says %lld", session_id, (long long)summed,
              (long long)kernels);
    free(segments.items);
    return status;
}

gpufl_status sqlite_check(struct store *base, store_issue_fn on_issue, void *user, struct problem *problem)
{
    struct checking checking = {.store = sqlite_store_of(base), .on_issue = on_issue, .user = user};
    sqlite3_stmt *statement;
    bool has_row = true;
    column_coder_init(&checking.coder, 1);
    gpufl_status status = reader_begin(checking.store, &checking.reader, problem);
    if (!status)
        status = structure_check(&checking, problem);
    if (!status)
        status = statement_open(checking.reader, &statement, problem,
                                "SELECT session, session_id, rows, kernels FROM session ORDER BY session", "");
    while (!status && !(status = statement_next(checking.reader, statement, &has_row, problem)) && has_row)
        status = session_check(&checking, sqlite3_column_int64(statement, 0), row_text(statement, 1),
                               sqlite3_column_int64(statement, 2), sqlite3_column_int64(statement, 3), problem);
    if (checking.reader)
        reader_end(checking.store, checking.reader);
    column_coder_free(&checking.coder);
    row_buffer_free(&checking.rows);
    bytes_free(&checking.lines);
    return status;
}

/* ---- numbers ---- */

static uint64_t file_bytes(const char *path, const char *suffix)
{
    char name[4200];
    struct stat info;
    snprintf(name, sizeof name, "%s%s", path, suffix);
    return stat(name, &info) ? 0 : (uint64_t)info.st_size;
}

gpufl_status sqlite_stats(struct store *base, struct store_stats *stats, struct problem *problem)
{
    struct sqlite_store *store = sqlite_store_of(base);
    struct connection *reader;
    sqlite3_stmt *statement;
    int64_t page_size = 0, free_pages = 0;
    bool has_row = false;
    *stats = (struct store_stats){.engine = "sqlite"};
    gpufl_status status = reader_begin(store, &reader, problem);
    if (status)
        return status;
    status = statement_integer(reader, &page_size, NULL, problem, "PRAGMA page_size", "");
    if (!status)
        status = statement_integer(reader, &free_pages, NULL, problem, "PRAGMA freelist_count", "");
    if (!status)
        status = schema_version(reader, &stats->schema_version, problem);
    if (!status)
        status = statement_open(reader, &statement, problem,
                                "SELECT (SELECT COUNT(*) FROM session), COUNT(*), IFNULL(SUM(rows), 0),"
                                " IFNULL(SUM(bytes), 0), IFNULL(SUM(rows < 49152), 0) FROM segment",
                                "");
    if (!status)
        status = statement_next(reader, statement, &has_row, problem);
    if (!status && has_row) {
        stats->sessions = (uint64_t)sqlite3_column_int64(statement, 0);
        stats->segments = (uint64_t)sqlite3_column_int64(statement, 1);
        stats->rows = (uint64_t)sqlite3_column_int64(statement, 2);
        stats->segment_bytes = (uint64_t)sqlite3_column_int64(statement, 3);
        stats->small_segments = (uint64_t)sqlite3_column_int64(statement, 4);
    }
    reader_end(store, reader);
    stats->bytes = file_bytes(store->path, "");
    stats->log_bytes = file_bytes(store->path, "-wal");
    stats->free_bytes = (uint64_t)(free_pages * page_size);
    pthread_mutex_lock(&store->mutex);
    stats->commits = store->commits;
    stats->commit_groups = store->commit_groups;
    stats->failed_commits = store->failed_commits;
    stats->compactions = store->compactions;
    stats->queue_writes = store->queue_count;
    stats->queue_bytes = store->queue_bytes;
    stats->last_commit_ns = store->last_commit_ns;
    pthread_mutex_unlock(&store->mutex);
    return status;
}

gpufl_status sqlite_commit_state(struct store *base, struct problem *problem)
{
    struct sqlite_store *store = sqlite_store_of(base);
    pthread_mutex_lock(&store->mutex);
    gpufl_status status = store->commit_status;
    *problem = store->commit_problem;
    pthread_mutex_unlock(&store->mutex);
    return status;
}
