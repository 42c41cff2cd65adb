/* SPDX-License-Identifier: Apache-2.0 */
#include "http/http_server.h"

#include "base/clock.h"
#include "http/http_core.h"
#include "http/http_library.h"
#include "http/http_listener.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TICK_MS_MAX = 1000, TICK_MS_MIN = 5 };

static const char tls_priorities[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:%SERVER_PRECEDENCE";

static struct http_connection *connection_of(struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

static void on_connection(void *user, struct MHD_Connection *mhd, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct http_server *server = user;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        *context = http_connection_open(&server->connections, mhd, server->options.tls_cert != NULL);
    } else if (*context) {
        http_connection_close(*context);
        *context = NULL;
    }
}

static void *on_request_line(void *user, const char *target, struct MHD_Connection *mhd)
{
    struct http_connection *connection = connection_of(mhd);
    if (!connection || !target)
        return NULL;
    http_connection_note_request_line(connection);
    return http_exchange_open(user, connection, target);
}

static http_library_result on_request(void *user, struct MHD_Connection *mhd, const char *url, const char *method,
                                      const char *version, const char *data, size_t *size, void **context)
{
    (void)user, (void)mhd, (void)url;
    struct http_exchange *exchange = *context;
    return exchange && http_exchange_step(exchange, method, version, data, size) ? MHD_YES : MHD_NO;
}

static void on_completed(void *user, struct MHD_Connection *mhd, void **context, enum MHD_RequestTerminationCode code)
{
    (void)user;
    struct http_connection *connection = connection_of(mhd);
    if (*context)
        http_exchange_close(*context, code == MHD_REQUEST_TERMINATED_COMPLETED_OK);
    *context = NULL;
    if (connection)
        http_connection_enter(connection, HTTP_PHASE_HEAD);
}

/* http_target_parse decodes targets, from the text as sent. */
static size_t unescape_nothing(void *user, struct MHD_Connection *mhd, char *text)
{
    (void)user, (void)mhd;
    return strlen(text);
}

static void *watchdog_run(void *argument)
{
    struct http_server *server = argument;
    const struct http_server_options *options = &server->options;
    unsigned tick_ms =
        options->head_timeout_ms < options->idle_timeout_ms ? options->head_timeout_ms : options->idle_timeout_ms;
    tick_ms = (tick_ms < options->heartbeat_ms ? tick_ms : options->heartbeat_ms) / 4;
    tick_ms = tick_ms < TICK_MS_MIN ? TICK_MS_MIN : tick_ms > TICK_MS_MAX ? TICK_MS_MAX : tick_ms;
    int64_t heartbeat_ns = clock_mono_ns();
    pthread_mutex_lock(&server->lock);
    while (!server->is_watchdog_stopping) {
        const int64_t until_ns = clock_mono_ns() + (int64_t)tick_ms * 1000000;
        const struct timespec until = {.tv_sec = until_ns / 1000000000, .tv_nsec = until_ns % 1000000000};
        pthread_cond_timedwait(&server->tick, &server->lock, &until);
        pthread_mutex_unlock(&server->lock);
        const int64_t now_ns = clock_mono_ns();
        http_connections_expire(&server->connections, now_ns);
        if (now_ns - heartbeat_ns >= (int64_t)options->heartbeat_ms * 1000000) {
            http_events_heartbeat(server);
            heartbeat_ns = now_ns;
        }
        pthread_mutex_lock(&server->lock);
    }
    pthread_mutex_unlock(&server->lock);
    return NULL;
}

static void limit_default(unsigned *limit, unsigned value)
{
    if (!*limit)
        *limit = value;
}

static gpufl_status options_take(struct http_server *server, const struct http_server_options *options,
                                 struct problem *problem)
{
    struct http_server_options *own = &server->options;
    *own = *options;
    limit_default(&own->event_threads, 4);
    limit_default(&own->worker_threads, 8);
    limit_default(&own->queue_max, 1024);
    limit_default(&own->connections_max, 4096);
    limit_default(&own->head_timeout_ms, 10000);
    limit_default(&own->idle_timeout_ms, 60000);
    limit_default(&own->body_timeout_ms, 300000);
    limit_default(&own->body_rate_min, 1024);
    limit_default(&own->heartbeat_ms, 15000);
    limit_default(&own->events_bytes_max, 256 << 10);
    if (!own->body_bytes_max)
        own->body_bytes_max = 1 << 20;
    if (!own->listen || !own->tls_cert != !own->tls_key)
        return problem_set(problem, GPUFL_E_INVALID, "TLS needs a certificate and a key");
    for (size_t i = 0; i < own->route_count; i++) {
        const struct http_route *route = &own->routes[i];
        gpufl_status status = http_pattern_check(route->pattern, problem);
        if (status)
            return status;
        if (!route->handle == !route->stream || (route->scope && !own->authorize))
            return problem_set(problem, GPUFL_E_INVALID,
                               "route %s has no handler, or has a scope but no authorize callback", route->pattern);
    }
    return GPUFL_OK;
}

static gpufl_status parts_open(struct http_server *server, struct problem *problem)
{
    const struct http_server_options *options = &server->options;
    const struct http_timeouts timeouts = {
        .head_ns = (int64_t)options->head_timeout_ms * 1000000,
        .idle_ns = (int64_t)options->idle_timeout_ms * 1000000,
        .body_ns = (int64_t)options->body_timeout_ms * 1000000,
        .body_rate_min = options->body_rate_min,
    };
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&server->lock, NULL);
    pthread_cond_init(&server->change, &monotonic);
    pthread_cond_init(&server->tick, &monotonic);
    pthread_condattr_destroy(&monotonic);
    http_connections_init(&server->connections, &timeouts);
    http_events_init(&server->events);
    /* Unpredictable, so that an id identifies one request of one server. */
    if (getrandom(&server->id_base, sizeof server->id_base, 0) != sizeof server->id_base)
        server->id_base = (uint64_t)clock_wall_ns();
    server->counters = calloc(options->route_count + 1, sizeof *server->counters);
    if (!server->counters || !http_workers_start(&server->workers, options->worker_threads, options->queue_max))
        return problem_set(problem, GPUFL_E_NO_MEMORY, "no memory or threads for the server");
    return GPUFL_OK;
}

/* The library closes the socket in some of its failures but not in others. */
static void listener_close(int fd, const struct stat *opened)
{
    struct stat now;
    if (!fstat(fd, &now) && now.st_dev == opened->st_dev && now.st_ino == opened->st_ino)
        close(fd);
}

static gpufl_status daemon_start(struct http_server *server, struct problem *problem)
{
    const struct http_server_options *options = &server->options;
    struct bytes cert = {0}, key = {0};
    int fd = -1;
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME;
    struct MHD_OptionItem extra[4];
    unsigned extra_count = 0;
    gpufl_status status = GPUFL_OK;
    if (options->tls_cert) {
        status = http_pem_read(&cert, options->tls_cert, "certificate", problem);
        if (!status)
            status = http_pem_read(&key, options->tls_key, "key", problem);
        if (!status && MHD_is_feature_supported(MHD_FEATURE_TLS) != MHD_YES)
            status = problem_set(problem, GPUFL_E_UNSUPPORTED, "this build of libmicrohttpd has no TLS");
        if (status)
            goto end;
        flags |= MHD_USE_TLS;
        extra[extra_count++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_CERT, 0, cert.data};
        extra[extra_count++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_KEY, 0, key.data};
        extra[extra_count++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)tls_priorities};
    }
    extra[extra_count] = (struct MHD_OptionItem){MHD_OPTION_END, 0, NULL};
    status = http_listener_open(&fd, &server->address, options->listen, problem);
    if (status)
        goto end;
    struct stat opened = {0};
    fstat(fd, &opened);
    const unsigned idle_s = (options->idle_timeout_ms + 999) / 1000;
    server->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, on_request, server, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_THREAD_POOL_SIZE,
        options->event_threads, MHD_OPTION_CONNECTION_LIMIT, options->connections_max,
        MHD_OPTION_PER_IP_CONNECTION_LIMIT, options->connections_peer_max, MHD_OPTION_CONNECTION_TIMEOUT, idle_s,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HTTP_POOL_BYTES, MHD_OPTION_NOTIFY_CONNECTION, on_connection,
        server, MHD_OPTION_URI_LOG_CALLBACK, on_request_line, server, MHD_OPTION_NOTIFY_COMPLETED, on_completed, server,
        MHD_OPTION_UNESCAPE_CALLBACK, unescape_nothing, server, MHD_OPTION_STRICT_FOR_CLIENT,
        !http_library_is_lenient(), MHD_OPTION_ARRAY, extra, MHD_OPTION_END);
    if (!server->daemon) {
        listener_close(fd, &opened);
        status = problem_set(problem, options->tls_cert ? GPUFL_E_INVALID : GPUFL_E_IO,
                             options->tls_cert ? "the server did not start: certificate %.200s and key do not match"
                                               : "the server on %.200s did not start: too few threads or files",
                             options->tls_cert ? options->tls_cert : options->listen);
    }
end:
    bytes_free(&cert);
    if (key.data)
        explicit_bzero(key.data, key.size);
    bytes_free(&key);
    return status;
}

static void server_free(struct http_server *server)
{
    http_workers_destroy(&server->workers);
    http_events_destroy(&server->events);
    http_connections_destroy(&server->connections);
    pthread_cond_destroy(&server->tick);
    pthread_cond_destroy(&server->change);
    pthread_mutex_destroy(&server->lock);
    free(server->counters);
    free(server);
}

gpufl_status http_server_start(struct http_server **out, const struct http_server_options *options,
                               struct problem *problem)
{
    struct http_server *server = calloc(1, sizeof *server);
    if (!server)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "no memory for the server");
    gpufl_status status = options_take(server, options, problem);
    if (status) {
        free(server);
        return status;
    }
    status = parts_open(server, problem);
    if (!status)
        status = daemon_start(server, problem);
    if (!status) {
        server->has_watchdog = !pthread_create(&server->watchdog, NULL, watchdog_run, server);
        if (!server->has_watchdog)
            status = problem_set(problem, GPUFL_E_NO_MEMORY, "no thread for the server");
    }
    if (status && server->daemon)
        http_server_stop(server, 0);
    else if (status)
        server_free(server);
    else
        *out = server;
    return status;
}

static void requests_await(struct http_server *server, unsigned grace_ms)
{
    const int64_t until_ns = clock_mono_ns() + (int64_t)grace_ms * 1000000;
    const struct timespec until = {.tv_sec = until_ns / 1000000000, .tv_nsec = until_ns % 1000000000};
    pthread_mutex_lock(&server->lock);
    while (server->active_count && pthread_cond_timedwait(&server->change, &server->lock, &until) != ETIMEDOUT)
        ;
    pthread_mutex_unlock(&server->lock);
}

void http_server_stop(struct http_server *server, unsigned grace_ms)
{
    if (!server)
        return;
    pthread_mutex_lock(&server->lock);
    server->is_stopping = true;
    pthread_mutex_unlock(&server->lock);
    int fd = MHD_quiesce_daemon(server->daemon);
    http_events_close(&server->events);
    http_connections_drop_idle(&server->connections);
    requests_await(server, grace_ms);
    if (server->has_watchdog) {
        pthread_mutex_lock(&server->lock);
        server->is_watchdog_stopping = true;
        pthread_cond_broadcast(&server->tick);
        pthread_mutex_unlock(&server->lock);
        pthread_join(server->watchdog, NULL);
    }
    /* Handlers cannot be interrupted: wait for the last ones, then prevent further suspension. */
    http_workers_stop(&server->workers);
    http_connections_release(&server->connections);
    MHD_stop_daemon(server->daemon);
    if (fd >= 0)
        close(fd);
    server_free(server);
}

uint16_t http_server_port(const struct http_server *server)
{
    const struct sockaddr_storage *address = &server->address.storage;
    return ntohs(address->ss_family == AF_INET ? ((const struct sockaddr_in *)address)->sin_port
                                               : ((const struct sockaddr_in6 *)address)->sin6_port);
}

bool http_server_is_loopback(const struct http_server *server)
{
    return http_address_is_loopback((const struct sockaddr *)&server->address.storage);
}
