/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/analysis.h"

#include <ctype.h>
#include <stdlib.h>

struct tag_search {
    struct analysis *analysis;
    uint32_t *node_of_path; /* 0: none */
    uint64_t *kernels;      /* of each entry, with those inside */
    int64_t *gpu_ns;
    struct intern keys; /* node and tag -> item */
    struct scope_tag *items;
    size_t count, capacity;
};

/* The item of a node and a text; NULL: no memory. text: must stay valid. */
static struct scope_tag *item_of(struct tag_search *search, uint32_t node, const char *text)
{
    char key[sizeof node + sizeof text];
    bool is_new = false;
    memcpy(key, &node, sizeof node);
    memcpy(key + sizeof node, &text, sizeof text); /* equal texts have the same address */
    uint32_t id = intern_id(&search->keys, key, sizeof key, &is_new);
    if (!id)
        return NULL;
    if (is_new && search->count == search->capacity) {
        size_t capacity = search->capacity * 2 + 64;
        struct scope_tag *grown = realloc(search->items, capacity * sizeof *grown);
        if (!grown)
            return NULL;
        search->items = grown;
        search->capacity = capacity;
    }
    if (is_new)
        search->items[search->count++] = (struct scope_tag){.node = node, .text = text};
    return &search->items[id - 1];
}

static void item_add(struct scope_tag *item, const struct scope_tag *more)
{
    item->tags += more->tags;
    item->calls += more->calls;
    item->kernels += more->kernels;
    item->wall_ns = sum_saturated(item->wall_ns, more->wall_ns);
    item->gpu_ns = sum_saturated(item->gpu_ns, more->gpu_ns);
}

/* The GPU time of each entry. Entries come after those around them, in logs that are intact. */
static bool entries_weigh(struct tag_search *search)
{
    const struct session_model *model = search->analysis->model;
    search->kernels = calloc(model->scope_count + 1, sizeof *search->kernels);
    search->gpu_ns = calloc(model->scope_count + 1, sizeof *search->gpu_ns);
    if (!search->kernels || !search->gpu_ns)
        return false;
    for (size_t i = 0; i < model->kernels.count; i++) {
        uint32_t scope = model->kernels.scope[i];
        if (scope >= model->scope_count)
            continue;
        search->kernels[scope]++;
        search->gpu_ns[scope] = sum_saturated(search->gpu_ns[scope], model->kernels.duration_ns[i]);
    }
    for (size_t i = model->scope_count; i-- > 0;) {
        uint32_t parent = model->scopes[i].parent;
        if (parent >= i)
            continue;
        search->kernels[parent] += search->kernels[i];
        search->gpu_ns[parent] = sum_saturated(search->gpu_ns[parent], search->gpu_ns[i]);
    }
    return true;
}

static bool entries_add(struct tag_search *search)
{
    const struct session_model *model = search->analysis->model;
    uint32_t paths = model->dictionaries[DICTIONARY_SCOPE_NAME].count;
    for (size_t i = 0; i < model->scope_count; i++) {
        const struct scope_instance *scope = &model->scopes[i];
        const char *text = scope->tag_id ? session_text(model, DICTIONARY_TAG, scope->tag_id) : NULL;
        if (!text || scope->is_attribution_only || scope->path_id >= paths || !search->node_of_path[scope->path_id])
            continue;
        struct scope_tag *item = item_of(search, search->node_of_path[scope->path_id], text);
        if (!item)
            return false;
        int64_t end_ns = scope->end_ns == TIME_UNKNOWN ? search->analysis->end_ns : scope->end_ns;
        bool has_time = scope->begin_ns != TIME_UNKNOWN && end_ns > scope->begin_ns;
        item->tags = 0;
        item_add(item, &(struct scope_tag){.tags = 1,
                                           .calls = 1,
                                           .kernels = search->kernels[i],
                                           .wall_ns = has_time ? end_ns - scope->begin_ns : 0,
                                           .gpu_ns = search->gpu_ns[i]});
    }
    return true;
}

static int item_compare(const void *left, const void *right)
{
    const struct scope_tag *a = left, *b = right;
    if (a->node != b->node)
        return a->node < b->node ? -1 : 1;
    if (!a->text != !b->text)
        return a->text ? -1 : 1;
    if (a->wall_ns != b->wall_ns)
        return a->wall_ns > b->wall_ns ? -1 : 1;
    return a->text && b->text ? strcmp(a->text, b->text) : 0;
}

/* "batch_42" becomes "batch_*", owned by the result; NULL: no memory. */
static const char *group_text(struct scope_tags *tags, const char *text)
{
    struct bytes group = {0};
    for (; *text; text++) {
        if (!isdigit((unsigned char)*text))
            bytes_append_char(&group, *text);
        else if (!isdigit((unsigned char)text[1]))
            bytes_append_char(&group, '*');
    }
    uint32_t id = group.failed || !group.size ? 0 : intern_id(&tags->texts, group.data, group.size, NULL);
    bytes_free(&group);
    return id ? intern_text(&tags->texts, id) : NULL;
}

/* Adds the items of one node to the result: as they are, or grouped. */
static bool node_add(struct tag_search *search, const struct scope_tag *items, size_t count)
{
    struct scope_tags *tags = &search->analysis->scope_tags;
    struct tag_search groups = {.analysis = search->analysis};
    bool is_done = true;
    if (count < 2)
        return true;
    for (size_t i = 0; is_done && i < count; i++) {
        const char *text = count > SCOPE_TAGS_MAX ? group_text(tags, items[i].text) : items[i].text;
        struct scope_tag *group = text ? item_of(&groups, items[i].node, text) : NULL;
        is_done = group != NULL;
        if (is_done)
            item_add(group, &items[i]);
    }
    if (is_done) {
        qsort(groups.items, groups.count, sizeof *groups.items, item_compare);
        for (size_t i = SCOPE_TAGS_MAX + 1; i < groups.count; i++)
            item_add(&groups.items[SCOPE_TAGS_MAX], &groups.items[i]);
        if (groups.count > SCOPE_TAGS_MAX + 1) {
            groups.items[SCOPE_TAGS_MAX].text = NULL;
            groups.count = SCOPE_TAGS_MAX + 1;
        }
        struct scope_tag *grown = realloc(tags->items, (tags->count + groups.count) * sizeof *grown);
        is_done = grown != NULL;
        if (is_done) {
            tags->items = grown;
            memcpy(tags->items + tags->count, groups.items, groups.count * sizeof *groups.items);
            tags->count += groups.count;
        }
    }
    intern_free(&groups.keys);
    free(groups.items);
    return is_done;
}

static bool has_tags(const struct session_model *model)
{
    for (size_t i = 0; i < model->scope_count; i++)
        if (model->scopes[i].tag_id)
            return true;
    return false;
}

gpufl_status scope_tags_make(struct analysis *analysis)
{
    const struct session_model *model = analysis->model;
    uint32_t paths = model->dictionaries[DICTIONARY_SCOPE_NAME].count;
    struct tag_search search = {.analysis = analysis};
    if (!has_tags(model))
        return GPUFL_OK;
    search.node_of_path = calloc((size_t)paths + 1, sizeof *search.node_of_path);
    bool is_done = search.node_of_path && entries_weigh(&search);
    for (uint32_t node = 1; is_done && node < analysis->scope_count; node++)
        if (analysis->scopes[node].path_id < paths)
            search.node_of_path[analysis->scopes[node].path_id] = node;
    is_done = is_done && entries_add(&search);
    if (is_done && search.count)
        qsort(search.items, search.count, sizeof *search.items, item_compare);
    for (size_t first = 0, end; is_done && first < search.count; first = end) {
        for (end = first + 1; end < search.count && search.items[end].node == search.items[first].node;)
            end++;
        is_done = node_add(&search, search.items + first, end - first);
    }
    intern_free(&search.keys);
    free(search.items);
    free(search.node_of_path);
    free(search.kernels);
    free(search.gpu_ns);
    return is_done ? GPUFL_OK : GPUFL_E_NO_MEMORY;
}

const struct scope_tag *scope_tags_of(const struct analysis *analysis, uint32_t node, size_t *count)
{
    const struct scope_tags *tags = &analysis->scope_tags;
    size_t low = 0, high = tags->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (tags->items[middle].node < node)
            low = middle + 1;
        else
            high = middle;
    }
    for (*count = 0; low + *count < tags->count && tags->items[low + *count].node == node;)
        (*count)++;
    return *count ? &tags->items[low] : NULL;
}

void scope_tags_free(struct scope_tags *tags)
{
    free(tags->items);
    intern_free(&tags->texts);
    *tags = (struct scope_tags){0};
}
