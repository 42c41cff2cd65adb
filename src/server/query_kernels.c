/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of a session: by name, and one kernel's executions, durations and launch configurations. */
#include "server/query_call.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { page_default = 100, page_max = 1000, bins_default = 40, bins_max = 1000 };

/* ---- which kernels ---- */

struct work_filter {
    int64_t from_ns, to_ns; /* executions that begin in it */
    int64_t device, stream; /* CELL_UNKNOWN: any */
    bool *is_in_scope;      /* owned; by path id; NULL: any */
    bool is_any;            /* nothing is filtered */
};

/* A path, as the list of scopes shows it, and everything below it. */
static bool scope_matches(const char *path, const char *wanted, struct bytes *shown)
{
    size_t size = strlen(wanted);
    if (!path)
        return false;
    bytes_clear(shown);
    page_path(shown, path);
    const char *text = bytes_text(shown);
    return !strncmp(text, wanted, size) && (!text[size] || !strncmp(text + size, " > ", 3));
}

/* False: answered. */
static bool filter_read(struct query_call *call, const struct session_model *model, struct work_filter *filter)
{
    const char *scope = query_text(call, "scope");
    *filter = (struct work_filter){.to_ns = INT64_MAX / 2, .device = CELL_UNKNOWN, .stream = CELL_UNKNOWN};
    if (!query_range(call, &filter->from_ns, &filter->to_ns) ||
        !query_int(call, "device", 0, DEVICE_UNKNOWN - 1, &filter->device) ||
        !query_int(call, "stream", 0, ID_UNKNOWN - 1, &filter->stream))
        return false;
    filter->is_any = !scope && !query_text(call, "from_ns") && !query_text(call, "to_ns") &&
                     filter->device == CELL_UNKNOWN && filter->stream == CELL_UNKNOWN;
    if (!scope)
        return true;
    const struct dictionary_table *paths = &model->dictionaries[DICTIONARY_SCOPE_NAME];
    filter->is_in_scope = calloc((size_t)paths->count + 1, sizeof *filter->is_in_scope);
    if (!filter->is_in_scope)
        return query_fail(call, 503, "no_memory", "no memory to answer");
    struct bytes shown = {0};
    for (uint32_t id = 1; id < paths->count; id++)
        filter->is_in_scope[id] = scope_matches(paths->texts[id], scope, &shown);
    bytes_free(&shown);
    return true;
}

static bool filter_takes(const struct work_filter *filter, const struct session_model *model, size_t row)
{
    const struct kernel_columns *kernels = &model->kernels;
    if (kernels->start_ns[row] < filter->from_ns || kernels->start_ns[row] >= filter->to_ns)
        return false;
    if ((filter->device != CELL_UNKNOWN && kernels->device[row] != filter->device) ||
        (filter->stream != CELL_UNKNOWN && kernels->stream_id[row] != filter->stream))
        return false;
    if (!filter->is_in_scope)
        return true;
    uint32_t scope = kernels->scope[row];
    uint32_t path = scope < model->scope_count ? model->scopes[scope].path_id : 0;
    return path && path < model->dictionaries[DICTIONARY_SCOPE_NAME].count && filter->is_in_scope[path];
}

/* ---- by name ---- */

enum kernel_sort { SORT_TOTAL, SORT_COUNT, SORT_MEAN, SORT_MEDIAN, SORT_P99, SORT_MAX, SORT_NAME };
static const char *const kernel_sorts[] = {"total", "count", "mean", "median", "p99", "max", "name", NULL};
static const char *const orders[] = {"descending", "ascending", NULL};

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

/* Writes the page that the query asks for. */
static void list_write(struct query_call *call, const struct hotspot *hotspots, size_t count, bool is_exact)
{
    const char *text = query_text(call, "q");
    struct query_page page;
    int choice[2] = {SORT_TOTAL, 0};
    if (!query_choice(call, "sort", kernel_sorts, &choice[0]) || !query_choice(call, "order", orders, &choice[1]) ||
        !query_page(call, page_default, page_max, &page))
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
    member_bool(&call->out, "is_exact", is_exact);
    member_uint(&call->out, "count", calls);
    member_int(&call->out, "total_ns", total_ns);
    list_open(&call->out, "kernels");
    for (size_t i = page.first; i < list.count && i - page.first < page.limit; i++)
        json_hotspot(list.items[i], &call->out);
    bytes_append_char(&call->out, ']');
    query_page_end(call, &page, list.count);
    bytes_append_char(&call->out, '}');
    free(list.items);
}

/* The same grouping over fewer rows: hotspots_make looks at these columns only. */
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
        if (!filter_takes(filter, model, i))
            continue;
        kernels->duration_ns[kernels->count] = all->duration_ns[i];
        kernels->kernel_id[kernels->count] = all->kernel_id[i];
        kernels->launch_id[kernels->count++] = all->launch_id[i];
    }
    if (is_done && hotspots_make(&analysis) == GPUFL_OK)
        list_write(call, analysis.hotspots, analysis.hotspot_count, true);
    else
        query_fail(call, 503, "no_memory", "no memory to answer");
    free(analysis.hotspots);
    free(kernels->duration_ns);
    free(kernels->kernel_id);
    free(kernels->launch_id);
}

/* ---- from the store's sums ---- */

struct rollup_list {
    struct hotspot *items; /* owned, with their names */
    size_t count, capacity;
    bool has_failed;
};

/* Inside of a bin durations are taken as evenly spread. */
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
        list->has_failed = !grown;
        if (!grown)
            return false;
        list->items = grown;
        list->capacity = capacity;
    }
    char *name = *kernel->name ? strdup(kernel->name) : NULL;
    list->has_failed = *kernel->name && !name;
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
        list_write(call, list.items, list.count, false);
    } else {
        query_fail_status(call, status, "session", &problem);
    }
    for (size_t i = 0; i < list.count; i++)
        free((char *)(uintptr_t)list.items[i].name);
    free(list.items);
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
    if (!filter_read(call, session->model, &filter))
        return;
    if (filter.is_any)
        list_write(call, session->analysis.hotspots, session->analysis.hotspot_count, true);
    else
        filtered_write(call, session->model, &filter);
    free(filter.is_in_scope);
}

/* ---- one kernel ---- */

/* Rows of the path's kernel that the query asks for; the caller frees them and the filter's scopes are gone. False:
 * answered. */
static bool kernel_rows(struct query_call *call, uint32_t **rows, size_t *count, uint32_t *kernel_id)
{
    const struct session_model *model = call->session->model;
    const char *text = http_exchange_path_value(call->exchange, "kernel");
    char *end;
    unsigned long long id = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || id >= ID_UNKNOWN) {
        query_fail(call, 400, "kernel_invalid", "a kernel is named by its kernel_id, a number");
        return false;
    }
    struct work_filter filter;
    if (!filter_read(call, model, &filter))
        return false;
    *kernel_id = (uint32_t)id;
    *count = 0;
    size_t all = 0;
    for (size_t i = 0; i < model->kernels.count; i++)
        all += model->kernels.kernel_id[i] == *kernel_id;
    *rows = malloc((all + 1) * sizeof **rows);
    for (size_t i = 0; *rows && i < model->kernels.count; i++)
        if (model->kernels.kernel_id[i] == *kernel_id && filter_takes(&filter, model, i))
            (*rows)[(*count)++] = (uint32_t)i;
    free(filter.is_in_scope);
    if (!*rows) {
        query_fail(call, 503, "no_memory", "no memory to answer");
        return false;
    }
    if (all)
        return true;
    free(*rows);
    query_fail(call, 404, "kernel_unknown", "the session has no kernel %" PRIu32, *kernel_id);
    return false;
}

static void instance_write(struct bytes *out, const struct session_model *model, uint32_t row)
{
    const struct kernel_columns *kernels = &model->kernels;
    uint32_t scope = kernels->scope[row], launch = kernels->launch_id[row];
    const char *path =
        scope < model->scope_count ? session_text(model, DICTIONARY_SCOPE_NAME, model->scopes[scope].path_id) : NULL;
    element(out, '{');
    member_uint(out, "row", row);
    member_int(out, "start_ns", kernels->start_ns[row]);
    member_int(out, "duration_ns", kernels->duration_ns[row]);
    member_int(out, "api_start_ns", kernels->api_start_ns[row]);
    member_id(out, "api_duration_ns", kernels->api_duration_ns[row]);
    member_device(out, kernels->device[row]);
    member_id(out, "stream_id", kernels->stream_id[row]);
    member_id(out, "thread_id", kernels->thread_id[row]);
    member_uint(out, "correlation_id", kernels->corr_id[row]);
    member_int(out, "graph_id", kernels->graph_id && kernels->graph_id[row] ? kernels->graph_id[row] : CELL_UNKNOWN);
    member_text(out, "scope", path);
    json_launch(launch ? &model->launches[launch - 1] : NULL, out);
    bytes_append_char(out, '}');
}

/* By duration, longest first; the rows are in order of start. */
static bool rows_order(const struct session_model *model, uint32_t *rows, size_t count)
{
    int64_t *keys = malloc((count + 1) * sizeof *keys);
    uint32_t *order = malloc((3 * count + 1) * sizeof *order);
    bool is_done = keys && order;
    for (size_t i = 0; is_done && i < count; i++)
        keys[i] = INT64_MAX - model->kernels.duration_ns[rows[i]];
    if (is_done && count) {
        keys_order(keys, count, order, order + count);
        for (size_t i = 0; i < count; i++)
            order[2 * count + i] = rows[order[i]];
        memcpy(rows, order + 2 * count, count * sizeof *rows);
    }
    free(keys);
    free(order);
    return is_done;
}

void query_instances(struct query_call *call)
{
    static const char *const sorts[] = {"start", "duration", NULL};
    const struct session_model *model = call->session->model;
    int sort = 0, order = -1;
    uint32_t *rows, kernel_id;
    size_t count;
    struct query_page page;
    if (!query_choice(call, "sort", sorts, &sort) || !query_choice(call, "order", orders, &order) ||
        !query_page(call, page_default, page_max, &page) || !kernel_rows(call, &rows, &count, &kernel_id))
        return;
    /* The first start first, but the longest duration first, unless told otherwise. */
    bool is_reversed = sort ? order == 1 : order == 0;
    if (sort && !rows_order(model, rows, count)) {
        query_fail(call, 503, "no_memory", "no memory to answer");
    } else {
        bytes_append_char(&call->out, '{');
        member_text(&call->out, "name", session_text(model, DICTIONARY_KERNEL, kernel_id));
        member_uint(&call->out, "kernel_id", kernel_id);
        list_open(&call->out, "instances");
        for (size_t i = page.first; i < count && i - page.first < page.limit; i++)
            instance_write(&call->out, model, rows[is_reversed ? count - 1 - i : i]);
        bytes_append_char(&call->out, ']');
        query_page_end(call, &page, count);
        bytes_append_char(&call->out, '}');
    }
    free(rows);
}

/* Borders of the bins, count + 1 of them: evenly spaced, or by equal factors where durations differ a lot. */

void query_histogram(struct query_call *call)
{
    enum { log_factor = 16 };
    int64_t bins = bins_default;
    uint32_t *rows, kernel_id;
    size_t count;
    if (!query_int(call, "bins", 1, bins_max, &bins) || !kernel_rows(call, &rows, &count, &kernel_id))
        return;
    int64_t *values = malloc((2 * count + 1) * sizeof *values), edges[bins_max + 1];
    if (!values) {
        query_fail(call, 503, "no_memory", "no memory to answer");
        free(rows);
        return;
    }
    for (size_t i = 0; i < count; i++)
        values[i] = call->session->model->kernels.duration_ns[rows[i]];
    struct distribution all = distribution_of(values, values + count, count);
    struct hotspot hotspot = {.kernel_id = kernel_id,
                              .name = session_text(call->session->model, DICTIONARY_KERNEL, kernel_id),
                              .duration = all};
    bool is_log = all.min > 0 && all.max / all.min >= log_factor;
    histogram_edges(edges, (size_t)bins, all.min, all.max, is_log);
    bytes_append_char(&call->out, '{');
    member_text(&call->out, "name", hotspot.name);
    member_uint(&call->out, "kernel_id", kernel_id);
    member_uint(&call->out, "count", count);
    member_int(&call->out, "median_ns", count ? all.p50 : CELL_UNKNOWN);
    member_int(&call->out, "p90_ns", count ? all.p90 : CELL_UNKNOWN);
    member_int(&call->out, "p99_ns", count ? all.p99 : CELL_UNKNOWN);
    member_text(&call->out, "scale", is_log ? "logarithmic" : "linear");
    list_open(&call->out, "bins");
    for (size_t bin = 0, at = 0; bin < (size_t)bins && at < count; bin++) {
        size_t first = at;
        int64_t total_ns = 0;
        while (at < count && values[at] < edges[bin + 1])
            total_ns = sum_saturated(total_ns, values[at++]);
        element(&call->out, '{');
        member_int(&call->out, "from_ns", edges[bin]);
        member_int(&call->out, "to_ns", edges[bin + 1]);
        member_uint(&call->out, "count", at - first);
        member_int(&call->out, "total_ns", total_ns);
        bytes_append_char(&call->out, '}');
    }
    bytes_append_text(&call->out, "]}");
    free(values);
    free(rows);
}

struct launch_sum {
    uint32_t launch_id;
    uint64_t count;
    int64_t total_ns;
};

static int launch_compare(const void *left, const void *right)
{
    const struct launch_sum *a = left, *b = right;
    if (a->total_ns != b->total_ns)
        return a->total_ns > b->total_ns ? -1 : 1;
    return a->launch_id < b->launch_id ? -1 : a->launch_id > b->launch_id;
}

void query_occupancy(struct query_call *call)
{
    const struct session_model *model = call->session->model;
    uint32_t *rows, kernel_id;
    size_t count, used = 0;
    if (!kernel_rows(call, &rows, &count, &kernel_id))
        return;
    struct launch_sum *sums = calloc(model->launch_count + 1, sizeof *sums);
    if (!sums) {
        query_fail(call, 503, "no_memory", "no memory to answer");
        free(rows);
        return;
    }
    int64_t total_ns = 0;
    for (size_t i = 0; i < count; i++) {
        struct launch_sum *sum = &sums[model->kernels.launch_id[rows[i]]];
        sum->launch_id = model->kernels.launch_id[rows[i]];
        sum->count++;
        sum->total_ns = sum_saturated(sum->total_ns, model->kernels.duration_ns[rows[i]]);
        total_ns = sum_saturated(total_ns, model->kernels.duration_ns[rows[i]]);
    }
    for (size_t i = 0; i <= model->launch_count; i++)
        if (sums[i].count)
            sums[used++] = sums[i];
    qsort(sums, used, sizeof *sums, launch_compare);
    bytes_append_char(&call->out, '{');
    member_text(&call->out, "name", session_text(model, DICTIONARY_KERNEL, kernel_id));
    member_uint(&call->out, "kernel_id", kernel_id);
    member_int(&call->out, "total_ns", total_ns);
    list_open(&call->out, "launches");
    for (size_t i = 0; i < used && i < page_max; i++) {
        element(&call->out, '{');
        member_uint(&call->out, "count", sums[i].count);
        member_int(&call->out, "total_ns", sums[i].total_ns);
        member_double(&call->out, "share", total_ns > 0 ? (double)sums[i].total_ns / (double)total_ns : (double)NAN);
        json_launch(sums[i].launch_id ? &model->launches[sums[i].launch_id - 1] : NULL, &call->out);
        bytes_append_char(&call->out, '}');
    }
    bytes_append_char(&call->out, ']');
    member_uint(&call->out, "launch_variants", used);
    bytes_append_char(&call->out, '}');
    free(sums);
    free(rows);
}
