/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels by name: one counting sort into slices, each slice sorted for exact percentiles. */
#include "analysis/analysis.h"
#include "analysis/quantity.h"

#include <stdlib.h>
#include <string.h>

static int hotspot_compare(const void *left, const void *right)
{
    const struct hotspot *a = left, *b = right;
    if (a->duration.total != b->duration.total)
        return a->duration.total > b->duration.total ? -1 : 1;
    return a->kernel_id < b->kernel_id ? -1 : a->kernel_id > b->kernel_id;
}

/* Finds the configuration in which each kernel spent the most time. by_kernel: index into hotspots, ID_UNKNOWN none. */
static bool launches_choose(struct analysis *analysis, const uint32_t *by_kernel, uint32_t id_count)
{
    const struct session_model *model = analysis->model;
    int64_t *time_ns = calloc(model->launch_count + 1, sizeof *time_ns);
    int64_t *best_ns = calloc(analysis->hotspot_count + 1, sizeof *best_ns);
    bool is_done = time_ns && best_ns;
    for (size_t i = 0; is_done && i < model->kernels.count; i++) {
        int64_t *launch_ns = &time_ns[model->kernels.launch_id[i]];
        *launch_ns = sum_saturated(*launch_ns, model->kernels.duration_ns[i]);
    }
    for (size_t i = 0; is_done && i < model->launch_count; i++) {
        uint32_t kernel_id = model->launches[i].kernel_id;
        if (kernel_id >= id_count || by_kernel[kernel_id] == ID_UNKNOWN || !time_ns[i + 1])
            continue;
        struct hotspot *hotspot = &analysis->hotspots[by_kernel[kernel_id]];
        hotspot->launch_variants++;
        if (time_ns[i + 1] > best_ns[by_kernel[kernel_id]]) {
            best_ns[by_kernel[kernel_id]] = time_ns[i + 1];
            hotspot->launch = &model->launches[i];
        }
    }
    free(time_ns);
    free(best_ns);
    return is_done;
}

gpufl_status hotspots_make(struct analysis *analysis)
{
    const struct session_model *model = analysis->model;
    const struct kernel_columns *kernels = &model->kernels;
    uint32_t id_count = 1;
    for (size_t i = 0; i < kernels->count; i++)
        id_count = kernels->kernel_id[i] >= id_count ? kernels->kernel_id[i] + 1 : id_count;
    gpufl_status status = GPUFL_E_NO_MEMORY;
    size_t *slice = calloc((size_t)id_count + 1, sizeof *slice), largest = 0, used = 0;
    uint32_t *by_kernel = malloc(id_count * sizeof *by_kernel);
    int64_t *values = malloc((kernels->count + 1) * sizeof *values), *scratch = NULL;
    if (!slice || !by_kernel || !values)
        goto cleanup;
    for (size_t i = 0; i < kernels->count; i++)
        slice[kernels->kernel_id[i]]++;
    for (size_t id = 0, sum = 0; id <= id_count; id++) {
        size_t count = slice[id];
        largest = count > largest ? count : largest;
        used += count != 0;
        slice[id] = sum;
        sum += count;
    }
    /* Filling moves each slice's start to its end, which is the next slice's start. */
    for (size_t i = 0; i < kernels->count; i++)
        values[slice[kernels->kernel_id[i]]++] = kernels->duration_ns[i];
    scratch = malloc((largest + 1) * sizeof *scratch);
    analysis->hotspots = calloc(used + 1, sizeof *analysis->hotspots);
    if (!scratch || !analysis->hotspots)
        goto cleanup;
    for (uint32_t id = 0; id < id_count; id++) {
        size_t from = id ? slice[id - 1] : 0, count = slice[id] - from;
        by_kernel[id] = count ? (uint32_t)analysis->hotspot_count : ID_UNKNOWN;
        if (!count)
            continue;
        struct hotspot *hotspot = &analysis->hotspots[analysis->hotspot_count++];
        hotspot->kernel_id = id;
        hotspot->name = session_text(model, DICTIONARY_KERNEL, id);
        hotspot->duration = distribution_of(values + from, scratch, count);
        analysis->kernel_ns = sum_saturated(analysis->kernel_ns, hotspot->duration.total);
    }
    if (!launches_choose(analysis, by_kernel, id_count))
        goto cleanup;
    for (size_t i = 0; i < analysis->hotspot_count; i++)
        if (analysis->kernel_ns > 0)
            analysis->hotspots[i].share = (double)analysis->hotspots[i].duration.total / (double)analysis->kernel_ns;
    qsort(analysis->hotspots, analysis->hotspot_count, sizeof *analysis->hotspots, hotspot_compare);
    status = GPUFL_OK;
cleanup:
    free(slice);
    free(by_kernel);
    free(values);
    free(scratch);
    return status;
}

void hotspot_name(struct bytes *out, const struct hotspot *hotspot, size_t columns)
{
    if (hotspot->name)
        text_kernel_name(out, hotspot->name, strlen(hotspot->name), columns);
    else if (hotspot->kernel_id)
        bytes_append_format(out, "kernel %u, name not recorded", hotspot->kernel_id);
    else
        bytes_append_text(out, "(name not recorded)");
}
