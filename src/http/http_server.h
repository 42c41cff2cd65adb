/* SPDX-License-Identifier: Apache-2.0 */
/* An HTTP/1.1 server for a table of routes. It handles requests and answers without knowing their meaning; the library
 * underneath is used only in this folder.
 *
 * Threads: event threads read, check, route and send; they never wait. Handlers run on worker threads and may take
 * their time, except on routes marked HTTP_ROUTE_INLINE. Each callback's thread is given in its comment. Memory:
 * bounded by the limits of the options, whatever clients send. */
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

/* A body that is consumed as it arrives. An open that did not answer is followed by exactly one of end and abort. */
struct http_stream {
    /* Event thread, before the body: calls http_exchange_set_state, or answers to reject the request. */
    http_handler *open;
    /* Event thread: returns the number of bytes consumed. Fewer than size: nothing more is read from the client until
     * http_exchange_continue. An answer given here rejects the rest of the body, and abort follows. */
    size_t (*data)(struct http_exchange *exchange, void *user, const void *data, size_t size);
    /* Worker thread: the body is complete. Answers, and releases the state. */
    http_handler *end;
    /* Event thread: the body will not be completed. Releases the state; an answer would not be sent. */
    http_handler *abort;
};

enum { HTTP_ROUTE_INLINE = 1 }; /* the handler is quick, never waits, and runs on an event thread */

struct http_route {
    enum http_method method;
    const char *pattern; /* "/api/v1/sessions/{id}", "/assets/{path...}"; the first match is used */
    enum http_scope scope;
    unsigned flags;
    http_handler *handle;             /* called with the complete body; or */
    const struct http_stream *stream; /* called as it arrives */
    uint64_t body_bytes_max;          /* 0: as in the options */
};

struct http_credentials {
    enum http_scope scope; /* required by the route */
    const char *token;     /* NULL: none was sent; token_size bytes, not NUL-terminated */
    size_t token_size;
    const char *peer; /* the client's address, without port */
    bool is_loopback; /* the client is on this machine, without a proxy */
};
struct http_access {
    int status;             /* 0: allowed; else 401, 403 or 429 */
    unsigned retry_after_s; /* with 429 */
    char reason[160];       /* for the client if rejected; "": the default message */
    void *principal;        /* opaque: http_exchange_principal; released by `release` */
    char name[64];          /* for the log; never the token */
};
struct http_log_line {
    const char *request_id, *peer, *principal; /* principal: "" when there is none */
    const char *method, *path;                 /* path: without its query, as sent */
    size_t path_size;
    const char *pattern; /* of the route; "" if none matched */
    int status;          /* 0: the client disconnected before an answer */
    uint64_t bytes_in, bytes_out;
    int64_t duration_ns;
};

struct http_server_options {
    const char *listen;              /* http_parse.h: http_address_parse */
    const char *tls_cert;            /* PEM file; NULL: no TLS */
    const char *tls_key;             /* PEM file */
    const struct http_route *routes; /* owned by the caller, must outlive the server */
    size_t route_count;
    void *user; /* argument of every callback */

    /* Event thread: must not wait. Required if any route has a scope. */
    void (*authorize)(void *user, const struct http_credentials *credentials, struct http_access *access);
    void (*release)(void *user, void *principal);              /* event thread; may be NULL */
    void (*log)(void *user, const struct http_log_line *line); /* event thread; may be NULL */
    /* Names, other than IP addresses and localhost, that a request without a token may have in its Host header; NULL-
     * terminated, may be NULL. "*": any. Other names are rejected, because a web page could reach the server under its
     * own name (DNS rebinding). */
    const char *const *allowed_hosts;
    /* Sites, such as "https://grafana.example.com", whose pages may read and write from a browser (CORS); NULL-
     * terminated; NULL: only the server's own pages. Each must be valid for http_origin_is_valid. */
    const char *const *cors_origins;

    /* Limits; 0 selects the default given behind each. */
    unsigned event_threads;        /* 4 */
    unsigned worker_threads;       /* 8 */
    unsigned queue_max;            /* 1024: complete requests waiting for a worker; more are answered with 503 */
    unsigned connections_max;      /* 4096 */
    unsigned connections_peer_max; /* no limit: connections of one client address */
    uint64_t body_bytes_max;       /* 1 MiB */
    unsigned head_timeout_ms;      /* 10,000: from the connection to a complete head */
    unsigned idle_timeout_ms;      /* 60,000: from an answer to the next head; also while an answer is not read */
    unsigned body_timeout_ms;      /* 300,000: for the whole body */
    unsigned body_rate_min;        /* 1,024: bytes per second, from the 10th second (head_timeout_ms) of a body on */
    unsigned heartbeat_ms;         /* 15,000: comments to event clients */
    unsigned events_bytes_max;     /* 256 KiB: queued for one event client, which is dropped beyond that */
};

/* GPUFL_E_INVALID: options; GPUFL_E_IO: the address is in use or not on this machine, or certificate or key cannot be
 * read. */
NODISCARD gpufl_status http_server_start(struct http_server **server, const struct http_server_options *options,
                                         struct problem *problem);
/* Accepts no new connections, ends event streams, lets requests in progress finish for grace_ms, then closes the rest;
 * returns when no callback runs any more. NULL is a no-op. */
void http_server_stop(struct http_server *server, unsigned grace_ms);
uint16_t http_server_port(const struct http_server *server);
bool http_server_is_loopback(const struct http_server *server);

/* Counters since the start. Durations: from the complete head to the end of the answer. */
enum { HTTP_STATUS_CLASSES = 6, HTTP_DURATION_BOUNDS = 12 };
extern const double http_duration_bounds_s[HTTP_DURATION_BOUNDS];
struct http_route_metrics {
    uint64_t requests[HTTP_STATUS_CLASSES]; /* [2]: answered with 2xx; [0]: the client disconnected before an answer */
    uint64_t bytes_in, bytes_out;           /* of bodies */
    uint64_t durations[HTTP_DURATION_BOUNDS + 1];
    uint64_t duration_sum_ns;
};
struct http_metrics {
    uint64_t connections_open, connections;
    uint64_t requests_active;  /* with a complete head and no complete answer, including event streams */
    uint64_t requests_queued;  /* waiting for a worker */
    uint64_t requests_refused; /* queue full */
    uint64_t timeouts;         /* heads and bodies that took too long */
    uint64_t events_clients, events_sent, events_dropped; /* dropped: clients that were too slow */
};
void http_server_metrics(const struct http_server *server, struct http_metrics *metrics);
/* index: of the route; route_count: requests that matched no route. */
void http_server_route_metrics(const struct http_server *server, size_t index, struct http_route_metrics *metrics);

#endif
