/* SPDX-License-Identifier: Apache-2.0 */
/* The open connections of a server, with their deadlines. Connections are suspended and resumed only here. The event
 * thread creates and frees a connection; fields that other threads use are guarded by the set's lock. */
#ifndef GPUFL_HTTP_HTTP_CONNECTION_H
#define GPUFL_HTTP_HTTP_CONNECTION_H

#include "http/http_parse.h"

#include <pthread.h>
#include <stdatomic.h>

struct MHD_Connection;

enum http_phase {
    HTTP_PHASE_HEAD, /* waiting for a complete head */
    HTTP_PHASE_BODY,
    HTTP_PHASE_ANSWER, /* the server's turn: the only deadline is for a client that does not read */
};

struct http_connection {
    struct http_connections *set;
    struct http_connection *next, *previous;
    struct MHD_Connection *mhd;
    int fd;
    bool is_tls, is_loopback;
    char peer[HTTP_ADDRESS_TEXT_SIZE];
    _Atomic uint64_t body_bytes; /* of the current body */
    /* Guarded by the set's lock. */
    enum http_phase phase;
    int64_t phase_start_ns;
    bool is_reused;        /* it has answered a request before */
    bool has_request_line; /* of the expected head */
    bool is_suspended;
    bool has_wake;     /* woken while it was not suspended */
    bool is_expired;   /* its deadline has passed: no further answers */
    bool is_work_done; /* the worker has finished with its exchange */
};

struct http_timeouts {
    int64_t head_ns, idle_ns, body_ns;
    uint64_t body_rate_min; /* bytes per second, after head_ns */
};

struct http_connections {
    pthread_mutex_t lock;
    struct http_connection *first;
    struct http_timeouts timeouts;
    bool is_draining; /* guarded: no connection waits for another request */
    bool is_closing;  /* guarded: no further suspension */
    _Atomic uint64_t open_count, total_count, timeout_count;
};

void http_connections_init(struct http_connections *set, const struct http_timeouts *timeouts);
void http_connections_destroy(struct http_connections *set);
/* NULL: no memory. */
struct http_connection *http_connection_open(struct http_connections *set, struct MHD_Connection *mhd, bool is_tls);
void http_connection_close(struct http_connection *connection);

/* False: its deadline has passed; it is being closed. */
bool http_connection_enter(struct http_connection *connection, enum http_phase phase);
void http_connection_note_request_line(struct http_connection *connection);
bool http_connection_is_expired(struct http_connection *connection);

enum http_suspension { HTTP_SUSPENDED, HTTP_AWAKE, HTTP_CLOSING };
/* Event thread. HTTP_AWAKE: it was woken meanwhile and is not suspended. */
enum http_suspension http_connection_suspend(struct http_connection *connection);
void http_connection_wake(struct http_connection *connection); /* any thread */

/* Hands an exchange to a worker and back: call begin before, done when the worker no longer uses it. */
void http_connection_work_begin(struct http_connection *connection);
void http_connection_work_done(struct http_connection *connection);
bool http_connection_work_is_done(struct http_connection *connection);

/* Closes connections whose deadline has passed. */
void http_connections_expire(struct http_connections *set, int64_t now_ns);
/* Resumes all suspended connections and prevents further suspension. */
void http_connections_release(struct http_connections *set);
/* Shuts down connections that wait for a head, now and from now on. */
void http_connections_drop_idle(struct http_connections *set);

/* Thread-safe while the connection exists: nothing more is sent or read. */
void http_connection_abandon(struct http_connection *connection);
/* Event thread: writes a complete answer (body: JSON) directly to the socket, for when the library can no longer
 * answer, and shuts the connection down. With TLS it only shuts the connection down. */
void http_connection_refuse(struct http_connection *connection, int status, const char *body, size_t size);

#endif
