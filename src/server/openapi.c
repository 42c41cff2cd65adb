/* SPDX-License-Identifier: Apache-2.0 */
/* The description of the HTTP interface, generated from the tables of routes. */
#include "analysis/report_json.h"
#include "server/api_route.h"

#include <stdio.h>

const struct api_parameter api_parameters[] = {
    {"from_ns", "integer", "start of the time span, nanoseconds since 1970"},
    {"to_ns", "integer", "end of the time span (exclusive)"},
    {"step_ns", "integer", "length of a step"},
    {"pixels", "integer", "number of parts to divide the time span into"},
    {"tracks", "string", "ids of tracks, separated by commas (default: all)"},
    {"track", "string", "id of a track"},
    {"start_ns", "integer", "start of the event, nanoseconds since 1970"},
    {"kernel", "integer", "kernel_id"},
    {"exact", "boolean", "true: load the session however large it is; false: do not wait until it is loaded"},
    {"device", "integer", "device id"},
    {"stream", "integer", "stream id"},
    {"scope", "string", "a scope path from /scopes, including its nested scopes"},
    {"metric", "string", "name of one metric"},
    {"gpu", "string", "UUID of a GPU"},
    {"host", "string", "host name"},
    {"app", "string", "name of the program"},
    {"engine", "string", "profiling engine, as named in the log"},
    {"kind", "string", "kind of the session"},
    {"tag", "string", "a tag"},
    {"state", "string", "live, complete or crashed"},
    {"q", "string", "part of the text, case-insensitive"},
    {"sort", "string", "what to sort by"},
    {"order", "string", "ascending or descending"},
    {"limit", "integer", "maximum number of entries"},
    {"cursor", "string", "next_cursor of the previous page"},
    {"bins", "integer", "number of bins"},
    {"steps", "integer", "number of time steps"},
    {"file", "string", "path of a source file, as in the log"},
    {"cubin_crc", "string", "selects a cubin when several contain the function"},
    {"base", "string", "id of the session to compare with"},
    {"new", "string", "id of the session to compare"},
    {"threshold_percent", "integer", "ignore changes below this percentage"},
    {"topic", "string", "sessions or gpus (default: both)"},
    {0}};

const struct api_schema api_schemas[] = {
    {"Error", "what went wrong", "error:o=ErrorDetail"},
    {"Hosts", "hosts with their GPUs; metrics have the names of the log's columns", "now_ns:i hosts:a=Host"},
    {"HostMetrics", "series of points [minute_ns, min, mean, max]; minutes without samples are missing",
     "host:s gpu:s? from_ns:i to_ns:i step_ns:i series:a=MetricSeries"},
    {"Sessions", "a page of sessions", "sessions:a=CatalogEntry next_cursor:s?"},
    {"Session", "a session's catalog entry", "catalog:o=CatalogEntry"},
    {"SessionSummary", "catalog, session, GPUs, completeness, overhead, capabilities and where the time went",
     "catalog:o=CatalogEntry is_partial:b session:o=SessionInfo gpus:a=Gpu completeness:o=Completeness overhead:o?=Overhead capabilities:a=Capability time:a?=DeviceTime"},
    {"SessionChange", "new tags; retention_days: a number, \"forever\" or null for the server's setting",
     "-tags:a=s -retention_days:i?"},
    {"Time", "parts of each GPU's time that add up to wall_ns, also in bins of bin_ns; kernel time by kind of work",
     "start_ns:i? end_ns:i? wall_ns:i? time:a=DeviceTime work_by_kind:a=WorkOfKind bin_ns:i? bins:a"},
    {"Kernels", "kernels by name; is_exact false: percentiles are estimates from sums",
     "is_exact:b count:i total_ns:i kernels:a=Kernel -histograms:a=KernelHistogram total:i next_cursor:s?"},
    {"Instances", "executions of one kernel", "name:s? kernel_id:i instances:a=KernelInstance total:i next_cursor:s?"},
    {"Histogram", "durations in bins from from_ns up to, not including, to_ns",
     "name:s? kernel_id:i count:i median_ns:i? p90_ns:i? p99_ns:i? scale:s bins:a=HistogramBin"},
    {"Durations", "least, median and largest duration of each step",
     "name:s? kernel_id:i count:i from_ns:i? to_ns:i? step_ns:i? steps:a=DurationStep"},
    {"Occupancy", "launch configurations, most time first, and the limits of the devices",
     "name:s? kernel_id:i total_ns:i? launches:a=KernelLaunches launch_variants:i devices:a=DeviceLimits"},
    {"Launches", "kernels that were launched but not timed; count: of all launches",
     "count:i kernels:a=LaunchedKernel total:i next_cursor:s?"},
    {"Steps", "the steps of a program that repeats itself", "steps:o=StepSummary"},
    {"Scopes", "the tree of scopes, depth first, and kernels by operator",
     "scopes:a=Scope outside_scopes:o=OutsideScopes operators:a=OperatorTime"},
    {"Tracks", "tracks of the timeline; busy time counts once where events overlap if is_exact",
     "is_exact:b start_ns:i? end_ns:i? tracks:a=Track left_out:i"},
    {"Columns", "a JSON description followed by little-endian columns", NULL},
    {"TimelineEvent", "an event, with the fields of its kind, and its track",
     "track:o name:s? name_id:i event:o stack_source:a"},
    {"TimelineMarks",
     "executions that begin in each step; is_exact false: only parts in which the kernel took most of the time",
     "is_exact:b from_ns:i to_ns:i step_ns:i counts:a"},
    {"TimelineRange", "sums over a time span; energy_uj null where power was not sampled",
     "from_ns:i to_ns:i devices:a copies:a sync_ns:i"},
    {"Activity", "share of the time in which GPUs were busy, in bins over the session",
     "from_ns:i to_ns:i gpus:i busy:a=n"},
    {"Copies", "copies by direction and memory, and memsets", "copies:a=Copy memsets:o=Memsets"},
    {"Syncs", "host waits by kind and by call stack", "syncs:a=Sync sync_places:a=SyncPlace"},
    {"Allocations", "device memory by kind: sums, memory held in each step, and allocations never freed, largest first",
     "memory:a=MemoryKind from_ns:i? to_ns:i? step_ns:i? history:a=MemoryHistory kept:a=KeptMemory kept_left_out:i"},
    {"Graphs", "CUDA graph launches by graph", "graphs:a=Graph"},
    {"Metrics", "series in steps; sums over the whole session under system, processes and host",
     "from_ns:i to_ns:i step_ns:i steps:i series:a=StepSeries system:a processes:a=Process host:o"},
    {"Stalls", "PC samples by stall reason, and results of the deep engines",
     "sampling:a=Sampling stalls:o?=StallSums windows:a=Window untimed_launches:i code_objects:a=CodeObject capabilities:a=Capability left_out:i"},
    {"Code", "functions and their hottest lines", "functions:a=CodeSummary lines:a=CodeLine total:i next_cursor:s?"},
    {"CodeFunction", "every instruction of a function",
     "name:s? function_id:i? symbol:s? language:s cubin_crc:s? samples:i counters:o?=Counters problem:s? "
     "resources:o?=KernelResources instructions:a=Instruction left_out:i"},
    {"Ptx", "null with a problem if the session has none", "symbol:s? cubin_crc:s? ptx:s? problem:s?"},
    {"Source", "lines of a file; null: the log does not contain its text", "file:s lines:a?=s"},
    {"Ranges", "hardware metrics by scope and by kernel", "metrics:a=RangeMetrics"},
    {"Pm", "hardware counters over time, in steps and as totals",
     "from_ns:i to_ns:i step_ns:i steps:i series:a=StepSeries counters_over_time:a=CounterSeries"},
    {"Insights", "suggestions", "insights:a=Insight"},
    {"Losses", "missing data and recording overhead", "completeness:o=Completeness overhead:o?=Overhead"},
    {"Comparison", "two sessions compared; regressions null: no verdict, kernel times are missing",
     "compare_version:i base:o=ComparedSession new:o=ComparedSession threshold:n no_verdict:s? no_verdict_reason:s? regressions:i? is_total_regression:b? kernels:a=ComparedKernel scopes:a=ComparedScope"},
    {"KernelSearch", "kernels of all sessions, newest session first", "kernels:a=FoundKernel"},
    {"Configs", "named configurations", "configs:a=ConfigEntry"},
    {"Config", "options by name; never paths, addresses or keys", "*:x"},
    {"ConfigRevision", "what was stored", "name:s revision:i"},
    {"Events", "events 'session' and 'gpu', each with a JSON object", NULL},
    {"IngestAnswer", "the result of the lines",
     "-accepted_for_processing:b -spool_id:s -window_acknowledged:b -repeated:i accepted:i rejected:i -errors:a=LineError "
     "-quarantined:s -error:o=ErrorDetail"},
    {"IngestVersion", "what this server accepts", "product:s supported:a=s encodings:a=s"},
    {"SessionState", "the session's current state", "session_id:s state:s"},
    {"Health", "whether commits make progress",
     "status:s reason:s? uptime_s:i last_commit_age_ms:i? queue_writes:i queue_bytes:i commits:i "
     "failed_commits:i store:s"},
    {"Ready", "whether requests can be served", "ready:b"},
    {"Server", "the server; null: no limit, or unknown",
     "version:s store:s? uptime_s:i schema_version:i? sessions:i? rows:i? bytes:i? free_bytes:i? retention_days:i? "
     "retention_bytes:i? sessions_retired:i keys:i active_keys:i is_key_needed:b"},
    {"Keys", "all keys, also revoked ones, without their secrets", "keys:a"},
    {"OpenApi", "an OpenAPI 3.1 document", "openapi:s info:o paths:o components:o"},
    {0}};

static const char *type_word(char letter)
{
    static const struct {
        char letter;
        const char *word;
    } words[] = {{'s', "string"}, {'i', "integer"}, {'n', "number"}, {'b', "boolean"}, {'o', "object"}, {'a', "array"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (words[i].letter == letter)
            return words[i].word;
    return "object";
}

/* Writes the schema of a member's type, such as "s", "a?", "a=Kernel", "o?=Launch" or "x" (see api_route.h). */
static void member_write(struct bytes *out, const char *type)
{
    bool is_nullable = type[1] == '?';
    const char *of = type[1 + is_nullable] == '=' ? type + 2 + is_nullable : NULL;
    int size = of ? (int)strcspn(of, " ") : 0;
    if (*type == 'x') {
        bytes_append_text(out, "true");
    } else if (*type == 'o' && of && !is_nullable) {
        bytes_append_format(out, "{\"$ref\":\"#/components/schemas/%.*s\"}", size, of);
    } else if (*type == 'o' && of) {
        bytes_append_format(out, "{\"anyOf\":[{\"$ref\":\"#/components/schemas/%.*s\"},{\"type\":\"null\"}]}", size,
                            of);
    } else {
        bytes_append_format(out, is_nullable ? "{\"type\":[\"%s\",\"null\"]" : "{\"type\":\"%s\"", type_word(*type));
        if (of && size == 1)
            bytes_append_format(out, ",\"items\":{\"type\":\"%s\"}", type_word(*of));
        else if (of)
            bytes_append_format(out, ",\"items\":{\"$ref\":\"#/components/schemas/%.*s\"}", size, of);
        bytes_append_char(out, '}');
    }
}

static void schema_write(struct bytes *out, const struct api_schema *schema)
{
    struct bytes required = {0}, others = {0};
    json_key(out, schema->name);
    bytes_append_char(out, '{');
    member_text(out, "type", "object");
    member_text(out, "description", schema->about);
    json_key(out, "properties");
    bytes_append_char(out, '{');
    for (const char *at = schema->fields; *at;) {
        bool is_optional = *at == '-';
        at += is_optional;
        const char *colon = strchr(at, ':');
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)(colon - at), at);
        if (*name == '*') {
            member_write(&others, colon + 1);
        } else {
            json_key(out, name);
            member_write(out, colon + 1);
            if (!is_optional) {
                if (required.size)
                    bytes_append_char(&required, ',');
                json_text(&required, name);
            }
        }
        at += strcspn(at, " ");
        at += strspn(at, " ");
    }
    bytes_append_char(out, '}');
    if (others.size) {
        json_key(out, "additionalProperties");
        bytes_append(out, others.data, others.size);
    }
    if (required.size) {
        list_open(out, "required");
        bytes_append(out, required.data, required.size);
        bytes_append_char(out, ']');
    }
    out->failed |= required.failed || others.failed;
    bytes_free(&required);
    bytes_free(&others);
    bytes_append_char(out, '}');
}

static void parameter_write(struct bytes *out, const char *name, bool is_in_path)
{
    const struct api_parameter *known = api_parameters;
    while (known->name && strcmp(known->name, name) != 0)
        known++;
    bool has_words = known->name && !is_in_path;
    element(out, '{');
    member_text(out, "name", name);
    member_text(out, "in", is_in_path ? "path" : "query");
    member_bool(out, "required", is_in_path);
    if (has_words)
        member_text(out, "description", known->about);
    bytes_append_format(out, ",\"schema\":{\"type\":\"%s\"}}", has_words ? known->type : "string");
}

static void parameters_write(struct bytes *out, const struct api_route *route)
{
    list_open(out, "parameters");
    for (const char *at = strchr(route->http.pattern, '{'); at; at = strchr(at, '{')) {
        char name[64];
        size_t size = strcspn(++at, ".}");
        snprintf(name, sizeof name, "%.*s", (int)size, at);
        parameter_write(out, name, true);
    }
    for (const char *const *name = route->parameters; name && *name; name++)
        parameter_write(out, *name, false);
    bytes_append_char(out, ']');
}

static void content_write(struct bytes *out, const char *type, const char *schema)
{
    json_key(out, "content");
    bytes_append_char(out, '{');
    json_key(out, type);
    bytes_append_text(out, "{\"schema\":");
    if (strncmp(type, "application/json", 16) != 0)
        bytes_append_text(out, "{\"type\":\"string\",\"format\":\"binary\"}");
    else
        bytes_append_format(out, "{\"$ref\":\"#/components/schemas/%s\"}", schema);
    bytes_append_text(out, "}}");
}

static void operation_write(struct bytes *out, const struct api_route *route)
{
    static const char *const methods[HTTP_METHOD_COUNT] = {"get", "post", "put", "patch", "delete"};
    static const char *const scopes[] = {"none", "ingest", "read", "admin"};
    json_key(out, methods[route->http.method]);
    bytes_append_char(out, '{');
    member_text(out, "operationId", route->name);
    member_text(out, "summary", route->summary);
    member_text(out, "x-scope", scopes[route->http.scope]);
    if (route->http.scope != HTTP_SCOPE_NONE)
        bytes_append_text(out, ",\"security\":[{\"key\":[]}]");
    parameters_write(out, route);
    if (route->body) {
        json_key(out, "requestBody");
        bytes_append_text(out, "{\"required\":true");
        content_write(out, "application/json", route->body);
        bytes_append_char(out, '}');
    }
    json_key(out, "responses");
    bytes_append_char(out, '{');
    bool has_content = route->schema || route->type;
    json_key(out, has_content ? "200" : "204");
    bytes_append_char(out, '{');
    member_text(out, "description", has_content ? "the answer" : "done");
    if (has_content)
        content_write(out, route->type ? route->type : "application/json", route->schema);
    bytes_append_char(out, '}');
    json_key(out, "default");
    bytes_append_char(out, '{');
    member_text(out, "description", "an error");
    content_write(out, "application/json", "Error");
    bytes_append_text(out, "}}}");
}

/* OpenAPI has no {rest...}. */
static void path_key(struct bytes *out, const char *pattern)
{
    char path[256];
    size_t size = 0;
    for (const char *at = pattern; *at && size + 1 < sizeof path; at++)
        if (strncmp(at, "...", 3) != 0)
            path[size++] = *at;
        else
            at += 2;
    path[size] = '\0';
    json_key(out, path);
}

/* The route with that index over all tables; NULL after the last. */
static const struct api_route *route_at(const struct api_table *tables, size_t count, size_t index)
{
    for (size_t i = 0; i < count; i++) {
        if (index < tables[i].count)
            return &tables[i].routes[index];
        index -= tables[i].count;
    }
    return NULL;
}

static bool is_first_of_path(const struct api_table *tables, size_t count, size_t index)
{
    const char *pattern = route_at(tables, count, index)->http.pattern;
    for (size_t i = 0; i < index; i++)
        if (!strcmp(route_at(tables, count, i)->http.pattern, pattern))
            return false;
    return true;
}

void openapi_write(const struct api_table *tables, size_t count, struct bytes *out)
{
    bytes_append_text(out, "{\"openapi\":\"3.1.0\",\"info\":{\"title\":\"gpufl\",\"version\":\"" GPUFL_VERSION_STRING
                           "\",\"license\":{\"name\":\"Apache-2.0\",\"identifier\":\"Apache-2.0\"}},\"paths\":{");
    const struct api_route *route;
    for (size_t i = 0; (route = route_at(tables, count, i)); i++) {
        if (!is_first_of_path(tables, count, i))
            continue;
        path_key(out, route->http.pattern);
        bytes_append_char(out, '{');
        const struct api_route *other;
        for (size_t k = i; (other = route_at(tables, count, k)); k++)
            if (!strcmp(other->http.pattern, route->http.pattern))
                operation_write(out, other);
        bytes_append_char(out, '}');
    }
    bytes_append_text(out, "},\"components\":{\"securitySchemes\":{\"key\":{\"type\":\"http\",\"scheme\":\"bearer\"}},"
                           "\"schemas\":{");
    const struct api_schema *const tables_of_schemas[] = {api_schemas, api_elements};
    for (size_t i = 0; i < sizeof tables_of_schemas / sizeof *tables_of_schemas; i++)
        for (const struct api_schema *schema = tables_of_schemas[i]; schema->name; schema++)
            if (schema->fields)
                schema_write(out, schema);
    bytes_append_text(out, "}}}");
}
