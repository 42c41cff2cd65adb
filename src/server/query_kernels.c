/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of a session by name. */
#include "server/query_work.h"

#include <math.h>
#include <stdlib.h>

enum { page_default = 100, page_max = 1000, bins_max = 64 };
static const char *const orders[] = {"descending", "ascending", NULL};

enum kernel_sort { SORT_TOTAL, SORT_COUNT, SORT_MEAN, SORT_MEDIAN, SORT_P99, SORT_MAX, SORT_NAME };
static const char *const kernel_sorts[] = {"total", "count", "mean", "median", "p99", "max", "name", NULL};

struct kernel_list {
    const struct hotspot **items; /* owned */
    size_t count;
};

static double sort_key(const struct hotspot *hotspot, enum kernel_sort sort)
{
    switch (sort) {
    case SORT_COUNT:
        return (double)hotspot->duration.count;
    case SORT_MEAN:
        return hotspot->duration.mean;
    case SORT_MEDIAN:
        return (double)hotspot->duration.p50;
    case SORT_P99:
        return (double)hotspot->duration.p99;
    case SORT_MAX:
        return (double)hotspot->duration.max;
    default:
        return (double)hotspot->duration.total;
    }
}

static int list_compare(const void *left, const void *right, void *user)
{
    const struct hotspot *a = *(const struct hotspot *const *)left, *b = *(const struct hotspot *const *)right;
    const int *choice = user; /* sort, order */
    int result;
    if (choice[0] == SORT_NAME) {
        result = strcmp(b->name ? b->name : "", a->name ? a->name : "");
    } else {
        double key_a = sort_key(a, (enum kernel_sort)choice[0]), key_b = sort_key(b, (enum kernel_sort)choice[0]);
        result = key_a > key_b ? -1 : key_a < key_b;
    }
    result = choice[1] ? -result : result;
    return result ? result : a->kernel_id < b->kernel_id ? -1 : a->kernel_id > b->kernel_id;
}

/* The source of the durations: every execution, or the store's sums, one per hotspot. */
struct list_source {
    const struct kernel_columns *kernels; /* NULL: sums */
    const uint64_t (*histograms)[STORE_HISTOGRAM_BINS];
};

static void histogram_write(struct bytes *out, const struct hotspot *hotspot, int64_t from_ns, int64_t to_ns,
                            const char *scale, const uint64_t *counts, size_t bins)
{
    element(out, '{');
    member_uint(out, "kernel_id", hotspot->kernel_id);
    member_text(out, "scale", scale);
    member_int(out, "from_ns", from_ns);
    member_int(out, "to_ns", to_ns);
    list_open(out, "counts");
    for (size_t i = 0; i < bins; i++) {
        if (i)
            bytes_append_char(out, ',');
        json_uint(out, counts[i]);
    }
    bytes_append_text(out, "]}");
}

/* The store's bins are powers of two; empty bins at both ends are left out. */
static void sums_write(struct bytes *out, const struct hotspot *hotspot, const uint64_t *counts)
{
    unsigned first = 0, end = STORE_HISTOGRAM_BINS;
    while (first < end && !counts[first])
        first++;
    while (end > first && !counts[end - 1])
        end--;
    int64_t from_ns = first ? INT64_C(1) << (first - 1) : 0, to_ns = end > 1 ? INT64_C(1) << (end - 1) : 1;
    histogram_write(out, hotspot, from_ns, to_ns, "logarithmic", counts + first, end - first);
}

struct list_bins {
    uint32_t kernel_id;
    size_t place; /* index in the page */
    int64_t edges[bins_max + 1];
    uint64_t counts[bins_max];
    bool is_log;
};

static size_t bin_find(const struct list_bins *bins, size_t count, int64_t duration_ns)
{
    size_t low = 0, high = count - 1;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (duration_ns < bins->edges[middle + 1])
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static int slot_compare(const void *left, const void *right)
{
    const struct list_bins *a = left, *b = right;
    return a->kernel_id < b->kernel_id ? -1 : a->kernel_id > b->kernel_id;
}

static int place_compare(const void *left, const void *right)
{
    const struct list_bins *a = left, *b = right;
    return a->place < b->place ? -1 : a->place > b->place;
}

/* Scans all executions once. False: no memory. */
static bool executions_write(struct bytes *out, const struct kernel_columns *kernels,
                             const struct hotspot *const *items, size_t count, size_t bins)
{
    struct list_bins *all = calloc(count + 1, sizeof *all);
    if (!all)
        return false;
    for (size_t i = 0; i < count; i++) {
        const struct distribution *duration = &items[i]->duration;
        all[i].kernel_id = items[i]->kernel_id;
        all[i].place = i;
        all[i].is_log = duration->min > 0 && duration->max / duration->min >= HISTOGRAM_LOG_FACTOR;
        histogram_edges(all[i].edges, bins, duration->min, duration->max, all[i].is_log);
    }
    qsort(all, count, sizeof *all, slot_compare);
    struct list_bins *slot = NULL, wanted = {0};
    for (size_t i = 0; i < kernels->count; i++) {
        /* Executions of one kernel often follow each other. */
        if (!slot || slot->kernel_id != kernels->kernel_id[i]) {
            wanted.kernel_id = kernels->kernel_id[i];
            slot = bsearch(&wanted, all, count, sizeof *all, slot_compare);
        }
        if (slot)
            slot->counts[bin_find(slot, bins, kernels->duration_ns[i])]++;
    }
    qsort(all, count, sizeof *all, place_compare);
    for (size_t i = 0; i < count; i++)
        histogram_write(out, items[i], all[i].edges[0], all[i].edges[bins], all[i].is_log ? "logarithmic" : "linear",
                        all[i].counts, bins);
    free(all);
    return true;
}

/* Writes "histograms" in the order of the kernels. False: no memory. */
static bool histograms_write(struct bytes *out, const struct list_source *source, const struct hotspot *hotspots,
                             const struct hotspot *const *items, size_t count, size_t bins)
{
    bool is_done = true;
    list_open(out, "histograms");
    if (source->kernels)
        is_done = executions_write(out, source->kernels, items, count, bins);
    for (size_t i = 0; !source->kernels && i < count; i++)
        sums_write(out, items[i], source->histograms[items[i] - hotspots]);
    bytes_append_char(out, ']');
    return is_done;
}

/* Writes the requested page. */
static void list_write(struct query_call *call, const struct hotspot *hotspots, size_t count,
                       const struct list_source *source)
{
    int64_t bins = 0;
    const char *text = query_text(call, "q");
    struct query_page page;
    int choice[2] = {SORT_TOTAL, 0};
    if (!query_choice(call, "sort", kernel_sorts, &choice[0]) || !query_choice(call, "order", orders, &choice[1]) ||
        !query_page(call, page_default, page_max, &page) || !query_int(call, "bins", 1, bins_max, &bins))
        return;
    struct kernel_list list = {.items = malloc((count + 1) * sizeof *list.items)};
    if (!list.items) {
        query_fail(call, 503, "no_memory", "no memory to answer");
        return;
    }
    uint64_t calls = 0;
    int64_t total_ns = 0;
    for (size_t i = 0; i < count; i++) {
        if (text && (!hotspots[i].name || !strcasestr(hotspots[i].name, text)))
            continue;
        list.items[list.count++] = &hotspots[i];
        calls += hotspots[i].duration.count;
        total_ns = sum_saturated(total_ns, hotspots[i].duration.total);
    }
    qsort_r(list.items, list.count, sizeof *list.items, list_compare, choice);
    bytes_append_char(&call->out, '{');
    member_bool(&call->out, "is_exact", source->kernels != NULL);
    member_uint(&call->out, "count", calls);
    member_int(&call->out, "total_ns", total_ns);
    list_open(&call->out, "kernels");
    for (size_t i = page.first; i < list.count && i - page.first < page.limit; i++)
        json_hotspot(list.items[i], &call->out);
    bytes_append_char(&call->out, ']');
    size_t shown = page.first < list.count ? list.count - page.first : 0;
    shown = shown < page.limit ? shown : page.limit;
    bool is_done = !bins || histograms_write(&call->out, source, hotspots, list.items + (shown ? page.first : 0), shown,
                                             (size_t)bins);
    query_page_end(call, &page, list.count);
    bytes_append_char(&call->out, '}');
    if (!is_done)
        query_fail(call, 503, "no_memory", "no memory to answer");
    free(list.items);
}

/* Groups fewer rows in the same way: hotspots_make reads only these columns. */
static void filtered_write(struct query_call *call, const struct session_model *model, const struct work_filter *filter)
{
    const struct kernel_columns *all = &model->kernels;
    struct session_model some = *model;
    struct kernel_columns *kernels = &some.kernels;
    struct analysis analysis = {.model = &some};
    *kernels = (struct kernel_columns){.duration_ns = malloc((all->count + 1) * sizeof *kernels->duration_ns),
                                       .kernel_id = malloc((all->count + 1) * sizeof *kernels->kernel_id),
                                       .launch_id = malloc((all->count + 1) * sizeof *kernels->launch_id)};
    bool is_done = kernels->duration_ns && kernels->kernel_id && kernels->launch_id;
    for (size_t i = 0; is_done && i < all->count; i++) {
        if (!work_filter_takes(filter, model, i))
            continue;
        kernels->duration_ns[kernels->count] = all->duration_ns[i];
        kernels->kernel_id[kernels->count] = all->kernel_id[i];
        kernels->launch_id[kernels->count++] = all->launch_id[i];
    }
    if (is_done && hotspots_make(&analysis) == GPUFL_OK)
        list_write(call, analysis.hotspots, analysis.hotspot_count, &(struct list_source){.kernels = kernels});
    else
        query_fail(call, 503, "no_memory", "no memory to answer");
    free(analysis.hotspots);
    free(kernels->duration_ns);
    free(kernels->kernel_id);
    free(kernels->launch_id);
}

/* ---- from the store's sums ---- */

struct rollup_list {
    struct hotspot *items;                        /* owned, with their names */
    uint64_t (*histograms)[STORE_HISTOGRAM_BINS]; /* owned; of each item */
    size_t count, capacity;
    bool has_failed;
};

/* Assumes that durations are evenly distributed within a bin. */
static int64_t histogram_rank(const struct store_kernel *kernel, double fraction)
{
    double rank = fraction * (double)kernel->count, below = 0;
    for (unsigned bin = 0; bin < STORE_HISTOGRAM_BINS; bin++) {
        double here = (double)kernel->histogram[bin];
        if (here > 0 && below + here >= rank) {
            double low = bin ? ldexp(1, (int)bin - 1) : 0, high = bin ? ldexp(1, (int)bin) : 0;
            double value = low + (high - low) * (rank - below) / here;
            value = value > (double)kernel->max_ns ? (double)kernel->max_ns : value;
            return value < (double)kernel->min_ns ? kernel->min_ns : (int64_t)value;
        }
        below += here;
    }
    return kernel->max_ns;
}

static bool take_kernel(void *user, const struct store_kernel *kernel)
{
    struct rollup_list *list = user;
    if (list->count == list->capacity) {
        size_t capacity = list->capacity * 2 + 64;
        struct hotspot *grown = realloc(list->items, capacity * sizeof *grown);
        if (grown)
            list->items = grown;
        uint64_t(*histograms)[STORE_HISTOGRAM_BINS] = realloc(list->histograms, capacity * sizeof *histograms);
        if (histograms)
            list->histograms = histograms;
        list->has_failed = !grown || !histograms;
        if (list->has_failed)
            return false;
        list->capacity = capacity;
    }
    char *name = *kernel->name ? strdup(kernel->name) : NULL;
    list->has_failed = *kernel->name && !name;
    memcpy(list->histograms[list->count], kernel->histogram, sizeof kernel->histogram);
    list->items[list->count++] =
        (struct hotspot){.kernel_id = kernel->kernel_id,
                         .name = name,
                         .duration = {.count = kernel->count,
                                      .total = kernel->total_ns,
                                      .min = kernel->min_ns,
                                      .max = kernel->max_ns,
                                      .p50 = histogram_rank(kernel, 0.5),
                                      .p90 = histogram_rank(kernel, 0.9),
                                      .p99 = histogram_rank(kernel, 0.99),
                                      .mean = kernel->count ? (double)kernel->total_ns / (double)kernel->count : 0}};
    return !list->has_failed;
}

static void rollups_write(struct query_call *call)
{
    struct rollup_list list = {0};
    struct problem problem = {""};
    gpufl_status status =
        store_kernels(call->query->store, http_exchange_path_value(call->exchange, "id"), take_kernel, &list, &problem);
    if (status == GPUFL_OK && list.has_failed)
        status = problem_set(&problem, GPUFL_E_NO_MEMORY, "no memory to answer");
    if (status == GPUFL_OK) {
        int64_t total_ns = 0;
        for (size_t i = 0; i < list.count; i++)
            total_ns = sum_saturated(total_ns, list.items[i].duration.total);
        for (size_t i = 0; total_ns > 0 && i < list.count; i++)
            list.items[i].share = (double)list.items[i].duration.total / (double)total_ns;
        list_write(call, list.items, list.count,
                   &(struct list_source){.histograms = (const uint64_t(*)[STORE_HISTOGRAM_BINS])list.histograms});
    } else {
        query_fail_status(call, status, "session", &problem);
    }
    for (size_t i = 0; i < list.count; i++)
        free((char *)(uintptr_t)list.items[i].name);
    free(list.items);
    free(list.histograms);
}

void query_kernels(struct query_call *call)
{
    static const char *const filters[] = {"from_ns", "to_ns", "device", "stream", "scope"};
    bool is_filtered = false, is_too_large = false;
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++)
        is_filtered = is_filtered || query_text(call, filters[i]);
    const struct query_session *session = is_filtered
                                              ? query_hold(call, http_exchange_path_value(call->exchange, "id"), false)
                                              : query_whole(call, &is_too_large);
    if (is_too_large)
        rollups_write(call);
    if (!session || query_is_known(call, session))
        return;
    struct work_filter filter;
    if (!work_filter_read(call, session->model, &filter))
        return;
    if (filter.is_any)
        list_write(call, session->analysis.hotspots, session->analysis.hotspot_count,
                   &(struct list_source){.kernels = &session->model->kernels});
    else
        filtered_write(call, session->model, &filter);
    free(filter.is_in_scope);
}
