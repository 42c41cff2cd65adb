/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/slot_map.h"

#include <stdlib.h>
#include <string.h>

uint32_t slot_map_get(const struct slot_map *map, const char *text)
{
    uint32_t id = intern_find(&map->texts, text, strlen(text));
    return id && id <= map->capacity ? map->slots[id - 1] : UINT32_MAX;
}

bool slot_map_put(struct slot_map *map, const char *text, uint32_t slot)
{
    uint32_t id = intern_id(&map->texts, text, strlen(text), NULL);
    if (!id)
        return false;
    if (id > map->capacity) {
        size_t capacity = map->capacity ? map->capacity * 2 : 64;
        uint32_t *slots = realloc(map->slots, capacity * sizeof *slots);
        if (!slots)
            return false;
        memset(slots + map->capacity, 0xff, (capacity - map->capacity) * sizeof *slots);
        map->slots = slots;
        map->capacity = capacity;
    }
    map->slots[id - 1] = slot;
    return true;
}

void slot_map_clear(struct slot_map *map)
{
    intern_free(&map->texts);
    free(map->slots);
    *map = (struct slot_map){0};
}
