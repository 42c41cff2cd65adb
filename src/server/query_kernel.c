/* SPDX-License-Identifier: Apache-2.0 */
/* One kernel of a session: its executions, durations and launch configurations. */
#include "server/query_work.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum { page_default = 100, page_max = 1000, bins_default = 40, bins_max = 1000, steps_default = 200, steps_max = 2000 };

static const char *const orders[] = {"descending", "ascending", NULL};

/* True when the kernel was launched but not timed: it exists, but without executions. */
static bool is_launched(const struct session_model *model, uint32_t kernel_id)
{
    for (size_t i = 0; i < model->deep.untimed_count; i++)
        if (model->deep.untimed[i].kernel_id == kernel_id)
            return true;
    return false;
}

/* The rows of the path's kernel that match the query; the caller frees them. False: already answered. */
static bool kernel_rows(struct query_call *call, uint32_t **rows, size_t *count, uint32_t *kernel_id)
{
    const struct session_model *model = call->session->model;
    const char *text = http_exchange_path_value(call->exchange, "kernel");
    char *end;
    unsigned long long id = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || id >= ID_UNKNOWN) {
        query_fail(call, 400, "kernel_invalid", "a kernel's path must contain its kernel_id, a number");
        return false;
    }
    struct work_filter filter;
    if (!work_filter_read(call, model, &filter))
        return false;
    *kernel_id = (uint32_t)id;
    *count = 0;
    size_t all = 0;
    for (size_t i = 0; i < model->kernels.count; i++)
        all += model->kernels.kernel_id[i] == *kernel_id;
    bool is_known = all || is_launched(model, *kernel_id);
    *rows = malloc((all + 1) * sizeof **rows);
    for (size_t i = 0; *rows && i < model->kernels.count; i++)
        if (model->kernels.kernel_id[i] == *kernel_id && work_filter_takes(&filter, model, i))
            (*rows)[(*count)++] = (uint32_t)i;
    free(filter.is_in_scope);
    if (!*rows) {
        query_fail(call, 503, "no_memory", "no memory to answer");
        return false;
    }
    if (is_known)
        return true;
    free(*rows);
    query_fail(call, 404, "kernel_unknown", "the session has no kernel %" PRIu32, *kernel_id);
    return false;
}

void work_kernel_write(struct bytes *out, const struct session_model *model, uint32_t row)
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
    member_text(out, "stack",
                kernels->stack_id ? session_text(model, DICTIONARY_FUNCTION, kernels->stack_id[row]) : NULL);
    json_launch(launch ? &model->launches[launch - 1] : NULL, out);
    bytes_append_char(out, '}');
}

/* Sorts by duration, longest first; the rows are in order of start. */
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
    /* Default order: earliest start first, but longest duration first. */
    bool is_reversed = sort ? order == 1 : order == 0;
    if (sort && !rows_order(model, rows, count)) {
        query_fail(call, 503, "no_memory", "no memory to answer");
    } else {
        bytes_append_char(&call->out, '{');
        member_text(&call->out, "name", session_text(model, DICTIONARY_KERNEL, kernel_id));
        member_uint(&call->out, "kernel_id", kernel_id);
        list_open(&call->out, "instances");
        for (size_t i = page.first; i < count && i - page.first < page.limit; i++)
            work_kernel_write(&call->out, model, rows[is_reversed ? count - 1 - i : i]);
        bytes_append_char(&call->out, ']');
        query_page_end(call, &page, count);
        bytes_append_char(&call->out, '}');
    }
    free(rows);
}

void query_histogram(struct query_call *call)
{
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
    bool is_log = all.min > 0 && all.max / all.min >= HISTOGRAM_LOG_FACTOR;
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

/* Divides the time from the first execution to the last, or the requested time span, into equal steps. */
static void steps_write(struct query_call *call, const uint32_t *rows, size_t count, int64_t steps, int64_t *values)
{
    const struct kernel_columns *kernels = &call->session->model->kernels;
    int64_t from_ns = kernels->start_ns[rows[0]], to_ns = sum_saturated(kernels->start_ns[rows[count - 1]], 1);
    if (query_text(call, "from_ns") || query_text(call, "to_ns"))
        (void)query_range(call, &from_ns, &to_ns);
    int64_t step_ns = (to_ns - from_ns) / steps + 1;
    member_int(&call->out, "from_ns", from_ns);
    member_int(&call->out, "to_ns", to_ns);
    member_int(&call->out, "step_ns", step_ns);
    list_open(&call->out, "steps");
    for (size_t i = 0; i < count;) {
        int64_t step = (kernels->start_ns[rows[i]] - from_ns) / step_ns;
        size_t here = 0;
        for (; i < count && (kernels->start_ns[rows[i]] - from_ns) / step_ns == step; i++)
            values[here++] = kernels->duration_ns[rows[i]];
        struct distribution durations = distribution_of(values, values + count, here);
        element(&call->out, '{');
        member_int(&call->out, "from_ns", from_ns + step * step_ns);
        member_uint(&call->out, "count", here);
        member_int(&call->out, "min_ns", durations.min);
        member_int(&call->out, "median_ns", durations.p50);
        member_int(&call->out, "max_ns", durations.max);
        member_int(&call->out, "total_ns", durations.total);
        bytes_append_char(&call->out, '}');
    }
    bytes_append_char(&call->out, ']');
}

void query_durations(struct query_call *call)
{
    int64_t steps = steps_default;
    uint32_t *rows, kernel_id;
    size_t count;
    if (!query_int(call, "steps", 1, steps_max, &steps) || !kernel_rows(call, &rows, &count, &kernel_id))
        return;
    int64_t *values = malloc((2 * count + 1) * sizeof *values);
    bytes_append_char(&call->out, '{');
    member_text(&call->out, "name", session_text(call->session->model, DICTIONARY_KERNEL, kernel_id));
    member_uint(&call->out, "kernel_id", kernel_id);
    member_uint(&call->out, "count", count);
    if (values && count) {
        steps_write(call, rows, count, steps, values);
    } else {
        member_int(&call->out, "from_ns", CELL_UNKNOWN);
        member_int(&call->out, "to_ns", CELL_UNKNOWN);
        member_int(&call->out, "step_ns", CELL_UNKNOWN);
        bytes_append_text(&call->out, ",\"steps\":[]");
    }
    bytes_append_char(&call->out, '}');
    if (!values)
        query_fail(call, 503, "no_memory", "no memory to answer");
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

/* The device limits that occupancy and rooflines are computed from. */
static void devices_write(struct bytes *out, const struct session_model *model)
{
    list_open(out, "devices");
    for (size_t i = 0; i < model->device_count; i++) {
        const struct device_info *device = &model->devices[i];
        element(out, '{');
        member_device(out, device->id);
        member_text(out, "name", device->name);
        member_id(out, "compute_major", device->compute_major);
        member_id(out, "compute_minor", device->compute_minor);
        member_id(out, "multiprocessors", device->multiprocessors);
        member_id(out, "warp_size", device->limits.warp_size);
        member_id(out, "warps_per_sm_max", device->limits.warps_per_sm_max);
        member_id(out, "blocks_per_sm_max", device->limits.blocks_per_sm_max);
        member_id(out, "regs_per_sm", device->limits.regs_per_sm);
        member_id(out, "regs_per_block_max", device->limits.regs_per_block_max);
        member_id(out, "shared_per_sm", device->limits.shared_per_sm);
        member_id(out, "shared_per_block_max", device->limits.shared_per_block_max);
        member_id(out, "shared_reserved_per_block", device->limits.shared_reserved_per_block);
        member_id(out, "core_clock_khz", device->limits.core_clock_khz);
        member_int(out, "memory_bandwidth_bps", device->limits.memory_bandwidth_bps);
        bytes_append_char(out, '}');
    }
    bytes_append_char(out, ']');
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
    member_int(&call->out, "total_ns", count ? total_ns : CELL_UNKNOWN);
    list_open(&call->out, "launches");
    for (size_t i = 0; i < used && i < page_max; i++) {
        element(&call->out, '{');
        member_uint(&call->out, "count", sums[i].count);
        member_int(&call->out, "total_ns", sums[i].total_ns);
        member_double(&call->out, "share", total_ns > 0 ? (double)sums[i].total_ns / (double)total_ns : (double)NAN);
        const struct launch_config *launch = sums[i].launch_id ? &model->launches[sums[i].launch_id - 1] : NULL;
        member_device(&call->out, launch ? launch->device : DEVICE_UNKNOWN);
        json_launch(launch, &call->out);
        bytes_append_char(&call->out, '}');
    }
    bytes_append_char(&call->out, ']');
    member_uint(&call->out, "launch_variants", used);
    devices_write(&call->out, model);
    bytes_append_char(&call->out, '}');
    free(sums);
    free(rows);
}
