/* SPDX-License-Identifier: Apache-2.0 */
#include "base/intern_cache.h"

#include <stdlib.h>
#include <string.h>

enum {
    /* Including its two slots; arrays grow by doubling, so up to twice this size may be allocated. */
    entry_bytes = sizeof(struct intern_entry) + sizeof(struct intern_cache_entry) + 2 * sizeof(uint32_t)
};

void intern_cache_free(struct intern_cache *cache)
{
    intern_free(&cache->table);
    free(cache->entries);
    *cache = (struct intern_cache){.bytes_max = cache->bytes_max, .last_id = cache->last_id};
}

size_t intern_cache_bytes(const struct intern_cache *cache)
{
    return intern_bytes(&cache->table) + cache->capacity * sizeof *cache->entries;
}

static size_t needed_bytes(const struct intern_cache *cache, size_t size)
{
    return cache->table.text_bytes + size + ((size_t)cache->table.count + 1) * entry_bytes;
}

bool intern_cache_has_room(const struct intern_cache *cache, size_t size)
{
    return needed_bytes(cache, size) <= cache->bytes_max;
}

static void forget_all(struct intern_cache *cache)
{
    cache->forgotten += cache->table.count;
    intern_free(&cache->table);
}

/* Keeps the strings that were used, unless they fill most of the cache: then it would soon be full again. */
static void forget_unused(struct intern_cache *cache)
{
    struct intern kept = {0};
    size_t kept_bytes = 0;
    for (uint32_t i = 0; i < cache->table.count; i++)
        kept_bytes += cache->entries[i].is_used ? cache->table.entries[i].size + (size_t)entry_bytes : 0;
    bool is_good = kept_bytes <= cache->bytes_max / 2;
    for (uint32_t i = 0; i < cache->table.count && is_good; i++) {
        const struct intern_entry *entry = &cache->table.entries[i];
        if (!cache->entries[i].is_used)
            continue;
        uint32_t number = intern_id(&kept, entry->text, entry->size, NULL);
        is_good = number != 0;
        if (!is_good)
            break;
        cache->entries[number - 1] = cache->entries[i]; /* number - 1 <= i */
        cache->entries[number - 1].is_used = false;
    }
    if (!is_good) {
        intern_free(&kept);
        forget_all(cache);
        return;
    }
    cache->forgotten += cache->table.count - kept.count;
    intern_free(&cache->table);
    cache->table = kept;
}

static bool reserve(struct intern_cache *cache)
{
    if (cache->table.count < cache->capacity)
        return true;
    uint32_t capacity = cache->capacity ? cache->capacity * 2 : 64;
    struct intern_cache_entry *entries = realloc(cache->entries, capacity * sizeof *entries);
    if (!entries)
        return false;
    cache->entries = entries;
    cache->capacity = capacity;
    return true;
}

uint32_t intern_cache_id(struct intern_cache *cache, const void *text, size_t size, bool *is_new)
{
    uint32_t number = intern_find(&cache->table, text, size);
    if (is_new)
        *is_new = !number;
    if (number) {
        cache->entries[number - 1].is_used = true;
        return cache->entries[number - 1].id;
    }
    if (size + entry_bytes > cache->bytes_max || cache->last_id == UINT32_MAX)
        return 0;
    if (!intern_cache_has_room(cache, size))
        forget_unused(cache);
    if (!intern_cache_has_room(cache, size))
        forget_all(cache);
    number = reserve(cache) ? intern_id(&cache->table, text, size, NULL) : 0;
    if (!number)
        return 0;
    cache->entries[number - 1] = (struct intern_cache_entry){.id = ++cache->last_id};
    return cache->last_id;
}

/* The index of an id in the table, or the table's count. */
static uint32_t place_of(const struct intern_cache *cache, uint32_t id)
{
    uint32_t low = 0, high = cache->table.count;
    if (id && id <= high && cache->entries[id - 1].id == id) /* nothing was evicted so far */
        return id - 1;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (cache->entries[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < cache->table.count && cache->entries[low].id == id ? low : cache->table.count;
}

const struct intern_entry *intern_cache_entry(const struct intern_cache *cache, uint32_t id)
{
    uint32_t place = place_of(cache, id);
    return place < cache->table.count ? &cache->table.entries[place] : NULL;
}

void intern_cache_use(struct intern_cache *cache, uint32_t id)
{
    uint32_t place = place_of(cache, id);
    if (place < cache->table.count)
        cache->entries[place].is_used = true;
}

uint32_t *intern_cache_value(const struct intern_cache *cache, uint32_t id)
{
    uint32_t place = place_of(cache, id);
    return place < cache->table.count ? &cache->entries[place].value : NULL;
}
