/* SPDX-License-Identifier: Apache-2.0 */
/* One function, instruction by instruction, with samples and counters. */
#include "analysis/code_walk.h"
#include "analysis/kernel_resources.h"
#include "analysis/report_page.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MATCH_NONE, MATCH_PART, MATCH_SYMBOL, MATCH_NAME };

static int match_rank(const struct hot_function *function, const char *wanted)
{
    const char *name = function->name, *symbol = function->symbol;
    size_t size = strlen(wanted);
    if (name && !strncmp(name, wanted, size) && (!name[size] || name[size] == '('))
        return MATCH_NAME;
    if (symbol && !strcmp(symbol, wanted))
        return MATCH_SYMBOL;
    return (name && strstr(name, wanted)) || (symbol && strstr(symbol, wanted)) ? MATCH_PART : MATCH_NONE;
}

static void candidates_list(const struct hot_code *code, const char *wanted, int rank, struct bytes *out)
{
    enum { names_max = 6 };
    unsigned count = 0;
    for (size_t i = 0; i < code->function_count; i++) {
        if (wanted && match_rank(&code->functions[i], wanted) < rank)
            continue;
        if (count++ < names_max) {
            bytes_append_text(out, count > 1 ? ", " : " ");
            page_function_name(out, code->functions[i].name, code->functions[i].function_id, 40);
        }
    }
    if (count > names_max)
        bytes_append_format(out, " and %u more", count - names_max);
}

static gpufl_status function_choose(const struct analysis *analysis, const char *wanted, uint32_t *chosen,
                                    struct problem *problem)
{
    const struct hot_code *code = &analysis->code;
    int best = 0;
    size_t matches = 0;
    for (uint32_t i = 0; i < code->function_count; i++) {
        int rank = match_rank(&code->functions[i], wanted);
        if (rank > best) {
            best = rank;
            matches = 0;
        }
        if (!rank || rank < best)
            continue;
        if (!matches++)
            *chosen = i; /* the one with the most samples of that rank */
    }
    /* If several cubins contain the function: the hottest one. */
    for (uint32_t i = 0; best == MATCH_NAME && i < code->function_count; i++)
        if (code->functions[i].name && code->functions[*chosen].name &&
            !strcmp(code->functions[i].name, code->functions[*chosen].name) && i != *chosen)
            matches--;
    if (matches == 1)
        return GPUFL_OK;
    struct bytes names = {0};
    candidates_list(code, matches ? wanted : NULL, best, &names);
    gpufl_status status;
    if (matches)
        status = problem_set(problem, GPUFL_E_INVALID, "'%.100s' matches %zu functions:%s", wanted, matches,
                             bytes_text(&names));
    else if (code->function_count)
        status = problem_set(problem, GPUFL_E_NOT_FOUND, "no sampled or counted function is named '%.100s'; choose:%s",
                             wanted, bytes_text(&names));
    else
        status = problem_set(problem, GPUFL_E_NOT_FOUND,
                             "the session has no samples and no counters (engines PcSampling, SassMetrics and Deep "
                             "record them)");
    bytes_free(&names);
    return status;
}

static void count_text(struct bytes *out, double value, int width)
{
    bytes_append_format(out, " %*s", width,
                        isfinite(value) && value < 1e18 ? quantity_count((uint64_t)value).text : "");
}

struct listing {
    struct page *page;
    struct code_text before;
    bool has_samples, has_counts, is_begun, is_beyond;
    bool has_reason, has_shares; /* columns that a narrow page lacks: stall reasons, shares of threads and bytes */
};

static void instruction_row(const struct listing *listing, uint64_t pc, const struct code_place *place,
                            const char *sass)
{
    enum { stall_columns = 18 };
    struct page *page = listing->page;
    const struct stalls *stalls = &page->analysis->stalls;
    struct bytes row = {0}, stall = {0};
    bytes_append_format(&row, "  %6llx", (unsigned long long)pc);
    if (place && place->samples)
        text_cut(&stall, stalls->kinds[place->stall].name, strlen(stalls->kinds[place->stall].name), stall_columns);
    if (listing->has_samples)
        bytes_append_format(&row, " %9s", place && place->samples ? quantity_count(place->samples).text : "");
    if (listing->has_samples && listing->has_reason)
        bytes_append_format(&row, "  %s%*s", bytes_text(&stall),
                            (int)(stall_columns - text_columns(stall.data, stall.size)), "");
    if (listing->has_counts) {
        bool is_counted = place && place->has_counts;
        const struct instruction_counts none = instruction_counts_none();
        const struct instruction_counts *counts = is_counted ? &place->counts : &none;
        count_text(&row, counts->inst_executed, 13);
        double threads = 32 * instruction_thread_efficiency(counts), used = instruction_coalescing(counts);
        char text[24] = "";
        if (isfinite(threads))
            snprintf(text, sizeof text, "%.1f", threads);
        if (listing->has_shares)
            bytes_append_format(&row, " %5s %7s", text, isfinite(used) ? quantity_percent(used).text : "");
    }
    bytes_append_text(&row, "  ");
    size_t columns = text_columns(row.data, row.size);
    enum { sass_least = 12 };
    text_cut(&row, sass, strlen(sass),
             page->is_wide                          ? 0
             : page->columns < columns + sass_least ? sass_least
                                                    : page->columns - columns);
    while (row.size && row.data[row.size - 1] == ' ')
        row.size--;
    bytes_append(page->out, row.data, row.size);
    bytes_append_char(page->out, '\n');
    page->out->failed = page->out->failed || row.failed || stall.failed;
    bytes_free(&row);
    bytes_free(&stall);
}

static void line_heading(struct page *page, const struct code_text *text, uint32_t source_file_id)
{
    struct bytes heading = {0}, escaped = {0};
    bytes_append_text(&heading, "         ");
    if (text->line)
        page_place(&heading, text->file, text->line, 0);
    else
        bytes_append_text(&heading, "(line not known)");
    for (size_t i = 1; i < text->frame_count; i++) {
        bytes_append_text(&heading, i > 1 ? " < " : "  inlined at ");
        page_place(&heading, text->frames[i].path, text->frames[i].line, 0);
    }
    const char *source = code_source_line(page->analysis->model, text->file, source_file_id, text->line);
    enum { source_least = 24 };
    size_t used = text_columns(heading.data, heading.size) + 2;
    if (source) {
        source += strspn(source, " \t");
        text_escape(&escaped, source, strlen(source));
        bytes_append_text(&heading, "  ");
        text_cut(&heading, escaped.data, escaped.size,
                 page->is_wide                         ? 0
                 : page->columns < used + source_least ? source_least
                                                       : page->columns - used);
    }
    page_styled(page, STYLE_DIM, bytes_text(&heading));
    bytes_append_char(page->out, '\n');
    page->out->failed = page->out->failed || heading.failed || escaped.failed;
    bytes_free(&heading);
    bytes_free(&escaped);
}

static bool is_same_line(const struct code_text *a, const struct code_text *b)
{
    if (a->line != b->line || a->frame_count != b->frame_count || strcmp(a->file, b->file) != 0)
        return false;
    for (size_t i = 1; i < a->frame_count; i++)
        if (a->frames[i].line != b->frames[i].line || strcmp(a->frames[i].path, b->frames[i].path) != 0)
            return false;
    return true;
}

static void step_print(void *user, const struct code_step *step)
{
    struct listing *listing = user;
    if (step->is_beyond && !listing->is_beyond)
        bytes_append_text(listing->page->out, "         beyond the end of the function\n");
    listing->is_beyond = step->is_beyond;
    if (!step->is_beyond && (!listing->is_begun || !is_same_line(step->text, &listing->before)))
        line_heading(listing->page, step->text, step->place ? step->place->source_file_id : 0);
    listing->before = *step->text;
    listing->is_begun = true;
    instruction_row(listing, step->pc, step->place, step->text->sass);
}

static void listing_print(struct page *page, struct hot_code *code, uint32_t chosen)
{
    const struct hot_function *owner = &code->functions[chosen];
    struct listing listing = {.page = page, .before = {.file = ""}, .has_counts = owner->has_counts};
    enum { roomy = 100, narrow = 72 };
    listing.has_reason = page->is_wide || page->columns >= roomy || (!listing.has_counts && page->columns >= narrow);
    listing.has_shares = page->is_wide || page->columns >= narrow;
    listing.has_samples = owner->samples || owner->vendor == IMAGE_NVIDIA; /* AMD kernels have no samples */
    if (code_walk(&code->lookup, code, chosen, step_print, &listing) != GPUFL_OK)
        page->out->failed = true;
}

static void number_print(struct bytes *out, uint32_t value, const char *before, const char *after)
{
    if (value != AMDGPU_UNKNOWN)
        bytes_append_format(out, "%s%s%s", before, quantity_count(value).text, after);
}

static void resources_print(struct bytes *out, struct hot_code *code, const struct hot_function *owner)
{
    if (owner->vendor != IMAGE_AMD)
        return;
    struct code_function function = code_lookup_function(&code->lookup, owner->cubin_crc, owner->symbol);
    struct kernel_resources resources;
    if (kernel_resources_read(&function, owner->name, &resources)) {
        const struct amdgpu_kernel *kernel = &resources.kernel;
        const struct amdgpu_occupancy *occupancy = &resources.occupancy;
        bytes_append_format(out, "   %s", resources.arch);
        number_print(out, kernel->vgpr_count, " · ", kernel->is_allocation ? " VGPRs allocated" : " VGPRs");
        if (kernel->agpr_count)
            number_print(out, kernel->agpr_count, ", ", " of them for accumulation");
        number_print(out, kernel->sgpr_count, " · ", " SGPRs");
        number_print(out, kernel->lds_bytes, " · LDS ", " bytes");
        number_print(out, kernel->scratch_bytes, " · scratch ", " bytes");
        number_print(out, kernel->wave_size, " · waves of ", "");
        if (kernel->vgpr_spills)
            number_print(out, kernel->vgpr_spills, " · ", " VGPRs spilled");
        if (occupancy->problem)
            bytes_append_format(out, "\n   occupancy unavailable: %s\n", occupancy->problem);
        else
            bytes_append_format(
                out, "\n   occupancy %.3g of %u waves per SIMD%s%s%s\n", kernel_resources_waves(&resources),
                occupancy->waves_max, occupancy->limiter ? ", limited by " : "",
                occupancy->limiter ? amdgpu_limiter_name(occupancy->limiter) : "",
                resources.demand.group_size ? "" : " (registers alone: no launch says its work-group's size)");
    }
    code_function_close(&function);
}

gpufl_status report_code(const struct session_model *model, const char *function, const struct report_options *options,
                         struct bytes *out, struct problem *problem)
{
    struct analysis analysis;
    gpufl_status status = analysis_make_with(&analysis, model, options->may_run_tools ? CODE_TOOLS : CODE_STORED);
    if (status != GPUFL_OK)
        return problem_set(problem, status, "out of memory");
    uint32_t chosen = 0;
    status = function_choose(&analysis, function, &chosen, problem);
    if (status == GPUFL_OK) {
        struct page page = page_make(&analysis, options, out);
        const struct hot_function *owner = &analysis.code.functions[chosen];
        struct bytes name = {0};
        page_function_name(&name, owner->name, owner->function_id, 0);
        bytes_append_char(out, ' ');
        page_styled(&page, STYLE_TITLE, bytes_text(&name));
        if (owner->vendor == IMAGE_AMD)
            bytes_append_text(out, "   ISA\n");
        else
            bytes_append_format(out, "\n   %s samples%s\n", quantity_count(owner->samples).text,
                                !owner->has_counts   ? ""
                                : page.columns >= 72 ? " · executed, threads of 32, useful share of global sectors"
                                                     : " · executed");
        bytes_free(&name);
        if (*owner->problem) {
            bytes_append_text(out, "   ");
            text_escape(out, owner->problem, strlen(owner->problem));
            bytes_append_char(out, '\n');
        }
        resources_print(out, &analysis.code, owner);
        listing_print(&page, &analysis.code, chosen);
        status = out->failed ? problem_set(problem, GPUFL_E_NO_MEMORY, "out of memory") : GPUFL_OK;
    }
    analysis_free(&analysis);
    return status;
}
