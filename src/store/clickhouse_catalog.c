/* SPDX-License-Identifier: Apache-2.0 */
/* The catalog of sessions, hosts and GPUs, computed from the rows of writes and changes. The rules are those of the
 * SQLite engine, which applies the same writes one after the other. */
#include "store/clickhouse_store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { TAGS_MAX = 32, PAGE_DEFAULT = 100 };

#define UNKNOWN_NS "toInt64(-9223372036854775808)"
#define NEVER_NS "toInt64(9223372036854775807)"

/* Sums of untrusted numbers saturate instead of turning negative.
 *
 * Per session and generation. `started` is when the last job_start arrived. It decides when the session began; only a
 * later write can make the start earlier. */
static const char writes_head[] =
    "SELECT session_id, generation, argMaxIf(w_app, w_ns, w_app != '') AS app,"
    " argMaxIf(w_host, w_ns, w_host != '') AS host, argMaxIf(w_kind, w_ns, w_kind != '') AS kind,"
    " argMaxIf(w_engine, w_ns, w_engine != '') AS engine, max(w_state) AS written_state,"
    " min(if(w_ns >= started AND w_start != toInt64(-9223372036854775808), w_start, toInt64(9223372036854775807)))"
    " AS first_ns, max(w_end) AS end_ns, max(w_ns) AS written_ns, min(w_ns) AS created_ns, sum(w_kernels) AS kernels,"
    " if(sum(toFloat64(w_kernel_ns)) > 9e18, toInt64(9223372036854775806), sum(w_kernel_ns)) AS kernel_ns,"
    " sum(w_rows) AS rows, max(w_expected_rows) AS expected_rows, sum(w_lines) AS lines, sum(w_bytes) AS bytes, countIf(w_lines > 0) AS write_count"
    " FROM (SELECT session_id, generation, received_ns AS w_ns, app AS w_app, host AS w_host, kind AS w_kind,"
    " engine AS w_engine, session_state AS w_state, start_ns AS w_start, end_ns AS w_end, kernels AS w_kernels,"
    " kernel_ns AS w_kernel_ns, rows AS w_rows, rows_told AS w_expected_rows, lines AS w_lines, bytes AS w_bytes, started FROM write ANY LEFT JOIN"
    " (SELECT session_id, generation, maxIf(received_ns, has_start = 1) AS started FROM write WHERE state = 1";
static const char writes_middle[] =
    " GROUP BY session_id, generation) AS starts USING (session_id, generation) WHERE state = 1";
static const char writes_end[] = ") AS parts GROUP BY session_id, generation";

/* The totals of the shutdown record replace loss records that were themselves lost. */
static const char losses_head[] =
    "SELECT session_id, generation, toInt64(least(sum(toFloat64(most)), 9e18)) AS lost, max(has_unknown) AS is_unknown"
    " FROM (SELECT session_id, generation, reason, max(total) AS most, max(unknown_part) AS has_unknown"
    " FROM (SELECT session_id, generation, reason, if(is_total, max(part), if(sum(toFloat64(part)) > 9e18,"
    " toInt64(9223372036854775806), sum(part))) AS total, max(unknown) AS unknown_part"
    " FROM (SELECT session_id, generation, reason, is_total, part, unknown FROM write ARRAY JOIN loss_reason AS reason,"
    " loss_is_total AS is_total, loss_count AS part, loss_is_unknown AS unknown WHERE state = 1";
static const char losses_end[] =
    ") AS reported GROUP BY session_id, generation, reason, is_total) AS totals GROUP BY session_id, generation, reason)"
    " AS reasons GROUP BY session_id, generation";

/* A deletion (what = 4) has no tags and no retention and is not an end. Being later, it overrides earlier changes. */
static const char changes_head[] =
    "SELECT session_id, max(generation) AS current, argMaxIf(tags, at_ns, what IN (1, 4)) AS tags,"
    " argMaxIf(retention_ns, at_ns, what IN (2, 4)) AS kept_ns, countIf(what IN (2, 4)) > 0 AS has_kept,"
    " argMaxIf(what, at_ns, what IN (3, 4)) = 3 AS has_ended, maxIf(at_ns, what = 3) AS ended_ns,"
    " countIf(what = 3) AS end_count FROM change WHERE 1";

void ch_session_table(struct bytes *sql, const char *where)
{
    static const char head[] =
        "(SELECT session_id, generation, app, host, kind, engine,"
        " if(has_ended AND written_state = 0, toUInt8(1), written_state) AS state,"
        " if(first_ns = " NEVER_NS ", " UNKNOWN_NS ", first_ns) AS start_ns, end_ns,"
        " if(has_ended AND ended_ns > written_ns, ended_ns, written_ns) AS received_ns, created_ns, kernels, kernel_ns,"
        " rows, expected_rows, lines, lost, is_unknown, bytes, if(has_kept, kept_ns, " UNKNOWN_NS ") AS retention_ns,"
        " toInt64(write_count + end_count) AS revision, tags FROM (SELECT * FROM (";
    const char *const parts[] = {head,
                                 writes_head,
                                 where,
                                 writes_middle,
                                 where,
                                 writes_end,
                                 ") AS writes ANY LEFT JOIN (",
                                 losses_head,
                                 where,
                                 losses_end,
                                 ") AS losses USING (session_id, generation)) AS both ANY LEFT JOIN (",
                                 changes_head,
                                 where,
                                 " GROUP BY session_id) AS changes USING (session_id)",
                                 " WHERE generation = current) AS sessions"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        bytes_append_text(sql, parts[i]);
}

#define SESSION_COLUMNS                                                                             \
    "SELECT session_id, generation, app, host, kind, engine, state, start_ns, end_ns, received_ns," \
    " created_ns, kernels, kernel_ns, rows, expected_rows, lines, lost, is_unknown, bytes, retention_ns, revision, tags"

struct session_row {
    struct store_session session;
    uint32_t generation;
    int64_t sort_value;
    const char *tags[TAGS_MAX];
    struct store_gpu_ref gpus[FACT_GPUS_MAX];
};

static void session_take(struct ch_rows *rows, struct session_row *row)
{
    struct store_session *session = &row->session;
    *row = (struct session_row){0};
    session->session_id = ch_text(rows, NULL);
    row->generation = ch_u32(rows);
    session->app = ch_text(rows, NULL);
    session->host = ch_text(rows, NULL);
    session->kind = ch_text(rows, NULL);
    session->engine = ch_text(rows, NULL);
    session->state = (enum store_session_state)ch_u8(rows);
    int64_t *const numbers[] = {&session->start_ns, &session->end_ns,    &session->received_ns, &session->created_ns,
                                &session->kernels,  &session->kernel_ns, &session->rows,        &session->expected_rows,
                                &session->lines,    &session->lost};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        *numbers[i] = ch_i64(rows);
    session->has_unknown_loss = ch_u8(rows) != 0;
    session->bytes = ch_i64(rows);
    session->retention_ns = ch_i64(rows);
    session->revision = ch_i64(rows);
    size_t count = ch_count(rows);
    for (size_t i = 0; i < count; i++) {
        const char *tag = ch_text(rows, NULL);
        if (session->tag_count < TAGS_MAX)
            row->tags[session->tag_count++] = tag;
    }
    session->tags = row->tags;
    session->gpus = row->gpus;
    row->sort_value = ch_i64(rows);
}

/* Reads the GPUs of a page's sessions. */
static gpufl_status gpus_read(struct ch_store *store, struct session_row *page, size_t count, struct ch_rows *rows,
                              struct problem *problem)
{
    struct bytes sql = {0};
    bytes_append_text(&sql, "SELECT session_id, generation, device, argMax(uuid, received_ns), argMaxIf(name,"
                            " received_ns, name != '') FROM (SELECT session_id, generation, received_ns, device, uuid,"
                            " name FROM write ARRAY JOIN gpu_device AS device, gpu_uuid AS uuid, gpu_name AS name WHERE"
                            " state = 1 AND session_id IN (");
    for (size_t i = 0; i < count; i++) {
        bytes_append_text(&sql, i ? "," : "");
        ch_quote_text(&sql, page[i].session.session_id);
    }
    bytes_append_text(&sql, ")) AS gpus GROUP BY session_id, generation, device ORDER BY session_id, device");
    gpufl_status status = count ? ch_select(store->client, &sql, rows, problem) : GPUFL_OK;
    while (!status && ch_rows_next(rows)) {
        const char *session_id = ch_text(rows, NULL);
        uint32_t generation = ch_u32(rows);
        struct store_gpu_ref gpu = {.device_id = ch_i64(rows)};
        gpu.uuid = ch_text(rows, NULL);
        gpu.name = ch_text(rows, NULL);
        for (size_t i = 0; i < count; i++)
            if (page[i].generation == generation && page[i].session.gpu_count < FACT_GPUS_MAX &&
                !strcmp(page[i].session.session_id, session_id))
                page[i].gpus[page[i].session.gpu_count++] = gpu;
    }
    if (!status)
        status = ch_rows_end(rows, problem);
    bytes_free(&sql);
    return status;
}

/* Selects a page; `next` is set when there is one row more than limit. */
struct page_end {
    size_t count;
    bool has_more;
    int64_t sort_value, created_ns; /* of the last row */
};

static gpufl_status page_deliver(struct ch_store *store, struct bytes *sql, unsigned limit, store_session_fn on_session,
                                 void *user, struct page_end *end, struct problem *problem)
{
    struct ch_rows rows = {0}, gpu_rows = {0};
    struct session_row *page = calloc((size_t)limit + 1, sizeof *page);
    size_t count = 0;
    *end = (struct page_end){0};
    if (!page)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "no memory for a page of sessions");
    gpufl_status status = ch_select(store->client, sql, &rows, problem);
    while (!status && ch_rows_next(&rows) && count <= limit)
        session_take(&rows, &page[count++]);
    if (!status)
        status = ch_rows_end(&rows, problem);
    end->has_more = count > limit;
    count = end->has_more ? limit : count;
    if (!status)
        status = gpus_read(store, page, count, &gpu_rows, problem);
    if (!status && count) {
        end->count = count;
        end->sort_value = page[count - 1].sort_value;
        end->created_ns = page[count - 1].session.created_ns;
    }
    for (size_t i = 0; i < count && !status; i++)
        if (!on_session(user, &page[i].session)) {
            end->has_more = false;
            break;
        }
    ch_rows_free(&rows);
    ch_rows_free(&gpu_rows);
    free(page);
    return status;
}

/* Parses "sort.value.created". */
static bool cursor_read(const struct store_session_filter *filter, int64_t *value, int64_t *created_ns, bool *has_one)
{
    int sort, end = 0;
    *has_one = filter->cursor && *filter->cursor;
    if (!*has_one)
        return true;
    return strlen(filter->cursor) < STORE_CURSOR_MAX &&
           sscanf(filter->cursor, "%d.%" SCNd64 ".%" SCNd64 "%n", &sort, value, created_ns, &end) == 3 &&
           !filter->cursor[end] && sort == (int)filter->sort * 2 + filter->is_ascending;
}

static void equals_append(struct bytes *sql, const char *column, const char *value)
{
    if (!value || !*value)
        return;
    bytes_append_format(sql, " AND %s = ", column);
    ch_quote_text(sql, value);
}

static void filter_append(struct bytes *sql, const struct store_session_filter *filter)
{
    equals_append(sql, "app", filter->app);
    equals_append(sql, "host", filter->host);
    equals_append(sql, "engine", filter->engine);
    equals_append(sql, "kind", filter->kind);
    if (filter->gpu_uuid && *filter->gpu_uuid) {
        bytes_append_text(sql, " AND (session_id, generation) IN (SELECT session_id, generation FROM write WHERE"
                               " state = 1 AND has(gpu_uuid, ");
        ch_quote_text(sql, filter->gpu_uuid);
        bytes_append_text(sql, "))");
    }
    if (filter->tag && *filter->tag) {
        bytes_append_text(sql, " AND has(tags, ");
        ch_quote_text(sql, filter->tag);
        bytes_append_char(sql, ')');
    }
    if (filter->text && *filter->text) {
        bytes_append_text(sql, " AND (positionCaseInsensitive(concat(app, '\\n', host, '\\n', session_id), ");
        ch_quote_text(sql, filter->text);
        bytes_append_text(sql, ") > 0 OR arrayExists(tag -> positionCaseInsensitive(tag, ");
        ch_quote_text(sql, filter->text);
        bytes_append_text(sql, ") > 0, tags))");
    }
    if (filter->from_ns || filter->to_ns)
        bytes_append_format(sql, " AND end_ns >= %" PRId64 " AND start_ns != " UNKNOWN_NS " AND start_ns < %" PRId64,
                            filter->from_ns, filter->to_ns);
    if (filter->state >= 0)
        bytes_append_format(sql, " AND state = %d", filter->state);
}

gpufl_status ch_sessions(struct store *base, const struct store_session_filter *filter, store_session_fn on_session,
                         void *user, char next[STORE_CURSOR_MAX], struct problem *problem)
{
    static const char *const sorts[STORE_SORT_COUNT] = {
        [STORE_SORT_START] = "start_ns",        [STORE_SORT_RECEIVED] = "received_ns", [STORE_SORT_KERNELS] = "kernels",
        [STORE_SORT_KERNEL_TIME] = "kernel_ns", [STORE_SORT_BYTES] = "bytes",          [STORE_SORT_LOST] = "lost"};
    struct bytes sql = {0};
    struct page_end end;
    int64_t value = 0, created_ns = 0;
    bool has_cursor;
    unsigned limit = filter->limit ? filter->limit : PAGE_DEFAULT;
    const char *sort = sorts[filter->sort], *direction = filter->is_ascending ? "ASC" : "DESC";
    char beyond = filter->is_ascending ? '>' : '<';
    next[0] = '\0';
    if (!cursor_read(filter, &value, &created_ns, &has_cursor))
        return problem_set(problem, GPUFL_E_INVALID, "this cursor does not belong to this list");
    bytes_append_format(&sql, SESSION_COLUMNS ", if(%s = " UNKNOWN_NS ", toInt64(0), %s) AS sort_value FROM ", sort,
                        sort);
    ch_session_table(&sql, "");
    bytes_append_text(&sql, " WHERE 1");
    filter_append(&sql, filter);
    if (has_cursor)
        bytes_append_format(
            &sql, " AND (sort_value %c %" PRId64 " OR (sort_value = %" PRId64 " AND created_ns %c %" PRId64 "))",
            beyond, value, value, beyond, created_ns);
    /* One row more than requested shows whether there is a next page. */
    bytes_append_format(&sql, " ORDER BY sort_value %s, created_ns %s LIMIT %u", direction, direction, limit + 1);
    gpufl_status status = page_deliver(ch_store_of(base), &sql, limit, on_session, user, &end, problem);
    if (!status && end.has_more)
        snprintf(next, STORE_CURSOR_MAX, "%d.%" PRId64 ".%" PRId64, (int)filter->sort * 2 + filter->is_ascending,
                 end.sort_value, end.created_ns);
    bytes_free(&sql);
    return status;
}

gpufl_status ch_session(struct store *base, const char *session_id, store_session_fn on_session, void *user,
                        struct problem *problem)
{
    struct bytes sql = {0}, where = {0};
    struct page_end end;
    bytes_append_text(&where, " AND session_id = ");
    ch_quote_text(&where, session_id);
    bytes_append_text(&sql, SESSION_COLUMNS ", toInt64(0) FROM ");
    ch_session_table(&sql, bytes_text(&where));
    gpufl_status status = page_deliver(ch_store_of(base), &sql, 1, on_session, user, &end, problem);
    if (!status && !end.count)
        status = problem_set(problem, GPUFL_E_NOT_FOUND, "there is no session %s", session_id);
    bytes_free(&sql);
    bytes_free(&where);
    return status;
}

/* ---- GPUs ---- */

static gpufl_status gpu_deliver(struct ch_store *store, struct ch_rows *rows, store_gpu_fn on_gpu, void *user,
                                bool *goes_on, struct problem *problem)
{
    int64_t sample[ROW_COLUMNS_MAX];
    size_t size;
    struct store_gpu gpu = {.host = ch_text(rows, NULL), .sample = sample};
    gpu.uuid = ch_text(rows, NULL);
    gpu.name = ch_text(rows, NULL);
    gpu.device_id = ch_i64(rows);
    gpu.first_seen_ns = ch_i64(rows);
    gpu.last_seen_ns = ch_i64(rows);
    gpu.sample_ns = ch_u8(rows) ? 0 : CELL_UNKNOWN;
    const char *type = ch_text(rows, NULL), *columns = ch_text(rows, NULL), *cells = ch_text(rows, &size);
    gpu.session_id = ch_text(rows, NULL);
    gpufl_status status = ch_rows_end(rows, problem);
    if (status)
        return status;
    for (unsigned i = 0; i < ROW_COLUMNS_MAX; i++)
        sample[i] = CELL_UNKNOWN;
    gpu.type = &record_catalogue[*gpu.uuid ? RECORD_DEVICE_METRIC_BATCH : RECORD_HOST_METRIC_BATCH];
    if (gpu.sample_ns != CELL_UNKNOWN) {
        const struct layout *layout = ch_layout_get(store, type, columns, problem);
        if (!layout)
            return GPUFL_E_NO_MEMORY;
        gpu.type = &record_catalogue[layout->type];
        for (unsigned i = 0; i < layout->count && (i + 1) * sizeof *sample <= size; i++)
            if (layout->order[i] >= 0)
                memcpy(&sample[layout->order[i]], cells + i * sizeof *sample, sizeof *sample);
        gpu.sample_ns = sample[0];
    }
    *goes_on = on_gpu(user, &gpu);
    return GPUFL_OK;
}

gpufl_status ch_gpus(struct store *base, const char *host, store_gpu_fn on_gpu, void *user, struct problem *problem)
{
    struct bytes sql = {0};
    struct ch_rows rows = {0};
    bool goes_on = true;
    /* The aspect numbers are defined in clickhouse_sums.c. */
    bytes_append_text(&sql,
                      "SELECT host, uuid, argMaxIf(name, version, aspect = 3), argMaxIf(device_id, version, aspect = 2)"
                      " AS device, toInt64(9223372036854775807 - maxIf(version, aspect = 0)), toInt64(maxIf(version,"
                      " aspect = 1)), toUInt8(countIf(aspect = 4) > 0), argMaxIf(type, version, aspect = 4),"
                      " argMaxIf(columns, version, aspect = 4), argMaxIf(sample, version, aspect = 4),"
                      " argMaxIf(session_id, version, aspect = 4) FROM gpu");
    if (host) {
        bytes_append_text(&sql, " WHERE host = ");
        ch_quote_text(&sql, host);
    }
    bytes_append_text(&sql, " GROUP BY host, uuid ORDER BY host, device, uuid");
    gpufl_status status = ch_select(ch_store_of(base)->client, &sql, &rows, problem);
    while (!status && goes_on && ch_rows_next(&rows))
        status = gpu_deliver(ch_store_of(base), &rows, on_gpu, user, &goes_on, problem);
    ch_rows_free(&rows);
    bytes_free(&sql);
    return status;
}
