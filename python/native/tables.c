/* SPDX-License-Identifier: Apache-2.0 */
#include "tables.h"

#include "analysis/scope_kind.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define FIELD(array, member) ((struct rows){(array) ? (const void *)&(array)[0].member : NULL, sizeof *(array)})
#define DENSE(array) ((struct rows){(array), sizeof *(array)})

void table_add_scope(struct column_table *table, struct rows scopes)
{
    const struct session_model *model = table->share->model;
    const char **paths = malloc((model->scope_count + 1) * sizeof *paths);
    if (!paths) {
        table->has_failed = true;
        return;
    }
    for (size_t i = 0; i < model->scope_count; i++)
        paths[i] = session_text(model, DICTIONARY_SCOPE_NAME, model->scopes[i].path_id);
    table_add_ids(table, "scope", scopes, paths, (uint32_t)model->scope_count);
    table_add_nullable(table, "scope_row", COLUMN_U32, scopes, ID_UNKNOWN);
    free(paths);
}

/* Texts owned by the table, one per launch configuration (index = launch id), for example "128,1,1". */
static const char **dimension_texts(struct column_table *table, size_t member)
{
    const struct session_model *model = table->share->model;
    const char **texts = calloc(model->launch_count + 1, sizeof *texts);
    for (size_t i = 0; texts && i < model->launch_count; i++) {
        uint32_t size[3];
        memcpy(size, (const char *)&model->launches[i] + member, sizeof size);
        if (!size[0] && !size[1] && !size[2])
            continue;
        char text[40];
        int length = snprintf(text, sizeof text, "%u,%u,%u", size[0], size[1], size[2]);
        uint32_t id = intern_id(&table->owned_words, text, (size_t)length, NULL);
        if (!id) {
            free(texts);
            return NULL;
        }
        texts[i + 1] = intern_text(&table->owned_words, id);
    }
    table->has_failed |= !texts;
    return texts;
}

static void add_launch_dimensions(struct column_table *table, const char *name, struct rows launch_ids, size_t member)
{
    const char **texts = dimension_texts(table, member);
    if (texts)
        table_add_ids(table, name, launch_ids, texts, (uint32_t)table->share->model->launch_count + 1);
    free(texts);
}

static void add_limiter(struct column_table *table, struct rows launch_ids)
{
    const struct session_model *model = table->share->model;
    const char **texts = calloc(model->launch_count + 1, sizeof *texts);
    for (size_t i = 0; texts && i < model->launch_count; i++)
        texts[i + 1] = model->launches[i].limiter ? schema_word("limiter", model->launches[i].limiter) : NULL;
    if (texts)
        table_add_ids(table, "limiter", launch_ids, texts, (uint32_t)model->launch_count + 1);
    else
        table->has_failed = true;
    free(texts);
}

/* Values shared by all launches of a configuration; [0] is the unknown configuration. */
struct launch_values {
    float occupancy; /* NaN unknown */
    uint32_t num_regs, shared_bytes;
};

static struct launch_values *launch_values_make(const struct session_model *model)
{
    struct launch_values *values = malloc((model->launch_count + 1) * sizeof *values);
    if (!values)
        return NULL;
    values[0] = (struct launch_values){NAN, ID_UNKNOWN, ID_UNKNOWN};
    for (size_t i = 0; i < model->launch_count; i++) {
        const struct launch_config *launch = &model->launches[i];
        bool has_shared = launch->static_shared != ID_UNKNOWN && launch->dyn_shared != ID_UNKNOWN;
        values[i + 1] = (struct launch_values){
            launch->occupancy_bp == ID_UNKNOWN ? NAN : (float)launch->occupancy_bp / 10000.0f,
            launch->num_regs,
            has_shared ? launch->static_shared + launch->dyn_shared : ID_UNKNOWN,
        };
    }
    return values;
}

static void add_launch_values(struct column_table *table)
{
    const struct session_model *model = table->share->model;
    const uint32_t *launch_id = model->kernels.launch_id;
    uint8_t *has_no_regs = NULL, *has_no_shared = NULL;
    struct launch_values *values = launch_values_make(model);
    float *occupancy = table_add_room(table, "occupancy", COLUMN_F32);
    uint32_t *regs = table_add_nullable_room(table, "num_regs", COLUMN_U32, &has_no_regs);
    uint32_t *shared = table_add_nullable_room(table, "shared_bytes", COLUMN_U32, &has_no_shared);
    table->has_failed |= !values;
    for (size_t i = 0; !table->has_failed && i < table->row_count; i++) {
        const struct launch_values *of = &values[launch_id[i]];
        occupancy[i] = of->occupancy;
        regs[i] = of->num_regs;
        shared[i] = of->shared_bytes;
        if (of->num_regs == ID_UNKNOWN)
            has_no_regs[i] = 1;
        if (of->shared_bytes == ID_UNKNOWN)
            has_no_shared[i] = 1;
    }
    free(values);
}

/* What each kernel computes, by its name. */
static void add_kinds(struct column_table *table, struct rows kernel_ids)
{
    const struct session_model *model = table->share->model;
    const uint32_t count = model->dictionaries[DICTIONARY_KERNEL].count;
    const char **texts = malloc(((size_t)count + 1) * sizeof *texts);
    table->has_failed |= !texts;
    for (uint32_t id = 0; texts && id < count; id++)
        texts[id] = kernel_kind_name(session_kernel_kind(model, id));
    if (texts)
        table_add_ids(table, "kind", kernel_ids, texts, count);
    free(texts);
}

/* The operators that each row's work was launched in. */
static void add_operations(struct column_table *table, struct rows ids)
{
    const struct session_model *model = table->share->model;
    const char **texts = calloc(3 * (model->operation_count + 1), sizeof *texts);
    const char **paths = texts + model->operation_count + 1, **directions = paths + model->operation_count + 1;
    table->has_failed |= !texts;
    for (size_t i = 1; texts && i < model->operation_count; i++) {
        const struct operation *operation = &model->operations[i];
        texts[i] = operation->name;
        paths[i] = operation->path;
        directions[i] = direction_name(session_direction(operation));
    }
    if (texts) {
        table_add_ids(table, "operator", ids, texts, (uint32_t)model->operation_count + 1);
        table_add_ids(table, "operator_path", ids, paths, (uint32_t)model->operation_count + 1);
        table_add_ids(table, "direction", ids, directions, (uint32_t)model->operation_count + 1);
    }
    free(texts);
}

/* first: the number of the table's first row among kernels, copies and memsets. */
static void add_inferred(struct column_table *table, size_t first)
{
    const uint8_t *inferred = table->share->model->inferred;
    uint8_t *values = table_add_room(table, "scope_inferred", COLUMN_BOOL);
    if (values)
        memset(values, 0, table->row_count);
    if (values && inferred)
        memcpy(values, inferred + first, table->row_count);
}

static struct column_table *table_kernels(struct session_share *share)
{
    const struct session_model *model = share->model;
    const struct kernel_columns *kernels = &model->kernels;
    struct column_table *table = table_make(share, kernels->count);
    if (!table)
        return NULL;
    table_add_dictionary(table, "name", DENSE(kernels->kernel_id), DICTIONARY_KERNEL);
    table_add(table, "start_ns", COLUMN_I64, DENSE(kernels->start_ns));
    table_add(table, "duration_ns", COLUMN_I64, DENSE(kernels->duration_ns));
    table_add_scope(table, DENSE(kernels->scope));
    table_add_nullable(table, "device_id", COLUMN_U16, DENSE(kernels->device), DEVICE_UNKNOWN);
    table_add_nullable(table, "stream_id", COLUMN_U32, DENSE(kernels->stream_id), ID_UNKNOWN);
    table_add_nullable(table, "thread_id", COLUMN_U32, DENSE(kernels->thread_id), ID_UNKNOWN);
    table_add(table, "corr_id", COLUMN_U32, DENSE(kernels->corr_id));
    table_add_nullable(table, "api_start_ns", COLUMN_I64, DENSE(kernels->api_start_ns), TIME_UNKNOWN);
    table_add_nullable(table, "api_duration_ns", COLUMN_U32, DENSE(kernels->api_duration_ns), API_DURATION_UNKNOWN);
    add_launch_dimensions(table, "grid", DENSE(kernels->launch_id), offsetof(struct launch_config, grid));
    add_launch_dimensions(table, "block", DENSE(kernels->launch_id), offsetof(struct launch_config, block));
    add_launch_values(table);
    add_limiter(table, DENSE(kernels->launch_id));
    table_add_nullable(table, "graph_id", COLUMN_U32, DENSE(kernels->graph_id), 0);
    table_add_dictionary(table, "call_stack", DENSE(kernels->stack_id), DICTIONARY_FUNCTION);
    add_kinds(table, DENSE(kernels->kernel_id));
    add_operations(table, DENSE(kernels->operation));
    add_inferred(table, 0);
    return table;
}

static struct column_table *table_launches(struct session_share *share)
{
    const struct launch_config *launches = share->model->launches;
    struct column_table *table = table_make(share, share->model->launch_count);
    if (!table)
        return NULL;
    static const struct {
        const char *name;
        size_t offset;
    } sizes[] = {
        {"num_regs", offsetof(struct launch_config, num_regs)},
        {"sgprs", offsetof(struct launch_config, sgprs)},
        {"accum_vgprs", offsetof(struct launch_config, accum_vgprs)},
        {"static_shared_bytes", offsetof(struct launch_config, static_shared)},
        {"dyn_shared_bytes", offsetof(struct launch_config, dyn_shared)},
        {"shared_executed_bytes", offsetof(struct launch_config, shared_executed)},
        {"local_per_thread_bytes", offsetof(struct launch_config, local_per_thread)},
        {"occupancy_bp", offsetof(struct launch_config, occupancy_bp)},
        {"occupancy_regs_bp", offsetof(struct launch_config, occupancy_regs_bp)},
        {"occupancy_shared_bp", offsetof(struct launch_config, occupancy_shared_bp)},
        {"occupancy_warps_bp", offsetof(struct launch_config, occupancy_warps_bp)},
        {"occupancy_blocks_bp", offsetof(struct launch_config, occupancy_blocks_bp)},
        {"active_blocks_max", offsetof(struct launch_config, active_blocks_max)},
    };
    static const char *const dimensions[] = {"grid_x",  "grid_y",    "grid_z",    "block_x",  "block_y",
                                             "block_z", "cluster_x", "cluster_y", "cluster_z"};
    table_add_dictionary(table, "name", FIELD(launches, kernel_id), DICTIONARY_KERNEL);
    table_add_nullable(table, "device_id", COLUMN_U16, FIELD(launches, device), DEVICE_UNKNOWN);
    for (size_t i = 0; i < sizeof dimensions / sizeof *dimensions; i++) {
        size_t offset = offsetof(struct launch_config, grid) + i * sizeof(uint32_t);
        struct rows rows = {launches ? (const char *)launches + offset : NULL, sizeof *launches};
        table_add_nullable(table, dimensions[i], COLUMN_U32, rows, 0);
    }
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct rows rows = {launches ? (const char *)launches + sizes[i].offset : NULL, sizeof *launches};
        table_add_nullable(table, sizes[i].name, COLUMN_U32, rows, ID_UNKNOWN);
    }
    table_add_words(table, "limiter", FIELD(launches, limiter), "limiter");
    return table;
}
_Static_assert(offsetof(struct launch_config, block) == offsetof(struct launch_config, grid) + 12 &&
                   offsetof(struct launch_config, cluster) == offsetof(struct launch_config, grid) + 24,
               "table_launches walks the nine sizes in a row");

/* The columns that copies, memsets and graph launches share; first is the first row's span. */
static void add_span(struct column_table *table, const struct gpu_span *first, size_t stride)
{
#define SPAN(member) ((struct rows){first ? (const void *)&first->member : NULL, stride})
    table_add(table, "start_ns", COLUMN_I64, SPAN(start_ns));
    table_add(table, "duration_ns", COLUMN_I64, SPAN(duration_ns));
    table_add_scope(table, SPAN(scope));
    table_add_nullable(table, "device_id", COLUMN_U16, SPAN(device), DEVICE_UNKNOWN);
    table_add_nullable(table, "stream_id", COLUMN_U32, SPAN(stream_id), ID_UNKNOWN);
    table_add_nullable(table, "thread_id", COLUMN_U32, SPAN(thread_id), ID_UNKNOWN);
    table_add(table, "corr_id", COLUMN_U32, SPAN(corr_id));
    table_add_nullable(table, "api_start_ns", COLUMN_I64, SPAN(api_start_ns), TIME_UNKNOWN);
    table_add_nullable(table, "api_duration_ns", COLUMN_U32, SPAN(api_duration_ns), API_DURATION_UNKNOWN);
    table_add_nullable(table, "graph_id", COLUMN_U32, SPAN(graph_id), 0);
    add_operations(table, SPAN(operation));
#undef SPAN
}

static struct column_table *table_memcpy(struct session_share *share)
{
    const struct gpu_copy *copies = share->model->copies;
    struct column_table *table = table_make(share, share->model->copy_count);
    if (!table)
        return NULL;
    table_add_words(table, "copy_kind", FIELD(copies, copy_kind), "copy_kind");
    table_add(table, "bytes", COLUMN_U64, FIELD(copies, bytes));
    table_add_words(table, "src_kind", FIELD(copies, src_kind), "memory_kind");
    table_add_words(table, "dst_kind", FIELD(copies, dst_kind), "memory_kind");
    table_add_nullable(table, "is_async", COLUMN_BOOL, FIELD(copies, is_async), -1);
    add_span(table, copies ? &copies->span : NULL, sizeof *copies);
    return table;
}

static struct column_table *table_memsets(struct session_share *share)
{
    const struct gpu_memset *memsets = share->model->memsets;
    struct column_table *table = table_make(share, share->model->memset_count);
    if (!table)
        return NULL;
    table_add_words(table, "memory_kind", FIELD(memsets, memory_kind), "memory_kind");
    table_add(table, "bytes", COLUMN_U64, FIELD(memsets, bytes));
    add_span(table, memsets ? &memsets->span : NULL, sizeof *memsets);
    return table;
}

static struct column_table *table_graphs(struct session_share *share)
{
    const struct graph_launch *graphs = share->model->graphs;
    struct column_table *table = table_make(share, share->model->graph_count);
    if (!table)
        return NULL;
    table_add_nullable(table, "node_count", COLUMN_U32, FIELD(graphs, node_count), ID_UNKNOWN);
    table_add_nullable(table, "busy_ns", COLUMN_I64, FIELD(graphs, busy_ns), TIME_UNKNOWN);
    add_span(table, graphs ? &graphs->span : NULL, sizeof *graphs);
    return table;
}

static struct column_table *table_syncs(struct session_share *share)
{
    const struct sync_wait *syncs = share->model->syncs;
    struct column_table *table = table_make(share, share->model->sync_count);
    if (!table)
        return NULL;
    table_add_words(table, "sync_type", FIELD(syncs, sync_type), "sync_type");
    table_add(table, "start_ns", COLUMN_I64, FIELD(syncs, start_ns));
    table_add(table, "duration_ns", COLUMN_I64, FIELD(syncs, duration_ns));
    table_add_scope(table, FIELD(syncs, scope));
    table_add_nullable(table, "stream_id", COLUMN_U32, FIELD(syncs, stream_id), ID_UNKNOWN);
    table_add_nullable(table, "event_id", COLUMN_U32, FIELD(syncs, event_id), ID_UNKNOWN);
    table_add_nullable(table, "context_id", COLUMN_U32, FIELD(syncs, context_id), ID_UNKNOWN);
    table_add_nullable(table, "thread_id", COLUMN_U32, FIELD(syncs, thread_id), ID_UNKNOWN);
    table_add(table, "corr_id", COLUMN_U32, FIELD(syncs, corr_id));
    table_add_dictionary(table, "call_stack", FIELD(syncs, function_id), DICTIONARY_FUNCTION);
    return table;
}

static struct column_table *table_allocs(struct session_share *share)
{
    const struct memory_event *events = share->model->memory_events;
    struct column_table *table = table_make(share, share->model->memory_event_count);
    if (!table)
        return NULL;
    table_add_words(table, "memory_op", FIELD(events, memory_op), "memory_op");
    table_add_words(table, "memory_kind", FIELD(events, memory_kind), "memory_kind");
    table_add(table, "time_ns", COLUMN_I64, FIELD(events, time_ns));
    table_add_nullable(table, "duration_ns", COLUMN_I64, FIELD(events, duration_ns), CELL_UNKNOWN);
    table_add(table, "address", COLUMN_U64, FIELD(events, address));
    table_add(table, "bytes", COLUMN_U64, FIELD(events, bytes));
    table_add_scope(table, FIELD(events, scope));
    table_add_nullable(table, "device_id", COLUMN_U16, FIELD(events, device), DEVICE_UNKNOWN);
    table_add_nullable(table, "thread_id", COLUMN_U32, FIELD(events, thread_id), ID_UNKNOWN);
    return table;
}

/* All columns of the catalogue, whether or not this run has values for them, so that programs can rely on them. */
static struct column_table *table_metrics(struct session_share *share, const struct metric_table *metrics)
{
    const struct record_info *info = &record_catalogue[metrics->type];
    struct column_table *table = table_make(share, metrics->count);
    if (!table)
        return NULL;
    for (unsigned i = 0; i < info->column_count; i++) {
        const int64_t *values = metrics->columns ? metrics->columns[i] : NULL;
        if (i == 0)
            table_add(table, "time_ns", COLUMN_I64, DENSE(values));
        else
            table_add_nullable(table, info->columns[i].name, COLUMN_I64, DENSE(values), CELL_UNKNOWN);
    }
    return table;
}

static struct column_table *table_device_metrics(struct session_share *share)
{
    return table_metrics(share, &share->model->device_metrics);
}

static struct column_table *table_host_metrics(struct session_share *share)
{
    return table_metrics(share, &share->model->host_metrics);
}

static struct column_table *table_process_metrics(struct session_share *share)
{
    return table_metrics(share, &share->model->process_metrics);
}

static struct column_table *table_losses(struct session_share *share)
{
    const struct session_loss *losses = share->model->losses;
    struct column_table *table = table_make(share, share->model->loss_count);
    if (!table)
        return NULL;
    table_add_texts(table, "reason", FIELD(losses, reason));
    table_add_texts(table, "record_type", FIELD(losses, record_type));
    table_add(table, "count", COLUMN_U64, FIELD(losses, count));
    table_add(table, "has_unknown_count", COLUMN_BOOL, FIELD(losses, has_unknown_count));
    table_add_texts(table, "message", FIELD(losses, message));
    table_add_texts(table, "cause", FIELD(losses, cause));
    return table;
}

static struct column_table *table_capabilities(struct session_share *share)
{
    const struct session_capability *capabilities = share->model->capabilities;
    struct column_table *table = table_make(share, share->model->capability_count);
    if (!table)
        return NULL;
    table_add_texts(table, "feature", FIELD(capabilities, feature));
    table_add(table, "is_requested", COLUMN_BOOL, FIELD(capabilities, is_requested));
    table_add_texts(table, "status", FIELD(capabilities, status));
    table_add_texts(table, "reason_code", FIELD(capabilities, reason_code));
    table_add_texts(table, "message", FIELD(capabilities, message));
    return table;
}

static struct column_table *table_devices(struct session_share *share)
{
    const struct device_info *devices = share->model->devices;
    struct column_table *table = table_make(share, share->model->device_count);
    if (!table)
        return NULL;
    table_add_nullable(table, "device_id", COLUMN_U16, FIELD(devices, id), DEVICE_UNKNOWN);
    table_add_texts(table, "name", FIELD(devices, name));
    table_add_texts(table, "uuid", FIELD(devices, uuid));
    table_add_nullable(table, "compute_major", COLUMN_U32, FIELD(devices, compute_major), ID_UNKNOWN);
    table_add_nullable(table, "compute_minor", COLUMN_U32, FIELD(devices, compute_minor), ID_UNKNOWN);
    table_add_nullable(table, "multiprocessors", COLUMN_U32, FIELD(devices, multiprocessors), ID_UNKNOWN);
    table_add_nullable(table, "core_clock_khz", COLUMN_U32, FIELD(devices, limits.core_clock_khz), ID_UNKNOWN);
    table_add_nullable(table, "memory_bandwidth_bps", COLUMN_I64, FIELD(devices, limits.memory_bandwidth_bps),
                       CELL_UNKNOWN);
    return table;
}

const struct table_info table_infos[] = {
    {"kernels", table_kernels},
    {"memcpy", table_memcpy},
    {"memsets", table_memsets},
    {"scopes", table_code_samples},
    {"scope_samples", table_scope_samples},
    {"scope_events", table_scope_events},
    {"adoptions", table_adoptions},
    {"device_metrics", table_device_metrics},
    {"host_metrics", table_host_metrics},
    {"process_metrics", table_process_metrics},
    {"perf", table_perf},
    {"syncs", table_syncs},
    {"allocs", table_allocs},
    {"graphs", table_graphs},
    {"pm_samples", table_pm_samples},
    {"launches", table_launches},
    {"untimed_launches", table_untimed_launches},
    {"losses", table_losses},
    {"capabilities", table_capabilities},
    {"devices", table_devices},
    {NULL, NULL},
};

gpufl_status table_of_session(struct column_table **out, struct session_share *share, const char *name)
{
    for (const struct table_info *info = table_infos; info->name; info++) {
        if (strcmp(info->name, name))
            continue;
        struct column_table *table = info->make(share);
        if (!table || table->has_failed) {
            table_release(table);
            return GPUFL_E_NO_MEMORY;
        }
        *out = table;
        return GPUFL_OK;
    }
    return GPUFL_E_NOT_FOUND;
}
