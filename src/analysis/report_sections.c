/* SPDX-License-Identifier: Apache-2.0 */
/* Time, kernels and scopes. */
#include "analysis/report_page.h"

#include <stdio.h>
#include <stdlib.h>

enum { time_columns = 3 + 22 + 1 + 7 + 2 + 9, time_note_columns = 2 + 27 };

/* The width left for the bars; 0 on a narrow page. */
static unsigned time_bar_cells(const struct page *page)
{
    enum { least = 6, most = 60, usual = 28, usual_columns = 100 };
    if (page->columns >= usual_columns)
        return page->columns - usual_columns > most - usual ? most : (unsigned)(page->columns - usual_columns) + usual;
    if (page->columns < time_columns + time_note_columns + least)
        return 0;
    return (unsigned)(page->columns - time_columns - time_note_columns);
}

static void time_line(struct page *page, const char *label, int64_t ns, const char *note)
{
    unsigned cells = time_bar_cells(page);
    double fraction = page->analysis->wall_ns > 0 ? (double)ns / (double)page->analysis->wall_ns : 0;
    struct bytes bar = {0};
    if (page->form == PAGE_MARKED) {
        page_bar_row(page, label, fraction, quantity_time((double)ns).text, note);
        return;
    }
    text_bar(&bar, fraction, cells);
    bytes_append_format(page->out, "   %-22s %7s  ", label, quantity_percent(fraction).text);
    bytes_append(page->out, bar.data, bar.size);
    bytes_append_format(page->out, "%*s%9s", (int)(cells - text_columns(bar.data, bar.size)), "",
                        quantity_time((double)ns).text);
    bool is_beside = time_columns + cells + 2 + strlen(note) <= page->columns;
    if (*note)
        bytes_append_format(page->out, is_beside ? "  %s" : "\n       %s", note);
    bytes_append_char(page->out, '\n');
    bytes_free(&bar);
}

static void device_time(struct page *page, const struct time_use *use)
{
    const struct analysis *analysis = page->analysis;
    char hint[48] = "";
    for (size_t i = 0; i < analysis->insight_count && i < INSIGHTS_SHOWN; i++)
        if (!strcmp(analysis->insights[i].rule, "launch_bound") && use->device == analysis->launch_bound.device)
            snprintf(hint, sizeof hint, "host-bound: see INSIGHTS %zu", i + 1);
    time_line(page, "GPU busy", use->busy_ns, "");
    if (use->kernel_ns && use->kernel_ns < use->busy_ns)
        time_line(page, "  kernels", use->kernel_ns, "");
    if (use->copies_only_ns)
        time_line(page, "  copies alone", use->copies_only_ns, "no kernel ran");
    if (use->memsets_only_ns)
        time_line(page, "  memsets alone", use->memsets_only_ns, "no kernel ran");
    if (use->wait_launch_ns)
        time_line(page, "waiting for launches", use->wait_launch_ns, hint);
    if (use->wait_sync_ns)
        time_line(page, "host waiting in sync", use->wait_sync_ns, "nothing queued meanwhile");
    if (use->queued_ns)
        time_line(page, "between queued work", use->queued_ns, "issued, not started");
    if (use->unknown_ns && analysis->has_pauses)
        time_line(page, "not known", use->unknown_ns, "kernels counted, not timed");
    else if (use->unknown_ns)
        time_line(page, "idle, cause unknown", use->unknown_ns, "API calls not recorded");
    if (use->no_work_ns)
        time_line(page, "no work queued", use->no_work_ns, "");
}

void section_time(struct page *page)
{
    const struct analysis *analysis = page->analysis;
    if (!analysis->device_count && !analysis->has_kernel_engine) {
        page_missing(page, "WHERE THE TIME WENT", NULL, "kernels");
        return;
    }
    page_title(page, "WHERE THE TIME WENT");
    bytes_append_format(page->out, "%*s\n", (int)(time_columns + time_bar_cells(page) - strlen(" WHERE THE TIME WENT")),
                        quantity_time((double)analysis->wall_ns).text);
    if (!analysis->device_count)
        bytes_append_text(page->out, analysis->model->deep.untimed_count
                                         ? "   not known: kernel tracing was paused for counters\n"
                                         : "   no GPU work was recorded\n");
    for (size_t i = 0; i < analysis->device_count; i++) {
        if (analysis->device_count > 1) {
            char name[40] = "GPU not recorded";
            if (analysis->devices[i].device != DEVICE_UNKNOWN)
                snprintf(name, sizeof name, "GPU %u", analysis->devices[i].device);
            bytes_append_text(page->out, "  ");
            page_styled(page, STYLE_DIM, name);
            bytes_append_char(page->out, '\n');
        }
        device_time(page, &analysis->devices[i]);
    }
}

static void occupancy_cell(struct table *table, const struct launch_config *launch)
{
    static const char *const limits[] = {"", " (regs)", " (shared)", " (warps)", " (blocks)", " (grid)"};
    char text[48] = "–";
    if (launch && launch->occupancy_bp != ID_UNKNOWN)
        snprintf(text, sizeof text, "%.0f %%%s", launch->occupancy_bp / 100.0,
                 launch->limiter < sizeof limits / sizeof *limits ? limits[launch->limiter] : "");
    table_cell(table, text);
}

static void name_cell(struct table *table, const struct hotspot *hotspot)
{
    struct bytes name = {0};
    hotspot_name(&name, hotspot, 0);
    table->text.failed = table->text.failed || name.failed;
    table_cell_bytes(table, name.data, name.size);
    bytes_free(&name);
}

static void launch_cells(struct table *table, const struct launch_config *launch)
{
    char text[64] = "–";
    if (launch && launch->num_regs != ID_UNKNOWN && launch->sgprs != ID_UNKNOWN)
        snprintf(text, sizeof text, "%u VGPR, %u SGPR", launch->num_regs, launch->sgprs);
    else if (launch && launch->num_regs != ID_UNKNOWN)
        snprintf(text, sizeof text, "%u", launch->num_regs);
    table_cell(table, text);
    snprintf(text, sizeof text, "–");
    if (launch && launch->grid[0])
        snprintf(text, sizeof text, "%ux%ux%u / %ux%ux%u", launch->grid[0], launch->grid[1], launch->grid[2],
                 launch->block[0], launch->block[1], launch->block[2]);
    table_cell(table, text);
}

/* The time in which at least one kernel ran, summed over all GPUs. */
static int64_t kernel_run_ns(const struct analysis *analysis)
{
    int64_t kernel_ns = 0;
    for (size_t i = 0; i < analysis->device_count; i++)
        kernel_ns = sum_saturated(kernel_ns, analysis->devices[i].kernel_ns);
    return kernel_ns;
}

/* Overlapping kernels are each counted: the sum then exceeds the time in WHERE THE TIME WENT, and the title says so. */
static void kernel_totals(struct page *page)
{
    const struct analysis *analysis = page->analysis;
    uint64_t count = analysis->model->kernels.count;
    bool has_overlap = analysis->kernel_ns > kernel_run_ns(analysis);
    struct bytes note = {0};
    bytes_append_format(&note, "%s execution%s of %zu kernel%s, %s%s", quantity_count(count).text,
                        count == 1 ? "" : "s", analysis->hotspot_count, analysis->hotspot_count == 1 ? "" : "s",
                        quantity_time((double)analysis->kernel_ns).text,
                        has_overlap ? " added up (some ran side by side)" : "");
    page_title_note(page, "KERNELS", bytes_text(&note));
    page->out->failed |= note.failed;
    bytes_free(&note);
}

void section_kernels(struct page *page)
{
    const struct analysis *analysis = page->analysis;
    if (!analysis->hotspot_count && analysis->model->deep.untimed_count) {
        page_title(page, "KERNELS");
        bytes_append_text(page->out, "   not timed: see DEEP DATA\n");
        return;
    }
    if (!analysis->hotspot_count) {
        page_missing(page, "KERNELS", "kernel_events", "kernels");
        return;
    }
    kernel_totals(page);
    const char *const heads[] = {"total", "share", "calls", "mean", "median", "p90", "p99", "occupancy"};
    struct table table = {.columns = page->is_wide ? 11 : 9,
                          .stretch = page->is_wide ? 10 : 8,
                          .left = page->is_wide ? 3u << 9 : 1u << 8,
                          .has_kernel_names = true,
                          .drop = {5, 3, 6, 7}};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        table_cell(&table, heads[i]);
    if (page->is_wide) {
        table_cell(&table, "registers");
        table_cell(&table, "grid / block");
    }
    table_cell(&table, "name");
    size_t shown = analysis->hotspot_count < page->top ? analysis->hotspot_count : page->top;
    for (size_t i = 0; i < shown; i++) {
        const struct hotspot *hotspot = &analysis->hotspots[i];
        const struct distribution *duration = &hotspot->duration;
        table_cell(&table, quantity_time((double)duration->total).text);
        table_cell(&table, quantity_percent(hotspot->share).text);
        table_cell(&table, quantity_count(duration->count).text);
        table_cell(&table, quantity_time(duration->mean).text);
        table_cell(&table, quantity_time((double)duration->p50).text);
        table_cell(&table, quantity_time((double)duration->p90).text);
        table_cell(&table, quantity_time((double)duration->p99).text);
        occupancy_cell(&table, hotspot->launch);
        if (page->is_wide)
            launch_cells(&table, hotspot->launch);
        name_cell(&table, hotspot);
    }
    table_print(&table, page);
    if (shown < analysis->hotspot_count) {
        int64_t rest_ns = 0;
        for (size_t i = shown; i < analysis->hotspot_count; i++)
            rest_ns = sum_saturated(rest_ns, analysis->hotspots[i].duration.total);
        bytes_append_format(
            page->out, "   and %zu more: %s, %s\n", analysis->hotspot_count - shown,
            quantity_time((double)rest_ns).text,
            quantity_percent(analysis->kernel_ns ? (double)rest_ns / (double)analysis->kernel_ns : 0).text);
    }
}

/* Name and tag of a scope; tags: that it stands for. */
static void scope_cell(struct table *table, const struct scope_node *node, uint32_t depth, const char *tag,
                       uint64_t tags)
{
    enum { indent_max = 12 };
    struct bytes name = {0};
    for (uint32_t i = 1; i < depth && i < indent_max; i++)
        bytes_append_text(&name, "  ");
    if (node->name_size)
        text_escape(&name, node->name, node->name_size);
    else
        bytes_append_text(&name, "(unnamed)");
    if (tag) {
        bytes_append_text(&name, " [");
        text_escape(&name, tag, strlen(tag));
        if (tags > 1)
            bytes_append_format(&name, ": %s tags", quantity_count(tags).text);
        bytes_append_text(&name, "]");
    }
    if (node->open_calls)
        bytes_append_text(&name, " (never ended)");
    table_cell_bytes(table, name.data, name.size);
    table->text.failed = table->text.failed || name.failed;
    bytes_free(&name);
}

/* The calls of each tag, below the row of the scope. */
static void tag_rows(struct table *table, const struct analysis *analysis, const struct scope_node *node,
                     const struct scope_tag *tags, size_t count)
{
    bool has_gpu = session_has_kernel_times(analysis->model);
    for (size_t i = 0; i < count; i++) {
        const struct scope_node named = {.name = node->name, .name_size = node->name_size};
        scope_cell(table, &named, node->depth + 1, tags[i].text ? tags[i].text : "others", tags[i].tags);
        table_cell(table, quantity_time((double)tags[i].wall_ns).text);
        table_cell(table, has_gpu ? quantity_time((double)tags[i].gpu_ns).text : "–");
        table_cell(table, "");
        table_cell(table, quantity_count(tags[i].calls).text);
        table_cell(table, quantity_time((double)tags[i].wall_ns / (double)tags[i].calls).text);
        table_cell(table, has_gpu ? quantity_count(tags[i].kernels).text : "–");
        if (table->columns > 7)
            table_cell(table, "");
    }
}

/* at: the node's index, 0 for what is outside of scopes. */
static void scope_row(struct table *table, const struct analysis *analysis, const struct scope_node *node, uint32_t at,
                      bool has_benchmarks)
{
    size_t tag_count;
    const struct scope_tag *tags = scope_tags_of(analysis, at, &tag_count);
    bool is_one = tag_count == 1 && tags->calls == node->calls;
    const char *tag = node->tag_id && !tag_count ? session_text(analysis->model, DICTIONARY_TAG, node->tag_id)
                      : is_one                   ? tags->text
                                                 : NULL;
    scope_cell(table, node, node->depth, tag, is_one ? tags->tags : 1);
    bool has_calls = node->calls != 0, has_gpu = session_has_kernel_times(analysis->model);
    table_cell(table, has_calls ? quantity_time((double)node->wall_ns).text : "–");
    table_cell(table, has_gpu ? quantity_time((double)node->gpu_ns).text : "–");
    table_cell(table, has_gpu ? quantity_time((double)node->gpu_self_ns).text : "–");
    table_cell(table, has_calls ? quantity_count(node->calls).text : "–");
    table_cell(table, has_calls ? quantity_time((double)node->wall_ns / (double)node->calls).text : "–");
    table_cell(table, has_gpu ? quantity_count(node->kernels).text : "–");
    if (has_benchmarks) {
        char text[80] = "";
        if (node->repeat)
            snprintf(text, sizeof text, "%s x %s",
                     quantity_time((double)node->repeat_wall_ns / (double)node->repeat).text,
                     quantity_count(node->repeat).text);
        table_cell(table, text);
    }
    if (!is_one)
        tag_rows(table, analysis, node, tags, tag_count);
}

void section_scopes(struct page *page)
{
    const struct analysis *analysis = page->analysis;
    if (analysis->scope_count < 2) {
        page_title(page, "SCOPES");
        bytes_append_text(page->out, "   none: the program opened no scope\n");
        return;
    }
    bool has_benchmarks = false;
    for (size_t i = 0; i < analysis->scope_count; i++)
        has_benchmarks = has_benchmarks || analysis->scopes[i].repeat;
    page_title(page, "SCOPES");
    bytes_append_char(page->out, '\n');
    const char *const heads[] = {"", "wall", "GPU", "GPU self", "calls", "per call", "kernels", "per iteration"};
    struct table table = {.columns = has_benchmarks ? 8 : 7, .stretch = 0, .left = 1, .drop = {5, 3, 7, 4, 6}};
    table_heads(&table, heads);
    size_t shown = 0, limit = page_row_limit(page, ROWS_PER_TOP * page->top);
    for (uint32_t at = scope_tree_next(analysis, 0); at != ID_UNKNOWN && shown < limit;
         at = scope_tree_next(analysis, at), shown++)
        scope_row(&table, analysis, &analysis->scopes[at], at, has_benchmarks);
    const struct scope_node *root = &analysis->scopes[0];
    if (root->kernels_self) {
        struct scope_node outside = {.name = "(outside of scopes)",
                                     .name_size = 19,
                                     .gpu_ns = root->gpu_self_ns,
                                     .gpu_self_ns = root->gpu_self_ns,
                                     .kernels = root->kernels_self};
        scope_row(&table, analysis, &outside, 0, has_benchmarks);
    }
    table_print(&table, page);
    page_more(page, analysis->scope_count - 1 - shown);
    if (root->gpu_inferred_ns)
        page_line(page, "inferred: launched by threads without scopes while the scope waited: ",
                  quantity_time((double)root->gpu_inferred_ns).text);
    if (analysis->model->deep.untimed_count && session_has_kernel_times(analysis->model))
        page_line(page, "without the kernels that were counted, not timed: ",
                  quantity_count(analysis->model->deep.untimed_count).text);
    if (analysis->kernel_ns > kernel_run_ns(analysis))
        page_note(page, "GPU is the sum of kernel durations, also of kernels that ran side by side");
}
