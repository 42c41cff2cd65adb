/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels by kind of work. */
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
