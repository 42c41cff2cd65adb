/* SPDX-License-Identifier: Apache-2.0 */
/* The end of loading: GPUs get their numbers, v1's paths and details are joined with their kernels, references are
 * checked, GPU work is sorted by start. */
#include "analysis/session_loader.h"
#include "analysis/statistics.h"

#include <stdlib.h>

/* ids[i]: the dictionary id of entry i + 1 of loader->paths. */
static bool paths_define(struct session_loader *loader, uint32_t *ids)
{
    struct dictionary_table *names = &loader->model->dictionaries[DICTIONARY_SCOPE_NAME];
    struct intern known = {0};
    uint32_t *known_ids = calloc((size_t)names->count + 1, sizeof *known_ids);
    bool is_done = known_ids != NULL;
    for (uint32_t id = 1; is_done && id < names->count; id++) {
        if (!names->texts[id])
            continue;
        uint32_t at = intern_id(&known, names->texts[id], strlen(names->texts[id]), NULL);
        is_done = at != 0;
        if (at && !known_ids[at - 1])
            known_ids[at - 1] = id;
    }
    for (uint32_t i = 0; is_done && i < loader->paths.count; i++) {
        const struct intern_entry *path = &loader->paths.entries[i];
        uint32_t at = intern_find(&known, path->text, path->size);
        ids[i] = at ? known_ids[at - 1] : names->count ? names->count : 1;
        if (!at && !loader_define(loader, DICTIONARY_SCOPE_NAME, ids[i], path->text, path->size))
            ids[i] = 0;
        is_done = loader->status == GPUFL_OK;
    }
    intern_free(&known);
    free(known_ids);
    return is_done;
}

static int detail_compare(const void *left, const void *right)
{
    const struct kernel_detail *a = left, *b = right;
    return a->corr_id < b->corr_id ? -1 : a->corr_id > b->corr_id;
}

static const struct kernel_detail *detail_find(const struct session_loader *loader, uint32_t corr_id)
{
    struct kernel_detail key = {.corr_id = corr_id};
    return loader->detail_count ? bsearch(&key, loader->details, loader->detail_count, sizeof key, detail_compare)
                                : NULL;
}

/* A launch configuration belongs to one kernel; v1's details do not identify it. */
static uint32_t detail_launch(struct session_loader *loader, struct intern *pairs, uint32_t first_launch,
                              const struct kernel_detail *detail, size_t kernel)
{
    struct session_model *model = loader->model;
    uint32_t pair[2] = {detail->content_id, model->kernels.kernel_id[kernel]};
    bool is_new;
    uint32_t id = intern_id(pairs, pair, sizeof pair, &is_new);
    if (!id || (is_new && !loader_grow(loader, &model->launches, &loader->launch_capacity, model->launch_count,
                                       sizeof *model->launches))) {
        loader->status = GPUFL_E_NO_MEMORY;
        return 0;
    }
    if (is_new) {
        struct launch_config *launch = &model->launches[model->launch_count++];
        memcpy(launch, loader->detail_contents.entries[detail->content_id - 1].text, sizeof *launch);
        launch->kernel_id = pair[1];
        launch->device = model->kernels.device[kernel];
    }
    return first_launch + id;
}

static bool details_join(struct session_loader *loader, const uint32_t *path_ids, uint32_t *path_scopes)
{
    struct session_model *model = loader->model;
    struct intern pairs = {0};
    uint32_t first_launch = (uint32_t)model->launch_count;
    if (loader->detail_count)
        qsort(loader->details, loader->detail_count, sizeof *loader->details, detail_compare);
    for (size_t i = 0; i < model->kernels.count && loader->status == GPUFL_OK; i++) {
        const struct kernel_detail *detail = detail_find(loader, model->kernels.corr_id[i]);
        if (!detail)
            continue;
        if (!model->kernels.launch_id[i])
            model->kernels.launch_id[i] = detail_launch(loader, &pairs, first_launch, detail, i);
        uint32_t path = detail->path_id & ~V1_PATH;
        if (!path || model->kernels.scope[i] != ID_UNKNOWN)
            continue;
        if (path_scopes[path - 1] == ID_UNKNOWN) {
            struct scope_instance *scope = loader_scope_add(loader, 0);
            if (!scope)
                break;
            scope->path_id = path_ids[path - 1];
            scope->is_attribution_only = true;
            path_scopes[path - 1] = (uint32_t)model->scope_count - 1;
        }
        model->kernels.scope[i] = path_scopes[path - 1];
    }
    intern_free(&pairs);
    return loader->status == GPUFL_OK;
}

static bool v1_join(struct session_loader *loader)
{
    struct session_model *model = loader->model;
    if (!loader->paths.count && !loader->detail_count)
        return true;
    uint32_t *path_ids = calloc((size_t)loader->paths.count + 1, sizeof *path_ids);
    uint32_t *path_scopes = malloc(((size_t)loader->paths.count + 1) * sizeof *path_scopes);
    bool is_done = path_ids && path_scopes && paths_define(loader, path_ids);
    for (size_t i = 0; is_done && i < model->scope_count; i++)
        if (model->scopes[i].path_id & V1_PATH)
            model->scopes[i].path_id = path_ids[(model->scopes[i].path_id & ~V1_PATH) - 1];
    if (is_done) {
        memset(path_scopes, 0xff, loader->paths.count * sizeof *path_scopes);
        is_done = details_join(loader, path_ids, path_scopes);
    }
    free(path_ids);
    free(path_scopes);
    return is_done;
}

/* v1 rows have no device: in a machine with a single GPU it is that one. */
static void devices_fill(struct session_model *model)
{
    if (model->device_count != 1)
        return;
    uint16_t device = model->devices[0].id;
    for (size_t i = 0; i < model->kernels.count; i++)
        if (model->kernels.device[i] == DEVICE_UNKNOWN)
            model->kernels.device[i] = device;
    for (size_t i = 0; i < model->copy_count; i++)
        if (model->copies[i].span.device == DEVICE_UNKNOWN)
            model->copies[i].span.device = device;
    for (size_t i = 0; i < model->memset_count; i++)
        if (model->memsets[i].span.device == DEVICE_UNKNOWN)
            model->memsets[i].span.device = device;
}

static void array_permute(void *array, size_t width, const uint32_t *order, size_t count, void *scratch)
{
    if (!array)
        return;
    if (width == sizeof(uint64_t)) {
        const uint64_t *from = array;
        for (size_t i = 0; i < count; i++)
            ((uint64_t *)scratch)[i] = from[order[i]];
    } else if (width == sizeof(uint32_t)) {
        const uint32_t *from = array;
        for (size_t i = 0; i < count; i++)
            ((uint32_t *)scratch)[i] = from[order[i]];
    } else {
        for (size_t i = 0; i < count; i++)
            memcpy((char *)scratch + i * width, (const char *)array + order[i] * width, width);
    }
    memcpy(array, scratch, count * width);
}

static bool kernels_sort(struct kernel_columns *kernels)
{
    size_t count = kernels->count;
    if (keys_are_ordered(kernels->start_ns, count))
        return true;
    uint32_t *order = malloc(count * sizeof *order);
    /* Used for sorting and then for every column: allocating new memory would cost more than copying. */
    uint64_t *scratch = malloc(count * sizeof *scratch);
    if (!order || !scratch) {
        free(order);
        free(scratch);
        return false;
    }
    loader_large_pages(order, count * sizeof *order);
    loader_large_pages(scratch, count * sizeof *scratch);
    keys_order(kernels->start_ns, count, order, (uint32_t *)(void *)scratch);
    void *const wide[] = {kernels->start_ns, kernels->duration_ns, kernels->api_start_ns};
    void *const narrow[] = {kernels->api_duration_ns, kernels->kernel_id, kernels->launch_id,
                            kernels->stream_id,       kernels->thread_id, kernels->corr_id,
                            kernels->scope,           kernels->graph_id,  kernels->stack_id};
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
        array_permute(wide[i], sizeof(uint64_t), order, count, scratch);
    for (size_t i = 0; i < sizeof narrow / sizeof *narrow; i++)
        array_permute(narrow[i], sizeof(uint32_t), order, count, scratch);
    array_permute(kernels->device, sizeof *kernels->device, order, count, scratch);
    free(order);
    free(scratch);
    return true;
}

/* Rows whose first member is their start time. */
static bool rows_sort(void *rows, size_t width, size_t count)
{
    if (count < 2)
        return true;
    int64_t *keys = malloc(count * sizeof *keys);
    uint32_t *order = malloc(2 * count * sizeof *order);
    bool is_done = keys && order;
    for (size_t i = 0; is_done && i < count; i++)
        memcpy(&keys[i], (const char *)rows + i * width, sizeof keys[i]);
    void *scratch = NULL;
    if (is_done && !keys_are_ordered(keys, count)) {
        keys_order(keys, count, order, order + count);
        scratch = malloc(count * width);
        is_done = scratch != NULL;
        if (is_done)
            array_permute(rows, width, order, count, scratch);
    }
    free(scratch);
    free(keys);
    free(order);
    return is_done;
}

_Static_assert(offsetof(struct gpu_copy, span.start_ns) == 0 && offsetof(struct gpu_memset, span.start_ns) == 0 &&
                   offsetof(struct graph_launch, span.start_ns) == 0 && offsetof(struct sync_wait, start_ns) == 0 &&
                   offsetof(struct memory_event, time_ns) == 0,
               "rows_sort reads the start time from the front");

/* Each name once, so that millions of kernels need a look-up only. */
static bool kinds_make(struct session_model *model)
{
    const struct dictionary_table *names = &model->dictionaries[DICTIONARY_KERNEL];
    model->kernel_kinds = malloc((size_t)names->count + 1);
    for (uint32_t id = 0; model->kernel_kinds && id < names->count; id++)
        model->kernel_kinds[id] = (uint8_t)kernel_kind_of(names->texts[id]);
    return model->kernel_kinds;
}

gpufl_status loader_finish(struct session_loader *loader)
{
    struct session_model *model = loader->model;
    if (!loader_devices_finish(loader))
        return GPUFL_E_NO_MEMORY;
    devices_fill(model);
    if (!v1_join(loader))
        return GPUFL_E_NO_MEMORY;
    for (size_t i = 0; i < model->kernels.count; i++)
        if (model->kernels.launch_id[i] > model->launch_count)
            model->kernels.launch_id[i] = 0;
    if (!loader_merge(loader))
        return GPUFL_E_NO_MEMORY;
    loader_adoptions_finish(loader);
    bool is_done = kinds_make(model) && kernels_sort(&model->kernels) &&
                   rows_sort(model->copies, sizeof *model->copies, model->copy_count) &&
                   rows_sort(model->memsets, sizeof *model->memsets, model->memset_count) &&
                   rows_sort(model->graphs, sizeof *model->graphs, model->graph_count) &&
                   rows_sort(model->syncs, sizeof *model->syncs, model->sync_count) &&
                   rows_sort(model->memory_events, sizeof *model->memory_events, model->memory_event_count) &&
                   loader_operators_split(loader) && loader_scopes_infer(loader);
    return is_done ? GPUFL_OK : GPUFL_E_NO_MEMORY;
}
