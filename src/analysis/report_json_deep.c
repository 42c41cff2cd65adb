/* SPDX-License-Identifier: Apache-2.0 */
/* The deep engines' part of the JSON report, written where they recorded
 * something. Shares are fractions, null means not measured.
 *
 *   deep.sampling        [{device context mode period_cycles target_rate_hz hardware_buffer_bytes}]
 *   deep.stalls          samples not_issued certain undecided, kinds [{name family samples words}],
 *                        functions [{name function_id cubin_crc samples not_issued kinds {name: samples}}],
 *                        scopes [{path samples certain kinds}]
 *   deep.lines           [{function file line source samples not_issued stalls {name: samples} counters instructions
 *                        [{pc sass is_raw inlined_at samples counters}]}], the 1,000 hottest
 *   deep.metrics         [{kernel or scope, device metric_set results incomplete reason passes_needed passes_collected
 *                        instances metrics {name: {mean min max count}}}]
 *   deep.counters_over_time  [{metric device samples interval_ns mean p50 p95 max gaps gap_ns}]
 *   deep.windows         [{source windows covered_ns share launches invalid}]
 *   deep.untimed_launches, code_objects [{cubin_crc arch bytes is_stored skipped}], left_out
 *   deep.capabilities    [{feature requested status reason_code message}]
 */
#include "analysis/metric_text.h"
#include "analysis/report_json.h"

#include <math.h>
#include <stdlib.h>

enum { lines_max = 1000 };

static const char *const family_names[] = {"issued", "ready", "memory", "pipe", "synchronization", "control", "other"};

void json_sampling(const struct session_deep *deep, struct bytes *out)
{
    list_open(out, "sampling");
    for (size_t i = 0; i < deep->sampling_count; i++) {
        const struct sampling_config *config = &deep->sampling[i];
        element(out, '{');
        member_int(out, "device", config->device);
        member_int(out, "context", config->context);
        member_text(out, "mode", config->mode);
        member_int(out, "period_cycles", config->period_cycles);
        member_int(out, "target_rate_hz", config->rate_hz);
        member_int(out, "hardware_buffer_bytes", config->buffer_bytes);
        bytes_append_char(out, '}');
    }
    bytes_append_char(out, ']');
}

/* Not every JSON reader preserves 64-bit numbers. */
void json_crc(struct bytes *out, uint64_t crc)
{
    json_key(out, "cubin_crc");
    if (crc)
        bytes_append_format(out, "\"%llu\"", (unsigned long long)crc);
    else
        json_text(out, NULL);
}

void json_profile(const struct stalls *stalls, const struct stall_profile *profile, struct bytes *out)
{
    member_uint(out, "samples", profile->samples);
    member_uint(out, "not_issued", profile->not_issued);
    json_key(out, "kinds");
    bytes_append_char(out, '{');
    for (unsigned kind = 0; kind < stalls->kind_count; kind++)
        if (profile->by_kind[kind])
            member_uint(out, stalls->kinds[kind].name, profile->by_kind[kind]);
    bytes_append_char(out, '}');
}

void json_stall_kind(const struct stall_kind *kind, uint64_t samples, struct bytes *out)
{
    member_text(out, "name", kind->name);
    member_text(out, "family", family_names[kind->family]);
    member_uint(out, "samples", samples);
    member_text(out, "words", kind->words);
}

void json_stalls(const struct analysis *analysis, struct bytes *out)
{
    const struct stalls *stalls = &analysis->stalls;
    json_key(out, "stalls");
    if (!stalls->row_count) {
        json_text(out, NULL);
        return;
    }
    bytes_append_char(out, '{');
    member_uint(out, "samples", stalls->total.samples);
    member_uint(out, "not_issued", stalls->total.not_issued);
    member_uint(out, "certain", stalls->certain);
    member_uint(out, "undecided", stalls->undecided);
    list_open(out, "kinds");
    for (unsigned kind = 0; kind < stalls->kind_count; kind++) {
        if (!stalls->total.by_kind[kind])
            continue;
        element(out, '{');
        json_stall_kind(&stalls->kinds[kind], stalls->total.by_kind[kind], out);
        bytes_append_char(out, '}');
    }
    bytes_append_char(out, ']');
    list_open(out, "functions");
    for (size_t i = 0; i < stalls->function_count; i++) {
        const struct function_stalls *function = &stalls->functions[i];
        element(out, '{');
        member_text(out, "name", function_name(analysis->model, function->function_id));
        member_uint(out, "function_id", function->function_id);
        json_crc(out, function->cubin_crc);
        json_profile(stalls, &function->profile, out);
        bytes_append_char(out, '}');
    }
    bytes_append_char(out, ']');
    list_open(out, "scopes");
    for (size_t i = 0; i < stalls->scope_count; i++) {
        const struct scope_stalls *scope = &stalls->scopes[i];
        element(out, '{');
        member_text(out, "path", session_text(analysis->model, DICTIONARY_SCOPE_NAME, scope->path_id));
        member_uint(out, "certain", scope->certain);
        json_profile(stalls, &scope->profile, out);
        bytes_append_char(out, '}');
    }
    bytes_append_text(out, "]}");
}

void json_counts(const struct instruction_counts *counts, bool has_counts, struct bytes *out)
{
    json_key(out, "counters");
    if (!has_counts) {
        json_text(out, NULL);
        return;
    }
    bytes_append_char(out, '{');
    member_double(out, "inst_executed", counts->inst_executed);
    member_double(out, "thread_inst", counts->thread_inst);
    member_double(out, "thread_inst_pred_on", counts->thread_inst_pred_on);
    member_double(out, "branch_divergent", counts->branch_divergent);
    member_double(out, "branch_uniform", counts->branch_uniform);
    member_double(out, "sectors_global", counts->sectors_global);
    member_double(out, "sectors_global_ideal", counts->sectors_global_ideal);
    member_double(out, "wavefronts_shared", counts->wavefronts_shared);
    member_double(out, "wavefronts_shared_ideal", counts->wavefronts_shared_ideal);
    member_double(out, "sectors_local", counts->sectors_local);
    member_double(out, "coalescing", instruction_coalescing(counts));
    member_double(out, "sectors_per_request", instruction_sectors_per_request(counts));
    member_double(out, "branch_efficiency", instruction_branch_efficiency(counts));
    member_double(out, "thread_efficiency", instruction_thread_efficiency(counts));
    member_double(out, "bank_conflicts", instruction_bank_conflicts(counts));
    bytes_append_char(out, '}');
}

static int compare_samples(const void *left, const void *right)
{
    const struct code_place *const *a = left, *const *b = right;
    if ((*a)->samples != (*b)->samples)
        return (*a)->samples > (*b)->samples ? -1 : 1;
    return (*a)->pc_offset < (*b)->pc_offset ? -1 : (*a)->pc_offset > (*b)->pc_offset;
}

static void instruction_part(const struct code_place *place, struct bytes *out)
{
    element(out, '{');
    member_uint(out, "pc", place->pc_offset);
    member_text(out, "sass", place->sass);
    member_bool(out, "is_raw", place->is_raw);
    member_text(out, "inlined_at", place->called_from);
    member_uint(out, "samples", place->samples);
    json_counts(&place->counts, place->has_counts, out);
    bytes_append_char(out, '}');
}

static void instructions_part(const struct analysis *analysis, const struct hot_line *line, size_t max,
                              struct bytes *out)
{
    const struct code_place *places = analysis->code.places + line->place_first;
    list_open(out, "instructions");
    if (line->place_count <= max) {
        for (size_t i = 0; i < line->place_count; i++)
            instruction_part(&places[i], out);
    } else {
        const struct code_place **hottest = malloc(line->place_count * sizeof *hottest);
        for (size_t i = 0; hottest && i < line->place_count; i++)
            hottest[i] = &places[i];
        if (hottest)
            qsort(hottest, line->place_count, sizeof *hottest, compare_samples);
        for (size_t i = 0; hottest && i < max; i++)
            instruction_part(hottest[i], out);
        out->failed |= !hottest;
        free(hottest);
    }
    bytes_append_char(out, ']');
}

void json_line(const struct analysis *analysis, const struct hot_line *line, size_t instructions_max, struct bytes *out)
{
    const struct hot_function *function = &analysis->code.functions[line->function];
    member_text(out, "function", function->name);
    json_crc(out, function->cubin_crc);
    member_text(out, "problem", function->problem);
    member_text(out, "file", line->file);
    member_int(out, "line", line->line ? (int64_t)line->line : CELL_UNKNOWN);
    member_text(out, "source", line->source);
    member_uint(out, "samples", line->samples);
    member_uint(out, "not_issued", line->not_issued);
    json_key(out, "stalls");
    bytes_append_char(out, '{');
    for (unsigned k = 0; k < line->stall_count; k++)
        member_uint(out, analysis->stalls.kinds[line->stalls[k].kind].name, line->stalls[k].samples);
    bytes_append_char(out, '}');
    json_counts(&line->counts, line->has_counts, out);
    instructions_part(analysis, line, instructions_max, out);
}

void json_lines(const struct analysis *analysis, size_t first, size_t count, struct bytes *out)
{
    const struct hot_code *code = &analysis->code;
    list_open(out, "lines");
    for (size_t i = first; i < code->line_count && i - first < count; i++) {
        element(out, '{');
        json_line(analysis, &code->lines[i], SIZE_MAX, out);
        bytes_append_char(out, '}');
    }
    bytes_append_char(out, ']');
}

static void zeros_write(const struct metric_group *group, struct bytes *out)
{
    list_open(out, "zero");
    for (size_t k = 0; k < group->column_count; k++)
        if (metric_is_zero(&group->columns[k])) {
            bytes_append_text(out, out->data[out->size - 1] == '[' ? "" : ",");
            json_text(out, group->columns[k].name);
        }
    bytes_append_char(out, ']');
    member_double(out, "flops_per_second", metric_group_flops(group));
}

void json_metric_group(const struct metric_group *group, bool is_brief, struct bytes *out)
{
    element(out, '{');
    member_text(out, group->is_kernel ? "kernel" : "scope", group->name);
    member_device(out, group->device);
    member_text(out, "metric_set", group->metric_set);
    member_uint(out, "results", group->results);
    member_uint(out, "incomplete", group->incomplete);
    member_text(out, "reason", group->reason);
    member_int(out, "passes_needed", group->passes_needed);
    member_int(out, "passes_collected", group->passes_collected);
    member_int(out, "instances", group->instances);
    json_key(out, "metrics");
    bytes_append_char(out, '{');
    for (size_t k = 0; k < group->column_count; k++) {
        if (is_brief && metric_is_zero(&group->columns[k]))
            continue;
        json_key(out, group->columns[k].name);
        bytes_append_char(out, '{');
        member_double(out, "mean", group->columns[k].mean);
        member_double(out, "min", group->columns[k].min);
        member_double(out, "max", group->columns[k].max);
        member_uint(out, "count", group->columns[k].count);
        if (is_brief)
            member_text(out, "mean_text", metric_quantity(group->columns[k].name, group->columns[k].mean).text);
        bytes_append_char(out, '}');
    }
    bytes_append_char(out, '}');
    if (is_brief)
        zeros_write(group, out);
    bytes_append_char(out, '}');
}

void json_metrics(const struct deep_use *use, struct bytes *out)
{
    list_open(out, "metrics");
    for (size_t i = 0; i < use->group_count; i++)
        json_metric_group(&use->groups[i], false, out);
    bytes_append_char(out, ']');
}

void json_pm(const struct session_deep *deep, struct bytes *out)
{
    list_open(out, "counters_over_time");
    for (size_t i = 0; i < deep->pm_count; i++) {
        struct pm_use use;
        if (deep_pm_use(deep, &deep->pm[i], &use) != GPUFL_OK) {
            out->failed = true;
            break;
        }
        element(out, '{');
        member_text(out, "metric", deep->pm[i].metric);
        member_device(out, deep->pm[i].device);
        member_uint(out, "samples", use.count);
        member_int(out, "interval_ns", use.interval_ns > 0 ? use.interval_ns : CELL_UNKNOWN);
        member_double(out, "mean", use.mean);
        member_double(out, "p50", use.p50);
        member_double(out, "p95", use.p95);
        member_double(out, "max", use.max);
        member_uint(out, "gaps", use.gap_count);
        member_int(out, "gap_ns", use.gap_ns);
        bytes_append_char(out, '}');
    }
    bytes_append_char(out, ']');
}

void json_capabilities(const struct session_model *model, struct bytes *out)
{
    list_open(out, "capabilities");
    for (size_t i = 0; i < model->capability_count; i++) {
        const struct session_capability *capability = &model->capabilities[i];
        element(out, '{');
        member_text(out, "feature", capability->feature);
        member_bool(out, "requested", capability->is_requested);
        member_text(out, "status", capability->status);
        member_text(out, "reason_code", capability->reason_code);
        member_text(out, "message", capability->message);
        bytes_append_char(out, '}');
    }
    bytes_append_char(out, ']');
}

void json_sources(const struct analysis *analysis, struct bytes *out)
{
    const struct session_model *model = analysis->model;
    list_open(out, "windows");
    for (size_t i = 0; i < analysis->deep.window_use_count; i++) {
        const struct window_use *window = &analysis->deep.windows[i];
        element(out, '{');
        member_text(out, "source", window->source);
        member_uint(out, "windows", window->windows);
        member_int(out, "covered_ns", window->covered_ns);
        member_double(out, "share",
                      analysis->wall_ns > 0 ? (double)window->covered_ns / (double)analysis->wall_ns : (double)NAN);
        member_uint(out, "launches", window->launches);
        member_bool(out, "launches_are_exact", !window->has_unknown_launches);
        member_uint(out, "invalid", window->invalid);
        bytes_append_char(out, '}');
    }
    bytes_append_char(out, ']');
    member_uint(out, "untimed_launches", model->deep.untimed_count);
    list_open(out, "code_objects");
    for (size_t i = 0; i < model->deep.object_count; i++) {
        const struct code_object *object = &model->deep.objects[i];
        element(out, '{');
        json_crc(out, object->crc);
        member_text(out, "arch", object->arch);
        member_uint(out, "bytes", object->bytes);
        member_bool(out, "is_stored", object->data != NULL);
        member_text(out, "skipped", object->skipped);
        bytes_append_char(out, '}');
    }
    bytes_append_char(out, ']');
    json_capabilities(model, out);
    member_uint(out, "left_out", model->deep.left_out);
}

void deep_part(const struct analysis *analysis, struct bytes *out)
{
    if (!analysis->has_deep)
        return;
    json_key(out, "deep");
    bytes_append_char(out, '{');
    json_sampling(&analysis->model->deep, out);
    json_stalls(analysis, out);
    json_lines(analysis, 0, lines_max, out);
    json_metrics(&analysis->deep, out);
    json_pm(&analysis->model->deep, out);
    json_sources(analysis, out);
    bytes_append_char(out, '}');
}
