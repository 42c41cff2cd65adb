/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "driver/cupti_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A buffer under construction. `strides` has the size of each record, as the look-alike of
 * cuptiActivityGetNextRecord below does not know the layouts. */
static struct {
    _Alignas(8) uint8_t bytes[8192];
    size_t used;
    size_t offsets[64];
    size_t count;
} made;

static struct cupti cupti;

/* Like CUPTI's: stops at the first record that does not fit, or has no kind. */
static int next_record(uint8_t *buffer, size_t valid, void **record)
{
    size_t next = 0;
    if (*record) {
        size_t at = (size_t)((uint8_t *)*record - buffer);
        while (next < made.count && made.offsets[next] <= at)
            next++;
    }
    if (next == made.count || made.offsets[next] >= valid)
        return CUPTI_ABI_MAX_LIMIT_REACHED;
    *record = buffer + made.offsets[next];
    return CUPTI_ABI_SUCCESS;
}

static int make_nothing(void **state)
{
    (void)state;
    memset(&made, 0, sizeof made);
    memset(&cupti, 0, sizeof cupti);
    cupti.call.get_next_record = next_record;
    cupti_set_version(&cupti, 130001);
    return 0;
}

static void add(const void *record, size_t size)
{
    assert_true(made.used + size <= sizeof made.bytes && made.count < 64);
    made.offsets[made.count++] = made.used;
    memcpy(made.bytes + made.used, record, size);
    made.used += size;
}

static struct activity_cursor cursor(void)
{
    return (struct activity_cursor){&cupti, made.bytes, made.used, NULL};
}

static const struct cupti_abi_kernel kernel_record = {
    .kind = CUPTI_ABI_KIND_CONCURRENT_KERNEL,
    .cache_config = 0x21,
    .registers_per_thread = 40,
    .start = 1700000000000000001,
    .end = 1700000000000000777,
    .device_id = 1,
    .context_id = 2,
    .stream_id = 7,
    .grid = {108, 2, 3},
    .block = {256, 4, 5},
    .static_shared = 1024,
    .dynamic_shared = 2048,
    .local_per_thread = 16,
    .local_total_32 = 99,
    .correlation_id = 4242,
    .name = "_Z4axpyPf",
    .shared_executed = 65536,
    .graph_node_id = 0x500000001,
    .graph_id = 5,
    .cluster = {2, 1, 1},
    .local_total = 0x100000000,
    .is_device_launched = 1,
};

static void assert_kernel(const struct activity *activity)
{
    assert_int_equal(activity->kind, ACTIVITY_KERNEL);
    const struct kernel_activity *kernel = &activity->u.kernel;
    assert_int_equal(kernel->start_ns, 1700000000000000001);
    assert_int_equal(kernel->end_ns, 1700000000000000777);
    assert_string_equal(kernel->name, "_Z4axpyPf");
    assert_int_equal(kernel->device_id, 1);
    assert_int_equal(kernel->context_id, 2);
    assert_int_equal(kernel->stream_id, 7);
    assert_int_equal(kernel->grid[0], 108);
    assert_int_equal(kernel->grid[2], 3);
    assert_int_equal(kernel->block[0], 256);
    assert_int_equal(kernel->block[1], 4);
    assert_int_equal(kernel->cluster[0], 2);
    assert_int_equal(kernel->regs, 40);
    assert_int_equal(kernel->static_shared, 1024);
    assert_int_equal(kernel->dyn_shared, 2048);
    assert_int_equal(kernel->shared_executed, 65536);
    assert_int_equal(kernel->local_per_thread, 16);
    assert_int_equal(kernel->local_total_bytes, 0x100000000);
    assert_int_equal(kernel->correlation_id, 4242);
    assert_int_equal(kernel->graph_id, 5);
    assert_int_equal(kernel->graph_node_id, 0x500000001);
    assert_int_equal(kernel->cache_requested, 1);
    assert_int_equal(kernel->cache_executed, 2);
}

static void kernels_of_12_and_13_read_alike(void **state)
{
    const struct {
        uint32_t version;
        size_t bytes;
    } layouts[] = {{19, 208}, {28, 208}, {130000, 216}, {130001, 216}, {130300, 240}};
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
        make_nothing(state);
        cupti_set_version(&cupti, layouts[i].version);
        uint8_t record[240];
        memset(record, 0xee, sizeof record); /* what a newer version appends */
        memcpy(record, &kernel_record, sizeof kernel_record);
        add(record, layouts[i].bytes);
        add(record, layouts[i].bytes);
        struct activity_cursor at = cursor();
        struct activity activity;
        assert_true(activity_next(&at, &activity));
        assert_kernel(&activity);
        assert_true(activity_next(&at, &activity));
        assert_kernel(&activity);
        assert_false(activity_next(&at, &activity));
        assert_false(activity_next(&at, &activity));
    }
}

static void a_running_kernel_has_no_end_and_a_nameless_one_no_name(void **state)
{
    (void)state;
    struct cupti_abi_kernel record = kernel_record;
    record.end = 0;
    record.name = NULL;
    add(&record, sizeof record);
    struct activity_cursor at = cursor();
    struct activity activity;
    assert_true(activity_next(&at, &activity));
    assert_int_equal(activity.u.kernel.end_ns, 0);
    assert_null(activity.u.kernel.name);
}

static void copies_and_memsets_keep_their_ends(void **state)
{
    (void)state;
    add(&(struct cupti_abi_memcpy){.kind = CUPTI_ABI_KIND_MEMCPY,
                                   .copy_kind = 1,
                                   .src_kind = 2,
                                   .dst_kind = 3,
                                   .flags = 1,
                                   .bytes = 1ull << 33,
                                   .start = 10,
                                   .end = 20,
                                   .device_id = 3,
                                   .context_id = 4,
                                   .stream_id = 5,
                                   .correlation_id = 6,
                                   .graph_node_id = 8,
                                   .graph_id = 9},
        sizeof(struct cupti_abi_memcpy));
    add(&(struct cupti_abi_memcpy_peer){.kind = CUPTI_ABI_KIND_MEMCPY2,
                                        .copy_kind = 10,
                                        .bytes = 77,
                                        .start = 30,
                                        .end = 40,
                                        .device_id = 1,
                                        .src_device_id = 1,
                                        .dst_device_id = 2,
                                        .correlation_id = 11,
                                        .graph_id = 12},
        sizeof(struct cupti_abi_memcpy_peer));
    add(&(struct cupti_abi_memset){.kind = CUPTI_ABI_KIND_MEMSET,
                                   .value = 0xab,
                                   .bytes = 4096,
                                   .start = 50,
                                   .end = 60,
                                   .device_id = 1,
                                   .correlation_id = 13,
                                   .flags = 1,
                                   .memory_kind = 3},
        sizeof(struct cupti_abi_memset));
    struct activity_cursor at = cursor();
    struct activity a;
    assert_true(activity_next(&at, &a));
    assert_int_equal(a.kind, ACTIVITY_COPY);
    assert_int_equal(a.u.copy.bytes, 1ull << 33);
    assert_int_equal(a.u.copy.copy_kind, 1);
    assert_int_equal(a.u.copy.src_kind, 2);
    assert_int_equal(a.u.copy.dst_kind, 3);
    assert_true(a.u.copy.is_async);
    assert_false(a.u.copy.is_peer);
    assert_int_equal(a.u.copy.correlation_id, 6);
    assert_int_equal(a.u.copy.stream_id, 5);
    assert_int_equal(a.u.copy.graph_node_id, 8);
    assert_int_equal(a.u.copy.graph_id, 9);
    assert_true(activity_next(&at, &a));
    assert_int_equal(a.kind, ACTIVITY_COPY);
    assert_true(a.u.copy.is_peer);
    assert_false(a.u.copy.is_async);
    assert_int_equal(a.u.copy.src_device_id, 1);
    assert_int_equal(a.u.copy.dst_device_id, 2);
    assert_int_equal(a.u.copy.correlation_id, 11);
    assert_int_equal(a.u.copy.graph_id, 12);
    assert_true(activity_next(&at, &a));
    assert_int_equal(a.kind, ACTIVITY_MEMSET);
    assert_int_equal(a.u.copy.value, 0xab);
    assert_int_equal(a.u.copy.memory_kind, 3);
    assert_true(a.u.copy.is_async);
    assert_int_equal(a.u.copy.start_ns, 50);
    assert_int_equal(a.u.copy.end_ns, 60);
    assert_false(activity_next(&at, &a));
}

static void waits_say_whether_they_have_a_stream_or_an_event(void **state)
{
    const uint32_t versions[] = {24, 26}; /* 40 and 56 bytes */
    for (int i = 0; i < 2; i++) {
        make_nothing(state);
        cupti_set_version(&cupti, versions[i]);
        size_t bytes = i ? 56 : 40;
        struct cupti_abi_synchronization record = {.kind = CUPTI_ABI_KIND_SYNCHRONIZATION,
                                                   .type = 3,
                                                   .start = 1,
                                                   .end = 2,
                                                   .correlation_id = 3,
                                                   .context_id = 4,
                                                   .stream_id = 5,
                                                   .event_id = CUPTI_ABI_INVALID_ID};
        add(&record, bytes);
        record.stream_id = CUPTI_ABI_INVALID_ID;
        record.event_id = 0;
        add(&record, bytes);
        struct activity_cursor at = cursor();
        struct activity a;
        assert_true(activity_next(&at, &a));
        assert_int_equal(a.kind, ACTIVITY_SYNC);
        assert_int_equal(a.u.sync.type, 3);
        assert_true(a.u.sync.has_stream);
        assert_int_equal(a.u.sync.stream_id, 5);
        assert_false(a.u.sync.has_event);
        assert_true(activity_next(&at, &a));
        assert_false(a.u.sync.has_stream);
        assert_true(a.u.sync.has_event);
        assert_false(activity_next(&at, &a));
    }
}

static void calls_allocations_ids_and_overhead_are_read(void **state)
{
    (void)state;
    struct cupti_abi_api api = {
        .kind = CUPTI_ABI_KIND_RUNTIME, .cbid = 211, .start = 5, .end = 6, .thread_id = 1234, .correlation_id = 9};
    add(&api, sizeof api);
    api.cbid = 311;
    add(&api, sizeof api);
    api.kind = CUPTI_ABI_KIND_DRIVER; /* 311 is no graph launch there */
    add(&api, sizeof api);
    add(&(struct cupti_abi_external){CUPTI_ABI_KIND_EXTERNAL_CORRELATION, 3, 0xabcdef0123, 9, 0}, 24);
    add(&(struct cupti_abi_memory){.kind = CUPTI_ABI_KIND_MEMORY2,
                                   .operation = 2,
                                   .memory_kind = 3,
                                   .correlation_id = 10,
                                   .address = 0x7f0000000000,
                                   .bytes = 512,
                                   .timestamp = 77,
                                   .device_id = 1,
                                   .context_id = 2,
                                   .stream_id = CUPTI_ABI_INVALID_ID,
                                   .is_async = 0},
        sizeof(struct cupti_abi_memory));
    add(&(struct cupti_abi_overhead){.kind = CUPTI_ABI_KIND_OVERHEAD, .overhead_kind = 7 << 16, .start = 1, .end = 4},
        sizeof(struct cupti_abi_overhead));
    struct activity_cursor at = cursor();
    struct activity a;
    assert_true(activity_next(&at, &a));
    assert_int_equal(a.kind, ACTIVITY_API);
    assert_true(a.u.api.is_runtime);
    assert_false(a.u.api.is_graph_launch);
    assert_int_equal(a.u.api.thread_id, 1234);
    assert_int_equal(a.u.api.cbid, 211);
    assert_int_equal(a.u.api.correlation_id, 9);
    assert_true(activity_next(&at, &a));
    assert_true(a.u.api.is_graph_launch);
    assert_true(activity_next(&at, &a));
    assert_false(a.u.api.is_runtime);
    assert_false(a.u.api.is_graph_launch);
    assert_true(activity_next(&at, &a));
    assert_int_equal(a.kind, ACTIVITY_EXTERNAL);
    assert_int_equal(a.u.external.external_id, 0xabcdef0123);
    assert_int_equal(a.u.external.external_kind, 3);
    assert_int_equal(a.u.external.correlation_id, 9);
    assert_true(activity_next(&at, &a));
    assert_int_equal(a.kind, ACTIVITY_MEMORY);
    assert_int_equal(a.u.memory.op, 2);
    assert_int_equal(a.u.memory.address, 0x7f0000000000);
    assert_int_equal(a.u.memory.bytes, 512);
    assert_int_equal(a.u.memory.time_ns, 77);
    assert_false(a.u.memory.has_stream);
    assert_true(activity_next(&at, &a));
    assert_int_equal(a.kind, ACTIVITY_OVERHEAD);
    assert_string_equal(overhead_kind_name(a.u.overhead.kind), "buffer_request");
    assert_int_equal(a.u.overhead.end_ns - a.u.overhead.start_ns, 3);
    assert_false(activity_next(&at, &a));
}

static void kinds_we_do_not_use_are_stepped_over(void **state)
{
    (void)state;
    add((uint32_t[4]){12, 0, 0, 0}, 16); /* MARKER */
    add((uint32_t[4]){58, 0, 0, 0}, 16); /* of a newer CUPTI */
    add((uint32_t[4]){0x7fffffff, 0, 0, 0}, 16);
    add(&kernel_record, sizeof kernel_record);
    struct activity_cursor at = cursor();
    struct activity a;
    assert_true(activity_next(&at, &a));
    assert_int_equal(a.kind, ACTIVITY_IGNORED);
    assert_true(activity_next(&at, &a));
    assert_int_equal(a.kind, ACTIVITY_UNKNOWN);
    assert_true(activity_next(&at, &a));
    assert_int_equal(a.kind, ACTIVITY_UNKNOWN);
    assert_true(activity_next(&at, &a));
    assert_kernel(&a);
    assert_false(activity_next(&at, &a));
}

static void a_record_without_a_kind_ends_the_buffer(void **state)
{
    (void)state;
    add((uint32_t[4]){0}, 16);
    add(&kernel_record, sizeof kernel_record);
    struct activity_cursor at = cursor();
    struct activity a;
    assert_true(activity_next(&at, &a));
    assert_int_equal(a.kind, ACTIVITY_BAD);
    assert_false(activity_next(&at, &a));
}

/* The copy is exactly `valid` bytes long, so that a sanitizer sees every byte read beyond. */
static void a_buffer_cut_at_any_byte_never_reads_beyond_it(void **state)
{
    (void)state;
    add(&kernel_record, sizeof kernel_record);
    add(&(struct cupti_abi_memcpy){.kind = CUPTI_ABI_KIND_MEMCPY}, sizeof(struct cupti_abi_memcpy));
    add(&(struct cupti_abi_memcpy_peer){.kind = CUPTI_ABI_KIND_MEMCPY2}, sizeof(struct cupti_abi_memcpy_peer));
    add(&(struct cupti_abi_memset){.kind = CUPTI_ABI_KIND_MEMSET}, sizeof(struct cupti_abi_memset));
    add(&(struct cupti_abi_memory){.kind = CUPTI_ABI_KIND_MEMORY2}, sizeof(struct cupti_abi_memory));
    add(&(struct cupti_abi_synchronization){.kind = CUPTI_ABI_KIND_SYNCHRONIZATION}, 56);
    add(&(struct cupti_abi_api){.kind = CUPTI_ABI_KIND_DRIVER}, sizeof(struct cupti_abi_api));
    add(&(struct cupti_abi_external){.kind = CUPTI_ABI_KIND_EXTERNAL_CORRELATION}, sizeof(struct cupti_abi_external));
    add(&(struct cupti_abi_overhead){.kind = CUPTI_ABI_KIND_OVERHEAD}, sizeof(struct cupti_abi_overhead));
    for (size_t valid = 0; valid <= made.used; valid++) {
        uint8_t *copy = malloc(valid ? valid : 1);
        assert_non_null(copy);
        memcpy(copy, made.bytes, valid);
        struct activity_cursor at = {&cupti, copy, valid, NULL};
        struct activity a;
        size_t whole = 0, bad = 0, expected = 0, cut = 0;
        while (activity_next(&at, &a))
            *(a.kind == ACTIVITY_BAD ? &bad : &whole) += 1;
        for (size_t i = 0; i < made.count; i++) {
            size_t end = i + 1 < made.count ? made.offsets[i + 1] : made.used;
            expected += end <= valid;
            cut += made.offsets[i] < valid && end > valid;
        }
        assert_int_equal(whole, expected);
        assert_int_equal(bad, cut);
        free(copy);
    }
}

static void *answer; /* the position that the faulty library returns as the next record */
static int lying_next_record(uint8_t *buffer, size_t valid, void **record)
{
    (void)buffer, (void)valid;
    *record = answer;
    return CUPTI_ABI_SUCCESS;
}

static int failing_next_record(uint8_t *buffer, size_t valid, void **record)
{
    (void)buffer, (void)valid, (void)record;
    return CUPTI_ABI_INVALID_KIND;
}

static void absurd_answers_of_the_library_end_the_buffer(void **state)
{
    (void)state;
    add(&kernel_record, sizeof kernel_record);
    cupti.call.get_next_record = lying_next_record;
    void *const lies[] = {NULL,
                          (void *)((uintptr_t)made.bytes - 8),
                          made.bytes + 1,
                          made.bytes + made.used,
                          made.bytes + made.used - 4,
                          (void *)UINTPTR_MAX};
    struct activity a;
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        answer = lies[i];
        struct activity_cursor at = cursor();
        assert_true(activity_next(&at, &a));
        assert_int_equal(a.kind, ACTIVITY_BAD);
        assert_false(activity_next(&at, &a));
    }
    answer = made.bytes; /* the same record forever */
    struct activity_cursor at = cursor();
    assert_true(activity_next(&at, &a));
    assert_kernel(&a);
    assert_true(activity_next(&at, &a));
    assert_int_equal(a.kind, ACTIVITY_BAD);
    assert_false(activity_next(&at, &a));

    cupti.call.get_next_record = failing_next_record;
    at = cursor();
    assert_true(activity_next(&at, &a));
    assert_int_equal(a.kind, ACTIVITY_BAD);
    assert_false(activity_next(&at, &a));
}

static void an_empty_buffer_has_no_records(void **state)
{
    (void)state;
    struct activity a;
    struct activity_cursor at = cursor();
    assert_false(activity_next(&at, &a));
    at = (struct activity_cursor){&cupti, NULL, 100, NULL};
    assert_false(activity_next(&at, &a));
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup(name, make_nothing)
    const struct CMUnitTest tests[] = {
        CASE(kernels_of_12_and_13_read_alike),
        CASE(a_running_kernel_has_no_end_and_a_nameless_one_no_name),
        CASE(copies_and_memsets_keep_their_ends),
        CASE(waits_say_whether_they_have_a_stream_or_an_event),
        CASE(calls_allocations_ids_and_overhead_are_read),
        CASE(kinds_we_do_not_use_are_stepped_over),
        CASE(a_record_without_a_kind_ends_the_buffer),
        CASE(a_buffer_cut_at_any_byte_never_reads_beyond_it),
        CASE(absurd_answers_of_the_library_end_the_buffer),
        CASE(an_empty_buffer_has_no_records),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
