/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/kernel_history.h"

#include "base/crc32c.h"
#include "base/intern.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    CAPACITY_DEFAULT = 256 * 1024,
    SYMBOL_BYTES_MAX = 4 << 20,
    /* An execution shorter than 2^(SHIFT + 3 * level) ns is stored in the level's slot of that width in which it
     * begins, so only executions in an interval's slots and the one before can overlap the interval. */
    LEVEL_COUNT = 8,
    LEVEL_SHIFT = 22,
    LEVEL_STEP = 3
};

/* Chains run from newer to older. A link is stale once `count` has advanced by the capacity; its age shows that, so
 * nothing is unlinked. */
struct entry {
    struct kernel_execution execution;
    uint32_t older_in_slot, older_by_launch; /* serial numbers; valid while recent enough */
    uint32_t level;
};

struct kernel_history {
    struct intern symbols;
    struct entry *entries;
    uint32_t capacity; /* also of both tables of chain heads */
    uint32_t count;    /* serial number of the next execution, modulo 2^32 */
    bool is_full;
    uint32_t *slot_heads, *launch_heads;
    uint32_t level_counts[LEVEL_COUNT]; /* executions remembered, to skip empty levels */
    int64_t forgotten_ns;               /* latest end of a forgotten execution */
};

static size_t map_bytes(const struct kernel_history *history)
{
    return history->capacity * (sizeof(struct entry) + 2 * sizeof(uint32_t));
}

gpufl_status kernel_history_make(struct kernel_history **out, uint32_t capacity)
{
    struct kernel_history *history = calloc(1, sizeof *history);
    if (!history)
        return GPUFL_E_NO_MEMORY;
    history->capacity = capacity ? capacity : CAPACITY_DEFAULT;
    history->symbols.text_bytes_max = SYMBOL_BYTES_MAX;
    history->forgotten_ns = INT64_MIN;
    void *memory = mmap(NULL, map_bytes(history), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        free(history);
        return GPUFL_E_NO_MEMORY;
    }
    history->entries = memory;
    history->slot_heads = (uint32_t *)(void *)(history->entries + history->capacity);
    history->launch_heads = history->slot_heads + history->capacity;
    *out = history;
    return GPUFL_OK;
}

void kernel_history_free(struct kernel_history *history)
{
    if (!history)
        return;
    munmap(history->entries, map_bytes(history));
    intern_free(&history->symbols);
    free(history);
}

size_t kernel_history_bytes(const struct kernel_history *history)
{
    return sizeof *history + map_bytes(history) + history->symbols.text_bytes;
}

uint32_t kernel_history_symbol(struct kernel_history *history, const char *symbol)
{
    return intern_id(&history->symbols, symbol, strlen(symbol), NULL);
}

static uint32_t *slot_head(const struct kernel_history *history, uint32_t symbol_id, uint32_t context_id,
                           uint32_t level, int64_t slot)
{
    const uint64_t key[] = {(uint64_t)symbol_id << 32 | context_id, (uint64_t)slot, level};
    return &history->slot_heads[crc32c(0, key, sizeof key) & (history->capacity - 1)];
}

static uint32_t *launch_head(const struct kernel_history *history, uint32_t correlation_id)
{
    return &history->launch_heads[correlation_id & (history->capacity - 1)]; /* ids increase */
}

/* Slot widths grow by a factor of 8 per level; the last level is one slot. */
static int64_t slot_of(uint32_t level, int64_t time_ns)
{
    return level == LEVEL_COUNT - 1 ? 0 : time_ns >> (LEVEL_SHIFT + LEVEL_STEP * level);
}

static uint32_t level_of(int64_t duration_ns)
{
    uint32_t level = 0;
    while (level < LEVEL_COUNT - 1 && duration_ns >= (int64_t)1 << (LEVEL_SHIFT + LEVEL_STEP * level))
        level++;
    return level;
}

/* The entry with serial number - 1, or NULL when it does not exist (any more). */
static struct entry *entry_at(const struct kernel_history *history, uint32_t number, uint32_t *age)
{
    uint32_t new_age = history->count - (number - 1);
    uint32_t remembered = history->is_full ? history->capacity : history->count;
    /* Ages increase along a chain; for a link from 2^32 executions ago they would not. */
    if (!number || new_age <= *age || new_age > remembered)
        return NULL;
    *age = new_age;
    return &history->entries[(number - 1) & (history->capacity - 1)];
}

void kernel_history_add(struct kernel_history *history, const struct kernel_execution *execution)
{
    struct entry *entry = &history->entries[history->count & (history->capacity - 1)];
    if (history->is_full) {
        history->level_counts[entry->level]--;
        if (entry->execution.end_ns > history->forgotten_ns)
            history->forgotten_ns = entry->execution.end_ns;
    }
    uint32_t level = level_of(execution->end_ns - execution->start_ns);
    uint32_t *slot =
        slot_head(history, execution->symbol_id, execution->context_id, level, slot_of(level, execution->start_ns));
    uint32_t *launch = launch_head(history, execution->correlation_id);
    *entry = (struct entry){*execution, *slot, *launch, level};
    history->level_counts[level]++;
    *slot = *launch = ++history->count;
    if (history->count == history->capacity)
        history->is_full = true;
}

/* NULL: there is no free share. Executions of a scope follow each other, and scopes repeat in the same order, so the
 * search starts at the last share found. */
static struct kernel_share *share_find(struct kernel_overlap *overlap, const struct kernel_execution *execution,
                                       uint32_t *last)
{
    for (uint32_t i = 0; i < overlap->share_count; i++) {
        uint32_t at = (*last + i) % overlap->share_count;
        struct kernel_share *share = &overlap->shares[at];
        if (share->path_id != execution->path_id || (!share->path_id && share->scope_id != execution->scope_id))
            continue;
        if (share->scope_id != execution->scope_id)
            share->scope_id = 0;
        *last = at;
        return share;
    }
    if (overlap->share_count == KERNEL_SHARES_MAX)
        return NULL;
    *last = overlap->share_count++;
    overlap->shares[*last] = (struct kernel_share){0, execution->scope_id, execution->path_id};
    return &overlap->shares[*last];
}

static void overlap_add(struct kernel_overlap *overlap, const struct kernel_execution *execution, int64_t from_ns,
                        int64_t to_ns, uint32_t *last)
{
    int64_t start_ns = execution->start_ns > from_ns ? execution->start_ns : from_ns;
    int64_t end_ns = execution->end_ns < to_ns ? execution->end_ns : to_ns;
    int64_t ns = end_ns > start_ns ? end_ns - start_ns : 1;
    overlap->correlation_id = overlap->instances ? 0 : execution->correlation_id;
    overlap->instances++;
    overlap->began += execution->start_ns >= from_ns;
    overlap->total_ns += ns;
    bool is_known = execution->scope_id != SCOPE_UNKNOWN;
    struct kernel_share *share = is_known ? share_find(overlap, execution, last) : NULL;
    *(share ? &share->ns : &overlap->unknown_ns) += ns;
}

void kernel_history_overlap(const struct kernel_history *history, uint32_t symbol_id, uint32_t context_id,
                            int64_t from_ns, int64_t to_ns, struct kernel_overlap *overlap)
{
    uint32_t last_share = 0;
    *overlap = (struct kernel_overlap){.is_complete = from_ns > history->forgotten_ns};
    for (uint32_t level = 0; level < LEVEL_COUNT; level++) {
        if (!history->level_counts[level])
            continue;
        int64_t last = slot_of(level, to_ns);
        int64_t slot = level == LEVEL_COUNT - 1 ? last : slot_of(level, from_ns) - 1;
        for (; slot <= last; slot++) {
            uint32_t age = 0;
            const struct entry *entry =
                entry_at(history, *slot_head(history, symbol_id, context_id, level, slot), &age);
            for (; entry; entry = entry_at(history, entry->older_in_slot, &age)) {
                const struct kernel_execution *execution = &entry->execution;
                /* Other functions and slots may share the chain. */
                if (execution->symbol_id == symbol_id && execution->context_id == context_id && entry->level == level &&
                    slot_of(level, execution->start_ns) == slot && execution->start_ns <= to_ns &&
                    execution->end_ns >= from_ns)
                    overlap_add(overlap, execution, from_ns, to_ns, &last_share);
            }
        }
    }
}

bool kernel_history_find(const struct kernel_history *history, uint32_t correlation_id, uint32_t symbol_id,
                         struct kernel_execution *execution)
{
    uint32_t age = 0;
    const struct entry *entry = entry_at(history, *launch_head(history, correlation_id), &age);
    for (; entry; entry = entry_at(history, entry->older_by_launch, &age))
        if (entry->execution.correlation_id == correlation_id && entry->execution.symbol_id == symbol_id) {
            *execution = entry->execution;
            return execution->scope_id != SCOPE_UNKNOWN;
        }
    return false;
}
