/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/analysis.h"

#include <stdlib.h>
#include <string.h>

enum { cells_max = 4 * 1024 * 1024 };

static bool rows_grow(struct scope_kernels *kernels, uint32_t node)
{
    if (node < kernels->row_count)
        return true;
    size_t count = (size_t)node + node / 2 + 64;
    struct scope_kernel_sum **grown = realloc(kernels->rows, count * sizeof *grown);
    if (!grown)
        return false;
    memset(grown + kernels->row_count, 0, (count - kernels->row_count) * sizeof *grown);
    kernels->rows = grown;
    kernels->row_count = count;
    return true;
}

struct scope_kernel_sum *scope_kernels_row(struct scope_kernels *kernels, uint32_t node)
{
    if (!rows_grow(kernels, node)) {
        kernels->is_full = true;
        return NULL;
    }
    if (!kernels->rows[node]) {
        if (kernels->cells + kernels->kernel_count <= cells_max)
            kernels->rows[node] = calloc(kernels->kernel_count, sizeof **kernels->rows);
        kernels->cells += kernels->rows[node] ? kernels->kernel_count : 0;
        kernels->is_full |= !kernels->rows[node];
    }
    return kernels->rows[node];
}

void scope_kernels_sum(struct analysis *analysis)
{
    struct scope_kernels *kernels = &analysis->scope_kernels;
    for (size_t node = analysis->scope_count; node-- > 1;) { /* children come after their parents */
        uint32_t parent = analysis->scopes[node].parent;
        struct scope_kernel_sum *from = node < kernels->row_count ? kernels->rows[node] : NULL;
        struct scope_kernel_sum *to = from && parent ? scope_kernels_row(kernels, parent) : NULL;
        for (uint32_t id = 0; to && id < kernels->kernel_count; id++) {
            to[id].count += from[id].count;
            to[id].total_ns = sum_saturated(to[id].total_ns, from[id].total_ns);
        }
    }
}

size_t scope_kernels_top(const struct analysis *analysis, uint32_t node, struct scope_kernel *top, size_t most)
{
    const struct scope_kernels *kernels = &analysis->scope_kernels;
    const struct scope_kernel_sum *row = node < kernels->row_count ? kernels->rows[node] : NULL;
    size_t count = 0, kept = 0;
    /* A row that is missing means no kernels only where no row had to be left out. */
    if (kernels->is_full && (!row || node))
        return SIZE_MAX;
    for (uint32_t id = 0; row && id < kernels->kernel_count; id++) {
        if (!row[id].count)
            continue;
        count++;
        size_t at = kept < most ? kept++ : most;
        for (; at > 0 && top[at - 1].total_ns < row[id].total_ns; at--)
            if (at < most)
                top[at] = top[at - 1];
        if (at < most)
            top[at] = (struct scope_kernel){id, row[id].count, row[id].total_ns};
    }
    return count;
}

void scope_kernels_free(struct scope_kernels *kernels)
{
    for (size_t i = 0; i < kernels->row_count; i++)
        free(kernels->rows[i]);
    free(kernels->rows);
    *kernels = (struct scope_kernels){0};
}
