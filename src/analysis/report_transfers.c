/* SPDX-License-Identifier: Apache-2.0 */
/* Copies, synchronization, memory and graphs. */
#include "analysis/report_page.h"

#include <stdio.h>
#include <stdlib.h>

enum { places_shown = 3, graphs_shown = 5, sync_types = 5 };

static void volume_row(struct table *table, const char *label, uint64_t bytes, int64_t ns, uint64_t calls)
{
    table_cell(table, label);
    table_cell(table, quantity_bytes((double)bytes).text);
    table_cell(table, quantity_time((double)ns).text);
    table_cell(table, ns > 0 ? quantity_rate((double)bytes * 1e9 / (double)ns).text : "–");
    table_cell(table, quantity_count(calls).text);
}

static bool memset_row(struct table *table, const struct memset_total *memsets)
{
    volume_row(table, "memset", memsets->bytes, memsets->total_ns, memsets->calls);
    return true;
}

/* order: the indexes of `count` weights, heaviest first. */
static void order_make(unsigned *order, const int64_t *weights, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        unsigned at = i;
        for (; at > 0 && weights[order[at - 1]] < weights[i]; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
}

void section_copies(struct page *page)
{
    const struct analysis *analysis = page->analysis;
    if (!analysis->copy_group_count && !analysis->memsets.calls) {
        page_missing(page, "COPIES", "memcpy_activity", "copies");
        return;
    }
    page_title(page, "COPIES");
    bytes_append_char(page->out, '\n');
    static const char *const texts[] = {"", "bytes", "time", "throughput", "calls"};
    struct table table = {.columns = 5, .stretch = 0, .left = 1};
    table_heads(&table, texts);
    bool has_memsets = false;
    for (size_t i = 0; i < analysis->copy_group_count; i++) {
        if (!has_memsets && analysis->memsets.total_ns > analysis->copies[i].total_ns)
            has_memsets = memset_row(&table, &analysis->memsets);
        const struct copy_group *group = &analysis->copies[i];
        const char *kind = schema_word("copy_kind", group->copy_kind);
        const char *memory = group->memory_kind ? schema_word("memory_kind", group->memory_kind) : NULL;
        char label[64];
        if (kind)
            snprintf(label, sizeof label, "%s%s%s", kind, memory ? " " : "", memory ? memory : "");
        else
            snprintf(label, sizeof label, "kind %u", group->copy_kind);
        volume_row(&table, label, group->bytes, group->total_ns, group->calls);
    }
    if (!has_memsets && analysis->memsets.calls)
        memset_row(&table, &analysis->memsets);
    table_print(&table, page);
    page_incomplete(page, "memcpy_activity", "other copies");
}

/* The scopes in which the host waited longest, each without its children. */
static size_t sync_scopes(const struct analysis *analysis, uint32_t out[places_shown])
{
    size_t count = 0;
    for (uint32_t i = 1; i < analysis->scope_count; i++) {
        if (analysis->scopes[i].sync_self_ns <= 0)
            continue;
        size_t at = count < places_shown ? count++ : places_shown;
        for (; at > 0 && analysis->scopes[out[at - 1]].sync_self_ns < analysis->scopes[i].sync_self_ns; at--)
            if (at < places_shown)
                out[at] = out[at - 1];
        if (at < places_shown)
            out[at] = i;
    }
    return count;
}

static void sync_places(struct page *page)
{
    const struct analysis *analysis = page->analysis;
    uint32_t scopes[places_shown];
    size_t count = sync_scopes(analysis, scopes);
    struct bytes place = {0};
    for (size_t i = 0; i < count; i++) {
        bytes_clear(&place);
        scope_tree_path(analysis, scopes[i], &place);
        bytes_append_format(page->out, "   %9s in scope ",
                            quantity_time((double)analysis->scopes[scopes[i]].sync_self_ns).text);
        text_cut(page->out, place.data, place.size, page->is_wide ? 0 : page->columns - 22);
        bytes_append_char(page->out, '\n');
    }
    for (size_t i = 0; i < analysis->sync_place_count && i < places_shown; i++) {
        const struct sync_place *stack = &analysis->sync_places[i];
        const char *text = session_text(analysis->model, DICTIONARY_FUNCTION, stack->function_id);
        const char *last = text ? strrchr(text, '|') : NULL;
        text = last ? last + 1 : text ? text : "(stack not recorded)";
        bytes_append_format(page->out, "   %9s at ", quantity_time((double)stack->total_ns).text);
        text_cut(page->out, text, strlen(text), page->is_wide ? 0 : page->columns - 16);
        bytes_append_char(page->out, '\n');
    }
    bytes_free(&place);
}

void section_syncs(struct page *page)
{
    const struct analysis *analysis = page->analysis;
    if (!analysis->model->sync_count) {
        page_missing(page, "SYNC", "sync_activity", "synchronization");
        return;
    }
    page_title(page, "SYNC");
    bytes_append_format(page->out, "   the host waited %s\n", quantity_time((double)analysis->host_wait_ns).text);
    static const char *const texts[] = {"", "total", "calls", "mean", "max"};
    struct table table = {.columns = 5, .stretch = 0, .left = 1};
    table_heads(&table, texts);
    int64_t weights[sync_types];
    unsigned order[sync_types] = {0};
    for (unsigned type = 0; type < sync_types; type++)
        weights[type] = analysis->syncs[type].total_ns;
    order_make(order, weights, sync_types);
    for (unsigned i = 0; i < sync_types; i++) {
        const struct sync_group *group = &analysis->syncs[order[i]];
        if (!group->calls)
            continue;
        const char *word = schema_word("sync_type", group->sync_type);
        table_cell(&table, word ? word : "other");
        table_cell(&table, quantity_time((double)group->total_ns).text);
        table_cell(&table, quantity_count(group->calls).text);
        table_cell(&table, quantity_time((double)group->total_ns / (double)group->calls).text);
        table_cell(&table, quantity_time((double)group->max_ns).text);
    }
    table_print(&table, page);
    sync_places(page);
}

void section_memory(struct page *page)
{
    const struct analysis *analysis = page->analysis;
    if (!analysis->model->memory_event_count)
        return;
    page_title(page, "MEMORY");
    bytes_append_char(page->out, '\n');
    static const char *const texts[] = {"", "peak", "allocated", "allocs", "frees", "never freed"};
    struct table table = {.columns = 6, .stretch = 0, .left = 1, .drop = {2, 4, 3}};
    table_heads(&table, texts);
    int64_t weights[MEMORY_KIND_COUNT];
    unsigned order[MEMORY_KIND_COUNT] = {0};
    for (unsigned kind = 0; kind < MEMORY_KIND_COUNT; kind++)
        weights[kind] = (int64_t)(analysis->memory[kind].peak_bytes / 2); /* cannot overflow */
    order_make(order, weights, MEMORY_KIND_COUNT);
    for (unsigned i = 0; i < MEMORY_KIND_COUNT; i++) {
        unsigned kind = order[i];
        const struct memory_group *group = &analysis->memory[kind];
        if (!group->allocs && !group->frees)
            continue;
        char held[96] = "0";
        if (group->held_count)
            snprintf(held, sizeof held, "%s in %s", quantity_memory((double)group->held_bytes).text,
                     quantity_count(group->held_count).text);
        table_cell(&table, schema_word("memory_kind", (long)kind));
        table_cell(&table, quantity_memory((double)group->peak_bytes).text);
        table_cell(&table, quantity_memory((double)group->allocated_bytes).text);
        table_cell(&table, quantity_count(group->allocs).text);
        table_cell(&table, quantity_count(group->frees).text);
        table_cell(&table, held);
    }
    table_print(&table, page);
}

void section_graphs(struct page *page)
{
    const struct analysis *analysis = page->analysis;
    if (!analysis->graph_group_count)
        return;
    page_title(page, "GRAPHS");
    bytes_append_char(page->out, '\n');
    static const char *const texts[] = {"", "total", "launches", "mean", "nodes", "busy"};
    struct table table = {.columns = 6, .stretch = 0, .left = 1};
    table_heads(&table, texts);
    size_t limit = page_row_limit(page, graphs_shown);
    size_t shown = analysis->graph_group_count < limit ? analysis->graph_group_count : limit;
    for (size_t i = 0; i < shown; i++) {
        const struct graph_group *group = &analysis->graphs[i];
        char label[32], nodes[32] = "–";
        snprintf(label, sizeof label, "graph %u", group->graph_id);
        if (group->node_count != ID_UNKNOWN)
            snprintf(nodes, sizeof nodes, "%s", quantity_count(group->node_count).text);
        table_cell(&table, label);
        table_cell(&table, quantity_time((double)group->total_ns).text);
        table_cell(&table, quantity_count(group->launches).text);
        table_cell(&table, quantity_time((double)group->total_ns / (double)group->launches).text);
        table_cell(&table, nodes);
        bool has_busy = group->busy_ns >= 0 && group->total_ns > 0;
        table_cell(&table, has_busy ? quantity_percent((double)group->busy_ns / (double)group->total_ns).text : "–");
    }
    table_print(&table, page);
    page_more(page, analysis->graph_group_count - shown);
}
