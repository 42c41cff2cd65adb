/* SPDX-License-Identifier: Apache-2.0 */
/* Adds the sums of a delivery to the catalog and the rollups. Runs on the writer thread, in its transaction. */
#include "store/sqlite_store.h"

#include <stdio.h>
#include <stdlib.h>

static gpufl_status losses_save(struct connection *connection, int64_t session, const struct session_facts *facts,
                                struct problem *problem)
{
    gpufl_status status = GPUFL_OK;
    for (unsigned i = 0; i < facts->loss_count && !status; i++) {
        const struct loss_fact *loss = &facts->losses[i];
        status = statement_run(connection, problem,
                               "INSERT INTO loss(session, reason, is_total, count, has_unknown)"
                               " VALUES(?1, ?2, ?3, ?4, ?5) ON CONFLICT(session, reason, is_total) DO UPDATE SET"
                               " count=CASE WHEN ?3 THEN MAX(count, ?4) ELSE MIN(count, 4611686018427387903)"
                               " + MIN(?4, 4611686018427387903) END, has_unknown=has_unknown OR ?5",
                               "itiii", session, loss->reason, (int64_t)loss->is_total, loss->count,
                               (int64_t)loss->has_unknown);
    }
    /* The totals of the shutdown record replace loss records that were themselves lost. */
    if (!status && facts->loss_count)
        status = statement_run(
            connection, problem,
            "UPDATE session SET lost=(SELECT CAST(MIN(TOTAL(most), 9e18) AS INTEGER) FROM (SELECT MAX(count) AS most"
            " FROM loss WHERE session=?1 GROUP BY reason)), has_unknown_loss=(SELECT MAX(has_unknown) FROM loss WHERE"
            " session=?1) WHERE session=?1",
            "i", session);
    return status;
}

static gpufl_status session_save(struct connection *connection, int64_t session, const struct session_facts *facts,
                                 struct problem *problem)
{
    int64_t state = facts->has_crashed ? STORE_SESSION_CRASHED
                    : facts->has_ended ? STORE_SESSION_COMPLETE
                                       : STORE_SESSION_LIVE;
    /* job_start decides when the session began; until it arrives, the earliest time seen does. */
    int64_t start_ns = facts->start_ns != CELL_UNKNOWN ? facts->start_ns : facts->first_ns;
    return statement_run(
        connection, problem,
        "UPDATE session SET app=CASE ?2 WHEN '' THEN app ELSE ?2 END, host=CASE ?3 WHEN '' THEN host ELSE ?3 END,"
        " kind=CASE ?4 WHEN '' THEN kind ELSE ?4 END, engine=CASE ?5 WHEN '' THEN engine ELSE ?5 END,"
        " state=MAX(state, ?6), start_ns=CASE WHEN ?7 THEN ?8 ELSE MIN(IFNULL(start_ns, ?8), IFNULL(?8, start_ns)) END,"
        " end_ns=MAX(IFNULL(end_ns, ?9), IFNULL(?9, end_ns)), kernels=kernels+?10,"
        " kernel_ns=MIN(kernel_ns, 4611686018427387903)+MIN(?11, 4611686018427387903), rows=rows+?12,"
        " lines=lines+?13, rows_told=MAX(IFNULL(rows_told, ?14), IFNULL(?14, rows_told)) WHERE session=?1",
        "ittttiiiiiiiii", session, facts->app, facts->host, facts->kind, facts->engine, state,
        (int64_t)(facts->start_ns != CELL_UNKNOWN), start_ns, facts->last_ns, facts->kernels, facts->kernel_ns,
        facts->rows, facts->lines, facts->expected_rows);
}

/* ---- kernels ---- */

static gpufl_status names_save(struct connection *connection, int64_t session, const struct write_sums *sums,
                               struct problem *problem)
{
    gpufl_status status = GPUFL_OK;
    for (size_t i = 0; i < sums->name_count && !status; i++) {
        const struct kernel_name *name = &sums->names[i];
        char *text = strndup(sums->names_text.data + name->at, name->size);
        if (!text)
            return problem_set(problem, GPUFL_E_NO_MEMORY, "no memory for a kernel's name");
        status = statement_run(connection, problem,
                               "INSERT INTO kernel_name(text) VALUES(?1) ON CONFLICT(text) DO NOTHING", "t", text);
        if (!status)
            status = statement_run(connection, problem,
                                   "INSERT INTO kernel(session, kernel_id, name) VALUES(?1, ?2,"
                                   " (SELECT name FROM kernel_name WHERE text=?3)) ON CONFLICT(session, kernel_id)"
                                   " DO UPDATE SET name=excluded.name",
                                   "iit", session, (int64_t)name->kernel_id, text);
        free(text);
    }
    return status;
}

static void histogram_encode(const uint64_t bins[STORE_HISTOGRAM_BINS], struct bytes *out)
{
    for (unsigned i = 0; i < STORE_HISTOGRAM_BINS; i++)
        varint_append(out, bins[i]);
}

bool histogram_decode(const void *data, size_t size, uint64_t bins[STORE_HISTOGRAM_BINS])
{
    const uint8_t *at = data, *end = at ? at + size : NULL;
    memset(bins, 0, STORE_HISTOGRAM_BINS * sizeof *bins);
    for (unsigned i = 0; i < STORE_HISTOGRAM_BINS && at < end; i++)
        if (!varint_read(&at, end, &bins[i]))
            return false;
    return at == end;
}

static gpufl_status kernel_save(struct connection *connection, int64_t session, const struct kernel_sum *sum,
                                struct problem *problem)
{
    sqlite3_stmt *statement;
    bool has_row = false;
    uint64_t bins[STORE_HISTOGRAM_BINS] = {0};
    struct bytes bytes = {0};
    gpufl_status status = statement_open(connection, &statement, problem,
                                         "SELECT histogram FROM kernel WHERE session=?1 AND kernel_id=?2", "ii",
                                         session, (int64_t)sum->kernel_id);
    if (!status)
        status = statement_next(connection, statement, &has_row, problem);
    if (!status && has_row) {
        if (!histogram_decode(sqlite3_column_blob(statement, 0), (size_t)sqlite3_column_bytes(statement, 0), bins))
            status = problem_set(problem, GPUFL_E_DAMAGED, "the sums of a kernel cannot be read");
        sqlite3_reset(statement);
    }
    for (unsigned i = 0; i < STORE_HISTOGRAM_BINS; i++)
        bins[i] += sum->histogram[i];
    histogram_encode(bins, &bytes);
    if (!status && bytes.failed)
        status = problem_set(problem, GPUFL_E_NO_MEMORY, "no memory for the sums of a kernel");
    if (!status)
        status = statement_run(
            connection, problem,
            "INSERT INTO kernel(session, kernel_id, count, total_ns, min_ns, max_ns, sum_squares, histogram)"
            " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT(session, kernel_id) DO UPDATE SET count=count+?3,"
            " total_ns=MIN(total_ns, 4611686018427387903)+MIN(?4, 4611686018427387903),"
            " min_ns=MIN(IFNULL(min_ns, ?5), ?5), max_ns=MAX(IFNULL(max_ns, ?6), ?6),"
            " sum_squares=sum_squares+?7, histogram=?8",
            "iiiiiidb", session, (int64_t)sum->kernel_id, (int64_t)sum->count, sum->total_ns, sum->min_ns, sum->max_ns,
            sum->sum_squares, bytes.data, bytes.size);
    bytes_free(&bytes);
    return status;
}

/* ---- GPUs and their metrics ---- */

static gpufl_status gpu_make(struct connection *connection, const char *host, const char *uuid, const char *name,
                             int64_t device_id, int64_t now_ns, int64_t *gpu, struct problem *problem)
{
    gpufl_status status = statement_run(
        connection, problem,
        "INSERT INTO gpu(host, uuid, name, device_id, first_seen_ns, last_seen_ns) VALUES(?1, ?2, ?3, ?4, ?5, ?5)"
        " ON CONFLICT(host, uuid) DO UPDATE SET name=CASE ?3 WHEN '' THEN name ELSE ?3 END,"
        " device_id=?4, last_seen_ns=?5",
        "tttii", host, uuid, name, device_id, now_ns);
    return status ? status
                  : statement_integer(connection, gpu, NULL, problem, "SELECT gpu FROM gpu WHERE host=?1 AND uuid=?2",
                                      "tt", host, uuid);
}

static gpufl_status gpus_save(struct connection *connection, int64_t session, const char *host,
                              const struct session_facts *facts, int64_t now_ns, struct problem *problem)
{
    gpufl_status status = GPUFL_OK;
    for (size_t i = 0; i < facts->gpu_count && !status; i++) {
        const struct gpu_fact *fact = &facts->gpus[i];
        int64_t gpu;
        status = gpu_make(connection, host, fact->uuid, fact->name, fact->device_id, now_ns, &gpu, problem);
        if (!status)
            status = statement_run(connection, problem,
                                   "INSERT INTO session_gpu(session, device_id, gpu) VALUES(?1, ?2, ?3)"
                                   " ON CONFLICT(session, device_id) DO UPDATE SET gpu=excluded.gpu",
                                   "iii", session, fact->device_id, gpu);
    }
    return status;
}

/* Finds the GPU of a session's device number, or the host itself. *is_seen: its last_seen_ns is up to date. */
static gpufl_status gpu_find(struct connection *connection, int64_t session, const char *host, int64_t device_id,
                             int64_t now_ns, int64_t *gpu, bool *is_seen, struct problem *problem)
{
    bool is_found = false;
    *is_seen = true;
    if (device_id == CELL_UNKNOWN)
        return gpu_make(connection, host, "", "", CELL_UNKNOWN, now_ns, gpu, problem);
    gpufl_status status =
        statement_integer(connection, gpu, &is_found, problem,
                          "SELECT gpu FROM session_gpu WHERE session=?1 AND device_id=?2", "ii", session, device_id);
    *is_seen = !is_found;
    if (status || is_found)
        return status;
    /* The log did not contain its UUID. */
    char uuid[48];
    snprintf(uuid, sizeof uuid, "device-%lld", (long long)device_id);
    return gpu_make(connection, host, uuid, "", device_id, now_ns, gpu, problem);
}

/* The GPUs of one write: each is looked up only once. */
struct gpu_memo {
    int64_t session, now_ns;
    const char *host;
    struct {
        int64_t device_id, gpu;
        bool is_seen;
    } items[FACT_GPUS_MAX + 1]; /* GPUs and the host */
    unsigned count;
};

static gpufl_status gpu_of(struct connection *connection, struct gpu_memo *memo, int64_t device_id, unsigned *index,
                           struct problem *problem)
{
    unsigned i = 0;
    while (i < memo->count && memo->items[i].device_id != device_id)
        i++;
    *index = i;
    if (i < memo->count)
        return GPUFL_OK;
    if (i == sizeof memo->items / sizeof *memo->items)
        return problem_set(problem, GPUFL_E_LIMIT, "a machine has at most %d GPUs", FACT_GPUS_MAX);
    memo->items[i].device_id = device_id;
    memo->count++;
    return gpu_find(connection, memo->session, memo->host, device_id, memo->now_ns, &memo->items[i].gpu,
                    &memo->items[i].is_seen, problem);
}

/* Adds stored sums; both have the same layout and therefore the same order of columns. */
static gpufl_status stored_cells_add(struct metric_cell *cells, const void *data, size_t size, struct problem *problem)
{
    int order[ROW_COLUMNS_MAX];
    for (int i = 0; i < ROW_COLUMNS_MAX; i++)
        order[i] = i;
    gpufl_status status = metric_cells_add(cells, data, size, order, ROW_COLUMNS_MAX);
    return status ? problem_set(problem, status, "the sums of a metric cannot be read") : status;
}

/* Adds to a past minute. Sums with another layout (from an older gpufl) stay separate rows: readers add them up. */
static gpufl_status past_add(struct connection *connection, int64_t gpu, int64_t minute, int64_t layout,
                             const struct metric_cell *added, struct problem *problem)
{
    struct metric_cell cells[ROW_COLUMNS_MAX];
    struct bytes bytes = {0};
    sqlite3_stmt *statement;
    bool has_row = false;
    memcpy(cells, added, sizeof cells);
    gpufl_status status =
        statement_open(connection, &statement, problem,
                       "SELECT data FROM metric WHERE gpu=?1 AND minute=?2 AND layout=?3", "iii", gpu, minute, layout);
    if (!status)
        status = statement_next(connection, statement, &has_row, problem);
    if (!status && has_row) {
        status = stored_cells_add(cells, sqlite3_column_blob(statement, 0), (size_t)sqlite3_column_bytes(statement, 0),
                                  problem);
        sqlite3_reset(statement);
    }
    metric_cells_encode(cells, ROW_COLUMNS_MAX, &bytes);
    if (!status)
        status = bytes.failed ? GPUFL_E_NO_MEMORY
                              : statement_run(connection, problem,
                                              "INSERT OR REPLACE INTO metric(gpu, minute, layout, data)"
                                              " VALUES(?1, ?2, ?3, ?4)",
                                              "iiib", gpu, minute, layout, bytes.data, bytes.size);
    bytes_free(&bytes);
    return status;
}

/* The stored row of the GPU's latest minute; minute is CELL_UNKNOWN when there is none. */
struct latest_minute {
    int64_t minute, layout;
    struct metric_cell cells[ROW_COLUMNS_MAX];
};

static gpufl_status latest_read(struct connection *connection, int64_t gpu, struct latest_minute *latest,
                                struct problem *problem)
{
    sqlite3_stmt *statement;
    bool has_row = false;
    *latest = (struct latest_minute){.minute = CELL_UNKNOWN};
    gpufl_status status = statement_open(connection, &statement, problem,
                                         "SELECT minute, layout, data FROM metric_now WHERE gpu=?", "i", gpu);
    if (!status)
        status = statement_next(connection, statement, &has_row, problem);
    if (status || !has_row)
        return status;
    latest->minute = sqlite3_column_int64(statement, 0);
    latest->layout = sqlite3_column_int64(statement, 1);
    status = stored_cells_add(latest->cells, sqlite3_column_blob(statement, 2),
                              (size_t)sqlite3_column_bytes(statement, 2), problem);
    sqlite3_reset(statement);
    return status;
}

static gpufl_status metric_save(struct sqlite_store *store, struct connection *connection, int64_t gpu,
                                const struct metric_sum *sum, struct problem *problem)
{
    struct latest_minute latest;
    struct bytes bytes = {0};
    int64_t layout, type;
    gpufl_status status = layout_make(store, connection, sum->type, UINT64_MAX, &layout, &type, problem);
    if (!status)
        status = latest_read(connection, gpu, &latest, problem);
    if (status)
        return status;
    if (latest.minute > sum->minute)
        return past_add(connection, gpu, sum->minute, layout, sum->cells, problem);
    if (latest.minute != sum->minute || latest.layout != layout) {
        if (latest.minute != CELL_UNKNOWN)
            status = past_add(connection, gpu, latest.minute, latest.layout, latest.cells, problem);
        memset(latest.cells, 0, sizeof latest.cells);
    }
    for (unsigned i = 0; i < ROW_COLUMNS_MAX; i++)
        metric_cell_add(&latest.cells[i], &sum->cells[i]);
    metric_cells_encode(latest.cells, ROW_COLUMNS_MAX, &bytes);
    if (!status)
        status = bytes.failed ? GPUFL_E_NO_MEMORY
                              : statement_run(connection, problem,
                                              "INSERT OR REPLACE INTO metric_now(gpu, minute, layout, data)"
                                              " VALUES(?1, ?2, ?3, ?4)",
                                              "iiib", gpu, sum->minute, layout, bytes.data, bytes.size);
    bytes_free(&bytes);
    return status;
}

static gpufl_status sample_save(struct sqlite_store *store, struct connection *connection, int64_t gpu,
                                const struct metric_sample *sample, const char *session_id, int64_t now_ns,
                                struct problem *problem)
{
    int64_t layout, type;
    size_t size = record_catalogue[sample->type].column_count * sizeof *sample->cells;
    gpufl_status status = layout_make(store, connection, sample->type, UINT64_MAX, &layout, &type, problem);
    return status ? status
                  : statement_run(connection, problem,
                                  "UPDATE gpu SET last_seen_ns=?6, sample_ns=MAX(IFNULL(sample_ns, ?2), ?2),"
                                  " layout=CASE WHEN sample_ns>?2 THEN layout ELSE ?3 END,"
                                  " sample=CASE WHEN sample_ns>?2 THEN sample ELSE ?4 END,"
                                  " session_id=CASE WHEN sample_ns>?2 THEN session_id ELSE ?5 END WHERE gpu=?1",
                                  "iiibti", gpu, sample->cells[0], layout, sample->cells, size, session_id, now_ns);
}

static gpufl_status metrics_save(struct sqlite_store *store, struct connection *connection, struct gpu_memo *memo,
                                 const char *session_id, const struct write_sums *sums, struct problem *problem)
{
    gpufl_status status = GPUFL_OK;
    unsigned at;
    for (size_t i = 0; i < sums->metric_count && !status; i++) {
        status = gpu_of(connection, memo, sums->metrics[i].device_id, &at, problem);
        if (!status)
            status = metric_save(store, connection, memo->items[at].gpu, &sums->metrics[i], problem);
    }
    for (size_t i = 0; i < sums->sample_count && !status; i++) {
        status = gpu_of(connection, memo, sums->samples[i].device_id, &at, problem);
        if (!status)
            status = sample_save(store, connection, memo->items[at].gpu, &sums->samples[i], session_id, memo->now_ns,
                                 problem);
        memo->items[at].is_seen = true;
    }
    for (unsigned i = 0; i < memo->count && !status; i++)
        if (!memo->items[i].is_seen)
            status = statement_run(connection, problem, "UPDATE gpu SET last_seen_ns=?2 WHERE gpu=?1", "ii",
                                   memo->items[i].gpu, memo->now_ns);
    return status;
}

gpufl_status sqlite_write_sums(struct sqlite_store *store, struct connection *connection, int64_t session,
                               const struct write_unit *unit, int64_t now_ns, struct problem *problem)
{
    const struct write_sums *sums = &unit->sums;
    char host[FACT_TEXT_MAX] = "";
    sqlite3_stmt *statement;
    bool has_row = false;
    gpufl_status status = session_save(connection, session, &sums->facts, problem);
    if (!status)
        status = losses_save(connection, session, &sums->facts, problem);
    if (!status)
        status =
            statement_open(connection, &statement, problem, "SELECT host FROM session WHERE session=?", "i", session);
    if (!status)
        status = statement_next(connection, statement, &has_row, problem);
    if (!status && has_row) {
        snprintf(host, sizeof host, "%s", row_text(statement, 0));
        sqlite3_reset(statement);
    }
    if (!status)
        status = gpus_save(connection, session, host, &sums->facts, now_ns, problem);
    if (!status)
        status = names_save(connection, session, sums, problem);
    for (size_t i = 0; i < sums->kernel_count && !status; i++)
        status = kernel_save(connection, session, &sums->kernels[i], problem);
    struct gpu_memo memo = {.session = session, .now_ns = now_ns, .host = host, .count = 0};
    if (!status && sums->metric_count + sums->sample_count)
        status = metrics_save(store, connection, &memo, unit->session_id, sums, problem);
    return status;
}
