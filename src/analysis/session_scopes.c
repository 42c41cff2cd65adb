/* SPDX-License-Identifier: Apache-2.0 */
/* Scope instances and their index by id. */
#include "analysis/session_loader.h"

#include <stdlib.h>

enum { event_begin, event_end, event_continuation_open, event_continuation_close };

static size_t slot_of(const struct session_loader *loader, uint64_t id)
{
    size_t mask = loader->scope_slot_count - 1;
    size_t at = (size_t)((id * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & mask;
    while (loader->scope_slots[at] && loader->model->scopes[loader->scope_slots[at] - 1].id != id)
        at = (at + 1) & mask;
    return at;
}

uint32_t loader_scope_find(struct session_loader *loader, uint64_t id)
{
    if (id - 1 < loader->model->scope_count && loader->model->scopes[id - 1].id == id)
        return (uint32_t)(id - 1);
    if (!loader->scope_slot_count)
        return ID_UNKNOWN;
    uint32_t slot = loader->scope_slots[slot_of(loader, id)];
    return slot ? slot - 1 : ID_UNKNOWN;
}

/* Ids count from 1 in the order in which scopes begin; only an id that is out of place needs a look-up. */
static bool has_slot(uint64_t id, size_t index)
{
    return id && id - 1 != index;
}

static bool slots_grow(struct session_loader *loader)
{
    size_t count = loader->scope_slot_count ? loader->scope_slot_count * 2 : 1024;
    uint32_t *slots = calloc(count, sizeof *slots);
    if (!slots) {
        loader->status = GPUFL_E_NO_MEMORY;
        return false;
    }
    free(loader->scope_slots);
    loader->scope_slots = slots;
    loader->scope_slot_count = count;
    for (size_t i = 0; i < loader->model->scope_count; i++)
        if (has_slot(loader->model->scopes[i].id, i))
            slots[slot_of(loader, loader->model->scopes[i].id)] = (uint32_t)i + 1;
    return true;
}

struct scope_instance *loader_scope_add(struct session_loader *loader, uint64_t id)
{
    struct session_model *model = loader->model;
    if (model->scope_count >= ID_UNKNOWN - 1) {
        loader->status = GPUFL_E_LIMIT;
        return NULL;
    }
    bool is_slotted = has_slot(id, model->scope_count);
    if (is_slotted && loader->scope_slots_used * 2 >= loader->scope_slot_count && !slots_grow(loader))
        return NULL;
    if (!loader_grow(loader, &model->scopes, &loader->scope_capacity, model->scope_count, sizeof *model->scopes))
        return NULL;
    struct scope_instance *scope = &model->scopes[model->scope_count++];
    *scope = (struct scope_instance){
        .id = id, .begin_ns = TIME_UNKNOWN, .end_ns = TIME_UNKNOWN, .parent = ID_UNKNOWN, .thread_id = ID_UNKNOWN};
    if (is_slotted) {
        loader->scope_slots[slot_of(loader, id)] = (uint32_t)model->scope_count;
        loader->scope_slots_used++;
    }
    if (id)
        loader->last_scope_id = 0;
    return scope;
}

uint32_t loader_unknown_scope(struct session_loader *loader)
{
    static const char name[] = "(unknown)";
    if (loader->unknown_scope)
        return loader->unknown_scope - 1;
    uint32_t path = intern_id(&loader->paths, name, sizeof name - 1, NULL);
    struct scope_instance *scope = path ? loader_scope_add(loader, 0) : NULL;
    if (!scope) {
        loader->status = loader->status ? loader->status : GPUFL_E_NO_MEMORY;
        return ID_UNKNOWN;
    }
    scope->path_id = path | V1_PATH; /* gets its id in the dictionary when the dictionary is complete */
    scope->is_attribution_only = true;
    loader->unknown_scope = (uint32_t)loader->model->scope_count;
    return loader->unknown_scope - 1;
}

void loader_scope_rows(struct session_loader *loader, const struct batch_view *view)
{
    struct session_model *model = loader->model;
    for (uint32_t row = 0; row < view->row_count; row++) {
        uint64_t id = cell_u64(view, SCOPE_SCOPE_INSTANCE_ID, row);
        int64_t event = cell(view, SCOPE_EVENT_TYPE, row), time_ns;
        if (!id || event < event_begin || event > event_continuation_close) {
            model->invalid_rows++;
            continue;
        }
        if (!loader_times_ok(loader, view->base_time_ns, cell(view, SCOPE_DT_NS, row), 0, &time_ns))
            continue;
        uint32_t index = loader_scope_find(loader, id);
        struct scope_instance *scope = index == ID_UNKNOWN ? loader_scope_add(loader, id) : &model->scopes[index];
        if (!scope)
            return;
        bool is_opening = event == event_begin || event == event_continuation_open;
        if (is_opening && scope->begin_ns == TIME_UNKNOWN)
            scope->begin_ns = time_ns;
        if (!is_opening) {
            scope->end_ns = time_ns;
            /* The begin row was lost; the end row repeats the start. */
            int64_t original_ns = cell(view, SCOPE_ORIGINAL_START_NS, row);
            if (scope->begin_ns == TIME_UNKNOWN && original_ns > 0 && original_ns <= time_ns)
                scope->begin_ns = original_ns;
            /* gpufl's end row has the number of iterations; GPUFlight's, which has no thread, adds nothing. */
            if (view->columns[SCOPE_THREAD_ID].present)
                scope->repeat = cell_u32(view, SCOPE_REPEAT, row, scope->repeat);
        }
        if (is_opening || !scope->path_id) {
            scope->path_id = cell_u32(view, SCOPE_NAME_ID, row, 0);
            if (scope->path_id & V1_PATH)
                scope->path_id = 0;
            scope->depth = (uint16_t)cell_u32(view, SCOPE_DEPTH, row, 0);
            scope->repeat = cell_u32(view, SCOPE_REPEAT, row, 0);
            scope->warmup = cell_u32(view, SCOPE_WARMUP, row, 0);
            scope->thread_id = cell_u32(view, SCOPE_THREAD_ID, row, ID_UNKNOWN);
            scope->tag_id = cell_u32(view, SCOPE_TAG_ID, row, 0);
            scope->source = cell_u8(view, SCOPE_SOURCE, row);
            uint64_t parent = cell_u64(view, SCOPE_PARENT_ID, row);
            scope->parent = parent && parent != id ? loader_scope_find(loader, parent) : ID_UNKNOWN;
        }
    }
}

/* A framework's thread goes on working for the last task until it gets another one, but not after the scope. */
void loader_adoptions_finish(struct session_loader *loader)
{
    enum { origin_autograd = 2 };
    for (size_t i = 0; i < loader->model->adoption_count; i++) {
        struct scope_adoption *adoption = &loader->model->adoptions[i];
        int64_t end_ns = loader->model->scopes[adoption->scope].end_ns;
        if (adoption->origin == origin_autograd && end_ns != TIME_UNKNOWN && end_ns >= adoption->start_ns &&
            end_ns - adoption->start_ns < adoption->duration_ns)
            adoption->duration_ns = end_ns - adoption->start_ns;
    }
}

void loader_adoption_rows(struct session_loader *loader, const struct batch_view *view)
{
    struct session_model *model = loader->model;
    for (uint32_t row = 0; row < view->row_count; row++) {
        struct scope_adoption adoption = {.duration_ns = cell(view, SCOPE_ADOPTION_DURATION_NS, row),
                                          .thread_id = cell_u32(view, SCOPE_ADOPTION_THREAD_ID, row, ID_UNKNOWN),
                                          .scope = loader_row_scope(loader, view, SCOPE_ADOPTION_SCOPE_ID, row),
                                          .origin = cell_u8(view, SCOPE_ADOPTION_ADOPTION_ORIGIN, row)};
        if (!loader_times_ok(loader, view->base_time_ns, cell(view, SCOPE_ADOPTION_DT_NS, row), adoption.duration_ns,
                             &adoption.start_ns) ||
            adoption.scope == ID_UNKNOWN)
            continue;
        if (!loader_grow(loader, &model->adoptions, &loader->adoption_capacity, model->adoption_count, sizeof adoption))
            return;
        model->adoptions[model->adoption_count++] = adoption;
    }
}
