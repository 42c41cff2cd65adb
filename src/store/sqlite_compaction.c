/* SPDX-License-Identifier: Apache-2.0 */
/* Small segments, as deliveries bring them, become large ones. Everything is read and encoded outside of the writer
 * thread; the exchange itself is one change. */
#include "store/sqlite_store.h"

#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>

enum { TAKE_MAX = 4096, COMPACT_LEVEL = 3, WAIT_S = 30, SETTLE_S = 10, LINES_BYTES = 1 << 20 };

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
    int64_t session, type;
    enum channel channel;
    int64_t rows_below;
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
}

static bool is_blocked(const struct compaction *compaction, int64_t session, int64_t type)
{
    for (unsigned i = 0; i < compaction->blocked_count; i++)
        if (compaction->blocked[i].session == session && compaction->blocked[i].type == type)
            return true;
    return false;
}

static gpufl_status melting_find(struct connection *reader, const struct compaction *compaction,
                                 struct melting *melting, bool *is_found, struct problem *problem)
{
    sqlite3_stmt *statement;
    bool has_row = true;
    *is_found = false;
    gpufl_status status =
        statement_open(reader, &statement, problem, candidates, "i", clock_wall_ns() - compaction->settle_ns);
    while (!status && !*is_found && !(status = statement_next(reader, statement, &has_row, problem)) && has_row) {
        melting->session = sqlite3_column_int64(statement, 0);
        melting->type = sqlite3_column_int64(statement, 1);
        melting->channel = channel_parse(row_text(statement, 2));
        melting->rows_below = sqlite3_column_int(statement, 3) ? 2048 : 49152;
        *is_found = !is_blocked(compaction, melting->session, melting->type);
    }
    if (!status)
        sqlite3_reset(statement);
    return status;
}

static gpufl_status inputs_read(struct sqlite_store *store, struct connection *reader, struct melting *melting,
                                struct problem *problem)
{
    sqlite3_stmt *statement;
    bool has_row = true;
    int64_t rows = 0;
    struct stored_segments *inputs = &melting->inputs;
    inputs->items = malloc(TAKE_MAX * sizeof *inputs->items);
    if (!inputs->items)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "no memory to melt segments");
    gpufl_status status = statement_open(reader, &statement, problem, members, "iiti", melting->session, melting->type,
                                         channel_text(melting->channel), melting->rows_below);
    while (!status && inputs->count < TAKE_MAX && rows < 2 * SEGMENT_ROWS &&
           !(status = statement_next(reader, statement, &has_row, problem)) && has_row) {
        const struct layout *layout = layout_get(store, reader, sqlite3_column_int64(statement, 2), problem);
        if (!layout)
            return GPUFL_E_DAMAGED;
        rows += sqlite3_column_int64(statement, 3);
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
                                   .channel = melting->channel,
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

static gpufl_status melting_apply(struct sqlite_store *store, struct connection *connection, void *arg,
                                  struct problem *problem)
{
    const struct melting *melting = arg;
    int64_t bytes_before = 0, bytes = 0;
    gpufl_status status = GPUFL_OK;
    (void)store;
    for (size_t i = 0; i < melting->inputs.count && !status; i++) {
        const struct stored_segment *input = &melting->inputs.items[i];
        bytes_before += input->bytes;
        status = statement_run(connection, problem, "DELETE FROM segment WHERE segment=?", "i", input->segment);
        /* Gone meanwhile: the session was deleted. */
        if (!status && sqlite3_changes(connection->db) != 1)
            return problem_set(problem, GPUFL_E_NOT_FOUND, "the session was deleted");
        if (!status)
            status = statement_run(connection, problem, "DELETE FROM tile WHERE tile BETWEEN ?1 AND ?2", "ii",
                                   input->segment * TILE_SHIFTS, input->segment * TILE_SHIFTS + TILE_SHIFTS - 1);
    }
    for (size_t i = 0; i < melting->output_count && !status; i++)
        status = segment_insert(connection, melting->session, melting->inputs.items[0].position, &melting->outputs[i],
                                &bytes, problem);
    return status ? status
                  : statement_run(connection, problem, "UPDATE session SET bytes=bytes+?2 WHERE session=?1", "ii",
                                  melting->session, bytes - bytes_before);
}

gpufl_status compaction_step(struct sqlite_store *store, struct compaction *compaction, bool *is_done,
                             struct problem *problem)
{
    struct connection *reader;
    struct melting melting = {0};
    bool is_found = false;
    gpufl_status status = reader_begin(store, &reader, problem);
    if (status)
        return status;
    status = melting_find(reader, compaction, &melting, &is_found, problem);
    *is_done = !is_found;
    if (!status && is_found)
        status = inputs_read(store, reader, &melting, problem);
    if (!status && is_found && melting.inputs.count) {
        bool is_batch = record_catalogue[melting.inputs.items[0].layout->type].is_batch;
        status = is_batch ? rows_melt(reader, &compaction->coder, &melting, problem)
                          : lines_melt(reader, &compaction->coder, &melting, problem);
    }
    reader_end(store, reader);
    if (!status && is_found && melting.inputs.count)
        status = store_change(store, melting_apply, &melting, 0, problem);
    if (status == GPUFL_E_DAMAGED && compaction->blocked_count < 64) {
        compaction->blocked[compaction->blocked_count].session = melting.session;
        compaction->blocked[compaction->blocked_count++].type = melting.type;
        status = GPUFL_OK;
    }
    if (status == GPUFL_E_NOT_FOUND)
        status = GPUFL_OK;
    if (!status && is_found) {
        pthread_mutex_lock(&store->mutex);
        store->compactions++;
        pthread_mutex_unlock(&store->mutex);
    }
    melting_free(&melting);
    return status;
}

static bool is_closing(struct sqlite_store *store)
{
    pthread_mutex_lock(&store->mutex);
    bool is_closing = store->is_closing;
    pthread_mutex_unlock(&store->mutex);
    return is_closing;
}

void *background_main(void *arg)
{
    struct sqlite_store *store = arg;
    struct compaction compaction = {.settle_ns = SETTLE_S * INT64_C(1000000000)};
    if (column_coder_init(&compaction.coder, COMPACT_LEVEL))
        return NULL;
    pthread_mutex_lock(&store->mutex);
    while (!store->is_closing) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += WAIT_S; /* sessions settle without a wake-up */
        while (!store->is_closing && !store->has_background_work &&
               pthread_cond_timedwait(&store->background_wake, &store->mutex, &until) != ETIMEDOUT)
            ;
        store->has_background_work = false;
        pthread_mutex_unlock(&store->mutex);
        gpufl_status status = GPUFL_OK;
        int64_t after = 0;
        /* Failures (a full disk) are tried again at the next round. */
        for (bool is_done = false; !status && !is_done && !is_closing(store);)
            status = compaction_step(store, &compaction, &is_done, NULL);
        for (bool is_done = false; !is_done && !is_closing(store);)
            if (scopes_refresh(store, &after, &is_done, NULL) == GPUFL_E_IO)
                break;
        pthread_mutex_lock(&store->mutex);
    }
    pthread_mutex_unlock(&store->mutex);
    column_coder_free(&compaction.coder);
    return NULL;
}

gpufl_status sqlite_maintain(struct store *base, struct problem *problem)
{
    struct sqlite_store *store = sqlite_store_of(base);
    struct compaction compaction = {.settle_ns = 0};
    gpufl_status status = column_coder_init(&compaction.coder, COMPACT_LEVEL);
    int64_t after = 0;
    if (status)
        return problem_set(problem, status, "no memory to melt segments");
    for (bool is_done = false; !status && !is_done;)
        status = compaction_step(store, &compaction, &is_done, problem);
    for (bool is_done = false; !status && !is_done;)
        status = scopes_refresh(store, &after, &is_done, problem);
    column_coder_free(&compaction.coder);
    return status ? status : store_give_back(store, problem);
}
