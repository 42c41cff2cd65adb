/* SPDX-License-Identifier: Apache-2.0 */
/* The query routes on a real server on loopback, over a store with sessions of this repository. */
#ifndef GPUFL_TESTS_QUERY_FIXTURE_H
#define GPUFL_TESTS_QUERY_FIXTURE_H

#include "session_fixture.h"

#include "analysis/report.h"
#include "http_client_fixture.h"
#include "logfile/log_line.h"
#include "logfile/session_source.h"
#include "server/query_call.h"

struct query_app {
    struct query query; /* first: the routes' user pointer */
    struct store *store;
    struct http_server *server;
    struct http_route routes[64];
    size_t route_count;
    uint16_t port;
    char dir[256];
};

/* Writes one file's lines. */
static inline void fixture_ingest_file(struct store_write *write, const struct session_files *files,
                                       const struct session_file *file)
{
    struct line_source source;
    struct batch_view view = {0};
    struct problem problem = {""};
    const char *text;
    size_t size;
    int fd = session_file_open(files->dir_fd, file->name);
    assert_true(fd >= 0);
    assert_int_equal(line_source_open(&source, fd, session_file_coding(file), UINT64_MAX), GPUFL_OK);
    while (line_source_next(&source, &text, &size) == LINE_WHOLE) {
        struct log_line line = {.channel = file->channel, .file = file->name};
        struct json_document document = {0};
        char reason[LINE_REASON_SIZE];
        if (!log_line_decode(&line, &view, &document, text, size, reason) &&
            store_write_line(write, &line, text, size, NULL, &problem) != GPUFL_OK)
            fail_msg("%s", problem.text);
        json_free(&document);
    }
    batch_view_free(&view);
    line_source_close(&source);
    close(fd);
}

/* Delivers a session directory of this repository to the store. */
static inline void fixture_ingest(struct store *store, const char *path)
{
    struct session_files files;
    struct session_model *model;
    struct store_write *write;
    struct store_written written;
    enum store_delivery delivery;
    struct problem problem = {""};
    assert_int_equal(session_load(&model, path, &problem), GPUFL_OK);
    struct store_identity identity = {.session_id = model->job.session_id, .window_id = "", .channel = CHANNEL_COUNT};
    if (session_files_find(&files, path, &problem) || store_write_begin(store, &identity, &write, &delivery, &problem))
        fail_msg("%s", problem.text);
    for (size_t i = 0; i < files.log_count; i++)
        fixture_ingest_file(write, &files, &files.items[i]);
    if (store_write_commit(write, &written, &problem))
        fail_msg("%s", problem.text);
    session_files_free(&files);
    session_free(model);
}

static inline void query_allow(void *user, const struct http_credentials *credentials, struct http_access *access)
{
    (void)user, (void)credentials;
    access->status = 0;
}

static inline void query_app_start(struct query_app *app, const struct query_options *options)
{
    struct problem problem = {""};
    struct store_options store_options = {.no_background = true};
    memset(app, 0, sizeof *app);
    snprintf(app->dir, sizeof app->dir, "%s", fixture_dir());
    if (store_open(&app->store, app->dir, &store_options, &problem) ||
        query_open(&app->query, app->store, options, &problem))
        fail_msg("%s", problem.text);
    struct api_table table = query_table();
    for (; app->route_count < table.count; app->route_count++)
        app->routes[app->route_count] = table.routes[app->route_count].http;
    struct http_server_options server_options = {.listen = "127.0.0.1:0",
                                                 .routes = app->routes,
                                                 .route_count = app->route_count,
                                                 .user = app,
                                                 .authorize = query_allow,
                                                 .event_threads = 1,
                                                 .worker_threads = 4};
    if (http_server_start(&app->server, &server_options, &problem))
        fail_msg("%s", problem.text);
    app->port = http_server_port(app->server);
}

static inline void query_app_stop(struct query_app *app)
{
    http_server_stop(app->server, 10000);
    query_close(&app->query);
    store_close(app->store);
    fixture_remove(app->dir);
}

static inline void query_app_add(struct query_app *app, const char *session)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", SOURCE_DIR, session);
    fixture_ingest(app->store, path);
}

/* Headers: each with its CR LF, "" for none. */
static inline struct answer query_ask(struct query_app *app, const char *method, const char *target,
                                      const char *headers, const char *body)
{
    struct bytes request = {0};
    bytes_append_format(&request, "%s %s HTTP/1.1\r\nHost: localhost\r\n%s", method, target, headers);
    if (body)
        bytes_append_format(&request, "Content-Length: %zu\r\n\r\n%s", strlen(body), body);
    else
        bytes_append_text(&request, "\r\n");
    struct answer answer = client_ask(app->port, bytes_text(&request));
    bytes_free(&request);
    return answer;
}

/* The answer's JSON, which must be valid. */
static inline struct json_document query_json(struct query_app *app, int status, const char *method, const char *target,
                                              const char *headers, const char *body)
{
    struct answer answer = query_ask(app, method, target, headers, body);
    struct json_document document;
    struct json_error error;
    if (answer.status != status)
        fail_msg("%s %s: %d %s", method, target, answer.status, answer.body);
    if (json_parse(&document, answer.body, answer.size, &error) != GPUFL_OK)
        fail_msg("%s %s: column %u: %s\n%s", method, target, error.column, error.text, answer.body);
    answer_free(&answer);
    return document;
}

static inline struct json_document query_get(struct query_app *app, const char *target)
{
    return query_json(app, 200, "GET", target, "", NULL);
}

/* Compares members recursively. */
static inline bool json_is_equal(const struct json_value *a, const struct json_value *b)
{
    if (a->kind != b->kind || a->count != b->count)
        return false;
    if (a->kind == JSON_STRING)
        return a->text_size == b->text_size && !memcmp(a->text, b->text, a->text_size);
    if (a->kind == JSON_INT || a->kind == JSON_DOUBLE)
        return a->integer == b->integer && a->number == b->number;
    const struct json_value *at = a->child, *other = b->child;
    for (; at && other; at = at->next, other = other->next)
        if ((at->key && strcmp(at->key, other->key) != 0) || !json_is_equal(at, other))
            return false;
    return !at && !other;
}

#define H200_DIR "examples/recorded/h200-training"

static inline void fixture_session_id(const char *session, char id[64])
{
    char path[512];
    struct session_model *model;
    struct problem problem = {""};
    snprintf(path, sizeof path, "%s/%s", SOURCE_DIR, session);
    assert_int_equal(session_load(&model, path, &problem), GPUFL_OK);
    snprintf(id, 64, "%s", model->job.session_id);
    session_free(model);
}

#endif
