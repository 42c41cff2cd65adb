/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sequence_set.h"

#include "store/column_codec.h"

#include <stdlib.h>

void sequence_set_free(struct sequence_set *set)
{
    free(set->ranges);
    *set = (struct sequence_set){0};
}

/* Index of the first range that ends at or after value. */
static size_t range_at(const struct sequence_set *set, uint64_t value)
{
    size_t low = 0, high = set->count;
    if (high && set->ranges[high - 1].last < value)
        return high; /* the usual case */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (set->ranges[middle].last < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool sequence_set_meets(const struct sequence_set *set, uint64_t first, uint64_t last)
{
    size_t at = range_at(set, first);
    return at < set->count && set->ranges[at].first <= last;
}

bool sequence_set_has(const struct sequence_set *set, uint64_t value)
{
    return sequence_set_meets(set, value, value);
}

static gpufl_status range_insert(struct sequence_set *set, size_t at, struct sequence_range range)
{
    if (set->count == SEQUENCE_RANGES_MAX)
        return GPUFL_E_LIMIT;
    if (set->count == set->capacity) {
        size_t capacity = set->capacity ? set->capacity * 2 : 4;
        struct sequence_range *grown = realloc(set->ranges, capacity * sizeof *grown);
        if (!grown)
            return GPUFL_E_NO_MEMORY;
        set->ranges = grown;
        set->capacity = capacity;
    }
    memmove(&set->ranges[at + 1], &set->ranges[at], (set->count - at) * sizeof range);
    set->ranges[at] = range;
    set->count++;
    return GPUFL_OK;
}

gpufl_status sequence_set_add(struct sequence_set *set, uint64_t first, uint64_t last)
{
    /* Merge ranges that overlap or touch. */
    size_t from = range_at(set, first ? first - 1 : 0), to = from;
    while (to < set->count && (last == UINT64_MAX || set->ranges[to].first <= last + 1)) {
        first = set->ranges[to].first < first ? set->ranges[to].first : first;
        last = set->ranges[to].last > last ? set->ranges[to].last : last;
        to++;
    }
    struct sequence_range range = {first, last};
    if (to == from)
        return range_insert(set, from, range);
    set->ranges[from] = range;
    memmove(&set->ranges[from + 1], &set->ranges[to], (set->count - to) * sizeof range);
    set->count -= to - from - 1;
    return GPUFL_OK;
}

void sequence_set_encode(const struct sequence_set *set, struct bytes *out)
{
    uint64_t last = 0;
    for (size_t i = 0; i < set->count; i++) {
        varint_append(out, set->ranges[i].first - last);
        varint_append(out, set->ranges[i].last - set->ranges[i].first);
        last = set->ranges[i].last;
    }
}

gpufl_status sequence_set_decode(struct sequence_set *set, const void *data, size_t size)
{
    const uint8_t *at = data, *end = at ? at + size : NULL;
    uint64_t last = 0;
    set->count = 0;
    while (at < end) {
        uint64_t gap, length;
        struct sequence_range range;
        if (!varint_read(&at, end, &gap) || !varint_read(&at, end, &length) ||
            __builtin_add_overflow(last, gap, &range.first) ||
            __builtin_add_overflow(range.first, length, &range.last) || (set->count && gap < 2))
            return GPUFL_E_DAMAGED;
        gpufl_status status = range_insert(set, set->count, range);
        if (status)
            return status == GPUFL_E_LIMIT ? GPUFL_E_DAMAGED : status;
        last = range.last;
    }
    return GPUFL_OK;
}
