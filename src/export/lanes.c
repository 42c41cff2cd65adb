/* SPDX-License-Identifier: Apache-2.0 */
#include "export/lanes.h"

#include <stdlib.h>

enum { LANE_DEPTH_MAX = 64, LANES_MAX = 256 };

struct lane {
    struct timeline_lane self;
    struct lane *next;
    unsigned depth;
    int64_t ends_ns[LANE_DEPTH_MAX]; /* ends of the open events, innermost last */
};

static struct lane *lane_add(struct lane_set *set, const struct timeline_lane *key, struct lane **place)
{
    struct lane *lane = calloc(1, sizeof *lane);
    if (!lane) {
        set->is_out_of_memory = true;
        return NULL;
    }
    lane->self = *key;
    lane->self.id = ++set->count;
    *place = lane;
    if (set->visitor->lane && !set->visitor->lane(set->visitor->user, &lane->self)) {
        set->is_stopped = true;
        return NULL;
    }
    return lane;
}

static bool lane_takes(struct lane *lane, int64_t start_ns, int64_t end_ns, enum lane_rule rule)
{
    if (rule == LANE_SINGLE)
        return true;
    while (lane->depth && lane->ends_ns[lane->depth - 1] <= start_ns)
        lane->depth--;
    bool is_free = !lane->depth ||
                   (rule == LANE_NESTED && lane->depth < LANE_DEPTH_MAX && end_ns <= lane->ends_ns[lane->depth - 1]);
    if (is_free)
        lane->ends_ns[lane->depth++] = end_ns;
    return is_free;
}

static struct lane **lane_first(struct lane_set *set, const struct timeline_lane *key)
{
    const uint32_t words[] = {(uint32_t)key->group, key->device, key->owner};
    uint32_t id = intern_id(&set->keys, words, sizeof words, NULL);
    if (id > set->capacity) {
        size_t capacity = set->capacity ? set->capacity * 2 : 64;
        struct lane **grown = realloc(set->firsts, capacity * sizeof(struct lane *));
        if (!grown)
            return NULL;
        memset(grown + set->capacity, 0, (capacity - set->capacity) * sizeof *grown);
        set->firsts = grown;
        set->capacity = capacity;
    }
    return id ? &set->firsts[id - 1] : NULL;
}

const struct timeline_lane *lane_for(struct lane_set *set, enum lane_group group, uint16_t device, uint32_t owner,
                                     int64_t start_ns, int64_t end_ns, enum lane_rule rule)
{
    if (set->is_stopped || set->is_out_of_memory)
        return NULL;
    struct timeline_lane key = {.group = group, .device = device, .owner = owner};
    struct lane **place = lane_first(set, &key);
    if (!place) {
        set->is_out_of_memory = true;
        return NULL;
    }
    for (; *place; place = &(*place)->next, key.number++) {
        /* Nobody looks at thousands of lanes: the last one collects the rest. */
        if (lane_takes(*place, start_ns, end_ns, rule) || key.number == LANES_MAX - 1)
            return &(*place)->self;
    }
    struct lane *lane = lane_add(set, &key, place);
    if (lane)
        (void)lane_takes(lane, start_ns, end_ns, rule);
    return lane ? &lane->self : NULL;
}

void lane_set_free(struct lane_set *set)
{
    for (uint32_t i = 0; i < set->keys.count && i < set->capacity; i++) {
        for (struct lane *lane = set->firsts[i], *next; lane; lane = next) {
            next = lane->next;
            free(lane);
        }
    }
    free(set->firsts);
    intern_free(&set->keys);
}
