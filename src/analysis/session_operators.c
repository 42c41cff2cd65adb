/* SPDX-License-Identifier: Apache-2.0 */
/* Separates operators and ranges of libraries from the program's scopes: work gets the innermost scope of the program, and
 * as a second dimension the operators that it was launched in. */
#include "analysis/scope_kind.h"
#include "analysis/session_loader.h"

#include <stdlib.h>

enum { path_bytes_max = 8192 }; /* the recorder's paths end before; of a damaged log they would grow with its square */

struct split {
    struct session_loader *loader;
    struct session_model *model;
    struct intern operations; /* outer operation and path id of a range -> index of the operation - 1 */
    struct intern paths;      /* texts of the scope paths, in the order of path_ids */
    uint32_t *path_ids;
    size_t path_count, path_capacity, operation_capacity;
    struct bytes text;
};

static const char *last_part(const char *path, size_t *size)
{
    const char *bar = strrchr(path, '|');
    const char *name = bar ? bar + 1 : path;
    *size = strlen(name);
    return name;
}

static const char *path_of(const struct session_model *model, uint32_t path_id)
{
    const char *path = session_text(model, DICTIONARY_SCOPE_NAME, path_id);
    return path ? path : "";
}

/* Returns whether there is anything but scopes of the program. */
static bool kinds_find(struct session_model *model)
{
    bool has_others = false;
    for (size_t i = 0; i < model->scope_count; i++) {
        struct scope_instance *scope = &model->scopes[i];
        size_t size;
        const char *name = last_part(path_of(model, scope->path_id), &size);
        scope->user = (uint32_t)i;
        scope->kind =
            (uint8_t)scope_kind_of(scope->source, name, size, session_text(model, DICTIONARY_TAG, scope->tag_id));
        has_others = has_others || scope->kind != SCOPE_OF_USER;
    }
    return has_others;
}

/* The operation of work in a range that is inside of another operation (0: of none); 0: no memory. */
static uint32_t operation_of(struct split *split, uint32_t outer, const struct scope_instance *scope)
{
    struct session_model *model = split->model;
    const uint32_t key[] = {outer, scope->path_id};
    if (outer && strlen(model->operations[outer].path) > path_bytes_max)
        return outer;
    bool is_new = false;
    uint32_t id = intern_id(&split->operations, key, sizeof key, &is_new);
    if (!id || !is_new)
        return id;
    if (!loader_grow(split->loader, &model->operations, &split->operation_capacity, id, sizeof *model->operations))
        return 0;
    const struct operation around = outer ? model->operations[outer] : (struct operation){0};
    size_t size;
    const char *name = last_part(path_of(model, scope->path_id), &size);
    bytes_clear(&split->text);
    if (outer) {
        bytes_append_text(&split->text, around.path);
        bytes_append_char(&split->text, '|');
    }
    bytes_append(&split->text, name, size);
    enum direction direction = operator_direction(name, size);
    bool is_named_before = scope->kind == SCOPE_OF_LIBRARY && outer && around.is_operator;
    model->operations[id] = (struct operation){
        .path = loader_text(split->loader, split->text.data, split->text.size),
        .name = is_named_before ? around.name : loader_text(split->loader, name, size),
        .direction = (uint8_t)(around.direction ? around.direction : direction),
        .is_operator = scope->kind == SCOPE_OF_OPERATOR || (outer && around.is_operator),
    };
    model->operation_count = (size_t)id + 1;
    return split->text.failed ? 0 : id;
}

static bool paths_index(struct split *split)
{
    const struct dictionary_table *names = &split->model->dictionaries[DICTIONARY_SCOPE_NAME];
    for (uint32_t id = 1; id < names->count; id++) {
        bool is_new = false;
        if (!names->texts[id] || !intern_id(&split->paths, names->texts[id], strlen(names->texts[id]), &is_new) ||
            !is_new)
            continue;
        if (!loader_grow(split->loader, &split->path_ids, &split->path_capacity, split->path_count,
                         sizeof *split->path_ids))
            return false;
        split->path_ids[split->path_count++] = id;
    }
    return true;
}

/* The id of the path that the scope has without the operators around it. */
static bool path_shorten(struct split *split, struct scope_instance *scope)
{
    struct session_model *model = split->model;
    size_t size;
    const char *name = last_part(path_of(model, scope->path_id), &size);
    if (!split->path_count && !paths_index(split))
        return false;
    if (scope->outer_user != ID_UNKNOWN &&
        strlen(path_of(model, model->scopes[scope->outer_user].path_id)) > path_bytes_max) {
        scope->path_id = model->scopes[scope->outer_user].path_id;
        return true;
    }
    bytes_clear(&split->text);
    if (scope->outer_user != ID_UNKNOWN) {
        bytes_append_text(&split->text, path_of(model, model->scopes[scope->outer_user].path_id));
        bytes_append_char(&split->text, '|');
    }
    bytes_append(&split->text, name, size);
    bool is_new = false;
    uint32_t at = split->text.failed ? 0 : intern_id(&split->paths, split->text.data, split->text.size, &is_new);
    if (!at)
        return false;
    if (is_new) {
        uint32_t id = model->dictionaries[DICTIONARY_SCOPE_NAME].count;
        if (!loader_define(split->loader, DICTIONARY_SCOPE_NAME, id, split->text.data, split->text.size) ||
            !loader_grow(split->loader, &split->path_ids, &split->path_capacity, split->path_count,
                         sizeof *split->path_ids))
            return false;
        split->path_ids[split->path_count++] = id;
    }
    scope->path_id = split->path_ids[at - 1];
    return true;
}

/* Scopes begin after the scopes that they are inside of. */
static bool scopes_split(struct split *split)
{
    struct session_model *model = split->model;
    for (size_t i = 0; i < model->scope_count; i++) {
        struct scope_instance *scope = &model->scopes[i];
        const struct scope_instance *outer = scope->parent < i ? &model->scopes[scope->parent] : NULL;
        scope->operation = outer ? outer->operation : 0;
        scope->outer_user = outer ? outer->user : ID_UNKNOWN;
        if (scope->kind != SCOPE_OF_USER) {
            scope->user = scope->outer_user;
            scope->operation = operation_of(split, scope->operation, scope);
            if (!scope->operation)
                return false;
        } else if (outer && (outer->kind != SCOPE_OF_USER || outer->is_shortened)) {
            scope->is_shortened = true;
            if (!path_shorten(split, scope))
                return false;
        }
    }
    return true;
}

static void scope_to_user(const struct session_model *model, uint32_t *scope)
{
    if (*scope != ID_UNKNOWN)
        *scope = model->scopes[*scope].user;
}

static void span_split(const struct session_model *model, struct gpu_span *span)
{
    span->operation = span->scope == ID_UNKNOWN ? 0 : model->scopes[span->scope].operation;
    scope_to_user(model, &span->scope);
}

static void work_split(struct session_model *model)
{
    for (size_t i = 0; i < model->kernels.count; i++) {
        uint32_t scope = model->kernels.scope[i];
        model->kernels.operation[i] = scope == ID_UNKNOWN ? 0 : model->scopes[scope].operation;
        scope_to_user(model, &model->kernels.scope[i]);
    }
    for (size_t i = 0; i < model->copy_count; i++)
        span_split(model, &model->copies[i].span);
    for (size_t i = 0; i < model->memset_count; i++)
        span_split(model, &model->memsets[i].span);
    for (size_t i = 0; i < model->graph_count; i++)
        span_split(model, &model->graphs[i].span);
    for (size_t i = 0; i < model->sync_count; i++)
        scope_to_user(model, &model->syncs[i].scope);
    for (size_t i = 0; i < model->memory_event_count; i++)
        scope_to_user(model, &model->memory_events[i].scope);
    for (size_t i = 0; i < model->deep.untimed_count; i++)
        scope_to_user(model, &model->deep.untimed[i].scope);
}

bool loader_operators_split(struct session_loader *loader)
{
    struct session_model *model = loader->model;
    if (!kinds_find(model))
        return true;
    struct split split = {.loader = loader, .model = model};
    bool is_done = loader_grow(loader, &model->operations, &split.operation_capacity, 0, sizeof *model->operations);
    if (is_done)
        model->operations[0] = (struct operation){.path = "", .name = ""};
    is_done = is_done && scopes_split(&split);
    if (is_done && model->kernels.count)
        is_done = (model->kernels.operation = malloc(model->kernels.count * sizeof *model->kernels.operation)) != NULL;
    if (is_done)
        work_split(model);
    intern_free(&split.operations);
    intern_free(&split.paths);
    free(split.path_ids);
    bytes_free(&split.text);
    return is_done;
}

enum direction session_direction(const struct operation *operation)
{
    if (operation->direction)
        return (enum direction)operation->direction;
    return operation->is_operator ? DIRECTION_FORWARD : DIRECTION_UNKNOWN;
}
