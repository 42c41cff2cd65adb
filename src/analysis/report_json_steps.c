/* SPDX-License-Identifier: Apache-2.0 */
/* Steps, and the tags and kernels of scopes, as JSON. */
#include "analysis/report_json.h"

#include <math.h>

static void times_write(struct bytes *out, const char *key, const struct step_times *times)
{
    json_key(out, key);
    bytes_append_char(out, '{');
    member_uint(out, "count", times->count);
    member_int(out, "wall_ns", times->wall_ns);
    member_int(out, "busy_ns", times->busy_ns);
    member_int(out, "min_ns", times->duration.min);
    member_int(out, "p10_ns", times->p10_ns);
    member_int(out, "median_ns", times->duration.p50);
    member_double(out, "mean_ns", times->duration.mean);
    member_int(out, "p90_ns", times->duration.p90);
    member_int(out, "p99_ns", times->duration.p99);
    member_int(out, "max_ns", times->duration.max);
    member_double(out, "kernels", times->kernels);
    bytes_append_char(out, '}');
}

static void step_members(struct bytes *out, const struct steps *steps, size_t index)
{
    const struct step *step = &steps->items[index];
    member_uint(out, "step", index + 1);
    member_int(out, "begin_ns", step->begin_ns);
    member_int(out, "duration_ns", step->end_ns - step->begin_ns);
    member_uint(out, "kernels", step->kernels);
}

static void slowest_write(struct bytes *out, const struct steps *steps)
{
    static const char *const whats[] = {"time", "scope", "kind", "kernel", "copies"};
    if (!steps->differences) {
        bytes_append_text(out, ",\"slowest\":null,\"typical\":null,\"differences\":[]");
        return;
    }
    json_key(out, "slowest");
    bytes_append_char(out, '{');
    step_members(out, steps, steps->slowest);
    bytes_append_char(out, '}');
    json_key(out, "typical");
    bytes_append_char(out, '{');
    step_members(out, steps, steps->typical);
    bytes_append_char(out, '}');
    list_open(out, "differences");
    for (size_t i = 0; i < steps->difference_count; i++) {
        const struct step_difference *difference = &steps->differences[i];
        element(out, '{');
        member_text(out, "what", whats[difference->what]);
        member_text(out, "name", difference->name);
        member_int(out, "slowest_ns", difference->slowest_ns);
        member_int(out, "typical_ns", difference->typical_ns);
        bytes_append_char(out, '}');
    }
    bytes_append_char(out, ']');
}

void json_steps(const struct analysis *analysis, struct bytes *out)
{
    enum { listed_max = 1000 };
    static const char *const sources[] = {NULL, "scope", "period"};
    const struct steps *steps = &analysis->steps;
    json_key(out, "steps");
    bytes_append_char(out, '{');
    member_text(out, "source", sources[steps->source]);
    member_text(out, "none_because", steps->source == STEPS_NONE ? steps->none_because : NULL);
    if (steps->source != STEPS_NONE) {
        json_key(out, "name");
        if (steps->name)
            json_string(out, steps->name, steps->name_size);
        else
            json_text(out, NULL);
        member_id(out, "thread_id", steps->thread_id);
        member_int(out, "period_kernels", steps->period ? (int64_t)steps->period : CELL_UNKNOWN);
        member_uint(out, "warmup", steps->warmup);
        times_write(out, "whole", &steps->whole);
        times_write(out, "steady", &steps->steady);
        slowest_write(out, steps);
        list_open(out, "list");
        for (size_t i = 0; i < steps->count && i < listed_max; i++) {
            element(out, '{');
            step_members(out, steps, i);
            bytes_append_char(out, '}');
        }
        bytes_append_char(out, ']');
        member_uint(out, "left_out", steps->count > listed_max ? steps->count - listed_max : 0);
    }
    bytes_append_char(out, '}');
}

void json_scope_kernels(const struct analysis *analysis, uint32_t node, struct bytes *out)
{
    enum { listed_max = 10 };
    struct scope_kernel top[listed_max];
    size_t count = scope_kernels_top(analysis, node, top, listed_max);
    json_key(out, "top_kernels");
    if (count == SIZE_MAX) {
        json_text(out, NULL);
        return;
    }
    bytes_append_char(out, '[');
    for (size_t i = 0; i < count && i < listed_max; i++) {
        const char *name = session_text(analysis->model, DICTIONARY_KERNEL, top[i].kernel_id);
        element(out, '{');
        member_text(out, "name", name);
        member_uint(out, "kernel_id", top[i].kernel_id);
        member_text(out, "kind", kernel_kind_name(kernel_kind_of(name)));
        member_uint(out, "count", top[i].count);
        member_int(out, "total_ns", top[i].total_ns);
        bytes_append_char(out, '}');
    }
    bytes_append_char(out, ']');
    member_uint(out, "different_kernels", count);
}

void json_scope_tags(const struct analysis *analysis, uint32_t node, struct bytes *out)
{
    bool has_gpu = session_has_kernel_times(analysis->model);
    size_t count;
    const struct scope_tag *tags = scope_tags_of(analysis, node, &count);
    uint32_t tag_id = count ? 0 : analysis->scopes[node].tag_id;
    member_text(out, "tag", tag_id ? session_text(analysis->model, DICTIONARY_TAG, tag_id) : NULL);
    list_open(out, "tags");
    for (size_t i = 0; i < count; i++) {
        element(out, '{');
        member_text(out, "tag", tags[i].text);
        member_uint(out, "tags", tags[i].tags);
        member_uint(out, "calls", tags[i].calls);
        member_int(out, "wall_ns", tags[i].wall_ns);
        member_int(out, "gpu_ns", has_gpu ? tags[i].gpu_ns : CELL_UNKNOWN);
        member_uint(out, "kernels", tags[i].kernels);
        bytes_append_char(out, '}');
    }
    bytes_append_char(out, ']');
}
