/* SPDX-License-Identifier: Apache-2.0 */
#include "http/http_connection.h"

#include "base/clock.h"
#include "http/http_response.h"

#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void http_connections_init(struct http_connections *set, const struct http_timeouts *timeouts)
{
    set->timeouts = *timeouts;
    pthread_mutex_init(&set->lock, NULL);
}

void http_connections_destroy(struct http_connections *set)
{
    pthread_mutex_destroy(&set->lock);
}

struct http_connection *http_connection_open(struct http_connections *set, struct MHD_Connection *mhd, bool is_tls)
{
    /* Both answers may be in the same memory, as in libmicrohttpd 1.0: the first is read before the second is asked. */
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
    const int fd = info ? info->connect_fd : -1;
    info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    struct http_connection *connection = fd >= 0 && info ? calloc(1, sizeof *connection) : NULL;
    if (!connection)
        return NULL;
    connection->set = set;
    connection->mhd = mhd;
    connection->fd = fd;
    connection->is_tls = is_tls;
    connection->is_loopback = http_address_is_loopback(info->client_addr);
    http_address_write(info->client_addr, connection->peer);
    connection->phase_start_ns = clock_mono_ns();
    atomic_fetch_add_explicit(&set->open_count, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&set->total_count, 1, memory_order_relaxed);
    pthread_mutex_lock(&set->lock);
    connection->next = set->first;
    if (set->first)
        set->first->previous = connection;
    set->first = connection;
    pthread_mutex_unlock(&set->lock);
    return connection;
}

void http_connection_close(struct http_connection *connection)
{
    struct http_connections *set = connection->set;
    pthread_mutex_lock(&set->lock);
    if (connection->previous)
        connection->previous->next = connection->next;
    else
        set->first = connection->next;
    if (connection->next)
        connection->next->previous = connection->previous;
    pthread_mutex_unlock(&set->lock);
    atomic_fetch_sub_explicit(&set->open_count, 1, memory_order_relaxed);
    free(connection);
}

bool http_connection_enter(struct http_connection *connection, enum http_phase phase)
{
    pthread_mutex_lock(&connection->set->lock);
    bool is_open = !connection->is_expired;
    connection->phase = phase;
    connection->phase_start_ns = clock_mono_ns();
    if (phase == HTTP_PHASE_HEAD) {
        connection->is_reused = true;
        connection->has_request_line = false;
        if (connection->set->is_draining)
            shutdown(connection->fd, SHUT_RD);
    }
    atomic_store_explicit(&connection->body_bytes, 0, memory_order_relaxed);
    pthread_mutex_unlock(&connection->set->lock);
    return is_open;
}

void http_connection_note_request_line(struct http_connection *connection)
{
    pthread_mutex_lock(&connection->set->lock);
    connection->has_request_line = true;
    pthread_mutex_unlock(&connection->set->lock);
}

bool http_connection_is_expired(struct http_connection *connection)
{
    pthread_mutex_lock(&connection->set->lock);
    bool is_expired = connection->is_expired;
    pthread_mutex_unlock(&connection->set->lock);
    return is_expired;
}

enum http_suspension http_connection_suspend(struct http_connection *connection)
{
    struct http_connections *set = connection->set;
    enum http_suspension result = HTTP_SUSPENDED;
    pthread_mutex_lock(&set->lock);
    if (set->is_closing) {
        result = HTTP_CLOSING;
    } else if (connection->has_wake) {
        connection->has_wake = false;
        result = HTTP_AWAKE;
    } else {
        connection->is_suspended = true;
        MHD_suspend_connection(connection->mhd);
    }
    pthread_mutex_unlock(&set->lock);
    return result;
}

static void connection_resume(struct http_connection *connection)
{
    connection->is_suspended = false;
    if (connection->phase == HTTP_PHASE_BODY) {
        /* The consumer's time does not count against the client. */
        connection->phase_start_ns = clock_mono_ns();
        atomic_store_explicit(&connection->body_bytes, 0, memory_order_relaxed);
    }
    MHD_resume_connection(connection->mhd);
}

static void connection_wake(struct http_connection *connection)
{
    if (connection->is_suspended)
        connection_resume(connection);
    else
        connection->has_wake = true;
}

void http_connection_wake(struct http_connection *connection)
{
    pthread_mutex_lock(&connection->set->lock);
    connection_wake(connection);
    pthread_mutex_unlock(&connection->set->lock);
}

void http_connection_work_begin(struct http_connection *connection)
{
    pthread_mutex_lock(&connection->set->lock);
    connection->has_wake = connection->is_work_done = false;
    pthread_mutex_unlock(&connection->set->lock);
}

void http_connection_work_done(struct http_connection *connection)
{
    struct http_connections *set = connection->set;
    pthread_mutex_lock(&set->lock);
    connection->is_work_done = true;
    connection_wake(connection);
    pthread_mutex_unlock(&set->lock); /* the connection may be freed from here on */
}

bool http_connection_work_is_done(struct http_connection *connection)
{
    pthread_mutex_lock(&connection->set->lock);
    bool is_done = connection->is_work_done;
    pthread_mutex_unlock(&connection->set->lock);
    return is_done;
}

void http_connection_abandon(struct http_connection *connection)
{
    shutdown(connection->fd, SHUT_RDWR);
}

/* Requires the set's lock: only one answer is sent. */
static void connection_refuse(struct http_connection *connection, int status, const char *body, size_t size)
{
    char text[2048];
    if (!connection->is_tls) {
        int used = snprintf(text, sizeof text,
                            "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n"
                            "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
                            "%.*s",
                            status, http_status_phrase(status), size, (int)size, body);
        /* The client may not be reading: what the socket does not accept at once is not sent. */
        if (used > 0 && (size_t)used < sizeof text)
            (void)!send(connection->fd, text, (size_t)used, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    http_connection_abandon(connection);
    connection->is_expired = true;
}

void http_connection_refuse(struct http_connection *connection, int status, const char *body, size_t size)
{
    pthread_mutex_lock(&connection->set->lock);
    if (!connection->is_expired)
        connection_refuse(connection, status, body, size);
    pthread_mutex_unlock(&connection->set->lock);
}

/* Why the connection's deadline has passed; NULL if it has not. */
static const char *lateness(const struct http_connection *connection, int64_t now_ns)
{
    const struct http_timeouts *timeouts = &connection->set->timeouts;
    const int64_t age_ns = now_ns - connection->phase_start_ns;
    if (connection->phase == HTTP_PHASE_HEAD)
        return age_ns <= (connection->is_reused ? timeouts->idle_ns : timeouts->head_ns)
                   ? NULL
                   : "the request's head did not arrive in time";
    /* A body that waits for its consumer is not the client's fault. */
    if (connection->phase != HTTP_PHASE_BODY || connection->is_suspended)
        return NULL;
    const uint64_t bytes = atomic_load_explicit(&connection->body_bytes, memory_order_relaxed);
    const double rate = (double)bytes / ((double)age_ns / 1e9);
    if (age_ns > timeouts->body_ns)
        return "the request's body did not arrive in time";
    if (age_ns > timeouts->head_ns && rate < (double)timeouts->body_rate_min)
        return "the request's body arrives too slowly";
    return NULL;
}

static void timeout_refuse(struct http_connection *connection, const char *why)
{
    char body[256];
    int size = snprintf(body, sizeof body, "{\"error\":{\"code\":\"request_timeout\",\"message\":\"%s\"}}\n", why);
    connection_refuse(connection, 408, body, (size_t)size);
}

void http_connections_expire(struct http_connections *set, int64_t now_ns)
{
    pthread_mutex_lock(&set->lock);
    for (struct http_connection *at = set->first; at; at = at->next) {
        const char *why = at->is_expired ? NULL : lateness(at, now_ns);
        if (!why)
            continue;
        at->is_expired = true;
        atomic_fetch_add_explicit(&set->timeout_count, 1, memory_order_relaxed);
        /* An idle connection between requests is closed without an answer. */
        if (at->phase == HTTP_PHASE_HEAD && at->is_reused && !at->has_request_line)
            http_connection_abandon(at);
        else
            timeout_refuse(at, why);
    }
    pthread_mutex_unlock(&set->lock);
}

void http_connections_release(struct http_connections *set)
{
    pthread_mutex_lock(&set->lock);
    set->is_closing = true;
    for (struct http_connection *at = set->first; at; at = at->next)
        if (at->is_suspended)
            connection_resume(at);
    pthread_mutex_unlock(&set->lock);
}

void http_connections_drop_idle(struct http_connections *set)
{
    pthread_mutex_lock(&set->lock);
    set->is_draining = true;
    for (struct http_connection *at = set->first; at; at = at->next)
        if (at->phase == HTTP_PHASE_HEAD)
            shutdown(at->fd, SHUT_RD);
    pthread_mutex_unlock(&set->lock);
}
