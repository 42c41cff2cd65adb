/* SPDX-License-Identifier: Apache-2.0 */
/* A comparison as JSON and as text.
 *
 *   compare_version 1
 *   base, new       session_id app host start_ns wall_ns kernels kernel_ns busy_ns kernel_times_missing lost
 *                   is_complete; kernel_times_missing: why kernels, kernel_ns and busy_ns are null, null where they are not
 *                   common_share: what kernels of both take of its kernel time, null where not both have some
 *   threshold       as a fraction
 *   regressions, is_total_regression: null where there is no verdict
 *   no_verdict      why: "times missing", "not comparable", "incomplete", and no_verdict_reason a sentence; else null
 *   kernels         [{name verdict is_regression change_ns share_of_change median_ratio base {..} new {..}}], largest
 *                   change first; a side: count total_ns mean_ns median_ns p25_ns p75_ns p90_ns p99_ns min_ns max_ns,
 *                   null where it has none; empty where a session has no kernel times
 *   scopes          the same with path instead of name, wall time, and gpu_ns in each side */
#include "analysis/compare.h"
#include "analysis/report_json.h"
#include "base/user_time.h"

#include <math.h>
#include <stdio.h>

/* The session's refused request for kernel records, which are refused when counters need tracing paused; NULL: none. */
static const struct session_capability *refusal_find(const struct session_model *model)
{
    for (size_t i = 0; i < model->capability_count; i++)
        if (!strcmp(model->capabilities[i].feature, "kernel_events") &&
            !strcmp(model->capabilities[i].status, "skipped"))
            return &model->capabilities[i];
    return NULL;
}

/* A replayed kernel runs alone and with what counting it costs: its duration is not what the program saw. */
static bool kernels_replayed(const struct session_model *model)
{
    return model->overhead.is_known && model->overhead.user_ns[USER_TIME_REPLAY] > 0;
}

bool kernel_times_missing(const struct analysis *analysis, struct bytes *why)
{
    const struct session_model *model = analysis->model;
    const struct session_capability *refusal = refusal_find(model);
    bool is_counted = model->deep.untimed_count > 0, is_replayed = kernels_replayed(model);
    if (is_replayed && why)
        bytes_append_text(why, "kernels were replayed for counters");
    if (is_replayed)
        return true;
    if (model->kernels.count || (analysis->has_kernel_engine && !is_counted && !refusal))
        return false;
    if (!why)
        return true;
    if (is_counted) {
        bytes_append_text(why, "kernels were counted, not timed");
        return true;
    }
    const char *words = *model->job.engine ? model->job.engine : "unknown";
    if (analysis->has_kernel_engine)
        words = *refusal->message ? refusal->message : "refused";
    bytes_append_text(why, analysis->has_kernel_engine ? "not recorded (" : "not recorded (engine ");
    text_escape(why, words, strlen(words));
    bytes_append_char(why, ')');
    return true;
}

static void side_missing(const struct analysis *analysis, struct bytes *why)
{
    if (!kernel_times_missing(analysis, why) && !analysis->model->kernels.count)
        bytes_append_text(why, "no kernel ran");
}

void compare_missing(const struct comparison *comparison, struct bytes *out)
{
    struct bytes base = {0}, fresh = {0};
    side_missing(comparison->base, &base);
    side_missing(comparison->fresh, &fresh);
    if (base.size && fresh.size && !strcmp(bytes_text(&base), bytes_text(&fresh)))
        bytes_append_format(out, "base and new: %s", bytes_text(&base));
    else if (base.size && fresh.size)
        bytes_append_format(out, "base: %s; new: %s", bytes_text(&base), bytes_text(&fresh));
    else if (base.size || fresh.size)
        bytes_append_format(out, base.size ? "base: %s" : "new: %s", bytes_text(base.size ? &base : &fresh));
    out->failed |= base.failed || fresh.failed;
    bytes_free(&base);
    bytes_free(&fresh);
}

void compare_refusal(const struct comparison *comparison, struct bytes *out)
{
    bool is_base_whole = session_is_complete(comparison->base->model);
    bool is_fresh_whole = session_is_complete(comparison->fresh->model);
    switch (comparison->verdict) {
    case COMPARE_JUDGED:
        break;
    case COMPARE_TIMES_MISSING:
        bytes_append_text(out, "kernel times are missing (");
        compare_missing(comparison, out);
        bytes_append_char(out, ')');
        break;
    case COMPARE_UNRELATED:
        bytes_append_format(
            out,
            "the sessions are not comparable: the kernels in both take %.0f %% of the kernel time of base "
            "and %.0f %% of new",
            comparison->base_common * 100, comparison->fresh_common * 100);
        break;
    case COMPARE_INCOMPLETE:
        bytes_append_format(out, "%s not complete",
                            is_base_whole    ? "new is"
                            : is_fresh_whole ? "base is"
                                             : "base and new are");
        break;
    }
}

static void side_json(struct bytes *out, const char *key, const struct compared_side *side, bool is_scope)
{
    json_key(out, key);
    if (!side->duration.count) {
        json_text(out, NULL);
        return;
    }
    bytes_append_char(out, '{');
    member_uint(out, "count", side->duration.count);
    member_int(out, "total_ns", side->duration.total);
    member_double(out, "mean_ns", side->duration.mean);
    member_int(out, "median_ns", side->duration.p50);
    member_int(out, "p25_ns", side->p25_ns);
    member_int(out, "p75_ns", side->p75_ns);
    member_int(out, "p90_ns", side->duration.p90);
    member_int(out, "p99_ns", side->duration.p99);
    member_int(out, "min_ns", side->duration.min);
    member_int(out, "max_ns", side->duration.max);
    if (is_scope)
        member_int(out, "gpu_ns", side->gpu_ns);
    bytes_append_char(out, '}');
}

static void path_json(struct bytes *out, const char *path)
{
    json_key(out, "path");
    if (!path) {
        json_text(out, NULL);
        return;
    }
    struct bytes text = {0};
    page_path(&text, path);
    json_string(out, text.data, text.size);
    out->failed |= text.failed;
    bytes_free(&text);
}

static void rows_json(struct bytes *out, const char *key, const struct compared_row *rows, size_t count, bool is_scope)
{
    list_open(out, key);
    for (size_t i = 0; i < count; i++) {
        const struct compared_row *row = &rows[i];
        element(out, '{');
        if (is_scope)
            path_json(out, row->name);
        else
            member_text(out, "name", row->name);
        member_text(out, "verdict", change_verdict_name(row->verdict));
        member_bool(out, "is_regression", row->is_regression);
        member_int(out, "change_ns", row->change_ns);
        member_double(out, "share_of_change", row->share_of_change);
        member_double(out, "median_ratio", row->median_ratio);
        side_json(out, "base", &row->base, is_scope);
        side_json(out, "new", &row->fresh, is_scope);
        bytes_append_char(out, '}');
    }
    bytes_append_char(out, ']');
}

/* TIME_UNKNOWN: not recorded. */
static int64_t wall_time(const struct analysis *analysis)
{
    return analysis->start_ns == TIME_UNKNOWN ? TIME_UNKNOWN : analysis->wall_ns;
}

static int64_t busy_time(const struct analysis *analysis)
{
    return kernel_times_missing(analysis, NULL) ? TIME_UNKNOWN : analysis_busy_ns(analysis);
}

static int64_t kernel_time(const struct analysis *analysis)
{
    return kernel_times_missing(analysis, NULL) ? TIME_UNKNOWN : analysis->kernel_ns;
}

static void session_json(struct bytes *out, const char *key, const struct analysis *analysis, double common_share)
{
    const struct session_model *model = analysis->model;
    bool is_exact;
    uint64_t lost = session_lost(model, &is_exact);
    json_key(out, key);
    bytes_append_char(out, '{');
    member_text(out, "session_id", model->job.session_id);
    member_text(out, "app", model->job.app);
    member_text(out, "host", model->job.hostname);
    member_int(out, "start_ns", analysis->start_ns);
    member_int(out, "wall_ns", wall_time(analysis));
    struct bytes why = {0};
    bool is_missing = kernel_times_missing(analysis, &why);
    member_int(out, "kernels", is_missing ? CELL_UNKNOWN : (int64_t)model->kernels.count);
    member_int(out, "kernel_ns", kernel_time(analysis));
    member_int(out, "busy_ns", busy_time(analysis));
    member_text(out, "kernel_times_missing", bytes_text(&why));
    out->failed |= why.failed;
    bytes_free(&why);
    member_uint(out, "lost", lost);
    member_bool(out, "lost_is_exact", is_exact);
    member_bool(out, "is_complete", session_is_complete(model));
    member_double(out, "common_share", common_share);
    bytes_append_char(out, '}');
}

/* Both are null if there is a verdict. */
static void refusal_json(struct bytes *out, const struct comparison *comparison)
{
    static const char *const words[] = {NULL, "times missing", "not comparable", "incomplete"};
    struct bytes why = {0};
    compare_refusal(comparison, &why);
    member_text(out, "no_verdict", words[comparison->verdict]);
    member_text(out, "no_verdict_reason", bytes_text(&why));
    out->failed |= why.failed;
    bytes_free(&why);
}

void compare_json(const struct comparison *comparison, struct bytes *out)
{
    bytes_append_text(out, "{\"compare_version\":1");
    bool is_judged = comparison->verdict == COMPARE_JUDGED;
    session_json(out, "base", comparison->base, comparison->base_common);
    session_json(out, "new", comparison->fresh, comparison->fresh_common);
    member_double(out, "threshold", comparison->threshold);
    refusal_json(out, comparison);
    member_int(out, "regressions", is_judged ? (int64_t)comparison->regressions : CELL_UNKNOWN);
    json_key(out, "is_total_regression");
    if (is_judged)
        json_bool(out, comparison->is_total_regression);
    else
        json_text(out, NULL);
    rows_json(out, "kernels", comparison->kernels, comparison->kernel_count, false);
    rows_json(out, "scopes", comparison->scopes, comparison->scope_count, true);
    bytes_append_char(out, '}');
}

struct signed_text {
    char text[40];
};

static struct signed_text signed_time(int64_t ns)
{
    struct signed_text result;
    snprintf(result.text, sizeof result.text, "%s%s",
             ns < 0 ? "-"
             : ns   ? "+"
                    : "",
             quantity_time(fabs((double)ns)).text);
    return result;
}

/* "+12.5 %", "-3.1 %", "–" */
static struct signed_text ratio_text(double ratio)
{
    struct signed_text result = {"–"};
    if (isfinite(ratio))
        snprintf(result.text, sizeof result.text, "%+.1f %%", (ratio - 1) * 100);
    return result;
}

enum { what_columns = 14, cell_columns = 10 };

/* Padded by columns, not by bytes: "–" has three bytes. */
static void total_cell(struct page *page, const char *text)
{
    size_t columns = text_columns(text, strlen(text));
    bytes_append_format(page->out, " %*s%s", columns < cell_columns ? (int)(cell_columns - columns) : 0, "", text);
}

/* note: why a time is unknown. */
static void total_line(struct page *page, const char *what, int64_t base_ns, int64_t fresh_ns, const char *note)
{
    bool has_base = base_ns != TIME_UNKNOWN, has_fresh = fresh_ns != TIME_UNKNOWN;
    double ratio = has_base && has_fresh && base_ns > 0 ? (double)fresh_ns / (double)base_ns : (double)NAN;
    bytes_append_format(page->out, "   %-*s", what_columns, what);
    total_cell(page, has_base ? quantity_time((double)base_ns).text : "–");
    total_cell(page, has_fresh ? quantity_time((double)fresh_ns).text : "–");
    total_cell(page, ratio_text(ratio).text);
    if (*note)
        bytes_append_text(page->out, "  ");
    page_wrapped(page, 3 + what_columns + 3 * (1 + cell_columns) + 2, note); /* and LF */
}

static void totals_print(struct page *page, const struct comparison *comparison)
{
    const struct analysis *base = comparison->base, *fresh = comparison->fresh;
    struct bytes why = {0};
    compare_missing(comparison, &why);
    bytes_append_format(page->out, "   %-*s %*s %*s %*s\n", what_columns, "", cell_columns, "base", cell_columns, "new",
                        cell_columns, "change");
    total_line(page, "wall time", wall_time(base), wall_time(fresh), "");
    total_line(page, "GPU busy", busy_time(base), busy_time(fresh), bytes_text(&why));
    total_line(page, "kernel time", kernel_time(base), kernel_time(fresh), bytes_text(&why));
    page->out->failed |= why.failed;
    bytes_free(&why);
}

static void row_cells(struct table *table, const struct compared_row *row, bool is_kernel)
{
    bool has_base = row->base.duration.count, has_fresh = row->fresh.duration.count;
    table_cell(table, signed_time(row->change_ns).text);
    table_cell(table, ratio_text(row->median_ratio).text);
    table_cell(table, has_base ? quantity_time((double)row->base.duration.p50).text : "–");
    table_cell(table, has_fresh ? quantity_time((double)row->fresh.duration.p50).text : "–");
    table_cell(table, has_base ? quantity_count(row->base.duration.count).text : "–");
    table_cell(table, has_fresh ? quantity_count(row->fresh.duration.count).text : "–");
    table_cell(table, row->is_regression            ? "SLOWER"
                      : row->verdict == CHANGE_NONE ? ""
                                                    : change_verdict_name(row->verdict));
    struct bytes name = {0};
    if (row->name && is_kernel)
        text_escape(&name, row->name, strlen(row->name));
    else if (row->name)
        page_path(&name, row->name);
    else
        bytes_append_text(&name, "(name not recorded)");
    table->text.failed |= name.failed;
    table_cell_bytes(table, name.data, name.size);
    bytes_free(&name);
}

static void rows_print(struct page *page, const char *title, const struct compared_row *rows, size_t count,
                       bool is_kernels)
{
    static const char *const heads[] = {"change", "median", "base", "new", "base calls", "new calls", "", "name"};
    enum { columns = sizeof heads / sizeof *heads };
    if (!count)
        return;
    page_title(page, title);
    bytes_append_char(page->out, '\n');
    struct table table = {.columns = columns,
                          .stretch = columns - 1,
                          .left = 3u << (columns - 2),
                          .has_kernel_names = is_kernels,
                          .drop = {4, 5, 2, 3}};
    table_heads(&table, heads);
    size_t shown = count < page->top ? count : page->top;
    /* Regressions are shown even beyond the row limit. */
    for (size_t i = 0; i < count; i++)
        if (i < shown || rows[i].is_regression)
            row_cells(&table, &rows[i], is_kernels);
    table_print(&table, page);
    if (shown < count)
        bytes_append_format(page->out, "   %zu in all, largest change first\n", count);
}

/* Before the numbers, which must not be read as a result. */
static void refusal_print(struct page *page, enum compare_verdict verdict)
{
    static const char *const refusals[] = {"", " no verdict: kernel times are missing",
                                           " no verdict: the sessions are not comparable",
                                           " no verdict: a session is not complete"};
    page_styled(page, STYLE_ALARM, refusals[verdict]);
    bytes_append_text(page->out, "\n\n");
}

static void verdict_print(struct page *page, const struct comparison *comparison)
{
    char line[96];
    snprintf(line, sizeof line, " %llu regression%s (slower by more than %g %% and more than noise)",
             (unsigned long long)comparison->regressions, comparison->regressions == 1 ? "" : "s",
             comparison->threshold * 100);
    bytes_append_char(page->out, '\n');
    if (comparison->regressions)
        page_styled(page, STYLE_ALARM, line);
    else
        bytes_append_text(page->out, line);
    bytes_append_char(page->out, '\n');
}

static void side_print(struct page *page, const struct analysis *analysis, const char *lead)
{
    page_identity(page, analysis, lead, true);
    page_completeness(page, analysis, 3);
}

void compare_text(const struct comparison *comparison, const struct report_options *options, struct bytes *out)
{
    struct page page = page_make(comparison->fresh, options, out);
    bool is_judged = comparison->verdict == COMPARE_JUDGED;
    if (!is_judged)
        refusal_print(&page, comparison->verdict);
    side_print(&page, comparison->base, "base: ");
    side_print(&page, comparison->fresh, "new: ");
    bytes_append_char(out, '\n');
    totals_print(&page, comparison);
    if (!comparison->has_kernel_times) {
        page_title(&page, "KERNELS");
        bytes_append_text(out, "   not compared\n");
    }
    rows_print(&page, "KERNELS", comparison->kernels, comparison->kernel_count, true);
    rows_print(&page, "SCOPES", comparison->scopes, comparison->scope_count, false);
    if (is_judged)
        verdict_print(&page, comparison);
}
