/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: the list, one session's summary, tags and retention, deletion. */
#include "server/query_call.h"

#include <stdio.h>

enum { page_default = 100, tags_max = 32, tag_bytes_max = 64 };
#define DAY_NS INT64_C(86400000000000)

static const char *const state_names[] = {"live", "complete", "crashed", NULL};

static void retention_write(struct bytes *out, int64_t retention_ns)
{
    json_key(out, "retention");
    if (retention_ns == CELL_UNKNOWN)
        json_text(out, "default");
    else if (retention_ns == STORE_KEEP_FOREVER)
        json_text(out, "forever");
    else
        json_text(out, "limited");
    member_int(out, "retention_ns", retention_ns == STORE_KEEP_FOREVER ? CELL_UNKNOWN : retention_ns);
}

/* Writes the members of an open object. */
static void session_write(struct bytes *out, const struct store_session *session)
{
    member_text(out, "id", session->session_id);
    member_text(out, "app", session->app);
    member_text(out, "host", session->host);
    member_text(out, "kind", session->kind);
    member_text(out, "engine", session->engine);
    member_text(out, "state", state_names[session->state]);
    member_int(out, "start_ns", session->start_ns);
    member_int(out, "end_ns", session->end_ns);
    bool has_wall =
        session->start_ns != CELL_UNKNOWN && session->end_ns != CELL_UNKNOWN && session->end_ns >= session->start_ns;
    member_int(out, "wall_ns", has_wall ? session->end_ns - session->start_ns : CELL_UNKNOWN);
    member_int(out, "created_ns", session->created_ns);
    member_int(out, "received_ns", session->received_ns);
    member_int(out, "kernels", session->kernels);
    member_int(out, "kernel_ns", session->kernel_ns);
    member_int(out, "rows", session->rows);
    member_int(out, "lines", session->lines);
    member_int(out, "bytes", session->bytes);
    member_int(out, "lost", session->lost);
    int64_t missing = session->expected_rows == CELL_UNKNOWN    ? CELL_UNKNOWN
                      : session->expected_rows <= session->rows ? 0
                                                                : session->expected_rows - session->rows;
    /* Unknown when the program was killed: how much of its end is missing, and how much was lost before. */
    member_bool(out, "lost_is_exact",
                !session->has_unknown_loss && session->state != STORE_SESSION_CRASHED && missing <= 0);
    member_int(out, "missing_rows", missing);
    member_int(out, "revision", session->revision);
    retention_write(out, session->retention_ns);
    list_open(out, "tags");
    for (size_t i = 0; i < session->tag_count; i++) {
        if (i)
            bytes_append_char(out, ',');
        json_text(out, session->tags[i]);
    }
    bytes_append_char(out, ']');
    list_open(out, "gpus");
    for (size_t i = 0; i < session->gpu_count; i++) {
        element(out, '{');
        member_int(out, "device", session->gpus[i].device_id);
        member_text(out, "uuid", session->gpus[i].uuid);
        member_text(out, "name", session->gpus[i].name);
        bytes_append_char(out, '}');
    }
    bytes_append_char(out, ']');
}

static bool take_row(void *user, const struct store_session *session)
{
    struct bytes *out = user;
    element(out, '{');
    session_write(out, session);
    bytes_append_char(out, '}');
    return true;
}

void query_sessions(struct query_call *call)
{
    static const char *const sorts[] = {"start", "received", "kernels", "kernel_time", "bytes", "lost", NULL};
    static const char *const orders[] = {"descending", "ascending", NULL};
    _Static_assert(sizeof sorts / sizeof *sorts == STORE_SORT_COUNT + 1, "a word for every way to sort");
    int64_t limit = page_default;
    int state = -1, sort = STORE_SORT_START, order = 0;
    struct store_session_filter filter = {.app = query_text(call, "app"),
                                          .host = query_text(call, "host"),
                                          .gpu_uuid = query_text(call, "gpu"),
                                          .engine = query_text(call, "engine"),
                                          .kind = query_text(call, "kind"),
                                          .tag = query_text(call, "tag"),
                                          .text = query_text(call, "q"),
                                          .cursor = query_text(call, "cursor")};
    if (query_text(call, "from_ns") || query_text(call, "to_ns")) {
        filter.to_ns = INT64_MAX / 2;
        if (!query_range(call, &filter.from_ns, &filter.to_ns))
            return;
    }
    if (!query_choice(call, "state", state_names, &state) || !query_choice(call, "sort", sorts, &sort) ||
        !query_choice(call, "order", orders, &order) || !query_int(call, "limit", 1, STORE_PAGE_MAX, &limit))
        return;
    filter.state = state;
    filter.sort = (enum store_sort)sort;
    filter.is_ascending = order == 1;
    filter.limit = (unsigned)limit;
    struct problem problem = {""};
    char next[STORE_CURSOR_MAX] = "";
    bytes_append_char(&call->out, '{');
    list_open(&call->out, "sessions");
    gpufl_status status = store_sessions(call->query->store, &filter, take_row, &call->out, next, &problem);
    if (status != GPUFL_OK) {
        query_fail_status(call, status, "session", &problem);
        return;
    }
    bytes_append_char(&call->out, ']');
    member_text(&call->out, "next_cursor", next);
    bytes_append_char(&call->out, '}');
}

/* Writes "session" of an answer, from the catalog. False: already answered with an error. */
static bool catalog_write(struct query_call *call)
{
    struct problem problem = {""};
    struct bytes row = {0};
    gpufl_status status =
        store_session(call->query->store, http_exchange_path_value(call->exchange, "id"), take_row, &row, &problem);
    if (status == GPUFL_OK) {
        json_key(&call->out, "catalog");
        bytes_append(&call->out, row.data, row.size);
        call->out.failed |= row.failed;
    } else {
        query_fail_status(call, status, "session", &problem);
    }
    bytes_free(&row);
    return status == GPUFL_OK;
}

void query_session_get(struct query_call *call)
{
    bool is_too_large;
    const struct query_session *session = query_whole(call, &is_too_large);
    if (is_too_large)
        session = query_hold(call, http_exchange_path_value(call->exchange, "id"), true);
    if (!session)
        return;
    bytes_append_char(&call->out, '{');
    if (!catalog_write(call))
        return;
    member_bool(&call->out, "is_partial", session->is_light);
    json_session(&session->analysis, &call->out);
    json_completeness(&session->analysis, session->kernels, &call->out);
    json_capabilities(session->model, &call->out);
    if (session->is_light) {
        json_key(&call->out, "time");
        json_text(&call->out, NULL);
    } else {
        json_time(&session->analysis, &call->out);
    }
    bytes_append_char(&call->out, '}');
}

/* Applies the tags of a change; false: already answered. */
static bool tags_apply(struct query_call *call, const char *id, const struct json_value *tags)
{
    const char *list[tags_max];
    size_t count = 0;
    struct problem problem = {""};
    if (tags->kind != JSON_ARRAY || tags->count > tags_max)
        return query_fail(call, 400, "body_invalid", "tags must be a list of at most %d strings", tags_max);
    for (const struct json_value *tag = tags->child; tag; tag = tag->next) {
        if (tag->kind != JSON_STRING || !tag->text_size || tag->text_size > tag_bytes_max ||
            strlen(tag->text) != tag->text_size)
            return query_fail(call, 400, "body_invalid", "a tag must be a string of 1 to %d bytes", tag_bytes_max);
        list[count++] = tag->text;
    }
    gpufl_status status = store_session_tag(call->query->store, id, list, count, &problem);
    if (status != GPUFL_OK)
        return query_fail_status(call, status, "session", &problem);
    query_audit(call, "session.tag", id, "");
    return true;
}

/* retention_days: a number, "forever", or null for the server's setting. */
static bool retention_apply(struct query_call *call, const char *id, const struct json_value *days)
{
    int64_t retention_ns = CELL_UNKNOWN;
    struct problem problem = {""};
    if (days->kind == JSON_STRING && !strcmp(days->text, "forever"))
        retention_ns = STORE_KEEP_FOREVER;
    else if (days->kind == JSON_INT && days->integer >= 0 && days->integer <= 36500 && !days->is_unsigned)
        retention_ns = days->integer * DAY_NS;
    else if (days->kind != JSON_NULL)
        return query_fail(call, 400, "body_invalid",
                          "retention_days must be a whole number up to 36500, \"forever\" or null");
    gpufl_status status = store_session_keep(call->query->store, id, retention_ns, &problem);
    if (status != GPUFL_OK)
        return query_fail_status(call, status, "session", &problem);
    query_audit(call, "session.keep", id, days->kind == JSON_NULL ? "default" : "");
    return true;
}

static bool change_apply(struct query_call *call, const char *id, const struct json_value *change)
{
    if (change->kind != JSON_OBJECT || !change->count)
        return query_fail(call, 400, "body_invalid", "the body must be an object with tags or retention_days");
    for (const struct json_value *member = change->child; member; member = member->next)
        if (strcmp(member->key, "tags") != 0 && strcmp(member->key, "retention_days") != 0)
            return query_fail(call, 400, "body_invalid", "only tags and retention_days can be changed");
    const struct json_value *tags = json_member(change, "tags"), *days = json_member(change, "retention_days");
    return (!tags || tags_apply(call, id, tags)) && (!days || retention_apply(call, id, days));
}

void query_session_patch(struct query_call *call)
{
    const char *id = http_exchange_path_value(call->exchange, "id");
    const struct bytes *body = http_exchange_body(call->exchange);
    struct json_document document;
    struct json_error error;
    if (json_parse(&document, body->size ? body->data : "", body->size, &error) != GPUFL_OK) {
        query_fail(call, 400, "body_invalid", "line %u, column %u: %s", error.line, error.column, error.text);
        return;
    }
    bytes_append_char(&call->out, '{');
    if (change_apply(call, id, document.root) && catalog_write(call))
        bytes_append_char(&call->out, '}');
    json_free(&document);
}

void query_session_remove(struct query_call *call)
{
    const char *id = http_exchange_path_value(call->exchange, "id");
    struct problem problem = {""};
    gpufl_status status = store_session_delete(call->query->store, id, &problem);
    if (status != GPUFL_OK) {
        query_fail_status(call, status, "session", &problem);
        return;
    }
    query_audit(call, "session.delete", id, "");
    http_respond_empty(call->exchange, 204);
}
