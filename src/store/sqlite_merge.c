/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite_merge.h"

#include <stdlib.h>

/* LINES_BYTES: the most decoded lines that a reader must hold at once; OUTPUT_BYTES: limits the inputs of one merge of
 * records. */
enum { TAKE_MAX = 4096, LINES_BYTES = 8 << 20, OUTPUT_BYTES = 4 << 20 };

static const char members[] =
    "SELECT segment, position, layout, rows, bytes FROM segment JOIN layout USING(layout, type) WHERE session=?1 AND"
    " type=?2 AND channel=?3 AND rows < ?4 AND (bytes < 262144 OR columns <> '') ORDER BY position, segment";
_Static_assert((int)SMALL_BYTES == 262144, "as in the statement");

void merge_free(struct merge *merge)
{
    for (size_t i = 0; i < merge->output_count; i++)
        segment_free(&merge->outputs[i].segment);
    free(merge->outputs);
    free(merge->inputs.items);
    *merge = (struct merge){0};
}

static bool is_batch(const struct stored_segment *input)
{
    return record_catalogue[input->layout->type].is_batch;
}

static gpufl_status inputs_read(struct sqlite_store *store, struct connection *reader, struct merge *merge,
                                struct problem *problem)
{
    sqlite3_stmt *statement;
    bool has_row = true;
    int64_t rows = 0;
    struct stored_segments *inputs = &merge->inputs;
    gpufl_status status =
        statement_open(reader, &statement, problem, members, "iiti", merge->candidate.session, merge->candidate.type,
                       channel_text(merge->candidate.channel), merge->candidate.rows_below);
    while (!status && inputs->count < TAKE_MAX && rows < 2 * SEGMENT_ROWS &&
           !(status = statement_next(reader, statement, &has_row, problem)) && has_row) {
        const struct layout *layout;
        status = layout_get(store, reader, sqlite3_column_int64(statement, 2), &layout, problem);
        if (status)
            return status;
        struct stored_segment *input = segments_add(inputs);
        if (!input)
            return problem_set(problem, GPUFL_E_NO_MEMORY, "no memory to merge segments");
        *input = (struct stored_segment){.segment = sqlite3_column_int64(statement, 0),
                                         .position = sqlite3_column_int64(statement, 1),
                                         .layout = layout,
                                         .rows = sqlite3_column_int64(statement, 3),
                                         .bytes = sqlite3_column_int64(statement, 4)};
        rows += is_batch(input) ? input->rows : 0;
    }
    return status;
}

static struct segment *output_add(struct merge *merge, int64_t position)
{
    if (merge->output_count == merge->output_capacity) {
        size_t capacity = merge->output_capacity ? merge->output_capacity * 2 : 8;
        struct merged_segment *grown = realloc(merge->outputs, capacity * sizeof *grown);
        if (!grown)
            return NULL;
        merge->outputs = grown;
        merge->output_capacity = capacity;
    }
    struct merged_segment *output = &merge->outputs[merge->output_count++];
    *output = (struct merged_segment){.position = position};
    return &output->segment;
}

static gpufl_status rows_merge(struct connection *reader, struct column_coder *coder, struct merge *merge,
                               struct problem *problem)
{
    struct row_buffer rows = {0}, merged = {0};
    gpufl_status status = GPUFL_OK;
    row_buffer_start(&merged, &record_catalogue[merge->inputs.items[0].layout->type]);
    for (size_t i = 0; i < merge->inputs.count && !status; i++) {
        status = segment_rows(reader, coder, &merge->inputs.items[i], 0, &rows, problem);
        for (uint32_t from = 0; !status && from < rows.row_count;) {
            uint32_t count = rows.row_count - from, room = SEGMENT_ROWS - merged.row_count;
            count = count < room ? count : room;
            struct segment *output = NULL;
            if (!row_buffer_join(&merged, &rows, from, count))
                status = GPUFL_E_NO_MEMORY;
            from += count;
            bool is_end = i + 1 == merge->inputs.count && from == rows.row_count;
            if (!status && (merged.row_count == SEGMENT_ROWS || is_end)) {
                output = output_add(merge, merge->inputs.items[0].position);
                status = output ? segment_make(coder, &merged, output) : GPUFL_E_NO_MEMORY;
                row_buffer_clear(&merged);
            }
        }
    }
    row_buffer_free(&rows);
    row_buffer_free(&merged);
    return status;
}

/* Adjacent segments that become one segment of lines. */
struct run {
    size_t first, count;
    uint64_t plain_bytes;
    int64_t bytes, rows;
};

static bool run_has_room(const struct run *run, uint64_t plain_bytes)
{
    return run->bytes < SMALL_BYTES && run->rows < SMALL_ROWS && run->plain_bytes + plain_bytes <= LINES_BYTES;
}

static gpufl_status run_merge(struct connection *reader, struct column_coder *coder, struct merge *merge,
                              const struct run *run, struct problem *problem)
{
    const struct stored_segment *inputs = merge->inputs.items + run->first;
    struct bytes lines = {0};
    gpufl_status status = GPUFL_OK;
    for (size_t i = 0; i < run->count && !status; i++) {
        const void *data;
        size_t size;
        status = segment_fetch(reader, &inputs[i], &data, &size, problem);
        if (!status)
            status = lines_decode(coder, data, size, &lines);
    }
    struct segment *output = status ? NULL : output_add(merge, inputs[0].position);
    if (output) {
        *output = (struct segment){.type = inputs[0].layout->type,
                                   .channel = merge->candidate.channel,
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

/* Merges a run. A single segment stays as it is and is removed from the inputs; *kept counts the remaining inputs. */
static gpufl_status run_close(struct connection *reader, struct column_coder *coder, struct merge *merge,
                              const struct run *run, size_t *kept, struct problem *problem)
{
    if (run->count < 2)
        return GPUFL_OK;
    gpufl_status status = run_merge(reader, coder, merge, run, problem);
    struct stored_segment *items = merge->inputs.items;
    memmove(items + *kept, items + run->first, run->count * sizeof *items);
    *kept += run->count;
    return status;
}

/* Lines compress very differently: only the segment itself contains their decoded size. */
static gpufl_status plain_bytes_read(struct connection *reader, const struct stored_segment *input, uint64_t *bytes,
                                     struct problem *problem)
{
    const void *data;
    size_t size;
    gpufl_status status = segment_fetch(reader, input, &data, &size, problem);
    return status ? status : lines_plain_size(data, size, bytes);
}

static gpufl_status lines_merge(struct connection *reader, struct column_coder *coder, struct merge *merge,
                                struct problem *problem)
{
    struct run run = {0};
    size_t kept = 0;
    uint64_t plain_bytes = 0;
    int64_t output_bytes = 0;
    gpufl_status status = GPUFL_OK;
    for (size_t i = 0; i < merge->inputs.count && output_bytes < OUTPUT_BYTES && !status; i++) {
        const struct stored_segment *input = &merge->inputs.items[i];
        status = plain_bytes_read(reader, input, &plain_bytes, problem);
        if (!status && !run_has_room(&run, plain_bytes)) {
            status = run_close(reader, coder, merge, &run, &kept, problem);
            output_bytes += run.count > 1 ? run.bytes : 0;
            run = (struct run){.first = i};
        }
        run.count++;
        run.plain_bytes += plain_bytes;
        run.bytes += input->bytes;
        run.rows += input->rows;
    }
    if (!status)
        status = run_close(reader, coder, merge, &run, &kept, problem);
    merge->inputs.count = kept;
    return status;
}

/* Every merge must leave fewer small segments than it found, or merging would never end. */
static bool is_gain(const struct merge *merge)
{
    size_t small_count = 0;
    for (size_t i = 0; i < merge->output_count; i++) {
        const struct segment *output = &merge->outputs[i].segment;
        small_count +=
            output->rows < SMALL_ROWS && (record_catalogue[output->type].is_batch || output->bytes.size < SMALL_BYTES);
    }
    return small_count < merge->inputs.count;
}

gpufl_status merge_make(struct sqlite_store *store, struct connection *reader, struct column_coder *coder,
                        struct merge *merge, struct problem *problem)
{
    gpufl_status status = inputs_read(store, reader, merge, problem);
    if (!status && merge->inputs.count)
        status = is_batch(&merge->inputs.items[0]) ? rows_merge(reader, coder, merge, problem)
                                                   : lines_merge(reader, coder, merge, problem);
    if (status || !is_gain(merge))
        merge->inputs.count = 0;
    return status;
}

gpufl_status merge_apply(struct sqlite_store *store, struct connection *connection, const struct merge *merge,
                         struct problem *problem)
{
    int64_t bytes_before = 0, bytes = 0;
    gpufl_status status = GPUFL_OK;
    bool has_tiles = timeline_has(merge->inputs.items[0].layout->type);
    for (size_t i = 0; i < merge->inputs.count && !status; i++) {
        const struct stored_segment *input = &merge->inputs.items[i];
        bytes_before += input->bytes;
        status = statement_run(connection, problem, "DELETE FROM segment WHERE segment=?", "i", input->segment);
        if (!status && sqlite3_changes(connection->db) != 1)
            return GPUFL_E_NOT_FOUND;
        if (!status && has_tiles)
            status = statement_run(connection, problem, "DELETE FROM tile WHERE tile BETWEEN ?1 AND ?2", "ii",
                                   input->segment * TILE_SHIFTS, input->segment * TILE_SHIFTS + TILE_SHIFTS - 1);
    }
    for (size_t i = 0; i < merge->output_count && !status; i++)
        status = segment_insert(store, connection, merge->candidate.session, merge->outputs[i].position,
                                &merge->outputs[i].segment, &bytes, problem);
    return status ? status
                  : statement_run(connection, problem, "UPDATE session SET bytes=bytes+?2 WHERE session=?1", "ii",
                                  merge->candidate.session, bytes - bytes_before);
}
