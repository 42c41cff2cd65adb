/* SPDX-License-Identifier: Apache-2.0 */
/* The catalog of sessions, hosts and GPUs. */
#include "store/sqlite_store.h"

#include "base/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { TAGS_MAX = 32, PAGE_DEFAULT = 100 };

#define SESSION_COLUMNS                                                                                      \
    "SELECT session, session_id, app, host, kind, engine, state, start_ns, end_ns, received_ns, created_ns," \
    " kernels, kernel_ns, rows, lines, lost, has_unknown_loss, bytes, retention_ns, revision, rows_told"
enum { SORT_VALUE_COLUMN = 21 };

#define SESSION_PAGE(column, direction, beyond)                                                               \
    SESSION_COLUMNS ", IFNULL(" column ", 0) FROM session WHERE (?1 IS NULL OR app=?1) AND"                   \
                    " (?2 IS NULL OR host=?2) AND (?3 IS NULL OR session IN (SELECT session FROM session_gpu" \
                    " JOIN gpu USING(gpu) WHERE uuid=?3)) AND (?4 IS NULL OR engine=?4) AND"                  \
                    " (?5 IS NULL OR kind=?5) AND (?6 IS NULL OR session IN (SELECT session FROM tag WHERE"   \
                    " tag=?6)) AND (?7 IS NULL OR INSTR(LOWER(app || char(10) || host || char(10) ||"         \
                    " session_id), LOWER(?7)) > 0 OR EXISTS(SELECT 1 FROM tag WHERE tag.session="             \
                    "session.session AND INSTR(LOWER(tag), LOWER(?7)) > 0)) AND (?8 IS NULL OR end_ns>=?8)"   \
                    " AND (?9 IS NULL OR start_ns<?9) AND (?10 IS NULL OR state=?10) AND"                     \
                    " (?11 IS NULL OR (IFNULL(" column ", 0), session) " beyond " (?11, ?12))"                \
                    " ORDER BY IFNULL(" column ", 0) " direction ", session " direction " LIMIT ?13"
#define SESSION_PAGES(column)                                               \
    {                                                                       \
        SESSION_PAGE(column, "DESC", "<"), SESSION_PAGE(column, "ASC", ">") \
    }

static const char *const session_pages[STORE_SORT_COUNT][2] = {
    [STORE_SORT_START] = SESSION_PAGES("start_ns"),  [STORE_SORT_RECEIVED] = SESSION_PAGES("received_ns"),
    [STORE_SORT_KERNELS] = SESSION_PAGES("kernels"), [STORE_SORT_KERNEL_TIME] = SESSION_PAGES("kernel_ns"),
    [STORE_SORT_BYTES] = SESSION_PAGES("bytes"),     [STORE_SORT_LOST] = SESSION_PAGES("lost"),
};

/* Copies of strings for a callback that are not columns of the current row; freed together. */
struct copies {
    char *texts[TAGS_MAX + 2 * FACT_GPUS_MAX];
    size_t count;
    bool has_failed; /* out of memory: a copy is missing */
};

static const char *copy_keep(struct copies *copies, const char *text)
{
    if (copies->count == sizeof copies->texts / sizeof *copies->texts)
        return "";
    char *copy = strdup(text);
    copies->has_failed |= !copy;
    if (!copy)
        return "";
    copies->texts[copies->count++] = copy;
    return copy;
}

static void copies_free(struct copies *copies)
{
    while (copies->count)
        free(copies->texts[--copies->count]);
}

struct session_row {
    struct store_session session;
    const char *tags[TAGS_MAX];
    struct store_gpu_ref gpus[FACT_GPUS_MAX];
    struct copies copies;
};

static gpufl_status belongings_read(struct connection *reader, int64_t session, struct session_row *row,
                                    struct problem *problem)
{
    sqlite3_stmt *statement;
    bool has_row = true;
    gpufl_status status =
        statement_open(reader, &statement, problem, "SELECT tag FROM tag WHERE session=? ORDER BY tag", "i", session);
    while (!status && !(status = statement_next(reader, statement, &has_row, problem)) && has_row)
        if (row->session.tag_count < TAGS_MAX)
            row->tags[row->session.tag_count++] = copy_keep(&row->copies, row_text(statement, 0));
    if (!status)
        status = statement_open(reader, &statement, problem,
                                "SELECT uuid, name, session_gpu.device_id FROM session_gpu JOIN gpu USING(gpu) WHERE"
                                " session=? ORDER BY session_gpu.device_id",
                                "i", session);
    has_row = true;
    while (!status && !(status = statement_next(reader, statement, &has_row, problem)) && has_row)
        if (row->session.gpu_count < FACT_GPUS_MAX)
            row->gpus[row->session.gpu_count++] =
                (struct store_gpu_ref){.uuid = copy_keep(&row->copies, row_text(statement, 0)),
                                       .name = copy_keep(&row->copies, row_text(statement, 1)),
                                       .device_id = sqlite3_column_int64(statement, 2)};
    row->session.tags = row->tags;
    row->session.gpus = row->gpus;
    if (!status && row->copies.has_failed)
        status = problem_set(problem, GPUFL_E_NO_MEMORY, "no memory for the tags and GPUs of a session");
    return status;
}

static gpufl_status session_deliver(struct connection *reader, sqlite3_stmt *statement, store_session_fn on_session,
                                    void *user, bool *goes_on, struct problem *problem)
{
    struct session_row *row = calloc(1, sizeof *row);
    if (!row)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "no memory for a session");
    row->session = (struct store_session){.session_id = row_text(statement, 1),
                                          .app = row_text(statement, 2),
                                          .host = row_text(statement, 3),
                                          .kind = row_text(statement, 4),
                                          .engine = row_text(statement, 5),
                                          .state = (enum store_session_state)sqlite3_column_int(statement, 6),
                                          .start_ns = row_integer(statement, 7),
                                          .end_ns = row_integer(statement, 8),
                                          .received_ns = row_integer(statement, 9),
                                          .created_ns = row_integer(statement, 10),
                                          .kernels = sqlite3_column_int64(statement, 11),
                                          .kernel_ns = sqlite3_column_int64(statement, 12),
                                          .rows = sqlite3_column_int64(statement, 13),
                                          .lines = sqlite3_column_int64(statement, 14),
                                          .lost = sqlite3_column_int64(statement, 15),
                                          .has_unknown_loss = sqlite3_column_int(statement, 16) != 0,
                                          .bytes = sqlite3_column_int64(statement, 17),
                                          .retention_ns = row_integer(statement, 18),
                                          .revision = sqlite3_column_int64(statement, 19),
                                          .expected_rows = row_integer(statement, 20)};
    gpufl_status status = belongings_read(reader, sqlite3_column_int64(statement, 0), row, problem);
    if (!status)
        *goes_on = on_session(user, &row->session);
    copies_free(&row->copies);
    free(row);
    return status;
}

/* Parses "sort.value.session". */
static bool cursor_read(const struct store_session_filter *filter, int64_t *value, int64_t *session)
{
    int sort, end = 0;
    *value = *session = CELL_UNKNOWN;
    if (!filter->cursor || !*filter->cursor)
        return true;
    return strlen(filter->cursor) < STORE_CURSOR_MAX &&
           sscanf(filter->cursor, "%d.%" SCNd64 ".%" SCNd64 "%n", &sort, value, session, &end) == 3 &&
           !filter->cursor[end] && sort == (int)filter->sort * 2 + filter->is_ascending && *value != CELL_UNKNOWN;
}

static const char *or_null(const char *text)
{
    return text && *text ? text : NULL;
}

gpufl_status sqlite_sessions(struct store *base, const struct store_session_filter *filter, store_session_fn on_session,
                             void *user, char next[STORE_CURSOR_MAX], struct problem *problem)
{
    struct sqlite_store *store = sqlite_store_of(base);
    struct connection *reader;
    sqlite3_stmt *statement;
    int64_t value, session;
    bool has_time = filter->from_ns || filter->to_ns, has_row = true, goes_on = true;
    unsigned limit = filter->limit ? filter->limit : PAGE_DEFAULT, count = 0;
    next[0] = '\0';
    if (!cursor_read(filter, &value, &session))
        return problem_set(problem, GPUFL_E_INVALID, "this cursor does not belong to this list");
    gpufl_status status = reader_begin(store, &reader, problem);
    if (status)
        return status;
    /* One row more than requested shows whether there is a next page. */
    status =
        statement_open(reader, &statement, problem, session_pages[filter->sort][filter->is_ascending], "tttttttiiiiii",
                       or_null(filter->app), or_null(filter->host), or_null(filter->gpu_uuid), or_null(filter->engine),
                       or_null(filter->kind), or_null(filter->tag), or_null(filter->text),
                       has_time ? filter->from_ns : CELL_UNKNOWN, has_time ? filter->to_ns : CELL_UNKNOWN,
                       filter->state < 0 ? CELL_UNKNOWN : (int64_t)filter->state, value, session, (int64_t)limit + 1);
    while (!status && goes_on && !(status = statement_next(reader, statement, &has_row, problem)) && has_row) {
        if (count++ == limit) {
            snprintf(next, STORE_CURSOR_MAX, "%d.%" PRId64 ".%" PRId64, (int)filter->sort * 2 + filter->is_ascending,
                     value, session);
            break;
        }
        session = sqlite3_column_int64(statement, 0);
        value = sqlite3_column_int64(statement, SORT_VALUE_COLUMN);
        status = session_deliver(reader, statement, on_session, user, &goes_on, problem);
    }
    reader_end(store, reader);
    return status;
}

gpufl_status sqlite_session(struct store *base, const char *session_id, store_session_fn on_session, void *user,
                            struct problem *problem)
{
    struct sqlite_store *store = sqlite_store_of(base);
    struct connection *reader;
    sqlite3_stmt *statement;
    bool has_row = false, goes_on;
    gpufl_status status = reader_begin(store, &reader, problem);
    if (status)
        return status;
    status = statement_open(reader, &statement, problem, SESSION_COLUMNS " FROM session WHERE session_id=?", "t",
                            session_id);
    if (!status)
        status = statement_next(reader, statement, &has_row, problem);
    if (!status)
        status = has_row ? session_deliver(reader, statement, on_session, user, &goes_on, problem)
                         : problem_set(problem, GPUFL_E_NOT_FOUND, "no session %s", session_id);
    reader_end(store, reader);
    return status;
}

/* ---- changes ---- */

gpufl_status session_drop(struct connection *connection, int64_t session, struct problem *problem)
{
    static const char *const statements[] = {
        ("DELETE FROM tile WHERE tile IN (SELECT tile.tile FROM segment JOIN tile ON tile.tile BETWEEN"
         " segment.segment * 64 AND segment.segment * 64 + 63 WHERE session=?)"),
        "DELETE FROM segment WHERE session=?",
        "DELETE FROM received WHERE session=?",
        "DELETE FROM delivery WHERE session=?",
        "DELETE FROM loss WHERE session=?",
        "DELETE FROM kernel WHERE session=?",
        "DELETE FROM scope WHERE session=?",
        "DELETE FROM session_gpu WHERE session=?",
        "DELETE FROM tag WHERE session=?",
        "DELETE FROM session WHERE session=?",
    };
    gpufl_status status = GPUFL_OK;
    for (size_t i = 0; i < sizeof statements / sizeof *statements && !status; i++)
        status = statement_run(connection, problem, statements[i], "i", session);
    return status;
}
_Static_assert(TILE_SHIFTS == 64, "as in session_drop");

struct session_change {
    const char *session_id;
    const char *const *tags;
    size_t tag_count;
    int64_t retention_ns;
};

static gpufl_status delete_apply(struct sqlite_store *store, struct connection *connection, void *arg,
                                 struct problem *problem)
{
    const struct session_change *change = arg;
    int64_t session;
    (void)store;
    gpufl_status status = session_find(connection, change->session_id, &session, problem);
    return status ? status : session_drop(connection, session, problem);
}

gpufl_status sqlite_session_delete(struct store *base, const char *session_id, struct problem *problem)
{
    struct session_change change = {.session_id = session_id};
    gpufl_status status = store_change_reserved(sqlite_store_of(base), delete_apply, &change, problem);
    background_wake(sqlite_store_of(base));
    return status;
}

static gpufl_status tag_apply(struct sqlite_store *store, struct connection *connection, void *arg,
                              struct problem *problem)
{
    const struct session_change *change = arg;
    int64_t session;
    (void)store;
    gpufl_status status = session_find(connection, change->session_id, &session, problem);
    if (!status)
        status = statement_run(connection, problem, "DELETE FROM tag WHERE session=?", "i", session);
    for (size_t i = 0; i < change->tag_count && !status; i++)
        status = statement_run(connection, problem, "INSERT OR IGNORE INTO tag(session, tag) VALUES(?1, ?2)", "it",
                               session, change->tags[i]);
    return status;
}

gpufl_status sqlite_session_tag(struct store *base, const char *session_id, const char *const *tags, size_t tag_count,
                                struct problem *problem)
{
    struct session_change change = {.session_id = session_id, .tags = tags, .tag_count = tag_count};
    return store_change(sqlite_store_of(base), tag_apply, &change, 0, problem);
}

static gpufl_status keep_apply(struct sqlite_store *store, struct connection *connection, void *arg,
                               struct problem *problem)
{
    const struct session_change *change = arg;
    int64_t session;
    (void)store;
    gpufl_status status = session_find(connection, change->session_id, &session, problem);
    return status ? status
                  : statement_run(connection, problem, "UPDATE session SET retention_ns=?2 WHERE session=?1", "ii",
                                  session, change->retention_ns);
}

gpufl_status sqlite_session_keep(struct store *base, const char *session_id, int64_t retention_ns,
                                 struct problem *problem)
{
    struct session_change change = {.session_id = session_id, .retention_ns = retention_ns};
    return store_change(sqlite_store_of(base), keep_apply, &change, 0, problem);
}

static gpufl_status end_apply(struct sqlite_store *store, struct connection *connection, void *arg,
                              struct problem *problem)
{
    const struct session_change *change = arg;
    int64_t session;
    (void)store;
    gpufl_status status = session_find(connection, change->session_id, &session, problem);
    return status ? status
                  : statement_run(connection, problem,
                                  "UPDATE session SET state=MAX(state, ?2), received_ns=?3, revision=revision+1"
                                  " WHERE session=?1",
                                  "iii", session, (int64_t)STORE_SESSION_COMPLETE, clock_wall_ns());
}

gpufl_status sqlite_session_end(struct store *base, const char *session_id, struct problem *problem)
{
    struct session_change change = {.session_id = session_id};
    return store_change(sqlite_store_of(base), end_apply, &change, 0, problem);
}

/* ---- GPUs ---- */

static gpufl_status gpu_deliver(struct sqlite_store *store, struct connection *reader, sqlite3_stmt *statement,
                                store_gpu_fn on_gpu, void *user, bool *goes_on, struct problem *problem)
{
    int64_t sample[ROW_COLUMNS_MAX];
    struct store_gpu gpu = {.host = row_text(statement, 0),
                            .uuid = row_text(statement, 1),
                            .name = row_text(statement, 2),
                            .device_id = row_integer(statement, 3),
                            .first_seen_ns = row_integer(statement, 4),
                            .last_seen_ns = row_integer(statement, 5),
                            .sample_ns = row_integer(statement, 6),
                            .session_id = row_text(statement, 9)};
    for (unsigned i = 0; i < ROW_COLUMNS_MAX; i++)
        sample[i] = CELL_UNKNOWN;
    gpu.type = &record_catalogue[*gpu.uuid ? RECORD_DEVICE_METRIC_BATCH : RECORD_HOST_METRIC_BATCH];
    gpu.sample = sample;
    if (gpu.sample_ns != CELL_UNKNOWN) {
        const struct layout *layout;
        gpufl_status status = layout_get(store, reader, sqlite3_column_int64(statement, 7), &layout, problem);
        const char *cells = sqlite3_column_blob(statement, 8);
        size_t size = (size_t)sqlite3_column_bytes(statement, 8);
        if (status)
            return status;
        gpu.type = &record_catalogue[layout->type];
        for (unsigned i = 0; i < layout->count && (i + 1) * sizeof *sample <= size; i++)
            if (layout->order[i] >= 0)
                memcpy(&sample[layout->order[i]], cells + i * sizeof *sample, sizeof *sample);
    }
    *goes_on = on_gpu(user, &gpu);
    return GPUFL_OK;
}

gpufl_status sqlite_gpus(struct store *base, const char *host, store_gpu_fn on_gpu, void *user, struct problem *problem)
{
    struct sqlite_store *store = sqlite_store_of(base);
    struct connection *reader;
    sqlite3_stmt *statement;
    bool has_row = true, goes_on = true;
    gpufl_status status = reader_begin(store, &reader, problem);
    if (status)
        return status;
    status = statement_open(reader, &statement, problem,
                            "SELECT host, uuid, name, device_id, first_seen_ns, last_seen_ns, sample_ns, layout,"
                            " sample, session_id FROM gpu WHERE ?1 IS NULL OR host=?1 ORDER BY host, device_id, uuid",
                            "t", host);
    while (!status && goes_on && !(status = statement_next(reader, statement, &has_row, problem)) && has_row)
        status = gpu_deliver(store, reader, statement, on_gpu, user, &goes_on, problem);
    reader_end(store, reader);
    return status;
}
