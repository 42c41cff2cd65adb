/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes rocprofiler's records to activities, record by record, without its library. */
#include "driver/rocprofiler_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

enum { cpu = 100, gpu = 200 };
static const int64_t offset_ns = 1000000;

struct fixture {
    struct rocprofiler rocprofiler;
    struct activity out[2];
};

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    struct rocprofiler *rocprofiler = &fixture->rocprofiler;
    rocprofiler->version = ROCPROFILER_ABI_VERSION_1_0;
    rocprofiler->memory_kind = 16;
    rocprofiler->granted = ROCPROFILER_SYNC;
    atomic_store(&rocprofiler->clock_offset_ns, offset_ns);
    rocprofiler->agent_count = 2;
    for (uint32_t i = 0; i < 2; i++) {
        rocprofiler->agent_handles[i] = gpu + i;
        rocprofiler->agents[i].device_id = 4 + i;
    }
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    for (int i = 0; i < ROCPROFILER_KERNEL_PAGES; i++) {
        struct rocprofiler_kernel_page *page = atomic_load(&fixture->rocprofiler.kernels.pages[i]);
        for (int j = 0; page && j < ROCPROFILER_KERNELS_PER_PAGE; j++)
            free(atomic_load(&page->kernels[j]));
        free(page);
    }
    free(fixture);
    return 0;
}

static unsigned decode(struct fixture *fixture, uint32_t kind, void *record)
{
    const struct rocprofiler_abi_header header = {ROCPROFILER_ABI_CATEGORY_TRACING, kind, record};
    return rocprofiler_decode(&fixture->rocprofiler, &header, fixture->out);
}

static struct rocprofiler_abi_dispatch a_dispatch(void)
{
    return (struct rocprofiler_abi_dispatch){.size = sizeof(struct rocprofiler_abi_dispatch),
                                             .correlation = {7, {0}},
                                             .start = 100,
                                             .end = 300,
                                             .info = {.agent_id = gpu + 1,
                                                      .queue_id = 9,
                                                      .kernel_id = 3,
                                                      .group_segment_size = 1536,
                                                      .workgroup_size = {64, 4, 1},
                                                      .grid_size = {1000, 8, 1}}};
}

static void a_grid_is_decoded_in_workgroups_and_the_last_may_be_partial(void **state)
{
    struct fixture *fixture = *state;
    const struct rocprofiler_abi_kernel_symbol symbol = {.size = sizeof symbol,
                                                         .kernel_id = 3,
                                                         .kernel_name = "_Z1kPf.kd",
                                                         .group_segment_size = 512,
                                                         .sgpr_count = 32,
                                                         .arch_vgpr_count = 48,
                                                         .accum_vgpr_count = 8};
    rocprofiler_kernel_add(&fixture->rocprofiler, &symbol);
    struct rocprofiler_abi_dispatch record = a_dispatch();
    assert_int_equal(decode(fixture, ROCPROFILER_ABI_KIND_KERNEL_DISPATCH, &record), 1);
    assert_int_equal(fixture->out[0].kind, ACTIVITY_KERNEL);
    const struct kernel_activity *kernel = &fixture->out[0].u.kernel;
    assert_string_equal(kernel->name, "_Z1kPf");
    assert_int_equal(kernel->grid[0], 16);
    assert_int_equal(kernel->grid[1], 2);
    assert_int_equal(kernel->block[0], 64);
    assert_int_equal(kernel->start_ns, 100 + offset_ns);
    assert_int_equal(kernel->end_ns - kernel->start_ns, 200);
    assert_int_equal(kernel->device_id, 5);
    assert_int_equal(kernel->correlation_id, 7);
    assert_int_equal(kernel->static_shared, 512);
    assert_int_equal(kernel->dyn_shared, 1024);
    assert_int_equal(kernel->regs, 48);
    assert_int_equal(kernel->sgprs, 32);
    assert_int_equal(kernel->accum_vgprs, 8);
}

static void a_kernel_nobody_registered_has_no_name(void **state)
{
    struct fixture *fixture = *state;
    struct rocprofiler_abi_dispatch record = a_dispatch();
    record.info.kernel_id = UINT64_MAX;
    record.info.workgroup_size[0] = 0;
    assert_int_equal(decode(fixture, ROCPROFILER_ABI_KIND_KERNEL_DISPATCH, &record), 1);
    assert_null(fixture->out[0].u.kernel.name);
    assert_int_equal(fixture->out[0].u.kernel.grid[0], 1000);
}

static void a_record_shorter_than_what_is_read_is_bad_and_an_unknown_kind_counted(void **state)
{
    struct fixture *fixture = *state;
    struct rocprofiler_abi_dispatch record = a_dispatch();
    record.size = 24;
    static const uint32_t kinds[] = {ROCPROFILER_ABI_KIND_KERNEL_DISPATCH, ROCPROFILER_ABI_KIND_MEMORY_COPY,
                                     ROCPROFILER_ABI_KIND_HIP_RUNTIME_API, 16};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        assert_int_equal(decode(fixture, kinds[i], &record), 1);
        assert_int_equal(fixture->out[0].kind, ACTIVITY_BAD);
    }
    assert_int_equal(decode(fixture, 61, &record), 0);
    assert_int_equal(rocprofiler_take_unknown(&fixture->rocprofiler), 1);
    assert_int_equal(rocprofiler_take_unknown(&fixture->rocprofiler), 0);
}

static void copies_know_their_direction_and_peers(void **state)
{
    struct fixture *fixture = *state;
    struct rocprofiler_abi_copy record = {.size = sizeof record,
                                          .operation = ROCPROFILER_ABI_COPY_HOST_TO_DEVICE,
                                          .start = 1,
                                          .end = 2,
                                          .src_agent_id = cpu,
                                          .dst_agent_id = gpu,
                                          .bytes = 64};
    assert_int_equal(decode(fixture, ROCPROFILER_ABI_KIND_MEMORY_COPY, &record), 1);
    const struct copy_activity *copy = &fixture->out[0].u.copy;
    assert_int_equal(copy->copy_kind, 1);
    assert_int_equal(copy->device_id, 4);
    assert_int_equal(copy->dst_kind, 3);
    assert_int_equal(copy->src_kind, 0);
    record.operation = ROCPROFILER_ABI_COPY_DEVICE_TO_DEVICE;
    record.src_agent_id = gpu + 1;
    assert_int_equal(decode(fixture, ROCPROFILER_ABI_KIND_MEMORY_COPY, &record), 1);
    assert_int_equal(copy->copy_kind, 10);
    assert_true(copy->is_peer);
    assert_int_equal(copy->src_device_id, 5);
    record.operation = 99;
    record.src_agent_id = gpu;
    assert_int_equal(decode(fixture, ROCPROFILER_ABI_KIND_MEMORY_COPY, &record), 1);
    assert_int_equal(copy->copy_kind, 0);
}

static void a_wait_is_a_call_and_a_synchronization(void **state)
{
    struct fixture *fixture = *state;
    fixture->rocprofiler.calls[40] = ROCPROFILER_CALL_WAIT_STREAM;
    const struct rocprofiler_abi_call_1 newer = {sizeof newer, 5, 40, {11, {0}}, 0, 100, 150, 77};
    struct rocprofiler_abi_call_1 record = newer;
    assert_int_equal(decode(fixture, ROCPROFILER_ABI_KIND_HIP_RUNTIME_API, &record), 2);
    assert_int_equal(fixture->out[0].u.api.thread_id, 77);
    assert_int_equal(fixture->out[1].kind, ACTIVITY_SYNC);
    assert_int_equal(fixture->out[1].u.sync.type, 3);
    assert_false(fixture->out[1].u.sync.has_stream);
    fixture->rocprofiler.granted = 0;
    assert_int_equal(decode(fixture, ROCPROFILER_ABI_KIND_HIP_RUNTIME_API, &record), 1);
}

static void the_older_layout_is_read_as_such(void **state)
{
    struct fixture *fixture = *state;
    fixture->rocprofiler.version = 600;
    fixture->rocprofiler.memory_kind = 17;
    struct rocprofiler_abi_call_0 call = {sizeof call, 5, 2000, {12, {0}}, 100, 150, 78};
    assert_int_equal(decode(fixture, ROCPROFILER_ABI_KIND_HIP_RUNTIME_API, &call), 1);
    assert_int_equal(fixture->out[0].u.api.start_ns, 100 + offset_ns);
    assert_int_equal(fixture->out[0].u.api.thread_id, 78);
    struct rocprofiler_abi_memory_0 memory = {
        sizeof memory, 17, ROCPROFILER_ABI_MEMORY_ALLOCATE, {13, {0}}, 78, 100, 150, gpu, 0x1000, 256};
    assert_int_equal(decode(fixture, 17, &memory), 1);
    assert_int_equal(fixture->out[0].u.memory.address, 0x1000);
    assert_int_equal(fixture->out[0].u.memory.bytes, 256);
    assert_int_equal(fixture->out[0].u.memory.memory_kind, 3);
    memory.operation = ROCPROFILER_ABI_MEMORY_FREE;
    memory.agent_id = 0;
    assert_int_equal(decode(fixture, 17, &memory), 1);
    assert_int_equal(fixture->out[0].u.memory.op, 2);
    assert_int_equal(fixture->out[0].u.memory.memory_kind, 0);
}

static void a_missing_time_stays_zero(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(rocprofiler_wall_ns(&fixture->rocprofiler, 0), 0);
    assert_int_equal(rocprofiler_wall_ns(&fixture->rocprofiler, UINT64_MAX), 0);
    assert_int_equal(rocprofiler_wall_ns(&fixture->rocprofiler, 5), 5 + offset_ns);
}

static void a_symbol_is_kept_once_and_only_when_whole(void **state)
{
    struct fixture *fixture = *state;
    struct rocprofiler_abi_kernel_symbol symbol = {.size = sizeof symbol, .kernel_id = 5, .kernel_name = ".kd"};
    rocprofiler_kernel_add(&fixture->rocprofiler, &symbol);
    symbol.kernel_name = "other";
    rocprofiler_kernel_add(&fixture->rocprofiler, &symbol);
    assert_string_equal(rocprofiler_kernel_find(&fixture->rocprofiler, 5)->name, ".kd");
    symbol = (struct rocprofiler_abi_kernel_symbol){.size = 16, .kernel_id = 6, .kernel_name = "short"};
    rocprofiler_kernel_add(&fixture->rocprofiler, &symbol);
    assert_null(rocprofiler_kernel_find(&fixture->rocprofiler, 6));
    assert_int_equal(rocprofiler_take_nameless(&fixture->rocprofiler), 0);
}

static void kernel_add(struct fixture *fixture, uint64_t kernel_id, const char *name)
{
    const struct rocprofiler_abi_kernel_symbol symbol = {
        .size = sizeof symbol, .kernel_id = kernel_id, .kernel_name = name};
    rocprofiler_kernel_add(&fixture->rocprofiler, &symbol);
}

static void kernels_far_beyond_the_first_65536_have_their_names(void **state)
{
    struct fixture *fixture = *state;
    for (uint64_t id = 65000; id < 200000; id += 1000) {
        char name[32];
        snprintf(name, sizeof name, "kernel_%llu", (unsigned long long)id);
        kernel_add(fixture, id, name);
        assert_string_equal(rocprofiler_kernel_find(&fixture->rocprofiler, id)->name, name);
    }
    kernel_add(fixture, 4000000, "late");
    assert_string_equal(rocprofiler_kernel_find(&fixture->rocprofiler, 4000000)->name, "late");
    assert_int_equal(rocprofiler_take_nameless(&fixture->rocprofiler), 0);
}

static void kernels_there_is_no_room_for_are_counted_and_the_others_keep_their_names(void **state)
{
    struct fixture *fixture = *state;
    enum { count = 10000 };
    fixture->rocprofiler.kernels.bytes_max = 256 * 1024;
    uint64_t kept = 0;
    for (uint64_t id = 1; id <= count; id++)
        kernel_add(fixture, id, "a_kernel_with_a_name");
    for (uint64_t id = 1; id <= count; id++)
        kept += rocprofiler_kernel_find(&fixture->rocprofiler, id) != NULL;
    assert_in_range(kept, 1000, count - 1);
    kernel_add(fixture, UINT64_MAX, "no_such_id");
    assert_null(rocprofiler_kernel_find(&fixture->rocprofiler, UINT64_MAX));
    assert_int_equal(rocprofiler_take_nameless(&fixture->rocprofiler), count - kept + 1);
    assert_int_equal(rocprofiler_take_nameless(&fixture->rocprofiler), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_grid_is_decoded_in_workgroups_and_the_last_may_be_partial),
        TEST(a_kernel_nobody_registered_has_no_name),
        TEST(a_record_shorter_than_what_is_read_is_bad_and_an_unknown_kind_counted),
        TEST(copies_know_their_direction_and_peers),
        TEST(a_wait_is_a_call_and_a_synchronization),
        TEST(the_older_layout_is_read_as_such),
        TEST(a_missing_time_stays_zero),
        TEST(a_symbol_is_kept_once_and_only_when_whole),
        TEST(kernels_far_beyond_the_first_65536_have_their_names),
        TEST(kernels_there_is_no_room_for_are_counted_and_the_others_keep_their_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
