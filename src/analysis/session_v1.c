/* SPDX-License-Identifier: Apache-2.0 */
/* Single records of GPUFlight sessions that gpufl itself writes as batches. */
#include "analysis/session_loader.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

static uint32_t number_u32(const struct json_value *object, const char *key, uint32_t fallback)
{
    int64_t value = json_get_int(object, key, -1);
    return value >= 0 && value < ID_UNKNOWN ? (uint32_t)value : fallback;
}

/* v1 quotes device_id and stream_id of single events. */
static uint32_t quoted_u32(const struct json_value *object, const char *key)
{
    const char *text = json_get_text(object, key, NULL);
    if (!text)
        return number_u32(object, key, ID_UNKNOWN);
    char *end;
    unsigned long long value = strtoull(text, &end, 10);
    return end != text && !*end && value < ID_UNKNOWN ? (uint32_t)value : ID_UNKNOWN;
}

static uint32_t fraction_bp(const struct json_value *object, const char *key)
{
    const struct json_value *value = json_member(object, key);
    if (!value || (value->kind != JSON_INT && value->kind != JSON_DOUBLE) || !(value->number >= 0) || value->number > 1)
        return ID_UNKNOWN;
    return (uint32_t)lround(value->number * 10000);
}

static void dimensions(const struct json_value *object, const char *key, uint32_t out[3])
{
    unsigned x, y, z;
    if (sscanf(json_get_text(object, key, ""), "(%9u,%9u,%9u)", &x, &y, &z) == 3) {
        out[0] = x;
        out[1] = y;
        out[2] = z;
    }
}

static uint8_t limiter_of(const char *text)
{
    static const struct {
        const char *part;
        uint8_t limiter;
    } words[] = {{"reg", 1}, {"shared", 2}, {"smem", 2}, {"warp", 3}, {"block", 4}, {"grid", 5}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcasestr(text, words[i].part))
            return words[i].limiter;
    return 0;
}

/* Paths given as text have no dictionary id yet: loader_finish assigns one. */
static uint32_t path_of(struct session_loader *loader, const struct json_value *path)
{
    if (!path || path->kind != JSON_STRING || !path->text_size)
        return 0;
    uint32_t id = intern_id(&loader->paths, path->text, path->text_size, NULL);
    if (!id)
        loader->status = GPUFL_E_NO_MEMORY;
    return id ? id | V1_PATH : 0;
}

static void kernel_detail(struct session_loader *loader, const struct json_value *object)
{
    struct launch_config launch;
    memset(&launch, 0, sizeof launch); /* compared as bytes */
    launch.device = DEVICE_UNKNOWN;
    launch.limiter = limiter_of(json_get_text(object, "limiting_resource", ""));
    dimensions(object, "grid", launch.grid);
    dimensions(object, "block", launch.block);
    launch.num_regs = launch.sgprs = launch.accum_vgprs = launch.dyn_shared = ID_UNKNOWN;
    launch.static_shared = number_u32(object, "static_shared", ID_UNKNOWN);
    launch.shared_executed = number_u32(object, "shared_mem_executed_bytes", ID_UNKNOWN);
    launch.local_per_thread = number_u32(object, "local_mem_per_thread_bytes", ID_UNKNOWN);
    launch.local_total = (uint64_t)json_get_int(object, "local_mem_total_bytes", 0);
    launch.occupancy_bp = fraction_bp(object, "occupancy");
    launch.occupancy_regs_bp = fraction_bp(object, "reg_occupancy");
    launch.occupancy_shared_bp = fraction_bp(object, "smem_occupancy");
    launch.occupancy_warps_bp = fraction_bp(object, "warp_occupancy");
    launch.occupancy_blocks_bp = fraction_bp(object, "block_occupancy");
    launch.active_blocks_max = number_u32(object, "max_active_blocks", ID_UNKNOWN);
    struct kernel_detail detail = {
        .corr_id = number_u32(object, "corr_id", 0),
        .content_id = intern_id(&loader->detail_contents, &launch, sizeof launch, NULL),
        .path_id = path_of(loader, json_member(object, "user_scope")),
    };
    if (!detail.content_id)
        loader->status = GPUFL_E_NO_MEMORY;
    if (loader_grow(loader, &loader->details, &loader->detail_capacity, loader->detail_count, sizeof detail))
        loader->details[loader->detail_count++] = detail;
}

static bool span_of(struct session_loader *loader, const struct json_value *object, struct gpu_span *span)
{
    int64_t start_ns = json_get_int(object, "start_ns", -1), end_ns = json_get_int(object, "end_ns", -1), duration_ns;
    if (__builtin_sub_overflow(end_ns, start_ns, &duration_ns))
        duration_ns = -1;
    uint32_t device = quoted_u32(object, "device_id");
    *span = (struct gpu_span){
        .duration_ns = duration_ns,
        .api_start_ns = TIME_UNKNOWN,
        .api_duration_ns = API_DURATION_UNKNOWN,
        .stream_id = quoted_u32(object, "stream_id"),
        .thread_id = ID_UNKNOWN,
        .scope = ID_UNKNOWN,
        .corr_id = number_u32(object, "corr_id", 0),
        .graph_id = number_u32(object, "graph_id", 0),
        .device = device < DEVICE_UNKNOWN ? (uint16_t)device : DEVICE_UNKNOWN,
    };
    int64_t api_start_ns = json_get_int(object, "api_start_ns", 0),
            api_exit_ns = json_get_int(object, "api_exit_ns", 0);
    if (api_start_ns > 0 && api_exit_ns >= api_start_ns) {
        span->api_start_ns = api_start_ns;
        int64_t api_ns = api_exit_ns - api_start_ns;
        span->api_duration_ns = api_ns < API_DURATION_UNKNOWN ? (uint32_t)api_ns : API_DURATION_UNKNOWN - 1;
    }
    return loader_times_ok(loader, start_ns, 0, duration_ns, &span->start_ns);
}

static void memset_event(struct session_loader *loader, const struct json_value *object)
{
    struct session_model *model = loader->model;
    struct gpu_memset fill = {.bytes = (uint64_t)json_get_int(object, "bytes", 0)};
    if (span_of(loader, object, &fill.span) &&
        loader_grow(loader, &model->memsets, &loader->memset_capacity, model->memset_count, sizeof fill))
        model->memsets[model->memset_count++] = fill;
}

static void graph_event(struct session_loader *loader, const struct json_value *object)
{
    struct session_model *model = loader->model;
    struct graph_launch launch = {.node_count = ID_UNKNOWN, .busy_ns = TIME_UNKNOWN};
    if (span_of(loader, object, &launch.span) &&
        loader_grow(loader, &model->graphs, &loader->graph_capacity, model->graph_count, sizeof launch))
        model->graphs[model->graph_count++] = launch;
}

/* Markers have neither an instance id nor a parent: each name becomes a root. */
static void nvtx_event(struct session_loader *loader, const struct json_value *object)
{
    struct gpu_span span;
    const struct json_value *name = json_member(object, "name");
    if (!name || name->kind != JSON_STRING || !span_of(loader, object, &span))
        return;
    uint32_t path_id = path_of(loader, name);
    struct scope_instance *scope = loader_scope_add(loader, 0);
    if (!scope)
        return;
    scope->begin_ns = span.start_ns;
    scope->end_ns = span.start_ns + span.duration_ns;
    scope->source = 1;
    scope->path_id = path_id;
}

void loader_v1_record(struct session_loader *loader, enum record_type type, const struct json_value *object)
{
    if (type == RECORD_KERNEL_DETAIL)
        kernel_detail(loader, object);
    else if (type == RECORD_MEMSET_EVENT)
        memset_event(loader, object);
    else if (type == RECORD_GRAPH_LAUNCH_EVENT)
        graph_event(loader, object);
    else if (type == RECORD_NVTX_MARKER_EVENT)
        nvtx_event(loader, object);
}
