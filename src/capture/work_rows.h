/* SPDX-License-Identifier: Apache-2.0 */
/* Turns work (kernels, copies, memsets, synchronizations, allocations, graph launches) into log rows. The recorder
 * owns the rows. Collector thread only. */
#ifndef GPUFL_CAPTURE_WORK_ROWS_H
#define GPUFL_CAPTURE_WORK_ROWS_H

#include "capture/calls.h"
#include "capture/recorder.h"

/* One GPU or host event on its way to a row; kernels and copies share the struct so that one queue can hold all
 * waiting work. */
struct work {
    int64_t start_ns, duration_ns;
    uint64_t bytes, address, graph_node_id;
    uint32_t correlation_id, device_id, context_id, stream_id, graph_id;
    uint32_t kernel_id, launch_id, dyn_shared;
    uint32_t detail; /* memset: value; sync: event id; copy: source device << 16 | destination device */
    uint16_t regs;
    uint8_t record; /* enum record_type */
    uint8_t kind;   /* copy kind, sync type, memory operation */
    uint8_t src_kind, dst_kind;
    uint8_t is_async : 1, is_peer : 1, has_stream : 1, has_event : 1;
    uint8_t source : 1; /* enum activity_source */
    uint8_t tick;
};

/* One launch of a graph, summed up over its nodes. */
struct graph_launch {
    int64_t start_ns, end_ns, busy_ns;
    uint32_t correlation_id, graph_id, device_id, context_id, stream_id, node_count;
    uint8_t tick;
};

/* call: the API call that caused it, NULL when that is unknown. */
void work_row_write(struct recorder *recorder, const struct work *work, const struct call *call);
void graph_row_write(struct recorder *recorder, const struct graph_launch *graph, const struct call *call);

#endif
