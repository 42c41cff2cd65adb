/* SPDX-License-Identifier: Apache-2.0 */
/* Merges the small segments that deliveries produce into large ones. Segments are read and encoded outside the writer
 * thread; replacing them is one change. */
#include "store/sqlite_merge.h"

#include "base/clock.h"
#include "base/current_thread.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

/* Finding candidates scans all segments, so one search collects many, and the thread sleeps FIND_REST times as long as
 * the search took. */
enum {
    CANDIDATES_MAX = 4096,
    SKIPPED_MAX = 16384,
    TINY_COUNT = 32,
    COMPACT_LEVEL = 3,
    FIND_REST = 50,
    STEP_REST = 2,
    WAIT_S = 30,
    SETTLE_S = 10
};
enum { BATCH_MAX = 32, BACKGROUND_NICE = 10, FREE_PERCENT = 25 };
#define SECOND_NS INT64_C(1000000000)

/* Tiny segments are merged only when there are 32, so each row is rewritten a few times, not hundreds of times, before
 * it is in a large segment. */
static const char candidates_sql[] =
    "SELECT session, type, channel, tiny_count >= 32 AND total < 65536 AND (state = 0 OR received_ns > ?1), count,"
    " state > 0 AND received_ns <= ?1 FROM"
    " (SELECT session, type, channel, COUNT(*) AS count, SUM(rows < 2048) AS tiny_count, SUM(rows) AS total FROM"
    " segment JOIN layout USING(layout, type) WHERE rows < 49152 AND (bytes < 262144 OR columns <> '')"
    " GROUP BY session, type, channel) JOIN session USING(session) WHERE count > 1 AND (tiny_count >= 32 OR"
    " total >= 65536 OR (state > 0 AND received_ns <= ?1))";
_Static_assert(SEGMENT_ROWS == 65536 && (int)SMALL_ROWS == 49152 && (int)SMALL_BYTES == 262144 && TINY_COUNT == 32,
               "as in the statement");

static int candidate_compare(const struct merge_candidate *a, const struct merge_candidate *b)
{
    if (a->session != b->session)
        return a->session < b->session ? -1 : 1;
    if (a->type != b->type)
        return a->type < b->type ? -1 : 1;
    return a->channel < b->channel ? -1 : a->channel > b->channel;
}

/* Index of the candidate in the sorted list, or where it would be inserted. */
static size_t skipped_find(const struct compaction *compaction, const struct merge_candidate *candidate, bool *is_there)
{
    size_t first = 0, end = compaction->skipped_count;
    while (first < end) {
        size_t middle = first + (end - first) / 2;
        if (candidate_compare(&compaction->skipped[middle], candidate) < 0)
            first = middle + 1;
        else
            end = middle;
    }
    *is_there = first < compaction->skipped_count && !candidate_compare(&compaction->skipped[first], candidate);
    return first;
}

/* A skipped candidate is tried again when its segments have changed (in a live session: 32 more segments), or when
 * larger segments may be merged too. */
static bool is_skipped(const struct compaction *compaction, const struct merge_candidate *candidate, bool is_settled)
{
    bool is_there;
    size_t at = skipped_find(compaction, candidate, &is_there);
    if (!is_there)
        return false;
    const struct merge_candidate *skipped = &compaction->skipped[at];
    if (skipped->count == INT64_MAX)
        return true;
    return candidate->rows_below <= skipped->rows_below &&
           (is_settled ? candidate->count == skipped->count : candidate->count < skipped->count + TINY_COUNT);
}

static void candidate_skip(struct compaction *compaction, const struct merge_candidate *candidate, int64_t count)
{
    bool is_there;
    if (compaction->skipped_count == SKIPPED_MAX)
        compaction->skipped_count = 0; /* list full: start again; the cost is reading these segments once more */
    size_t at = skipped_find(compaction, candidate, &is_there);
    if (!is_there) {
        memmove(compaction->skipped + at + 1, compaction->skipped + at,
                (compaction->skipped_count - at) * sizeof *compaction->skipped);
        compaction->skipped_count++;
    }
    compaction->skipped[at] = *candidate;
    compaction->skipped[at].count = count;
}

void compaction_close(struct compaction *compaction)
{
    column_coder_free(&compaction->coder);
    free(compaction->candidates);
    free(compaction->skipped);
}

gpufl_status compaction_open(struct compaction *compaction, int64_t settle_ns, struct problem *problem)
{
    *compaction = (struct compaction){.settle_ns = settle_ns};
    compaction->candidates = malloc(CANDIDATES_MAX * sizeof *compaction->candidates);
    compaction->skipped = malloc(SKIPPED_MAX * sizeof *compaction->skipped);
    column_coder_init(&compaction->coder, COMPACT_LEVEL);
    if (compaction->candidates && compaction->skipped)
        return GPUFL_OK;
    compaction_close(compaction);
    problem_set(problem, GPUFL_E_NO_MEMORY, "no memory to merge segments");
    return GPUFL_E_NO_MEMORY;
}

gpufl_status compaction_find(struct sqlite_store *store, struct compaction *compaction, struct problem *problem)
{
    struct connection *reader;
    sqlite3_stmt *statement;
    bool has_row = true;
    int64_t start_ns = clock_thread_cpu_ns();
    compaction->candidate_count = compaction->candidate_next = compaction->merged_count = 0;
    gpufl_status status = reader_begin(store, &reader, problem);
    if (status)
        return status;
    status = statement_open(reader, &statement, problem, candidates_sql, "i", clock_wall_ns() - compaction->settle_ns);
    while (!status && compaction->candidate_count < CANDIDATES_MAX &&
           !(status = statement_next(reader, statement, &has_row, problem)) && has_row) {
        struct merge_candidate *candidate = &compaction->candidates[compaction->candidate_count];
        candidate->session = sqlite3_column_int64(statement, 0);
        candidate->type = sqlite3_column_int64(statement, 1);
        candidate->channel = channel_parse(row_text(statement, 2));
        candidate->rows_below = sqlite3_column_int(statement, 3) ? 2048 : SMALL_ROWS;
        candidate->count = sqlite3_column_int64(statement, 4);
        compaction->candidate_count += !is_skipped(compaction, candidate, sqlite3_column_int(statement, 5));
    }
    reader_end(store, reader);
    compaction->find_cpu_ns = clock_thread_cpu_ns() - start_ns;
    return status;
}

/* Small merges share one change, because each change waits for the disk. */
struct merge_batch {
    struct merge items[BATCH_MAX];
    size_t count;
};

static gpufl_status batch_apply(struct sqlite_store *store, struct connection *connection, void *arg,
                                struct problem *problem)
{
    const struct merge_batch *batch = arg;
    gpufl_status status = GPUFL_OK;
    for (size_t i = 0; i < batch->count && !status; i++) {
        status = statement_run(connection, problem, "SAVEPOINT merge", "");
        if (!status)
            status = merge_apply(store, connection, &batch->items[i], problem);
        if (status == GPUFL_E_NOT_FOUND) {
            store->made_layout_count = 0;
            status = statement_run(connection, problem, "ROLLBACK TO merge", "");
        }
        if (!status)
            status = statement_run(connection, problem, "RELEASE merge", "");
    }
    return status;
}

/* Merges the next candidate; the merge has no inputs when it would gain nothing. */
static gpufl_status candidate_merge(struct sqlite_store *store, struct connection *reader,
                                    struct compaction *compaction, struct merge *merge, struct problem *problem)
{
    merge->candidate = compaction->candidates[compaction->candidate_next++];
    gpufl_status status = merge_make(store, reader, &compaction->coder, merge, problem);
    if (status == GPUFL_E_DAMAGED) {
        candidate_skip(compaction, &merge->candidate, INT64_MAX);
        return GPUFL_OK;
    }
    if (!status && !merge->inputs.count)
        candidate_skip(compaction, &merge->candidate, merge->candidate.count);
    return status;
}

gpufl_status compaction_step(struct sqlite_store *store, struct compaction *compaction, struct problem *problem)
{
    struct connection *reader;
    struct merge_batch batch = {.count = 0};
    int64_t rows = 0;
    gpufl_status status = reader_begin(store, &reader, problem);
    if (status)
        return status;
    while (!status && batch.count < BATCH_MAX && rows < SEGMENT_ROWS &&
           compaction->candidate_next < compaction->candidate_count) {
        struct merge *merge = &batch.items[batch.count++];
        status = candidate_merge(store, reader, compaction, merge, problem);
        for (size_t i = 0; i < merge->inputs.count; i++)
            rows += merge->inputs.items[i].rows;
        if (!merge->inputs.count)
            merge_free(&batch.items[--batch.count]);
    }
    reader_end(store, reader);
    if (!status && batch.count)
        status = store_change(store, batch_apply, &batch, 0, problem);
    if (!status) {
        compaction->merged_count += batch.count;
        pthread_mutex_lock(&store->mutex);
        store->compactions += batch.count;
        pthread_mutex_unlock(&store->mutex);
    }
    for (size_t i = 0; i < batch.count; i++)
        merge_free(&batch.items[i]);
    return status;
}

static bool is_closing(struct sqlite_store *store)
{
    pthread_mutex_lock(&store->mutex);
    bool is_closing = store->is_closing;
    pthread_mutex_unlock(&store->mutex);
    return is_closing;
}

static struct timespec time_after(int64_t ns)
{
    const int64_t until_ns = clock_mono_ns() + ns;
    return (struct timespec){.tv_sec = until_ns / SECOND_NS, .tv_nsec = until_ns % SECOND_NS};
}

/* Waits between steps: deliveries have priority over background work. */
static void rest(struct sqlite_store *store, int64_t ns)
{
    const struct timespec end = time_after(ns);
    pthread_mutex_lock(&store->mutex);
    while (!store->is_closing && pthread_cond_timedwait(&store->background_wake, &store->mutex, &end) != ETIMEDOUT)
        ;
    pthread_mutex_unlock(&store->mutex);
}

/* Waits for work. The timeout is for sessions that settle, which wakes nobody. False: the store is closing. */
static bool work_await(struct sqlite_store *store)
{
    const struct timespec end = time_after(WAIT_S * SECOND_NS);
    pthread_mutex_lock(&store->mutex);
    while (!store->is_closing && !store->has_background_work &&
           pthread_cond_timedwait(&store->background_wake, &store->mutex, &end) != ETIMEDOUT)
        ;
    store->has_background_work = false;
    bool is_open = !store->is_closing;
    pthread_mutex_unlock(&store->mutex);
    return is_open;
}

void background_wake(struct sqlite_store *store)
{
    pthread_mutex_lock(&store->mutex);
    if (!store->has_background_work && store->has_background)
        pthread_cond_signal(&store->background_wake);
    store->has_background_work = true;
    pthread_mutex_unlock(&store->mutex);
}

/* One round of all background work. Failures (such as a full disk) are retried in the next round. True when there may
 * be more to do. */
static bool upkeep_round(struct sqlite_store *store, struct compaction *compaction)
{
    int64_t after = 0, start_ns;
    gpufl_status status = compaction_find(store, compaction, NULL);
    while (!status && compaction->candidate_next < compaction->candidate_count && !is_closing(store)) {
        start_ns = clock_mono_ns();
        status = compaction_step(store, compaction, NULL);
        rest(store, STEP_REST * (clock_mono_ns() - start_ns));
    }
    for (bool is_done = false; !is_done && !is_closing(store);)
        if (scopes_refresh(store, &after, &is_done, NULL) == GPUFL_E_IO)
            break;
    for (bool is_done = false; !is_done && !is_closing(store);) {
        start_ns = clock_mono_ns();
        if (store_give_back(store, FREE_PERCENT, &is_done, NULL))
            break;
        rest(store, STEP_REST * (clock_mono_ns() - start_ns));
    }
    return compaction->merged_count;
}

void *background_main(void *arg)
{
    struct sqlite_store *store = arg;
    struct compaction compaction;
    if (compaction_open(&compaction, SETTLE_S * SECOND_NS, NULL))
        return NULL;
    /* For this thread only: requests have priority. */
    setpriority(PRIO_PROCESS, (id_t)current_thread_id(), BACKGROUND_NICE);
    while (work_await(store)) {
        if (upkeep_round(store, &compaction))
            background_wake(store); /* merged segments may be merged again */
        int64_t rest_ns = FIND_REST * compaction.find_cpu_ns;
        rest(store, rest_ns > SECOND_NS ? rest_ns : SECOND_NS);
    }
    compaction_close(&compaction);
    return NULL;
}

gpufl_status sqlite_maintain(struct store *base, struct problem *problem)
{
    struct sqlite_store *store = sqlite_store_of(base);
    struct compaction compaction;
    int64_t after = 0;
    gpufl_status status = compaction_open(&compaction, 0, problem);
    if (status)
        return status;
    do {
        status = compaction_find(store, &compaction, problem);
        while (!status && compaction.candidate_next < compaction.candidate_count)
            status = compaction_step(store, &compaction, problem);
    } while (!status && compaction.merged_count);
    for (bool is_done = false; !status && !is_done;)
        status = scopes_refresh(store, &after, &is_done, problem);
    compaction_close(&compaction);
    for (bool is_done = false; !status && !is_done;)
        status = store_give_back(store, 0, &is_done, problem);
    return status;
}
