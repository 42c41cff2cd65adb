/* SPDX-License-Identifier: Apache-2.0 */
/* Reads rollups: kernels, scopes, metrics. */
#include "store/clickhouse_store.h"

#include "store/scope_sums.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

enum { KERNEL_TRIES = 50, KERNEL_WAIT_MS = 100 };

/* Sums per kernel over the writes that count; duplicate rows count once. */
static const char kernel_sums[] =
    "SELECT session_id, kernel_id, argMaxIf(name, (received_ns, number), is_name = 1) AS name, sum(count) AS calls,"
    " if(sum(toFloat64(total_ns)) > 9e18, toInt64(9223372036854775806), sum(total_ns)) AS total,"
    " minIf(min_ns, count > 0) AS least, maxIf(max_ns, count > 0) AS most, sum(sum_squares) AS squares,"
    " sumForEach(histogram) AS bins FROM (SELECT session_id, write_id, received_ns, number, kernel_id, is_name,"
    " any(name) AS name, any(count) AS count, any(total_ns) AS total_ns, any(min_ns) AS min_ns, any(max_ns) AS max_ns,"
    " any(sum_squares) AS sum_squares, any(histogram) AS histogram FROM kernel WHERE ";
static const char kernel_sums_end[] =
    " GROUP BY session_id, write_id, received_ns, number, kernel_id, is_name) AS parts GROUP BY session_id, kernel_id"
    " HAVING calls > 0";

static gpufl_status kernel_take(struct ch_rows *rows, bool has_session, store_kernel_fn on_kernel, void *user,
                                bool *goes_on, struct problem *problem)
{
    struct store_kernel kernel = {.session_id = ch_text(rows, NULL), .start_ns = CELL_UNKNOWN};
    kernel.kernel_id = ch_u32(rows);
    kernel.name = ch_text(rows, NULL);
    kernel.count = ch_u64(rows);
    kernel.total_ns = ch_i64(rows);
    kernel.min_ns = ch_i64(rows);
    kernel.max_ns = ch_i64(rows);
    kernel.sum_squares = ch_f64(rows);
    size_t bins = ch_count(rows);
    for (size_t i = 0; i < bins; i++) {
        uint64_t bin = ch_u64(rows);
        if (i < STORE_HISTOGRAM_BINS)
            kernel.histogram[i] = bin;
    }
    if (has_session) {
        kernel.app = ch_text(rows, NULL);
        kernel.host = ch_text(rows, NULL);
        kernel.start_ns = ch_i64(rows);
    }
    gpufl_status status = ch_rows_end(rows, problem);
    if (!status)
        *goes_on = on_kernel(user, &kernel);
    return status;
}

/* A replica that was down may lack committed rows: wait for them instead of returning wrong data. */
static gpufl_status kernels_await(struct ch_store *store, const char *session_id, uint32_t generation,
                                  struct problem *problem)
{
    struct bytes sql = {0};
    struct ch_rows rows = {0};
    gpufl_status status = GPUFL_OK;
    bool is_there = false;
    for (unsigned tries = 0; !status && !is_there && tries < KERNEL_TRIES; tries++) {
        if (tries)
            nanosleep(&(struct timespec){.tv_nsec = KERNEL_WAIT_MS * 1000000L}, NULL);
        bytes_clear(&sql);
        bytes_append_text(&sql,
                          "SELECT toUInt8(sum(kernel_rows) <= (SELECT uniqExact(write_id, number) FROM kernel WHERE"
                          " session_id = ");
        ch_quote_text(&sql, session_id);
        bytes_append_text(&sql, " AND write_id GLOBAL IN (SELECT write_id FROM write");
        ch_session_where(&sql, session_id, generation);
        bytes_append_text(&sql, "))) FROM write");
        ch_session_where(&sql, session_id, generation);
        status = ch_select(store->client, &sql, &rows, problem);
        is_there = !status && ch_rows_next(&rows) && ch_u8(&rows);
    }
    if (!status && !is_there)
        status = problem_set(problem, GPUFL_E_BUSY, "a ClickHouse replica is missing data of session %s; try again",
                             session_id);
    ch_rows_free(&rows);
    bytes_free(&sql);
    return status;
}

gpufl_status ch_kernels(struct store *base, const char *session_id, store_kernel_fn on_kernel, void *user,
                        struct problem *problem)
{
    struct ch_store *store = ch_store_of(base);
    struct bytes sql = {0};
    struct ch_rows rows = {0};
    uint32_t generation;
    bool goes_on = true;
    gpufl_status status = ch_session_find(store, session_id, &generation, problem);
    if (!status)
        status = kernels_await(store, session_id, generation, problem);
    bytes_append_text(&sql, kernel_sums);
    bytes_append_text(&sql, "session_id = ");
    ch_quote_text(&sql, session_id);
    bytes_append_text(&sql, " AND write_id GLOBAL IN (SELECT write_id FROM write");
    if (!status)
        ch_session_where(&sql, session_id, generation);
    bytes_append_char(&sql, ')');
    bytes_append_text(&sql, kernel_sums_end);
    bytes_append_text(&sql, " ORDER BY total DESC, kernel_id");
    if (!status)
        status = ch_select(store->client, &sql, &rows, problem);
    while (!status && goes_on && ch_rows_next(&rows))
        status = kernel_take(&rows, false, on_kernel, user, &goes_on, problem);
    ch_rows_free(&rows);
    bytes_free(&sql);
    return status;
}

static void name_append(struct bytes *sql, const char *joined_by, const char *text)
{
    if (!*text)
        return;
    bytes_append_format(sql, "%s positionCaseInsensitive(name, ", joined_by);
    ch_quote_text(sql, text);
    bytes_append_text(sql, ") > 0");
}

gpufl_status ch_kernel_search(struct store *base, const char *text, unsigned limit, store_kernel_fn on_kernel,
                              void *user, struct problem *problem)
{
    struct ch_store *store = ch_store_of(base);
    struct bytes sql = {0};
    struct ch_rows rows = {0};
    bool goes_on = true;
    bytes_append_text(&sql, "SELECT session_id, kernel_id, name, calls, total, least, most, squares, bins, app, host,"
                            " start_ns FROM (SELECT * FROM (");
    bytes_append_text(&sql, kernel_sums);
    bytes_append_text(&sql, "(session_id, kernel_id) GLOBAL IN (SELECT session_id, kernel_id FROM kernel WHERE"
                            " is_name = 1");
    name_append(&sql, " AND", text);
    bytes_append_text(&sql, ") AND (session_id, write_id) GLOBAL IN (SELECT session_id, write_id FROM write ANY LEFT"
                            " JOIN (SELECT session_id, max(generation) AS current FROM change GROUP BY session_id)"
                            " AS changes USING (session_id) WHERE state = 1 AND generation = current)");
    bytes_append_text(&sql, kernel_sums_end);
    bytes_append_text(&sql, ") AS sums");
    name_append(&sql, " WHERE", text); /* the kernel may have had another name before */
    bytes_append_text(&sql, ") AS found ANY LEFT JOIN ");
    ch_session_table(&sql, "");
    bytes_append_format(&sql, " USING (session_id) ORDER BY start_ns DESC, total DESC, session_id, kernel_id LIMIT %u",
                        limit);
    gpufl_status status = ch_select(store->client, &sql, &rows, problem);
    while (!status && goes_on && ch_rows_next(&rows))
        status = kernel_take(&rows, true, on_kernel, user, &goes_on, problem);
    ch_rows_free(&rows);
    bytes_free(&sql);
    return status;
}

gpufl_status ch_scopes(struct store *base, const char *session_id, store_scope_fn on_scope, void *user,
                       struct problem *problem)
{
    struct scope_sums sums = {0};
    gpufl_status status = scope_sums_make(base, session_id, &sums, problem);
    for (size_t i = 0; i < sums.count && !status; i++)
        if (!on_scope(user, &sums.items[i]))
            break;
    scope_sums_free(&sums);
    return status;
}

/* ---- metrics ---- */

struct committed {
    uint64_t *ids; /* owned; ascending */
    size_t count;
};

static int id_compare(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

/* Finds the writes that count among those of one GPU's sums. Deleting a session keeps its metrics. */
static gpufl_status committed_read(struct ch_store *store, const char *where, struct committed *out,
                                   struct problem *problem)
{
    struct bytes sql = {0};
    struct ch_rows rows = {0};
    bytes_append_text(&sql, "SELECT DISTINCT write_id FROM write WHERE state = 1 AND session_id GLOBAL IN (SELECT"
                            " session_id FROM metric");
    bytes_append_text(&sql, where);
    bytes_append_char(&sql, ')');
    gpufl_status status = ch_select(store->client, &sql, &rows, problem);
    size_t count = rows.body.size / sizeof *out->ids;
    out->ids = calloc(count + 1, sizeof *out->ids);
    if (!status && !out->ids) {
        status = GPUFL_E_NO_MEMORY;
        (void)problem_set(problem, status, "no memory for metrics");
    }
    while (!status && ch_rows_next(&rows) && out->count < count)
        out->ids[out->count++] = ch_u64(&rows);
    if (!status)
        status = ch_rows_end(&rows, problem);
    if (!status && out->count)
        qsort(out->ids, out->count, sizeof *out->ids, id_compare);
    ch_rows_free(&rows);
    bytes_free(&sql);
    return status;
}

struct metric_reading {
    struct ch_store *store;
    struct committed committed;
    const struct layout *layout;
    int64_t minute;
    struct metric_cell cells[ROW_COLUMNS_MAX];
    bool goes_on;
};

static gpufl_status metric_take(struct metric_reading *reading, struct ch_rows *rows, store_metric_fn on_metric,
                                void *user, struct problem *problem)
{
    size_t size;
    int64_t minute = ch_i64(rows);
    uint64_t write_id = ch_u64(rows);
    const char *type = ch_text(rows, NULL), *columns = ch_text(rows, NULL), *data = ch_text(rows, &size);
    gpufl_status status = ch_rows_end(rows, problem);
    if (status || !reading->committed.count ||
        !bsearch(&write_id, reading->committed.ids, reading->committed.count, sizeof write_id, id_compare))
        return status;
    if (minute != reading->minute) {
        reading->goes_on = !reading->layout || metric_cells_deliver(reading->layout->type, reading->minute,
                                                                    reading->cells, on_metric, user);
        memset(reading->cells, 0, sizeof reading->cells);
        reading->minute = minute;
    }
    reading->layout = ch_layout_get(reading->store, type, columns, problem);
    if (!reading->layout)
        return GPUFL_E_NO_MEMORY;
    status = metric_cells_add(reading->cells, data, size, reading->layout->order, reading->layout->count);
    return status ? problem_set(problem, status, "the sums of a metric cannot be read") : GPUFL_OK;
}

gpufl_status ch_metrics(struct store *base, const char *host, const char *gpu_uuid, int64_t from_ns, int64_t to_ns,
                        store_metric_fn on_metric, void *user, struct problem *problem)
{
    struct bytes sql = {0}, where = {0};
    struct ch_rows rows = {0};
    struct metric_reading *reading = calloc(1, sizeof *reading);
    if (!reading)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "no memory for metrics");
    *reading = (struct metric_reading){.store = ch_store_of(base), .minute = -1, .goes_on = true};
    bytes_append_text(&where, " WHERE host = ");
    ch_quote_text(&where, host);
    bytes_append_text(&where, " AND uuid = ");
    ch_quote_text(&where, gpu_uuid);
    bytes_append_format(&where, " AND minute >= %" PRId64 " AND minute < %" PRId64, from_ns / MINUTE_NS,
                        (to_ns + MINUTE_NS - 1) / MINUTE_NS);
    gpufl_status status = committed_read(reading->store, bytes_text(&where), &reading->committed, problem);
    bytes_append_format(
        &sql,
        "SELECT minute, write_id, type, columns, data FROM metric%s ORDER BY minute, write_id LIMIT 1 BY"
        " minute, write_id, type",
        bytes_text(&where));
    if (!status)
        status = ch_select(reading->store->client, &sql, &rows, problem);
    while (!status && reading->goes_on && ch_rows_next(&rows))
        status = metric_take(reading, &rows, on_metric, user, problem);
    if (!status && reading->goes_on && reading->layout)
        metric_cells_deliver(reading->layout->type, reading->minute, reading->cells, on_metric, user);
    free(reading->committed.ids);
    free(reading);
    ch_rows_free(&rows);
    bytes_free(&sql);
    bytes_free(&where);
    return status;
}
