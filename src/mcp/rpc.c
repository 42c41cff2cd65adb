/* SPDX-License-Identifier: Apache-2.0 */
/* JSON-RPC 2.0 and the part of the Model Context Protocol that a server with tools needs. */
#include "analysis/report_json.h"
#include "mcp/line_input.h"
#include "mcp/mcp.h"
#include "mcp/server.h"
#include "mcp/tool.h"

#include <stdio.h>
#include <stdlib.h>

enum rpc_error { RPC_PARSE = -32700, RPC_REQUEST = -32600, RPC_METHOD = -32601, RPC_PARAMS = -32602 };
enum { batch_max = 64 };

/* Newest first; a client that asks for another version is offered the newest. */
static const char *const versions[] = {"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"};
/* This version and later ones have no batches. */
static const char without_batches[] = "2025-06-18";

static const char instructions[] =
    "GPU profiles recorded by gpufl, read-only. Start with `sessions`, then `summary` of one, then follow the pointers "
    "in `more`. `insights` names problems found by rules; `kernels` and `scopes` show where GPU time went; `lines`, "
    "`instructions` and `stalls` show which source line or instruction waits for what (sessions of the engines Deep, "
    "PcSampling and SassMetrics); `metrics` shows hardware metrics; `timeline` shows a slice of time; `diff` compares "
    "two sessions. Units are in the names (_ns nanoseconds, _bytes, _uj microjoules, _bp basis points; share: fraction "
    "from 0 to 1). null means not recorded, never zero; counters that an instruction lacks are left out. `evidence` says "
    "how figures were measured and whether anything is missing. To record: `gpufl trace -- PROGRAM`, for source lines "
    "`gpufl trace --engine Deep -- PROGRAM` (compile with -lineinfo).";

gpufl_status mcp_open(struct mcp_server **out, const char *root, struct problem *problem)
{
    struct mcp_server *server = calloc(1, sizeof *server);
    if (!server)
        return problem_set(problem, GPUFL_E_NO_MEMORY, "out of memory");
    gpufl_status status = session_root_open(&server->root, root, problem);
    if (status != GPUFL_OK) {
        free(server);
        return status;
    }
    server->version = versions[0];
    *out = server;
    return GPUFL_OK;
}

void mcp_close(struct mcp_server *server)
{
    if (!server)
        return;
    open_sessions_free(&server->sessions);
    free(server);
}

const char *mcp_root(const struct mcp_server *server)
{
    return server->root.path;
}

static void answer_open(struct bytes *out, const struct json_value *id)
{
    element(out, '{');
    member_text(out, "jsonrpc", "2.0");
    json_key(out, "id");
    if (id && id->kind == JSON_STRING)
        json_string(out, id->text, id->text_size);
    else if (id && id->kind == JSON_INT && id->is_unsigned)
        json_uint(out, (uint64_t)id->integer);
    else if (id && id->kind == JSON_INT)
        json_int(out, id->integer);
    else if (id && id->kind == JSON_DOUBLE)
        json_double(out, id->number);
    else
        json_text(out, NULL);
}

static void answer_error(struct bytes *out, const struct json_value *id, enum rpc_error code, const char *format, ...)
    PRINTF_LIKE(4, 5);
static void answer_error(struct bytes *out, const struct json_value *id, enum rpc_error code, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    answer_open(out, id);
    json_key(out, "error");
    bytes_append_char(out, '{');
    member_int(out, "code", code);
    member_text(out, "message", text);
    bytes_append_text(out, "}}");
}

static bool is_text(const struct json_value *value, const char *text)
{
    return value && value->kind == JSON_STRING && value->text_size == strlen(text) && !strcmp(value->text, text);
}

static void initialize(struct mcp_server *server, const struct json_value *params, struct bytes *out)
{
    const char *wanted = json_get_text(params, "protocolVersion", "");
    server->version = versions[0];
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++)
        if (!strcmp(wanted, versions[i]))
            server->version = versions[i];
    bytes_append_char(out, '{');
    member_text(out, "protocolVersion", server->version);
    bytes_append_text(out, ",\"capabilities\":{\"tools\":{\"listChanged\":false}},\"serverInfo\":{");
    member_text(out, "name", "gpufl");
    member_text(out, "title", "gpufl GPU profiles");
    member_text(out, "version", GPUFL_VERSION_STRING);
    bytes_append_char(out, '}');
    member_text(out, "instructions", instructions);
    bytes_append_char(out, '}');
}

static void call_tool(struct mcp_server *server, const struct json_value *id, const struct json_value *params,
                      struct bytes *out)
{
    const char *name = json_get_text(params, "name", NULL);
    const struct json_value *arguments = json_member(params, "arguments");
    const struct tool *tool = name ? tool_find(name) : NULL;
    if (!tool) {
        struct bytes names = {0};
        for (const struct tool *at = tool_table; at->name; at++)
            bytes_append_format(&names, "%s%s", names.size ? ", " : "", at->name);
        answer_error(out, id, RPC_PARAMS, "no tool '%.64s'; tools are %s", name ? name : "", bytes_text(&names));
        bytes_free(&names);
        return;
    }
    if (arguments && arguments->kind != JSON_OBJECT && arguments->kind != JSON_NULL) {
        answer_error(out, id, RPC_PARAMS, "arguments of the tool %s must be an object", name);
        return;
    }
    answer_open(out, id);
    json_key(out, "result");
    tool_run(server, tool, arguments, out);
    bytes_append_char(out, '}');
}

static void call_method(struct mcp_server *server, const struct json_value *id, const char *method,
                        const struct json_value *params, struct bytes *out)
{
    bool is_list = !strcmp(method, "tools/list");
    if (!strcmp(method, "tools/call")) {
        call_tool(server, id, params, out);
    } else if (is_list && json_member(params, "cursor")) {
        answer_error(out, id, RPC_PARAMS, "tools/list has one page only: call it without a cursor");
    } else if (is_list || !strcmp(method, "ping") || !strcmp(method, "initialize")) {
        answer_open(out, id);
        json_key(out, "result");
        if (is_list)
            tools_list(out);
        else if (!strcmp(method, "initialize"))
            initialize(server, params, out);
        else
            bytes_append_text(out, "{}");
        bytes_append_char(out, '}');
    } else {
        answer_error(out, id, RPC_METHOD, "no method '%.64s'; methods are initialize, ping, tools/list and tools/call",
                     method);
    }
}

/* Handles one message: requests are answered; notifications and answers are not. */
static void message_answer(struct mcp_server *server, const struct json_value *message, struct bytes *out)
{
    const struct json_value *id = json_member(message, "id"), *method = json_member(message, "method");
    const struct json_value *params = json_member(message, "params");
    bool has_id = id && (id->kind == JSON_STRING || id->kind == JSON_INT || id->kind == JSON_DOUBLE);
    bool is_answer = !method && (json_member(message, "result") || json_member(message, "error"));
    if (message->kind != JSON_OBJECT)
        answer_error(out, NULL, RPC_REQUEST, "a message must be an object, at column %u", message->column);
    else if (is_answer)
        return;
    else if (!is_text(json_member(message, "jsonrpc"), "2.0"))
        answer_error(out, has_id ? id : NULL, RPC_REQUEST, "\"jsonrpc\" must be \"2.0\"");
    else if (!method || method->kind != JSON_STRING || strlen(method->text) != method->text_size)
        answer_error(out, has_id ? id : NULL, RPC_REQUEST, "\"method\" must be a string");
    else if (id && !has_id)
        answer_error(out, NULL, RPC_REQUEST, "\"id\" must be a string or a number, at column %u", id->column);
    else if (id && params && params->kind != JSON_OBJECT)
        answer_error(out, id, RPC_PARAMS, "\"params\" must be an object, at column %u", params->column);
    else if (id)
        call_method(server, id, method->text, params, out);
}

static void batch_answer(struct mcp_server *server, const struct json_value *batch, struct bytes *out)
{
    if (strcmp(server->version, without_batches) >= 0) {
        answer_error(out, NULL, RPC_REQUEST, "protocol version %s has no batches: send one message per line",
                     server->version);
        return;
    }
    if (!batch->count || batch->count > batch_max) {
        answer_error(out, NULL, RPC_REQUEST, "a batch holds 1 to %d messages, this one %u", batch_max, batch->count);
        return;
    }
    struct bytes answers = {0};
    bytes_append_char(&answers, '[');
    for (const struct json_value *message = batch->child; message; message = message->next)
        message_answer(server, message, &answers);
    if (answers.size > 1) {
        bytes_append_char(&answers, ']');
        bytes_append(out, answers.data, answers.size);
    }
    out->failed |= answers.failed;
    bytes_free(&answers);
}

/* element() writes a comma between members of a list; a line begins anew. */
static void line_close(struct bytes *out, const struct bytes *answer)
{
    if (answer->size) {
        bytes_append(out, answer->data, answer->size);
        bytes_append_char(out, '\n');
    }
    out->failed |= answer->failed;
}

void mcp_answer(struct mcp_server *server, const char *line, size_t size, struct bytes *out)
{
    struct json_document document;
    struct json_error error;
    struct bytes answer = {0};
    size_t blanks = 0;
    while (blanks < size && (line[blanks] == ' ' || line[blanks] == '\t'))
        blanks++;
    if (blanks == size)
        return;
    if (json_parse(&document, line, size, &error) != GPUFL_OK) {
        answer_error(&answer, NULL, RPC_PARSE, "not JSON, at column %u: %s", error.column, error.text);
    } else {
        if (document.root->kind == JSON_ARRAY)
            batch_answer(server, document.root, &answer);
        else
            message_answer(server, document.root, &answer);
        json_free(&document);
    }
    line_close(out, &answer);
    bytes_free(&answer);
}

void mcp_refuse_long_line(struct bytes *out)
{
    struct bytes answer = {0};
    answer_error(&answer, NULL, RPC_REQUEST, "a message is longer than %d bytes; it was skipped", LINE_INPUT_MAX);
    line_close(out, &answer);
    bytes_free(&answer);
}

static bool is_same_id(const struct json_value *a, const struct json_value *b)
{
    if (!a || !b || a->kind != b->kind)
        return false;
    if (a->kind == JSON_STRING)
        return a->text_size == b->text_size && !memcmp(a->text, b->text, a->text_size);
    return a->kind == JSON_INT && a->integer == b->integer && a->is_unsigned == b->is_unsigned;
}

bool mcp_is_cancelled(const struct bytes *line, const struct bytes *notice)
{
    static const char method[] = "notifications/cancelled";
    struct json_document request, cancelling;
    if (!line->size || !notice->size || !memmem(notice->data, notice->size, method, sizeof method - 1) ||
        json_parse(&cancelling, notice->data, notice->size, NULL) != GPUFL_OK)
        return false;
    bool is_cancelled = false;
    if (is_text(json_member(cancelling.root, "method"), method) && !json_member(cancelling.root, "id") &&
        json_parse(&request, line->data, line->size, NULL) == GPUFL_OK) {
        const struct json_value *id = json_member(request.root, "id");
        /* The protocol excepts the first request. */
        is_cancelled = json_member(request.root, "method") &&
                       !is_text(json_member(request.root, "method"), "initialize") &&
                       is_same_id(id, json_member(json_member(cancelling.root, "params"), "requestId"));
        json_free(&request);
    }
    json_free(&cancelling);
    return is_cancelled;
}
