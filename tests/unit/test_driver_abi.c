/* SPDX-License-Identifier: Apache-2.0 */
/* Our declarations of vendor types against the vendor's headers, where a CUDA
 * toolkit of 12.0 or newer is on the include path: each record against the newest
 * that the toolkit has. The checks happen at compile time; the test says whether
 * they did. tools/check_vendor_abi.sh compiles this with other headers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "driver/cuda_abi.h"
#include "driver/cupti_abi.h"
#include "driver/cupti_calls.h"
#include "driver/nvml_abi.h"

#if defined(__has_include)
#if __has_include(<cupti.h>) && __has_include(<cuda.h>)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#include <cuda.h>
#include <cupti.h>
#pragma GCC diagnostic pop
#if CUPTI_API_VERSION >= 19
#define HAS_VENDOR_HEADERS 1
#endif
#endif
#endif

#if defined(__has_include)
#if __has_include(<nvml.h>)
#include <nvml.h>
#define HAS_NVML_HEADER 1
#endif
#endif

#define SIZE(ours, theirs) _Static_assert(sizeof(struct ours) == sizeof(theirs), #theirs)
#define SIZE_IS(constant, theirs) _Static_assert(constant == sizeof(theirs), #theirs)
#define AT(ours, member, theirs, their_member)                                                    \
    _Static_assert(offsetof(struct ours, member) == offsetof(theirs, their_member) &&             \
                       sizeof(((struct ours *)0)->member) == sizeof(((theirs *)0)->their_member), \
                   #theirs "." #their_member)
#define STARTS_AT(ours, member, theirs, their_member) \
    _Static_assert(offsetof(struct ours, member) == offsetof(theirs, their_member), #theirs "." #their_member)
#define VALUE(ours, theirs) _Static_assert((unsigned)(ours) == (unsigned)(theirs), #theirs)

#ifdef HAS_VENDOR_HEADERS

/* The newest record of each kind, and whether it has all of our members. */
#if CUPTI_API_VERSION >= 130000
#define KERNEL CUpti_ActivityKernel10
#else
#define KERNEL CUpti_ActivityKernel9
#endif
#if CUPTI_API_VERSION >= 26 /* 12.8 */
#define COPY CUpti_ActivityMemcpy6
#define SYNCHRONIZATION CUpti_ActivitySynchronization2
#else
#define COPY CUpti_ActivityMemcpy5
#define SYNCHRONIZATION CUpti_ActivitySynchronization
#endif
#if CUPTI_API_VERSION >= 24 /* 12.6 */
#define MEMORY CUpti_ActivityMemory4
#else
#define MEMORY CUpti_ActivityMemory3
#endif

#if CUPTI_API_VERSION >= 130000
SIZE(cupti_abi_kernel, KERNEL);
AT(cupti_abi_kernel, is_device_launched, KERNEL, isDeviceLaunched);
#endif
SIZE_IS(CUPTI_ABI_KERNEL_BYTES_12_0, CUpti_ActivityKernel9);
AT(cupti_abi_kernel, kind, KERNEL, kind);
AT(cupti_abi_kernel, cache_config, KERNEL, cacheConfig);
AT(cupti_abi_kernel, shared_memory_config, KERNEL, sharedMemoryConfig);
AT(cupti_abi_kernel, registers_per_thread, KERNEL, registersPerThread);
AT(cupti_abi_kernel, partitioned_cache_requested, KERNEL, partitionedGlobalCacheRequested);
AT(cupti_abi_kernel, start, KERNEL, start);
AT(cupti_abi_kernel, end, KERNEL, end);
AT(cupti_abi_kernel, completed, KERNEL, completed);
AT(cupti_abi_kernel, device_id, KERNEL, deviceId);
AT(cupti_abi_kernel, context_id, KERNEL, contextId);
AT(cupti_abi_kernel, stream_id, KERNEL, streamId);
STARTS_AT(cupti_abi_kernel, grid, KERNEL, gridX);
STARTS_AT(cupti_abi_kernel, grid[2], KERNEL, gridZ);
STARTS_AT(cupti_abi_kernel, block, KERNEL, blockX);
STARTS_AT(cupti_abi_kernel, block[2], KERNEL, blockZ);
AT(cupti_abi_kernel, static_shared, KERNEL, staticSharedMemory);
AT(cupti_abi_kernel, dynamic_shared, KERNEL, dynamicSharedMemory);
AT(cupti_abi_kernel, local_per_thread, KERNEL, localMemoryPerThread);
AT(cupti_abi_kernel, local_total_32, KERNEL, localMemoryTotal);
AT(cupti_abi_kernel, correlation_id, KERNEL, correlationId);
AT(cupti_abi_kernel, grid_id, KERNEL, gridId);
AT(cupti_abi_kernel, name, KERNEL, name);
AT(cupti_abi_kernel, queued, KERNEL, queued);
AT(cupti_abi_kernel, submitted, KERNEL, submitted);
AT(cupti_abi_kernel, launch_type, KERNEL, launchType);
AT(cupti_abi_kernel, shared_executed, KERNEL, sharedMemoryExecuted);
AT(cupti_abi_kernel, graph_node_id, KERNEL, graphNodeId);
AT(cupti_abi_kernel, graph_id, KERNEL, graphId);
AT(cupti_abi_kernel, access_policy_window, KERNEL, pAccessPolicyWindow);
AT(cupti_abi_kernel, channel_id, KERNEL, channelID);
STARTS_AT(cupti_abi_kernel, cluster, KERNEL, clusterX);
STARTS_AT(cupti_abi_kernel, cluster[2], KERNEL, clusterZ);
AT(cupti_abi_kernel, local_total, KERNEL, localMemoryTotal_v2);
AT(cupti_abi_kernel, clusters_active_max, KERNEL, maxActiveClusters);

#if CUPTI_API_VERSION >= 26
SIZE(cupti_abi_memcpy, COPY);
AT(cupti_abi_memcpy, copy_count, COPY, copyCount);
SIZE(cupti_abi_synchronization, SYNCHRONIZATION);
AT(cupti_abi_synchronization, event_id, SYNCHRONIZATION, cudaEventId);
AT(cupti_abi_synchronization, return_value, SYNCHRONIZATION, returnValue);
#endif
SIZE_IS(CUPTI_ABI_MEMCPY_BYTES_12_0, CUpti_ActivityMemcpy5);
AT(cupti_abi_memcpy, copy_kind, COPY, copyKind);
AT(cupti_abi_memcpy, src_kind, COPY, srcKind);
AT(cupti_abi_memcpy, dst_kind, COPY, dstKind);
AT(cupti_abi_memcpy, flags, COPY, flags);
AT(cupti_abi_memcpy, bytes, COPY, bytes);
AT(cupti_abi_memcpy, start, COPY, start);
AT(cupti_abi_memcpy, end, COPY, end);
AT(cupti_abi_memcpy, device_id, COPY, deviceId);
AT(cupti_abi_memcpy, context_id, COPY, contextId);
AT(cupti_abi_memcpy, stream_id, COPY, streamId);
AT(cupti_abi_memcpy, correlation_id, COPY, correlationId);
AT(cupti_abi_memcpy, graph_node_id, COPY, graphNodeId);
AT(cupti_abi_memcpy, graph_id, COPY, graphId);
AT(cupti_abi_memcpy, channel_type, COPY, channelType);

SIZE(cupti_abi_memcpy_peer, CUpti_ActivityMemcpyPtoP4);
AT(cupti_abi_memcpy_peer, flags, CUpti_ActivityMemcpyPtoP4, flags);
AT(cupti_abi_memcpy_peer, bytes, CUpti_ActivityMemcpyPtoP4, bytes);
AT(cupti_abi_memcpy_peer, end, CUpti_ActivityMemcpyPtoP4, end);
AT(cupti_abi_memcpy_peer, device_id, CUpti_ActivityMemcpyPtoP4, deviceId);
AT(cupti_abi_memcpy_peer, stream_id, CUpti_ActivityMemcpyPtoP4, streamId);
AT(cupti_abi_memcpy_peer, src_device_id, CUpti_ActivityMemcpyPtoP4, srcDeviceId);
AT(cupti_abi_memcpy_peer, dst_device_id, CUpti_ActivityMemcpyPtoP4, dstDeviceId);
AT(cupti_abi_memcpy_peer, correlation_id, CUpti_ActivityMemcpyPtoP4, correlationId);
AT(cupti_abi_memcpy_peer, graph_node_id, CUpti_ActivityMemcpyPtoP4, graphNodeId);
AT(cupti_abi_memcpy_peer, graph_id, CUpti_ActivityMemcpyPtoP4, graphId);

SIZE(cupti_abi_memset, CUpti_ActivityMemset4);
AT(cupti_abi_memset, value, CUpti_ActivityMemset4, value);
AT(cupti_abi_memset, bytes, CUpti_ActivityMemset4, bytes);
AT(cupti_abi_memset, start, CUpti_ActivityMemset4, start);
AT(cupti_abi_memset, end, CUpti_ActivityMemset4, end);
AT(cupti_abi_memset, device_id, CUpti_ActivityMemset4, deviceId);
AT(cupti_abi_memset, correlation_id, CUpti_ActivityMemset4, correlationId);
AT(cupti_abi_memset, flags, CUpti_ActivityMemset4, flags);
AT(cupti_abi_memset, memory_kind, CUpti_ActivityMemset4, memoryKind);
AT(cupti_abi_memset, graph_node_id, CUpti_ActivityMemset4, graphNodeId);
AT(cupti_abi_memset, graph_id, CUpti_ActivityMemset4, graphId);

#if CUPTI_API_VERSION >= 24
SIZE(cupti_abi_memory, MEMORY);
AT(cupti_abi_memory, source, MEMORY, source);
#endif
SIZE_IS(CUPTI_ABI_MEMORY_BYTES_12_0, CUpti_ActivityMemory3);
AT(cupti_abi_memory, operation, MEMORY, memoryOperationType);
AT(cupti_abi_memory, memory_kind, MEMORY, memoryKind);
AT(cupti_abi_memory, correlation_id, MEMORY, correlationId);
AT(cupti_abi_memory, address, MEMORY, address);
AT(cupti_abi_memory, bytes, MEMORY, bytes);
AT(cupti_abi_memory, timestamp, MEMORY, timestamp);
AT(cupti_abi_memory, device_id, MEMORY, deviceId);
AT(cupti_abi_memory, context_id, MEMORY, contextId);
AT(cupti_abi_memory, stream_id, MEMORY, streamId);
AT(cupti_abi_memory, is_async, MEMORY, isAsync);
AT(cupti_abi_memory, pool, MEMORY, memoryPoolConfig);

SIZE_IS(CUPTI_ABI_SYNCHRONIZATION_BYTES_12_0, CUpti_ActivitySynchronization);
AT(cupti_abi_synchronization, type, SYNCHRONIZATION, type);
AT(cupti_abi_synchronization, start, SYNCHRONIZATION, start);
AT(cupti_abi_synchronization, end, SYNCHRONIZATION, end);
AT(cupti_abi_synchronization, correlation_id, SYNCHRONIZATION, correlationId);
AT(cupti_abi_synchronization, context_id, SYNCHRONIZATION, contextId);
AT(cupti_abi_synchronization, stream_id, SYNCHRONIZATION, streamId);

SIZE(cupti_abi_api, CUpti_ActivityAPI);
AT(cupti_abi_api, cbid, CUpti_ActivityAPI, cbid);
AT(cupti_abi_api, start, CUpti_ActivityAPI, start);
AT(cupti_abi_api, end, CUpti_ActivityAPI, end);
AT(cupti_abi_api, thread_id, CUpti_ActivityAPI, threadId);
AT(cupti_abi_api, correlation_id, CUpti_ActivityAPI, correlationId);

SIZE(cupti_abi_external, CUpti_ActivityExternalCorrelation);
AT(cupti_abi_external, external_kind, CUpti_ActivityExternalCorrelation, externalKind);
AT(cupti_abi_external, external_id, CUpti_ActivityExternalCorrelation, externalId);
AT(cupti_abi_external, correlation_id, CUpti_ActivityExternalCorrelation, correlationId);

SIZE(cupti_abi_overhead, CUpti_ActivityOverhead3);
SIZE_IS(CUPTI_ABI_OVERHEAD_BYTES_12_0, CUpti_ActivityOverhead);
SIZE_IS(CUPTI_ABI_OVERHEAD_BYTES_12_2, CUpti_ActivityOverhead2);
AT(cupti_abi_overhead, overhead_kind, CUpti_ActivityOverhead3, overheadKind);
AT(cupti_abi_overhead, object_id, CUpti_ActivityOverhead3, objectId);
AT(cupti_abi_overhead, start, CUpti_ActivityOverhead3, start);
AT(cupti_abi_overhead, end, CUpti_ActivityOverhead3, end);
AT(cupti_abi_overhead, correlation_id, CUpti_ActivityOverhead3, correlationId);

SIZE(cupti_abi_callback_data, CUpti_CallbackData);
AT(cupti_abi_callback_data, site, CUpti_CallbackData, callbackSite);
AT(cupti_abi_callback_data, symbol_name, CUpti_CallbackData, symbolName);
AT(cupti_abi_callback_data, context_uid, CUpti_CallbackData, contextUid);
AT(cupti_abi_callback_data, correlation_id, CUpti_CallbackData, correlationId);

#if CUPTI_API_VERSION >= 130000
SIZE(cupti_abi_subscriber_params, CUpti_SubscriberParams);
AT(cupti_abi_subscriber_params, struct_size, CUpti_SubscriberParams, structSize);
AT(cupti_abi_subscriber_params, name, CUpti_SubscriberParams, subscriberName);
AT(cupti_abi_subscriber_params, old_name, CUpti_SubscriberParams, oldSubscriberName);
AT(cupti_abi_subscriber_params, old_name_size, CUpti_SubscriberParams, oldSubscriberSize);
VALUE(CUPTI_ABI_KIND_LAST_KNOWN, CUPTI_ACTIVITY_KIND_CONFIDENTIAL_COMPUTE_ROTATION);
/* Older headers lack the newest calls: their numbers are compared by tools/check_vendor_abi.sh. */
#define CALL(domain, name, id, group) VALUE(id, CUPTI_##domain##_TRACE_CBID_##name);
CUPTI_RUNTIME_CALLS(CALL)
CUPTI_DRIVER_CALLS(CALL)
#endif

VALUE(CUPTI_ABI_SUCCESS, CUPTI_SUCCESS);
VALUE(CUPTI_ABI_MAX_LIMIT_REACHED, CUPTI_ERROR_MAX_LIMIT_REACHED);
VALUE(CUPTI_ABI_NOT_INITIALIZED, CUPTI_ERROR_NOT_INITIALIZED);
VALUE(CUPTI_ABI_INVALID_KIND, CUPTI_ERROR_INVALID_KIND);
VALUE(CUPTI_ABI_INSUFFICIENT_PRIVILEGES, CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
VALUE(CUPTI_ABI_MULTIPLE_SUBSCRIBERS, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
VALUE(CUPTI_ABI_UNKNOWN, CUPTI_ERROR_UNKNOWN);
VALUE(CUPTI_ABI_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY);
VALUE(CUPTI_ABI_KIND_MEMSET, CUPTI_ACTIVITY_KIND_MEMSET);
VALUE(CUPTI_ABI_KIND_KERNEL, CUPTI_ACTIVITY_KIND_KERNEL);
VALUE(CUPTI_ABI_KIND_DRIVER, CUPTI_ACTIVITY_KIND_DRIVER);
VALUE(CUPTI_ABI_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_RUNTIME);
VALUE(CUPTI_ABI_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
VALUE(CUPTI_ABI_KIND_OVERHEAD, CUPTI_ACTIVITY_KIND_OVERHEAD);
VALUE(CUPTI_ABI_KIND_MEMCPY2, CUPTI_ACTIVITY_KIND_MEMCPY2);
VALUE(CUPTI_ABI_KIND_SYNCHRONIZATION, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
VALUE(CUPTI_ABI_KIND_EXTERNAL_CORRELATION, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
VALUE(CUPTI_ABI_KIND_INTERNAL_LAUNCH_API, CUPTI_ACTIVITY_KIND_INTERNAL_LAUNCH_API);
VALUE(CUPTI_ABI_KIND_MEMORY2, CUPTI_ACTIVITY_KIND_MEMORY2);
VALUE(CUPTI_ABI_DOMAIN_DRIVER, CUPTI_CB_DOMAIN_DRIVER_API);
VALUE(CUPTI_ABI_DOMAIN_RUNTIME, CUPTI_CB_DOMAIN_RUNTIME_API);
VALUE(CUPTI_ABI_API_ENTER, CUPTI_API_ENTER);
VALUE(CUPTI_ABI_API_EXIT, CUPTI_API_EXIT);
VALUE(CUPTI_ABI_THREAD_ID_SYSTEM, CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
VALUE(CUPTI_ABI_FLUSH_FORCED, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
VALUE(CUPTI_ABI_FLAG_ASYNC, CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC);
VALUE(CUPTI_ABI_FLAG_ASYNC, CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC);
VALUE(CUPTI_ABI_MEMORY_ALLOCATION, CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION);
VALUE(CUPTI_ABI_MEMORY_RELEASE, CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE);
VALUE(CUPTI_ABI_INVALID_ID, CUPTI_SYNCHRONIZATION_INVALID_VALUE);
VALUE(CUPTI_ABI_INVALID_ID, CUPTI_INVALID_STREAM_ID);

SIZE(cuda_abi_uuid, CUuuid);
VALUE(CUDA_ABI_SUCCESS, CUDA_SUCCESS);
VALUE(CUDA_ABI_NOT_INITIALIZED, CUDA_ERROR_NOT_INITIALIZED);
VALUE(CUDA_ABI_NO_DEVICE, CUDA_ERROR_NO_DEVICE);
VALUE(CUDA_ABI_WARP_SIZE, CU_DEVICE_ATTRIBUTE_WARP_SIZE);
VALUE(CUDA_ABI_REGS_PER_BLOCK, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
VALUE(CUDA_ABI_CLOCK_KHZ, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
VALUE(CUDA_ABI_MULTIPROCESSORS, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
VALUE(CUDA_ABI_MEMORY_CLOCK_KHZ, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
VALUE(CUDA_ABI_MEMORY_BUS_BITS, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
VALUE(CUDA_ABI_L2_BYTES, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
VALUE(CUDA_ABI_THREADS_PER_SM, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
VALUE(CUDA_ABI_COMPUTE_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
VALUE(CUDA_ABI_COMPUTE_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
VALUE(CUDA_ABI_SHARED_PER_SM, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
VALUE(CUDA_ABI_REGS_PER_SM, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
VALUE(CUDA_ABI_SHARED_PER_BLOCK_OPTIN, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
VALUE(CUDA_ABI_BLOCKS_PER_SM, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
VALUE(CUDA_ABI_SHARED_RESERVED_PER_BLOCK, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
#endif

#ifdef HAS_NVML_HEADER
SIZE(nvml_abi_field, nvmlFieldValue_t);
AT(nvml_abi_field, field_id, nvmlFieldValue_t, fieldId);
AT(nvml_abi_field, scope_id, nvmlFieldValue_t, scopeId);
AT(nvml_abi_field, value_type, nvmlFieldValue_t, valueType);
AT(nvml_abi_field, result, nvmlFieldValue_t, nvmlReturn);
AT(nvml_abi_field, value, nvmlFieldValue_t, value);
SIZE(nvml_abi_utilization, nvmlUtilization_t);
SIZE(nvml_abi_memory, nvmlMemory_t);
AT(nvml_abi_memory, used, nvmlMemory_t, used);
SIZE(nvml_abi_memory_v2, nvmlMemory_v2_t);
AT(nvml_abi_memory_v2, used, nvmlMemory_v2_t, used);
SIZE(nvml_abi_process, nvmlProcessInfo_t);
SIZE(nvml_abi_event, nvmlEventData_t);
AT(nvml_abi_event, type, nvmlEventData_t, eventType);
AT(nvml_abi_event, data, nvmlEventData_t, eventData);
VALUE(NVML_ABI_EVENT_XID, nvmlEventTypeXidCriticalError);
AT(nvml_abi_process, used_bytes, nvmlProcessInfo_t, usedGpuMemory);
SIZE(nvml_abi_pci, nvmlPciInfo_t);
AT(nvml_abi_pci, bus_id, nvmlPciInfo_t, busId);
SIZE(nvml_abi_gpm_metric, nvmlGpmMetric_t);
SIZE(nvml_abi_gpm_support, nvmlGpmSupport_t);
AT(nvml_abi_gpm_metrics, newer, nvmlGpmMetricsGet_t, sample2);
STARTS_AT(nvml_abi_gpm_metrics, metrics, nvmlGpmMetricsGet_t, metrics);
VALUE(NVML_ABI_NOT_SUPPORTED, NVML_ERROR_NOT_SUPPORTED);
VALUE(NVML_ABI_NO_PERMISSION, NVML_ERROR_NO_PERMISSION);
VALUE(NVML_ABI_INSUFFICIENT_SIZE, NVML_ERROR_INSUFFICIENT_SIZE);
VALUE(NVML_ABI_FUNCTION_NOT_FOUND, NVML_ERROR_FUNCTION_NOT_FOUND);
VALUE(NVML_ABI_GPU_IS_LOST, NVML_ERROR_GPU_IS_LOST);
VALUE(NVML_ABI_FIELD_MEMORY_TEMP, NVML_FI_DEV_MEMORY_TEMP);
VALUE(NVML_ABI_FIELD_NVLINK_DATA_TX, NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX);
VALUE(NVML_ABI_FIELD_NVLINK_DATA_RX, NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX);
VALUE(NVML_ABI_VALUE_ULL, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG);
VALUE(NVML_ABI_GPM_SM_OCCUPANCY, NVML_GPM_METRIC_SM_OCCUPANCY);
VALUE(NVML_ABI_GPM_PCIE_RX, NVML_GPM_METRIC_PCIE_RX_PER_SEC);
VALUE(NVML_ABI_GPM_NVLINK_TX, NVML_GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC);
#endif

static void mirrors_agree_with_the_vendors_headers(void **state)
{
    (void)state;
#ifndef HAS_VENDOR_HEADERS
    print_message("no CUDA 13 headers on the include path: nothing to compare with\n");
    skip();
#endif
}

static void every_call_is_listed_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < cupti_call_count; i++) {
        assert_true(cupti_calls[i].cbid > 0);
        for (size_t j = 0; j < i; j++)
            assert_false(cupti_calls[i].cbid == cupti_calls[j].cbid &&
                         cupti_calls[i].is_runtime == cupti_calls[j].is_runtime);
    }
}

static void the_graph_group_is_what_decoding_calls_a_graph_launch(void **state)
{
    (void)state;
    int graphs = 0;
    for (size_t i = 0; i < cupti_call_count; i++) {
        bool is_graph = cupti_calls[i].group == CUPTI_CALL_GRAPH;
        graphs += is_graph;
        assert_int_equal(is_graph, cupti_call_is_graph_launch(cupti_calls[i].is_runtime, cupti_calls[i].cbid));
    }
    assert_int_equal(graphs, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mirrors_agree_with_the_vendors_headers),
        cmocka_unit_test(every_call_is_listed_once),
        cmocka_unit_test(the_graph_group_is_what_decoding_calls_a_graph_launch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
