/* SPDX-License-Identifier: Apache-2.0 */
/* The fleet: hosts and GPUs with their latest metrics, metrics per minute, kernels of all sessions. */
#include "base/clock.h"
#include "server/query_call.h"

#include <math.h>
#include <stdlib.h>

enum { search_default = 100, search_max = 1000 };
#define HOUR_NS INT64_C(3600000000000)
#define MINUTE_NS INT64_C(60000000000)

/* ---- hosts ---- */

struct host_list {
    struct bytes *out;
    struct bytes gpus, own; /* of the current host: its GPUs, its own metrics; owned */
    char *host;             /* owned; NULL before the first */
    int64_t first_seen_ns, last_seen_ns;
    bool has_failed;
};

static void host_finish(struct host_list *list)
{
    if (!list->host)
        return;
    element(list->out, '{');
    member_text(list->out, "host", list->host);
    member_int(list->out, "first_seen_ns", list->first_seen_ns);
    member_int(list->out, "last_seen_ns", list->last_seen_ns);
    json_key(list->out, "metrics");
    if (list->own.size)
        bytes_append(list->out, list->own.data, list->own.size);
    else
        json_text(list->out, NULL);
    list_open(list->out, "gpus");
    bytes_append(list->out, list->gpus.data, list->gpus.size);
    bytes_append_text(list->out, "]}");
    list->has_failed |= list->gpus.failed || list->own.failed;
    bytes_clear(&list->gpus);
    bytes_clear(&list->own);
    free(list->host);
    list->host = NULL;
}

/* {"sample_ns":..,"gpu_util":..}: names from the catalogue, which include units. */
static void sample_write(struct bytes *out, const struct store_gpu *gpu)
{
    bytes_append_char(out, '{');
    member_int(out, "sample_ns", gpu->sample_ns);
    for (unsigned i = 1; gpu->sample && gpu->sample_ns != CELL_UNKNOWN && i < gpu->type->column_count; i++)
        if (strcmp(gpu->type->columns[i].name, "device_id") != 0)
            member_int(out, gpu->type->columns[i].name, gpu->sample[i]);
    bytes_append_char(out, '}');
}

static bool take_gpu(void *user, const struct store_gpu *gpu)
{
    struct host_list *list = user;
    if (!list->host || strcmp(list->host, gpu->host) != 0) {
        host_finish(list);
        list->host = strdup(gpu->host);
        list->has_failed |= !list->host;
        list->first_seen_ns = gpu->first_seen_ns;
        list->last_seen_ns = gpu->last_seen_ns;
    }
    list->first_seen_ns = gpu->first_seen_ns < list->first_seen_ns ? gpu->first_seen_ns : list->first_seen_ns;
    list->last_seen_ns = gpu->last_seen_ns > list->last_seen_ns ? gpu->last_seen_ns : list->last_seen_ns;
    if (!*gpu->uuid) {
        bytes_clear(&list->own);
        sample_write(&list->own, gpu);
        return !list->has_failed;
    }
    if (list->gpus.size)
        bytes_append_char(&list->gpus, ',');
    bytes_append_char(&list->gpus, '{');
    member_text(&list->gpus, "uuid", gpu->uuid);
    member_text(&list->gpus, "name", gpu->name);
    member_int(&list->gpus, "device", gpu->device_id);
    member_int(&list->gpus, "first_seen_ns", gpu->first_seen_ns);
    member_int(&list->gpus, "last_seen_ns", gpu->last_seen_ns);
    member_text(&list->gpus, "session_id", gpu->session_id);
    json_key(&list->gpus, "metrics");
    if (gpu->sample_ns != CELL_UNKNOWN)
        sample_write(&list->gpus, gpu);
    else
        json_text(&list->gpus, NULL);
    bytes_append_char(&list->gpus, '}');
    return !list->has_failed;
}

void query_hosts(struct query_call *call)
{
    struct host_list list = {.out = &call->out};
    struct problem problem = {""};
    bytes_append_char(&call->out, '{');
    member_int(&call->out, "now_ns", clock_wall_ns());
    list_open(&call->out, "hosts");
    gpufl_status status = store_gpus(call->query->store, query_text(call, "host"), take_gpu, &list, &problem);
    host_finish(&list);
    bytes_append_text(&call->out, "]}");
    if (status == GPUFL_OK && list.has_failed)
        status = problem_set(&problem, GPUFL_E_NO_MEMORY, "no memory to answer");
    if (status != GPUFL_OK)
        query_fail_status(call, status, "host", &problem);
    bytes_free(&list.gpus);
    bytes_free(&list.own);
}

/* ---- metrics per minute ---- */

struct minute_series {
    struct bytes *columns; /* owned; one list of points per column */
    const struct record_info *info;
    const char *wanted; /* NULL: all */
};

static bool take_minute(void *user, const struct store_metric *metric)
{
    struct minute_series *series = user;
    if (!series->info)
        series->info = &record_catalogue[metric->type];
    if (metric->column >= DEVICE_METRIC_COLUMN_COUNT || metric->column >= series->info->column_count)
        return true;
    const char *name = series->info->columns[metric->column].name;
    if (!strcmp(name, "device_id") || (series->wanted && strcmp(series->wanted, name) != 0))
        return true;
    struct bytes *out = &series->columns[metric->column];
    element(out, '[');
    bytes_append_format(out, "%lld,", (long long)metric->minute_ns);
    json_int(out, metric->min);
    bytes_append_char(out, ',');
    json_double(out, metric->mean);
    bytes_append_char(out, ',');
    json_int(out, metric->max);
    bytes_append_char(out, ']');
    return true;
}

_Static_assert((int)HOST_METRIC_COLUMN_COUNT <= (int)DEVICE_METRIC_COLUMN_COUNT, "room for both kinds of columns");

void query_host_metrics(struct query_call *call)
{
    const char *gpu = query_text(call, "gpu");
    int64_t to_ns = clock_wall_ns(), from_ns = to_ns - HOUR_NS;
    struct problem problem = {""};
    struct bytes columns[DEVICE_METRIC_COLUMN_COUNT] = {{0}};
    struct minute_series series = {.columns = columns, .wanted = query_text(call, "metric")};
    enum { minutes_max = 100000 };
    if (!query_range(call, &from_ns, &to_ns))
        return;
    if ((to_ns - from_ns) / MINUTE_NS > minutes_max) {
        query_fail(call, 400, "parameter_invalid", "a range has at most %d minutes", minutes_max);
        return;
    }
    gpufl_status status = store_metrics(call->query->store, http_exchange_path_value(call->exchange, "host"),
                                        gpu ? gpu : "", from_ns, to_ns, take_minute, &series, &problem);
    bytes_append_char(&call->out, '{');
    member_text(&call->out, "host", http_exchange_path_value(call->exchange, "host"));
    member_text(&call->out, "gpu", gpu);
    member_int(&call->out, "from_ns", from_ns);
    member_int(&call->out, "to_ns", to_ns);
    member_int(&call->out, "step_ns", MINUTE_NS);
    list_open(&call->out, "series");
    for (unsigned i = 0; i < DEVICE_METRIC_COLUMN_COUNT; i++) {
        if (columns[i].size) {
            element(&call->out, '{');
            member_text(&call->out, "metric", series.info->columns[i].name);
            list_open(&call->out, "points");
            bytes_append(&call->out, columns[i].data, columns[i].size);
            bytes_append_text(&call->out, "]}");
        }
        call->out.failed |= columns[i].failed;
        bytes_free(&columns[i]);
    }
    bytes_append_text(&call->out, "]}");
    if (status != GPUFL_OK)
        query_fail_status(call, status, "host", &problem);
}

/* ---- search ---- */

static bool take_found(void *user, const struct store_kernel *kernel)
{
    struct bytes *out = user;
    double mean_ns = kernel->count ? (double)kernel->total_ns / (double)kernel->count : (double)NAN;
    double variance = kernel->count ? kernel->sum_squares / (double)kernel->count - mean_ns * mean_ns : (double)NAN;
    element(out, '{');
    member_text(out, "session_id", kernel->session_id);
    member_text(out, "app", kernel->app);
    member_text(out, "host", kernel->host);
    member_int(out, "start_ns", kernel->start_ns);
    member_text(out, "name", kernel->name);
    member_uint(out, "kernel_id", kernel->kernel_id);
    member_uint(out, "count", kernel->count);
    member_int(out, "total_ns", kernel->total_ns);
    member_double(out, "mean_ns", mean_ns);
    member_double(out, "deviation_ns", variance > 0 ? sqrt(variance) : variance == variance ? 0 : variance);
    member_int(out, "min_ns", kernel->min_ns);
    member_int(out, "max_ns", kernel->max_ns);
    bytes_append_char(out, '}');
    return true;
}

void query_search_kernels(struct query_call *call)
{
    int64_t limit = search_default;
    const char *text = query_text(call, "q");
    struct problem problem = {""};
    if (!text) {
        query_fail(call, 400, "parameter_missing", "the parameter q is missing: part of a kernel's name");
        return;
    }
    if (!query_int(call, "limit", 1, search_max, &limit))
        return;
    bytes_append_char(&call->out, '{');
    list_open(&call->out, "kernels");
    gpufl_status status =
        store_kernel_search(call->query->store, text, (unsigned)limit, take_found, &call->out, &problem);
    bytes_append_text(&call->out, "]}");
    if (status != GPUFL_OK)
        query_fail_status(call, status, "kernel", &problem);
}
