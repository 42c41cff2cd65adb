/* SPDX-License-Identifier: Apache-2.0 */
/* Scopes and operators as JSON; report_json.c describes the members. */
#include "analysis/report_json.h"

#include <math.h>

void json_scope(const struct analysis *analysis, uint32_t at, struct bytes *out)
{
    const struct scope_node *node = &analysis->scopes[at];
    bool has_gpu = session_has_kernel_times(analysis->model);
    struct bytes path = {0};
    scope_tree_path(analysis, at, &path);
    element(out, '{');
    json_key(out, "path");
    json_string(out, path.data, path.size);
    member_uint(out, "depth", node->depth - 1);
    member_uint(out, "calls", node->calls);
    member_uint(out, "open_calls", node->open_calls);
    member_int(out, "wall_ns", node->calls ? node->wall_ns : CELL_UNKNOWN);
    member_int(out, "gpu_ns", has_gpu ? node->gpu_ns : CELL_UNKNOWN);
    member_int(out, "gpu_self_ns", has_gpu ? node->gpu_self_ns : CELL_UNKNOWN);
    member_int(out, "gpu_inferred_ns", has_gpu ? node->gpu_inferred_ns : CELL_UNKNOWN);
    member_uint(out, "kernels", node->kernels);
    member_uint(out, "kernels_self", node->kernels_self);
    member_uint(out, "untimed_launches", node->untimed);
    member_uint(out, "untimed_launches_self", node->untimed_self);
    member_int(out, "sync_ns", node->sync_ns);
    member_uint(out, "repeat", node->repeat);
    member_uint(out, "warmup", node->warmup);
    json_key(out, "per_iteration_ns");
    json_double(out, node->repeat ? (double)node->repeat_wall_ns / (double)node->repeat : (double)NAN);
    json_key(out, "gpu_per_iteration_ns");
    bool is_timed = has_gpu && !node->untimed;
    json_double(out, node->repeat && is_timed ? (double)node->gpu_ns / (double)node->repeat : (double)NAN);
    json_scope_tags(analysis, at, out);
    json_scope_kernels(analysis, at, out);
    bytes_append_char(out, '}');
    out->failed = out->failed || path.failed;
    bytes_free(&path);
}

void json_outside_scopes(const struct analysis *analysis, struct bytes *out)
{
    bool has_gpu = session_has_kernel_times(analysis->model);
    json_key(out, "outside_scopes");
    bytes_append_char(out, '{');
    member_int(out, "gpu_ns", has_gpu ? analysis->scopes[0].gpu_self_ns : CELL_UNKNOWN);
    member_uint(out, "kernels", analysis->scopes[0].kernels_self);
    member_uint(out, "untimed_launches", analysis->scopes[0].untimed_self);
    bytes_append_char(out, '}');
}

static void json_operators(const struct analysis *analysis, struct bytes *out)
{
    list_open(out, "operators");
    for (size_t i = 0; i < analysis->operator_count; i++) {
        const struct operator_total *total = &analysis->operators[i];
        element(out, '{');
        member_text(out, "name", total->name);
        member_int(out, "total_ns", total->total_ns);
        member_int(out, "forward_ns", total->by_direction_ns[DIRECTION_FORWARD]);
        member_int(out, "backward_ns", total->by_direction_ns[DIRECTION_BACKWARD]);
        member_int(out, "optimizer_ns", total->by_direction_ns[DIRECTION_OPTIMIZER]);
        json_key(out, "share");
        json_double(out, analysis->kernel_ns > 0 ? (double)total->total_ns / (double)analysis->kernel_ns : (double)NAN);
        member_uint(out, "count", total->count);
        bytes_append_char(out, '}');
    }
    bytes_append_char(out, ']');
}

void json_scopes(const struct analysis *analysis, struct bytes *out)
{
    list_open(out, "scopes");
    for (uint32_t at = scope_tree_next(analysis, 0); at != ID_UNKNOWN; at = scope_tree_next(analysis, at))
        json_scope(analysis, at, out);
    bytes_append_char(out, ']');
    json_outside_scopes(analysis, out);
    json_operators(analysis, out);
}
