/* SPDX-License-Identifier: Apache-2.0 */
/* Our declarations of rocprofiler-sdk against the sizes and offsets of its
 * public headers, releases 0.5 and 1.0. */
#include "driver/rocprofiler_abi.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

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
