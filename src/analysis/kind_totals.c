/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel time by kind of work. */
#include "analysis/analysis.h"

#include <stdlib.h>

static int total_compare(const void *left, const void *right)
{
    const struct kind_total *a = left, *b = right;
    if (a->total_ns != b->total_ns)
        return a->total_ns > b->total_ns ? -1 : 1;
    if (a->count != b->count)
        return a->count > b->count ? -1 : 1;
    return a->kind < b->kind ? -1 : a->kind > b->kind;
}

gpufl_status kind_totals_make(struct analysis *analysis)
{
    struct kind_total *kinds = analysis->kinds;
    for (int kind = 0; kind < KERNEL_KIND_COUNT; kind++)
        kinds[kind] = (struct kind_total){.kind = (enum kernel_kind)kind};
    for (size_t i = 0; i < analysis->hotspot_count; i++) {
        const struct hotspot *hotspot = &analysis->hotspots[i];
        struct kind_total *total = &kinds[session_kernel_kind(analysis->model, hotspot->kernel_id)];
        total->kernels++;
        total->count += hotspot->duration.count;
        total->total_ns = sum_saturated(total->total_ns, hotspot->duration.total);
    }
    qsort(kinds, KERNEL_KIND_COUNT, sizeof *kinds, total_compare);
    while (analysis->kind_count < KERNEL_KIND_COUNT && kinds[analysis->kind_count].count)
        analysis->kind_count++;
    return GPUFL_OK;
}
