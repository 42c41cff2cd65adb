/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/tool.h"

#define SESSION                                                                                                         \
    {                                                                                                                   \
        "session", PARAMETER_TEXT, false,                                                                               \
            "session to read: its name, id or directory as the tool sessions lists them, the beginning of one, latest " \
            "or latest~1 (default: latest)",                                                                            \
            0, 0, 0, NULL                                                                                               \
    }
#define LIMIT(count, max)                                                                    \
    {                                                                                        \
        "limit", PARAMETER_INTEGER, false, "rows in the answer at most", 1, max, count, NULL \
    }
#define CURSOR                                                                                                \
    {                                                                                                         \
        "cursor", PARAMETER_TEXT, false, "next_cursor of the answer before, for its next page", 0, 0, 0, NULL \
    }
#define TEXT(name, about)                                 \
    {                                                     \
        name, PARAMETER_TEXT, false, about, 0, 0, 0, NULL \
    }
#define END                                              \
    {                                                    \
        NULL, PARAMETER_TEXT, false, NULL, 0, 0, 0, NULL \
    }

static const char *const scope_orders[] = {"gpu_time", "wall_time", "tree", NULL};
static const char *const instruction_sets[] = {"all", "sampled", NULL};
static const char *const track_kinds[] = {"all",    "kernels", "copies",   "memsets", "graphs",
                                          "scopes", "syncs",   "launches", NULL};

static const struct tool_parameter sessions_parameters[] = {TEXT("filter", "part of a session's name or program"),
                                                            LIMIT(20, 200), CURSOR, END};
static const struct tool_parameter summary_parameters[] = {SESSION, END};
static const struct tool_parameter insights_parameters[] = {SESSION, LIMIT(10, 64), CURSOR, END};
static const struct tool_parameter kernels_parameters[] = {
    SESSION, TEXT("filter", "part of a kernel's name, without regard to case"), LIMIT(10, 100), CURSOR, END};
static const struct tool_parameter scopes_parameters[] = {
    SESSION,
    TEXT("filter", "part of a scope's path, without regard to case"),
    {"order", PARAMETER_CHOICE, false, "gpu_time: by GPU time outside of inner scopes; wall_time; tree: depth first", 0,
     0, 0, scope_orders},
    LIMIT(20, 200),
    CURSOR,
    END};
static const struct tool_parameter stalls_parameters[] = {
    SESSION, TEXT("filter", "part of a function's name, without regard to case"), LIMIT(10, 100), CURSOR, END};
static const struct tool_parameter lines_parameters[] = {
    SESSION,
    TEXT("function", "part of a kernel's or function's name, without regard to case"),
    TEXT("file", "part of a source file's path, without regard to case"),
    {"instructions", PARAMETER_INTEGER, false, "instructions to show of each line, hottest first", 0, 50, 2, NULL},
    LIMIT(5, 50),
    CURSOR,
    END};
static const struct tool_parameter instructions_parameters[] = {
    SESSION,
    {"function", PARAMETER_TEXT, true, "name of the function, its symbol, or a part that fits one function", 0, 0, 0,
     NULL},
    {"line", PARAMETER_INTEGER, false, "only instructions of this source line", 1, INT32_MAX, CELL_UNKNOWN, NULL},
    {"show", PARAMETER_CHOICE, false, "all instructions by address, or only the sampled and counted ones", 0, 0, 0,
     instruction_sets},
    LIMIT(30, 500),
    CURSOR,
    END};
static const struct tool_parameter metrics_parameters[] = {
    SESSION, TEXT("filter", "part of a kernel's or scope's name, without regard to case"), LIMIT(5, 50), CURSOR, END};
static const struct tool_parameter timeline_parameters[] = {
    SESSION,
    {"from_ns", PARAMETER_INTEGER, false, "begin of the slice, nanoseconds after the start of the session", 0,
     INT64_MAX / 4, 0, NULL},
    {"to_ns", PARAMETER_INTEGER, false, "end of the slice, nanoseconds after the start (default: end of the session)",
     1, INT64_MAX / 4, CELL_UNKNOWN, NULL},
    {"kind", PARAMETER_CHOICE, false, "tracks to show: GPU work by stream; scopes, waits and launches by thread", 0, 0,
     0, track_kinds},
    TEXT("track", "id of one track, as an earlier answer has it"),
    {"rows", PARAMETER_INTEGER, false,
     "rows of each track; a track with more events is summed into this number of slices", 1, 200, 12, NULL},
    LIMIT(6, 50),
    CURSOR,
    END};
static const struct tool_parameter diff_parameters[] = {
    {"base", PARAMETER_TEXT, false, "session to compare with, as `session` of the other tools (default: latest~1)", 0,
     0, 0, NULL},
    {"new", PARAMETER_TEXT, false, "session that may be slower or faster (default: latest)", 0, 0, 0, NULL},
    {"threshold_percent", PARAMETER_INTEGER, false, "ignore changes of the median below this percentage", 0, 1000, 5,
     NULL},
    LIMIT(8, 100),
    END};

#define NUMBER "{\"type\":[\"number\",\"null\"]}"
#define COUNT "{\"type\":\"integer\"}"
#define INTEGER "{\"type\":[\"integer\",\"null\"]}"
#define STRING "{\"type\":[\"string\",\"null\"]}"
#define BOOLEAN "{\"type\":\"boolean\"}"
#define OBJECT "{\"type\":\"object\"}"
#define OBJECT_OR_NULL "{\"type\":[\"object\",\"null\"]}"
#define ROWS(required, properties) \
    "{\"type\":\"array\",\"items\":{\"type\":\"object\",\"required\":[" required "],\"properties\":{" properties "}}}"
#define OBJECTS "{\"type\":\"array\",\"items\":{\"type\":\"object\"}}"
#define PAGE                                                                                                \
    ",\"page\":{\"type\":\"object\",\"required\":[\"returned\",\"total\",\"next_cursor\"],\"properties\":{" \
    "\"returned\":" COUNT ",\"total\":" COUNT ",\"next_cursor\":" STRING "}}"

static const char frame_session[] =
    "\"session\":{\"type\":\"object\",\"required\":[\"name\",\"id\",\"app\",\"engine\",\"start_time\",\"wall_ns\"],"
    "\"properties\":{\"name\":{\"type\":\"string\"},\"id\":" STRING ",\"app\":" STRING ",\"engine\":" STRING
    ",\"start_time\":" STRING ",\"wall_ns\":" INTEGER "}},"
    "\"evidence\":{\"type\":\"object\",\"required\":[\"measured_by\",\"kernels_timed\",\"pc_samples\",\"is_complete\","
    "\"lost\",\"lost_is_exact\",\"damage\"],\"properties\":{\"measured_by\":{\"type\":\"string\"},\"kernels_timed\":" COUNT
    ",\"launches_not_timed\":" COUNT ",\"pc_samples\":" COUNT ",\"is_complete\":" BOOLEAN ",\"is_live\":" BOOLEAN
    ",\"lost\":" COUNT ",\"lost_is_exact\":" BOOLEAN ",\"damage_count\":" COUNT ",\"damage\":" ROWS(
        "\"file\",\"line\",\"problem\"", "\"file\":" STRING ",\"line\":" INTEGER ",\"problem\":" STRING) "}},";
static const char frame_more[] =
    "\"more\":" ROWS("\"tool\",\"why\",\"arguments\"",
                     "\"tool\":{\"type\":\"string\"},\"why\":{\"type\":\"string\"},\"arguments\":" OBJECT);

const struct tool tool_table[] = {
    {"sessions", "Recorded sessions",
     "List the recorded GPU sessions in this server's directory, newest first: name, program, engine, start, duration, kernels, completeness, size.",
     sessions_parameters,
     "\"directory\":{\"type\":\"string\"},\"sessions\":" ROWS(
         "\"name\",\"id\",\"app\",\"engine\",\"start_time\",\"duration_ns\",\"kernels_timed\",\"state\",\"lost\",\"log_bytes\"",
         "\"name\":{\"type\":\"string\"},\"id\":" STRING ",\"app\":" STRING ",\"command\":" STRING ",\"engine\":" STRING
         ",\"host\":" STRING ",\"start_time\":" STRING ",\"duration_ns\":" INTEGER ",\"kernels_timed\":" INTEGER
         ",\"launches_not_timed\":" INTEGER ",\"state\":{\"type\":\"string\"},\"lost\":" INTEGER
         ",\"log_bytes\":" COUNT) PAGE,
     "\"directory\",\"sessions\",\"page\"", tool_sessions},
    {"summary", "Summary of a session",
     "Summarize one session: program, GPUs, where the GPU's time went (busy, waiting for launches, copies, no work), the "
     "top kernels, the top insights, what profiling cost and what is missing. Start here.",
     summary_parameters,
     "\"recording\":" OBJECT ",\"gpus\":" OBJECTS ",\"completeness\":" OBJECT ",\"overhead\":" OBJECT_OR_NULL
     ",\"time\":" ROWS("\"device\",\"busy_ns\"",
                       "\"device\":" INTEGER ",\"busy_ns\":" INTEGER ",\"compute_ns\":" INTEGER
                       ",\"copies_only_ns\":" INTEGER ",\"wait_launch_ns\":" INTEGER ",\"wait_sync_ns\":" INTEGER
                       ",\"queued_ns\":" INTEGER ",\"no_work_ns\":" INTEGER
                       ",\"unknown_ns\":" INTEGER) ",\"kernel_ns\":" INTEGER ",\"top_kernels\":" OBJECTS
                                                   ",\"top_insights\":" OBJECTS ",\"recorded\":" OBJECT,
     "\"recording\",\"gpus\",\"completeness\",\"time\",\"top_kernels\",\"top_insights\",\"recorded\"", tool_summary},
    {"insights", "Problems found by rules",
     "List the problems that gpufl's rules found in a session, worst first, each with the time concerned and advice.",
     insights_parameters,
     "\"insights\":" ROWS("\"rule\",\"severity\",\"impact_ns\",\"text\"",
                          "\"rule\":{\"type\":\"string\"},\"severity\":{\"enum\":[\"high\",\"medium\",\"low\"]},"
                          "\"impact_ns\":" INTEGER ",\"text\":{\"type\":\"string\"}") PAGE,
     "\"insights\",\"page\"", tool_insights},
    {"kernels", "Kernels by GPU time",
     "List a session's GPU kernels, most total time first: calls, total, median and tail durations, share of kernel time, "
     "launch configuration, occupancy and its limiter.",
     kernels_parameters,
     "\"kernel_ns\":" INTEGER ",\"kernels\":" ROWS(
         "\"name\",\"count\",\"total_ns\",\"median_ns\",\"share\",\"launch\"",
         "\"name\":" STRING ",\"kernel_id\":" COUNT ",\"count\":" COUNT ",\"total_ns\":" INTEGER ",\"mean_ns\":" NUMBER
         ",\"median_ns\":" INTEGER ",\"p90_ns\":" INTEGER ",\"p99_ns\":" INTEGER ",\"min_ns\":" INTEGER
         ",\"max_ns\":" INTEGER ",\"share\":" NUMBER ",\"launch\":" OBJECT_OR_NULL ",\"launch_variants\":" COUNT) PAGE,
     "\"kernels\",\"page\"", tool_kernels},
    {"scopes", "Scopes of the program",
     "List the named regions of the program (scopes, NVTX ranges) with wall time, GPU time, kernels and host waits.",
     scopes_parameters,
     "\"scopes\":" ROWS("\"path\",\"depth\",\"calls\",\"wall_ns\",\"gpu_ns\",\"kernels\"",
                        "\"path\":{\"type\":\"string\"},\"depth\":" COUNT ",\"calls\":" COUNT ",\"wall_ns\":" INTEGER
                        ",\"gpu_ns\":" INTEGER ",\"gpu_self_ns\":" INTEGER ",\"gpu_inferred_ns\":" INTEGER
                        ",\"kernels\":" COUNT ",\"sync_ns\":" INTEGER) ",\"outside_scopes\":" OBJECT PAGE,
     "\"scopes\",\"outside_scopes\",\"page\"", tool_scopes},
    {"stalls", "What warps waited for",
     "Show what sampled warps waited for (PC sampling): stall reasons of the whole session with their meaning and advice, "
     "and the functions with most samples.",
     stalls_parameters,
     "\"samples\":" COUNT ",\"reasons\":" ROWS(
         "\"name\",\"family\",\"samples\",\"share\",\"words\",\"advice\"",
         "\"name\":{\"type\":\"string\"},\"family\":{\"type\":\"string\"},\"samples\":" COUNT ",\"share\":" NUMBER
         ",\"words\":" STRING ",\"advice\":" STRING) ",\"functions\":" OBJECTS PAGE,
     "\"samples\",\"reasons\",\"functions\",\"page\"", tool_stalls},
    {"lines", "Hot source lines",
     "List the hottest source lines of GPU code: samples, the stall reason that dominates with its meaning and advice, "
     "instruction counters (executed, coalescing, bank conflicts, divergence) and the hottest instructions.",
     lines_parameters,
     "\"samples\":" COUNT ",\"lines\":" ROWS(
         "\"function\",\"file\",\"line\",\"source\",\"samples\",\"share\",\"stalls\",\"cause\",\"counters\"",
         "\"function\":" STRING ",\"file\":" STRING ",\"line\":" INTEGER ",\"source\":" STRING ",\"samples\":" COUNT
         ",\"share\":" NUMBER ",\"stalls\":" OBJECT ",\"cause\":" OBJECT_OR_NULL ",\"counters\":" OBJECT_OR_NULL
         ",\"instructions\":" OBJECTS) PAGE,
     "\"samples\",\"lines\",\"page\"", tool_lines},
    {"instructions", "Instructions of a function",
     "Show one GPU function instruction by instruction: text, source line, samples by stall reason, counters.",
     instructions_parameters,
     "\"function\":" OBJECT ",\"instructions\":" ROWS("\"pc\",\"sass\",\"line\",\"samples\",\"stalls\",\"counters\"",
                                                      "\"pc\":" COUNT ",\"sass\":" STRING ",\"file\":" STRING
                                                      ",\"line\":" INTEGER ",\"source\":" STRING ",\"samples\":" COUNT
                                                      ",\"stalls\":" OBJECT ",\"counters\":" OBJECT_OR_NULL) PAGE,
     "\"function\",\"instructions\",\"page\"", tool_instructions},
    {"metrics", "Hardware metrics",
     "Show hardware metrics of kernels or scopes (engine RangeProfiler) and counters sampled over time (--pm). Units are "
     "those of NVIDIA's metric names.",
     metrics_parameters, "\"metrics\":" OBJECTS ",\"counters_over_time\":" OBJECTS PAGE,
     "\"metrics\",\"counters_over_time\",\"page\"", tool_metrics},
    {"timeline", "A slice of the timeline",
     "Show a slice of time: how busy each GPU was, copies, host waits and energy, and the events of each track. Times are "
     "nanoseconds after the start of the session. Narrow the slice to see single events.",
     timeline_parameters,
     "\"from_ns\":" COUNT ",\"to_ns\":" COUNT ",\"devices\":" OBJECTS ",\"copies\":" OBJECTS ",\"sync_ns\":" INTEGER
     ",\"tracks\":" ROWS(
         "\"id\",\"kind\",\"busy_ns\",\"is_exact\",\"rows\"",
         "\"id\":{\"type\":\"string\"},\"kind\":{\"type\":\"string\"},\"busy_ns\":" INTEGER ",\"is_exact\":" BOOLEAN
         ",\"rows\":" ROWS("\"start_ns\",\"name\"", "\"start_ns\":" COUNT ",\"duration_ns\":" INTEGER
                                                    ",\"busy_ns\":" INTEGER ",\"events\":" INTEGER ",\"name\":" STRING))
         PAGE,
     "\"from_ns\",\"to_ns\",\"devices\",\"tracks\",\"page\"", tool_timeline},
    {"diff", "Compare two sessions",
     "Compare two sessions: which kernels and scopes became slower or faster by more than noise, largest change first, "
     "and whether there is a regression.",
     diff_parameters,
     "\"comparison\":{\"type\":\"object\",\"required\":[\"base\",\"new\",\"threshold\",\"regressions\",\"no_verdict\","
     "\"kernels\",\"scopes\"],\"properties\":{\"base\":" OBJECT ",\"new\":" OBJECT ",\"threshold\":" NUMBER
     ",\"regressions\":" INTEGER ",\"no_verdict\":" STRING ",\"no_verdict_reason\":" STRING ",\"kernels\":" OBJECTS
     ",\"scopes\":" OBJECTS "}},\"kernels_total\":" COUNT ",\"scopes_total\":" COUNT,
     "\"comparison\",\"kernels_total\",\"scopes_total\"", tool_diff},
    {0}};

const struct tool *tool_find(const char *name)
{
    for (const struct tool *tool = tool_table; tool->name; tool++)
        if (!strcmp(tool->name, name))
            return tool;
    return NULL;
}

static bool has_session(const struct tool *tool)
{
    return !strcmp(tool->parameters[0].name, "session");
}

void tools_list(struct bytes *out)
{
    bytes_append_text(out, "{\"tools\":[");
    for (const struct tool *tool = tool_table; tool->name; tool++) {
        element(out, '{');
        member_text(out, "name", tool->name);
        member_text(out, "title", tool->title);
        member_text(out, "description", tool->about);
        json_key(out, "inputSchema");
        parameters_schema(tool->parameters, out);
        json_key(out, "outputSchema");
        bytes_append_format(out, "{\"type\":\"object\",\"properties\":{%s%s,%s},\"required\":[%s%s,\"more\"]}",
                            has_session(tool) ? frame_session : "", tool->properties, frame_more,
                            has_session(tool) ? "\"session\",\"evidence\"," : "", tool->required);
        bytes_append_text(out, ",\"annotations\":{");
        member_text(out, "title", tool->title);
        member_bool(out, "readOnlyHint", true);
        member_bool(out, "destructiveHint", false);
        member_bool(out, "idempotentHint", true);
        member_bool(out, "openWorldHint", false);
        bytes_append_text(out, "}}");
    }
    bytes_append_text(out, "]}");
}

void tool_run(struct mcp_server *server, const struct tool *tool, const struct json_value *arguments, struct bytes *out)
{
    struct bytes answer = {0};
    struct tool_call call = {.server = server, .tool = tool, .arguments = arguments, .out = &answer};
    bytes_append_char(&answer, '{');
    bool is_good = arguments_check(&call) && tool->run(&call);
    bytes_append_char(&answer, '}');
    struct bytes compact = {0};
    answer_compact(bytes_text(&answer), answer.size, &compact);
    if (is_good && (answer.failed || compact.failed))
        is_good = tool_fail(&call, "no memory to answer");
    bytes_append_text(out, "{\"content\":[{\"type\":\"text\"");
    json_key(out, "text");
    if (is_good)
        json_string(out, compact.data, compact.size);
    else
        json_text(out, call.problem.text);
    bytes_append_text(out, "}]");
    if (is_good) {
        json_key(out, "structuredContent");
        bytes_append(out, compact.data, compact.size);
    }
    member_bool(out, "isError", !is_good);
    bytes_append_char(out, '}');
    bytes_free(&answer);
    bytes_free(&compact);
}
