/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the answers of all tools: the session, how it was measured, pages, and pointers to more. */
#include "mcp/tool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <time.h>

enum { answer_bytes = 24 << 10, issues_shown = 5 };

bool tool_fail(struct tool_call *call, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(call->problem.text, sizeof call->problem.text, format, args);
    va_end(args);
    return false;
}

bool text_holds(const char *text, const char *part)
{
    return !part || (text && strcasestr(text, part));
}

bool answer_page_open(struct tool_call *call, struct answer_page *page)
{
    const char *cursor = argument_text(call, "cursor");
    *page = (struct answer_page){.limit = (size_t)argument_int(call, "limit"), .start_bytes = call->out->size};
    if (!cursor)
        return true;
    errno = 0;
    char *end;
    unsigned long long first = strtoull(cursor, &end, 10);
    if (errno || *end || *cursor < '0' || *cursor > '9')
        return tool_fail(call, "the argument 'cursor' must be the next_cursor of an earlier answer");
    page->first = (size_t)first;
    return true;
}

bool answer_page_takes(struct answer_page *page, const struct bytes *out)
{
    bool has_room = page->shown < page->limit && (!page->shown || out->size - page->start_bytes < answer_bytes);
    if (!has_room)
        page->limit = page->shown; /* later rows are not shown either */
    bool is_taken = page->seen >= page->first && has_room;
    page->seen++;
    page->shown += is_taken;
    return is_taken;
}

/* 0: this is the last page. */
static size_t next_cursor(const struct answer_page *page)
{
    size_t next = page->first + page->shown;
    return page->shown && next < page->seen ? next : 0;
}

static void cursor_write(struct bytes *out, const char *key, size_t cursor)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%zu", cursor);
    member_text(out, key, cursor ? digits : NULL);
}

void answer_page_close(struct tool_call *call, const struct answer_page *page)
{
    json_key(call->out, "page");
    bytes_append_char(call->out, '{');
    member_uint(call->out, "returned", page->shown);
    member_uint(call->out, "total", page->seen);
    cursor_write(call->out, "next_cursor", next_cursor(page));
    bytes_append_char(call->out, '}');
}

void answer_advice(const struct tool_call *call, char *out, size_t size)
{
    snprintf(out, size, "record one with `gpufl trace -o '%.300s' -- PROGRAM`", call->server->root.path);
}

/* The advice of the command line names commands that an assistant does not have. */
static bool place_missing(struct tool_call *call, const char *word, size_t session_count)
{
    char advice[512];
    answer_advice(call, advice, sizeof advice);
    if (!session_count)
        return tool_fail(call, "there is no session in '%.300s'; %s", call->server->root.path, advice);
    if (strncmp(word, "latest", strlen("latest")) == 0)
        return false; /* how many there are is said already */
    return tool_fail(call, "cannot open session '%.200s': no such session; the tool sessions lists the %zu in '%.300s'",
                     word, session_count, call->server->root.path);
}

static bool place_choose(struct tool_call *call, const char *word)
{
    const struct session_root *root = &call->server->root;
    struct session_scan found;
    struct session_choice choice;
    if (session_root_list(root, &found, &call->problem) != GPUFL_OK)
        return false;
    gpufl_status status = session_root_choose(root, &found, word, &choice, &call->problem);
    if (status == GPUFL_OK) {
        snprintf(call->session_path, sizeof call->session_path, "%s", choice.place.path);
        session_root_label(root, &found, &choice.place, call->session_name);
    }
    bool is_good = status == GPUFL_OK || (status == GPUFL_E_NOT_FOUND && place_missing(call, word, found.count));
    session_scan_free(&found);
    return is_good;
}

bool session_choose(struct tool_call *call, const char *argument, const char *fallback, struct open_session **out)
{
    const char *text = argument_text(call, argument);
    return place_choose(call, text ? text : fallback) &&
           open_sessions_get(&call->server->sessions, call->session_path, out, &call->problem) == GPUFL_OK;
}

void member_time(struct bytes *out, const char *key, int64_t time_ns)
{
    char text[40];
    time_t seconds = (time_t)(time_ns / 1000000000);
    struct tm parts;
    bool is_known = time_ns != TIME_UNKNOWN && time_ns >= 0 && gmtime_r(&seconds, &parts) &&
                    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    member_text(out, key, is_known ? text : NULL);
}

bool answer_session(struct tool_call *call)
{
    if (!session_choose(call, "session", "latest", &call->session))
        return false;
    const struct analysis *analysis = &call->session->analysis;
    const struct job_info *job = &analysis->model->job;
    struct bytes *out = call->out;
    json_key(out, "session");
    bytes_append_char(out, '{');
    member_text(out, "name", call->session_name);
    member_text(out, "id", job->session_id);
    member_text(out, "app", job->app);
    member_text(out, "engine", job->engine);
    member_time(out, "start_time", analysis->start_ns);
    member_int(out, "wall_ns", analysis->start_ns == TIME_UNKNOWN ? CELL_UNKNOWN : analysis->wall_ns);
    bytes_append_char(out, '}');
    return true;
}

/* Writes damage with its location; losses are in the summary. */
static void damage_write(const struct session_model *model, struct bytes *out)
{
    size_t count = 0;
    list_open(out, "damage");
    for (size_t i = 0; i < model->issue_count; i++) {
        const struct log_issue *issue = &model->issues[i];
        if (issue->kind == LOG_ISSUE_LOSS || issue->kind == LOG_ISSUE_UNFINISHED || count++ >= issues_shown)
            continue;
        element(out, '{');
        member_text(out, "file", issue->file);
        member_int(out, "line", issue->line ? (int64_t)issue->line : CELL_UNKNOWN);
        member_text(out, "problem", issue->text);
        bytes_append_char(out, '}');
    }
    bytes_append_char(out, ']');
    member_uint(out, "damage_count", count);
}

void answer_evidence(struct tool_call *call, const char *measured_by)
{
    const struct session_model *model = call->session->model;
    struct bytes *out = call->out;
    bool is_exact;
    uint64_t lost = session_lost(model, &is_exact);
    json_key(out, "evidence");
    bytes_append_char(out, '{');
    member_text(out, "measured_by", measured_by);
    member_uint(out, "kernels_timed", model->kernels.count);
    member_uint(out, "launches_not_timed", model->deep.untimed_count);
    member_uint(out, "pc_samples", call->session->analysis.stalls.total.samples);
    member_bool(out, "is_complete", session_is_complete(model));
    member_bool(out, "is_live", model->summary.is_live);
    member_uint(out, "lost", lost);
    member_bool(out, "lost_is_exact", is_exact);
    damage_write(model, out);
    bytes_append_char(out, '}');
}

void more_open(struct tool_call *call)
{
    list_open(call->out, "more");
}

static void pointer_open(struct tool_call *call, const char *tool, const char *why)
{
    element(call->out, '{');
    member_text(call->out, "tool", tool);
    member_text(call->out, "why", why);
    json_key(call->out, "arguments");
    bytes_append_char(call->out, '{');
}

void more_add(struct tool_call *call, const char *tool, const char *why, const char *key, const char *value)
{
    pointer_open(call, tool, why);
    if (*call->session_name)
        member_text(call->out, "session", call->session_name);
    if (key)
        member_text(call->out, key, value);
    bytes_append_text(call->out, "}}");
}

void more_next_page(struct tool_call *call, const struct answer_page *page, const char *what)
{
    char why[96];
    size_t next = next_cursor(page);
    if (!next)
        return;
    snprintf(why, sizeof why, "the next of %zu %s", page->seen, what);
    pointer_open(call, call->tool->name, why);
    if (*call->session_name)
        member_text(call->out, "session", call->session_name);
    for (const struct tool_parameter *at = call->tool->parameters; at->name; at++) {
        const struct json_value *value = json_member(call->arguments, at->name);
        if (!value || value->kind == JSON_NULL || !strcmp(at->name, "cursor") || !strcmp(at->name, "session"))
            continue;
        if (value->kind == JSON_STRING)
            member_text(call->out, at->name, value->text);
        else
            member_int(call->out, at->name, argument_int(call, at->name));
    }
    cursor_write(call->out, "cursor", next);
    bytes_append_text(call->out, "}}");
}

void more_close(struct tool_call *call)
{
    bytes_append_char(call->out, ']');
}
