/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels by kind of work and by operator. */
#include "analysis/report_page.h"

void section_kinds(struct page *page)
{
    const struct analysis *analysis = page->analysis;
    if (!analysis->kind_count)
        return;
    if (analysis->kind_count == 1 && analysis->kinds[0].kind == KIND_UNKNOWN) {
        page_title_note(page, "WORK BY KIND", "unknown: no kernel's name says what it computes");
        return;
    }
    page_title(page, "WORK BY KIND");
    bytes_append_char(page->out, '\n');
    static const char *const heads[] = {"total", "share", "calls", "kernels", "kind"};
    struct table table = {.columns = 5, .stretch = 4, .left = 1 << 4, .drop = {3, 2}};
    table_heads(&table, heads);
    for (size_t i = 0; i < analysis->kind_count; i++) {
        const struct kind_total *total = &analysis->kinds[i];
        double share = analysis->kernel_ns > 0 ? (double)total->total_ns / (double)analysis->kernel_ns : 0;
        table_cell(&table, quantity_time((double)total->total_ns).text);
        table_cell(&table, quantity_percent(share).text);
        table_cell(&table, quantity_count(total->count).text);
        table_cell(&table, quantity_count(total->kernels).text);
        table_cell(&table, kernel_kind_label(total->kind));
    }
    table_print(&table, page);
}

static void kernel_rows(struct page *page, const struct scope_kernel *kernels, size_t count, int64_t all_ns)
{
    static const char *const heads[] = {"total", "share", "calls", "mean", "kind", "name"};
    struct table table = {.columns = 6, .stretch = 5, .left = 3u << 4, .has_kernel_names = true, .drop = {3, 4, 2}};
    table_heads(&table, heads);
    for (size_t i = 0; i < count; i++) {
        const char *text = session_text(page->analysis->model, DICTIONARY_KERNEL, kernels[i].kernel_id);
        const struct hotspot hotspot = {.kernel_id = kernels[i].kernel_id, .name = text};
        double share = all_ns > 0 ? (double)kernels[i].total_ns / (double)all_ns : 0;
        table_cell(&table, quantity_time((double)kernels[i].total_ns).text);
        table_cell(&table, quantity_percent(share).text);
        table_cell(&table, quantity_count(kernels[i].count).text);
        table_cell(&table, quantity_time((double)kernels[i].total_ns / (double)kernels[i].count).text);
        table_cell(&table, kernel_kind_label(kernel_kind_of(text)));
        struct bytes name = {0};
        hotspot_name(&name, &hotspot, 0);
        table.text.failed = table.text.failed || name.failed;
        table_cell_bytes(&table, name.data, name.size);
        bytes_free(&name);
    }
    table_print(&table, page);
}

/* Scopes by GPU time without children: the one after `last`; ID_UNKNOWN: none. */
static uint32_t next_scope(const struct analysis *analysis, int64_t last_ns, uint32_t last)
{
    uint32_t best = ID_UNKNOWN;
    for (uint32_t node = 1; node < analysis->scope_count; node++) {
        int64_t self_ns = analysis->scopes[node].gpu_self_ns;
        bool is_later = self_ns < last_ns || (self_ns == last_ns && node > last);
        if (self_ns > 0 && is_later && (best == ID_UNKNOWN || self_ns > analysis->scopes[best].gpu_self_ns))
            best = node;
    }
    return best;
}

static void scope_kernels_print(struct page *page, uint32_t node)
{
    enum { usually_shown = 3, most_shown = 10 };
    const struct scope_node *scope = &page->analysis->scopes[node];
    struct scope_kernel top[most_shown];
    struct bytes line = {0};
    size_t shown = page->is_wide ? most_shown : usually_shown;
    size_t count = scope_kernels_top(page->analysis, node, top, shown);
    bytes_append_format(&line, "%s in %s kernel%s", quantity_time((double)scope->gpu_ns).text,
                        quantity_count(scope->kernels).text, scope->kernels == 1 ? "" : "s");
    if (count == SIZE_MAX)
        bytes_append_text(&line, ", not listed: there are too many scopes");
    else if (count > shown)
        bytes_append_format(&line, ", the %zu longest of %zu", shown, count);
    bytes_append_text(&line, " · ");
    scope_tree_path(page->analysis, node, &line);
    page_note(page, bytes_text(&line));
    page->out->failed |= line.failed;
    bytes_free(&line);
    if (count != SIZE_MAX)
        kernel_rows(page, top, count < shown ? count : shown, scope->gpu_ns);
}

void section_scope_kernels(struct page *page)
{
    enum { scopes_shown = 4 };
    const struct analysis *analysis = page->analysis;
    size_t count = 0, shown = 0, limit = page_row_limit(page, scopes_shown);
    for (uint32_t i = 1; i < analysis->scope_count; i++)
        count += analysis->scopes[i].gpu_self_ns > 0;
    if (!count)
        return;
    page_title(page, "KERNELS BY SCOPE");
    bytes_append_char(page->out, '\n');
    uint32_t node = next_scope(analysis, INT64_MAX, 0);
    for (; shown < limit && node != ID_UNKNOWN; shown++) {
        scope_kernels_print(page, node);
        node = next_scope(analysis, analysis->scopes[node].gpu_self_ns, node);
    }
    page_more(page, count - shown);
}

void section_operators(struct page *page)
{
    const struct analysis *analysis = page->analysis;
    if (!analysis->operator_count)
        return;
    page_title(page, "OPERATORS");
    bytes_append_char(page->out, '\n');
    static const char *const heads[] = {"total", "share", "forward", "backward", "optimizer", "kernels", "operator"};
    struct table table = {.columns = 7, .stretch = 6, .left = 1 << 6, .drop = {4, 5, 1}};
    table_heads(&table, heads);
    size_t shown = analysis->operator_count < page->top ? analysis->operator_count : page->top;
    for (size_t i = 0; i < shown; i++) {
        const struct operator_total *total = &analysis->operators[i];
        double share = analysis->kernel_ns > 0 ? (double)total->total_ns / (double)analysis->kernel_ns : 0;
        table_cell(&table, quantity_time((double)total->total_ns).text);
        table_cell(&table, quantity_percent(share).text);
        for (int direction = DIRECTION_FORWARD; direction < DIRECTION_COUNT; direction++)
            table_cell(&table, total->by_direction_ns[direction]
                                   ? quantity_time((double)total->by_direction_ns[direction]).text
                                   : "–");
        table_cell(&table, quantity_count(total->count).text);
        struct bytes name = {0};
        text_escape(&name, total->name, strlen(total->name));
        table_cell_bytes(&table, name.data, name.size);
        table.text.failed = table.text.failed || name.failed;
        bytes_free(&name);
    }
    table_print(&table, page);
    page_more(page, analysis->operator_count - shown);
    if (analysis->kernels_without_operator)
        page_line(page, "kernels without an operator: ", quantity_count(analysis->kernels_without_operator).text);
}
