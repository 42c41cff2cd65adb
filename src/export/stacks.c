/* SPDX-License-Identifier: Apache-2.0 */
#include "export/stacks.h"

#include "analysis/statistics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool stack_add(struct stack_set *set, const struct stack_sample *key, int64_t duration_ns)
{
    const uint32_t words[] = {key->path_id, key->stack_id, key->kernel_id, key->kind};
    bool is_new = false;
    uint32_t id = intern_id(&set->keys, words, sizeof words, &is_new);
    if (!id)
        return false;
    if (is_new && set->count == set->capacity) {
        size_t capacity = set->capacity ? set->capacity * 2 : 256;
        struct stack_sample *grown = realloc(set->samples, capacity * sizeof *grown);
        if (!grown)
            return false;
        set->samples = grown;
        set->capacity = capacity;
    }
    if (is_new)
        set->samples[set->count++] = *key;
    struct stack_sample *sample = &set->samples[id - 1];
    sample->count++;
    sample->total_ns = sum_saturated(sample->total_ns, duration_ns);
    return true;
}

static uint32_t scope_path(const struct session_model *model, uint32_t scope)
{
    return scope < model->scope_count ? model->scopes[scope].path_id : 0;
}

static bool kernels_add(struct stack_set *set, const struct export_filter *filter)
{
    const struct kernel_columns *kernels = &set->model->kernels;
    for (size_t i = 0; i < kernels->count; i++) {
        if (!filter_takes(filter, kernels->scope[i], kernels->start_ns[i], kernels->duration_ns[i]))
            continue;
        struct stack_sample key = {.path_id = scope_path(set->model, kernels->scope[i]),
                                   .stack_id = set->is_by_stack && kernels->stack_id ? kernels->stack_id[i] : 0,
                                   .kernel_id = kernels->kernel_id[i],
                                   .kind = LEAF_KERNEL};
        if (!stack_add(set, &key, kernels->duration_ns[i]))
            return false;
    }
    return true;
}

static bool span_add(struct stack_set *set, const struct export_filter *filter, const struct gpu_span *span,
                     uint32_t kind)
{
    struct stack_sample key = {.path_id = scope_path(set->model, span->scope), .kind = kind};
    return !filter_takes(filter, span->scope, span->start_ns, span->duration_ns) ||
           stack_add(set, &key, span->duration_ns);
}

gpufl_status stack_set_make(struct stack_set *set, const struct export_filter *filter, enum export_grouping group)
{
    const struct session_model *model = filter->model;
    bool has_stacks = model->kernels.stack_id != NULL;
    *set = (struct stack_set){.model = model,
                              .is_by_stack = group == EXPORT_BY_STACK || (group == EXPORT_BY_DEFAULT && has_stacks)};
    bool is_done = kernels_add(set, filter);
    for (size_t i = 0; i < model->copy_count && is_done; i++)
        is_done = span_add(set, filter, &model->copies[i].span, LEAF_COPY + model->copies[i].copy_kind);
    for (size_t i = 0; i < model->memset_count && is_done; i++)
        is_done = span_add(set, filter, &model->memsets[i].span, LEAF_MEMSET);
    if (is_done)
        return GPUFL_OK;
    stack_set_free(set);
    return GPUFL_E_NO_MEMORY;
}

void stack_set_free(struct stack_set *set)
{
    free(set->samples);
    set->samples = NULL;
    intern_free(&set->keys);
}

/* Frames without a name are kept. */
static const char nameless[] = "(no name)";

static bool parts_take(const char *text, stack_frame_fn take, void *user)
{
    while (text) {
        const char *bar = strchr(text, '|');
        size_t size = bar ? (size_t)(bar - text) : strlen(text);
        if (!take(user, size ? text : nameless, size ? size : sizeof nameless - 1))
            return false;
        text = bar ? bar + 1 : NULL;
    }
    return true;
}

bool stack_frames(const struct stack_set *set, const struct stack_sample *sample, stack_frame_fn take, void *user)
{
    static const char unnamed[] = "(name not recorded)";
    const char *above = set->is_by_stack ? session_text(set->model, DICTIONARY_FUNCTION, sample->stack_id)
                                         : session_text(set->model, DICTIONARY_SCOPE_NAME, sample->path_id);
    if (!parts_take(above, take, user))
        return false;
    const char *leaf = unnamed;
    char text[64];
    if (sample->kind == LEAF_KERNEL) {
        const char *name = session_text(set->model, DICTIONARY_KERNEL, sample->kernel_id);
        leaf = name ? name : unnamed;
    } else if (sample->kind == LEAF_MEMSET) {
        leaf = "[memset]";
    } else {
        const char *word = schema_word("copy_kind", (long)sample->kind - LEAF_COPY);
        snprintf(text, sizeof text, "[copy%s%s]", word ? " " : "", word ? word : "");
        leaf = text;
    }
    leaf = *leaf ? leaf : nameless;
    return take(user, leaf, strlen(leaf));
}
