/* SPDX-License-Identifier: Apache-2.0 */
/* Copies, memsets, synchronizing calls and graph launches, grouped. */
#include "analysis/analysis.h"

#include <stdlib.h>

enum { copy_h2d = 1, copy_d2h = 2, copy_h2a = 3, copy_a2h = 4, kinds = 256, memory_kinds = 8 };

uint8_t copy_host_memory(const struct gpu_copy *copy)
{
    uint8_t kind = 0;
    if (copy->copy_kind == copy_h2d || copy->copy_kind == copy_h2a)
        kind = copy->src_kind;
    else if (copy->copy_kind == copy_d2h || copy->copy_kind == copy_a2h)
        kind = copy->dst_kind;
    return kind < memory_kinds ? kind : 0;
}

static int copy_compare(const void *left, const void *right)
{
    const struct copy_group *a = left, *b = right;
    if (a->total_ns != b->total_ns)
        return a->total_ns > b->total_ns ? -1 : 1;
    return a->copy_kind != b->copy_kind ? a->copy_kind - b->copy_kind : a->memory_kind - b->memory_kind;
}

static bool copies_group(struct analysis *analysis)
{
    const struct session_model *model = analysis->model;
    struct copy_group *groups = calloc(kinds * memory_kinds, sizeof *groups);
    if (!groups)
        return false;
    for (size_t i = 0; i < model->copy_count; i++) {
        const struct gpu_copy *copy = &model->copies[i];
        uint8_t memory_kind = copy_host_memory(copy);
        struct copy_group *group = &groups[copy->copy_kind * memory_kinds + memory_kind];
        group->copy_kind = copy->copy_kind;
        group->memory_kind = memory_kind;
        group->calls++;
        group->bytes = sum_saturated_u64(group->bytes, copy->bytes);
        group->total_ns = sum_saturated(group->total_ns, copy->span.duration_ns);
    }
    for (size_t i = 0; i < kinds * memory_kinds; i++)
        if (groups[i].calls)
            groups[analysis->copy_group_count++] = groups[i];
    qsort(groups, analysis->copy_group_count, sizeof *groups, copy_compare);
    analysis->copies = groups;
    for (size_t i = 0; i < model->memset_count; i++) {
        struct memset_total *total = &analysis->memsets;
        total->calls++;
        total->bytes = sum_saturated_u64(total->bytes, model->memsets[i].bytes);
        total->total_ns = sum_saturated(total->total_ns, model->memsets[i].span.duration_ns);
    }
    return true;
}

static int place_compare(const void *left, const void *right)
{
    const struct sync_place *a = left, *b = right;
    if (a->total_ns != b->total_ns)
        return a->total_ns > b->total_ns ? -1 : 1;
    return a->function_id < b->function_id ? -1 : a->function_id > b->function_id;
}

static bool syncs_group(struct analysis *analysis)
{
    const struct session_model *model = analysis->model;
    uint32_t function_count = model->dictionaries[DICTIONARY_FUNCTION].count;
    struct sync_place *places = calloc((size_t)function_count + 1, sizeof *places);
    if (!places)
        return false;
    for (size_t i = 0; i < model->sync_count; i++) {
        const struct sync_wait *wait = &model->syncs[i];
        uint8_t type = wait->sync_type < 5 ? wait->sync_type : 0;
        struct sync_group *group = &analysis->syncs[type];
        group->sync_type = type;
        group->calls++;
        group->total_ns = sum_saturated(group->total_ns, wait->duration_ns);
        group->max_ns = wait->duration_ns > group->max_ns ? wait->duration_ns : group->max_ns;
        if (type == 2)
            continue;
        analysis->host_wait_ns = sum_saturated(analysis->host_wait_ns, wait->duration_ns);
        if (wait->function_id && wait->function_id < function_count) {
            struct sync_place *place = &places[wait->function_id];
            place->function_id = wait->function_id;
            place->calls++;
            place->total_ns = sum_saturated(place->total_ns, wait->duration_ns);
        }
    }
    for (uint32_t i = 0; i < function_count; i++)
        if (places[i].calls)
            places[analysis->sync_place_count++] = places[i];
    qsort(places, analysis->sync_place_count, sizeof *places, place_compare);
    analysis->sync_places = places;
    return true;
}

static int graph_id_compare(const void *left, const void *right)
{
    const struct graph_group *a = left, *b = right;
    return a->graph_id < b->graph_id ? -1 : a->graph_id > b->graph_id;
}

static int graph_time_compare(const void *left, const void *right)
{
    const struct graph_group *a = left, *b = right;
    return a->total_ns != b->total_ns ? (a->total_ns > b->total_ns ? -1 : 1) : graph_id_compare(left, right);
}

static bool graphs_group(struct analysis *analysis)
{
    const struct session_model *model = analysis->model;
    struct graph_group *groups = calloc(model->graph_count + 1, sizeof *groups);
    if (!groups)
        return false;
    for (size_t i = 0; i < model->graph_count; i++) {
        const struct graph_launch *launch = &model->graphs[i];
        groups[i] = (struct graph_group){launch->span.graph_id, 1, launch->node_count, launch->span.duration_ns,
                                         launch->busy_ns};
    }
    qsort(groups, model->graph_count, sizeof *groups, graph_id_compare);
    for (size_t i = 0; i < model->graph_count; i++) {
        struct graph_group *last = analysis->graph_group_count ? &groups[analysis->graph_group_count - 1] : NULL;
        if (!last || last->graph_id != groups[i].graph_id) {
            groups[analysis->graph_group_count++] = groups[i];
            continue;
        }
        last->launches++;
        last->node_count = groups[i].node_count;
        last->total_ns = sum_saturated(last->total_ns, groups[i].total_ns);
        last->busy_ns =
            last->busy_ns < 0 || groups[i].busy_ns < 0 ? TIME_UNKNOWN : sum_saturated(last->busy_ns, groups[i].busy_ns);
    }
    qsort(groups, analysis->graph_group_count, sizeof *groups, graph_time_compare);
    analysis->graphs = groups;
    return true;
}

gpufl_status transfers_make(struct analysis *analysis)
{
    bool is_done = copies_group(analysis) && syncs_group(analysis) && graphs_group(analysis);
    return is_done ? GPUFL_OK : GPUFL_E_NO_MEMORY;
}
