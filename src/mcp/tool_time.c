/* SPDX-License-Identifier: Apache-2.0 */
/* Where the time went: summary, insights, kernels, scopes. */
#include "mcp/tool.h"

#include <stdlib.h>

enum { top_kernels = 3, top_insights = 3 };

static const char by_records[] =
    "a record of each kernel's start and end on the GPU, from the vendor's tracing interface";

/* Unknown where kernels ran and none was timed. */
static void kernel_time_write(const struct analysis *analysis, struct bytes *out)
{
    member_int(out, "kernel_ns", session_has_kernel_times(analysis->model) ? analysis->kernel_ns : CELL_UNKNOWN);
}

static void recorded_write(const struct analysis *analysis, struct bytes *out)
{
    json_key(out, "recorded");
    bytes_append_char(out, '{');
    member_uint(out, "different_kernels", analysis->hotspot_count);
    member_uint(out, "scopes", analysis->scope_count ? analysis->scope_count - 1 : 0);
    member_uint(out, "hot_lines", analysis->code.line_count);
    member_uint(out, "hardware_metrics", analysis->deep.group_count);
    member_uint(out, "counters_over_time", analysis->model->deep.pm_count);
    member_uint(out, "insights", analysis->insight_count);
    bytes_append_char(out, '}');
}

/* Where to look next, by what there is. */
static void pointers_write(struct tool_call *call)
{
    const struct analysis *analysis = &call->session->analysis;
    if (analysis->insight_count && call->tool->run != tool_insights)
        more_add(call, "insights", "all problems found by rules, with advice", NULL, NULL);
    if (analysis->code.line_count)
        more_add(call, "lines", "the hottest source lines and what they wait for", NULL, NULL);
    if (analysis->stalls.row_count)
        more_add(call, "stalls", "what warps waited for, in the whole session and by function", NULL, NULL);
    if (analysis->deep.group_count || analysis->model->deep.pm_count)
        more_add(call, "metrics", "hardware metrics by kernel or scope, and over time", NULL, NULL);
    if (analysis->hotspot_count && call->tool->run != tool_kernels)
        more_add(call, "kernels", "every kernel with its durations and occupancy", NULL, NULL);
    if (analysis->scope_count > 1 && call->tool->run != tool_scopes)
        more_add(call, "scopes", "time by region of the program", NULL, NULL);
    if (analysis->model->kernels.count)
        more_add(call, "timeline", "what ran when", NULL, NULL);
}

bool tool_summary(struct tool_call *call)
{
    if (!answer_session(call))
        return false;
    const struct analysis *analysis = &call->session->analysis;
    struct bytes *out = call->out;
    json_session_as("recording", analysis, out);
    json_completeness(analysis, (int64_t)analysis->model->kernels.count, out);
    json_time(analysis, out);
    kernel_time_write(analysis, out);
    list_open(out, "top_kernels");
    for (size_t i = 0; i < analysis->hotspot_count && i < top_kernels; i++)
        json_hotspot(&analysis->hotspots[i], out);
    bytes_append_char(out, ']');
    list_open(out, "top_insights");
    for (size_t i = 0; i < analysis->insight_count && i < top_insights; i++)
        json_insight(&analysis->insights[i], out);
    bytes_append_char(out, ']');
    recorded_write(analysis, out);
    answer_evidence(call, by_records);
    more_open(call);
    pointers_write(call);
    more_close(call);
    return true;
}

bool tool_insights(struct tool_call *call)
{
    struct answer_page page;
    if (!answer_session(call) || !answer_page_open(call, &page))
        return false;
    const struct analysis *analysis = &call->session->analysis;
    list_open(call->out, "insights");
    for (size_t i = 0; i < analysis->insight_count; i++)
        if (answer_page_takes(&page, call->out))
            json_insight(&analysis->insights[i], call->out);
    bytes_append_char(call->out, ']');
    answer_page_close(call, &page);
    answer_evidence(call, "rules over the recorded figures; impact_ns is the time concerned, not the time to be saved");
    more_open(call);
    more_next_page(call, &page, "insights");
    pointers_write(call);
    more_close(call);
    return true;
}

bool tool_kernels(struct tool_call *call)
{
    const char *filter = argument_text(call, "filter"), *hottest = NULL;
    struct answer_page page;
    if (!answer_session(call) || !answer_page_open(call, &page))
        return false;
    const struct analysis *analysis = &call->session->analysis;
    kernel_time_write(analysis, call->out);
    list_open(call->out, "kernels");
    for (size_t i = 0; i < analysis->hotspot_count; i++) {
        const struct hotspot *hotspot = &analysis->hotspots[i];
        if (text_holds(hotspot->name ? hotspot->name : "", filter) && answer_page_takes(&page, call->out)) {
            json_hotspot(hotspot, call->out);
            hottest = hottest ? hottest : hotspot->name;
        }
    }
    bytes_append_char(call->out, ']');
    answer_page_close(call, &page);
    answer_evidence(call, by_records);
    more_open(call);
    more_next_page(call, &page, "kernels");
    if (hottest && analysis->code.line_count)
        more_add(call, "lines", "the hottest source lines of the first of these kernels", "function", hottest);
    pointers_write(call);
    more_close(call);
    return true;
}

/* ---- scopes ---- */

enum scope_order { ORDER_GPU, ORDER_WALL, ORDER_TREE };

struct scope_rank {
    int64_t value;
    uint32_t node, place; /* place: in the tree */
};

static int compare_ranks(const void *left, const void *right)
{
    const struct scope_rank *a = left, *b = right;
    if (a->value != b->value)
        return a->value > b->value ? -1 : 1;
    return a->place < b->place ? -1 : a->place > b->place;
}

/* The nodes in the order that was asked for; the caller frees. */
static struct scope_rank *scopes_ranked(const struct analysis *analysis, enum scope_order order, size_t *count)
{
    struct scope_rank *ranks = calloc(analysis->scope_count + 1, sizeof *ranks);
    *count = 0;
    for (uint32_t at = scope_tree_next(analysis, 0); ranks && at != ID_UNKNOWN; at = scope_tree_next(analysis, at)) {
        const struct scope_node *node = &analysis->scopes[at];
        int64_t value = order == ORDER_GPU ? node->gpu_self_ns : order == ORDER_WALL ? node->wall_ns : 0;
        ranks[*count] = (struct scope_rank){value, at, (uint32_t)*count};
        ++*count;
    }
    if (ranks && *count)
        qsort(ranks, *count, sizeof *ranks, compare_ranks);
    return ranks;
}

bool tool_scopes(struct tool_call *call)
{
    const char *filter = argument_text(call, "filter");
    struct answer_page page;
    struct bytes path = {0};
    size_t count;
    if (!answer_session(call) || !answer_page_open(call, &page))
        return false;
    const struct analysis *analysis = &call->session->analysis;
    struct scope_rank *ranks = scopes_ranked(analysis, (enum scope_order)argument_choice(call, "order"), &count);
    if (!ranks)
        return tool_fail(call, "no memory to answer");
    list_open(call->out, "scopes");
    for (size_t i = 0; i < count; i++) {
        bytes_clear(&path);
        scope_tree_path(analysis, ranks[i].node, &path);
        if (text_holds(bytes_text(&path), filter) && answer_page_takes(&page, call->out))
            json_scope(analysis, ranks[i].node, call->out);
    }
    bytes_append_char(call->out, ']');
    free(ranks);
    bytes_free(&path);
    json_outside_scopes(analysis, call->out);
    answer_page_close(call, &page);
    answer_evidence(call, "begin and end of each scope on its thread; GPU time is that of kernels launched inside");
    more_open(call);
    more_next_page(call, &page, "scopes");
    pointers_write(call);
    more_close(call);
    return true;
}
