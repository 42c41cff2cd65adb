/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel time by operator. */
#include "analysis/analysis.h"

#include <stdlib.h>

static int operator_compare(const void *left, const void *right)
{
    const struct operator_total *a = left, *b = right;
    if (a->total_ns != b->total_ns)
        return a->total_ns > b->total_ns ? -1 : 1;
    if (a->count != b->count)
        return a->count > b->count ? -1 : 1;
    return strcmp(a->name, b->name);
}

/* total_of[i]: the index of the operation's total. Operations of one name have one total. */
static bool totals_name(struct analysis *analysis, uint32_t *total_of)
{
    const struct session_model *model = analysis->model;
    struct intern names = {0};
    bool is_done = true;
    for (size_t i = 1; i < model->operation_count && is_done; i++) {
        const char *name = model->operations[i].name;
        bool is_new = false;
        uint32_t id = intern_id(&names, name, strlen(name), &is_new);
        is_done = id != 0;
        if (is_new)
            analysis->operators[analysis->operator_count++] = (struct operator_total){.name = name};
        total_of[i] = id - 1;
    }
    intern_free(&names);
    return is_done;
}

gpufl_status operator_totals_make(struct analysis *analysis)
{
    const struct session_model *model = analysis->model;
    if (!model->kernels.operation)
        return GPUFL_OK;
    uint32_t *total_of = malloc(model->operation_count * sizeof *total_of);
    analysis->operators = malloc(model->operation_count * sizeof *analysis->operators);
    if (!total_of || !analysis->operators || !totals_name(analysis, total_of)) {
        free(total_of);
        return GPUFL_E_NO_MEMORY;
    }
    for (size_t i = 0; i < model->kernels.count; i++) {
        uint32_t operation = model->kernels.operation[i];
        if (!operation) {
            analysis->kernels_without_operator++;
            analysis->without_operator_ns = sum_saturated(analysis->without_operator_ns, model->kernels.duration_ns[i]);
            continue;
        }
        struct operator_total *total = &analysis->operators[total_of[operation]];
        total->count++;
        total->total_ns = sum_saturated(total->total_ns, model->kernels.duration_ns[i]);
        int64_t *part = &total->by_direction_ns[session_direction(&model->operations[operation])];
        *part = sum_saturated(*part, model->kernels.duration_ns[i]);
    }
    free(total_of);
    qsort(analysis->operators, analysis->operator_count, sizeof *analysis->operators, operator_compare);
    while (analysis->operator_count && !analysis->operators[analysis->operator_count - 1].count)
        analysis->operator_count--; /* nothing was launched in them */
    return GPUFL_OK;
}
