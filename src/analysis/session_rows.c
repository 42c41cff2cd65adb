/* SPDX-License-Identifier: Apache-2.0 */
/* Batches to columns. */
#include "analysis/session_loader.h"

#include <stdlib.h>

enum { kernel_id_max = 4 * 1024 * 1024 };

struct column_slot {
    void *pointer; /* address of the array pointer */
    size_t width;
    bool is_optional;
};

enum { kernel_column_slots = 13 };

static void kernel_slots(struct kernel_columns *kernels, struct column_slot slots[kernel_column_slots])
{
    const struct column_slot list[kernel_column_slots] = {
        {&kernels->start_ns, 8, false},        {&kernels->duration_ns, 8, false}, {&kernels->api_start_ns, 8, false},
        {&kernels->api_duration_ns, 4, false}, {&kernels->kernel_id, 4, false},   {&kernels->launch_id, 4, false},
        {&kernels->stream_id, 4, false},       {&kernels->thread_id, 4, false},   {&kernels->corr_id, 4, false},
        {&kernels->scope, 4, false},           {&kernels->device, 2, false},      {&kernels->graph_id, 4, true},
        {&kernels->stack_id, 4, true},
    };
    memcpy(slots, list, sizeof list);
}

/* Grows by an eighth: realloc of a large array moves pages, not bytes, and unused memory counts per kernel. */
static bool kernels_reserve(struct session_loader *loader, uint32_t extra)
{
    struct kernel_columns *kernels = &loader->model->kernels;
    size_t needed = kernels->count + extra;
    if (needed <= kernels->capacity)
        return true;
    if (needed >= ID_UNKNOWN) {
        loader->status = GPUFL_E_LIMIT;
        return false;
    }
    size_t capacity = needed + kernels->capacity / 8 + 4096;
    capacity = capacity < loader->kernels_expected ? loader->kernels_expected : capacity;
    struct column_slot slots[kernel_column_slots];
    kernel_slots(kernels, slots);
    for (unsigned i = 0; i < kernel_column_slots; i++) {
        void *old, *grown;
        memcpy(&old, slots[i].pointer, sizeof old);
        if (!old && slots[i].is_optional)
            continue;
        grown = realloc(old, capacity * slots[i].width);
        if (!grown) {
            loader->status = GPUFL_E_NO_MEMORY;
            return false;
        }
        loader_large_pages(grown, capacity * slots[i].width);
        memcpy(slots[i].pointer, &grown, sizeof grown);
    }
    kernels->capacity = capacity;
    return true;
}

static bool kept_reserve(struct session_loader *loader, uint32_t count)
{
    if (count <= loader->kept_capacity)
        return true;
    uint32_t *grown = realloc(loader->kept, count * sizeof *grown);
    if (!grown) {
        loader->status = GPUFL_E_NO_MEMORY;
        return false;
    }
    loader->kept = grown;
    loader->kept_capacity = count;
    return true;
}

static bool optional_column(struct session_loader *loader, const struct batch_column *column, uint32_t **array)
{
    if (!*array && column->present) {
        *array = calloc(loader->model->kernels.capacity, sizeof **array);
        if (!*array)
            loader->status = GPUFL_E_NO_MEMORY;
    }
    return *array;
}

static int64_t api_start(int64_t start_ns, int64_t lead_ns)
{
    int64_t at;
    if (lead_ns == CELL_UNKNOWN || __builtin_sub_overflow(start_ns, lead_ns, &at) || at < 0)
        return TIME_UNKNOWN;
    return at;
}

static uint32_t api_duration(int64_t duration_ns)
{
    if (duration_ns < 0)
        return API_DURATION_UNKNOWN;
    return duration_ns < API_DURATION_UNKNOWN ? (uint32_t)duration_ns : API_DURATION_UNKNOWN - 1;
}

uint32_t loader_row_scope(struct session_loader *loader, const struct batch_view *view, unsigned column, uint32_t row)
{
    uint64_t id = cell_u64(view, column, row);
    if (!id) /* null: an unknown scope; a missing column: no information */
        return view->columns[column].present && cell(view, column, row) == CELL_UNKNOWN ? loader_unknown_scope(loader)
                                                                                        : ID_UNKNOWN;
    if (id != loader->last_scope_id) {
        loader->last_scope = loader_scope_find(loader, id);
        loader->last_scope_id = id;
    }
    if (loader->last_scope != ID_UNKNOWN)
        return loader->last_scope;
    loader->model->unresolved_rows++;
    return loader_unknown_scope(loader);
}

/* Copies valid times to the model's columns and the numbers of their rows to loader->kept; returns their count. */
static uint32_t kernel_times(struct session_loader *loader, const struct batch_view *view)
{
    struct kernel_columns *kernels = &loader->model->kernels;
    uint32_t count = 0;
    for (uint32_t row = 0; row < view->row_count; row++) {
        size_t at = kernels->count + count;
        int64_t duration_ns = cell(view, KERNEL_DURATION_NS, row);
        if (!loader_times_ok(loader, view->base_time_ns, cell(view, KERNEL_DT_NS, row), duration_ns,
                             &kernels->start_ns[at]))
            continue;
        kernels->duration_ns[at] = duration_ns;
        loader->kept[count++] = row;
    }
    return count;
}

/* One column of the kept rows: column by column is twice as fast as row by row. */
static void kernel_column(const struct session_loader *loader, const struct batch_view *view, unsigned column,
                          uint32_t count, uint32_t fallback, uint32_t *out)
{
    for (uint32_t i = 0; i < count; i++)
        out[i] = cell_u32(view, column, loader->kept[i], fallback);
}

static void kernel_rows(struct session_loader *loader, const struct batch_view *view)
{
    struct kernel_columns *kernels = &loader->model->kernels;
    if (!kernels_reserve(loader, view->row_count) || !kept_reserve(loader, view->row_count))
        return;
    bool has_graphs = optional_column(loader, &view->columns[KERNEL_GRAPH_ID], &kernels->graph_id);
    bool has_stacks = optional_column(loader, &view->columns[KERNEL_STACK_ID], &kernels->stack_id);
    if (loader->status != GPUFL_OK)
        return;
    const uint32_t count = kernel_times(loader, view);
    const size_t at = kernels->count;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t row = loader->kept[i];
        kernels->api_start_ns[at + i] = api_start(kernels->start_ns[at + i], cell(view, KERNEL_API_LEAD_NS, row));
        kernels->api_duration_ns[at + i] = api_duration(cell(view, KERNEL_API_DURATION_NS, row));
        uint32_t kernel_id = cell_u32(view, KERNEL_KERNEL_ID, row, 0);
        kernels->kernel_id[at + i] = kernel_id < kernel_id_max ? kernel_id : 0;
    }
    for (uint32_t i = 0; i < count; i++)
        kernels->scope[at + i] = loader_row_scope(loader, view, KERNEL_SCOPE_ID, loader->kept[i]);
    for (uint32_t i = 0; i < count; i++)
        kernels->device[at + i] = cell_device(view, KERNEL_DEVICE_ID, loader->kept[i]);
    kernel_column(loader, view, KERNEL_LAUNCH_ID, count, 0, kernels->launch_id + at);
    kernel_column(loader, view, KERNEL_STREAM_ID, count, ID_UNKNOWN, kernels->stream_id + at);
    kernel_column(loader, view, KERNEL_THREAD_ID, count, ID_UNKNOWN, kernels->thread_id + at);
    kernel_column(loader, view, KERNEL_CORR_ID, count, 0, kernels->corr_id + at);
    if (has_graphs)
        kernel_column(loader, view, KERNEL_GRAPH_ID, count, 0, kernels->graph_id + at);
    if (has_stacks)
        kernel_column(loader, view, KERNEL_STACK_ID, count, 0, kernels->stack_id + at);
    kernels->count += count;
}

static void launch_rows(struct session_loader *loader, const struct batch_view *view)
{
    struct session_model *model = loader->model;
    for (uint32_t row = 0; row < view->row_count; row++) {
        uint32_t id = cell_u32(view, LAUNCH_CONFIG_LAUNCH_ID, row, 0);
        /* Ids are dense; an absurd one must not cost memory. */
        if (!id || id > model->launch_count * 16 + 65536) {
            model->invalid_rows++;
            continue;
        }
        while (model->launch_count < id) {
            if (!loader_grow(loader, &model->launches, &loader->launch_capacity, model->launch_count,
                             sizeof *model->launches))
                return;
            model->launches[model->launch_count++] = (struct launch_config){.device = DEVICE_UNKNOWN,
                                                                            .num_regs = ID_UNKNOWN,
                                                                            .sgprs = ID_UNKNOWN,
                                                                            .accum_vgprs = ID_UNKNOWN,
                                                                            .static_shared = ID_UNKNOWN,
                                                                            .dyn_shared = ID_UNKNOWN,
                                                                            .shared_executed = ID_UNKNOWN,
                                                                            .local_per_thread = ID_UNKNOWN,
                                                                            .occupancy_bp = ID_UNKNOWN,
                                                                            .occupancy_regs_bp = ID_UNKNOWN,
                                                                            .occupancy_shared_bp = ID_UNKNOWN,
                                                                            .occupancy_warps_bp = ID_UNKNOWN,
                                                                            .occupancy_blocks_bp = ID_UNKNOWN,
                                                                            .active_blocks_max = ID_UNKNOWN};
        }
        struct launch_config *launch = &model->launches[id - 1];
        launch->kernel_id = cell_u32(view, LAUNCH_CONFIG_KERNEL_ID, row, 0);
        launch->device = cell_device(view, LAUNCH_CONFIG_DEVICE_ID, row);
        launch->limiter = cell_u8(view, LAUNCH_CONFIG_LIMITER, row);
        for (unsigned i = 0; i < 3; i++) {
            launch->grid[i] = cell_u32(view, LAUNCH_CONFIG_GRID_X + i, row, 0);
            launch->block[i] = cell_u32(view, LAUNCH_CONFIG_BLOCK_X + i, row, 0);
            launch->cluster[i] = cell_u32(view, LAUNCH_CONFIG_CLUSTER_X + i, row, 0);
        }
        launch->num_regs = cell_u32(view, LAUNCH_CONFIG_NUM_REGS, row, ID_UNKNOWN);
        launch->sgprs = cell_u32(view, LAUNCH_CONFIG_SGPRS, row, ID_UNKNOWN);
        launch->accum_vgprs = cell_u32(view, LAUNCH_CONFIG_ACCUM_VGPRS, row, ID_UNKNOWN);
        launch->static_shared = cell_u32(view, LAUNCH_CONFIG_STATIC_SHARED, row, ID_UNKNOWN);
        launch->dyn_shared = cell_u32(view, LAUNCH_CONFIG_DYN_SHARED, row, ID_UNKNOWN);
        launch->shared_executed = cell_u32(view, LAUNCH_CONFIG_SHARED_EXECUTED, row, ID_UNKNOWN);
        launch->local_per_thread = cell_u32(view, LAUNCH_CONFIG_LOCAL_PER_THREAD, row, ID_UNKNOWN);
        launch->local_total = cell_u64(view, LAUNCH_CONFIG_LOCAL_TOTAL, row);
        launch->occupancy_bp = cell_u32(view, LAUNCH_CONFIG_OCCUPANCY_BP, row, ID_UNKNOWN);
        launch->occupancy_regs_bp = cell_u32(view, LAUNCH_CONFIG_OCCUPANCY_REGS_BP, row, ID_UNKNOWN);
        launch->occupancy_shared_bp = cell_u32(view, LAUNCH_CONFIG_OCCUPANCY_SHARED_BP, row, ID_UNKNOWN);
        launch->occupancy_warps_bp = cell_u32(view, LAUNCH_CONFIG_OCCUPANCY_WARPS_BP, row, ID_UNKNOWN);
        launch->occupancy_blocks_bp = cell_u32(view, LAUNCH_CONFIG_OCCUPANCY_BLOCKS_BP, row, ID_UNKNOWN);
        launch->active_blocks_max = cell_u32(view, LAUNCH_CONFIG_ACTIVE_BLOCKS_MAX, row, ID_UNKNOWN);
    }
}

/* The columns of a gpu_span in a batch; the three batches order them differently. */
struct span_layout {
    unsigned dt, duration, stream, corr, device, api_lead, api_duration, thread, scope;
    int graph; /* -1: none */
};

static bool span_read(struct session_loader *loader, const struct batch_view *view, const struct span_layout *layout,
                      uint32_t row, struct gpu_span *span)
{
    int64_t duration_ns = cell(view, layout->duration, row), start_ns;
    if (!loader_times_ok(loader, view->base_time_ns, cell(view, layout->dt, row), duration_ns, &start_ns))
        return false;
    *span = (struct gpu_span){
        .start_ns = start_ns,
        .duration_ns = duration_ns,
        .api_start_ns = api_start(start_ns, cell(view, layout->api_lead, row)),
        .api_duration_ns = api_duration(cell(view, layout->api_duration, row)),
        .stream_id = cell_u32(view, layout->stream, row, ID_UNKNOWN),
        .thread_id = cell_u32(view, layout->thread, row, ID_UNKNOWN),
        .scope = loader_row_scope(loader, view, layout->scope, row),
        .corr_id = cell_u32(view, layout->corr, row, 0),
        .graph_id = layout->graph < 0 ? 0 : cell_u32(view, (unsigned)layout->graph, row, 0),
        .device = cell_device(view, layout->device, row),
    };
    return true;
}

static void copy_rows(struct session_loader *loader, const struct batch_view *view)
{
    static const struct span_layout layout = {
        MEMCPY_DT_NS,       MEMCPY_DURATION_NS,     MEMCPY_STREAM_ID, MEMCPY_CORR_ID,  MEMCPY_DEVICE_ID,
        MEMCPY_API_LEAD_NS, MEMCPY_API_DURATION_NS, MEMCPY_THREAD_ID, MEMCPY_SCOPE_ID, MEMCPY_GRAPH_ID};
    struct session_model *model = loader->model;
    for (uint32_t row = 0; row < view->row_count; row++) {
        struct gpu_copy copy = {.bytes = cell_u64(view, MEMCPY_BYTES, row),
                                .copy_kind = cell_u8(view, MEMCPY_COPY_KIND, row),
                                .src_kind = cell_u8(view, MEMCPY_SRC_KIND, row),
                                .dst_kind = cell_u8(view, MEMCPY_DST_KIND, row)};
        int64_t is_async = cell(view, MEMCPY_IS_ASYNC, row);
        copy.is_async = is_async == CELL_UNKNOWN ? -1 : is_async != 0;
        if (!span_read(loader, view, &layout, row, &copy.span))
            continue;
        if (!loader_grow(loader, &model->copies, &loader->copy_capacity, model->copy_count, sizeof copy))
            return;
        model->copies[model->copy_count++] = copy;
    }
}

static void memset_rows(struct session_loader *loader, const struct batch_view *view)
{
    static const struct span_layout layout = {
        MEMSET_DT_NS,       MEMSET_DURATION_NS,     MEMSET_STREAM_ID, MEMSET_CORR_ID,  MEMSET_DEVICE_ID,
        MEMSET_API_LEAD_NS, MEMSET_API_DURATION_NS, MEMSET_THREAD_ID, MEMSET_SCOPE_ID, MEMSET_GRAPH_ID};
    struct session_model *model = loader->model;
    for (uint32_t row = 0; row < view->row_count; row++) {
        struct gpu_memset fill = {.bytes = cell_u64(view, MEMSET_BYTES, row),
                                  .memory_kind = cell_u8(view, MEMSET_MEMORY_KIND, row)};
        if (!span_read(loader, view, &layout, row, &fill.span))
            continue;
        if (!loader_grow(loader, &model->memsets, &loader->memset_capacity, model->memset_count, sizeof fill))
            return;
        model->memsets[model->memset_count++] = fill;
    }
}

static void graph_rows(struct session_loader *loader, const struct batch_view *view)
{
    static const struct span_layout layout = {
        GRAPH_LAUNCH_DT_NS,     GRAPH_LAUNCH_DURATION_NS, GRAPH_LAUNCH_STREAM_ID,       GRAPH_LAUNCH_CORR_ID,
        GRAPH_LAUNCH_DEVICE_ID, GRAPH_LAUNCH_API_LEAD_NS, GRAPH_LAUNCH_API_DURATION_NS, GRAPH_LAUNCH_THREAD_ID,
        GRAPH_LAUNCH_SCOPE_ID,  GRAPH_LAUNCH_GRAPH_ID};
    struct session_model *model = loader->model;
    for (uint32_t row = 0; row < view->row_count; row++) {
        struct graph_launch launch = {.node_count = cell_u32(view, GRAPH_LAUNCH_NODE_COUNT, row, ID_UNKNOWN),
                                      .busy_ns = cell(view, GRAPH_LAUNCH_BUSY_NS, row)};
        if (!span_read(loader, view, &layout, row, &launch.span))
            continue;
        if (!loader_grow(loader, &model->graphs, &loader->graph_capacity, model->graph_count, sizeof launch))
            return;
        model->graphs[model->graph_count++] = launch;
    }
}

static void sync_rows(struct session_loader *loader, const struct batch_view *view)
{
    struct session_model *model = loader->model;
    for (uint32_t row = 0; row < view->row_count; row++) {
        struct sync_wait wait = {
            .duration_ns = cell(view, SYNCHRONIZATION_DURATION_NS, row),
            .stream_id = cell_u32(view, SYNCHRONIZATION_STREAM_ID, row, ID_UNKNOWN),
            .event_id = cell_u32(view, SYNCHRONIZATION_EVENT_ID, row, ID_UNKNOWN),
            .context_id = cell_u32(view, SYNCHRONIZATION_CONTEXT_ID, row, ID_UNKNOWN),
            .corr_id = cell_u32(view, SYNCHRONIZATION_CORR_ID, row, 0),
            .function_id = cell_u32(view, SYNCHRONIZATION_FUNCTION_ID, row, 0),
            .thread_id = cell_u32(view, SYNCHRONIZATION_THREAD_ID, row, ID_UNKNOWN),
            .sync_type = cell_u8(view, SYNCHRONIZATION_SYNC_TYPE, row),
        };
        if (!loader_times_ok(loader, view->base_time_ns, cell(view, SYNCHRONIZATION_DT_NS, row), wait.duration_ns,
                             &wait.start_ns))
            continue;
        wait.scope = loader_row_scope(loader, view, SYNCHRONIZATION_SCOPE_ID, row);
        if (!loader_grow(loader, &model->syncs, &loader->sync_capacity, model->sync_count, sizeof wait))
            return;
        model->syncs[model->sync_count++] = wait;
    }
}

static void memory_rows(struct session_loader *loader, const struct batch_view *view)
{
    struct session_model *model = loader->model;
    for (uint32_t row = 0; row < view->row_count; row++) {
        int64_t duration_ns = cell(view, MEMORY_ALLOC_DURATION_NS, row);
        struct memory_event event = {
            .duration_ns = duration_ns,
            .address = cell_u64(view, MEMORY_ALLOC_ADDRESS, row),
            .bytes = cell_u64(view, MEMORY_ALLOC_BYTES, row),
            .thread_id = cell_u32(view, MEMORY_ALLOC_THREAD_ID, row, ID_UNKNOWN),
            .device = cell_device(view, MEMORY_ALLOC_DEVICE_ID, row),
            .memory_op = cell_u8(view, MEMORY_ALLOC_MEMORY_OP, row),
            .memory_kind = cell_u8(view, MEMORY_ALLOC_MEMORY_KIND, row),
        };
        if (!loader_times_ok(loader, view->base_time_ns, cell(view, MEMORY_ALLOC_DT_NS, row),
                             duration_ns == CELL_UNKNOWN ? 0 : duration_ns, &event.time_ns))
            continue;
        event.scope = loader_row_scope(loader, view, MEMORY_ALLOC_SCOPE_ID, row);
        if (!loader_grow(loader, &model->memory_events, &loader->memory_event_capacity, model->memory_event_count,
                         sizeof event))
            return;
        model->memory_events[model->memory_event_count++] = event;
    }
}

/* Column 0 is dt_ns in all three. */
static void metric_rows(struct session_loader *loader, struct metric_table *table, const struct batch_view *view)
{
    unsigned column_count = record_catalogue[table->type].column_count;
    if (!table->columns)
        table->columns = calloc(column_count, sizeof *table->columns);
    size_t needed = table->count + view->row_count, capacity = table->capacity;
    if (needed > capacity)
        capacity = needed + capacity / 2 + 64;
    for (unsigned i = 0; table->columns && i < column_count; i++) {
        bool is_new = !table->columns[i] && view->columns[i].present;
        if (!is_new && (!table->columns[i] || capacity == table->capacity))
            continue;
        int64_t *grown = realloc(table->columns[i], capacity * sizeof *grown);
        if (!grown) {
            loader->status = GPUFL_E_NO_MEMORY;
            return;
        }
        table->columns[i] = grown;
        for (size_t row = 0; is_new && row < table->count; row++)
            grown[row] = CELL_UNKNOWN;
    }
    if (!table->columns) {
        loader->status = GPUFL_E_NO_MEMORY;
        return;
    }
    table->capacity = capacity;
    for (uint32_t row = 0; table->columns[0] && row < view->row_count; row++) {
        int64_t time_ns;
        if (!loader_times_ok(loader, view->base_time_ns, cell(view, 0, row), 0, &time_ns))
            continue;
        table->columns[0][table->count] = time_ns;
        for (unsigned i = 1; i < column_count; i++)
            if (table->columns[i])
                table->columns[i][table->count] = cell(view, i, row);
        table->count++;
    }
}

void loader_batch(struct session_loader *loader, const struct batch_view *view)
{
    struct session_model *model = loader->model;
    switch (view->info->type) {
    case RECORD_KERNEL_EVENT_BATCH:
        kernel_rows(loader, view);
        break;
    case RECORD_LAUNCH_CONFIG_BATCH:
        launch_rows(loader, view);
        break;
    case RECORD_MEMCPY_EVENT_BATCH:
        copy_rows(loader, view);
        break;
    case RECORD_MEMSET_EVENT_BATCH:
        memset_rows(loader, view);
        break;
    case RECORD_GRAPH_LAUNCH_BATCH:
        graph_rows(loader, view);
        break;
    case RECORD_SYNCHRONIZATION_EVENT_BATCH:
        sync_rows(loader, view);
        break;
    case RECORD_MEMORY_ALLOC_EVENT_BATCH:
        memory_rows(loader, view);
        break;
    case RECORD_SCOPE_EVENT_BATCH:
        loader_scope_rows(loader, view);
        break;
    case RECORD_SCOPE_ADOPTION_BATCH:
        loader_adoption_rows(loader, view);
        break;
    case RECORD_DEVICE_METRIC_BATCH:
        metric_rows(loader, &model->device_metrics, view);
        break;
    case RECORD_HOST_METRIC_BATCH:
        metric_rows(loader, &model->host_metrics, view);
        break;
    case RECORD_PROCESS_METRIC_BATCH:
        metric_rows(loader, &model->process_metrics, view);
        break;
    default:
        loader_deep_rows(loader, view);
        break;
    }
}
