/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/open_ranges.h"

#include <stdlib.h>

/* Set-associative: a range may be in any slot of its set. */
enum { set_bits = 10, set_size = 16, slot_count = set_size << set_bits };

static struct open_range *set_of(const struct open_ranges *ranges, uint64_t range_id)
{
    return &ranges->slots[((range_id * 0x9e3779b97f4a7c15ull) >> (64 - set_bits)) * set_size];
}

enum open_range_outcome open_ranges_add(struct open_ranges *ranges, const struct open_range *range)
{
    if (!ranges->slots && !(ranges->slots = calloc(slot_count, sizeof *ranges->slots)))
        return OPEN_RANGE_NO_MEMORY;
    struct open_range *set = set_of(ranges, range->range_id), *place = set;
    for (int i = 0; i < set_size && place->range_id; i++)
        if (!set[i].range_id || set[i].scope.id < place->scope.id)
            place = &set[i];
    enum open_range_outcome outcome = place->range_id ? OPEN_RANGE_ANOTHER_FORGOTTEN : OPEN_RANGE_ADDED;
    *place = *range;
    return outcome;
}

bool open_ranges_take(struct open_ranges *ranges, uint64_t range_id, struct open_range *range)
{
    struct open_range *set = ranges->slots && range_id ? set_of(ranges, range_id) : NULL;
    for (int i = 0; set && i < set_size; i++)
        if (set[i].range_id == range_id) {
            *range = set[i];
            set[i].range_id = 0;
            return true;
        }
    return false;
}

struct open_range *open_ranges_next(const struct open_ranges *ranges, struct open_range *range)
{
    for (range = range ? range + 1 : ranges->slots; ranges->slots && range < ranges->slots + slot_count; range++)
        if (range->range_id)
            return range;
    return NULL;
}

void open_ranges_free(struct open_ranges *ranges)
{
    free(ranges->slots);
    ranges->slots = NULL;
}

size_t open_ranges_bytes(const struct open_ranges *ranges)
{
    return ranges->slots ? slot_count * sizeof *ranges->slots : 0;
}
