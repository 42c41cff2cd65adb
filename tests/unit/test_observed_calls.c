/* SPDX-License-Identifier: Apache-2.0 */
/* Time in CUDA calls by CUPTI's activity, and the typical value of each state. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "capture/observed_calls.h"

enum { us = 1000, ms = 1000000 };

static struct observed_calls calls;

static int reset(void **state)
{
    (void)state;
    calls = (struct observed_calls){0};
    return 0;
}

/* Launches that take launch_ns each, one per period, for slightly more than a slice; returns the time after them. */
static int64_t slice(enum call_state state, int64_t from_ns, int64_t period_ns, int64_t launch_ns)
{
    int64_t now_ns = from_ns;
    for (; now_ns - from_ns < OBSERVED_SLICE_NS + period_ns; now_ns += period_ns)
        observed_calls_add(&calls, state, now_ns, now_ns + launch_ns, true);
    return now_ns;
}

static void assert_about(int64_t value, int64_t expected)
{
    assert_in_range(value, expected * 93 / 100, expected * 107 / 100); /* the width of a bucket */
}

static void the_median_slice_is_typical_and_one_after_a_switch_is_not(void **state)
{
    (void)state;
    int64_t now_ns = slice(CALLS_PLAIN, ms, ms, 900 * us);
    for (int i = 0; i < 4; i++)
        now_ns = slice(CALLS_PLAIN, now_ns, ms, 8 * us);
    assert_about(observed_calls_typical_ns(&calls, CALLS_PLAIN), 8 * us);
    assert_int_equal(observed_calls_typical_ns(&calls, CALLS_COUNTED), -1);
}

static void pauses_of_the_program_do_not_matter(void **state)
{
    (void)state;
    int64_t now_ns = ms;
    for (int i = 0; i < 5; i++)
        now_ns = slice(CALLS_PLAIN, now_ns, 50 * ms, 8 * us) + 900 * ms;
    assert_about(observed_calls_typical_ns(&calls, CALLS_PLAIN), 8 * us);
}

static void a_long_wait_is_in_the_slice_of_its_launches(void **state)
{
    (void)state;
    int64_t now_ns = ms;
    for (int step = 0; step < 5; step++) {
        for (int i = 0; i < 10; i++, now_ns += 20 * us)
            observed_calls_add(&calls, CALLS_SAMPLED, now_ns, now_ns + 5 * us, true);
        observed_calls_add(&calls, CALLS_SAMPLED, now_ns, now_ns + 1000 * ms, false);
        now_ns += 1000 * ms;
    }
    assert_about(observed_calls_typical_ns(&calls, CALLS_SAMPLED), 100 * ms + 5 * us);
    assert_int_equal(calls.states[CALLS_SAMPLED].launches, 50);
    assert_int_equal(calls.states[CALLS_SAMPLED].calls_ns, INT64_C(5000) * ms + 50 * 5 * us);
}

static void a_slice_that_a_switch_cuts_off_is_not_typical(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++) {
        observed_calls_add(&calls, CALLS_SAMPLED, i * 10 * ms, i * 10 * ms + 5 * us, true);
        observed_calls_add(&calls, CALLS_COUNTED, i * 10 * ms + 5 * ms, i * 10 * ms + 6 * ms, true);
    }
    assert_int_equal(observed_calls_typical_ns(&calls, CALLS_SAMPLED), -1);
    assert_int_equal(calls.states[CALLS_COUNTED].calls_ns, 100 * ms);
}

static void calls_that_cannot_be_are_left_out(void **state)
{
    (void)state;
    observed_calls_add(&calls, CALL_STATE_COUNT, 0, ms, true);
    observed_calls_add(&calls, CALLS_PLAIN, ms, 0, true);
    observed_calls_add(&calls, CALLS_PLAIN, 0, INT64_MAX, true);
    assert_int_equal(calls.states[CALLS_PLAIN].launches, 1);
    assert_true(observed_calls_typical_ns(&calls, CALLS_PLAIN) > INT64_MAX / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_median_slice_is_typical_and_one_after_a_switch_is_not, reset),
        cmocka_unit_test_setup(pauses_of_the_program_do_not_matter, reset),
        cmocka_unit_test_setup(a_long_wait_is_in_the_slice_of_its_launches, reset),
        cmocka_unit_test_setup(a_slice_that_a_switch_cuts_off_is_not_typical, reset),
        cmocka_unit_test_setup(calls_that_cannot_be_are_left_out, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
