/* SPDX-License-Identifier: Apache-2.0 */
/* Reads rollups: kernels, metrics. */
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
                            " ORDER BY start_ns DESC, total_ns DESC, session_id, kernel_id LIMIT ?2",
                            "ti", text, (int64_t)limit);
    if (!status)
        status = kernels_deliver(reader, statement, true, on_kernel, user, problem);
    reader_end(store, reader);
    return status;
}

/* ---- metrics ---- */

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
                            " uuid=?2 AND minute>=?3 AND minute<?4 UNION ALL"
                            " SELECT minute, metric_now.layout, data FROM metric_now JOIN gpu USING(gpu) WHERE host=?1"
                            " AND uuid=?2 AND minute>=?3 AND minute<?4 ORDER BY 1",
                            "ttii", host, gpu_uuid, from_ns / MINUTE_NS, (to_ns + MINUTE_NS - 1) / MINUTE_NS);
    for (bool has_row = true; !status && goes_on;) {
        status = statement_next(reader, statement, &has_row, problem);
        if (status || !has_row)
            break;
        if (sqlite3_column_int64(statement, 0) != minute) {
            goes_on = !layout || metric_cells_deliver(layout->type, minute, cells, on_metric, user);
            memset(cells, 0, sizeof cells);
            minute = sqlite3_column_int64(statement, 0);
        }
        status = layout_get(store, reader, sqlite3_column_int64(statement, 1), &layout, problem);
        if (status)
            break;
        status = metric_cells_add(cells, sqlite3_column_blob(statement, 2), (size_t)sqlite3_column_bytes(statement, 2),
                                  layout->order, layout->count);
        if (status)
            problem_set(problem, status, "the sums of a metric cannot be read");
    }
    if (!status && goes_on && layout)
        metric_cells_deliver(layout->type, minute, cells, on_metric, user);
    reader_end(store, reader);
    return status;
}
