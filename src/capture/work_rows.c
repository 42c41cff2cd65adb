/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/work_rows.h"

#include "capture/scope_history.h"

/* The columns that all rows with an API call have in common, at positions that depend on the type. */
struct call_columns {
    int api_lead, api_duration, thread, scope;
};

static void fill_call(int64_t *row, const struct call_columns *at, const struct call *call, int64_t start_ns)
{
    if (at->api_lead >= 0)
        row[at->api_lead] = call ? start_ns - call->start_ns : CELL_UNKNOWN;
    if (at->api_duration >= 0)
        row[at->api_duration] = call ? call->duration_ns : CELL_UNKNOWN;
    row[at->thread] = call && call->thread_id ? call->thread_id : CELL_UNKNOWN;
    row[at->scope] = call && call->scope_id != SCOPE_UNKNOWN ? (int64_t)call->scope_id : CELL_UNKNOWN;
}

static void write_kernel(struct recorder *recorder, const struct work *work, const struct call *call)
{
    static const struct call_columns at = {KERNEL_API_LEAD_NS, KERNEL_API_DURATION_NS, KERNEL_THREAD_ID,
                                           KERNEL_SCOPE_ID};
    int64_t *row = recorder_row(recorder, RECORD_KERNEL_EVENT_BATCH, work->start_ns);
    row[KERNEL_KERNEL_ID] = work->kernel_id;
    row[KERNEL_STREAM_ID] = work->stream_id;
    row[KERNEL_DURATION_NS] = work->duration_ns;
    row[KERNEL_CORR_ID] = work->correlation_id;
    row[KERNEL_DYN_SHARED] = work->dyn_shared;
    row[KERNEL_NUM_REGS] = work->regs;
    row[KERNEL_DEVICE_ID] = work->device_id;
    row[KERNEL_CONTEXT_ID] = work->context_id;
    row[KERNEL_LAUNCH_ID] = work->launch_id;
    row[KERNEL_GRAPH_ID] = work->graph_id;
    row[KERNEL_GRAPH_NODE_ID] = (int64_t)work->graph_node_id;
    if (call) {
        row[KERNEL_EXTERNAL_KIND] = call->external_kind;
        row[KERNEL_EXTERNAL_ID] = (int64_t)call->external_id;
        row[KERNEL_STACK_ID] = call->stack_id;
    }
    fill_call(row, &at, call, work->start_ns);
}

static void write_copy(struct recorder *recorder, const struct work *work, const struct call *call)
{
    static const struct call_columns at = {MEMCPY_API_LEAD_NS, MEMCPY_API_DURATION_NS, MEMCPY_THREAD_ID,
                                           MEMCPY_SCOPE_ID};
    int64_t *row = recorder_row(recorder, RECORD_MEMCPY_EVENT_BATCH, work->start_ns);
    row[MEMCPY_STREAM_ID] = work->stream_id;
    row[MEMCPY_DURATION_NS] = work->duration_ns;
    row[MEMCPY_BYTES] = (int64_t)work->bytes;
    row[MEMCPY_COPY_KIND] = work->kind;
    row[MEMCPY_CORR_ID] = work->correlation_id;
    row[MEMCPY_DEVICE_ID] = work->device_id;
    row[MEMCPY_CONTEXT_ID] = work->context_id;
    row[MEMCPY_SRC_KIND] = work->src_kind;
    row[MEMCPY_DST_KIND] = work->dst_kind;
    row[MEMCPY_IS_ASYNC] = work->is_async || (call && call->is_async);
    row[MEMCPY_SRC_DEVICE_ID] = work->is_peer ? work->detail >> 16 : CELL_UNKNOWN;
    row[MEMCPY_DST_DEVICE_ID] = work->is_peer ? work->detail & 0xffff : CELL_UNKNOWN;
    row[MEMCPY_GRAPH_ID] = work->graph_id;
    row[MEMCPY_GRAPH_NODE_ID] = (int64_t)work->graph_node_id;
    fill_call(row, &at, call, work->start_ns);
}

static void write_memset(struct recorder *recorder, const struct work *work, const struct call *call)
{
    static const struct call_columns at = {MEMSET_API_LEAD_NS, MEMSET_API_DURATION_NS, MEMSET_THREAD_ID,
                                           MEMSET_SCOPE_ID};
    int64_t *row = recorder_row(recorder, RECORD_MEMSET_EVENT_BATCH, work->start_ns);
    row[MEMSET_STREAM_ID] = work->stream_id;
    row[MEMSET_DURATION_NS] = work->duration_ns;
    row[MEMSET_BYTES] = (int64_t)work->bytes;
    row[MEMSET_VALUE] = work->detail;
    row[MEMSET_MEMORY_KIND] = work->dst_kind;
    row[MEMSET_CORR_ID] = work->correlation_id;
    row[MEMSET_DEVICE_ID] = work->device_id;
    row[MEMSET_CONTEXT_ID] = work->context_id;
    row[MEMSET_GRAPH_ID] = work->graph_id;
    row[MEMSET_GRAPH_NODE_ID] = (int64_t)work->graph_node_id;
    fill_call(row, &at, call, work->start_ns);
}

static void write_sync(struct recorder *recorder, const struct work *work, const struct call *call)
{
    static const struct call_columns at = {-1, -1, SYNCHRONIZATION_THREAD_ID, SYNCHRONIZATION_SCOPE_ID};
    int64_t *row = recorder_row(recorder, RECORD_SYNCHRONIZATION_EVENT_BATCH, work->start_ns);
    row[SYNCHRONIZATION_DURATION_NS] = work->duration_ns;
    row[SYNCHRONIZATION_SYNC_TYPE] = work->kind;
    row[SYNCHRONIZATION_STREAM_ID] = work->has_stream ? work->stream_id : CELL_UNKNOWN;
    row[SYNCHRONIZATION_EVENT_ID] = work->has_event ? work->detail : CELL_UNKNOWN;
    row[SYNCHRONIZATION_CONTEXT_ID] = work->context_id;
    row[SYNCHRONIZATION_CORR_ID] = work->correlation_id;
    row[SYNCHRONIZATION_FUNCTION_ID] = call ? call->stack_id : 0;
    fill_call(row, &at, call, work->start_ns);
}

static void write_memory(struct recorder *recorder, const struct work *work, const struct call *call)
{
    static const struct call_columns at = {-1, MEMORY_ALLOC_DURATION_NS, MEMORY_ALLOC_THREAD_ID, MEMORY_ALLOC_SCOPE_ID};
    int64_t *row = recorder_row(recorder, RECORD_MEMORY_ALLOC_EVENT_BATCH, work->start_ns);
    row[MEMORY_ALLOC_MEMORY_OP] = work->kind;
    row[MEMORY_ALLOC_MEMORY_KIND] = work->dst_kind;
    row[MEMORY_ALLOC_ADDRESS] = (int64_t)work->address;
    row[MEMORY_ALLOC_BYTES] = (int64_t)work->bytes;
    row[MEMORY_ALLOC_DEVICE_ID] = work->device_id;
    row[MEMORY_ALLOC_STREAM_ID] = work->has_stream ? work->stream_id : CELL_UNKNOWN;
    row[MEMORY_ALLOC_CORR_ID] = work->correlation_id;
    row[MEMORY_ALLOC_CONTEXT_ID] = work->context_id;
    row[MEMORY_ALLOC_IS_ASYNC] = work->is_async;
    fill_call(row, &at, call, work->start_ns);
}

void graph_row_write(struct recorder *recorder, const struct graph_launch *graph, const struct call *call)
{
    static const struct call_columns at = {GRAPH_LAUNCH_API_LEAD_NS, GRAPH_LAUNCH_API_DURATION_NS,
                                           GRAPH_LAUNCH_THREAD_ID, GRAPH_LAUNCH_SCOPE_ID};
    int64_t *row = recorder_row(recorder, RECORD_GRAPH_LAUNCH_BATCH, graph->start_ns);
    row[GRAPH_LAUNCH_DURATION_NS] = graph->end_ns - graph->start_ns;
    row[GRAPH_LAUNCH_GRAPH_ID] = graph->graph_id;
    row[GRAPH_LAUNCH_NODE_COUNT] = graph->node_count;
    row[GRAPH_LAUNCH_BUSY_NS] = graph->busy_ns;
    row[GRAPH_LAUNCH_CORR_ID] = graph->correlation_id;
    row[GRAPH_LAUNCH_DEVICE_ID] = graph->device_id;
    row[GRAPH_LAUNCH_CONTEXT_ID] = graph->context_id;
    row[GRAPH_LAUNCH_STREAM_ID] = graph->stream_id;
    fill_call(row, &at, call, graph->start_ns);
}

void work_row_write(struct recorder *recorder, const struct work *work, const struct call *call)
{
    switch ((enum record_type)work->record) {
    case RECORD_KERNEL_EVENT_BATCH:
        write_kernel(recorder, work, call);
        break;
    case RECORD_MEMCPY_EVENT_BATCH:
        write_copy(recorder, work, call);
        break;
    case RECORD_MEMSET_EVENT_BATCH:
        write_memset(recorder, work, call);
        break;
    case RECORD_SYNCHRONIZATION_EVENT_BATCH:
        write_sync(recorder, work, call);
        break;
    case RECORD_MEMORY_ALLOC_EVENT_BATCH:
        write_memory(recorder, work, call);
        break;
    default:
        break;
    }
}
