/* SPDX-License-Identifier: Apache-2.0 */
#include "http/http_exchange.h"

#include "base/clock.h"
#include "http/http_core.h"

#include <stdio.h>
#include <stdlib.h>

/* A rejected body is read to its end only if that is cheap, because then the client certainly sees the answer. */
enum { DRAIN_BYTES_MAX = 1 << 20 };

struct http_exchange *http_exchange_open(struct http_server *server, struct http_connection *connection,
                                         const char *target)
{
    struct http_exchange *exchange = calloc(1, sizeof *exchange);
    if (!exchange)
        return NULL;
    exchange->server = server;
    exchange->connection = connection;
    exchange->start_ns = clock_mono_ns();
    exchange->target_at = target;
    exchange->target_size = strlen(target);
    exchange->target_text = strndup(target, HTTP_TARGET_BYTES_MAX + 1);
    uint64_t number = server->id_base + atomic_fetch_add_explicit(&server->id_next, 1, memory_order_relaxed);
    snprintf(exchange->id, sizeof exchange->id, "%016llx", (unsigned long long)number);
    if (!exchange->target_text) {
        free(exchange);
        return NULL;
    }
    return exchange;
}

static void stream_abort(struct http_exchange *exchange)
{
    if (!exchange->is_stream_open)
        return;
    exchange->is_stream_open = false;
    exchange->route->stream->abort(exchange, exchange->server->options.user);
}

static void exchange_log(struct http_exchange *exchange, int64_t duration_ns)
{
    const struct http_server_options *options = &exchange->server->options;
    if (!options->log)
        return;
    const struct http_span *path = &exchange->target.path;
    const struct http_log_line line = {
        .request_id = exchange->id,
        .peer = exchange->connection->peer,
        .principal = exchange->access.name,
        .method = exchange->method,
        .path = path->size ? path->at : "",
        .path_size = path->size,
        .pattern = exchange->route ? exchange->route->pattern : "",
        .status = exchange->response.status,
        .bytes_in = exchange->body_bytes,
        .bytes_out = exchange->response.bytes_out,
        .duration_ns = duration_ns,
    };
    options->log(options->user, &line);
}

/* The status of an exchange whose answer was not sent by the library. */
static int status_unsent(const struct http_exchange *exchange, bool was_complete)
{
    if (exchange->response.is_closing && exchange->discarded_bytes)
        return exchange->response.status; /* drain_step sent it */
    if (http_connection_is_expired(exchange->connection))
        return 408;
    /* The library itself rejects requests that it cannot parse. */
    return exchange->stage == HTTP_STAGE_HEAD && was_complete ? 400 : 0;
}

void http_exchange_close(struct http_exchange *exchange, bool was_complete)
{
    struct http_server *server = exchange->server;
    struct http_response *response = &exchange->response;
    const int64_t duration_ns = clock_mono_ns() - exchange->start_ns;
    stream_abort(exchange);
    if (exchange->stage != HTTP_STAGE_SENT)
        response->status = status_unsent(exchange, was_complete);
    response->bytes_out = strcmp(exchange->method, "HEAD") != 0 ? http_response_bytes(response) : 0;
    http_metrics_count(exchange, duration_ns);
    exchange_log(exchange, duration_ns);
    if (exchange->access.principal && server->options.release)
        server->options.release(server->options.user, exchange->access.principal);
    http_response_free(response);
    http_target_free(&exchange->target);
    for (unsigned i = 0; i < HTTP_PATTERN_VALUES_MAX; i++)
        free(exchange->values[i]);
    bytes_free(&exchange->body);
    free(exchange->target_text);
    if (exchange->is_counted) {
        pthread_mutex_lock(&server->lock);
        server->active_count--;
        pthread_cond_broadcast(&server->change);
        pthread_mutex_unlock(&server->lock);
    }
    free(exchange);
}

/* Answers before the body has been read completely. */
static bool refuse_rest(struct http_exchange *exchange)
{
    stream_abort(exchange);
    bytes_free(&exchange->body);
    exchange->stage = HTTP_STAGE_DRAIN;
    return true;
}

static bool answer_send(struct http_exchange *exchange)
{
    pthread_mutex_lock(&exchange->server->lock);
    exchange->response.is_closing |= exchange->server->is_stopping;
    pthread_mutex_unlock(&exchange->server->lock);
    if (!http_connection_enter(exchange->connection, HTTP_PHASE_ANSWER) || !http_response_send(exchange))
        return false;
    exchange->stage = HTTP_STAGE_SENT;
    return true;
}

static bool head_step(struct http_exchange *exchange, const char *method, const char *version)
{
    struct http_server *server = exchange->server;
    if (!http_connection_enter(exchange->connection, HTTP_PHASE_BODY))
        return false;
    pthread_mutex_lock(&server->lock);
    server->active_count++;
    pthread_mutex_unlock(&server->lock);
    exchange->is_counted = true;
    exchange->start_ns = clock_mono_ns();
    if (http_head_accept(exchange, method, version)) {
        exchange->stage = HTTP_STAGE_BODY;
        return true;
    }
    /* A client that asks first (Expect: 100-continue) gets the answer before it sends the body. */
    if (exchange->response.is_closing || http_exchange_header(exchange, "Expect"))
        return answer_send(exchange);
    return refuse_rest(exchange);
}

static bool drain_step(struct http_exchange *exchange, size_t *size)
{
    if (!*size)
        return answer_send(exchange);
    exchange->discarded_bytes += *size;
    *size = 0;
    if (exchange->discarded_bytes <= DRAIN_BYTES_MAX)
        return true;
    struct http_response *response = &exchange->response;
    response->is_closing = true;
    http_connection_refuse(exchange->connection, response->status, response->body.data, response->body.size);
    return false;
}

static bool stream_take(struct http_exchange *exchange, const char *data, size_t *size)
{
    while (*size) {
        size_t taken = exchange->route->stream->data(exchange, exchange->server->options.user, data, *size);
        taken = taken < *size ? taken : *size;
        data += taken;
        *size -= taken;
        if (http_exchange_is_answered(exchange))
            return refuse_rest(exchange) && drain_step(exchange, size);
        if (!*size)
            break;
        enum http_suspension suspension = http_connection_suspend(exchange->connection);
        if (suspension != HTTP_AWAKE)
            return suspension == HTTP_SUSPENDED;
    }
    return true;
}

static bool body_step(struct http_exchange *exchange, const char *data, size_t *size)
{
    exchange->body_bytes += *size;
    if (exchange->body_bytes > exchange->body_bytes_max) {
        http_respond_error(exchange, 413, "body_too_large", "the body is larger than %llu bytes",
                           (unsigned long long)exchange->body_bytes_max);
        return refuse_rest(exchange) && drain_step(exchange, size);
    }
    const size_t offered = *size;
    bool is_good = true;
    if (exchange->route->stream) {
        is_good = stream_take(exchange, data, size);
        exchange->body_bytes -= *size; /* it is passed again */
    } else {
        bytes_append(&exchange->body, data, *size);
        *size = 0;
        if (exchange->body.failed) {
            http_respond_error(exchange, 503, "no_memory", "no memory for the body");
            return refuse_rest(exchange);
        }
    }
    atomic_fetch_add_explicit(&exchange->connection->body_bytes, offered - *size, memory_order_relaxed);
    return is_good;
}

static void exchange_handle(struct http_exchange *exchange)
{
    void *user = exchange->server->options.user;
    if (exchange->route->stream) {
        exchange->is_stream_open = false;
        exchange->route->stream->end(exchange, user);
    } else {
        exchange->route->handle(exchange, user);
    }
    http_response_finish(exchange);
}

void http_exchange_work(struct http_exchange *exchange)
{
    exchange_handle(exchange);
    http_connection_work_done(exchange->connection);
}

static bool work_step(struct http_exchange *exchange)
{
    while (!http_connection_work_is_done(exchange->connection)) {
        enum http_suspension suspension = http_connection_suspend(exchange->connection);
        if (suspension != HTTP_AWAKE)
            return suspension == HTTP_SUSPENDED;
    }
    return answer_send(exchange);
}

static bool body_end(struct http_exchange *exchange)
{
    exchange->stage = HTTP_STAGE_WORK;
    if (!http_connection_enter(exchange->connection, HTTP_PHASE_ANSWER))
        return false;
    if (exchange->route->flags & HTTP_ROUTE_INLINE) {
        exchange_handle(exchange);
        return answer_send(exchange);
    }
    http_connection_work_begin(exchange->connection);
    if (http_workers_push(&exchange->server->workers, exchange))
        return work_step(exchange);
    http_respond_header(exchange, "Retry-After", "1");
    http_respond_error(exchange, 503, "busy", "too many requests are waiting; try again");
    stream_abort(exchange);
    return answer_send(exchange);
}

bool http_exchange_step(struct http_exchange *exchange, const char *method, const char *version, const char *data,
                        size_t *size)
{
    switch (exchange->stage) {
    case HTTP_STAGE_HEAD:
        return head_step(exchange, method, version);
    case HTTP_STAGE_BODY:
        return *size ? body_step(exchange, data, size) : body_end(exchange);
    case HTTP_STAGE_DRAIN:
        return drain_step(exchange, size);
    case HTTP_STAGE_WORK:
        return work_step(exchange);
    case HTTP_STAGE_SENT:
        break;
    }
    return false;
}
