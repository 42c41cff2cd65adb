/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of the report, each by itself. */
#include "server/query_call.h"

typedef void analysis_part(const struct analysis *analysis, struct bytes *out);

static void answer(struct query_call *call, analysis_part *part)
{
    bytes_append_char(&call->out, '{');
    part(&call->session->analysis, &call->out);
    bytes_append_char(&call->out, '}');
}

static void time_part(const struct analysis *analysis, struct bytes *out)
{
    member_int(out, "start_ns", analysis->start_ns);
    member_int(out, "end_ns", analysis->end_ns);
    member_int(out, "wall_ns", analysis->start_ns == TIME_UNKNOWN ? CELL_UNKNOWN : analysis->wall_ns);
    json_time(analysis, out);
}

static void stalls_part(const struct analysis *analysis, struct bytes *out)
{
    json_sampling(&analysis->model->deep, out);
    json_stalls(analysis, out);
    json_sources(analysis, out);
}

static void ranges_part(const struct analysis *analysis, struct bytes *out)
{
    json_metrics(&analysis->deep, out);
}

void query_time(struct query_call *call)
{
    answer(call, time_part);
}

void query_scopes(struct query_call *call)
{
    answer(call, json_scopes);
}

void query_copies(struct query_call *call)
{
    answer(call, json_copies);
}

void query_syncs(struct query_call *call)
{
    answer(call, json_syncs);
}

void query_allocations(struct query_call *call)
{
    answer(call, json_memory);
}

void query_graphs(struct query_call *call)
{
    answer(call, json_graphs);
}

void query_insights(struct query_call *call)
{
    answer(call, json_insights);
}

void query_stalls(struct query_call *call)
{
    answer(call, stalls_part);
}

void query_ranges(struct query_call *call)
{
    answer(call, ranges_part);
}

/* Single records say it all: no need to load the rest. */
void query_losses(struct query_call *call)
{
    call->session = query_hold(call, http_exchange_path_value(call->exchange, "id"), true);
    if (!call->session)
        return;
    bytes_append_char(&call->out, '{');
    json_completeness(&call->session->analysis, call->session->kernels, &call->out);
    bytes_append_char(&call->out, '}');
}
