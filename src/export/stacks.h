/* SPDX-License-Identifier: Apache-2.0 */
/* GPU time summed by origin: scopes or the CPU's call stack, then the kernel. The data of flame graphs. One thread. */
#ifndef GPUFL_EXPORT_STACKS_H
#define GPUFL_EXPORT_STACKS_H

#include "export/export.h"
#include "export/filter.h"
#include "base/intern.h"

struct stack_sample {
    uint32_t path_id;   /* scope_name_dict; 0: none or unknown */
    uint32_t stack_id;  /* function_dict; 0: none */
    uint32_t kernel_id; /* kernel_dict; 0: not a kernel, or its name was not recorded */
    uint32_t kind;      /* enum stack_leaf */
    uint64_t count;
    int64_t total_ns;
};
enum stack_leaf { LEAF_KERNEL, LEAF_MEMSET, LEAF_COPY }; /* LEAF_COPY + kind of copy */

struct stack_set {
    const struct session_model *model;
    struct intern keys;
    struct stack_sample *samples; /* in the order in which they were first seen */
    size_t count, capacity;
    bool is_by_stack; /* kernels are grouped by call stack, otherwise by scope */
};

NODISCARD gpufl_status stack_set_make(struct stack_set *set, const struct export_filter *filter,
                                      enum export_grouping group);
void stack_set_free(struct stack_set *set);

/* Frames of a sample, outermost first; the last one is the GPU work. Text is not NUL-terminated. */
typedef bool (*stack_frame_fn)(void *user, const char *text, size_t size);
bool stack_frames(const struct stack_set *set, const struct stack_sample *sample, stack_frame_fn take, void *user);

#endif
