/* SPDX-License-Identifier: Apache-2.0 */
#include "server/server.h"

#include "analysis/message.h"
#include "base/clock.h"
#include "base/directory.h"
#include "base/key_file.h"
#include "http/http_exchange.h"
#include "http/http_parse.h"
#include "server/admin.h"
#include "server/dashboard.h"
#include "server/key_journal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    STOP_GRACE_MS = 10000,
    KEYS_EVERY_S = 1,
    KEY_USE_EVERY_S = 60, /* also writes refused keys */
    KEY_BYTES_EVERY_S = 10,
    RETENTION_EVERY_S = 300,
    STUCK_S = 30,
    EVENT_THREADS = 4,
    WORKER_THREADS = 64 /* most of them wait for a commit that many share */
};
#define WRITE_BYTES_MAX ((uint64_t)256 << 20)
#define QUEUE_BYTES_MAX ((uint64_t)512 << 20)

static const char *log_command = "serve";

void server_log_as(const char *command)
{
    log_command = command;
}

void server_log(const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?'; /* requests must not write control characters to the terminal */
    message_print(stderr, "gpufl %s: %s", log_command, text);
}

static void log_request(void *user, const struct http_log_line *line)
{
    const struct server *server = user;
    if (server->config->is_verbose || line->status >= 500)
        server_log("%s %s%s%s %.*s %d, %" PRIu64 " bytes in, %" PRIu64 " out, %.1f ms, %s", line->peer, line->principal,
                   line->principal[0] ? " " : "", line->method, (int)line->path_size, line->path, line->status,
                   line->bytes_in, line->bytes_out, (double)line->duration_ns / 1e6, line->request_id);
}

static void authorize(void *user, const struct http_credentials *credentials, struct http_access *access)
{
    struct server *server = user;
    key_ring_authorize(server->keys, atomic_load(&server->is_key_needed), credentials, access);
}

static const char *actor_name(const struct http_exchange *exchange)
{
    return key_entry_name(http_exchange_principal(exchange));
}

static gpufl_status keys_load(struct server *server, struct problem *problem)
{
    size_t active;
    gpufl_status status = key_ring_load(server->keys, server->store, problem);
    if (!status)
        atomic_store(&server->is_key_needed, !server->is_loopback || key_ring_count(server->keys, &active) > 0);
    return status;
}

static void refusals_audit(struct server *server)
{
    struct problem problem = {""};
    if (key_journal_audit(server->keys, server->store, &problem))
        server_log("cannot write the audit log: %s", problem.text);
}

static void key_bytes_save(struct server *server)
{
    struct problem problem = {""};
    if (key_journal_save(server->keys, server->config->data, &server->key_bytes_saved, &problem))
        server_log("cannot save today's usage of keys: %s", problem.text);
}

static void control_request(void *user, const char *request, size_t size, struct bytes *answer)
{
    struct server *server = user;
    struct problem problem = {""};
    refusals_audit(server); /* so that the log is complete for this request */
    if (admin_execute(server->store, request, size, answer) && keys_load(server, &problem))
        server_log("cannot read the keys: %s", problem.text);
}

static void retain(struct server *server)
{
    const struct server_config *config = server->config;
    struct problem problem = {""};
    struct store_retained retained = {0};
    const struct store_retention policy = {.age_ns = config->retention_days * 86400 * 1000000000,
                                           .bytes_max = (uint64_t)config->retention_bytes,
                                           .now_ns = clock_wall_ns()};
    if (store_retain(server->store, &policy, &retained, &problem))
        server_log("retention: %s", problem.text);
    atomic_fetch_add(&server->sessions_retired, retained.sessions_deleted);
    atomic_fetch_add(&server->bytes_retired, retained.bytes_deleted);
}

/* Reports why commits fail: the log lines of failed requests lack the reason. */
static void commit_trouble_log(struct server *server)
{
    struct problem problem = {""};
    bool is_trouble = store_commit_state(server->store, &problem) != GPUFL_OK;
    if (is_trouble && !server->is_commit_trouble_logged)
        server_log("commits fail: %s", problem.text);
    else if (!is_trouble && server->is_commit_trouble_logged)
        server_log("commits succeed again");
    server->is_commit_trouble_logged = is_trouble;
}

static void *upkeep_run(void *user)
{
    struct server *server = user;
    for (uint64_t second = 1;; second++) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += KEYS_EVERY_S;
        pthread_mutex_lock(&server->upkeep_lock);
        while (!server->is_stopping && !pthread_cond_timedwait(&server->upkeep_wake, &server->upkeep_lock, &until))
            continue;
        bool is_stopping = server->is_stopping;
        pthread_mutex_unlock(&server->upkeep_lock);
        if (is_stopping)
            return NULL;
        struct problem problem = {""};
        if (keys_load(server, &problem) && second % KEY_USE_EVERY_S == 1)
            server_log("cannot read the keys: %s", problem.text);
        commit_trouble_log(server);
        if (second % KEY_USE_EVERY_S == 0) {
            key_ring_save_use(server->keys, server->store);
            refusals_audit(server);
        }
        if (second % KEY_BYTES_EVERY_S == 0)
            key_bytes_save(server);
        if (second % RETENTION_EVERY_S == 1)
            retain(server);
    }
}

static gpufl_status upkeep_start(struct server *server, struct problem *problem)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&server->upkeep_lock, NULL);
    pthread_cond_init(&server->upkeep_wake, &attributes);
    pthread_condattr_destroy(&attributes);
    int error = pthread_create(&server->upkeep_thread, NULL, upkeep_run, server);
    server->has_upkeep = !error;
    return error ? problem_set(problem, GPUFL_E_IO, "cannot start a thread: %s", strerror(error)) : GPUFL_OK;
}

static void upkeep_stop(struct server *server)
{
    if (!server->has_upkeep)
        return;
    pthread_mutex_lock(&server->upkeep_lock);
    server->is_stopping = true;
    pthread_cond_signal(&server->upkeep_wake);
    pthread_mutex_unlock(&server->upkeep_lock);
    pthread_join(server->upkeep_thread, NULL);
    pthread_cond_destroy(&server->upkeep_wake);
    pthread_mutex_destroy(&server->upkeep_lock);
    server->has_upkeep = false;
}

/* Adds keys from outside the store, and checks that a server reachable from other machines has a key. */
static gpufl_status keys_open(struct server *server, struct problem *problem)
{
    const struct server_config *config = server->config;
    const char *variable = getenv("GPUFL_SERVE_ADMIN_KEY");
    char text[KEY_FILE_BYTES_MAX];
    struct http_address address;
    gpufl_status status = http_address_parse(&address, config->listen, problem);
    if (!status)
        status = key_ring_open(&server->keys, &config->limits);
    if (!status && config->admin_key_file) {
        status = key_file_read(config->admin_key_file, text, sizeof text, problem);
        if (!status)
            status = key_ring_add(server->keys, text, strlen(text), KEY_SCOPE_ADMIN, "admin key file", problem);
        explicit_bzero(text, sizeof text);
    }
    if (!status && variable && *variable && !config->is_view)
        status =
            key_ring_add(server->keys, variable, strlen(variable), KEY_SCOPE_ADMIN, "GPUFL_SERVE_ADMIN_KEY", problem);
    if (status)
        return status;
    server->is_loopback = http_address_is_loopback((const struct sockaddr *)&address.storage);
    status = keys_load(server, problem);
    if (!status && key_journal_load(server->keys, config->data, problem))
        server_log("today's quotas start again from zero: %s", problem->text);
    size_t active = 0;
    if (!status && !server->is_loopback && (!key_ring_count(server->keys, &active) || !active))
        status = problem_set(problem, GPUFL_E_PERMISSION,
                             "%.100s can be reached from other machines, and there is no API key\n"
                             "  create one first: gpufl serve keys create --scope admin --data %.200s\n"
                             "  or accept connections from this machine only: --listen " SERVER_LISTEN_DEFAULT,
                             config->listen, config->data);
    return status;
}

static gpufl_status routes_make(struct server *server, struct problem *problem)
{
    const struct api_table tables[] = {health_table(), ingest_table(), about_table(), query_table()};
    enum { TABLE_COUNT = sizeof tables / sizeof *tables };
    size_t count;
    const struct http_route *pages = dashboard_routes(&count);
    size_t page_count = count;
    for (size_t i = 0; i < TABLE_COUNT; i++)
        count += tables[i].count;
    server->routes = calloc(count, sizeof *server->routes);
    if (!server->routes)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "no memory for the routes");
    for (size_t i = 0; i < TABLE_COUNT; i++)
        for (size_t j = 0; j < tables[i].count; j++)
            if (!server->config->is_view || tables[i].routes[j].http.method == HTTP_GET)
                server->routes[server->route_count++] = tables[i].routes[j].http;
    memcpy(server->routes + server->route_count, pages, page_count * sizeof *pages);
    server->route_count += page_count;
    return GPUFL_OK;
}

static gpufl_status http_open(struct server *server, struct problem *problem)
{
    const struct server_config *config = server->config;
    const struct http_server_options options = {
        .listen = config->listen,
        .tls_cert = config->tls_cert,
        .tls_key = config->tls_key,
        .routes = server->routes,
        .route_count = server->route_count,
        .user = server,
        .authorize = authorize,
        .log = log_request,
        .allowed_hosts = config->allow_hosts[0] ? config->allow_hosts : NULL,
        .cors_origins = config->cors_origins[0] ? config->cors_origins : NULL,
        .event_threads = EVENT_THREADS,
        .worker_threads = WORKER_THREADS,
        .connections_max = (unsigned)config->connections_max,
        .connections_peer_max = (unsigned)config->connections_peer_max,
        .head_timeout_ms = (unsigned)config->head_timeout_ms,
        .idle_timeout_ms = (unsigned)config->idle_timeout_ms,
        .body_timeout_ms = (unsigned)config->body_timeout_ms,
    };
    struct http_server *http = NULL;
    gpufl_status status = http_server_start(&http, &options, problem);
    atomic_store(&server->http, http);
    return status;
}

static gpufl_status query_start(struct server *server, struct problem *problem)
{
    const struct query_options options = {.cache_bytes = (uint64_t)server->config->cache_bytes};
    gpufl_status status = query_open(&server->query, server->store, &options, problem);
    if (status)
        return status;
    server->tables[0] = health_table();
    server->tables[1] = ingest_table();
    server->tables[2] = about_table();
    server->query.live = server->live;
    server->query.other_tables = server->tables;
    server->query.other_table_count = sizeof server->tables / sizeof *server->tables;
    server->query.actor = actor_name;
    return GPUFL_OK;
}

gpufl_status server_start(struct server *server, const struct server_config *config, struct problem *problem)
{
    memset(server, 0, sizeof *server);
    server->config = config;
    server->ingest.quarantine.dir_fd = -1;
    server->started_mono_ns = clock_mono_ns();
    const struct store_options options = {.write_bytes_max = WRITE_BYTES_MAX, .queue_bytes_max = QUEUE_BYTES_MAX};
    gpufl_status status = directory_make(config->data, problem);
    if (!status)
        status = store_open(&server->store, config->store[0] ? config->store : config->data, &options, problem);
    if (!status)
        status = keys_open(server, problem);
    if (!status && live_open(&server->live))
        status = problem_set(problem, GPUFL_E_NO_MEMORY, "no memory for live updates");
    if (!status)
        status = query_start(server, problem);
    if (!status)
        status = ingest_open(&server->ingest, server->store, server->live, config->data, NULL, problem);
    if (!status)
        status = routes_make(server, problem);
    if (!status)
        status = http_open(server, problem);
    if (!status) {
        live_attach(server->live, server->http);
        if (!config->is_view)
            status = control_start(&server->control, config->data, control_request, server, problem);
    }
    if (!status)
        status = upkeep_start(server, problem);
    if (status)
        server_stop(server);
    return status;
}

void server_stop(struct server *server)
{
    upkeep_stop(server);
    control_stop(server->control);
    if (server->live)
        live_attach(server->live, NULL);
    http_server_stop(server->http, STOP_GRACE_MS);
    ingest_close(&server->ingest);
    query_close(&server->query);
    live_close(server->live);
    if (server->keys && server->store) {
        key_ring_save_use(server->keys, server->store);
        refusals_audit(server);
        key_bytes_save(server);
    }
    key_ring_close(server->keys);
    store_close(server->store);
    free(server->routes);
    memset(server, 0, sizeof *server);
    server->ingest.quarantine.dir_fd = -1;
}

void server_tick(struct server *server)
{
    live_tick(server->live);
}

static void health_fail(struct server_health *health, const char *reason, const char *detail)
{
    health->is_good = false;
    snprintf(health->reason, sizeof health->reason, "%s%.500s", reason, detail);
}

void server_health_read(struct server *server, struct server_health *health)
{
    struct problem problem = {""};
    *health = (struct server_health){.is_good = true, .last_commit_age_ns = CELL_UNKNOWN};
    health->uptime_s = (clock_mono_ns() - server->started_mono_ns) / 1000000000;
    health->stats.last_commit_ns = CELL_UNKNOWN;
    if (store_stats(server->store, &health->stats, &problem)) {
        health_fail(health, "the store cannot be read", "");
        return;
    }
    if (health->stats.last_commit_ns != CELL_UNKNOWN)
        health->last_commit_age_ns = clock_wall_ns() - health->stats.last_commit_ns;
    if (health->stats.queue_writes && health->last_commit_age_ns != CELL_UNKNOWN &&
        health->last_commit_age_ns > (int64_t)STUCK_S * 1000000000)
        health_fail(health, "writes are waiting and none is committed", "");
    /* Only a successful write can end this state, so requests are still served. The server is not restarted either: on
     * a full disk it might not start. */
    health->is_serving = health->is_good;
    if (health->is_good && store_commit_state(server->store, &problem))
        health_fail(health, "the latest commit failed: ", problem.text);
}
