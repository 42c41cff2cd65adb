/* SPDX-License-Identifier: Apache-2.0 */
/* The tools that a client can call. One table (tools.c) holds names, descriptions, arguments and schemas, from which
 * tools/list and the check of arguments are derived. A tool writes the members of one object, its structured answer. */
#ifndef GPUFL_MCP_TOOL_H
#define GPUFL_MCP_TOOL_H

#include "analysis/report_json.h"
#include "mcp/server.h"

enum parameter_kind { PARAMETER_TEXT, PARAMETER_INTEGER, PARAMETER_CHOICE };

struct tool_parameter {
    const char *name;
    enum parameter_kind kind;
    bool is_required;
    const char *about;
    int64_t min, max, fallback; /* of integers; fallback CELL_UNKNOWN: none */
    const char *const *words;   /* of a choice, NULL-terminated; the first is the default */
};

struct tool_call {
    struct mcp_server *server;
    const struct tool *tool;
    const struct json_value *arguments;   /* checked against the tool's parameters */
    struct bytes *out;                    /* an open object */
    char session_name[SESSION_PATH_SIZE]; /* relative to the root: how arguments name it; "" none */
    char session_path[SESSION_PATH_SIZE];
    struct open_session *session;
    struct problem problem; /* why the tool failed */
};

struct tool {
    const char *name, *title, *about;
    const struct tool_parameter *parameters; /* ends with name NULL */
    const char *properties;                  /* JSON Schema: of the answer, what is its own; tools.c adds the frame */
    const char *required;                    /* names of those, in quotes, separated by commas */
    bool (*run)(struct tool_call *call);     /* false: the problem says why */
};

extern const struct tool tool_table[]; /* ends with name NULL */
const struct tool *tool_find(const char *name);
void tools_list(struct bytes *out);
/* Appends a CallToolResult. */
void tool_run(struct mcp_server *server, const struct tool *tool, const struct json_value *arguments,
              struct bytes *out);

/* Arguments. tool_arguments.c */
bool arguments_check(struct tool_call *call);
const char *argument_text(const struct tool_call *call, const char *name); /* NULL: absent or empty */
int64_t argument_int(const struct tool_call *call, const char *name);      /* else the parameter's fallback */
int argument_choice(const struct tool_call *call, const char *name);       /* index of the word */
void parameters_schema(const struct tool_parameter *parameters, struct bytes *out);

/* Sets the problem; returns false. */
bool tool_fail(struct tool_call *call, const char *format, ...) PRINTF_LIKE(2, 3);

/* Parts of answers. answer.c */
/* A page of rows: `limit` and `cursor` of the arguments. A page of a large answer ends early. */
struct answer_page {
    size_t first, limit; /* requested */
    size_t seen, shown;  /* rows that match the arguments; rows that were written */
    size_t start_bytes;
};
bool answer_page_open(struct tool_call *call, struct answer_page *page);
/* Counts a row; true: write it. */
bool answer_page_takes(struct answer_page *page, const struct bytes *out);
/* page {returned total next_cursor}. */
void answer_page_close(struct tool_call *call, const struct answer_page *page);

/* Opens the session that the argument names and writes the member "session". */
bool answer_session(struct tool_call *call);
/* How to record sessions that this server can read. */
void answer_advice(const struct tool_call *call, char *out, size_t size);
/* Chooses the session that an argument names, or the fallback, and stores it in the call. */
bool session_choose(struct tool_call *call, const char *argument, const char *fallback, struct open_session **out);
void member_time(struct bytes *out, const char *key, int64_t time_ns); /* as 2026-11-15T02:13:07Z */
/* How the session was measured, and what is missing. */
void answer_evidence(struct tool_call *call, const char *measured_by);

/* The answer with fractions of at most six digits, and without the counters that are null. compact.c */
void answer_compact(const char *text, size_t size, struct bytes *out);

/* Pointers to more: more [{tool arguments {session ...} why}]. */
void more_open(struct tool_call *call);
/* key: another argument with its text value; NULL none. */
void more_add(struct tool_call *call, const char *tool, const char *why, const char *key, const char *value);
/* The next page if there is one; repeats the other arguments of the call. */
void more_next_page(struct tool_call *call, const struct answer_page *page, const char *what);
void more_close(struct tool_call *call);

bool text_holds(const char *text, const char *part); /* ignores case; part NULL: true, text NULL: false */

/* The tools: tool_sessions.c, tool_time.c, tool_code.c, tool_metrics.c, tool_timeline.c, tool_diff.c */
bool tool_sessions(struct tool_call *call);
bool tool_summary(struct tool_call *call);
bool tool_insights(struct tool_call *call);
bool tool_kernels(struct tool_call *call);
bool tool_scopes(struct tool_call *call);
bool tool_stalls(struct tool_call *call);
bool tool_lines(struct tool_call *call);
bool tool_instructions(struct tool_call *call);
bool tool_metrics(struct tool_call *call);
bool tool_timeline(struct tool_call *call);
bool tool_diff(struct tool_call *call);

#endif
