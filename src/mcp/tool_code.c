/* SPDX-License-Identifier: Apache-2.0 */
/* Code: what warps waited for, at which line and at which instruction. */
#include "mcp/tool.h"

#include <math.h>

static const char by_samples[] = "PC sampling: the hardware notes what warps do at regular intervals, so samples are "
                                 "shares of time and not single events; counters are exact counts of the launches that "
                                 "were counted";

static double share_of(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : (double)NAN;
}

/* Fails if there are neither samples nor counters, and names the engine that records them. */
static bool code_need(struct tool_call *call)
{
    const struct analysis *analysis = &call->session->analysis;
    if (analysis->code.function_count || analysis->stalls.row_count)
        return true;
    return tool_fail(call,
                     "session '%.200s' has no PC samples and no instruction counters (engine %s); record them with "
                     "`gpufl trace --engine Deep -- PROGRAM`",
                     call->session_name, *analysis->model->job.engine ? analysis->model->job.engine : "unknown");
}

static void kind_write(const struct stall_kind *kind, uint64_t samples, uint64_t whole, struct bytes *out)
{
    json_stall_kind(kind, samples, out);
    member_double(out, "share", share_of(samples, whole));
    member_text(out, "advice", kind->advice);
}

/* Writes the reasons, the most frequent first. */
static void reasons_write(const struct stalls *stalls, struct bytes *out)
{
    bool is_written[STALL_KINDS_MAX] = {false};
    list_open(out, "reasons");
    for (unsigned i = 0; i < stalls->kind_count; i++) {
        unsigned best = STALL_KINDS_MAX;
        for (unsigned kind = 0; kind < stalls->kind_count; kind++)
            if (!is_written[kind] && stalls->total.by_kind[kind] &&
                (best == STALL_KINDS_MAX || stalls->total.by_kind[kind] > stalls->total.by_kind[best]))
                best = kind;
        if (best == STALL_KINDS_MAX)
            break;
        is_written[best] = true;
        element(out, '{');
        kind_write(&stalls->kinds[best], stalls->total.by_kind[best], stalls->total.samples, out);
        bytes_append_char(out, '}');
    }
    bytes_append_char(out, ']');
}

bool tool_stalls(struct tool_call *call)
{
    const char *filter = argument_text(call, "filter"), *hottest = NULL;
    struct answer_page page;
    if (!answer_session(call) || !code_need(call) || !answer_page_open(call, &page))
        return false;
    const struct stalls *stalls = &call->session->analysis.stalls;
    struct bytes *out = call->out;
    member_uint(out, "samples", stalls->total.samples);
    reasons_write(stalls, out);
    list_open(out, "functions");
    for (size_t i = 0; i < stalls->function_count; i++) {
        const struct function_stalls *function = &stalls->functions[i];
        const char *name = function_name(call->session->model, function->function_id);
        if (!text_holds(name ? name : "", filter) || !answer_page_takes(&page, out))
            continue;
        hottest = hottest ? hottest : name;
        element(out, '{');
        member_text(out, "name", name);
        json_crc(out, function->cubin_crc);
        member_double(out, "share", share_of(function->profile.samples, stalls->total.samples));
        json_profile(stalls, &function->profile, out);
        bytes_append_char(out, '}');
    }
    bytes_append_char(out, ']');
    answer_page_close(call, &page);
    answer_evidence(call, by_samples);
    more_open(call);
    more_next_page(call, &page, "functions");
    if (hottest)
        more_add(call, "lines", "the hottest source lines of the first of these functions", "function", hottest);
    more_close(call);
    return true;
}

/* Writes the dominant reason of a line, with its meaning. */
static void cause_write(const struct stalls *stalls, const struct hot_line *line, struct bytes *out)
{
    json_key(out, "cause");
    if (!line->stall_count) {
        json_text(out, NULL);
        return;
    }
    bytes_append_char(out, '{');
    kind_write(&stalls->kinds[line->stalls[0].kind], line->stalls[0].samples, line->samples, out);
    bytes_append_char(out, '}');
}

bool tool_lines(struct tool_call *call)
{
    const char *function = argument_text(call, "function"), *file = argument_text(call, "file"), *hottest = NULL;
    struct answer_page page;
    if (!answer_session(call) || !code_need(call) || !answer_page_open(call, &page))
        return false;
    const struct analysis *analysis = &call->session->analysis;
    struct bytes *out = call->out;
    member_uint(out, "samples", analysis->stalls.total.samples);
    list_open(out, "lines");
    for (size_t i = 0; i < analysis->code.line_count; i++) {
        const struct hot_line *line = &analysis->code.lines[i];
        const char *name = analysis->code.functions[line->function].name;
        if (!text_holds(name ? name : "", function) || !text_holds(line->file, file) || !answer_page_takes(&page, out))
            continue;
        hottest = hottest ? hottest : name;
        element(out, '{');
        json_line(analysis, line, (size_t)argument_int(call, "instructions"), out);
        member_double(out, "share", share_of(line->samples, analysis->stalls.total.samples));
        member_uint(out, "instruction_count", line->place_count);
        cause_write(&analysis->stalls, line, out);
        bytes_append_char(out, '}');
    }
    bytes_append_char(out, ']');
    answer_page_close(call, &page);
    answer_evidence(call, by_samples);
    more_open(call);
    more_next_page(call, &page, "lines");
    if (hottest)
        more_add(call, "instructions", "the function of the first of these lines, instruction by instruction",
                 "function", hottest);
    more_add(call, "insights", "problems that rules found, also in the code", NULL, NULL);
    more_close(call);
    return true;
}

/* ---- instructions ---- */

/* Finds a function by its full name or symbol, or else by a unique part of it. Of the same function in several cubins,
 * the hottest is used. */
static bool function_find(struct tool_call *call, uint32_t *chosen)
{
    const struct hot_code *code = &call->session->analysis.code;
    const char *wanted = argument_text(call, "function");
    const char *part = NULL;
    for (uint32_t i = 0; i < code->function_count; i++) {
        const struct hot_function *function = &code->functions[i];
        const char *name = function->name ? function->name : function->symbol ? function->symbol : "";
        *chosen = i;
        if (!strcmp(name, wanted) || (function->symbol && !strcmp(function->symbol, wanted)))
            return true;
    }
    for (uint32_t i = code->function_count; i-- > 0;) {
        const struct hot_function *function = &code->functions[i];
        const char *name = function->name ? function->name : function->symbol ? function->symbol : "";
        if (!text_holds(name, wanted))
            continue;
        if (part && strcmp(part, name) != 0)
            return tool_fail(call,
                             "'%.64s' fits several functions, among them '%.120s' and '%.120s': give more of the name",
                             wanted, name, part);
        part = name;
        *chosen = i;
    }
    return part || tool_fail(call, "no sampled or counted function '%.200s' in this session; the tool lines lists them",
                             wanted);
}

struct listing {
    struct tool_call *call;
    struct answer_page page;
    int64_t line;
    bool is_all;
};

static void step_write(void *user, const struct code_step *step)
{
    struct listing *listing = user;
    bool is_wanted = (listing->line == CELL_UNKNOWN || step->text->line == (uint32_t)listing->line) &&
                     (listing->is_all || step->place);
    if (is_wanted && answer_page_takes(&listing->page, listing->call->out))
        json_step(&listing->call->session->analysis, step, listing->call->out);
}

static void function_write(const struct hot_function *function, struct bytes *out)
{
    json_key(out, "function");
    bytes_append_char(out, '{');
    member_text(out, "name", function->name);
    member_text(out, "symbol", function->symbol);
    member_text(out, "language", image_language(function->vendor));
    json_crc(out, function->cubin_crc);
    member_uint(out, "samples", function->samples);
    json_counts(&function->counts, function->has_counts, out);
    member_text(out, "problem", function->problem);
    bytes_append_char(out, '}');
}

bool tool_instructions(struct tool_call *call)
{
    struct listing listing = {
        .call = call, .line = argument_int(call, "line"), .is_all = argument_choice(call, "show") == 0};
    uint32_t chosen = 0;
    struct code_lookup lookup;
    if (!answer_session(call) || !code_need(call) || !answer_page_open(call, &listing.page) ||
        !function_find(call, &chosen))
        return false;
    const struct hot_code *code = &call->session->analysis.code;
    if (code_lookup_open(&lookup, call->session->model, CODE_NAMED_TOOLS) != GPUFL_OK)
        return tool_fail(call, "no memory to answer");
    function_write(&code->functions[chosen], call->out);
    list_open(call->out, "instructions");
    gpufl_status status = code_walk(&lookup, code, chosen, step_write, &listing);
    bytes_append_char(call->out, ']');
    bool has_failed = status != GPUFL_OK || lookup.has_failed;
    code_lookup_close(&lookup);
    if (has_failed)
        return tool_fail(call, "no memory to answer");
    answer_page_close(call, &listing.page);
    answer_evidence(call, by_samples);
    more_open(call);
    more_next_page(call, &listing.page, "instructions");
    more_add(call, "stalls", "what the reasons mean, and what to try", NULL, NULL);
    more_close(call);
    return true;
}
