/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "monitor/roll.h"

#include <stdlib.h>
#include <time.h>

static const int64_t second_ns = 1000000000;

static int64_t at(int year, int month, int day, int hour, int minute)
{
    struct tm utc = {.tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = day, .tm_hour = hour, .tm_min = minute};
    return (int64_t)timegm(&utc) * second_ns;
}

static void zone_set(const char *zone)
{
    setenv("TZ", zone, 1);
    tzset();
}

static void days_end_at_local_midnight(void **state)
{
    (void)state;
    zone_set("UTC");
    assert_int_equal(roll_next_ns(ROLL_DAILY, at(2026, 12, 31, 23, 59)), at(2027, 1, 1, 0, 0));
    assert_int_equal(roll_next_ns(ROLL_DAILY, at(2026, 6, 1, 0, 0)), at(2026, 6, 2, 0, 0));
    zone_set("CET-1CEST,M3.5.0,M10.5.0/3");
    assert_int_equal(roll_next_ns(ROLL_DAILY, at(2026, 6, 1, 12, 0)), at(2026, 6, 1, 22, 0));
    /* A day of 23 hours, and one of 25. */
    assert_int_equal(roll_next_ns(ROLL_DAILY, at(2026, 3, 28, 23, 0)), at(2026, 3, 29, 22, 0));
    assert_int_equal(roll_next_ns(ROLL_DAILY, at(2026, 10, 24, 22, 0)), at(2026, 10, 25, 23, 0));
    zone_set("UTC");
}

static void hours_continue_when_clocks_change(void **state)
{
    (void)state;
    zone_set("CET-1CEST,M3.5.0,M10.5.0/3");
    int64_t now_ns = at(2026, 10, 24, 22, 30);
    for (int i = 0; i < 30; i++) {
        int64_t next_ns = roll_next_ns(ROLL_HOURLY, now_ns);
        assert_int_equal(next_ns - now_ns, i ? 3600 * second_ns : 1800 * second_ns);
        now_ns = next_ns;
    }
    zone_set("<+0545>-5:45"); /* a full hour of local time */
    assert_int_equal(roll_next_ns(ROLL_HOURLY, at(2026, 6, 1, 12, 0)), at(2026, 6, 1, 12, 15));
    zone_set("UTC");
}

static void a_session_with_roll_never_does_not_end(void **state)
{
    (void)state;
    int64_t next_ns = roll_next_ns(ROLL_NEVER, at(2026, 6, 1, 0, 0));
    assert_int_equal(next_ns, INT64_MAX);
    assert_false(roll_is_due(ROLL_NEVER, at(2036, 6, 1, 0, 0), &next_ns));
}

static void a_clock_that_is_set_moves_the_boundary(void **state)
{
    (void)state;
    int64_t next_ns = roll_next_ns(ROLL_DAILY, at(2026, 6, 1, 12, 0));
    assert_false(roll_is_due(ROLL_DAILY, at(2026, 6, 1, 23, 59), &next_ns));
    assert_true(roll_is_due(ROLL_DAILY, at(2026, 6, 2, 0, 0), &next_ns));
    assert_int_equal(next_ns, at(2026, 6, 3, 0, 0));
    /* Set back by a month: the next midnight counts, not the one a month away. */
    assert_false(roll_is_due(ROLL_DAILY, at(2026, 5, 1, 10, 0), &next_ns));
    assert_int_equal(next_ns, at(2026, 5, 2, 0, 0));
    /* Set forward by years: due once, not once per day. */
    assert_true(roll_is_due(ROLL_DAILY, at(2030, 5, 1, 10, 0), &next_ns));
    assert_false(roll_is_due(ROLL_DAILY, at(2030, 5, 1, 10, 1), &next_ns));
}

static void periods_have_names(void **state)
{
    (void)state;
    enum roll_period period;
    assert_true(roll_period_parse(&period, "hourly"));
    assert_int_equal(period, ROLL_HOURLY);
    assert_true(roll_period_parse(&period, "never") && period == ROLL_NEVER);
    assert_false(roll_period_parse(&period, "weekly"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(days_end_at_local_midnight),
        cmocka_unit_test(hours_continue_when_clocks_change),
        cmocka_unit_test(a_session_with_roll_never_does_not_end),
        cmocka_unit_test(a_clock_that_is_set_moves_the_boundary),
        cmocka_unit_test(periods_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
