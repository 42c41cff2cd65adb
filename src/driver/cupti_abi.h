/* SPDX-License-Identifier: Apache-2.0 */
/* The part of CUPTI's binary interface that we use: our own declarations, so that no CUDA toolkit is needed to
 * build. Sizes and offsets are for 64-bit machines and are compared with the toolkit's headers, where installed, by
 * tests/unit/test_driver_abi.c. Between 12.0 and 13.x records only grew at their end: a struct here is the layout of
 * 13.0, and the sizes of earlier versions say how far an older library fills it in. */
#ifndef GPUFL_DRIVER_CUPTI_ABI_H
#define GPUFL_DRIVER_CUPTI_ABI_H

#include <stddef.h>
#include <stdint.h>

/* cuptiGetVersion */
enum {
    CUPTI_ABI_VERSION_12_0 = 19,
    CUPTI_ABI_VERSION_12_2 = 20,
    CUPTI_ABI_VERSION_12_4 = 22,
    CUPTI_ABI_VERSION_12_6 = 24,
    CUPTI_ABI_VERSION_12_8 = 26,
    CUPTI_ABI_VERSION_12_9 = 27, /* the first that does not crash when it gets no buffer */
    CUPTI_ABI_VERSION_13_0 = 130000
};

/* CUptiResult */
enum {
    CUPTI_ABI_SUCCESS = 0,
    CUPTI_ABI_INVALID_PARAMETER = 1,  /* also an id unknown to this version */
    CUPTI_ABI_MAX_LIMIT_REACHED = 12, /* end of a buffer */
    CUPTI_ABI_NOT_INITIALIZED = 15,
    CUPTI_ABI_INVALID_KIND = 21, /* record not (completely) written */
    CUPTI_ABI_INSUFFICIENT_PRIVILEGES = 35,
    CUPTI_ABI_MULTIPLE_SUBSCRIBERS = 39,
    CUPTI_ABI_UNKNOWN = 999 /* among others: no driver */
};

/* CUpti_ActivityKind */
enum {
    CUPTI_ABI_KIND_INVALID = 0,
    CUPTI_ABI_KIND_MEMCPY = 1,
    CUPTI_ABI_KIND_MEMSET = 2,
    CUPTI_ABI_KIND_KERNEL = 3,
    CUPTI_ABI_KIND_DRIVER = 4,
    CUPTI_ABI_KIND_RUNTIME = 5,
    CUPTI_ABI_KIND_CONCURRENT_KERNEL = 10,
    CUPTI_ABI_KIND_OVERHEAD = 17,
    CUPTI_ABI_KIND_MEMCPY2 = 22,
    CUPTI_ABI_KIND_SYNCHRONIZATION = 38,
    CUPTI_ABI_KIND_EXTERNAL_CORRELATION = 39,
    CUPTI_ABI_KIND_INTERNAL_LAUNCH_API = 48,
    CUPTI_ABI_KIND_MEMORY2 = 49,
    CUPTI_ABI_KIND_LAST_KNOWN = 55 /* CONFIDENTIAL_COMPUTE_ROTATION, 13.0 */
};

enum {
    CUPTI_ABI_DOMAIN_DRIVER = 1,
    CUPTI_ABI_DOMAIN_RUNTIME = 2,
    CUPTI_ABI_DOMAIN_RESOURCE = 3,
    CUPTI_ABI_RESOURCE_CONTEXT_CREATED = 1,
    CUPTI_ABI_RESOURCE_CONTEXT_DESTROYING = 2,
    CUPTI_ABI_RESOURCE_STREAM_DESTROYING = 4,
    CUPTI_ABI_RESOURCE_MODULE_LOADED = 6,
    CUPTI_ABI_RESOURCE_GRAPHEXEC_STARTING = 17,
    CUPTI_ABI_RESOURCE_GRAPHEXEC_CREATED = 18,
    CUPTI_ABI_RESOURCE_GRAPHEXEC_DESTROYING = 19,
    CUPTI_ABI_RESOURCE_GRAPHNODE_CLONED = 20,
    CUPTI_ABI_API_ENTER = 0,
    CUPTI_ABI_API_EXIT = 1,
    CUPTI_ABI_THREAD_ID_SYSTEM = 1,
    CUPTI_ABI_FLUSH_FORCED = 1,
    CUPTI_ABI_FLAG_ASYNC = 1, /* memcpy and memset records */
    CUPTI_ABI_MEMORY_ALLOCATION = 1,
    CUPTI_ABI_MEMORY_RELEASE = 2
};
#define CUPTI_ABI_INVALID_ID 0xffffffffu /* stream, context or event: not applicable */

struct cupti_abi_kernel {
    uint32_t kind;
    uint8_t cache_config; /* low half requested, high half executed */
    uint8_t shared_memory_config;
    uint16_t registers_per_thread;
    uint32_t partitioned_cache_requested, partitioned_cache_executed;
    uint64_t start, end, completed;
    uint32_t device_id, context_id, stream_id;
    int32_t grid[3], block[3];
    int32_t static_shared, dynamic_shared;
    uint32_t local_per_thread, local_total_32;
    uint32_t correlation_id;
    int64_t grid_id;
    const char *name;
    void *reserved;
    uint64_t queued, submitted;
    uint8_t launch_type, is_carveout_requested, carveout_requested, padding;
    uint32_t shared_executed;
    uint64_t graph_node_id;
    uint32_t shared_limit_config;
    uint32_t graph_id;
    void *access_policy_window;
    uint32_t channel_id, channel_type;
    uint32_t cluster[3];
    uint32_t cluster_policy;
    uint64_t local_total;
    uint32_t cluster_size_max, clusters_active_max; /* 12.0 */
    uint8_t is_device_launched;                     /* 13.0 */
    uint8_t padding_end[7];
};

struct cupti_abi_memcpy {
    uint32_t kind;
    uint8_t copy_kind, src_kind, dst_kind, flags;
    uint64_t bytes, start, end;
    uint32_t device_id, context_id, stream_id, correlation_id, runtime_correlation_id, padding;
    void *reserved;
    uint64_t graph_node_id;
    uint32_t graph_id, channel_id, channel_type;
    uint8_t is_device_launched, padding_end[3];
    uint64_t copy_count; /* 12.8 */
};

struct cupti_abi_memcpy_peer {
    uint32_t kind;
    uint8_t copy_kind, src_kind, dst_kind, flags;
    uint64_t bytes, start, end;
    uint32_t device_id, context_id, stream_id;
    uint32_t src_device_id, src_context_id, dst_device_id, dst_context_id, correlation_id;
    void *reserved;
    uint64_t graph_node_id;
    uint32_t graph_id, channel_id, channel_type, padding;
};

struct cupti_abi_memset {
    uint32_t kind, value;
    uint64_t bytes, start, end;
    uint32_t device_id, context_id, stream_id, correlation_id;
    uint16_t flags, memory_kind;
    uint32_t padding;
    void *reserved;
    uint64_t graph_node_id;
    uint32_t graph_id, channel_id, channel_type;
    uint8_t is_device_launched, padding_end[3];
};

struct cupti_abi_memory {
    uint32_t kind, operation, memory_kind, correlation_id;
    uint64_t address, bytes, timestamp, pc;
    uint32_t process_id, device_id, context_id, stream_id;
    const char *name;
    uint32_t is_async, padding;
    struct {
        uint32_t type, padding;
        uint64_t address, release_threshold, size_or_process_id, utilized_bytes;
    } pool;
    const char *source; /* 12.6 */
};

struct cupti_abi_synchronization {
    uint32_t kind, type;
    uint64_t start, end;
    uint32_t correlation_id, context_id, stream_id, event_id;
    uint64_t event_sync_id; /* 12.8, and the rest */
    uint32_t return_value, padding;
};

struct cupti_abi_api { /* RUNTIME, DRIVER and INTERNAL_LAUNCH_API */
    uint32_t kind, cbid;
    uint64_t start, end;
    uint32_t process_id, thread_id, correlation_id, return_value;
};

struct cupti_abi_external {
    uint32_t kind, external_kind;
    uint64_t external_id;
    uint32_t correlation_id, reserved;
};

struct cupti_abi_overhead {
    uint32_t kind, overhead_kind, object_kind, object_id[3];
    uint64_t start, end;
    uint32_t correlation_id, reserved; /* 12.2 */
    void *data;                        /* 12.4 */
};

/* bytes of a record, by the first version that writes that size */
enum {
    CUPTI_ABI_KERNEL_BYTES_12_0 = 208,
    CUPTI_ABI_KERNEL_BYTES_13_0 = 216,
    CUPTI_ABI_MEMCPY_BYTES_12_0 = 88,
    CUPTI_ABI_MEMCPY_BYTES_12_8 = 96,
    CUPTI_ABI_MEMCPY_PEER_BYTES = 96,
    CUPTI_ABI_MEMSET_BYTES = 88,
    CUPTI_ABI_MEMORY_BYTES_12_0 = 120,
    CUPTI_ABI_MEMORY_BYTES_12_6 = 128,
    CUPTI_ABI_SYNCHRONIZATION_BYTES_12_0 = 40,
    CUPTI_ABI_SYNCHRONIZATION_BYTES_12_8 = 56,
    CUPTI_ABI_API_BYTES = 40,
    CUPTI_ABI_EXTERNAL_BYTES = 24,
    CUPTI_ABI_OVERHEAD_BYTES_12_0 = 40,
    CUPTI_ABI_OVERHEAD_BYTES_12_2 = 48,
    CUPTI_ABI_OVERHEAD_BYTES_12_4 = 56
};
_Static_assert(sizeof(struct cupti_abi_kernel) == CUPTI_ABI_KERNEL_BYTES_13_0, "kernel record");
_Static_assert(sizeof(struct cupti_abi_memcpy) == CUPTI_ABI_MEMCPY_BYTES_12_8, "memcpy record");
_Static_assert(sizeof(struct cupti_abi_memcpy_peer) == CUPTI_ABI_MEMCPY_PEER_BYTES, "peer memcpy record");
_Static_assert(sizeof(struct cupti_abi_memset) == CUPTI_ABI_MEMSET_BYTES, "memset record");
_Static_assert(sizeof(struct cupti_abi_memory) == CUPTI_ABI_MEMORY_BYTES_12_6, "memory record");
_Static_assert(sizeof(struct cupti_abi_synchronization) == CUPTI_ABI_SYNCHRONIZATION_BYTES_12_8, "sync record");
_Static_assert(sizeof(struct cupti_abi_api) == CUPTI_ABI_API_BYTES, "API record");
_Static_assert(sizeof(struct cupti_abi_external) == CUPTI_ABI_EXTERNAL_BYTES, "external correlation record");
_Static_assert(sizeof(struct cupti_abi_overhead) == CUPTI_ABI_OVERHEAD_BYTES_12_4, "overhead record");

struct cupti_abi_callback_data { /* of the two API domains */
    uint32_t site;
    const char *function_name;
    const void *function_params;
    void *function_return_value;
    const char *symbol_name;
    void *context;
    uint32_t context_uid;
    uint64_t *correlation_data;
    uint32_t correlation_id;
};

struct cupti_abi_resource_data {
    void *context;
    void *stream;
    void *descriptor; /* of a module: struct cupti_abi_module_data; of a graph: the next */
};
struct cupti_abi_graph_data { /* CUpti_GraphData */
    void *graph, *original_graph, *node, *original_node;
    int32_t node_type;
    void *dependency, *executable;
};
struct cupti_abi_module_data {
    uint32_t module_id;
    size_t cubin_bytes;
    const void *cubin;
};
struct cupti_abi_cubin_crc_params {
    size_t size;
    size_t cubin_bytes;
    const void *cubin;
    uint64_t crc; /* out */
};

enum { CUPTI_ABI_OTHER_NAME_BYTES = 64 }; /* minimum size of old_name */
struct cupti_abi_subscriber_params {
    size_t struct_size;
    const char *name; /* at most 53 characters */
    char *old_name;   /* out: who holds CUPTI already */
    size_t old_name_size;
};

typedef uint64_t cupti_abi_timestamp_fn(void); /* nanoseconds by any clock */
typedef void cupti_abi_buffer_request_fn(uint8_t **buffer, size_t *size, size_t *max_records);
typedef void cupti_abi_buffer_complete_fn(void *context, uint32_t stream_id, uint8_t *buffer, size_t size,
                                          size_t valid);
typedef void cupti_abi_callback_fn(void *user, uint32_t domain, uint32_t cbid, const void *data);

/* X(member, symbol, parameters): every function we call; all return a CUptiResult. */
#define CUPTI_ABI_FUNCTIONS(X)                                                                                      \
    X(get_version, cuptiGetVersion, (uint32_t * version))                                                           \
    X(get_timestamp, cuptiGetTimestamp, (uint64_t * timestamp))                                                     \
    X(get_result_string, cuptiGetResultString, (uint32_t result, const char **text))                                \
    X(subscribe, cuptiSubscribe, (void **subscriber, cupti_abi_callback_fn *callback, void *user))                  \
    X(subscribe_v2, cuptiSubscribe_v2,                                                                              \
      (void **subscriber, cupti_abi_callback_fn *callback, void *user, struct cupti_abi_subscriber_params *params)) \
    X(unsubscribe, cuptiUnsubscribe, (void *subscriber))                                                            \
    X(enable_callback, cuptiEnableCallback, (uint32_t enable, void *subscriber, uint32_t domain, uint32_t cbid))    \
    X(set_thread_id_type, cuptiSetThreadIdType, (uint32_t type))                                                    \
    X(register_callbacks, cuptiActivityRegisterCallbacks,                                                           \
      (cupti_abi_buffer_request_fn * request, cupti_abi_buffer_complete_fn * complete))                             \
    X(enable, cuptiActivityEnable, (uint32_t kind))                                                                 \
    X(disable, cuptiActivityDisable, (uint32_t kind))                                                               \
    X(enable_runtime_api, cuptiActivityEnableRuntimeApi, (uint32_t cbid, uint8_t enable))                           \
    X(enable_driver_api, cuptiActivityEnableDriverApi, (uint32_t cbid, uint8_t enable))                             \
    X(flush_all, cuptiActivityFlushAll, (uint32_t flag))                                                            \
    X(get_next_record, cuptiActivityGetNextRecord, (uint8_t * buffer, size_t valid, void **record))                 \
    X(get_dropped, cuptiActivityGetNumDroppedRecords, (void *context, uint32_t stream_id, size_t *dropped))         \
    X(get_context_id, cuptiGetContextId, (void *context, uint32_t *id))                                             \
    X(get_device_id, cuptiGetDeviceId, (void *context, uint32_t *device))                                           \
    X(get_stream_id, cuptiGetStreamIdEx, (void *context, void *stream, uint8_t is_per_thread, uint32_t *id))        \
    X(push_external, cuptiActivityPushExternalCorrelationId, (uint32_t kind, uint64_t id))                          \
    X(pop_external, cuptiActivityPopExternalCorrelationId, (uint32_t kind, uint64_t * id))                          \
    X(get_cubin_crc, cuptiGetCubinCrc, (struct cupti_abi_cubin_crc_params * params))                                \
    X(finalize, cuptiFinalize, (void))

#endif
