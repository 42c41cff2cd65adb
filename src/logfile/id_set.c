/* SPDX-License-Identifier: Apache-2.0 */
#include "logfile/id_set.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE_IDS = 32768, PAGES_MAX = 8192 };

struct id_page {
    uint64_t number;
    uint64_t bits[PAGE_IDS / 64];
};

static size_t hash(uint64_t number)
{
    number *= 0x9e3779b97f4a7c15u;
    return (size_t)(number >> 32);
}

void id_set_free(struct id_set *set)
{
    for (size_t i = 0; i < set->slot_count; i++)
        free(set->pages[i]);
    free(set->pages);
    free(set->uses);
    *set = (struct id_set){0};
}

static struct id_page **find_slot(struct id_page **pages, size_t slot_count, uint64_t number)
{
    size_t slot = hash(number) & (slot_count - 1);
    while (pages[slot] && pages[slot]->number != number)
        slot = (slot + 1) & (slot_count - 1);
    return &pages[slot];
}

static bool grow(struct id_set *set)
{
    size_t slot_count = set->slot_count ? set->slot_count * 2 : 16;
    struct id_page **pages = calloc(slot_count, sizeof(struct id_page *));
    if (!pages)
        return false;
    for (size_t i = 0; i < set->slot_count; i++)
        if (set->pages[i])
            *find_slot(pages, slot_count, set->pages[i]->number) = set->pages[i];
    free(set->pages);
    set->pages = pages;
    set->slot_count = slot_count;
    return true;
}

static struct id_page *find_page(struct id_set *set, uint64_t number)
{
    if (set->last && set->last->number == number)
        return set->last;
    struct id_page *page = set->slot_count ? *find_slot(set->pages, set->slot_count, number) : NULL;
    if (page)
        set->last = page;
    return page;
}

void id_set_add(struct id_set *set, uint64_t id)
{
    uint64_t number = id / PAGE_IDS;
    struct id_page *page = find_page(set, number);
    if (!page) {
        bool has_room = set->page_count < PAGES_MAX && (set->page_count * 2 < set->slot_count || grow(set));
        page = has_room ? calloc(1, sizeof *page) : NULL;
        if (!page) {
            set->is_full = true;
            return;
        }
        page->number = number;
        *find_slot(set->pages, set->slot_count, number) = page;
        set->page_count++;
        set->last = page;
    }
    page->bits[id % PAGE_IDS / 64] |= (uint64_t)1 << (id % 64);
}

bool id_set_has(struct id_set *set, uint64_t id)
{
    struct id_page *page = find_page(set, id / PAGE_IDS);
    return page && page->bits[id % PAGE_IDS / 64] >> (id % 64) & 1;
}

void id_set_note_use(struct id_set *set, uint64_t id, const char *file, uint64_t line)
{
    if (!set->uses && !(set->uses = calloc(ID_SET_USES_MAX, sizeof *set->uses))) {
        set->unlisted_rows++;
        return;
    }
    size_t slot = hash(id) & (ID_SET_USES_MAX - 1);
    while (set->uses[slot].rows && set->uses[slot].id != id)
        slot = (slot + 1) & (ID_SET_USES_MAX - 1);
    struct id_use *use = &set->uses[slot];
    if (!use->rows) {
        if (set->use_count >= ID_SET_USES_MAX / 2) {
            set->unlisted_rows++;
            return;
        }
        set->use_count++;
        use->id = id;
        use->line = line;
        snprintf(use->file, sizeof use->file, "%.127s", file);
    }
    use->rows++;
}

const struct id_use *id_set_undefined(struct id_set *set, size_t i)
{
    if (!set->uses || !set->uses[i].rows || id_set_has(set, set->uses[i].id))
        return NULL;
    return &set->uses[i];
}
