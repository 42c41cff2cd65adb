/* SPDX-License-Identifier: Apache-2.0 */
/* Scopes by path. The GPU time of a scope is the sum of the durations of the kernels launched in it, so overlapping
 * kernels are each counted. */
#include "analysis/analysis.h"
#include "analysis/quantity.h"
#include "analysis/scope_kind.h"

#include <stdlib.h>

enum { path_depth_max = 256 };

struct tree {
    struct analysis *analysis;
    struct intern keys; /* parent index and name -> node index */
    struct bytes key;
    size_t capacity;
    uint32_t *node_of_path; /* dictionary id -> node, ID_UNKNOWN */
};

static uint32_t node_child(struct tree *tree, uint32_t parent, const char *name, size_t size)
{
    struct analysis *analysis = tree->analysis;
    bytes_clear(&tree->key);
    bytes_append(&tree->key, &parent, sizeof parent);
    bytes_append(&tree->key, name, size);
    bool is_new = false;
    uint32_t id = tree->key.failed ? 0 : intern_id(&tree->keys, tree->key.data, tree->key.size, &is_new);
    if (!id || !is_new)
        return id ? id : ID_UNKNOWN;
    if (analysis->scope_count == tree->capacity) {
        size_t capacity = tree->capacity * 2;
        struct scope_node *grown = realloc(analysis->scopes, capacity * sizeof *grown);
        if (!grown)
            return ID_UNKNOWN;
        analysis->scopes = grown;
        tree->capacity = capacity;
    }
    analysis->scopes[analysis->scope_count] = (struct scope_node){.name = name,
                                                                  .name_size = (uint32_t)size,
                                                                  .parent = parent,
                                                                  .first_child = ID_UNKNOWN,
                                                                  .next_sibling = ID_UNKNOWN,
                                                                  .depth = analysis->scopes[parent].depth + 1};
    return (uint32_t)analysis->scope_count++;
}

static uint32_t node_of(struct tree *tree, uint32_t path_id)
{
    static const char unnamed[] = "(name not recorded)";
    struct dictionary_table const *names = &tree->analysis->model->dictionaries[DICTIONARY_SCOPE_NAME];
    const char *path = path_id < names->count ? names->texts[path_id] : NULL;
    if (!path)
        return node_child(tree, 0, unnamed, sizeof unnamed - 1);
    if (tree->node_of_path[path_id] != ID_UNKNOWN)
        return tree->node_of_path[path_id];
    uint32_t node = 0;
    for (unsigned depth = 0; node != ID_UNKNOWN; depth++) {
        const char *bar = depth < path_depth_max ? strchr(path, '|') : NULL;
        node = node_child(tree, node, path, bar ? (size_t)(bar - path) : strlen(path));
        if (!bar)
            break;
        path = bar + 1;
    }
    if (node != ID_UNKNOWN)
        tree->analysis->scopes[node].path_id = path_id;
    return tree->node_of_path[path_id] = node;
}

static uint32_t node_of_scope(struct tree *tree, uint32_t scope)
{
    return scope == ID_UNKNOWN ? 0 : node_of(tree, tree->analysis->model->scopes[scope].path_id);
}

static bool instances_add(struct tree *tree)
{
    struct analysis *analysis = tree->analysis;
    const struct session_model *model = analysis->model;
    for (size_t i = 0; i < model->scope_count; i++) {
        const struct scope_instance *scope = &model->scopes[i];
        if (scope->kind != SCOPE_OF_USER)
            continue;
        if (scope->is_attribution_only)
            continue; /* added to the tree when work refers to it */
        uint32_t at = node_of(tree, scope->path_id);
        if (at == ID_UNKNOWN)
            return false;
        struct scope_node *node = &analysis->scopes[at];
        node->calls++;
        int64_t end_ns = scope->end_ns;
        if (end_ns == TIME_UNKNOWN) {
            node->open_calls++;
            end_ns = analysis->end_ns;
        }
        int64_t wall_ns = scope->begin_ns != TIME_UNKNOWN && end_ns > scope->begin_ns ? end_ns - scope->begin_ns : 0;
        node->wall_ns = sum_saturated(node->wall_ns, wall_ns);
        node->tag_id = scope->tag_id ? scope->tag_id : node->tag_id;
        if (scope->repeat && scope->end_ns != TIME_UNKNOWN) {
            node->repeat += scope->repeat;
            node->repeat_wall_ns = sum_saturated(node->repeat_wall_ns, wall_ns);
            node->warmup = scope->warmup;
        }
    }
    return true;
}

static bool work_add(struct tree *tree)
{
    struct analysis *analysis = tree->analysis;
    const struct session_model *model = analysis->model;
    struct scope_kernels *kernels = &analysis->scope_kernels;
    uint32_t last_scope = ID_UNKNOWN, node = 0;
    kernels->kernel_count = model->dictionaries[DICTIONARY_KERNEL].count;
    kernels->kernel_count += !kernels->kernel_count;
    struct scope_kernel_sum *row = model->kernels.count ? scope_kernels_row(kernels, node) : NULL;
    for (size_t i = 0; i < model->kernels.count; i++) {
        if (model->kernels.scope[i] != last_scope) {
            last_scope = model->kernels.scope[i];
            node = node_of_scope(tree, last_scope);
            if (node == ID_UNKNOWN)
                return false;
            row = scope_kernels_row(kernels, node);
        }
        if (row) {
            uint32_t kernel_id = model->kernels.kernel_id[i];
            struct scope_kernel_sum *sum = &row[kernel_id < kernels->kernel_count ? kernel_id : 0];
            sum->count++;
            sum->total_ns = sum_saturated(sum->total_ns, model->kernels.duration_ns[i]);
        }
        struct scope_node *scope = &analysis->scopes[node];
        scope->gpu_self_ns = sum_saturated(scope->gpu_self_ns, model->kernels.duration_ns[i]);
        scope->kernels_self++;
        if (model->inferred && model->inferred[i])
            scope->gpu_inferred_ns = sum_saturated(scope->gpu_inferred_ns, model->kernels.duration_ns[i]);
    }
    for (size_t i = 0; i < model->deep.untimed_count; i++) {
        node = node_of_scope(tree, model->deep.untimed[i].scope);
        if (node == ID_UNKNOWN)
            return false;
        analysis->scopes[node].untimed_self++;
    }
    for (size_t i = 0; i < model->sync_count; i++) {
        if (model->syncs[i].sync_type == 2)
            continue;
        node = node_of_scope(tree, model->syncs[i].scope);
        if (node == ID_UNKNOWN)
            return false;
        struct scope_node *scope = &analysis->scopes[node];
        scope->sync_self_ns = sum_saturated(scope->sync_self_ns, model->syncs[i].duration_ns);
    }
    uint32_t path_count = model->dictionaries[DICTIONARY_SCOPE_NAME].count;
    for (uint32_t path = 0; path < path_count; path++) {
        if (!analysis->launch_bound.wait_by_path[path])
            continue;
        node = path ? node_of(tree, path) : 0;
        if (node == ID_UNKNOWN)
            return false;
        analysis->scopes[node].launch_wait_ns += analysis->launch_bound.wait_by_path[path];
    }
    return true;
}

static void totals_make(struct analysis *analysis)
{
    for (size_t i = analysis->scope_count; i-- > 0;) { /* children come after their parents */
        struct scope_node *node = &analysis->scopes[i];
        node->gpu_ns = sum_saturated(node->gpu_ns, node->gpu_self_ns);
        node->sync_ns = sum_saturated(node->sync_ns, node->sync_self_ns);
        node->kernels += node->kernels_self;
        node->untimed += node->untimed_self;
        if (!i)
            break;
        struct scope_node *parent = &analysis->scopes[node->parent];
        parent->gpu_ns = sum_saturated(parent->gpu_ns, node->gpu_ns);
        parent->gpu_inferred_ns = sum_saturated(parent->gpu_inferred_ns, node->gpu_inferred_ns);
        parent->sync_ns = sum_saturated(parent->sync_ns, node->sync_ns);
        parent->kernels += node->kernels;
        parent->untimed += node->untimed;
        parent->launch_wait_ns += node->launch_wait_ns;
    }
}

struct node_weight {
    uint32_t node;
    int64_t wall_ns, gpu_ns;
};

static int weight_compare(const void *left, const void *right)
{
    const struct node_weight *a = left, *b = right;
    if (a->wall_ns != b->wall_ns)
        return a->wall_ns < b->wall_ns ? -1 : 1;
    if (a->gpu_ns != b->gpu_ns)
        return a->gpu_ns < b->gpu_ns ? -1 : 1;
    return a->node > b->node ? -1 : a->node < b->node;
}

/* Inserts the lightest nodes first, each before its siblings, so that the heaviest ends up first. */
static bool siblings_link(struct analysis *analysis)
{
    struct node_weight *weights = malloc(analysis->scope_count * sizeof *weights);
    if (!weights)
        return false;
    for (uint32_t i = 0; i < analysis->scope_count; i++)
        weights[i] = (struct node_weight){i, analysis->scopes[i].wall_ns, analysis->scopes[i].gpu_ns};
    qsort(weights, analysis->scope_count, sizeof *weights, weight_compare);
    for (size_t i = 0; i < analysis->scope_count; i++) {
        struct scope_node *node = &analysis->scopes[weights[i].node];
        if (!weights[i].node)
            continue;
        struct scope_node *parent = &analysis->scopes[node->parent];
        node->next_sibling = parent->first_child;
        parent->first_child = weights[i].node;
    }
    free(weights);
    return true;
}

gpufl_status scope_tree_make(struct analysis *analysis)
{
    struct tree tree = {.analysis = analysis, .capacity = 64};
    uint32_t path_count = analysis->model->dictionaries[DICTIONARY_SCOPE_NAME].count;
    analysis->scopes = malloc(tree.capacity * sizeof *analysis->scopes);
    tree.node_of_path = malloc(((size_t)path_count + 1) * sizeof *tree.node_of_path);
    bool is_done = analysis->scopes && tree.node_of_path;
    if (is_done) {
        memset(tree.node_of_path, 0xff, ((size_t)path_count + 1) * sizeof *tree.node_of_path);
        analysis->scopes[0] = (struct scope_node){
            .name = "", .parent = ID_UNKNOWN, .first_child = ID_UNKNOWN, .next_sibling = ID_UNKNOWN};
        analysis->scope_count = 1;
        is_done = instances_add(&tree) && work_add(&tree);
    }
    if (is_done) {
        totals_make(analysis);
        scope_kernels_sum(analysis);
        is_done = siblings_link(analysis);
    }
    intern_free(&tree.keys);
    bytes_free(&tree.key);
    free(tree.node_of_path);
    return is_done ? GPUFL_OK : GPUFL_E_NO_MEMORY;
}

uint32_t scope_tree_next(const struct analysis *analysis, uint32_t node)
{
    if (analysis->scopes[node].first_child != ID_UNKNOWN)
        return analysis->scopes[node].first_child;
    while (node && analysis->scopes[node].next_sibling == ID_UNKNOWN)
        node = analysis->scopes[node].parent;
    return node ? analysis->scopes[node].next_sibling : ID_UNKNOWN;
}

void scope_tree_path(const struct analysis *analysis, uint32_t node, struct bytes *out)
{
    uint32_t path[path_depth_max + 2];
    unsigned count = 0;
    for (; node && count < sizeof path / sizeof *path; node = analysis->scopes[node].parent)
        path[count++] = node;
    for (bool is_first = true; count-- > 0; is_first = false) {
        if (!is_first)
            bytes_append_text(out, " > ");
        text_escape(out, analysis->scopes[path[count]].name, analysis->scopes[path[count]].name_size);
    }
}
