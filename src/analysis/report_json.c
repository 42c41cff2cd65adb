/* SPDX-License-Identifier: Apache-2.0 */
/* The report as JSON. One object; keys are permanent, units are in their names
 * (_ns nanoseconds, _bytes, _bp basis points), null means not recorded.
 *
 *   report_version  1
 *   session         id app pid host command engine requested_engine driver_version cuda_version cupti_version
 *                   gpufl_version start_ns end_ns wall_ns
 *   gpus            [{device name uuid compute_capability multiprocessors}]
 *   completeness    is_complete has_shutdown is_live has_torn_tail signal lines bytes damaged_lines missing_lines
 *                   missing_rows invalid_rows kernels lost lost_details lost_is_exact losses [{reason record_type count
 *                   count_is_exact message cause}]
 *   overhead        cupti_fraction gpufl_fraction (of wall_ns), the raw sums, and slowdown: how much longer the program took
 *   time            [{device busy_ns kernel_ns memsets_only_ns compute_ns copies_only_ns wait_launch_ns wait_sync_ns
 *                   queued_ns no_work_ns unknown_ns}] as analysis.h defines them; the parts add up to wall_ns
 *   kernels         every kernel, most time first: [{name kernel_id kind count total_ns mean_ns median_ns p90_ns p99_ns
 *                   min_ns max_ns share launch {..} launch_variants}]
 *   work_by_kind    [{kind total_ns share count kernels}] of kernels, most time first; docs/kernel-kinds.md
 *   steps           {source none_because name thread_id period_kernels warmup whole {..} steady {..} slowest {..} typical
 *                   {..} differences [{what name slowest_ns typical_ns}] list [{step begin_ns duration_ns kernels}]
 *                   left_out}; docs/steps.md
 *   scopes          [{path depth calls open_calls wall_ns gpu_ns gpu_self_ns gpu_inferred_ns kernels kernels_self untimed_launches
 *                   untimed_launches_self sync_ns repeat warmup per_iteration_ns gpu_per_iteration_ns tag tags [{tag tags calls
 *                   wall_ns gpu_ns kernels}] top_kernels [{name kernel_id kind
 *                   count total_ns}] different_kernels}] depth first; the kernels of a scope are also its children's
 *   outside_scopes  {gpu_ns kernels untimed_launches}
 *   operators       [{name total_ns forward_ns backward_ns optimizer_ns share count}] of kernels, most time first; of those
 *                   launched in several operators the innermost counts
 *   copies memsets syncs memory graphs system processes host insights   as in the text
 *   deep            only where a deep engine recorded something: see report_json_deep.c
 */
#include "analysis/report_json.h"

#include <math.h>

void json_session_as(const char *key, const struct analysis *analysis, struct bytes *out)
{
    const struct job_info *job = &analysis->model->job;
    json_key(out, key);
    bytes_append_char(out, '{');
    member_text(out, "id", job->session_id);
    member_text(out, "app", job->app);
    member_int(out, "pid", job->pid < 0 ? CELL_UNKNOWN : job->pid);
    member_text(out, "host", job->hostname);
    member_text(out, "command", job->command);
    member_text(out, "engine", job->engine);
    member_text(out, "requested_engine", job->requested_engine);
    member_text(out, "driver_version", job->driver_version);
    member_text(out, "cuda_version", job->cuda_version);
    member_text(out, "cupti_version", job->cupti_version);
    member_text(out, "gpufl_version", job->gpufl_version);
    member_int(out, "start_ns", analysis->start_ns);
    member_int(out, "end_ns", analysis->end_ns);
    member_int(out, "wall_ns", analysis->start_ns == TIME_UNKNOWN ? CELL_UNKNOWN : analysis->wall_ns);
    bytes_append_char(out, '}');
    list_open(out, "gpus");
    for (size_t i = 0; i < analysis->model->device_count; i++) {
        const struct device_info *device = &analysis->model->devices[i];
        element(out, '{');
        member_device(out, device->id);
        member_text(out, "name", device->name);
        member_text(out, "uuid", device->uuid);
        json_key(out, "compute_capability");
        if (device->compute_major == ID_UNKNOWN || device->compute_minor == ID_UNKNOWN)
            json_text(out, NULL);
        else
            bytes_append_format(out, "\"%u.%u\"", device->compute_major, device->compute_minor);
        member_id(out, "multiprocessors", device->multiprocessors);
        bytes_append_char(out, '}');
    }
    bytes_append_char(out, ']');
}

void json_session(const struct analysis *analysis, struct bytes *out)
{
    json_session_as("session", analysis, out);
}

static void json_slowdown(const struct slowdown *slowdown, bool is_whole, struct bytes *out)
{
    json_key(out, "slowdown");
    if (!slowdown->is_known || !is_whole) {
        json_text(out, NULL);
        return;
    }
    bytes_append_char(out, '{');
    json_key(out, "fraction");
    json_double(out, slowdown->fraction);
    member_bool(out, "is_least", slowdown->is_least);
    member_bool(out, "is_default_cost", slowdown->is_default);
    for (int i = 0; i < SLOWDOWN_PART_COUNT; i++)
        member_int(out, slowdown_part_name((enum slowdown_part)i), slowdown->parts_ns[i]);
    bytes_append_char(out, '}');
}

void json_completeness(const struct analysis *analysis, int64_t kernels, struct bytes *out)
{
    const struct session_model *model = analysis->model;
    bool is_exact;
    uint64_t lost = session_lost(model, &is_exact);
    json_key(out, "completeness");
    bytes_append_char(out, '{');
    member_bool(out, "is_complete", session_is_complete(model));
    member_bool(out, "has_shutdown", model->summary.has_shutdown && !model->summary.is_synthetic_shutdown);
    member_bool(out, "is_live", model->summary.is_live);
    member_bool(out, "has_torn_tail", model->summary.has_torn_tail);
    member_int(out, "signal", model->job.signal);
    member_uint(out, "lines", model->summary.lines);
    member_uint(out, "bytes", model->summary.bytes);
    member_uint(out, "damaged_lines", model->summary.damaged_lines);
    member_uint(out, "missing_lines", model->summary.missing_lines);
    member_uint(out, "missing_rows", session_missing_rows(model));
    member_uint(out, "invalid_rows", model->invalid_rows);
    member_int(out, "kernels", kernels);
    member_uint(out, "lost", lost);
    member_uint(out, "lost_details", session_lost_details(model));
    member_bool(out, "lost_is_exact", is_exact);
    list_open(out, "losses");
    for (size_t i = 0; i < model->loss_count; i++) {
        const struct session_loss *loss = &model->losses[i];
        element(out, '{');
        member_text(out, "reason", loss->reason);
        member_text(out, "record_type", loss->record_type);
        member_uint(out, "count", loss->count);
        member_bool(out, "count_is_exact", !loss->has_unknown_count);
        member_text(out, "message", loss->message);
        member_text(out, "cause", loss->cause);
        bytes_append_char(out, '}');
    }
    bytes_append_text(out, "]}");
    json_key(out, "overhead");
    const struct session_overhead *overhead = &model->overhead;
    if (!overhead->is_known) {
        json_text(out, NULL);
        return;
    }
    bytes_append_char(out, '{');
    json_key(out, "cupti_fraction");
    json_double(out, analysis->cost.cupti < 0 ? (double)NAN : analysis->cost.cupti);
    json_key(out, "gpufl_fraction");
    json_double(out, analysis->cost.gpufl < 0 ? (double)NAN : analysis->cost.gpufl);
    member_int(out, "wall_ns", overhead->wall_ns);
    member_int(out, "cupti_ns", overhead->cupti_ns);
    member_int(out, "collector_cpu_ns", overhead->collector_cpu_ns);
    member_int(out, "sampler_cpu_ns", overhead->sampler_cpu_ns);
    member_int(out, "seal_cpu_ns", overhead->seal_cpu_ns);
    member_int(out, "flush_ns", overhead->flush_ns);
    member_int(out, "memory_peak_bytes", overhead->memory_peak_bytes);
    /* Kernels that are counted but not loaded would be missing from the estimate. */
    json_slowdown(&analysis->slowdown, (uint64_t)kernels == model->kernels.count, out);
    bytes_append_char(out, '}');
}

void json_time(const struct analysis *analysis, struct bytes *out)
{
    list_open(out, "time");
    for (size_t i = 0; i < analysis->device_count; i++) {
        const struct time_use *use = &analysis->devices[i];
        element(out, '{');
        member_device(out, use->device);
        member_int(out, "busy_ns", use->busy_ns);
        member_int(out, "kernel_ns", use->kernel_ns);
        member_int(out, "memsets_only_ns", use->memsets_only_ns);
        member_int(out, "compute_ns", use->compute_ns);
        member_int(out, "copies_only_ns", use->copies_only_ns);
        member_int(out, "wait_launch_ns", use->wait_launch_ns);
        member_int(out, "wait_sync_ns", use->wait_sync_ns);
        member_int(out, "queued_ns", use->queued_ns);
        member_int(out, "no_work_ns", use->no_work_ns);
        member_int(out, "unknown_ns", use->unknown_ns);
        bytes_append_char(out, '}');
    }
    bytes_append_char(out, ']');
}

static void dimensions(struct bytes *out, const char *key, const uint32_t size[3])
{
    json_key(out, key);
    if (!size[0])
        json_text(out, NULL);
    else
        bytes_append_format(out, "[%u,%u,%u]", size[0], size[1], size[2]);
}

void json_launch(const struct launch_config *launch, struct bytes *out)
{
    json_key(out, "launch");
    if (!launch) {
        json_text(out, NULL);
        return;
    }
    bytes_append_char(out, '{');
    dimensions(out, "grid", launch->grid);
    dimensions(out, "block", launch->block);
    dimensions(out, "cluster", launch->cluster);
    member_id(out, "num_regs", launch->num_regs);
    member_id(out, "sgprs", launch->sgprs);
    member_id(out, "accum_vgprs", launch->accum_vgprs);
    member_id(out, "static_shared_bytes", launch->static_shared);
    member_id(out, "dyn_shared_bytes", launch->dyn_shared);
    member_id(out, "local_per_thread_bytes", launch->local_per_thread);
    member_id(out, "occupancy_bp", launch->occupancy_bp);
    member_id(out, "occupancy_regs_bp", launch->occupancy_regs_bp);
    member_id(out, "occupancy_shared_bp", launch->occupancy_shared_bp);
    member_id(out, "occupancy_warps_bp", launch->occupancy_warps_bp);
    member_id(out, "occupancy_blocks_bp", launch->occupancy_blocks_bp);
    member_id(out, "active_blocks_max", launch->active_blocks_max);
    member_text(out, "limiter", launch->limiter ? schema_word("limiter", launch->limiter) : NULL);
    bytes_append_char(out, '}');
}

void json_hotspot(const struct hotspot *hotspot, struct bytes *out)
{
    element(out, '{');
    member_text(out, "name", hotspot->name);
    member_uint(out, "kernel_id", hotspot->kernel_id);
    member_text(out, "kind", kernel_kind_name(kernel_kind_of(hotspot->name)));
    member_uint(out, "count", hotspot->duration.count);
    member_int(out, "total_ns", hotspot->duration.total);
    member_double(out, "mean_ns", hotspot->duration.mean);
    member_int(out, "median_ns", hotspot->duration.p50);
    member_int(out, "p90_ns", hotspot->duration.p90);
    member_int(out, "p99_ns", hotspot->duration.p99);
    member_int(out, "min_ns", hotspot->duration.min);
    member_int(out, "max_ns", hotspot->duration.max);
    member_double(out, "share", hotspot->share);
    json_launch(hotspot->launch, out);
    member_uint(out, "launch_variants", hotspot->launch_variants);
    bytes_append_char(out, '}');
}

static void completeness_part(const struct analysis *analysis, struct bytes *out)
{
    json_completeness(analysis, (int64_t)analysis->model->kernels.count, out);
}

static void kernels_part(const struct analysis *analysis, struct bytes *out)
{
    list_open(out, "kernels");
    for (size_t i = 0; i < analysis->hotspot_count; i++)
        json_hotspot(&analysis->hotspots[i], out);
    bytes_append_char(out, ']');
}

void json_kinds(const struct analysis *analysis, struct bytes *out)
{
    list_open(out, "work_by_kind");
    for (size_t i = 0; i < analysis->kind_count; i++) {
        const struct kind_total *total = &analysis->kinds[i];
        element(out, '{');
        member_text(out, "kind", kernel_kind_name(total->kind));
        member_int(out, "total_ns", total->total_ns);
        json_key(out, "share");
        json_double(out, analysis->kernel_ns > 0 ? (double)total->total_ns / (double)analysis->kernel_ns : (double)NAN);
        member_uint(out, "count", total->count);
        member_uint(out, "kernels", total->kernels);
        bytes_append_char(out, '}');
    }
    bytes_append_char(out, ']');
}

void json_copies(const struct analysis *analysis, struct bytes *out)
{
    list_open(out, "copies");
    for (size_t i = 0; i < analysis->copy_group_count; i++) {
        const struct copy_group *group = &analysis->copies[i];
        element(out, '{');
        member_text(out, "kind", schema_word("copy_kind", group->copy_kind));
        member_text(out, "host_memory", group->memory_kind ? schema_word("memory_kind", group->memory_kind) : NULL);
        member_uint(out, "calls", group->calls);
        member_uint(out, "bytes", group->bytes);
        member_int(out, "total_ns", group->total_ns);
        bytes_append_char(out, '}');
    }
    bytes_append_char(out, ']');
    json_key(out, "memsets");
    bytes_append_char(out, '{');
    member_uint(out, "calls", analysis->memsets.calls);
    member_uint(out, "bytes", analysis->memsets.bytes);
    member_int(out, "total_ns", analysis->memsets.total_ns);
    bytes_append_char(out, '}');
}

void json_syncs(const struct analysis *analysis, struct bytes *out)
{
    list_open(out, "syncs");
    for (unsigned type = 0; type < 5; type++) {
        const struct sync_group *group = &analysis->syncs[type];
        if (!group->calls)
            continue;
        element(out, '{');
        member_text(out, "type", schema_word("sync_type", type));
        member_uint(out, "calls", group->calls);
        member_int(out, "total_ns", group->total_ns);
        member_int(out, "max_ns", group->max_ns);
        bytes_append_char(out, '}');
    }
    bytes_append_char(out, ']');
    list_open(out, "sync_places");
    for (size_t i = 0; i < analysis->sync_place_count; i++) {
        const struct sync_place *place = &analysis->sync_places[i];
        element(out, '{');
        member_text(out, "stack", session_text(analysis->model, DICTIONARY_FUNCTION, place->function_id));
        member_uint(out, "calls", place->calls);
        member_int(out, "total_ns", place->total_ns);
        bytes_append_char(out, '}');
    }
    bytes_append_char(out, ']');
}

void json_memory(const struct analysis *analysis, struct bytes *out)
{
    list_open(out, "memory");
    for (unsigned kind = 0; kind < 8; kind++) {
        const struct memory_group *group = &analysis->memory[kind];
        if (!group->allocs && !group->frees)
            continue;
        element(out, '{');
        member_text(out, "kind", schema_word("memory_kind", kind));
        member_uint(out, "allocs", group->allocs);
        member_uint(out, "frees", group->frees);
        member_uint(out, "unmatched_frees", group->unmatched_frees);
        member_uint(out, "allocated_bytes", group->allocated_bytes);
        member_uint(out, "peak_bytes", group->peak_bytes);
        member_uint(out, "never_freed_bytes", group->held_bytes);
        member_uint(out, "never_freed", group->held_count);
        bytes_append_char(out, '}');
    }
    bytes_append_char(out, ']');
}

void json_graphs(const struct analysis *analysis, struct bytes *out)
{
    list_open(out, "graphs");
    for (size_t i = 0; i < analysis->graph_group_count; i++) {
        const struct graph_group *group = &analysis->graphs[i];
        element(out, '{');
        member_uint(out, "graph_id", group->graph_id);
        member_uint(out, "launches", group->launches);
        member_id(out, "nodes", group->node_count);
        member_int(out, "total_ns", group->total_ns);
        member_int(out, "busy_ns", group->busy_ns);
        bytes_append_char(out, '}');
    }
    bytes_append_char(out, ']');
}

/* Keys are the catalogue's column names, which include the unit. */
static void metrics_part(const struct metric_summary *metrics, enum record_type type, struct bytes *out)
{
    for (unsigned i = 1; i < record_catalogue[type].column_count; i++) {
        const char *name = record_catalogue[type].columns[i].name;
        if (!metrics[i].count || !strcmp(name, "device_id") || !strcmp(name, "throttle_reasons"))
            continue;
        json_key(out, name);
        bytes_append_char(out, '{');
        member_double(out, "mean", metrics[i].mean);
        member_int(out, "min", metrics[i].min);
        member_int(out, "max", metrics[i].max);
        member_int(out, "first", metrics[i].first);
        member_int(out, "last", metrics[i].last);
        bytes_append_char(out, '}');
    }
}

void json_system(const struct analysis *analysis, struct bytes *out)
{
    list_open(out, "system");
    for (size_t i = 0; i < analysis->system_count; i++) {
        const struct device_use *use = &analysis->system[i];
        element(out, '{');
        member_int(out, "device", use->device);
        member_uint(out, "samples", use->samples);
        metrics_part(use->metrics, RECORD_DEVICE_METRIC_BATCH, out);
        json_key(out, "throttle_samples");
        bytes_append_char(out, '{');
        for (unsigned bit = 0; bit < throttle_bits; bit++)
            if (use->throttle_samples[bit])
                member_uint(out, throttle_reasons[bit].name, use->throttle_samples[bit]);
        bytes_append_text(out, "}}");
    }
    bytes_append_char(out, ']');
    list_open(out, "processes");
    for (size_t i = 0; i < analysis->process_count; i++) {
        const struct process_use *use = &analysis->processes[i];
        element(out, '{');
        member_int(out, "device", use->device);
        member_int(out, "pid", use->pid);
        if (use->used_mib.count)
            member_int(out, "used_mib_max", use->used_mib.max);
        else
            bytes_append_text(out, ",\"used_mib_max\":null");
        bytes_append_char(out, '}');
    }
    bytes_append_char(out, ']');
    json_key(out, "host");
    bytes_append_char(out, '{');
    metrics_part(analysis->host, RECORD_HOST_METRIC_BATCH, out);
    bytes_append_char(out, '}');
}

void json_insight(const struct insight *insight, struct bytes *out)
{
    static const char *const severities[] = {"high", "medium", "low"};
    element(out, '{');
    member_text(out, "rule", insight->rule);
    member_text(out, "severity", severities[insight->severity]);
    member_int(out, "impact_ns", insight->impact_ns);
    member_text(out, "text", insight->text);
    bytes_append_char(out, '}');
}

void json_insights(const struct analysis *analysis, struct bytes *out)
{
    list_open(out, "insights");
    for (size_t i = 0; i < analysis->insight_count; i++)
        json_insight(&analysis->insights[i], out);
    bytes_append_char(out, ']');
}

gpufl_status report_json(const struct session_model *model, const struct report_options *options, struct bytes *out)
{
    static void (*const parts[])(const struct analysis *, struct bytes *) = {
        json_session, completeness_part, json_time,   kernels_part, json_kinds,  json_steps,    json_scopes,
        json_copies,  json_syncs,        json_memory, json_graphs,  json_system, json_insights, deep_part,
    };
    struct analysis analysis;
    gpufl_status status = analysis_make_with(&analysis, model, options->may_run_tools ? CODE_TOOLS : CODE_STORED);
    if (status != GPUFL_OK)
        return status;
    bytes_append_text(out, "{\"report_version\":1");
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        parts[i](&analysis, out);
    bytes_append_text(out, "}\n");
    analysis_free(&analysis);
    return out->failed ? GPUFL_E_NO_MEMORY : GPUFL_OK;
}
