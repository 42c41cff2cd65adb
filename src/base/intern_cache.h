/* SPDX-License-Identifier: Apache-2.0 */
/* Maps byte strings to small ids in bounded memory: at the limit, strings that were not used again since the last
 * eviction are evicted. Ids count up from 1 and are never reused: an evicted string that comes back gets a new id.
 * Other strings keep their ids. Not thread-safe: one owner thread. */
#ifndef GPUFL_BASE_INTERN_CACHE_H
#define GPUFL_BASE_INTERN_CACHE_H

#include "base/intern.h"

struct intern_cache_entry {
    uint32_t id;
    uint32_t value; /* set by the owner; initially 0 */
    bool is_used;   /* used again since the last eviction */
};

struct intern_cache {
    size_t bytes_max; /* of texts and their table entries */
    struct intern table;
    struct intern_cache_entry *entries; /* parallel to the table's entries; ids ascend */
    uint32_t capacity, last_id;
    uint64_t forgotten; /* evicted strings so far */
};

void intern_cache_free(struct intern_cache *cache);
/* Memory use of the cache in bytes. */
size_t intern_cache_bytes(const struct intern_cache *cache);
/* False: adding a new string of this size causes an eviction. */
bool intern_cache_has_room(const struct intern_cache *cache, size_t size);
/* The id of the string; *is_new (may be NULL): the string is new or was evicted. 0: no memory, or the string alone
 * exceeds the limit; the caller counts a loss. */
uint32_t intern_cache_id(struct intern_cache *cache, const void *text, size_t size, bool *is_new);
/* The string; does not count as a use. NULL: evicted. Valid until the next intern_cache_id of a new string. */
const struct intern_entry *intern_cache_entry(const struct intern_cache *cache, uint32_t id);
/* Marks a string as used by its id; no effect if it was evicted. */
void intern_cache_use(struct intern_cache *cache, uint32_t id);
/* The owner's value of a string; NULL: evicted. Valid as long as the result of intern_cache_entry. */
uint32_t *intern_cache_value(const struct intern_cache *cache, uint32_t id);

#endif
