/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of this folder: the server, and one exchange. */
#ifndef GPUFL_HTTP_HTTP_CORE_H
#define GPUFL_HTTP_HTTP_CORE_H

#include "http/http_response.h"
#include "http/http_workers.h"

struct MHD_Daemon;
struct http_events_client;

/* Memory of a connection, in which the head of a request is. */
enum { HTTP_POOL_BYTES = 64 << 10 };

struct http_route_counters {
    _Atomic uint64_t requests[HTTP_STATUS_CLASSES];
    _Atomic uint64_t bytes_in, bytes_out;
    _Atomic uint64_t durations[HTTP_DURATION_BOUNDS + 1];
    _Atomic uint64_t duration_sum_ns;
};

struct http_events {
    pthread_mutex_t lock; /* taken before the connections' lock */
    struct http_events_client *first;
    bool is_closed;
    _Atomic uint64_t client_count, sent_count, dropped_count;
};

struct http_server {
    struct http_server_options options; /* with defaults filled in */
    struct http_address address;        /* as bound */
    struct MHD_Daemon *daemon;
    struct http_connections connections;
    struct http_workers workers;
    struct http_events events;
    struct http_route_counters *counters; /* route_count + 1 */
    uint64_t id_base;
    _Atomic uint64_t id_next;

    pthread_mutex_t lock;          /* guards what follows */
    pthread_cond_t change;         /* of active_count */
    pthread_cond_t tick;           /* of the watchdog */
    _Atomic uint64_t active_count; /* written under the lock */
    bool is_stopping;
    bool is_watchdog_stopping, has_watchdog;
    pthread_t watchdog;
};

enum http_stage {
    HTTP_STAGE_HEAD,
    HTTP_STAGE_BODY,  /* the route reads it */
    HTTP_STAGE_DRAIN, /* rejected: the rest is read and ignored before the answer is sent */
    HTTP_STAGE_WORK,  /* complete: the handler runs */
    HTTP_STAGE_SENT,
};

struct http_exchange {
    struct http_server *server;
    struct http_connection *connection;
    struct http_exchange *queue_next;
    enum http_stage stage;
    char id[20];
    const char *target_at; /* the library's copy of the target; only compared, never read */
    size_t target_size;
    char *target_text; /* owned copy */
    struct http_target target;
    char method[16]; /* as sent, truncated */
    bool is_counted; /* in active_count */
    bool is_local;   /* the client is on this machine */
    bool is_stream_open;
    const struct http_route *route; /* NULL: none */
    struct http_match match;
    char *values[HTTP_PATTERN_VALUES_MAX]; /* owned: the path's values */
    struct http_access access;
    void *state; /* of a stream */
    struct bytes body;
    uint64_t body_bytes, body_bytes_max, discarded_bytes;
    int64_t start_ns;
    struct http_response response;
};

/* http_exchange.c */
struct http_exchange *http_exchange_open(struct http_server *server, struct http_connection *connection,
                                         const char *target);
void http_exchange_close(struct http_exchange *exchange, bool was_complete);
/* Called by the library several times for each request; false: the connection is closed. Subtracts the consumed bytes
 * from *size. */
bool http_exchange_step(struct http_exchange *exchange, const char *method, const char *version, const char *data,
                        size_t *size);
/* Worker thread: runs the handler and hands the exchange back. */
void http_exchange_work(struct http_exchange *exchange);

/* True for libmicrohttpd before 0.9.77, which parses leniently: http_head.c then checks its buffer. */
bool http_library_is_lenient(void);
/* http_head.c: checks the head, finds the route, authorizes the request, opens the stream. False: the exchange is
 * answered, with is_closing if the connection can no longer be trusted. */
bool http_head_accept(struct http_exchange *exchange, const char *method, const char *version);

/* http_cors.c: true when pages of this origin (NULL: none was sent) may use the server; adds the answer's headers. */
bool http_cors_allow(struct http_exchange *exchange, const char *origin);
/* True: the request was a browser's preflight request, and is answered. */
bool http_cors_preflight(struct http_exchange *exchange, const char *method);

/* http_metrics.c */
void http_metrics_count(struct http_exchange *exchange, int64_t duration_ns);

/* http_events.c */
void http_events_init(struct http_events *events);
void http_events_destroy(struct http_events *events);
void http_events_heartbeat(struct http_server *server);
void http_events_close(struct http_events *events); /* ends every stream, also later ones */

#endif
