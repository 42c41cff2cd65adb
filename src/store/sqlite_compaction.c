/* SPDX-License-Identifier: Apache-2.0 */
/* Small segments, as deliveries bring them, become large ones. Everything is read and encoded outside of the writer
 * thread; the exchange itself is one change. */
#include "store/sqlite_store.h"

#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

/* Finding looks at every segment: it is done once for many, and rests FIND_REST times as long as it took. */
enum {
    TAKE_MAX = 4096,
    PLACES_MAX = 4096,
    COMPACT_LEVEL = 3,
    FIND_REST = 50,
    STEP_REST = 2,
    WAIT_S = 30,
    SETTLE_S = 10
};
enum { LINES_BYTES = 1 << 20, BATCH_MAX = 32, BACKGROUND_NICE = 10, FREE_PERCENT = 25 };
#define SECOND_NS INT64_C(1000000000)

/* Small: fewer than three quarters of a whole segment's rows, and for records less than 256 KiB. Tiny ones are melted
 * by the 32, so that each row is written a few times, not hundreds of times, until it is in a large segment. */
static const char candidates[] =
    "SELECT session, type, channel, tiny_count >= 32 AND total < 65536 AND (state = 0 OR received_ns > ?1) FROM"
    " (SELECT session, type, channel, COUNT(*) AS count, SUM(rows < 2048) AS tiny_count, SUM(rows) AS total FROM"
    " segment JOIN layout USING(layout, type) WHERE rows < 49152 AND (bytes < 262144 OR columns <> '')"
    " GROUP BY session, type, channel) JOIN session USING(session) WHERE count > 1 AND (tiny_count >= 32 OR"
    " total >= 65536 OR (state > 0 AND received_ns <= ?1))";
static const char members[] =
    "SELECT segment, position, layout, rows, bytes FROM segment JOIN layout USING(layout, type) WHERE session=?1 AND"
    " type=?2 AND channel=?3 AND rows < ?4 AND (bytes < 262144 OR columns <> '') ORDER BY position, segment";
_Static_assert(SEGMENT_ROWS == 65536, "as in the statements");

struct melting {
    struct melting_place place;
    struct stored_segments inputs;
    struct segment *outputs;
    size_t output_count, output_capacity;
};

static void melting_free(struct melting *melting)
{
    for (size_t i = 0; i < melting->output_count; i++)
        segment_free(&melting->outputs[i]);
    free(melting->outputs);
    free(melting->inputs.items);
    *melting = (struct melting){0};
}

static bool is_blocked(const struct compaction *compaction, int64_t session, int64_t type)
{
    for (unsigned i = 0; i < compaction->blocked_count; i++)
        if (compaction->blocked[i].session == session && compaction->blocked[i].type == type)
            return true;
    return false;
}

void compaction_close(struct compaction *compaction)
{
    column_coder_free(&compaction->coder);
    free(compaction->places);
}

gpufl_status compaction_open(struct compaction *compaction, int64_t settle_ns, struct problem *problem)
{
    *compaction = (struct compaction){.settle_ns = settle_ns};
    compaction->places = malloc(PLACES_MAX * sizeof *compaction->places);
    column_coder_init(&compaction->coder, COMPACT_LEVEL);
    return compaction->places ? GPUFL_OK : problem_set(problem, GPUFL_E_NO_MEMORY, "no memory to melt segments");
}

gpufl_status compaction_find(struct sqlite_store *store, struct compaction *compaction, struct problem *problem)
{
    struct connection *reader;
    sqlite3_stmt *statement;
    bool has_row = true;
    int64_t start_ns = clock_thread_cpu_ns();
    compaction->place_count = compaction->place_next = 0;
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
        place->rows_below = sqlite3_column_int(statement, 3) ? 2048 : 49152;
        compaction->place_count += !is_blocked(compaction, place->session, place->type);
    }
    reader_end(store, reader);
    compaction->find_cpu_ns = clock_thread_cpu_ns() - start_ns;
    return status;
}

static bool inputs_reserve(struct stored_segments *inputs)
{
    if (inputs->count < inputs->capacity)
        return true;
    size_t capacity = inputs->capacity ? inputs->capacity * 2 : 64;
    struct stored_segment *grown = realloc(inputs->items, capacity * sizeof *grown);
    if (!grown)
        return false;
    inputs->items = grown;
    inputs->capacity = capacity;
    return true;
}

static gpufl_status inputs_read(struct sqlite_store *store, struct connection *reader, struct melting *melting,
                                struct problem *problem)
{
    sqlite3_stmt *statement;
    bool has_row = true;
    int64_t rows = 0;
    struct stored_segments *inputs = &melting->inputs;
    gpufl_status status =
        statement_open(reader, &statement, problem, members, "iiti", melting->place.session, melting->place.type,
                       channel_text(melting->place.channel), melting->place.rows_below);
    while (!status && inputs->count < TAKE_MAX && rows < 2 * SEGMENT_ROWS &&
           !(status = statement_next(reader, statement, &has_row, problem)) && has_row) {
        const struct layout *layout = layout_get(store, reader, sqlite3_column_int64(statement, 2), problem);
        if (!layout)
            return GPUFL_E_DAMAGED;
        rows += sqlite3_column_int64(statement, 3);
        if (!inputs_reserve(inputs))
            return problem_set(problem, GPUFL_E_NO_MEMORY, "no memory to melt segments");
        inputs->items[inputs->count++] = (struct stored_segment){.segment = sqlite3_column_int64(statement, 0),
                                                                 .position = sqlite3_column_int64(statement, 1),
                                                                 .layout = layout,
                                                                 .rows = sqlite3_column_int64(statement, 3),
                                                                 .bytes = sqlite3_column_int64(statement, 4)};
    }
    return status;
}

static struct segment *output_add(struct melting *melting)
{
    if (melting->output_count == melting->output_capacity) {
        size_t capacity = melting->output_capacity ? melting->output_capacity * 2 : 8;
        struct segment *grown = realloc(melting->outputs, capacity * sizeof *grown);
        if (!grown)
            return NULL;
        melting->outputs = grown;
        melting->output_capacity = capacity;
    }
    struct segment *segment = &melting->outputs[melting->output_count++];
    *segment = (struct segment){0};
    return segment;
}

static gpufl_status rows_melt(struct connection *reader, struct column_coder *coder, struct melting *melting,
                              struct problem *problem)
{
    struct row_buffer rows = {0}, merged = {0};
    gpufl_status status = GPUFL_OK;
    row_buffer_start(&merged, &record_catalogue[melting->inputs.items[0].layout->type]);
    for (size_t i = 0; i < melting->inputs.count && !status; i++) {
        status = segment_rows(reader, coder, &melting->inputs.items[i], 0, &rows, problem);
        for (uint32_t from = 0; !status && from < rows.row_count;) {
            uint32_t count = rows.row_count - from, room = SEGMENT_ROWS - merged.row_count;
            count = count < room ? count : room;
            struct segment *output = NULL;
            if (!row_buffer_join(&merged, &rows, from, count))
                status = GPUFL_E_NO_MEMORY;
            from += count;
            bool is_end = i + 1 == melting->inputs.count && from == rows.row_count;
            if (!status && (merged.row_count == SEGMENT_ROWS || is_end)) {
                output = output_add(melting);
                status = output ? segment_make(coder, &merged, output) : GPUFL_E_NO_MEMORY;
                row_buffer_clear(&merged);
            }
        }
    }
    row_buffer_free(&rows);
    row_buffer_free(&merged);
    return status;
}

static gpufl_status lines_melt(struct connection *reader, struct column_coder *coder, struct melting *melting,
                               struct problem *problem)
{
    struct bytes lines = {0};
    gpufl_status status = GPUFL_OK;
    uint32_t count = 0;
    for (size_t i = 0; i < melting->inputs.count && !status; i++) {
        const struct stored_segment *input = &melting->inputs.items[i];
        const void *data;
        size_t size;
        status = segment_fetch(reader, input, &data, &size, problem);
        if (!status)
            status = lines_decode(coder, data, size, &lines);
        count += (uint32_t)input->rows;
        if (status || (i + 1 < melting->inputs.count && lines.size < LINES_BYTES))
            continue;
        struct segment *output = output_add(melting);
        if (!output) {
            status = GPUFL_E_NO_MEMORY;
            break;
        }
        *output = (struct segment){.type = input->layout->type,
                                   .channel = melting->place.channel,
                                   .rows = count,
                                   .min_ns = CELL_UNKNOWN,
                                   .max_ns = CELL_UNKNOWN};
        lines_encode(coder, lines.data, lines.size, &output->bytes);
        status = output->bytes.failed ? GPUFL_E_NO_MEMORY : GPUFL_OK;
        bytes_clear(&lines);
        count = 0;
    }
    bytes_free(&lines);
    return status;
}

/* GPUFL_E_NOT_FOUND: the session was deleted meanwhile. */
static gpufl_status melting_apply(struct sqlite_store *store, struct connection *connection,
                                  const struct melting *melting, struct problem *problem)
{
    int64_t bytes_before = 0, bytes = 0;
    gpufl_status status = GPUFL_OK;
    bool has_tiles = timeline_has(melting->inputs.items[0].layout->type);
    for (size_t i = 0; i < melting->inputs.count && !status; i++) {
        const struct stored_segment *input = &melting->inputs.items[i];
        bytes_before += input->bytes;
        status = statement_run(connection, problem, "DELETE FROM segment WHERE segment=?", "i", input->segment);
        if (!status && sqlite3_changes(connection->db) != 1)
            return GPUFL_E_NOT_FOUND;
        if (!status && has_tiles)
            status = statement_run(connection, problem, "DELETE FROM tile WHERE tile BETWEEN ?1 AND ?2", "ii",
                                   input->segment * TILE_SHIFTS, input->segment * TILE_SHIFTS + TILE_SHIFTS - 1);
    }
    for (size_t i = 0; i < melting->output_count && !status; i++)
        status = segment_insert(store, connection, melting->place.session, melting->inputs.items[0].position,
                                &melting->outputs[i], &bytes, problem);
    return status ? status
                  : statement_run(connection, problem, "UPDATE session SET bytes=bytes+?2 WHERE session=?1", "ii",
                                  melting->place.session, bytes - bytes_before);
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

static gpufl_status melting_make(struct sqlite_store *store, struct connection *reader, struct compaction *compaction,
                                 struct melting *melting, struct problem *problem)
{
    gpufl_status status = inputs_read(store, reader, melting, problem);
    if (!status && melting->inputs.count) {
        bool is_batch = record_catalogue[melting->inputs.items[0].layout->type].is_batch;
        status = is_batch ? rows_melt(reader, &compaction->coder, melting, problem)
                          : lines_melt(reader, &compaction->coder, melting, problem);
    }
    if (status == GPUFL_E_DAMAGED && compaction->blocked_count < BLOCKED_MAX) {
        compaction->blocked[compaction->blocked_count++] = melting->place;
        status = GPUFL_OK;
        melting->inputs.count = 0;
    }
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
        melting->place = compaction->places[compaction->place_next++];
        status = melting_make(store, reader, compaction, melting, problem);
        for (size_t i = 0; i < melting->inputs.count; i++)
            rows += melting->inputs.items[i].rows;
        if (!melting->inputs.count)
            melting_free(&batch.items[--batch.count]);
    }
    reader_end(store, reader);
    if (!status && batch.count)
        status = store_change(store, batch_apply, &batch, 0, problem);
    if (!status) {
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
    bool has_found = compaction->place_count;
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
    return has_found;
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
    } while (!status && compaction.place_count);
    for (bool is_done = false; !status && !is_done;)
        status = scopes_refresh(store, &after, &is_done, problem);
    compaction_close(&compaction);
    for (bool is_done = false; !status && !is_done;)
        status = store_give_back(store, 0, &is_done, problem);
    return status;
}
