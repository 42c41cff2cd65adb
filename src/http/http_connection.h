/* SPDX-License-Identifier: Apache-2.0 */
/* The open connections of a server: their deadlines, and the one place where connections are suspended and resumed.
 * A connection is made and freed by its event thread; what other threads touch is guarded by the set's lock. */
#ifndef GPUFL_HTTP_HTTP_CONNECTION_H
#define GPUFL_HTTP_HTTP_CONNECTION_H

#include "http/http_parse.h"

#include <pthread.h>
#include <stdatomic.h>

struct MHD_Connection;

enum http_phase {
    HTTP_PHASE_HEAD, /* waiting for a complete head */
    HTTP_PHASE_BODY,
    HTTP_PHASE_ANSWER, /* ours: no deadline but that of silence */
};

struct http_connection {
    struct http_connections *set;
    struct http_connection *next, *previous;
    struct MHD_Connection *mhd;
    int fd;
    bool is_tls, is_loopback;
    char peer[HTTP_ADDRESS_TEXT_SIZE];
    _Atomic uint64_t body_bytes; /* of the body under way */
    /* Guarded by the set's lock. */
    enum http_phase phase;
    int64_t phase_start_ns;
    bool is_reused;        /* a request was answered before */
    bool has_request_line; /* of the head that is awaited */
    bool is_suspended;
    bool has_wake;     /* woken while it was not suspended */
    bool is_expired;   /* given up: nothing more is answered */
    bool is_work_done; /* of the worker that has its exchange */
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
    bool is_closing;  /* guarded: nothing may be suspended any more */
    _Atomic uint64_t open_count, total_count, timeout_count;
};

void http_connections_init(struct http_connections *set, const struct http_timeouts *timeouts);
void http_connections_destroy(struct http_connections *set);
/* NULL: no memory. */
struct http_connection *http_connection_open(struct http_connections *set, struct MHD_Connection *mhd, bool is_tls);
void http_connection_close(struct http_connection *connection);

/* False: its time was over, it is being closed. */
bool http_connection_enter(struct http_connection *connection, enum http_phase phase);
void http_connection_note_request_line(struct http_connection *connection);
bool http_connection_is_expired(struct http_connection *connection);

enum http_suspension { HTTP_SUSPENDED, HTTP_AWAKE, HTTP_CLOSING };
/* Event thread. HTTP_AWAKE: it was woken in the meantime and is not suspended. */
enum http_suspension http_connection_suspend(struct http_connection *connection);
void http_connection_wake(struct http_connection *connection); /* any thread */

/* The passing of an exchange to a worker and back: begin before, done as the worker's last deed with it. */
void http_connection_work_begin(struct http_connection *connection);
void http_connection_work_done(struct http_connection *connection);
bool http_connection_work_is_done(struct http_connection *connection);

/* Closes those whose time is over. */
void http_connections_expire(struct http_connections *set, int64_t now_ns);
/* Resumes every suspended one and allows no more suspension. */
void http_connections_release(struct http_connections *set);
/* Shuts down those that wait for a head, now and from now on. */
void http_connections_drop_idle(struct http_connections *set);

/* Any thread, while the connection is known to live: nothing more is sent or read. */
void http_connection_abandon(struct http_connection *connection);
/* Event thread: writes a whole answer (body: JSON) past the library, where it cannot answer any more, and shuts the
 * connection down. With TLS the connection is only shut down. */
void http_connection_refuse(struct http_connection *connection, int status, const char *body, size_t size);

#endif
