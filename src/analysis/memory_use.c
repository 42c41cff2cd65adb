/* SPDX-License-Identifier: Apache-2.0 */
/* Allocations: the peak, and memory that was never freed. */
#include "analysis/analysis.h"

#include <stdlib.h>

struct held_block {
    const struct memory_event *event; /* its allocation; NULL: the slot is free */
    uint64_t bytes;
    uint8_t memory_kind;
    bool is_held;
};

static struct held_block *block_find(struct held_block *blocks, size_t mask, const struct memory_event *event)
{
    size_t at = (size_t)(((event->address ^ event->device) * UINT64_C(0x9e3779b97f4a7c15)) >> 20) & mask;
    while (blocks[at].event &&
           (blocks[at].event->address != event->address || blocks[at].event->device != event->device))
        at = (at + 1) & mask;
    return &blocks[at];
}

static void block_release(struct memory_group *group, struct held_block *block)
{
    group->held_bytes -= block->bytes;
    group->held_count--;
    block->is_held = false;
}

static void event_add(struct memory_group *groups, struct held_block *blocks, size_t mask,
                      const struct memory_event *event)
{
    struct held_block *block = block_find(blocks, mask, event);
    uint8_t kind = event->memory_kind < MEMORY_KIND_COUNT ? event->memory_kind : 0;
    struct memory_group *group = &groups[kind];
    if (event->memory_op == 2) {
        if (block->is_held) { /* the allocation has the kind, the release may not */
            group = &groups[block->memory_kind];
            block_release(group, block);
        } else {
            group->unmatched_frees++;
        }
        group->frees++;
    } else if (event->memory_op == 1) {
        if (block->is_held) /* its release was not recorded */
            block_release(&groups[block->memory_kind], block);
        uint64_t room = UINT64_MAX - group->held_bytes;
        *block = (struct held_block){event, event->bytes < room ? event->bytes : room, kind, true};
        group->allocs++;
        group->allocated_bytes = sum_saturated_u64(group->allocated_bytes, block->bytes);
        group->held_bytes += block->bytes;
        group->held_count++;
        group->peak_bytes = group->held_bytes > group->peak_bytes ? group->held_bytes : group->peak_bytes;
    }
}

gpufl_status memory_walk(const struct session_model *model, struct memory_group groups[MEMORY_KIND_COUNT],
                         const struct memory_observer *observer)
{
    for (unsigned i = 0; i < MEMORY_KIND_COUNT; i++)
        groups[i] = (struct memory_group){.memory_kind = (uint8_t)i};
    if (!model->memory_event_count)
        return GPUFL_OK;
    size_t room = 64;
    while (room < model->memory_event_count * 2)
        room *= 2;
    struct held_block *blocks = calloc(room, sizeof *blocks);
    if (!blocks)
        return GPUFL_E_NO_MEMORY;
    for (size_t i = 0; i < model->memory_event_count; i++) {
        event_add(groups, blocks, room - 1, &model->memory_events[i]);
        if (observer)
            observer->changed(observer->user, &model->memory_events[i], groups);
    }
    for (size_t i = 0; observer && i < room; i++)
        if (blocks[i].is_held)
            observer->kept(observer->user, blocks[i].event, blocks[i].bytes);
    free(blocks);
    return GPUFL_OK;
}

gpufl_status memory_use_make(struct analysis *analysis)
{
    return memory_walk(analysis->model, analysis->memory, NULL);
}
