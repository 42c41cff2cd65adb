/* SPDX-License-Identifier: Apache-2.0 */
/* Which kernels ran inside each scope, its children included. Filled by scope_tree_make. */
#ifndef GPUFL_ANALYSIS_SCOPE_KERNELS_H
#define GPUFL_ANALYSIS_SCOPE_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct scope_kernel {
    uint32_t kernel_id;
    uint64_t count;
    int64_t total_ns;
};

struct scope_kernel_sum {
    uint64_t count;
    int64_t total_ns;
};

struct scope_kernels {
    struct scope_kernel_sum **rows; /* [node][kernel id]; NULL: no kernel, or no room */
    size_t row_count, cells;
    uint32_t kernel_count; /* ids from here on count as 0 */
    bool is_full;          /* some rows are missing: their kernels are not known */
};

struct analysis;
/* The row of a node, for adding to it; NULL: no room. Valid until the next call. */
struct scope_kernel_sum *scope_kernels_row(struct scope_kernels *kernels, uint32_t node);
/* Adds the children to their parents, the root excepted; after all rows are filled. */
void scope_kernels_sum(struct analysis *analysis);
/* Fills top with the kernels of most time, at most `most`, and returns how many there are; SIZE_MAX: not known. */
size_t scope_kernels_top(const struct analysis *analysis, uint32_t node, struct scope_kernel *top, size_t most);
void scope_kernels_free(struct scope_kernels *kernels);

#endif
