/* SPDX-License-Identifier: Apache-2.0 */
/* Maps byte strings to small ids, from 1. Not thread-safe: one owner thread. */
#ifndef GPUFL_BASE_INTERN_H
#define GPUFL_BASE_INTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct intern_entry {
    const char *text; /* owned by the table, NUL-terminated, stable until intern_free */
    uint32_t size;
    uint32_t hash;
};

struct intern {
    struct intern_entry *entries; /* entries[id - 1] */
    uint32_t *slots;              /* open addressing; id or 0 */
    uint32_t count, capacity, slot_count;
    size_t text_bytes;
    size_t text_bytes_max; /* 0: no limit */
    struct intern_block *blocks;
};

void intern_free(struct intern *table);
/* Memory use of the table in bytes. */
size_t intern_bytes(const struct intern *table);
/* The id of the string, created if new (then *is_new = true; may be NULL). 0: memory or text_bytes_max is exhausted;
 * the caller counts a loss. */
uint32_t intern_id(struct intern *table, const void *text, size_t size, bool *is_new);
/* The id if the string is known, else 0. */
uint32_t intern_find(const struct intern *table, const void *text, size_t size);
static inline const char *intern_text(const struct intern *table, uint32_t id)
{
    return id && id <= table->count ? table->entries[id - 1].text : "";
}

#endif
