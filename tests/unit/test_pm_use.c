/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analysis/pm_use.h"

#include <math.h>

#define MS INT64_C(1000000)

static struct pm_use use_of(const int64_t *times_ns, const double *values, size_t count, int64_t interval_ns,
                            double threshold)
{
    const struct pm_series series = {"sm__cycles_active.avg", 0, count, times_ns, values};
    struct pm_use use;
    assert_int_equal(pm_use_of(&series, interval_ns, threshold, &use), GPUFL_OK);
    return use;
}

static void assert_close(double actual, double expected)
{
    if (!(fabs(actual - expected) < 1e-9))
        fail_msg("%g, not %g", actual, expected);
}

static void an_even_series_has_its_plain_figures(void **state)
{
    (void)state;
    int64_t times[100];
    double values[100];
    for (int i = 0; i < 100; i++) {
        times[i] = 1000 * MS + i * MS;
        values[99 - i] = i + 1;
    }
    struct pm_use use = use_of(times, values, 100, MS, 75);
    assert_int_equal(use.count, 100);
    assert_int_equal(use.without_value, 0);
    assert_int_equal(use.covered_ns, 100 * MS);
    assert_int_equal(use.gap_count, 0);
    assert_close(use.mean, 50.5);
    assert_close(use.p50, 50);
    assert_close(use.p95, 95);
    assert_close(use.max, 100);
    assert_close(use.share_above, 0.25);
}

static void a_longer_interval_weighs_more(void **state)
{
    (void)state;
    /* The second sample covers 3 ms, the others 1 ms. */
    const int64_t times[] = {0, MS, 4 * MS};
    const double values[] = {0, 100, 0};
    struct pm_use use = use_of(times, values, 3, MS, 50);
    assert_close(use.mean, 60);
    assert_close(use.share_above, 0.6);
    assert_int_equal(use.gap_count, 0);
}

static void a_gap_is_counted_and_stands_for_nothing(void **state)
{
    (void)state;
    const int64_t times[] = {0, MS, 101 * MS, 102 * MS};
    const double values[] = {10, 20, 30, 40};
    struct pm_use use = use_of(times, values, 4, MS, 0);
    assert_int_equal(use.gap_count, 1);
    assert_int_equal(use.gap_ns, 99 * MS);
    assert_int_equal(use.covered_ns, 4 * MS);
    assert_close(use.mean, 25);
}

static void an_unknown_interval_is_the_median_distance(void **state)
{
    (void)state;
    const int64_t times[] = {0, 2 * MS, 4 * MS, 6 * MS, 60 * MS};
    const double values[] = {1, 1, 1, 1, 1};
    struct pm_use use = use_of(times, values, 5, 0, 0);
    assert_int_equal(use.interval_ns, 2 * MS);
    assert_int_equal(use.gap_count, 1);
    assert_int_equal(use.gap_ns, 52 * MS);
}

static void what_is_not_a_number_is_left_out_and_counted(void **state)
{
    (void)state;
    const int64_t times[] = {0, MS, 2 * MS, 3 * MS};
    const double values[] = {NAN, 4, INFINITY, 6};
    struct pm_use use = use_of(times, values, 4, MS, 5);
    assert_int_equal(use.count, 2);
    assert_int_equal(use.without_value, 2);
    assert_int_equal(use.covered_ns, 2 * MS);
    assert_close(use.mean, 5);
    assert_close(use.max, 6);
    assert_close(use.share_above, 0.5);
}

static void no_value_at_all_gives_no_figure(void **state)
{
    (void)state;
    const int64_t times[] = {0, MS};
    const double values[] = {NAN, NAN};
    struct pm_use use = use_of(times, values, 2, MS, 5);
    assert_int_equal(use.count, 0);
    assert_true(isnan(use.mean) && isnan(use.p50) && isnan(use.p95) && isnan(use.max) && isnan(use.share_above));
    use = use_of(NULL, NULL, 0, 0, 5);
    assert_int_equal(use.interval_ns, 0);
    assert_true(isnan(use.mean));
}

static void one_sample_without_an_interval_is_its_own_mean(void **state)
{
    (void)state;
    const int64_t times[] = {5 * MS};
    const double values[] = {42};
    struct pm_use use = use_of(times, values, 1, 0, 5);
    assert_close(use.mean, 42);
    assert_close(use.p95, 42);
    assert_close(use.share_above, 1);
    assert_int_equal(use.covered_ns, 0);
}

static void absurd_times_and_values_do_no_harm(void **state)
{
    (void)state;
    const int64_t times[] = {INT64_MAX, INT64_MIN, 0, INT64_MAX, 5, 5};
    const double values[] = {-1e308, -1e308, 1e308, 0, -0.0, 3};
    struct pm_use use = use_of(times, values, 6, MS, 0);
    assert_int_equal(use.count, 6);
    assert_int_equal(use.gap_count, 1);
    assert_int_equal(use.gap_ns, INT64_MAX - MS);
    assert_close(use.max / 1e308, 1);
    use = use_of(times, values, 6, INT64_MAX, 0);
    assert_int_equal(use.gap_count, 0);
    assert_int_equal(use.covered_ns, INT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_even_series_has_its_plain_figures),
        cmocka_unit_test(a_longer_interval_weighs_more),
        cmocka_unit_test(a_gap_is_counted_and_stands_for_nothing),
        cmocka_unit_test(an_unknown_interval_is_the_median_distance),
        cmocka_unit_test(what_is_not_a_number_is_left_out_and_counted),
        cmocka_unit_test(no_value_at_all_gives_no_figure),
        cmocka_unit_test(one_sample_without_an_interval_is_its_own_mean),
        cmocka_unit_test(absurd_times_and_values_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
