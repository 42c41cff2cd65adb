/* SPDX-License-Identifier: Apache-2.0 */
/* Reads segments from the tables and turns them into lines. */
#include "store/sqlite_store.h"

#include <stdlib.h>

gpufl_status segments_list(struct sqlite_store *store, struct connection *reader, int64_t session,
                           const struct record_set *types, struct stored_segments *out, struct problem *problem)
{
    sqlite3_stmt *statement;
    *out = (struct stored_segments){0};
    gpufl_status status = statement_open(reader, &statement, problem,
                                         "SELECT segment, channel, position, layout, rows, min_ns, max_ns, bytes FROM"
                                         " segment WHERE session=?",
                                         "i", session);
    for (bool has_row = true; !status;) {
        status = statement_next(reader, statement, &has_row, problem);
        if (status || !has_row)
            break;
        const struct layout *layout;
        status = layout_get(store, reader, sqlite3_column_int64(statement, 3), &layout, problem);
        if (status)
            break;
        if (!record_set_has(types, layout->type))
            continue;
        struct stored_segment *segment = segments_add(out);
        if (!segment) {
            status = problem_set(problem, GPUFL_E_NO_MEMORY, "no memory for a list of segments");
            break;
        }
        *segment = (struct stored_segment){.segment = sqlite3_column_int64(statement, 0),
                                           .channel = channel_parse(row_text(statement, 1)),
                                           .position = sqlite3_column_int64(statement, 2),
                                           .layout = layout,
                                           .rows = sqlite3_column_int64(statement, 4),
                                           .min_ns = row_integer(statement, 5),
                                           .max_ns = row_integer(statement, 6),
                                           .bytes = sqlite3_column_int64(statement, 7)};
    }
    if (status) {
        free(out->items);
        *out = (struct stored_segments){0};
    } else {
        segments_sort(out);
    }
    return status;
}

gpufl_status segment_fetch(struct connection *reader, const struct stored_segment *segment, const void **data,
                           size_t *size, struct problem *problem)
{
    sqlite3_stmt *statement;
    bool has_row = false;
    gpufl_status status =
        statement_open(reader, &statement, problem, "SELECT data FROM segment WHERE segment=?", "i", segment->segment);
    if (!status)
        status = statement_next(reader, statement, &has_row, problem);
    if (status)
        return status;
    *data = has_row ? sqlite3_column_blob(statement, 0) : NULL;
    *size = has_row ? (size_t)sqlite3_column_bytes(statement, 0) : 0;
    return *data ? GPUFL_OK
                 : problem_set(problem, GPUFL_E_DAMAGED, "segment %lld has no data", (long long)segment->segment);
}

static gpufl_status source_fetch(void *user, const struct stored_segment *segment, const void **data, size_t *size,
                                 struct problem *problem)
{
    return segment_fetch(user, segment, data, size, problem);
}

static gpufl_status source_fetch_level(void *user, const struct stored_segment *segment, unsigned *shift,
                                       const void **data, size_t *size, struct problem *problem)
{
    struct connection *reader = user;
    sqlite3_stmt *statement;
    bool has_row = false;
    int64_t tile = segment->segment * TILE_SHIFTS;
    gpufl_status status = statement_open(reader, &statement, problem,
                                         "SELECT tile, data FROM tile WHERE tile>=?1 AND tile<=?2 ORDER BY tile DESC"
                                         " LIMIT 1",
                                         "ii", tile, tile + (int64_t)*shift);
    if (!status)
        status = statement_next(reader, statement, &has_row, problem);
    if (status || !has_row)
        return status;
    *shift = (unsigned)(sqlite3_column_int64(statement, 0) - tile);
    *data = sqlite3_column_blob(statement, 1);
    *size = (size_t)sqlite3_column_bytes(statement, 1);
    return *data ? GPUFL_OK : problem_set(problem, GPUFL_E_DAMAGED, "a level of the timeline is empty");
}

struct segment_source segment_source_of(struct connection *reader)
{
    return (struct segment_source){.fetch = source_fetch, .fetch_level = source_fetch_level, .user = reader};
}

gpufl_status segment_rows(struct connection *reader, struct column_coder *coder, const struct stored_segment *segment,
                          uint64_t wanted, struct row_buffer *rows, struct problem *problem)
{
    const struct segment_source source = segment_source_of(reader);
    return segment_rows_read(&source, coder, segment, wanted, rows, problem);
}

gpufl_status sqlite_read(struct store *base, const struct store_range *range, log_line_fn on_line, void *user,
                         struct problem *problem)
{
    struct sqlite_store *store = sqlite_store_of(base);
    struct connection *reader;
    struct stored_segments segments = {0};
    int64_t session;
    gpufl_status status = reader_begin(store, &reader, problem);
    if (status)
        return status;
    status = session_find(reader, range->session_id, &session, problem);
    if (!status)
        status = segments_list(store, reader, session, &range->types, &segments, problem);
    if (!status) {
        const struct segment_source source = segment_source_of(reader);
        segments_cut(&segments, range);
        status = segments_deliver(&source, &segments, range, on_line, user, problem);
    }
    reader_end(store, reader);
    free(segments.items);
    return status;
}

gpufl_status sqlite_timeline(struct store *base, const char *session_id, int64_t from_ns, int64_t to_ns, unsigned shift,
                             struct timeline *timeline, struct problem *problem)
{
    struct sqlite_store *store = sqlite_store_of(base);
    struct connection *reader;
    struct stored_segments segments = {0};
    const struct record_set types = timeline_types();
    int64_t session;
    gpufl_status status = reader_begin(store, &reader, problem);
    if (status)
        return status;
    status = session_find(reader, session_id, &session, problem);
    if (!status)
        status = segments_list(store, reader, session, &types, &segments, problem);
    if (!status) {
        const struct segment_source source = segment_source_of(reader);
        status = segments_timeline(&source, &segments, from_ns, to_ns, shift, timeline, problem);
    }
    reader_end(store, reader);
    free(segments.items);
    return status;
}
