/* SPDX-License-Identifier: Apache-2.0 */
/* The server's state, for service managers, load balancers and Prometheus. */
#include "server/server.h"

#include "base/exposition.h"
#include "format/json.h"
#include "http/http_exchange.h"

#include <stdio.h>

static void respond_health(struct http_exchange *exchange, const struct server_health *health)
{
    const struct store_stats *stats = &health->stats;
    struct bytes out = {0};
    bytes_append_char(&out, '{');
    json_key(&out, "status");
    json_text(&out, health->is_good ? "ok" : "failing");
    json_key(&out, "reason");
    json_text(&out, health->is_good ? NULL : health->reason);
    json_key(&out, "uptime_s");
    json_int(&out, health->uptime_s);
    json_key(&out, "last_commit_age_ms");
    if (health->last_commit_age_ns == CELL_UNKNOWN)
        json_text(&out, NULL);
    else
        json_int(&out, health->last_commit_age_ns / 1000000);
    const struct {
        const char *name;
        uint64_t value;
    } numbers[] = {{"queue_writes", stats->queue_writes},
                   {"queue_bytes", stats->queue_bytes},
                   {"commits", stats->commits},
                   {"failed_commits", stats->failed_commits}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        json_key(&out, numbers[i].name);
        json_uint(&out, numbers[i].value);
    }
    json_key(&out, "store");
    json_text(&out, stats->engine);
    bytes_append_text(&out, "}\n");
    http_respond_bytes(exchange, health->is_good ? 200 : 503, "application/json", &out);
}

static void healthz(struct http_exchange *exchange, void *user)
{
    struct server_health health;
    server_health_read(user, &health);
    respond_health(exchange, &health);
}

static void readyz(struct http_exchange *exchange, void *user)
{
    struct server_health health;
    server_health_read(user, &health);
    if (health.is_serving)
        http_respond_constant(exchange, 200, "application/json", NULL, "{\"ready\":true}\n", 15);
    else
        http_respond_error(exchange, 503, "not_ready", "%s", health.reason);
}

struct labelled {
    const char *label;
    uint64_t value;
};

static void counters(struct exposition *page, const char *name, const char *help, const char *label,
                     const struct labelled *values, size_t count)
{
    exposition_family(page, name, EXPOSITION_COUNTER, help);
    for (size_t i = 0; i < count; i++) {
        struct bytes labels = {0};
        exposition_label(&labels, label, values[i].label);
        exposition_sample_uint(page, bytes_text(&labels), values[i].value);
        bytes_free(&labels);
    }
}
#define COUNTERS(page, name, help, label, ...)                                \
    counters(page, name, help, label, (const struct labelled[]){__VA_ARGS__}, \
             sizeof((const struct labelled[]){__VA_ARGS__}) / sizeof(struct labelled))

static void single(struct exposition *page, const char *name, enum exposition_kind kind, const char *help, double value)
{
    exposition_family(page, name, kind, help);
    exposition_sample(page, "", value);
}

static void ingest_write(struct exposition *page, struct server *server)
{
    struct ingest_counters *counts = &server->ingest.counters;
    uint64_t repeated = atomic_load(&counts->bodies_repeated), lines_repeated = atomic_load(&counts->lines_repeated);
    COUNTERS(page, "gpufl_ingest_bodies_total", "Request bodies by result.", "result",
             {"kept", atomic_load(&counts->bodies) - repeated}, {"repeated", repeated},
             {"refused", atomic_load(&counts->bodies_refused)});
    COUNTERS(page, "gpufl_ingest_lines_total", "Lines of bodies by result.", "result",
             {"kept", atomic_load(&counts->lines) - lines_repeated}, {"repeated", lines_repeated},
             {"rejected", atomic_load(&counts->lines_rejected)});
    COUNTERS(page, "gpufl_ingest_bytes_total", "Bytes of bodies, as sent and decoded.", "form",
             {"sent", atomic_load(&counts->bytes_sent)}, {"decoded", atomic_load(&counts->bytes_plain)});
    single(page, "gpufl_ingest_rows_total", EXPOSITION_COUNTER, "Rows of batches that were stored.",
           (double)atomic_load(&counts->rows));
    single(page, "gpufl_ingest_flight_bytes", EXPOSITION_GAUGE, "Decoded bytes of bodies that are being received.",
           (double)atomic_load(&server->ingest.flight_bytes));
    single(page, "gpufl_quarantine_files_total", EXPOSITION_COUNTER, "Bodies and lines put into quarantine.",
           (double)server->ingest.quarantine.files_added);
    struct key_counts keys;
    key_ring_counts(server->keys, &keys);
    COUNTERS(page, "gpufl_authorizations_total", "Requests by result of the authorization.", "result",
             {"allowed", keys.allowed}, {"unauthorized", keys.unauthorized}, {"forbidden", keys.forbidden},
             {"limited", keys.limited});
}

static void store_write_page(struct exposition *page, struct server *server)
{
    struct server_health health;
    server_health_read(server, &health);
    const struct store_stats *stats = &health.stats;
    const struct {
        const char *name, *help;
        enum exposition_kind kind;
        uint64_t value;
    } values[] = {
        {"gpufl_store_bytes", "Size of the store, with its write-ahead log.", EXPOSITION_GAUGE,
         stats->bytes + stats->log_bytes},
        {"gpufl_store_free_bytes", "Free space inside the store that will be reused.", EXPOSITION_GAUGE,
         stats->free_bytes},
        {"gpufl_store_sessions", "Sessions in the store.", EXPOSITION_GAUGE, stats->sessions},
        {"gpufl_store_rows", "Rows in the store.", EXPOSITION_GAUGE, stats->rows},
        {"gpufl_store_segments", "Segments in the store.", EXPOSITION_GAUGE, stats->segments},
        {"gpufl_store_queue_writes", "Writes waiting for their commit.", EXPOSITION_GAUGE, stats->queue_writes},
        {"gpufl_store_queue_bytes", "Memory of writes waiting for their commit.", EXPOSITION_GAUGE, stats->queue_bytes},
        {"gpufl_store_commits_total", "Commits since the start.", EXPOSITION_COUNTER, stats->commits},
        {"gpufl_store_failed_commits_total", "Commits that failed since the start.", EXPOSITION_COUNTER,
         stats->failed_commits},
        {"gpufl_store_compactions_total", "Compactions since the start.", EXPOSITION_COUNTER, stats->compactions},
        {"gpufl_retired_sessions_total", "Sessions deleted by retention since the start.", EXPOSITION_COUNTER,
         atomic_load(&server->sessions_retired)},
        {"gpufl_retired_bytes_total", "Bytes deleted by retention since the start.", EXPOSITION_COUNTER,
         atomic_load(&server->bytes_retired)},
    };
    single(page, "gpufl_server_uptime_seconds", EXPOSITION_GAUGE, "Time since the server started.",
           (double)health.uptime_s);
    single(page, "gpufl_server_healthy", EXPOSITION_GAUGE, "1 when /healthz reports ok.", health.is_good);
    for (size_t i = 0; i < sizeof values / sizeof *values && health.stats.engine; i++)
        single(page, values[i].name, values[i].kind, values[i].help, (double)values[i].value);
    if (health.last_commit_age_ns != CELL_UNKNOWN)
        single(page, "gpufl_store_last_commit_age_seconds", EXPOSITION_GAUGE, "Time since the last commit.",
               (double)health.last_commit_age_ns / 1e9);
    struct query_metrics query;
    query_metrics_read(&server->query, &query);
    single(page, "gpufl_query_cache_bytes", EXPOSITION_GAUGE, "Memory of sessions kept loaded.", (double)query.bytes);
    COUNTERS(page, "gpufl_query_cache_requests_total", "Requests for sessions, by where they were found.", "result",
             {"hit", query.hits}, {"load", query.loads});
}

static const char *const method_names[HTTP_METHOD_COUNT] = {"GET", "POST", "PUT", "PATCH", "DELETE"};

static void route_labels(const struct server *server, size_t index, struct bytes *labels)
{
    bool is_route = index < server->route_count;
    bytes_clear(labels);
    exposition_label(labels, "method", is_route ? method_names[server->routes[index].method] : "");
    exposition_label(labels, "route", is_route ? server->routes[index].pattern : "");
}

static void http_write(struct exposition *page, struct server *server)
{
    const struct http_server *http = atomic_load(&server->http);
    struct http_metrics metrics;
    struct http_route_metrics route;
    struct bytes labels = {0};
    if (!http)
        return;
    http_server_metrics(http, &metrics);
    single(page, "gpufl_http_connections", EXPOSITION_GAUGE, "Open connections.", (double)metrics.connections_open);
    single(page, "gpufl_http_requests_active", EXPOSITION_GAUGE, "Requests in progress.",
           (double)metrics.requests_active);
    single(page, "gpufl_http_requests_queued", EXPOSITION_GAUGE, "Requests waiting for a thread.",
           (double)metrics.requests_queued);
    single(page, "gpufl_http_event_clients", EXPOSITION_GAUGE, "Clients of live updates.",
           (double)metrics.events_clients);
    COUNTERS(page, "gpufl_http_refused_total", "Requests and clients dropped, by reason.", "reason",
             {"queue_full", metrics.requests_refused}, {"timeout", metrics.timeouts},
             {"slow_event_client", metrics.events_dropped});
    exposition_family(page, "gpufl_http_requests_total", EXPOSITION_COUNTER, "Requests by route and status class.");
    for (size_t i = 0; i <= server->route_count; i++) {
        http_server_route_metrics(http, i, &route);
        for (unsigned class = 0; class < HTTP_STATUS_CLASSES; class ++) {
            char text[8];
            if (!route.requests[class])
                continue;
            snprintf(text, sizeof text, class ? "%uxx" : "gone", class);
            route_labels(server, i, &labels);
            exposition_label(&labels, "status", text);
            exposition_sample_uint(page, bytes_text(&labels), route.requests[class]);
        }
    }
    exposition_family(page, "gpufl_http_request_duration_seconds", EXPOSITION_HISTOGRAM,
                      "Time from a request's complete head to the end of its answer.");
    for (size_t i = 0; i < server->route_count; i++) {
        http_server_route_metrics(http, i, &route);
        uint64_t count = 0;
        for (unsigned j = 0; j <= HTTP_DURATION_BOUNDS; j++)
            count += route.durations[j];
        route_labels(server, i, &labels);
        if (count)
            exposition_histogram(page, bytes_text(&labels), http_duration_bounds_s, route.durations,
                                 HTTP_DURATION_BOUNDS, (double)route.duration_sum_ns / 1e9);
    }
    bytes_free(&labels);
}

static void metrics(struct http_exchange *exchange, void *user)
{
    struct server *server = user;
    struct bytes out = {0};
    struct exposition page;
    enum exposition_format format = exposition_choose(http_exchange_header(exchange, "Accept"));
    exposition_begin(&page, &out, format);
    store_write_page(&page, server);
    ingest_write(&page, server);
    http_write(&page, server);
    exposition_end(&page);
    http_respond_bytes(exchange, 200, exposition_content_type(format), &out);
}

struct api_table health_table(void)
{
    static const struct api_route routes[] = {
        {.http = {.method = HTTP_GET, .pattern = "/healthz", .handle = healthz},
         .name = "health",
         .summary = "whether commits make progress",
         .schema = "Health"},
        {.http = {.method = HTTP_GET, .pattern = "/readyz", .handle = readyz},
         .name = "ready",
         .summary = "whether requests can be served",
         .schema = "Ready"},
        {.http = {.method = HTTP_GET, .pattern = "/metrics", .scope = HTTP_SCOPE_READ, .handle = metrics},
         .name = "metrics",
         .summary = "the server's own metrics, for Prometheus",
         .type = "text/plain"},
    };
    return (struct api_table){routes, sizeof routes / sizeof *routes};
}
