/* SPDX-License-Identifier: Apache-2.0 */
/* Single parts of the report. */
#include "server/query_call.h"

#include <inttypes.h>
#include <stddef.h>

typedef void analysis_part(const struct analysis *analysis, struct bytes *out);

static void answer(struct query_call *call, analysis_part *part)
{
    bytes_append_char(&call->out, '{');
    part(&call->session->analysis, &call->out);
    bytes_append_char(&call->out, '}');
}

/* The parts of a device's time over time, one list each. */
static void bins_write(struct bytes *out, uint16_t device, const struct time_use *bins)
{
    static const struct {
        const char *name;
        size_t at;
    } parts[] = {{"kernel_ns", offsetof(struct time_use, kernel_ns)},
                 {"memsets_only_ns", offsetof(struct time_use, memsets_only_ns)},
                 {"compute_ns", offsetof(struct time_use, compute_ns)},
                 {"copies_only_ns", offsetof(struct time_use, copies_only_ns)},
                 {"wait_launch_ns", offsetof(struct time_use, wait_launch_ns)},
                 {"wait_sync_ns", offsetof(struct time_use, wait_sync_ns)},
                 {"queued_ns", offsetof(struct time_use, queued_ns)},
                 {"no_work_ns", offsetof(struct time_use, no_work_ns)},
                 {"unknown_ns", offsetof(struct time_use, unknown_ns)}};
    element(out, '{');
    member_device(out, device);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        list_open(out, parts[i].name);
        for (size_t bin = 0; bin < TIME_BINS; bin++) {
            int64_t value;
            memcpy(&value, (const char *)&bins[bin] + parts[i].at, sizeof value);
            bytes_append_format(out, "%s%" PRId64, bin ? "," : "", value);
        }
        bytes_append_char(out, ']');
    }
    bytes_append_char(out, '}');
}

static void time_part(const struct analysis *analysis, struct bytes *out)
{
    member_int(out, "start_ns", analysis->start_ns);
    member_int(out, "end_ns", analysis->end_ns);
    member_int(out, "wall_ns", analysis->start_ns == TIME_UNKNOWN ? CELL_UNKNOWN : analysis->wall_ns);
    json_time(analysis, out);
    json_kinds(analysis, out);
    member_int(out, "bin_ns", analysis->time_bin_ns);
    list_open(out, "bins");
    for (size_t i = 0; i < analysis->device_count; i++)
        bins_write(out, analysis->devices[i].device, &analysis->time_bins[i * TIME_BINS]);
    bytes_append_char(out, ']');
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

void query_steps(struct query_call *call)
{
    answer(call, json_steps);
}

void query_copies(struct query_call *call)
{
    answer(call, json_copies);
}

void query_syncs(struct query_call *call)
{
    answer(call, json_syncs);
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

/* Single records are sufficient: the rest need not be loaded. */
void query_losses(struct query_call *call)
{
    call->session = query_hold(call, http_exchange_path_value(call->exchange, "id"), true);
    if (!call->session)
        return;
    bytes_append_char(&call->out, '{');
    json_completeness(&call->session->analysis, call->session->kernels, &call->out);
    bytes_append_char(&call->out, '}');
}
