/* SPDX-License-Identifier: Apache-2.0 */
/* What the slowest step did that a typical one did not: time by cause, scopes of its thread, kinds of work, kernels and
 * copies. GPU work belongs to the step in which it starts. */
#include "analysis/analysis.h"
#include "analysis/time_window.h"

#include <stdlib.h>

enum { per_what_max = 5, differences_max = per_what_max * STEP_DIFFERENCE_WHATS + 8 };

struct comparison {
    struct analysis *analysis;
    const struct step *steps[2]; /* slowest, typical */
};

static void difference_add(struct steps *steps, struct step_difference difference)
{
    if (difference.slowest_ns != difference.typical_ns && steps->difference_count < differences_max)
        steps->differences[steps->difference_count++] = difference;
}

static int64_t distance(const struct step_difference *difference)
{
    int64_t ns = difference->slowest_ns - difference->typical_ns;
    return ns < 0 ? -ns : ns;
}

static int difference_compare(const void *left, const void *right)
{
    const struct step_difference *a = left, *b = right;
    if (distance(a) != distance(b))
        return distance(a) > distance(b) ? -1 : 1;
    if (a->what != b->what)
        return a->what < b->what ? -1 : 1;
    return a->id < b->id ? -1 : a->id > b->id;
}

static gpufl_status times_compare(struct comparison *comparison)
{
    struct time_use use[2];
    for (int i = 0; i < 2; i++) {
        gpufl_status status = time_window_make(comparison->analysis, comparison->steps[i]->begin_ns,
                                               comparison->steps[i]->end_ns, &use[i]);
        if (status != GPUFL_OK)
            return status;
    }
    struct steps *steps = &comparison->analysis->steps;
    const struct step_difference parts[] = {
        {STEP_TIME, "GPU busy", 0, use[0].busy_ns, use[1].busy_ns},
        {STEP_TIME, "waiting for launches", 1, use[0].wait_launch_ns, use[1].wait_launch_ns},
        {STEP_TIME, "host waiting in sync", 2, use[0].wait_sync_ns, use[1].wait_sync_ns},
        {STEP_TIME, "between queued work", 3, use[0].queued_ns, use[1].queued_ns},
        {STEP_TIME, "no work queued", 4, use[0].no_work_ns, use[1].no_work_ns},
        {STEP_TIME, "idle, cause unknown", 5, use[0].unknown_ns, use[1].unknown_ns},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        difference_add(steps, parts[i]);
    return GPUFL_OK;
}

/* Adds the largest differences between two sums by id. */
static gpufl_status sums_compare(struct comparison *comparison, enum step_difference_what what,
                                 enum dictionary dictionary, const int64_t *sums, uint32_t count)
{
    struct steps *steps = &comparison->analysis->steps;
    struct step_difference *all = malloc(((size_t)count + 1) * sizeof *all);
    size_t used = 0;
    if (!all)
        return GPUFL_E_NO_MEMORY;
    for (uint32_t id = 0; id < count; id++) {
        const char *name = what == STEP_KIND ? kernel_kind_label((enum kernel_kind)id)
                                             : session_text(comparison->analysis->model, dictionary, id);
        if (sums[2 * id] || sums[2 * id + 1])
            all[used++] = (struct step_difference){what, name, id, sums[2 * id], sums[2 * id + 1]};
    }
    qsort(all, used, sizeof *all, difference_compare);
    for (size_t i = 0; i < used && i < per_what_max; i++)
        difference_add(steps, all[i]);
    free(all);
    return GPUFL_OK;
}

static gpufl_status kernels_compare(struct comparison *comparison)
{
    const struct session_model *model = comparison->analysis->model;
    const struct kernel_columns *kernels = &model->kernels;
    uint32_t count = model->dictionaries[DICTIONARY_KERNEL].count;
    int64_t *sums = calloc(2 * ((size_t)count + 1), sizeof *sums), kinds[2 * KERNEL_KIND_COUNT] = {0};
    if (!sums)
        return GPUFL_E_NO_MEMORY;
    for (unsigned side = 0; side < 2; side++) {
        size_t end = kernel_from(model, comparison->steps[side]->end_ns);
        for (size_t i = kernel_from(model, comparison->steps[side]->begin_ns); i < end; i++) {
            uint32_t id = kernels->kernel_id[i] < count ? kernels->kernel_id[i] : 0;
            int64_t *kind_ns = &kinds[2 * session_kernel_kind(model, id) + side];
            *kind_ns = sum_saturated(*kind_ns, kernels->duration_ns[i]);
            if (count)
                sums[2 * id + side] = sum_saturated(sums[2 * id + side], kernels->duration_ns[i]);
        }
    }
    gpufl_status status = sums_compare(comparison, STEP_KERNEL, DICTIONARY_KERNEL, sums, count);
    if (status == GPUFL_OK)
        status = sums_compare(comparison, STEP_KIND, DICTIONARY_KERNEL, kinds, KERNEL_KIND_COUNT);
    free(sums);
    return status;
}

/* Scopes inside the steps, on their thread. */
static gpufl_status scopes_compare(struct comparison *comparison)
{
    const struct session_model *model = comparison->analysis->model;
    const struct steps *steps = &comparison->analysis->steps;
    uint32_t count = model->dictionaries[DICTIONARY_SCOPE_NAME].count;
    if (steps->source != STEPS_SCOPE)
        return GPUFL_OK;
    int64_t *sums = calloc(2 * ((size_t)count + 1), sizeof *sums);
    if (!sums)
        return GPUFL_E_NO_MEMORY;
    for (size_t i = 0; i < model->scope_count; i++) {
        const struct scope_instance *scope = &model->scopes[i];
        if (scope->kind != SCOPE_OF_USER || scope->thread_id != steps->thread_id || scope->is_attribution_only ||
            scope->begin_ns == TIME_UNKNOWN || scope->end_ns == TIME_UNKNOWN || !scope->path_id ||
            scope->path_id >= count)
            continue;
        for (unsigned side = 0; side < 2; side++) {
            const struct step *step = comparison->steps[side];
            bool is_step = scope->begin_ns == step->begin_ns && scope->end_ns == step->end_ns;
            int64_t *sum = &sums[2 * scope->path_id + side];
            if (!is_step && scope->begin_ns >= step->begin_ns && scope->end_ns <= step->end_ns &&
                scope->end_ns > scope->begin_ns)
                *sum = sum_saturated(*sum, scope->end_ns - scope->begin_ns);
        }
    }
    gpufl_status status = sums_compare(comparison, STEP_SCOPE, DICTIONARY_SCOPE_NAME, sums, count);
    free(sums);
    return status;
}

static void copies_compare(struct comparison *comparison)
{
    const struct session_model *model = comparison->analysis->model;
    int64_t sums[2] = {0, 0};
    for (size_t i = 0; i < model->copy_count; i++)
        for (unsigned side = 0; side < 2; side++) {
            const struct gpu_span *span = &model->copies[i].span;
            if (span->start_ns >= comparison->steps[side]->begin_ns && span->start_ns < comparison->steps[side]->end_ns)
                sums[side] = sum_saturated(sums[side], span->duration_ns);
        }
    difference_add(&comparison->analysis->steps, (struct step_difference){STEP_COPIES, "copies", 0, sums[0], sums[1]});
}

gpufl_status steps_compare(struct analysis *analysis)
{
    struct steps *steps = &analysis->steps;
    struct comparison comparison = {analysis, {&steps->items[steps->slowest], &steps->items[steps->typical]}};
    steps->differences = malloc(differences_max * sizeof *steps->differences);
    if (!steps->differences)
        return GPUFL_E_NO_MEMORY;
    gpufl_status status = times_compare(&comparison);
    if (status == GPUFL_OK)
        status = kernels_compare(&comparison);
    if (status == GPUFL_OK)
        status = scopes_compare(&comparison);
    copies_compare(&comparison);
    qsort(steps->differences, steps->difference_count, sizeof *steps->differences, difference_compare);
    return status;
}
