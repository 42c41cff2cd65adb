/* SPDX-License-Identifier: Apache-2.0 */
/* What a GPU and the calls to its runtime did, for all vendors: one struct per kind of event. CUPTI's and
 * rocprofiler's records are decoded into these structs; code above this folder never sees the vendors' records.
 * CUPTI's times are CLOCK_REALTIME, rocprofiler's are those of the log (base/clock.h). */
#ifndef GPUFL_DRIVER_ACTIVITY_H
#define GPUFL_DRIVER_ACTIVITY_H

#include <stdbool.h>
#include <stdint.h>

struct kernel_activity {
    int64_t start_ns, end_ns;
    const char *name; /* mangled; owned by the driver layer, valid while the activity is read */
    uint64_t graph_node_id;
    uint64_t local_total_bytes;
    uint32_t graph_id, device_id, context_id, stream_id, correlation_id;
    uint32_t grid[3], block[3], cluster[3];
    uint32_t regs, static_shared, dyn_shared, shared_executed, local_per_thread; /* regs: AMD's VGPRs */
    uint32_t sgprs, accum_vgprs, gfx_version; /* AMD only; 90402 = gfx942, 0 unknown */
    uint8_t cache_requested, cache_executed;
};
struct copy_activity { /* memcpy, peer memcpy and memset */
    int64_t start_ns, end_ns;
    uint64_t bytes, graph_node_id;
    uint32_t graph_id, device_id, context_id, stream_id, correlation_id;
    uint32_t src_device_id, dst_device_id;                                 /* peer copies */
    uint32_t value;                                                        /* memset */
    uint8_t copy_kind, src_kind, dst_kind, is_async, is_peer, memory_kind; /* CUPTI's numbering, for all vendors */
};
struct sync_activity {
    int64_t start_ns, end_ns;
    uint32_t type /* CUPTI's numbering */, correlation_id, context_id, stream_id, event_id;
    bool has_stream, has_event;
};
/* A call that was observed while the program made it. */
struct user_call {
    uint64_t external_id;
    uint32_t correlation_id, context_id;
    uint32_t wait_type;     /* CUPTI's numbering; 0: not a wait */
    uint32_t stream_id;     /* of a wait that returns */
    uint32_t external_kind; /* 0: no external id */
    bool has_stream, is_launch;
    bool has_kernel; /* on return: it launched a kernel, whose record must follow */
};
struct api_activity { /* one runtime or driver call */
    int64_t start_ns, end_ns;
    uint32_t correlation_id, thread_id;
    uint16_t cbid;
    uint8_t is_runtime, is_graph_launch, is_async /* by its name; HIP only */;
};
struct external_activity {
    uint64_t external_id;
    uint32_t correlation_id, external_kind;
};
struct memory_activity {
    int64_t time_ns;
    uint64_t address, bytes;
    uint32_t op /* 1 alloc 2 free */, memory_kind, correlation_id, device_id, context_id, stream_id;
    bool has_stream, is_async;
};
struct overhead_activity {
    int64_t start_ns, end_ns;
    uint32_t kind; /* CUPTI's numbering */
};

/* The values of one dispatch's counters, summed over the parts of the GPU that count. */
enum { DISPATCH_COUNTERS_MAX = 16 };
struct counters_activity {
    int64_t start_ns, end_ns;
    uint64_t dispatch_id;
    const char *name; /* mangled, as of a kernel */
    uint32_t device_id, correlation_id;
    uint32_t known; /* bit per value */
    double values[DISPATCH_COUNTERS_MAX];
};

enum activity_kind {
    ACTIVITY_KERNEL,
    ACTIVITY_COPY,
    ACTIVITY_MEMSET,
    ACTIVITY_SYNC,
    ACTIVITY_API,
    ACTIVITY_EXTERNAL,
    ACTIVITY_MEMORY,
    ACTIVITY_OVERHEAD,
    ACTIVITY_COUNTERS,
    ACTIVITY_IGNORED /* a known kind that is not used */,
    ACTIVITY_UNKNOWN /* a kind of a newer library */,
    ACTIVITY_BAD /* invalid record: the rest of the buffer is unreadable */
};
/* Whose correlation ids and devices an activity uses. */
enum activity_source { ACTIVITY_FROM_CUPTI, ACTIVITY_FROM_ROCPROFILER, ACTIVITY_SOURCE_COUNT };

struct activity {
    enum activity_kind kind;
    union {
        struct kernel_activity kernel;
        struct copy_activity copy;
        struct sync_activity sync;
        struct api_activity api;
        struct external_activity external;
        struct memory_activity memory;
        struct overhead_activity overhead;
        struct counters_activity counters;
    } u;
};

#endif
