/* SPDX-License-Identifier: Apache-2.0 */
/* A small application on a real server on loopback: one route for each feature of the HTTP layer. */
#ifndef GPUFL_TESTS_HTTP_SERVER_FIXTURE_H
#define GPUFL_TESTS_HTTP_SERVER_FIXTURE_H

#include "http/http_events.h"
#include "http/http_static.h"
#include "http_client_fixture.h"

#include <pthread.h>

#define FIXTURE_TOKEN "gpfl_secret"

/* What the callbacks saw; guarded by lock. */
struct app {
    pthread_mutex_t lock;
    pthread_cond_t change;
    struct http_server *server;
    bool is_gate_closed; /* handlers of /gate and data of /paused wait */
    unsigned gate_waiters;
    unsigned opened, ended, aborted, released;
    struct http_exchange *paused; /* a stream that has consumed nothing */
    unsigned log_count;
    char log[64][256];
    uint64_t streamed_bytes;
};

static inline void app_lock(struct app *app)
{
    pthread_mutex_lock(&app->lock);
}

static inline void app_unlock(struct app *app)
{
    pthread_cond_broadcast(&app->change);
    pthread_mutex_unlock(&app->lock);
}

/* Waits until a counter, read under the lock, has at least this value. */
static inline void app_await(struct app *app, const unsigned *counter, unsigned value)
{
    pthread_mutex_lock(&app->lock);
    while (*counter < value)
        pthread_cond_wait(&app->change, &app->lock);
    pthread_mutex_unlock(&app->lock);
}

static inline void echo_handle(struct http_exchange *exchange, void *user)
{
    (void)user;
    struct bytes out = {0};
    const char *value = NULL;
    bytes_append_format(&out, "{\"id\":\"%s\",\"rest\":\"%s\"", http_exchange_path_value(exchange, "id"),
                        http_exchange_path_value(exchange, "rest"));
    for (size_t i = 0; i < http_exchange_query_count(exchange); i++) {
        const char *name = http_exchange_query_at(exchange, i, &value);
        bytes_append_format(&out, ",\"%s\":\"%s\"", name, value);
    }
    struct bytes *body = http_exchange_body(exchange);
    bytes_append_format(&out, ",\"body\":\"%.*s\"}", (int)body->size, body->data ? body->data : "");
    http_respond_bytes(exchange, 200, "application/json", &out);
}

static inline void large_handle(struct http_exchange *exchange, void *user)
{
    (void)user;
    struct bytes out = {0};
    if (http_respond_if_known(exchange, "v1"))
        return;
    for (unsigned i = 0; i < 1000; i++)
        bytes_append_text(&out, "{\"kernel\":\"gemm\"},");
    http_respond_bytes(exchange, 200, "application/json", &out);
}

static inline void page_handle(struct http_exchange *exchange, void *user)
{
    (void)user;
    static const char page[] = "<!doctype html><title>x</title>";
    http_respond_constant(exchange, 200, "text/html; charset=utf-8", NULL, page, sizeof page - 1);
}

static inline void silent_handle(struct http_exchange *exchange, void *user)
{
    (void)exchange, (void)user;
}

static inline void checked_handle(struct http_exchange *exchange, void *user)
{
    (void)user;
    static const char *const names[] = {"limit", "sort", NULL};
    struct problem problem = {""};
    int64_t limit = 50;
    if (http_exchange_query_check(exchange, names, &problem) ||
        http_exchange_query_int(exchange, "limit", 1, 100, &limit, &problem)) {
        http_respond_error(exchange, 400, "query_invalid", "%s", problem.text);
        return;
    }
    struct bytes out = {0};
    bytes_append_format(&out, "%lld", (long long)limit);
    http_respond_bytes(exchange, 200, "text/plain", &out);
}

static inline void gate_handle(struct http_exchange *exchange, void *user)
{
    struct app *app = user;
    app_lock(app);
    app->gate_waiters++;
    pthread_cond_broadcast(&app->change);
    while (app->is_gate_closed)
        pthread_cond_wait(&app->change, &app->lock);
    app_unlock(app);
    http_respond_empty(exchange, 204);
}

struct countdown {
    unsigned left;
    bool fails;
};

static inline int64_t countdown_read(void *state, void *data, size_t size)
{
    struct countdown *countdown = state;
    if (!countdown->left)
        return countdown->fails ? -1 : 0;
    int used = snprintf(data, size, "line %u\n", countdown->left--);
    return used;
}

static inline void countdown_handle(struct http_exchange *exchange, void *user)
{
    (void)user;
    static const struct http_source source = {.read = countdown_read, .close = free};
    struct countdown *countdown = calloc(1, sizeof *countdown);
    assert_non_null(countdown);
    countdown->left = 3000;
    countdown->fails = http_exchange_query(exchange, "fail") != NULL;
    http_respond_source(exchange, 200, "text/plain", &source, countdown);
}

static inline void upload_open(struct http_exchange *exchange, void *user)
{
    struct app *app = user;
    if (http_exchange_query(exchange, "refuse")) {
        http_respond_error(exchange, 409, "window_conflict", "no");
        return;
    }
    uint64_t *total = calloc(1, sizeof *total);
    assert_non_null(total);
    http_exchange_set_state(exchange, total);
    app_lock(app);
    app->opened++;
    app_unlock(app);
}

static inline size_t upload_data(struct http_exchange *exchange, void *user, const void *data, size_t size)
{
    struct app *app = user;
    uint64_t *total = http_exchange_state(exchange);
    if (http_exchange_query(exchange, "damaged") && memchr(data, '!', size)) {
        http_respond_error(exchange, 422, "body_damaged", "byte '!' at %llu", (unsigned long long)*total);
        return 0;
    }
    app_lock(app);
    bool is_paused = app->is_gate_closed && http_exchange_query(exchange, "pause");
    app->paused = is_paused ? exchange : NULL;
    app->gate_waiters += is_paused;
    app_unlock(app);
    if (is_paused)
        return 0;
    *total += size;
    return size;
}

static inline void upload_end(struct http_exchange *exchange, void *user)
{
    struct app *app = user;
    uint64_t *total = http_exchange_state(exchange);
    struct bytes out = {0};
    bytes_append_format(&out, "{\"bytes\":%llu}", (unsigned long long)*total);
    app_lock(app);
    app->ended++;
    app->streamed_bytes = *total;
    app_unlock(app);
    free(total);
    http_respond_bytes(exchange, 202, "application/json", &out);
}

static inline void upload_abort(struct http_exchange *exchange, void *user)
{
    struct app *app = user;
    free(http_exchange_state(exchange));
    app_lock(app);
    app->aborted++;
    app_unlock(app);
}

static inline void events_handle(struct http_exchange *exchange, void *user)
{
    (void)user;
    struct bytes first = {0};
    const char *topic = http_exchange_query(exchange, "topic");
    http_event_append(&first, "hello", "one\ntwo", 7);
    http_respond_events(exchange, topic ? topic : "", &first);
    bytes_free(&first);
}

static inline void static_handle(struct http_exchange *exchange, void *user)
{
    (void)user;
    static const struct http_static_file files[] = {
        {"app.12ab.js", "text/javascript", "let x;", 6, "GZ", 2, "12ab", true},
        {"index.html", "text/html", "<p>", 3, NULL, 0, "77", false},
    };
    const struct http_static_file *file = http_static_find(files, 2, http_exchange_path_value(exchange, "path"));
    if (file)
        http_respond_static(exchange, file);
    else
        http_respond_error(exchange, 404, "not_found", "no such file");
}

static const struct http_stream upload_stream = {
    .open = upload_open, .data = upload_data, .end = upload_end, .abort = upload_abort};

static const struct http_route fixture_routes[] = {
    {HTTP_GET, "/echo/{id}", HTTP_SCOPE_NONE, 0, echo_handle, NULL, 0},
    {HTTP_POST, "/echo/{id}", HTTP_SCOPE_NONE, 0, echo_handle, NULL, 1000},
    {HTTP_GET, "/inline/{rest...}", HTTP_SCOPE_NONE, HTTP_ROUTE_INLINE, echo_handle, NULL, 0},
    {HTTP_GET, "/large", HTTP_SCOPE_NONE, 0, large_handle, NULL, 0},
    {HTTP_GET, "/page", HTTP_SCOPE_NONE, HTTP_ROUTE_INLINE, page_handle, NULL, 0},
    {HTTP_GET, "/silent", HTTP_SCOPE_NONE, 0, silent_handle, NULL, 0},
    {HTTP_GET, "/checked", HTTP_SCOPE_NONE, 0, checked_handle, NULL, 0},
    {HTTP_GET, "/gate", HTTP_SCOPE_NONE, 0, gate_handle, NULL, 0},
    {HTTP_GET, "/countdown", HTTP_SCOPE_NONE, 0, countdown_handle, NULL, 0},
    {HTTP_POST, "/upload", HTTP_SCOPE_NONE, 0, NULL, &upload_stream, 8 << 20},
    {HTTP_GET, "/events", HTTP_SCOPE_NONE, HTTP_ROUTE_INLINE, events_handle, NULL, 0},
    {HTTP_GET, "/files/{path...}", HTTP_SCOPE_NONE, HTTP_ROUTE_INLINE, static_handle, NULL, 0},
    {HTTP_GET, "/read", HTTP_SCOPE_READ, HTTP_ROUTE_INLINE, echo_handle, NULL, 0},
    {HTTP_DELETE, "/admin", HTTP_SCOPE_ADMIN, 0, echo_handle, NULL, 0},
};
enum { FIXTURE_ROUTE_COUNT = sizeof fixture_routes / sizeof *fixture_routes };

static inline void fixture_authorize(void *user, const struct http_credentials *credentials, struct http_access *access)
{
    bool is_known = credentials->token_size == strlen(FIXTURE_TOKEN) &&
                    !memcmp(credentials->token, FIXTURE_TOKEN, credentials->token_size);
    if (!credentials->is_loopback) {
        access->status = 401;
        snprintf(access->reason, sizeof access->reason, "not from this machine");
    } else if (credentials->token_size == 4 && !memcmp(credentials->token, "slow", 4)) {
        access->status = 429;
        access->retry_after_s = 7;
    } else if (!is_known) {
        access->status = 401;
    } else if (credentials->scope == HTTP_SCOPE_ADMIN) {
        access->status = 403;
        snprintf(access->reason, sizeof access->reason, "this key only reads");
    }
    if (is_known) {
        access->principal = user;
        snprintf(access->name, sizeof access->name, "key-1");
    }
}

static inline void fixture_release(void *user, void *principal)
{
    struct app *app = user;
    assert_ptr_equal(principal, app);
    app_lock(app);
    app->released++;
    app_unlock(app);
}

static inline void fixture_log(void *user, const struct http_log_line *line)
{
    struct app *app = user;
    app_lock(app);
    snprintf(app->log[app->log_count % 64], sizeof app->log[0], "%s %.*s %d %s %s in=%llu %s", line->method,
             (int)line->path_size, line->path, line->status, line->pattern, line->principal,
             (unsigned long long)line->bytes_in, line->peer);
    app->log_count++;
    app_unlock(app);
}

static inline struct http_server_options fixture_options(struct app *app)
{
    return (struct http_server_options){
        .listen = "127.0.0.1:0",
        .routes = fixture_routes,
        .route_count = FIXTURE_ROUTE_COUNT,
        .user = app,
        .authorize = fixture_authorize,
        .release = fixture_release,
        .log = fixture_log,
        .event_threads = 2,
        .worker_threads = 2,
    };
}

/* Waits until every request so far is logged and counted. */
static inline void app_settle(struct app *app)
{
    struct http_metrics metrics;
    do {
        usleep(1000);
        http_server_metrics(app->server, &metrics);
    } while (metrics.requests_active);
    app_lock(app); /* synchronizes with what the callbacks wrote */
    app_unlock(app);
}

/* Waits for a recent line of the log with this prefix: requests end in any order. */
static inline void app_await_line(struct app *app, const char *text)
{
    for (int tries = 0; tries < 400000; tries++) {
        bool is_there = false;
        app_lock(app);
        for (unsigned i = 1; i <= 4 && i <= app->log_count; i++)
            is_there |= !strncmp(app->log[(app->log_count - i) % 64], text, strlen(text));
        app_unlock(app);
        if (is_there)
            return;
        usleep(1000);
    }
    fail_msg("no line of the log begins with %s", text);
}

/* Starts the application; returns its port. */
static inline uint16_t app_start(struct app *app, const struct http_server_options *options)
{
    struct problem problem = {""};
    memset(app, 0, sizeof *app);
    pthread_mutex_init(&app->lock, NULL);
    pthread_cond_init(&app->change, NULL);
    if (http_server_start(&app->server, options, &problem))
        fail_msg("%s", problem.text);
    return http_server_port(app->server);
}

static inline void app_stop(struct app *app)
{
    http_server_stop(app->server, 10000);
    pthread_cond_destroy(&app->change);
    pthread_mutex_destroy(&app->lock);
}

#endif
