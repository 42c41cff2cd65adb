/* SPDX-License-Identifier: Apache-2.0 */
/* Maps text to the slot of a session. Entries stay until the map is cleared, so callers must check what is in the slot.
 * Single-threaded. */
#ifndef GPUFL_AGENT_SLOT_MAP_H
#define GPUFL_AGENT_SLOT_MAP_H

#include "base/intern.h"

struct slot_map {
    struct intern texts;
    uint32_t *slots; /* owned; by id - 1 */
    size_t capacity;
};

/* The slot, or UINT32_MAX. */
uint32_t slot_map_get(const struct slot_map *map, const char *text);
/* false: no memory. */
bool slot_map_put(struct slot_map *map, const char *text, uint32_t slot);
void slot_map_clear(struct slot_map *map);

#endif
