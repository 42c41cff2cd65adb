/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/code_walk.h"

#include <stdlib.h>

static int pc_compare(const void *left, const void *right)
{
    const struct code_place *const *a = left, *const *b = right;
    return (*a)->pc_offset < (*b)->pc_offset ? -1 : (*a)->pc_offset > (*b)->pc_offset;
}

/* The function's places sorted by pc; the caller frees. */
static const struct code_place **places_by_pc(const struct hot_code *code, uint32_t function, size_t *count)
{
    const struct code_place **places = malloc((code->place_count + 1) * sizeof *places);
    *count = 0;
    for (size_t i = 0; places && i < code->place_count; i++)
        if (code->places[i].function == function)
            places[(*count)++] = &code->places[i];
    if (places)
        qsort(places, *count, sizeof *places, pc_compare);
    return places;
}

gpufl_status code_walk(struct code_lookup *lookup, const struct hot_code *code, uint32_t chosen, code_step_fn on_step,
                       void *user)
{
    const struct hot_function *owner = &code->functions[chosen];
    size_t count, at = 0;
    const struct code_place **places = places_by_pc(code, chosen, &count);
    if (!places)
        return GPUFL_E_NO_MEMORY;
    struct code_function function = code_lookup_function(lookup, owner->cubin_crc, owner->symbol);
    uint64_t size = code_function_size(&function);
    struct code_text text;
    struct code_step step = {.text = &text};
    step.pc = size ? 0 : count ? places[0]->pc_offset : 0;
    /* Every known instruction, then samples after the last one. */
    while (step.pc < size || at < count) {
        if (step.pc >= size) {
            step.pc = places[at]->pc_offset;
            step.is_beyond = size != 0;
        }
        step.place = at < count && places[at]->pc_offset == step.pc ? places[at] : NULL;
        code_lookup_at(lookup, &function, (uint32_t)step.pc, &text);
        if (!text.line && step.place && step.place->line) {
            text.line = step.place->line;
            text.file = step.place->file;
        }
        on_step(user, &step);
        /* A sample between two instructions is shown at its own offset. */
        at += step.place != NULL;
        uint64_t next = code_function_next(&function, step.pc);
        step.pc = at < count && places[at]->pc_offset < next ? places[at]->pc_offset : next;
    }
    code_function_close(&function);
    free(places);
    return GPUFL_OK;
}
