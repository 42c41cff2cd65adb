/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over a time span. */
#include "server/query_call.h"

void query_timeline_range(struct query_call *call)
{
    int64_t from_ns = CELL_UNKNOWN, to_ns = 0;
    if (!query_range(call, &from_ns, &to_ns))
        return;
    if (from_ns == CELL_UNKNOWN) {
        query_fail(call, 400, "parameter_missing", "the parameters from_ns and to_ns are missing");
        return;
    }
    bytes_append_char(&call->out, '{');
    member_int(&call->out, "from_ns", from_ns);
    member_int(&call->out, "to_ns", to_ns);
    if (json_range(&call->session->analysis, from_ns, to_ns, &call->out) != GPUFL_OK)
        query_fail(call, 503, "no_memory", "no memory to answer");
    bytes_append_char(&call->out, '}');
}
