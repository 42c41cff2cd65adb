/* SPDX-License-Identifier: Apache-2.0 */
/* Rollups out: kernels, metrics, timeline. */
#include "store/sqlite_store.h"

#include <stdlib.h>

/* Columns: session_id, kernel_id, name, count, total, min, max, squares, histogram, app, host, start. */
static gpufl_status kernels_deliver(struct connection *reader, sqlite3_stmt *statement, bool has_session,
                                    store_kernel_fn on_kernel, void *user, struct problem *problem)
{
    gpufl_status status = GPUFL_OK;
    for (bool has_row = true, goes_on = true; !status && goes_on;) {
        status = statement_next(reader, statement, &has_row, problem);
        if (status || !has_row)
            break;
        struct store_kernel kernel = {.session_id = row_text(statement, 0),
                                      .kernel_id = (uint32_t)sqlite3_column_int64(statement, 1),
                                      .name = row_text(statement, 2),
                                      .count = (uint64_t)sqlite3_column_int64(statement, 3),
                                      .total_ns = sqlite3_column_int64(statement, 4),
                                      .min_ns = sqlite3_column_int64(statement, 5),
                                      .max_ns = sqlite3_column_int64(statement, 6),
                                      .sum_squares = sqlite3_column_double(statement, 7),
                                      .start_ns = CELL_UNKNOWN};
        if (!histogram_decode(sqlite3_column_blob(statement, 8), (size_t)sqlite3_column_bytes(statement, 8),
                              kernel.histogram)) {
            status = problem_set(problem, GPUFL_E_DAMAGED, "the sums of a kernel cannot be read");
            break;
        }
        if (has_session) {
            kernel.app = row_text(statement, 9);
            kernel.host = row_text(statement, 10);
            kernel.start_ns = row_integer(statement, 11);
        }
        goes_on = on_kernel(user, &kernel);
    }
    return status;
}

gpufl_status sqlite_kernels(struct store *base, const char *session_id, store_kernel_fn on_kernel, void *user,
                            struct problem *problem)
{
    struct sqlite_store *store = sqlite_store_of(base);
    struct connection *reader;
    sqlite3_stmt *statement;
    int64_t session;
    gpufl_status status = reader_begin(store, &reader, problem);
    if (status)
        return status;
    status = session_find(reader, session_id, &session, problem);
    if (!status)
        status = statement_open(reader, &statement, problem,
                                "SELECT ?2, kernel_id, text, count, total_ns, min_ns, max_ns, sum_squares, histogram"
                                " FROM kernel LEFT JOIN kernel_name USING(name) WHERE session=?1 AND count>0"
                                " ORDER BY total_ns DESC, kernel_id",
                                "it", session, session_id);
    if (!status)
        status = kernels_deliver(reader, statement, false, on_kernel, user, problem);
    reader_end(store, reader);
    return status;
}

gpufl_status sqlite_kernel_search(struct store *base, const char *text, unsigned limit, store_kernel_fn on_kernel,
                                  void *user, struct problem *problem)
{
    struct sqlite_store *store = sqlite_store_of(base);
    struct connection *reader;
    sqlite3_stmt *statement;
    gpufl_status status = reader_begin(store, &reader, problem);
    if (status)
        return status;
    status = statement_open(reader, &statement, problem,
                            "SELECT session_id, kernel_id, text, count, total_ns, min_ns, max_ns, sum_squares,"
                            " histogram, app, host, start_ns FROM kernel_name JOIN kernel USING(name)"
                            " JOIN session USING(session) WHERE INSTR(LOWER(text), LOWER(?1)) > 0 AND count>0"
                            " ORDER BY start_ns DESC, total_ns DESC LIMIT ?2",
                            "ti", text, (int64_t)limit);
    if (!status)
        status = kernels_deliver(reader, statement, true, on_kernel, user, problem);
    reader_end(store, reader);
    return status;
}

/* ---- metrics ---- */

static bool minute_deliver(const struct layout *layout, int64_t minute, const struct metric_cell *cells,
                           store_metric_fn on_metric, void *user)
{
    const struct record_info *info = &record_catalogue[layout->type];
    for (unsigned c = 0; c < info->column_count && c < ROW_COLUMNS_MAX; c++) {
        if (!cells[c].count)
            continue;
        const struct store_metric metric = {.minute_ns = minute * MINUTE_NS,
                                            .type = layout->type,
                                            .column = c,
                                            .min = cells[c].min,
                                            .max = cells[c].max,
                                            .mean = cells[c].sum / (double)cells[c].count,
                                            .count = cells[c].count};
        if (!on_metric(user, &metric))
            return false;
    }
    return true;
}

gpufl_status sqlite_metrics(struct store *base, const char *host, const char *gpu_uuid, int64_t from_ns, int64_t to_ns,
                            store_metric_fn on_metric, void *user, struct problem *problem)
{
    struct sqlite_store *store = sqlite_store_of(base);
    struct connection *reader;
    sqlite3_stmt *statement;
    const struct layout *layout = NULL;
    struct metric_cell cells[ROW_COLUMNS_MAX] = {{0}};
    int64_t minute = -1;
    bool goes_on = true;
    gpufl_status status = reader_begin(store, &reader, problem);
    if (status)
        return status;
    status = statement_open(reader, &statement, problem,
                            "SELECT minute, metric.layout, data FROM metric JOIN gpu USING(gpu) WHERE host=?1 AND"
                            " uuid=?2 AND minute>=?3 AND minute<?4 ORDER BY minute",
                            "ttii", host, gpu_uuid, from_ns / MINUTE_NS, (to_ns + MINUTE_NS - 1) / MINUTE_NS);
    for (bool has_row = true; !status && goes_on;) {
        status = statement_next(reader, statement, &has_row, problem);
        if (status || !has_row)
            break;
        if (sqlite3_column_int64(statement, 0) != minute) {
            goes_on = !layout || minute_deliver(layout, minute, cells, on_metric, user);
            memset(cells, 0, sizeof cells);
            minute = sqlite3_column_int64(statement, 0);
        }
        layout = layout_get(store, reader, sqlite3_column_int64(statement, 1), problem);
        status = layout ? metric_cells_add(cells, sqlite3_column_blob(statement, 2),
                                           (size_t)sqlite3_column_bytes(statement, 2), layout->order, layout->count)
                        : GPUFL_E_DAMAGED;
        if (status && layout)
            problem_set(problem, status, "the sums of a metric cannot be read");
    }
    if (!status && goes_on && layout)
        minute_deliver(layout, minute, cells, on_metric, user);
    reader_end(store, reader);
    return status;
}

/* ---- timeline ---- */

struct timeline_query {
    struct sqlite_store *store;
    struct connection *reader;
    struct column_coder coder;
    struct row_buffer rows;
    struct timeline_sums sums;
    unsigned shift;
    int64_t first, last;
};

/* The coarsest stored level that is fine enough, else the rows themselves. */
static gpufl_status segment_sum(struct timeline_query *query, const struct stored_segment *segment,
                                struct problem *problem)
{
    sqlite3_stmt *statement;
    bool has_row = false;
    enum record_type type = segment->layout->type;
    int64_t tile = segment->segment * TILE_SHIFTS;
    gpufl_status status = statement_open(query->reader, &statement, problem,
                                         "SELECT tile, data FROM tile WHERE tile>=?1 AND tile<=?2 ORDER BY tile DESC"
                                         " LIMIT 1",
                                         "ii", tile, tile + (int64_t)query->shift);
    if (!status)
        status = statement_next(query->reader, statement, &has_row, problem);
    if (status)
        return status;
    if (has_row) {
        const void *data = sqlite3_column_blob(statement, 1);
        status = data ? timeline_decode(&query->coder, type, data, (size_t)sqlite3_column_bytes(statement, 1),
                                        (unsigned)(sqlite3_column_int64(statement, 0) - tile), query->shift,
                                        query->first, query->last, &query->sums)
                      : GPUFL_E_DAMAGED;
    } else {
        status = segment_rows(query->reader, &query->coder, segment, timeline_columns(type), &query->rows, problem);
        if (!status)
            status = timeline_add_rows(&query->sums, &query->rows, query->shift, query->first, query->last);
    }
    return status ? problem_set(problem, status, "the timeline of segment %lld cannot be read",
                                (long long)segment->segment)
                  : GPUFL_OK;
}

gpufl_status sqlite_timeline(struct store *base, const char *session_id, int64_t from_ns, int64_t to_ns, unsigned shift,
                             struct timeline *timeline, struct problem *problem)
{
    struct timeline_query query = {
        .store = sqlite_store_of(base), .shift = shift, .first = from_ns >> shift, .last = (to_ns - 1) >> shift};
    struct stored_segments segments = {0};
    struct record_set types = {{0}};
    int64_t session;
    record_set_add(&types, RECORD_KERNEL_EVENT_BATCH);
    record_set_add(&types, RECORD_MEMCPY_EVENT_BATCH);
    record_set_add(&types, RECORD_MEMSET_EVENT_BATCH);
    gpufl_status status = column_coder_init(&query.coder, 1);
    if (status)
        problem_set(problem, status, "no memory for a timeline");
    else
        status = reader_begin(query.store, &query.reader, problem);
    if (!status)
        status = session_find(query.reader, session_id, &session, problem);
    if (!status)
        status = segments_list(query.store, query.reader, session, &types, &segments, problem);
    for (size_t i = 0; i < segments.count && !status; i++) {
        const struct stored_segment *segment = &segments.items[i];
        if (segment->min_ns != CELL_UNKNOWN && segment->min_ns >> shift <= query.last &&
            segment->max_ns >> shift >= query.first)
            status = segment_sum(&query, segment, problem);
    }
    if (!status) {
        timeline_melt(&query.sums);
        status = timeline_finish(&query.sums, shift, timeline);
        if (status)
            problem_set(problem, status, "no memory for a timeline");
    }
    if (query.reader)
        reader_end(query.store, query.reader);
    free(segments.items);
    column_coder_free(&query.coder);
    row_buffer_free(&query.rows);
    timeline_sums_free(&query.sums);
    return status;
}
