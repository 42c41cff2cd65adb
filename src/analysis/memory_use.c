/* SPDX-License-Identifier: Apache-2.0 */
/* Allocations: what was held at most, and what was never given back. */
#include "analysis/analysis.h"

#include <stdlib.h>

struct held_block {
    uint64_t address, bytes;
    uint16_t device;
    uint8_t memory_kind;
    bool is_used, is_held;
};

static struct held_block *block_find(struct held_block *blocks, size_t mask, uint64_t address, uint16_t device)
{
    size_t at = (size_t)(((address ^ device) * UINT64_C(0x9e3779b97f4a7c15)) >> 20) & mask;
    while (blocks[at].is_used && (blocks[at].address != address || blocks[at].device != device))
        at = (at + 1) & mask;
    return &blocks[at];
}

static void block_release(struct memory_group *group, struct held_block *block)
{
    group->held_bytes -= block->bytes;
    group->held_count--;
    block->is_held = false;
}

static void event_add(struct analysis *analysis, struct held_block *blocks, size_t mask,
                      const struct memory_event *event)
{
    struct held_block *block = block_find(blocks, mask, event->address, event->device);
    struct memory_group *group = &analysis->memory[event->memory_kind < 8 ? event->memory_kind : 0];
    if (event->memory_op == 2) {
        if (block->is_held) { /* the allocation knows the kind, the release may not */
            group = &analysis->memory[block->memory_kind];
            block_release(group, block);
        } else {
            group->unmatched_frees++;
        }
        group->frees++;
    } else if (event->memory_op == 1) {
        if (block->is_held) /* its release was not recorded */
            block_release(&analysis->memory[block->memory_kind], block);
        uint64_t room = UINT64_MAX - group->held_bytes;
        *block = (struct held_block){event->address, event->bytes < room ? event->bytes : room,
                                     event->device,  event->memory_kind < 8 ? event->memory_kind : 0,
                                     true,           true};
        group->allocs++;
        group->allocated_bytes = sum_saturated_u64(group->allocated_bytes, block->bytes);
        group->held_bytes += block->bytes;
        group->held_count++;
        group->peak_bytes = group->held_bytes > group->peak_bytes ? group->held_bytes : group->peak_bytes;
    }
}

gpufl_status memory_use_make(struct analysis *analysis)
{
    const struct session_model *model = analysis->model;
    for (unsigned i = 0; i < sizeof analysis->memory / sizeof *analysis->memory; i++)
        analysis->memory[i].memory_kind = (uint8_t)i;
    if (!model->memory_event_count)
        return GPUFL_OK;
    size_t room = 64;
    while (room < model->memory_event_count * 2)
        room *= 2;
    struct held_block *blocks = calloc(room, sizeof *blocks);
    if (!blocks)
        return GPUFL_E_NO_MEMORY;
    for (size_t i = 0; i < model->memory_event_count; i++)
        event_add(analysis, blocks, room - 1, &model->memory_events[i]);
    free(blocks);
    return GPUFL_OK;
}
