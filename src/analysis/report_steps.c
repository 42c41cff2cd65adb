/* SPDX-License-Identifier: Apache-2.0 */
/* Steps: how long they take, in the whole run and in the steady state, and why the slowest one took longer. */
#include "analysis/report_page.h"

#include <stdio.h>

static void title_print(struct page *page, const struct steps *steps)
{
    struct bytes note = {0}, path = {0};
    if (steps->source == STEPS_NONE)
        bytes_append_format(&note, "no steps were found, because %s", steps->none_because);
    else if (steps->source == STEPS_PERIOD)
        bytes_append_format(&note, "%zu kernels repeat, beginning with ", steps->period);
    else
        bytes_append_text(&note, "entries of scope ");
    if (steps->source != STEPS_NONE && !steps->name) {
        bytes_append_text(&note, "(name not recorded)");
    } else if (steps->source == STEPS_PERIOD) {
        text_kernel_name(&note, steps->name, steps->name_size, 60);
    } else if (steps->source == STEPS_SCOPE) {
        bytes_append(&path, steps->name, steps->name_size);
        page_path(&note, bytes_text(&path));
    }
    page_title_note(page, "STEPS", bytes_text(&note));
    page->out->failed |= note.failed || path.failed;
    bytes_free(&note);
    bytes_free(&path);
}

static void times_row(struct table *table, const struct analysis *analysis, const char *label,
                      const struct step_times *times)
{
    double gpu_ns = (double)times->wall_ns * (double)analysis->device_count;
    char kernels[32];
    snprintf(kernels, sizeof kernels, times->kernels < 100 ? "%.1f" : "%.0f", times->kernels);
    const struct quantity cells[] = {
        quantity_count(times->count),
        quantity_time((double)times->wall_ns),
        quantity_time((double)times->duration.p50),
        quantity_time(times->duration.mean),
        quantity_time((double)times->p10_ns),
        quantity_time((double)times->duration.p90),
        quantity_time((double)times->duration.max),
    };
    table_cell(table, label);
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++)
        table_cell(table, cells[i].text);
    table_cell(table, gpu_ns > 0 ? quantity_percent((double)times->busy_ns / gpu_ns).text : "–");
    table_cell(table, kernels);
}

static void difference_row(struct table *table, const struct step_difference *difference)
{
    static const char *const whats[] = {"time", "scope", "kind", "kernel", "copies"};
    int64_t more_ns = difference->slowest_ns - difference->typical_ns;
    char text[48];
    struct bytes name = {0};
    snprintf(text, sizeof text, "%s%s", more_ns < 0 ? "-" : "+",
             quantity_time((double)(more_ns < 0 ? -more_ns : more_ns)).text);
    table_cell(table, text);
    table_cell(table, quantity_time((double)difference->slowest_ns).text);
    table_cell(table, quantity_time((double)difference->typical_ns).text);
    table_cell(table, whats[difference->what]);
    if (!difference->name)
        bytes_append_text(&name, "(name not recorded)");
    else if (difference->what == STEP_SCOPE)
        page_path(&name, difference->name);
    else if (difference->what == STEP_KERNEL)
        text_kernel_name(&name, difference->name, strlen(difference->name), 0);
    else
        bytes_append_text(&name, difference->name);
    table->text.failed = table->text.failed || name.failed;
    table_cell_bytes(table, name.data, name.size);
    bytes_free(&name);
}

static void slowest_print(struct page *page, const struct steps *steps)
{
    enum { differences_shown = 6 };
    static const char *const heads[] = {"longer", "slowest", "typical", "", "where"};
    const struct step *slowest = &steps->items[steps->slowest], *typical = &steps->items[steps->typical];
    struct table table = {.columns = 5, .stretch = 4, .left = 3u << 3, .has_kernel_names = true, .drop = {2, 1}};
    struct bytes line = {0};
    bytes_append_format(&line,
                        "slowest: step %zu, %s, begun %s into the run; compared with step %zu of median length, %s",
                        steps->slowest + 1, quantity_time((double)(slowest->end_ns - slowest->begin_ns)).text,
                        quantity_time((double)(slowest->begin_ns - page->analysis->start_ns)).text, steps->typical + 1,
                        quantity_time((double)(typical->end_ns - typical->begin_ns)).text);
    page_note(page, bytes_text(&line));
    bytes_free(&line);
    table_heads(&table, heads);
    size_t shown = page_row_limit(page, differences_shown);
    for (size_t i = 0; i < steps->difference_count && i < shown; i++)
        difference_row(&table, &steps->differences[i]);
    table_print(&table, page);
}

void section_steps(struct page *page)
{
    const struct analysis *analysis = page->analysis;
    const struct steps *steps = &analysis->steps;
    if (!analysis->hotspot_count)
        return;
    title_print(page, steps);
    if (steps->source == STEPS_NONE)
        return;
    static const char *const heads[] = {"",    "steps", "wall", "median",   "mean",
                                        "p10", "p90",   "max",  "GPU busy", "kernels"};
    struct table table = {.columns = 10, .stretch = 0, .left = 1, .drop = {4, 5, 6, 9}};
    table_heads(&table, heads);
    times_row(&table, analysis, "whole run", &steps->whole);
    times_row(&table, analysis, "steady state", &steps->steady);
    table_print(&table, page);
    if (steps->warmup) {
        int64_t warmup_ns = steps->items[steps->warmup].begin_ns - steps->items[0].begin_ns;
        struct bytes line = {0};
        bytes_append_format(&line, "warm-up, not in the steady state: the first %zu step%s, %s", steps->warmup,
                            steps->warmup == 1 ? "" : "s", quantity_time((double)warmup_ns).text);
        page_note(page, bytes_text(&line));
        bytes_free(&line);
    }
    if (steps->difference_count)
        slowest_print(page, steps);
}
