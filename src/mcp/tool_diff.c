/* SPDX-License-Identifier: Apache-2.0 */
/* Compares two sessions. */
#include "analysis/compare.h"
#include "mcp/tool.h"

#include <stdio.h>
#include <stdlib.h>

static int compare_rows(const void *a, const void *b)
{
    const struct compared_row *const *left = a, *const *right = b;
    bool is_left_same = (*left)->verdict == CHANGE_NONE, is_right_same = (*right)->verdict == CHANGE_NONE;
    return is_left_same != is_right_same ? (is_left_same ? 1 : -1) : *left < *right ? -1 : *left > *right;
}

/* At most `limit` rows, those that changed by more than noise first; returns how many did. NULL in *out: no memory. */
static size_t rows_choose(const struct compared_row *rows, size_t count, size_t limit, struct compared_row **out)
{
    const struct compared_row **order = malloc((count + 1) * sizeof *order);
    size_t changed = 0;
    *out = order ? malloc((limit + 1) * sizeof **out) : NULL;
    for (size_t i = 0; order && i < count; i++) {
        order[i] = &rows[i];
        changed += rows[i].verdict != CHANGE_NONE;
    }
    if (*out && count)
        qsort(order, count, sizeof *order, compare_rows);
    for (size_t i = 0; *out && i < count && i < limit; i++)
        (*out)[i] = *order[i];
    free(order);
    return changed;
}

static bool comparison_write(struct tool_call *call, const struct open_session *base, const struct open_session *fresh)
{
    const struct compare_options options = {.threshold = (double)argument_int(call, "threshold_percent") / 100};
    struct comparison comparison;
    size_t limit = (size_t)argument_int(call, "limit");
    if (compare_make(&comparison, &base->analysis, &fresh->analysis, &options) != GPUFL_OK)
        return tool_fail(call, "no memory to answer");
    struct comparison shown = comparison; /* names stay the comparison's */
    size_t kernels = rows_choose(comparison.kernels, comparison.kernel_count, limit, &shown.kernels);
    size_t scopes = rows_choose(comparison.scopes, comparison.scope_count, limit, &shown.scopes);
    bool is_good = (shown.kernels && shown.scopes) || tool_fail(call, "no memory to answer");
    shown.kernel_count = shown.kernel_count < limit ? shown.kernel_count : limit;
    shown.scope_count = shown.scope_count < limit ? shown.scope_count : limit;
    if (is_good) {
        json_key(call->out, "comparison");
        compare_json(&shown, call->out);
        member_uint(call->out, "kernels_changed", kernels);
        member_uint(call->out, "kernels_total", comparison.kernel_count);
        member_uint(call->out, "scopes_changed", scopes);
        member_uint(call->out, "scopes_total", comparison.scope_count);
    }
    free(shown.kernels);
    free(shown.scopes);
    compare_free(&comparison);
    return is_good;
}

bool tool_diff(struct tool_call *call)
{
    struct open_session *base, *fresh;
    char base_name[SESSION_PATH_SIZE];
    if (!session_choose(call, "base", "latest~1", &base))
        return false;
    snprintf(base_name, sizeof base_name, "%s", call->session_name);
    if (!session_choose(call, "new", "latest", &fresh))
        return false;
    if (base == fresh)
        return tool_fail(call, "base and new are the same session, '%.200s': give both arguments", base_name);
    if (!comparison_write(call, base, fresh))
        return false;
    more_open(call);
    more_add(call, "summary", "the new session at a glance", NULL, NULL);
    snprintf(call->session_name, sizeof call->session_name, "%s", base_name);
    more_add(call, "summary", "the session that it was compared with", NULL, NULL);
    more_close(call);
    return true;
}
