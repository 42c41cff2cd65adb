/* SPDX-License-Identifier: Apache-2.0 */
/* When PC sampling is on and off; tests/e2e/test_samplers.py tests the results. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "capture/pc_breaks.h"

static void expect_cycles(uint32_t share_percent, uint32_t cycle_ms, size_t count, const uint32_t sampling_ms[],
                          const uint32_t break_ms[])
{
    struct pc_breaks breaks = {0};
    pc_breaks_init(&breaks, share_percent, cycle_ms);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(breaks.sampling_ms, sampling_ms[i]);
        assert_int_equal(breaks.break_ms, break_ms[i]);
        pc_breaks_next_cycle(&breaks);
    }
    pc_breaks_destroy(&breaks);
}

static void by_default_a_tenth_of_ever_longer_cycles_is_sampled_and_more_at_first(void **state)
{
    (void)state;
    const uint32_t sampling_ms[] = {3000, 4000, 6000, 6000}, break_ms[] = {17000, 36000, 54000, 54000};
    expect_cycles(0, 0, 4, sampling_ms, break_ms);
}

static void cycles_grow_up_to_the_longest_that_was_asked_for(void **state)
{
    (void)state;
    const uint32_t sampling_ms[] = {10000, 15000, 15000}, break_ms[] = {10000, 15000, 15000};
    expect_cycles(50, 30000, 3, sampling_ms, break_ms);
    const uint32_t short_ms[] = {20, 20}, short_break_ms[] = {60, 60};
    expect_cycles(25, 80, 2, short_ms, short_break_ms);
}

/* When the next window begins if this one ends at now_s, in seconds of the wall clock. */
static int64_t next_window_s(uint32_t share_percent, uint32_t cycle_ms, int cycle, int64_t now_s)
{
    struct pc_breaks breaks = {0};
    pc_breaks_init(&breaks, share_percent, cycle_ms);
    while (--cycle)
        pc_breaks_next_cycle(&breaks);
    pc_breaks_align(&breaks, now_s * INT64_C(1000000000));
    int64_t next_s = now_s + breaks.break_ms / 1000;
    pc_breaks_destroy(&breaks);
    return next_s;
}

static void programs_of_one_job_take_their_long_windows_at_the_same_time(void **state)
{
    (void)state;
    const int64_t hour_s = INT64_C(1800000000);
    for (int64_t late_s = 0; late_s <= 27; late_s++)
        assert_int_equal(next_window_s(0, 0, 3, hour_s + 6 + late_s), hour_s + 60);
    for (int64_t late_s = 0; late_s <= 270; late_s++)
        assert_int_equal(next_window_s(10, 600000, 10, hour_s + 60 + late_s), hour_s + 600);
    for (int64_t late_s = 0; late_s < 60; late_s++) /* the share is reached, also a large one */
        assert_int_equal(next_window_s(60, 600000, 10, hour_s + 360 + late_s), hour_s + 600);
}

static void short_cycles_are_as_long_as_they_are(void **state)
{
    (void)state;
    const int64_t any_s = INT64_C(1800000017);
    assert_int_equal(next_window_s(0, 0, 1, any_s), any_s + 17);
    assert_int_equal(next_window_s(0, 0, 2, any_s), any_s + 36);
    assert_int_equal(next_window_s(50, 10000, 5, any_s), any_s + 5);
}

static void all_of_the_time_has_no_breaks(void **state)
{
    (void)state;
    struct pc_breaks breaks = {0};
    pc_breaks_init(&breaks, 100, 80);
    assert_int_equal(breaks.break_ms, 0);
    assert_int_equal(breaks.share_percent, 100);
    assert_true(pc_breaks_due_ns(&breaks) == INT64_MAX);
    assert_int_equal(pc_breaks_tick_ms(&breaks, 500), 500);
    pc_breaks_destroy(&breaks);
}

static void the_thread_looks_often_enough_for_the_shortest_stretch(void **state)
{
    (void)state;
    struct pc_breaks breaks = {0};
    pc_breaks_init(&breaks, 0, 0);
    assert_int_equal(pc_breaks_tick_ms(&breaks, 500), 500);
    pc_breaks_destroy(&breaks);
    breaks = (struct pc_breaks){0};
    pc_breaks_init(&breaks, 10, 200); /* first 30 of 200 ms, then 20 */
    assert_int_equal(pc_breaks_tick_ms(&breaks, 500), 5);
    pc_breaks_destroy(&breaks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_default_a_tenth_of_ever_longer_cycles_is_sampled_and_more_at_first),
        cmocka_unit_test(cycles_grow_up_to_the_longest_that_was_asked_for),
        cmocka_unit_test(programs_of_one_job_take_their_long_windows_at_the_same_time),
        cmocka_unit_test(short_cycles_are_as_long_as_they_are),
        cmocka_unit_test(all_of_the_time_has_no_breaks),
        cmocka_unit_test(the_thread_looks_often_enough_for_the_shortest_stretch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
