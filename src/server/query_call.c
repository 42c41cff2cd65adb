/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query_call.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>

enum { exact_kernels_default = 2000000, quick_rows_default = 50000 };
#define CACHE_BYTES_DEFAULT (UINT64_C(1) << 30)

gpufl_status query_open(struct query *query, struct store *store, const struct query_options *options,
                        struct problem *problem)
{
    *query = (struct query){.store = store};
    query->exact_kernels = options->exact_kernels > 0 ? options->exact_kernels : exact_kernels_default;
    query->quick_rows = options->quick_rows > 0 ? options->quick_rows : quick_rows_default;
    gpufl_status status =
        query_cache_open(&query->cache, options->cache_bytes ? options->cache_bytes : CACHE_BYTES_DEFAULT);
    if (status != GPUFL_OK)
        return problem_set(problem, status, "no memory for the cache of sessions");
    return GPUFL_OK;
}

void query_close(struct query *query)
{
    query_cache_close(query->cache);
    query->cache = NULL;
}

void query_metrics_read(const struct query *query, struct query_metrics *metrics)
{
    query_cache_metrics(query->cache, metrics);
}

bool query_fail(struct query_call *call, int status, const char *code, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    http_respond_error(call->exchange, status, code, "%s", text);
    return false;
}

bool query_fail_status(struct query_call *call, gpufl_status status, const char *what, const struct problem *problem)
{
    char code[64];
    switch (status) {
    case GPUFL_E_NOT_FOUND:
        snprintf(code, sizeof code, "%s_unknown", what);
        return query_fail(call, 404, code, "no such %s", what);
    case GPUFL_E_INVALID:
        return query_fail(call, 400, "request_invalid", "%s", problem->text);
    case GPUFL_E_BUSY:
        http_respond_header(call->exchange, "Retry-After", "1");
        return query_fail(call, 503, "busy", "%s", problem->text);
    case GPUFL_E_LIMIT:
        snprintf(code, sizeof code, "%s_too_large", what);
        return query_fail(call, 422, code, "%s", problem->text);
    case GPUFL_E_PERMISSION:
        return query_fail(call, 403, "read_only", "%s", problem->text);
    case GPUFL_E_NO_MEMORY:
        return query_fail(call, 503, "no_memory", "%s", problem->text);
    default:
        return query_fail(call, 500, "store_failed", "%s", problem->text);
    }
}

bool query_int(struct query_call *call, const char *name, int64_t min, int64_t max, int64_t *value)
{
    struct problem problem = {""};
    if (http_exchange_query_int(call->exchange, name, min, max, value, &problem) == GPUFL_OK)
        return true;
    return query_fail(call, 400, "parameter_invalid", "%s", problem.text);
}

const char *query_text(const struct query_call *call, const char *name)
{
    const char *text = http_exchange_query(call->exchange, name);
    return text && *text ? text : NULL;
}

bool query_choice(struct query_call *call, const char *name, const char *const *words, int *choice)
{
    const char *text = query_text(call, name);
    char list[256] = "";
    if (!text)
        return true;
    for (int i = 0; words[i]; i++) {
        if (!strcmp(text, words[i])) {
            *choice = i;
            return true;
        }
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", words[i]);
    }
    return query_fail(call, 400, "parameter_invalid", "%s must be one of %s", name, list);
}

bool query_range(struct query_call *call, int64_t *from_ns, int64_t *to_ns)
{
    if (!query_int(call, "from_ns", 0, INT64_MAX / 2, from_ns) || !query_int(call, "to_ns", 0, INT64_MAX / 2, to_ns))
        return false;
    if (*to_ns <= *from_ns)
        return query_fail(call, 400, "parameter_invalid", "to_ns must be later than from_ns");
    return true;
}

bool query_page(struct query_call *call, size_t limit_default, size_t limit_max, struct query_page *page)
{
    int64_t limit = (int64_t)limit_default, first = 0;
    if (!query_int(call, "limit", 1, (int64_t)limit_max, &limit) ||
        !query_int(call, "cursor", 0, INT64_MAX / 2, &first))
        return false;
    *page = (struct query_page){.first = (size_t)first, .limit = (size_t)limit};
    return true;
}

void query_page_end(struct query_call *call, const struct query_page *page, size_t total)
{
    member_uint(&call->out, "total", total);
    json_key(&call->out, "next_cursor");
    if (page->first < total && total - page->first > page->limit)
        bytes_append_format(&call->out, "\"%zu\"", page->first + page->limit);
    else
        json_text(&call->out, NULL);
}

struct query_session *query_hold(struct query_call *call, const char *session_id, bool is_light)
{
    struct problem problem = {""};
    struct query_session *session = NULL;
    gpufl_status status =
        query_cache_hold(call->query->cache, call->query->store, session_id, is_light, &session, &problem);
    if (status != GPUFL_OK) {
        query_fail_status(call, status, "session", &problem);
        return NULL;
    }
    call->held[call->held_count++] = session;
    return session;
}

bool query_is_known(struct query_call *call, const struct query_session *session)
{
    char text[STORE_SESSION_ID_MAX + 96], etag[HTTP_ETAG_SIZE];
    int size = snprintf(text, sizeof text, "%s|%lld|%lld|%s", session->id, (long long)session->created_ns,
                        (long long)session->revision, GPUFL_VERSION_STRING);
    http_etag_of(text, (size_t)size, etag);
    http_respond_header(call->exchange, "Cache-Control", "private, no-cache");
    snprintf(text, sizeof text, "%lld", (long long)session->revision);
    http_respond_header(call->exchange, "X-Session-Revision", text);
    return http_respond_if_known(call->exchange, etag);
}

struct size_check {
    int64_t kernels, rows, revision, created_ns;
};

static bool take_size(void *user, const struct store_session *session)
{
    *(struct size_check *)user =
        (struct size_check){session->kernels, session->rows, session->revision, session->created_ns};
    return false;
}

/* Loads a larger session only if exact=true requests it; otherwise sets *is_too_large, and returns the session only if
 * it is loaded already, else NULL. is_prompt: the same for a session that takes noticeable time to load. */
static struct query_session *hold_within(struct query_call *call, bool is_prompt, bool *is_too_large)
{
    static const char *const answers[] = {"false", "true", NULL};
    const char *id = http_exchange_path_value(call->exchange, "id");
    struct problem problem = {""};
    struct size_check size = {0};
    int is_exact = 0;
    *is_too_large = false;
    if (!query_choice(call, "exact", answers, &is_exact))
        return NULL;
    gpufl_status status = store_session(call->query->store, id, take_size, &size, &problem);
    if (status != GPUFL_OK) {
        query_fail_status(call, status, "session", &problem);
        return NULL;
    }
    *is_too_large =
        !is_exact && (size.kernels > call->query->exact_kernels || (is_prompt && size.rows > call->query->quick_rows));
    if (!*is_too_large)
        return query_hold(call, id, false);
    struct query_session *session = query_cache_peek(call->query->cache, id, size.revision, size.created_ns);
    if (session)
        call->held[call->held_count++] = session;
    return session;
}

struct query_session *query_whole(struct query_call *call, bool *is_too_large)
{
    struct query_session *session = hold_within(call, false, is_too_large);
    *is_too_large &= !session;
    return session;
}

const struct track_set *query_tracks_of(struct query_call *call, struct query_session *session)
{
    const struct track_set *tracks = query_cache_tracks(call->query->cache, session);
    if (!tracks)
        query_fail(call, 503, "no_memory", "no memory to answer");
    return tracks;
}

const struct track_set *query_whole_tracks(struct query_call *call, bool is_prompt,
                                           const struct query_session **session, bool *is_too_large)
{
    struct query_session *held = hold_within(call, is_prompt, is_too_large);
    bool is_waiting = held && !(is_prompt && *is_too_large);
    const struct track_set *tracks = NULL;
    if (is_waiting)
        tracks = query_tracks_of(call, held);
    else if (held)
        tracks = query_cache_tracks_peek(call->query->cache, held);
    *is_too_large &= !is_waiting && !tracks;
    *session = tracks ? held : NULL;
    return tracks;
}

void query_audit(struct query_call *call, const char *action, const char *subject, const char *detail)
{
    struct problem problem = {""};
    const char *actor = call->query->actor ? call->query->actor(call->exchange) : "local";
    struct store_audit entry = {
        .ts_ns = clock_wall_ns(), .actor = actor, .action = action, .subject = subject, .detail = detail};
    /* The change is made already: a failure of the audit log does not undo it. */
    if (store_audit_add(call->query->store, &entry, &problem) != GPUFL_OK)
        http_respond_header(call->exchange, "X-Audit", "failed");
}
