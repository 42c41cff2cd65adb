/* SPDX-License-Identifier: Apache-2.0 */
/* Turning PC samples into rows: attribution, summing, losses. */
#include "pc_fixture.h"

static void one_execution_in_the_interval_is_certain(void **state)
{
    struct fixture *fixture = *state;
    ran(fixture, "_Z1aPf", 1000, 5000, 7, 42);
    ran(fixture, "_Z1bPf", 1000, 5000, 8, 43);
    sampled(fixture, 1, 0, 10000, 5, 0);
    pc_attribution_write(fixture->attribution, INT64_MAX);
    const int64_t *row = row_at(fixture, 0);
    assert_int_equal(row_count(fixture), 1);
    assert_int_equal(row[PROFILE_SAMPLE_CORR_ID], 42);
    assert_int_equal(row[PROFILE_SAMPLE_SCOPE_ID], 7);
    assert_int_equal(row[PROFILE_SAMPLE_SCOPE_NAME_ID], 1007);
    assert_int_equal(row[PROFILE_SAMPLE_CONFIDENCE_BP], 10000);
    assert_int_equal(row[PROFILE_SAMPLE_INSTANCES], 1);
    assert_int_equal(row[PROFILE_SAMPLE_METRIC_VALUE], 5);
    assert_int_equal(row[PROFILE_SAMPLE_STALL_REASON], STALL);
    assert_int_equal(row[PROFILE_SAMPLE_METRIC_ID], 1);
    assert_int_equal(row[PROFILE_SAMPLE_PC_OFFSET], 0x40);
    assert_int_equal(row[PROFILE_SAMPLE_CUBIN_CRC], 77);
    assert_int_equal(row[PROFILE_SAMPLE_INTERVAL_NS], 10000);
    assert_int_equal(row[PROFILE_SAMPLE_SAMPLE_KIND], 0);
}

/* The samples of rows with that path; their confidence, which is the same in all rows, in *confidence_bp. */
static uint64_t samples_of(const struct fixture *fixture, uint32_t path_id, int64_t *confidence_bp)
{
    uint64_t samples = 0;
    for (uint32_t i = 0; i < row_count(fixture); i++) {
        const int64_t *row = row_at(fixture, i);
        if (row[PROFILE_SAMPLE_SCOPE_NAME_ID] != path_id)
            continue;
        samples += (uint64_t)row[PROFILE_SAMPLE_METRIC_VALUE];
        *confidence_bp = row[PROFILE_SAMPLE_CONFIDENCE_BP];
    }
    return samples;
}

static void samples_are_split_between_scopes_as_their_kernels_time_is(void **state)
{
    struct fixture *fixture = *state;
    int64_t confidence_bp;
    ran(fixture, "_Z1aPf", 1000, 4000, 7, 42);
    ran(fixture, "_Z1aPf", 5000, 6000, 8, 43);
    sampled(fixture, 1, 0, 10000, 400, 0);
    pc_attribution_write(fixture->attribution, INT64_MAX);
    assert_int_equal(row_count(fixture), 2);
    assert_int_equal(samples_of(fixture, 1007, &confidence_bp), 300);
    assert_int_equal(confidence_bp, 7500);
    assert_int_equal(samples_of(fixture, 1008, &confidence_bp), 100);
    assert_int_equal(confidence_bp, 2500);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(row_at(fixture, i)[PROFILE_SAMPLE_CORR_ID], 0);
        assert_int_equal(row_at(fixture, i)[PROFILE_SAMPLE_INSTANCES], 2);
        assert_int_equal(row_at(fixture, i)[PROFILE_SAMPLE_SCOPE_ID],
                         row_at(fixture, i)[PROFILE_SAMPLE_SCOPE_NAME_ID] - 1000);
    }
}

static void many_instances_of_a_scope_are_one_row_without_an_instance(void **state)
{
    struct fixture *fixture = *state;
    int64_t confidence_bp;
    for (uint32_t i = 0; i < 190; i++) /* 18 of path 7, then one of path 8 that is twice as long, and so on */
        ran(fixture, "_Z1aPf", i * 100, i * 100 + (i % 19 == 18 ? 20 : 10), i * 100 + (i % 19 == 18 ? 8 : 7), i + 1);
    sampled(fixture, 1, 0, 20000, 2000, 0);
    pc_attribution_write(fixture->attribution, INT64_MAX);
    assert_int_equal(row_count(fixture), 2);
    assert_int_equal(samples_of(fixture, 1007, &confidence_bp), 1800);
    assert_int_equal(confidence_bp, 9000);
    assert_int_equal(samples_of(fixture, 1008, &confidence_bp), 200);
    assert_int_equal(row_at(fixture, 0)[PROFILE_SAMPLE_SCOPE_ID], 0);
    assert_int_equal(row_at(fixture, 0)[PROFILE_SAMPLE_INSTANCES], 190);
}

static void single_samples_are_shared_out_fairly_and_none_is_lost(void **state)
{
    struct fixture *fixture = *state;
    uint64_t all = 0;
    int64_t confidence_bp;
    for (uint32_t i = 0; i < 20; i++) /* 5 % each */
        ran(fixture, "_Z1aPf", i * 100, i * 100 + 50, i + 1, i + 1);
    for (uint32_t i = 0; i < 2000; i++) { /* one at a time, never two of an instruction */
        const struct pc_interval interval = {BEGIN_NS, BEGIN_NS + 3000, CONTEXT, 0, 0};
        const struct pc_count count = {i * 16, 1, STALL, 1, 0};
        pc_attribution_add(fixture->attribution, &interval, &count, 1);
    }
    pc_attribution_write(fixture->attribution, INT64_MAX);
    for (uint32_t i = 0; i < 20; i++) {
        uint64_t samples = samples_of(fixture, 1001 + i, &confidence_bp);
        assert_in_range(samples, 95, 105);
        assert_int_equal(confidence_bp, 500);
        all += samples;
    }
    assert_int_equal(all, 2000);
}

static void time_of_unknown_scopes_is_given_to_none(void **state)
{
    struct fixture *fixture = *state;
    int64_t confidence_bp;
    ran(fixture, "_Z1aPf", 1000, 4000, SCOPE_UNKNOWN, 42);
    ran(fixture, "_Z1aPf", 5000, 6000, 8, 43);
    sampled(fixture, 1, 0, 10000, 400, 0);
    pc_attribution_write(fixture->attribution, INT64_MAX);
    assert_int_equal(samples_of(fixture, 1008, &confidence_bp), 100);
    assert_int_equal(samples_of(fixture, 0, &confidence_bp), 300);
    assert_int_equal(confidence_bp, CELL_UNKNOWN);
    assert_int_equal(pc_attribution_unattributed(fixture->attribution), 300);
}

static void more_scopes_than_shares_leave_a_rest_that_is_given_to_none(void **state)
{
    struct fixture *fixture = *state;
    uint64_t all = 0;
    int64_t confidence_bp;
    for (uint32_t i = 0; i < 2 * KERNEL_SHARES_MAX; i++) {
        const struct kernel_execution execution = {
            BEGIN_NS + i, BEGIN_NS + i + 10, i + 1, kernel_history_symbol(fixture->history, "_Z1aPf"), CONTEXT, i + 1,
            i + 1};
        kernel_history_add(fixture->history, &execution);
    }
    sampled(fixture, 1, 0, 10000, 2560, 0);
    pc_attribution_write(fixture->attribution, INT64_MAX);
    for (uint32_t i = 0; i < row_count(fixture); i++)
        all += (uint64_t)row_at(fixture, i)[PROFILE_SAMPLE_METRIC_VALUE];
    assert_int_equal(row_count(fixture), KERNEL_SHARES_MAX + 1);
    assert_int_equal(samples_of(fixture, 0, &confidence_bp), 1280);
    assert_int_equal(all, 2560);
}

static void samples_that_were_early_are_split_when_their_kernels_come(void **state)
{
    struct fixture *fixture = *state;
    int64_t confidence_bp;
    sampled(fixture, 1, 0, 10000, 400, 0);
    ran(fixture, "_Z1aPf", 1000, 3000, 7, 42);
    ran(fixture, "_Z1aPf", 5000, 6000, 8, 43);
    ran(fixture, "_Z1aPf", 7000, 8000, SCOPE_UNKNOWN, 44);
    pc_attribution_write(fixture->attribution, BEGIN_NS + 2 * SECOND_NS);
    assert_int_equal(samples_of(fixture, 1007, &confidence_bp), 200);
    assert_int_equal(confidence_bp, 5000);
    assert_int_equal(samples_of(fixture, 1008, &confidence_bp), 100);
    assert_int_equal(samples_of(fixture, 0, &confidence_bp), 100);
    assert_int_equal(confidence_bp, CELL_UNKNOWN);
}

static void without_an_execution_nothing_is_claimed(void **state)
{
    struct fixture *fixture = *state;
    ran(fixture, "_Z1bPf", 1000, 4000, 7, 42);
    sampled(fixture, 1, 0, 10000, 5, 0);
    pc_attribution_write(fixture->attribution, INT64_MAX);
    const int64_t *row = row_at(fixture, 0);
    assert_int_equal(row[PROFILE_SAMPLE_INSTANCES], CELL_UNKNOWN);
    assert_int_equal(row[PROFILE_SAMPLE_CONFIDENCE_BP], CELL_UNKNOWN);
    assert_int_equal(row[PROFILE_SAMPLE_SCOPE_ID], 0);
    assert_int_equal(row[PROFILE_SAMPLE_CORR_ID], 0);
    assert_int_equal(pc_attribution_unattributed(fixture->attribution), 5);
}

static void a_forgotten_past_is_not_guessed_at(void **state)
{
    struct fixture *fixture = *state;
    for (int i = 0; i < 1100; i++) /* more than are remembered */
        ran(fixture, "_Z1bPf", i * 100, i * 100 + 50, 7, 1);
    ran(fixture, "_Z1aPf", 1000, 2000, 9, 42);
    sampled(fixture, 1, 0, 3000, 5, 0);
    pc_attribution_write(fixture->attribution, INT64_MAX);
    assert_int_equal(row_at(fixture, 0)[PROFILE_SAMPLE_INSTANCES], CELL_UNKNOWN);
    assert_int_equal(row_at(fixture, 0)[PROFILE_SAMPLE_SCOPE_ID], 0);
}

static void samples_that_name_their_launch_are_exact(void **state)
{
    struct fixture *fixture = *state;
    ran(fixture, "_Z1aPf", 1000, 4000, 7, 42);
    ran(fixture, "_Z1aPf", 4000, 9000, 8, 43);
    sampled(fixture, 1, 0, 10000, 5, 42);
    sampled(fixture, 1, 0, 10000, 6, 43);
    pc_attribution_write(fixture->attribution, INT64_MAX);
    assert_int_equal(row_count(fixture), 2);
    for (uint32_t i = 0; i < 2; i++) {
        const int64_t *row = row_at(fixture, i);
        assert_int_equal(row[PROFILE_SAMPLE_CORR_ID], 42 + i);
        assert_int_equal(row[PROFILE_SAMPLE_SCOPE_ID], 7 + i);
        assert_int_equal(row[PROFILE_SAMPLE_CONFIDENCE_BP], 10000);
        assert_int_equal(row[PROFILE_SAMPLE_METRIC_VALUE], 5 + i);
    }
}

static void intervals_of_one_scope_are_added_up_for_a_second(void **state)
{
    struct fixture *fixture = *state;
    for (int i = 0; i < 20; i++) /* two a drain; each even one reaches into the next drain */
        ran(fixture, "_Z1aPf", i * 10000000 + 3000000, i * 10000000 + 11000000, 7, (uint32_t)i + 1);
    for (int i = 0; i < 10; i++)
        sampled(fixture, 1, i * 20000000, (i + 1) * 20000000, 5, 0);
    pc_attribution_write(fixture->attribution, BEGIN_NS + SECOND_NS);
    assert_int_equal(row_count(fixture), 0);
    pc_attribution_write(fixture->attribution, BEGIN_NS + 2 * SECOND_NS);
    assert_int_equal(row_count(fixture), 1);
    const int64_t *row = row_at(fixture, 0);
    assert_int_equal(row[PROFILE_SAMPLE_METRIC_VALUE], 50);
    assert_int_equal(row[PROFILE_SAMPLE_INSTANCES], 20);
    assert_int_equal(row[PROFILE_SAMPLE_CONFIDENCE_BP], 10000);
    assert_int_equal(row[PROFILE_SAMPLE_INTERVAL_NS], 200000000);
}

static void a_kernel_that_still_runs_is_waited_for(void **state)
{
    struct fixture *fixture = *state;
    for (int i = 0; i < 5; i++)
        sampled(fixture, 1, i * SECOND_NS, (i + 1) * SECOND_NS, 5, 0);
    pc_attribution_write(fixture->attribution, BEGIN_NS + 6 * SECOND_NS);
    assert_int_equal(row_count(fixture), 0);
    ran(fixture, "_Z1aPf", 1000, 6 * SECOND_NS, 7, 42); /* it has ended: here is its record */
    pc_attribution_write(fixture->attribution, BEGIN_NS + 8 * SECOND_NS);
    assert_int_equal(row_count(fixture), 1);
    assert_int_equal(row_at(fixture, 0)[PROFILE_SAMPLE_CORR_ID], 42);
    assert_int_equal(row_at(fixture, 0)[PROFILE_SAMPLE_METRIC_VALUE], 25);
}

static void waiting_ends_after_half_a_minute(void **state)
{
    struct fixture *fixture = *state;
    sampled(fixture, 1, 0, 1000, 5, 0);
    sampled(fixture, 2, 31 * SECOND_NS, 31 * SECOND_NS + 1000, 6, 0);
    pc_attribution_write(fixture->attribution, BEGIN_NS + 33 * SECOND_NS);
    assert_int_equal(row_count(fixture), 1);
    assert_int_equal(row_at(fixture, 0)[PROFILE_SAMPLE_METRIC_VALUE], 5);
    ran(fixture, "_Z1bPf", 31 * SECOND_NS, 32 * SECOND_NS, 7, 42);
    sampled(fixture, 2, 31 * SECOND_NS, 31 * SECOND_NS + 1000, 4, 0);
    pc_attribution_write(fixture->attribution, INT64_MAX);
    uint64_t samples = 0;
    for (uint32_t i = 1; i < row_count(fixture); i++) {
        assert_int_equal(row_at(fixture, i)[PROFILE_SAMPLE_CORR_ID], 42);
        samples += (uint64_t)row_at(fixture, i)[PROFILE_SAMPLE_METRIC_VALUE];
    }
    assert_int_equal(samples, 10);
}

static void full_tables_are_written_early_and_nothing_is_lost(void **state)
{
    struct fixture *fixture = *state;
    const struct pc_interval interval = {BEGIN_NS, BEGIN_NS + 1000, CONTEXT, 0, 0};
    uint64_t written = 0;
    for (uint32_t i = 0; i < 200000; i++) {
        const struct pc_count count = {i * 16, 1 + i % 2, STALL, 1, i % 3 ? 0 : i};
        pc_attribution_add(fixture->attribution, &interval, &count, 1);
    }
    pc_attribution_write(fixture->attribution, INT64_MAX);
    recorder_flush(&fixture->recorder, 0);
    struct log_writer_stats stats;
    log_writer_stats(fixture->writer, &stats);
    written = stats.rows[RECORD_PROFILE_SAMPLE_BATCH];
    assert_int_equal(written, 200000);
    assert_int_equal(lost(fixture, LOSS_PC_TABLE), 0);
}

/* 256 instructions, two samples each. */
static void push_many(struct fixture *fixture)
{
    struct pc_sample samples[256];
    const struct pc_interval interval = {BEGIN_NS, BEGIN_NS + 1000, CONTEXT, 0, 0};
    for (uint32_t i = 0; i < 256; i++)
        samples[i] = (struct pc_sample){77, "_Z1aPf", i * 16, 1, STALL, 2, 0};
    pc_ring_push_samples(fixture->ring, &interval, samples, 256);
}

static void a_full_ring_counts_what_it_cannot_take(void **state)
{
    struct fixture *fixture = *state;
    uint64_t pushed = 0;
    for (int i = 0; i < 2000; i++, pushed += 512)
        push_many(fixture);
    uint64_t missing = lost(fixture, LOSS_PC_TABLE);
    assert_in_range(missing, 1, pushed);
    pc_ring_read(fixture->ring, fixture->attribution, INT64_MAX);
    pc_attribution_write(fixture->attribution, INT64_MAX);
    uint64_t written = 0;
    for (uint32_t i = 0; i < row_count(fixture); i++)
        written += (uint64_t)row_at(fixture, i)[PROFILE_SAMPLE_METRIC_VALUE];
    assert_int_equal(written + missing, pushed);
    /* And there is room again. */
    push_many(fixture);
    assert_int_equal(lost(fixture, LOSS_PC_TABLE), missing);
}

static long resident_kib(void)
{
    long pages = 0;
    FILE *statm = fopen("/proc/self/statm", "r");
    assert_non_null(statm);
    assert_int_equal(fscanf(statm, "%*s %ld", &pages), 1);
    (void)fclose(statm);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void a_ring_that_is_read_in_time_touches_little_memory(void **state)
{
    struct fixture *fixture = *state;
    long early_kib = 0;
    for (int i = 0; i < 1000; i++) { /* 7 MiB */
        push_many(fixture);
        pc_ring_read(fixture->ring, fixture->attribution, INT64_MAX);
        if (i == 10)
            early_kib = resident_kib();
    }
    assert_true(resident_kib() - early_kib < 2048);
    assert_int_equal(lost(fixture, LOSS_PC_TABLE), 0);
}

static void samples_wait_in_the_ring_until_their_kernels_are_known(void **state)
{
    struct fixture *fixture = *state;
    const struct pc_sample sample = {77, "_Z1aPf", 16, 1, STALL, 2, 0};
    const struct pc_interval interval = {BEGIN_NS, BEGIN_NS + 1000, CONTEXT, 0, 0};
    pc_ring_push_samples(fixture->ring, &interval, &sample, 1);
    pc_ring_read(fixture->ring, fixture->attribution, BEGIN_NS + 999);
    ran(fixture, "_Z1aPf", 0, 500, 7, 42);
    pc_ring_read(fixture->ring, fixture->attribution, BEGIN_NS + 1000);
    pc_attribution_write(fixture->attribution, INT64_MAX);
    assert_int_equal(row_at(fixture, 0)[PROFILE_SAMPLE_CORR_ID], 42);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, open_fixture, close_fixture)
        WITH_FIXTURE(one_execution_in_the_interval_is_certain),
        WITH_FIXTURE(samples_are_split_between_scopes_as_their_kernels_time_is),
        WITH_FIXTURE(many_instances_of_a_scope_are_one_row_without_an_instance),
        WITH_FIXTURE(single_samples_are_shared_out_fairly_and_none_is_lost),
        WITH_FIXTURE(time_of_unknown_scopes_is_given_to_none),
        WITH_FIXTURE(more_scopes_than_shares_leave_a_rest_that_is_given_to_none),
        WITH_FIXTURE(samples_that_were_early_are_split_when_their_kernels_come),
        WITH_FIXTURE(without_an_execution_nothing_is_claimed),
        WITH_FIXTURE(a_forgotten_past_is_not_guessed_at),
        WITH_FIXTURE(samples_that_name_their_launch_are_exact),
        WITH_FIXTURE(intervals_of_one_scope_are_added_up_for_a_second),
        WITH_FIXTURE(a_kernel_that_still_runs_is_waited_for),
        WITH_FIXTURE(waiting_ends_after_half_a_minute),
        WITH_FIXTURE(full_tables_are_written_early_and_nothing_is_lost),
        WITH_FIXTURE(a_full_ring_counts_what_it_cannot_take),
        WITH_FIXTURE(a_ring_that_is_read_in_time_touches_little_memory),
        WITH_FIXTURE(samples_wait_in_the_ring_until_their_kernels_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
