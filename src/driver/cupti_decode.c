/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes CUPTI's records. The library returns the next record's position, which is used only if the record lies
 * inside the buffer. */
#include "driver/cupti_calls.h"
#include "driver/cupti_table.h"

#include <string.h>

void cupti_set_version(struct cupti *cupti, uint32_t version)
{
    cupti->version = version;
    uint16_t *bytes = cupti->record_bytes;
    memset(bytes, 0, sizeof cupti->record_bytes);
    bytes[CUPTI_ABI_KIND_KERNEL] = bytes[CUPTI_ABI_KIND_CONCURRENT_KERNEL] =
        version >= CUPTI_ABI_VERSION_13_0 ? CUPTI_ABI_KERNEL_BYTES_13_0 : CUPTI_ABI_KERNEL_BYTES_12_0;
    bytes[CUPTI_ABI_KIND_MEMCPY] =
        version >= CUPTI_ABI_VERSION_12_8 ? CUPTI_ABI_MEMCPY_BYTES_12_8 : CUPTI_ABI_MEMCPY_BYTES_12_0;
    bytes[CUPTI_ABI_KIND_MEMCPY2] = CUPTI_ABI_MEMCPY_PEER_BYTES;
    bytes[CUPTI_ABI_KIND_MEMSET] = CUPTI_ABI_MEMSET_BYTES;
    bytes[CUPTI_ABI_KIND_MEMORY2] =
        version >= CUPTI_ABI_VERSION_12_6 ? CUPTI_ABI_MEMORY_BYTES_12_6 : CUPTI_ABI_MEMORY_BYTES_12_0;
    bytes[CUPTI_ABI_KIND_SYNCHRONIZATION] =
        version >= CUPTI_ABI_VERSION_12_8 ? CUPTI_ABI_SYNCHRONIZATION_BYTES_12_8 : CUPTI_ABI_SYNCHRONIZATION_BYTES_12_0;
    bytes[CUPTI_ABI_KIND_RUNTIME] = bytes[CUPTI_ABI_KIND_DRIVER] = CUPTI_ABI_API_BYTES;
    bytes[CUPTI_ABI_KIND_EXTERNAL_CORRELATION] = CUPTI_ABI_EXTERNAL_BYTES;
    bytes[CUPTI_ABI_KIND_OVERHEAD] = version >= CUPTI_ABI_VERSION_12_4   ? CUPTI_ABI_OVERHEAD_BYTES_12_4
                                     : version >= CUPTI_ABI_VERSION_12_2 ? CUPTI_ABI_OVERHEAD_BYTES_12_2
                                                                         : CUPTI_ABI_OVERHEAD_BYTES_12_0;
}

static void decode_kernel(const struct cupti_abi_kernel *record, struct kernel_activity *kernel)
{
    *kernel = (struct kernel_activity){
        .start_ns = (int64_t)record->start,
        .end_ns = (int64_t)record->end,
        .name = record->name,
        .graph_node_id = record->graph_node_id,
        .local_total_bytes = record->local_total,
        .graph_id = record->graph_id,
        .device_id = record->device_id,
        .context_id = record->context_id,
        .stream_id = record->stream_id,
        .correlation_id = record->correlation_id,
        .grid = {(uint32_t)record->grid[0], (uint32_t)record->grid[1], (uint32_t)record->grid[2]},
        .block = {(uint32_t)record->block[0], (uint32_t)record->block[1], (uint32_t)record->block[2]},
        .cluster = {record->cluster[0], record->cluster[1], record->cluster[2]},
        .regs = record->registers_per_thread,
        .static_shared = (uint32_t)record->static_shared,
        .dyn_shared = (uint32_t)record->dynamic_shared,
        .shared_executed = record->shared_executed,
        .local_per_thread = record->local_per_thread,
        .cache_requested = record->cache_config & 0xf,
        .cache_executed = record->cache_config >> 4,
    };
}

/* Fields that the three copy records share by name, though not by offset. */
#define COPY_FIELDS(record)                                                                                           \
    .start_ns = (int64_t)(record)->start, .end_ns = (int64_t)(record)->end, .bytes = (record)->bytes,                 \
    .graph_node_id = (record)->graph_node_id, .graph_id = (record)->graph_id, .device_id = (record)->device_id,       \
    .context_id = (record)->context_id, .stream_id = (record)->stream_id, .correlation_id = (record)->correlation_id, \
    .is_async = (record)->flags & CUPTI_ABI_FLAG_ASYNC

static void decode_memcpy(const struct cupti_abi_memcpy *record, struct copy_activity *copy)
{
    *copy = (struct copy_activity){
        COPY_FIELDS(record),
        .src_device_id = record->device_id,
        .dst_device_id = record->device_id,
        .copy_kind = record->copy_kind,
        .src_kind = record->src_kind,
        .dst_kind = record->dst_kind,
    };
}

static void decode_memcpy_peer(const struct cupti_abi_memcpy_peer *record, struct copy_activity *copy)
{
    *copy = (struct copy_activity){
        COPY_FIELDS(record),
        .src_device_id = record->src_device_id,
        .dst_device_id = record->dst_device_id,
        .copy_kind = record->copy_kind,
        .src_kind = record->src_kind,
        .dst_kind = record->dst_kind,
        .is_peer = 1,
    };
}

static void decode_memset(const struct cupti_abi_memset *record, struct copy_activity *copy)
{
    *copy = (struct copy_activity){
        COPY_FIELDS(record),    .src_device_id = record->device_id,          .dst_device_id = record->device_id,
        .value = record->value, .memory_kind = (uint8_t)record->memory_kind,
    };
}

#undef COPY_FIELDS

static void decode_sync(const struct cupti_abi_synchronization *record, struct sync_activity *sync)
{
    *sync = (struct sync_activity){
        .start_ns = (int64_t)record->start,
        .end_ns = (int64_t)record->end,
        .type = record->type,
        .correlation_id = record->correlation_id,
        .context_id = record->context_id,
        .stream_id = record->stream_id,
        .event_id = record->event_id,
        .has_stream = record->stream_id != CUPTI_ABI_INVALID_ID,
        .has_event = record->event_id != CUPTI_ABI_INVALID_ID,
    };
}

static void decode_api(const struct cupti_abi_api *record, struct api_activity *api)
{
    bool is_runtime = record->kind == CUPTI_ABI_KIND_RUNTIME;
    *api = (struct api_activity){
        .start_ns = (int64_t)record->start,
        .end_ns = (int64_t)record->end,
        .correlation_id = record->correlation_id,
        .thread_id = record->thread_id,
        .cbid = (uint16_t)record->cbid,
        .is_runtime = is_runtime,
        .is_graph_launch = cupti_call_is_graph_launch(is_runtime, record->cbid),
    };
}

static void decode_memory(const struct cupti_abi_memory *record, struct memory_activity *memory)
{
    *memory = (struct memory_activity){
        .time_ns = (int64_t)record->timestamp,
        .address = record->address,
        .bytes = record->bytes,
        .op = record->operation,
        .memory_kind = record->memory_kind,
        .correlation_id = record->correlation_id,
        .device_id = record->device_id,
        .context_id = record->context_id,
        .stream_id = record->stream_id,
        .has_stream = record->stream_id != CUPTI_ABI_INVALID_ID,
        .is_async = record->is_async != 0,
    };
}

static enum activity_kind decode(const void *record, uint32_t kind, struct activity *activity)
{
    switch (kind) {
    case CUPTI_ABI_KIND_KERNEL:
    case CUPTI_ABI_KIND_CONCURRENT_KERNEL:
        decode_kernel(record, &activity->u.kernel);
        return ACTIVITY_KERNEL;
    case CUPTI_ABI_KIND_MEMCPY:
        decode_memcpy(record, &activity->u.copy);
        return ACTIVITY_COPY;
    case CUPTI_ABI_KIND_MEMCPY2:
        decode_memcpy_peer(record, &activity->u.copy);
        return ACTIVITY_COPY;
    case CUPTI_ABI_KIND_MEMSET:
        decode_memset(record, &activity->u.copy);
        return ACTIVITY_MEMSET;
    case CUPTI_ABI_KIND_SYNCHRONIZATION:
        decode_sync(record, &activity->u.sync);
        return ACTIVITY_SYNC;
    case CUPTI_ABI_KIND_RUNTIME:
    case CUPTI_ABI_KIND_DRIVER:
        decode_api(record, &activity->u.api);
        return ACTIVITY_API;
    case CUPTI_ABI_KIND_EXTERNAL_CORRELATION: {
        const struct cupti_abi_external *external = record;
        activity->u.external =
            (struct external_activity){external->external_id, external->correlation_id, external->external_kind};
        return ACTIVITY_EXTERNAL;
    }
    case CUPTI_ABI_KIND_MEMORY2:
        decode_memory(record, &activity->u.memory);
        return ACTIVITY_MEMORY;
    case CUPTI_ABI_KIND_OVERHEAD: {
        const struct cupti_abi_overhead *overhead = record;
        activity->u.overhead =
            (struct overhead_activity){(int64_t)overhead->start, (int64_t)overhead->end, overhead->overhead_kind};
        return ACTIVITY_OVERHEAD;
    }
    default:
        return ACTIVITY_IGNORED;
    }
}

static uint32_t *id_of(struct activity *activity)
{
    switch (activity->kind) {
    case ACTIVITY_KERNEL:
        return &activity->u.kernel.correlation_id;
    case ACTIVITY_COPY:
    case ACTIVITY_MEMSET:
        return &activity->u.copy.correlation_id;
    case ACTIVITY_SYNC:
        return &activity->u.sync.correlation_id;
    case ACTIVITY_API:
        return &activity->u.api.correlation_id;
    case ACTIVITY_EXTERNAL:
        return &activity->u.external.correlation_id;
    case ACTIVITY_MEMORY:
        return &activity->u.memory.correlation_id;
    default:
        return NULL;
    }
}

/* Whether the library returned a position in the buffer after the previous one. */
static bool is_plausible(const struct activity_cursor *cursor, const void *previous)
{
    uintptr_t at = (uintptr_t)cursor->record, begin = (uintptr_t)cursor->buffer;
    return at >= begin && at - begin < cursor->valid && cursor->valid - (at - begin) >= 2 * sizeof(uint32_t) &&
           at % sizeof(uint64_t) == 0 && (!previous || at > (uintptr_t)previous);
}

bool activity_next(struct activity_cursor *cursor, struct activity *activity)
{
    if (!cursor->buffer || !cursor->valid)
        return false;
    const struct cupti *cupti = cursor->cupti;
    const void *previous = cursor->record;
    int result = cupti->call.get_next_record(cursor->buffer, cursor->valid, &cursor->record);
    if (result == CUPTI_ABI_MAX_LIMIT_REACHED) {
        cursor->valid = 0;
        return false;
    }
    if (result == CUPTI_ABI_SUCCESS && is_plausible(cursor, previous)) {
        uint32_t kind = *(const uint32_t *)cursor->record;
        size_t left = cursor->valid - (size_t)((uint8_t *)cursor->record - cursor->buffer);
        if (kind > CUPTI_ABI_KIND_LAST_KNOWN) {
            activity->kind = ACTIVITY_UNKNOWN;
            return true;
        }
        if (kind != CUPTI_ABI_KIND_INVALID && left >= cupti->record_bytes[kind]) {
            activity->kind = decode(cursor->record, kind, activity);
            uint32_t *id = id_of(activity);
            if (id)
                *id = cupti_unique_id(cupti, *id);
            return true;
        }
    }
    activity->kind = ACTIVITY_BAD;
    cursor->valid = 0;
    return true;
}

const char *overhead_kind_name(uint32_t kind)
{
    switch (kind) {
    case 1:
        return "driver_compiler";
    case 1u << 16:
        return "buffer_flush";
    case 2u << 16:
        return "instrumentation";
    case 3u << 16:
        return "resource";
    case 4u << 16:
        return "module_loading";
    case 5u << 16:
        return "lazy_function_loading";
    case 6u << 16:
        return "command_buffer_full";
    case 7u << 16:
        return "buffer_request";
    case 8u << 16:
        return "unified_memory_setup";
    default:
        return "unknown";
    }
}
