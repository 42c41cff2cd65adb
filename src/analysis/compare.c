/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/compare.h"
#include "analysis/report_page.h"

#include <math.h>
#include <stdlib.h>

/* Values of one side, each with the index of its row. */
struct side_values {
    uint32_t *rows; /* from 0 */
    int64_t *values;
    size_t count;
};

static void values_free(struct side_values *values)
{
    free(values->rows);
    free(values->values);
}

/* known[id]: the row of a dictionary's entry, from 1; 0: not looked up yet. */
static uint32_t row_of(struct intern *names, const struct session_model *model, enum dictionary dictionary, uint32_t id,
                       uint32_t *known, bool *has_failed)
{
    uint32_t count = model->dictionaries[dictionary].count;
    if (id < count && known[id])
        return known[id] - 1;
    const char *text = session_text(model, dictionary, id);
    uint32_t row = intern_id(names, text ? text : "", text ? strlen(text) : 0, NULL);
    if (!row)
        *has_failed = true;
    else if (id < count)
        known[id] = row;
    return row - 1;
}

static bool values_room(struct side_values *values, size_t count, const struct session_model *model,
                        enum dictionary dictionary, uint32_t **known)
{
    values->rows = malloc((count + 1) * sizeof *values->rows);
    values->values = malloc((count + 1) * sizeof *values->values);
    *known = calloc((size_t)model->dictionaries[dictionary].count + 1, sizeof **known);
    return values->rows && values->values && *known;
}

static bool kernel_values(struct side_values *values, const struct session_model *model, struct intern *names)
{
    uint32_t *known;
    bool has_failed = !values_room(values, model->kernels.count, model, DICTIONARY_KERNEL, &known);
    for (size_t i = 0; !has_failed && i < model->kernels.count; i++) {
        values->rows[i] = row_of(names, model, DICTIONARY_KERNEL, model->kernels.kernel_id[i], known, &has_failed);
        values->values[i] = model->kernels.duration_ns[i];
    }
    values->count = has_failed ? 0 : model->kernels.count;
    free(known);
    return !has_failed;
}

/* Only entries whose begin and end were recorded have a duration. */
static bool scope_values(struct side_values *values, const struct session_model *model, struct intern *names)
{
    uint32_t *known;
    bool has_failed = !values_room(values, model->scope_count, model, DICTIONARY_SCOPE_NAME, &known);
    for (size_t i = 0; !has_failed && i < model->scope_count; i++) {
        const struct scope_instance *scope = &model->scopes[i];
        if (!scope->path_id || scope->begin_ns == TIME_UNKNOWN || scope->end_ns == TIME_UNKNOWN ||
            scope->end_ns < scope->begin_ns)
            continue;
        values->rows[values->count] = row_of(names, model, DICTIONARY_SCOPE_NAME, scope->path_id, known, &has_failed);
        values->values[values->count++] = scope->end_ns - scope->begin_ns;
    }
    free(known);
    return !has_failed;
}

/* One counting sort into a slice per row; each slice is sorted for exact percentiles. */
static bool side_fill(const struct side_values *values, struct compared_row *rows, size_t row_count, bool is_base)
{
    size_t *slice = calloc(row_count + 2, sizeof *slice);
    int64_t *sorted = malloc((values->count + 1) * sizeof *sorted);
    int64_t *scratch = malloc((values->count + 1) * sizeof *scratch);
    bool is_done = slice && sorted && scratch;
    for (size_t i = 0; is_done && i < values->count; i++)
        slice[values->rows[i] + 1]++;
    for (size_t row = 0; is_done && row <= row_count; row++)
        slice[row + 1] += slice[row];
    for (size_t i = 0; is_done && i < values->count; i++)
        sorted[slice[values->rows[i]]++] = values->values[i];
    for (size_t row = 0; is_done && row < row_count; row++) {
        struct compared_side *side = is_base ? &rows[row].base : &rows[row].fresh;
        /* Filling moved each slice's start to its end. */
        size_t from = row ? slice[row - 1] : 0, count = slice[row] - from;
        side->duration = distribution_of(sorted + from, scratch, count);
        side->p25_ns = nearest_rank(sorted + from, count, 25);
        side->p75_ns = nearest_rank(sorted + from, count, 75);
    }
    free(slice);
    free(sorted);
    free(scratch);
    return is_done;
}

/* Standard error of a median; the spread is estimated from the quartiles, assuming a normal distribution. */
static double median_error(const struct compared_side *side)
{
    double deviation = (double)(side->p75_ns - side->p25_ns) / 1.349;
    return 1.2533 * deviation / sqrt((double)side->duration.count);
}

static bool is_beyond_noise(const struct compared_side *base, const struct compared_side *fresh)
{
    if (base->duration.count == 1 || fresh->duration.count == 1)
        return (double)fresh->duration.min > COMPARE_ONCE_FACTOR * (double)base->duration.max ||
               (double)base->duration.min > COMPARE_ONCE_FACTOR * (double)fresh->duration.max;
    if (base->duration.count < COMPARE_COUNT_MIN || fresh->duration.count < COMPARE_COUNT_MIN)
        return fresh->duration.min > base->duration.max || fresh->duration.max < base->duration.min;
    double delta = (double)fresh->duration.p50 - (double)base->duration.p50;
    double base_error = median_error(base), fresh_error = median_error(fresh);
    return fabs(delta) > 3 * sqrt(base_error * base_error + fresh_error * fresh_error);
}

static enum change_verdict verdict_of(const struct compared_row *row, double threshold)
{
    if (!row->base.duration.count)
        return CHANGE_NEW;
    if (!row->fresh.duration.count)
        return CHANGE_VANISHED;
    double base = (double)row->base.duration.p50, delta = (double)row->fresh.duration.p50 - base;
    if (fabs(delta) <= threshold * base || !is_beyond_noise(&row->base, &row->fresh))
        return CHANGE_NONE;
    return delta > 0 ? CHANGE_SLOWER : CHANGE_FASTER;
}

static int64_t total_of(const struct compared_row *rows, size_t count, bool is_base)
{
    int64_t total = 0;
    for (size_t i = 0; i < count; i++)
        total = sum_saturated(total, is_base ? rows[i].base.duration.total : rows[i].fresh.duration.total);
    return total;
}

static int row_compare(const void *left, const void *right)
{
    const struct compared_row *a = left, *b = right;
    int64_t a_ns = a->change_ns < 0 ? -a->change_ns : a->change_ns;
    int64_t b_ns = b->change_ns < 0 ? -b->change_ns : b->change_ns;
    if (a_ns != b_ns)
        return a_ns > b_ns ? -1 : 1;
    if (!a->name || !b->name)
        return (a->name == NULL) - (b->name == NULL);
    return strcmp(a->name, b->name);
}

/* base_ns, fresh_ns: the totals that a row's weight is a fraction of. */
static void rows_judge(struct comparison *comparison, struct compared_row *rows, size_t count, int64_t base_ns,
                       int64_t fresh_ns)
{
    double changes = 0;
    for (size_t i = 0; i < count; i++) {
        /* Totals are not negative, so their difference fits. */
        rows[i].change_ns = rows[i].fresh.duration.total - rows[i].base.duration.total;
        changes += fabs((double)rows[i].change_ns);
    }
    for (size_t i = 0; i < count; i++) {
        struct compared_row *row = &rows[i];
        bool has_both = row->base.duration.count && row->fresh.duration.count && row->base.duration.p50 > 0;
        row->share_of_change = changes > 0 ? (double)row->change_ns / changes : 0;
        row->median_ratio = has_both ? (double)row->fresh.duration.p50 / (double)row->base.duration.p50 : (double)NAN;
        row->verdict = verdict_of(row, comparison->threshold);
        bool is_heavy = (double)row->base.duration.total >= COMPARE_WEIGHT_MIN * (double)base_ns ||
                        (double)row->fresh.duration.total >= COMPARE_WEIGHT_MIN * (double)fresh_ns;
        row->is_regression = row->verdict == CHANGE_SLOWER && is_heavy;
        comparison->regressions += row->is_regression;
    }
    if (count)
        qsort(rows, count, sizeof *rows, row_compare);
}

static void gpu_fill(struct compared_row *rows, const struct intern *names, const struct analysis *analysis,
                     bool is_base)
{
    if (kernel_times_missing(analysis, NULL))
        return;
    for (size_t i = 1; i < analysis->scope_count; i++) {
        const struct scope_node *node = &analysis->scopes[i];
        const char *path = session_text(analysis->model, DICTIONARY_SCOPE_NAME, node->path_id);
        uint32_t row = path ? intern_find(names, path, strlen(path)) : 0;
        if (row)
            *(is_base ? &rows[row - 1].base.gpu_ns : &rows[row - 1].fresh.gpu_ns) = node->gpu_ns;
    }
}

typedef bool values_fn(struct side_values *values, const struct session_model *model, struct intern *names);

static bool rows_make(const struct comparison *comparison, values_fn *collect, struct intern *names,
                      struct compared_row **rows, size_t *count)
{
    struct side_values base = {0}, fresh = {0};
    bool is_done = collect(&base, comparison->base->model, names) && collect(&fresh, comparison->fresh->model, names);
    *count = names->count;
    *rows = is_done ? calloc(*count + 1, sizeof **rows) : NULL;
    is_done = *rows != NULL;
    for (size_t i = 0; is_done && i < *count; i++) {
        (*rows)[i].name = names->entries[i].size ? names->entries[i].text : NULL;
        (*rows)[i].base.gpu_ns = (*rows)[i].fresh.gpu_ns = TIME_UNKNOWN;
    }
    is_done = is_done && side_fill(&base, *rows, *count, true) && side_fill(&fresh, *rows, *count, false);
    values_free(&base);
    values_free(&fresh);
    return is_done;
}

static bool has_shared_scope(const struct comparison *comparison)
{
    for (size_t i = 0; i < comparison->scope_count; i++)
        if (comparison->scopes[i].base.duration.count && comparison->scopes[i].fresh.duration.count)
            return true;
    return false;
}

/* The fraction of a session's kernel time in kernels that both sessions have. Two kernels without a name are not the
 * same. */
static double common_share(const struct comparison *comparison, bool is_base)
{
    double common = 0, total = 0;
    bool has_common = false;
    for (size_t i = 0; i < comparison->kernel_count; i++) {
        const struct compared_row *row = &comparison->kernels[i];
        double time = (double)(is_base ? row->base.duration.total : row->fresh.duration.total);
        bool is_common = row->name && row->base.duration.count && row->fresh.duration.count;
        has_common |= is_common;
        common += is_common ? time : 0;
        total += time;
    }
    return total > 0 ? common / total : has_common;
}

static enum compare_verdict verdict_find(const struct comparison *comparison, const struct compare_options *options)
{
    const struct analysis *base = comparison->base, *fresh = comparison->fresh;
    bool has_base = base->model->kernels.count != 0, has_fresh = fresh->model->kernels.count != 0;
    if (kernel_times_missing(base, NULL) != kernel_times_missing(fresh, NULL) || has_base != has_fresh ||
        (!has_base && !has_shared_scope(comparison)))
        return COMPARE_TIMES_MISSING;
    /* Before the kernels in common: a damaged session may have lost the names of its kernels. */
    if (!options->allow_incomplete && !(session_is_complete(base->model) && session_is_complete(fresh->model)))
        return COMPARE_INCOMPLETE;
    bool is_unrelated = comparison->base_common < COMPARE_COMMON_MIN && comparison->fresh_common < COMPARE_COMMON_MIN;
    return is_unrelated && !options->allow_unrelated ? COMPARE_UNRELATED : COMPARE_JUDGED;
}

gpufl_status compare_make(struct comparison *comparison, const struct analysis *base, const struct analysis *fresh,
                          const struct compare_options *options)
{
    double threshold = options->threshold;
    memset(comparison, 0, sizeof *comparison);
    comparison->base = base;
    comparison->fresh = fresh;
    comparison->threshold = threshold;
    comparison->has_kernel_times = !kernel_times_missing(base, NULL) && !kernel_times_missing(fresh, NULL);
    if ((comparison->has_kernel_times && !rows_make(comparison, kernel_values, &comparison->kernel_names,
                                                    &comparison->kernels, &comparison->kernel_count)) ||
        !rows_make(comparison, scope_values, &comparison->scope_names, &comparison->scopes, &comparison->scope_count)) {
        compare_free(comparison);
        return GPUFL_E_NO_MEMORY;
    }
    int64_t base_ns = total_of(comparison->kernels, comparison->kernel_count, true);
    int64_t fresh_ns = total_of(comparison->kernels, comparison->kernel_count, false);
    comparison->is_total_regression = base_ns > 0 && (double)fresh_ns > (double)base_ns * (1 + threshold);
    comparison->regressions = comparison->is_total_regression;
    rows_judge(comparison, comparison->kernels, comparison->kernel_count, base_ns, fresh_ns);
    gpu_fill(comparison->scopes, &comparison->scope_names, base, true);
    gpu_fill(comparison->scopes, &comparison->scope_names, fresh, false);
    rows_judge(comparison, comparison->scopes, comparison->scope_count, base->wall_ns, fresh->wall_ns);
    bool has_kernels = base->model->kernels.count && fresh->model->kernels.count;
    comparison->base_common = has_kernels ? common_share(comparison, true) : (double)NAN;
    comparison->fresh_common = has_kernels ? common_share(comparison, false) : (double)NAN;
    comparison->verdict = verdict_find(comparison, options);
    return GPUFL_OK;
}

void compare_free(struct comparison *comparison)
{
    free(comparison->kernels);
    free(comparison->scopes);
    intern_free(&comparison->kernel_names);
    intern_free(&comparison->scope_names);
    memset(comparison, 0, sizeof *comparison);
}

const char *change_verdict_name(enum change_verdict verdict)
{
    static const char *const names[] = {"same", "faster", "slower", "new", "vanished"};
    return names[verdict];
}
