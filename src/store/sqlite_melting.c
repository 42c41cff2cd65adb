/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite_melting.h"

#include <stdlib.h>

/* LINES_BYTES: what a reader of records is asked to hold at once; OUTPUT_BYTES: of records that wait to be exchanged. */
enum { TAKE_MAX = 4096, LINES_BYTES = 8 << 20, OUTPUT_BYTES = 4 << 20 };

static const char members[] =
    "SELECT segment, position, layout, rows, bytes FROM segment JOIN layout USING(layout, type) WHERE session=?1 AND"
    " type=?2 AND channel=?3 AND rows < ?4 AND (bytes < 262144 OR columns <> '') ORDER BY position, segment";
_Static_assert((int)SMALL_BYTES == 262144, "as in the statement");

void melting_free(struct melting *melting)
{
    for (size_t i = 0; i < melting->output_count; i++)
        segment_free(&melting->outputs[i].segment);
    free(melting->outputs);
    free(melting->inputs.items);
    *melting = (struct melting){0};
}

static bool is_batch(const struct stored_segment *input)
{
    return record_catalogue[input->layout->type].is_batch;
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
        const struct layout *layout;
        status = layout_get(store, reader, sqlite3_column_int64(statement, 2), &layout, problem);
        if (status)
            return status;
        struct stored_segment *input = segments_add(inputs);
        if (!input)
            return problem_set(problem, GPUFL_E_NO_MEMORY, "no memory to melt segments");
        *input = (struct stored_segment){.segment = sqlite3_column_int64(statement, 0),
                                         .position = sqlite3_column_int64(statement, 1),
                                         .layout = layout,
                                         .rows = sqlite3_column_int64(statement, 3),
                                         .bytes = sqlite3_column_int64(statement, 4)};
        rows += is_batch(input) ? input->rows : 0;
    }
    return status;
}

static struct segment *output_add(struct melting *melting, int64_t position)
{
    if (melting->output_count == melting->output_capacity) {
        size_t capacity = melting->output_capacity ? melting->output_capacity * 2 : 8;
        struct melted_segment *grown = realloc(melting->outputs, capacity * sizeof *grown);
        if (!grown)
            return NULL;
        melting->outputs = grown;
        melting->output_capacity = capacity;
    }
    struct melted_segment *output = &melting->outputs[melting->output_count++];
    *output = (struct melted_segment){.position = position};
    return &output->segment;
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
                output = output_add(melting, melting->inputs.items[0].position);
                status = output ? segment_make(coder, &merged, output) : GPUFL_E_NO_MEMORY;
                row_buffer_clear(&merged);
            }
        }
    }
    row_buffer_free(&rows);
    row_buffer_free(&merged);
    return status;
}

/* Neighbours that become one segment of lines. */
struct run {
    size_t first, count;
    uint64_t plain_bytes;
    int64_t bytes, rows;
};

static bool run_has_room(const struct run *run, uint64_t plain_bytes)
{
    return run->bytes < SMALL_BYTES && run->rows < SMALL_ROWS && run->plain_bytes + plain_bytes <= LINES_BYTES;
}

static gpufl_status run_melt(struct connection *reader, struct column_coder *coder, struct melting *melting,
                             const struct run *run, struct problem *problem)
{
    const struct stored_segment *inputs = melting->inputs.items + run->first;
    struct bytes lines = {0};
    gpufl_status status = GPUFL_OK;
    for (size_t i = 0; i < run->count && !status; i++) {
        const void *data;
        size_t size;
        status = segment_fetch(reader, &inputs[i], &data, &size, problem);
        if (!status)
            status = lines_decode(coder, data, size, &lines);
    }
    struct segment *output = status ? NULL : output_add(melting, inputs[0].position);
    if (output) {
        *output = (struct segment){.type = inputs[0].layout->type,
                                   .channel = melting->place.channel,
                                   .rows = (uint32_t)run->rows,
                                   .min_ns = CELL_UNKNOWN,
                                   .max_ns = CELL_UNKNOWN};
        lines_encode(coder, lines.data, lines.size, &output->bytes);
    }
    if (!status && (!output || output->bytes.failed))
        status = GPUFL_E_NO_MEMORY;
    bytes_free(&lines);
    return status;
}

/* One that no neighbour joins stays as it is, and is no input any more: *kept counts those that are. */
static gpufl_status run_close(struct connection *reader, struct column_coder *coder, struct melting *melting,
                              const struct run *run, size_t *kept, struct problem *problem)
{
    if (run->count < 2)
        return GPUFL_OK;
    gpufl_status status = run_melt(reader, coder, melting, run, problem);
    struct stored_segment *items = melting->inputs.items;
    memmove(items + *kept, items + run->first, run->count * sizeof *items);
    *kept += run->count;
    return status;
}

/* Lines pack very differently: how much they are can be read from the segments alone. */
static gpufl_status plain_bytes_read(struct connection *reader, const struct stored_segment *input, uint64_t *bytes,
                                     struct problem *problem)
{
    const void *data;
    size_t size;
    gpufl_status status = segment_fetch(reader, input, &data, &size, problem);
    return status ? status : lines_plain_size(data, size, bytes);
}

static gpufl_status lines_melt(struct connection *reader, struct column_coder *coder, struct melting *melting,
                               struct problem *problem)
{
    struct run run = {0};
    size_t kept = 0;
    uint64_t plain_bytes = 0;
    int64_t output_bytes = 0;
    gpufl_status status = GPUFL_OK;
    for (size_t i = 0; i < melting->inputs.count && output_bytes < OUTPUT_BYTES && !status; i++) {
        const struct stored_segment *input = &melting->inputs.items[i];
        status = plain_bytes_read(reader, input, &plain_bytes, problem);
        if (!status && !run_has_room(&run, plain_bytes)) {
            status = run_close(reader, coder, melting, &run, &kept, problem);
            output_bytes += run.count > 1 ? run.bytes : 0;
            run = (struct run){.first = i};
        }
        run.count++;
        run.plain_bytes += plain_bytes;
        run.bytes += input->bytes;
        run.rows += input->rows;
    }
    if (!status)
        status = run_close(reader, coder, melting, &run, &kept, problem);
    melting->inputs.count = kept;
    return status;
}

/* Every melting leaves fewer small segments than it found, or melting would never end. */
static bool is_gain(const struct melting *melting)
{
    size_t small_count = 0;
    for (size_t i = 0; i < melting->output_count; i++) {
        const struct segment *output = &melting->outputs[i].segment;
        small_count +=
            output->rows < SMALL_ROWS && (record_catalogue[output->type].is_batch || output->bytes.size < SMALL_BYTES);
    }
    return small_count < melting->inputs.count;
}

gpufl_status melting_make(struct sqlite_store *store, struct connection *reader, struct column_coder *coder,
                          struct melting *melting, struct problem *problem)
{
    gpufl_status status = inputs_read(store, reader, melting, problem);
    if (!status && melting->inputs.count)
        status = is_batch(&melting->inputs.items[0]) ? rows_melt(reader, coder, melting, problem)
                                                     : lines_melt(reader, coder, melting, problem);
    if (status || !is_gain(melting))
        melting->inputs.count = 0;
    return status;
}

gpufl_status melting_apply(struct sqlite_store *store, struct connection *connection, const struct melting *melting,
                           struct problem *problem)
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
        status = segment_insert(store, connection, melting->place.session, melting->outputs[i].position,
                                &melting->outputs[i].segment, &bytes, problem);
    return status ? status
                  : statement_run(connection, problem, "UPDATE session SET bytes=bytes+?2 WHERE session=?1", "ii",
                                  melting->place.session, bytes - bytes_before);
}
