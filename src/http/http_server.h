/* SPDX-License-Identifier: Apache-2.0 */
/* An HTTP/1.1 server for a table of routes. It knows requests and answers, nothing of what they are about; no other
 * file sees the library underneath.
 *
 * Threads: event threads read, check, route and send; they never wait. Handlers run on worker threads and may take
 * their time, except where a route is marked HTTP_ROUTE_INLINE. What each callback runs on is said beside it.
 * Memory: bounded by the limits of the options, whatever clients send. */
#ifndef GPUFL_HTTP_HTTP_SERVER_H
#define GPUFL_HTTP_HTTP_SERVER_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

struct http_server;   /* opaque */
struct http_exchange; /* one request and its answer: http_exchange.h */

enum http_method { HTTP_GET, HTTP_POST, HTTP_PUT, HTTP_PATCH, HTTP_DELETE, HTTP_METHOD_COUNT }; /* GET answers HEAD */
enum http_scope { HTTP_SCOPE_NONE, HTTP_SCOPE_INGEST, HTTP_SCOPE_READ, HTTP_SCOPE_ADMIN };

/* Answers the exchange (http_exchange.h: http_respond_...) before it returns. */
typedef void http_handler(struct http_exchange *exchange, void *user);

/* A body that is consumed as it arrives. Exactly one of end and abort follows an open that did not answer. */
struct http_stream {
    /* Event thread, before the body: http_exchange_set_state, or an answer that refuses the request. */
    http_handler *open;
    /* Event thread: the number of bytes taken. Fewer than size: nothing more is read from the client until
     * http_exchange_continue. An answer given here refuses the rest of the body, and abort follows. */
    size_t (*data)(struct http_exchange *exchange, void *user, const void *data, size_t size);
    /* Worker thread: the body is complete. Answers, and releases the state. */
    http_handler *end;
    /* Event thread: no more will come. Releases the state; an answer reaches nobody. */
    http_handler *abort;
};

enum { HTTP_ROUTE_INLINE = 1 }; /* the handler is quick, never waits, and runs on an event thread */

struct http_route {
    enum http_method method;
    const char *pattern; /* "/api/v1/sessions/{id}", "/assets/{path...}"; the first that matches is taken */
    enum http_scope scope;
    unsigned flags;
    http_handler *handle;             /* with the whole body in memory; or */
    const struct http_stream *stream; /* as it arrives */
    uint64_t body_bytes_max;          /* 0: that of the options */
};

struct http_credentials {
    enum http_scope scope; /* what the route asks for */
    const char *token;     /* NULL: none was sent; token_size bytes, not NUL-terminated */
    size_t token_size;
    const char *peer; /* the client's address, without port */
    bool is_loopback; /* the client is on this machine, and no proxy stands between */
};
struct http_access {
    int status;             /* 0: allowed; else 401, 403 or 429 */
    unsigned retry_after_s; /* with 429 */
    char reason[160];       /* for the client when refused; "": the usual words */
    void *principal;        /* opaque: http_exchange_principal; released by `release` */
    char name[64];          /* for the log: who; never the token */
};
struct http_log_line {
    const char *request_id, *peer, *principal; /* principal: "" when nobody in particular */
    const char *method, *path;                 /* path: without its query, as it was sent */
    size_t path_size;
    const char *pattern; /* of the route; "" when there was none */
    int status;          /* 0: the client went away before an answer */
    uint64_t bytes_in, bytes_out;
    int64_t duration_ns;
};

struct http_server_options {
    const char *listen;              /* http_parse.h: http_address_parse */
    const char *tls_cert;            /* PEM file; NULL: no TLS */
    const char *tls_key;             /* PEM file */
    const struct http_route *routes; /* kept by the caller as long as the server runs */
    size_t route_count;
    void *user; /* of every callback */

    /* Event thread: must not wait. Needed as soon as a route has a scope. */
    void (*authorize)(void *user, const struct http_credentials *credentials, struct http_access *access);
    void (*release)(void *user, void *principal);              /* event thread; may be NULL */
    void (*log)(void *user, const struct http_log_line *line); /* event thread; may be NULL */
    /* Names, beside IP addresses and localhost, that a Host header may have in a request without a token; NULL-
     * terminated, may be NULL. "*": any. Others are refused, or a web page could reach the server by renaming it. */
    const char *const *allowed_hosts;
    /* Sites, like "https://grafana.example.com", whose pages may read and write from a browser (CORS); NULL-terminated,
     * NULL: none but the server's own. Each as http_origin_is_valid wants it. */
    const char *const *cors_origins;

    /* Limits; 0: what stands behind each. */
    unsigned event_threads;        /* 4 */
    unsigned worker_threads;       /* 8 */
    unsigned queue_max;            /* 1024: complete requests waiting for a worker; more are answered with 503 */
    unsigned connections_max;      /* 4096 */
    unsigned connections_peer_max; /* no limit: connections of one client address */
    uint64_t body_bytes_max;       /* 1 MiB */
    unsigned head_timeout_ms;      /* 10,000: from the connection to a complete head */
    unsigned idle_timeout_ms;      /* 60,000: from an answer to the next complete head; and of an answer not read */
    unsigned body_timeout_ms;      /* 300,000: for all of the body */
    unsigned body_rate_min;        /* 1,024: bytes per second, from the 10th second (head_timeout_ms) of a body on */
    unsigned heartbeat_ms;         /* 15,000: comments to event clients */
    unsigned events_bytes_max;     /* 256 KiB: waiting for one event client; more and it is dropped */
};

/* GPUFL_E_INVALID: options; GPUFL_E_IO: the address is taken or not ours, certificate or key cannot be read. */
NODISCARD gpufl_status http_server_start(struct http_server **server, const struct http_server_options *options,
                                         struct problem *problem);
/* Takes no new connections, ends event streams, lets requests that are under way finish until grace_ms have passed,
 * then closes the rest; returns when no callback runs any more. NULL is a no-op. */
void http_server_stop(struct http_server *server, unsigned grace_ms);
uint16_t http_server_port(const struct http_server *server);
bool http_server_is_loopback(const struct http_server *server);

/* Counters since the start. Durations: from the complete head to the end of the answer. */
enum { HTTP_STATUS_CLASSES = 6, HTTP_DURATION_BOUNDS = 12 };
extern const double http_duration_bounds_s[HTTP_DURATION_BOUNDS];
struct http_route_metrics {
    uint64_t requests[HTTP_STATUS_CLASSES]; /* [2]: answered with 2xx; [0]: client gone before an answer */
    uint64_t bytes_in, bytes_out;           /* of bodies */
    uint64_t durations[HTTP_DURATION_BOUNDS + 1];
    uint64_t duration_sum_ns;
};
struct http_metrics {
    uint64_t connections_open, connections;
    uint64_t requests_active;  /* with a complete head and no complete answer, event streams included */
    uint64_t requests_queued;  /* waiting for a worker */
    uint64_t requests_refused; /* queue full */
    uint64_t timeouts;         /* heads and bodies that took too long */
    uint64_t events_clients, events_sent, events_dropped; /* dropped: clients that were too slow */
};
void http_server_metrics(const struct http_server *server, struct http_metrics *metrics);
/* index: of the route; route_count: requests that no route took. */
void http_server_route_metrics(const struct http_server *server, size_t index, struct http_route_metrics *metrics);

#endif
