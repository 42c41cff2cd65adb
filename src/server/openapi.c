/* SPDX-License-Identifier: Apache-2.0 */
/* The description of the HTTP interface, written from the tables of routes. */
#include "analysis/report_json.h"
#include "server/api_route.h"

#include <stdio.h>

const struct api_parameter api_parameters[] = {
    {"from_ns", "integer", "start of the stretch of time, nanoseconds since 1970"},
    {"to_ns", "integer", "its end, which is not part of it"},
    {"step_ns", "integer", "length of a step"},
    {"pixels", "integer", "into how many parts the stretch is cut"},
    {"tracks", "string", "ids of tracks, separated by commas; all when absent"},
    {"exact", "boolean", "true: load the session however large it is"},
    {"device", "integer", "device id"},
    {"stream", "integer", "stream id"},
    {"scope", "string", "a scope path as /scopes has it, with everything below it"},
    {"metric", "string", "name of one metric"},
    {"gpu", "string", "UUID of a GPU"},
    {"host", "string", "host name"},
    {"app", "string", "name of the program"},
    {"engine", "string", "profiling engine as the log names it"},
    {"kind", "string", "kind of the session"},
    {"tag", "string", "a tag"},
    {"state", "string", "live, complete or crashed"},
    {"q", "string", "a part of the text, whatever its case"},
    {"sort", "string", "what to sort by"},
    {"order", "string", "ascending or descending"},
    {"limit", "integer", "how many at most"},
    {"cursor", "string", "next_cursor of the page before"},
    {"bins", "integer", "number of bins"},
    {"cubin_crc", "string", "which cubin, where several have the function"},
    {"base", "string", "id of the session to compare with"},
    {"new", "string", "id of the session to compare"},
    {"threshold_percent", "integer", "changes up to so many percent are none"},
    {"topic", "string", "sessions or gpus; both when absent"},
    {0}};

const struct api_schema api_schemas[] = {
    {"Error", "what went wrong", "error:o"},
    {"Hosts", "hosts, each with its GPUs; metrics by the names of the log's columns", "now_ns:i hosts:a"},
    {"HostMetrics", "series of points [minute_ns, min, mean, max]; minutes without samples are missing",
     "host:s gpu:s? from_ns:i to_ns:i step_ns:i series:a"},
    {"Sessions", "a page of sessions", "sessions:a next_cursor:s?"},
    {"Session", "what the catalog says of a session", "catalog:o"},
    {"SessionSummary", "catalog, session, GPUs, completeness, overhead, capabilities and where the time went",
     "catalog:o is_partial:b session:o gpus:a completeness:o overhead:o? capabilities:a time:a?"},
    {"SessionChange", "new tags; retention_days: a number, \"forever\" or null for the server's rule",
     "-tags:a -retention_days:i?"},
    {"Time", "per GPU, parts that add up to wall_ns", "start_ns:i? end_ns:i? wall_ns:i? time:a"},
    {"Kernels", "kernels by name; is_exact false: percentiles are estimates from sums",
     "is_exact:b count:i total_ns:i kernels:a total:i next_cursor:s?"},
    {"Instances", "executions of one kernel", "name:s? kernel_id:i instances:a total:i next_cursor:s?"},
    {"Histogram", "durations in bins from from_ns up to, not including, to_ns",
     "name:s? kernel_id:i count:i median_ns:i? p90_ns:i? p99_ns:i? scale:s bins:a"},
    {"Occupancy", "launch configurations, most time first",
     "name:s? kernel_id:i total_ns:i launches:a launch_variants:i"},
    {"Scopes", "the tree of scopes, depth first", "scopes:a outside_scopes:o"},
    {"Tracks", "tracks of the timeline; busy time counts once where events overlap if is_exact",
     "is_exact:b start_ns:i? end_ns:i? tracks:a left_out:i"},
    {"Columns", "little-endian columns behind a JSON text that describes them", ""},
    {"Copies", "copies by direction and memory, and memsets", "copies:a memsets:o"},
    {"Syncs", "host waits by kind and by place", "syncs:a sync_places:a"},
    {"Allocations", "device memory by kind", "memory:a"},
    {"Graphs", "CUDA graph launches by graph", "graphs:a"},
    {"Metrics", "series in steps; sums over the whole session under system, processes and host",
     "from_ns:i to_ns:i step_ns:i steps:i series:a system:a processes:a host:o"},
    {"Stalls", "PC samples by reason, and what the deep engines saw",
     "sampling:a stalls:o? windows:a untimed_launches:i code_objects:a capabilities:a left_out:i"},
    {"Code", "functions and their hottest lines", "functions:a lines:a total:i next_cursor:s?"},
    {"CodeFunction", "every instruction of a function",
     "name:s? function_id:i symbol:s? cubin_crc:s? samples:i counters:o? problem:s? instructions:a left_out:i"},
    {"Ranges", "hardware metrics by scope and by kernel", "metrics:a"},
    {"Pm", "hardware counters over time, in steps and in all",
     "from_ns:i to_ns:i step_ns:i steps:i series:a counters_over_time:a"},
    {"Insights", "what to try", "insights:a"},
    {"Losses", "what is missing and what recording cost", "completeness:o overhead:o?"},
    {"Comparison", "two sessions beside each other",
     "compare_version:i base:o new:o threshold:n regressions:i is_total_regression:b kernels:a scopes:a"},
    {"KernelSearch", "kernels of all sessions, newest session first", "kernels:a"},
    {"Configs", "named configurations", "configs:a"},
    {"Config", "options by name; never paths, addresses or keys", ""},
    {"ConfigRevision", "what was stored", "name:s revision:i"},
    {"Events", "events session and gpu, each with a JSON object", ""},
    {"IngestAnswer", "what became of the lines",
     "-accepted_for_processing:b -spool_id:s -window_acknowledged:b -repeated:i accepted:i rejected:i -errors:a "
     "-quarantined:s -error:o"},
    {"IngestVersion", "what this server takes", ""},
    {"SessionState", "the session as the server now sees it", ""},
    {"Health", "whether commits make progress", "status:s reason:s? uptime_s:i last_commit_age_ms:i? store:s"},
    {"Ready", "whether requests can be served", "ready:b"},
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

static void schema_write(struct bytes *out, const struct api_schema *schema)
{
    json_key(out, schema->name);
    bytes_append_char(out, '{');
    member_text(out, "type", "object");
    member_text(out, "description", schema->about);
    struct bytes required = {0};
    json_key(out, "properties");
    bytes_append_char(out, '{');
    for (const char *at = schema->fields; *at;) {
        bool is_optional = *at == '-';
        at += is_optional;
        const char *colon = strchr(at, ':');
        size_t size = (size_t)(colon - at);
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)size, at);
        json_key(out, name);
        bytes_append_text(out, "{\"type\":");
        if (colon[2] == '?')
            bytes_append_format(out, "[\"%s\",\"null\"]}", type_word(colon[1]));
        else
            bytes_append_format(out, "\"%s\"}", type_word(colon[1]));
        if (!is_optional) {
            if (required.size)
                bytes_append_char(&required, ',');
            json_text(&required, name);
        }
        at += strcspn(at, " ");
        at += strspn(at, " ");
    }
    bytes_append_char(out, '}');
    if (required.size) {
        list_open(out, "required");
        bytes_append(out, required.data, required.size);
        bytes_append_char(out, ']');
    }
    out->failed |= required.failed;
    bytes_free(&required);
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

/* OpenAPI knows no {rest...}. */
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

/* The n-th route of all tables; NULL behind the last. */
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
    for (const struct api_schema *schema = api_schemas; schema->name; schema++)
        schema_write(out, schema);
    bytes_append_text(out, "}}}");
}
