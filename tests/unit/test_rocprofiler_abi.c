/* SPDX-License-Identifier: Apache-2.0 */
/* Our declarations of rocprofiler-sdk against the sizes and offsets of its
 * public headers, releases 0.5 and 1.0; and against the headers themselves, where
 * they are on the include path (tools/check_vendor_abi.sh). */
#include "driver/rocprofiler_abi.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#if defined(__has_include)
#if __has_include(<rocprofiler-sdk/rocprofiler.h>)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#include <rocprofiler-sdk/registration.h>
#include <rocprofiler-sdk/rocprofiler.h>
#pragma GCC diagnostic pop
#define HAS_VENDOR_HEADERS 1
#endif
#endif

#ifdef HAS_VENDOR_HEADERS
#define IS_1_0 (ROCPROFILER_VERSION_MAJOR >= 1)
#define SIZE(ours, theirs) _Static_assert(sizeof(struct rocprofiler_abi_##ours) == sizeof(theirs), #theirs)
#define PREFIX(ours, theirs) _Static_assert(sizeof(struct rocprofiler_abi_##ours) <= sizeof(theirs), #theirs)
#define AT(ours, member, theirs, their_member)                                                                      \
    _Static_assert(offsetof(struct rocprofiler_abi_##ours, member) == offsetof(theirs, their_member) &&             \
                       sizeof(((struct rocprofiler_abi_##ours *)0)->member) == sizeof(((theirs *)0)->their_member), \
                   #theirs "." #their_member)
#define VALUE(ours, theirs) _Static_assert((int)ROCPROFILER_ABI_##ours == (int)(theirs), #theirs)
#if IS_1_0
#define CALL(X, ...) X(call_1, __VA_ARGS__)
#define CALLBACK(X, ...) X(callback_1, __VA_ARGS__)
#define MEMORY(X, ...) X(memory_1, __VA_ARGS__)
SIZE(client_id_1, rocprofiler_client_id_t);
AT(client_id_1, name, rocprofiler_client_id_t, name);
#else
#define CALL(X, ...) X(call_0, __VA_ARGS__)
#define CALLBACK(X, ...) X(callback_0, __VA_ARGS__)
#define MEMORY(X, ...) X(memory_0, __VA_ARGS__)
SIZE(client_id_0, rocprofiler_client_id_t);
AT(client_id_0, name, rocprofiler_client_id_t, name);
#endif
SIZE(configure_result, rocprofiler_tool_configure_result_t);
AT(configure_result, initialize, rocprofiler_tool_configure_result_t, initialize);
AT(configure_result, finalize, rocprofiler_tool_configure_result_t, finalize);
AT(configure_result, tool_data, rocprofiler_tool_configure_result_t, tool_data);
SIZE(header, rocprofiler_record_header_t);
AT(header, payload, rocprofiler_record_header_t, payload);

CALL(SIZE, rocprofiler_buffer_tracing_hip_api_record_t);
CALL(AT, operation, rocprofiler_buffer_tracing_hip_api_record_t, operation);
CALL(AT, start, rocprofiler_buffer_tracing_hip_api_record_t, start_timestamp);
CALL(AT, end, rocprofiler_buffer_tracing_hip_api_record_t, end_timestamp);
CALL(AT, thread_id, rocprofiler_buffer_tracing_hip_api_record_t, thread_id);
CALLBACK(SIZE, rocprofiler_callback_tracing_record_t);
CALLBACK(AT, kind, rocprofiler_callback_tracing_record_t, kind);
CALLBACK(AT, operation, rocprofiler_callback_tracing_record_t, operation);
CALLBACK(AT, phase, rocprofiler_callback_tracing_record_t, phase);
CALLBACK(AT, payload, rocprofiler_callback_tracing_record_t, payload);
#if IS_1_0 || ROCPROFILER_VERSION_MINOR >= 6
MEMORY(SIZE, rocprofiler_buffer_tracing_memory_allocation_record_t);
MEMORY(AT, start, rocprofiler_buffer_tracing_memory_allocation_record_t, start_timestamp);
MEMORY(AT, agent_id, rocprofiler_buffer_tracing_memory_allocation_record_t, agent_id);
MEMORY(AT, address, rocprofiler_buffer_tracing_memory_allocation_record_t, address);
MEMORY(AT, bytes, rocprofiler_buffer_tracing_memory_allocation_record_t, allocation_size);
VALUE(MEMORY_ALLOCATE, ROCPROFILER_MEMORY_ALLOCATION_ALLOCATE);
VALUE(MEMORY_VMEM_ALLOCATE, ROCPROFILER_MEMORY_ALLOCATION_VMEM_ALLOCATE);
VALUE(MEMORY_FREE, ROCPROFILER_MEMORY_ALLOCATION_FREE);
VALUE(MEMORY_VMEM_FREE, ROCPROFILER_MEMORY_ALLOCATION_VMEM_FREE);
#endif

SIZE(dispatch_info, rocprofiler_kernel_dispatch_info_t);
AT(dispatch_info, agent_id, rocprofiler_kernel_dispatch_info_t, agent_id);
AT(dispatch_info, queue_id, rocprofiler_kernel_dispatch_info_t, queue_id);
AT(dispatch_info, kernel_id, rocprofiler_kernel_dispatch_info_t, kernel_id);
AT(dispatch_info, dispatch_id, rocprofiler_kernel_dispatch_info_t, dispatch_id);
AT(dispatch_info, private_segment_size, rocprofiler_kernel_dispatch_info_t, private_segment_size);
AT(dispatch_info, group_segment_size, rocprofiler_kernel_dispatch_info_t, group_segment_size);
AT(dispatch_info, workgroup_size, rocprofiler_kernel_dispatch_info_t, workgroup_size);
AT(dispatch_info, grid_size, rocprofiler_kernel_dispatch_info_t, grid_size);
SIZE(dispatch, rocprofiler_buffer_tracing_kernel_dispatch_record_t);
AT(dispatch, correlation, rocprofiler_buffer_tracing_kernel_dispatch_record_t, correlation_id);
AT(dispatch, start, rocprofiler_buffer_tracing_kernel_dispatch_record_t, start_timestamp);
AT(dispatch, info, rocprofiler_buffer_tracing_kernel_dispatch_record_t, dispatch_info);
SIZE(dispatch_data, rocprofiler_callback_tracing_kernel_dispatch_data_t);
AT(dispatch_data, info, rocprofiler_callback_tracing_kernel_dispatch_data_t, dispatch_info);
PREFIX(copy, rocprofiler_buffer_tracing_memory_copy_record_t);
AT(copy, operation, rocprofiler_buffer_tracing_memory_copy_record_t, operation);
AT(copy, correlation, rocprofiler_buffer_tracing_memory_copy_record_t, correlation_id);
AT(copy, start, rocprofiler_buffer_tracing_memory_copy_record_t, start_timestamp);
AT(copy, dst_agent_id, rocprofiler_buffer_tracing_memory_copy_record_t, dst_agent_id);
AT(copy, src_agent_id, rocprofiler_buffer_tracing_memory_copy_record_t, src_agent_id);
AT(copy, bytes, rocprofiler_buffer_tracing_memory_copy_record_t, bytes);

SIZE(code_object, rocprofiler_callback_tracing_code_object_load_data_t);
AT(code_object, uri, rocprofiler_callback_tracing_code_object_load_data_t, uri);
AT(code_object, storage_type, rocprofiler_callback_tracing_code_object_load_data_t, storage_type);
AT(code_object, storage.file, rocprofiler_callback_tracing_code_object_load_data_t, storage_file);
AT(code_object, storage.memory.base, rocprofiler_callback_tracing_code_object_load_data_t, memory_base);
AT(code_object, storage.memory.size, rocprofiler_callback_tracing_code_object_load_data_t, memory_size);
typedef rocprofiler_callback_tracing_code_object_kernel_symbol_register_data_t kernel_symbol_data;
PREFIX(kernel_symbol, kernel_symbol_data);
AT(kernel_symbol, kernel_id, kernel_symbol_data, kernel_id);
AT(kernel_symbol, kernel_name, kernel_symbol_data, kernel_name);
AT(kernel_symbol, group_segment_size, kernel_symbol_data, group_segment_size);
AT(kernel_symbol, sgpr_count, kernel_symbol_data, sgpr_count);
AT(kernel_symbol, arch_vgpr_count, kernel_symbol_data, arch_vgpr_count);
AT(kernel_symbol, accum_vgpr_count, kernel_symbol_data, accum_vgpr_count);
SIZE(marker, rocprofiler_callback_tracing_marker_api_data_t);
AT(marker, arguments, rocprofiler_callback_tracing_marker_api_data_t, args);
_Static_assert(offsetof(struct rocprofiler_abi_marker, result) ==
                   offsetof(rocprofiler_callback_tracing_marker_api_data_t, retval),
               "retval");

PREFIX(agent, rocprofiler_agent_v0_t);
AT(agent, id, rocprofiler_agent_v0_t, id);
AT(agent, type, rocprofiler_agent_v0_t, type);
AT(agent, max_waves_per_simd, rocprofiler_agent_v0_t, max_waves_per_simd);
AT(agent, lds_size_in_kb, rocprofiler_agent_v0_t, lds_size_in_kb);
AT(agent, wave_front_size, rocprofiler_agent_v0_t, wave_front_size);
AT(agent, num_xcc, rocprofiler_agent_v0_t, num_xcc);
AT(agent, cu_count, rocprofiler_agent_v0_t, cu_count);
AT(agent, simd_per_cu, rocprofiler_agent_v0_t, simd_per_cu);
AT(agent, gfx_target_version, rocprofiler_agent_v0_t, gfx_target_version);
AT(agent, location_id, rocprofiler_agent_v0_t, location_id);
AT(agent, domain, rocprofiler_agent_v0_t, domain);
AT(agent, drm_render_minor, rocprofiler_agent_v0_t, drm_render_minor);
AT(agent, local_mem_size, rocprofiler_agent_v0_t, local_mem_size);
AT(agent, name, rocprofiler_agent_v0_t, name);
AT(agent, product_name, rocprofiler_agent_v0_t, product_name);
AT(agent, node_id, rocprofiler_agent_v0_t, node_id);
AT(agent, logical_node_id, rocprofiler_agent_v0_t, logical_node_id);

SIZE(counting_data, rocprofiler_dispatch_counting_service_data_t);
AT(counting_data, info, rocprofiler_dispatch_counting_service_data_t, dispatch_info);
SIZE(counting_header, rocprofiler_dispatch_counting_service_record_t);
AT(counting_header, num_records, rocprofiler_dispatch_counting_service_record_t, num_records);
AT(counting_header, info, rocprofiler_dispatch_counting_service_record_t, dispatch_info);
PREFIX(counter_value, rocprofiler_record_counter_t);
AT(counter_value, id, rocprofiler_record_counter_t, id);
AT(counter_value, value, rocprofiler_record_counter_t, counter_value);
AT(counter_value, dispatch_id, rocprofiler_record_counter_t, dispatch_id);
AT(counter_info, id, rocprofiler_counter_info_v0_t, id);
AT(counter_info, name, rocprofiler_counter_info_v0_t, name);

VALUE(SUCCESS, ROCPROFILER_STATUS_SUCCESS);
VALUE(CATEGORY_TRACING, ROCPROFILER_BUFFER_CATEGORY_TRACING);
VALUE(CATEGORY_COUNTERS, ROCPROFILER_BUFFER_CATEGORY_COUNTERS);
VALUE(POLICY_LOSSLESS, ROCPROFILER_BUFFER_POLICY_LOSSLESS);
VALUE(AGENT_GPU, ROCPROFILER_AGENT_TYPE_GPU);
VALUE(AGENT_VERSION, ROCPROFILER_AGENT_INFO_VERSION_0);
VALUE(COUNTER_INFO_VERSION, ROCPROFILER_COUNTER_INFO_VERSION_0);
VALUE(KIND_HIP_RUNTIME_API, ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API);
VALUE(KIND_MEMORY_COPY, ROCPROFILER_BUFFER_TRACING_MEMORY_COPY);
VALUE(KIND_KERNEL_DISPATCH, ROCPROFILER_BUFFER_TRACING_KERNEL_DISPATCH);
VALUE(CALLBACK_MARKER_CORE_API, ROCPROFILER_CALLBACK_TRACING_MARKER_CORE_API);
VALUE(CALLBACK_CODE_OBJECT, ROCPROFILER_CALLBACK_TRACING_CODE_OBJECT);
VALUE(CALLBACK_KERNEL_DISPATCH, ROCPROFILER_CALLBACK_TRACING_KERNEL_DISPATCH);
VALUE(CALLBACK_MEMORY_COPY, ROCPROFILER_CALLBACK_TRACING_MEMORY_COPY);
VALUE(COUNTER_DISPATCH_HEADER, ROCPROFILER_COUNTER_RECORD_PROFILE_COUNTING_DISPATCH_HEADER);
VALUE(COUNTER_VALUE, ROCPROFILER_COUNTER_RECORD_VALUE);
VALUE(COPY_HOST_TO_HOST, ROCPROFILER_MEMORY_COPY_HOST_TO_HOST);
VALUE(COPY_HOST_TO_DEVICE, ROCPROFILER_MEMORY_COPY_HOST_TO_DEVICE);
VALUE(COPY_DEVICE_TO_HOST, ROCPROFILER_MEMORY_COPY_DEVICE_TO_HOST);
VALUE(COPY_DEVICE_TO_DEVICE, ROCPROFILER_MEMORY_COPY_DEVICE_TO_DEVICE);
VALUE(CODE_OBJECT_LOAD, ROCPROFILER_CODE_OBJECT_LOAD);
VALUE(KERNEL_SYMBOL_REGISTER, ROCPROFILER_CODE_OBJECT_DEVICE_KERNEL_SYMBOL_REGISTER);
VALUE(DISPATCH_ENQUEUE, ROCPROFILER_KERNEL_DISPATCH_ENQUEUE);
VALUE(MARK, ROCPROFILER_MARKER_CORE_API_ID_roctxMarkA);
VALUE(RANGE_PUSH, ROCPROFILER_MARKER_CORE_API_ID_roctxRangePushA);
VALUE(RANGE_POP, ROCPROFILER_MARKER_CORE_API_ID_roctxRangePop);
VALUE(RANGE_START, ROCPROFILER_MARKER_CORE_API_ID_roctxRangeStartA);
VALUE(RANGE_STOP, ROCPROFILER_MARKER_CORE_API_ID_roctxRangeStop);
VALUE(PHASE_ENTER, ROCPROFILER_CALLBACK_PHASE_ENTER);
VALUE(PHASE_EXIT, ROCPROFILER_CALLBACK_PHASE_EXIT);
VALUE(STORAGE_FILE, ROCPROFILER_CODE_OBJECT_STORAGE_TYPE_FILE);
VALUE(STORAGE_MEMORY, ROCPROFILER_CODE_OBJECT_STORAGE_TYPE_MEMORY);
#endif

#define assert_size(type, bytes) assert_int_equal(sizeof(struct rocprofiler_abi_##type), bytes)
#define assert_at(type, member, offset) assert_int_equal(offsetof(struct rocprofiler_abi_##type, member), offset)

static void registration_structs_have_their_sizes(void **state)
{
    (void)state;
    assert_size(client_id_0, 16);
    assert_at(client_id_0, handle, 8);
    assert_size(client_id_1, 24);
    assert_at(client_id_1, name, 8);
    assert_at(client_id_1, handle, 16);
    assert_size(configure_result, 32);
    assert_at(configure_result, tool_data, 24);
    assert_size(header, 16);
    assert_at(header, payload, 8);
}

static void calls_grew_by_one_id_in_1_0(void **state)
{
    (void)state;
    assert_size(call_0, 56);
    assert_at(call_0, start, 32);
    assert_at(call_0, thread_id, 48);
    assert_size(call_1, 64);
    assert_at(call_1, start, 40);
    assert_at(call_1, thread_id, 56);
    assert_size(callback_0, 56);
    assert_at(callback_0, kind, 32);
    assert_at(callback_0, payload, 48);
    assert_size(callback_1, 64);
    assert_at(callback_1, kind, 40);
    assert_at(callback_1, payload, 56);
    assert_size(memory_0, 80);
    assert_at(memory_0, agent_id, 56);
    assert_size(memory_1, 88);
    assert_at(memory_1, agent_id, 64);
}

static void work_has_one_layout(void **state)
{
    (void)state;
    assert_size(dispatch_info, 128);
    assert_at(dispatch_info, kernel_id, 24);
    assert_at(dispatch_info, private_segment_size, 40);
    assert_at(dispatch_info, workgroup_size, 48);
    assert_at(dispatch_info, grid_size, 60);
    assert_at(dispatch_info, reserved, 72);
    assert_size(dispatch, 184);
    assert_at(dispatch, info, 56);
    assert_size(dispatch_data, 152);
    assert_at(dispatch_data, info, 24);
    assert_size(copy, 80);
    assert_at(copy, dst_agent_id, 56);
    assert_at(copy, bytes, 72);
}

static void code_and_markers_have_their_offsets(void **state)
{
    (void)state;
    assert_size(code_object, 88);
    assert_at(code_object, uri, 32);
    assert_at(code_object, storage_type, 64);
    assert_at(code_object, storage.memory.base, 72);
    assert_size(kernel_symbol, 72);
    assert_at(kernel_symbol, kernel_name, 24);
    assert_at(kernel_symbol, sgpr_count, 56);
    assert_at(kernel_symbol, accum_vgpr_count, 64);
    assert_size(marker, 32);
    assert_at(marker, result, 24);
}

static void an_agent_is_as_of_0_5(void **state)
{
    (void)state;
    assert_size(agent, 296);
    assert_at(agent, type, 16);
    assert_at(agent, max_waves_per_simd, 48);
    assert_at(agent, wave_front_size, 64);
    assert_at(agent, cu_count, 72);
    assert_at(agent, gfx_target_version, 100);
    assert_at(agent, location_id, 108);
    assert_at(agent, domain, 112);
    assert_at(agent, local_mem_size, 176);
    assert_at(agent, name, 248);
    assert_at(agent, product_name, 264);
    assert_at(agent, node_id, 280);
}

static void counting_structs_have_their_sizes(void **state)
{
    (void)state;
    assert_size(counter_info, 48);
    assert_size(counting_data, 168);
    assert_at(counting_data, info, 40);
    assert_size(counting_header, 176);
    assert_at(counting_header, info, 48);
    assert_size(counter_value, 32);
    assert_at(counter_value, dispatch_id, 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(registration_structs_have_their_sizes),
        cmocka_unit_test(calls_grew_by_one_id_in_1_0),
        cmocka_unit_test(work_has_one_layout),
        cmocka_unit_test(code_and_markers_have_their_offsets),
        cmocka_unit_test(an_agent_is_as_of_0_5),
        cmocka_unit_test(counting_structs_have_their_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
