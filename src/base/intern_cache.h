/* SPDX-License-Identifier: Apache-2.0 */
/* Byte strings to small ids, within a bound and never full: at the bound, the strings that were not asked for again
 * since the last time are forgotten. Ids count up from 1 and none is given twice: a forgotten string that comes back is new. Those
 * in use keep their id. Not thread-safe: one owner thread. */
#ifndef GPUFL_BASE_INTERN_CACHE_H
#define GPUFL_BASE_INTERN_CACHE_H

#include "base/intern.h"

struct intern_cache_entry {
    uint32_t id;
    uint32_t value; /* the owner's; 0 at first */
    bool is_used;   /* asked for again since strings were last forgotten */
};

struct intern_cache {
    size_t bytes_max; /* of texts and what the table needs for them */
    struct intern table;
    struct intern_cache_entry *entries; /* of the table's entries; ids ascend */
    uint32_t capacity, last_id;
    uint64_t forgotten; /* strings so far */
};

void intern_cache_free(struct intern_cache *cache);
/* Of memory that the cache holds. */
size_t intern_cache_bytes(const struct intern_cache *cache);
/* False: the next new string of this size makes the cache forget. */
bool intern_cache_has_room(const struct intern_cache *cache, size_t size);
/* The id of the string; *is_new (may be NULL): it has none so far, or it was forgotten.
 * 0 when there is no memory, or the string alone exceeds the bound: the caller counts a loss. */
uint32_t intern_cache_id(struct intern_cache *cache, const void *text, size_t size, bool *is_new);
/* The string, which does not count as asked for; NULL: forgotten. Valid until the next intern_cache_id of a new one. */
const struct intern_entry *intern_cache_entry(const struct intern_cache *cache, uint32_t id);
/* It is asked for, by its id alone; without effect when forgotten. */
void intern_cache_use(struct intern_cache *cache, uint32_t id);
/* The owner's value of a string; NULL: forgotten. Valid as long as intern_cache_entry's answer. */
uint32_t *intern_cache_value(const struct intern_cache *cache, uint32_t id);

#endif
