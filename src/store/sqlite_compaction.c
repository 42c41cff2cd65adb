/* SPDX-License-Identifier: Apache-2.0 */
/* Small segments, as deliveries bring them, become large ones. Everything is read and encoded outside of the writer
 * thread; the exchange itself is one change. */
#include "store/sqlite_melting.h"

#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

/* Finding looks at every segment: it is done once for many, and rests FIND_REST times as long as it took. */
enum {
    PLACES_MAX = 4096,
    RESTED_MAX = 16384,
    TINY_COUNT = 32,
    COMPACT_LEVEL = 3,
    FIND_REST = 50,
    STEP_REST = 2,
    WAIT_S = 30,
    SETTLE_S = 10
};
enum { BATCH_MAX = 32, BACKGROUND_NICE = 10, FREE_PERCENT = 25 };
#define SECOND_NS INT64_C(1000000000)

/* Tiny ones are melted by the 32, so that each row is written a few times, not hundreds of times, until it is in a large
 * segment. */
static const char candidates[] =
    "SELECT session, type, channel, tiny_count >= 32 AND total < 65536 AND (state = 0 OR received_ns > ?1), count,"
    " state > 0 AND received_ns <= ?1 FROM"
    " (SELECT session, type, channel, COUNT(*) AS count, SUM(rows < 2048) AS tiny_count, SUM(rows) AS total FROM"
    " segment JOIN layout USING(layout, type) WHERE rows < 49152 AND (bytes < 262144 OR columns <> '')"
    " GROUP BY session, type, channel) JOIN session USING(session) WHERE count > 1 AND (tiny_count >= 32 OR"
    " total >= 65536 OR (state > 0 AND received_ns <= ?1))";
_Static_assert(SEGMENT_ROWS == 65536 && (int)SMALL_ROWS == 49152 && (int)SMALL_BYTES == 262144 && TINY_COUNT == 32,
               "as in the statement");

static int place_compare(const struct melting_place *a, const struct melting_place *b)
{
    if (a->session != b->session)
        return a->session < b->session ? -1 : 1;
    if (a->type != b->type)
        return a->type < b->type ? -1 : 1;
    return a->channel < b->channel ? -1 : a->channel > b->channel;
}

/* Where the place is among those that rest, or would be. */
static size_t rested_find(const struct compaction *compaction, const struct melting_place *place, bool *is_there)
{
    size_t first = 0, end = compaction->rested_count;
    while (first < end) {
        size_t middle = first + (end - first) / 2;
        if (place_compare(&compaction->rested[middle], place) < 0)
            first = middle + 1;
        else
            end = middle;
    }
    *is_there = first < compaction->rested_count && !place_compare(&compaction->rested[first], place);
    return first;
}

/* A place where nothing was gained is tried again when it has other segments, while the session goes on 32 more, and
 * when larger ones are melted too. */
static bool is_resting(const struct compaction *compaction, const struct melting_place *place, bool is_settled)
{
    bool is_there;
    size_t at = rested_find(compaction, place, &is_there);
    if (!is_there)
        return false;
    const struct melting_place *rested = &compaction->rested[at];
    if (rested->count == INT64_MAX)
        return true;
    return place->rows_below <= rested->rows_below &&
           (is_settled ? place->count == rested->count : place->count < rested->count + TINY_COUNT);
}

static void place_rest(struct compaction *compaction, const struct melting_place *place, int64_t count)
{
    bool is_there;
    if (compaction->rested_count == RESTED_MAX)
        compaction->rested_count = 0; /* they are read again, and no more than that */
    size_t at = rested_find(compaction, place, &is_there);
    if (!is_there) {
        memmove(compaction->rested + at + 1, compaction->rested + at,
                (compaction->rested_count - at) * sizeof *compaction->rested);
        compaction->rested_count++;
    }
    compaction->rested[at] = *place;
    compaction->rested[at].count = count;
}

void compaction_close(struct compaction *compaction)
{
    column_coder_free(&compaction->coder);
    free(compaction->places);
    free(compaction->rested);
}

gpufl_status compaction_open(struct compaction *compaction, int64_t settle_ns, struct problem *problem)
{
    *compaction = (struct compaction){.settle_ns = settle_ns};
    compaction->places = malloc(PLACES_MAX * sizeof *compaction->places);
    compaction->rested = malloc(RESTED_MAX * sizeof *compaction->rested);
    column_coder_init(&compaction->coder, COMPACT_LEVEL);
    if (compaction->places && compaction->rested)
        return GPUFL_OK;
    compaction_close(compaction);
    problem_set(problem, GPUFL_E_NO_MEMORY, "no memory to melt segments");
    return GPUFL_E_NO_MEMORY;
}

gpufl_status compaction_find(struct sqlite_store *store, struct compaction *compaction, struct problem *problem)
{
    struct connection *reader;
    sqlite3_stmt *statement;
    bool has_row = true;
    int64_t start_ns = clock_thread_cpu_ns();
    compaction->place_count = compaction->place_next = compaction->melted_count = 0;
    gpufl_status status = reader_begin(store, &reader, problem);
    if (status)
        return status;
    status = statement_open(reader, &statement, problem, candidates, "i", clock_wall_ns() - compaction->settle_ns);
    while (!status && compaction->place_count < PLACES_MAX &&
           !(status = statement_next(reader, statement, &has_row, problem)) && has_row) {
        struct melting_place *place = &compaction->places[compaction->place_count];
        place->session = sqlite3_column_int64(statement, 0);
        place->type = sqlite3_column_int64(statement, 1);
        place->channel = channel_parse(row_text(statement, 2));
        place->rows_below = sqlite3_column_int(statement, 3) ? 2048 : SMALL_ROWS;
        place->count = sqlite3_column_int64(statement, 4);
        compaction->place_count += !is_resting(compaction, place, sqlite3_column_int(statement, 5));
    }
    reader_end(store, reader);
    compaction->find_cpu_ns = clock_thread_cpu_ns() - start_ns;
    return status;
}

/* Small meltings share a change, or the disk would be waited for at each. */
struct melting_batch {
    struct melting items[BATCH_MAX];
    size_t count;
};

static gpufl_status batch_apply(struct sqlite_store *store, struct connection *connection, void *arg,
                                struct problem *problem)
{
    const struct melting_batch *batch = arg;
    gpufl_status status = GPUFL_OK;
    for (size_t i = 0; i < batch->count && !status; i++) {
        status = statement_run(connection, problem, "SAVEPOINT melting", "");
        if (!status)
            status = melting_apply(store, connection, &batch->items[i], problem);
        if (status == GPUFL_E_NOT_FOUND) {
            store->made_layout_count = 0;
            status = statement_run(connection, problem, "ROLLBACK TO melting", "");
        }
        if (!status)
            status = statement_run(connection, problem, "RELEASE melting", "");
    }
    return status;
}

/* The next place; without inputs when nothing is gained there. */
static gpufl_status place_melt(struct sqlite_store *store, struct connection *reader, struct compaction *compaction,
                               struct melting *melting, struct problem *problem)
{
    melting->place = compaction->places[compaction->place_next++];
    gpufl_status status = melting_make(store, reader, &compaction->coder, melting, problem);
    if (status == GPUFL_E_DAMAGED) {
        place_rest(compaction, &melting->place, INT64_MAX);
        return GPUFL_OK;
    }
    if (!status && !melting->inputs.count)
        place_rest(compaction, &melting->place, melting->place.count);
    return status;
}

gpufl_status compaction_step(struct sqlite_store *store, struct compaction *compaction, struct problem *problem)
{
    struct connection *reader;
    struct melting_batch batch = {.count = 0};
    int64_t rows = 0;
    gpufl_status status = reader_begin(store, &reader, problem);
    if (status)
        return status;
    while (!status && batch.count < BATCH_MAX && rows < SEGMENT_ROWS &&
           compaction->place_next < compaction->place_count) {
        struct melting *melting = &batch.items[batch.count++];
        status = place_melt(store, reader, compaction, melting, problem);
        for (size_t i = 0; i < melting->inputs.count; i++)
            rows += melting->inputs.items[i].rows;
        if (!melting->inputs.count)
            melting_free(&batch.items[--batch.count]);
    }
    reader_end(store, reader);
    if (!status && batch.count)
        status = store_change(store, batch_apply, &batch, 0, problem);
    if (!status) {
        compaction->melted_count += batch.count;
        pthread_mutex_lock(&store->mutex);
        store->compactions += batch.count;
        pthread_mutex_unlock(&store->mutex);
    }
    for (size_t i = 0; i < batch.count; i++)
        melting_free(&batch.items[i]);
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

/* Deliveries come first: what is done for later takes only a part of the time. */
static void rest(struct sqlite_store *store, int64_t ns)
{
    const struct timespec end = time_after(ns);
    pthread_mutex_lock(&store->mutex);
    while (!store->is_closing && pthread_cond_timedwait(&store->background_wake, &store->mutex, &end) != ETIMEDOUT)
        ;
    pthread_mutex_unlock(&store->mutex);
}

/* Sessions settle without a wake-up. False: the store closes. */
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

/* One round of everything that is done for later; failures (a full disk) are tried again at the next. True when there
 * may be more to do. */
static bool upkeep_round(struct sqlite_store *store, struct compaction *compaction)
{
    int64_t after = 0, start_ns;
    gpufl_status status = compaction_find(store, compaction, NULL);
    while (!status && compaction->place_next < compaction->place_count && !is_closing(store)) {
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
    return compaction->melted_count;
}

void *background_main(void *arg)
{
    struct sqlite_store *store = arg;
    struct compaction compaction;
    if (compaction_open(&compaction, SETTLE_S * SECOND_NS, NULL))
        return NULL;
    /* Of this thread alone: whoever waits for an answer comes first. */
    setpriority(PRIO_PROCESS, (id_t)gettid(), BACKGROUND_NICE);
    while (work_await(store)) {
        if (upkeep_round(store, &compaction))
            background_wake(store); /* what was melted may be melted again */
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
        while (!status && compaction.place_next < compaction.place_count)
            status = compaction_step(store, &compaction, problem);
    } while (!status && compaction.melted_count);
    for (bool is_done = false; !status && !is_done;)
        status = scopes_refresh(store, &after, &is_done, problem);
    compaction_close(&compaction);
    for (bool is_done = false; !status && !is_done;)
        status = store_give_back(store, 0, &is_done, problem);
    return status;
}
