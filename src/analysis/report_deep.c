/* SPDX-License-Identifier: Apache-2.0 */
/* Counters per line, metrics per scope and kernel, PM samples, and the share of the run that each source of deep data
 * covered. */
#include "analysis/report_page.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void ratio_cell(struct table *table, double value, const char *format)
{
    char text[32] = "–";
    if (isfinite(value))
        snprintf(text, sizeof text, format, value);
    table_cell(table, text);
}

static void percent_cell(struct table *table, double fraction)
{
    table_cell(table, isfinite(fraction) ? quantity_percent(fraction).text : "–");
}

static void count_cell(struct table *table, double count)
{
    table_cell(table, isfinite(count) && count < 1e18 ? quantity_count((uint64_t)count).text : "–");
}

static void counter_row(struct page *page, struct table *table, const struct hot_line *line)
{
    const struct hot_code *code = &page->analysis->code;
    const struct hot_function *function = &code->functions[line->function];
    struct bytes where = {0}, name = {0};
    enum { place_columns = 32 };
    count_cell(table, line->counts.inst_executed);
    double threads = instruction_thread_efficiency(&line->counts);
    ratio_cell(table, threads * 32, "%.1f");
    percent_cell(table, instruction_branch_efficiency(&line->counts));
    percent_cell(table, instruction_coalescing(&line->counts));
    ratio_cell(table, instruction_sectors_per_request(&line->counts), "%.1f");
    ratio_cell(table, instruction_bank_conflicts(&line->counts), "%.1f x");
    count_cell(table, line->counts.sectors_local);
    page_function_name(&name, function->name, function->function_id, 0);
    if (line->line)
        page_place(&where, line->file, line->line, page->is_wide ? 0 : place_columns);
    else
        bytes_append_format(&where, "+ 0x%x", code->places[line->place_first].pc_offset);
    table_cell_bytes(table, where.data, where.size);
    table_cell_bytes(table, name.data, name.size);
    table->text.failed = table->text.failed || where.failed || name.failed;
    bytes_free(&where);
    bytes_free(&name);
}

static int executed_compare(const void *left, const void *right)
{
    const struct hot_line *const *a = left, *const *b = right;
    double executed_a = isfinite((*a)->counts.inst_executed) ? (*a)->counts.inst_executed : 0;
    double executed_b = isfinite((*b)->counts.inst_executed) ? (*b)->counts.inst_executed : 0;
    if (executed_a > executed_b || executed_a < executed_b)
        return executed_a > executed_b ? -1 : 1;
    return *a < *b ? -1 : *a > *b;
}

/* Sums of counters that have no column in the table. */
static void other_counters(struct page *page)
{
    const struct session_model *model = page->analysis->model;
    uint32_t count = model->dictionaries[DICTIONARY_METRIC].count;
    double *sums = calloc((size_t)count + 1, sizeof *sums);
    bool *is_seen = calloc((size_t)count + 1, sizeof *is_seen);
    struct instruction_counts ignored = instruction_counts_none();
    for (size_t i = 0; sums && is_seen && i < model->deep.sample_count; i++) {
        const struct code_sample *row = &model->deep.samples[i];
        const char *name = session_text(model, DICTIONARY_METRIC, row->metric_id);
        if (row->kind != SAMPLE_COUNTER || !name || instruction_counts_set(&ignored, name, 0))
            continue;
        sums[row->metric_id] += (double)row->value;
        is_seen[row->metric_id] = true;
    }
    for (uint32_t id = 0; sums && is_seen && id < count; id++) {
        if (!is_seen[id])
            continue;
        const char *name = session_text(model, DICTIONARY_METRIC, id);
        struct bytes line = {0};
        text_escape(&line, name, strlen(name));
        bytes_append_format(&line, ": %s in all", metric_quantity(name, sums[id]).text);
        page_note(page, bytes_text(&line));
        page->out->failed |= line.failed;
        bytes_free(&line);
    }
    page->out->failed = page->out->failed || !sums || !is_seen;
    free(sums);
    free(is_seen);
}

void section_counters(struct page *page)
{
    const struct hot_code *code = &page->analysis->code;
    const struct session_deep *deep = &page->analysis->model->deep;
    size_t count = 0, rows = 0;
    for (size_t i = 0; i < deep->sample_count; i++)
        rows += deep->samples[i].kind == SAMPLE_COUNTER;
    if (!rows)
        return;
    const struct hot_line **order = malloc((code->line_count + 1) * sizeof *order);
    if (!order) {
        page->out->failed = true;
        return;
    }
    for (size_t i = 0; i < code->line_count; i++)
        if (code->lines[i].has_counts)
            order[count++] = &code->lines[i];
    qsort(order, count, sizeof *order, executed_compare);
    page_title_note(
        page, "INSTRUCTIONS",
        "by source line: warps executed, active threads of 32, branches that kept the warp together, useful "
        "share of global sectors, sectors per access, shared-memory passes, local sectors");
    const char *const heads[] = {"executed", "threads", "together", "coalesced", "sectors",
                                 "passes",   "local",   "line",     "function"};
    struct table table = {
        .columns = 9, .stretch = 8, .left = 3u << 7, .has_kernel_names = true, .drop = {6, 4, 5, 2, 3}};
    table_heads(&table, heads);
    size_t shown = count < page->top ? count : page->top;
    for (size_t i = 0; i < shown; i++)
        counter_row(page, &table, order[i]);
    if (shown)
        table_print(&table, page);
    else
        table_free(&table);
    if (shown < count)
        bytes_append_format(page->out, "   and %zu more lines\n", count - shown);
    other_counters(page);
    free(order);
}

/* The table's first row, computed from the others: the FLOP/s of the kernel or scope. */
static void flops_row(struct table *table, const struct metric_group *group, unsigned columns)
{
    double flops = metric_group_flops(group);
    if (!isfinite(flops) || flops <= 0)
        return;
    table_cell(table, quantity_flops(flops).text);
    for (unsigned i = 2; i < columns; i++)
        table_cell(table, "");
    table_cell(table, "floating-point operations per second");
}

/* Counters whose results are all 0, in one line. */
static void zeros_print(struct page *page, const struct metric_group *group)
{
    struct bytes line = {0};
    size_t count = 0;
    for (size_t i = 0; i < group->column_count; i++) {
        const struct metric_column *column = &group->columns[i];
        if (!metric_is_zero(column))
            continue;
        count++;
        bytes_append_text(&line, line.size ? ", " : "0 in all: ");
        text_escape(&line, column->name, strlen(column->name));
    }
    if (count > 1 && !page->is_wide) {
        bytes_clear(&line);
        bytes_append_format(&line, "and %zu counters that are 0 (--wide names them)", count);
    }
    if (line.size)
        page_note(page, bytes_text(&line));
    page->out->failed |= line.failed;
    bytes_free(&line);
}

static void metric_table(struct page *page, const struct metric_group *group, bool has_range)
{
    struct table table = {.columns = has_range ? 4 : 2, .left = has_range ? 8 : 2, .has_metric_names = true};
    const char *const heads[] = {"mean", "min", "max", "metric"};
    table.stretch = table.columns - 1;
    if (has_range) {
        table_heads(&table, heads);
        table.drop[0] = 1;
        table.drop[1] = 2;
    }
    flops_row(&table, group, table.columns);
    for (size_t i = 0; i < group->column_count; i++) {
        const struct metric_column *column = &group->columns[i];
        struct bytes metric = {0};
        if (metric_is_zero(column))
            continue;
        table_cell(&table, metric_quantity(column->name, column->mean).text);
        if (has_range) {
            table_cell(&table, metric_quantity(column->name, column->min).text);
            table_cell(&table, metric_quantity(column->name, column->max).text);
        }
        text_escape(&metric, column->name, strlen(column->name));
        table_cell_bytes(&table, metric.data, metric.size);
        bytes_free(&metric);
    }
    table_print(&table, page);
}

static void metric_group_print(struct page *page, const struct metric_group *group)
{
    struct bytes name = {0};
    if (group->is_kernel && *group->name)
        text_kernel_name(&name, group->name, strlen(group->name), page->is_wide ? 0 : page->columns - 40);
    else if (*group->name)
        page_path(&name, group->name);
    else
        bytes_append_text(&name, "(name not recorded)");
    struct page_list list = page_list_start(page, 3, "");
    page_list_add(&list, "%s", bytes_text(&name));
    uint64_t whole = group->results - group->incomplete;
    if (group->is_kernel)
        page_list_add(&list, "%s execution%s", quantity_count(whole).text, whole == 1 ? "" : "s");
    else
        page_list_add(&list, "%s result%s", quantity_count(whole).text, whole == 1 ? "" : "s");
    if (*group->metric_set) {
        bytes_clear(&name);
        text_escape(&name, group->metric_set, strlen(group->metric_set));
        page_list_add(&list, "%s", bytes_text(&name));
    }
    if (group->passes_needed != CELL_UNKNOWN)
        page_list_add(&list, "%lld pass%s", (long long)group->passes_needed, group->passes_needed == 1 ? "" : "es");
    page_list_end(&list);
    bytes_free(&name);
    if (group->incomplete) {
        struct bytes line = {0};
        bytes_append_format(&line, "%s without values", quantity_count(group->incomplete).text);
        if (*group->reason) {
            bytes_append_text(&line, ": ");
            text_escape(&line, group->reason, strlen(group->reason));
        }
        bytes_append_text(page->out, "     ");
        page_wrapped(page, 7, bytes_text(&line));
        bytes_free(&line);
    }
    if (!group->column_count)
        return;
    metric_table(page, group, whole > 1);
    zeros_print(page, group);
}

void section_metrics(struct page *page)
{
    const struct deep_use *use = &page->analysis->deep;
    for (unsigned is_kernel = 0; is_kernel < 2; is_kernel++) {
        size_t shown = 0, count = 0;
        for (size_t i = 0; i < use->group_count; i++) {
            if (use->groups[i].is_kernel != (is_kernel == 1))
                continue;
            if (!count++) {
                page_title(page, is_kernel ? "METRICS OF KERNELS" : "METRICS OF SCOPES");
                bytes_append_char(page->out, '\n');
            }
            if (shown < page_row_limit(page, page->top)) {
                metric_group_print(page, &use->groups[i]);
                shown++;
            }
        }
        page_more(page, count - shown);
    }
}

struct pm_row {
    const struct pm_column *column;
    struct pm_use use;
};

/* Percentages of a peak first, highest first; then the others, in the order requested. */
static int pm_row_compare(const void *left, const void *right)
{
    const struct pm_row *a = left, *b = right;
    bool is_share_a = strstr(a->column->metric, "pct"), is_share_b = strstr(b->column->metric, "pct");
    if (is_share_a != is_share_b)
        return is_share_a ? -1 : 1;
    bool has_means = isfinite(a->use.mean) && isfinite(b->use.mean);
    if (is_share_a && has_means && (a->use.mean > b->use.mean || a->use.mean < b->use.mean))
        return a->use.mean > b->use.mean ? -1 : 1;
    return a->column < b->column ? -1 : a->column > b->column;
}

static void pm_row_print(struct table *table, const struct pm_row *row)
{
    const struct pm_column *column = row->column;
    const double figures[] = {row->use.mean, row->use.p50, row->use.p95, row->use.max};
    for (size_t k = 0; k < sizeof figures / sizeof *figures; k++)
        table_cell(table, isfinite(figures[k]) ? metric_quantity(column->metric, figures[k]).text : "–");
    table_cell(table, quantity_count(row->use.count).text);
    table_cell(table, row->use.gap_count ? quantity_count(row->use.gap_count).text : "");
    char device[16] = "–";
    if (column->device != DEVICE_UNKNOWN)
        snprintf(device, sizeof device, "%u", column->device);
    table_cell(table, device);
    struct bytes metric = {0};
    const char *name = *column->metric ? column->metric : "(name not recorded)";
    text_escape(&metric, name, strlen(name));
    table_cell_bytes(table, metric.data, metric.size);
    table->text.failed |= metric.failed;
    bytes_free(&metric);
}

void section_pm(struct page *page)
{
    const struct session_deep *deep = &page->analysis->model->deep;
    if (!deep->pm_count) {
        const struct session_capability *capability = capability_find(page->analysis->model, "pm_sampling");
        if (capability && capability->is_requested)
            page_missing(page, "COUNTERS OVER TIME", "pm_sampling", "counters");
        return;
    }
    page_title(page, "COUNTERS OVER TIME");
    bytes_append_char(page->out, '\n');
    struct pm_row *rows = calloc(deep->pm_count, sizeof *rows);
    const char *const heads[] = {"mean", "median", "p95", "max", "samples", "gaps", "GPU", "metric"};
    struct table table = {
        .columns = 8, .stretch = 7, .left = 1u << 7, .has_metric_names = true, .drop = {4, 5, 1, 6, 2}};
    table_heads(&table, heads);
    page->out->failed |= !rows;
    for (size_t i = 0; rows && i < deep->pm_count; i++) {
        rows[i].column = &deep->pm[i];
        page->out->failed |= deep_pm_use(deep, &deep->pm[i], &rows[i].use) != GPUFL_OK;
    }
    if (rows && !page->out->failed)
        qsort(rows, deep->pm_count, sizeof *rows, pm_row_compare);
    for (size_t i = 0; rows && i < deep->pm_count; i++)
        pm_row_print(&table, &rows[i]);
    table_print(&table, page);
    free(rows);
}

static void window_table(struct page *page)
{
    const struct deep_use *use = &page->analysis->deep;
    if (!use->window_use_count)
        return;
    const char *const heads[] = {"windows", "time", "of the run", "launches", "source"};
    struct table table = {.columns = 5, .stretch = 4, .left = 1u << 4};
    table_heads(&table, heads);
    for (size_t i = 0; i < use->window_use_count; i++) {
        const struct window_use *window = &use->windows[i];
        struct bytes source = {0};
        double wall_ns = (double)page->analysis->wall_ns;
        table_cell(&table, quantity_count(window->windows).text);
        table_cell(&table, quantity_time((double)window->covered_ns).text);
        percent_cell(&table, wall_ns > 0 ? (double)window->covered_ns / wall_ns : (double)NAN);
        table_cell(&table,
                   window->has_unknown_launches && !window->launches ? "–" : quantity_count(window->launches).text);
        text_escape(&source, *window->source ? window->source : "(not recorded)",
                    strlen(*window->source ? window->source : "(not recorded)"));
        if (window->invalid)
            bytes_append_format(&source, " (%s with counts that cannot be right: left out)",
                                quantity_count(window->invalid).text);
        table_cell_bytes(&table, source.data, source.size);
        bytes_free(&source);
    }
    table_print(&table, page);
}

static void code_line(struct page *page)
{
    const struct session_deep *deep = &page->analysis->model->deep;
    size_t stored = 0;
    const char *reason = "";
    for (size_t i = 0; i < deep->object_count; i++) {
        stored += deep->objects[i].data != NULL;
        reason = deep->objects[i].data || !*deep->objects[i].skipped ? reason : deep->objects[i].skipped;
    }
    if (!deep->object_count)
        return;
    char lead[96];
    snprintf(lead, sizeof lead, "code of %zu module%s stored", stored, stored == 1 ? "" : "s");
    if (stored < deep->object_count)
        snprintf(lead + strlen(lead), sizeof lead - strlen(lead), ", %zu not: ", deep->object_count - stored);
    page_line(page, lead, stored < deep->object_count ? reason : "");
}

static void source_lines(struct page *page)
{
    const struct session_deep *deep = &page->analysis->model->deep;
    window_table(page);
    if (deep->untimed_count) {
        char counted[160];
        snprintf(counted, sizeof counted,
                 "%s kernel%s launched while tracing was paused for counters: %s GPU time is not known",
                 quantity_count(deep->untimed_count).text, deep->untimed_count == 1 ? "" : "s",
                 deep->untimed_count == 1 ? "its" : "their");
        page_note(page, counted);
    }
    for (size_t i = 0; i < deep->counter_count; i++)
        if (deep->counters[i].skipped) {
            char lead[96];
            snprintf(lead, sizeof lead, "this GPU lacks %u of %u counters: ", deep->counters[i].skipped,
                     deep->counters[i].skipped + deep->counters[i].configured);
            page_line(page, lead, deep->counters[i].skipped_names);
        }
    code_line(page);
    page_refusals(page);
    if (deep->left_out)
        page_line(page, "rows and records beyond what a report holds, left out: ", quantity_count(deep->left_out).text);
}

void section_sources(struct page *page)
{
    struct bytes lines = {0};
    struct page inner = *page;
    if (!page->analysis->has_deep)
        return;
    inner.out = &lines;
    source_lines(&inner);
    if (lines.size) {
        page_title(page, "DEEP DATA");
        bytes_append_char(page->out, '\n');
        bytes_append(page->out, lines.data, lines.size);
    }
    page->out->failed = page->out->failed || lines.failed;
    bytes_free(&lines);
}
