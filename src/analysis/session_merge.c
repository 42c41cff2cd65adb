/* SPDX-License-Identifier: Apache-2.0 */
/* Merges names and launch configurations that the recorder forgot and later wrote again under another id: all
 * references then use the first id. */
#include "analysis/session_loader.h"

#include <stdlib.h>
#include <string.h>

struct named_id {
    const char *text, *symbol; /* interned: equal texts have the same address */
    uint32_t id;
};

static int compare_names(const void *left, const void *right)
{
    const struct named_id *a = left, *b = right;
    if (a->text != b->text)
        return (uintptr_t)a->text < (uintptr_t)b->text ? -1 : 1;
    if (a->symbol != b->symbol)
        return (uintptr_t)a->symbol < (uintptr_t)b->symbol ? -1 : 1;
    return a->id < b->id ? -1 : a->id > b->id;
}

/* first[id] for each id of the dictionary; *first is NULL if all names are distinct. symbols: distinguishes functions
 * with equal names; DICTIONARY_COUNT: none. False: no memory. */
static bool first_ids(const struct session_model *model, enum dictionary dictionary, enum dictionary symbols,
                      uint32_t **first)
{
    const struct dictionary_table *table = &model->dictionaries[dictionary];
    *first = NULL;
    if (table->count < 3)
        return true;
    struct named_id *names = malloc(table->count * sizeof *names);
    if (!names)
        return false;
    size_t count = 0, repeated = 0;
    for (uint32_t id = 1; id < table->count; id++)
        if (table->texts[id])
            names[count++] = (struct named_id){
                table->texts[id], symbols < DICTIONARY_COUNT ? session_text(model, symbols, id) : NULL, id};
    qsort(names, count, sizeof *names, compare_names);
    for (size_t i = 1; i < count; i++)
        repeated += names[i].text == names[i - 1].text && names[i].symbol == names[i - 1].symbol;
    uint32_t *ids = repeated ? malloc(table->count * sizeof *ids) : NULL;
    for (uint32_t id = 0; ids && id < table->count; id++)
        ids[id] = id;
    for (size_t i = 1; ids && i < count; i++)
        if (names[i].text == names[i - 1].text && names[i].symbol == names[i - 1].symbol)
            ids[names[i].id] = ids[names[i - 1].id];
    free(names);
    *first = ids;
    return ids || !repeated;
}

struct first_map {
    const uint32_t *ids;
    uint32_t count;
};

static void replace(struct first_map map, uint32_t *id)
{
    if (*id < map.count)
        *id = map.ids[*id];
}

static void replace_all(struct first_map map, uint32_t *ids, size_t count)
{
    for (size_t i = 0; ids && i < count; i++)
        replace(map, &ids[i]);
}

static void merge_kernels(struct session_model *model, struct first_map map)
{
    replace_all(map, model->kernels.kernel_id, model->kernels.count);
    for (size_t i = 0; i < model->launch_count; i++)
        replace(map, &model->launches[i].kernel_id);
    for (size_t i = 0; i < model->deep.untimed_count; i++)
        replace(map, &model->deep.untimed[i].kernel_id);
}

static void merge_functions(struct session_model *model, struct first_map map)
{
    replace_all(map, model->kernels.stack_id, model->kernels.count);
    for (size_t i = 0; i < model->sync_count; i++)
        replace(map, &model->syncs[i].function_id);
}

static void merge_paths(struct session_model *model, struct first_map map)
{
    for (size_t i = 0; i < model->scope_count; i++)
        replace(map, &model->scopes[i].path_id);
    for (size_t i = 0; i < model->deep.scope_sample_count; i++)
        replace(map, &model->deep.scope_samples[i].path_id);
    for (size_t i = 0; i < model->deep.window_count; i++)
        replace(map, &model->deep.windows[i].path_id);
}

static void merge_tags(struct session_model *model, struct first_map map)
{
    for (size_t i = 0; i < model->scope_count; i++)
        replace(map, &model->scopes[i].tag_id);
}

static int compare_launches(const struct launch_config *a, const struct launch_config *b)
{
    enum { from = offsetof(struct launch_config, grid) }; /* there is padding before it */
    if (a->kernel_id != b->kernel_id)
        return a->kernel_id < b->kernel_id ? -1 : 1;
    if (a->device != b->device)
        return a->device < b->device ? -1 : 1;
    return memcmp((const char *)a + from, (const char *)b + from, sizeof *a - from);
}

static int compare_launch_places(const void *left, const void *right)
{
    const struct launch_config *a = *(const struct launch_config *const *)left,
                               *b = *(const struct launch_config *const *)right;
    int order = compare_launches(a, b);
    return order ? order : a < b ? -1 : a > b;
}

static bool merge_launches(struct session_model *model)
{
    size_t count = model->launch_count, repeated = 0;
    if (count < 2)
        return true;
    const struct launch_config **order = malloc(count * sizeof *order);
    uint32_t *ids = malloc((count + 1) * sizeof *ids);
    if (!order || !ids) {
        free(order);
        free(ids);
        return false;
    }
    for (size_t i = 0; i < count; i++)
        order[i] = &model->launches[i];
    qsort(order, count, sizeof *order, compare_launch_places);
    ids[0] = 0;
    for (size_t i = 0; i < count; i++) {
        size_t place = (size_t)(order[i] - model->launches);
        bool is_repeated = i && !compare_launches(order[i], order[i - 1]);
        ids[place + 1] = is_repeated ? ids[order[i - 1] - model->launches + 1] : (uint32_t)place + 1;
        repeated += is_repeated;
    }
    if (repeated)
        replace_all((struct first_map){ids, (uint32_t)count + 1}, model->kernels.launch_id, model->kernels.count);
    free(order);
    free(ids);
    return true;
}

bool loader_merge(struct session_loader *loader)
{
    static const struct {
        enum dictionary names, symbols;
        void (*merge)(struct session_model *model, struct first_map map);
    } merges[] = {
        {DICTIONARY_KERNEL, DICTIONARY_KERNEL_SYMBOL, merge_kernels},
        {DICTIONARY_FUNCTION, DICTIONARY_FUNC_SYMBOL, merge_functions},
        {DICTIONARY_SCOPE_NAME, DICTIONARY_COUNT, merge_paths},
        {DICTIONARY_TAG, DICTIONARY_COUNT, merge_tags},
    };
    struct session_model *model = loader->model;
    for (size_t i = 0; i < sizeof merges / sizeof *merges; i++) {
        uint32_t *ids;
        if (!first_ids(model, merges[i].names, merges[i].symbols, &ids))
            return false;
        if (ids)
            merges[i].merge(model, (struct first_map){ids, model->dictionaries[merges[i].names].count});
        free(ids);
    }
    return merge_launches(model);
}
