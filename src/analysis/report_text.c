/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/report_page.h"

#include <stdio.h>

bool session_is_complete(const struct session_model *model)
{
    bool is_exact;
    return !session_lost(model, &is_exact) && is_exact && model->summary.has_shutdown &&
           !model->summary.is_synthetic_shutdown && !model->invalid_rows;
}

struct lost_words lost_text(const struct session_model *model)
{
    bool is_exact;
    uint64_t lost = session_lost(model, &is_exact) - session_lost_details(model);
    struct lost_words words = {"an unknown number of records"};
    if (is_exact && !lost)
        snprintf(words.text, sizeof words.text, "0");
    else if (lost)
        snprintf(words.text, sizeof words.text, "%s%s record%s", is_exact ? "" : "at least ", quantity_count(lost).text,
                 lost == 1 ? "" : "s");
    return words;
}

bool session_has_kernel_times(const struct session_model *model)
{
    return model->kernels.count || !model->deep.untimed_count;
}

void counted_text(const struct session_model *model, struct bytes *out)
{
    const char *engine = *model->job.engine ? model->job.engine : "this engine";
    bytes_append_format(out, "%s kernel%s counted (", quantity_count(model->deep.untimed_count).text,
                        model->deep.untimed_count == 1 ? "" : "s");
    text_escape(out, engine, strlen(engine));
    bytes_append_text(out, " does not time kernels)");
}

struct slowdown_words slowdown_words(const struct analysis *analysis)
{
    const struct slowdown *slowdown = &analysis->slowdown;
    struct slowdown_words words = {""};
    const char *about = slowdown->is_least ? "at least" : "about";
    if (slowdown->is_known && slowdown->fraction < SLOWDOWN_SHOWN)
        snprintf(words.text, sizeof words.text, "slowed down by less than 0.1 %%");
    else if (slowdown->is_known && slowdown->fraction < 2)
        /* %g writes 1e+02. */
        snprintf(words.text, sizeof words.text,
                 slowdown->fraction < 0.99 ? "slowed down by %s %.2g %%" : "slowed down by %s %.0f %%", about,
                 slowdown->fraction * 100);
    else if (slowdown->is_known)
        snprintf(words.text, sizeof words.text, "slowed down by a factor of %s %.*f", about,
                 slowdown->fraction < 9 ? 1 : 0, slowdown->fraction + 1);
    return words;
}

struct page page_make(const struct analysis *analysis, const struct report_options *options, struct bytes *out)
{
    enum { columns_min = 40 };
    return (struct page){.out = out,
                         .analysis = analysis,
                         .columns = !options->columns                ? 100
                                    : options->columns > columns_min ? (size_t)options->columns
                                                                     : columns_min,
                         .top = options->top > 0 ? (size_t)options->top : 10,
                         .is_wide = options->is_wide,
                         .use_color = options->use_color};
}

void page_sections(struct page *page, unsigned sections)
{
    /* In the order of enum report_section. */
    static void (*const all[])(struct page *) = {
        section_header,   section_time,          section_kernels,   section_kinds,   section_steps,
        section_scopes,   section_scope_kernels, section_operators, section_stalls,  section_code,
        section_counters, section_metrics,       section_pm,        section_sources, section_copies,
        section_syncs,    section_memory,        section_graphs,    section_system,  section_insights,
        section_losses,
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!sections || sections & 1u << i)
            all[i](page);
}

gpufl_status report_text(const struct session_model *model, const struct report_options *options, struct bytes *out)
{
    struct analysis analysis;
    gpufl_status status = analysis_make_with(&analysis, model, options->may_run_tools ? CODE_TOOLS : CODE_STORED);
    if (status != GPUFL_OK)
        return status;
    struct page page = page_make(&analysis, options, out);
    page_sections(&page, options->sections);
    analysis_free(&analysis);
    return out->failed ? GPUFL_E_NO_MEMORY : GPUFL_OK;
}

static void headline_write(const struct analysis *analysis, struct bytes *out)
{
    const struct session_model *model = analysis->model;
    const char *plural = model->kernels.count == 1 ? "" : "s";
    struct quantity wall = quantity_time((double)analysis->wall_ns);
    if (!session_has_kernel_times(model))
        counted_text(model, out);
    else if (analysis->has_kernel_engine && analysis->device_count > 1)
        bytes_append_format(out, "%s kernel%s, %s GPU busy of %zu x %s", quantity_count(model->kernels.count).text,
                            plural, quantity_time((double)analysis_busy_ns(analysis)).text, analysis->device_count,
                            wall.text);
    else if (analysis->has_kernel_engine)
        bytes_append_format(out, "%s kernel%s, %s GPU busy of %s", quantity_count(model->kernels.count).text, plural,
                            quantity_time((double)analysis_busy_ns(analysis)).text, wall.text);
    else
        bytes_append_format(out, "%s GPU samples in %s", quantity_count(model->device_metrics.count).text, wall.text);
    if (session_has_kernel_times(model) && model->deep.untimed_count)
        bytes_append_format(out, ", %s more counted, not timed", quantity_count(model->deep.untimed_count).text);
    bytes_append_format(out, ", %s lost", lost_text(model).text);
    if (session_lacks_end(model) && model->job.signal != CELL_UNKNOWN)
        bytes_append_format(out, ", killed by signal %lld: the end is missing", (long long)model->job.signal);
    else if (session_lacks_end(model))
        bytes_append_text(out, ", not closed: the end is missing");
    if (analysis->slowdown.is_known)
        bytes_append_format(out, ", %s", slowdown_words(analysis).text);
}

gpufl_status report_headline(const char *session_dir, struct bytes *out, struct problem *problem)
{
    struct session_model *model;
    gpufl_status status = session_load(&model, session_dir, problem);
    if (status != GPUFL_OK)
        return status;
    struct analysis analysis;
    status = analysis_make_with(&analysis, model, CODE_UNREAD);
    if (status == GPUFL_OK) {
        headline_write(&analysis, out);
        analysis_free(&analysis);
    }
    if (status == GPUFL_OK && out->failed)
        status = GPUFL_E_NO_MEMORY;
    if (status != GPUFL_OK)
        problem_set(problem, status, "%s: out of memory", session_dir);
    session_free(model);
    return status;
}
