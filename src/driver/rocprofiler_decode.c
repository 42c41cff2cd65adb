/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes rocprofiler's records. Only the bytes covered by a record's own size are read; records of an unknown kind
 * are counted and skipped. */
#include "driver/rocprofiler_table.h"

/* CUPTI's numbers, which the log uses */
enum {
    copy_host_to_device = 1,
    copy_device_to_host = 2,
    copy_device_to_device = 8,
    copy_host_to_host = 9,
    copy_peer = 10,
    memory_pinned = 2,
    memory_device = 3,
    sync_event = 1,
    sync_stream = 3,
    sync_context = 4
};

static uint32_t device_of(const struct rocprofiler *rocprofiler, uint64_t agent)
{
    uint32_t index = rocprofiler_agent_index(rocprofiler, agent);
    return index < ROCPROFILER_AGENTS_MAX ? rocprofiler->agents[index].device_id : 0;
}

static unsigned decode_kernel(struct rocprofiler *rocprofiler, const struct rocprofiler_abi_dispatch *record,
                              struct activity *out)
{
    const struct rocprofiler_abi_dispatch_info *info = &record->info;
    const struct rocprofiler_kernel *kernel = rocprofiler_kernel_find(rocprofiler, info->kernel_id);
    uint32_t agent = rocprofiler_agent_index(rocprofiler, info->agent_id);
    out->kind = ACTIVITY_KERNEL;
    struct kernel_activity *activity = &out->u.kernel;
    *activity = (struct kernel_activity){
        .start_ns = rocprofiler_wall_ns(rocprofiler, record->start),
        .end_ns = rocprofiler_wall_ns(rocprofiler, record->end),
        .name = kernel ? kernel->name : NULL,
        .device_id = device_of(rocprofiler, info->agent_id),
        .stream_id = (uint32_t)info->queue_id,
        .correlation_id = (uint32_t)record->correlation.internal,
        .local_per_thread = info->private_segment_size,
        .regs = kernel ? kernel->regs : 0,
        .sgprs = kernel ? kernel->sgprs : 0,
        .accum_vgprs = kernel ? kernel->accum_vgprs : 0,
        .gfx_version = kernel && agent < ROCPROFILER_AGENTS_MAX ? rocprofiler->agents[agent].gfx_target_version : 0,
    };
    /* The dispatch has the total shared memory, the kernel the amount it was compiled with: the rest is dynamic. */
    uint32_t fixed = kernel && kernel->group_bytes <= info->group_segment_size ? kernel->group_bytes : 0;
    activity->static_shared = fixed;
    activity->dyn_shared = info->group_segment_size - fixed;
    activity->shared_executed = info->group_segment_size;
    for (int axis = 0; axis < 3; axis++) {
        uint32_t group = info->workgroup_size[axis] ? info->workgroup_size[axis] : 1;
        activity->block[axis] = group;
        /* In work-items, and the last group may be partial. */
        activity->grid[axis] = info->grid_size[axis] / group + (info->grid_size[axis] % group != 0);
    }
    return 1;
}

static unsigned decode_copy(const struct rocprofiler *rocprofiler, const struct rocprofiler_abi_copy *record,
                            struct activity *out)
{
    uint32_t src = rocprofiler_agent_index(rocprofiler, record->src_agent_id);
    uint32_t dst = rocprofiler_agent_index(rocprofiler, record->dst_agent_id);
    bool is_from_gpu = src < ROCPROFILER_AGENTS_MAX, is_to_gpu = dst < ROCPROFILER_AGENTS_MAX;
    uint32_t src_device = is_from_gpu ? rocprofiler->agents[src].device_id : 0;
    uint32_t dst_device = is_to_gpu ? rocprofiler->agents[dst].device_id : 0;
    bool is_peer = is_from_gpu && is_to_gpu && src != dst;
    static const uint8_t kinds[] = {[ROCPROFILER_ABI_COPY_HOST_TO_HOST] = copy_host_to_host,
                                    [ROCPROFILER_ABI_COPY_HOST_TO_DEVICE] = copy_host_to_device,
                                    [ROCPROFILER_ABI_COPY_DEVICE_TO_HOST] = copy_device_to_host,
                                    [ROCPROFILER_ABI_COPY_DEVICE_TO_DEVICE] = copy_device_to_device};
    bool is_known = record->operation > 0 && record->operation < (int32_t)(sizeof kinds);
    out->kind = ACTIVITY_COPY;
    out->u.copy = (struct copy_activity){
        .start_ns = rocprofiler_wall_ns(rocprofiler, record->start),
        .end_ns = rocprofiler_wall_ns(rocprofiler, record->end),
        .bytes = record->bytes,
        .correlation_id = (uint32_t)record->correlation.internal,
        .device_id = is_to_gpu ? dst_device : src_device,
        .src_device_id = src_device,
        .dst_device_id = dst_device,
        .copy_kind = is_peer    ? copy_peer
                     : is_known ? kinds[record->operation]
                                : 0,
        .src_kind = is_from_gpu ? memory_device : 0, /* pinned or not is unknown */
        .dst_kind = is_to_gpu ? memory_device : 0,
        .is_peer = is_peer,
    };
    return 1;
}

static unsigned decode_call(const struct rocprofiler *rocprofiler, const void *payload, struct activity out[2])
{
    const struct rocprofiler_abi_call_0 *old = payload;
    const struct rocprofiler_abi_call_1 *record = payload;
    bool has_ancestor = rocprofiler->version >= ROCPROFILER_ABI_VERSION_1_0;
    int32_t operation = old->operation;
    enum rocprofiler_call call = operation >= 0 && operation < ROCPROFILER_OPERATIONS_MAX
                                     ? (enum rocprofiler_call)rocprofiler->calls[operation]
                                     : ROCPROFILER_CALL_OTHER;
    out[0].kind = ACTIVITY_API;
    out[0].u.api = (struct api_activity){
        .start_ns = rocprofiler_wall_ns(rocprofiler, has_ancestor ? record->start : old->start),
        .end_ns = rocprofiler_wall_ns(rocprofiler, has_ancestor ? record->end : old->end),
        .correlation_id = (uint32_t)old->correlation.internal,
        .thread_id = (uint32_t)(has_ancestor ? record->thread_id : old->thread_id),
        .cbid = (uint16_t)operation,
        .is_runtime = 1,
        .is_graph_launch = call == ROCPROFILER_CALL_GRAPH,
        .is_async = call == ROCPROFILER_CALL_ASYNC,
    };
    if (call < ROCPROFILER_CALL_WAIT_EVENT || !(rocprofiler->granted & ROCPROFILER_SYNC))
        return 1;
    /* rocprofiler has no records of waits: this call is one, from its start to its end. */
    out[1].kind = ACTIVITY_SYNC;
    out[1].u.sync = (struct sync_activity){
        .start_ns = out[0].u.api.start_ns,
        .end_ns = out[0].u.api.end_ns,
        .type = call == ROCPROFILER_CALL_WAIT_EVENT    ? sync_event
                : call == ROCPROFILER_CALL_WAIT_STREAM ? sync_stream
                                                       : sync_context,
        .correlation_id = out[0].u.api.correlation_id,
    };
    return 2;
}

static unsigned decode_memory(const struct rocprofiler *rocprofiler, const void *payload, struct activity *out)
{
    const struct rocprofiler_abi_memory_0 *old = payload;
    const struct rocprofiler_abi_memory_1 *record = payload;
    bool has_ancestor = rocprofiler->version >= ROCPROFILER_ABI_VERSION_1_0;
    uint64_t agent = has_ancestor ? record->agent_id : old->agent_id;
    bool is_free = old->operation == ROCPROFILER_ABI_MEMORY_FREE || old->operation == ROCPROFILER_ABI_MEMORY_VMEM_FREE;
    bool is_gpu = rocprofiler_agent_index(rocprofiler, agent) < ROCPROFILER_AGENTS_MAX;
    out->kind = ACTIVITY_MEMORY;
    out->u.memory = (struct memory_activity){
        .time_ns = rocprofiler_wall_ns(rocprofiler, has_ancestor ? record->start : old->start),
        .address = has_ancestor ? record->address : old->address,
        .bytes = has_ancestor ? record->bytes : old->bytes,
        .op = is_free ? 2 : 1,
        /* A release does not name an agent. */
        .memory_kind = is_gpu    ? memory_device
                       : is_free ? 0
                                 : memory_pinned,
        .correlation_id = (uint32_t)old->correlation.internal,
        .device_id = device_of(rocprofiler, agent),
    };
    return 1;
}

/* Accounts for the record of awaited work; false: it belongs to an earlier trace. A short record does not identify
 * the work. */
static bool deliver(struct rocprofiler *rocprofiler, int kind, const void *payload, bool is_whole)
{
    const struct rocprofiler_abi_dispatch *dispatch = payload;
    const struct rocprofiler_abi_copy *copy = payload;
    if (kind == ROCPROFILER_ABI_KIND_KERNEL_DISPATCH)
        return rocprofiler_awaited_deliver(&rocprofiler->awaited[ROCPROFILER_AWAITED_KERNELS],
                                           is_whole ? dispatch->info.dispatch_id : 0);
    if (kind == ROCPROFILER_ABI_KIND_MEMORY_COPY)
        return rocprofiler_awaited_deliver(&rocprofiler->awaited[ROCPROFILER_AWAITED_COPIES],
                                           is_whole ? copy->correlation.internal : 0);
    return true;
}

unsigned rocprofiler_decode(struct rocprofiler *rocprofiler, const struct rocprofiler_abi_header *header,
                            struct activity out[2])
{
    uint64_t size = *(const uint64_t *)header->payload;
    int kind = header->category == ROCPROFILER_ABI_CATEGORY_TRACING ? (int)header->kind : -1;
    bool has_ancestor = rocprofiler->version >= ROCPROFILER_ABI_VERSION_1_0;
    uint64_t needed = 0;
    if (kind == ROCPROFILER_ABI_KIND_KERNEL_DISPATCH)
        needed = offsetof(struct rocprofiler_abi_dispatch, info.reserved);
    else if (kind == ROCPROFILER_ABI_KIND_MEMORY_COPY)
        needed = sizeof(struct rocprofiler_abi_copy);
    else if (kind == ROCPROFILER_ABI_KIND_HIP_RUNTIME_API)
        needed = has_ancestor ? sizeof(struct rocprofiler_abi_call_1) : sizeof(struct rocprofiler_abi_call_0);
    else if (kind >= 0 && kind == rocprofiler->memory_kind)
        needed = has_ancestor ? sizeof(struct rocprofiler_abi_memory_1) : sizeof(struct rocprofiler_abi_memory_0);
    if (!needed) {
        atomic_fetch_add(&rocprofiler->unknown, 1);
        return 0;
    }
    if (!deliver(rocprofiler, kind, header->payload, size >= needed))
        return 0;
    if (size < needed) {
        out->kind = ACTIVITY_BAD;
        return 1;
    }
    if (kind == ROCPROFILER_ABI_KIND_KERNEL_DISPATCH)
        return decode_kernel(rocprofiler, header->payload, out);
    if (kind == ROCPROFILER_ABI_KIND_MEMORY_COPY)
        return decode_copy(rocprofiler, header->payload, out);
    if (kind == ROCPROFILER_ABI_KIND_HIP_RUNTIME_API)
        return decode_call(rocprofiler, header->payload, out);
    return decode_memory(rocprofiler, header->payload, out);
}
