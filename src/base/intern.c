/* SPDX-License-Identifier: Apache-2.0 */
#include "base/intern.h"

#include "base/crc32c.h"

#include <stdlib.h>
#include <string.h>

enum { block_bytes = 64 * 1024 };

struct intern_block {
    struct intern_block *next;
    size_t used, capacity;
    char text[];
};

void intern_free(struct intern *table)
{
    while (table->blocks) {
        struct intern_block *next = table->blocks->next;
        free(table->blocks);
        table->blocks = next;
    }
    free(table->entries);
    free(table->slots);
    size_t limit = table->text_bytes_max;
    memset(table, 0, sizeof *table);
    table->text_bytes_max = limit;
}

size_t intern_bytes(const struct intern *table)
{
    size_t bytes = table->capacity * sizeof *table->entries + table->slot_count * sizeof *table->slots;
    for (const struct intern_block *block = table->blocks; block; block = block->next)
        bytes += sizeof *block + block->capacity;
    return bytes;
}

static char *store(struct intern *table, const void *text, size_t size)
{
    struct intern_block *block = table->blocks;
    if (!block || block->capacity - block->used < size + 1) {
        size_t capacity = size + 1 > block_bytes ? size + 1 : block_bytes;
        block = malloc(sizeof *block + capacity);
        if (!block)
            return NULL;
        block->used = 0;
        block->capacity = capacity;
        block->next = table->blocks;
        table->blocks = block;
    }
    char *copy = block->text + block->used;
    memcpy(copy, text, size);
    copy[size] = '\0';
    block->used += size + 1;
    return copy;
}

static bool grow(struct intern *table)
{
    uint32_t capacity = table->capacity ? table->capacity * 2 : 64;
    struct intern_entry *entries = realloc(table->entries, capacity * sizeof *entries);
    if (!entries)
        return false;
    table->entries = entries;
    uint32_t slot_count = capacity * 2;
    uint32_t *slots = calloc(slot_count, sizeof *slots);
    if (!slots)
        return false;
    for (uint32_t id = 1; id <= table->count; id++) {
        uint32_t at = entries[id - 1].hash & (slot_count - 1);
        while (slots[at])
            at = (at + 1) & (slot_count - 1);
        slots[at] = id;
    }
    free(table->slots);
    table->slots = slots;
    table->slot_count = slot_count;
    table->capacity = capacity;
    return true;
}

static uint32_t probe(const struct intern *table, const void *text, size_t size, uint32_t hash, uint32_t *slot)
{
    uint32_t at = hash & (table->slot_count - 1);
    for (; table->slots[at]; at = (at + 1) & (table->slot_count - 1)) {
        const struct intern_entry *entry = &table->entries[table->slots[at] - 1];
        if (entry->hash == hash && entry->size == size && !memcmp(entry->text, text, size))
            break;
    }
    *slot = at;
    return table->slots[at];
}

uint32_t intern_find(const struct intern *table, const void *text, size_t size)
{
    uint32_t slot;
    return table->slot_count ? probe(table, text, size, crc32c(0, text, size), &slot) : 0;
}

uint32_t intern_id(struct intern *table, const void *text, size_t size, bool *is_new)
{
    if (is_new)
        *is_new = false;
    if (table->count == table->capacity && !grow(table))
        return 0;
    uint32_t hash = crc32c(0, text, size), slot;
    uint32_t id = probe(table, text, size, hash, &slot);
    if (id)
        return id;
    if (table->text_bytes_max && table->text_bytes + size > table->text_bytes_max)
        return 0;
    char *copy = store(table, text, size);
    if (!copy)
        return 0;
    table->text_bytes += size;
    table->entries[table->count] = (struct intern_entry){copy, (uint32_t)size, hash};
    table->slots[slot] = ++table->count;
    if (is_new)
        *is_new = true;
    return table->count;
}
