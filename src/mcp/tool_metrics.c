/* SPDX-License-Identifier: Apache-2.0 */
/* Hardware metrics of kernels and scopes, and counters over time. */
#include "mcp/tool.h"

bool tool_metrics(struct tool_call *call)
{
    const char *filter = argument_text(call, "filter");
    struct answer_page page;
    if (!answer_session(call) || !answer_page_open(call, &page))
        return false;
    const struct analysis *analysis = &call->session->analysis;
    struct bytes *out = call->out;
    if (!analysis->deep.group_count && !analysis->model->deep.pm_count)
        return tool_fail(call,
                         "session '%.200s' has no hardware metrics (engine %s); record them with `gpufl trace --engine "
                         "RangeProfiler -- PROGRAM`, or over time with `gpufl trace --pm overview -- PROGRAM`",
                         call->session_name, *analysis->model->job.engine ? analysis->model->job.engine : "unknown");
    list_open(out, "metrics");
    for (size_t i = 0; i < analysis->deep.group_count; i++) {
        const struct metric_group *group = &analysis->deep.groups[i];
        if (text_holds(group->name ? group->name : "", filter) && answer_page_takes(&page, out))
            json_metric_group(group, true, out);
    }
    bytes_append_char(out, ']');
    if (page.first)
        bytes_append_text(out, ",\"counters_over_time\":[]"); /* with the first page */
    else
        json_pm(&analysis->model->deep, out);
    answer_page_close(call, &page);
    answer_evidence(call,
                    "hardware counters, read around kernels or scopes that may run several times for it; over time: "
                    "sampled at a fixed interval");
    more_open(call);
    more_next_page(call, &page, "kernels or scopes");
    if (analysis->hotspot_count)
        more_add(call, "kernels", "the kernels' durations and occupancy", NULL, NULL);
    more_close(call);
    return true;
}
