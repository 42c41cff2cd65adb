/* SPDX-License-Identifier: Apache-2.0 */
/* Two sessions beside each other. */
#include "analysis/compare.h"
#include "mcp/tool.h"

#include <stdio.h>

static bool comparison_write(struct tool_call *call, const struct open_session *base, const struct open_session *fresh)
{
    const struct compare_options options = {.threshold = (double)argument_int(call, "threshold_percent") / 100};
    struct comparison comparison;
    size_t limit = (size_t)argument_int(call, "limit");
    if (compare_make(&comparison, &base->analysis, &fresh->analysis, &options) != GPUFL_OK)
        return tool_fail(call, "no memory to answer");
    struct comparison shown = comparison; /* the rows stay the comparison's */
    shown.kernel_count = shown.kernel_count < limit ? shown.kernel_count : limit;
    shown.scope_count = shown.scope_count < limit ? shown.scope_count : limit;
    json_key(call->out, "comparison");
    compare_json(&shown, call->out);
    member_uint(call->out, "kernels_total", comparison.kernel_count);
    member_uint(call->out, "scopes_total", comparison.scope_count);
    compare_free(&comparison);
    return true;
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
