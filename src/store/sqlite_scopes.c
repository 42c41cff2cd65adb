/* SPDX-License-Identifier: Apache-2.0 */
/* Scope sums: stored for complete sessions, computed on request for others. */
#include "store/scope_sums.h"
#include "store/sqlite_store.h"

#include <stdio.h>

struct scopes_change {
    const char *session_id;
    int64_t revision;
    const struct scope_sums *sums;
};

static gpufl_status scopes_apply(struct sqlite_store *store, struct connection *connection, void *arg,
                                 struct problem *problem)
{
    const struct scopes_change *change = arg;
    int64_t session;
    (void)store;
    gpufl_status status = session_find(connection, change->session_id, &session, problem);
    if (!status)
        status = statement_run(connection, problem, "DELETE FROM scope WHERE session=?", "i", session);
    for (size_t i = 0; i < change->sums->count && !status; i++) {
        const struct store_scope *scope = &change->sums->items[i];
        status = statement_run(connection, problem,
                               "INSERT INTO scope(session, path_id, path, calls, open_calls, wall_ns, kernels,"
                               " kernel_ns) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
                               "iitiiiii", session, (int64_t)scope->path_id, scope->path, (int64_t)scope->calls,
                               (int64_t)scope->open_calls, scope->wall_ns, (int64_t)scope->kernels, scope->kernel_ns);
    }
    return status ? status
                  : statement_run(connection, problem, "UPDATE session SET scope_revision=?2 WHERE session=?1", "ii",
                                  session, change->revision);
}

struct scopes_state {
    int64_t session, revision;
    bool is_current, is_complete;
};

static gpufl_status state_read(struct connection *reader, const char *session_id, struct scopes_state *state,
                               struct problem *problem)
{
    sqlite3_stmt *statement;
    bool has_row = false;
    gpufl_status status = statement_open(reader, &statement, problem,
                                         "SELECT session, revision, scope_revision, state FROM session WHERE"
                                         " session_id=?",
                                         "t", session_id);
    if (!status)
        status = statement_next(reader, statement, &has_row, problem);
    if (!status && !has_row)
        return problem_set(problem, GPUFL_E_NOT_FOUND, "there is no session %s", session_id);
    if (status)
        return status;
    *state = (struct scopes_state){.session = sqlite3_column_int64(statement, 0),
                                   .revision = sqlite3_column_int64(statement, 1)};
    state->is_current = sqlite3_column_int64(statement, 2) == state->revision;
    state->is_complete = sqlite3_column_int(statement, 3) != STORE_SESSION_LIVE;
    sqlite3_reset(statement);
    return GPUFL_OK;
}

static gpufl_status scopes_deliver(struct connection *reader, int64_t session, store_scope_fn on_scope, void *user,
                                   struct problem *problem)
{
    sqlite3_stmt *statement;
    bool has_row = true, goes_on = true;
    gpufl_status status =
        statement_open(reader, &statement, problem,
                       "SELECT path_id, path, calls, open_calls, wall_ns, kernels, kernel_ns FROM scope WHERE"
                       " session=? ORDER BY path_id",
                       "i", session);
    while (!status && goes_on && !(status = statement_next(reader, statement, &has_row, problem)) && has_row) {
        const struct store_scope scope = {.path_id = (uint32_t)sqlite3_column_int64(statement, 0),
                                          .path = row_text(statement, 1),
                                          .calls = (uint64_t)sqlite3_column_int64(statement, 2),
                                          .open_calls = (uint64_t)sqlite3_column_int64(statement, 3),
                                          .wall_ns = sqlite3_column_int64(statement, 4),
                                          .kernels = (uint64_t)sqlite3_column_int64(statement, 5),
                                          .kernel_ns = sqlite3_column_int64(statement, 6)};
        goes_on = on_scope(user, &scope);
    }
    return status;
}

gpufl_status sqlite_scopes(struct store *base, const char *session_id, store_scope_fn on_scope, void *user,
                           struct problem *problem)
{
    struct sqlite_store *store = sqlite_store_of(base);
    struct connection *reader;
    struct scopes_state state = {0};
    struct scope_sums sums = {0};
    gpufl_status status = reader_begin(store, &reader, problem);
    if (status)
        return status;
    status = state_read(reader, session_id, &state, problem);
    if (!status && state.is_current)
        status = scopes_deliver(reader, state.session, on_scope, user, problem);
    reader_end(store, reader);
    if (status || state.is_current)
        return status;
    status = scope_sums_make(base, session_id, &sums, problem);
    if (!status && state.is_complete && !base->is_read_only) {
        /* If storing them fails, they are computed again next time. */
        struct scopes_change change = {.session_id = session_id, .revision = state.revision, .sums = &sums};
        (void)!store_change(store, scopes_apply, &change, 0, NULL);
    }
    for (size_t i = 0; i < sums.count && !status; i++)
        if (!on_scope(user, &sums.items[i]))
            break;
    scope_sums_free(&sums);
    return status;
}

gpufl_status scopes_refresh(struct sqlite_store *store, int64_t *after, bool *is_done, struct problem *problem)
{
    struct connection *reader;
    sqlite3_stmt *statement;
    struct scope_sums sums = {0};
    char session_id[STORE_SESSION_ID_MAX + 1] = "";
    bool has_row = false;
    int64_t revision = 0;
    gpufl_status status = reader_begin(store, &reader, problem);
    if (status)
        return status;
    status = statement_open(reader, &statement, problem,
                            "SELECT session, session_id, revision FROM session WHERE state>0 AND"
                            " scope_revision<>revision AND session>? ORDER BY session LIMIT 1",
                            "i", *after);
    if (!status)
        status = statement_next(reader, statement, &has_row, problem);
    if (!status && has_row) {
        *after = sqlite3_column_int64(statement, 0);
        snprintf(session_id, sizeof session_id, "%s", row_text(statement, 1));
        revision = sqlite3_column_int64(statement, 2);
    }
    reader_end(store, reader);
    *is_done = !has_row;
    if (status || !has_row)
        return status;
    status = scope_sums_make(&store->base, session_id, &sums, problem);
    if (!status) {
        struct scopes_change change = {.session_id = session_id, .revision = revision, .sums = &sums};
        status = store_change(store, scopes_apply, &change, 0, problem);
    }
    scope_sums_free(&sums);
    return status;
}
