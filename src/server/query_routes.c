/* SPDX-License-Identifier: Apache-2.0 */
/* The table of query routes, and the dispatcher that calls their endpoints. */
#include "analysis/compare.h"
#include "server/query_call.h"

enum { config_bytes_max = 64 << 10, patch_bytes_max = 64 << 10 };

/* What the dispatcher does before the endpoint runs. */
enum query_need { NEED_NOTHING, NEED_SESSION };

#define PARAMETERS(...)   \
    (const char *const[]) \
    {                     \
        __VA_ARGS__, NULL \
    }
#define PAGE "limit", "cursor"
#define WORK_FILTER "from_ns", "to_ns", "device", "stream", "scope"
#define SESSION "/api/v1/sessions/{id}"

/* name, endpoint, method, path, scope, need, largest body, answer, request, parameters, summary. */
/* clang-format off */
#define QUERY_ROUTES(X) \
    X(listHosts, query_hosts, GET, "/api/v1/hosts", READ, NOTHING, 0, "Hosts", NULL, PARAMETERS("host"), \
      "Hosts and their GPUs with the latest metrics") \
    X(getHostMetrics, query_host_metrics, GET, "/api/v1/hosts/{host}/metrics", READ, NOTHING, 0, "HostMetrics", NULL, \
      PARAMETERS("gpu", "from_ns", "to_ns", "metric"), "Metrics of a host or of one of its GPUs, minute by minute") \
    X(listSessions, query_sessions, GET, "/api/v1/sessions", READ, NOTHING, 0, "Sessions", NULL, \
      PARAMETERS("app", "host", "gpu", "engine", "kind", "tag", "state", "q", "from_ns", "to_ns", "sort", "order", \
                 PAGE), \
      "Sessions, newest first") \
    X(getSession, query_session_get, GET, SESSION, READ, NOTHING, 0, "SessionSummary", NULL, PARAMETERS("exact"), \
      "One session: program, machine, completeness and recording overhead") \
    X(changeSession, query_session_patch, PATCH, SESSION, ADMIN, NOTHING, patch_bytes_max, "Session", "SessionChange", \
      NULL, "Replaces a session's tags or sets how long it is kept") \
    X(deleteSession, query_session_remove, DELETE, SESSION, ADMIN, NOTHING, 0, NULL, NULL, NULL, "Deletes a session") \
    X(getTime, query_time, GET, SESSION "/time", READ, SESSION, 0, "Time", NULL, NULL, \
      "Where the wall time of each GPU went") \
    X(listKernels, query_kernels, GET, SESSION "/kernels", READ, NOTHING, 0, "Kernels", NULL, \
      PARAMETERS(WORK_FILTER, "q", "sort", "order", "exact", "bins", PAGE), "Kernels by name, most time first") \
    X(listInstances, query_instances, GET, SESSION "/kernels/{kernel}/instances", READ, SESSION, 0, "Instances", NULL, \
      PARAMETERS(WORK_FILTER, "sort", "order", PAGE), "Executions of one kernel") \
    X(getHistogram, query_histogram, GET, SESSION "/kernels/{kernel}/histogram", READ, SESSION, 0, "Histogram", NULL, \
      PARAMETERS(WORK_FILTER, "bins"), "Durations of one kernel") \
    X(getDurations, query_durations, GET, SESSION "/kernels/{kernel}/durations", READ, SESSION, 0, "Durations", NULL, \
      PARAMETERS(WORK_FILTER, "steps"), \
      "Durations of one kernel in steps of time; steps without executions are missing") \
    X(getOccupancy, query_occupancy, GET, SESSION "/kernels/{kernel}/occupancy", READ, SESSION, 0, "Occupancy", NULL, \
      NULL, "Launch configurations of one kernel and what limits their occupancy") \
    X(listLaunches, query_launches, GET, SESSION "/launches", READ, SESSION, 0, "Launches", NULL, \
      PARAMETERS("from_ns", "to_ns", "scope", "q", PAGE), \
      "Kernels that were launched but not timed, most launches first") \
    X(getSteps, query_steps, GET, SESSION "/steps", READ, SESSION, 0, "Steps", NULL, NULL, \
      "The steps of a program that repeats itself, and why the slowest one took longer") \
    X(getScopes, query_scopes, GET, SESSION "/scopes", READ, SESSION, 0, "Scopes", NULL, NULL, \
      "The tree of scopes, depth first") \
    X(getActivity, query_activity, GET, SESSION "/activity", READ, NOTHING, 0, "Activity", NULL, PARAMETERS("bins"), \
      "How busy the GPUs were in each part of a session, without loading it") \
    X(listTracks, query_tracks, GET, SESSION "/timeline/tracks", READ, NOTHING, 0, "Tracks", NULL, \
      PARAMETERS("exact"), "The timeline's tracks") \
    X(getTimeline, query_timeline, GET, SESSION "/timeline", READ, NOTHING, 0, "Columns", NULL, \
      PARAMETERS("from_ns", "to_ns", "pixels", "tracks", "exact"), \
      "A span of the timeline: every event, or a summary of each pixel") \
    X(getTimelineEvent, query_timeline_event, GET, SESSION "/timeline/event", READ, NOTHING, 0, "TimelineEvent", NULL, \
      PARAMETERS("track", "start_ns", "exact"), "All details of one event of the timeline") \
    X(getTimelineMarks, query_timeline_marks, GET, SESSION "/timeline/marks", READ, NOTHING, 0, "TimelineMarks", NULL, \
      PARAMETERS("kernel", "from_ns", "to_ns", "pixels", "exact"), "How often a kernel started in each part of a time span") \
    X(getTimelineRange, query_timeline_range, GET, SESSION "/timeline/range", READ, SESSION, 0, "TimelineRange", NULL, \
      PARAMETERS("from_ns", "to_ns"), "Sums over a time span: busy GPUs, copies, waits, energy") \
    X(getCopies, query_copies, GET, SESSION "/copies", READ, SESSION, 0, "Copies", NULL, NULL, \
      "Copies by direction and memory, and memsets") \
    X(getSyncs, query_syncs, GET, SESSION "/syncs", READ, SESSION, 0, "Syncs", NULL, NULL, \
      "Host waits by kind and by call stack") \
    X(getAllocations, query_allocations, GET, SESSION "/allocations", READ, SESSION, 0, "Allocations", NULL, \
      PARAMETERS("steps"), "Memory by kind, over time, and allocations that were never freed") \
    X(getGraphs, query_graphs, GET, SESSION "/graphs", READ, SESSION, 0, "Graphs", NULL, NULL, "CUDA graph launches") \
    X(getMetrics, query_metrics_steps, GET, SESSION "/metrics", READ, SESSION, 0, "Metrics", NULL, \
      PARAMETERS("from_ns", "to_ns", "step_ns", "device", "metric"), \
      "System metrics of a session in steps of time: minimum, mean and maximum; steps without samples are null") \
    X(getStalls, query_stalls, GET, SESSION "/stalls", READ, SESSION, 0, "Stalls", NULL, NULL, \
      "Stall reasons of sampled warps: total, by function, by scope") \
    X(getCode, query_code, GET, SESSION "/code", READ, SESSION, 0, "Code", NULL, PARAMETERS(PAGE), \
      "Source lines with the most samples, with their instructions") \
    X(getCodeFunction, query_code_function, GET, SESSION "/code/{function}", READ, SESSION, 0, "CodeFunction", NULL, \
      PARAMETERS("cubin_crc"), "One function's instructions with samples, counters and source lines") \
    X(getPtx, query_ptx, GET, SESSION "/code/{function}/ptx", READ, SESSION, 0, "Ptx", NULL, PARAMETERS("cubin_crc"), \
      "The PTX that a function's cubin was made from") \
    X(getSource, query_source, GET, SESSION "/source", READ, SESSION, 0, "Source", NULL, PARAMETERS("file"), \
      "The text of a source file") \
    X(getRanges, query_ranges, GET, SESSION "/ranges", READ, SESSION, 0, "Ranges", NULL, NULL, \
      "Hardware metrics by scope and by kernel") \
    X(getPm, query_pm, GET, SESSION "/pm", READ, SESSION, 0, "Pm", NULL, \
      PARAMETERS("from_ns", "to_ns", "step_ns", "device", "metric"), "Hardware counters over time") \
    X(getInsights, query_insights, GET, SESSION "/insights", READ, SESSION, 0, "Insights", NULL, NULL, \
      "Suggestions, largest effect first") \
    X(getLosses, query_losses, GET, SESSION "/losses", READ, NOTHING, 0, "Losses", NULL, NULL, \
      "Missing data and recording overhead") \
    X(compareSessions, query_compare, GET, "/api/v1/compare", READ, NOTHING, 0, "Comparison", NULL, \
      PARAMETERS("base", "new", "threshold_percent"), "Compares the kernels and scopes of two sessions") \
    X(searchKernels, query_search_kernels, GET, "/api/v1/search/kernels", READ, NOTHING, 0, "KernelSearch", NULL, \
      PARAMETERS("q", "limit"), "Kernels of all sessions by part of their name") \
    X(listConfigs, query_configs, GET, "/api/v1/configs", READ, NOTHING, 0, "Configs", NULL, NULL, \
      "Named configurations") \
    X(getConfig, query_config_get, GET, "/api/v1/configs/{name}", INGEST, NOTHING, 0, "Config", NULL, NULL, \
      "One configuration, as it was stored; its ETag is its revision") \
    X(putConfig, query_config_put, PUT, "/api/v1/configs/{name}", ADMIN, NOTHING, config_bytes_max, "ConfigRevision", \
      "Config", NULL, "Creates or replaces a configuration; If-Match and If-None-Match protect changes by others") \
    X(deleteConfig, query_config_remove, DELETE, "/api/v1/configs/{name}", ADMIN, NOTHING, 0, NULL, NULL, NULL, \
      "Deletes a configuration") \
    X(watchLive, query_live, GET, "/api/v1/live", READ, NOTHING, 0, "Events", NULL, PARAMETERS("topic"), \
      "Server-sent events: sessions and GPUs as they change") \
    X(getOpenApi, query_openapi, GET, "/api/v1/openapi.json", READ, NOTHING, 0, "OpenApi", NULL, NULL, \
      "This description")
/* clang-format on */

#define ROUTE_ID(name, ...) ROUTE_##name,
enum route_id { QUERY_ROUTES(ROUTE_ID) ROUTE_COUNT };

static void dispatch(struct http_exchange *exchange, void *user, enum route_id id);
#define ROUTE_HANDLER(name, ...)                                          \
    static void handle_##name(struct http_exchange *exchange, void *user) \
    {                                                                     \
        dispatch(exchange, user, ROUTE_##name);                           \
    }
QUERY_ROUTES(ROUTE_HANDLER)

static const struct {
    query_endpoint *endpoint;
    enum query_need need;
} endpoints[ROUTE_COUNT] = {
#define ROUTE_ENDPOINT(name, endpoint, method, path, scope, need, ...) [ROUTE_##name] = {endpoint, NEED_##need},
    QUERY_ROUTES(ROUTE_ENDPOINT)};

static const struct api_route routes[ROUTE_COUNT] = {
#define ROUTE_ROW(id, endpoint, http_method, path, http_scope, need, body_max, answer, request, names, words) \
    [ROUTE_##id] = {.http = {.method = HTTP_##http_method,                                                    \
                             .pattern = path,                                                                 \
                             .scope = HTTP_SCOPE_##http_scope,                                                \
                             .handle = handle_##id,                                                           \
                             .body_bytes_max = body_max},                                                     \
                    .name = #id,                                                                              \
                    .summary = words,                                                                         \
                    .parameters = names,                                                                      \
                    .schema = answer,                                                                         \
                    .body = request,                                                                          \
                    .type = ROUTE_##id == ROUTE_getTimeline ? QUERY_COLUMNS_TYPE                              \
                            : ROUTE_##id == ROUTE_watchLive ? "text/event-stream"                             \
                                                            : NULL},
    QUERY_ROUTES(ROUTE_ROW)};

struct api_table query_table(void)
{
    return (struct api_table){routes, ROUTE_COUNT};
}

static void dispatch(struct http_exchange *exchange, void *user, enum route_id id)
{
    static const char *const none[] = {NULL};
    struct query_call call = {.query = user, .exchange = exchange};
    struct problem problem = {""};
    const char *const *names = routes[id].parameters ? routes[id].parameters : none;
    if (http_exchange_query_check(exchange, names, &problem) != GPUFL_OK) {
        query_fail(&call, 400, "parameter_invalid", "%s", problem.text);
        return;
    }
    bool is_ready = true;
    if (endpoints[id].need == NEED_SESSION) {
        call.session = query_hold(&call, http_exchange_path_value(exchange, "id"), false);
        is_ready = call.session && !query_is_known(&call, call.session);
    }
    if (is_ready)
        endpoints[id].endpoint(&call);
    if (is_ready && !http_exchange_is_answered(exchange)) {
        bytes_append_char(&call.out, '\n');
        http_respond_bytes(exchange, 200, "application/json", &call.out);
    }
    for (unsigned i = 0; i < call.held_count; i++)
        query_cache_release(call.query->cache, call.held[i]);
    bytes_free(&call.out);
}

void query_compare(struct query_call *call)
{
    int64_t percent = (int64_t)(COMPARE_THRESHOLD * 100);
    const char *base_id = query_text(call, "base"), *new_id = query_text(call, "new");
    if (!base_id || !new_id) {
        query_fail(call, 400, "parameter_missing", "the parameters base and new are missing: the ids of two sessions");
        return;
    }
    if (!query_int(call, "threshold_percent", 0, 10000, &percent))
        return;
    const struct query_session *base = query_hold(call, base_id, false);
    const struct query_session *fresh = base ? query_hold(call, new_id, false) : NULL;
    struct comparison comparison;
    struct problem problem = {"no memory to compare the sessions"};
    if (!fresh)
        return;
    gpufl_status status = compare_make(&comparison, &base->analysis, &fresh->analysis,
                                       &(struct compare_options){.threshold = (double)percent / 100});
    if (status != GPUFL_OK) {
        query_fail_status(call, status, "session", &problem);
        return;
    }
    compare_json(&comparison, &call->out);
    compare_free(&comparison);
}

void query_live(struct query_call *call)
{
    static const char *const topics[] = {LIVE_SESSIONS, LIVE_GPUS, NULL};
    int topic = -1;
    if (!query_choice(call, "topic", topics, &topic))
        return;
    if (!call->query->live)
        query_fail(call, 503, "not_live", "this server has no live updates");
    else
        live_subscribe(call->query->live, call->exchange, topic < 0 ? "" : topics[topic]);
}

void query_openapi(struct query_call *call)
{
    enum { tables_max = 8 };
    struct api_table tables[tables_max] = {query_table()};
    size_t count = 1;
    for (size_t i = 0; i < call->query->other_table_count && count < tables_max; i++)
        tables[count++] = call->query->other_tables[i];
    openapi_write(tables, count, &call->out);
    char etag[HTTP_ETAG_SIZE];
    http_etag_of(call->out.data, call->out.size, etag);
    http_respond_if_known(call->exchange, etag);
}
