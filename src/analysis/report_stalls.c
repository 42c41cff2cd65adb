/* SPDX-License-Identifier: Apache-2.0 */
/* Stall reasons of sampled warps, and the source lines they belong to. */
#include "analysis/report_page.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { kinds_shown = 10, instructions_shown = 3 };

static double of(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : 0;
}

void page_path(struct bytes *out, const char *path)
{
    for (const char *at = path; *at;) {
        size_t size = strcspn(at, "|");
        text_escape(out, at, size);
        at += size;
        if (*at) {
            bytes_append_text(out, " > ");
            at++;
        }
    }
}

/* Rate in samples per second and SM while kernels ran; 0: unknown. */
static double sample_rate(const struct analysis *analysis)
{
    double sm_seconds = 0;
    for (size_t i = 0; i < analysis->device_count; i++) {
        const struct device_info *device = session_device(analysis->model, analysis->devices[i].device);
        if (!device || device->multiprocessors == ID_UNKNOWN)
            return 0;
        sm_seconds += (double)device->multiprocessors * (double)analysis->devices[i].compute_ns / 1e9;
    }
    return sm_seconds > 0 ? (double)analysis->stalls.total.samples / sm_seconds : 0;
}

/* The share of the run in which samples were taken, if sampling was off at times; NaN: there is no record that it
 * was. */
static double sampled_share(const struct analysis *analysis)
{
    for (size_t i = 0; i < analysis->deep.window_use_count; i++)
        if (!strcmp(analysis->deep.windows[i].source, "pc_sampling") && analysis->wall_ns > 0)
            return (double)analysis->deep.windows[i].covered_ns / (double)analysis->wall_ns;
    return (double)NAN;
}

static void samples_line(struct page *page)
{
    const struct analysis *analysis = page->analysis;
    const struct stalls *stalls = &analysis->stalls;
    const struct session_deep *deep = &analysis->model->deep;
    struct page_list list = page_list_start(page, 3, "");
    page_list_add(&list, "%s samples", quantity_count(stalls->total.samples).text);
    if (deep->sampling_count) {
        const struct sampling_config *config = &deep->sampling[0];
        struct bytes mode = {0};
        text_escape(&mode, config->mode, strlen(config->mode));
        if (config->period_cycles != CELL_UNKNOWN)
            page_list_add(&list, "%s, one in %s cycles", *config->mode ? bytes_text(&mode) : "mode not recorded",
                          quantity_count((uint64_t)config->period_cycles).text);
        bytes_free(&mode);
    }
    double rate = sample_rate(analysis);
    if (rate >= 1)
        page_list_add(&list, "%s a second and SM while kernels ran", quantity_count((uint64_t)rate).text);
    double share = sampled_share(analysis);
    if (isfinite(share))
        page_list_add(&list, "taken in %s of the run", quantity_percent(share).text);
    if (stalls->undecided == stalls->total.samples)
        page_list_add(&list, "not attributed to executions");
    else
        page_list_add(&list, "%s attributed with certainty",
                      quantity_percent(of(stalls->certain, stalls->total.samples)).text);
    page_list_end(&list);
}

/* The bar is shortened to leave room for the words. */
static void kind_line(struct page *page, const struct stall_kind *kind, uint64_t samples)
{
    enum { name_columns = 19, words_columns = 48, used = 3 + name_columns + 1 + 7 + 2, bar_max = 16, bar_min = 5 };
    double fraction = of(samples, page->analysis->stalls.total.samples);
    size_t cells = page->columns > used + 2 + words_columns ? page->columns - used - 2 - words_columns : 0;
    cells = cells > bar_max ? bar_max : cells < bar_min ? 0 : cells;
    struct bytes name = {0}, bar = {0};
    text_cut(&name, kind->name, strlen(kind->name), page->form == PAGE_MARKED ? 0 : name_columns);
    if (page->form == PAGE_MARKED) {
        page_bar_row(page, bytes_text(&name), fraction, "", kind->words);
        bytes_free(&name);
        return;
    }
    text_bar(&bar, fraction, (unsigned)cells);
    bytes_append_format(page->out, "   %s%*s %7s", bytes_text(&name),
                        (int)(name_columns - text_columns(name.data, name.size)), "", quantity_percent(fraction).text);
    if (bar.size || *kind->words)
        bytes_append_format(page->out, "  %s", bytes_text(&bar));
    if (*kind->words) {
        size_t gap = cells ? cells - text_columns(bar.data, bar.size) + 2 : 0;
        page_indent(page, gap);
        page_wrapped(page, used + (cells ? cells + 2 : 0), kind->words);
    } else {
        bytes_append_char(page->out, '\n');
    }
    bytes_free(&name);
    bytes_free(&bar);
}

static void kind_lines(struct page *page)
{
    const struct stalls *stalls = &page->analysis->stalls;
    struct stall_profile left = stalls->total;
    for (unsigned shown = 0; shown < kinds_shown || page->is_wide; shown++) {
        uint64_t samples;
        unsigned kind = stall_profile_top(stalls, &left, &samples);
        enum stall_family family = stalls->kinds[kind].family;
        if (!samples || family == STALL_ISSUED || family == STALL_READY)
            break;
        kind_line(page, &stalls->kinds[kind], samples);
        left.by_kind[kind] = 0;
    }
    /* Kinds that are not stalls are listed separately below. */
    for (unsigned kind = 0; kind < stalls->kind_count; kind++)
        if (stalls->kinds[kind].family <= STALL_READY && left.by_kind[kind])
            kind_line(page, &stalls->kinds[kind], left.by_kind[kind]);
}

/* "long_scoreboard 45 %": the kind's share of these samples. */
static void stall_text(struct bytes *out, const struct stalls *stalls, unsigned kind, double share)
{
    text_escape(out, stalls->kinds[kind].name, strlen(stalls->kinds[kind].name));
    bytes_append_format(out, " %s", quantity_percent(share).text);
}

/* Without --wide the names need the space of a second reason. */
static struct table profile_table(const struct page *page)
{
    unsigned columns = page->is_wide ? 6 : 5;
    return (struct table){.columns = columns, .stretch = columns - 1, .left = 7u << 3, .drop = {2}};
}

static void profile_cells(struct table *table, const struct stalls *stalls, const struct stall_profile *profile)
{
    struct stall_profile left = *profile;
    struct bytes text = {0};
    table_cell(table, quantity_count(profile->samples).text);
    table_cell(table, quantity_percent(of(profile->samples, stalls->total.samples)).text);
    table_cell(table, quantity_percent(of(profile->by_kind[0], profile->samples)).text);
    for (unsigned i = 4; i < table->columns; i++) {
        uint64_t samples;
        unsigned kind = stall_profile_top(stalls, &left, &samples);
        bytes_clear(&text);
        if (samples && stalls->kinds[kind].family != STALL_ISSUED)
            stall_text(&text, stalls, kind, of(samples, profile->samples));
        table_cell_bytes(table, text.data, text.size);
        left.by_kind[kind] = 0;
    }
    table->text.failed = table->text.failed || text.failed;
    bytes_free(&text);
}

static void profile_heads(struct table *table, const char *last)
{
    const char *const heads[] = {"samples", "share", "issued", "mostly", "then"};
    for (unsigned i = 0; i + 1 < table->columns; i++)
        table_cell(table, heads[i]);
    table_cell(table, last);
}

void page_function_name(struct bytes *out, const char *name, uint32_t function_id, size_t columns)
{
    if (name)
        text_kernel_name(out, name, strlen(name), columns);
    else
        bytes_append_format(out, "function %u, name not recorded", function_id);
}

static void function_table(struct page *page)
{
    const struct stalls *stalls = &page->analysis->stalls;
    struct table table = profile_table(page);
    table.has_kernel_names = true;
    profile_heads(&table, "function");
    size_t shown = stalls->function_count < page->top ? stalls->function_count : page->top;
    for (size_t i = 0; i < shown; i++) {
        const struct function_stalls *function = &stalls->functions[i];
        struct bytes name = {0};
        profile_cells(&table, stalls, &function->profile);
        page_function_name(&name, function_name(page->analysis->model, function->function_id), function->function_id,
                           0);
        table_cell_bytes(&table, name.data, name.size);
        table.text.failed = table.text.failed || name.failed;
        bytes_free(&name);
    }
    table_print(&table, page);
    if (shown < stalls->function_count)
        bytes_append_format(page->out, "   and %zu more\n", stalls->function_count - shown);
}

static void scope_table(struct page *page)
{
    const struct stalls *stalls = &page->analysis->stalls;
    if (!stalls->scope_count || (stalls->scope_count == 1 && !stalls->scopes[0].path_id))
        return;
    struct table table = profile_table(page);
    profile_heads(&table, "scope");
    size_t shown = stalls->scope_count < page->top ? stalls->scope_count : page->top;
    for (size_t i = 0; i < shown; i++) {
        const struct scope_stalls *scope = &stalls->scopes[i];
        const char *path = session_text(page->analysis->model, DICTIONARY_SCOPE_NAME, scope->path_id);
        struct bytes text = {0};
        profile_cells(&table, stalls, &scope->profile);
        if (path)
            page_path(&text, path);
        else
            bytes_append_text(&text, scope->path_id ? "(name not recorded)" : "(no scope known)");
        table_cell_bytes(&table, text.data, text.size);
        table.text.failed = table.text.failed || text.failed;
        bytes_free(&text);
    }
    table_print(&table, page);
}

static const struct session_loss *loss_find(const struct session_model *model, const char *reason)
{
    for (size_t i = 0; i < model->loss_count; i++)
        if (!strcmp(model->losses[i].reason, reason))
            return &model->losses[i];
    return NULL;
}

static bool is_sampling(const char *engine)
{
    return !strcmp(engine, "PcSampling") || !strcmp(engine, "Deep");
}

/* Also true if sampling failed and its grant was withdrawn. */
static bool was_sampling(const struct session_model *model)
{
    return is_sampling(model->job.engine) ||
           (is_sampling(model->job.requested_engine) && loss_find(model, "pc_sampling_failed"));
}

/* The GPU's buffer or the recorder ran out of room for samples. */
static bool has_lost_samples(const struct session_model *model)
{
    static const char *const reasons[] = {"pc_buffer_full", "pc_samples_dropped", "pc_samples_unread", "pc_table_full"};
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (loss_find(model, reasons[i]))
            return true;
    return false;
}

/* PC sampling was on but took no samples, which differs from having no stalls. */
static void no_sample_line(struct page *page)
{
    const struct session_model *model = page->analysis->model;
    const struct session_loss *failure = loss_find(model, "pc_sampling_failed");
    bool is_lost = has_lost_samples(model);
    struct bytes line = {0};
    bytes_append_format(&line, "%s in %s of kernel time",
                        is_lost   ? "all samples were lost"
                        : failure ? "no sample could be taken"
                                  : "no sample was taken",
                        quantity_time((double)page->analysis->kernel_ns).text);
    if (model->deep.sampling_count && model->deep.sampling[0].period_cycles != CELL_UNKNOWN)
        bytes_append_format(&line, " at one in %s cycles",
                            quantity_count((uint64_t)model->deep.sampling[0].period_cycles).text);
    if (is_lost)
        bytes_append_text(&line, "; a lower --pc-rate keeps some");
    else if (!failure)
        bytes_append_text(&line, "; a longer run or a higher --pc-rate takes some");
    page_note(page, bytes_text(&line));
    page->out->failed |= line.failed;
    bytes_free(&line);
    if (!is_lost && failure && *failure->cause)
        page_line(page, "because ", failure->cause);
}

void section_stalls(struct page *page)
{
    const struct stalls *stalls = &page->analysis->stalls;
    if (!stalls->row_count && !was_sampling(page->analysis->model))
        return;
    page_title(page, "STALLS");
    bytes_append_char(page->out, '\n');
    if (!stalls->row_count) {
        no_sample_line(page);
        return;
    }
    samples_line(page);
    kind_lines(page);
    function_table(page);
    scope_table(page);
}

void page_place(struct bytes *out, const char *file, uint32_t line, size_t columns)
{
    const char *slash = strrchr(file, '/');
    char number[16];
    size_t size = (size_t)snprintf(number, sizeof number, ":%u", line);
    file = slash && slash[1] ? slash + 1 : file;
    text_cut(out, file, strlen(file), columns > size + 1 ? columns - size : 0);
    bytes_append_text(out, number);
}

static int place_compare(const void *left, const void *right)
{
    const struct code_place *const *a = left, *const *b = right;
    if ((*a)->samples != (*b)->samples)
        return (*a)->samples > (*b)->samples ? -1 : 1;
    return (*a)->pc_offset < (*b)->pc_offset ? -1 : (*a)->pc_offset > (*b)->pc_offset;
}

/* If the instruction leaves no room, the place where it was inlined is on the next line: line numbers are never cut. */
static void instruction_line(struct page *page, const struct code_place *place, const char *share)
{
    enum { lead = 16 };
    struct bytes text = {0}, caller = {0};
    bytes_append_format(page->out, "     %9s  ", share);
    bytes_append_format(&text, "%05x  %s", place->pc_offset, *place->sass ? place->sass : "(code not known)");
    size_t columns = lead + text_columns(text.data, text.size);
    text_cut(page->out, text.data, text.size, page->is_wide ? 0 : page->columns - lead);
    if (*place->called_from) {
        bytes_append_text(&caller, "inlined at ");
        text_escape(&caller, place->called_from, strlen(place->called_from));
        bool is_beside = page->is_wide || columns + 3 + text_columns(caller.data, caller.size) <= page->columns;
        if (is_beside) {
            bytes_append_format(page->out, "   %s\n", bytes_text(&caller));
        } else {
            bytes_append_char(page->out, '\n');
            page_indent(page, lead + 7);
            page_wrapped(page, lead + 7, bytes_text(&caller));
        }
    } else {
        bytes_append_char(page->out, '\n');
    }
    page->out->failed = page->out->failed || text.failed || caller.failed;
    bytes_free(&text);
    bytes_free(&caller);
}

/* The line's instructions, most samples first. */
static void instruction_lines(struct page *page, const struct hot_line *line)
{
    const struct analysis *analysis = page->analysis;
    const struct code_place **order = malloc(line->place_count * sizeof *order);
    if (!order) {
        page->out->failed = true;
        return;
    }
    for (size_t i = 0; i < line->place_count; i++)
        order[i] = &analysis->code.places[line->place_first + i];
    qsort(order, line->place_count, sizeof *order, place_compare);
    size_t limit = page->is_wide && page->form == PAGE_TEXT ? line->place_count : instructions_shown;
    for (size_t i = 0; i < line->place_count && i < limit && order[i]->samples; i++) {
        const struct code_place *place = order[i];
        instruction_line(page, place, quantity_percent(of(place->samples, analysis->stalls.total.samples)).text);
    }
    free(order);
}

/* Prints place, function and as many reasons as fit, the first one on the next line if necessary: neither place nor
 * reason is cut. */
static void hot_line_head(struct page *page, const struct hot_line *line, size_t lead)
{
    enum { name_most = 40, name_least = 16 };
    const struct analysis *analysis = page->analysis;
    const struct hot_function *function = &analysis->code.functions[line->function];
    struct bytes text = {0}, reason = {0};
    char offset[24] = "";
    size_t room = page->columns - lead;
    if (line->line) {
        page_place(&text, line->file, line->line, 0);
        bytes_append_text(&text, "  ");
    } else {
        snprintf(offset, sizeof offset, " + 0x%x", analysis->code.places[line->place_first].pc_offset);
    }
    size_t used = text_columns(text.data, text.size) + strlen(offset);
    size_t name_room = room > used + name_least ? room - used : name_least;
    name_room = name_room > name_most ? name_most : name_room;
    page_function_name(&text, function->name, function->function_id, page->is_wide ? 0 : name_room);
    bytes_append_text(&text, offset);
    size_t at = text_columns(text.data, text.size);
    bytes_append(page->out, text.data, text.size);
    for (unsigned i = 0; i < line->stall_count; i++) {
        bytes_clear(&reason);
        stall_text(&reason, &analysis->stalls, line->stalls[i].kind, of(line->stalls[i].samples, line->samples));
        size_t width = 2 + text_columns(reason.data, reason.size);
        bool has_room = page->is_wide || at + width <= room;
        if (i && !has_room)
            break;
        if (!has_room) {
            bytes_append_char(page->out, '\n');
            page_indent(page, lead);
            at = 0;
        }
        bytes_append_format(page->out, "%s%s", i ? ", " : has_room ? "  " : "", bytes_text(&reason));
        at += width;
    }
    page->out->failed |= text.failed || reason.failed;
    bytes_free(&text);
    bytes_free(&reason);
}

static void hot_line_print(struct page *page, const struct hot_line *line)
{
    enum { lead = 12 };
    bytes_append_format(page->out, "   %7s  ",
                        quantity_percent(of(line->samples, page->analysis->stalls.total.samples)).text);
    hot_line_head(page, line, lead);
    bytes_append_char(page->out, '\n');
    if (line->source) {
        const char *source = line->source + strspn(line->source, " \t");
        struct bytes text = {0};
        page_indent(page, lead);
        text_cut(&text, source, strlen(source), page->is_wide ? 0 : page->columns - lead);
        page_styled(page, STYLE_DIM, bytes_text(&text));
        bytes_append_char(page->out, '\n');
        page->out->failed |= text.failed;
        bytes_free(&text);
    }
    instruction_lines(page, line);
}

/* Why lines or instructions are missing in the lines shown, once per function. */
static void code_problems(struct page *page, size_t shown)
{
    const struct hot_code *code = &page->analysis->code;
    bool has_raw = false;
    for (size_t i = 0; i < shown; i++) {
        const struct hot_function *function = &code->functions[code->lines[i].function];
        bool is_first = *function->problem != '\0';
        for (size_t k = 0; k < i && is_first; k++)
            is_first = code->lines[k].function != code->lines[i].function;
        has_raw = has_raw || code->places[code->lines[i].place_first].is_raw;
        if (!is_first)
            continue;
        struct bytes text = {0};
        page_function_name(&text, function->name, function->function_id, 40);
        bytes_append_text(&text, ": ");
        text_escape(&text, function->problem, strlen(function->problem));
        page_note(page, bytes_text(&text));
        bytes_free(&text);
    }
    if (has_raw)
        page_line(page, "instructions are raw words: ",
                  code->lookup.effort == CODE_TOOLS ? "nvdisasm was not found; install it or set GPUFL_NVDISASM"
                                                    : "`gpufl report` shows their text where nvdisasm is installed");
}

void section_code(struct page *page)
{
    const struct hot_code *code = &page->analysis->code;
    size_t shown = 0;
    while (shown < code->line_count && shown < page->top && code->lines[shown].samples)
        shown++;
    if (!shown)
        return;
    page_title(page, "HOT CODE");
    bytes_append_text(page->out, "   share of all samples\n");
    for (size_t i = 0; i < shown; i++)
        hot_line_print(page, &code->lines[i]);
    code_problems(page, shown);
}
