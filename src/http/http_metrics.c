/* SPDX-License-Identifier: Apache-2.0 */
#include "http/http_core.h"

const double http_duration_bounds_s[HTTP_DURATION_BOUNDS] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                                             0.1,   0.25,   0.5,   1.0,  5.0,   30.0};

static void add(_Atomic uint64_t *counter, uint64_t value)
{
    atomic_fetch_add_explicit(counter, value, memory_order_relaxed);
}

static uint64_t get(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

void http_metrics_count(struct http_exchange *exchange, int64_t duration_ns)
{
    const struct http_server *server = exchange->server;
    const struct http_server_options *options = &server->options;
    size_t index = exchange->route ? (size_t)(exchange->route - options->routes) : options->route_count;
    struct http_route_counters *counters = &server->counters[index];
    int class = exchange->response.status / 100;
    add(&counters->requests[class < HTTP_STATUS_CLASSES ? class : 0], 1);
    add(&counters->bytes_in, exchange->body_bytes);
    add(&counters->bytes_out, exchange->response.bytes_out);
    size_t bound = 0;
    while (bound < HTTP_DURATION_BOUNDS && (double)duration_ns > http_duration_bounds_s[bound] * 1e9)
        bound++;
    add(&counters->durations[bound], 1);
    add(&counters->duration_sum_ns, (uint64_t)duration_ns);
}

void http_server_route_metrics(const struct http_server *server, size_t index, struct http_route_metrics *metrics)
{
    const struct http_route_counters *counters = &server->counters[index];
    for (size_t i = 0; i < HTTP_STATUS_CLASSES; i++)
        metrics->requests[i] = get(&counters->requests[i]);
    for (size_t i = 0; i <= HTTP_DURATION_BOUNDS; i++)
        metrics->durations[i] = get(&counters->durations[i]);
    metrics->bytes_in = get(&counters->bytes_in);
    metrics->bytes_out = get(&counters->bytes_out);
    metrics->duration_sum_ns = get(&counters->duration_sum_ns);
}

void http_server_metrics(const struct http_server *server, struct http_metrics *metrics)
{
    *metrics = (struct http_metrics){
        .connections_open = get(&server->connections.open_count),
        .connections = get(&server->connections.total_count),
        .requests_active = get(&server->active_count),
        .requests_queued = get(&server->workers.queued_count),
        .requests_refused = get(&server->workers.refused_count),
        .timeouts = get(&server->connections.timeout_count),
        .events_clients = get(&server->events.client_count),
        .events_sent = get(&server->events.sent_count),
        .events_dropped = get(&server->events.dropped_count),
    };
}
