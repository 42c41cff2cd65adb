/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels by kind of work and by operator. */
#include "analysis/report_page.h"

#include <stdlib.h>

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

struct scope_weight {
    uint32_t node;
    int64_t self_ns;
};

static int weight_compare(const void *left, const void *right)
{
    const struct scope_weight *a = left, *b = right;
    if (a->self_ns != b->self_ns)
        return a->self_ns > b->self_ns ? -1 : 1;
    return a->node < b->node ? -1 : a->node > b->node;
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

/* Scopes by their GPU time without children, longest first. */
void section_scope_kernels(struct page *page)
{
    enum { scopes_shown = 4 };
    const struct analysis *analysis = page->analysis;
    struct scope_weight *weights = malloc((analysis->scope_count + 1) * sizeof *weights);
    size_t count = 0, shown = 0, limit = page_row_limit(page, scopes_shown);
    for (uint32_t node = 1; weights && node < analysis->scope_count; node++)
        if (analysis->scopes[node].gpu_self_ns > 0)
            weights[count++] = (struct scope_weight){node, analysis->scopes[node].gpu_self_ns};
    page->out->failed |= !weights;
    if (count) {
        qsort(weights, count, sizeof *weights, weight_compare);
        page_title(page, "KERNELS BY SCOPE");
        bytes_append_char(page->out, '\n');
        for (; shown < limit && shown < count; shown++)
            scope_kernels_print(page, weights[shown].node);
        page_more(page, count - shown);
    }
    free(weights);
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
