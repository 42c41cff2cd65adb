/* SPDX-License-Identifier: Apache-2.0 */
/* Joining kernels with their API calls, scopes, external ids and graphs, from
 * hand-made activity buffers of CUPTI 13.0's layout. */
#include "recorder_fixture.h"

#include "capture/activity_joiner.h"
#include "driver/cupti_table.h"

struct fixture {
    char dir[256];
    struct log_writer *writer;
    struct recorder recorder;
    struct scope_history *history;
    struct kernel_history *kernels; /* NULL: not needed */
    struct activity_joiner *joiner;
    struct cupti cupti;
    uint8_t buffer[64 * 1024];
    size_t size;
};

static size_t record_size(uint32_t kind)
{
    return kind == CUPTI_ABI_KIND_RUNTIME                ? sizeof(struct cupti_abi_api)
           : kind == CUPTI_ABI_KIND_EXTERNAL_CORRELATION ? sizeof(struct cupti_abi_external)
           : kind == CUPTI_ABI_KIND_SYNCHRONIZATION      ? sizeof(struct cupti_abi_synchronization)
                                                         : sizeof(struct cupti_abi_kernel);
}

static int next_record(uint8_t *buffer, size_t valid, void **record)
{
    uint8_t *at = *record;
    at = at ? at + record_size(*(uint32_t *)(void *)at) : buffer;
    if (at >= buffer + valid)
        return 12;
    *record = at;
    return 0;
}

static int open_with(void **state, bool has_calls, bool with_graphs, bool with_kernels)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    recorder_fixture_open(fixture->dir, &fixture->writer, &fixture->recorder);
    assert_int_equal(scope_history_make(&fixture->history), GPUFL_OK);
    if (with_kernels)
        assert_int_equal(kernel_history_make(&fixture->kernels, 1024), GPUFL_OK);
    fixture->cupti.call.get_next_record = next_record;
    cupti_set_version(&fixture->cupti, 130001);
    const struct activity_joiner_options joiner = {
        &fixture->recorder, fixture->history, &fixture->cupti, fixture->kernels, has_calls, true, with_graphs};
    assert_int_equal(activity_joiner_make(&fixture->joiner, &joiner), GPUFL_OK);
    *state = fixture;
    return 0;
}
static int open_fixture(void **state)
{
    return open_with(state, true, false, false);
}
static int open_without_calls(void **state)
{
    return open_with(state, false, false, false);
}
static int open_with_graphs(void **state)
{
    return open_with(state, true, true, false);
}
static int open_with_kernels(void **state)
{
    return open_with(state, true, false, true);
}

static int close_fixture(void **state)
{
    struct fixture *fixture = *state;
    activity_joiner_free(fixture->joiner);
    kernel_history_free(fixture->kernels);
    scope_history_free(fixture->history);
    recorder_fixture_close(fixture->dir, fixture->writer, &fixture->recorder);
    free(fixture);
    return 0;
}

static void add(struct fixture *fixture, const void *record, size_t size)
{
    memcpy(fixture->buffer + fixture->size, record, size);
    fixture->size += size;
}
static void add_kernel(struct fixture *fixture, uint32_t correlation_id, int64_t start_ns, int64_t end_ns,
                       uint32_t graph_id)
{
    struct cupti_abi_kernel kernel = {.kind = CUPTI_ABI_KIND_CONCURRENT_KERNEL,
                                      .start = (uint64_t)start_ns,
                                      .end = (uint64_t)end_ns,
                                      .correlation_id = correlation_id,
                                      .name = "_Z4axpyfPKfPfi",
                                      .stream_id = 7,
                                      .graph_id = graph_id,
                                      .grid = {10, 1, 1},
                                      .block = {256, 1, 1},
                                      .registers_per_thread = 16};
    add(fixture, &kernel, sizeof kernel);
}
static void add_call(struct fixture *fixture, uint32_t correlation_id, int64_t start_ns, int64_t end_ns,
                     uint32_t thread_id)
{
    struct cupti_abi_api api = {.kind = CUPTI_ABI_KIND_RUNTIME,
                                .cbid = 211,
                                .start = (uint64_t)start_ns,
                                .end = (uint64_t)end_ns,
                                .thread_id = thread_id,
                                .correlation_id = correlation_id};
    add(fixture, &api, sizeof api);
}
static void read_buffer(struct fixture *fixture)
{
    activity_joiner_read(fixture->joiner, fixture->buffer, fixture->size);
    activity_joiner_settle(fixture->joiner);
    fixture->size = 0;
}
static const struct batch *batch_of(const struct fixture *fixture, enum record_type type)
{
    return &fixture->recorder.batches[type];
}
static const int64_t *kernel_row(const struct fixture *fixture, uint32_t index)
{
    const struct batch *batch = batch_of(fixture, RECORD_KERNEL_EVENT_BATCH);
    assert_true(index < batch->row_count);
    return &batch->cells[index * KERNEL_COLUMN_COUNT];
}

static void a_kernel_gets_time_thread_and_scope_of_its_call(void **state)
{
    struct fixture *fixture = *state;
    scope_history_step(fixture->history, 42, 1000, 5);
    add_call(fixture, 9, 2000, 5000, 42);
    add_kernel(fixture, 9, 6000, 9500, 0);
    read_buffer(fixture);
    const int64_t *row = kernel_row(fixture, 0);
    assert_int_equal(row[KERNEL_DURATION_NS], 3500);
    assert_int_equal(row[KERNEL_API_LEAD_NS], 4000);
    assert_int_equal(row[KERNEL_API_DURATION_NS], 3000);
    assert_int_equal(row[KERNEL_THREAD_ID], 42);
    assert_int_equal(row[KERNEL_SCOPE_ID], 5);
    assert_int_equal(row[KERNEL_LAUNCH_ID], 1);
    const struct bytes *names = &fixture->recorder.entries[DICTIONARY_KERNEL];
    assert_memory_equal(names->data, "\"1\":\"axpy(float, float const*, float*, int)\"", names->size);
}

static void a_kernel_that_comes_before_its_call_waits_for_it(void **state)
{
    struct fixture *fixture = *state;
    add_kernel(fixture, 9, 6000, 9500, 0);
    read_buffer(fixture);
    assert_int_equal(batch_of(fixture, RECORD_KERNEL_EVENT_BATCH)->row_count, 0);
    scope_history_step(fixture->history, 42, 1000, 5);
    add_call(fixture, 9, 2000, 5000, 42);
    read_buffer(fixture);
    assert_int_equal(kernel_row(fixture, 0)[KERNEL_SCOPE_ID], 5);
}

static void a_kernel_whose_call_never_comes_is_written_with_unknowns(void **state)
{
    struct fixture *fixture = *state;
    add_kernel(fixture, 9, 6000, 9500, 0);
    read_buffer(fixture);
    for (int i = 0; i < 3; i++)
        activity_joiner_tick(fixture->joiner);
    const int64_t *row = kernel_row(fixture, 0);
    assert_int_equal(row[KERNEL_API_LEAD_NS], CELL_UNKNOWN);
    assert_int_equal(row[KERNEL_THREAD_ID], CELL_UNKNOWN);
    assert_int_equal(row[KERNEL_SCOPE_ID], CELL_UNKNOWN); /* not 0: it may have had one */
}

static void without_api_records_nothing_waits(void **state)
{
    struct fixture *fixture = *state;
    add_kernel(fixture, 9, 6000, 9500, 0);
    read_buffer(fixture);
    assert_int_equal(kernel_row(fixture, 0)[KERNEL_API_DURATION_NS], CELL_UNKNOWN);
}

static void the_middle_of_the_call_decides_its_scope(void **state)
{
    struct fixture *fixture = *state;
    /* The scope's begin was stamped 80 ns after the call's start by the other clock. */
    scope_history_step(fixture->history, 42, 2080, 5);
    scope_history_step(fixture->history, 42, 4920, 0);
    add_call(fixture, 9, 2000, 5000, 42);
    add_kernel(fixture, 9, 6000, 9500, 0);
    read_buffer(fixture);
    assert_int_equal(kernel_row(fixture, 0)[KERNEL_SCOPE_ID], 5);
}

static void an_external_id_belongs_to_the_call_that_follows_it(void **state)
{
    struct fixture *fixture = *state;
    struct cupti_abi_external external = {.kind = CUPTI_ABI_KIND_EXTERNAL_CORRELATION,
                                          .external_kind = 3,
                                          .external_id = 0xfedcba9876543210,
                                          .correlation_id = 9};
    add(fixture, &external, sizeof external);
    add_call(fixture, 9, 2000, 5000, 42);
    add_kernel(fixture, 9, 6000, 9500, 0);
    read_buffer(fixture);
    assert_int_equal(kernel_row(fixture, 0)[KERNEL_EXTERNAL_KIND], 3);
    assert_int_equal((uint64_t)kernel_row(fixture, 0)[KERNEL_EXTERNAL_ID], 0xfedcba9876543210);
}

static void a_kernel_still_running_at_the_end_is_a_loss_not_a_row(void **state)
{
    struct fixture *fixture = *state;
    add_call(fixture, 9, 2000, 5000, 42);
    add_kernel(fixture, 9, 6000, 0, 0);
    add_kernel(fixture, 10, 0, 0, 0);
    read_buffer(fixture);
    assert_int_equal(batch_of(fixture, RECORD_KERNEL_EVENT_BATCH)->row_count, 0);
    assert_int_equal(atomic_load(&fixture->recorder.lost[LOSS_STILL_RUNNING]), 1);
    assert_int_equal(atomic_load(&fixture->recorder.lost[LOSS_NO_TIMESTAMP]), 1);
}

static void graph_nodes_share_the_launch_and_add_up_to_one_graph_row(void **state)
{
    struct fixture *fixture = *state;
    add_call(fixture, 9, 2000, 5000, 42);
    for (int i = 0; i < 4; i++)
        add_kernel(fixture, 9, 6000 + i * 1000, 6700 + i * 1000, 77);
    read_buffer(fixture);
    activity_joiner_finish(fixture->joiner);
    assert_int_equal(batch_of(fixture, RECORD_KERNEL_EVENT_BATCH)->row_count, 4);
    assert_int_equal(kernel_row(fixture, 3)[KERNEL_API_LEAD_NS], 7000);
    const struct batch *graphs = batch_of(fixture, RECORD_GRAPH_LAUNCH_BATCH);
    assert_int_equal(graphs->row_count, 1);
    assert_int_equal(graphs->cells[GRAPH_LAUNCH_NODE_COUNT], 4);
    assert_int_equal(graphs->cells[GRAPH_LAUNCH_DURATION_NS], 3700);
    assert_int_equal(graphs->cells[GRAPH_LAUNCH_BUSY_NS], 2800);
    assert_int_equal(graphs->cells[GRAPH_LAUNCH_API_LEAD_NS], 4000);
}

static void more_waiting_kernels_than_the_queue_holds_are_written_and_counted(void **state)
{
    struct fixture *fixture = *state;
    enum { kernels = 100 * 1024 };
    for (uint32_t i = 1; i <= kernels; i++) {
        add_kernel(fixture, i, 6000, 9500, 0);
        read_buffer(fixture);
    }
    activity_joiner_finish(fixture->joiner);
    recorder_flush(&fixture->recorder, 0);
    struct log_writer_stats stats;
    log_writer_stats(fixture->writer, &stats);
    assert_int_equal(stats.rows[RECORD_KERNEL_EVENT_BATCH], kernels);
    assert_int_equal(atomic_load(&fixture->recorder.lost[LOSS_PENDING]), kernels - 96 * 1024);
}

/* Reports calls as observed while they were made, with ids from first on. */
static void make_calls(struct fixture *fixture, uint32_t first, uint32_t count)
{
    const struct call_time time = {.start_ns = 2000, .end_ns = 5000, .scope_id = 77, .thread_id = 42};
    for (uint32_t i = 0; i < count; i++)
        activity_joiner_user_call(fixture->joiner, &(struct user_call){.correlation_id = first + i}, &time);
}

static void wait_in_vain(struct fixture *fixture)
{
    for (int i = 0; i < 3; i++)
        activity_joiner_tick(fixture->joiner);
}

static uint64_t lost(const struct fixture *fixture, enum loss_reason reason)
{
    return atomic_load(&fixture->recorder.lost[reason]);
}

static void a_kernel_whose_call_was_forgotten_meanwhile_is_counted(void **state)
{
    struct fixture *fixture = *state;
    make_calls(fixture, 5, 1 + CALL_SLOTS);
    add_kernel(fixture, 5, 6000, 9500, 0);
    add_kernel(fixture, 6, 6000, 9500, 0);
    read_buffer(fixture);
    wait_in_vain(fixture);
    assert_int_equal(kernel_row(fixture, 0)[KERNEL_SCOPE_ID], 77);
    assert_int_equal(kernel_row(fixture, 1)[KERNEL_THREAD_ID], CELL_UNKNOWN);
    assert_int_equal(lost(fixture, LOSS_CALL_UNKNOWN), 1);
    assert_int_equal(recorder_lost_total(&fixture->recorder), 1);
}

static void what_still_waits_at_the_end_is_counted(void **state)
{
    struct fixture *fixture = *state;
    make_calls(fixture, 8, 1);
    add_kernel(fixture, 9, 6000, 9500, 0);
    read_buffer(fixture);
    assert_int_equal(lost(fixture, LOSS_CALL_UNKNOWN), 0);
    activity_joiner_finish(fixture->joiner);
    assert_int_equal(lost(fixture, LOSS_CALL_UNKNOWN), 1);
}

static void a_call_that_found_its_ring_full_is_not_counted_again(void **state)
{
    struct fixture *fixture = *state;
    make_calls(fixture, 8, 1);
    recorder_lose(&fixture->recorder, LOSS_CALL_RING, 1);
    for (int i = 0; i < 3; i++) /* of one graph, so of one call */
        add_kernel(fixture, 9, 6000, 9500, 3);
    add_kernel(fixture, 10, 6000, 9500, 0);
    read_buffer(fixture);
    wait_in_vain(fixture);
    assert_int_equal(lost(fixture, LOSS_CALL_UNKNOWN), 1);
}

static void without_reported_calls_no_call_is_lost(void **state)
{
    struct fixture *fixture = *state;
    add_kernel(fixture, 9, 6000, 9500, 0);
    read_buffer(fixture);
    wait_in_vain(fixture);
    assert_int_equal(recorder_lost_total(&fixture->recorder), 0);
}

static void an_allocation_is_counted_when_its_call_is_forgotten_not_when_it_has_none(void **state)
{
    struct fixture *fixture = *state;
    const struct activity allocation = {.kind = ACTIVITY_MEMORY,
                                        .u.memory = {.time_ns = 3000, .bytes = 64, .correlation_id = 9}};
    make_calls(fixture, 8, 1);
    assert_true(activity_joiner_accept(fixture->joiner, ACTIVITY_FROM_CUPTI, &allocation));
    wait_in_vain(fixture);
    assert_int_equal(recorder_lost_total(&fixture->recorder), 0);
    make_calls(fixture, 9 + CALL_SLOTS, 1);
    assert_true(activity_joiner_accept(fixture->joiner, ACTIVITY_FROM_CUPTI, &allocation));
    wait_in_vain(fixture);
    assert_int_equal(lost(fixture, LOSS_CALL_UNKNOWN), 1);
    assert_int_equal(batch_of(fixture, RECORD_MEMORY_ALLOC_EVENT_BATCH)->row_count, 2);
}

static void work_without_a_call_is_no_loss(void **state)
{
    struct fixture *fixture = *state;
    make_calls(fixture, 8, 1);
    add_kernel(fixture, 0, 6000, 9500, 0);
    read_buffer(fixture);
    wait_in_vain(fixture);
    assert_int_equal(batch_of(fixture, RECORD_KERNEL_EVENT_BATCH)->row_count, 1);
    assert_int_equal(lost(fixture, LOSS_CALL_UNKNOWN), 0);
}

static void a_graph_whose_call_is_forgotten_before_its_last_node_is_counted(void **state)
{
    struct fixture *fixture = *state;
    make_calls(fixture, 9, 1);
    add_kernel(fixture, 9, 6000, 9500, 77);
    read_buffer(fixture);
    make_calls(fixture, 9 + CALL_SLOTS, 1);
    wait_in_vain(fixture);
    assert_int_equal(kernel_row(fixture, 0)[KERNEL_SCOPE_ID], 77);
    assert_int_equal(batch_of(fixture, RECORD_GRAPH_LAUNCH_BATCH)->cells[GRAPH_LAUNCH_THREAD_ID], CELL_UNKNOWN);
    assert_int_equal(lost(fixture, LOSS_CALL_UNKNOWN), 1);
}

static void a_kernel_without_its_call_makes_no_scope_of_its_samples_certain(void **state)
{
    struct fixture *fixture = *state;
    add_kernel(fixture, 9, 6000, 9500, 0);
    read_buffer(fixture);
    wait_in_vain(fixture);
    make_calls(fixture, 10, 1);
    add_kernel(fixture, 10, 26000, 29500, 0);
    read_buffer(fixture);
    struct kernel_overlap overlap;
    uint32_t symbol_id = kernel_history_symbol(fixture->kernels, "_Z4axpyfPKfPfi");
    kernel_history_overlap(fixture->kernels, symbol_id, 0, 6000, 9500, &overlap);
    assert_int_equal(overlap.instances, 1);
    assert_int_equal(overlap.total_ns, 3500);
    assert_int_equal(overlap.unknown_ns, 3500);
    kernel_history_overlap(fixture->kernels, symbol_id, 0, 26000, 29500, &overlap);
    assert_int_equal(overlap.shares[0].scope_id, 77);
    assert_int_equal(overlap.shares[0].ns, 3500);
}

static void a_kernel_whose_scope_is_forgotten_makes_no_scope_of_its_samples_certain(void **state)
{
    struct fixture *fixture = *state;
    for (int64_t i = 0; i < 100000; i++)
        scope_history_step(fixture->history, 42, 10000 + i, 5);
    add_call(fixture, 9, 2000, 5000, 42);
    add_kernel(fixture, 9, 6000, 9500, 0);
    read_buffer(fixture);
    struct kernel_overlap overlap;
    uint32_t symbol_id = kernel_history_symbol(fixture->kernels, "_Z4axpyfPKfPfi");
    kernel_history_overlap(fixture->kernels, symbol_id, 0, 6000, 9500, &overlap);
    assert_int_equal(overlap.share_count, 0);
    assert_int_equal(lost(fixture, LOSS_ATTRIBUTION), 1);
}

static void a_damaged_buffer_is_counted_and_what_came_before_is_kept(void **state)
{
    struct fixture *fixture = *state;
    add_call(fixture, 9, 2000, 5000, 42);
    add_kernel(fixture, 9, 6000, 9500, 0);
    fixture->size -= 8; /* the kernel record reaches over the end */
    read_buffer(fixture);
    assert_int_equal(atomic_load(&fixture->recorder.lost[LOSS_BAD_RECORD]), 1);
    assert_int_equal(activity_joiner_totals(fixture->joiner)->calls, 1);
}

static void the_same_address_with_another_name_is_another_kernel(void **state)
{
    struct fixture *fixture = *state;
    char name[32] = "_Z1av";
    for (int i = 0; i < 2; i++) {
        struct cupti_abi_kernel kernel = {.kind = CUPTI_ABI_KIND_CONCURRENT_KERNEL,
                                          .start = 6000,
                                          .end = 7000,
                                          .correlation_id = (uint32_t)i + 1,
                                          .name = name,
                                          .block = {32, 1, 1}};
        add_call(fixture, (uint32_t)i + 1, 2000, 5000, 42);
        add(fixture, &kernel, sizeof kernel);
        read_buffer(fixture);
        snprintf(name, sizeof name, "_Z1bv");
    }
    assert_int_equal(kernel_row(fixture, 0)[KERNEL_KERNEL_ID], 1);
    assert_int_equal(kernel_row(fixture, 1)[KERNEL_KERNEL_ID], 2);
}

static void a_wait_follows_the_scope_it_refers_to(void **state)
{
    struct fixture *fixture = *state;
    recorder_row(&fixture->recorder, RECORD_SCOPE_EVENT_BATCH, 1000)[SCOPE_SCOPE_INSTANCE_ID] = 5;
    /* One row more than a batch holds: the full batch of waits is written while the scope's is not due. */
    for (uint32_t i = 0; i <= batch_of(fixture, RECORD_SYNCHRONIZATION_EVENT_BATCH)->row_capacity; i++)
        recorder_row(&fixture->recorder, RECORD_SYNCHRONIZATION_EVENT_BATCH, 2000)[SYNCHRONIZATION_SCOPE_ID] = 5;
    size_t size;
    char *text = fixture_read(log_writer_dir(fixture->writer), "scope.log", &size);
    char *scope = memmem(text, size, "scope_event_batch", 17), *wait = memmem(text, size, "synchronization_event", 21);
    assert_non_null(scope);
    assert_non_null(wait);
    assert_true(scope < wait);
    free(text);
}

static void two_vendors_with_the_same_id_do_not_meet(void **state)
{
    struct fixture *fixture = *state;
    const enum activity_source amd = ACTIVITY_FROM_ROCPROFILER;
    const struct activity kernel = {
        .kind = ACTIVITY_KERNEL,
        .u.kernel = {.start_ns = 7000, .end_ns = 7500, .name = "_Z1kv", .correlation_id = 9, .device_id = 1}};
    const struct activity call = {
        .kind = ACTIVITY_API,
        .u.api = {.start_ns = 6000, .end_ns = 6500, .correlation_id = 9, .thread_id = 43, .is_runtime = 1}};
    assert_int_equal(activity_joiner_open(fixture->joiner, amd), GPUFL_OK);
    add_call(fixture, 9, 2000, 5000, 42);
    read_buffer(fixture);
    assert_true(activity_joiner_accept(fixture->joiner, amd, &kernel));
    assert_int_equal(batch_of(fixture, RECORD_KERNEL_EVENT_BATCH)->row_count, 0);
    assert_null(activity_joiner_call(fixture->joiner, amd, 9));
    assert_true(activity_joiner_accept(fixture->joiner, amd, &call));
    add_kernel(fixture, 9, 6000, 9500, 0);
    read_buffer(fixture);
    assert_int_equal(activity_joiner_call(fixture->joiner, amd, 9)->thread_id, 43);
    for (uint32_t i = 0; i < 2; i++) {
        const int64_t *row = kernel_row(fixture, i);
        assert_int_equal(row[KERNEL_THREAD_ID], row[KERNEL_DEVICE_ID] ? 43 : 42);
        assert_int_equal(row[KERNEL_API_LEAD_NS], row[KERNEL_DEVICE_ID] ? 1000 : 4000);
    }
    assert_false(activity_joiner_accept(fixture->joiner, amd, &(struct activity){.kind = ACTIVITY_BAD}));
}

int main(void)
{
#define WITH(test, open) cmocka_unit_test_setup_teardown(test, open, close_fixture)
    const struct CMUnitTest tests[] = {
        WITH(a_kernel_gets_time_thread_and_scope_of_its_call, open_fixture),
        WITH(a_kernel_that_comes_before_its_call_waits_for_it, open_fixture),
        WITH(two_vendors_with_the_same_id_do_not_meet, open_fixture),
        WITH(a_kernel_whose_call_never_comes_is_written_with_unknowns, open_fixture),
        WITH(without_api_records_nothing_waits, open_without_calls),
        WITH(the_middle_of_the_call_decides_its_scope, open_fixture),
        WITH(an_external_id_belongs_to_the_call_that_follows_it, open_fixture),
        WITH(a_kernel_still_running_at_the_end_is_a_loss_not_a_row, open_fixture),
        WITH(graph_nodes_share_the_launch_and_add_up_to_one_graph_row, open_with_graphs),
        WITH(more_waiting_kernels_than_the_queue_holds_are_written_and_counted, open_fixture),
        WITH(a_kernel_whose_call_was_forgotten_meanwhile_is_counted, open_fixture),
        WITH(what_still_waits_at_the_end_is_counted, open_fixture),
        WITH(a_call_that_found_its_ring_full_is_not_counted_again, open_fixture),
        WITH(without_reported_calls_no_call_is_lost, open_fixture),
        WITH(an_allocation_is_counted_when_its_call_is_forgotten_not_when_it_has_none, open_fixture),
        WITH(work_without_a_call_is_no_loss, open_fixture),
        WITH(a_graph_whose_call_is_forgotten_before_its_last_node_is_counted, open_with_graphs),
        WITH(a_kernel_without_its_call_makes_no_scope_of_its_samples_certain, open_with_kernels),
        WITH(a_kernel_whose_scope_is_forgotten_makes_no_scope_of_its_samples_certain, open_with_kernels),
        WITH(a_damaged_buffer_is_counted_and_what_came_before_is_kept, open_fixture),
        WITH(the_same_address_with_another_name_is_another_kernel, open_fixture),
        WITH(a_wait_follows_the_scope_it_refers_to, open_fixture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
