/* SPDX-License-Identifier: Apache-2.0 */
/* Opening, closing, the writer thread and the readers' connections. */
#include "store/sqlite_store.h"

#include "base/clock.h"
#include "base/directory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

enum { GROUP_BYTES_MAX = 128 << 20, CROWD = 4, COMMIT_EVERY_NS = 20000000 };

/* ---- the writer thread ---- */

/* Runs one change in a savepoint. False: the transaction itself was rolled back, and with it every change of the
 * group. */
static bool change_run(struct sqlite_store *store, struct change *change)
{
    struct connection *writer = &store->writer;
    struct problem ignored;
    change->status = statement_run(writer, &change->problem, "SAVEPOINT change", "");
    if (!change->status)
        change->status = change->run(store, writer, change->arg, &change->problem);
    if (change->status)
        store->made_layout_count = 0; /* the failed change may have made layouts */
    if (sqlite3_get_autocommit(writer->db))
        return false;
    if (change->status && statement_run(writer, &ignored, "ROLLBACK TO change", ""))
        return false;
    return statement_run(writer, change->status ? &ignored : &change->problem, "RELEASE change", "") == GPUFL_OK;
}

static void group_fail(struct change *first, gpufl_status status, const struct problem *problem)
{
    for (struct change *change = first; change; change = change->next) {
        if (change->status)
            continue;
        change->status = status;
        change->problem = *problem;
    }
}

/* Commits all changes of the group in one transaction; GPUFL_OK when it is on disk. */
static gpufl_status group_commit(struct sqlite_store *store, struct change *first, struct problem *problem)
{
    gpufl_status status = statement_run(&store->writer, problem, "BEGIN IMMEDIATE", "");
    bool is_whole = status == GPUFL_OK;
    for (struct change *change = first; change && is_whole; change = change->next) {
        is_whole = change_run(store, change);
        if (!is_whole) {
            status = change->status ? change->status : GPUFL_E_IO;
            *problem = change->problem;
        }
    }
    if (is_whole)
        status = statement_run(&store->writer, problem, "COMMIT", "");
    if (!status)
        return GPUFL_OK;
    if (!sqlite3_get_autocommit(store->writer.db))
        sqlite3_exec(store->writer.db, "ROLLBACK", NULL, NULL, NULL);
    store->made_layout_count = 0;
    group_fail(first, status, problem);
    return status;
}

/* A change that frees space is committed separately. On a full disk it is retried with the space of the reserve. */
static gpufl_status reserved_commit(struct sqlite_store *store, struct change *change, struct problem *problem)
{
    store->writer.was_full = false;
    gpufl_status status = group_commit(store, change, problem);
    if (store->writer.was_full && reserve_spend(store)) {
        change->status = GPUFL_OK;
        *problem = (struct problem){""};
        status = group_commit(store, change, problem);
    }
    if (!status)
        reserve_restore(store);
    return status;
}

/* On a full disk a checkpoint of the write-ahead log may free space for the next attempt. */
static gpufl_status delivered_commit(struct sqlite_store *store, struct change *first, struct problem *problem)
{
    store->writer.was_full = false;
    gpufl_status status = group_commit(store, first, problem);
    if (store->writer.was_full)
        connection_checkpoint(&store->writer);
    return status;
}

static gpufl_status group_write(struct sqlite_store *store, struct change *first, struct problem *problem)
{
    if (first->may_use_reserve)
        return reserved_commit(store, first, problem);
    if (store->reserve == RESERVE_SPENT)
        reserve_take(store);
    if (store->reserve != RESERVE_SPENT)
        return delivered_commit(store, first, problem);
    gpufl_status status = problem_set(problem, GPUFL_E_IO,
                                      "the disk is full; delete sessions or free some space: writing then"
                                      " resumes automatically");
    group_fail(first, status, problem);
    return status;
}

/* SQLite can undo one change on a full disk and commit the rest of the group: that also counts as a failed commit. */
static void commit_note(struct sqlite_store *store, const struct change *first, gpufl_status status,
                        const struct problem *problem)
{
    for (; first && !status; first = first->next)
        if (first->status == GPUFL_E_IO) {
            status = first->status;
            problem = &first->problem;
        }
    store->commit_status = status;
    store->commit_problem = *problem;
}

/* With many concurrent deliveries a commit is cheaper the more of them share it, so commits are then at least
 * COMMIT_EVERY_NS apart. A single sender does not wait. */
static void others_await(struct sqlite_store *store, int64_t next_ns)
{
    int64_t wait_ns = next_ns - clock_mono_ns();
    if (!next_ns || wait_ns <= 0 || store->is_writer_closing)
        return;
    const struct timespec pause = {.tv_nsec = (long)(wait_ns < COMMIT_EVERY_NS ? wait_ns : COMMIT_EVERY_NS)};
    pthread_mutex_unlock(&store->mutex);
    nanosleep(&pause, NULL);
    pthread_mutex_lock(&store->mutex);
}

static bool is_same_group(const struct change *first, const struct change *next, uint64_t bytes)
{
    return next && !first->may_use_reserve && !next->may_use_reserve && bytes + next->bytes <= GROUP_BYTES_MAX;
}

static void *writer_main(void *arg)
{
    struct sqlite_store *store = arg;
    int64_t next_ns = 0;
    pthread_mutex_lock(&store->mutex);
    for (;;) {
        while (!store->first && !store->is_writer_closing)
            pthread_cond_wait(&store->changed, &store->mutex);
        if (!store->first)
            break;
        others_await(store, next_ns);
        /* Changes that arrived while the previous group was written form the next group. */
        struct change *first = store->first, *last = first;
        uint64_t bytes = first->bytes, count = 1;
        while (is_same_group(first, last->next, bytes)) {
            last = last->next;
            bytes += last->bytes;
            count++;
        }
        store->first = last->next;
        if (!store->first)
            store->last = NULL;
        last->next = NULL;
        pthread_mutex_unlock(&store->mutex);
        next_ns = count >= CROWD ? clock_mono_ns() + COMMIT_EVERY_NS : 0;
        struct problem problem = {""};
        gpufl_status status = group_write(store, first, &problem);
        pthread_mutex_lock(&store->mutex);
        store->queue_count -= count;
        store->queue_bytes -= bytes;
        store->commit_groups++;
        *(status ? &store->failed_commits : &store->commits) += count;
        if (!status)
            store->last_commit_ns = clock_wall_ns();
        commit_note(store, first, status, &problem);
        for (struct change *change = first, *next; change; change = next) {
            next = change->next; /* the owner may free the change once it sees is_done */
            change->is_done = true;
            pthread_cond_signal(&change->done);
        }
    }
    pthread_mutex_unlock(&store->mutex);
    return NULL;
}

/* The caller still owns the change and waits for is_done. */
static void change_queue(struct sqlite_store *store, struct change *change)
{
    if (store->last)
        store->last->next = change;
    else
        store->first = change;
    store->last = change;
    store->queue_count++;
    store->queue_bytes += change->bytes;
}

/* Queues the change and waits for it. */
static gpufl_status change_make(struct sqlite_store *store, struct change *change, struct problem *problem)
{
    if (store->base.is_read_only)
        return problem_set(problem, GPUFL_E_PERMISSION, "the store was opened for reading only");
    pthread_mutex_lock(&store->mutex);
    if (store->queue_count && store->queue_bytes + change->bytes > store->options.queue_bytes_max) {
        pthread_mutex_unlock(&store->mutex);
        return problem_set(problem, GPUFL_E_BUSY, "too many writes wait for the disk; try again");
    }
    pthread_cond_init(&change->done, NULL);
    change_queue(store, change);
    pthread_cond_signal(&store->changed);
    while (!change->is_done)
        pthread_cond_wait(&change->done, &store->mutex);
    pthread_mutex_unlock(&store->mutex);
    pthread_cond_destroy(&change->done);
    if (change->status && problem)
        *problem = change->problem;
    return change->status;
}

gpufl_status store_change(struct sqlite_store *store, change_fn run, void *arg, uint64_t bytes, struct problem *problem)
{
    struct change change = {.run = run, .arg = arg, .bytes = bytes};
    return change_make(store, &change, problem);
}

gpufl_status store_change_reserved(struct sqlite_store *store, change_fn run, void *arg, struct problem *problem)
{
    struct change change = {.run = run, .arg = arg, .may_use_reserve = true};
    return change_make(store, &change, problem);
}

/* ---- readers ---- */

gpufl_status reader_begin(struct sqlite_store *store, struct connection **out, struct problem *problem)
{
    pthread_mutex_lock(&store->mutex);
    struct connection *reader = store->idle_readers;
    if (reader) {
        store->idle_readers = reader->next;
        store->reader_count--;
    }
    pthread_mutex_unlock(&store->mutex);
    gpufl_status status = GPUFL_OK;
    if (!reader) {
        reader = calloc(1, sizeof *reader);
        if (!reader)
            return problem_set(problem, GPUFL_E_NO_MEMORY, "no memory for a reader of the store");
        status = connection_open(reader, store->path, SQLITE_OPEN_READWRITE, problem);
        if (!status &&
            sqlite3_exec(reader->db, "PRAGMA query_only=1; PRAGMA cache_size=-2048; PRAGMA temp_store=MEMORY", NULL,
                         NULL, NULL) != SQLITE_OK)
            status = connection_fail(reader, sqlite3_errcode(reader->db), store->path, problem);
    }
    if (!status)
        status = statement_run(reader, problem, "BEGIN", "");
    if (status) {
        connection_close(reader);
        free(reader);
        return status;
    }
    *out = reader;
    return GPUFL_OK;
}

void reader_end(struct sqlite_store *store, struct connection *reader)
{
    /* A callback may have stopped in the middle of a statement. */
    for (unsigned i = 0; i < reader->cached; i++)
        sqlite3_reset(reader->cache[i].statement);
    bool is_good = sqlite3_exec(reader->db, "END", NULL, NULL, NULL) == SQLITE_OK;
    pthread_mutex_lock(&store->mutex);
    if (is_good && store->reader_count < store->options.readers_max) {
        reader->next = store->idle_readers;
        store->idle_readers = reader;
        store->reader_count++;
        reader = NULL;
    }
    pthread_mutex_unlock(&store->mutex);
    if (reader) {
        connection_close(reader);
        free(reader);
    }
}

/* ---- sessions ---- */

gpufl_status session_find(struct connection *connection, const char *session_id, int64_t *session,
                          struct problem *problem)
{
    bool is_found;
    gpufl_status status = statement_integer(connection, session, &is_found, problem,
                                            "SELECT session FROM session WHERE session_id=?", "t", session_id);
    if (!status && !is_found)
        return problem_set(problem, GPUFL_E_NOT_FOUND, "no session %s", session_id);
    return status;
}

/* ---- opening and closing ---- */

static gpufl_status directory_claim(struct sqlite_store *store, const char *directory, struct problem *problem)
{
    char path[sizeof store->path + 16];
    gpufl_status status = directory_make(directory, problem);
    if (status)
        return status;
    snprintf(path, sizeof path, "%s/store.lock", directory);
    store->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (store->lock_fd < 0)
        return problem_set(problem, GPUFL_E_IO, "%s: %s", path, strerror(errno));
    if (flock(store->lock_fd, LOCK_EX | LOCK_NB))
        return problem_set(problem, GPUFL_E_BUSY, "%s is in use by another gpufl serve", directory);
    return GPUFL_OK;
}

static gpufl_status size_limit(struct sqlite_store *store, struct problem *problem)
{
    int64_t page_size;
    char sql[64];
    if (!store->options.bytes_max)
        return GPUFL_OK;
    gpufl_status status = statement_integer(&store->writer, &page_size, NULL, problem, "PRAGMA page_size", "");
    if (status)
        return status;
    uint64_t page_count = store->options.bytes_max / (uint64_t)page_size + 1;
    snprintf(sql, sizeof sql, "PRAGMA max_page_count=%" PRIu64, page_count);
    store->writer.has_size_limit = true;
    int code = sqlite3_exec(store->writer.db, sql, NULL, NULL, NULL);
    return code == SQLITE_OK ? GPUFL_OK : connection_fail(&store->writer, code, "limiting the store's size", problem);
}

static gpufl_status writer_connect(struct sqlite_store *store, struct problem *problem)
{
    gpufl_status status =
        connection_open(&store->writer, store->path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, problem);
    if (!status)
        status = schema_prepare(&store->writer, problem);
    return status;
}

static gpufl_status writer_open(struct sqlite_store *store, struct problem *problem)
{
    gpufl_status status = writer_connect(store, problem);
    if (status && store->writer.was_full && reserve_spend(store)) {
        connection_close(&store->writer);
        status = writer_connect(store, problem);
    }
    if (!status) {
        reserve_plan(store);
        store->reserve = RESERVE_SPENT; /* the file may have another size */
        reserve_restore(store);
    }
    if (!status)
        status = size_limit(store, problem);
    if (!status)
        status = statement_integer(&store->writer, &store->next_position, NULL, problem,
                                   "SELECT IFNULL(MAX(position), 0) + 1 FROM segment", "");
    if (status)
        return status;
    if (pthread_create(&store->writer_thread, NULL, writer_main, store))
        return problem_set(problem, GPUFL_E_NO_MEMORY, "no thread for the store");
    store->has_writer = true;
    if (!store->options.no_background) {
        if (pthread_create(&store->background_thread, NULL, background_main, store))
            return problem_set(problem, GPUFL_E_NO_MEMORY, "no thread for the store");
        store->has_background = true;
    }
    return GPUFL_OK;
}

static gpufl_status reader_check(struct sqlite_store *store, struct problem *problem)
{
    struct connection *reader = NULL;
    int version = 0;
    if (access(store->path, F_OK))
        return problem_set(problem, GPUFL_E_NOT_FOUND, "no store at %s", store->path);
    gpufl_status status = reader_begin(store, &reader, problem);
    if (status || !reader)
        return status;
    status = schema_version(reader, &version, problem);
    if (!status && version != SCHEMA_VERSION)
        status = problem_set(problem, GPUFL_E_VERSION,
                             "the store has an older schema (%d); start gpufl serve on it once", version);
    reader_end(store, reader);
    return status;
}

static void sqlite_close(struct store *base)
{
    struct sqlite_store *store = sqlite_store_of(base);
    pthread_mutex_lock(&store->mutex);
    store->is_closing = true;
    pthread_cond_broadcast(&store->background_wake);
    pthread_mutex_unlock(&store->mutex);
    if (store->has_background)
        pthread_join(store->background_thread, NULL);
    pthread_mutex_lock(&store->mutex);
    store->is_writer_closing = true;
    pthread_cond_broadcast(&store->changed);
    pthread_mutex_unlock(&store->mutex);
    if (store->has_writer)
        pthread_join(store->writer_thread, NULL);
    while (store->idle_readers) {
        struct connection *reader = store->idle_readers;
        store->idle_readers = reader->next;
        connection_close(reader);
        free(reader);
    }
    connection_close(&store->writer);
    if (store->lock_fd >= 0)
        close(store->lock_fd);
    for (size_t i = 0; i < store->layout_count; i++)
        free(store->layouts[i]);
    free(store->layouts);
    pthread_cond_destroy(&store->background_wake);
    pthread_cond_destroy(&store->changed);
    pthread_mutex_destroy(&store->mutex);
    free(store);
}

static const struct store_engine sqlite_engine = {
    .close = sqlite_close,
    .write_begin = sqlite_write_begin,
    .write_line = sqlite_write_line,
    .write_name = sqlite_write_name,
    .write_commit = sqlite_write_commit,
    .write_abort = sqlite_write_abort,
    .read = sqlite_read,
    .sessions = sqlite_sessions,
    .session = sqlite_session,
    .session_delete = sqlite_session_delete,
    .session_tag = sqlite_session_tag,
    .session_keep = sqlite_session_keep,
    .session_end = sqlite_session_end,
    .gpus = sqlite_gpus,
    .key_put = sqlite_key_put,
    .key_find = sqlite_key_find,
    .key_use = sqlite_key_use,
    .keys = sqlite_keys,
    .config_put = sqlite_config_put,
    .configs = sqlite_configs,
    .config_delete = sqlite_config_delete,
    .audit_add = sqlite_audit_add,
    .audits = sqlite_audits,
    .kernels = sqlite_kernels,
    .kernel_search = sqlite_kernel_search,
    .scopes = sqlite_scopes,
    .metrics = sqlite_metrics,
    .timeline = sqlite_timeline,
    .retain = sqlite_retain,
    .maintain = sqlite_maintain,
    .backup = sqlite_backup,
    .check = sqlite_check,
    .stats = sqlite_stats,
    .commit_state = sqlite_commit_state,
};

gpufl_status sqlite_store_open(struct store **out, const char *directory, const struct store_options *options,
                               struct problem *problem)
{
    struct sqlite_store *store = calloc(1, sizeof *store);
    if (!store)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "no memory for the store");
    store->base = (struct store){.engine = &sqlite_engine, .is_read_only = options->is_read_only};
    store->options = *options;
    store->options.write_bytes_max = options->write_bytes_max ? options->write_bytes_max : UINT64_C(64) << 20;
    store->options.queue_bytes_max = options->queue_bytes_max ? options->queue_bytes_max : UINT64_C(256) << 20;
    store->options.readers_max = options->readers_max ? options->readers_max : 8;
    store->lock_fd = -1;
    store->last_commit_ns = CELL_UNKNOWN;
    pthread_mutex_init(&store->mutex, NULL);
    pthread_cond_init(&store->changed, NULL);
    pthread_condattr_t steady; /* setting the wall clock must not delay upkeep */
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_cond_init(&store->background_wake, &steady);
    pthread_condattr_destroy(&steady);
    gpufl_status status = GPUFL_OK;
    if ((size_t)snprintf(store->path, sizeof store->path, "%s/gpufl.db", directory) >= sizeof store->path)
        status = problem_set(problem, GPUFL_E_INVALID, "the directory's name is too long");
    if (!status && options->is_read_only)
        status = reader_check(store, problem);
    else if (!status && !(status = directory_claim(store, directory, problem)))
        status = writer_open(store, problem);
    if (status) {
        sqlite_close(&store->base);
        return status;
    }
    *out = &store->base;
    return GPUFL_OK;
}
